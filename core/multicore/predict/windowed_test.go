package predict_test

import (
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestAllWindows checks that, if no lines are invalidated, SDCM makes the same predictions from all
// windows as from complete stacks. The reason is that all windows, weighted by their counts, are
// equivalent to the trace.
func TestAllWindows(t *testing.T) {
	q := predict.Question{Cores: []int{1, 3, 4}, Stacks: true, Windows: []predict.WindowSampling{{Looked: blocksample.All, Weights: blocksample.Counted}, {Weights: blocksample.Corrected, Seed: 5}},
		Hierarchy: caches("L1=512,4", "L2=1KiB,full", "L3=4KiB,8,shared=2", "L4=64KiB,16,shared=all")}
	for _, r := range run(t, q, new(countingSource).open(100, 3000)) {
		if len(r.Windowed) != 2 {
			t.Fatalf("%d cores: %d answers", r.Cores, len(r.Windowed))
		}
		for k, l := range r.Windowed[0] {
			want, some := &r.Modelled[k], &r.Windowed[1][k]
			if off := math.Abs(l.Misses - want.Misses); off > 2 || r.Cores == 1 && off > 0.01 || l.Method != hierarchy.WindowedSDCM || l.Caches != want.Caches || l.Cores != nil {
				t.Errorf("%d cores: prediction from all windows %+v, want %+v", r.Cores, l, want)
			}
			if l.Off != 0 || !l.Bounded || l.Low > l.Global || l.High < l.Global || l.High-l.Low > 1e-9 || l.Looked.Windows != l.Looked.Of || l.Looked.Accesses != l.Looked.All {
				t.Errorf("%d cores: all windows are sampled, but the result is not exact: %+v, %+v", r.Cores, l, l.Looked)
			}
			if x := some.Looked; x.Windows >= x.Of || x.Of != l.Looked.Of || x.All != l.Looked.All || x.Accesses == 0 || x.Lines != 0 {
				t.Errorf("%d cores: the sample size is %+v, want fewer windows than %+v, and at least one access", r.Cores, x, l.Looked)
			}
			if !(some.Off > 0) || math.Abs(some.Global-l.Global) > 3*some.Off || some.Averaged != (k == 0 || some.Caches == 1) {
				t.Errorf("%d cores: the prediction from sampled windows is %+v, but from all windows %+v", r.Cores, some, l)
			}
		}
	}
}

// oneRegion returns a single-threaded run that executes two blocks in one region.
func oneRegion(executions int) (*trace.Program, *trace.Batch) {
	p := &trace.Program{
		Functions: []trace.Function{{Name: "main"}},
		Blocks:    []trace.Block{{Sites: 1}, {FirstSite: 1, Sites: 2}, {FirstSite: 3, Sites: 1}, {FirstSite: 4, Sites: 1}},
		Sites: []trace.Site{
			{Kind: trace.ParallelBegin}, {Kind: trace.ParallelEnd, Block: 1}, {Kind: trace.Load, Bytes: 8, Block: 1},
			{Kind: trace.Load, Bytes: 8, Block: 2}, {Kind: trace.Store, Bytes: 8, Block: 3},
		},
	}
	const frame = 0x7fff_0000_0000
	steps := []tracetest.Step{{Block: 0, Values: []uint64{frame}}}
	// each iteration executes both blocks, except every third iteration, which executes only one
	for i := range uint64(executions) {
		if steps = append(steps, tracetest.Step{Block: 2, Values: []uint64{0x10000 + 8*i}}); i%3 > 0 {
			steps = append(steps, tracetest.Step{Block: 3, Values: []uint64{0x20000 + 64*(i%50)}})
		}
	}
	return p, tracetest.Rows(p, append(steps, tracetest.Step{Block: 1, Values: []uint64{0x10000}})...)
}

// TestWindowsOfExecutions divides executions of blocks. In this case, private caches and their
// windows see the accesses in the order of Algorithm 1, and shared caches see them in the order of
// Algorithm 2. The test compares the results with naive stacks for these traces.
func TestWindowsOfExecutions(t *testing.T) {
	p, whole := oneRegion(900)
	opened := 0
	open := func(o multicore.Options) (predict.Threads, error) {
		opened++
		return multicore.Mimic(tracetest.NewProgramReader(p, whole, 0), o, nil)
	}
	h := caches("L1=1KiB,full", "L2=4KiB,full,shared=all")
	for _, division := range []multicore.Division{multicore.ByRegion, multicore.AsPrinted} {
		opened = 0
		o := multicore.Options{Division: division}
		r := run(t, predict.Question{Cores: []int{3}, Options: o, Hierarchy: h, Stacks: true, Windows: []predict.WindowSampling{{Looked: blocksample.All, Weights: blocksample.Counted}, {Looked: blocksample.All, Weights: blocksample.Printed}}}, open)[0]
		if opened != 2 {
			t.Errorf("%s: the trace was read %d times, want once for each order", division, opened)
		}
		o.Cores = 3
		misses := func(apart, together bool, lines uint32) (n float64) {
			o.Apart = apart
			threads, err := open(o)
			if err != nil {
				t.Fatal(err)
			}
			threads.Select(trace.DataKinds)
			models, b := map[uint32]*stack.Exact{}, trace.NewBatch(0)
			for threads.Next(b) == nil {
				for i, addr := range b.Addr {
					core := b.Thread[i]
					if together {
						core = 0
					}
					if models[core] == nil {
						models[core] = stack.NewExact()
					}
					var d [1]uint32
					if models[core].Distances([]trace.Line{addr / 64}, d[:]); d[0] >= lines {
						n++
					}
				}
			}
			return n
		}
		first, last := &r.Windowed[0][0], &r.Windowed[0][1]
		if l := &r.Levels[0]; l.Misses != misses(true, false, 16) || l.Coherence != 0 || l.Cores[0].Misses+l.Cores[1].Misses+l.Cores[2].Misses != l.Misses || l.Cores[2].Accesses == 0 {
			t.Errorf("%s: simulated %+v", division, l)
		}
		for k, l := range r.Modelled {
			if w := &r.Windowed[0][k]; l.Method != hierarchy.SDCM || l.Bounded || l.Looked != nil || l.Misses != w.Misses || l.Global != w.Global {
				t.Errorf("%s: SDCM predicts %+v from complete stacks, and %+v from all windows, want equal predictions", division, l, w)
			}
		}
		if want := misses(true, false, 16); math.Abs(first.Misses-want) > 1e-6 {
			t.Errorf("%s: %v misses in private caches, want %v", division, first.Misses, want)
		}
		if want := misses(false, true, 64); math.Abs(last.Misses-want) > 1e-6 {
			t.Errorf("%s: %v misses in the shared cache, want %v", division, last.Misses, want)
		}
		if other := r.Windowed[1][0]; other.Global == first.Global {
			t.Errorf("%s: the hit ratios by the printed and by the corrected equations are equal", division)
		}
	}
}

// TestSampleOfFewLines checks that an estimate from a few lines includes a confidence interval and
// the number of lines. The tests of package analysis/sample/estimate check the accuracy of
// confidence intervals.
func TestSampleOfFewLines(t *testing.T) {
	h := caches("L1=8KiB,full", "L2=64KiB,16,shared=2", "L3=128KiB,16,shared=all")
	open := new(countingSource).open(40_000, 40_000)
	truth := run(t, predict.Question{Cores: []int{1, 4}, Stacks: true, Hierarchy: h}, open)
	within, of := 0, 0
	for seed := range uint64(8) {
		for i, r := range run(t, predict.Question{Cores: []int{1, 4}, Stacks: true, Sample: predict.FewLines(seed), Hierarchy: h}, open) {
			for k, l := range r.Modelled {
				if l.Method != hierarchy.SampledSDCM || l.Looked == nil || l.Looked.Lines < 300 || l.Looked.Lines > 1100 || l.Looked.Accesses > l.Looked.All/4 {
					t.Fatalf("%+v, %+v", l, l.Looked)
				}
				if !l.Bounded || l.Low > l.Global || l.High < l.Global {
					t.Errorf("%d cores: %+v", r.Cores, l)
				}
				const tie = 1e-7
				if off := math.Abs(l.Global - truth[i].Modelled[k].Global); off > 2*(l.High-l.Low) {
					t.Errorf("%d cores: %+v is off by %v", r.Cores, l, off)
				}
				if of++; l.Low-tie <= truth[i].Modelled[k].Global && truth[i].Modelled[k].Global <= l.High+tie {
					within++
				}
			}
		}
	}
	if within < of*3/4 {
		t.Errorf("only %d of %d confidence intervals contain the true value", within, of)
	}
	if truth[0].Modelled[0].Bounded || truth[1].Modelled[0].Looked != nil {
		t.Error("an exact result has a confidence interval")
	}
}
