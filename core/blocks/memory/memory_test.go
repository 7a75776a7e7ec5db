package memory

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// fromHistogram returns the profile of a histogram, with a span for each distance.
func fromHistogram(h *profile.Histogram, cold uint64) *Profile {
	p := &Profile{Cold: float64(cold)}
	for d, n := range h.All() {
		p.Spans = append(p.Spans, Span{d, d + 1, float64(n)})
	}
	return p
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }

func levels(latency []float64) (h hierarchy.Hierarchy) {
	for i := range latency[:len(latency)-1] {
		h.Levels = append(h.Levels, hierarchy.Cache{Name: "L" + string(rune('1'+i)), LatencyCycles: latency[i]})
	}
	h.Memory = hierarchy.Memory{LatencyCycles: latency[len(latency)-1]}
	return h
}

// TestAverageLatencyOfTwoLevels checks that, for two levels, the average latency equals the
// expanded formula.
func TestAverageLatencyOfTwoLevels(t *testing.T) {
	got, known, err := AverageLatency(levels([]float64{4, 12, 200}), []float64{0.9, 0.97})
	const p1, p2 = 0.9, (0.97 - 0.9) / (1 - 0.9)
	if want := p1*4 + (1-p1)*(p2*12+(1-p2)*200); err != nil || !near(got, want) || !known {
		t.Errorf("AverageLatency = %v cycles, known %v, error %v, want %v cycles", got, known, err, want)
	}
}

// TestAverageLatencyIsSumOverLevels checks that the average latency, which is computed level by
// level from conditional hit ratios, equals the sum of each level's latency weighted by its share
// of the accesses.
func TestAverageLatencyIsSumOverLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "levels")
		var ratios, latency []float64
		for range n {
			ratios = append(ratios, rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.9, 0.99, 1}).Draw(t, "ratio"))
		}
		for range n + 1 {
			latency = append(latency, rapid.Float64Range(1, 300).Draw(t, "latency"))
		}
		got, known, err := AverageLatency(levels(latency), ratios)
		if err != nil {
			t.Fatalf("%v", err)
		}
		above, want := 0.0, 0.0
		for i, p := range append(ratios, 1) {
			want += max(0, p-above) * latency[i]
			above = max(above, p)
		}
		if !near(got, want) || !known {
			t.Fatalf("AverageLatency = %v cycles, known %v, want %v cycles", got, known, want)
		}
	})
}

// TestUnknownLatency checks that a level's unknown latency matters only if some accesses hit in
// that level.
func TestUnknownLatency(t *testing.T) {
	h := levels([]float64{4, 0, 200})
	for _, k := range []struct {
		ratios []float64
		known  bool
	}{{[]float64{0.5, 0.7}, false}, {[]float64{0.5, 0.5}, true}, {[]float64{0, 0}, true}, {[]float64{1, 1}, true}} {
		if _, known, err := AverageLatency(h, k.ratios); err != nil || known != k.known {
			t.Errorf("hit ratios %v: known = %v, error %v", k.ratios, known, err)
		}
	}
	for _, ratios := range [][]float64{{0.5}, {0.5, math.NaN()}, {0.5, 1.5}, {-1, 0}} {
		if _, _, err := AverageLatency(h, ratios); err == nil {
			t.Errorf("AverageLatency accepted the hit ratios %v", ratios)
		}
	}
}

// TestLatencyEqualsHierarchyPrediction checks that package hierarchy predicts the same cost for the
// same histogram.
func TestLatencyEqualsHierarchyPrediction(t *testing.T) {
	l := profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 1000}}}
	for d := range uint64(30_000) {
		l.Kinds[0].Distances.AddN(d, 1+1_000_000/(1+d))
	}
	p := &profile.Profile{Locality: []profile.Locality{l}}
	reuse := fromHistogram(l.Histogram(trace.AllKinds))
	for _, name := range []string{"i7-4770K", "i7-6700", "epyc-7742", "graviton2"} {
		h, err := hierarchy.Preset(name)
		if err != nil {
			continue
		}
		want, _, err := hierarchy.Predict(p, h)
		if err != nil {
			t.Fatal(err)
		}
		ratios := make([]float64, len(h.Levels))
		for i, c := range h.Levels {
			hits, _ := reuse.Hits(c)
			ratios[i] = min(1, hits/reuse.Accesses())
		}
		got, known, err := AverageLatency(h, ratios)
		if err != nil {
			t.Fatal(err)
		}
		if known != (want.AverageCycles > 0) || known && math.Abs(got/want.AverageCycles-1) > 1e-9 {
			t.Errorf("%s: AverageLatency = %v cycles, known %v, want %v cycles", name, got, known, want.AverageCycles)
		}
	}
}

// TestProfileIsSumOfBlockProfiles checks that the profile of a trace is the sum of its blocks'
// profiles, weighted by their numbers of references.
func TestProfileIsSumOfBlockProfiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var lines []uint64 // most recent first
	var all profile.Histogram
	var by [3]profile.Histogram
	var cold [3]uint64
	var runs, refs [3]uint64
	access := func(block int, line uint64) {
		refs[block]++
		for d, l := range lines {
			if l == line {
				copy(lines[1:d+1], lines[:d])
				lines[0] = line
				all.Add(uint64(d))
				by[block].Add(uint64(d))
				return
			}
		}
		lines = append([]uint64{line}, lines...)
		cold[block]++
	}
	for range 3000 {
		runs[0]++
		for range 9 {
			access(0, r.Uint64N(200))
		}
		if r.Uint64N(3) > 0 {
			runs[1]++
			access(1, 1000)
		} else {
			runs[2]++ // this block contains no references
		}
	}
	var blocks []Block
	for i := range by {
		blocks = append(blocks, Block{float64(runs[i]), float64(refs[i]) / float64(runs[i]), fromHistogram(&by[i], cold[i])})
	}
	got := Mix(blocks)
	if !near(got.Cold, float64(cold[0]+cold[1])) {
		t.Errorf("Mix: %v cold accesses, want %d", got.Cold, cold[0]+cold[1])
	}
	i := 0
	for d, n := range all.All() {
		if s := got.Spans[i]; s.From != d || s.To != d+1 || !near(s.Accesses, float64(n)) {
			t.Fatalf("Mix: span %+v, want %d accesses at distance %d", s, n, d)
		}
		i++
	}
	if i != len(got.Spans) {
		t.Errorf("Mix: %d distances, want %d", len(got.Spans), i)
	}

	// Blocks without a profile are assumed to behave like the blocks that have a profile.
	blocks[1].Reuse = nil
	got = Mix(blocks)
	if !near(got.Accesses(), float64(refs[0]+refs[1])) {
		t.Errorf("Mix: %v accesses, want %d", got.Accesses(), refs[0]+refs[1])
	}
	if got := Mix(nil); got.Accesses() != 0 {
		t.Errorf("Mix(nil) = %v, want an empty profile", got)
	}
}

// TestHitsOfBinnedProfile checks that the number of hits is exact at the edge of a bin, and
// approximately correct within a bin.
func TestHitsOfBinnedProfile(t *testing.T) {
	var h profile.Histogram
	bins := profile.Reuse{Cold: 7}
	counts := map[int]uint64{}
	for d := range uint64(5000) {
		n := 1 + d*7919%13
		h.AddN(d, n)
		counts[profile.SiteBin(uint32(d))] += n
	}
	for bin := range profile.SiteBins {
		if n := counts[bin]; n > 0 {
			bins.Bins = append(bins.Bins, profile.BinCount{Bin: uint8(bin), Count: n})
		}
	}
	exact, binned := fromHistogram(&h, 7), FromReuse(&bins)
	if !near(exact.Accesses(), binned.Accesses()) {
		t.Fatalf("the binned profile has %v accesses, want %v", binned.Accesses(), exact.Accesses())
	}
	for lines := uint64(1); lines < 5000; lines++ {
		c := hierarchy.Cache{SizeBytes: 64 * lines, LineBytes: 64}
		want, _ := exact.Hits(c)
		got, how := binned.Hits(c)
		at := profile.SiteBinFrom(profile.SiteBin(uint32(lines))) == lines
		if at && !near(got, want) || math.Abs(got/want-1) > 0.1 || how != hierarchy.Exact {
			t.Fatalf("%d lines: %v hits (%s), want %v", lines, got, how, want)
		}
	}
	c := hierarchy.Cache{SizeBytes: 64 * 512, LineBytes: 64, Ways: 8}
	want, _ := exact.Hits(c)
	if got, how := binned.Hits(c); math.Abs(got/want-1) > 0.01 || how != hierarchy.SDCM {
		t.Errorf("%v hits (%s) in a set-associative cache, want about %v", got, how, want)
	}
}
