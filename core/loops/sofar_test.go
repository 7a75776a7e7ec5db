package loops

import (
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestIntermediateTree checks that Tree returns the same tree as a second folder that reads only
// the rows so far. Later rows must not change the returned tree.
func TestIntermediateTree(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 51))
		var all []row
		for len(all) < 3000 {
			start, n := rng.Uint64N(1<<20), 1+rng.Uint64N(12)
			for i := range n {
				for j := range n + i*uint64(rng.IntN(2)) {
					all = append(all, row{Addr: start + 800*i + 8*j, Reference: Reference{Site: uint32(n), Bytes: 8}})
				}
			}
			if rng.IntN(3) == 0 {
				all = append(all, row{Addr: rng.Uint64(), Reference: Reference{Site: 99, Bytes: 4}})
			}
		}
		f := NewFolder(1 + rng.IntN(200))
		window := f.window
		var trees []*Tree
		var ends []int
		for at := 0; at < len(all); {
			hi := min(len(all), at+1+rng.IntN(500))
			if err := f.Consume(batchOf(all[at:hi])); err != nil {
				t.Fatal(err)
			}
			at = hi
			trees, ends = append(trees, f.Tree()), append(ends, at)
		}
		if f.Bytes() == 0 {
			t.Fatal("Bytes() = 0, want the size of the tree")
		}
		for i, tree := range trees {
			checkSameRows(t, unfold(t, tree, 100), all[:ends[i]])
			g := NewFolder(window)
			if err := g.Consume(batchOf(all[:ends[i]])); err != nil {
				t.Fatal(err)
			}
			if want := g.Finish(); want.Size() != tree.Size() || want.Rows() != tree.Rows() {
				t.Fatalf("seed %d: the tree of %d rows is %+v, want %+v", seed, ends[i], tree.Size(), want.Size())
			}
		}
		f.Finish()
		if f.Tree() != nil || f.Bytes() != 0 {
			t.Fatal("Tree returned a tree after Finish")
		}
	}
}

func batchOf(rows []row) *trace.Batch { return batch(rows, columns{site: true}) }
