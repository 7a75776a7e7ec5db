package misses

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFirstAndTotalEqualRun checks that FirstAsking and Total count the same misses as Run, for
// caches that can contain all lines and for smaller caches.
func TestFirstAndTotalEqualRun(t *testing.T) {
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
		total, err := Total(tree, c, func(uint64, uint64) bool { return true })
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
