package hierarchy_test

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// stacked returns the stacks of cores that share no lines. Each core accesses the lines of its own
// trace, and the traces run one after another.
func stacked(traces [][]uint64) *profile.Profile {
	s := profile.Sharing{LineBytes: 64, Domains: make([]profile.Domain, 1)}
	var whole []uint64
	for n, lines := range traces {
		l := withSets(lines).Locality[0]
		alone := profile.StackCounts{Cold: l.Kinds[0].Cold, Distances: l.Kinds[0].Distances, Sets: *l.Sets}
		s.Cores = append(s.Cores, profile.Core{Threads: []uint32{uint32(10 * n)}, Private: alone, Coherent: profile.CoherentCounts{StackCounts: alone}})
		d := &s.Domains[0]
		d.Cores = append(d.Cores, uint32(n))
		d.Members = append(d.Members, profile.Member{Cold: alone.Cold, Distances: alone.Distances}) // the cores run one after another, so common distances equal the core's own distances
		for _, line := range lines {
			whole = append(whole, line+uint64(n)<<40)
		}
	}
	p := withSets(whole)
	s.Domains[0].Sets = *p.Locality[0].Sets
	p.Sharing = []profile.Sharing{s}
	return p
}

func drawTraces(t *rapid.T) (traces [][]uint64) {
	for range rapid.IntRange(2, 5).Draw(t, "cores") {
		traces = append(traces, lineTrace(t))
	}
	return traces
}

func predictCores(t interface{ Fatal(...any) }, p *profile.Profile, shares []hierarchy.Share, levels ...string) (hierarchy.ByCore, []hierarchy.Warning) {
	var h hierarchy.Hierarchy
	for _, text := range levels {
		if err := h.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	predicted, warnings, err := hierarchy.NewAsker(p).Predict(h, shares)
	if err != nil {
		t.Fatal(err)
	}
	return predicted, warnings
}

// If cores share no lines, each core has as many misses in each of its private caches as it would
// have alone, and the totals are the sums over the cores.
func TestCoresWithoutSharedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traces := drawTraces(t)
		levels := []string{"L1=512,2", "L2=2KiB,full", "L3=4KiB,16,hashed"}
		got, _ := predictCores(t, stacked(traces), nil, levels...)
		var misses float64
		for n, lines := range traces {
			alone, _ := predictCores(t, withSets(lines), nil, levels...)
			if alone.Cores != nil {
				t.Fatal("a prediction for one thread has several cores")
			}
			for i, want := range alone.Levels {
				l := got.Cores[n].Levels[i]
				if l.Accesses != want.Accesses || l.Hits != want.Hits || l.Misses != want.Misses || l.Coherence != 0 {
					t.Fatalf("%s of core %d: %+v, want %+v", want.Cache, n, l, want)
				}
				if got.Levels[i].Method != want.Method || got.Levels[i].Beside != want.Beside {
					t.Fatalf("%s: method %s, want %s", want.Cache, got.Levels[i].Method, want.Method)
				}
			}
			misses += alone.MemoryAccesses
		}
		if difference := misses - got.MemoryAccesses; difference > 1e-6 || difference < -1e-6 {
			t.Fatalf("%v accesses to memory, want %v", got.MemoryAccesses, misses)
		}
	})
}

// If a shared cache is partitioned, each core uses a cache that is as large as its part. Cores
// without an explicit part share the remaining cache.
func TestPartitionedCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traces := drawTraces(t)
		part := rapid.Uint64Range(1, 10).Draw(t, "lines")
		rest := rapid.Uint64Range(1, 10).Draw(t, "lines per other core")
		whole := part + rest*uint64(len(traces)-1)
		shared := hierarchy.Cache{Name: "L1", SizeBytes: whole * 64, LineBytes: 64, SharedBy: hierarchy.AllCores}
		got, _ := predictCores(t, stacked(traces), []hierarchy.Share{{Thread: 10, SizeBytes: part * 64}}, shared.String())
		for n, lines := range traces {
			c := hierarchy.Cache{Name: "L1", SizeBytes: rest * 64, LineBytes: 64}
			if n == 1 {
				c.SizeBytes = part * 64
			}
			if want := simulated(lines, c); got.Cores[n].Levels[0].Misses != want {
				t.Fatalf("core %d: %v misses in %s, want %v", n, got.Cores[n].Levels[0].Misses, c, want)
			}
		}
	})
}

// Apportioning preserves the sum. Each core receives at least as many misses as it has cold misses,
// and at most as many as it has accesses.
func TestApportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traces := drawTraces(t)
		p := stacked(traces)
		c := hierarchy.Cache{Name: "L1", SizeBytes: 64 * 4 * uint64(rapid.SampledFrom([]int{2, 8, 64}).Draw(t, "sets")), Ways: 4, LineBytes: 64, SharedBy: hierarchy.AllCores}
		got, _ := predictCores(t, p, nil, c.String())
		hits, ok := p.Sharing[0].Domains[0].Sets.Hits(c.Sets(), 4)
		l := got.Levels[0]
		if difference := l.Hits - float64(hits); !ok || difference > 1e-6 || difference < -1e-6 || l.Method != hierarchy.Exact {
			t.Fatalf("%s: %v hits by %s, want %d", c, l.Hits, l.Method, hits)
		}
		for n, core := range got.Cores {
			cold, one := float64(p.Sharing[0].Cores[n].Private.Cold), core.Levels[0]
			if one.Misses < cold-1e-6 || one.Misses > one.Accesses+1e-6 {
				t.Fatalf("core %d: %v misses, want %v to %v", n, one.Misses, cold, one.Accesses)
			}
		}
	})
}

// If the cores share no lines, the models in MODELS §6 agree. In Anger's model, a line whose last
// access was by another core is looked up in a common cache.
func TestCoherenceModelsWithoutSharedLines(t *testing.T) {
	p := stacked([][]uint64{{1, 2, 1, 2}, {1, 2, 3, 1}})
	asker := hierarchy.NewAsker(p)
	c := hierarchy.Cache{Name: "L1", SizeBytes: 2 * 64, LineBytes: 64}
	if v, ok := asker.Views(c); !ok || v != (hierarchy.Views{Accesses: 8, Private: 6, Anger: 6, Coherent: 6, Exact: true}) {
		t.Errorf("%+v", v)
	}
	// In its last access, each core accesses a line whose previous access was by the other core.
	// The distances of these two accesses are 1 and 2 on the private stacks, and 3 and 4 on the
	// common stack.
	for n := range p.Sharing[0].Cores {
		p.Sharing[0].Cores[n].Foreign.Distances.Add(uint64(n + 1))
		p.Sharing[0].Domains[0].Foreign.Distances.Add(uint64(n + 3))
	}
	v, _ := hierarchy.NewAsker(p).Views(c)
	// Private caches of two lines: the first core's access hits in its private cache, and also in a
	// common cache of four lines. The second core's access misses in its private cache and in the
	// common cache.
	if v.Anger != 6 || v.Private != 6 {
		t.Errorf("two lines: %+v", v)
	}
	c.SizeBytes = 3 * 64
	// Private caches of three lines: both accesses hit in the private caches, and in a common cache
	// of six lines.
	if v, _ = hierarchy.NewAsker(p).Views(c); v.Anger != 5 || v.Private != 5 {
		t.Errorf("three lines: %+v", v)
	}
	c.SizeBytes = 128 * 64
	if _, ok := asker.Views(hierarchy.Cache{Name: "L1", SizeBytes: 256, LineBytes: 128}); ok {
		t.Error("Views succeeded for a line size that the profile does not contain")
	}
}

// An access to a line that another core's store has invalidated misses in a cache of any size. The
// miss is a coherence miss if the line would have been in the cache without the invalidation.
func TestCoherenceMisses(t *testing.T) {
	p := stacked([][]uint64{{1, 2, 3, 1}, {1}})
	coherent := &p.Sharing[0].Cores[0].Coherent
	coherent.Lost.AddN(1, 5)
	coherent.Lost.AddN(70, 2)
	for size, want := range map[string]float64{"64": 0, "128": 5, "4KiB": 5, "8KiB": 7} {
		got, _ := predictCores(t, p, nil, "L1="+size+",full", "L2=16KiB,full,shared=all")
		l := got.Cores[0].Levels[0]
		if l.Coherence != want || got.Coherence[0] != want || l.Accesses != 11 || got.Coherence[1] != 0 {
			t.Errorf("%s: %+v, want %v coherence misses", size, l, want)
		}
	}
}

func TestCoreWarnings(t *testing.T) {
	p := stacked([][]uint64{{1}, {1}, {1}})
	s := &p.Sharing[0]
	pair := s.Domains[0]
	pair.Cores, pair.Members = pair.Cores[:2], pair.Members[:2]
	s.Domains = append(s.Domains, pair)
	p.Totals.Threads = []uint32{0, 10, 20}
	p.Input.Header.Sliced = true
	_, warnings := predictCores(t, p, nil, "L1=64,full", "L2=128,full,shared=2", "L3=256,full,shared=all")
	for _, want := range []string{"L2: stores by cores that do not share this cache invalidate its lines", "only by time slice"} {
		if n := strings.Count(join(warnings), want); n != 1 {
			t.Errorf("%q occurs %d times in the warnings %q, want 1", want, n, warnings)
		}
	}
	if strings.Contains(join(warnings), "one core") {
		t.Errorf("%q", warnings)
	}
	s.Domains = s.Domains[:1]
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64, LineBytes: 64, SharedBy: 2}}}
	if _, _, err := hierarchy.NewAsker(p).Predict(h, nil); err == nil || !strings.Contains(err.Error(), "--domains 0,10/20") {
		t.Errorf("no domain for the cores that share L1: error %v, want one that names --domains 0,10/20", err)
	}
}

// A trace without thread numbers is not treated as a trace of one thread.
func TestTraceWithoutThreadNumbers(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 128, LineBytes: 64, SharedBy: 2}}}
	for words, threads := range map[string][]uint32{"does not record which thread": nil, "this program's only thread": {7}} {
		p := withSets([]uint64{1, 2, 1, 3, 1})
		p.Totals.Threads = threads
		_, warnings, err := hierarchy.NewAsker(p).Predict(h, nil)
		if err != nil || strings.Count(join(warnings), "thread") != 1 || !strings.Contains(join(warnings), words) {
			t.Errorf("threads %v: warnings %q, error %v, want one warning about threads, with %q", threads, warnings, err, words)
		}
	}
}

func join(warnings []hierarchy.Warning) (text string) {
	for _, w := range warnings {
		text += string(w) + "\n"
	}
	return text
}

// If the profile has one core, or all threads are placed on one core, the prediction is for one
// core. In both cases, there is no warning about threads that share a core.
func TestOneCore(t *testing.T) {
	h := hierarchy.Hierarchy{Threads: hierarchy.OnOneCore,
		Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 128, LineBytes: 64, SharedBy: 2}, {Name: "L2", SizeBytes: 256, Ways: 2, LineBytes: 64}}}
	apart := h
	apart.Threads = hierarchy.OnOwnCores
	several := stacked([][]uint64{{1, 2, 1, 3, 1}, {1, 2, 1, 3, 1}})
	several.Totals.Threads = []uint32{0, 10}
	for _, k := range []struct {
		p *profile.Profile
		h hierarchy.Hierarchy
	}{{withSets([]uint64{1, 2, 1, 3, 1}), apart}, {several, h}} {
		got, gotWarnings, err := hierarchy.NewAsker(k.p).Predict(k.h, nil)
		single := *k.p
		single.Sharing = nil
		want, wantWarnings, wantErr := hierarchy.NewAsker(&single).Predict(k.h, nil)
		if err != nil || wantErr != nil || got.Cores != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotWarnings, wantWarnings) {
			t.Errorf("prediction %+v with the warnings %v, want %+v with the warnings %v", got, gotWarnings, want, wantWarnings)
		}
		if strings.Contains(join(gotWarnings), "assumes that all threads") {
			t.Errorf("warnings %v", gotWarnings)
		}
	}
	if got, _, err := hierarchy.NewAsker(several).Predict(apart, nil); err != nil || len(got.Cores) != 2 {
		t.Errorf("%+v %v, want two cores", got, err)
	}
	if _, _, err := hierarchy.NewAsker(several).Predict(h, []hierarchy.Share{{Thread: 10, SizeBytes: 64}}); err == nil {
		t.Error("Predict accepted shares of a cache that only one core uses")
	}
}

// The function Predict, which most callers use, returns the sums over the cores.
func TestPredictSumsCores(t *testing.T) {
	several := stacked([][]uint64{{1, 2, 1, 3, 1}, {1, 2, 1, 3, 1}})
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 128, LineBytes: 64}}}
	got, _, err := hierarchy.Predict(several, h)
	want, _, wantErr := hierarchy.NewAsker(several).Predict(h, nil)
	if err != nil || wantErr != nil || !reflect.DeepEqual(got, want.Prediction) {
		t.Errorf("prediction %+v, error %v, want %+v, error %v", got, err, want.Prediction, wantErr)
	}
}

// The method Lines writes everything that the method Add reads, including the placement of threads.
func TestLinesRoundTrip(t *testing.T) {
	for _, lines := range [][]string{
		{"L1=32KiB,8,64,latency=4", "L2=1MiB,16,64,shared=4", "memory=latency=200", "clock=3.5", "threads=one-core"},
		{"L1=32KiB,8,64"},
	} {
		var h hierarchy.Hierarchy
		for _, line := range lines {
			if err := h.Add(line); err != nil {
				t.Fatal(err)
			}
		}
		var again hierarchy.Hierarchy
		for _, line := range h.Lines() {
			if err := again.Add(line); err != nil {
				t.Fatal(err)
			}
		}
		if len(h.Lines()) != len(lines) || !reflect.DeepEqual(h, again) {
			t.Errorf("%q become %q", lines, h.Lines())
		}
	}
	if err := new(hierarchy.Hierarchy).Add("threads=2"); err == nil || !strings.Contains(err.Error(), "one-core") {
		t.Errorf("threads=2: %v", err)
	}
}

// BenchmarkCores predicts three levels for four cores. Each iteration starts from a new profile.
func BenchmarkCores(b *testing.B) {
	l := dense().Locality[0].Kinds[0]
	s := profile.Sharing{LineBytes: 64, Domains: make([]profile.Domain, 1)}
	for n := range uint32(4) {
		counts := profile.StackCounts{Cold: l.Cold, Distances: l.Distances}
		s.Cores = append(s.Cores, profile.Core{Threads: []uint32{n}, Private: counts, Coherent: profile.CoherentCounts{StackCounts: counts}})
		s.Domains[0].Cores = append(s.Domains[0].Cores, n)
		s.Domains[0].Members = append(s.Domains[0].Members, profile.Member{Cold: l.Cold, Distances: l.Distances})
	}
	p := dense()
	p.Sharing = []profile.Sharing{s}
	h, err := hierarchy.Preset("i7-4770K")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := hierarchy.NewAsker(p).Predict(h, nil); err != nil {
			b.Fatal(err)
		}
	}
}
