package profile

import (
	"iter"
	"sort"
)

// Curve is a miss-ratio curve. Curve computes the hits and misses of a fully associative LRU cache
// of any capacity from a histogram of stack distances (MODELS §1): m(C) = (F(∞) + Σ_{Δ≥C} F(Δ)) /
// A.
//
// A curve refers to its histogram, which must not change. A curve needs 24 bytes for each block of
// the histogram. A block covers up to 256 distances.
type Curve struct {
	Accesses uint64 // number of accesses, A, including cold accesses
	Cold     uint64 // number of cold accesses, F(∞)

	h      *Histogram
	blocks []curveBlock // blocks that contain distances, ascending
	length int
}

// curveBlock describes a block of a histogram, and contains the sums over all earlier blocks.
type curveBlock struct {
	first uint64 // the smallest distance in the block
	index int    // number of distinct distances in the earlier blocks
	hits  uint64 // number of accesses with distances in the earlier blocks
}

// NewCurve returns the curve of a histogram and its cold accesses.
func NewCurve(h *Histogram, cold uint64) *Curve {
	c := &Curve{Cold: cold, h: h}
	var hits uint64
	for d, count := range h.All() {
		if first := d / blockLen * blockLen; len(c.blocks) == 0 || c.blocks[len(c.blocks)-1].first != first {
			c.blocks = append(c.blocks, curveBlock{first, c.length, hits})
		}
		hits += count
		c.length++
	}
	c.Accesses = hits + cold
	return c
}

// Len returns the number of distinct distances.
func (c *Curve) Len() int { return c.length }

// Longest returns the longest distance. The result ok is false if all accesses are cold.
func (c *Curve) Longest() (d uint64, ok bool) {
	if c.length == 0 {
		return 0, false
	}
	d, _ = c.At(c.length - 1)
	return d, true
}

// At returns the i-th smallest distance, starting at i = 0, and the number of accesses whose
// distance does not exceed this distance.
func (c *Curve) At(i int) (d, upto uint64) {
	for d, upto := range c.From(i) {
		return d, upto
	}
	panic("index beyond the last distance of a curve")
}

// From yields the results of At for index i and all larger indices.
func (c *Curve) From(i int) iter.Seq2[uint64, uint64] {
	return func(yield func(d, upto uint64) bool) {
		b := max(sort.Search(len(c.blocks), func(b int) bool { return c.blocks[b].index > i })-1, 0)
		for ; b < len(c.blocks); b++ {
			at := c.blocks[b]
			more := c.h.yieldBlock(c.h.block(at.first), at.first, func(d, count uint64) bool {
				at.hits += count
				at.index++
				return at.index <= i || yield(d, at.hits)
			})
			if !more {
				return
			}
		}
	}
}

// Hits returns the number of accesses that hit in a cache of capacityLines lines.
func (c *Curve) Hits(capacityLines uint64) uint64 {
	b := sort.Search(len(c.blocks), func(b int) bool { return c.blocks[b].first >= capacityLines }) - 1
	if b < 0 {
		return 0
	}
	at := c.blocks[b]
	hits := at.hits
	c.h.yieldBlock(c.h.block(at.first), at.first, func(d, count uint64) bool {
		if d >= capacityLines {
			return false
		}
		hits += count
		return true
	})
	return hits
}

// Misses returns the number of accesses that miss in a cache of capacityLines lines.
func (c *Curve) Misses(capacityLines uint64) uint64 { return c.Accesses - c.Hits(capacityLines) }

// CapacityFor returns the smallest capacity with at most the given number of misses. The result ok
// is false if no capacity is large enough.
func (c *Curve) CapacityFor(misses uint64) (capacityLines uint64, ok bool) {
	if misses < c.Cold {
		return 0, false
	}
	if misses >= c.Accesses {
		return 0, true
	}
	d, _ := c.leastWith(func(upto uint64) bool { return c.Accesses-upto <= misses })
	return d + 1, true
}

// leastWith returns the smallest distance d for which the function isEnough returns true. The
// argument of isEnough is the number of accesses with a distance of at most d, and isEnough must be
// monotonic. The result ok is false if there is no such distance.
func (c *Curve) leastWith(isEnough func(upto uint64) bool) (d uint64, ok bool) {
	// Find the last block for which the number of accesses in earlier blocks is not enough.
	b := max(sort.Search(len(c.blocks), func(b int) bool { return isEnough(c.blocks[b].hits) })-1, 0)
	if b == len(c.blocks) {
		return 0, false
	}
	for d, upto := range c.From(c.blocks[b].index) {
		if isEnough(upto) {
			return d, true
		}
	}
	return 0, false
}

// MissRatio returns the miss ratio, or 0 if there are no accesses.
func (c *Curve) MissRatio(capacityLines uint64) float64 {
	if c.Accesses == 0 {
		return 0
	}
	return float64(c.Misses(capacityLines)) / float64(c.Accesses)
}

// Points yields each capacity at which the number of misses changes, with the number of misses at
// this capacity. The first capacity is one line.
func (c *Curve) Points(yield func(capacityLines, misses uint64) bool) {
	if c.length == 0 || c.Hits(1) == 0 {
		if !yield(1, c.Misses(1)) {
			return
		}
	}
	for d, upto := range c.From(0) {
		if !yield(d+1, c.Accesses-upto) {
			return
		}
	}
}

// Capacities returns the capacities that Points yields.
func (c *Curve) Capacities() (lines []uint64) {
	for capacityLines := range c.Points {
		lines = append(lines, capacityLines)
	}
	return lines
}

// DistanceAtShare returns the smallest distance d such that at least a given share (0 to 1) of all
// accesses have a distance of at most d. The result ok is false if there are too many cold
// accesses.
func (c *Curve) DistanceAtShare(share float64) (d uint64, ok bool) {
	want := share * float64(c.Accesses)
	return c.leastWith(func(upto uint64) bool { return float64(upto) >= want })
}
