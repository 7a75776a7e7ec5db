package loops

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Nest describes a loop-compressed trace by items in program order. Programs can construct and
// change a Nest. [Nest.Build] converts a Nest to a tree, and [Tree.Nest] converts a tree to a Nest.
//
// For example, this nest describes the product c = a·b of matrices of n × n doubles:
//
//	n8 := int64(8 * n)
//	nest := loops.Nest{Items: []loops.Item{loops.Loop(n, loops.Loop(n,
//		loops.Leaf(load(1), c, n8, 8),
//		loops.Loop(n, loops.Leaf(load(2), a, n8, 0, 8), loops.Leaf(load(3), b, 0, 8, n8)),
//		loops.Leaf(store(4), c, n8, 8),
//	))}}
type Nest struct {
	Items []Item

	has     columns               // columns of the tree from which the nest was made
	streams map[Reference]*stream // addresses of wild references
}

// Item is a leaf or a loop of a [Nest].
type Item struct {
	// Body contains the repeated items of a loop. An item without a body is a leaf.
	Body []Item

	Ref  Reference  // reference of a leaf
	Addr trace.Addr // address in the first iteration of all surrounding loops; 0 for a wild leaf
	Wild bool       // whether the leaf's addresses are in a list, see [Nest.SetWild]

	// Trips is the trip count of a loop in the first iteration of all surrounding loops. If the
	// trip count is 0 in an iteration, or negative as a signed number, the loop does not run.
	Trips uint64

	// Steps contains a step for each surrounding loop, outermost first. Each iteration of the
	// surrounding loop adds the step to the address of the leaf or to the trip count of the loop,
	// modulo 2^64. Missing steps are 0.
	Steps []int64
}

// Leaf returns a leaf whose address changes by a constant step in each surrounding loop.
func Leaf(r Reference, addr trace.Addr, steps ...int64) Item {
	return Item{Ref: r, Addr: addr, Steps: steps}
}

// Loop returns a loop with a constant trip count.
func Loop(trips uint64, body ...Item) Item { return Item{Trips: trips, Body: body} }

// IsLoop reports whether the item is a loop.
func (it *Item) IsLoop() bool { return len(it.Body) > 0 }

// Step returns the step of the item's address or trip count in the surrounding loop at the given
// depth. Depth 0 is the outermost loop.
func (it *Item) Step(depth int) int64 {
	if depth < len(it.Steps) {
		return it.Steps[depth]
	}
	return 0
}

// Clone returns a deep copy.
func (n *Nest) Clone() *Nest {
	c := *n
	c.Items = cloneItems(n.Items)
	c.streams = maps.Clone(n.streams)
	return &c
}

func cloneItems(items []Item) []Item {
	c := slices.Clone(items)
	for i := range c {
		c[i].Body = cloneItems(c[i].Body)
		c[i].Steps = slices.Clone(c[i].Steps)
	}
	return c
}

// SetWild sets the addresses of a reference's wild leaves, in the order of the trace.
func (n *Nest) SetWild(r Reference, addrs []trace.Addr) {
	if n.streams == nil {
		n.streams = map[Reference]*stream{}
	}
	s := new(stream)
	for _, addr := range addrs {
		s.add(addr)
	}
	n.streams[r] = s
}

// Wild yields the addresses of all wild leaves of a reference.
func (n *Nest) Wild(r Reference) iter.Seq[trace.Addr] {
	return func(yield func(trace.Addr) bool) {
		s := n.streams[r]
		if s == nil {
			return
		}
		var c cursor
		for addr, ok := c.next(s); ok && yield(addr); addr, ok = c.next(s) {
		}
	}
}

// NestError reports an error in a [Nest], with its location.
type NestError struct {
	Path      []int // index of the item at each nesting level, outermost first
	Got, Want string
}

func (e *NestError) Error() string {
	text := "loops: the nest"
	for i, at := range e.Path {
		if i == 0 {
			text = "loops: item " + strconv.Itoa(at)
		} else {
			text += "." + strconv.Itoa(at)
		}
	}
	return text + ": " + e.Got + ", want " + e.Want
}

// Build returns the tree that the nest describes. The error is a [*NestError].
func (n *Nest) Build() (*Tree, error) {
	b := builder{nest: n, assembler: newAssembler()}
	t := b.tree
	t.has = n.has
	for i := range n.Items {
		id, params, err := b.buildItem(&n.Items[i], 0, []int{i})
		if err != nil {
			return nil, err
		}
		t.nodes, t.params = append(t.nodes, id), append(t.params, params...)
	}
	if err := t.countRows(); err != nil {
		return nil, err
	}
	return t, nil
}

// builder builds a tree, inner loops first.
type builder struct {
	assembler
	nest *Nest
}

// buildItem returns the shape and the parameters of an item. The parameter "depth" is the number of
// loops around the item.
func (b *builder) buildItem(it *Item, depth int, path []int) (shape uint32, params []uint64, err error) {
	if len(it.Steps) > depth {
		return 0, nil, wrong(path, strconv.Itoa(len(it.Steps))+" steps", "at most "+strconv.Itoa(depth)+", one for each loop around the item")
	}
	if !it.IsLoop() {
		shape, err = b.reference(it, path)
		return shape, []uint64{it.Addr}, err
	}
	if it.Wild {
		return 0, nil, wrong(path, "an irregular loop", "irregular leaves only")
	}
	params = []uint64{it.Trips}
	body := make([]uint32, len(it.Body))
	for i := range it.Body {
		id, inner, err := b.buildItem(&it.Body[i], depth+1, append(path, i))
		if err != nil {
			return 0, nil, err
		}
		body[i], params = id, append(params, inner...)
	}
	return b.tree.shapes.loop(body, appendSteps(nil, it.Body, depth)), params, nil
}

func wrong(path []int, got, want string) error { return &NestError{slices.Clone(path), got, want} }

// appendSteps appends the steps of the items' parameters in the loop at the given depth.
func appendSteps(steps []uint64, items []Item, depth int) []uint64 {
	for i := range items {
		steps = append(steps, uint64(items[i].Step(depth)))
		steps = appendSteps(steps, items[i].Body, depth)
	}
	return steps
}

func (b *builder) reference(it *Item, path []int) (shape uint32, err error) {
	r, wild := &it.Ref, b.nest.streams[it.Ref]
	switch {
	case !r.Kind.Valid():
		return 0, wrong(path, "kind "+strconv.Itoa(int(r.Kind)), "a kind of trace record")
	case it.Trips != 0:
		return 0, wrong(path, "a loop without a body", "a body with at least one item, or a leaf without a trip count")
	case it.Wild && wild == nil:
		return 0, wrong(path, "an irregular leaf without addresses", "addresses for the leaf's reference, set with SetWild")
	}
	t := b.tree
	ref, fresh := b.assembler.reference(*r)
	if fresh && wild != nil {
		t.streams[ref] = *wild
	}
	t.has = t.has.or(r.columns())
	return b.leaf(ref, it.Wild), nil
}

// Nest returns the description of a tree, with one item for each node. [Nest.Build] converts the
// description to a tree of the same records.
func (t *Tree) Nest() *Nest {
	n := &Nest{has: t.has, streams: map[Reference]*stream{}}
	for i := range t.streams {
		if t.streams[i].count > 0 {
			s := t.streams[i]
			n.streams[t.refs[i]] = &s
		}
	}
	for node := range t.Nodes() {
		n.Items = append(n.Items, itemOf(node, nil))
	}
	return n
}

// Nest returns the description of a single node, in the first iteration of all surrounding loops.
// The addresses of wild leaves are missing, and must be set with [Nest.SetWild].
func (n Node) Nest() *Nest {
	return &Nest{Items: []Item{itemOf(n, nil)}, has: n.tree.has}
}

// itemOf returns the description of a node. The slice outerSteps contains the steps of the node's
// parameters in each surrounding loop, outermost first.
func itemOf(n Node, outerSteps [][]uint64) Item {
	var it Item
	for _, steps := range outerSteps {
		it.Steps = append(it.Steps, int64(steps[0]))
	}
	if !n.IsLoop() {
		it.Ref, it.Addr, it.Wild = n.Leaf()
		return it
	}
	it.Trips = n.Trips()
	at := 1
	for i := range n.Len() {
		first, steps := n.Item(i)
		below := make([][]uint64, 0, len(outerSteps)+1)
		for _, outer := range outerSteps {
			below = append(below, outer[at:at+len(steps)])
		}
		it.Body = append(it.Body, itemOf(first, append(below, steps)))
		at += len(steps)
	}
	return it
}
