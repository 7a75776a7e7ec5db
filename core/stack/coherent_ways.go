package stack

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// ways are the stacks of sets of a [Coherent]: for each counted number of sets, each set has a list
// of its topmost entries, which are ids of lines, and holes. Entries that fall off the end never
// come back by themselves, so deeper entries do not matter.
//
// A line that is on top with some number of sets is on top with more, and coming there again
// changes nothing: walks end there. A line that is lost on top stays: the entry counts as a hole if
// its line is empty, because the next access takes its place anyway. So the walks of a lost line,
// and of one that comes back to its own hole, end there, too. gone records the most sets with which
// a line is in no list, to avoid futile searches.
type ways struct {
	numbers SetNumbers     // of sets, which are counted
	after   [SetCounts]int // the next number, 2^after[a], above 2^a; or SetCounts
	most    int            // the most sets are 2^most; 0: there are no lists
	lists   [SetCounts]wayLists
	gone    []uint8                        // by id: the most sets, 2^a, in whose lists it is not
	empty   []bool                         // by id: the line was lost, or is none
	lostAt  []uint32                       // by id, as far as lines were lost: how deep it was
	depths  [SetCounts][listEntries]uint64 // of lines that were found and moved, from 1 on
	late    [SetCounts]uint64              // lines that were not found, by gone
}

// wayLists are the lists of one number of sets, in pages, so that memory grows with the sets in
// use.
type wayLists []*wayPage

// wayPage keeps the topmost entries of neighbouring sets together, because many walks see no
// others. The entries below are in rings, from head on and around; 0 ends a short list. So pushing
// all others down is one store. Rings are short until one of the page's is full.
type wayPage struct {
	sets  [pageSets]waySet
	rings []uint32 // of all sets; nil where none has two entries
	mask  uint8    // entries of a ring - 1
}

type waySet struct {
	first uint32 // the topmost entry
	head  uint8  // where in the ring the next one is
	holes uint8  // entries of the ring that are holes
}

// Ids that are not of lines.
const (
	noID   = iota // there is no entry
	holeID        // a hole
	firstID
)

const (
	pageSets    = 16
	shortRing   = 4
	listEntries = 1 + MaxWays
)

func (w *ways) reset(numbers SetNumbers) {
	w.numbers = numbers | 1
	next := SetCounts
	for a := setBits; a >= 0; a-- {
		if w.after[a] = next; a > 0 && numbers>>a&1 != 0 {
			w.lists[a] = make(wayLists, (1<<a+pageSets-1)/pageSets)
			next, w.most = a, max(w.most, a)
		}
	}
	w.gone, w.empty = make([]uint8, firstID), []bool{noID: true, holeID: true}
}

// newID returns the id of a new line.
func (w *ways) newID() uint32 {
	w.gone, w.empty = append(w.gone, 0), append(w.empty, false)
	return uint32(len(w.gone) - 1)
}

// page returns the page of a line's set among 2^a sets, and the set's number there.
func (w *ways) page(a int, line trace.Line) (p *wayPage, set int) {
	number := int(line) & (1<<a - 1)
	p = w.lists[a][number/pageSets]
	if p == nil {
		p = new(wayPage)
		w.lists[a][number/pageSets] = p
	}
	return p, number % pageSets
}

// onTop reports whether a line is on top of its set, as it is with more sets than are counted.
func (w *ways) onTop(a int, line trace.Line, id uint32) bool {
	if a == SetCounts {
		return true
	}
	p, set := w.page(a, line)
	return p.sets[set].first == id
}

// ring returns the entries below the topmost one of a set: a power of two.
func (p *wayPage) ring(set int) []uint32 {
	entries := int(p.mask) + 1
	return p.rings[set*entries:][:entries]
}

func (p *wayPage) lengthen() {
	before, entries := *p, shortRing
	if p.rings != nil {
		entries = MaxWays
	}
	p.rings, p.mask = make([]uint32, pageSets*entries), uint8(entries-1)
	if before.rings == nil {
		return
	}
	for set := range p.sets {
		ring, head := before.ring(set), int(before.sets[set].head)
		copy(p.ring(set), ring[head:])
		copy(p.ring(set)[len(ring)-head:], ring[:head])
		p.sets[set].head = 0
	}
}

// move moves a line to the top of its lists and counts its depth.
func (w *ways) move(line trace.Line, id uint32) {
	gone := int(w.gone[id])
	w.late[gone]++
	w.push(line, id, gone)
	for a := w.after[gone]; a < SetCounts; a = w.after[a] {
		p, set := w.page(a, line)
		s := &p.sets[set]
		first := s.first
		if first == id {
			break
		}
		s.first = id
		d := 0
		switch {
		case w.empty[first]:
			s.holes++
			d = fillHole(p.ring(set), s.head, holeID, id)
		case s.holes == 0:
			d = moveDown(p.ring(set), s.head, first, id)
		default:
			d = fillHole(p.ring(set), s.head, first, id)
		}
		w.depths[a][d%listEntries]++
	}
}

// push puts a line on top of its lists of up to 2^most sets, where it is not, or on
// top as a hole. It fills the topmost hole of a set or pushes its last entry out.
func (w *ways) push(line trace.Line, id uint32, most int) {
	w.gone[id] = 0
	for a := w.after[0]; a <= most; a = w.after[a] {
		p, set := w.page(a, line)
		s := &p.sets[set]
		first := s.first
		if first == id {
			return
		}
		s.first = id
		switch {
		case w.empty[first]:
		case s.holes == 0:
			w.gone[p.push(set, first)] = uint8(a)
		default:
			s.holes--
			fillHole(p.ring(set), s.head, first, holeID)
		}
	}
}

// push puts an entry in front of a ring and returns the one that falls off, or 0.
func (p *wayPage) push(set int, entry uint32) (last uint32) {
	if p.rings == nil {
		p.lengthen()
	}
	s := &p.sets[set]
	if p.mask < MaxWays-1 && p.ring(set)[(s.head-1)&p.mask] != 0 {
		p.lengthen()
	}
	s.head = (s.head - 1) & p.mask
	place := &p.ring(set)[s.head]
	last, *place = *place, entry
	return last
}

// moveDown moves a topmost entry and those of its ring down to the place of a line, and returns
// its depth.
func moveDown(ring []uint32, head uint8, entry, id uint32) int {
	for d := range len(ring) {
		place := &ring[(int(head)+d)&(len(ring)-1)]
		here := *place
		*place = entry
		if here == id {
			return d + 1
		}
		entry = here
	}
	return 0
}

// fillHole moves entries down to the topmost hole, if the line is below that; its place becomes a
// hole. Nothing moves past a hole, so none falls off the end.
func fillHole(ring []uint32, head uint8, entry, id uint32) int {
	d := 0
	for entry != holeID {
		place := &ring[(int(head)+d)&(len(ring)-1)]
		if d++; *place == id {
			*place = entry
			return d
		}
		entry, *place = *place, entry
	}
	for ; d < len(ring); d++ {
		if place := &ring[(int(head)+d)&(len(ring)-1)]; *place == id {
			*place = holeID
			return d + 1
		}
	}
	return 0
}

// count adds the counts to a table, and returns the numbers of lines that were not found, or at
// MaxWays.
func (w *ways) count(t *SetDepths) (deeper [SetCounts]uint64) {
	late := uint64(0)
	for a := setBits; a > 0; a-- {
		late += w.late[a]
		deeper[a] = late + w.depths[a][MaxWays]
		for d, n := range w.depths[a][:MaxWays] {
			t[a][d] += n
		}
	}
	return deeper
}

// fall moves a line below the lines that entered the array after it; lanes contain their number in
// its set.
func (w *ways) fall(line trace.Line, id uint32, above uint64) {
	for a := w.after[0]; a < SetCounts; a = w.after[a] {
		n := int(above >> ((a - 1) * laneBits) & laneMask)
		if n == 0 {
			return
		}
		p, set := w.page(a, line)
		s, ring := &p.sets[set], p.ring(set)
		next := &ring[int(s.head)&(len(ring)-1)]
		if s.first == id {
			s.first, *next = *next, id
		}
		for i := 1; i < n; i++ {
			place := next
			next = &ring[(int(s.head)+i)&(len(ring)-1)]
			if *place == id {
				*place, *next = *next, id
			}
		}
	}
}

// lose replaces a line by holes, and records its depth.
func (w *ways) lose(line trace.Line, id, depth uint32) {
	for a := w.after[w.gone[id]]; a < SetCounts; a = w.after[a] {
		p, set := w.page(a, line)
		s := &p.sets[set]
		if s.first == id {
			break
		}
		ring := p.ring(set)
		if i := slices.Index(ring, id); i >= 0 {
			ring[i] = holeID
			s.holes++
		}
	}
	w.note(id, depth)
}

// note records the depth at which a line was lost.
func (w *ways) note(id, depth uint32) {
	w.empty[id] = true
	if n := int(id) + 1 - len(w.lostAt); n > 0 {
		w.lostAt = append(w.lostAt, make([]uint32, n)...)
	}
	w.lostAt[id] = depth
}
