package loops

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

// checkSameRows checks that two lists of rows are equal.
func checkSameRows(t tracetest.Failer, got, want []row) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("%d rows, want %d; the first difference is row %d: want %+v, got %+v", len(got), len(want), i, want[i], got[min(i, len(got)):min(i+1, len(got))])
		}
	}
	t.Fatalf("%d rows, want %d", len(got), len(want))
}

// TestCachedNodesChangeNothing checks that two implementation details do not affect the tree: the
// cache of differing nodes (the field unlike), and the renumbering of nodes.
func TestCachedNodesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		window := rapid.SampledFrom([]int{1, 2, 3, 5, 17, 100, 0}).Draw(t, "window")
		whole := batch(all, has)
		want := fold(t, window, whole, func() int { return len(all) })
		forgetful, numbered := NewFolder(window), NewFolder(window)
		numbered.base = maxNumber - rapid.IntRange(0, 200).Draw(t, "node numbers before renumbering")
		var view trace.Batch
		for i := range all {
			clear(forgetful.unlike)
			_ = forgetful.Consume(whole.View(&view, i, i+1))
			_ = numbered.Consume(&view)
		}
		if !reflect.DeepEqual(forgetful.Finish(), want) {
			t.Fatalf("clearing the cache of comparisons between nodes changes the tree")
		}
		if !reflect.DeepEqual(numbered.Finish(), want) {
			t.Fatalf("renumbering nodes changes the tree")
		}
	})
}

// TestExpansionRestoresRows checks that, for any nest and any window, expansion restores the rows.
func TestExpansionRestoresRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		window := rapid.SampledFrom([]int{1, 2, 3, 5, 17, 100, 0}).Draw(t, "window")
		whole := batch(all, has)
		tree := fold(t, window, whole, func() int { return len(all) })
		if tree.Rows() != uint64(len(all)) {
			t.Fatalf("a tree of %d rows, want %d", tree.Rows(), len(all))
		}
		checkSameRows(t, naive(tree), all)
		checkSameRows(t, unfold(t, tree, rapid.IntRange(1, 100).Draw(t, "rows a batch")), all)
		seed := rapid.Uint64().Draw(t, "split")
		split := fold(t, window, whole, func() int { seed = mix(seed); return 1 + int(seed%50) })
		if !reflect.DeepEqual(split, tree) {
			t.Fatalf("the tree depends on the sizes of the batches")
		}
	})
}
