package sample

import (
	"math"
	"math/bits"
)

// reuse turns reuse times into expected stack distances (Eklov and Hagersten,
// StatStack, ISPASS 2010). Time is counted in lines that leave the front, of which
// each is away for a time. Of those that left j lines ago, a share P(time > j) is
// still away; the lines that left in a stretch of t and are away still are distinct:
//
//	D(t) = Σ_{j<t} P(time > j)
//
// It needs no more than the times of sampled lines, in bins.
type reuse struct {
	left  uint64            // lines that left
	times [reuseBins]uint64 // of those that came back
	upto  [reuseBins]float64
	built uint64 // left, when upto was computed
}

const (
	reuseSub  = 8 // bins to a power of two
	reuseBins = reuseSub * 50
)

// reuseBin returns the bin of a time; reuseFrom the least time of a bin.
func reuseBin(t uint64) int {
	e := bits.Len64(t|reuseSub) - 4
	return min(e*reuseSub+int(t>>e), reuseBins-1)
}

func reuseFrom(bin int) uint64 {
	if bin < 2*reuseSub {
		return uint64(bin)
	}
	e := bin/reuseSub - 1
	return uint64(bin%reuseSub+reuseSub) << e
}

// distance returns D(t).
func (r *reuse) distance(t uint64) float64 {
	if r.left >= r.built+r.built/8+16 {
		r.build()
	}
	bin := reuseBin(t)
	from := reuseFrom(bin)
	if bin == reuseBins-1 {
		return r.upto[bin]
	}
	share := float64(t-from) / float64(reuseFrom(bin+1)-from)
	return r.upto[bin] + share*(r.upto[bin+1]-r.upto[bin])
}

// build computes D at the bins' edges.
func (r *reuse) build() {
	r.built = r.left
	away, sum := float64(r.left), 0.
	for bin := range reuseBins {
		r.upto[bin] = sum
		now := away - float64(r.times[bin])
		sum += (away + now) / 2 / float64(r.left) * float64(reuseFrom(bin+1)-reuseFrom(bin))
		away = now
	}
}

// trust is how well D(t) fits a single access: its relative standard deviation is 1/√trust.
const trust = 24

// weigh combines the expected distance with the number of sampled lines that were
// counted in between, at a rate: each by the inverse of its variance. That of the
// count is binomial; at a rate of 1 it is exact.
func weigh(expected float64, counted int, rate float64) float64 {
	exact := float64(counted) / rate
	if rate >= 1 {
		return exact
	}
	about := max(expected, 1)
	byCount := rate / ((1 - rate) * about)
	byTime := trust / (about * about)
	return math.Max(0, (byCount*exact+byTime*expected)/(byCount+byTime))
}
