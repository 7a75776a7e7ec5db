package blocks

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Solution contains the execution counts of blocks and the invocation counts of functions.
type Solution struct {
	Program     *trace.Program
	Visits      []float64 // number of executions of each block
	Invocations []float64 // number of invocations of each function
	// Whole reports for each function whether its counts are proven to be integers. Exact contains
	// the proven counts of blocks, and Invoked the proven counts of functions.
	Whole   []bool
	Exact   []uint64
	Invoked []uint64
	// Error is a bound on the relative error of the counts of functions for which Whole is false.
	Error float64
}

// maxWhole limits the counts that are treated as integers.
const maxWhole = 1 << 62

// component is a strongly connected component of the call graph.
type component struct {
	functions []int32
	self      bool           // whether there are calls within the component
	factor    *factorization // the factorised matrix of the calls within the component, or nil
	known     []float64
	counts    [][]float64 // counts[i][k] is the count of state k of function i
	exact     [][]uint64
}

type solver struct {
	s       *System
	c       *Solution
	calls   []float64 // calls added so far, by callee
	whole   []bool    // whether the calls are integers; the field exact contains these integers
	exact   []uint64
	errors  []float64 // bounds on the errors of the calls, by callee
	numbers []int32   // by function: its index in the component, or -1
}

// Solve computes the counts.
func (s *System) Solve() (*Solution, error) {
	n := len(s.functions)
	v := &solver{s: s, calls: make([]float64, n), whole: make([]bool, n), exact: make([]uint64, n), errors: make([]float64, n), numbers: make([]int32, n)}
	v.c = &Solution{
		Program: s.program, Visits: make([]float64, len(s.program.Blocks)), Invocations: make([]float64, n),
		Whole: make([]bool, n), Exact: make([]uint64, len(s.program.Blocks)), Invoked: make([]uint64, n),
	}
	for i := range v.numbers {
		v.numbers[i], v.whole[i], v.c.Whole[i] = -1, true, true
	}
	components, err := s.components()
	if err != nil {
		return nil, err
	}
	for _, list := range components {
		if err := v.component(list); err != nil {
			return nil, err
		}
	}
	return v.c, nil
}

// components returns the reachable functions, grouped by strongly connected components of the call
// graph, with callers first.
func (s *System) components() ([][]int32, error) {
	return connected(len(s.functions), s.isEntered, func(f int32) ([]call, error) {
		if g := s.prepare(int(f)); g.err != nil {
			return nil, g.err
		}
		return s.functions[f].calls, nil
	})
}

// isEntered reports whether a function has invocations that do not come from direct calls.
func (s *System) isEntered(n int) bool {
	f := &s.program.Functions[n]
	if f.Blocks == 0 {
		return false
	}
	if s.entered[n] > 0 {
		return true
	}
	return slices.ContainsFunc(s.resumed[f.First:f.First+f.Blocks], isPositive)
}

// multiply returns n multiplied by the fraction h.
func (h share) multiply(n float64) float64 {
	if h.part == h.whole {
		return n
	}
	return n * float64(h.part) / float64(h.whole)
}

// multiplyInteger multiplies an integer by the fraction h, and returns the quotient and the
// remainder of the division by h.whole.
func (h share) multiplyInteger(n uint64) (q, rest uint64) {
	if h.part == h.whole {
		return n, 0
	}
	hi, lo := bits.Mul64(n, h.part)
	if hi >= h.whole {
		return 1<<64 - 1, 1
	}
	return bits.Div64(hi, lo, h.whole)
}

// component solves the functions of a component. All components that call this component must have
// been solved.
func (v *solver) component(list []int32) error {
	k := &component{functions: list}
	for i, f := range list {
		v.numbers[f] = int32(i)
	}
	for _, f := range list {
		for _, c := range v.s.functions[f].calls {
			k.self = k.self || v.numbers[c.callee] >= 0
		}
	}
	entries := make([]float64, len(list))
	for i, f := range list {
		entries[i] = float64(v.s.entered[f]) + v.calls[f]
	}
	if k.self {
		for _, f := range list {
			if r := v.s.functions[f].resumed; r != nil {
				v.addCalls(f, r, entries)
			}
		}
		if err := v.factorCalls(k, entries, v.s.recordedInvocations(list)); err != nil {
			return err
		}
		k.solve(entries)
	}
	k.counts, k.exact = make([][]float64, len(list)), make([][]uint64, len(list))
	for i, f := range list {
		k.counts[i] = v.s.functions[f].counts(entries[i])
	}
	whole := v.refine(k)
	if !whole {
		v.boundErrors(k)
	}
	v.addResults(k, whole)
	for _, f := range list {
		v.numbers[f] = -1
	}
	return nil
}

func (f *solvedFunction) counts(invocations float64) []float64 {
	list := make([]float64, len(f.visits))
	for i, per := range f.visits {
		list[i] = per * invocations
	}
	for i := range f.resumed {
		list[i] += f.resumed[i]
	}
	return list
}

// addCalls adds the calls of a function within its component to the entries of the callees.
func (v *solver) addCalls(f int32, counts, entries []float64) {
	for _, c := range v.s.functions[f].calls {
		if to := v.numbers[c.callee]; to >= 0 {
			entries[to] += c.made.multiply(counts[c.state])
		}
	}
}

// factorCalls factorises the matrix of calls within a component. The slice recorded contains the
// number of invocations of each function in the recorded run, or is nil.
func (v *solver) factorCalls(k *component, entries, recorded []float64) error {
	n := len(k.functions)
	dense := make([]float64, n)
	var touched []int32
	ways, diagonal := make([][]weightedEdge, n), make([]float64, n)
	for i, f := range k.functions {
		touched = touched[:0]
		for _, c := range v.s.functions[f].calls {
			if to := v.numbers[c.callee]; to >= 0 {
				if dense[to] == 0 {
					touched = append(touched, to)
				}
				dense[to] += c.made.multiply(v.s.functions[f].visits[c.state])
			}
		}
		slices.Sort(touched)
		diagonal[i] = 1
		for _, to := range slices.Compact(touched) {
			if int(to) == i {
				diagonal[i] -= dense[to]
			} else if dense[to] > 0 {
				ways[i] = append(ways[i], weightedEdge{to, dense[to]})
			}
			dense[to] = 0
		}
	}
	if k.known = recorded; recorded != nil && k.factorKnown(ways, entries) {
		return nil
	}
	k.known = nil
	var bad int
	if k.factor, bad = eliminate(cloneWays(ways), nil, diagonal); bad < 0 && slices.Min(k.factor.pivots) > v.s.minPivot(k.functions) {
		return nil
	}
	if bad >= 0 && diagonal[bad] < surelyNegative {
		return v.s.divergenceError(k.functions[bad])
	}
	// Floating point is too imprecise to decide whether the recursion diverges.
	solved := bad < 0
	list, diverging := v.s.rationalInvocations(k.functions, entries)
	switch {
	case diverging >= 0:
		return v.s.divergenceError(diverging)
	case list != nil:
		if k.known = list; k.factorKnown(ways, entries) {
			return nil
		}
	case solved:
		k.known = nil
		return nil
	}
	f := &v.s.program.Functions[k.functions[0]]
	return &Error{
		Function: f.Name, Block: -1, Place: f.Place, Why: "the average recursion depth is too large for floating-point numbers",
		Do: "use rational numbers",
	}
}

// factorKnown factorises the matrix of calls within a component whose solution is known. The
// elimination contains no subtraction.
func (k *component) factorKnown(ways [][]weightedEdge, entries []float64) bool {
	var bad int
	k.factor, bad = eliminate(transposed(ways, k.known), slices.Clone(entries), nil)
	return bad < 0
}

func cloneWays(ways [][]weightedEdge) [][]weightedEdge {
	list := make([][]weightedEdge, len(ways))
	for i := range ways {
		list[i] = slices.Clone(ways[i])
	}
	return list
}

// surelyNegative is the limit below which a negative pivot cannot be a rounding error.
const surelyNegative = -1e-3

// minPivot returns the smallest pivot for which floating-point arithmetic is precise enough. A
// smaller pivot may be a rounding error, or may have lost digits that rational numbers would keep.
func (s *System) minPivot(functions []int32) float64 {
	const sure, precise, fewBlocks = 1e-9, 1e-3, 500
	blocks := 0
	for _, f := range functions {
		blocks += len(s.functions[f].blocks)
	}
	if blocks <= fewBlocks {
		return precise
	}
	return sure
}

// divergenceError returns the error for an infinite recursion.
func (s *System) divergenceError(n int32) *Error {
	f := &s.program.Functions[n]
	return &Error{
		Function: f.Name, Block: -1, Place: f.Place,
		Why: "the recursion never ends: on average, each call causes one or more recursive calls",
		Do:  "make the branches that lead to recursive calls less likely",
	}
}

// recordedInvocations returns the number of invocations of each function in the recorded run, or
// nil if the weights do not come from a recorded run.
func (s *System) recordedInvocations(functions []int32) []float64 {
	if s.known == nil {
		return nil
	}
	list := make([]float64, len(functions))
	for i, f := range functions {
		if s.known[f] == 0 {
			return nil
		}
		list[i] = float64(s.known[f])
	}
	return list
}

// transposed converts calls per invocation to total calls, and reverses their direction.
func transposed(ways [][]weightedEdge, invocations []float64) [][]weightedEdge {
	back := make([][]weightedEdge, len(ways))
	for i, list := range ways {
		for _, w := range list {
			back[w.to] = append(back[w.to], weightedEdge{int32(i), w.weight * invocations[i]})
		}
	}
	return back
}

// solve converts the entries from outside a component to invocations.
func (k *component) solve(entries []float64) {
	switch {
	case k.factor == nil:
	case k.known == nil:
		k.factor.solve(entries)
	default:
		k.factor.solveTransposed(entries)
		for i := range entries {
			entries[i] *= k.known[i]
		}
	}
}

// correctCounts adds a correction to the counts of a component. The slice residuals contains the
// residuals of the states of each function.
func (v *solver) correctCounts(k *component, residuals [][]float64) {
	entries := make([]float64, len(k.functions))
	for i, f := range k.functions {
		v.s.functions[f].solveVisits(residuals[i])
		if k.self {
			v.addCalls(f, residuals[i], entries)
		}
	}
	if !k.self {
		return
	}
	k.solve(entries)
	for i, f := range k.functions {
		for state, per := range v.s.functions[f].visits {
			residuals[i][state] += per * entries[i]
		}
	}
}

// maxCorrections limits the number of refinement steps. Two steps are usually sufficient.
const maxCorrections = 8

// refine rounds the counts of a component to integers, and corrects them by iterative refinement.
// It reports whether the integers satisfy the equations exactly.
func (v *solver) refine(k *component) bool {
	for i, f := range k.functions {
		if !v.whole[f] {
			return false
		}
		k.exact[i] = make([]uint64, len(k.counts[i]))
		for state, n := range k.counts[i] {
			if !(n < maxWhole) {
				return false
			}
			k.exact[i][state] = uint64(math.RoundToEven(n))
		}
	}
	for range maxCorrections {
		residuals, zero := v.residuals(k)
		if zero {
			return true
		}
		v.correctCounts(k, residuals)
		changed := false
		for i := range residuals {
			for state, d := range residuals[i] {
				step := math.RoundToEven(d)
				if !(math.Abs(step) < maxWhole) {
					return false
				}
				k.counts[i][state] = max(float64(k.exact[i][state])+d, 0)
				if step < 0 {
					step = -min(-step, float64(k.exact[i][state]))
				}
				k.exact[i][state] += uint64(int64(step))
				changed = changed || step != 0
			}
		}
		if !changed {
			return false
		}
	}
	return false
}

// residuals returns the residuals of a component's equations for integer counts. allZero reports
// whether all residuals are 0.
func (v *solver) residuals(k *component) (list [][]float64, allZero bool) {
	list, allZero = make([][]float64, len(k.functions)), true
	calls, broken := make([]uint64, len(k.functions)), false
	for i, f := range k.functions {
		calls[i] = v.exact[f]
	}
	for i, f := range k.functions {
		for _, c := range v.s.functions[f].calls {
			if to := v.numbers[c.callee]; to >= 0 {
				n, rest := c.made.multiplyInteger(k.exact[i][c.state])
				calls[to] += n
				broken = broken || rest > 0
			}
		}
	}
	for i, f := range k.functions {
		r := residual{s: v.s, function: f, calls: calls[i], counts: k.exact[i]}
		list[i] = r.compute()
		allZero = allZero && !broken && r.isZero()
	}
	return list, allZero
}

// residual computes the residuals of a function.
type residual struct {
	s        *System
	function int32
	calls    uint64
	counts   []uint64 // count of each state

	whole []uint64  // by state: the integer part of the residual; negative numbers wrap around
	rests []float64 // by state: the sum of the remainders of divisions; nil if there are no remainders
}

func (r *residual) compute() []float64 {
	f := &r.s.functions[r.function]
	r.whole = make([]uint64, len(r.counts))
	r.whole[f.entry] = r.s.entered[r.function] + r.calls
	for i, count := range r.counts {
		r.whole[i] += r.s.resumed[f.blocks[i]] - count
		total := f.totals[i]
		for _, e := range f.edges[f.edgeAt[i]:f.edgeAt[i+1]] {
			switch {
			case e.weight == total:
				r.whole[e.to] += count
			case count == total:
				r.whole[e.to] += e.weight
			default:
				hi, lo := bits.Mul64(count, e.weight)
				q, rest := bits.Div64(hi, lo, total)
				r.whole[e.to] += q
				if rest != 0 {
					r.addRest(e.to, rest, total)
				}
			}
		}
	}
	list := make([]float64, len(r.counts))
	for i := range list {
		list[i] = float64(int64(r.whole[i]))
		if r.rests != nil {
			list[i] += r.rests[i]
		}
	}
	return list
}

func (r *residual) addRest(state int32, part, of uint64) {
	if r.rests == nil {
		r.rests = make([]float64, len(r.counts))
	}
	r.rests[state] += float64(part) / float64(of)
}

// isZero reports whether all residuals are 0. If the sums of the remainders seem to be integers, it
// adds up the remainders as exact fractions.
func (r *residual) isZero() bool {
	for i, n := range r.whole {
		if r.rests == nil && n != 0 || r.rests != nil && math.Abs(float64(int64(n))+r.rests[i]) > 1e-6 {
			return false
		}
	}
	if r.rests == nil {
		return true
	}
	f := &r.s.functions[r.function]
	sums := make([]*big.Rat, len(r.whole))
	add := func(state int32, count, part, of uint64) {
		if hi, lo := bits.Mul64(count, part); hi < of {
			if _, rest := bits.Div64(hi, lo, of); rest != 0 {
				if sums[state] == nil {
					sums[state] = new(big.Rat).SetInt64(int64(r.whole[state]))
				}
				sums[state].Add(sums[state], fraction(rest, of))
			}
		}
	}
	for i, count := range r.counts {
		for _, e := range f.edges[f.edgeAt[i]:f.edgeAt[i+1]] {
			add(e.to, count, e.weight, f.totals[i])
		}
	}
	for i, sum := range sums {
		if sum == nil && r.whole[i] != 0 || sum != nil && sum.Sign() != 0 {
			return false
		}
	}
	return true
}

func fraction(part, of uint64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(part), new(big.Int).SetUint64(of))
}

// boundErrors computes a bound on the errors of the counts of a component. It solves the system
// with the residuals and their rounding errors as entries.
func (v *solver) boundErrors(k *component) {
	const unit = 1.0 / (1 << 53)
	list := make([][]float64, len(k.functions))
	entries := make([]float64, len(k.functions))
	for i, f := range k.functions {
		entries[i] = float64(v.s.entered[f]) + v.calls[f]
	}
	for i, f := range k.functions {
		v.addCalls(f, k.counts[i], entries)
	}
	for i, f := range k.functions {
		g := &v.s.functions[f]
		come, terms := make([]float64, len(g.blocks)), make([]float64, len(g.blocks))
		come[g.entry] = entries[i]
		terms[g.entry] = float64(8 + len(k.functions))
		for state, n := range k.counts[i] {
			come[state] += float64(v.s.resumed[g.blocks[state]])
			each := n / float64(g.totals[state])
			for _, e := range g.edges[g.edgeAt[state]:g.edgeAt[state+1]] {
				come[e.to] += each * float64(e.weight)
				terms[e.to]++
			}
		}
		for state, n := range k.counts[i] {
			come[state] = math.Abs(come[state]-n) + (terms[state]+4)*unit*n
		}
		come[g.entry] += v.errors[f]
		list[i] = come
	}
	v.correctCounts(k, list)
	for i, f := range k.functions {
		for state, e := range list[i] {
			if n := k.counts[i][state]; n > 0 {
				v.c.Error = max(v.c.Error, e/n)
			}
		}
		for _, c := range v.s.functions[f].calls {
			v.errors[c.callee] += c.made.multiply(list[i][c.state])
		}
	}
}

// addResults adds the counts of a component to the solution, and adds the component's calls to the
// entries of other components.
func (v *solver) addResults(k *component, whole bool) {
	c := v.c
	for i, f := range k.functions {
		g := &v.s.functions[f]
		c.Whole[f] = whole
		for state, b := range g.blocks {
			c.Visits[b] = k.counts[i][state]
			if whole {
				c.Exact[b] = k.exact[i][state]
				c.Visits[b] = float64(c.Exact[b])
			}
		}
		for _, call := range g.calls {
			b := g.blocks[call.state]
			v.calls[call.callee] += call.made.multiply(c.Visits[b])
			n, rest := call.made.multiplyInteger(c.Exact[b])
			sum, carry := bits.Add64(v.exact[call.callee], n, 0)
			v.exact[call.callee] = sum
			v.whole[call.callee] = v.whole[call.callee] && whole && rest == 0 && carry == 0
		}
	}
	for _, f := range k.functions {
		c.Invocations[f] = float64(v.s.entered[f]) + v.calls[f]
		if whole {
			c.Invoked[f] = v.s.entered[f] + v.exact[f]
			c.Invocations[f] = float64(c.Invoked[f])
		}
	}
}
