package loops

import (
	"iter"

	"github.com/stackglass/stackglass/core/trace"
)

// Reference contains the common fields of all records of a leaf: all fields except the address.
// Fields that are missing in the trace are 0.
type Reference struct {
	PC     trace.Addr
	Arg    uint64
	Site   uint32
	Thread uint32
	Bytes  uint32
	Kind   trace.Kind
}

// hasLocation reports whether the reference contains a site or a PC, which identify a location in
// the program.
func (r *Reference) hasLocation(has columns) bool { return has.site || has.pc && r.PC != 0 }

// columns returns the optional columns in which the reference has a nonzero value.
func (r *Reference) columns() columns {
	return columns{r.Thread != 0, r.PC != 0, r.Site != 0, r.Arg != 0}
}

// columns records which optional columns a trace has.
type columns struct{ thread, pc, site, arg bool }

func (c columns) or(d columns) columns {
	return columns{c.thread || d.thread, c.pc || d.pc, c.site || d.site, c.arg || d.arg}
}

// Tree is a loop-compressed trace: an immutable list of nodes, in the order of the trace.
type Tree struct {
	rows    uint64
	bodies  float64 // approximate number of loop iterations, including iterations without records
	has     columns
	refs    []Reference
	streams []stream // stream of each reference
	shapes  shapes
	nodes   []uint32 // shape of each node
	params  []uint64 // parameters of the nodes, concatenated
}

func newTree() *Tree { return &Tree{shapes: shapes{first: map[uint64]uint32{}}} }

// Rows returns the number of records that the tree represents, including events. The result is at
// most the largest uint64 (see [Tree.Approximately]).
func (t *Tree) Rows() uint64 { return t.rows }

// Size returns the size of the tree.
func (t *Tree) Size() (s Size) {
	s.Nodes = len(t.nodes)
	for _, id := range t.nodes {
		s.Leaves += t.shapes.all[id].leaves
		s.Loops += t.shapes.all[id].loops
	}
	for i := range t.streams {
		s.Wild += t.streams[i].count
		s.WildBytes += uint64(len(t.streams[i].packed))
	}
	return s
}

// Size is the size of a [Tree].
type Size struct {
	Nodes           int    // number of nodes at the top level
	Leaves, Loops   int    // numbers of leaves and loops at all levels
	Wild, WildBytes uint64 // number of addresses of wild references, and their size in bytes
}

func (s *Size) Add(o Size) {
	s.Nodes += o.Nodes
	s.Leaves += o.Leaves
	s.Loops += o.Loops
	s.Wild += o.Wild
	s.WildBytes += o.WildBytes
}

// tops yields the shape number and the parameters of each top-level node.
func (t *Tree) tops() iter.Seq2[uint32, []uint64] {
	return func(yield func(uint32, []uint64) bool) {
		at := 0
		for _, id := range t.nodes {
			end := at + t.shapes.all[id].params
			if !yield(id, t.params[at:end:end]) {
				return
			}
			at = end
		}
	}
}

// Nodes yields the top-level nodes, in the order of the trace.
func (t *Tree) Nodes() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for id, params := range t.tops() {
			if !yield(t.Node(id, params)) {
				return
			}
		}
	}
}

// TopLoops yields the loops among the top-level nodes, together with the indices of these nodes.
func (t *Tree) TopLoops() iter.Seq2[int, Node] {
	return func(yield func(int, Node) bool) {
		at := 0
		for i, id := range t.nodes {
			s := &t.shapes.all[id]
			if s.loop && !yield(i, t.Node(id, t.params[at:])) {
				return
			}
			at += s.params
		}
	}
}

// Straight returns the number of references outside all loops.
func (t *Tree) Straight() (references uint64) {
	for _, id := range t.nodes {
		if s := &t.shapes.all[id]; !s.loop && t.refs[s.ref].Kind.IsReference() {
			references++
		}
	}
	return references
}

// Top returns the shapes and the concatenated parameters of all top-level nodes. The returned
// slices are read-only. [Tree.Node] converts a shape and its parameters to a node.
func (t *Tree) Top() (shapes []uint32, params []uint64) { return t.nodes, t.params }

// Node returns the node with the given shape. The node's parameters are the first elements of
// params.
func (t *Tree) Node(shape uint32, params []uint64) Node {
	s := &t.shapes.all[shape]
	return Node{tree: t, shape: s, number: shape, params: params[:s.params:s.params]}
}

// Node is a leaf or a loop. The parameters of a Node are the values in the first iteration of all
// enclosing loops.
type Node struct {
	tree   *Tree
	shape  *shape
	number uint32 // number of the node's shape
	params []uint64
}

// Shape returns the number of the node's shape, which is less than [Tree.Shapes]. Nodes with the
// same shape differ only in their parameters.
func (n Node) Shape() int { return int(n.number) }

// Shapes returns the number of shapes. All shape numbers are less than this number.
func (t *Tree) Shapes() int { return len(t.shapes.all) }

// References returns the distinct references of the leaves. The returned list is read-only.
func (t *Tree) References() []Reference { return t.refs }

// Ref returns the index of a leaf's reference in [Tree.References], or -1 for a loop.
func (n Node) Ref() int {
	if n.shape.loop {
		return -1
	}
	return int(n.shape.ref)
}

// Addresses is a reader of the addresses of a reference's wild leaves, in the order of the trace.
type Addresses struct {
	stream *stream
	cursor cursor
}

// Addresses returns a reader of the addresses of reference ref.
func (t *Tree) Addresses(ref int) Addresses { return Addresses{stream: &t.streams[ref]} }

// Wild returns the total number of addresses of the wild leaves of reference ref.
func (t *Tree) Wild(ref int) uint64 { return t.streams[ref].count }

// Between returns the lowest and the highest address of the wild leaves of reference ref. ok is
// false if the reference has no wild leaves.
func (t *Tree) Between(ref int) (least, most trace.Addr, ok bool) {
	s := &t.streams[ref]
	return s.least, s.most, s.count > 0
}

// Next returns the next address. ok is false after the last address.
func (a *Addresses) Next() (addr trace.Addr, ok bool) { return a.cursor.next(a.stream) }

// IsLoop reports whether the node is a loop.
func (n Node) IsLoop() bool { return n.shape.loop }

// Leaf returns the reference and the address of a leaf. addr is 0 for a wild leaf. [Tree.Addresses]
// returns the addresses of wild leaves.
func (n Node) Leaf() (r Reference, addr trace.Addr, wild bool) {
	if n.shape.loop {
		return Reference{}, 0, false
	}
	return n.tree.refs[n.shape.ref], n.params[0], n.shape.wild
}

// Params returns the node's read-only parameters: the address of a leaf, or the trip count of a
// loop followed by the parameters of the items of its body.
func (n Node) Params() []uint64 { return n.params }

// Trips returns the trip count of a loop, or 1 for a leaf. In a tree from [Nest.Build], the trip
// count of a loop that does not run is 0, or negative as a signed number.
func (n Node) Trips() uint64 {
	if n.shape.loop {
		return n.params[0]
	}
	return 1
}

// Len returns the number of items in a loop's body, or 0 for a leaf.
func (n Node) Len() int { return len(n.shape.items) }

// Item returns item i of a loop's body. From one iteration to the next, the item's parameters
// change by the values in the result steps, modulo 2^64. Callers must not modify this slice.
func (n Node) Item(i int) (first Node, steps []uint64) {
	it := n.shape.items[i]
	lo, hi := it.at, it.at+it.params
	return n.tree.Node(it.shape, n.params[1+lo:]), n.shape.steps[lo:hi:hi]
}
