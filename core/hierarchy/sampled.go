package hierarchy

import (
	"math"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// The methods for levels of a sampled profile (MODELS §8). These methods apply the methods of
// predict.go to estimated distances.
const (
	Sampled            Method = "sampled"
	SampledSDCM        Method = "sampled-sdcm"
	SampledIndependent Method = "sampled-independent"
	WindowedSDCM       Method = "windowed-sdcm" // from sampled executions of each block (package multicore/blocksample)
)

// estimated reports whether a profile's distances are estimates. Distances of complete segments of
// the run are exact.
func estimated(p *profile.Profile) bool { return p.Sampled.Estimates() }

// IsSDCM reports whether the stack distance cache model computed the misses.
func (m Method) IsSDCM() bool { return m == SDCM || m == SampledSDCM || m == WindowedSDCM }

// markSampled replaces the method by the corresponding method for sampled profiles.
func (l *Level) markSampled() {
	switch l.Beside = false; l.Method {
	case Exact, AsIfLRU:
		l.Method = Sampled
	case SDCM:
		l.Method = SampledSDCM
	case Independent:
		l.Method = SampledIndependent
	}
}

// bound sets the level's confidence interval. It takes the interval of a fully associative cache
// of the same capacity, and scales this interval by misses/fullMisses.
func (a *Asker) bound(l *Level, c Cache, misses, fullMisses float64) {
	b, ok := a.p.MissBounds(c.LineBytes, c.Lines())
	if !ok {
		return
	}
	l.Low, l.High, l.Bounded = float64(b.Low), float64(b.High), true
	if scale := misses / fullMisses; fullMisses > 0 {
		l.Low, l.High = l.Low*scale, l.High*scale
	}
	l.Low, l.High = min(l.Low, misses), max(l.High, misses)
}

// boundBy limits the level's interval by the interval of the level above. If the level above has no
// interval, its number of misses is the limit.
func (l *Level) boundBy(above *Level) {
	low, high := above.Misses, above.Misses
	if above.Bounded {
		low, high = above.Low, above.High
	}
	l.Low, l.High = min(l.Low, low), min(l.High, high)
}

// SampleDoubt returns a caveat about the counts of a sampled profile, or "" for an exact profile.
func SampleDoubt(s *profile.Sampled) string {
	switch {
	case s == nil || s.Mode != profile.OnOffSample && !s.Estimates():
		return "" // all lines are in the sample
	case s.Mode == profile.OnOffSample:
		return s.Chip() + ": only the sampled references are counted; references between samples are not on the stacks, so distances across a gap are too short, and values written in a gap are attributed to older stores"
	}
	for i := range s.Sizes {
		if len(s.Sizes[i].Bounds) == 0 {
			return s.Chip() + ": counts are estimates, and the sample is too small for a confidence interval; take a larger sample"
		}
	}
	return s.Chip() + ": counts are estimates, with a 95 % confidence interval"
}

// ModelledSets returns the set table that the stack distance cache model predicts from the
// distances at one line size (MODELS §5), for profiles without a set table.
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
