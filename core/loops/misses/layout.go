package misses

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
)

// layout contains the properties of a tree for one line size. These properties are computed before
// the simulation.
type layout struct {
	tree   *loops.Tree
	blocks *blocks
	shift  uint // lines have 1 << shift bytes

	shapes []uint32 // shape of each top-level node
	params []uint64 // parameters of the top-level nodes, concatenated
	forms  []form   // form of each shape
	flats  []flatReference
	bytes  []uint32 // size in bytes, by reference; 0 for an event

	many   bool      // whether accesses in short top-level loops are counted separately for each reference
	tops   []topLoop // top-level loops that are counted node by node
	loops  []*block  // the block of each loop in tops
	nodes  int       // number of counters of nodes; these counters precede the counters of references
	arrays *arrayMap
}

// topLoop is a top-level loop with separate counters.
type topLoop struct {
	node  int32 // index among the top-level nodes
	start int32 // index of the loop's first counter
}

// form determines the simulation method of a top-level node. Trees of irregular traces contain
// millions of short top-level loops, which need a fast path.
type form struct {
	kind  kind
	first int32 // index of the first reference in flats
	items int32
	size  int32 // number of parameters of the node
}

type kind uint8

const (
	unknown     kind = iota
	oneLeaf          // a single reference
	oneLoop          // a loop over references only
	noReference      // a single event
	anyNode
)

// flatReference is a top-level reference, or a reference in a top-level loop that contains only
// references and events.
type flatReference struct {
	step  uint64
	bytes uint32 // size of the reference in bytes; 0 for an event
	ref   uint32
	far   bool // whether the reference's step is large
	wild  bool // whether the reference is wild: its addresses are stored in a list
}

const (
	maxTop      = 1 << 18 // if there are more top-level nodes, accesses in short loops are counted separately for each reference
	shortLoop   = 64      // maximum number of references that a short loop makes
	farStep     = 1 << 56 // minimum size of a large step in bytes; the product of shortLoop and a smaller step is less than 2^64
	useInterval = 16      // if there are many nodes, uses are counted only in every useInterval-th node
)

func newLayout(t *loops.Tree, lineBytes uint64) *layout {
	shapes, _ := t.Top()
	return newLayoutOf(t, lineBytes, len(shapes) > maxTop)
}

func newLayoutOf(t *loops.Tree, lineBytes uint64, many bool) *layout {
	l := &layout{tree: t, blocks: newBlocks(t, lineBytes), many: many}
	for lineBytes>>l.shift > 1 {
		l.shift++
	}
	l.shapes, l.params = t.Top()
	l.forms = make([]form, t.Shapes())
	refs := t.References()
	l.flats = make([]flatReference, 0, 2*t.Shapes())
	l.bytes = make([]uint32, len(refs))
	for i := range refs {
		if refs[i].Kind.IsReference() {
			l.bytes[i] = max(1, refs[i].Bytes)
		}
	}
	seen := newExtents(refs)
	at := 0
	for i, id := range l.shapes {
		f := &l.forms[id]
		if f.kind == unknown {
			*f = l.formOf(t.Node(id, l.params[at:]))
		}
		p := l.params[at : at+int(f.size) : at+int(f.size)]
		at += len(p)
		switch {
		case f.kind == noReference:
			continue
		case f.kind == oneLeaf:
			if of := &l.flats[f.first]; !of.wild {
				seen.extend(of.ref, span{p[0], max(p[0], p[0]+uint64(of.bytes-1))})
			}
		case f.kind == oneLoop && f.short(p[0]):
			if !l.many {
				l.addTop(i, t.Node(id, p))
			}
			if int64(p[0]) < 1 {
				continue
			}
			l.joinFlat(f, p, seen)
		default:
			seen.joinLoop(l.addTop(i, t.Node(id, p)), p)
			continue
		}
		if !l.many || i%useInterval == 0 {
			l.countUses(f, p, seen)
		}
	}
	seen.joinWild(t)
	l.arrays = divideLines(seen.spans, seen.uses, l.shift)
	return l
}

// addTop adds top-level node i to the loops that are counted node by node.
func (l *layout) addTop(i int, n loops.Node) *block {
	b := l.blocks.of(n)
	l.tops = append(l.tops, topLoop{int32(i), int32(l.nodes)})
	l.loops = append(l.loops, b)
	l.nodes += b.nodes
	return b
}

// countUses counts the executions of the references in a top-level node.
func (l *layout) countUses(f *form, p []uint64, seen *extents) {
	times := uint64(1)
	if f.kind == oneLoop {
		times = p[0]
	}
	if l.many {
		times *= useInterval
	}
	for i := range l.flats[f.first : f.first+f.items] {
		if of := &l.flats[int(f.first)+i]; of.bytes > 0 && !of.wild {
			seen.uses[of.ref] += times
		}
	}
}

// short reports whether a loop over references makes at most [shortLoop] references.
func (f *form) short(trips uint64) bool {
	return int64(trips) < 1 || trips <= shortLoop && trips*uint64(f.items) <= shortLoop
}

func (l *layout) formOf(n loops.Node) form {
	f := form{first: int32(len(l.flats)), size: int32(len(n.Params()))}
	if !n.IsLoop() {
		if of := l.flatOf(n); of.bytes > 0 {
			l.flats = append(l.flats, of)
			f.kind, f.items = oneLeaf, 1
			return f
		}
		f.kind = noReference
		return f
	} else if l.addFlats(n) {
		f.kind, f.items = oneLoop, int32(n.Len())
		return f
	}
	l.flats = l.flats[:f.first]
	f.kind = anyNode
	return f
}

// addFlats adds the body of a loop that contains only references and events. The result ok is false
// for any other loop.
func (l *layout) addFlats(n loops.Node) (ok bool) {
	for i := range n.Len() {
		item, steps := n.Item(i)
		if item.IsLoop() {
			return false
		}
		of := l.flatOf(item)
		if of.wild && of.bytes == 0 {
			return false
		}
		of.step = steps[0]
		of.far = of.step+farStep > 2*farStep
		l.flats = append(l.flats, of)
	}
	return true
}

func (l *layout) flatOf(n loops.Node) flatReference {
	_, _, wild := n.Leaf()
	ref := n.Ref()
	return flatReference{ref: uint32(ref), bytes: l.bytes[ref], wild: wild}
}

// joinFlat works like joinLoop, but only for a short loop over references that runs at least once.
func (l *layout) joinFlat(f *form, p []uint64, seen *extents) {
	trips, p := p[0], p[1:]
	for i := range l.flats[f.first : f.first+f.items] {
		of := &l.flats[int(f.first)+i]
		if of.bytes == 0 || of.wild {
			continue
		}
		s := span{p[i], p[i] + of.step*(trips-1)}
		if int64(of.step) < 0 {
			s.first, s.last = s.last, s.first
		}
		s.last += uint64(of.bytes - 1)
		if s.last < s.first || of.far && trips > 1 {
			s = span{0, ^uint64(0)}
		}
		seen.extend(of.ref, s)
	}
}

// extents contains, for each reference, the range of bytes that it touches.
type extents struct {
	spans []span // an empty span begins at 2^64 - 1 and ends at 0
	uses  []uint64
	out   []span
}

func newExtents(refs []loops.Reference) *extents {
	e := &extents{spans: make([]span, len(refs)), uses: make([]uint64, len(refs))}
	for i := range e.spans {
		e.spans[i].first = ^uint64(0)
	}
	return e
}

func (e *extents) join(ref uint32, s span, times uint64) {
	e.extend(ref, s)
	e.uses[ref] += times
}

// extend works like join, but does not count uses. Most spans lie within the known extents, so
// extend avoids unnecessary stores.
func (e *extents) extend(ref uint32, s span) {
	all := &e.spans[ref]
	if s.first < all.first {
		all.first = s.first
	}
	if s.last > all.last {
		all.last = s.last
	}
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

func (e *extents) joinWild(t *loops.Tree) {
	for ref := range t.References() {
		least, most, ok := t.Between(ref)
		if !ok {
			continue
		}
		last := most + max(1, uint64(t.References()[ref].Bytes)) - 1
		if last < most {
			last = ^uint64(0)
		}
		e.join(uint32(ref), span{least, last}, t.Wild(ref))
	}
}

// The table of evictions has at most maxColumns columns, and fewer columns if there would otherwise be
// more than maxEvictionCounters counters. If there are more references than columns, all columns
// except for maxArrays columns represent single references, beginning with the most frequently used
// references. The other columns represent the remaining references to one array, and the last column
// represents several arrays if there are more arrays.
const (
	maxArrays           = 32
	maxColumns          = 96
	maxEvictionCounters = 1 << 22
)

// arrayMap divides the references among arrays. References with overlapping lines belong to one
// array.
type arrayMap struct {
	spans    []span   // spans of lines of the arrays, in ascending order
	byRef    []int    // by reference: the index of its array, or -1 if it makes no accesses
	columns  []Column // the columns of the table of evictions
	columnOf []uint32 // by reference: its column
}

// divideLines divides the lines among arrays: it joins the spans of references with overlapping
// lines. It ignores spans that end before they begin, because they are empty. The most frequently
// used references and arrays get separate columns.
func divideLines(all []span, uses []uint64, shift uint) *arrayMap {
	a := &arrayMap{byRef: make([]int, len(all)), columnOf: make([]uint32, len(all))}
	var order []int
	for ref := range all {
		a.byRef[ref] = -1
		if all[ref].first <= all[ref].last {
			all[ref].first >>= shift
			all[ref].last >>= shift
			order = append(order, ref)
		}
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(all[x].first, all[y].first) })
	var weight []uint64
	for _, ref := range order {
		if n := len(a.spans); n > 0 && all[ref].first <= a.spans[n-1].last {
			a.spans[n-1].join(all[ref])
		} else {
			a.spans = append(a.spans, all[ref])
			weight = append(weight, 0)
		}
		a.byRef[ref] = len(a.spans) - 1
		weight[len(a.spans)-1] += uses[ref]
	}
	a.setColumns(order, uses, weight)
	return a
}

// setColumns assigns columns to the references in the slice "refs", which have the given numbers of
// uses. The slice "weight" contains the number of uses of each array.
func (a *arrayMap) setColumns(refs []int, uses, weight []uint64) {
	slices.SortStableFunc(refs, func(x, y int) int { return cmp.Compare(uses[y], uses[x]) })
	most := max(1, min(maxColumns, maxEvictionCounters/max(1, len(uses))))
	arrays := min(maxArrays, most)
	own := most - arrays // number of references with columns of their own
	if len(refs) <= most {
		own = len(refs)
	}
	for i, ref := range refs[:own] {
		a.columnOf[ref] = uint32(i)
		a.columns = append(a.columns, Column{Array: a.byRef[ref], Ref: ref})
	}
	if own == len(refs) {
		return
	}
	heavy := indices(len(a.spans))
	slices.SortStableFunc(heavy, func(x, y int) int { return cmp.Compare(weight[y], weight[x]) })
	column := make([]uint32, len(a.spans)) // by array
	for i, array := range heavy {
		if i < arrays {
			a.columns = append(a.columns, Column{Array: array, Ref: -1})
		}
		column[array] = uint32(len(a.columns) - 1)
	}
	if len(heavy) > arrays {
		a.columns[len(a.columns)-1].Array = -1
	}
	for _, ref := range refs[own:] {
		a.columnOf[ref] = column[a.byRef[ref]]
	}
}
