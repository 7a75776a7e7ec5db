package export

import (
	"math/bits"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// distanceSums gives for each site the sum of the stack distances of its
// accesses. Sites know their distances in bins, the histogram each one, so the
// sum of a bin is exact, and the sites share it by their accesses in the bin.
// What they get adds up to the sum of all distances.
func distanceSums(p *profile.Profile) []uint64 {
	sums := make([]uint64, len(p.Sites.Code))
	l := p.LocalityAt(p.Sites.LineBytes)
	if l == nil {
		return sums
	}
	var ofBin [profile.SiteBins]uint64
	counts, _ := l.Histogram(trace.AllKinds)
	for d, n := range counts.All() {
		bin := profile.SiteBin(uint32(min(d, 1<<32-1)))
		carry, product := bits.Mul64(d, n)
		if carry != 0 {
			product = 1<<64 - 1
		}
		ofBin[bin] = saturatingAdd(ofBin[bin], product)
	}
	var at [profile.SiteBins][]share
	for i := range p.Sites.Code {
		for _, b := range p.Sites.Code[i].Reuse.Bins {
			at[b.Bin] = append(at[b.Bin], share{site: i, weight: b.Count})
		}
	}
	for bin, shares := range at {
		apportion(ofBin[bin], shares)
		for _, s := range shares {
			sums[s.site] = saturatingAdd(sums[s.site], s.part)
		}
	}
	return sums
}

// share is what one of several gets of a whole number.
type share struct {
	site   int
	weight uint64
	part   uint64
}

// apportion divides total by weight, in whole numbers that add up to it: rounded
// down, and what is left goes to the largest remainders (Hamilton's method). The
// weights add up to less than 2^64.
func apportion(total uint64, shares []share) {
	var weights uint64
	for i := range shares {
		weights = saturatingAdd(weights, shares[i].weight)
	}
	if weights == 0 {
		return
	}
	remainders := make([]uint64, len(shares))
	order := make([]int, len(shares))
	left := total
	for i := range shares {
		high, low := bits.Mul64(total, shares[i].weight)
		shares[i].part, remainders[i] = bits.Div64(high, low, weights)
		left -= shares[i].part
		order[i] = i
	}
	sort.SliceStable(order, func(x, y int) bool { return remainders[order[x]] > remainders[order[y]] })
	for _, i := range order[:min(left, uint64(len(order)))] {
		shares[i].part++
	}
}
