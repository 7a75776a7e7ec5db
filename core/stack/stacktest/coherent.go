package stacktest

import (
	"slices"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Event is an operation of a [stack.Coherent] on a line.
type Event struct {
	Op   stack.Op
	Line trace.Line
}

// Private is the definition of what [stack.Coherent] answers: one simulated cache
// of LRU sets, in which another core's store makes the way of a line free, and
// free ways are filled before anything is evicted.
type Private struct {
	Sets, Ways int
	lines      map[trace.Line][]trace.Line // by set, most recently used first
}

// Do does one operation, and tells whether the cache had the line.
func (m *Private) Do(e Event) (had bool) {
	if m.lines == nil {
		m.lines = map[trace.Line][]trace.Line{}
	}
	number := e.Line % trace.Line(m.Sets)
	set := m.lines[number]
	way := slices.Index(set, e.Line)
	if e.Op == stack.AskOp {
		return way >= 0
	}
	if way >= 0 {
		set = slices.Delete(set, way, way+1)
	} else if e.Op == stack.AccessOp && len(set) == m.Ways {
		set = set[:m.Ways-1]
	}
	if e.Op == stack.AccessOp {
		set = slices.Insert(set, 0, e.Line)
	}
	m.lines[number] = set
	return way >= 0
}

// Holes is the stack with holes of one set, as MODELS §6.4 defines it: a list, from
// the top. For longer traces than the definition.
type Holes struct {
	entries []trace.Line // noLine: a hole
}

// Do does one operation, and gives the depth of the line before, or -1.
func (m *Holes) Do(e Event) (depth int) {
	depth = slices.Index(m.entries, e.Line)
	if e.Op == stack.LoseOp && depth >= 0 {
		m.entries[depth] = noLine
	}
	if e.Op != stack.AccessOp {
		return depth
	}
	if depth >= 0 {
		m.entries[depth] = noLine
	} else {
		m.entries = append(m.entries, noLine)
	}
	hole := slices.Index(m.entries, noLine) // that of the line itself, if there is none above it
	copy(m.entries[1:hole+1], m.entries[:hole])
	m.entries[0] = e.Line
	return depth
}

const noLine = ^trace.Line(0)
