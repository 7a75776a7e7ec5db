package hierarchy_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// exactProbability sums SDCM's terms with 400 bits.
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
	for n := distance; n > 0; n >>= 1 { // (1-p)^Δ
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
	for range 4000 {
		ways := 1 + rng.Uint64N(1<<rng.UintN(12))
		lines := ways * (1 + rng.Uint64N(1<<rng.UintN(20)))
		distance := rng.Uint64N(1 << rng.UintN(41))
		if rng.IntN(2) == 0 { // where it is neither 0 nor 1
			distance = uint64(float64(lines) * (0.3 + 2*rng.Float64()))
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

func TestHitProbabilityFalls(t *testing.T) {
	for _, c := range [][2]uint64{{512, 8}, {512, 1}, {524288, 16}, {1 << 20, 1 << 12}} {
		last := 1.0
		for d := uint64(0); d < 8*c[0]; d += 1 + c[0]/997 {
			p := hierarchy.HitProbability(d, c[0], c[1])
			if p > last+1e-12 || p < 0 {
				t.Fatalf("%d lines, %d ways: %g at distance %d after %g", c[0], c[1], p, d, last)
			}
			last = p
		}
	}
}

// sample has 100 loads at distance 0, 50 at 10, 20 at 1,000, 30 cold.
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
		method := hierarchy.AsIfInclusive
		if i == 0 {
			method = hierarchy.Exact
		}
		if got := [3]float64{l.Accesses, l.Hits, l.Misses}; got != want[i] || l.Method != method {
			t.Errorf("%s: accesses, hits, misses %v by %s, want %v by %s", l.Cache.Name, got, l.Method, want[i], method)
		}
	}
	if p.MemoryAccesses != 30 || len(warnings) != 1 {
		t.Errorf("%v accesses to memory and %d warnings, want 30 and 1", p.MemoryAccesses, len(warnings))
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
		t.Errorf("%v hits by %s, want %v by sdcm", got.Hits, got.Method, hits)
	}
	if len(warnings) != 1 || !strings.Contains(string(warnings[0]), "model") {
		t.Errorf("warnings %q, want one that says it is a model", warnings)
	}
}

// A small lower level cannot miss more than reaches it, and is told on.
func TestPredictCut(t *testing.T) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * 2000, Ways: 0, LineBytes: 64}, {Name: "L2", SizeBytes: 64, Ways: 1, LineBytes: 64}}}
	p, warnings, err := hierarchy.Predict(sample(), h)
	if err != nil || p.Levels[1].Misses != 30 || !strings.Contains(string(warnings[len(warnings)-1]), "cut") {
		t.Errorf("%v misses, warnings %q, error %v; want 30 misses and a warning", p.Levels[1].Misses, warnings, err)
	}
}

func TestPredictRefuses(t *testing.T) {
	for _, c := range []hierarchy.Cache{{Name: "L1", SizeBytes: 1024, Ways: 0, LineBytes: 32}, {Name: "L1", SizeBytes: 1000, Ways: 0, LineBytes: 64}, {Name: "L1", SizeBytes: 1024, Ways: 3, LineBytes: 64}, {Name: "L1", SizeBytes: 0, Ways: 0, LineBytes: 64}, {Name: "L1", SizeBytes: 1024, Ways: 0, LineBytes: 48}} {
		if _, _, err := hierarchy.Predict(sample(), hierarchy.Hierarchy{Levels: []hierarchy.Cache{c}}); err == nil {
			t.Errorf("%s: predicted, want an error", c)
		}
	}
	if _, _, err := hierarchy.Predict(sample(), hierarchy.Hierarchy{}); err == nil {
		t.Errorf("no level: predicted, want an error")
	}
}

func TestParseCache(t *testing.T) {
	for s, want := range map[string]hierarchy.Cache{
		"L1=32KiB,8":          {Name: "L1", SizeBytes: 32768, Ways: 8, LineBytes: 64},
		"L2=1M,full":          {Name: "L2", SizeBytes: 1 << 20, Ways: 0, LineBytes: 64},
		"x=4096,4,32":         {Name: "x", SizeBytes: 4096, Ways: 4, LineBytes: 32},
		" LLC = 2GiB, 16, 64": {Name: "LLC", SizeBytes: 2 << 30, Ways: 16, LineBytes: 64},
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
		"L1=99999999999T,8", "L1=32KiB,7", "L1=32KiB,8,60", "L1=32XB,8"} {
		if c, err := hierarchy.ParseCache(s); err == nil {
			t.Errorf("%q: %+v, want an error", s, c)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{
		"32768": 32768, "32K": 32768, "32k": 32768, "32KB": 32768, "32kb": 32768, "32KiB": 32768, "32kib": 32768, " 32 kB ": 32768,
		"1m": 1 << 20, "1MB": 1 << 20, "2GiB": 2 << 30, "1tb": 1 << 40, "64B": 64, "64b": 64, "0": 0,
	} {
		if got, err := hierarchy.ParseSize(s); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "B", "KiB", "32i", "32ib", "32iB", "32X", "32bk", "32KK", "-1", "1.5K", "16777216T", "32Ki B"} {
		if got, err := hierarchy.ParseSize(s); err == nil {
			t.Errorf("%q: %d, want an error", s, got)
		}
	}
}

func TestPresets(t *testing.T) {
	for _, h := range hierarchy.Presets() {
		for _, c := range h.Levels {
			if err := c.Check(); err != nil {
				t.Errorf("%s: %v", h.Name, err)
			}
		}
	}
}
