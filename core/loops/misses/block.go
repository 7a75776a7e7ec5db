package misses

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
)

// block is a shape of the tree, prepared for the simulation.
type block struct {
	loop bool

	ref     int // reference of a leaf
	bytes   uint64
	counted bool // whether the leaf is a reference, and not an event
	wild    bool

	items  []item // body of a loop
	steps  []uint64
	nodes  int      // number of nodes in the block's subtree, including the block itself
	leaves []leaf   // the references in the block's subtree
	drifts []leaf   // the leaves whose addresses change from one iteration to the next
	refs   []uint32 // the references of the leaves, in ascending order and without duplicates
	// by leaf: its class number; leaves that access one array with the same step are in one class
	classes []int
	slow    bool // whether the leaves may access the same lines for several iterations
	flat    bool // whether all items are leaves
	wilds   bool // whether the subtree contains a wild leaf
	varies  bool // whether the trip count of an inner loop changes between iterations of this loop
	events  bool // whether the subtree contains only events
	changes bool // whether any trip count in the subtree changes with a surrounding loop

	// skip is the number of further runs of the loop that are not searched for repetitions. Each
	// failed search increases the field "patience". If the new value of "patience" exceeds 4, it is
	// copied to the field "skip".
	skip, patience int
}

type item struct {
	*block
	at   int // index of the first parameter of the item among the parameters of the body
	n    int // number of parameters
	node int // pre-order number of the item within the loop; the loop itself is number 0
}

// leaf is a reference within a loop.
type leaf struct {
	ref   int
	param int // index of the address among the parameters of the body
	bytes uint64
	wild  bool
	step  uint64 // change of the leaf's address per iteration of the loop
	// a power of two, at most the line size: all addresses of the leaf in one iteration are equal
	// modulo this number
	grain uint64
}

type blocks struct {
	lineBytes uint64
	refs      []loops.Reference
	all       []*block // the block of each shape
	room      struct {
		blocks pool[block]
		items  pool[item]
		steps  pool[uint64]
		leaves pool[leaf]
	}
}

// pool is memory for many short lists.
type pool[T any] struct{ left []T }

// newList returns an empty list with capacity for n elements.
func (p *pool[T]) newList(n int) []T {
	if len(p.left) < n {
		p.left = make([]T, max(n, 256))
	}
	list := p.left[:0:n]
	p.left = p.left[n:]
	return list
}

func newBlocks(t *loops.Tree, lineBytes uint64) *blocks {
	return &blocks{lineBytes: lineBytes, refs: t.References(), all: make([]*block, t.Shapes())}
}

func (bs *blocks) of(n loops.Node) *block {
	id := n.Shape()
	if bs.all[id] == nil {
		bs.all[id] = bs.build(n)
	}
	return bs.all[id]
}

func (bs *blocks) build(n loops.Node) *block {
	b := &bs.room.blocks.newList(1)[:1][0]
	b.nodes, b.events = 1, true
	if !n.IsLoop() {
		r, _, wild := n.Leaf()
		b.ref, b.bytes, b.wild, b.wilds = n.Ref(), max(1, uint64(r.Bytes)), wild, wild
		b.counted = r.Kind.IsReference()
		b.events = !b.counted
		return b
	}
	b.loop, b.flat = true, true
	b.items = bs.room.items.newList(n.Len())
	b.steps = bs.room.steps.newList(len(n.Params()) - 1)
	leaves := 0
	for i := range n.Len() {
		item, _ := n.Item(i)
		leaves += bs.of(item).references()
	}
	b.leaves = bs.room.leaves.newList(leaves)
	b.drifts = bs.room.leaves.newList(leaves)
	for i := range n.Len() {
		first, steps := n.Item(i)
		of := bs.of(first)
		it := item{block: of, at: len(b.steps), n: len(steps), node: b.nodes}
		b.addLeaves(it, steps, bs.lineBytes)
		b.items = append(b.items, it)
		b.steps = append(b.steps, steps...)
		b.nodes += of.nodes
		b.wilds = b.wilds || of.wilds
		b.flat = b.flat && !of.loop
		b.events = b.events && of.events
		b.varies = b.varies || of.changesTrips(steps)
		b.changes = b.changes || b.varies || of.changes
	}
	for i := range b.leaves {
		b.refs = append(b.refs, uint32(b.leaves[i].ref))
	}
	slices.Sort(b.refs)
	b.refs = slices.Compact(b.refs)
	b.slow = true
	for _, d := range b.drifts {
		b.slow = b.slow && 2*magnitude(d.step)+d.bytes <= d.grain
	}
	return b
}

// makesNoReferences reports whether a loop makes no references, because none of its inner loops
// runs.
func (b *block) makesNoReferences(cur []uint64) bool {
	return !b.flat && !b.changes && !b.wilds && b.referencesPerIteration(cur) == 0
}

// addLeaves adds the references of an item. The slice "steps" contains the steps of the
// item's parameters.
func (b *block) addLeaves(it item, steps []uint64, lineBytes uint64) {
	if !it.loop {
		if it.counted {
			b.addLeaf(leaf{ref: it.ref, param: it.at, bytes: it.bytes, wild: it.wild, step: steps[0], grain: lineBytes})
		}
		return
	}
	for i, at := range it.appendAddresses(nil, 1) {
		l := it.leaves[i]
		if l.step != 0 {
			l.grain = min(l.grain, l.step&-l.step)
		}
		l.step, l.param = steps[at], it.at+at
		b.addLeaf(l)
	}
}

func (b *block) addLeaf(l leaf) {
	b.leaves = append(b.leaves, l)
	if l.step != 0 {
		b.drifts = append(b.drifts, l)
	}
}

// appendAddresses appends the indices of the parameters that are addresses of leaves in a loop. The
// argument "first" is the index of the first parameter of the loop's body.
func (b *block) appendAddresses(all []int, first int) []int {
	for _, it := range b.items {
		switch {
		case it.loop:
			all = it.appendAddresses(all, first+it.at+1)
		case it.counted:
			all = append(all, first+it.at)
		}
	}
	return all
}

// changesTrips reports whether the trip count of loop b, or of a loop inside b, changes if the
// steps are added to the parameters of b.
func (b *block) changesTrips(steps []uint64) bool {
	if !b.loop {
		return false
	}
	if steps[0] != 0 {
		return true
	}
	return slices.ContainsFunc(b.items, func(it item) bool { return it.changesTrips(steps[1+it.at : 1+it.at+it.n]) })
}

// sameLineIterations returns the number of successive iterations, beginning with the iteration with
// the given parameters, that access the same lines in the same order. The result is at most the
// parameter "limit".
func (b *block) sameLineIterations(cur []uint64, limit uint64) uint64 {
	for i := range b.drifts {
		limit = b.drifts[i].sameLineIterations(cur, limit)
	}
	return limit
}

// sameLineIterations works like [block.sameLineIterations], but for a single reference whose
// address changes.
func (l *leaf) sameLineIterations(cur []uint64, limit uint64) uint64 {
	in := cur[l.param] & (l.grain - 1)
	switch {
	case in+l.bytes > l.grain:
		return min(limit, 1)
	case int64(l.step) > 0:
		return min(limit, (l.grain-l.bytes-in)/l.step+1)
	}
	return min(limit, in/-l.step+1)
}

// span is a range of bytes or lines that includes both ends.
type span struct{ first, last uint64 }

func (s *span) join(o span) {
	s.first, s.last = min(s.first, o.first), max(s.last, o.last)
}

// sweep extends a span to all bytes that it covers while it moves by the given number of steps. The
// result ok is false if the span would leave the address space.
func (s *span) sweep(step, steps uint64) (ok bool) {
	if step == 0 || steps == 0 {
		return true
	}
	back := int64(step) < 0
	if back {
		step = -step
	}
	over, far := bits.Mul64(step, steps)
	if over != 0 {
		return false
	}
	if back {
		ok = far <= s.first
		s.first -= far
		return ok
	}
	s.last += far
	return s.last >= far
}

// hullOf computes a span for each reference in a node with the given parameters. The span contains
// all bytes that the reference accesses. The result ok is false if a span would leave the address
// space.
//
// If all iterations of a loop have the same trip counts, the result is the span of the first
// iteration, swept over all iterations. If inner trip counts vary, the result is the union of the
// spans of the first and the last iteration. This union is sufficient, because the byte range of an
// inner loop that runs at least once is a convex function of the iteration.
func (b *block) hullOf(p []uint64, out []span) (ok bool) {
	if !b.loop {
		if b.counted {
			out[0] = span{p[0], p[0] + b.bytes - 1}
			return out[0].first <= out[0].last
		}
		return true
	}
	if len(b.leaves) == 0 {
		return true
	}
	out = out[:len(b.leaves)]
	if !b.hullOfBody(p[1:], out) {
		return false
	}
	trips := uint64(max(1, int64(p[0])))
	if trips == 1 {
		return true
	}
	if !b.varies {
		for i := range out {
			if !out[i].sweep(b.leaves[i].step, trips-1) {
				return false
			}
		}
		return true
	}
	last := make([]uint64, len(b.steps))
	for i, step := range b.steps {
		last[i] = p[1+i] + step*(trips-1)
	}
	at := make([]span, len(out))
	if !b.hullOfBody(last, at) {
		return false
	}
	for i := range out {
		l := &b.leaves[i]
		moved := span{p[1+l.param], p[1+l.param]}
		if !moved.sweep(l.step, trips-1) {
			return false
		}
		out[i].join(at[i])
	}
	return true
}

func (b *block) hullOfBody(p []uint64, out []span) bool {
	for i := range b.items {
		it := &b.items[i]
		if it.events {
			continue
		}
		if !it.hullOf(p[it.at:it.at+it.n], out) {
			return false
		}
		out = out[it.references():]
	}
	return true
}

// references returns the number of references in the block.
func (b *block) references() int {
	if b.loop {
		return len(b.leaves)
	}
	if b.counted {
		return 1
	}
	return 0
}
