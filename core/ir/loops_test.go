package ir

import (
	"testing"

	"pgregory.net/rapid"
)

var anyGraph = rapid.Custom(func(t *rapid.T) *graph {
	n := rapid.IntRange(1, 14).Draw(t, "vertices")
	g := &graph{successors: make([][]int32, n)}
	for v := range g.successors {
		g.successors[v] = rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 0, 3).Draw(t, "successors")
	}
	return g
})

// reachable reports which vertices can be reached from vertex start without passing through vertex
// "avoided". If "avoided" is -1, all paths are allowed.
func (g *graph) reachable(start, avoided int32) []bool {
	seen := make([]bool, len(g.successors))
	var visit func(int32)
	visit = func(v int32) {
		if v == avoided || seen[v] {
			return
		}
		seen[v] = true
		for _, w := range g.successors[v] {
			visit(w)
		}
	}
	visit(start)
	return seen
}

// dominatesNaively reports whether all paths to vertex v pass through vertex d.
func (g *graph) dominatesNaively(d, v int32) bool {
	return g.reachable(0, -1)[v] && (d == v || !g.reachable(0, d)[v])
}

func TestDominators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph.Draw(t, "graph")
		order, position := g.order()
		dominator := dominators(order, position, g.predecessors())
		reached := g.reachable(0, -1)
		for v := range g.successors {
			if (position[v] >= 0) != reached[v] {
				t.Fatalf("vertex %d: position %d, reached %v", v, position[v], reached[v])
			}
			for d := range g.successors {
				if !reached[v] || !reached[d] {
					continue
				}
				got, want := dominates(dominator, position, int32(d), int32(v)), g.dominatesNaively(int32(d), int32(v))
				if got != want {
					t.Fatalf("vertex %d dominates vertex %d = %v, want %v", d, v, got, want)
				}
			}
		}
	})
}

// bodyNaively returns the natural loop of h by its definition: h itself, and all vertices from
// which a latch of the loop can be reached without passing through h. It returns nil if h is not
// the header of a loop.
func (g *graph) bodyNaively(h int32) []bool {
	var body []bool
	reached := g.reachable(0, -1)
	for v := range g.successors {
		for _, w := range g.successors[v] {
			if w != h || !g.dominatesNaively(h, int32(v)) {
				continue
			}
			if body == nil {
				body = make([]bool, len(g.successors))
			}
			body[h] = true
			for u := range g.successors {
				if reached[u] && int32(u) != h && g.reachable(int32(u), h)[v] {
					body[u] = true
				}
			}
		}
	}
	return body
}

func TestLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGraph.Draw(t, "graph")
		l := g.findLoops()
		bodies := make([][]bool, len(g.successors))
		for h := range g.successors {
			bodies[h] = g.bodyNaively(int32(h))
		}
		for v := range g.successors {
			depth, innermost := int32(0), int32(-1)
			for h, body := range bodies {
				if body == nil || !body[v] {
					continue
				}
				depth++
				if innermost < 0 || bodies[innermost][h] {
					innermost = int32(h)
				}
			}
			if l.depth[v] != depth || l.header[v] != innermost {
				t.Fatalf("vertex %d: header %d, depth %d, want %d and %d", v, l.header[v], l.depth[v], innermost, depth)
			}
			latch := false
			for _, h := range g.successors[v] {
				latch = latch || g.dominatesNaively(h, int32(v))
			}
			if l.latch[v] != latch {
				t.Fatalf("vertex %d: is a latch = %v, want %v", v, l.latch[v], latch)
			}
		}
	})
}
