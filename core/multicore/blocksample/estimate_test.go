package blocksample

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// naiveRates returns two hit ratios: the average weighted by accesses, and the mean over the
// stacks. naiveRates applies the stack distance cache model (SDCM) to each single access. The
// parameter sharedBy is the number of threads that share a stack.
func naiveRates(whole *trace.Batch, sharedBy uint32, c hierarchy.Cache) (global, mean float64) {
	models := map[uint32]*stack.Exact{}
	hits, accesses := map[uint32]float64{}, map[uint32]float64{}
	for i, k := range whole.Kind {
		if !k.IsReference() {
			continue
		}
		of := whole.Thread[i] / sharedBy
		if models[of] == nil {
			models[of] = stack.NewExact()
		}
		for line := whole.Addr[i] / 64; line <= (whole.Addr[i]+7)/64; line++ {
			var d [1]uint32
			models[of].Distances([]trace.Line{line}, d[:])
			if accesses[of]++; d[0] != stack.Cold {
				hits[of] += chance(&c, uint64(d[0]))
			}
		}
	}
	all, n := 0.0, 0.0
	for of := range models {
		global += hits[of]
		all += accesses[of]
		mean += hits[of] / accesses[of]
		n++
	}
	return global / all, mean / n
}

// TestHitRatiosEqualCounts checks the hit ratios of private and shared caches. With all windows, a
// level's hit ratios equal the ratios computed access by access. With a sample of the windows,
// about 95 % of the hit ratios are within the stated error.
func TestHitRatiosEqualCounts(t *testing.T) {
	p, whole := randomRows(rand.New(rand.NewPCG(8, 5)), 5, 30_000, 120, true)
	for _, sharedBy := range []uint32{1, 2, 5} {
		caches := int((5 + sharedBy - 1) / sharedBy)
		c := hierarchy.Cache{Name: "L", SizeBytes: 64 * 64, Ways: 4, LineBytes: 64}
		global, mean := naiveRates(whole, sharedBy, c)
		all := collect(t, Options{LineBytes: 64, Looked: All, SharedBy: sharedBy}, p, whole, 0)
		e, err := Of(all, caches, nil, Counted, c)
		if err != nil || len(e.Caches) != caches || math.Abs(e.Global.HitRate-global) > 1e-9 || math.Abs(e.Mean.HitRate-mean) > 1e-9 {
			t.Fatalf("stacks shared by %d threads: the estimate is %+v, %v; want the ratios %v and %v", sharedBy, e, err, global, mean)
		}
		if e.Global.Off != 0 || e.Mean.Off != 0 || e.Windows != e.Of || float64(e.Looked) != e.Accesses || e.Global.Weight < 1-1e-9 {
			t.Errorf("stacks shared by %d threads: all windows were sampled, but the result is not exact: %+v", sharedBy, e)
		}
		blocks := BlocksOf(all)
		even, err := Of(all, caches, blocks, Corrected, c)
		if err != nil || math.Abs(even.Global.HitRate-global) > 0.02 {
			t.Errorf("stacks shared by %d threads: the equations yield %+v, %v, want about %v", sharedBy, even.Global, err, global)
		}
		within, meanWithin := 0, 0
		const seeds = 60
		for seed := range uint64(seeds) {
			some, err := Of(collect(t, Options{LineBytes: 64, Seed: seed, SharedBy: sharedBy}, p, whole, 0), caches, nil, Counted, c)
			if err != nil || !(some.Global.Off > 0) || some.Windows >= some.Of || some.Of != e.Of || some.Accesses != e.Accesses || some.Looked >= e.Looked {
				t.Fatalf("stacks shared by %d threads: the estimate is %+v, %v", sharedBy, some, err)
			}
			low, high := some.Global.Bounds()
			if low <= global && global <= high {
				within++
			}
			if low, high = some.Mean.Bounds(); low <= mean && mean <= high {
				meanWithin++
			}
		}
		if within < seeds*85/100 || meanWithin < seeds*85/100 {
			t.Errorf("stacks shared by %d threads: the exact values are within the intervals in %d and %d of %d samples", sharedBy, within, meanWithin, seeds)
		}
	}
}

// TestExecutionsInParallelRegions checks that executions in parallel regions are counted
// separately, regardless of the thread.
func TestExecutionsInParallelRegions(t *testing.T) {
	p := &trace.Program{Blocks: []trace.Block{{Sites: 1}}, Sites: []trace.Site{{}}}
	b := trace.NewBatch(0)
	b.NeedThread()
	b.NeedSite()
	for i, k := range []trace.Kind{trace.Load, trace.ParallelBegin, trace.Load, trace.ParallelBegin, trace.Load, trace.ParallelEnd, trace.Load, trace.ParallelEnd, trace.Load, trace.ParallelEnd, trace.Load} {
		b.Append(k, uint64(64*i), 1, uint32(i/2%2), 0)
	}
	stacks := collect(t, Options{LineBytes: 64, SharedBy: 1}, p, b, 2)
	list := BlocksOf(stacks)
	if list[0] != (Block{Executions: 6, Parallel: 3, Accesses: 1}) {
		t.Errorf("%+v", list)
	}
}

// TestInvalidOptions checks that invalid options and weights return errors.
func TestInvalidOptions(t *testing.T) {
	for _, l := range []Looked{{Rate: -1}, {Rate: 1.1}, {Rate: math.NaN()}, {Least: 1}, {Least: -3}, {Least: MostLeast + 1}} {
		if _, err := New(Options{LineBytes: 64, Looked: l}, nil); err == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
	for _, by := range []Weighting{Corrected, Printed, Counted} {
		if got, err := ParseWeighting(by.String()); err != nil || got != by {
			t.Errorf("%s: %v, %v", by, got, err)
		}
	}
	if _, err := ParseWeighting("unknown"); err == nil || Weighting(9).String() != "unknown" {
		t.Error("unknown weights were accepted")
	}
}
