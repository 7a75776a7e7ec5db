package hierarchy

import (
	"math"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// The methods of levels of a sampled profile (MODELS §8): those above, with distances
// that are estimates.
const (
	Sampled            Method = "sampled"
	SampledSDCM        Method = "sampled-sdcm"
	SampledIndependent Method = "sampled-independent"
	WindowedSDCM       Method = "windowed-sdcm" // from some executions of each block (package multicore/blocksample)
)

// estimated reports whether a profile's distances are estimates. Where whole stretches
// of the run were analysed, they are exact for these.
func estimated(p *profile.Profile) bool { return p.Sampled.Estimates() }

// IsSDCM reports whether the stack distance cache model gives the misses.
func (m Method) IsSDCM() bool { return m == SDCM || m == SampledSDCM || m == WindowedSDCM }

// IsSampled reports whether they rest on a sample.
func (m Method) IsSampled() bool {
	return m == Sampled || m == SampledSDCM || m == SampledIndependent || m == WindowedSDCM
}

// sample marks a level of a sampled profile, and gives it the interval of the misses
// of a fully associative cache of its capacity, less or more by as much as the level's
// misses are.
func (a *Asker) sample(l *Level, fullMisses float64) {
	if !estimated(a.p) {
		return
	}
	if l.Method = Sampled; !l.Cache.Full() {
		l.Method, l.Beside = SampledSDCM, false
	}
	b, ok := a.p.MissBounds(l.Cache.LineBytes, l.Cache.Lines())
	if !ok {
		return
	}
	l.Low, l.High, l.Bounded = float64(b.Low), float64(b.High), true
	if scale := l.Misses / fullMisses; fullMisses > 0 {
		l.Low, l.High = l.Low*scale, l.High*scale
	}
	l.Low, l.High = min(l.Low, l.Misses), max(l.High, l.Misses)
}

// SampleDoubt says what the counts of a sampled profile rest on; "" for others.
func SampleDoubt(s *profile.Sampled) string {
	switch {
	case s == nil || s.Mode != profile.OnOffSample && !s.Estimates():
		return "" // all lines are in the sample
	case s.Mode == profile.OnOffSample:
		return s.Chip() + ": counts are of these; what was accessed in between is not on the stacks, so distances across a gap are too short, and values written in between count as older ones"
	}
	for i := range s.Sizes {
		if len(s.Sizes[i].Bounds) == 0 {
			return s.Chip() + ": counts are estimates, and the sample is too small to tell how good; take a larger one"
		}
	}
	return s.Chip() + ": counts are estimates, with the interval that has the truth in 95 of 100 runs"
}

// ModelledSets is the table of sets that the stack distance cache model expects from
// the distances of a line size (MODELS §5), for profiles that have none.
func ModelledSets(l *profile.Locality) *profile.SetTable {
	curve := profile.NewCurve(l.Histogram(trace.AllKinds))
	t := new(profile.SetTable)
	for a := range t.Depths {
		sets, before := uint64(1)<<a, uint64(0)
		for d := range t.Depths[a] {
			ways := uint64(d) + 1
			hits := uint64(math.Round(expectedHits(curve, sets*ways, ways)))
			if a == 0 {
				hits = curve.Hits(ways)
			}
			hits = max(hits, before)
			t.Depths[a][d], before = hits-before, hits
		}
	}
	return t
}
