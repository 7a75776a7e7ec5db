package attribution_test

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func analysed(t tracetest.Failer, spec analysis.Spec, p *trace.Program, steps []tracetest.Step) *profile.Profile {
	t.Helper()
	spec.Kinds = trace.AllKinds
	r, err := analysis.NewRunner(spec, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatalf("%v", err)
	}
	return r.Finish(profile.State{})
}

func attribute(t tracetest.Failer, p *profile.Profile, h hierarchy.Hierarchy) []attribution.Attribution {
	t.Helper()
	r, ok := attribution.New(p)
	if !ok {
		t.Fatalf("the profile has no sites")
	}
	levels, _, err := r.Attribute(h)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return levels
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) }

// randomProfile returns a profile of a random program with two named variables.
func randomProfile(t *rapid.T, spec analysis.Spec) *profile.Profile {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	program := tracetest.RandomProgram(rng)
	program.Objects = []trace.Object{{Name: "a", Addr: 1, Bytes: 5000}, {Name: "b", Addr: 6000, Bytes: 900}}
	steps := tracetest.RandomSteps(rng, program, 200+rng.IntN(1500))
	return analysed(t, spec, program, steps)
}

func drawCache(t *rapid.T, name string) hierarchy.Cache {
	ways := uint32(rapid.IntRange(1, 16).Draw(t, "ways"))
	c := hierarchy.Cache{Name: name, LineBytes: 64, Ways: ways, SizeBytes: 64 * uint64(ways) * uint64(rapid.IntRange(1, 40).Draw(t, "sets"))}
	if rapid.Bool().Draw(t, "full") {
		c.Ways = 0
	}
	if rapid.IntRange(0, 3).Draw(t, "exclusive") == 0 {
		c.Inclusion = hierarchy.Exclusive
	}
	c.SharedBy = rapid.Uint32Range(0, 4).Draw(t, "shared")
	if rapid.IntRange(0, 4).Draw(t, "longer lines") == 0 {
		c.LineBytes, c.SizeBytes = 128, c.SizeBytes*2
	}
	return c
}

// In each level, the misses of all sites and the unattributed misses add up to the level's misses.
// The misses of all objects also add up to the level's misses.
func TestMissesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := analysis.Spec{LineBytes: []uint32{64, 128}, Domains: [][]uint32{{0, 1}}}
		if rapid.Bool().Draw(t, "on one core") {
			spec.Analyses = analysis.Sites
		}
		if rapid.Bool().Draw(t, "measured") {
			spec.Utilisation = []uint64{64 * 16}
		}
		p := randomProfile(t, spec)
		if p.Sites == nil {
			return
		}
		old := rapid.IntRange(0, 4).Draw(t, "old profile") == 0
		if old {
			p.Sites.Coherent = nil
		}
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{drawCache(t, "L1"), drawCache(t, "L2"), drawCache(t, "L3")}}
		predicted, _, err := hierarchy.NewAsker(p).Predict(h, nil)
		if err != nil {
			t.Skip("the profile has no domain for a cache of the hierarchy")
		}
		for i, l := range attribute(t, p, h) {
			if l.Level != predicted.Levels[i] {
				t.Fatalf("%v: the attributed level is %+v, want the predicted level %+v", l.Level.Cache, l.Level, predicted.Levels[i])
			}
			coherence := 0.0
			if len(predicted.Cores) > 0 {
				coherence = predicted.Coherence[i]
			}
			if rest := attribution.Rest([]attribution.Attribution{l}).Coherence[0]; l.Coherence != coherence || !near(sum(l.SiteCoherence)+rest, coherence) || rest < 0 {
				t.Fatalf("%v: sites have %v coherence misses, and %v are unattributed, want %v in total", l.Level.Cache, sum(l.SiteCoherence), rest, coherence)
			}
			if len(l.Data) > 0 && len(l.SiteCoherence) > 0 && !near(sum(l.DataCoherence), sum(l.SiteCoherence)) {
				t.Fatalf("%v: objects have %v coherence misses, want %v", l.Level.Cache, sum(l.DataCoherence), sum(l.SiteCoherence))
			}
			if got := sum(l.Sites) + l.Rest; !near(got, l.Level.Misses) {
				t.Fatalf("%v: the misses of the sites add up to %v, want %v", l.Level.Cache, got, l.Level.Misses)
			}
			if got := sum(l.Data) + l.Rest; len(l.Data) > 0 && !near(got, l.Level.Misses) {
				t.Fatalf("%v: the misses of the objects add up to %v, want %v", l.Level.Cache, got, l.Level.Misses)
			}
			for i := range l.Sites {
				if most := float64(p.Sites.Code[i].Reuse.Accesses()); l.Sites[i] < 0 || l.Sites[i] > most*(1+1e-9) {
					t.Fatalf("%v: a site has %v misses, but only %v accesses", l.Level.Cache, l.Sites[i], most)
				}
			}
			if l.Rest < 0 || l.Level.Cache.Full() && l.Level.Cache.LineBytes == 64 && l.Level.Method == hierarchy.Exact && l.Rest != 0 && !l.RestUnknown {
				t.Fatalf("%v: %v misses belong to no site, want none", l.Level.Cache, l.Rest)
			}
		}
	})
}

// privateCaches simulates a private cache for each thread. Each thread has its own core. A store
// invalidates the line in the caches of all other threads.
type privateCaches struct {
	caches     map[uint32]*stacktest.Private
	taken      map[[2]uint64]bool // keyed by thread and line: whether a cached line was invalidated by another thread's store
	sets, ways int
}

// accessCache reports whether an access misses, and whether the miss is a coherence miss.
func (c *privateCaches) accessCache(thread uint32, line trace.Line, write bool) (misses, coherence bool) {
	if c.caches[thread] == nil {
		c.caches[thread] = &stacktest.Private{Sets: c.sets, Ways: c.ways}
	}
	for other, cache := range c.caches {
		if write && other != thread && cache.Do(stacktest.Event{Op: stack.LoseOp, Line: line}) {
			c.taken[[2]uint64{uint64(other), line}] = true
		}
	}
	key := [2]uint64{uint64(thread), line}
	misses = !c.caches[thread].Do(stacktest.Event{Op: stack.AccessOp, Line: line})
	coherence = misses && c.taken[key]
	delete(c.taken, key)
	return misses, coherence
}

// The misses attributed to the sites equal the misses in a simulated private cache if its capacity
// is the edge of a bin, or if line utilisation was measured in the cache. At the edges of bins, the
// number of coherence misses also equals the number in the simulated cache.
func TestMissesInPrivateCachesAreExact(t *testing.T) {
	seen := 0.0
	rapid.Check(t, func(t *rapid.T) {
		lines, sets := profile.SiteBinFrom(rapid.IntRange(1, 32).Draw(t, "bin")), 1
		cache := hierarchy.Cache{Name: "L1", SizeBytes: 64 * lines, LineBytes: 64}
		if rapid.Bool().Draw(t, "sets") {
			sets = rapid.IntRange(2, 16).Draw(t, "number of sets")
			cache.Ways = rapid.Uint32Range(1, 4).Draw(t, "ways")
			lines = uint64(sets) * uint64(cache.Ways)
			cache.SizeBytes = 64 * lines
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		program := tracetest.RandomProgram(rng)
		steps := tracetest.RandomSteps(rng, program, 200+rng.IntN(1500))
		for i := range steps { // all threads mostly access the same part of the memory
			for k := range steps[i].Values {
				if rng.IntN(2) == 0 {
					steps[i].Values[k] %= 1 << 10
				}
			}
		}
		spec := analysis.Spec{}
		measured := cache.Ways > 0 || rapid.Bool().Draw(t, "measured")
		if measured {
			spec.Utilisation, spec.UtilisationWays = []uint64{64 * lines}, []uint32{cache.Ways}
		}
		p := analysed(t, spec, program, steps)
		if p.Sites == nil || len(p.Sharing) == 0 {
			return
		}
		rows := tracetest.Rows(program, steps...)
		caches := privateCaches{map[uint32]*stacktest.Private{}, map[[2]uint64]bool{}, sets, int(lines) / sets}
		misses, coherence := map[uint32]float64{}, map[uint32]float64{}
		for i, kind := range rows.Kind {
			if !kind.IsReference() {
				continue
			}
			write := kind == trace.Store || kind == trace.Modify || kind == trace.RangeWrite
			for line := rows.Addr[i] / 64; line <= (rows.Addr[i]+uint64(max(rows.Bytes[i], 1))-1)/64; line++ {
				missed, lost := caches.accessCache(rows.Thread[i], line, write)
				if missed {
					misses[rows.Site[i]]++
				}
				if lost {
					coherence[rows.Site[i]]++
				}
			}
		}
		got := attribute(t, p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{cache}})[0]
		if exact := sets&(sets-1) == 0; got.Exact != exact || got.Rest != 0 { // the number of sets is not a power of two, so a model predicts the total
			t.Fatalf("%v: exact = %v, and %v misses belong to no site", cache, got.Exact, got.Rest)
		}
		if !got.Exact {
			return
		}
		for i := range p.Sites.Code {
			number, lost := p.Sites.Code[i].Number, 0.0
			if got.SiteCoherence != nil {
				lost = got.SiteCoherence[i]
			}
			if got.Sites[i] != misses[number] || sets == 1 && lost != coherence[number] {
				t.Fatalf("%v: site %d has %v misses and %v coherence misses, want %v and %v", cache, number, got.Sites[i], lost, misses[number], coherence[number])
			}
		}
		seen += got.Coherence
	})
	if seen == 0 {
		t.Error("no trace has a coherence miss")
	}
}

// If all cores share a level, the level's counted misses are attributed as in a single-core run.
func TestLevelSharedByAllCores(t *testing.T) {
	program, steps := tracetest.Multiplication(32)
	for i := range steps {
		steps[i].Thread = uint32(i) % 2
	}
	shared := hierarchy.Cache{Name: "L1", SizeBytes: 2 << 10, LineBytes: 64, SharedBy: 2}
	p := analysed(t, analysis.Spec{Utilisation: []uint64{shared.SizeBytes}}, program, steps)
	got := attribute(t, p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{shared}})[0]
	if !got.Exact || got.Coherence != 0 || sum(got.Sites) != got.Level.Misses {
		t.Errorf("the attribution is %+v, want the counted misses", got)
	}
	for i := range p.Sites.Code {
		if want := float64(p.Sites.Code[i].Reuse.Used[0].Fetched); got.Sites[i] != want {
			t.Errorf("site %d has %v misses, want %v", i, got.Sites[i], want)
		}
	}
	private := shared
	private.SharedBy = 0
	own := attribute(t, p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{private}})[0]
	if !near(sum(own.Sites), own.Level.Misses) || own.Level.Misses == got.Level.Misses || own.Countable != "" {
		t.Errorf("the attribution is %+v, want estimated misses of private caches", own)
	}
}

// If a profile has no coherent stacks by site, the misses are not attributed to any site, and a
// warning states this.
func TestProfileWithoutCoherentSites(t *testing.T) {
	program, steps := tracetest.Multiplication(8)
	for i := range steps {
		steps[i].Thread = uint32(i) % 2
	}
	p := analysed(t, analysis.Spec{}, program, steps)
	p.Sites.Coherent = nil
	r, _ := attribution.New(p)
	levels, warnings, err := r.Attribute(hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 1 << 20, LineBytes: 64}}})
	if err != nil {
		t.Fatal(err)
	}
	l := levels[0]
	if l.Exact || !l.RestUnknown || l.Rest <= 0 || l.Coherence <= 0 || !near(sum(l.Sites)+l.Rest, l.Level.Misses) || attribution.RestName(levels) != "(unknown source location)" {
		t.Errorf("the attribution is %+v, want coherence misses that belong to no known site", l)
	}
	if !slices.ContainsFunc(warnings, func(w hierarchy.Warning) bool { return strings.Contains(string(w), "analyze the trace again") }) {
		t.Errorf("the warnings are %q, want a warning about coherence misses", warnings)
	}
}

// At the edges of bins, the misses attributed to each site are exact.
func TestMissesAtBinEdgesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := profile.SiteBinFrom(rapid.IntRange(1, 40).Draw(t, "bin"))
		spec := analysis.Spec{Utilisation: []uint64{64 * lines}}
		p := randomProfile(t, spec)
		if p.Sites == nil {
			return
		}
		p.Sharing = nil // the counts below are for a single cache
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * lines, LineBytes: 64}}}
		counted := attribute(t, p, h)[0]
		binned := *p
		sites := *p.Sites
		sites.Capacities, sites.Ways, binned.Sites = nil, nil, &sites
		got := attribute(t, &binned, h)[0]
		if !got.Exact || !counted.Exact || !slices.Equal(got.Sites, counted.Sites) || !slices.Equal(got.Data, counted.Data) || got.Rest != 0 {
			t.Fatalf("%d lines: the attribution is %+v, want %+v", lines, got, counted)
		}
	})
}

// Between the edges of bins, the sum is exact, and the misses of each site are nearly exact.
func TestMissesBetweenBinEdges(t *testing.T) {
	program, steps := tracetest.Multiplication(48)
	for _, lines := range []uint64{37, 50, 55, 61, 93, 301} {
		p := analysed(t, analysis.Spec{Utilisation: []uint64{64 * lines}}, program, steps)
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * lines, LineBytes: 64}}}
		counted := attribute(t, p, h)[0]
		p.Sites.Capacities, p.Sites.Ways = nil, nil
		got := attribute(t, p, h)[0]
		if !near(sum(got.Sites), counted.Level.Misses) || got.Rest != 0 {
			t.Errorf("%d lines: the misses of the sites add up to %v, want %v", lines, sum(got.Sites), counted.Level.Misses)
		}
		off := 0.0
		for i := range got.Sites {
			off += math.Abs(got.Sites[i] - counted.Sites[i])
		}
		if off > 0.1*counted.Level.Misses {
			t.Errorf("%d lines: the errors of the sites add up to %v of %v misses, want less", lines, off, counted.Level.Misses)
		}
	}
}

// If line utilisation was measured in a set-associative cache, the misses of each site are exact.
// Without this measurement, the misses of the sites are estimates, but their sum is the same.
func TestMeasuredSetAssociativeCache(t *testing.T) {
	program, steps := tracetest.Multiplication(64) // the lines of a column of B are in only 8 of the 64 sets
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 8 << 10, Ways: 2, LineBytes: 64}}}
	p := analysed(t, analysis.Spec{Analyses: analysis.Sites | analysis.Sets, Utilisation: []uint64{8 << 10}, UtilisationWays: []uint32{2}}, program, steps)
	counted := attribute(t, p, h)[0]
	if !counted.Exact || counted.Rest != 0 || sum(counted.Sites) != counted.Level.Misses || counted.Level.Method != hierarchy.Exact {
		t.Errorf("the attribution is %+v, want exactly the level's misses", counted)
	}
	p.Sites.Capacities, p.Sites.Ways = nil, nil
	got := attribute(t, p, h)[0]
	if got.Exact || got.Rest <= 0 || !near(sum(got.Sites)+got.Rest, counted.Level.Misses) {
		t.Errorf("sites have %v misses, and %v misses belong to no site; want some conflict misses without a site, and %v in total", sum(got.Sites), got.Rest, counted.Level.Misses)
	}
}

// Measured counts are used even if the number of sets is not a power of two. In this case, the
// level's total is the measured count instead of a model's prediction.
func TestMeasuredCacheWithAnyNumberOfSets(t *testing.T) {
	program, steps := tracetest.Multiplication(64)
	c := hierarchy.Cache{Name: "L1", SizeBytes: 48 * 64 * 2, Ways: 2, LineBytes: 64}
	spec := analysis.Spec{Analyses: analysis.Sites | analysis.Sets, Utilisation: []uint64{c.SizeBytes}, UtilisationWays: []uint32{c.Ways}}
	p := analysed(t, spec, program, steps)
	var fetched uint64
	for i := range p.Sites.Code {
		fetched += p.Sites.Code[i].Reuse.Used[0].Fetched
	}
	got := attribute(t, p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}})[0]
	if got.Level.Method != hierarchy.Exact || got.Level.Misses != float64(fetched) || !got.Exact || sum(got.Sites) != float64(fetched) {
		t.Errorf("the level has %+v misses by %s, exact: %v; want the counted misses, %d", got.Level.Misses, got.Level.Method, got.Exact, fetched)
	}
	if got.Level.SDCMMisses == got.Level.Misses || !got.Level.Beside {
		t.Errorf("SDCM predicts %v misses, want a number that differs from the exact number", got.Level.SDCMMisses)
	}
	hashed := c
	hashed.Hashed = true
	if got := attribute(t, p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{hashed}})[0]; got.Exact || got.Level.Method != hierarchy.SDCM {
		t.Errorf("unexpected method for hashed sets, which were not measured: %s", got.Level.Method)
	}
}

// The rows contain every site exactly once, and are in descending order of misses.
func TestSitesInDescendingOrder(t *testing.T) {
	program, steps := tracetest.Multiplication(24)
	p := analysed(t, analysis.Spec{}, program, steps)
	r, _ := attribution.New(p)
	levels, _, err := r.Attribute(hierarchy.Hierarchy{Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 1 << 10, LineBytes: 64}, {Name: "L2", SizeBytes: 8 << 10, LineBytes: 64}}})
	if err != nil {
		t.Fatal(err)
	}
	for by, want := range map[attribution.By]int{attribution.Site: 5, attribution.Function: 2, attribution.Line: 5} {
		rows := r.Rows(levels, by, 0)
		var seen []int
		var all attribution.Row
		for i := range rows {
			seen = append(seen, rows[i].Sites...)
			if i > 0 && rows[i].Misses[0] > rows[i-1].Misses[0] {
				t.Errorf("by %s: row %d has more misses than the row before", by, i)
			}
			all.Merge(&rows[i])
		}
		slices.Sort(seen)
		if len(rows) != want || !slices.Equal(seen, []int{0, 1, 2, 3, 4}) {
			t.Errorf("by %s: there are %d rows with the sites %v, want %d rows with all five sites", by, len(rows), seen, want)
		}
		if all.References != p.Totals.AllReferences() || !near(all.Misses[1], levels[1].Level.Misses) {
			t.Errorf("by %s: the rows add up to %d references and %v misses", by, all.References, all.Misses[1])
		}
	}
	if rows := r.Rows(levels, attribution.Site, 0); p.Sites.Code[rows[0].Sites[0]].Variable != "B" || rows[0].Stride() != profile.ConstantStride {
		t.Errorf("the site with the most misses is %+v, want the load of B", p.Sites.Code[rows[0].Sites[0]])
	}
	// A function has one row even if some of its instructions have no source location.
	for i := range p.Sites.Code {
		p.Sites.Code[i].File = "product.c"
	}
	p.Sites.Code[1].File, p.Sites.Code[1].Line = "", 0
	rows := r.Rows(levels, attribution.Function, 0)
	if len(rows) != 2 || rows[0].File == "" || rows[1].File == "" {
		t.Errorf("with an instruction without a source location: %d functions, in the files %q and %q, want 2 functions with a file each", len(rows), rows[0].File, rows[1].File)
	}
}
