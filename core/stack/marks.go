package stack

import "github.com/stackglass/stackglass/core/trace"

// marks count some accesses of a [Sets] separately.
type marks struct {
	now   []bool // of the chunk that is being taken; nil: none
	tally *tally // of marked accesses, which the model's own has not; nil: there were none
}

// DistancesMarked is [Sets.Distances] that also counts marked accesses for [Sets.MarkedDepths].
func (m *Sets) DistancesMarked(lines []trace.Line, marked []bool, out []uint32) {
	if m.marks.tally == nil {
		m.marks.tally = new(tally)
	}
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		m.makeRoom()
		m.marks.now = marked[:n]
		m.finish(m.exact.queue[:m.scanMarked(lines[:n], marked[:n], out[:n])], out[:n])
		lines, marked, out = lines[n:], marked[n:], out[n:]
	}
	m.marks.now = nil
	m.exact.check()
}

// scanMarked scans in steps, as scanSteps does, to know what each access counts and where.
func (m *Sets) scanMarked(lines []trace.Line, marked []bool, out []uint32) (misses int) {
	few := uint64(0)
	for _, is := range marked {
		if is {
			few++
		}
	}
	m.marks.tally.accesses += few
	m.tally.accesses += uint64(len(marked)) - few
	if m.exact.stamped {
		return m.exact.scanStamped(lines, out)
	}
	var front, rest [chunk]uint16
	_, deeper := m.scanFront(lines, out, &front)
	_, misses = m.scanRest(deeper, out, &rest)
	for _, q := range m.exact.queue[:misses] {
		out[q.index] = topLines
	}
	tallies := [2]*tally{&m.tally, m.marks.tally}
	near, far := 0, 0
	for i, d := range out[:len(lines)] {
		if d-1 >= topLines-1 {
			continue
		}
		t := tallies[0]
		if marked[i] {
			t = tallies[1]
		}
		t.whole[d%MaxWays]++
		if d < frontLines {
			t.front[front[near&(chunk-1)]&noteIndex]++
			near++
		} else {
			t.addLanes(m.packed[far&(chunk-1)])
			far++
		}
	}
	return misses
}

// tallyOf returns where an access of the chunk counts, and how in the lists.
func (m *Sets) tallyOf(index int) (t *tally, how uint32) {
	if m.marks.now != nil && m.marks.now[index] {
		return m.marks.tally, marked
	}
	return &m.tally, 0
}

// MarkedDepths gives what was counted of marked accesses.
func (m *Sets) MarkedDepths() *SetDepths {
	if m.marks.tally == nil {
		return new(SetDepths)
	}
	m.recent.settle()
	return m.marks.tally.with(&m.recent.depths, depthRoom)
}
