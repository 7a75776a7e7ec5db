package misses

import "github.com/stackglass/stackglass/core/loops"

// curve contains the hits and misses of a tree in fully associative caches of every capacity up to
// a limit.
type curve struct {
	accesses uint64
	hits     []uint64 // number of accesses at each stack distance in lines, beginning with distance 0
	beyond   uint64   // number of accesses at larger stack distances, including first accesses
}

// misses returns the number of misses in a cache with the given number of lines, which must not
// exceed len(c.hits).
func (c *curve) misses(lines int) uint64 {
	n := c.beyond
	for _, hits := range c.hits[lines:] {
		n += hits
	}
	return n
}

// capacities returns the curve of a tree up to the given capacity in lines. For this purpose, it
// simulates the tree once.
func capacities(t *loops.Tree, lineBytes, lines uint64) *curve {
	e := newEngine(newLayout(t, lineBytes), 1, lines)
	e.state = newStacks(1, lines)
	e.tally.depths = make([]uint64, lines)
	e.run()
	c := &curve{hits: e.tally.depths}
	for _, n := range e.tally.counts {
		c.accesses += n.accesses
		c.beyond += n.misses
	}
	return c
}
