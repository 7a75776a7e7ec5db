package loops

import (
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

func TestTreeOfSelectedKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		tree := fold(t, 0, batch(all, has), func() int { return len(all) })
		kinds := trace.Kinds(rapid.Uint32().Draw(t, "kinds"))
		part := tree.Only(kinds)
		want := slices.DeleteFunc(slices.Clone(all), func(r row) bool { return !kinds.Has(r.Kind) })
		checkSameRows(t, unfold(t, part, 100), want)
		if part.Rows() != uint64(len(want)) {
			t.Fatalf("a tree of %d rows, want %d", part.Rows(), len(want))
		}
		checkRoundTrip(t, part)
		if same := tree.Only(^trace.Kinds(0)); same != tree {
			t.Fatalf("Only(all kinds) did not return the tree itself")
		}
	})
}

func TestJoinConcatenatesTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		var trees []*Tree
		for left := all; len(left) > 0; {
			n := rapid.IntRange(1, len(left)).Draw(t, "rows")
			trees = append(trees, fold(t, 0, batch(left[:n], has), func() int { return n }))
			left = left[n:]
		}
		whole := Join(trees...)
		checkSameRows(t, unfold(t, whole, 100), all)
		if whole.Rows() != uint64(len(all)) {
			t.Fatalf("a tree of %d rows, want %d", whole.Rows(), len(all))
		}
		if len(all) == 0 {
			return
		}
		checkRoundTrip(t, whole)
	})
}
