// Package stacktest contains reference implementations of the stack models and random
// traces, for the tests of several packages.
package stacktest

import (
	"math/rand/v2"
	"slices"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Naive implements the definition of stack distances, with a move-to-front list that is searched
// from the top.
type Naive struct{ lines []trace.Line }

// Distances implements [stack.Model].
func (m *Naive) Distances(lines []trace.Line, out []uint32) {
	for i, x := range lines {
		d := slices.Index(m.lines, x)
		if d < 0 {
			m.lines = append(m.lines, x)
			d = len(m.lines) - 1
			out[i] = stack.Cold
		} else {
			out[i] = uint32(d)
		}
		copy(m.lines[1:d+1], m.lines[:d])
		m.lines[0] = x
	}
}

// Lines implements [stack.Model].
func (m *Naive) Lines() int { return len(m.lines) }

// Stack implements [stack.Model].
func (m *Naive) Stack() []trace.Line { return slices.Clone(m.lines) }

// DepthsInLists computes depths in sets with one list per set, which is searched from the front.
// DepthsInLists is fast enough for long traces.
func DepthsInLists(lines []trace.Line) *stack.SetDepths { return MarkedDepths(lines, nil) }

// MarkedDepths is like DepthsInLists, but counts only marked accesses. If the parameter "marked" is
// nil, MarkedDepths counts all accesses.
func MarkedDepths(lines []trace.Line, marked []bool) *stack.SetDepths {
	depths := new(stack.SetDepths)
	for a := range depths {
		sets := map[trace.Line][]trace.Line{}
		for i, x := range lines {
			set := sets[x%(1<<a)]
			d := slices.Index(set, x)
			if d < 0 {
				d = len(set)
				set = append(set, x)
			} else if d < stack.MaxWays && (marked == nil || marked[i]) {
				depths[a][d]++
			}
			copy(set[1:d+1], set[:d])
			set[0] = x
			sets[x%(1<<a)] = set
		}
	}
	return depths
}

// Random returns a trace of n accesses, a random mixture of access patterns that are typical of
// programs: sweeps, strides, hot sets, uniform jumps and runs.
func Random(rng *rand.Rand, n int) []trace.Line {
	lines := make([]trace.Line, 0, n)
	span := 1 + rng.Uint64N(1<<rng.UintN(13))
	base := rng.Uint64N(1 << 57)
	for len(lines) < n {
		run, start := 1+rng.IntN(400), rng.Uint64N(span)
		stride := 1 + rng.Uint64N(20)
		hot := 1 + rng.Uint64N(40)
		switch shape := rng.IntN(5); shape {
		case 0:
			for i := range uint64(run) {
				lines = append(lines, base+(start+i)%span)
			}
		case 1:
			for i := range uint64(run) {
				lines = append(lines, base+(start+i*stride)%span)
			}
		case 2:
			for range run {
				lines = append(lines, base+(start+rng.Uint64N(hot))%span)
			}
		case 3:
			for range run {
				lines = append(lines, base+rng.Uint64N(span))
			}
		case 4:
			for range run {
				lines = append(lines, base+start)
			}
		}
	}
	return lines[:n]
}

// Event is an operation of a [stack.Coherent] on a line.
type Event struct {
	Op   stack.Op
	Line trace.Line
}

// Private is the reference implementation of [stack.Coherent]. Private simulates one cache with LRU
// sets. Another core's store frees the way of a line, and free ways are filled before any line is
// evicted.
type Private struct {
	Sets, Ways int
	lines      map[trace.Line][]trace.Line // lines of each set, most recently used first
}

// Do executes one operation, and reports whether the cache contained the line.
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

// Holes is the stack with holes for one set, as MODELS §6.4 defines it. Holes is a list that begins
// with the topmost entry, and is fast enough for longer traces than Private.
type Holes struct {
	entries []trace.Line // lines of the stack; noLine represents a hole
}

// Do executes one operation, and returns the previous depth of the line, or -1.
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
	// if there is no hole above the line, the entries above the line move down and fill its old
	// position
	hole := slices.Index(m.entries, noLine)
	copy(m.entries[1:hole+1], m.entries[:hole])
	m.entries[0] = e.Line
	return depth
}

const noLine = ^trace.Line(0)
