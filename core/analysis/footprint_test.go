package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// footprintOf returns the profile of accesses to the given lines.
func footprintOf(t *testing.T, lines []uint64) *profile.Profile {
	t.Helper()
	whole := &trace.Batch{}
	for _, line := range lines {
		whole.Append(trace.Load, line<<6, 8, 0, 0)
	}
	return checked(t, run(t, analysis.Spec{Analyses: analysis.Footprint | analysis.Locality}, tracetest.NewReader(whole, 100)))
}

// The average footprint equals the mean over all windows, which the test counts one by one.
func TestFootprintEqualsMeanOfWindows(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 51))
		lines := make([]uint64, 1+rng.IntN(300))
		for i := range lines {
			if lines[i] = rng.Uint64N(1 + seed); rng.IntN(4) == 0 {
				lines[i] = uint64(i / 7)
			}
		}
		f := footprintOf(t, lines).Footprint
		for i := 0; profile.FootprintWindow(i) < f.Accesses; i++ {
			w := int(profile.FootprintWindow(i))
			got, growth := f.Average(i)
			if want := meanOfWindows(lines, w); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("seed %d: the average footprint is %v lines in windows of %d accesses, want %v", seed, got, w, want)
			}
			if want := meanOfWindows(lines, w+1) - meanOfWindows(lines, w); math.Abs(growth-want) > 1e-9*got {
				t.Fatalf("seed %d: if windows of %d accesses grow by one access, their average footprint grows by %v lines, want %v", seed, w, growth, want)
			}
		}
	}
}

func meanOfWindows(lines []uint64, w int) float64 {
	sum, windows := 0, len(lines)-w+1
	for from := range windows {
		distinct := map[uint64]bool{}
		for _, line := range lines[from : from+w] {
			distinct[line] = true
		}
		sum += len(distinct)
	}
	return float64(sum) / float64(windows)
}

// For random accesses, the miss ratio that the growth of the footprint predicts equals the miss
// ratio from the stack distances.
func TestFootprintPredictsMisses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 52))
	lines := make([]uint64, 200_000)
	for i := range lines {
		lines[i] = rng.Uint64N(1 << (4 + rng.IntN(9)))
	}
	p := footprintOf(t, lines)
	curve, compared := profile.NewCurve(p.Locality[0].Histogram(trace.AllKinds)), 0
	for i := 0; profile.FootprintWindow(i) < p.Footprint.Accesses/4; i++ {
		size, got := p.Footprint.Average(i)
		want := curve.MissRatio(uint64(size + 0.5))
		if size < 8 || size > float64(p.Footprint.Lines)/2 { // in larger caches, most misses are cold misses
			continue
		}
		if compared++; math.Abs(got-want) > 0.005 {
			t.Errorf("%v lines: the footprint predicts a miss ratio of %v, want %v", size, got, want)
		}
	}
	if compared < 10 {
		t.Errorf("the test compared %d cache sizes, want at least 10", compared)
	}
}

// A saved run with a damaged footprint is either rejected or continued, without a panic.
func TestFootprintRejectsDamagedData(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(1, 53)), 3000)
	spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Footprint}
	state, saved, head := stateAfterStep(t, spec, tracetest.NewReader(whole, 500))
	rejected := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 54))
		p := *saved
		segment, foot := *saved.Segment, *saved.Footprint
		p.Segment, p.Footprint = &segment, &foot
		switch rng.IntN(3) {
		case 0:
			segment.LastUses = append([]byte{}, segment.LastUses...)
			segment.LastUses[rng.IntN(len(segment.LastUses))] ^= 1 << rng.IntN(8)
		case 1:
			segment.LastUses = segment.LastUses[:rng.IntN(len(segment.LastUses))]
		case 2:
			foot.Absences = append([]profile.Absences{}, foot.Absences...)
			foot.Absences[rng.IntN(len(foot.Absences))].Count += rng.Uint64N(5)
		}
		if !canContinue(t, spec, tracetest.NewReader(whole, 500), append(state[:head:head], p.Encode()...)) {
			rejected++
		}
	}
	if rejected < 100 {
		t.Errorf("%d of 300 damaged states were rejected, want at least 100", rejected)
	}
}
