package blocks

import "slices"

// way is a weighted edge to another state.
type way struct {
	to     int32
	weight float64
}

// factor is a system of n states after elimination, from the highest state to the lowest. It solves
//
//	y_j · s_j = source_j + Σ over i ≠ j of y_i w_ij
//
// and its transpose. For each state k, it stores the edges to lower states, divided by the pivot of
// k, and the edges from lower states.
type factor struct {
	pivots []float64
	outAt  []int32 // the edges [outAt[i], outAt[i+1]) belong to the i-th state, counted from the highest
	out    []way   // weights divided by the pivot
	inAt   []int32
	in     []way // edges from lower states: source state and weight
}

// eliminate factorises a system of states. ways contains the edges of each state, sorted by target,
// without edges from a state to itself. leaves contains the weights of leaving the system. The
// pivot of a state is the sum of its weight of leaving and the weights of its edges to lower
// states, so nothing is subtracted. If diagonal is not nil, it contains the initial pivots, and
// elimination subtracts products from them. bad is a state whose pivot is not positive, or -1.
// eliminate modifies its arguments.
func eliminate(ways [][]way, leaves, diagonal []float64) (f *factor, bad int) {
	n := len(ways)
	f = &factor{pivots: make([]float64, n), outAt: make([]int32, n+1), inAt: make([]int32, n+1)}
	from := sources(ways)
	total := 0
	for _, list := range ways {
		total += len(list)
	}
	f.out, f.in = make([]way, 0, total), make([]way, 0, total)
	for k := n - 1; k >= 0; k-- {
		pivot := 0.0
		if diagonal != nil {
			pivot = diagonal[k]
		} else {
			pivot = leaves[k]
			for _, w := range ways[k] {
				pivot += w.weight
			}
		}
		if !(pivot > 0) {
			return nil, k
		}
		f.pivots[k] = pivot
		first := len(f.out)
		for _, w := range ways[k] {
			f.out = append(f.out, way{w.to, w.weight / pivot})
		}
		mine := f.out[first:]
		for _, i := range from[k] {
			if int(i) > k {
				continue
			}
			last := len(ways[i]) - 1 // the last edge leads to k, the highest remaining state
			w := ways[i][last].weight
			ways[i] = ways[i][:last]
			f.in = append(f.in, way{i, w})
			if leaves != nil {
				leaves[i] += w * (leaves[k] / pivot)
			}
			for _, o := range mine {
				if o.to != i {
					ways[i] = addWay(ways[i], o.to, w*o.weight, i, from)
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
func sources(ways [][]way) [][]int32 {
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

// addWay adds weight to an edge between two states. It creates the edge if it is missing.
func addWay(list []way, to int32, weight float64, state int32, from [][]int32) []way {
	at, found := slices.BinarySearchFunc(list, to, func(w way, to int32) int { return int(w.to) - int(to) })
	if found {
		list[at].weight += weight
		return list
	}
	from[to] = append(from[to], state)
	return slices.Insert(list, at, way{to, weight})
}

// lists returns the edges from state k to lower states, and the edges from lower states to k.
func (f *factor) lists(k int) (out, in []way) {
	at := len(f.pivots) - 1 - k
	return f.out[f.outAt[at]:f.outAt[at+1]], f.in[f.inAt[at]:f.inAt[at+1]]
}

// solve replaces the sources in y by the solution of the system.
func (f *factor) solve(y []float64) {
	for k := len(y) - 1; k >= 0; k-- {
		if y[k] == 0 {
			continue
		}
		out, _ := f.lists(k)
		for _, o := range out {
			y[o.to] += y[k] * o.weight
		}
	}
	for k := range y {
		_, in := f.lists(k)
		sum := y[k]
		for _, i := range in {
			sum += y[i.to] * i.weight
		}
		y[k] = sum / f.pivots[k]
	}
}

// solveTransposed replaces the costs in z by the solution of z_i · s_i = cost_i + Σ over j ≠ i of
// w_ij z_j.
func (f *factor) solveTransposed(z []float64) {
	for k := len(z) - 1; k >= 0; k-- {
		if z[k] == 0 {
			continue
		}
		_, in := f.lists(k)
		for _, i := range in {
			z[i.to] += i.weight * (z[k] / f.pivots[k])
		}
	}
	for k := range z {
		out, _ := f.lists(k)
		sum := z[k] / f.pivots[k]
		for _, o := range out {
			sum += o.weight * z[o.to]
		}
		z[k] = sum
	}
}
