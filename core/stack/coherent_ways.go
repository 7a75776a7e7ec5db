package stack

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// ways contains the per-set stacks of a [Coherent]. For each counted number of sets, each set has a
// list of its topmost entries. An entry is the id of a line, or a hole. An entry that falls off the
// end of a list returns only if its line is accessed, so the lists need no more entries.
//
// A line that is on top of its set for some number of sets is also on top for all larger numbers of
// sets. An access changes nothing in these sets, so the loop over the numbers of sets ends at the
// first such number. A line that is lost while it is on top keeps its entry. This entry counts as a
// hole, because the next access to the set fills its position anyway. The loop for a lost line, or
// for a line that returns to its hole, therefore also ends at the first number of sets for which
// the line is on top. To avoid futile searches, the field "absent" records the largest number of
// sets for which a line is in no list.
type ways struct {
	numbers SetNumbers     // the numbers of sets that are counted
	after   [SetCounts]int // for each a, the binary logarithm of the next counted number of sets above 2^a; SetCounts if there is none
	most    int            // binary logarithm of the largest number of sets; 0 if there are no lists
	lists   [SetCounts]wayLists
	absent  []uint8 // for each id, the binary logarithm of the largest number of sets whose lists do not contain the line
	// for each id, whether the entry counts as a hole, because the line is lost or the id does not
	// identify a line
	isHole   []bool
	lostAt   []uint32                       // for each id, up to the highest id of a lost line, the depth at which the line was lost
	depths   [SetCounts][listEntries]uint64 // number of accesses that found and moved the line in a list, by depth, starting with depth 1
	notFound [SetCounts]uint64              // number of accesses that did not find the line, by the value of the field "absent"
}

// wayLists contains the lists for one number of sets. The lists are stored in pages, so that memory
// grows with the number of sets in use.
type wayLists []*wayPage

// wayPage stores the topmost entries of neighbouring sets together, because many accesses read no
// other entries. The entries below the topmost entry are in a ring buffer that starts at the index
// "head", so a single store pushes all of these entries down. A 0 marks the end of a list that is
// not full. All rings of a page are short until one ring is full.
type wayPage struct {
	sets  [pageSets]waySet
	rings []uint32 // rings of all sets of the page; nil if no set has two entries
	mask  uint8    // number of entries in a ring, minus 1
}

type waySet struct {
	first uint32 // the topmost entry of the set
	head  uint8  // the second entry's index in the ring
	holes uint8  // number of holes in the ring
}

// The ids noID and holeID do not identify lines.
const (
	noID = iota // the list has no such entry
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
	w.absent, w.isHole = make([]uint8, firstID), []bool{noID: true, holeID: true}
}

// newID returns the id of a new line.
func (w *ways) newID() uint32 {
	w.absent, w.isHole = append(w.absent, 0), append(w.isHole, false)
	return uint32(len(w.absent) - 1)
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

// onTop reports whether a line is on top of its set, among 2^a sets. If a is SetCounts, onTop
// returns true.
func (w *ways) onTop(a int, line trace.Line, id uint32) bool {
	if a == SetCounts {
		return true
	}
	p, set := w.page(a, line)
	return p.sets[set].first == id
}

// ring returns the ring buffer of a set, which contains the entries below the topmost entry of the
// set. Its length is a power of two.
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
	gone := int(w.absent[id])
	w.notFound[gone]++
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
		case w.isHole[first]:
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

// push places a line on top of its lists for up to 2^most sets. These lists must not contain the
// line, except as a hole at the top. In each list, push fills the topmost hole. If a list has no
// hole, its last entry falls off the end.
func (w *ways) push(line trace.Line, id uint32, most int) {
	w.absent[id] = 0
	for a := w.after[0]; a <= most; a = w.after[a] {
		p, set := w.page(a, line)
		s := &p.sets[set]
		first := s.first
		if first == id {
			return
		}
		s.first = id
		switch {
		case w.isHole[first]:
		case s.holes == 0:
			w.absent[p.push(set, first)] = uint8(a)
		default:
			s.holes--
			fillHole(p.ring(set), s.head, first, holeID)
		}
	}
}

// push stores an entry at the front of a ring. It returns the entry that falls off the end, or 0.
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

// moveDown moves the topmost entry, and the ring's entries above a line, down by one position. The
// lowest of the moved entries takes the line's position. moveDown returns the line's depth.
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

// fillHole moves entries down by one until the topmost hole or the line's position is filled. If
// the line was below this hole, the line's position becomes a hole. Since no entry moves past a
// hole, no entry falls off the end.
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

// addCounts adds the numbers of accesses by depth to t. The result contains, for each number of
// sets, the number of accesses that did not find the line, or found it at depth MaxWays.
func (w *ways) addCounts(t *SetDepths) (deeper [SetCounts]uint64) {
	late := uint64(0)
	for a := setBits; a > 0; a-- {
		late += w.notFound[a]
		deeper[a] = late + w.depths[a][MaxWays]
		for d, n := range w.depths[a][:MaxWays] {
			t[a][d] += n
		}
	}
	return deeper
}

// leaveArray processes a line that leaves the array: in each list, it moves the line below the
// lines that entered the array later. For each number of sets, a lane of the parameter "above"
// contains how many of these later lines are in the line's set.
func (w *ways) leaveArray(line trace.Line, id uint32, above uint64) {
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

// lose replaces a line by a hole in each of its lists, and records the depth at which the line was
// lost.
func (w *ways) lose(line trace.Line, id, depth uint32) {
	for a := w.after[w.absent[id]]; a < SetCounts; a = w.after[a] {
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
	w.recordLoss(id, depth)
}

// recordLoss records the depth at which a line was lost.
func (w *ways) recordLoss(id, depth uint32) {
	w.isHole[id] = true
	if n := int(id) + 1 - len(w.lostAt); n > 0 {
		w.lostAt = append(w.lostAt, make([]uint32, n)...)
	}
	w.lostAt[id] = depth
}
