package stack

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// ways contains the per-set stacks of a [Coherent]. For each counted number of sets, each set has a
// list of its topmost entries. An entry is the id of a line, or a hole. An entry that falls off the
// end returns only if its line is accessed, so deeper entries do not matter.
//
// A line that is on top of its set for some number of sets is also on top for all larger numbers of
// sets. Moving the line to the top changes nothing in these sets, so a walk over the numbers of
// sets ends at the first such number. A line that is lost while it is on top keeps its entry. The
// entry of a lost line counts as a hole, because the next access fills its position anyway. The
// walk for a lost line, or for a line that returns to its hole, therefore ends at the same number.
// gone records the largest number of sets for which a line is in no list, to avoid futile searches.
type ways struct {
	numbers SetNumbers     // the numbers of sets that are counted
	after   [SetCounts]int // 2^after[a] is the next counted number above 2^a; after[a] is SetCounts if there is none
	most    int            // 2^most is the largest number of sets; 0 if there are no lists
	lists   [SetCounts]wayLists
	gone    []uint8 // by id: a, where 2^a is the largest number of sets whose lists lack the line
	// by id: whether the line is lost or the id does not identify a line
	empty  []bool
	lostAt []uint32                       // by id, up to the highest id that was lost: the depth at which the line was lost
	depths [SetCounts][listEntries]uint64 // number of accesses to lines that were found and moved, by depth from 1 on
	late   [SetCounts]uint64              // number of accesses to lines that were not found, by the value of gone
}

// wayLists contains the lists for one number of sets. The lists are stored in pages, so that memory
// grows with the number of sets in use.
type wayLists []*wayPage

// wayPage keeps the topmost entries of neighbouring sets together, because many walks read no other
// entries. The entries below the topmost entry are in rings that start at head, so a single store
// pushes all of these entries down. A 0 ends a short list. All rings of a page are short until one
// of them is full.
type wayPage struct {
	sets  [pageSets]waySet
	rings []uint32 // rings of all sets of the page; nil if no set has two entries
	mask  uint8    // number of entries in a ring - 1
}

type waySet struct {
	first uint32 // the topmost entry
	head  uint8  // index in the ring of the second entry
	holes uint8  // number of holes in the ring
}

// These ids do not identify lines.
const (
	noID = iota // there is no entry
	holeID
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

// page returns the page that contains a line's set among 2^a sets, and the set's index in the page.
func (w *ways) page(a int, line trace.Line) (p *wayPage, set int) {
	number := int(line) & (1<<a - 1)
	p = w.lists[a][number/pageSets]
	if p == nil {
		p = new(wayPage)
		w.lists[a][number/pageSets] = p
	}
	return p, number % pageSets
}

// onTop reports whether a line is on top of its set. It returns true if a is SetCounts.
func (w *ways) onTop(a int, line trace.Line, id uint32) bool {
	if a == SetCounts {
		return true
	}
	p, set := w.page(a, line)
	return p.sets[set].first == id
}

// ring returns the entries of a set below its topmost entry. The number of entries is a power of
// two.
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

// push puts a line on top of its lists for up to 2^most sets. The line must be absent from these
// lists, or be a hole at the top. In each list, push fills the topmost hole or, if there is none,
// pushes out the last entry.
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

// push puts an entry at the front of a ring. It returns the entry that falls off the end, or 0.
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

// moveDown moves the topmost entry, and the entries of the ring above a line, down by one, so that
// they fill the position of that line. It returns the line's depth.
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

// fillHole moves entries down to fill the topmost hole if the line is below this hole. The line's
// position then becomes a hole. No entry moves past a hole, so no entry falls off the end.
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

// count adds the counts to t. For each number of sets, it returns the number of accesses to lines
// that were not found, or were found at depth MaxWays.
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

// fall moves a line that fell off the array below the lines that entered the array later. above
// contains the number of these lines in the line's set, in one lane for each number of sets.
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

// lose replaces a line by a hole in each list, and records the line's depth.
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
