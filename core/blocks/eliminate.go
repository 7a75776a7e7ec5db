package blocks

import "slices"

// weightedEdge is an edge to another state.
type weightedEdge struct {
	to     int32
	weight float64
}

// factorization is a system of n states after the elimination of all states, from the highest to
// the lowest. It solves the following system, and the transposed system:
//
//	y_j · s_j = source_j + Σ over i ≠ j of y_i w_ij
//
// For each state k, it stores the edges to lower states, divided by the pivot of k, and the edges
// from lower states.
type factorization struct {
	pivots []float64
	outAt  []int32        // the edges [outAt[i], outAt[i+1]) belong to the i-th state, counted from the highest
	out    []weightedEdge // weights divided by the pivot
	inAt   []int32
	in     []weightedEdge // edges from lower states: source state and weight
}

// eliminate factorises a system of states. The slice "edges" contains the edges of each state,
// sorted by target, without edges from a state to itself. exitWeights contains, for each state, the
// weight for leaving the system. The pivot of a state is a sum without subtractions: the state's
// exit weight, plus the weights of its edges to lower states. If diagonal is not nil, it contains
// the initial pivots, and elimination subtracts products from them. failed is the number of a state
// whose pivot is not positive, or -1. eliminate modifies its arguments.
func eliminate(edges [][]weightedEdge, exitWeights, diagonal []float64) (f *factorization, failed int) {
	n := len(edges)
	f = &factorization{pivots: make([]float64, n), outAt: make([]int32, n+1), inAt: make([]int32, n+1)}
	from := sources(edges)
	total := 0
	for _, list := range edges {
		total += len(list)
	}
	f.out, f.in = make([]weightedEdge, 0, total), make([]weightedEdge, 0, total)
	for k := n - 1; k >= 0; k-- {
		pivot := 0.0
		if diagonal != nil {
			pivot = diagonal[k]
		} else {
			pivot = exitWeights[k]
			for _, w := range edges[k] {
				pivot += w.weight
			}
		}
		if !(pivot > 0) {
			return nil, k
		}
		f.pivots[k] = pivot
		first := len(f.out)
		for _, w := range edges[k] {
			f.out = append(f.out, weightedEdge{w.to, w.weight / pivot})
		}
		mine := f.out[first:]
		for _, i := range from[k] {
			if int(i) > k {
				continue
			}
			last := len(edges[i]) - 1 // the last edge leads to state k, the highest remaining state
			w := edges[i][last].weight
			edges[i] = edges[i][:last]
			f.in = append(f.in, weightedEdge{i, w})
			if exitWeights != nil {
				exitWeights[i] += w * (exitWeights[k] / pivot)
			}
			for _, o := range mine {
				if o.to != i {
					edges[i] = addEdge(edges[i], o.to, w*o.weight, i, from)
				} else if diagonal != nil {
					diagonal[i] -= w * o.weight
				}
			}
		}
		f.outAt[n-k], f.inAt[n-k] = int32(len(f.out)), int32(len(f.in))
	}
	return f, -1
}

// sources returns, for each state, the states with an edge to it.
func sources(ways [][]weightedEdge) [][]int32 {
	counts := make([]int32, len(ways)+1)
	total := 0
	for _, list := range ways {
		for _, w := range list {
			counts[w.to]++
		}
		total += len(list)
	}
	all := make([]int32, total)
	from := make([][]int32, len(ways))
	at := int32(0)
	for j := range from {
		from[j] = all[at : at : at+counts[j]]
		at += counts[j]
	}
	for i, list := range ways {
		for _, w := range list {
			from[w.to] = append(from[w.to], int32(i))
		}
	}
	return from
}

// addEdge adds weight to an edge between two states. It creates the edge if it is missing.
func addEdge(list []weightedEdge, to int32, weight float64, state int32, from [][]int32) []weightedEdge {
	at, found := slices.BinarySearchFunc(list, to, func(w weightedEdge, to int32) int { return int(w.to) - int(to) })
	if found {
		list[at].weight += weight
		return list
	}
	from[to] = append(from[to], state)
	return slices.Insert(list, at, weightedEdge{to, weight})
}

// edgesOf returns the edges from state k to lower states, and the edges from lower states to state
// k.
func (f *factorization) edgesOf(k int) (out, in []weightedEdge) {
	at := len(f.pivots) - 1 - k
	return f.out[f.outAt[at]:f.outAt[at+1]], f.in[f.inAt[at]:f.inAt[at+1]]
}

// solve replaces the sources in y by the solution of the system.
func (f *factorization) solve(y []float64) {
	for k := len(y) - 1; k >= 0; k-- {
		if y[k] == 0 {
			continue
		}
		out, _ := f.edgesOf(k)
		for _, o := range out {
			y[o.to] += y[k] * o.weight
		}
	}
	for k := range y {
		_, in := f.edgesOf(k)
		sum := y[k]
		for _, i := range in {
			sum += y[i.to] * i.weight
		}
		y[k] = sum / f.pivots[k]
	}
}

// solveTransposed replaces the costs in z by the solution of z_i · s_i = cost_i + Σ over j ≠ i of
// w_ij z_j.
func (f *factorization) solveTransposed(z []float64) {
	for k := len(z) - 1; k >= 0; k-- {
		if z[k] == 0 {
			continue
		}
		_, in := f.edgesOf(k)
		for _, i := range in {
			z[i.to] += i.weight * (z[k] / f.pivots[k])
		}
	}
	for k := range z {
		out, _ := f.edgesOf(k)
		sum := z[k] / f.pivots[k]
		for _, o := range out {
			sum += o.weight * z[o.to]
		}
		z[k] = sum
	}
}
