package profile

import (
	"math/bits"
	"slices"
)

const (
	// SetCounts is the number of rows of a [SetTable]: for 2^0 to 2^16 sets.
	SetCounts = 17
	// MaxWays is the most ways that a [SetTable] answers for.
	MaxWays = 32
)

// SetTable counts, for each number of sets 2^a, the accesses that found their line at each
// depth of its set (MODELS §4): Depths[a][d] is the number of accesses with Δ^a = d, the number
// of distinct lines of the same set since the last access to the line. An LRU cache of 2^a sets
// and w ways hits exactly those with d < w. Row 0, one set, is the beginning of the histogram.
type SetTable struct {
	Depths [SetCounts][MaxWays]uint64
}

// Hits returns the exact number of accesses that hit in an LRU cache with this number of sets
// and ways. ok is false if the number of sets is no power of two, or the table does not have
// as many sets or ways.
func (t *SetTable) Hits(sets, ways uint64) (hits uint64, ok bool) {
	if t == nil || sets == 0 || sets&(sets-1) != 0 || sets >= 1<<SetCounts || ways == 0 || ways > MaxWays {
		return 0, false
	}
	return sum(t.Depths[bits.TrailingZeros64(sets)][:ways]), true
}

// Add adds the counts of other.
func (t *SetTable) Add(other *SetTable) {
	for a := range t.Depths {
		for d := range t.Depths[a] {
			t.Depths[a][d] += other.Depths[a][d]
		}
	}
}

// Counted returns the table, or nil: with sampled lines it was not counted and is zero.
func (c *StackCounts) Counted() *SetTable {
	if c.Sets == (SetTable{}) && c.Distances.Total() > 0 {
		return nil
	}
	return &c.Sets
}

// Counted returns the table of the shared stack, or nil.
func (d *Domain) Counted() *SetTable {
	if d.Sets == (SetTable{}) && slices.ContainsFunc(d.Members, func(m Member) bool { return m.Distances.Total() > 0 }) {
		return nil
	}
	return &d.Sets
}

// check tests a table against the histogram of the same accesses: the row of one set is the
// beginning of the histogram, no row counts more than all finite distances, and with more sets no
// access is deeper in its set (MODELS §4).
func (t *SetTable) check(h *Histogram) error {
	for d, n := range t.Depths[0] {
		if n != h.Count(uint64(d)) {
			return &CheckError{"the depths in a single set differ from the histogram"}
		}
	}
	finite := h.Total()
	for a := range t.Depths {
		var sum, before uint64
		for d, n := range t.Depths[a] {
			var carry uint64
			if sum, carry = bits.Add64(sum, n, 0); carry != 0 || sum > finite {
				return &CheckError{"a set table counts more accesses than there are"}
			}
			if a > 0 {
				if before += t.Depths[a-1][d]; before > sum {
					return &CheckError{"a set table hits less with more sets of as many ways"}
				}
			}
		}
	}
	return nil
}
