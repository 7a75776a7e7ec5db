package blocks

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// solvedFunction is a function whose blocks have been eliminated. Its states are the reachable
// blocks in reverse postorder.
type solvedFunction struct {
	ready  bool
	err    *Error
	blocks []int32  // the block of each state
	totals []uint64 // by state: the sum of the weights of its edges
	entry  int32    // state of the first block
	// The edges of state i are edges[edgeAt[i]:edgeAt[i+1]].
	edgeAt  []int32
	edges   []edge
	factor  *factorization
	visits  []float64 // by state: visits per invocation
	resumed []float64 // by state: visits caused by executions that entered a block without following an edge; nil if there are none
	calls   []call
}

type edge struct {
	to     int32
	weight uint64
}

// call describes a block that calls a function directly.
type call struct {
	state, callee int32
	made          share
}

// prepare computes the visits of each block of function n per invocation.
func (s *System) prepare(n int) *solvedFunction {
	f := &s.functions[n]
	if f.ready {
		return f
	}
	*f = solvedFunction{ready: true, blocks: f.blocks[:0], totals: f.totals[:0], edgeAt: f.edgeAt[:0], edges: f.edges[:0], calls: f.calls[:0]}
	if f.err = s.findBlocks(n, f); f.err != nil {
		return f
	}
	ways, leaves := s.states(f)
	var bad int
	if f.factor, bad = eliminate(ways, leaves, nil); bad >= 0 {
		f.err = s.endlessLoopError(f)
		return f
	}
	f.visits = make([]float64, len(f.blocks))
	f.visits[f.entry] = 1
	f.solveVisits(f.visits)
	for i, b := range f.blocks {
		if r := s.resumed[b]; r > 0 {
			if f.resumed == nil {
				f.resumed = make([]float64, len(f.blocks))
			}
			f.resumed[i] = float64(r)
		}
	}
	if f.resumed != nil {
		f.solveVisits(f.resumed)
	}
	return f
}

// solveVisits solves the system. The elements of sources are the numbers of executions that enter
// each state from outside. solveVisits replaces them by the numbers of visits.
func (f *solvedFunction) solveVisits(sources []float64) {
	f.factor.solve(sources)
	for i := range sources {
		sources[i] *= float64(f.totals[i])
	}
}

// findBlocks lists the reachable blocks in reverse postorder of a depth-first search that starts
// from the function's first block and from resumed blocks.
func (s *System) findBlocks(n int, f *solvedFunction) *Error {
	p := s.program
	first, end := p.Functions[n].First, p.Functions[n].First+p.Functions[n].Blocks
	for b := first; b < end; b++ {
		s.positions[b] = -1
	}
	type visit struct {
		block uint32
		next  int
	}
	var stack []visit
	for root := first; root < end; root++ {
		if root != first && s.resumed[root] == 0 || s.positions[root] >= 0 {
			continue
		}
		s.positions[root] = 0
		stack = append(stack, visit{root, 0})
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			b := top.block
			if top.next == 0 && s.isUnknown(int(b)) {
				return s.fail(int(b), "the block is reachable, but the probabilities of its successors are unknown",
					"set probabilities for the successors, or allow guessed probabilities")
			}
			next := p.Blocks[b].Successors
			for top.next < len(next) && (s.weight(b, top.next) == 0 || s.positions[next[top.next]] >= 0) {
				top.next++
			}
			if top.next == len(next) {
				f.blocks = append(f.blocks, int32(b))
				stack = stack[:len(stack)-1]
				continue
			}
			to := next[top.next]
			top.next++
			s.positions[to] = 0
			stack = append(stack, visit{to, 0})
		}
	}
	slices.Reverse(f.blocks)
	for i, b := range f.blocks {
		s.positions[b] = int32(i)
		if c := s.callees[b]; c >= 0 && (s.made[b].part > 0 || s.made[b].whole == 0) {
			f.calls = append(f.calls, call{int32(i), c, s.made[b]})
		}
	}
	f.entry = s.positions[first]
	return nil
}

// weight returns the weight of the i-th edge of block b. If the block has no weights, its first
// edge has weight 1.
func (s *System) weight(b uint32, i int) uint64 {
	if w := s.weights[b][i]; w > 0 || i > 0 || s.leaves[b] > 0 {
		return w
	}
	if slices.ContainsFunc(s.weights[b], isPositive) {
		return 0
	}
	return 1
}

// states returns, for each state, the edges to other states, merged and sorted, and the weight of
// leaving the function.
func (s *System) states(f *solvedFunction) (ways [][]weightedEdge, leaves []float64) {
	n := len(f.blocks)
	ways, leaves = make([][]weightedEdge, n), make([]float64, n)
	at := make([]int32, n)
	for i := range at {
		at[i] = -1
	}
	total := 0
	for _, b := range f.blocks {
		total += len(s.weights[b])
	}
	all := make([]weightedEdge, 0, total+n)
	for i, b := range f.blocks {
		f.edgeAt = append(f.edgeAt, int32(len(f.edges)))
		sum := s.leaves[b]
		first := len(f.edges)
		for k, next := range s.program.Blocks[b].Successors {
			w := s.weight(uint32(b), k)
			if w == 0 {
				continue
			}
			sum += w
			to := s.positions[next]
			if e := at[to]; e >= int32(first) {
				f.edges[e].weight += w
				continue
			}
			at[to] = int32(len(f.edges))
			f.edges = append(f.edges, edge{to, w})
		}
		mine := f.edges[first:]
		slices.SortFunc(mine, func(a, b edge) int { return int(a.to) - int(b.to) })
		from := len(all)
		for _, e := range mine {
			at[e.to] = -1
			if e.to != int32(i) {
				all = append(all, weightedEdge{e.to, float64(e.weight)})
			}
		}
		// Reserve capacity for one more edge, which will lead to the header of the outer loop.
		all = append(all, weightedEdge{})
		ways[i] = all[from : len(all)-1 : len(all)]
		leaves[i] = float64(s.leaves[b])
		if sum == 0 { // the block has no successor
			sum, leaves[i] = 1, 1
		}
		f.totals = append(f.totals, sum)
	}
	f.edgeAt = append(f.edgeAt, int32(len(f.edges)))
	return ways, leaves
}

// endlessLoopError returns an error that names a block in an endless loop.
func (s *System) endlessLoopError(f *solvedFunction) *Error {
	n := len(f.blocks)
	leaves := make([]bool, n)
	for changed := true; changed; {
		changed = false
		for i := n - 1; i >= 0; i-- {
			if leaves[i] {
				continue
			}
			b := f.blocks[i]
			out := s.leaves[b] > 0 || f.edgeAt[i] == f.edgeAt[i+1]
			for _, e := range f.edges[f.edgeAt[i]:f.edgeAt[i+1]] {
				out = out || leaves[e.to]
			}
			if out {
				leaves[i], changed = true, true
			}
		}
	}
	worst := int32(-1)
	for i, b := range f.blocks {
		if leaves[i] {
			continue
		}
		header := s.program.Blocks[b].Flags&trace.HeaderBlock != 0
		if worst < 0 || header && s.program.Blocks[worst].Flags&trace.HeaderBlock == 0 {
			worst = b
		}
	}
	if worst < 0 {
		return s.fail(int(f.blocks[f.entry]), "the loops of this function run more than 10^300 times", "choose weights that differ less: with these weights, the system of equations cannot be solved")
	}
	return s.fail(int(worst), "the block is in an endless loop: the loop is reachable, but no path from it leaves the function",
		"let a branch in the loop lead out of the loop, or give one of the loop's blocks a weight for leaving the function (a call in the block may throw, or end the program)")
}
