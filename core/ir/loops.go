package ir

import "slices"

// graph is a control-flow graph. The entry of the graph is vertex 0.
type graph struct {
	successors [][]int32
}

// order returns the reachable vertices in reverse postorder of a depth-first search. It also
// returns the position of each vertex in this order, or -1 for unreachable vertices.
func (g *graph) order() (order, position []int32) {
	n := len(g.successors)
	position = slices.Repeat([]int32{-1}, n)
	next := make([]int32, n) // 1 + the index of the successor to visit next; 0 if the vertex has not been seen yet
	order = make([]int32, 0, n)
	stack := make([]int32, 0, n)
	if n > 0 {
		stack, next[0] = append(stack, 0), 1
	}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		i := next[v] - 1
		if int(i) == len(g.successors[v]) {
			order, stack = append(order, v), stack[:len(stack)-1]
			continue
		}
		next[v]++
		if w := g.successors[v][i]; next[w] == 0 {
			stack, next[w] = append(stack, w), 1
		}
	}
	slices.Reverse(order)
	for i, v := range order {
		position[v] = int32(i)
	}
	return order, position
}

func (g *graph) predecessors() [][]int32 {
	p := make([][]int32, len(g.successors))
	for v, successors := range g.successors {
		for _, w := range successors {
			p[w] = append(p[w], int32(v))
		}
	}
	return p
}

// dominators returns the immediate dominator of each vertex, or -1 for vertex 0 and for unreachable
// vertices. It iterates over the vertices in reverse postorder until nothing changes (Cooper,
// Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001).
func dominators(order, position []int32, predecessors [][]int32) []int32 {
	dominator := slices.Repeat([]int32{-1}, len(position))
	if len(order) == 0 {
		return dominator
	}
	dominator[0] = 0
	for changed := true; changed; {
		changed = false
		for _, v := range order[1:] {
			d := int32(-1)
			for _, p := range predecessors[v] {
				if position[p] < 0 || dominator[p] < 0 {
					continue
				}
				if d < 0 {
					d = p
				} else {
					d = commonDominator(dominator, position, d, p)
				}
			}
			if d != dominator[v] {
				dominator[v], changed = d, true
			}
		}
	}
	dominator[0] = -1
	return dominator
}

// commonDominator returns the nearest common dominator of vertices a and b.
func commonDominator(dominator, position []int32, a, b int32) int32 {
	for a != b {
		for position[a] > position[b] {
			a = dominator[a]
		}
		for position[b] > position[a] {
			b = dominator[b]
		}
	}
	return a
}

// loops describes the natural loops of a graph. A loop is identified by its header. A latch is a
// vertex that jumps back to the header. The header dominates every latch. Cycles with several
// entries are not natural loops.
type loops struct {
	header []int32 // by vertex: header of the innermost loop that contains the vertex, or -1
	depth  []int32 // by vertex: number of loops that contain the vertex
	latch  []bool
	outer  []int32 // by header: the header of the enclosing loop, or -1
}

// findLoops finds the natural loops. It visits the headers from the innermost loop outwards. The
// body of a loop consists of the header and the vertices from which a latch can be reached without
// passing through the header.
func (g *graph) findLoops() loops {
	n := len(g.successors)
	order, position := g.order()
	predecessors := g.predecessors()
	dominator := dominators(order, position, predecessors)
	none := []int32{-1}
	l := loops{header: slices.Repeat(none, n), outer: slices.Repeat(none, n), depth: make([]int32, n), latch: make([]bool, n)}
	var work []int32
	for i := len(order) - 1; i >= 0; i-- {
		h := order[i]
		work = work[:0]
		for _, p := range predecessors[h] {
			if position[p] >= 0 && dominates(dominator, position, h, p) {
				l.latch[p] = true
				work = append(work, p)
			}
		}
		if len(work) > 0 {
			l.addBody(h, work, predecessors, position)
		}
	}
	for _, v := range order {
		if h := l.header[v]; h == v {
			l.depth[v] = 1
			if l.outer[v] >= 0 {
				l.depth[v] += l.depth[l.outer[v]]
			}
		} else if h >= 0 {
			l.depth[v] = l.depth[h]
		}
	}
	return l
}

// addBody adds all vertices of the body to the loop with header h. If a vertex already belongs to
// an inner loop, addBody instead adds the outermost of the known loops around the vertex.
func (l *loops) addBody(h int32, work []int32, predecessors [][]int32, position []int32) {
	l.header[h] = h
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		from := l.header[v]
		if from < 0 {
			l.header[v], from = h, v
		} else {
			for from != h && l.outer[from] >= 0 {
				from = l.outer[from]
			}
			if from == h {
				continue
			}
			l.outer[from] = h
		}
		for _, p := range predecessors[from] {
			if position[p] >= 0 {
				work = append(work, p)
			}
		}
	}
}

// dominates reports whether every path to vertex v leads through vertex d.
func dominates(dominator, position []int32, d, v int32) bool {
	for v >= 0 && position[v] > position[d] {
		v = dominator[v]
	}
	return v == d
}
