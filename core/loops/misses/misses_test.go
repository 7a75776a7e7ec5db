package misses

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"pgregory.net/rapid"
)

// checkRun compares a run, with and without counting evictions, with a simulation of every access.
func checkRun(t *rapid.T, tree *loops.Tree, c Cache) (jumped uint64, progressions int) {
	many := rapid.IntRange(0, 3).Draw(t, "count short loops by reference") == 0
	e := newEngine(newLayoutOf(tree, c.LineBytes, many), c.Sets, c.Ways)
	e.countEvictions()
	e.run()
	plain := newEngine(newLayoutOf(tree, c.LineBytes, many), c.Sets, c.Ways) // counts no evictions
	plain.run()
	if !slices.Equal(plain.tally.counts, e.tally.counts) {
		t.Fatalf("%v: counts %v without evictions, and %v with evictions", c, plain.tally.counts, e.tally.counts)
	}
	want := newNaive(newLayoutOf(tree, c.LineBytes, many), c)
	want.run()
	for i, n := range want.nodes {
		if got := e.tally.counts[i]; got.accesses != n.Accesses || got.misses != n.Misses {
			t.Fatalf("%v, node %d: %d accesses and %d misses, want %d and %d", c, i, got.accesses, got.misses, n.Accesses, n.Misses)
		}
		jumped += n.Accesses
	}
	if jumped < e.done {
		t.Fatalf("%v: %d accesses were simulated or skipped, want %d", c, e.done, jumped)
	}
	if !slices.Equal(e.tally.out, want.out) {
		t.Fatalf("%v: evictions %v, want %v", c, e.tally.out, want.out)
	}
	for i, n := range firstTouches(e.layout, new(pauser)) {
		if n != want.nodes[i].Cold {
			t.Fatalf("%v, node %d: %d first touches, want %d", c, i, n, want.nodes[i].Cold)
		}
	}
	for s := range want.sets {
		if got := content(e.state, s); !slices.Equal(got, want.sets[s]) {
			t.Fatalf("%v: set %d contains %v at the end, want %v", c, s, got, want.sets[s])
		}
	}
	return jumped - e.done, e.progressions
}

// TestColumns checks that the most frequently used references have columns of their own, that each
// column represents the array of its references, and that there are not too many counters.
func TestColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 20, maxColumns, maxColumns + 1, 500, 1 << 16, 1 << 18}).Draw(t, "references")
		arrays := rapid.Uint64Range(1, 200).Draw(t, "arrays")
		spans, uses := make([]span, n), make([]uint64, n)
		for ref := range spans {
			first := 1000 * (uint64(ref) * 7 % arrays)
			if spans[ref], uses[ref] = (span{first, first + 99}), uint64(ref*31%1009); ref%13 == 12 {
				spans[ref], uses[ref] = span{1, 0}, 0
			}
		}
		a := divideLines(spans, slices.Clone(uses), 3)
		if most := max(maxEvictionCounters, n); len(a.columns)*n > most || len(a.columns) > maxColumns {
			t.Fatalf("%d columns for %d references", len(a.columns), n)
		}
		own, least, rest := map[int]bool{}, uint64(math.MaxUint64), uint64(0)
		for ref, array := range a.byRef {
			if array < 0 {
				continue
			}
			c := a.columns[a.columnOf[ref]]
			if c.Array != array && c.Array != -1 || c.Ref != ref && c.Ref != -1 || c.Array == -1 && (c.Ref != -1 || len(a.spans) <= min(maxArrays, len(a.columns))) {
				t.Fatalf("reference %d of array %d has column %+v", ref, array, c)
			}
			if own[c.Ref] = true; c.Ref == ref {
				least = min(least, uses[ref])
			} else {
				rest = max(rest, uses[ref])
			}
		}
		if rest > least || n <= maxColumns && own[-1] {
			t.Fatalf("a reference with %d uses has no column of its own, although a reference with %d uses has one", rest, least)
		}
	})
}

// TestRandomNestsEqualSimulation checks that, for random nests and caches, the counts of every
// node, the evictions and the final content of the cache are the same as in a simulation of every
// access.
func TestRandomNestsEqualSimulation(t *testing.T) {
	most := 6000.0
	if os.Getenv("STACKGLASS_SOAK") != "" {
		most = 40_000
	}
	jumped, nests := uint64(0), 0
	rapid.Check(t, func(t *rapid.T) {
		n, _ := checkRun(t, drawTree(t, most), drawCache(t))
		if n > 0 {
			nests++
		}
		jumped += n
	})
	t.Logf("the engine skipped %d accesses in %d nests", jumped, nests)
}

// TestTriangularNests checks the same properties as TestRandomNestsEqualSimulation, for nests that have varying trip
// counts and fill the cache.
func TestTriangularNests(t *testing.T) {
	progressions, nests := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawCache(t)
		c.Sets = rapid.SampledFrom([]uint64{1, 1, 1, 2, 3, 8}).Draw(t, "fewer sets")
		c.Ways = rapid.SampledFrom([]uint64{1, 2, 4, 20}).Draw(t, "fewer ways")
		_, n := checkRun(t, drawTriangle(t), c)
		progressions += n
		nests += min(n, 1)
	})
	t.Logf("the engine skipped iterations with varying trip counts %d times, in %d nests", progressions, nests)
}

// TestLineMovesToOtherRegion checks a nest in which a line would move from the region of its array
// into the region of a different array.
func TestLineMovesToOtherRegion(t *testing.T) {
	nest := loops.Nest{Items: []loops.Item{loops.Loop(41, loops.Loop(57,
		loops.Leaf(loops.Reference{Site: 1, Bytes: 8, Kind: 1}, 0x110000, -800, -800),
		loops.Leaf(loops.Reference{Site: 2, Bytes: 8}, 0x102002, 4096, 192),
		loops.Leaf(loops.Reference{Site: 3, Bytes: 4}, 0x100000, 0, 128),
	))}}
	tree, err := nest.Build()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(tree, Cache{64, 4, 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{2332, 2331, 2334} {
		if got := r.Nodes[2+i].Misses; got != want {
			t.Errorf("reference %d: %d misses, want %d", i, got, want)
		}
	}
}

// TestHugeTrees checks trees that have too many accesses to simulate each access, and too many
// lines to mark each line.
func TestHugeTrees(t *testing.T) {
	tree := build(t, loops.Loop(1<<40, loops.Leaf(loops.Reference{Bytes: 8}, 0, 64)), loops.Loop(1<<20, loops.Loop(1<<30, loops.Leaf(loops.Reference{Site: 1, Bytes: 8}, 1<<60, 0, 64))))
	r, err := Run(tree, Cache{64, 64, 8})
	if err != nil || r.Kinds || r.Total.Accesses != 1<<40+1<<50 || r.Total.Misses != r.Total.Accesses {
		t.Errorf("%+v, error %v", r, err)
	}
	many := build(t, loops.Loop(1<<40, loops.Loop(1<<40, loops.Leaf(loops.Reference{Bytes: 8}, 0, 64))))
	if _, err := Run(many, Cache{64, 64, 8}); err == nil {
		t.Errorf("Run accepted 2^80 references")
	}
}

// TestLoopsWithoutReferences checks that loops without references are skipped. Simulating their
// iterations would take years.
func TestLoopsWithoutReferences(t *testing.T) {
	one := loops.Reference{Site: 1, Bytes: 8}
	tree := build(t, loops.Loop(1, loops.Leaf(one, 0)), loops.Loop(1<<50, loops.Loop(3, loops.Loop(0, loops.Leaf(one, 0x10000, 64, 8, 8)))))
	r, err := Run(tree, Cache{64, 64, 8})
	if err != nil || r.Total.Accesses != 1 || r.Total.Misses != 1 {
		t.Errorf("%+v, error %v", r, err)
	}
}

func TestInvalidCaches(t *testing.T) {
	tree, err := (&loops.Nest{}).Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Cache{{}, {64, 0, 1}, {64, 1, 0}, {48, 1, 1}, {64, 1 << 20, 1 << 20}, {64, 1 << 60, 1 << 60}} {
		if _, err := Run(tree, c); err == nil {
			t.Errorf("Run accepted the cache %v", c)
		}
	}
	if r, err := Run(tree, Cache{64, 64, 8}); err != nil || r.Total.Accesses != 0 {
		t.Errorf("Run of an empty tree = %v, error %v, want no accesses", r, err)
	}
}

// TestMissesOfEachCapacity checks that the curve agrees with the misses of fully associative caches of each
// capacity, and that the kinds of misses add up to the total.
func TestMissesOfEachCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t, 2000)
		const lines = 40
		curve := capacities(tree, 64, lines)
		for _, n := range []int{1, 2, 7, lines} {
			r, err := Run(tree, Cache{64, 1, uint64(n)})
			if err != nil || r.Total.Misses != curve.misses(n) || r.Total.Accesses != curve.accesses {
				t.Fatalf("capacity of %d lines: %d misses, want %d; error %v", n, curve.misses(n), r.Total.Misses, err)
			}
			if k := r.Total; k.Cold+k.Capacity() != k.Misses || k.Conflict() != 0 || r.Simulated+r.Jumped != k.Accesses {
				t.Fatalf("capacity of %d lines: inconsistent counts %+v", n, r.Total)
			}
			var byArray, byNode, byRef Counts
			for _, a := range r.Arrays {
				byArray.add(a.Counts)
			}
			for _, k := range r.Refs {
				byRef.add(k)
			}
			at, i, starts := 0, 0, r.Starts()
			for node := range tree.Nodes() {
				if node.IsLoop() {
					if int(starts[i]) != at {
						t.Fatalf("Starts()[%d] = %d, want %d", i, starts[i], at)
					}
					byNode.add(r.Nodes[at])
					at += nodesIn(node)
				}
				i++
			}
			for _, k := range r.Loose {
				byNode.add(k)
			}
			if byArray != r.Total || byNode != r.Total || byRef != r.Total {
				t.Fatalf("capacity of %d lines: sums %+v by array, %+v by node, %+v by reference, want %+v", n, byArray, byNode, byRef, r.Total)
			}
		}
	})
}

func nodesIn(n loops.Node) int {
	nodes := 1
	for i := range n.Len() {
		item, _ := n.Item(i)
		nodes += nodesIn(item)
	}
	return nodes
}
