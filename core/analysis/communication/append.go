package communication

import (
	"errors"
	"math/bits"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// How a segment is appended (MODELS §9). What was pending in it is taken in order, to
// find what its references used: a granule that was open in the segment has the value
// of before, until the segment closes it. What that adds to events, and takes from
// false ones, is counted; what still nobody has written stays pending. Then everything
// else adds up.

// ErrManyThreads tells that threads are not told apart in all segments.
var ErrManyThreads = errors.New("the segments have more than 64 threads together, and which of these are taken for one depends on the whole trace; " +
	"select threads, or analyze the whole trace at once")

// errOff tells that what comes first was analysed, and what follows was not.
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

// Joins tells whether a segment can be appended now, or perhaps later, without a loss:
// it does not have the distances of sources.
func (a *Analysis) Joins([]uint32) (now, later bool) { return a.off, a.off || a.program != nil }

// join gives threads that appear slots behind the others, and tells which those of the
// next segment have.
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

// joint is a segment that is being appended.
type joint struct {
	a     *Analysis
	lines map[trace.Line]*lineOpen
	pages map[uint64]*pageOpen
}

// lineOpen is what of a line of the segment is still open, where the taking of what is
// pending has come to.
type lineOpen struct {
	closed  []bool   // words
	loaders []uint64 // of words: threads that have loaded them while they were open
	loaded  uint64   // the same of the line
	known   uint16   // words that are closed, be it from before
}

// pageOpen is the same of a page.
type pageOpen struct {
	loaded uint64
	known  uint16
}

// lineAt gives a line and what is open of it. There may be none from before.
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

// written reports whether there was a value before.
func (c *cell) written() bool { return c != nil && c.site != 0 }

// isFrom reports whether a thread uses the value that another one wrote before.
func (c *cell) isFrom(thread uint8) bool { return c.written() && c.writer != thread }

// source is the one of references of a thread to a granule that was written before,
// where some have loaded it since.
func (c *cell) source(u *useCount, loaded uint64) source {
	bit := uint64(1) << u.thread
	return source{event: true, transfer: u.loads && (c.used|loaded)&bit == 0, thread: c.writer, site: c.site}
}

// addN adds as many events, of which the first one may be a transfer.
func (c *counts) addN(from source, n uint64) {
	c.events += n
	if from.transfer {
		c.transfers++
	}
}

func (f *flows) addN(from source, to uint8, n uint64) {
	if *f == nil {
		*f = make(flows, mostThreads*mostThreads)
	}
	(*f)[placeOf(from.thread, to)].addN(from, n)
}

func placeOf(from, to uint8) uint32 {
	return uint32(from%mostThreads)*mostThreads + uint32(to%mostThreads)
}

// event counts events of a granule.
func (c *cell) event(from source, n uint64) {
	c.events += n
	if from.transfer {
		c.class.produce(from.thread)
	}
}

// page takes references to a page.
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
		j.a.flows[pages].addN(from, u.thread, u.count)
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

// word gives the word of before, where it is open in the segment, or nil. It tells
// whether it is.
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

// line takes references to words of a line.
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

// words counts the events of open words. It gives how many of them each reference has,
// and whether words stay open.
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
			a.flows[words].addN(from, u.thread, u.count)
			a.pairs.of(from.site, u.pair, placeOf(from.thread, u.thread)).addN(from, u.count)
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

// lineEvents counts events of the line, of which there was something before or not.
// next becomes what of it is to be told yet.
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
		a.flows[lines].addN(from, u.thread, u.count)
		part := a.owners.at(u, a, u.granule*(a.memory.wordMask+1)+uint64(u.first))
		part.events += u.count
		if events > 0 {
			break
		}
		s.falseEvents += u.count
		part.falseEvents += u.count
		next.status, next.from, next.site = closed, from.thread, from.site
		if next.isMiss = u.isFirst && had && s.has&bit == 0; next.isMiss {
			j.misses(u, s, l, from).misses += u.count
		}
	case u.status == closed && events > 0:
		part := a.owners.at(u, a, u.granule*(a.memory.wordMask+1)+uint64(u.first))
		s.falseEvents -= u.count
		part.falseEvents -= u.count
		if u.isMiss {
			j.misses(u, s, l, source{thread: u.from, site: u.site}).misses -= u.count
		}
		next.status = settled
	case u.status == closed && u.isFirst && had:
		next.isMiss = true
		j.misses(u, s, l, source{thread: u.from, site: u.site}).misses += u.count
	}
	if u.loads && u.status == open {
		o.loaded |= 1 << u.thread
	}
}

// misses gives what counts the false misses of references to a line.
func (j *joint) misses(u *useCount, s *sharedLine, l *line, from source) *tally {
	m := &j.a.memory
	return m.tallyOf(s, tally{
		tallyKey: tallyKey{line: l.words, site: from.site, pair: u.pair, from: from.thread, to: u.thread,
			offset: max(l.number<<m.lineShift, u.begin) - u.begin},
	})
}

// close closes words that references store to.
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

// at gives the part of a data object that a word lies in.
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

// window counts events in the window that they are in.
func (j *joint) window(u *useCount, from source) {
	w := &j.a.windows
	if i := uint64(u.window) - w.first; i < uint64(len(w.closed)) {
		place := placeOf(from.thread, u.thread)
		w.closed[i].at(place).addN(from, u.count)
		w.counted.addN(from, u.thread, u.count)
	}
}
