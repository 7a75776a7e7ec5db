package diagnose

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestNestIsTooSmallPartOfRun checks that the saving from a change is not computed from a nest that
// represents only a small part of the run.
func TestNestIsTooSmallPartOfRun(t *testing.T) {
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
			t.Errorf("%s: isFragment = %t, want %t", name, got, c.want)
		}
	}
}

// TestCacheContainsWholeNest checks that a cache that keeps all lines of a nest has as many misses
// as an unlimited cache, even after the loops are interchanged.
func TestCacheContainsWholeNest(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		var body []loops.Item
		for site := range rapid.Uint32Range(1, 4).Draw(t, "references") {
			step := rapid.SampledFrom([]int64{0, 8, -8, 64, 200, 4096})
			body = append(body, loops.Leaf(loops.Reference{Site: site, Kind: trace.Load, Bytes: 8}, 1<<20+8*rapid.Uint64Range(0, 1<<12).Draw(t, "address"), step.Draw(t, "outer step"), step.Draw(t, "step")))
		}
		n := &loops.Nest{Items: []loops.Item{loops.Loop(rapid.Uint64Range(1, 20).Draw(t, "outer"), loops.Loop(rapid.Uint64Range(1, 20).Draw(t, "inner"), body...))}}
		cache := misses.Cache{LineBytes: 64, Sets: rapid.SampledFrom([]uint64{1, 16, 64}).Draw(t, "sets"), Ways: rapid.SampledFrom([]uint64{8, 16, 200}).Draw(t, "ways")}
		if !keeps(n, cache) {
			return
		}
		kept++
		count := func(cache misses.Cache, changes ...change.Change) uint64 {
			m, err := change.Misses(n, cache, nil, changes...)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		want := count(misses.Cache{LineBytes: 64, Sets: 1, Ways: 1 << 16})
		if got := count(cache); got != want {
			t.Errorf("%d misses before the interchange, want %d", got, want)
		}
		if got := count(cache, change.Interchange{Outer: change.Path{0}, Below: 1}); got != want {
			t.Errorf("%d misses after the interchange, want %d", got, want)
		}
	})
	if kept == 0 {
		t.Error("the test generated no cache that keeps the lines of a nest")
	}
}

// TestLoopFeedback checks that the iterations of a loop must run in order if its inner loop loads
// values that the loop itself stores.
func TestLoopFeedback(t *testing.T) {
	const a, b = 1 << 20, 2 << 20
	load := func(addr uint64) loops.Item {
		return loops.Leaf(loops.Reference{Site: 1, Kind: trace.Load, Bytes: 8}, addr, 0, 8)
	}
	store := func(addr uint64, steps ...int64) loops.Item {
		return loops.Leaf(loops.Reference{Site: 2, Kind: trace.Store, Bytes: 8}, addr, steps...)
	}
	for name, c := range map[string]struct {
		body []loops.Item
		want bool
	}{
		"a sum is stored to the array that is summed":                   {[]loops.Item{loops.Loop(100, load(a)), store(a, 8)}, true},
		"the inner loop loads a single variable":                        {[]loops.Item{store(b), loops.Loop(100, load(b), load(a)), store(b)}, false},
		"a sum is stored to another array":                              {[]loops.Item{loops.Loop(100, load(a)), store(b, 8)}, false},
		"the inner loop updates the array":                              {[]loops.Item{loops.Loop(100, load(a), store(a, 0, 8)), store(a+800, 0)}, false},
		"the store is outside the part that is summed":                  {[]loops.Item{loops.Loop(100, load(a)), store(a+800, 8)}, false},
		"the outer loop stores to elements that the inner loop updates": {[]loops.Item{loops.Loop(100, load(a), store(a, 0, 8)), store(a, 8)}, false},
	} {
		l := loops.Loop(12, c.body...)
		if got := feedsBack(&l, 0); got != c.want {
			t.Errorf("%s: feedsBack = %v, want %v", name, got, c.want)
		}
	}
}

// TestPhraseOmitsLineOfFinding checks that the returned phrase omits the finding's own line, and
// that the list of lines, which the search may extend, stays unchanged.
func TestPhraseOmitsLineOfFinding(t *testing.T) {
	also := []uint32{9, 5, 7, 5}
	if got, want := alsoAt(5, also), "; the same applies to lines 7 and 9"; got != want {
		t.Errorf("alsoAt(5, %v) = %q, want %q", also, got, want)
	}
	if want := []uint32{9, 5, 7, 5}; !slices.Equal(also, want) {
		t.Errorf("alsoAt changed the list to %v, want %v", also, want)
	}
}

// TestThreadsProcessElementsInTurn uses threads that visit the elements of an array with different
// steps. The test checks that inTurn recognises threads that process the elements in turn.
func TestThreadsProcessElementsInTurn(t *testing.T) {
	for _, c := range []struct {
		threads uint32
		step    int64
		want    int
	}{{4, 16, 4}, {2, 8, 2}, {4, 4, 0}, {4, 64, 0}, {1, 4, 0}} {
		var n loops.Nest
		g := &group{}
		for thread := range c.threads {
			g.loops = append(g.loops, 2*int(thread))
			first := 1<<20 + 4*trace.Addr(thread)
			n.Items = append(n.Items, loops.Loop(2, loops.Loop(100, loops.Leaf(loops.Reference{Site: 0, Kind: trace.Load, Bytes: 4, Thread: thread}, first, 0, c.step))))
		}
		tree, err := n.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := &profile.Profile{Loops: tree.Append(nil), Sites: &profile.Sites{LineBytes: 64, Code: []profile.Site{{Kind: trace.Load, Bytes: 4}}}}
		l, err := answers.NewLoops(p, mostNests)
		if err != nil {
			t.Fatal(err)
		}
		r := &run{p: p, loops: l, rolled: map[int]*change.Rolled{}, sources: map[uint32]source{}}
		if got := r.inTurn(g, 1<<20); got != c.want {
			t.Errorf("%d threads, %d bytes apart: inTurn = %d, want %d", c.threads, c.step, got, c.want)
		}
	}
}
