package sample

import (
	"math"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// counted are some accesses on one stack: those that its front holds, all of them, and
// of the others what is in the sample, by weight.
type counted struct {
	near   [frontLines]uint64
	deep   profile.Histogram
	cold   uint64
	spread spread // of deep and cold
}

// add counts an access at a distance, of a group if it is in the sample.
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

// sampled counts an access of the sample at a finite distance.
func (c *counted) sampled(distance uint32, weight uint64, group int) {
	c.deep.AddN(uint64(distance), weight)
	c.spread[group&(groups-1)][profile.SiteBin(distance)] += weight
}

// nearTotal is how many accesses were at near distances.
func (c *counted) nearTotal() (n uint64) {
	for _, x := range c.near {
		n += x
	}
	return n
}

// addNear adds the near ones to a histogram.
func (c *counted) addNear(h *profile.Histogram) {
	for d, n := range c.near {
		h.AddN(uint64(d), n)
	}
}

func (c *counted) save(b []byte) []byte {
	b = appendUint(b, c.near[:]...)
	b = appendUint(saveHistogram(b, &c.deep), c.cold)
	return c.spread.save(b)
}

func (c *counted) restore(d *codec.Decoder) {
	fill(c.near[:], d)
	restoreHistogram(d, &c.deep)
	c.cold = d.Uint()
	c.spread.restore(d)
}

func saveHistogram(b []byte, h *profile.Histogram) []byte {
	n := uint64(0)
	for range h.All() {
		n++
	}
	b = appendUint(b, n)
	for d, count := range h.All() {
		b = appendUint(b, d, count)
	}
	return b
}

func restoreHistogram(d *codec.Decoder, h *profile.Histogram) {
	for range d.Length(2) {
		h.AddN(d.UintBelow(profile.MaxDistance), d.Uint())
	}
}

// spread are weights by the part of the sample that they come from and by
// profile.SiteBin, cold ones last: as the parts are independent, they tell how far their
// sum is off.
type spread [groups][outOf + 1]uint64

// save leaves out what is zero.
func (s *spread) save(b []byte) []byte {
	for g := range s {
		n := uint64(0)
		for _, x := range s[g] {
			if x != 0 {
				n++
			}
		}
		b = appendUint(b, n)
		for bin, x := range s[g] {
			if x != 0 {
				b = appendUint(b, uint64(bin), x)
			}
		}
	}
	return b
}

func (s *spread) restore(d *codec.Decoder) {
	for g := range s {
		for range d.Length(2) {
			bin := d.UintBelow(outOf + 1)
			s[g][bin] = d.Uint()
		}
	}
}

// noneSeen is how many draws there may be, in 95 of 100 runs, where there was none
// (Hanley and Lippman-Hand, 1983).
const noneSeen = 3

// halfWidth is that of the interval of a sum that a sample has parts of, each in so many
// accesses for one: rest is the share that is not in the sample.
func halfWidth(parts *[groups]float64, factor, rest float64) float64 {
	return halfOf(parts[:], factor, rest)
}

// halfOf is halfWidth for any number of parts; their quantile is of as many draws.
func halfOf(parts []float64, factor, rest float64) float64 {
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
