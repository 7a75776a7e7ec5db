package profile

import "sort"

// Curve answers, for one histogram, the hits and misses of a fully associative
// LRU cache of any capacity: MODELS §1, m(C) = (F(∞) + Σ_{Δ≥C} F(Δ)) / A.
type Curve struct {
	Distances []uint64 // the distances that occur, ascending
	Upto      []uint64 // accesses with a distance ≤ Distances[i]
	Accesses  uint64   // A, cold accesses included
	Cold      uint64   // F(∞)
}

// NewCurve sums up a histogram and its cold accesses.
func NewCurve(h *Histogram, cold uint64) *Curve {
	n := h.distinct() // so that lists need not grow, which takes most of the time
	c := &Curve{Cold: cold, Distances: make([]uint64, 0, n), Upto: make([]uint64, 0, n)}
	var hits uint64
	for d, count := range h.All() {
		hits += count
		c.Distances = append(c.Distances, d)
		c.Upto = append(c.Upto, hits)
	}
	c.Accesses = hits + cold
	return c
}

// Hits is the number of accesses that hit in a cache of capacityLines lines.
func (c *Curve) Hits(capacityLines uint64) uint64 {
	i := sort.Search(len(c.Distances), func(i int) bool { return c.Distances[i] >= capacityLines })
	if i == 0 {
		return 0
	}
	return c.Upto[i-1]
}

// Misses is the number of accesses that miss in a cache of capacityLines lines.
func (c *Curve) Misses(capacityLines uint64) uint64 { return c.Accesses - c.Hits(capacityLines) }

// CapacityFor is the least capacity in lines that misses no more than so often. ok is
// false where there is none.
func (c *Curve) CapacityFor(misses uint64) (capacityLines uint64, ok bool) {
	if misses < c.Cold {
		return 0, false
	}
	if misses >= c.Accesses {
		return 0, true
	}
	i := sort.Search(len(c.Upto), func(i int) bool { return c.Accesses-c.Upto[i] <= misses })
	return c.Distances[i] + 1, true
}

// MissRatio is the share of accesses that miss, 0 for no accesses.
func (c *Curve) MissRatio(capacityLines uint64) float64 {
	if c.Accesses == 0 {
		return 0
	}
	return float64(c.Misses(capacityLines)) / float64(c.Accesses)
}

// Points yields the curve's breakpoints: each capacity, from one line on, at
// which the number of misses changes, with the misses from there on.
func (c *Curve) Points(yield func(capacityLines, misses uint64) bool) {
	if len(c.Distances) == 0 || c.Distances[0] != 0 {
		if !yield(1, c.Misses(1)) {
			return
		}
	}
	for i, d := range c.Distances {
		if !yield(d+1, c.Accesses-c.Upto[i]) {
			return
		}
	}
}

// Capacities are those of Points.
func (c *Curve) Capacities() (lines []uint64) {
	for capacityLines := range c.Points {
		lines = append(lines, capacityLines)
	}
	return lines
}

// DistanceAtShare is the least distance d such that at least share (0 to 1) of
// all accesses have a distance of at most d. ok is false when cold accesses
// keep that share out of reach.
func (c *Curve) DistanceAtShare(share float64) (d uint64, ok bool) {
	want := share * float64(c.Accesses)
	i := sort.Search(len(c.Upto), func(i int) bool { return float64(c.Upto[i]) >= want })
	if i == len(c.Upto) {
		return 0, false
	}
	return c.Distances[i], true
}
