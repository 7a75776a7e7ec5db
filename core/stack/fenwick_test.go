package stack_test

import (
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Fenwick implements the textbook method (Bennett and Kruskal 1975, Olken 1981), which is the
// baseline of the benchmarks. A hash table maps each line to the time of its last access. A Fenwick
// tree over time counts lines by the times of their last accesses. Optionally, a top array with a
// given number of lines is searched before the hash table and the tree.
type Fenwick struct {
	top   []trace.Line
	keys  []uint64 // line + 1, or 0 if the slot is empty
	times []uint32 // time of the last access; 0 if the line is in the top array
	lines int
	tree  []uint32 // the first index is 1
	at    []trace.Line
	now   uint32
	live  uint32
}

const noLine = ^trace.Line(0)

// NewFenwick returns an empty model. The parameter top is the number of lines in its top array.
func NewFenwick(top int) *Fenwick {
	m := &Fenwick{
		top:  make([]trace.Line, top),
		keys: make([]uint64, 1<<10), times: make([]uint32, 1<<10),
		tree: make([]uint32, 1<<16+1), at: make([]trace.Line, 1<<16+1),
	}
	for i := range m.top {
		m.top[i] = noLine
	}
	return m
}

// Distances implements [stack.Model].
func (m *Fenwick) Distances(lines []trace.Line, out []uint32) {
next:
	for i, x := range lines {
		carry := x
		for j, here := range m.top {
			m.top[j] = carry
			if here == x {
				out[i] = uint32(j)
				continue next
			}
			carry = here
		}
		slot := m.slot(x)
		if m.keys[slot] == 0 {
			out[i] = stack.Cold
			m.keys[slot] = x + 1
			m.lines++
			if m.lines*4 > len(m.keys)*3 {
				m.grow()
			}
		} else {
			t := m.times[slot]
			out[i] = uint32(len(m.top)) + m.live - m.sum(t)
			m.add(t, ^uint32(0))
			m.at[t] = noLine
			m.times[slot] = 0
			m.live--
		}
		if carry != noLine {
			m.push(carry)
		}
	}
}

func (m *Fenwick) slot(x trace.Line) int {
	mask := len(m.keys) - 1
	h := x * 0x9e3779b97f4a7c15
	i := int(h>>20) & mask
	for m.keys[i] != 0 && m.keys[i] != x+1 {
		i = (i + 1) & mask
	}
	return i
}

func (m *Fenwick) grow() {
	keys, times := m.keys, m.times
	m.keys, m.times = make([]uint64, 2*len(keys)), make([]uint32, 2*len(keys))
	for i, key := range keys {
		if key != 0 {
			slot := m.slot(key - 1)
			m.keys[slot], m.times[slot] = key, times[i]
		}
	}
}

func (m *Fenwick) push(x trace.Line) {
	if int(m.now) == len(m.tree)-1 {
		m.compact()
	}
	m.now++
	m.live++
	m.times[m.slot(x)] = m.now
	m.at[m.now] = x
	m.add(m.now, 1)
}

func (m *Fenwick) sum(t uint32) (s uint32) {
	for ; t > 0; t &= t - 1 {
		s += m.tree[t]
	}
	return s
}

func (m *Fenwick) add(t, n uint32) {
	for ; int(t) < len(m.tree); t += t & -t {
		m.tree[t] += n
	}
}

// compact renumbers the times, beginning with one.
func (m *Fenwick) compact() {
	at, size := m.at[1:m.now+1], max(1<<16, 3*int(m.live))
	m.tree, m.at = make([]uint32, size+1), make([]trace.Line, size+1)
	m.now = 0
	for _, x := range at {
		if x != noLine {
			m.now++
			m.at[m.now] = x
			m.times[m.slot(x)] = m.now
			m.tree[m.now] = 1
		}
	}
	for t := uint32(1); int(t) < len(m.tree); t++ { // builds the tree bottom-up, in linear time
		if up := t + t&-t; int(up) < len(m.tree) {
			m.tree[up] += m.tree[t]
		}
	}
}

// Lines implements [stack.Model].
func (m *Fenwick) Lines() int { return m.lines }

// Stack implements [stack.Model].
func (m *Fenwick) Stack() []trace.Line {
	var lines []trace.Line
	for _, x := range m.top {
		if x != noLine {
			lines = append(lines, x)
		}
	}
	for t := m.now; t > 0; t-- {
		if m.at[t] != noLine {
			lines = append(lines, m.at[t])
		}
	}
	return lines
}
