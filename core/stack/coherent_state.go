package stack

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// What is kept of a [Coherent], uv being an unsigned LEB128 varint:
//
//	list of lines that were lost, ascending, each
//	  uv line − the one before · uv depth at which it was lost
//	list of runs of the stack, from the top, each
//	  list of lines, each: zigzag varint line − the one before in the stack
//	  uv holes below them
//	for 2^1, 2^2, … 2^16 sets: list of the sets that have holes, ascending, each
//	  uv set − the one before · uv mask of the depths, up to 32, that are holes
//
// A list is uv its length and that many entries. The lines of a set are in the
// order that they have in the stack of all, so masks are enough.

// State gives what [Coherent.Restore] makes a model of that goes on as this one
// would. It has no counts of what was accessed so far.
func (m *Coherent) State() []byte {
	b := m.appendLost(nil)
	b = appendStack(b, m.entries())
	for a := 1; a < SetCounts; a++ {
		b = m.ways.appendHoles(b, a)
	}
	return b
}

func (m *Coherent) appendLost(b []byte) []byte {
	lost := make([]entry, 0, m.lost)
	for p := range m.near.exact.table.parts {
		for _, e := range m.near.exact.table.parts[p].slots {
			if e.key != 0 && e.stamp == fresh {
				lost = append(lost, e)
			}
		}
	}
	sort.Slice(lost, func(i, j int) bool { return lost[i].key < lost[j].key })
	b = binary.AppendUvarint(b, uint64(len(lost)))
	last := trace.Line(0)
	for _, e := range lost {
		b = binary.AppendUvarint(b, e.key-1-last)
		b = binary.AppendUvarint(b, uint64(m.ways.lostAt[e.fell]))
		last = e.key - 1
	}
	return b
}

// entries gives the stack from the top, with noLine for holes.
func (m *Coherent) entries() []trace.Line {
	exact := &m.near.exact
	all := make([]trace.Line, m.used+int(exact.stamps.live))
	for i := range all {
		all[i] = noLine
	}
	copy(all, exact.top[:m.used])
	for p := range exact.table.parts {
		for _, e := range exact.table.parts[p].slots {
			if e.key != 0 && e.stamp < fresh {
				all[uint32(len(all))-1-exact.stamps.rank(e.stamp)] = e.key - 1
			}
		}
	}
	return all
}

func appendStack(b []byte, entries []trace.Line) []byte {
	var runs [][2]int // lines, and holes below them
	for i, line := range entries {
		if i == 0 || line != noLine && entries[i-1] == noLine {
			runs = append(runs, [2]int{})
		}
		if run := &runs[len(runs)-1]; line != noLine {
			run[0]++
		} else {
			run[1]++
		}
	}
	b = binary.AppendUvarint(b, uint64(len(runs)))
	last := trace.Line(0)
	for _, run := range runs {
		b = binary.AppendUvarint(b, uint64(run[0]))
		for _, line := range entries[:run[0]] {
			b = binary.AppendVarint(b, int64(line-last))
			last = line
		}
		b = binary.AppendUvarint(b, uint64(run[1]))
		entries = entries[run[0]+run[1]:]
	}
	return b
}

// appendHoles writes those of the lists of 2^a sets.
func (w *ways) appendHoles(b []byte, a int) []byte {
	var list []setMask
	for i, p := range w.lists[a] {
		for set := 0; p != nil && set < pageSets; set++ {
			if mask := w.holeMask(p, set); mask != 0 {
				list = append(list, setMask{i*pageSets + set, mask})
			}
		}
	}
	return appendMasks(b, list)
}

func appendMasks(b []byte, list []setMask) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	last := 0
	for _, h := range list {
		b = binary.AppendUvarint(b, uint64(h.set-last))
		b = binary.AppendUvarint(b, h.mask)
		last = h.set
	}
	return b
}

// holeMask has a bit for each depth of a set at which there is a hole.
func (w *ways) holeMask(p *wayPage, set int) (mask uint64) {
	s := &p.sets[set]
	if s.first != noID && w.empty[s.first] {
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

var errState = errors.New("the state of a stack with holes cannot be read; analyse the trace again from its start")

// Restore brings a model that is empty to where another one was when it gave its
// state. After an error the model is of no use.
func (m *Coherent) Restore(state []byte) error {
	r := &stateReader{in: state}
	m.readLost(r)
	entries := m.readStack(r)
	for i := len(entries) - 1; i >= 0 && !r.wrong; i-- {
		m.place(r, entries[i])
	}
	lines := slices.DeleteFunc(entries, func(line trace.Line) bool { return line == noLine })
	lists := [SetCounts][]setMask{}
	for a := 1; a < SetCounts; a++ {
		lists[a] = r.masks(1 << a)
	}
	if r.wrong || len(r.in) > 0 {
		return errState
	}
	for a := setBits; a > 0; a-- {
		var ok bool
		if lines, ok = m.fill(a, lines, lists[a]); !ok {
			return errState
		}
	}
	m.check()
	return nil
}

func (m *Coherent) readLost(r *stateReader) {
	n := r.length(2)
	line := trace.Line(0)
	for i := 0; i < n && !r.wrong; i++ {
		step, depth := r.below(maxLines), r.below(Lost)
		if i > 0 && step == 0 || line+step >= maxLines {
			r.wrong = true
			return
		}
		line += step
		e, _ := m.near.exact.table.findOrAdd(line)
		e.fell = m.ways.newID()
		m.ways.note(e.fell, uint32(depth))
		m.lost++
	}
}

// readStack gives the stack from the top, with noLine for holes, of which there are
// at most as many as lines that were lost.
func (m *Coherent) readStack(r *stateReader) (entries []trace.Line) {
	line, holes := trace.Line(0), 0
	for range r.length(2) {
		for range r.length(1) {
			line += trace.Line(r.step())
			if line >= maxLines {
				r.wrong = true
				return nil
			}
			entries = append(entries, line)
		}
		n := int(r.below(uint64(m.lost-holes) + 1))
		holes += n
		for range n {
			entries = append(entries, noLine)
		}
	}
	return entries
}

// place puts an entry on top of those that were placed before.
func (m *Coherent) place(r *stateReader, line trace.Line) {
	if line == noLine {
		m.holes.add(m.newStamp())
		return
	}
	e, _ := m.near.exact.table.findOrAdd(line)
	if e.stamp != fresh || e.fell != 0 {
		r.wrong = true // it is there twice, or was lost
		return
	}
	e.fell = m.ways.newID()
	e.stamp = m.newStamp()
}

// fill makes the lists of 2^a sets of lines in the order of the stack and holes. It
// gives the lines that are in a list: others are in none of fewer sets.
func (m *Coherent) fill(a int, lines []trace.Line, holes []setMask) (listed []trace.Line, ok bool) {
	sets := settled(a, lines, holes)
	at := func(set int) int {
		if len(sets) == 1<<a {
			return set
		}
		i, _ := slices.BinarySearch(sets, set)
		return i
	}
	lists, masks := make([][]uint32, len(sets)), make([]uint64, len(sets))
	for _, h := range holes {
		masks[at(h.set)] = h.mask
	}
	putHoles := func(i int) {
		for masks[i]>>len(lists[i])&1 != 0 {
			lists[i] = append(lists[i], holeID)
		}
	}
	for _, line := range lines {
		i, id := at(int(line)&(1<<a-1)), m.near.exact.table.find(line).fell
		if putHoles(i); len(lists[i]) == 0 && !m.ways.onTop(a+1, line, id) {
			return nil, false
		}
		if len(lists[i]) < listEntries {
			lists[i] = append(lists[i], id)
			listed = append(listed, line)
		} else {
			m.ways.gone[id] = uint8(a)
		}
	}
	for i, mask := range masks {
		if putHoles(i); mask>>len(lists[i]) != 0 {
			return nil, false // there is nothing above them
		}
		if lists[i] != nil {
			p, at := m.ways.page(a, trace.Line(sets[i]))
			p.fill(at, lists[i], uint8(bits.OnesCount64(mask>>1)))
		}
	}
	return listed, true
}

// settled gives those of 2^a sets that have lines or holes, in order, or all of them where
// there may be as many: a state is often of few lines, and most sets then of none.
func settled(a int, lines []trace.Line, holes []setMask) (sets []int) {
	if len(lines)+len(holes) >= 1<<a {
		for set := range 1 << a {
			sets = append(sets, set)
		}
		return sets
	}
	for _, line := range lines {
		sets = append(sets, int(line)&(1<<a-1))
	}
	for _, h := range holes {
		sets = append(sets, h.set)
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

// fill makes the list of a set that has none, with holes below its topmost entry.
func (p *wayPage) fill(set int, list []uint32, holes uint8) {
	for i := len(list) - 1; i > 0; i-- {
		p.push(set, list[i])
	}
	p.sets[set].first, p.sets[set].holes = list[0], holes
}

// maxLines is above every line.
const maxLines = 1 << 61

// setMask tells which depths of a set are holes.
type setMask struct {
	set  int
	mask uint64
}

// stateReader reads a state. After something that cannot be, it reads zeros.
type stateReader struct {
	in    []byte
	wrong bool
}

// below reads a number below a limit.
func (r *stateReader) below(limit uint64) uint64 {
	x, n := binary.Uvarint(r.in)
	if n <= 0 || x >= limit {
		r.in, r.wrong = nil, true
		return 0
	}
	r.in = r.in[n:]
	return x
}

// step reads a difference.
func (r *stateReader) step() int64 {
	x, n := binary.Varint(r.in)
	if n <= 0 {
		r.in, r.wrong = nil, true
		return 0
	}
	r.in = r.in[n:]
	return x
}

// length reads that of a list whose entries take at least so many bytes.
func (r *stateReader) length(least int) int {
	return int(r.below(uint64(len(r.in)/least) + 1))
}

// masks reads which of a number of sets have holes.
func (r *stateReader) masks(sets int) []setMask {
	list := make([]setMask, r.length(2))
	set := uint64(0)
	for i := range list {
		step := r.below(uint64(sets) - set)
		set += step
		mask := r.below(1 << listEntries)
		if mask == 0 || i > 0 && step == 0 {
			r.wrong = true
			return nil
		}
		list[i] = setMask{int(set), mask}
	}
	return list
}
