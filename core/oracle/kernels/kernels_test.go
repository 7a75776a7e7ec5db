package kernels

import (
	"testing"

	"github.com/stackglass/stackglass/core/loops/misses"
)

// TestKnownCounts compares the counts of DineroIV with the counts computed from the loop trees.
func TestKnownCounts(t *testing.T) {
	known := 0
	for _, k := range Vectors() {
		tree, err := k.Nest.Build()
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		for _, c := range k.Known {
			known++
			r, err := misses.Run(tree, misses.Cache{LineBytes: 64, Sets: c.SizeBytes / 64 / c.Ways, Ways: c.Ways})
			if err != nil || r.Total.Misses != c.Misses {
				t.Errorf("%s, %d bytes, %d ways: %+v, error %v, want %d misses", k.Name, c.SizeBytes, c.Ways, r, err, c.Misses)
			}
		}
	}
	if known != 21 {
		t.Errorf("%d counts, want 21", known)
	}
}
