package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/loops/outline"
)

// TestFragment checks that the saving of a change is not computed from a nest that represents only
// a small part of the run.
func TestFragment(t *testing.T) {
	r := &run{loops: &answers.Loops{Outline: &outline.Outline{Loops: make([]outline.Loop, 3)}}}
	for i, references := range []uint64{4000, 100, 200_000} {
		r.loops.Loops[i].References = references
	}
	for name, c := range map[string]struct {
		misses         float64
		saved, fetched float64
		runs           uint64
		loops          []int
		want           bool
	}{
		"three misses of one look-up":            {3, 1e5, 1e5, 0, []int{0}, true},
		"many misses":                            {500, 1e5, 1e5, 0, []int{0, 1}, false},
		"a small share of the group":             {500, 1e5, 1e5, 0, []int{0, 1, 2}, true},
		"several runs that are changed together": {500, 1e5, 1e5, 7, []int{0, 1, 2}, false},
		"a shorter chain of results":             {3, 1e5, 2e4, 0, []int{0, 2}, false},
	} {
		o := &trial{before: []float64{9 * c.misses, c.misses}, after: []float64{c.misses, c.misses / 2}, level: 1, saved: c.saved, fetched: c.fetched, runs: c.runs}
		if got := r.isFragment(o, &group{loops: c.loops}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
