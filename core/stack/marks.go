package stack

import "github.com/stackglass/stackglass/core/trace"

// marks count some accesses of a [Sets] apart.
type marks struct {
	now    []bool // of the chunk that is being taken; nil: none
	tally  *tally // of marked accesses, which the model's own has not; nil: there were none
	queued [chunk]deep
}

// DistancesMarked is [Sets.Distances], and counts the accesses that are marked
// a second time, for [Sets.MarkedDepths].
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

// scanMarked scans accesses by runs that are all marked, or not at all, and queues
// what the top array held in none of them.
func (m *Sets) scanMarked(lines []trace.Line, marked []bool, out []uint32) (misses int) {
	for lo := 0; lo < len(lines); {
		hi := lo + 1
		for hi < len(lines) && marked[hi] == marked[lo] {
			hi++
		}
		t, _ := m.tallyOf(lo)
		t.accesses += uint64(hi - lo)
		for _, q := range m.exact.queue[:m.scanInto(t, lines[lo:hi], out[lo:hi])] {
			q.index += lo
			m.marks.queued[misses] = q
			misses++
		}
		lo = hi
	}
	copy(m.exact.queue[:], m.marks.queued[:misses])
	return misses
}

// tallyOf gives where an access of the chunk counts, and how in the lists.
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
