package blocks

import (
	"math/big"
	"slices"
	"strconv"
)

// maxBits limits the size of the numbers in a rational solution.
const maxBits = 1 << 22

func (h share) ofRational(n *big.Rat) *big.Rat {
	if h.part == h.whole {
		return n
	}
	return new(big.Rat).Mul(n, fraction(h.part, h.whole))
}

// rationalFunction is the solution for one function of a component, in rational numbers.
type rationalFunction struct {
	visits, resumed []*big.Rat         // by state; the field resumed may be nil
	calls           map[int32]*big.Rat // calls per invocation, by the callee's index in the component
	resumedCalls    map[int32]*big.Rat // calls caused by executions that entered a block without following an edge
}

// rationalComponent computes the visits of functions per invocation.
func (s *System) rationalComponent(members []int32) ([]rationalFunction, error) {
	list := make([]rationalFunction, len(members))
	for i, n := range members {
		f := &s.functions[n]
		r := &list[i]
		r.visits = rationals(len(f.blocks))
		r.visits[f.entry].SetInt64(1)
		for state, b := range f.blocks {
			if s.resumed[b] > 0 {
				if r.resumed == nil {
					r.resumed = rationals(len(f.blocks))
				}
				r.resumed[state].SetFrac(new(big.Int).SetUint64(s.resumed[b]), big.NewInt(1))
			}
		}
		if !s.eliminateRational(f, r.visits, r.resumed) {
			return nil, &Error{
				Function: s.program.Functions[n].Name, Block: -1, Place: s.program.Functions[n].Place,
				Why: "the exact counts are fractions with more than " + strconv.Itoa(maxBits) + " bits", Do: "use floating point, or choose simpler weights",
			}
		}
		r.calls, r.resumedCalls = s.rationalCalls(f, members, r.visits), s.rationalCalls(f, members, r.resumed)
	}
	return list, nil
}

func rationals(n int) []*big.Rat {
	list := make([]*big.Rat, n)
	for i := range list {
		list[i] = new(big.Rat)
	}
	return list
}

// rationalCalls adds up the calls to each function of the component. The keys of the result are the
// callees' indices.
func (s *System) rationalCalls(f *solvedFunction, members []int32, visits []*big.Rat) map[int32]*big.Rat {
	calls := map[int32]*big.Rat{}
	for _, c := range f.calls {
		to := int32(slices.Index(members, c.callee))
		if to < 0 || visits == nil {
			continue
		}
		if calls[to] == nil {
			calls[to] = new(big.Rat)
		}
		calls[to].Add(calls[to], c.made.ofRational(visits[c.state]))
	}
	return calls
}

// eliminateRational solves the system for several right-hand sides: it replaces the elements of
// each list by the visits of the states. It performs the same elimination as the function
// eliminate.
func (s *System) eliminateRational(f *solvedFunction, lists ...[]*big.Rat) bool {
	n := len(f.blocks)
	out, leaves := make([]map[int32]*big.Rat, n), make([]*big.Rat, n)
	from := make([]map[int32]bool, n)
	for i := range out {
		out[i], from[i] = map[int32]*big.Rat{}, map[int32]bool{}
	}
	for i, b := range f.blocks {
		leaves[i] = fraction(s.leaves[b], 1)
		if f.edgeAt[i] == f.edgeAt[i+1] && s.leaves[b] == 0 {
			leaves[i].SetInt64(1)
		}
		for _, e := range f.edges[f.edgeAt[i]:f.edgeAt[i+1]] {
			if e.to != int32(i) {
				out[i][e.to] = fraction(e.weight, 1)
				from[e.to][int32(i)] = true
			}
		}
	}
	pivots, t := make([]*big.Rat, n), new(big.Rat)
	in := make([]map[int32]*big.Rat, n)
	for k := n - 1; k >= 0; k-- {
		pivot := new(big.Rat).Set(leaves[k])
		for _, w := range out[k] {
			pivot.Add(pivot, w)
		}
		if pivot.Num().BitLen() > maxBits || pivot.Denom().BitLen() > maxBits {
			return false
		}
		pivots[k], in[k] = pivot, map[int32]*big.Rat{}
		for j, w := range out[k] {
			w.Quo(w, pivot)
			for _, list := range lists {
				if list != nil && list[k].Sign() > 0 {
					list[j].Add(list[j], t.Mul(list[k], w))
				}
			}
		}
		for i := range from[k] {
			if int(i) > k {
				continue
			}
			w := out[i][int32(k)]
			delete(out[i], int32(k))
			in[k][i] = w
			leaves[i].Add(leaves[i], t.Quo(t.Mul(w, leaves[k]), pivot))
			for j, r := range out[k] {
				if j == i {
					continue
				}
				if out[i][j] == nil {
					out[i][j] = new(big.Rat)
					from[j][i] = true
				}
				out[i][j].Add(out[i][j], t.Mul(w, r))
			}
		}
	}
	for _, y := range lists {
		if y == nil {
			continue
		}
		for k := range y {
			for i, w := range in[k] {
				y[k].Add(y[k], t.Mul(y[i], w))
			}
			y[k].Quo(y[k], pivots[k])
		}
		for k := range y {
			y[k].Mul(y[k], fraction(f.totals[k], 1))
		}
	}
	return true
}

// callMatrix returns the identity matrix minus the matrix of calls per invocation. Each row is a
// caller, and each column is a callee.
func callMatrix(functions []rationalFunction) [][]*big.Rat {
	m := make([][]*big.Rat, len(functions))
	for i := range m {
		m[i] = rationals(len(functions))
		for j, n := range functions[i].calls {
			m[i][j].Neg(n)
		}
		m[i][i].Add(m[i][i], big.NewRat(1, 1))
	}
	return m
}

// solveDense replaces entries by the solution x of x·m = entries. It returns the number of a row
// whose pivot is not positive, or -1 if there is none. The recursion converges if all pivots are
// positive, because a matrix without positive off-diagonal elements has a nonnegative inverse if
// and only if all its pivots are positive.
func solveDense(m [][]*big.Rat, entries []*big.Rat) int {
	t, r := new(big.Rat), new(big.Rat)
	for k := len(m) - 1; k >= 0; k-- {
		if m[k][k].Sign() <= 0 {
			return k
		}
		for j := range k {
			if m[k][j].Sign() == 0 {
				continue
			}
			r.Quo(m[k][j], m[k][k])
			for i := range k {
				if m[i][k].Sign() != 0 {
					m[i][j].Sub(m[i][j], t.Mul(m[i][k], r))
				}
			}
			entries[j].Sub(entries[j], t.Mul(entries[k], r))
		}
	}
	for k := range m {
		for i := range k {
			entries[k].Sub(entries[k], t.Mul(entries[i], m[i][k]))
		}
		entries[k].Quo(entries[k], m[k][k])
	}
	return -1
}

// maxRational limits the number of blocks of recursive functions that are solved in rational
// numbers. Larger functions would take longer than a few seconds.
const maxRational = 2000

// rationalInvocations computes the invocations of a component's functions in rational numbers, and
// returns them rounded. It returns nil if the numbers have too many bits. diverging is a function
// whose recursion diverges, or -1.
func (s *System) rationalInvocations(members []int32, entries []float64) (list []float64, diverging int32) {
	blocks := 0
	for _, n := range members {
		blocks += len(s.functions[n].blocks)
	}
	if blocks > maxRational {
		return nil, -1
	}
	functions, err := s.rationalComponent(members)
	if err != nil {
		return nil, -1
	}
	exact := rationals(len(members))
	for i, n := range entries {
		exact[i].SetFloat64(n)
	}
	if f := solveDense(callMatrix(functions), exact); f >= 0 {
		return nil, members[f]
	}
	list = make([]float64, len(members))
	for i := range list {
		list[i], _ = exact[i].Float64()
	}
	return list, -1
}
