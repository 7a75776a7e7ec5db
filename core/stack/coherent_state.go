package stack

import (
	"errors"
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// The state of a [Coherent]; uv is an unsigned LEB128 varint:
//
//	list of lines that were lost, ascending, each
//	  uv line − the previous one · uv depth at which it was lost
//	list of runs of the stack, from the top, each
//	  list of lines, each: zigzag varint line − the previous one in the stack
//	  uv holes below them
//	for 2^1, 2^2, … 2^16 sets: list of the sets that have holes, ascending, empty if they are not counted, each
//	  uv set − the previous one · uv mask of the depths, up to 32, that are holes
//
// A list is written as its length (uv) followed by its entries. The lines of a set have the same
// order as in the stack of all lines, so a mask of the holes is sufficient for a set.

type coherentState struct {
	lost []lostLine // the lost lines, in ascending order
	// entries of the stack from the top, with noLine for holes; there are no more holes than lost lines
	entries []trace.Line
	holes   [SetCounts][]setMask
}

type lostLine struct {
	line  trace.Line
	depth uint32
}

func (s *coherentState) code(c *codec.Coder) {
	line := trace.Line(0)
	codec.Slice(c, &s.lost, 2, func(l *lostLine) {
		c.After(&l.line, &line, maxLines)
		codec.Below(c, &l.depth, Lost)
	})
	s.codeEntries(c)
	for a := 1; a < SetCounts; a++ {
		set := uint64(0)
		codec.Slice(c, &s.holes[a], 2, func(h *setMask) {
			c.After(&h.set, &set, 1<<a)
			codec.Below(c, &h.mask, 1<<listEntries)
			c.Check(h.mask != 0, errState.Error())
		})
	}
}

func (s *coherentState) codeEntries(c *codec.Coder) {
	runs := 0
	for i, line := range s.entries {
		if i == 0 || line != noLine && s.entries[i-1] == noLine {
			runs++
		}
	}
	last, rest, room := trace.Line(0), s.entries, len(s.lost)
	for n := c.Length(runs, 2); n > 0 && !c.Failed(); n-- {
		lines, holes := rest, 0
		if !c.Reads() {
			if at := slices.Index(rest, noLine); at >= 0 {
				lines, rest = rest[:at], rest[at:]
				if holes = slices.IndexFunc(rest, func(line trace.Line) bool { return line != noLine }); holes < 0 {
					holes = len(rest)
				}
				rest = rest[holes:]
			}
		}
		c.Nears(&lines, &last)
		codec.Below(c, &holes, uint64(room)+1)
		if c.Reads() {
			c.Check(!slices.ContainsFunc(lines, func(line trace.Line) bool { return line >= maxLines }), errState.Error())
			room -= holes
			s.entries = append(append(s.entries, lines...), slices.Repeat([]trace.Line{noLine}, holes)...)
		}
	}
}

func (s *coherentState) encode() []byte {
	c := codec.Writer(nil)
	s.code(c)
	return c.Out
}

func readState(state []byte) (s coherentState, err error) {
	c := codec.Reader(state)
	if s.code(c); c.Failed() || c.More() {
		return s, errState
	}
	return s, nil
}

// State returns the state that [Coherent.Restore] reads. The state does not contain counts.
func (m *Coherent) State() []byte {
	s := coherentState{entries: m.entries()}
	for p := range m.near.exact.table.parts {
		for _, e := range m.near.exact.table.parts[p].slots {
			if e.key != 0 && e.stamp == fresh {
				s.lost = append(s.lost, lostLine{e.key - 1, m.ways.lostAt[e.moved]})
			}
		}
	}
	sort.Slice(s.lost, func(i, j int) bool { return s.lost[i].line < s.lost[j].line })
	for a := m.ways.after[0]; a < SetCounts; a = m.ways.after[a] {
		s.holes[a] = m.ways.holes(a)
	}
	return s.encode()
}

// entries returns the entries of the stack, starting at the top. The value noLine represents a hole.
func (m *Coherent) entries() []trace.Line {
	exact := &m.near.exact
	all := slices.Repeat([]trace.Line{noLine}, m.used+int(exact.stamps.live))
	copy(all, exact.top[:m.used])
	exact.table.order(&exact.stamps, all)
	return all
}

// holes returns the holes in the lists of 2^a sets.
func (w *ways) holes(a int) (list []setMask) {
	for i, p := range w.lists[a] {
		for set := 0; p != nil && set < pageSets; set++ {
			if mask := w.holeMask(p, set); mask != 0 {
				list = append(list, setMask{uint64(i*pageSets + set), mask})
			}
		}
	}
	return list
}

// holeMask returns a mask of the depths of a set's holes.
func (w *ways) holeMask(p *wayPage, set int) (mask uint64) {
	s := &p.sets[set]
	if s.first != noID && w.isHole[s.first] {
		mask = 1
	}
	if s.holes == 0 {
		return mask
	}
	ring := p.ring(set)
	for i := range ring {
		if ring[(int(s.head)+i)&(len(ring)-1)] == holeID {
			mask |= 2 << i
		}
	}
	return mask
}

var errState = errors.New("the saved state of a coherent stack is damaged; analyse the trace again from its start")

// Restore sets an empty model to a saved state. After an error, the model must not be used.
func (m *Coherent) Restore(state []byte) error {
	s, err := readState(state)
	if err != nil {
		return err
	}
	for _, l := range s.lost {
		e, _ := m.near.exact.table.findOrAdd(l.line)
		e.moved = m.ways.newID()
		m.ways.recordLoss(e.moved, l.depth)
		m.lost++
	}
	for _, line := range slices.Backward(s.entries) {
		if !m.placeOnTop(line) {
			return errState
		}
	}
	lines := slices.DeleteFunc(s.entries, func(line trace.Line) bool { return line == noLine })
	for a := setBits; a > 0; a-- {
		if m.ways.numbers>>a&1 == 0 {
			continue
		}
		var ok bool
		if lines, ok = m.fill(a, lines, s.holes[a]); !ok {
			return errState
		}
	}
	return nil
}

// placeOnTop pushes a line or a hole onto the stack. It returns false if the stack already contains
// the line, or if the line is a lost line.
func (m *Coherent) placeOnTop(line trace.Line) bool {
	if line == noLine {
		m.holes.add(m.newStamp())
		return true
	}
	e, _ := m.near.exact.table.findOrAdd(line)
	if e.stamp != fresh || e.moved != 0 {
		return false
	}
	e.moved = m.ways.newID()
	e.stamp = m.newStamp()
	return true
}

// fill creates the lists of 2^a sets from holes and from lines in stack order. The result
// "listed", which overwrites lines, contains the lines that are in a list. If a line is in no list
// of 2^a sets, it is in no list of fewer sets, either.
func (m *Coherent) fill(a int, lines []trace.Line, holes []setMask) (listed []trace.Line, ok bool) {
	sets := nonemptySets(a, lines, holes)
	at := func(set uint64) int {
		if len(sets) == 1<<a {
			return int(set)
		}
		i, _ := slices.BinarySearch(sets, set)
		return i
	}
	lengths, masks := make([]uint8, len(sets)), make([]uint64, len(sets))
	for _, h := range holes {
		masks[at(h.set)] = h.mask
	}
	put := func(i int, id uint32) {
		p, set := m.ways.page(a, sets[i])
		p.put(set, int(lengths[i]), id)
		lengths[i]++
	}
	putHoles := func(i int) {
		for masks[i]>>lengths[i]&1 != 0 {
			put(i, holeID)
		}
	}
	listed = lines[:0]
	for _, line := range lines {
		i, id := at(line&(1<<a-1)), m.near.exact.table.find(line).moved
		if putHoles(i); lengths[i] == 0 && !m.ways.onTop(m.ways.after[a], line, id) {
			return nil, false
		}
		if lengths[i] < listEntries {
			put(i, id)
			listed = append(listed, line)
		} else {
			m.ways.absent[id] = uint8(a)
		}
	}
	for i, mask := range masks {
		if mask == 0 {
			continue
		}
		if putHoles(i); mask>>lengths[i] != 0 {
			return nil, false // there is a gap above a hole
		}
		p, set := m.ways.page(a, sets[i])
		p.sets[set].holes = uint8(bits.OnesCount64(mask >> 1))
	}
	return listed, true
}

// nonemptySets returns the numbers of the sets, among 2^a sets, that contain lines or holes. The
// numbers are in ascending order. If there are at least as many lines and holes as sets,
// nonemptySets simply returns all sets. Otherwise the result is short, which saves time, because
// many states contain few lines.
func nonemptySets(a int, lines []trace.Line, holes []setMask) (sets []uint64) {
	sets = make([]uint64, 0, min(1<<a, len(lines)+len(holes)))
	if cap(sets) == 1<<a {
		for set := range uint64(1) << a {
			sets = append(sets, set)
		}
		return sets
	}
	for _, line := range lines {
		sets = append(sets, line&(1<<a-1))
	}
	for _, h := range holes {
		sets = append(sets, h.set)
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

// put stores an entry below the n entries of a set, onto which no entry has been pushed.
func (p *wayPage) put(set, n int, entry uint32) {
	if n == 0 {
		p.sets[set].first = entry
		return
	}
	if p.rings == nil || n > int(p.mask)+1 {
		p.lengthen()
	}
	p.ring(set)[n-1] = entry
}

const maxLines = 1 << 61 // greater than every line number

// setMask contains the number of a set, and a mask of the depths of the set's holes.
type setMask struct{ set, mask uint64 }
