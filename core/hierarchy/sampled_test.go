package hierarchy_test

import (
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	sampling "github.com/stackglass/stackglass/core/analysis/sample"
	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // registers the sampling analyses
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// sampledRun analyses a random walk, either completely or as a sample.
func sampledRun(t *testing.T, text string) *profile.Profile { return sampledBy(t, text, 0) }

func sampledBy(t *testing.T, text string, seed uint64) *profile.Profile {
	spec := analysis.Spec{Analyses: analysis.Sets}
	if text != "" {
		o, err := sampling.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Seed = seed
		spec.Sample = o
	}
	r, err := analysis.NewRunner(spec, tracetest.Stream(400_000, tracetest.Zipf(1<<14, 0.8, 3)))
	for err == nil {
		err = r.Step()
	}
	return r.Finish(profile.State{})
}

func TestSampledMethods(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 64 << 10, LineBytes: 64},
		{Name: "L2", SizeBytes: 128 << 10, LineBytes: 64},
		{Name: "L3", SizeBytes: 256 << 10, LineBytes: 64, Ways: 8},
	}}
	want, _, err := hierarchy.Predict(sampledRun(t, ""), h)
	if err != nil {
		t.Fatal(err)
	}
	got, warnings, err := hierarchy.Predict(sampledRun(t, "space=0.1"), h)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) == 0 || warnings[0] != "sampled 10 % of the lines: counts are estimates, with a 95 % confidence interval" {
		t.Errorf("warnings %q, want the warning about the sample first", warnings)
	}
	for i, method := range []hierarchy.Method{hierarchy.Sampled, hierarchy.SampledIndependent, hierarchy.SampledSDCM} {
		l := &got.Levels[i]
		if l.Method != method || !l.Bounded {
			t.Errorf("%s: method %s, bounded %v, want %s with an interval", l.Cache.Name, l.Method, l.Bounded, method)
		}
		if exact := want.Levels[i].Misses; l.Low > exact || l.High < exact || l.Low > l.Misses || l.High < l.Misses {
			t.Errorf("%s: %.0f misses, interval %.0f to %.0f, exact %.0f", l.Cache.Name, l.Misses, l.Low, l.High, exact)
		}
	}
}

// TestSampledLowerLevels checks a level that is only slightly larger than the level above. The
// number of misses in the level above is also an estimate, so it must not limit the interval of the
// lower level.
func TestSampledLowerLevels(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 << 10, LineBytes: 64}, {Name: "L2", SizeBytes: 65 << 10, LineBytes: 64}}}
	want, _, err := hierarchy.Predict(sampledRun(t, ""), h)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 20
	within := 0
	for seed := range uint64(runs) {
		got, _, err := hierarchy.Predict(sampledBy(t, "space=0.02", seed), h)
		if err != nil {
			t.Fatal(err)
		}
		l := &got.Levels[1]
		if l.Low > l.Misses || l.High < l.Misses {
			t.Errorf("%.0f misses, from %.0f to %.0f", l.Misses, l.Low, l.High)
		}
		if exact := want.Levels[1].Misses; l.Low <= exact && exact <= l.High {
			within++
		}
	}
	if within < runs-2 {
		t.Errorf("the interval contained the exact misses in %d of %d runs, want at most two exceptions", within, runs)
	}
}

// TestSetsOfRandomLines checks that randomly chosen lines are distributed among the sets as the
// model predicts.
func TestSetsOfRandomLines(t *testing.T) {
	l := &sampledRun(t, "").Locality[0]
	table := hierarchy.ModelledSets(l)
	for _, sets := range []uint64{1, 16, 1024} {
		for _, ways := range []uint64{1, 4, 32} {
			got, _ := table.Hits(sets, ways)
			want, _ := l.Sets.Hits(sets, ways)
			if off := math.Abs(float64(got)-float64(want)) / float64(l.Accesses()); off > 0.01 || sets == 1 && got != want {
				t.Errorf("%d sets of %d ways: %d predicted hits, want about %d", sets, ways, got, want)
			}
		}
	}
}
