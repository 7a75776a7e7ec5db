package sample

import (
	"math"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// counted are accesses on one stack: all that its front holds, and of the others the sampled
// ones, by weight.
type counted struct {
	near   [frontLines]uint64
	deep   profile.Histogram
	cold   uint64
	spread spread // of deep and cold
}

// add counts an access at a distance; it belongs to a group if it is in the sample.
func (c *counted) add(distance uint32, weight uint64, group int) {
	switch {
	case distance == passed:
	case distance < frontLines:
		c.near[distance]++
	case distance == stack.Cold:
		c.cold += weight
		c.spread[group&(groups-1)][outOf] += weight
	default:
		c.sampled(distance, weight, group)
	}
}

// sampled counts a sampled access at a finite distance.
func (c *counted) sampled(distance uint32, weight uint64, group int) {
	c.deep.AddN(uint64(distance), weight)
	c.spread[group&(groups-1)][profile.SiteBin(distance)] += weight
}

// nearTotal returns the number of accesses at near distances.
func (c *counted) nearTotal() (n uint64) {
	for _, x := range c.near {
		n += x
	}
	return n
}

func (c *counted) addNear(h *profile.Histogram) {
	for d, n := range c.near {
		h.AddN(uint64(d), n)
	}
}

func (c *counted) code(w *codec.Coder) {
	w.Array(c.near[:])
	codeHistogram(w, &c.deep)
	w.U64(&c.cold)
	c.spread.code(w)
}

// numbered is a nonzero number of a sparse list.
type numbered struct{ at, n uint64 }

func codeHistogram(c *codec.Coder, h *profile.Histogram) {
	var list []numbered
	if !c.Reads() {
		for d, n := range h.All() {
			list = append(list, numbered{d, n})
		}
	}
	codec.Slice(c, &list, 2, func(x *numbered) {
		codec.Below(c, &x.at, profile.MaxDistance)
		if c.U64(&x.n); c.Reads() {
			h.AddN(x.at, x.n)
		}
	})
}

// spread are weights by group and by profile.SiteBin, cold ones last. As the groups are
// independent, they show how far their sum is off.
type spread [groups][outOf + 1]uint64

// code codes the nonzero weights.
func (s *spread) code(c *codec.Coder) {
	for g := range s {
		var list []numbered
		for bin, x := range s[g] {
			if x != 0 {
				list = append(list, numbered{uint64(bin), x})
			}
		}
		if c.Reads() {
			list = nil
		}
		codec.Slice(c, &list, 2, func(x *numbered) {
			codec.Below(c, &x.at, outOf+1)
			if c.U64(&x.n); c.Reads() {
				s[g][x.at] = x.n
			}
		})
	}
}

// noneSeen is the upper bound of a 95 % interval where no draw was seen (Hanley and
// Lippman-Hand, 1983).
const noneSeen = 3

// halfWidth returns half of the interval of a sum of which a sample has parts, each standing
// for factor accesses; rest is the share of the draws that is not in the sample.
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
