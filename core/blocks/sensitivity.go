package blocks

import (
	"cmp"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// Influence describes how the probability of an edge affects a total.
type Influence struct {
	Block int
	Way   int     // index of the successor; the edge that leaves the function comes after all successors
	Share float64 // the branch probability
	// Slope is the derivative of the total with respect to Share. The other probabilities of the
	// block change in proportion.
	Slope float64
	// Weight is the relative change of the total, to first order, if the odds of the edge change by
	// the factor e. If the edge continues a loop, its odds determine the loop's trip count.
	Weight float64
}

// Sensitivity returns the influence of each branch on the total cost of the program, in descending
// order of Weight. The parameter cost contains the cost of one execution of each block.
//
// The derivatives come from the transposed system (the adjoint method). The solution of the
// transposed system is, for each block, the cost from a visit of the block to the end of the
// invocation, including calls. The adjoint method takes as long as one computation of the counts.
// Finite differences would require one computation for each branch.
func (s *System) Sensitivity(c *Solution, cost []float64) (list []Influence, total float64, err error) {
	ahead, err := s.costAhead(c, cost)
	if err != nil {
		return nil, 0, err
	}
	for b, n := range c.Visits {
		total += n * cost[b]
	}
	for b, n := range c.Visits {
		f := s.program.Blocks[b].Function
		if n == 0 || !s.hasSeveralSuccessors(b) && (s.leaves[b] == 0 || len(s.weights[b]) == 0) || int64(f) >= int64(len(s.functions)) {
			continue
		}
		list = s.influences(list, b, n, ahead, total)
	}
	slices.SortStableFunc(list, func(x, y Influence) int { return cmp.Compare(math.Abs(y.Weight), math.Abs(x.Weight)) })
	return list, total, nil
}

// influences appends the influences of the edges of block b.
func (s *System) influences(list []Influence, b int, visits float64, ahead []float64, total float64) []Influence {
	next := s.program.Blocks[b].Successors
	weights, values := make([]float64, len(next)+1), make([]float64, len(next)+1)
	for i := range next {
		weights[i], values[i] = float64(s.weight(uint32(b), i)), ahead[next[i]]
	}
	weights[len(next)] = float64(s.leaves[b])
	// To sum over all edges except one edge, add the sum over the earlier edges and the sum over
	// the later edges. A subtraction from the total would lose digits.
	behind, valueBehind := make([]float64, len(weights)+1), make([]float64, len(weights)+1)
	for i := len(next); i >= 0; i-- {
		behind[i], valueBehind[i] = behind[i+1]+weights[i], valueBehind[i+1]+weights[i]*values[i]
	}
	before, valueBefore := 0.0, 0.0
	for i, w := range weights {
		others := before + behind[i+1]
		gain := values[i]*others - (valueBefore + valueBehind[i+1])
		before, valueBefore = before+w, valueBefore+w*values[i]
		if w == 0 || others == 0 {
			continue // the other edges are never taken, so their proportions are undefined
		}
		in := Influence{Block: b, Way: i, Share: w / (w + others), Slope: visits * gain / others}
		if total > 0 {
			in.Weight = in.Slope * in.Share * (others / (w + others)) / total
		}
		list = append(list, in)
	}
	return list
}

// costAhead returns, for each block, the cost from a visit of the block to the end of the
// invocation.
func (s *System) costAhead(c *Solution, cost []float64) ([]float64, error) {
	components, err := s.components()
	if err != nil {
		return nil, err
	}
	v := &solver{s: s, c: c, calls: make([]float64, len(s.functions)), numbers: make([]int32, len(s.functions))}
	for i := range v.numbers {
		v.numbers[i] = -1
	}
	v.callsBetween(components)
	each := make([]float64, len(s.functions)) // the cost of an invocation
	ahead := make([]float64, len(s.program.Blocks))
	for i := len(components) - 1; i >= 0; i-- {
		if err := v.costOf(components[i], cost, each); err != nil {
			return nil, err
		}
		for _, n := range components[i] {
			f := &s.functions[n]
			z := f.costs(cost)
			for _, call := range f.calls {
				z[call.state] += call.made.multiply(each[call.callee])
			}
			for state := range z {
				z[state] *= float64(f.totals[state])
			}
			f.factor.solveTransposed(z)
			for state, b := range f.blocks {
				ahead[b] = z[state]
			}
		}
	}
	return ahead, nil
}

// callsBetween counts, for each function, the calls from functions in other components.
func (v *solver) callsBetween(components [][]int32) {
	of := make([]int32, len(v.calls))
	for i, members := range components {
		for _, n := range members {
			of[n] = int32(i)
		}
	}
	for _, members := range components {
		for _, n := range members {
			f := &v.s.functions[n]
			for _, call := range f.calls {
				if of[call.callee] != of[n] {
					v.calls[call.callee] += call.made.multiply(v.c.Visits[f.blocks[call.state]])
				}
			}
		}
	}
}

// costs returns the cost of each state's block.
func (f *solvedFunction) costs(cost []float64) []float64 {
	z := make([]float64, len(f.blocks))
	for state, b := range f.blocks {
		z[state] = cost[b]
	}
	return z
}

// costOf computes the cost of an invocation of each function in a component. The costs of callees
// outside the component must be known.
func (v *solver) costOf(members []int32, cost, each []float64) error {
	for i, n := range members {
		v.numbers[n] = int32(i)
	}
	k := &component{functions: members}
	own := make([]float64, len(members))
	for i, n := range members {
		f := &v.s.functions[n]
		for state, per := range f.visits {
			own[i] += per * cost[f.blocks[state]]
		}
		for _, c := range f.calls {
			if v.numbers[c.callee] >= 0 {
				k.self = true
			} else {
				own[i] += f.visits[c.state] * c.made.multiply(each[c.callee])
			}
		}
	}
	if k.self {
		entries, known := make([]float64, len(members)), make([]float64, len(members))
		for i, n := range members {
			entries[i], known[i] = float64(v.s.entered[n])+v.calls[n], v.c.Invocations[n]
		}
		for _, n := range members {
			if r := v.s.functions[n].resumed; r != nil {
				v.addCalls(n, r, entries)
			}
		}
		if err := v.factorCalls(k, entries, known); err != nil {
			return err
		}
		k.solveTransposed(own)
	}
	for i, n := range members {
		each[n] = own[i]
		v.numbers[n] = -1
	}
	return nil
}

// solveTransposed adds the costs of calls within the component to the functions' own costs.
func (k *component) solveTransposed(own []float64) {
	if k.known == nil {
		k.factor.solveTransposed(own)
		return
	}
	for i := range own {
		own[i] *= k.known[i]
	}
	k.factor.solve(own)
}

// Costs returns the amount that one execution of each block adds to a counter. The result can be
// passed to [System.Sensitivity].
func (w *Work) Costs(counter profile.Counter) []float64 {
	list := make([]float64, len(w.once))
	for b := range w.once {
		list[b] = float64(w.once[b][counter])
	}
	return list
}
