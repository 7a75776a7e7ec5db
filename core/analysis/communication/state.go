package communication

import (
	"errors"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
)

// stateCoder reads or writes the state of a saved run, in section segc. The order of the fields is
// the order of the code below. Each number is an unsigned LEB128 varint, and each list is encoded
// as its length followed by its elements. A site or object is encoded as its index in the profile
// plus 1, or as 0 if there is none. The same functions encode and decode a field.
type stateCoder struct {
	*codec.Coder
	sites   numbering
	threads int // number of slots in use
	slots   *threads
}

// failUnless records a decoding error unless the condition holds.
func (f *stateCoder) failUnless(possible bool) { f.Check(possible, "a number is out of range") }

func (f *stateCoder) u8(v *uint8) { codec.Below(f.Coder, v, 1<<8) }

// thread reads or writes the slot of a thread.
func (f *stateCoder) thread(v *uint8) { codec.Below(f.Coder, v, uint64(f.threads)) }

// slot reads or writes the slot of a site.
func (f *stateCoder) slot(v *uint32) {
	code := f.sites.Code(*v) + 1
	f.U32(&code)
	if f.Reads() {
		*v = f.sites.Slot(code - 1)
	}
}

// site reads or writes 0, or 1 + the slot of a site.
func (f *stateCoder) site(v *uint32) {
	var code uint32 // 0: none; 1: an unknown site; otherwise 2 + index of the site
	if *v != 0 {
		code = f.sites.Code(*v-1) + 2
	}
	f.U32(&code)
	if !f.Reads() {
		return
	}
	if *v = 0; code != 0 {
		*v = f.sites.Slot(code-2) + 1
	}
}

func (f *stateCoder) object(v *uint32) {
	data := f.sites.Data(*v) + 1
	f.U32(&data)
	if f.Reads() {
		*v = f.sites.Object(data - 1)
	}
}

// pair reads or writes a pair of package sites.
func (f *stateCoder) pair(v *uint32) {
	var slot, object uint32
	if !f.Reads() {
		slot, object = f.sites.Pair(*v)
	}
	f.slot(&slot)
	f.object(&object)
	if f.Reads() {
		*v = f.sites.PairOf(slot, object)
	}
}

func (f *stateCoder) counts(c *counts) { f.U64s(&c.events, &c.transfers) }

func (f *stateCoder) usage(u *usage) {
	f.thread(&u.first)
	f.Flag(&u.several)
	f.u8(&u.producer)
	f.failUnless(int(u.producer) <= f.threads || u.producer == manyProducers)
}

func (f *stateCoder) cell(c *cell) {
	f.U64(&c.references)
	if c.references == 0 {
		return
	}
	f.U64s(&c.used, &c.events)
	f.site(&c.site)
	f.thread(&c.writer)
	f.usage(&c.class)
}

// word reads or writes a cell with the additional fields of words.
func (f *stateCoder) word(c *cell) {
	if f.cell(c); c.references == 0 {
		return
	}
	f.U32(&c.handovers)
	f.u8(&c.stores)
}

// codeList reads or writes a list. The parameter least is the minimum number of bytes in the
// encoding of an element.
func codeList[T any](f *stateCoder, l *[]T, least int, member func(*T)) {
	if f.Reads() {
		*l = nil
	}
	codec.Slice(f.Coder, l, least, member)
}

// flowIndex reads or writes an index in flows.
func (f *stateCoder) flowIndex(v *uint32) {
	f.U32(v)
	f.failUnless(*v/mostThreads < uint32(f.threads) && *v%mostThreads < uint32(f.threads))
}

func (f *stateCoder) placed(c *placed) {
	f.flowIndex(&c.place)
	f.counts(&c.counts)
}

// flows reads or writes the flows that are not zero.
func (f *stateCoder) flows(to *flows) {
	all := to.nonzero()
	codeList(f, (*[]placed)(&all), 3, f.placed)
	if !f.Reads() || len(all) == 0 || f.Failed() {
		return
	}
	*to = make(flows, mostThreads*mostThreads)
	for _, c := range all {
		(*to)[c.place] = c.counts
	}
}

// histogram reads or writes a histogram of depths. All depths must be below the number of lines.
func (f *stateCoder) histogram(h *profile.Histogram, lines uint32) {
	var counted [][2]uint64
	if !f.Reads() {
		for d, n := range h.All() {
			counted = append(counted, [2]uint64{d, n})
		}
	}
	codeList(f, &counted, 2, func(c *[2]uint64) {
		f.U64s(&c[0], &c[1])
		if f.failUnless(c[0] < uint64(lines)); f.Reads() && !f.Failed() {
			h.AddN(c[0], c[1])
		}
	})
}

func (f *stateCoder) owned(o *owned) {
	shift := uint8(o.shift)
	f.u8(&shift)
	f.U64(&o.first)
	codeList(f, &o.parts, 1, f.part)
	codeList(f, &o.counts, 1, func(counts *[]uint64) {
		codeList(f, counts, 1, f.U64)
		f.failUnless(len(*counts) <= len(o.parts))
	})
	o.shift = uint(shift)
	f.failUnless(shift <= 63 && len(o.parts) <= profile.MaxParts && len(o.counts) <= f.threads)
	f.failUnless(len(o.parts) == 0 || shift >= leastPart && o.first+uint64(len(o.parts))-1 <= math.MaxUint64>>(shift&63))
}

func (f *stateCoder) part(p *part) {
	f.U64(&p.firstReference)
	if p.firstReference == 0 {
		return
	}
	f.U64s(&p.readers, &p.writers, &p.events, &p.falseEvents)
	f.usage(&p.class)
}

func (f *stateCoder) sitePair(p *sitePair) {
	f.site(&p.site)
	f.pair(&p.pair)
	f.flowIndex(&p.place)
	f.counts(&p.counts)
}

// formVersion is added to the first number of an encoded state, so that decoding rejects states
// that earlier versions wrote.
const formVersion = 17

// codeAll reads or writes the complete state of an analysis.
func (a *Analysis) codeAll(f *stateCoder) {
	line := uint8(a.lineShift) + formVersion
	f.u8(&line)
	f.failUnless(uint(line) == a.lineShift+formVersion)
	f.U64(&a.done)
	a.threads.codeThreads(f)
	for g := range a.flows {
		f.flows(&a.flows[g])
	}
	codeList(f, &a.pairs.list, 5, f.sitePair)
	f.U64s(&a.windows.size, &a.windows.next)
	codeList(f, &a.windows.closed, 1, func(w *window) { codeList(f, (*[]placed)(w), 3, f.placed) })
	a.owners.codeOwners(f)
	a.memory.codeMemory(f)
	codeList(f, &a.sources.list, 3, func(d *distances) {
		f.flowIndex(&d.place)
		f.histogram(&d.events, a.sources.maxDepth(a.memory.lines.count))
		f.histogram(&d.transfers, a.sources.maxDepth(a.memory.lines.count))
	})
}

func (t *threads) codeThreads(f *stateCoder) {
	codeList(f, &t.numbers, 1, f.U32)
	f.threads, f.slots = len(t.numbers), t
	f.U32(&t.beyond)
	f.failUnless(len(t.numbers) <= mostThreads)
	var others []uint32 // threads that share the last slot, excluding its first thread
	if !f.Reads() {
		others = t.overflowThreads()
	}
	codeList(f, &others, 1, f.U32)
	if !f.Reads() || f.Failed() {
		return
	}
	t.slotOf = map[uint32]uint8{}
	for slot, number := range t.numbers {
		t.slotOf[number] = uint8(slot)
	}
	for _, number := range others {
		t.slotOf[number] = mostThreads - 1
	}
	f.failUnless(len(t.slotOf) == len(t.numbers)+int(t.beyond))
}

// codeOwners reads or writes the data objects that have parts.
func (o *owners) codeOwners(f *stateCoder) {
	var numbers []uint32
	for n := range o.objects {
		if len(o.objects[n].parts) > 0 {
			numbers = append(numbers, uint32(n))
		}
	}
	codeList(f, &numbers, 5, func(n *uint32) {
		f.object(n)
		if f.Failed() {
			return
		}
		if uint64(*n) >= uint64(len(o.objects)) {
			o.grow(*n)
		}
		f.owned(&o.objects[*n])
	})
}

// codeMemory reads or writes the lines. The order of the lines is the order of their indices, so
// that the indices do not change.
func (m *memory) codeMemory(f *stateCoder) {
	n := f.Length(int(m.pages.count), 1)
	pages := m.pageNumbers()
	for i := 0; i < n && !f.Failed(); i++ {
		if f.Reads() {
			pages = append(pages, 0)
		}
		f.U64(&pages[i])
		if _, known := m.pageAt.Find(pages[i]); f.Reads() && (known || f.Failed()) {
			f.failUnless(false)
			return
		}
		if f.Reads() {
			m.pageOf(pages[i])
		}
		f.share(m.pages.first(uint32(i)))
	}
	n = f.Length(int(m.lines.count), 4)
	for i := 0; i < n && !f.Failed(); i++ {
		m.line(f, uint32(i))
	}
}

// pageNumbers returns the number of each page, indexed like memory.pages.
func (m *memory) pageNumbers() []uint64 {
	numbers := make([]uint64, m.pages.count)
	for n := range m.lines.count {
		l := m.lines.first(n)
		numbers[l.page] = l.number >> (pageShift - m.lineShift)
	}
	return numbers
}

func (f *stateCoder) share(s *share) {
	f.cell(&s.cell)
	f.U64(&s.falseEvents)
	f.failUnless(s.falseEvents <= s.events)
}

// lastWriter reads or writes the last writer of a line, but only if several threads share the
// writer's slot.
func (f *stateCoder) lastWriter(s *sharedLine) {
	switch {
	case f.Failed():
	case f.slots.beyond > 0 && s.writer == mostThreads-1:
		f.U32(&s.lastWriter)
		slot, known := f.slots.slotOf[s.lastWriter]
		f.failUnless(known && slot == s.writer)
	case f.Reads():
		s.lastWriter = f.slots.numbers[s.writer]
	}
}

// sharedLine reads or writes a shared line and its tallies.
func (m *memory) sharedLine(f *stateCoder, number uint32) {
	s := m.shares.first(number)
	f.share(&s.share)
	f.U64s(&s.everAccessed, &s.sinceStore)
	f.lastWriter(s)
	f.pair(&s.pair)
	f.U64(&s.begin)
	var tallies []tally
	for n := s.tallies; n != 0 && !f.Reads(); n = m.tallies[n].next {
		tallies = append(tallies, m.tallies[n])
	}
	codeList(f, &tallies, 6, func(t *tally) {
		f.site(&t.site)
		f.pair(&t.pair)
		f.thread(&t.from)
		f.thread(&t.to)
		f.U64s(&t.offset, &t.misses)
		f.failUnless(t.site != 0 && t.misses > 0)
	})
	if !f.Reads() {
		return
	}
	for _, t := range slices.Backward(tallies) {
		t.line = number
		m.addTally(s, t)
	}
}

func (m *memory) line(f *stateCoder, n uint32) {
	var number uint64
	var shared bool
	var owner uint8
	if !f.Reads() {
		l := m.lines.first(n)
		number, owner, shared = l.number, l.owner, l.shared
	}
	f.U64(&number)
	f.thread(&owner)
	f.Flag(&shared)
	if f.Failed() {
		return
	}
	if f.Reads() && !m.restoreLine(number, owner, shared) {
		f.failUnless(false)
		return
	}
	l := m.lines.first(n)
	if l.shared {
		m.sharedLine(f, l.words)
		for i := range m.cells.run(l.words) {
			f.word(&m.cells.run(l.words)[i])
		}
		return
	}
	f.U64(&l.references)
	f.site(&l.site)
	words := m.private.run(l.words)
	for i := range words {
		f.U32(&words[i].references)
		if words[i].references > 0 {
			f.site(&words[i].site)
			f.u8(&words[i].stores)
		}
	}
}

// restoreLine recreates a saved line. restoreLine returns false if the page is unknown or the line
// already exists, because the state is then invalid.
func (m *memory) restoreLine(number uint64, owner uint8, shared bool) bool {
	page, known := m.pageAt.Find(number >> (pageShift - m.lineShift))
	if !known || m.linesOf.run(page)[number%uint64(m.linesOf.length)] != 0 {
		return false
	}
	l := m.lineOf(number, owner)
	if shared && !l.shared {
		m.convertToShared(l)
	}
	return l.shared == shared
}

var errState = errors.New("the saved state of the communication analysis is damaged; analyse the trace again from its start")

// Restore implements [contract.Analysis]. The sites analysis must already have been restored.
func (a *Analysis) Restore(p *profile.Profile) error {
	switch {
	case p.Segment.Communication == nil && a.program == nil:
		return errState
	case p.Segment.Communication == nil:
		if p.Totals.AllReferences() > 0 {
			a.turnOff()
		}
		return nil
	}
	f := stateCoder{Coder: codec.Reader(p.Segment.Communication), sites: a.numbers}
	a.codeAll(&f)
	if f.Failed() || f.More() || !a.rebuildAndCheck() {
		return errState
	}
	return nil
}

// Append implements [contract.Analysis] for a run without communication; see Joins.
func (a *Analysis) Append(next *profile.Profile) error {
	if !a.off && next.Totals.AllReferences() > 0 {
		return errSegment
	}
	return nil
}

var errSegment = errors.New("segments of the trace cannot be joined with communication, because a segment may read values that were written in any earlier segment; analyse the whole trace in one run, or without communication")

// Joins reports whether a segment can be appended, which is possible only after the analysis has
// been turned off.
func (a *Analysis) Joins(*profile.Profile) (now, later bool) { return a.off, a.off || a.program != nil }

// rebuildAndCheck computes the data that the state does not contain, and reports whether the state is
// consistent.
func (a *Analysis) rebuildAndCheck() bool {
	w := &a.windows
	if w.size < leastWindow || w.size&(w.size-1) != 0 {
		return false
	}
	w.open = a.done > 0
	for i := range a.pairs.list {
		p := &a.pairs.list[i]
		if p.site == 0 {
			return false
		}
		a.pairs.placed.Add(a.pairs.key(p.site, p.pair, p.place), uint32(i))
	}
	for _, closed := range w.closed {
		w.count(closed)
	}
	a.sources.at = map[uint32]uint32{}
	for i := range a.sources.list {
		a.sources.at[a.sources.list[i].place] = uint32(i)
	}
	windows := uint64(len(w.closed))
	return windows < profile.MaxFlowWindows &&
		(!w.open && w.next == 0 || w.next%w.size == 0 && w.next/w.size == windows+1 && w.next >= a.done && w.next-w.size <= a.done)
}
