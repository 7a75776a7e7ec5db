package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/trace"
)

var (
	loaded = loops.Reference{Site: 1, Kind: trace.Load, Bytes: 8}
	stored = loops.Reference{Site: 2, Kind: trace.Store, Bytes: 8}
)

// TestDistribute checks that a distributed loop makes as many references as before, and accesses
// the elements row by row.
func TestDistribute(t *testing.T) {
	n := &loops.Nest{Items: []loops.Item{loops.Loop(3,
		loops.Loop(5, loops.Leaf(loaded, 1<<20, 8, 4096)),
		loops.Loop(5, loops.Leaf(loaded, 1<<20, 8, 4096), loops.Leaf(stored, 1<<20, 8, 4096)))}}
	if list := distributions(n); len(list) != 1 {
		t.Fatalf("%d loops can be distributed, want 1", len(list))
	}
	if inSequence(n.Items, 0, 64) {
		t.Error("references along columns count as sequential")
	}
	by := distribute{change.Path{0}}
	if err := by.Apply(n); err != nil || !inSequence(n.Items, 0, 64) {
		t.Fatal(err, inSequence(n.Items, 0, 64))
	}
	tree, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	if rows := tree.Rows(); rows != 45 {
		t.Errorf("the distributed loop has %d references, want 45", rows)
	}
	if by.Apply(n) == nil {
		t.Error("a loop that was already distributed can be distributed again")
	}
}

// If each element's new value depends only on its previous value, the loop may be distributed.
// After the distribution, all updates by the first loop precede all updates by the second loop.
func TestLoopOfUpdatesIsDistributed(t *testing.T) {
	for name, c := range map[string]struct {
		body []loops.Item
		want bool
	}{
		"in place":          {[]loops.Item{loops.Leaf(loaded, 800, 0, 8), loops.Leaf(loaded, 1<<20, 0, 8), loops.Leaf(stored, 800, 0, 8)}, true},
		"unrolled":          {[]loops.Item{loops.Leaf(loaded, 800, 0, 16), loops.Leaf(stored, 800, 0, 16), loops.Leaf(loaded, 808, 0, 16), loops.Leaf(stored, 808, 0, 16)}, true},
		"neighbours":        {[]loops.Item{loops.Leaf(loaded, 800, 0, 8), loops.Leaf(loaded, 808, 0, 8), loops.Leaf(stored, 800, 0, 8)}, false},
		"the same work":     {[]loops.Item{loops.Leaf(loaded, 1<<20, 0, 8), loops.Leaf(stored, 800, 0, 8)}, false},
		"a sum":             {[]loops.Item{loops.Leaf(loaded, 800, 0, 8), loops.Leaf(loaded, 1<<20), loops.Leaf(stored, 1<<20)}, false},
		"another direction": {[]loops.Item{loops.Leaf(loaded, 800, 0, 8), loops.Leaf(loaded, 840, 0, -8), loops.Leaf(stored, 800, 0, 8)}, false},
	} {
		n := &loops.Nest{Items: []loops.Item{loops.Loop(4, loops.Loop(10, c.body...))}}
		if got := updates(&n.Items[0], 0); got != c.want {
			t.Errorf("%s: updates = %t, want %t", name, got, c.want)
		}
		if got := repeats(n, change.Tile{Outer: change.Path{0}, Trips: []uint64{0, 8}}); got == c.want {
			t.Errorf("%s: tiles repeat the same work: %t, want %t", name, got, !c.want)
		}
	}
}

// TestFusionBreaksDependence checks that loops cannot be fused if the second loop needs values that
// the first loop computes later.
func TestFusionBreaksDependence(t *testing.T) {
	leaf := func(r loops.Reference, addr trace.Addr, steps ...int64) loops.Item {
		return loops.Leaf(r, addr, steps...)
	}
	const q, f = 1 << 20, 1 << 24
	for name, c := range map[string]struct {
		first, second loops.Item
		want          bool
	}{
		"the same elements":    {loops.Loop(9, leaf(loaded, q, 8), leaf(stored, f, 8)), loops.Loop(9, leaf(loaded, f, 8), leaf(stored, q, 8)), false},
		"copied back":          {loops.Loop(9, leaf(loaded, q-8, 8), leaf(stored, f, 8)), loops.Loop(9, leaf(loaded, f, 8), leaf(stored, q, 8)), true},
		"the next element":     {loops.Loop(9, leaf(stored, f, 8)), loops.Loop(9, leaf(loaded, f+8, 8)), true},
		"the previous element": {loops.Loop(9, leaf(stored, f, 8)), loops.Loop(9, leaf(loaded, f-8, 8)), false},
		"only loads":           {loops.Loop(9, leaf(loaded, f, 8)), loops.Loop(9, leaf(loaded, f+8, 8)), false},
		"the row below":        {loops.Loop(9, loops.Loop(5, leaf(loaded, q-64, 64, 8)), leaf(stored, f, 64)), loops.Loop(9, loops.Loop(5, leaf(stored, q, 64, 8))), true},
		"rows":                 {loops.Loop(9, loops.Loop(5, leaf(loaded, q+8, 64, 8))), loops.Loop(9, loops.Loop(5, leaf(stored, q, 64, 8))), false},
		"columns":              {loops.Loop(8, loops.Loop(5, leaf(loaded, q, 8, 64))), loops.Loop(8, loops.Loop(5, leaf(stored, q, 8, 64))), false},
		"columns to come":      {loops.Loop(8, loops.Loop(5, leaf(loaded, q-8, 8, 64))), loops.Loop(8, loops.Loop(5, leaf(stored, q, 8, 64))), true},
		"unrolled":             {loops.Loop(8, leaf(loaded, q, 16)), loops.Loop(4, leaf(stored, q, 32), leaf(stored, q+8, 32)), false},
	} {
		n := &loops.Nest{Items: []loops.Item{c.first, c.second}}
		if got := fusionBreaksDependence(n, change.Fuse{First: change.Path{0}}); got != c.want {
			t.Errorf("%s: fusionBreaksDependence = %t, want %t", name, got, c.want)
		}
	}
}
