package estimate

import (
	"math"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Result implements [contract.Analysis].
func (a *Analysis) Result(p *profile.Profile, state bool) {
	p.Sampled = sampledOf(a.options)
	p.Sampled.Read = p.Totals.AllReferences()
	for _, s := range a.sizes {
		l, size := s.result()
		p.Locality = append(p.Locality, l)
		p.Sampled.Sizes = append(p.Sampled.Sizes, size)
	}
	if state {
		c := codec.Writer(nil)
		sizes := uint64(len(a.sizes))
		c.U64s(&a.done, &sizes)
		for _, s := range a.sizes {
			s.code(c)
		}
		p.Segment.Sample = c.Out
	}
}

// result scales the counts of the sample to all accesses.
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

// estimate contains estimated counts of accesses beyond the front.
type estimate struct {
	deep profile.Histogram
	cold uint64
}

func (e *estimate) add(other *estimate) {
	e.deep.Merge(&other.deep)
	e.cold += other.cold
}

// estimate scales the sampled accesses of one kind by the given factor. If the factor is 0, it
// scales the accesses so that their sum equals the known number of accesses.
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
	b := scaledCounts{left: all, factor: factor}
	e.cold = b.take(cold)
	b.addHistogram(&s.deep[kind], &e.deep, math.MaxUint64)
	b.addRemaining(&e.deep, uint64(s.front))
	return e
}

const someSamples = 8 // number of samples of the whole run that are added to each window

// windowRows distributes, for each window, the accesses beyond the front over the bins. windowRows
// uses the proportions of the window's samples, combined with the proportions of all samples of the
// run (pooled), which have a small weight.
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

const (
	fewLines    = 32   // minimum number of sampled lines, or of single samples, for an interval
	student     = 2.13 // quantile 0.975 of Student's t-distribution with groups-1 degrees of freedom; slightly too large for single samples
	studentTalk = 2.36 // the same quantile with talkGroups-1 degrees of freedom
	// number of standard deviations by which all distances may be off in the same direction
	deviations = 2
)

// bounds returns the confidence intervals of misses at the edges of profile.SiteBin. Two quantities
// are uncertain. The first is the number of accesses whose distance is at least a capacity; its
// error is computed from the variance between independent groups. The second is the set of
// distances, whose errors may all have the same sign. The interval for a capacity therefore also
// includes the misses at slightly smaller and larger capacities.
func (s *lineSize) bounds(l *profile.Locality, factor float64, size *profile.SampledSize) (list []profile.Bound) {
	single := s.front == 0
	if single && size.Samples < fewLines || !single && size.Lines < fewLines {
		return nil
	}
	counts, cold := l.Histogram(trace.AllKinds)
	misses := siteBinMisses(counts, cold)
	off := s.offByGroups(factor, size)
	if single {
		off = offBySamples(misses, size.Samples)
	}
	return boundsOf(&misses, &off, s.front, s.sampler.deviation)
}

// boundsOf returns the confidence intervals of the numbers of misses. The parameter off contains
// the errors of these numbers. For capacities of at most front lines, the misses are exact.
func boundsOf(misses *[outOf + 1]uint64, off *[outOf + 1]profile.Bound, front uint32, deviation func(distance float64) float64) (list []profile.Bound) {
	most := misses[profile.SiteBin(front)] // number of accesses that may miss
	for bin := 0; bin <= outOf; bin++ {
		capacity := profile.SiteBinFrom(bin)
		if capacity <= uint64(front) {
			list = append(list, profile.Bound{Low: misses[bin], High: misses[bin]})
			continue
		}
		wide := deviations * deviation(float64(capacity))
		below := profile.SiteBin(uint32(min(float64(capacity)*max(0, 1-wide), math.MaxUint32)))
		above := profile.SiteBin(uint32(min(float64(capacity)*(1+wide), math.MaxUint32)))
		if wide > 0 && above < outOf {
			above = min(above+1, outOf)
		}
		high := min(misses[below]+off[below].High, most)
		low := misses[above] - min(off[above].Low, misses[above])
		list = append(list, profile.Bound{Low: min(low, high), High: high})
		if bin == outOf || misses[below] == misses[outOf] {
			break // all larger capacities have the same number of misses
		}
	}
	return list
}

// siteBinMisses returns, for each bin, the misses of a fully associative LRU cache of
// SiteBinFrom(bin) lines.
func siteBinMisses(counts *profile.Histogram, cold uint64) (misses [outOf + 1]uint64) {
	for d, n := range counts.All() {
		misses[profile.SiteBin(uint32(d))] += n
	}
	misses[outOf] = cold
	for bin := outOf - 1; bin >= 0; bin-- {
		misses[bin] += misses[bin+1]
	}
	return misses
}

// offByGroups computes the errors of the numbers of misses from the variance between groups. The
// errors decrease as the sampling rate approaches 1.
func (s *lineSize) offByGroups(factor float64, size *profile.SampledSize) (off [outOf + 1]profile.Bound) {
	var sums [groups]float64
	rest := 1 - profile.RateOf(size.Threshold)
	for bin := outOf; bin >= 0; bin-- {
		var sum, squares float64
		for g := range sums {
			sums[g] += float64(s.spread[g][bin])
			sum += sums[g]
		}
		for _, x := range sums {
			squares += (x - sum/groups) * (x - sum/groups)
		}
		half := uint64(math.Ceil(student * factor * math.Sqrt(rest*squares*groups/(groups-1))))
		off[bin] = profile.Bound{Low: half, High: half}
	}
	return off
}

// offBySamples does the same as offByGroups for independent samples. It uses Wilson's score
// interval (Wilson, 1927).
func offBySamples(misses [outOf + 1]uint64, samples uint64) (off [outOf + 1]profile.Bound) {
	all, n := float64(misses[0]), float64(samples)
	const z2 = student * student
	for bin, m := range misses {
		p := float64(m) / max(all, 1)
		middle := (p + z2/(2*n)) / (1 + z2/n)
		half := student / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
		off[bin] = profile.Bound{Low: uint64(max(0, p-middle+half) * all), High: uint64(max(0, middle+half-p) * all)}
	}
	return off
}
