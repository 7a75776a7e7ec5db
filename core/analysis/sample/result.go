package sample

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Result implements analysis.Analysis.
func (a *Analysis) Result(p *profile.Profile, state bool) {
	p.Sampled = a.options.sampled()
	p.Sampled.Read = p.Totals.AllReferences()
	for _, s := range a.sizes {
		l, size := s.result()
		p.Locality = append(p.Locality, l)
		p.Sampled.Sizes = append(p.Sampled.Sizes, size)
	}
	if state {
		p.Segment.Sample = a.save()
	}
}

// result scales the sample to all accesses.
func (s *lineSize) result() (profile.Locality, profile.SampledSize) {
	size := profile.SampledSize{LineBytes: 1 << s.Shift, Samples: s.samples}
	factor, open := s.sampler.describe(&size)
	var pooled estimate
	l := profile.Locality{LineBytes: size.LineBytes}
	kinds := make([]estimate, trace.NumKinds)
	for k := range trace.NumKinds {
		kinds[k] = s.estimate(k, factor, open[k])
		pooled.add(&kinds[k])
		size.Samples += open[k]
		size.Censored += open[k]
	}
	for k := range trace.NumKinds {
		counts := profile.KindLocality{Kind: trace.Kind(k), Cold: kinds[k].cold}
		total := counts.Cold
		for d := range int(s.front) {
			n := s.nearAt(k, d)
			counts.Distances.AddN(uint64(d), n)
			total += n
		}
		for d, n := range kinds[k].deep.All() {
			counts.Distances.AddN(d, n)
			total += n
		}
		if total > 0 {
			l.Kinds = append(l.Kinds, counts)
		}
	}
	l.Windows = s.windowRows(&pooled)
	size.Bounds = s.bounds(&l, factor, &size)
	return l, size
}

// estimate is the estimated accesses that the front does not hold.
type estimate struct {
	deep profile.Histogram
	cold uint64
}

func (e *estimate) add(other *estimate) {
	e.deep.Merge(&other.deep)
	e.cold += other.cold
}

// estimate scales the sample of a kind to the number of accesses that there were: by a
// factor, or, where that is 0, so that the sum is right.
func (s *lineSize) estimate(kind int, factor float64, open uint64) (e estimate) {
	all := s.beyond[kind]
	cold := s.cold[kind] + open
	sampled := cold + s.deep[kind].Total()
	if all == 0 {
		return e
	}
	if s.samples == 0 && open == 0 {
		e.cold = all
		return e
	}
	if factor == 0 && sampled > 0 {
		factor = float64(all) / float64(sampled)
	}
	b := budget{left: all, factor: factor}
	e.cold = b.take(cold)
	b.histogram(&s.deep[kind], &e.deep, math.MaxUint64)
	b.rest(&e.deep, uint64(s.front))
	return e
}

type distanceCount struct{ distance, count uint64 }

func descending(h *profile.Histogram) []distanceCount {
	var list []distanceCount
	for d, n := range h.All() {
		list = append(list, distanceCount{d, n})
	}
	slices.Reverse(list)
	return list
}

// someSamples is how many samples the run as a whole counts for in each window.
const someSamples = 8

// windowRows distributes each window's accesses beyond the front like its samples, or, if these
// are few, like those of the whole run.
func (s *lineSize) windowRows(pooled *estimate) profile.Windows {
	if len(s.windows.rows) > 0 {
		s.closeRow()
	}
	var run profile.WindowRow
	for d, n := range pooled.deep.All() {
		run[profile.DistanceBin(d)] += n
	}
	run[profile.ColdBin] = pooled.cold
	all := max(float64(run.Accesses()), 1)
	prior := someSamples * float64(s.sampler.weight()) / all
	w := profile.Windows{References: s.windows.References, Rows: make([]profile.WindowRow, len(s.windows.rows))}
	for i := range s.windows.rows {
		from, to := &s.windows.rows[i], &w.Rows[i]
		*to = from.near
		weights := float64(from.sample.Accesses()) + prior*all
		if weights == 0 {
			to[profile.ColdBin] += from.beyond
			continue
		}
		var whole float64
		done := uint64(0)
		for bin := range to {
			whole += (float64(from.sample[bin]) + prior*float64(run[bin])) / weights * float64(from.beyond)
			upto := min(uint64(math.Round(whole)), from.beyond)
			to[bin] += upto - done
			done = upto
		}
		to[profile.ColdBin] += from.beyond - done
	}
	return w
}
