package stack

import (
	"github.com/stackglass/stackglass/core/trace"
)

const (
	topLines   = 16
	frontLines = 4 // of the top lines, those kept in local variables
	burst      = 64
	noLine     = ^trace.Line(0) // no line: line numbers are below 2^61
)

// Exact is the fast exact model.
type Exact struct {
	top    [topLines]trace.Line // the topmost lines, most recently used first
	table  table
	stamps stamps

	queue   [burst]deep
	pending int
	sink    uint64
}

// deep is an access that the top array did not hold.
type deep struct {
	line    trace.Line
	evicted trace.Line // what fell off the top array's end
	index   int
}

// NewExact makes an empty model.
func NewExact() *Exact {
	m := new(Exact)
	for i := range m.top {
		m.top[i] = noLine
	}
	m.stamps.reset(blockStamps, 0)
	return m
}

// Distances implements [Model].
func (m *Exact) Distances(lines []trace.Line, out []uint32) {
	out = out[:len(lines)]
	top := &m.top
	t0, t1, t2, t3 := top[0], top[1], top[2], top[3]
next:
	for i, x := range lines {
		switch x {
		case t0:
			out[i] = 0
			continue
		case t1:
			t0, t1 = t1, t0
			out[i] = 1
			continue
		case t2:
			t0, t1, t2 = t2, t0, t1
			out[i] = 2
			continue
		case t3:
			t0, t1, t2, t3 = t3, t0, t1, t2
			out[i] = 3
			continue
		}
		carry := t3
		t0, t1, t2, t3 = x, t0, t1, t2
		for j := frontLines; j < topLines; j += 4 {
			four := (*[4]trace.Line)(top[j:])
			a, b, c, d := four[0], four[1], four[2], four[3]
			four[0] = carry
			if a == x {
				out[i] = uint32(j)
				continue next
			}
			four[1] = a
			if b == x {
				out[i] = uint32(j + 1)
				continue next
			}
			four[2] = b
			if c == x {
				out[i] = uint32(j + 2)
				continue next
			}
			four[3] = c
			if d == x {
				out[i] = uint32(j + 3)
				continue next
			}
			carry = d
		}
		m.queue[m.pending] = deep{x, carry, i}
		m.pending++
		if m.pending == burst {
			m.settle(out)
		}
	}
	top[0], top[1], top[2], top[3] = t0, t1, t2, t3
	m.settle(out)
	m.check()
}

// settle resolves the queued accesses in three steps, each a loop of its own so
// that the cache misses of one step overlap: touch the table's slots, find the
// entries and touch the bitmap at their stamps, then count and push in order.
func (m *Exact) settle(out []uint32) {
	queue := m.queue[:m.pending]
	m.pending = 0
	sink := m.sink
	for i := range queue {
		sink += m.table.touch(queue[i].line)
	}
	var entries, evicted [burst]*entry
	for i := range queue {
		q := &queue[i]
		e, grew := m.table.findOrAdd(q.line)
		if grew {
			for j := range i { // what was found before may have moved
				entries[j] = m.table.find(queue[j].line)
				evicted[j] = m.table.find(queue[j].evicted)
			}
		}
		entries[i] = e
		sink += m.stamps.touch(e.stamp)
		evicted[i] = m.table.find(q.evicted)
	}
	m.sink = sink
	for i := range queue {
		e := entries[i]
		if e.stamp == fresh {
			out[queue[i].index] = Cold
		} else {
			out[queue[i].index] = topLines + m.stamps.remove(e.stamp)
		}
		e.stamp = onTop
		if e := evicted[i]; e != nil {
			if m.stamps.full() {
				m.compact()
			}
			e.stamp = m.stamps.push()
		}
	}
}

// compact renumbers the live stamps from zero and makes room for as many again.
func (m *Exact) compact() {
	live := m.stamps.live
	for p := range m.table.parts {
		slots := m.table.parts[p].slots
		for i := range slots {
			if e := &slots[i]; e.key != 0 && e.stamp < fresh {
				e.stamp = m.stamps.rank(e.stamp)
			}
		}
	}
	m.stamps.reset(uint32(min(uint64(live)*2, maxStamps)), live)
}

// Lines implements [Model].
func (m *Exact) Lines() int { return m.table.lines }

// Stack implements [Model].
func (m *Exact) Stack() []trace.Line {
	below := make([]trace.Line, m.stamps.live)
	for p := range m.table.parts {
		for _, e := range m.table.parts[p].slots {
			if s := e.stamp; e.key != 0 && s < fresh {
				below[uint32(len(below))-1-m.stamps.rank(s)] = e.key - 1
			}
		}
	}
	stack := make([]trace.Line, 0, m.table.lines)
	for _, line := range m.top {
		if line != noLine {
			stack = append(stack, line)
		}
	}
	return append(stack, below...)
}
