package estimate

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// stackSample contains the counts of accesses on one stack: all hits in the front, and the weights of
// the sampled accesses beyond the front.
type stackSample struct {
	near   [frontLines]uint64
	deep   profile.Histogram
	cold   uint64
	spread groupWeights // the weights in deep and cold, divided among the groups
}

// add counts an access at a distance. The parameter group is the group of the access if the access
// is in the sample.
func (c *stackSample) add(distance uint32, weight uint64, group int) {
	switch {
	case distance == passed:
	case distance < frontLines:
		c.near[distance]++
	case distance == stack.Cold:
		c.cold += weight
		c.spread[group&(groups-1)][outOf] += weight
	default:
		c.addSampled(distance, weight, group)
	}
}

// addSampled counts a sampled access at a finite distance.
func (c *stackSample) addSampled(distance uint32, weight uint64, group int) {
	c.deep.AddN(uint64(distance), weight)
	c.spread[group&(groups-1)][profile.SiteBin(distance)] += weight
}

// nearTotal returns the number of accesses that hit in the front.
func (c *stackSample) nearTotal() uint64 { return sum(c.near[:]) }

func sum(list []uint64) (n uint64) {
	for _, x := range list {
		n += x
	}
	return n
}

func (c *stackSample) addNear(h *profile.Histogram) {
	for d, n := range c.near {
		h.AddN(uint64(d), n)
	}
}

func (c *stackSample) code(w *codec.Coder) {
	w.Array(c.near[:])
	codeHistogram(w, &c.deep)
	w.U64(&c.cold)
	c.spread.code(w)
}

// sparseElement is an element of a sparse list: an index and a nonzero number.
type sparseElement struct{ at, n uint64 }

func numbers(h *profile.Histogram) (list []sparseElement) {
	for d, n := range h.All() {
		list = append(list, sparseElement{d, n})
	}
	return list
}

func codeHistogram(c *codec.Coder, h *profile.Histogram) {
	var list []sparseElement
	if !c.Reads() {
		list = numbers(h)
	}
	codec.Slice(c, &list, 2, func(x *sparseElement) {
		codec.Below(c, &x.at, profile.MaxDistance)
		if c.U64(&x.n); c.Reads() {
			h.AddN(x.at, x.n)
		}
	})
}

// groupWeights contains weights by group and by profile.SiteBin. The last element of a group counts
// cold accesses. The groups are independent, so the error of the sum can be computed from the
// variance between the groups.
type groupWeights [groups][outOf + 1]uint64

// code reads or writes the nonzero weights.
func (s *groupWeights) code(c *codec.Coder) {
	for g := range s {
		var list []sparseElement
		for bin, x := range s[g] {
			if x != 0 {
				list = append(list, sparseElement{uint64(bin), x})
			}
		}
		if c.Reads() {
			list = nil
		}
		codec.Slice(c, &list, 2, func(x *sparseElement) {
			codec.Below(c, &x.at, outOf+1)
			if c.U64(&x.n); c.Reads() {
				s[g][x.at] = x.n
			}
		})
	}
}

// noneSeen is the upper bound of the 95 % confidence interval of a count that is 0 in the sample
// (Hanley and Lippman-Hand, 1983). The unit is a sampled access.
const noneSeen = 3

// halfWidth returns the half-width of the confidence interval of a sum. The parameter parts
// contains the sum of each group. The parameter factor is the number of accesses that a sampled
// access represents, and the parameter rest is the share of the accesses that are not in the
// sample.
func halfWidth(parts []float64, factor, rest float64) float64 {
	if rest <= 0 {
		return 0
	}
	n := float64(len(parts))
	var sum, squares float64
	for _, x := range parts {
		sum += x
	}
	for _, x := range parts {
		squares += (x - sum/n) * (x - sum/n)
	}
	quantile := student
	if len(parts) == talkGroups {
		quantile = studentTalk
	}
	return max(noneSeen*factor, quantile*factor*math.Sqrt(rest*squares*n/(n-1)))
}

// scaledCounts scales the counts of a sample by a factor. The sum of the scaled counts is also
// rounded correctly, and does not exceed the known number of accesses. More certain counts take
// precedence: first accesses, and then the longest distances. If the sum is less than the known
// number, the remaining accesses are added at the shortest distances (SHARDS-adj; Waldspurger and
// others, FAST 2015, section 3.2). The sums differ because a few lines are accessed very often, and
// may or may not be in the sample.
type scaledCounts struct {
	left   uint64
	factor float64
	whole  float64
}

func (b *scaledCounts) take(n uint64) uint64 {
	before := math.Round(b.whole)
	b.whole += float64(n) * b.factor
	got := min(uint64(math.Round(b.whole)-before), b.left)
	b.left -= got
	return got
}

// addHistogram adds scaled counts, longest distances first. The parameter longest is the maximum
// distance at which accesses are counted.
func (b *scaledCounts) addHistogram(h, out *profile.Histogram, longest uint64) {
	for _, x := range slices.Backward(numbers(h)) {
		out.AddN(min(x.at, longest), b.take(x.n))
	}
}

// addRemaining adds the accesses that the sample does not represent. All of them are counted at the
// given distance.
func (b *scaledCounts) addRemaining(out *profile.Histogram, distance uint64) {
	out.AddN(distance, b.left)
	b.left = 0
}
