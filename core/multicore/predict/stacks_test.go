package predict_test

import (
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestSampledStacks checks that the stack of all accesses is not analysed if stacks are sampled,
// because the predictions do not need it.
func TestSampledStacks(t *testing.T) {
	for _, test := range []struct {
		alone, iterations int
		cores             int // number of cores, out of four, that make references
	}{{5000, 40_000, 4}, {5000, 0, 4}, {0, 20_000, 2}, {20_000, 0, 1}} {
		q := predict.Question{Cores: []int{4}, Hierarchy: caches("L1=4KiB,4", "L2=64KiB,8,128,shared=2", "L3=256KiB,full,128,shared=all"), Stacks: true, Sample: predict.FewLines(1)}
		open := func(multicore.Options) (predict.Threads, error) {
			threads := newTeam(test.alone, test.iterations, test.cores)
			threads.kinds, threads.closed = trace.DataKinds, new(int)
			return threads, nil
		}
		got := run(t, q, open)[0].Modelled

		spec := analysis.Spec{Analyses: analysis.Sharing, Sample: q.Sample, LineBytes: []uint32{64, 128}, Domains: [][]uint32{{0, 1}, {2, 3}}}
		threads, _ := open(q.Options)
		r, err := analysis.NewRunner(spec, threads)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = r.Step()
		}
		found := r.Finish(profile.State{})
		want, _, err := hierarchy.NewAsker(found).Predict(q.Hierarchy, nil)
		if err != nil {
			t.Fatal(err)
		}
		var misses, expected []float64
		for i := range got {
			misses = append(misses, got[i].Misses)
			if expected = append(expected, want.Levels[i].SDCMMisses); i == 2 {
				expected[i] = want.Levels[i].Misses
			}
			if i > 0 {
				expected[i] = min(expected[i], expected[i-1])
			}
			size := found.Sampled.Sizes[min(i, 1)]
			of, estimates := got[i].Looked, found.Sampled.Estimates()
			if (of != nil) != estimates || estimates && (of.Lines != size.Lines || of.Accesses != size.Samples) {
				t.Errorf("%+v: level %d has sample size %+v, want %+v", test, i, of, size)
			}
		}
		if len(got) != 3 || !reflect.DeepEqual(misses, expected) {
			t.Errorf("%+v: misses by level %v, want %v", test, misses, expected)
		}
	}
}
