package hierarchy_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// withSets returns a profile with the histogram and the set tables of a trace of line numbers. The
// test counts hits naively: each set is a list of lines, most recently used first.
func withSets(lines []uint64) *profile.Profile {
	l := profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load}}, Sets: new(profile.SetTable)}
	for a := range profile.SetCounts {
		sets := map[uint64][]uint64{}
		for _, line := range lines {
			set := line & (1<<a - 1)
			depth := slices.Index(sets[set], line)
			if depth >= 0 {
				sets[set] = slices.Delete(sets[set], depth, depth+1)
			}
			sets[set] = slices.Insert(sets[set], 0, line)
			switch {
			case a == 0 && depth < 0:
				l.Kinds[0].Cold++
			case a == 0:
				l.Kinds[0].Distances.Add(uint64(depth))
			}
			if depth >= 0 && depth < profile.MaxWays {
				l.Sets.Depths[a][depth]++
			}
		}
	}
	p := &profile.Profile{Locality: []profile.Locality{l}}
	p.Totals.References[trace.Load] = uint64(len(lines))
	p.Totals.Bytes[trace.Load] = 8 * uint64(len(lines))
	return p
}

// simulated simulates an LRU cache set by set, and returns its number of misses.
func simulated(lines []uint64, c hierarchy.Cache) (misses float64) {
	sets := map[uint64][]uint64{}
	ways := int(c.Ways)
	if c.Full() {
		ways = int(c.Lines())
	}
	for _, line := range lines {
		set := line % c.Sets()
		at := slices.Index(sets[set], line)
		if at < 0 {
			misses++
			at = len(sets[set])
			sets[set] = append(sets[set], line)
		}
		copy(sets[set][1:at+1], sets[set][:at])
		sets[set][0] = line
		sets[set] = sets[set][:min(len(sets[set]), ways)]
	}
	return misses
}

// lineTrace draws random line numbers that have some locality, and strides that map to few sets.
func lineTrace(t *rapid.T) []uint64 {
	stride := rapid.SampledFrom([]uint64{1, 3, 16, 64}).Draw(t, "stride")
	numbers := rapid.SliceOfN(rapid.Uint64Range(0, 60), 1, 300).Draw(t, "lines")
	for i := range numbers {
		numbers[i] *= stride
	}
	return numbers
}

// For all numbers of sets and ways in the set tables, the predicted first level has as many misses
// as a simulated cache. For a cache with several sets, the prediction also contains SDCM's result.
func TestPredictMatchesSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := lineTrace(t)
		c := hierarchy.Cache{Name: "L1", LineBytes: 64}
		sets := uint64(1) << rapid.IntRange(0, profile.SetCounts-1).Draw(t, "log2 sets")
		c.Ways = rapid.Uint32Range(1, profile.MaxWays).Draw(t, "ways")
		if sets == 1 {
			c.Ways = rapid.Uint32Range(1, 100).Draw(t, "lines")
		}
		c.SizeBytes = sets * uint64(c.Ways) * 64
		p, _, err := hierarchy.Predict(withSets(lines), hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}})
		if err != nil {
			t.Fatal(err)
		}
		l := p.Levels[0]
		if want := simulated(lines, c); l.Misses != want || l.Method != hierarchy.Exact {
			t.Errorf("%s: %v misses by method %s, want %v, exact", c, l.Misses, l.Method, want)
		}
		if l.Accesses != float64(len(lines)) || l.Hits != l.Accesses-l.Misses || p.MemoryAccesses != l.Misses {
			t.Errorf("%s: prediction %+v for %d accesses, want hits and misses to add up to the accesses", c, p, len(lines))
		}
		if l.Beside != (sets > 1) {
			t.Errorf("%s: Beside is %v, want true only for a cache with several sets", c, l.Beside)
		}
	})
}

// Without a set table, SDCM predicts the misses. The result equals the result of SDCM that an exact
// prediction also contains.
func TestPredictFallsBackToSDCM(t *testing.T) {
	var lines []uint64
	for i := range uint64(4000) {
		lines = append(lines, i*i%997)
	}
	with, without := withSets(lines), withSets(lines)
	without.Locality[0].Sets = nil
	one := func(p *profile.Profile, c hierarchy.Cache) (hierarchy.Level, string) {
		t.Helper()
		answer, warnings, err := hierarchy.Predict(p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Levels[0], fmt.Sprint(warnings)
	}
	regular := hierarchy.Cache{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64}
	exact, said := one(with, regular)
	model, doubt := one(without, regular)
	if exact.Method != hierarchy.Exact || model.Method != hierarchy.SDCM || !exact.Beside || model.Beside || exact.SDCMMisses != model.Misses || exact.Misses == model.Misses {
		t.Errorf("prediction with set tables %+v, without set tables %+v; want exact and sdcm", exact, model)
	}
	if strings.Contains(said, "SDCM") || !strings.Contains(doubt, "set tables") {
		t.Errorf("warnings with set tables %s, without set tables %s; want a warning about SDCM only without tables", said, doubt)
	}
	for want, c := range map[string]hierarchy.Cache{
		"hash":           {Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64, Hashed: true},
		"level has 60":   {Name: "L1", SizeBytes: 30 << 10, Ways: 8, LineBytes: 64},
		"32 ways":        {Name: "L1", SizeBytes: 32 << 10, Ways: 64, LineBytes: 64},
		"65,536 sets":    {Name: "L1", SizeBytes: 64 << 20, Ways: 8, LineBytes: 64},
		"sets at random": {Name: "L1", SizeBytes: 48 << 10, Ways: 64, LineBytes: 64},
	} {
		if l, said := one(with, c); l.Method != hierarchy.SDCM || !strings.Contains(said, want) {
			t.Errorf("%s: method %s, warnings %s, want sdcm and %q", c, l.Method, said, want)
		}
	}
}

// Levels with other policies are predicted as LRU, with a warning.
func TestPredictOtherPolicies(t *testing.T) {
	lines := []uint64{1, 2, 3, 1, 2, 3, 64, 128, 192, 1}
	first := hierarchy.Cache{Name: "L1", SizeBytes: 4096, Ways: 4, LineBytes: 64}
	for want, change := range map[string]func(*hierarchy.Cache){
		"tree PLRU":                     func(c *hierarchy.Cache) { c.Replacement = hierarchy.TreePLRU },
		"random replacement":            func(c *hierarchy.Cache) { c.Replacement = hierarchy.Random },
		"does not allocate":             func(c *hierarchy.Cache) { c.Write = hierarchy.WriteBackAround },
		"through to the next":           func(c *hierarchy.Cache) { c.Write = hierarchy.WriteThrough },
		"and writes every store":        func(c *hierarchy.Cache) { c.Replacement, c.Write = hierarchy.Random, hierarchy.WriteThrough },
		"evicted from the levels above": func(c *hierarchy.Cache) { c.Inclusion = hierarchy.Exclusive },
		"smaller than L1":               func(c *hierarchy.Cache) { c.SizeBytes = 2048 },
		"different line sizes":          func(c *hierarchy.Cache) { c.LineBytes = 128 },
		"shared by cores":               func(c *hierarchy.Cache) { c.SharedBy = 8 },
		"sees only the misses":          func(c *hierarchy.Cache) {},
		"it therefore has as many misses as the level above, and no hits": func(c *hierarchy.Cache) { c.SizeBytes, c.Ways = 64, 1 },
		"so it cannot include that level":                                 func(c *hierarchy.Cache) { c.SizeBytes, c.Ways, c.Inclusion = 64, 1, hierarchy.Inclusive },
	} {
		second := hierarchy.Cache{Name: "L2", SizeBytes: 8192, Ways: 4, LineBytes: 64}
		change(&second)
		p := withSets(lines)
		wide := withSets(lines).Locality[0]
		wide.LineBytes = 128
		p.Locality = append(p.Locality, wide)
		answer, warnings, err := hierarchy.Predict(p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{first, second}})
		if err != nil {
			t.Fatal(err)
		}
		if said := fmt.Sprint(warnings); !strings.Contains(said, want) {
			t.Errorf("%s: warnings %s, want %q", second, said, want)
		}
		if answer.Levels[1].Approximate != (second.LineBytes != 64) {
			t.Errorf("%s: approximate %v", second, answer.Levels[1].Approximate)
		}
	}
	first.Replacement = hierarchy.Random
	answer, _, err := hierarchy.Predict(withSets(lines), hierarchy.Hierarchy{Levels: []hierarchy.Cache{first}})
	if err != nil || answer.Levels[0].Method != hierarchy.AsIfLRU {
		t.Errorf("random replacement: method %s, error %v; want as-lru", answer.Levels[0].Method, err)
	}
	p := withSets(lines)
	p.Totals.Threads = []uint32{1, 2}
	if _, warnings, _ := hierarchy.Predict(p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{first}}); !strings.Contains(fmt.Sprint(warnings), "all threads") {
		t.Errorf("two threads and a private cache: warnings %q, want one about all threads", warnings)
	}
}

// MODELS §13.1: E(λ) = P_1 λ_1 + (1−P_1)[P_2 λ_2 + (1−P_2) λ_RAM].
func TestPredictTimeAndTraffic(t *testing.T) {
	p := sample()
	p.Totals.References[trace.Load], p.Totals.Bytes[trace.Load] = 160, 1280
	p.Counters = &profile.Counters{Functions: []profile.FunctionCounters{{Number: profile.NoFunction}}}
	p.Counters.Functions[0].Loose[profile.Instructions] = 1000
	h := hierarchy.Hierarchy{
		Levels: []hierarchy.Cache{
			{Name: "L1", SizeBytes: 64 * 10, LineBytes: 64, LatencyCycles: 4, BytesPerCycle: 64},
			{Name: "L2", SizeBytes: 64 * 2000, LineBytes: 64, LatencyCycles: 12, BytesPerCycle: 32},
		},
		Memory: hierarchy.Memory{LatencyCycles: 200, BytesPerCycle: 8}, ClockGHz: 2,
	}
	got, _, err := hierarchy.Predict(p, h)
	if err != nil {
		t.Fatal(err)
	}
	p1, p2 := 100./200, 70./100
	want := p1*4 + (1-p1)*(p2*12+(1-p2)*200)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	near("average cycles", got.AverageCycles, want)
	near("average nanoseconds", got.AverageNanoseconds, want/2)
	near("average cycles of the accesses that reach L2", got.Levels[1].AverageCycles, p2*12+(1-p2)*200)
	near("bytes from L1", got.Levels[0].Bytes, 1280)
	near("transfer cycles of L1", got.Levels[0].LeastCycles, 20)
	near("bytes from L2", got.Levels[1].Bytes, 6400)
	near("transfer cycles of L2", got.Levels[1].LeastCycles, 200)
	near("bytes from memory", got.MemoryBytes, 30*64)
	near("transfer cycles of memory", got.MemoryLeastCycles, 240)
	near("memory accesses per thousand references", got.PerKiloReference(got.MemoryAccesses), 30./160*1000)
	near("memory accesses per thousand instructions", got.PerKiloInstruction(got.MemoryAccesses), 30)
	h.Levels[1].LatencyCycles = 0
	if got, _, _ = hierarchy.Predict(p, h); got.AverageCycles != 0 || got.AverageNanoseconds != 0 {
		t.Errorf("average time without a latency of L2: %v cycles, want 0", got.AverageCycles)
	}
	h.Levels[1].LatencyCycles, h.Memory.LatencyCycles = 12, 0
	if got, _, _ = hierarchy.Predict(p, h); got.AverageCycles != 0 {
		t.Errorf("average time without a memory latency: %v cycles, want 0", got.AverageCycles)
	}
}

// The fast sums of SDCM equal the plain sums for sparse and for dense distances. The test includes
// numbers of ways for which the sum is computed from the last term to the first.
func TestExpectedHits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 3}}}
		d := rapid.Uint64Range(0, 1<<rapid.IntRange(0, 16).Draw(t, "log2 first")).Draw(t, "first")
		for range rapid.IntRange(1, 1500).Draw(t, "distances") {
			l.Kinds[0].Distances.AddN(d, 1+d%7)
			d += 1 + d*2654435761%rapid.SampledFrom([]uint64{1, 2, 3, 900}).Draw(t, "gap")
		}
		ways := rapid.SampledFrom([]uint32{1, 2, 3, 8, 16, 33, 300, 5000}).Draw(t, "ways")
		c := hierarchy.Cache{Name: "L1", Ways: ways, LineBytes: 64, Hashed: true}
		c.SizeBytes = 64 * uint64(ways) * rapid.Uint64Range(2, 3000).Draw(t, "sets")
		got, _, err := hierarchy.Predict(&profile.Profile{Locality: []profile.Locality{l}}, hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}})
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for d, n := range l.Kinds[0].Distances.All() {
			want += float64(n) * hierarchy.HitProbability(d, c.Lines(), uint64(ways))
		}
		if e := math.Abs(got.Levels[0].Hits - want); e > 1e-9*got.Levels[0].Accesses {
			t.Errorf("%s: %v hits, want %v", c, got.Levels[0].Hits, want)
		}
	})
}

// Predictions do not depend on earlier predictions.
func TestPredictionsAreIndependent(t *testing.T) {
	p := withSets([]uint64{1, 2, 3, 64, 1, 65, 2, 3})
	asker := hierarchy.NewAsker(p)
	for round := range 2 {
		for ways := uint32(1); ways <= 64; ways *= 2 {
			h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 8192, Ways: ways, LineBytes: 64, Hashed: true}}}
			got, _, err := asker.Predict(h, nil)
			want, _, _ := hierarchy.Predict(p, h)
			if err != nil || got.Levels[0] != want.Levels[0] {
				t.Errorf("round %d, %d ways: %+v, %v; want %+v", round, ways, got.Levels[0], err, want.Levels[0])
			}
		}
	}
}

// exactProbability computes the sum in SDCM with a precision of 400 bits.
func exactProbability(distance, lines, ways uint64) float64 {
	if distance < ways {
		return 1
	}
	if ways == lines {
		return 0
	}
	const precision = 400
	newFloat := func(n uint64) *big.Float { return new(big.Float).SetPrec(precision).SetUint64(n) }
	q := new(big.Float).Quo(newFloat(lines-ways), newFloat(lines))
	term := newFloat(1)
	for n := distance; n > 0; n >>= 1 { // compute (1-p)^Δ by repeated squaring
		if n&1 != 0 {
			term.Mul(term, q)
		}
		q = new(big.Float).SetPrec(precision).Mul(q, q)
	}
	sum := newFloat(0)
	for a := uint64(0); a < ways; a++ {
		sum.Add(sum, term)
		term.Mul(term, new(big.Float).Quo(newFloat(distance-a), newFloat(a+1)))
		term.Mul(term, new(big.Float).Quo(newFloat(ways), newFloat(lines-ways)))
	}
	f, _ := sum.Float64()
	return f
}

func TestHitProbability(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	worst := 0.0
	for n := range 4000 {
		ways := 1 + rng.Uint64N(1<<rng.UintN(12))
		if n%4 == 0 {
			ways = 257 + rng.Uint64N(4000)
		}
		lines := ways * (1 + rng.Uint64N(1<<rng.UintN(20)))
		if n%16 == 0 {
			lines = ways // the cache is fully associative
		}
		distance := rng.Uint64N(1<<40 + 1)
		switch n % 3 {
		case 0:
			distance >>= rng.UintN(41)
		case 1: // a stack distance at which the hit probability is neither 0 nor 1
			distance = min(uint64(float64(lines)*(0.3+2*rng.Float64())), 1<<40)
		}
		got, want := hierarchy.HitProbability(distance, lines, ways), exactProbability(distance, lines, ways)
		if e := math.Abs(got - want); e > 1e-9 || math.IsNaN(got) {
			t.Fatalf("distance %d, %d lines, %d ways: %g, want %g", distance, lines, ways, got, want)
		} else if e > worst {
			worst = e
		}
	}
	t.Logf("largest error %g", worst)
}

func TestHitProbabilityDecreases(t *testing.T) {
	for _, c := range [][2]uint64{{512, 8}, {512, 1}, {524288, 16}, {1 << 20, 1 << 12}} {
		last := 1.0
		for d := uint64(0); d < 8*c[0]; d += 1 + c[0]/997 {
			p := hierarchy.HitProbability(d, c[0], c[1])
			if p > last+1e-12 || p < 0 {
				t.Fatalf("%d lines, %d ways: the hit probability at distance %d is %g, want at most %g, the probability at the previous distance", c[0], c[1], d, p, last)
			}
			last = p
		}
	}
}

// sample returns a profile with 100 loads at distance 0, 50 loads at distance 10, 20 loads at
// distance 1,000, and 30 cold misses.
func sample() *profile.Profile {
	l := profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 30}}}
	for d, n := range map[uint64]uint64{0: 100, 10: 50, 1000: 20} {
		l.Kinds[0].Distances.AddN(d, n)
	}
	return &profile.Profile{Locality: []profile.Locality{l}}
}

func TestPredictExact(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * 10, Ways: 0, LineBytes: 64}, {Name: "L2", SizeBytes: 64 * 11, Ways: 0, LineBytes: 64}, {Name: "L3", SizeBytes: 64 * 2000, Ways: 0, LineBytes: 64}}}
	p, warnings, err := hierarchy.Predict(sample(), h)
	if err != nil {
		t.Fatal(err)
	}
	want := [][3]float64{{200, 100, 100}, {100, 50, 50}, {50, 20, 30}}
	for i, l := range p.Levels {
		method := hierarchy.Independent
		if i == 0 {
			method = hierarchy.Exact
		}
		if got := [3]float64{l.Accesses, l.Hits, l.Misses}; got != want[i] || l.Method != method {
			t.Errorf("%s: accesses, hits, misses %v by %s, want %v by %s", l.Cache.Name, got, l.Method, want[i], method)
		}
	}
	if p.MemoryAccesses != 30 || len(warnings) != 1 { // the warning: every level is predicted from all accesses
		t.Errorf("%v accesses to memory and %d warnings, want 30 and 1", p.MemoryAccesses, len(warnings))
	}
	h.Levels[1].Inclusion = hierarchy.Inclusive
	if _, warnings, err = hierarchy.Predict(sample(), h); err != nil || len(warnings) != 2 { // the second warning: L2 evicts lines from L1
		t.Errorf("%d warnings about a hierarchy with an inclusive level (error %v), want 2", len(warnings), err)
	}
}

func TestPredictSDCM(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * 16, Ways: 1, LineBytes: 64}}}
	p, warnings, err := hierarchy.Predict(sample(), h)
	if err != nil {
		t.Fatal(err)
	}
	hits := 100 + 50*math.Pow(15./16, 10) + 20*math.Pow(15./16, 1000)
	if got := p.Levels[0]; math.Abs(got.Hits-hits) > 1e-9 || got.Method != hierarchy.SDCM {
		t.Errorf("%v hits by method %s, want %v by sdcm", got.Hits, got.Method, hits)
	}
	if len(warnings) != 1 || !strings.Contains(string(warnings[0]), "model") {
		t.Errorf("warnings %q, want a warning that mentions the model", warnings)
	}
}

// The number of misses in a small lower level is limited to the number of its accesses, and a
// warning states this.
func TestPredictLimitsMisses(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * 2000, Ways: 0, LineBytes: 64}, {Name: "L2", SizeBytes: 64, Ways: 1, LineBytes: 64}}}
	p, warnings, err := hierarchy.Predict(sample(), h)
	if err != nil || p.Levels[1].Misses != 30 || !strings.Contains(fmt.Sprint(warnings), "as many misses as the level above, and no hits") {
		t.Errorf("%v misses, warnings %q, error %v; want 30 misses and a warning", p.Levels[1].Misses, warnings, err)
	}
}

func TestPredictErrors(t *testing.T) {
	for _, c := range []hierarchy.Cache{{Name: "L1", SizeBytes: 1024, Ways: 0, LineBytes: 32}, {Name: "L1", SizeBytes: 1000, Ways: 0, LineBytes: 64}, {Name: "L1", SizeBytes: 1024, Ways: 3, LineBytes: 64}, {Name: "L1", SizeBytes: 0, Ways: 0, LineBytes: 64}, {Name: "L1", SizeBytes: 1024, Ways: 0, LineBytes: 48}} {
		if _, _, err := hierarchy.Predict(sample(), hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}); err == nil {
			t.Errorf("Predict accepted the cache %s, want an error", c)
		}
	}
	if _, _, err := hierarchy.Predict(sample(), hierarchy.Hierarchy{}); err == nil {
		t.Errorf("Predict accepted a hierarchy without levels, want an error")
	}
}

func TestParseCache(t *testing.T) {
	for s, want := range map[string]hierarchy.Cache{
		"L1=32KiB,8":                  {Name: "L1", SizeBytes: 32768, Ways: 8, LineBytes: 64},
		"L2=1M,full":                  {Name: "L2", SizeBytes: 1 << 20, Ways: 0, LineBytes: 64},
		"x=4096,4,32":                 {Name: "x", SizeBytes: 4096, Ways: 4, LineBytes: 32},
		"L1=32KiB,8,latency=4,hashed": {Name: "L1", SizeBytes: 32768, Ways: 8, LineBytes: 64, LatencyCycles: 4, Hashed: true},
		"L3=8M,16,64, no-allocate ,exclusive,shared=8,write-through,plru,bandwidth=10.5,latency=40": {Name: "L3", SizeBytes: 8 << 20, Ways: 16, LineBytes: 64,
			LatencyCycles: 40, BytesPerCycle: 10.5, SharedBy: 8, Replacement: hierarchy.TreePLRU, Inclusion: hierarchy.Exclusive, Write: hierarchy.WriteThroughAround},
		"a=1K,1,128,lru,write-back":   {Name: "a", SizeBytes: 1024, Ways: 1, LineBytes: 128},
		"a=2K,1,lru,inclusive":        {Name: "a", SizeBytes: 2048, Ways: 1, LineBytes: 64, Inclusion: hierarchy.Inclusive},
		"b=1K,1,random,non-inclusive": {Name: "b", SizeBytes: 1024, Ways: 1, LineBytes: 64, Replacement: hierarchy.Random, Inclusion: hierarchy.NonInclusive},
		" LLC = 2GiB, 16, 64":         {Name: "LLC", SizeBytes: 2 << 30, Ways: 16, LineBytes: 64},
	} {
		got, err := hierarchy.ParseCache(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", s, got, err, want)
		}
		if again, err := hierarchy.ParseCache(got.String()); err != nil || again != got {
			t.Errorf("%q written as %q reads as %+v, %v", s, got, again, err)
		}
	}
	for _, s := range []string{"", "L1", "L1=", "L1=32KiB", "=32KiB,8", "L1=32KiB,0", "L1=32KiB,x", "L1=32KiB,8,64,1", "L1=32iB,8", "L1=-1,8",
		"L1=99999999999T,8", "L1=32KiB,7", "L1=32KiB,8,60", "L1=32XB,8", "L1=32KiB,8,latency", "L1=32KiB,8,latency=-4", "L1=32KiB,8,latency=NaN",
		"L1=32KiB,8,latency=4,latency=5", "L1=32KiB,8,plru,lru", "L1=32KiB,8,bandwidth=1e400", "L1=32KiB,8,shared=0", "L1=32KiB,8,shared=ALL", "L1=32KiB,8,hashed,64", "L1=32KiB,8,", "L1=32KiB,8,colour=red"} {
		if c, err := hierarchy.ParseCache(s); err == nil {
			t.Errorf("ParseCache(%q) = %+v, want an error", s, c)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for s, want := range map[string]hierarchy.Memory{
		"latency=230": {LatencyCycles: 230}, " bandwidth = 7.5 ": {BytesPerCycle: 7.5}, "bandwidth=8,latency=100": {LatencyCycles: 100, BytesPerCycle: 8},
	} {
		got, err := hierarchy.ParseMemory(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", s, got, err, want)
		}
		if again, err := hierarchy.ParseMemory(got.String()); err != nil || again != got {
			t.Errorf("%q written as %q reads as %+v, %v", s, got, again, err)
		}
	}
	for _, s := range []string{"", "latency", "latency=0", "shared=4", "hashed", "latency=1,latency=2", "latency=1,plru"} {
		if m, err := hierarchy.ParseMemory(s); err == nil {
			t.Errorf("ParseMemory(%q) = %+v, want an error", s, m)
		}
	}
}

// FuzzParseCache checks that every cache that ParseCache accepts is the same after it is formatted
// and parsed again.
func FuzzParseCache(f *testing.F) {
	for _, s := range []string{"L1=32KiB,8", "L2=1M,full,128", "L2=1M,8,shared=all", "L3=8M,16,64,no-allocate,exclusive,shared=8,write-through,plru,bandwidth=10.5,latency=40,hashed", "=,", "a=b=c,d,e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := hierarchy.ParseCache(s)
		if err != nil {
			var option *trace.OptionError
			if !errors.As(err, &option) {
				t.Fatalf("ParseCache(%q): error of type %T, want an OptionError", s, err)
			}
			return
		}
		if again, err := hierarchy.ParseCache(c.String()); err != nil || again != c {
			t.Fatalf("%q written as %q reads as %+v, %v; want %+v", s, c, again, err, c)
		}
		if err := c.Check(); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
	})
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{
		"32768": 32768, "32K": 32768, "32k": 32768, "32KB": 32768, "32kb": 32768, "32KiB": 32768, "32kib": 32768, " 32 kB ": 32768,
		"1m": 1 << 20, "1MB": 1 << 20, "2GiB": 2 << 30, "1tb": 1 << 40, "64B": 64, "64b": 64, "0": 0,
	} {
		if got, err := hierarchy.ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, error %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "B", "KiB", "32i", "32ib", "32iB", "32X", "32bk", "32KK", "-1", "1.5K", "16777216T", "32Ki B"} {
		if got, err := hierarchy.ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", s, got)
		}
	}
}

func TestPresets(t *testing.T) {
	names := map[string]bool{}
	for _, h := range hierarchy.Presets() {
		if names[h.Name] || h.Title == "" || len(h.Levels) == 0 {
			t.Errorf("%s: the name is not unique, or the title or the levels are missing", h.Name)
		}
		names[h.Name] = true
		if unnamed := (hierarchy.Hierarchy{Levels: h.Levels, Instructions: h.Instructions, Memory: h.Memory, ClockGHz: h.ClockGHz, Threads: hierarchy.OnOneCore}); unnamed.PresetName() != h.Name {
			t.Errorf("%s: PresetName = %q, want the preset's name", h.Name, unnamed.PresetName())
		}
		if other := (hierarchy.Hierarchy{Levels: h.Levels, Instructions: h.Instructions, ClockGHz: h.ClockGHz}); other.PresetName() != "" {
			t.Errorf("%s with a different memory: PresetName = %q, want \"\"", h.Name, other.PresetName())
		}
		for i, c := range h.Levels {
			if err := c.Check(); err != nil {
				t.Errorf("%s: %v", h.Name, err)
			}
			if again, err := hierarchy.ParseCache(c.String()); err != nil || again != c {
				t.Errorf("%s: %s reads as %+v, %v", h.Name, c, again, err)
			}
			if i > 0 && c.SizeBytes <= h.Levels[i-1].SizeBytes {
				t.Errorf("%s: %s is not larger than the level above", h.Name, c)
			}
			if i > 0 && c.LatencyCycles <= h.Levels[i-1].LatencyCycles || c.LatencyCycles <= 0 {
				t.Errorf("%s: %s has no latency, or its latency is not longer than that of the level above", h.Name, c)
			}
		}
		if last := h.Levels[len(h.Levels)-1]; h.Memory.LatencyCycles <= last.LatencyCycles {
			t.Errorf("%s: memory takes %v cycles and %s takes %v", h.Name, h.Memory.LatencyCycles, last.Name, last.LatencyCycles)
		}
	}
	if len(names) < 10 {
		t.Errorf("%d presets, want ten or more", len(names))
	}
}

// TestPresetInclusionPolicies checks that presets of processors have the inclusion policies of the
// actual processors, and that presets from papers have the default policy, non-inclusive.
func TestPresetInclusionPolicies(t *testing.T) {
	words := map[hierarchy.Inclusion]string{hierarchy.Inclusive: "inclusive", hierarchy.NonInclusive: "-", hierarchy.Exclusive: "exclusive"}
	for name, want := range map[string]string{
		"i7-4770K": "- - inclusive", "i7-6700": "- - inclusive", "i9-12900K": "- - -", "i7-1165G7": "- - -", "xeon-8480": "- - -",
		"ryzen-5800x": "- inclusive exclusive", "ryzen-9950x": "- inclusive exclusive", "epyc-7742": "- inclusive exclusive", "epyc-9654": "- inclusive exclusive", "epyc-9755": "- inclusive exclusive",
		"graviton2": "- inclusive -", "graviton3": "- inclusive -", "snapdragon-865": "- inclusive -", "raspberry-pi-4": "- inclusive", "raspberry-pi-5": "- inclusive -",
		"apple-m1": "- -", "hifive-unmatched": "- inclusive", "opteron": "- exclusive", "sasmm": "- -",
	} {
		h, err := hierarchy.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range h.Levels {
			got = append(got, words[c.Inclusion])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("inclusion policies of %s = %s, want %s", name, strings.Join(got, " "), want)
		}
	}
	if c, err := hierarchy.ParseCache("L2=4KiB,8"); err != nil || c.Inclusion != hierarchy.NonInclusive {
		t.Errorf("%+v, %v, want a non-inclusive level", c, err)
	}
}

func TestPreset(t *testing.T) {
	for _, name := range []string{"i7-4770K", "I7-4770k", "ryzen-5800x", "raspberry-pi-4", "sasmm", "opteron"} {
		if h, err := hierarchy.Preset(name); err != nil || !strings.EqualFold(h.Name, name) {
			t.Errorf("%s: %s, %v", name, h.Name, err)
		}
	}
	for name, want := range map[string]string{
		"i7-4470k": "i7-4770K", "rasberry-pi-4": "raspberry-pi-4", "ryzen": "ryzen-9950x or ryzen-5800x", "zen 4": "epyc-9654",
		"graviton": "graviton2 or graviton3", "opteron2": "opteron", "haswell": "i7-4770K",
	} {
		if _, err := hierarchy.Preset(name); err == nil || !strings.Contains(err.Error(), "as "+want) {
			t.Errorf("%s: error %v, want one that suggests %s", name, err, want)
		}
	}
}
