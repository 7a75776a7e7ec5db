package loops

import (
	"math"
	"math/bits"
	"slices"
)

// maxCounted limits the work of counting iterations one by one, which is necessary if no formula
// applies. The work is the number of parameters that are processed.
const maxCounted = 1 << 26

// everyLeaf selects all leaves. No shape has this number.
const everyLeaf = math.MaxUint32

// count is a number of records, which may not fit in 64 bits.
type count struct {
	rows   uint64  // number of records, modulo 2^64
	about  float64 // approximate number of records
	bodies float64 // number of iterations of all loops, including iterations without records
}

// counter counts the records of a nest without expanding the nest.
//
// Trip counts are affine in the iterations of the surrounding loops. If no trip count is negative,
// the number of records in an iteration is therefore a polynomial in the iteration number, whose
// degree is at most the number of nested loops. The sum of the polynomial over all iterations is
// computed from its first values with Newton's forward differences. If a trip count may be
// negative, the iterations are counted one by one.
type counter struct {
	all  []shape
	left int    // amount of work that may still be done (see maxCounted)
	only uint32 // shape of the leaves to count, or everyLeaf
}

// countRows counts the records of the tree, and checks that each wild reference has as many
// addresses as records.
func (t *Tree) countRows() error {
	var total count
	wild := make([]count, len(t.refs))
	within := make([][]uint32, len(t.shapes.all)) // by shape: the wild leaves in the shape
	for id := range t.shapes.all {
		within[id] = t.shapes.wildIn(uint32(id), within)
	}
	node := 0
	for id, p := range t.tops() {
		c := counter{all: t.shapes.all, left: maxCounted, only: everyLeaf}
		total.add(c.node(id, p))
		for _, leaf := range within[id] {
			c.only = leaf
			wild[t.shapes.all[leaf].ref].add(c.node(id, p))
		}
		if c.left <= 0 {
			return tooManyToCount(node)
		}
		node++
	}
	t.rows, t.bodies = total.saturated(), total.bodies
	for i, n := range wild {
		if has := t.streams[i].count; n.about > 1.1*float64(has) || n.rows > has {
			return &NestError{Got: "the number of addresses of an irregular reference is " + decimal(has), Want: decimal(n.rows) + ", one for each record"}
		}
	}
	return nil
}

// tooManyToCount returns the error for a node whose records would take too long to count.
func tooManyToCount(node int) error {
	return &NestError{
		Path: []int{node}, Got: "trip counts that may be negative, and too many iterations to check all of them",
		Want: "trip counts that are never negative",
	}
}

// count counts the records of the tree. The argument workLimit limits the total work on all nodes
// (see maxCounted).
func (t *Tree) count(workLimit int) (total count, err error) {
	c := counter{all: t.shapes.all, left: workLimit, only: everyLeaf}
	node := 0
	for id, p := range t.tops() {
		if total.add(c.node(id, p)); c.left <= 0 {
			return count{}, tooManyToCount(node)
		}
		node++
	}
	return total, nil
}

// saturated returns the number of records, or the largest uint64 if the number is larger.
func (c count) saturated() uint64 {
	if c.about >= math.MaxUint64 {
		return math.MaxUint64
	}
	return c.rows
}

// Approximately returns the approximate number of records that the tree represents, even if the
// number does not fit in a uint64. Approximately returns +Inf if the number does not fit in a
// float64.
func (t *Tree) Approximately() float64 {
	if t.rows < math.MaxUint64 {
		return float64(t.rows)
	}
	total, _ := t.count(math.MaxInt) // this cannot fail, because the records were already counted when the tree was built
	return total.about
}

func (s *shapes) wildIn(id uint32, known [][]uint32) (leaves []uint32) {
	if s.all[id].wild {
		return []uint32{id}
	}
	for _, it := range s.all[id].items {
		for _, leaf := range known[it.shape] {
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
	c.bodies += d.bodies
}

func (c *counter) node(id uint32, p []uint64) (sum count) {
	s := &c.all[id]
	if !s.loop {
		if c.only == everyLeaf || c.only == id {
			return count{1, 1, 0}
		}
		return count{}
	}
	trips := p[0]
	if int64(trips) < 1 || c.left <= 0 {
		return count{}
	}
	if !s.varies() {
		one := c.body(s, p[1:])
		return count{one.rows * trips, one.about * float64(trips), one.bodies * float64(trips)}
	}
	known := trips
	if terms := uint64(s.height); terms < trips && c.neverNegative(s, p) {
		known = terms
		c.left -= s.height * s.height * s.height / 8 // approximate work of the call of sumOf
	}
	cur := slices.Clone(p[1:])
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

func (c *counter) body(s *shape, p []uint64) (sum count) {
	c.left -= s.params
	sum.bodies = 1
	for i := range s.items {
		it := &s.items[i]
		sum.add(c.node(it.shape, p[it.at:it.at+it.params]))
	}
	return sum
}

// varies reports whether any inner loop has a trip count that changes from one iteration to the
// next.
func (s *shape) varies() bool {
	return slices.ContainsFunc(s.trips[1:], func(trip int32) bool { return s.steps[trip-1] != 0 })
}

// neverNegative reports whether no trip count inside a loop is negative in any iteration. Trip
// counts are affine, so only the first and the last iterations of the loops that run need to be
// checked.
func (c *counter) neverNegative(s *shape, p []uint64) bool {
	for _, trip := range s.trips[1:] {
		if overflows(p[trip], s.steps[trip-1], p[0]-1) {
			return false
		}
	}
	cur := slices.Clone(p[1:])
	for range 2 {
		c.left -= s.params
		for i := range s.items {
			it := &s.items[i]
			if !it.loop {
				continue
			}
			inner, trips := &c.all[it.shape], int64(cur[it.at])
			if trips < 0 || trips == 0 && inner.loops > 1 || trips > 0 && !c.neverNegative(inner, cur[it.at:it.at+it.params]) {
				return false
			}
		}
		for j, step := range s.steps {
			cur[j] += step * (p[0] - 1)
		}
	}
	return true
}

// overflows reports whether first + step * times does not fit in a signed 64-bit number.
func overflows(first, step, times uint64) bool {
	if int64(step) < 0 {
		first, step = -first, -step
	}
	hi, lo := bits.Mul64(step, times)
	return hi != 0 || int64(lo) < 0 || int64(first+lo) < int64(first)
}

// sumOf returns the sum of a polynomial over the numbers from 0 to n - 1. The parameter "first"
// lists the polynomial's values at 0, 1 and so on.
func sumOf(first []count, n uint64) (sum count) {
	ways := 1.0
	for k := range first {
		ways *= float64(n-uint64(k)) / float64(k+1)
		sum.add(count{first[0].rows * Binomial(n, uint64(k)+1), first[0].about * ways, first[0].bodies * ways})
		for j := range first[:len(first)-1-k] {
			first[j].rows = first[j+1].rows - first[j].rows
			first[j].about = first[j+1].about - first[j].about
			first[j].bodies = first[j+1].bodies - first[j].bodies
		}
	}
	if math.IsNaN(sum.about + sum.bodies) {
		sum.about, sum.bodies = math.Inf(1), math.Inf(1)
	}
	return sum
}

// Sum returns the sum of a polynomial over the numbers from 0 to n - 1, modulo 2^64. The given
// values are the polynomial's values at 0, 1 and so on. The number of values must be greater than
// the degree of the polynomial, but at most n. Sum overwrites the slice.
func Sum(values []uint64, n uint64) (sum uint64) {
	for k := range values {
		sum += values[0] * Binomial(n, uint64(k)+1)
		for j := range values[:len(values)-1-k] {
			values[j] = values[j+1] - values[j]
		}
	}
	return sum
}

// Binomial returns the binomial coefficient "n choose k" modulo 2^64.
func Binomial(n, k uint64) uint64 {
	if n < k {
		return 0
	}
	factors := make([]uint64, k)
	for i := range factors {
		factors[i] = n - uint64(i)
	}
	for d := uint64(2); d <= k; d++ {
		left := d
		for i := range factors {
			g := GCD(factors[i], left)
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

// GCD returns the greatest common divisor of a and b.
func GCD(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
