package communication

import (
	"errors"
	"math/bits"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// How a segment is appended (MODELS §9): its pending references are followed in order. A granule
// that is open in the segment has the value of before, until the segment closes it. What that adds
// to events, and takes from false ones, is counted. What nobody has written yet stays pending.

// ErrManyThreads reports that threads are not distinguished in all segments.
var ErrManyThreads = errors.New("the segments have more than 64 threads together, and which of these are taken for one depends on the whole trace; " +
	"select threads, or analyze the whole trace at once")

// errOff reports that only the first of two segments was analysed.
var errOff = errors.New("communication was analysed in one segment and left out in the next one, whose reader told of one thread at most; " +
	"ask for it in both, as one of the analyses")

// Append implements analysis.Analysis. It comes after that of sites.
func (a *Analysis) Append(next *profile.Profile) error {
	state := next.Segment.Communication
	switch {
	case next.Totals.AllReferences() == 0 || a.off:
		return nil
	case a.done == a.start:
		return a.Restore(next)
	case state == nil:
		return errOff
	}
	b := New(1<<a.lineShift, a.sites, nil)
	if b.Mergeable(next.Segment.Start); a.done != b.start {
		return errState
	}
	if err := b.load(state); err != nil {
		return err
	}
	to, err := a.threads.join(&b.threads)
	if err != nil {
		return err
	}
	before := a.windows.size
	j := joint{a: a, lines: map[trace.Line]*lineOpen{}, pages: map[uint64]*pageOpen{}}
	a.windows.join(&b.windows, a.flows[words], b.flows[words], to, b.done)
	a.owners.join(&b.owners, to)
	for ; before < a.windows.size; before *= 2 {
		a.pending.coarsen()
	}
	longer := bits.TrailingZeros64(a.windows.size / b.windows.size)
	for i := range b.pending.list {
		u := &b.pending.list[i]
		u.window >>= longer
		switch u.thread = to[u.thread]; {
		case u.isPage:
			j.page(u)
		case u.status == closed:
			u.from = to[u.from]
			j.line(u)
		default:
			j.line(u)
		}
	}
	a.join(b, to)
	return nil
}

// Joins reports whether a segment can be appended without a loss: it lacks source distances.
func (a *Analysis) Joins([]uint32) (now, later bool) { return a.off, a.off || a.program != nil }

// join assigns slots to the threads of the next segment, and returns them by slot there.
func (t *threads) join(next *threads) (to []uint8, err error) {
	for _, number := range next.numbers {
		to = append(to, t.slot(number))
	}
	if t.beyond+next.beyond > 0 {
		return nil, ErrManyThreads
	}
	if len(to) == 0 {
		to = []uint8{0}
	}
	return to, nil
}

// joint is the state of appending a segment.
type joint struct {
	a     *Analysis
	lines map[trace.Line]*lineOpen
	pages map[uint64]*pageOpen
}

// lineOpen is what of a line of the segment is still open.
type lineOpen struct {
	closed  []bool   // words
	loaders []uint64 // of words: threads that have loaded them while they were open
	loaded  uint64   // the same of the line
	known   uint16   // words that are closed, be it from before
}

// pageOpen is what of a page is still open.
type pageOpen struct {
	loaded uint64
	known  uint16
}

// lineAt returns a line, nil if nothing before the segment touched it, and what is open of it.
func (j *joint) lineAt(number trace.Line) (l *line, o *lineOpen) {
	m := &j.a.memory
	l = m.find(number)
	if o = j.lines[number]; o == nil {
		o = &lineOpen{closed: make([]bool, m.wordMask+1), loaders: make([]uint64, m.wordMask+1)}
		if l != nil {
			o.known = *j.a.pending.closedIn(ofLines, l.words)
		}
		j.lines[number] = o
	}
	return l, o
}

func (j *joint) pageAt(number uint64) (p *share, o *pageOpen) {
	m := &j.a.memory
	n, known := m.pageAt.Find(number)
	if known {
		p = m.pages.at(n)
	}
	if o = j.pages[number]; o == nil {
		if o = new(pageOpen); known {
			o.known = *j.a.pending.closedIn(ofPages, n)
		}
		j.pages[number] = o
	}
	return p, o
}

func (c *cell) written() bool { return c != nil && c.site != 0 }

// isFrom reports whether a thread uses a value that another thread wrote.
func (c *cell) isFrom(thread uint8) bool { return c.written() && c.writer != thread }

// source is the source of references of a thread to a written granule. loaded are the threads
// that have loaded it since.
func (c *cell) source(u *useCount, loaded uint64) source {
	bit := uint64(1) << u.thread
	return source{event: true, transfer: u.loads && (c.used|loaded)&bit == 0, thread: c.writer, site: c.site}
}

func (c *cell) event(from source, n uint64) {
	c.events += n
	if from.transfer {
		c.class.produce(from.thread)
	}
}

func (j *joint) page(u *useCount) {
	p, o := j.pageAt(u.granule)
	anyOpen, anyEvent := false, false
	first := u.granule << (pageShift - wordShift)
	for w := first + uint64(u.first); w <= first+uint64(u.last); w++ {
		c, known := j.word(w)
		anyEvent = anyEvent || c.isFrom(u.thread)
		anyOpen = anyOpen || known && !c.written()
	}
	next := *u
	next.closed = o.known
	switch {
	case u.status == closed && anyEvent:
		p.falseEvents -= u.count
		next.status = settled
	case u.status == open && p != nil && p.site != 0:
		if next.status = settled; p.writer == u.thread {
			break
		}
		from := p.source(u, o.loaded)
		p.event(from, u.count)
		j.a.flows[pages].add(from, u.thread, u.count)
		if !anyEvent {
			p.falseEvents += u.count
			next.status = closed
		}
	}
	if next.status == open || next.status == closed && anyOpen {
		j.a.pending.add(next.use, next.count)
	}
	if u.loads && u.status == open {
		o.loaded |= 1 << u.thread
	}
}

// word returns the cell of before, or nil, and whether the word is open in the segment.
func (j *joint) word(w uint64) (c *cell, isOpen bool) {
	m := &j.a.memory
	l, o := j.lineAt(w >> (m.lineShift - wordShift))
	if o.closed[w&m.wordMask] {
		return nil, false
	}
	if l == nil {
		return nil, true
	}
	return &m.cells.run(l.words)[w&m.wordMask], true
}

func (j *joint) line(u *useCount) {
	l, o := j.lineAt(u.granule)
	var s *sharedLine
	if l != nil {
		s = j.a.memory.shares.at(l.words)
	}
	next := *u
	next.closed = o.known
	events, stayOpen := j.words(u, o)
	j.lineEvents(u, &next, s, l, o, events)
	if next.status != closed {
		next.site, next.from, next.isMiss = 0, 0, false
	}
	if next.status == settled {
		next.isFirst = false
	}
	if stayOpen || next.status == closed && next.isFirst {
		j.a.pending.add(next.use, next.count)
	}
	if u.stores {
		j.close(u, o)
	}
}

// words counts the events of open words. It returns how many each reference has, and whether
// words stay open.
func (j *joint) words(u *useCount, o *lineOpen) (events int, stayOpen bool) {
	a := j.a
	first := u.granule * (a.memory.wordMask + 1)
	for i := u.first; i <= u.last; i++ {
		c, isOpen := j.word(first + uint64(i))
		if !isOpen {
			continue
		}
		if stayOpen = stayOpen || !c.written(); c.isFrom(u.thread) {
			events++
			from := c.source(u, o.loaders[i])
			c.event(from, u.count)
			if u.stores {
				c.handovers++ // the store closes the word, so there is one
			}
			a.flows[words].add(from, u.thread, u.count)
			a.pairs.of(from.site, u.pair, placeOf(from.thread, u.thread)).add(from, u.count)
			j.window(u, from)
			if from.transfer {
				a.owners.at(u, a, first+uint64(i)).class.produce(from.thread)
			}
		}
		if u.loads {
			o.loaders[i] |= 1 << u.thread
		}
	}
	return events, stayOpen
}

// lineEvents counts events of the line. next becomes what is still unknown.
func (j *joint) lineEvents(u, next *useCount, s *sharedLine, l *line, o *lineOpen, events int) {
	a, bit := j.a, uint64(1)<<u.thread
	had := s != nil && s.had&bit != 0
	next.isFirst = u.isFirst && !had
	switch {
	case u.status == open && s != nil && s.site != 0:
		if next.status = settled; s.writer == u.thread {
			break
		}
		from := s.source(u, o.loaded)
		s.event(from, u.count)
		a.flows[lines].add(from, u.thread, u.count)
		part := a.owners.at(u, a, u.granule*(a.memory.wordMask+1)+uint64(u.first))
		part.events += u.count
		if events > 0 {
			break
		}
		s.falseEvents += u.count
		part.falseEvents += u.count
		next.status, next.from, next.site = closed, from.thread, from.site
		if next.isMiss = u.isFirst && had && s.has&bit == 0; next.isMiss {
			j.tally(u, s, l, from).misses += u.count
		}
	case u.status == closed && events > 0:
		part := a.owners.at(u, a, u.granule*(a.memory.wordMask+1)+uint64(u.first))
		s.falseEvents -= u.count
		part.falseEvents -= u.count
		if u.isMiss {
			j.tally(u, s, l, source{thread: u.from, site: u.site}).misses -= u.count
		}
		next.status = settled
	case u.status == closed && u.isFirst && had:
		next.isMiss = true
		j.tally(u, s, l, source{thread: u.from, site: u.site}).misses += u.count
	}
	if u.loads && u.status == open {
		o.loaded |= 1 << u.thread
	}
}

func (j *joint) tally(u *useCount, s *sharedLine, l *line, from source) *tally {
	return j.a.memory.tally(s, l, from, &reference{thread: u.thread, pair: u.pair, begin: u.begin})
}

// close closes the words that references store to.
func (j *joint) close(u *useCount, o *lineOpen) {
	m := &j.a.memory
	_, page := j.pageAt(u.granule >> (pageShift - m.lineShift))
	first := u.granule * (m.wordMask + 1)
	for i := u.first; i <= u.last; i++ {
		if c, isOpen := j.word(first + uint64(i)); isOpen {
			o.closed[i] = true
			if !c.written() {
				o.known++
				page.known++
			}
		}
	}
}

// at returns the part of a data object that contains a word.
func (o *owners) at(u *useCount, a *Analysis, word uint64) *part {
	_, object := a.sites.Pair(u.pair)
	if uint64(object) >= uint64(len(o.objects)) {
		o.grow(object)
	}
	r := reference{begin: u.begin}
	of := &o.objects[object]
	of.extend(offset(&r, word), offset(&r, word))
	return &of.parts[offset(&r, word)>>of.shift-of.first]
}

// window counts events in their window.
func (j *joint) window(u *useCount, from source) {
	w := &j.a.windows
	if i := uint64(u.window) - w.first; i < uint64(len(w.closed)) {
		place := placeOf(from.thread, u.thread)
		w.closed[i].at(place).add(from, u.count)
		w.counted.add(from, u.thread, u.count)
	}
}
