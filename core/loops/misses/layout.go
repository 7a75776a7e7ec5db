package misses

import (
	"github.com/stackglass/stackglass/core/loops"
)

// layout is what is known of a tree before it runs, for lines of one size.
type layout struct {
	tree   *loops.Tree
	blocks *blocks
	shift  uint // lines are of 1 << shift bytes

	shapes []uint32 // of the nodes at the top
	params []uint64 // of them, one after the other
	forms  []form   // by shape
	flats  []flat

	starts  []int32 // by node at the top: number of its first count, -1 if it is counted by reference
	nodes   int     // counts before those by reference
	arrays  *arrays
	columns []uint32 // of each reference: its array's
}

// form says how to run a node at the top. Trees of irregular traces have millions of
// short loops there, which are run without much ado.
type form struct {
	kind  kind
	first int32 // in flats
	items int32
	size  int32  // parameters
	block *block // nil until it is needed, of a leaf or a loop over references
}

type kind uint8

const (
	unknown kind = iota
	oneLeaf      // a reference
	oneLoop      // a loop over references only
	anyNode
)

// flat is a reference, by itself or in a loop over references only.
type flat struct {
	step  uint64
	bytes uint32 // 0: no reference
	ref   uint32
	array uint32 // its column
}

const (
	// mostTop is how many nodes at the top have short loops counted each by itself.
	mostTop = 1 << 18
	// shortLoop is how many references a short loop makes at most.
	shortLoop = 64
)

func newLayout(t *loops.Tree, lineBytes uint64) *layout {
	l := &layout{tree: t, blocks: newBlocks(t, lineBytes)}
	for lineBytes>>l.shift > 1 {
		l.shift++
	}
	l.shapes, l.params = t.Top()
	l.forms = make([]form, t.Shapes())
	l.starts = make([]int32, len(l.shapes))
	refs := t.References()
	seen := newExtents(refs)
	many := len(l.shapes) > mostTop
	at := 0
	for i, id := range l.shapes {
		f := &l.forms[id]
		if f.kind == unknown {
			*f = l.formOf(t.Node(id, l.params[at:]))
		}
		p := l.params[at : at+int(f.size) : at+int(f.size)]
		at += len(p)
		switch {
		case f.kind == oneLeaf:
			l.starts[i] = -1
			of := &l.flats[f.first]
			seen.join(of.ref, span{p[0], max(p[0], p[0]+uint64(of.bytes-1))}, 1)
		case f.kind == oneLoop && many && f.short(p[0]):
			l.starts[i] = -1
			if int64(p[0]) > 0 {
				l.joinFlat(f, p, seen)
			}
		case f.kind == oneLoop || f.block.loop:
			b := l.blockOf(id, p)
			l.starts[i] = int32(l.nodes)
			l.nodes += b.nodes
			seen.joinLoop(b, p)
		default:
			l.starts[i] = -1
		}
	}
	seen.joinWild(t)
	l.arrays = divide(seen.spans, seen.uses, l.shift)
	l.columns = make([]uint32, len(refs))
	for ref, s := range l.arrays.byRef {
		if s >= 0 {
			l.columns[ref] = l.arrays.number[s]
		}
	}
	for i := range l.flats {
		l.flats[i].array = l.columns[l.flats[i].ref]
	}
	return l
}

// blockOf gives the block of a node at the top.
func (l *layout) blockOf(id uint32, p []uint64) *block {
	f := &l.forms[id]
	if f.block == nil {
		f.block = l.blocks.of(l.tree.Node(id, p))
	}
	return f.block
}

// short tells whether a loop over references makes few.
func (f *form) short(trips uint64) bool {
	return int64(trips) < 1 || trips <= shortLoop && trips*uint64(f.items) <= shortLoop
}

func (l *layout) formOf(n loops.Node) form {
	f := form{first: int32(len(l.flats)), size: int32(len(n.Params()))}
	if !n.IsLoop() {
		of, tame := flatOf(n)
		if tame && of.bytes > 0 {
			l.flats = append(l.flats, of)
			f.kind, f.items = oneLeaf, 1
			return f
		}
	} else if l.addFlats(n) {
		f.kind, f.items = oneLoop, int32(n.Len())
		return f
	}
	l.flats = l.flats[:f.first]
	f.kind, f.block = anyNode, l.blocks.of(n)
	return f
}

// addFlats adds the body of a loop over references; ok is false of any other loop.
func (l *layout) addFlats(n loops.Node) (ok bool) {
	for i := range n.Len() {
		item, steps := n.Item(i)
		if item.IsLoop() {
			return false
		}
		of, tame := flatOf(item)
		if !tame {
			return false
		}
		of.step = steps[0]
		l.flats = append(l.flats, of)
	}
	return true
}

// flatOf makes one of a leaf, unless that is wild.
func flatOf(n loops.Node) (of flat, tame bool) {
	r, _, wild := n.Leaf()
	of.ref = uint32(n.Ref())
	if r.Kind.IsReference() {
		of.bytes = max(1, r.Bytes)
	}
	return of, !wild
}

// joinFlat is joinLoop for loops over references.
func (l *layout) joinFlat(f *form, p []uint64, seen *extents) {
	for j := range l.flats[f.first : f.first+f.items] {
		of := &l.flats[int(f.first)+j]
		if of.bytes == 0 {
			continue
		}
		s := span{p[1+j], p[1+j] + uint64(of.bytes-1)}
		if !s.sweep(of.step, p[0]-1) || s.last < s.first {
			s = span{0, ^uint64(0)}
		}
		seen.join(of.ref, s, p[0])
	}
}

// extents are the bytes that references touch.
type extents struct {
	spans []span
	uses  []uint64
	out   []span
}

func newExtents(refs []loops.Reference) *extents {
	return &extents{spans: make([]span, len(refs)), uses: make([]uint64, len(refs))}
}

func (e *extents) join(ref uint32, s span, times uint64) {
	if e.uses[ref] == 0 {
		e.spans[ref] = s
	} else {
		e.spans[ref].join(s)
	}
	e.uses[ref] += times
}

func (e *extents) joinLoop(b *block, p []uint64) {
	for len(e.out) < len(b.leaves) {
		e.out = append(e.out, span{})
	}
	ok := b.hullOf(p, e.out)
	for i := range b.leaves {
		of := &b.leaves[i]
		switch {
		case of.wild:
		case ok:
			e.join(uint32(of.ref), e.out[i], uint64(max(1, int64(p[0]))))
		default:
			e.join(uint32(of.ref), span{0, ^uint64(0)}, 1)
		}
	}
}

// joinWild joins the addresses of wild references.
func (e *extents) joinWild(t *loops.Tree) {
	for ref := range t.References() {
		read := t.Addresses(ref)
		bytes := max(1, uint64(t.References()[ref].Bytes))
		for addr, ok := read.Next(); ok; addr, ok = read.Next() {
			e.join(uint32(ref), span{addr, max(addr, addr+bytes-1)}, 1)
		}
	}
}
