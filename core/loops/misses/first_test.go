package misses

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestFirstAskingAndTotalEqualRun checks that FirstAsking and Total count the same misses as Run,
// for caches that can contain all lines and for smaller caches.
func TestFirstAskingAndTotalEqualRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t, 3000)
		c := Cache{LineBytes: 64, Sets: 1, Ways: rapid.SampledFrom([]uint64{4, 100, 1 << 16}).Draw(t, "ways")}
		want, err := Run(tree, c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := FirstAsking(tree, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		total, _, err := Total(tree, c, func(uint64, uint64) bool { return true })
		if err != nil || total != want.Total.Misses || got.Total.Misses != total || len(got.Nodes) != len(want.Nodes) || len(got.Refs) != len(want.Refs) {
			t.Fatalf("error %v, Total = %d, FirstAsking = %+v, want %+v", err, total, got.Total, want.Total)
		}
		for i := range want.Nodes {
			if got.Nodes[i].Misses != want.Nodes[i].Misses {
				t.Errorf("node %d: %d misses, want %d", i, got.Nodes[i].Misses, want.Nodes[i].Misses)
			}
		}
		for i := range want.Refs {
			if got.Refs[i].Misses != want.Refs[i].Misses {
				t.Errorf("reference %d: %d misses, want %d", i, got.Refs[i].Misses, want.Refs[i].Misses)
			}
		}
	})
}

// TestTotalBeforeNodes checks that Total also returns the misses before a top-level node: the misses
// of a tree that ends there.
func TestTotalBeforeNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n loops.Nest
		for i := range rapid.IntRange(1, 5).Draw(t, "loops") {
			leaf := loops.Leaf(loops.Reference{Site: uint32(i), Kind: trace.Load, Bytes: 8}, 1<<20, 8*rapid.Int64Range(-20, 20).Draw(t, "step"))
			n.Items = append(n.Items, loops.Loop(rapid.Uint64Range(1, 400).Draw(t, "trips"), leaf))
		}
		c := Cache{LineBytes: 64, Sets: 1, Ways: rapid.SampledFrom([]uint64{4, 100}).Draw(t, "ways")}
		total := func(n *loops.Nest, nodes ...int) (uint64, []uint64) {
			tree, err := n.Build()
			if err != nil {
				t.Fatal(err)
			}
			all, before, err := Total(tree, c, func(uint64, uint64) bool { return true }, nodes...)
			if err != nil {
				t.Fatal(err)
			}
			return all, before
		}
		at := rapid.IntRange(1, len(n.Items)).Draw(t, "node")
		_, before := total(&n, at-1, at)
		want, _ := total(&loops.Nest{Items: n.Items[:at]})
		if before[1] != want {
			t.Errorf("%d misses before node %d, want %d", before[1], at, want)
		}
	})
}
