package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
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

// TestSeparate checks that loops are fused only within one function, and not across the border of a
// parallel region.
func TestSeparate(t *testing.T) {
	sites := []profile.Site{{Function: "main.omp_outlined"}, {Function: "main"}, {Function: "main"}, {}}
	r := &run{loops: &answers.Loops{Place: func(ref loops.Reference) *profile.Site { return &sites[ref.Site] }}}
	load := func(site uint32) loops.Item {
		return loops.Leaf(loops.Reference{Site: site, Kind: trace.Load, Bytes: 8}, 1<<20, 8)
	}
	fork := loops.Leaf(loops.Reference{Site: 1, Kind: trace.ParallelBegin}, 0)
	for name, c := range map[string]struct {
		first, second []loops.Item
		want          bool
	}{
		"a parallel loop and a serial loop":     {[]loops.Item{load(0)}, []loops.Item{load(1)}, true},
		"two loops of one function":             {[]loops.Item{load(1)}, []loops.Item{load(2)}, false},
		"a loop that also calls a function":     {[]loops.Item{load(0), load(1)}, []loops.Item{load(2)}, false},
		"a loop that starts a parallel region":  {[]loops.Item{load(1), fork}, []loops.Item{load(2)}, true},
		"a loop whose function is not recorded": {[]loops.Item{load(3)}, []loops.Item{load(1)}, false},
	} {
		n := &loops.Nest{Items: []loops.Item{loops.Loop(40, c.first...), loops.Loop(40, c.second...)}}
		if got := r.separate(n, change.Fuse{First: change.Path{0}}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
