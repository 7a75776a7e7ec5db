package communication

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// pending are the references of a segment whose sources depend on what was before it
// (MODELS §9): those to open granules, which nothing in the segment has stored to yet. Equal
// ones are counted together, in the order of the first of each. With the stores among them,
// which close granules, they determine which granules of a reference were open.
//
// What a reference needs of the segment itself is recorded with it: who closed the line while
// words are open, which decides whether the event is false; and whether it is the thread's first
// one to the line, because the thread may have had the line before the segment.
//
// An open granule has no writer; its used set has the threads that loaded it instead.
type pending struct {
	list []useCount
	at   map[use]uint32 // indices in list

	// How many words of lines and of pages are closed, by number of share and page.
	closedOf [2][]uint16
}

type useCount struct {
	use
	count uint64
}

// use is a reference to words of a line or of a page.
type use struct {
	granule       uint64 // the line's or page's number
	first, last   uint16 // words in it
	status        status
	isPage        bool
	loads, stores bool
	thread        uint8
	from          uint8      // status closed: who wrote the line,
	site          uint32     // and 1 + the slot of the store
	pair          uint32     // of a line
	begin         trace.Addr // of the block
	window        uint32
	closed        uint16 // words of the granule that are closed
	isFirst       bool   // of the thread to the line, and that matters
	isMiss        bool   // status closed: the thread lost the line
}

// status says what is still unknown about a reference to a line or a page.
type status uint8

const (
	settled status = iota // nothing: it is no event, or not a false one
	closed                // it is an event, and false unless an open word is one
	open                  // whether it is an event
)

// Closed words are counted of lines and of pages.
const (
	ofLines = iota
	ofPages
)

func (p *pending) closedIn(which int, number uint32) *uint16 {
	of := &p.closedOf[which]
	for uint64(len(*of)) <= uint64(number) {
		*of = append(*of, 0)
	}
	return &(*of)[number]
}

func (p *pending) add(u use, count uint64) {
	if p.at == nil {
		p.at = map[use]uint32{}
	}
	n, known := p.at[u]
	if !known {
		n = uint32(len(p.list))
		p.at[u] = n
		p.list = append(p.list, useCount{use: u})
	}
	p.list[n].count += count
}

// coarsen doubles the windows.
func (p *pending) coarsen() {
	list := p.list
	p.list, p.at = nil, nil
	for _, u := range list {
		u.window /= 2
		p.add(u.use, u.count)
	}
}

// pend keeps what the next reference, to the bytes from first to last, will need.
func (a *Analysis) pend(first, last trace.Addr) {
	for ; ; first = (first>>pageShift + 1) << pageShift {
		end := min(last, first|(1<<pageShift-1))
		a.pendPage(first>>wordShift, end>>wordShift)
		if end == last {
			return
		}
	}
}

func (a *Analysis) pendPage(first, last uint64) {
	r, m := &a.at, &a.memory
	wordsOfLine := m.wordMask + 1
	anyOpen, anyEvent := false, false
	var page uint32
	for w := first; w <= last; {
		l := m.lineOf(w>>(m.lineShift-wordShift), r.thread)
		page = l.page
		cells := m.cells.run(l.words)
		for end := min(last, w|m.wordMask); w <= end; w++ {
			c := &cells[w&m.wordMask]
			anyOpen = anyOpen || c.site == 0
			anyEvent = anyEvent || c.site != 0 && c.writer != r.thread
		}
	}
	p := m.pages.at(page)
	u := use{
		isPage: true, granule: first >> (pageShift - wordShift), first: uint16(first & (pageWords - 1)), last: uint16(last & (pageWords - 1)),
		loads: r.loads, stores: r.stores, thread: r.thread, closed: *a.pending.closedIn(ofPages, page),
	}
	switch {
	case p.site == 0:
		u.status = open
		p.load(r)
	case p.writer != r.thread && anyOpen && !anyEvent:
		u.status = closed
	}
	if u.status != settled {
		a.pending.add(u, 1)
	}
	for w := first; w <= last; w = (w/wordsOfLine + 1) * wordsOfLine {
		a.pendLine(page, w, min(last, w|m.wordMask))
	}
}

const pageWords = profile.PageBytes / profile.WordBytes

func (a *Analysis) pendLine(page uint32, first, last uint64) {
	r, m := &a.at, &a.memory
	l := m.lineOf(first>>(m.lineShift-wordShift), r.thread)
	s, cells := m.shares.at(l.words), m.cells.run(l.words)
	closedHere := a.pending.closedIn(ofLines, l.words)
	u := use{
		granule: l.number, first: uint16(first & m.wordMask), last: uint16(last & m.wordMask),
		loads: r.loads, stores: r.stores, thread: r.thread, pair: r.pair, begin: r.begin, window: a.windows.now(), closed: *closedHere,
	}
	anyEvent, opened := false, uint16(0)
	for w := first; w <= last; w++ {
		c := &cells[w&m.wordMask]
		if c.site == 0 {
			opened++
			c.load(r)
		}
		anyEvent = anyEvent || c.site != 0 && c.writer != r.thread
	}
	isFirst := s.had&r.bit == 0
	switch {
	case s.site == 0:
		u.status, u.isFirst = open, isFirst
		s.load(r)
	case s.writer != r.thread && !anyEvent:
		u.status, u.from, u.site = closed, s.writer, s.site
		u.isFirst, u.isMiss = isFirst, s.had&^s.has&r.bit != 0
	}
	if opened > 0 || u.status == closed && isFirst {
		a.pending.add(u, 1)
	}
	if r.stores {
		*closedHere += opened
		*a.pending.closedIn(ofPages, page) += opened
	}
}

// load records that a thread loads an open granule.
func (c *cell) load(r *reference) {
	if r.loads {
		c.used |= r.bit
	}
}

// follows rebuilds what follows from the list, and reports whether it is consistent.
func (p *pending) follows(m *memory) bool {
	p.at = make(map[use]uint32, len(p.list))
	for i := range p.list {
		u := &p.list[i]
		wordsOf, known := m.wordMask, m.find(u.granule) != nil
		if u.isPage {
			wordsOf = pageWords - 1
			_, known = m.pageAt.Find(u.granule)
		}
		_, twice := p.at[u.use]
		if !known || twice || u.first > u.last || uint64(u.last) > wordsOf || u.count == 0 || u.status > open || u.status == closed && !u.isPage && u.site == 0 {
			return false
		}
		p.at[u.use] = uint32(i)
	}
	p.countClosed(m)
	return true
}

// countClosed counts the closed words of lines and pages.
func (p *pending) countClosed(m *memory) {
	p.closedOf = [2][]uint16{}
	for n := range m.lines.count {
		l := m.lines.at(n)
		if !l.shared {
			continue
		}
		for _, c := range m.cells.run(l.words) {
			if c.site != 0 {
				*p.closedIn(ofLines, l.words)++
				*p.closedIn(ofPages, l.page)++
			}
		}
	}
}

func (m *memory) find(number trace.Line) *line {
	page, known := m.pageAt.Find(number >> (pageShift - m.lineShift))
	if !known {
		return nil
	}
	n := m.linesOf.run(page)[number%uint64(m.linesOf.length)]
	if n == 0 {
		return nil
	}
	return m.lines.at(n - 1)
}
