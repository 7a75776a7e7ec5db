package predict

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// setSampleBounds sets a level's sample size and confidence interval if SDCM uses a sample of
// lines. The parameter "all" is the number of accesses to the first level.
func (l *Level) setSampleBounds(found *profile.Profile, all float64) {
	if !found.Sampled.Estimates() {
		return
	}
	for i := range found.Sampled.Sizes {
		if s := &found.Sampled.Sizes[i]; s.LineBytes == l.Cache.LineBytes {
			l.Looked = &Looked{Lines: s.Lines, Accesses: s.Samples, All: uint64(all)}
		}
	}
	misses, low, high, ok := fullBounds(found, &l.Cache)
	if !ok || all == 0 {
		return
	}
	// Scale the confidence interval for the fully associative cache of the same size.
	scale := 1.0
	if misses > 0 {
		scale = l.Misses / misses
	}
	l.Low, l.High, l.Bounded = max(0, 1-max(high*scale, l.Misses)/all), min(1, 1-min(low*scale, l.Misses)/all), true
}

// fullBounds returns the misses of fully associative caches of the same size as c, summed over all
// cores, with a confidence interval of at least 95 %. The estimates for all cores use the same
// sampled lines, so their errors may be correlated. Therefore, the widths of the confidence
// intervals are added.
func fullBounds(found *profile.Profile, c *hierarchy.Cache) (misses, low, high float64, ok bool) {
	lines := c.Lines()
	add := func(h *profile.Histogram, cold uint64, bounds []profile.Bound) {
		m := profile.NewCurve(h, cold).Misses(lines)
		b := profile.Bound{Low: m, High: m}
		if len(bounds) > 0 {
			b = profile.BoundAt(bounds, lines)
		}
		misses, low, high = misses+float64(m), low+float64(min(b.Low, m)), high+float64(max(b.High, m))
	}
	if len(found.Sharing) == 0 {
		l := found.LocalityAt(c.LineBytes)
		b, ok := found.MissBounds(c.LineBytes, lines)
		if !ok || l == nil {
			return 0, 0, 0, false
		}
		h, cold := l.Histogram(trace.AllKinds)
		add(h, cold, []profile.Bound{b})
		return misses, float64(b.Low), float64(b.High), true
	}
	at := slices.IndexFunc(found.Sharing, func(s profile.Sharing) bool { return s.LineBytes == c.LineBytes })
	if at < 0 {
		return 0, 0, 0, false
	}
	s := &found.Sharing[at]
	for first := 0; first < len(s.Cores); {
		end := int(min(uint64(first)+uint64(max(c.SharedBy, 1)), uint64(len(s.Cores))))
		if end == first+1 {
			x, bounds := &s.Cores[first].Coherent, []profile.Bound(nil)
			if off := s.Cores[first].Off; off != nil {
				bounds = off.Coherent
			}
			add(&x.Distances, x.Cold+x.Lost.Total(), bounds)
			first = end
			continue
		}
		d := slices.IndexFunc(s.Domains, func(d profile.Domain) bool {
			return len(d.Cores) == end-first && d.Cores[0] == uint32(first) && d.Cores[len(d.Cores)-1] == uint32(end-1)
		})
		if d < 0 {
			return 0, 0, 0, false
		}
		for k := range s.Domains[d].Members {
			m := &s.Domains[d].Members[k]
			add(&m.Distances, m.Cold, m.Bounds)
		}
		first = end
	}
	return misses, low, high, true
}

// byThread samples the stacks of the threads. It analyses the common stack of all accesses only
// until a second thread appears, because a prediction does not need a complete profile.
type byThread struct{ analysis.Sampling }

// Locality returns the analysis of the common stack of all accesses.
func (s byThread) Locality(lineBytes []uint32) analysis.SampledLocality {
	return &singleThread{SampledLocality: s.Sampling.Locality(lineBytes), lineBytes: lineBytes}
}

// singleThread analyses the common stack until a second thread appears.
type singleThread struct {
	analysis.SampledLocality
	lineBytes []uint32
	several   bool   // whether a second thread has appeared
	seen      bool   // whether the field "first" is known
	first     uint32 // the first thread
}

// Consume analyses rows until a second thread appears.
func (a *singleThread) Consume(b *trace.Batch) error {
	if a.isOver(b) {
		return nil
	}
	return a.SampledLocality.Consume(b)
}

// ConsumePiece analyses a part of the only reference in b (see contract.PieceConsumer).
func (a *singleThread) ConsumePiece(b *trace.Batch, from, end uint64) {
	if !a.isOver(b) {
		a.SampledLocality.ConsumePiece(b, from, end)
	}
}

// isOver reports whether several threads have appeared in b or in an earlier batch.
func (a *singleThread) isOver(b *trace.Batch) bool {
	if a.several || b.Thread == nil {
		return a.several
	}
	if !a.seen && b.Len() > 0 {
		a.seen, a.first = true, b.Thread[0]
	}
	a.several = slices.ContainsFunc(b.Thread, func(t uint32) bool { return t != a.first })
	return a.several
}

// Result sets the locality in the profile. If there are several threads, it sets only the line
// sizes.
func (a *singleThread) Result(p *profile.Profile, state bool) {
	if !a.several {
		a.SampledLocality.Result(p, state)
		return
	}
	for _, n := range a.lineBytes {
		p.Locality = append(p.Locality, profile.Locality{LineBytes: n})
	}
}
