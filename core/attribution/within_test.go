package attribution_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestWindowsAddUpToTheRun checks that the misses of all windows add up to the misses of the run,
// for each site, data object and level of random hierarchies. OverTime and GroupsOverTime must return the same misses.
func TestWindowsAddUpToTheRun(t *testing.T) {
	windows := 0
	rapid.Check(t, func(t *rapid.T) {
		spec := analysis.Spec{Analyses: analysis.Sites, LineBytes: []uint32{64, 128}}
		if rapid.Bool().Draw(t, "cores") {
			spec.Analyses |= analysis.Sharing
		}
		if rapid.Bool().Draw(t, "measured") {
			spec.Utilisation, spec.UtilisationWays = []uint64{64 * 8, 64 * 32}, []uint32{0, 2}
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		program := tracetest.RandomProgram(rng)
		program.Objects = []trace.Object{{Name: "a", Addr: 1, Bytes: 5000}, {Name: "b", Addr: 6000, Bytes: 900}}
		p := analysed(t, spec, program, tracetest.RandomSteps(rng, program, 200+rng.IntN(4000)))
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{drawCache(t, "L1"), drawCache(t, "L2")}}
		h.Levels[0].Inclusion = 0
		r, ok := attribution.New(p)
		if !ok {
			return
		}
		whole, _, err := r.Attribute(h)
		if err != nil {
			return
		}
		n := len(p.Timeline.Windows)
		windows += n
		accesses, misses := r.OverTime(whole)
		groups, count := make([]int, len(p.Sites.Code)), 1+rng.IntN(3)
		for s := range groups {
			groups[s] = rng.IntN(count+1) - 1
		}
		grouped := make([][][]float64, len(whole))
		for i := range whole {
			grouped[i] = r.GroupsOverTime(&whole[i], groups, count)
		}
		type sums struct{ sites, data, coherence []float64 }
		all := make([]sums, len(whole))
		for i := range all {
			all[i] = sums{make([]float64, len(p.Sites.Code)), make([]float64, len(p.Sites.Data)), make([]float64, len(p.Sites.Code))}
		}
		for w := range n {
			part, ok := r.Within(w, w+1)
			if !ok {
				t.Fatalf("the profile has no window %d", w)
			}
			levels, _, err := part.Attribute(h)
			if err != nil {
				t.Fatal(err)
			}
			if part.Accesses() != accesses[w] {
				t.Fatalf("window %d has %d accesses, want %d", w, part.Accesses(), accesses[w])
			}
			for i := range levels {
				if got := sum(levels[i].Sites) + levels[i].Rest; !near(misses[i][w], got) {
					t.Fatalf("window %d, level %d: OverTime returns %v misses, but the sites have %v", w, i, misses[i][w], got)
				}
				if got, most := misses[i][w], float64(accesses[w]); got > most*(1+1e-9) && whole[i].Level.Misses <= float64(r.Accesses()) {
					t.Fatalf("window %d, level %d: there are %v misses, but only %v accesses", w, i, got, most)
				}
				byGroup := make([]float64, count)
				for s, m := range levels[i].Sites {
					if groups[s] >= 0 {
						byGroup[groups[s]] += m
					}
				}
				for g, want := range byGroup {
					if !near(grouped[i][g][w], want) {
						t.Fatalf("window %d, level %d: group %d has %v misses, want %v", w, i, g, grouped[i][g][w], want)
					}
				}
				for s, m := range levels[i].Sites {
					if here := float64(part.Reuse(attribution.Line, s).Accesses()); m > here*(1+1e-9) {
						t.Fatalf("window %d, level %d: there are %v misses of site %d, but only %v accesses", w, i, m, s, here)
					}
					all[i].sites[s] += m
				}
				for d, m := range levels[i].Data {
					all[i].data[d] += m
				}
				for s, m := range levels[i].SiteCoherence {
					all[i].coherence[s] += m
				}
			}
		}
		for i := range whole {
			for s, want := range whole[i].Sites {
				if !near(all[i].sites[s], want) {
					t.Fatalf("%v: site %d of level %d has %v misses in all windows, want %v", h.Lines(), s, i, all[i].sites[s], want)
				}
			}
			for d, want := range whole[i].Data {
				if !near(all[i].data[d], want) {
					t.Fatalf("%v: object %d of level %d has %v misses in all windows, want %v", h.Lines(), d, i, all[i].data[d], want)
				}
			}
			for s, want := range whole[i].SiteCoherence {
				if !near(all[i].coherence[s], want) {
					t.Fatalf("%v: site %d of level %d has %v coherence misses in all windows, want %v", h.Lines(), s, i, all[i].coherence[s], want)
				}
			}
		}
	})
	if windows < 200 {
		t.Errorf("%d windows were compared, want at least 200", windows)
	}
}

// In a fully associative cache whose number of lines is a power of two, the misses in a part of the
// run are known exactly: the misses before the end of the part minus the misses before its
// beginning.
func TestWindowsAreExact(t *testing.T) {
	compared := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 5))
		program := tracetest.RandomProgram(rng)
		steps := tracetest.RandomSteps(rng, program, 2000+rng.IntN(6000))
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", LineBytes: 64, SizeBytes: 64 << rng.IntN(6)}}}
		p := analysed(t, analysis.Spec{Analyses: analysis.Sites}, program, steps)
		r, ok := attribution.New(p)
		if !ok || len(p.Timeline.Windows) < 2 {
			continue
		}
		from := rng.IntN(len(p.Timeline.Windows))
		to := from + 1 + rng.IntN(len(p.Timeline.Windows)-from)
		part, _ := r.Within(from, to)
		levels, _, err := part.Attribute(h)
		if err != nil {
			t.Fatal(err)
		}
		upTo := func(windows int) (misses float64) {
			if windows == 0 {
				return 0
			}
			spec := analysis.Spec{Analyses: analysis.Locality, Limit: uint64(windows) * p.Timeline.References}
			predicted, _, err := hierarchy.NewAsker(analysed(t, spec, program, steps)).Predict(h, nil)
			if err != nil {
				t.Fatal(err)
			}
			return predicted.Levels[0].Misses
		}
		want := upTo(to) - upTo(from)
		if got := levels[0].Level.Misses; got != want || !levels[0].Exact {
			t.Errorf("seed %d: windows %d to %d have %v misses, want %v", seed, from, to, got, want)
		}
		if got := part.Curve().Misses(h.Levels[0].Lines()); float64(got) != want {
			t.Errorf("seed %d: the curve has %d misses, want %v", seed, got, want)
		}
		compared++
	}
	if compared < 10 {
		t.Errorf("the test compared %d runs, want more", compared)
	}
}

// If a program alternates between two tasks, its phases also alternate, and are named after the
// tasks.
func TestPhasesAlternate(t *testing.T) {
	program := &trace.Program{
		Modules:   []trace.Module{{Name: "a.c", Base: 1, End: 100}},
		Functions: []trace.Function{{Name: "fill"}, {Name: "add"}},
	}
	for n := range uint32(2) {
		program.Blocks = append(program.Blocks, trace.Block{Function: n, Label: "b", FirstSite: n, Sites: 1})
		program.Sites = append(program.Sites, trace.Site{Kind: trace.Load, Bytes: 8, Block: n, Place: trace.Place{File: "a.c", Line: n + 1}})
	}
	var steps []tracetest.Step
	for i := range uint64(40_960) {
		steps = append(steps, tracetest.Step{Block: uint32(i / 10_240 % 2), Values: []uint64{i % 5000 * 8}})
	}
	p := analysed(t, analysis.Spec{Analyses: analysis.Sites}, program, steps)
	r, _ := attribution.New(p)
	list, next := r.Phases(), 0
	for i, at := range list {
		if at.From != next || at.To <= at.From || at.Number != i%2+1 || p.Sites.Code[at.Site].Function != program.Functions[i%2].Name {
			t.Errorf("phase %d is %+v, want phases that alternate", i, at)
		}
		next = at.To
	}
	if len(list) != 4 || next != len(p.Timeline.Windows) {
		t.Errorf("unexpected phases: %d phases, and the last phase ends at window %d of %d", len(list), next, len(p.Timeline.Windows))
	}
}
