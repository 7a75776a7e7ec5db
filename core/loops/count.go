package loops

import (
	"math"
	"slices"
	"strconv"
)

// mostCounted bounds the iterations that are counted one by one, where no formula is
// known to hold.
const mostCounted = 1 << 24

// everyLeaf is no shape.
const everyLeaf = math.MaxUint32

// count is a number of rows modulo 2^64, and about how large it is.
type count struct {
	rows  uint64
	about float64
}

// counter counts the rows that a nest unfolds to, without unfolding it.
//
// Trip counts are affine in the iterations of the loops around, so the rows of an
// iteration are a polynomial in its number, of a degree that is at most the number of
// loops below, as long as no count is negative: Newton's forward differences of the
// first few iterations sum it over all of them. Where some count may be negative,
// iterations are counted one by one.
type counter struct {
	all  []shape
	left int    // iterations that may still be counted
	only uint32 // the shape of the leaves whose rows count, or everyLeaf
}

// countRows counts the rows of the tree, and looks whether the streams of wild
// references are as long.
func (t *Tree) countRows() error {
	var total count
	wild := make([]count, len(t.refs))
	within := make([][]uint32, len(t.shapes.all)) // the wild leaves in each shape
	for id := range t.shapes.all {
		within[id] = t.shapes.wildIn(uint32(id), within)
	}
	at := 0
	for i, id := range t.nodes {
		p := t.params[at : at+t.shapes.all[id].params]
		at += len(p)
		c := counter{all: t.shapes.all, left: mostCounted, only: everyLeaf}
		total.add(c.node(id, p))
		for _, leaf := range within[id] {
			c.only = leaf
			wild[t.shapes.all[leaf].ref].add(c.node(id, p))
		}
		if c.left <= 0 {
			return &NestError{Path: []int{i}, Got: "trip counts that are negative now and then, in too many iterations to count", Want: "a nest whose counts stay at 0 or above"}
		}
	}
	t.rows = total.rows
	if total.about >= math.MaxUint64 {
		t.rows = math.MaxUint64
	}
	for i, n := range wild {
		if has := t.streams[i].count; n.about > 1.1*float64(has) || n.rows > has {
			return &NestError{Got: strconv.FormatUint(has, 10) + " addresses of a wild reference", Want: strconv.FormatUint(n.rows, 10) + ", one for each of its rows"}
		}
	}
	return nil
}

// wildIn gives the shapes of the wild leaves in a shape; known are those of the shapes
// before it, which it is made of.
func (s *shapes) wildIn(id uint32, known [][]uint32) (leaves []uint32) {
	of := &s.all[id]
	if of.wild {
		return []uint32{id}
	}
	for i := range of.items {
		for _, leaf := range known[of.items[i].shape] {
			if !slices.Contains(leaves, leaf) {
				leaves = append(leaves, leaf)
			}
		}
	}
	return leaves
}

func (c *count) add(d count) {
	c.rows += d.rows
	c.about += d.about
}

// node counts the rows of a node with these parameters.
func (c *counter) node(id uint32, p []uint64) (sum count) {
	s := &c.all[id]
	if !s.loop {
		if c.only == everyLeaf || c.only == id {
			return count{1, 1}
		}
		return count{}
	}
	trips := p[0]
	if int64(trips) < 1 || c.left <= 0 {
		return count{}
	}
	if !s.varies() {
		one := c.body(s, p[1:])
		return count{one.rows * trips, one.about * float64(trips)}
	}
	known := trips
	if terms := uint64(s.loops); terms < trips && c.neverNegative(s, p) {
		known = terms
	}
	cur := append([]uint64(nil), p[1:]...)
	var first []count
	for i := uint64(0); i < known && c.left > 0; i++ {
		n := c.body(s, cur)
		if known < trips {
			first = append(first, n)
		} else {
			sum.add(n)
		}
		for j, step := range s.steps {
			cur[j] += step
		}
	}
	if known < trips {
		return sumOf(first, trips)
	}
	return sum
}

// body counts the rows of an iteration.
func (c *counter) body(s *shape, p []uint64) (sum count) {
	c.left--
	for i := range s.items {
		it := &s.items[i]
		sum.add(c.node(it.shape, p[it.at:it.at+it.params]))
	}
	return sum
}

// varies tells whether a trip count below changes from one iteration to the next.
func (s *shape) varies() bool {
	for _, trip := range s.trips[1:] {
		if s.steps[trip-1] != 0 {
			return true
		}
	}
	return false
}

// neverNegative tells whether all trip counts below a loop stay at 0 or above. They do
// if they do in the corners of the iterations; in those of loops that run, at least.
func (c *counter) neverNegative(s *shape, p []uint64) bool {
	cur := append([]uint64(nil), p[1:]...)
	for range 2 {
		c.left--
		for i := range s.items {
			it := &s.items[i]
			if !it.loop {
				continue
			}
			trips := int64(cur[it.at])
			if trips < 0 || trips == 0 && c.all[it.shape].loops > 1 || trips > 0 && !c.neverNegative(&c.all[it.shape], cur[it.at:it.at+it.params]) {
				return false
			}
		}
		for j, step := range s.steps {
			cur[j] += step * (p[0] - 1)
		}
	}
	return true
}

// sumOf sums a polynomial over the numbers below n from its first values.
func sumOf(first []count, n uint64) (sum count) {
	for k := range first {
		sum.rows += first[0].rows * choose(n, uint64(k)+1)
		about := first[0].about
		for j := range uint64(k) + 1 {
			about *= float64(n-j) / float64(j+1)
		}
		sum.about += about
		for j := range first[:len(first)-1-k] {
			first[j].rows = first[j+1].rows - first[j].rows
			first[j].about = first[j+1].about - first[j].about
		}
	}
	return sum
}

// choose is the number of ways to choose k of n, modulo 2^64; n ≥ k.
func choose(n, k uint64) uint64 {
	factors := make([]uint64, k)
	for i := range factors {
		factors[i] = n - uint64(i)
	}
	for d := uint64(2); d <= k; d++ {
		left := d
		for i := range factors {
			g := gcd(factors[i], left)
			factors[i] /= g
			left /= g
		}
	}
	product := uint64(1)
	for _, f := range factors {
		product *= f
	}
	return product
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
