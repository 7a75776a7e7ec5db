package sample

import (
	"math"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

const (
	fewLines    = 32   // sampled lines, or single samples, that tell of no interval
	student     = 2.13 // quantile 0.975 of Student's t with groups-1 degrees of freedom; a little wide for single samples
	studentTalk = 2.36 // the same with talkGroups-1
	deviations  = 2    // that all distances may be off
)

// bounds returns the intervals of misses at the edges of profile.SiteBin. Two things are
// uncertain: how many accesses have at least the distance of a capacity, which the spread of
// independent groups shows; and the distances, all of which may be off to the same side, so
// that misses of smaller and larger capacities are within.
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

// boundsOf returns intervals of misses that may be off by off. The first front lines are exact.
func boundsOf(misses *[outOf + 1]uint64, off *[outOf + 1]profile.Bound, front uint32, deviation func(distance float64) float64) (list []profile.Bound) {
	most := misses[profile.SiteBin(front)] // that are not known to hit
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
			break // and so it stays
		}
	}
	return list
}

// siteBinMisses returns the misses in fully associative LRU caches of SiteBinFrom lines.
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

// offByGroups returns how far misses may be off, from the spread of the groups. The closer the
// rate is to 1, the less is left to chance.
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

// offBySamples is offByGroups for independent samples, by Wilson's score interval (1927).
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
