package loops

import (
	"iter"

	"github.com/stackglass/stackglass/core/trace"
)

// Reference is what all rows of a leaf have in common: everything but the address.
// Columns that the trace does not have are 0.
type Reference struct {
	PC     trace.Addr
	Arg    uint64
	Site   uint32
	Thread uint32
	Bytes  uint32
	Kind   trace.Kind
}

// named tells whether the reference is a place in the program.
func (r *Reference) named(has columns) bool { return has.site || has.pc && r.PC != 0 }

// columns tells which of the optional columns a trace has.
type columns struct{ thread, pc, site, arg bool }

// Tree is a folded trace: nodes in the order of the trace. It does not change.
type Tree struct {
	rows    uint64
	bodies  float64 // iterations of loops, approximately, if some may give no rows
	has     columns
	refs    []Reference
	streams []stream // by reference
	shapes  shapes
	nodes   []uint32 // shapes
	params  []uint64 // of the nodes, one after the other
}

// Rows is the number of rows that the tree stands for, references and events; the
// largest number stands for itself and all that are larger, which [Tree.Approximately]
// tells apart.
func (t *Tree) Rows() uint64 { return t.rows }

// Size gives what the tree consists of: nodes at the top, leaves and loops in
// all, and the addresses in streams at the side with the bytes that they take.
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

// Size says how large a [Tree] is.
type Size struct {
	Nodes, Leaves, Loops int
	Wild, WildBytes      uint64
}

// Nodes gives the nodes at the top, in the order of the trace.
func (t *Tree) Nodes() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		at := 0
		for _, id := range t.nodes {
			n := t.shapes.all[id].params
			if !yield(Node{tree: t, shape: &t.shapes.all[id], number: id, params: t.params[at : at+n : at+n]}) {
				return
			}
			at += n
		}
	}
}

// Top gives the nodes at the top in one piece, read-only: their shapes, and the
// parameters of one after the other; [Tree.Node] makes a node of them.
func (t *Tree) Top() (shapes []uint32, params []uint64) { return t.nodes, t.params }

// Node gives a node of a shape, whose parameters params begin with.
func (t *Tree) Node(shape uint32, params []uint64) Node {
	s := &t.shapes.all[shape]
	return Node{tree: t, shape: s, number: shape, params: params[:s.params:s.params]}
}

// Node is a leaf or a loop, as it is in the first iteration of all loops around it.
type Node struct {
	tree   *Tree
	shape  *shape
	number uint32 // of the shape
	params []uint64
}

// Shape numbers what is equal of nodes that differ only in their parameters, from 0,
// below [Tree.Shapes].
func (n Node) Shape() int { return int(n.number) }

// Shapes is how many shapes nodes of the tree may have.
func (t *Tree) Shapes() int { return len(t.shapes.all) }

// References gives what the leaves refer to, each once, read-only.
func (t *Tree) References() []Reference { return t.refs }

// Ref is the number of a leaf's reference in [Tree.References]; of a loop -1.
func (n Node) Ref() int {
	if n.shape.loop {
		return -1
	}
	return int(n.shape.ref)
}

// Addresses reads the addresses of the wild leaves of a reference in the order of the
// trace.
type Addresses struct {
	stream *stream
	cursor cursor
}

// Addresses gives those of reference ref.
func (t *Tree) Addresses(ref int) Addresses { return Addresses{stream: &t.streams[ref]} }

// Wild is how many addresses of reference ref are at the side.
func (t *Tree) Wild(ref int) uint64 { return t.streams[ref].count }

// Between gives the least and the greatest address of reference ref that are at the side;
// ok is false of one without.
func (t *Tree) Between(ref int) (least, most trace.Addr, ok bool) {
	s := &t.streams[ref]
	return s.least, s.most, s.count > 0
}

// Next gives the next address; ok is false behind the last.
func (a *Addresses) Next() (addr trace.Addr, ok bool) { return a.cursor.next(a.stream) }

// IsLoop tells loops from leaves.
func (n Node) IsLoop() bool { return n.shape.loop }

// Leaf gives what a leaf refers to. The address of a wild one is 0: its addresses
// are in the stream of the reference.
func (n Node) Leaf() (r Reference, addr trace.Addr, wild bool) {
	if n.shape.loop {
		return Reference{}, 0, false
	}
	return n.tree.refs[n.shape.ref], n.params[0], n.shape.wild
}

// Params are the parameters, read-only: of a leaf its address; of a loop its trip
// count and then those of the items of its body, one after the other.
func (n Node) Params() []uint64 { return n.params }

// Trips is how often a loop runs; of a leaf 1. As a signed number it may be 0 or less in
// a tree that [Nest.Build] made: the loop does not run.
func (n Node) Trips() uint64 {
	if n.shape.loop {
		return n.params[0]
	}
	return 1
}

// Len is the number of items in a loop's body; of a leaf 0.
func (n Node) Len() int { return len(n.shape.items) }

// Item gives item i of a loop's body, and the step of each of its parameters from
// one iteration to the next, modulo 2^64, read-only.
func (n Node) Item(i int) (first Node, steps []uint64) {
	it := n.shape.items[i]
	lo, hi := it.at, it.at+it.params
	return Node{tree: n.tree, shape: &n.tree.shapes.all[it.shape], number: it.shape, params: n.params[1+lo : 1+hi : 1+hi]}, n.shape.steps[lo:hi:hi]
}
