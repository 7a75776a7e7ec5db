package stack

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// NoteHoles makes the model record the data that [Coherent.Filled] returns.
func (m *Coherent) NoteHoles() { m.noting = true }

// Filled returns a bit mask for each Cold or Lost access since the last call. Bit a is set if the
// access filled a hole in the stacks of 2^a sets. If any bit is set, the bits for all numbers of
// sets that the model does not count are also set. The result is valid until the next access.
func (m *Coherent) Filled() []uint32 {
	filled := m.filled
	m.filled = m.filled[:0]
	return filled
}

// fillableHoles returns a mask of the numbers of sets for which an access to a line would fill a
// hole.
func (m *Coherent) fillableHoles(line trace.Line) (mask uint32) {
	if _, found := m.holes.newest(); found {
		mask = 1
	}
	for a := m.ways.after[0]; a < SetCounts; a = m.ways.after[a] {
		p, set := m.ways.page(a, line)
		if s := &p.sets[set]; s.holes > 0 || s.first != noID && m.ways.isHole[s.first] {
			mask |= 1 << a
		}
	}
	return m.ways.numbers.withUncounted(mask)
}

// withUncounted completes a mask of the numbers of sets for which an access filled a hole. If the
// mask is not zero, withUncounted sets the bits of all numbers of sets that n does not contain.
func (n SetNumbers) withUncounted(mask uint32) uint32 {
	if mask != 0 {
		mask |= uint32(AllSetNumbers &^ n)
	}
	return mask
}

// Below represents the stack that a core had before a segment of the trace. A Below is needed to
// append a segment (MODELS §9) that was analysed with an empty [Coherent]. The joined stack
// consists of the segment's stack and, below it, the earlier entries that the segment did not
// remove. Three kinds of events in the segment affect the earlier entries. The caller reports these
// events in order:
//
//   - [Below.Touch]: the segment's first access to a line, which removes the line from the stack
//     below.
//   - [Below.Again]: an access to a line that was lost in the segment.
//   - [Below.Lose]: another core's store to a line that the segment has not yet touched.
//
// If the access filled a hole of the segment's stack, the other entries of the stack below do not
// move. Otherwise, Touch and Again move the entries above the line down by one, and fill the
// topmost hole of the stack below. Segments record, for each number of sets, whether an access
// filled a hole of the segment's stack. The depth of an entry in the stack below is the number of
// entries above it, including the entries that the segment has added so far.
type Below struct {
	numbers SetNumbers
	above   uint32 // number of entries in the segment's stack
	stamps  stamps // stamps of the entries in the stack below; the topmost entry has the last stamp
	holes   holes
	// lines that the segment has touched have the stamp "onTop"; lost lines have the stamp "fresh",
	// as in Coherent
	table  table
	sets   [SetCounts]belowSets
	depths SetDepths
}

type belowSet struct {
	// entries from the top, with noLine for holes; there are at most as many entries as in a list
	// of a Coherent
	entries []trace.Line
	above   uint32
	room    uint8
	mask    uint64 // the depths of holes, from the state that NewBelow reads
}

// NewBelow creates a Below from the state of a model that counts the same numbers of sets.
func NewBelow(numbers SetNumbers, state []byte) (*Below, error) {
	s, err := readState(state)
	if err != nil {
		return nil, err
	}
	r := &Below{numbers: numbers | 1}
	n := uint32(len(s.entries))
	r.stamps.reset(max(n, blockStamps), n)
	for _, l := range s.lost {
		e, _ := r.table.findOrAdd(l.line)
		e.moved = l.depth + 1
	}
	lines := make([]trace.Line, 0, len(s.entries))
	for i, line := range s.entries {
		stamp := n - 1 - uint32(i)
		if line == noLine {
			r.holes.add(stamp)
			continue
		}
		e, _ := r.table.findOrAdd(line)
		if e.stamp != fresh || e.moved != 0 {
			return nil, errState // the state contains the line twice, or lists it among the lost lines
		}
		e.stamp = stamp
		lines = append(lines, line)
	}
	for a := setBits; a > 0; a-- {
		if numbers>>a&1 == 0 {
			continue
		}
		var ok bool
		if r.sets[a], lines, ok = setsOf(a, lines, s.holes[a]); !ok {
			return nil, errState
		}
	}
	return r, nil
}

// belowSets contains the stacks of all sets, for one number of sets. The stacks of neighbouring
// sets are in one page, as in Coherent.
type belowSets []*[pageSets]belowSet

// set returns the stack of a line's set, and creates it if necessary.
func (l belowSets) set(line trace.Line) *belowSet {
	number := int(line) & (len(l)*pageSets - 1)
	p := &l[number/pageSets]
	if *p == nil {
		*p = new([pageSets]belowSet)
	}
	return &(*p)[number%pageSets]
}

// all calls the function "each" for every existing set, with the number of the set and the set
// itself.
func (l belowSets) all(each func(number uint64, s *belowSet)) {
	for i, p := range l {
		for k := 0; p != nil && k < pageSets; k++ {
			each(uint64(i*pageSets+k), &p[k])
		}
	}
}

// setsOf creates the stacks of 2^a sets from lines in stack order. The result "listed", which
// overwrites lines, contains the lines that fit into these stacks.
func setsOf(a int, lines []trace.Line, holes []setMask) (sets belowSets, listed []trace.Line, ok bool) {
	sets = make(belowSets, max(1, 1<<a/pageSets))
	all := 0
	for _, h := range holes {
		s := sets.set(h.set)
		s.mask, s.room = h.mask, uint8(bits.OnesCount64(h.mask))
		all += int(s.room)
	}
	for _, line := range lines {
		if s := sets.set(line & (1<<a - 1)); s.room < listEntries {
			s.room++
			all++
		}
	}
	room := make([]trace.Line, all)
	sets.all(func(_ uint64, s *belowSet) {
		s.entries, room = room[:0:s.room], room[s.room:]
	})
	listed = lines[:0]
	for _, line := range lines {
		s := sets.set(line & (1<<a - 1))
		if s.putHoles(); len(s.entries) < listEntries {
			s.entries = append(s.entries, line)
			listed = append(listed, line)
		}
	}
	ok = true
	sets.all(func(_ uint64, s *belowSet) {
		s.putHoles()
		ok = ok && s.mask>>len(s.entries) == 0 // there must be no gap above a hole
	})
	return sets, listed, ok
}

// putHoles appends the holes that directly follow the last entry.
func (s *belowSet) putHoles() {
	for s.mask>>len(s.entries)&1 != 0 {
		s.entries = append(s.entries, noLine)
	}
}

// find returns the table entry of a line in the stack below, or nil.
func (r *Below) find(line trace.Line) *entry {
	if e := r.table.find(line); e != nil && e.stamp < fresh {
		return e
	}
	return nil
}

// depth returns the depth of an entry in the stack below the segment.
func (r *Below) depth(e *entry) uint32 {
	return r.above + r.stamps.live - 1 - r.stamps.rank(e.stamp)
}

// Depth returns the depth of a line that the segment has not touched, or Cold.
func (r *Below) Depth(line trace.Line) uint32 {
	if e := r.find(line); e != nil {
		return r.depth(e)
	}
	return Cold
}

// Touch performs the segment's first access to a line. The parameter "filled" is a mask of the
// numbers of sets for which the access filled a hole of the segment's stack. The mask in the result
// "all" also contains the numbers of sets for which the access fills a hole of the stack below.
// Touch returns the line's depth and the depth at which the line was lost, as [Coherent.Access]
// does.
func (r *Below) Touch(line trace.Line, filled uint32) (depth, lostAt, all uint32) {
	e, place := r.table.find(line), uint32(fresh)
	depth = Cold
	switch {
	case e == nil || e.stamp == onTop:
	case e.stamp < fresh:
		depth, place = r.depth(e), e.stamp
	default:
		depth, lostAt = Lost, e.moved-1
	}
	all = r.push(line, place, filled)
	if e != nil {
		e.stamp, e.moved = onTop, 0
	}
	return depth, lostAt, all
}

// Again performs an access to a line that was lost in the segment. The parameter "filled" and the
// result "all" are masks as in [Below.Touch].
func (r *Below) Again(line trace.Line, filled uint32) (all uint32) {
	return r.push(line, fresh, filled)
}

// push adds a line to the segment's stack, and removes the line from the stack below if that stack
// contains it.
func (r *Below) push(line trace.Line, place, filled uint32) (all uint32) {
	all = filled | r.pushOnAll(place, filled&1 != 0)
	below := place != fresh
	for a := setBits; a > 0; a-- {
		if r.numbers>>a&1 == 0 {
			continue
		}
		s, at := r.sets[a].set(line&(1<<a-1)), -1
		if below {
			at = slices.Index(s.entries, line)
			below = at >= 0 // a line that is not in a list is not in the lists for fewer sets, either
		}
		if at >= 0 {
			if d := s.above + uint32(at); d < MaxWays {
				r.depths[a][d]++
			}
		}
		if s.push(at, filled>>a&1 != 0) {
			all |= 1 << a
		}
	}
	return r.numbers.withUncounted(all)
}

// pushOnAll implements push for the stack of all lines (a single set). The result is 1 if pushOnAll
// fills a hole of the stack below, and otherwise 0.
func (r *Below) pushOnAll(place uint32, filled bool) uint32 {
	if place != fresh {
		if d := r.above + r.stamps.live - 1 - r.stamps.rank(place); d < MaxWays {
			r.depths[0][d]++
		}
	}
	if filled {
		if place != fresh {
			r.holes.add(place)
		}
		return 0
	}
	r.above++
	hole, found := r.holes.newest()
	switch {
	case found && (place == fresh || hole > place):
		r.holes.remove(hole)
		r.stamps.remove(hole)
		if place != fresh {
			r.holes.add(place)
		}
		return 1
	case place != fresh:
		r.stamps.remove(place)
	}
	return 0
}

// push adds an entry above the set's entries, and reports whether the new entry filled a hole of
// the set. If the parameter "at" is not negative, push removes the entry at this index. If the
// access filled a hole of the segment's stack, the other entries do not move.
func (s *belowSet) push(at int, filled bool) bool {
	if filled {
		if at >= 0 {
			s.entries[at] = noLine
		}
		return false
	}
	hole := slices.Index(s.entries, noLine)
	found := hole >= 0 && (at < 0 || hole < at)
	switch {
	case found:
		if at >= 0 {
			s.entries[at] = noLine
		}
		s.entries = slices.Delete(s.entries, hole, hole+1)
	case at >= 0:
		s.entries = slices.Delete(s.entries, at, at+1)
	}
	s.above++
	s.entries = s.entries[:min(len(s.entries), max(0, listEntries-int(s.above)))]
	return found
}

// Lose performs another core's store to a line that the segment has not touched. Lose returns the
// line's depth, or Cold.
func (r *Below) Lose(line trace.Line) (depth uint32) {
	e := r.find(line)
	if e == nil {
		return Cold
	}
	depth = r.depth(e)
	r.holes.add(e.stamp)
	e.stamp, e.moved = fresh, depth+1
	for a := setBits; a > 0; a-- {
		if r.numbers>>a&1 == 0 {
			continue
		}
		entries := r.sets[a].set(line & (1<<a - 1)).entries
		at := slices.Index(entries, line)
		if at < 0 {
			break
		}
		entries[at] = noLine
	}
	return depth
}

// Depths returns the numbers of touched lines by depth in their sets, in the same form as
// [Coherent.Depths].
func (r *Below) Depths() *SetDepths { return &r.depths }

// Join places the stack of a segment on top of this stack, and returns the state of the joined
// stack. The parameter "state" is the final state of the segment.
func (r *Below) Join(state []byte) ([]byte, error) {
	s, err := readState(state)
	if err != nil || len(s.entries) != int(r.above) {
		return nil, errState
	}
	s.entries, s.lost = append(s.entries, r.entries()...), append(s.lost, r.lost()...)
	sort.Slice(s.lost, func(i, j int) bool { return s.lost[i].line < s.lost[j].line })
	for a := 1; a < SetCounts; a++ {
		if above := s.holes[a]; r.numbers>>a&1 != 0 {
			s.holes[a] = r.joinHoles(a, above)
		} else {
			s.holes[a] = nil
		}
	}
	return s.encode(), nil
}

// entries returns the entries of the stack below, starting at the top. The value noLine represents
// a hole.
func (r *Below) entries() []trace.Line {
	all := slices.Repeat([]trace.Line{noLine}, int(r.stamps.live))
	r.table.order(&r.stamps, all)
	return all
}

func (r *Below) lost() (lost []lostLine) {
	for p := range r.table.parts {
		for _, e := range r.table.parts[p].slots {
			if e.key != 0 && e.stamp == fresh {
				lost = append(lost, lostLine{e.key - 1, e.moved - 1})
			}
		}
	}
	return lost
}

func (r *Below) joinHoles(a int, above []setMask) (all []setMask) {
	for _, h := range above { // create the stacks of these sets, so that the method "all" visits them
		r.sets[a].set(h.set)
	}
	r.sets[a].all(func(i uint64, s *belowSet) {
		mask := uint64(0)
		if len(above) > 0 && above[0].set == i {
			mask, above = above[0].mask, above[1:]
		}
		for d, line := range s.entries {
			if line == noLine {
				mask |= 1 << (s.above + uint32(d))
			}
		}
		if mask != 0 {
			all = append(all, setMask{i, mask})
		}
	})
	return all
}

// CoherentState returns the state of a model that contains the given lines, most recently used
// first, and has not lost any line.
func CoherentState(lines []trace.Line) []byte {
	s := coherentState{entries: lines}
	return s.encode()
}
