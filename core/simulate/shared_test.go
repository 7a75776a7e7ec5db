package simulate

import (
	"io"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// predictedByCore predicts the counts of each core from a profile with per-thread stacks.
func predictedByCore(t *rapid.T, b *trace.Batch, h hierarchy.Hierarchy, domains [][]uint32) (hierarchy.ByCore, *profile.Profile) {
	spec := analysis.Spec{Analyses: analysis.Locality | analysis.Sets | analysis.Sharing, Domains: domains}
	run, err := analysis.NewRunner(spec, tracetest.NewReader(b, 0))
	for err == nil {
		err = run.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	p := run.Finish(profile.State{})
	predicted, _, err := hierarchy.NewAsker(p).Predict(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return predicted, p
}

// On each core, predictions for a first level equal the simulation. This is true for private
// caches, for a cache shared by all cores and, if there are no stores, for caches shared by some
// cores.
func TestExactPredictionsByCore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, _ := drawLines(t)
		b = references(b)
		shared := rapid.SampledFrom([]uint32{0, 2, hierarchy.AllCores}).Draw(t, "shared by")
		if shared == 2 {
			for i := range b.Kind {
				b.Kind[i] = trace.Load
			}
		}
		c := privateCache(1<<rapid.IntRange(0, 4).Draw(t, "log2 sets"), rapid.Uint64Range(1, 20).Draw(t, "ways"))
		c.SharedBy = shared
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}
		s := begin(t, h, Options{Cores: ascending(b.Thread)})
		if err := s.Consume(b); err != nil {
			t.Fatal(err)
		}
		r := s.Result()
		predicted, p := predictedByCore(t, b, h, inTwos(b.Thread))
		if len(p.Sharing) == 0 {
			return
		}
		l, got := predicted.Levels[0], r.Levels[0].Run
		if l.Method != hierarchy.Exact || !near(l.Misses, got.Misses()) || l.Accesses != float64(got.Accesses()) {
			t.Fatalf("%s: predicted %v misses in %v accesses (%s), want %d in %d", c, l.Misses, l.Accesses, l.Method, got.Misses(), got.Accesses())
		}
		for k, core := range predicted.Cores {
			got := r.Levels[0].Cores[k]
			exact := c.Full() || shared == 0
			if one := core.Levels[0]; one.Accesses != float64(got.Accesses()) || exact && !near(one.Misses, got.Misses()) {
				t.Fatalf("%s of threads %v: predicted %+v, want %d misses in %d accesses", c, core.Threads, one, got.Misses(), got.Accesses())
			} else if c.Full() && one.Coherence != float64(got.CoherenceMisses) {
				t.Fatalf("%s of threads %v: predicted %v coherence misses, want %d", c, core.Threads, one.Coherence, got.CoherenceMisses)
			}
		}
	})
}

// If a core's private exclusive levels have the same number of sets, they behave like one stack
// with holes. An invalidated line leaves a free way in the level that contained the line.
func TestPrivateExclusiveLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, _ := drawLines(t)
		b = references(b)
		h := drawExclusive(t)
		for i := range h.Levels {
			h.Levels[i].SizeBytes *= uint64(64 / h.Levels[i].LineBytes)
			h.Levels[i].LineBytes = 64
		}
		s := begin(t, h, Options{Cores: ascending(b.Thread)})
		if err := s.Consume(b); err != nil {
			t.Fatal(err)
		}
		r := s.Result()
		predicted, _ := predictedByCore(t, b, h, nil)
		for k, core := range predicted.Cores {
			for i, l := range core.Levels {
				got := &r.Levels[i].Cores[k]
				if l.Accesses != float64(got.Accesses()) || l.Misses != float64(got.Misses()) || predicted.Levels[i].Method != hierarchy.Exact {
					t.Fatalf("%s of threads %v: predicted %+v (%s), want %d misses in %d accesses", r.Levels[i].Cache, core.Threads, l, predicted.Levels[i].Method, got.Misses(), got.Accesses())
				}
			}
		}
	})
}

// near reports whether x and n are equal, except for rounding errors that occur when a sum is
// divided among cores.
func near(x float64, n uint64) bool { return math.Abs(x-float64(n)) < 1e-6 }

// ascending assigns each thread to a separate core, in ascending order.
func ascending(threads []uint32) (cores [][]uint32) {
	for _, t := range slices.Compact(slices.Sorted(slices.Values(threads))) {
		cores = append(cores, []uint32{t})
	}
	return cores
}

// inTwos returns domains of two cores each.
func inTwos(threads []uint32) (domains [][]uint32) {
	for pair := range slices.Chunk(ascending(threads), 2) {
		if len(pair) == 2 {
			domains = append(domains, slices.Concat(pair...))
		}
	}
	return domains
}
