package sample

import (
	"math"

	"github.com/stackglass/stackglass/core/profile"
)

// budget scales counts of a sample by a factor, rounded so that the sum is, but to no more than
// the known number of accesses. The more certain counts come first: first accesses, and then
// the longest distances. What is left over, or missing, is at the shortest distances
// (SHARDS-adj; Waldspurger and others, FAST 2015, section 3.2): it comes from a few lines that
// are accessed very often, and are in the sample or not.
type budget struct {
	left   uint64
	factor float64
	whole  float64
}

func (b *budget) take(n uint64) uint64 {
	before := math.Round(b.whole)
	b.whole += float64(n) * b.factor
	got := min(uint64(math.Round(b.whole)-before), b.left)
	b.left -= got
	return got
}

// histogram adds scaled counts, longest distances first; none is beyond longest.
func (b *budget) histogram(h, out *profile.Histogram, longest uint64) {
	for _, x := range descending(h) {
		out.AddN(min(x.distance, longest), b.take(x.count))
	}
}

// rest adds the accesses that the sample does not account for at a distance.
func (b *budget) rest(out *profile.Histogram, distance uint64) {
	out.AddN(distance, b.left)
	b.left = 0
}
