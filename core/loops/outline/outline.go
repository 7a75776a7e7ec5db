// Package outline summarises a loop-compressed trace in readable form: the loops, with execution
// counts and shares of the references, and the arrays that each loop accesses.
//
//  1. [New] groups the nodes of a [loops.Tree] by shape: nests that differ only in addresses and
//     trip counts are treated as one nest that runs several times. Counts are exact. The time to
//     compute an outline does not depend on trip counts, because a loop's counts are polynomials in
//     the iteration number (see [loops.Sum]).
//  2. [Outline.Arrays] returns the arrays that a loop accesses. Each array has a base, an extent, a
//     stride for each loop, and a line utilisation. References whose line ranges overlap in the
//     loop access the same array (MODELS §11.3; Balasubramanian, ScalaMemAnalysis, chapter 3).
package outline

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/loops"
)

// Outline summarises a loop-compressed trace.
type Outline struct {
	Loops      []Loop // the loops of all nests in pre-order; nests are in the order of their first occurrence
	References uint64 // number of references in the whole trace, excluding events
	Straight   uint64 // number of references outside all loops
	Nests      int    // number of listed nests
	// LeftOut is the number of nests that are not listed because they have the fewest references.
	// LeftOutReferences is the number of references in these nests.
	LeftOut, LeftOutReferences uint64

	tree  *loops.Tree
	nests []*nest
}

// Tree returns the summarised tree.
func (o *Outline) Tree() *loops.Tree { return o.tree }

// Loop is a loop of a nest.
type Loop struct {
	Nest  int // index of the nest among the listed nests
	Count int // number of the nest among all nests, from 1
	Depth int // number of surrounding loops
	End   int // 1 + the index of the last loop nested in this loop
	Runs  uint64
	Trips uint64 // number of iterations, summed over all runs

	Least, Most uint64 // the smallest and the largest trip count of any run of the loop
	References  uint64 // number of references in the loop, including inner loops
	Own         uint64 // number of references in the loop, excluding inner loops

	Shape int // see [loops.Node.Shape]
	First int // number of the first top-level node with this shape

	item int // index of the loop's item in the nest
}

// nest is a group of top-level nodes with the same shape.
type nest struct {
	first  loops.Node
	number int // number of the first node with this shape
	count  int // number of the nest among all nests, from 1
	items  []item
	params []uint64 // parameters of the first node
	counts []uint64 // by item: number of executions, summed over all nodes
	least  []uint64
	most   []uint64
	runs   uint64
	one    []uint64 // the counts of a single node

	references uint64
}

// item is a loop or leaf of a nest. The items of a nest are in pre-order. The parameter of an item
// has the same index as the item.
type item struct {
	ref    loops.Reference
	loop   bool
	wild   bool
	parent int // index of the surrounding loop, or -1
	depth  int // number of surrounding loops
	end    int // 1 + the index of the last nested item
	height int // maximum nesting depth of loops in the item, including the item itself
	shape  int
	steps  []uint64 // for a loop: the steps of the parameters of its items
	varies bool     // whether the trip count of an inner loop varies
}

// New summarises a tree. The outline lists at most maxNests nests: the nests with the most
// references.
func New(t *loops.Tree, maxNests int) *Outline {
	o := &Outline{tree: t}
	byShape := map[int]*nest{}
	for number, node := range t.TopLoops() {
		n := byShape[node.Shape()]
		if n == nil {
			n = newNest(node, number)
			byShape[node.Shape()] = n
			o.nests = append(o.nests, n)
			n.count = len(o.nests)
		}
		n.add(node.Params())
	}
	o.Straight = t.Straight()
	o.References = o.Straight
	for _, n := range o.nests {
		n.sum()
		o.References += n.references
	}
	o.keepLargest(maxNests)
	for i, n := range o.nests {
		o.list(n, i)
	}
	o.Nests = len(o.nests)
	return o
}

// Nest returns a description of the first run of the nest with the given number.
func (o *Outline) Nest(number int) *loops.Nest { return o.nests[number].first.Nest() }

// keepLargest keeps only the largest nests in the list. The argument "limit" is the maximum number
// of nests.
func (o *Outline) keepLargest(limit int) {
	if len(o.nests) <= limit {
		return
	}
	bySize := slices.Clone(o.nests)
	sort.SliceStable(bySize, func(i, j int) bool { return bySize[i].references > bySize[j].references })
	for _, n := range bySize[limit:] {
		o.LeftOut++
		o.LeftOutReferences += n.references
	}
	o.nests = bySize[:limit]
	sort.Slice(o.nests, func(i, j int) bool { return o.nests[i].number < o.nests[j].number })
}

func (o *Outline) list(n *nest, number int) {
	var open []int // indices of the listed loops around an item
	for k := range n.items {
		it := &n.items[k]
		for len(open) > 0 && n.items[o.Loops[open[len(open)-1]].item].end <= k {
			o.Loops[open[len(open)-1]].End = len(o.Loops)
			open = open[:len(open)-1]
		}
		if !it.loop {
			if it.ref.Kind.IsReference() {
				for _, at := range open {
					o.Loops[at].References += n.counts[k]
				}
				o.Loops[open[len(open)-1]].Own += n.counts[k]
			}
			continue
		}
		l := Loop{Nest: number, Count: n.count, Depth: it.depth, Trips: n.counts[k], Runs: n.runs, Least: n.least[k], Most: n.most[k], Shape: it.shape, First: n.number, item: k}
		if it.parent >= 0 {
			l.Runs = n.counts[it.parent]
		}
		open = append(open, len(o.Loops))
		o.Loops = append(o.Loops, l)
	}
	for _, at := range open {
		o.Loops[at].End = len(o.Loops)
	}
}

// Sum adds up the values of tree nodes for each listed loop. The parameter nodes contains the
// values of top-level loops, and of all nodes in these loops, in pre-order. For each of these
// top-level loops, the parameter tops yields the number of the loop's node, and the index of the
// loop's value in the list nodes (see Result.Tops in package misses).
func Sum[T any](o *Outline, tops iter.Seq2[int, int], nodes []T, add func(sum *T, n *T)) []T {
	byShape := map[int]int{} // by shape: 1 + the index of the nest
	for i, n := range o.nests {
		byShape[n.first.Shape()] = i + 1
	}
	start := make([]int, len(o.nests)) // index in o.Loops of the first loop of each nest
	for i := len(o.Loops) - 1; i >= 0; i-- {
		start[o.Loops[i].Nest] = i
	}
	sums := make([]T, len(o.Loops))
	shapes, _ := o.tree.Top()
	for top, at := range tops {
		if nest := byShape[int(shapes[top])] - 1; nest >= 0 {
			for i := start[nest]; i < len(o.Loops) && o.Loops[i].Nest == nest; i++ {
				add(&sums[i], &nodes[at+o.Loops[i].item])
			}
		}
	}
	return sums
}

// newNest lists the items of a node.
func newNest(node loops.Node, number int) *nest {
	n := &nest{first: node, number: number, params: node.Params()}
	n.items = make([]item, 0, len(n.params))
	n.addItems(node, -1, 0)
	n.counts, n.least, n.most = make([]uint64, len(n.items)), make([]uint64, len(n.items)), make([]uint64, len(n.items))
	for k := range n.least {
		n.least[k] = math.MaxUint64
	}
	return n
}

// addItems appends the items of a node, and returns the height of the node.
func (n *nest) addItems(node loops.Node, parent, depth int) (height int) {
	k := len(n.items)
	n.items = append(n.items, item{parent: parent, depth: depth, loop: node.IsLoop(), shape: node.Shape()})
	if !node.IsLoop() {
		n.items[k].ref, _, n.items[k].wild = node.Leaf()
		n.items[k].end = k + 1
		return 0
	}
	var all []uint64
	for i := range node.Len() {
		body, steps := node.Item(i)
		all = append(all, steps...)
		height = max(height, n.addItems(body, k, depth+1))
	}
	it := &n.items[k]
	it.height, it.steps, it.end = height+1, all, len(n.items)
	for j := k + 1; j < it.end; j++ {
		it.varies = it.varies || n.items[j].loop && all[j-k-1] != 0
	}
	return it.height
}

func (n *nest) add(p []uint64) {
	n.runs++
	c := counter{nest: n, left: maxCounted}
	if n.one == nil {
		n.one = make([]uint64, len(p))
	}
	c.countItem(0, p, n.one)
	for k, v := range n.one {
		n.counts[k] += v
	}
	c.updateTripRange(0, p)
}

// sum computes the number of references of the nest. All executions must have been counted.
func (n *nest) sum() {
	for k := range n.items {
		if it := &n.items[k]; !it.loop && it.ref.Kind.IsReference() {
			n.references += n.counts[k]
		}
	}
}

// maxCounted limits the number of iterations of a node that are counted one by one if trip counts
// may be negative. Trees of traces contain no negative trip counts.
const maxCounted = 1 << 20

// counter counts the executions of each item.
type counter struct {
	nest *nest
	left int
}

// countItem counts the executions of item k, with parameters p, and of all items inside item k. It
// stores the counts in the slice "out". The count of a loop is its number of iterations.
func (c *counter) countItem(k int, p, out []uint64) {
	it := &c.nest.items[k]
	switch {
	case !it.loop:
		out[0] = 1
		return
	case int64(p[0]) < 1 || c.left <= 0:
		clear(out[:it.end-k])
		return
	case !it.varies:
		c.body(k, p[1:], out[1:])
		out[0] = p[0]
		for j := 1; j < it.end-k; j++ {
			out[j] *= p[0]
		}
		return
	}
	size := it.end - k - 1
	trips, points := p[0], p[0]
	if uint64(it.height) < trips && c.neverNegative(k, p) {
		points = uint64(it.height)
	}
	cur := slices.Clone(p[1 : 1+size])
	var rows []uint64 // counts of the first iterations, if the counts are polynomials
	one := make([]uint64, size)
	clear(out[:size+1])
	for range points {
		if c.left <= 0 {
			break
		}
		c.body(k, cur, one)
		if points < trips {
			rows = append(rows, one...)
		}
		for j := range one {
			out[1+j] += one[j]
			cur[j] += it.steps[j]
		}
	}
	if out[0] = trips; points < trips && len(rows) == int(points)*size {
		first := make([]uint64, points)
		for j := range size {
			for i := range first {
				first[i] = rows[i*size+j]
			}
			out[1+j] = loops.Sum(first, trips)
		}
	}
}

func (c *counter) body(k int, p, out []uint64) {
	c.left--
	for j := k + 1; j < c.nest.items[k].end; j = c.nest.items[j].end {
		c.countItem(j, p[j-k-1:], out[j-k-1:])
	}
}

// neverNegative reports whether no trip count inside loop k is negative in any iteration. Trip
// counts are affine, so only the first and the last iterations need to be checked.
func (c *counter) neverNegative(k int, p []uint64) bool {
	return c.visit(k, p, func(j int, trips uint64) bool {
		return int64(trips) > 0 || trips == 0 && c.nest.items[j].height == 1
	})
}

// updateTripRange updates the minimum and maximum trip counts of loop k and of the loops inside it.
func (c *counter) updateTripRange(k int, p []uint64) {
	n := c.nest
	c.left = maxCounted
	c.visit(k, p, func(j int, trips uint64) bool {
		if int64(trips) < 0 {
			trips = 0
		}
		n.least[j], n.most[j] = min(n.least[j], trips), max(n.most[j], trips)
		return true
	})
}

// visit calls the function "yield" for loop k and for all loops inside it, with their trip counts
// in the first and the last iterations of the surrounding loops.
func (c *counter) visit(k int, p []uint64, yield func(k int, trips uint64) bool) bool {
	it := &c.nest.items[k]
	if !it.loop {
		return true
	}
	if c.left--; c.left <= 0 || !yield(k, p[0]) {
		return false
	}
	if int64(p[0]) < 1 || it.height == 1 {
		return true
	}
	cur := slices.Clone(p[1 : it.end-k])
	for corner := range 2 {
		for j := k + 1; j < it.end; j = c.nest.items[j].end {
			if !c.visit(j, cur[j-k-1:], yield) {
				return false
			}
		}
		if corner == 1 || !it.varies || p[0] == 1 {
			break
		}
		for j, step := range it.steps {
			cur[j] += step * (p[0] - 1)
		}
	}
	return true
}

// Path returns the position of a loop's first occurrence in the tree: the number of the top-level
// node, followed by the index of the item at each nesting level. Numbers and indices begin at 0.
func (o *Outline) Path(loop int) (path []int) {
	l := &o.Loops[loop]
	n := o.nests[l.Nest]
	for k := l.item; k > 0; k = n.items[k].parent {
		number := 0
		for j := n.items[k].parent + 1; j < k; j = n.items[j].end {
			number++
		}
		path = append(path, number)
	}
	path = append(path, n.number)
	slices.Reverse(path)
	return path
}

// Refs returns the distinct references of a loop, including inner loops, in program order.
func (o *Outline) Refs(loop int) (list []loops.Reference) {
	known := map[loops.Reference]bool{}
	for ref := range o.Executions(loop) {
		if !known[ref] {
			known[ref] = true
			list = append(list, ref)
		}
	}
	return list
}

// Executions yields each reference of a loop, including inner loops, and the number of its
// executions over all runs. A reference may be yielded several times.
func (o *Outline) Executions(loop int) iter.Seq2[loops.Reference, uint64] {
	l := &o.Loops[loop]
	n := o.nests[l.Nest]
	return func(yield func(loops.Reference, uint64) bool) {
		for k := l.item; k < n.items[l.item].end; k++ {
			if it := &n.items[k]; !it.loop && it.ref.Kind.IsReference() && !yield(it.ref, n.counts[k]) {
				return
			}
		}
	}
}

// Share returns a number of references as a fraction of all references, from 0 to 1.
func (o *Outline) Share(references uint64) float64 {
	if o.References == 0 {
		return 0
	}
	return float64(references) / float64(o.References)
}
