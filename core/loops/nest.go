package loops

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Nest is a tree as a description that can be written by hand and changed: items in
// the order of the program. [Nest.Build] makes a tree of it, [Tree.Nest] is the way
// back.
//
// The product of two matrices of n × n doubles at c, a and b, for one:
//
//	n8 := int64(8 * n)
//	nest := loops.Nest{Items: []loops.Item{loops.Loop(n, loops.Loop(n,
//		loops.Leaf(load(1), c, n8, 8),
//		loops.Loop(n, loops.Leaf(load(2), a, n8, 0, 8), loops.Leaf(load(3), b, 0, 8, n8)),
//		loops.Leaf(store(4), c, n8, 8),
//	))}}
type Nest struct {
	Items []Item

	has     columns               // of the tree that it came from
	streams map[Reference]*stream // addresses of wild references
}

// Item is a leaf or a loop of a [Nest].
type Item struct {
	// Body is what a loop repeats; an item without is a leaf.
	Body []Item

	Ref  Reference  // of a leaf
	Addr trace.Addr // of a leaf, in the first iteration of all loops around it; 0 of a wild one
	Wild bool       // the leaf's addresses are a list of the nest's, see [Nest.SetWild]

	// Trips is how often a loop runs in the first iteration of all loops around it. As
	// a signed number it may be 0 or less there and in later ones, and the loop does
	// not run.
	Trips uint64

	// Steps are what each iteration of the loops around the item, the outermost first,
	// adds to the address of a leaf or to the trip count of a loop, modulo 2^64. What
	// is missing at the end is 0.
	Steps []int64
}

// Leaf makes a leaf.
func Leaf(r Reference, addr trace.Addr, steps ...int64) Item {
	return Item{Ref: r, Addr: addr, Steps: steps}
}

// Loop makes a loop that runs equally often in every iteration of those around it.
func Loop(trips uint64, body ...Item) Item { return Item{Trips: trips, Body: body} }

// IsLoop tells loops from leaves.
func (it *Item) IsLoop() bool { return len(it.Body) > 0 }

// start is the item's own parameter in the first iteration.
func (it *Item) start() uint64 {
	if it.IsLoop() {
		return it.Trips
	}
	return it.Addr
}

// step is what an iteration of the loop at a depth, 0 the outermost, adds to it.
func (it *Item) step(depth int) uint64 {
	if depth < len(it.Steps) {
		return uint64(it.Steps[depth])
	}
	return 0
}

// Clone gives a nest that shares nothing that can be changed.
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

// SetWild gives the addresses of the wild leaves of a reference, in the order of the
// trace.
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

// Wild gives the addresses of the wild leaves of a reference.
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

// NestError tells what is wrong with a [Nest], and where.
type NestError struct {
	Path      []int // numbers of items from 0, the outermost first
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

// Build makes the tree that a nest describes. The error is a [*NestError].
func (n *Nest) Build() (*Tree, error) {
	b := builder{nest: n, numbers: map[Reference]uint32{}, leaves: map[leafOf]uint32{}}
	b.tree = &Tree{shapes: shapes{first: map[uint64]uint32{}}, has: n.has}
	for i := range n.Items {
		id, params, err := b.item(&n.Items[i], 0, []int{i})
		if err != nil {
			return nil, err
		}
		b.tree.nodes = append(b.tree.nodes, id)
		b.tree.params = append(b.tree.params, params...)
	}
	t := b.tree
	if err := t.countRows(); err != nil {
		return nil, err
	}
	return t, nil
}

// leafOf is what leaves of equal shape have in common.
type leafOf struct {
	ref  uint32
	wild bool
}

// builder builds a tree from the inside out.
type builder struct {
	nest    *Nest
	tree    *Tree
	numbers map[Reference]uint32
	leaves  map[leafOf]uint32 // shapes
}

// item gives the shape of an item within so many loops, and its parameters.
func (b *builder) item(it *Item, depth int, path []int) (shape uint32, params []uint64, err error) {
	if len(it.Steps) > depth {
		return 0, nil, &NestError{slices.Clone(path), strconv.Itoa(len(it.Steps)) + " steps", "at most " + strconv.Itoa(depth) + ", one for each loop around"}
	}
	if !it.IsLoop() {
		shape, err = b.leaf(it, path)
		return shape, []uint64{it.Addr}, err
	}
	if it.Wild {
		return 0, nil, &NestError{slices.Clone(path), "a wild loop", "only leaves to be wild"}
	}
	params = []uint64{it.Trips}
	body := make([]uint32, len(it.Body))
	for i := range it.Body {
		id, of, err := b.item(&it.Body[i], depth+1, append(path, i))
		if err != nil {
			return 0, nil, err
		}
		body[i] = id
		params = append(params, of...)
	}
	return b.tree.shapes.loop(body, appendSteps(nil, it.Body, depth)), params, nil
}

// appendSteps appends what an iteration of the loop at a depth adds to each parameter
// of items in it.
func appendSteps(steps []uint64, items []Item, depth int) []uint64 {
	for i := range items {
		steps = append(steps, items[i].step(depth))
		steps = appendSteps(steps, items[i].Body, depth)
	}
	return steps
}

func (b *builder) leaf(it *Item, path []int) (shape uint32, err error) {
	r := &it.Ref
	switch {
	case !r.Kind.Valid():
		return 0, &NestError{slices.Clone(path), "kind " + strconv.Itoa(int(r.Kind)), "one of a trace"}
	case it.Trips != 0:
		return 0, &NestError{slices.Clone(path), "a loop without a body", "at least one item that it repeats, or no trip count"}
	case it.Wild && b.nest.streams[*r] == nil:
		return 0, &NestError{slices.Clone(path), "a wild leaf without addresses", "those of its reference, from SetWild"}
	}
	t := b.tree
	ref, known := b.numbers[*r]
	if !known {
		ref = uint32(len(t.refs))
		b.numbers[*r] = ref
		t.refs = append(t.refs, *r)
		t.streams = append(t.streams, stream{})
		if s := b.nest.streams[*r]; s != nil {
			t.streams[ref] = *s
		}
		t.has.thread = t.has.thread || r.Thread != 0
		t.has.pc = t.has.pc || r.PC != 0
		t.has.site = t.has.site || r.Site != 0
		t.has.arg = t.has.arg || r.Arg != 0
	}
	of := leafOf{ref, it.Wild}
	shape, known = b.leaves[of]
	if !known {
		shape = t.shapes.leaf(ref, it.Wild)
		b.leaves[of] = shape
	}
	return shape, nil
}

// Nest gives the description of a tree. It has as many items as the tree has nodes, and
// Build makes a tree of the same rows from it.
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

// Nest gives the description of a node alone, in the first iteration of all loops around
// it. The addresses of wild leaves are not in it: see [Nest.SetWild].
func (n Node) Nest() *Nest {
	return &Nest{Items: []Item{itemOf(n, nil)}, has: n.tree.has}
}

// itemOf describes a node; around are the steps of its parameters, the outermost loop
// first.
func itemOf(n Node, around [][]uint64) Item {
	var it Item
	for _, steps := range around {
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
		below := make([][]uint64, 0, len(around)+1)
		for _, of := range around {
			below = append(below, of[at:at+len(steps)])
		}
		it.Body = append(it.Body, itemOf(first, append(below, steps)))
		at += len(steps)
	}
	return it
}
