package simulate

import (
	"io"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// Predictions that are marked as exact equal the simulator's counts. Predictions are exact for a
// first level with LRU replacement, whether it is set-associative or fully associative, and for
// exclusive levels below it that have the same number of sets.
func TestExactPredictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, b := drawExclusive(t), drawBatch(t)
		spec := analysis.Spec{LineBytes: []uint32{h.Levels[0].LineBytes}, Analyses: analysis.Locality | analysis.Sets}
		run, err := analysis.NewRunner(spec, tracetest.NewReader(b, 0))
		if err != nil {
			t.Fatal(err)
		}
		s := begin(t, h, Options{})
		run.Beside(s.Consume)
		for err == nil {
			err = run.Step()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		predicted, _, err := hierarchy.Predict(run.Finish(profile.State{}), h)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range s.Result().Levels {
			p := predicted.Levels[i]
			if p.Method != hierarchy.Exact || p.Accesses != float64(l.Run.Accesses()) || p.Misses != float64(l.Run.Misses()) {
				t.Fatalf("%s: predicted %v misses in %v accesses (%s), want %d in %d", l.Cache, p.Misses, p.Accesses, p.Method, l.Run.Misses(), l.Run.Accesses())
			}
		}
	})
}

// drawExclusive returns random levels with the same number of sets. The lower levels are exclusive,
// so a set table determines the misses of all levels.
func drawExclusive(t *rapid.T) (h hierarchy.Hierarchy) {
	line := rapid.SampledFrom([]uint32{8, 16, 32}).Draw(t, "line")
	sets := rapid.SampledFrom([]uint32{1, 2, 4, 16}).Draw(t, "sets")
	for i := range rapid.IntRange(1, 3).Draw(t, "levels") {
		ways := rapid.Uint32Range(1, 10).Draw(t, "ways")
		c := hierarchy.Cache{Name: "L" + strconv.Itoa(i+1), LineBytes: line, SizeBytes: uint64(ways * sets * line), Ways: ways}
		if sets == 1 {
			c.Ways = 0
		}
		if i > 0 {
			c.Inclusion = hierarchy.Exclusive
		}
		h.Levels = append(h.Levels, c)
	}
	return h
}

// The predicted misses of a fully associative TLB equal the simulated misses, for every page size.
func TestPredictedTLBsEqualSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, spread := &trace.Batch{}, rapid.UintRange(12, 38).Draw(t, "spread")
		for range rapid.IntRange(1, 2000).Draw(t, "references") {
			addr := rapid.Uint64Range(0, 1<<spread).Draw(t, "address")
			b.Append(trace.Load, addr&^7, 8, 0, 0)
		}
		run, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Pages}, tracetest.NewReader(b, 0))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = run.Step()
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		p := run.Finish(profile.State{})
		for _, page := range profile.PageSizes {
			var h hierarchy.Hierarchy
			if err := h.Add("DTLB=" + strconv.Itoa(rapid.IntRange(profile.LeastEntries, 100).Draw(t, "entries")) + ",full,tlb"); err != nil {
				t.Fatal(err)
			}
			h.PageBytes = page
			predicted, err := hierarchy.NewAsker(p).Translate(h)
			if err != nil {
				t.Fatal(err)
			}
			s := begin(t, h.Translation(), Options{Translation: true})
			if err := s.Consume(b); err != nil {
				t.Fatal(err)
			}
			got, want := predicted.Levels[0], s.Result().Levels[0]
			if got.Method != hierarchy.Exact || got.Accesses != float64(want.Run.Accesses()) || got.Misses != float64(want.Run.Misses()) {
				t.Fatalf("pages of %d bytes: predicted %v misses in %v accesses (%s), want %d in %d", page, got.Misses, got.Accesses, got.Method, want.Run.Misses(), want.Run.Accesses())
			}
		}
	})
}
