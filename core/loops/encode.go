package loops

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// formVersion is the version of the encoding of a tree of loops and leaves.
const formVersion = 1

const (
	bitThread = 1 << iota
	bitPC
	bitSite
	bitArg
	allBits = 1<<iota - 1
)

// The definition of a shape begins with one of these numbers. The number defineLoop + n begins the
// definition of a loop over 1 + n items.
const (
	defineTame      = iota // a tame leaf of the next reference
	defineWild             // a wild leaf of the next reference
	defineKnownTame        // a tame leaf of a known reference, whose number follows
	defineKnownWild
	defineLoop
)

const (
	takeOther  = 0 // the shape in shapePredictor.other, or the end of the tree
	takeNew    = 1 // a new shape, whose definition follows
	takeNumber = 1 // takeNumber + n represents the shape with the number n, which is at least 1
	maxInToken = 3 // maximum number of predicted nodes in the first number of a token; if this maximum is reached, a second number contains the remaining predicted nodes
)

// appendFolded appends the tree as loops and leaves.
func (t *Tree) appendFolded(dst []byte) []byte {
	w := newEncoder(t)
	w.writeNodes()
	return w.withHead(dst)
}

func newEncoder(t *Tree) *encoder {
	return &encoder{
		tree: t, shapes: make([]uint32, len(t.shapes.all)), refs: make([]uint32, len(t.refs)),
		shapePredictor: shapePredictor{next: []uint32{0}, other: []uint32{0}},
		lastAddresses:  lastAddresses{at: make([]uint64, len(t.refs))},
	}
}

// encoder writes a tree. It writes the nodes first, because they determine the order of the
// references, and then inserts the head before them.
type encoder struct {
	tree   *Tree
	plain  bool // whether to write the plain form, without lists
	dst    []byte
	shapes []uint32 // by shape: its number in the order of definition, from 1; 0 if not defined yet
	// by reference: its number in the order of definition, from 1; 0 if not defined yet
	refs  []uint32
	order []uint32 // references in the order of their numbers
	shapePredictor
	lastAddresses
}

func (w *encoder) uv(v uint64)      { w.dst = binary.AppendUvarint(w.dst, v) }
func (w *encoder) zigzag(v uint64)  { w.dst = binary.AppendVarint(w.dst, int64(v)) }
func (w *encoder) text(text []byte) { w.dst = append(w.dst, text...) }

// assignNumber assigns the next number to a reference that has no number yet, and reports whether
// it did.
func (w *encoder) assignNumber(ref uint32) bool {
	if w.refs[ref] != 0 {
		return false
	}
	w.order = append(w.order, ref)
	w.refs[ref] = uint32(len(w.order))
	return true
}

// withHead appends the head, followed by the encoded nodes or records, to dst.
func (w *encoder) withHead(dst []byte) []byte {
	body := w.dst
	t := w.tree
	bytes := len(body)
	for i := range t.streams {
		bytes += len(t.streams[i].packed)
	}
	w.dst = slices.Grow(dst, bytes)
	columns := t.columnBits()
	if w.plain {
		w.uv(plainVersion)
	} else {
		w.uv(formVersion)
	}
	w.uv(columns)
	w.uv(uint64(len(w.order)))
	var before Reference
	for _, id := range w.order {
		r, s := &t.refs[id], &t.streams[id]
		wild := uint64(0)
		if s.count > 0 && !w.plain {
			wild = 1
		}
		w.uv(uint64(r.Kind)<<1 | wild)
		w.uv(uint64(r.Bytes))
		if columns&bitSite != 0 {
			w.zigzag(uint64(r.Site) - uint64(before.Site))
		}
		if columns&bitPC != 0 {
			w.zigzag(r.PC - before.PC)
		}
		if columns&bitThread != 0 {
			w.uv(uint64(r.Thread))
		}
		if columns&bitArg != 0 {
			w.uv(r.Arg)
		}
		if wild != 0 {
			w.uv(s.count)
			w.uv(uint64(len(s.packed)))
			w.text(s.packed)
		}
		before = *r
	}
	if w.plain {
		w.uv(t.rows)
	} else {
		w.uv(uint64(len(t.nodes)))
	}
	return append(w.dst, body...)
}

func (t *Tree) columnBits() (bits uint64) {
	has := t.has
	for i := range t.refs {
		has = has.or(t.refs[i].columns())
	}
	for i, is := range [...]bool{has.thread, has.pc, has.site, has.arg} {
		if is {
			bits |= 1 << i
		}
	}
	return bits
}

func (w *encoder) writeNodes() {
	t := w.tree
	params := t.params
	node := func(id uint32) {
		n := t.shapes.all[id].params
		w.writeParams(id, params[:n])
		w.lastAddresses.update(t.shapes.all, id, params[:n])
		params = params[n:]
	}
	for at := 0; at < len(t.nodes); {
		from := at
		for at < len(t.nodes) && w.isNext(w.shapes[t.nodes[at]]) {
			w.follow(w.shapes[t.nodes[at]])
			at++
		}
		w.writeToken(at-from, at)
		for _, id := range t.nodes[from:at] {
			node(id)
		}
		if at == len(t.nodes) {
			break
		}
		id := t.nodes[at]
		if w.shapes[id] == 0 {
			w.writeDefinition(id)
		}
		node(id)
		w.follow(w.shapes[id])
		at++
	}
}

// writeToken writes the number of predicted nodes, followed by the shape of the next node.
func (w *encoder) writeToken(predicted, at int) {
	what := uint64(takeOther)
	if at < len(w.tree.nodes) {
		switch number := w.shapes[w.tree.nodes[at]]; {
		case number == 0:
			what = takeNew
		case !w.isOther(number):
			what = uint64(number) + takeNumber
		}
	}
	w.uv(what<<2 | uint64(min(predicted, maxInToken)))
	if predicted >= maxInToken {
		w.uv(uint64(predicted - maxInToken))
	}
}

// writeDefinition writes a shape's definition and assigns a number to the shape.
func (w *encoder) writeDefinition(id uint32) {
	s := &w.tree.shapes.all[id]
	if s.loop {
		w.uv(uint64(len(s.items)) - 1 + defineLoop)
		for _, it := range s.items {
			w.uv(uint64(w.shapes[it.shape]))
			if w.shapes[it.shape] == 0 {
				w.writeDefinition(it.shape)
			}
		}
		for _, step := range s.steps {
			w.zigzag(step)
		}
	} else {
		kind := uint64(defineTame)
		if s.wild {
			kind = defineWild
		}
		if w.assignNumber(s.ref) {
			w.uv(kind)
		} else {
			w.uv(kind + defineKnownTame)
			w.uv(uint64(w.refs[s.ref] - 1))
		}
	}
	w.shapes[id] = w.shapePredictor.add()
}

// writeParams writes the parameters of a node: trip counts unchanged, and addresses as differences
// from the last address of the same reference.
func (w *encoder) writeParams(id uint32, p []uint64) {
	s := &w.tree.shapes.all[id]
	if !s.loop {
		if !s.wild {
			w.zigzag(p[0] - w.at[s.ref])
			w.at[s.ref] = p[0]
		}
		return
	}
	w.uv(p[0])
	for i := range s.items {
		it := &s.items[i]
		w.writeParams(it.shape, p[1+it.at:1+it.at+it.params])
	}
}

// shapePredictor predicts that the next node has the shape that most recently followed the shape of
// the previous node. Shapes are numbered from 1. The number 0 represents the beginning of the tree.
type shapePredictor struct {
	// by shape number: the two most recent shapes that followed this shape; initially the shape
	// itself
	next, other []uint32
	before      uint32
}

func (q *shapePredictor) add() uint32 {
	number := uint32(len(q.next))
	q.next, q.other = append(q.next, number), append(q.other, number)
	return number
}

func (q *shapePredictor) isNext(number uint32) bool  { return number != 0 && q.next[q.before] == number }
func (q *shapePredictor) isOther(number uint32) bool { return q.other[q.before] == number }

func (q *shapePredictor) follow(number uint32) {
	if q.next[q.before] != number {
		q.other[q.before] = q.next[q.before]
		q.next[q.before] = number
	}
	q.before = number
}

// lastAddresses tracks the last address of each reference. It ignores wild leaves.
type lastAddresses struct {
	at      []uint64 // last address of each reference
	scratch []uint64
}

// update sets the last addresses to the addresses in the last iteration of a node.
func (n *lastAddresses) update(all []shape, id uint32, p []uint64) {
	s := &all[id]
	if !s.loop {
		if !s.wild {
			n.at[s.ref] = p[0]
		}
		return
	}
	lo := len(n.scratch)
	for i, step := range s.steps {
		n.scratch = append(n.scratch, p[1+i]+step*(p[0]-1))
	}
	for i := range s.items {
		it := &s.items[i]
		if !it.loop && it.wild {
			continue
		}
		n.update(all, it.shape, n.scratch[lo+int(it.at):lo+int(it.at+it.params)])
	}
	n.scratch = n.scratch[:lo]
}

// The plain form of a tree is a list of its records. For each run of records with the same
// reference, it contains the number of the reference, the length of the run, and the address of
// each record as the difference from the previous address of the reference. If a tree has few
// records or repetitions, its plain form may be shorter than its loops and leaves. [Tree.Append]
// then writes the plain form.
const plainVersion = 2

const (
	// A tree is written with loops if its encoding is at most maxOver/maxOverOf times as long as
	// the plain form, because loops are useful to readers of the tree.
	maxOver, maxOverOf = 21, 20
	// maxBarrenPerByte is the maximum number of iterations without records per byte of the
	// encoding. Trees with more such iterations are not converted to the plain form.
	maxBarrenPerByte = 4
)

// Append appends the encoded tree. FORMAT.md describes the encoding, and [Decode] reads it. Equal
// trees have equal encodings, even if different Folders built them. If the encoding would be more
// than 1.05 times as large as the plain form, Append writes the plain form instead.
func (t *Tree) Append(dst []byte) []byte {
	form := t.appendFolded(dst)
	n := len(form) - len(dst)
	if t.bodies > float64(maxBarrenPerByte*n) || t.plainTakes(uint64(n)) {
		return form
	}
	most, flat := n-1, t.isFlat()
	if !flat {
		most = (maxOverOf*n - 1) / maxOver
	}
	plain, ok := t.plainForm(most)
	if !ok {
		return form
	}
	if !flat {
		if rows, err := Decode(plain); err == nil {
			return rows.Append(dst)
		}
	}
	return append(dst, plain...)
}

// plainTakes reports whether the plain form certainly takes at least the given number of bytes. It
// computes a lower bound without expanding the tree. The bound includes one byte for each record,
// and two bytes for each run of records that begins at a top-level leaf or in a top-level loop
// without inner loops. It also includes the address differences between successive wild records of
// a reference, unless a tame record lies between them.
func (t *Tree) plainTakes(bytes uint64) bool {
	least, last := t.rows, int64(-1)
	tame := tameRecords{make([]uint64, len(t.refs)), make([]bool, len(t.shapes.all))}
	for id, p := range t.tops() {
		if least >= bytes {
			return true
		}
		switch s := &t.shapes.all[id]; {
		case !s.loop:
			if last >= 0 && last != int64(s.ref) {
				least += 2
			}
			if last = int64(s.ref); !s.wild {
				tame.add(s.ref, 1)
			}
		case s.loops > 1 || int64(p[0]) < 1:
			last = -1 // the reference of the last record of the node is unknown
			tame.addAny(t.shapes.all, id)
		default:
			for i := range s.items {
				it := &s.items[i]
				ref := int64(it.ref)
				if i > 0 && ref != last {
					// the item begins a new run in each of the p[0] iterations
					least += 2 * p[0]
				}
				if last = ref; !it.wild {
					tame.add(it.ref, p[0])
				}
			}
		}
	}
	for i := range t.streams {
		s := &t.streams[i]
		if other := binary.MaxVarintLen64 * (min(tame.most[i], s.count) + 1); uint64(len(s.packed)) > s.count+other {
			least += uint64(len(s.packed)) - s.count - other
		}
	}
	return least >= bytes
}

// tameRecords contains, for each reference, an upper bound on the number of its tame records.
type tameRecords struct {
	most []uint64 // upper bound for each reference
	seen []bool   // by shape: whether addAny was called for the shape
}

const anyNumber = 1 << 62 // an unknown number of records

func (r *tameRecords) add(ref uint32, n uint64) {
	r.most[ref] = min(r.most[ref]+min(n, anyNumber), anyNumber)
}

// addAny adds a loop whose leaves may have any number of records.
func (r *tameRecords) addAny(all []shape, id uint32) {
	if r.seen[id] {
		return
	}
	r.seen[id] = true
	for _, it := range all[id].items {
		if it.loop {
			r.addAny(all, it.shape)
		} else if !it.wild {
			r.add(it.ref, anyNumber)
		}
	}
}

// isFlat reports whether the tree consists only of leaves that are not wild.
func (t *Tree) isFlat() bool {
	return !slices.ContainsFunc(t.nodes, func(id uint32) bool { return t.shapes.all[id].loop || t.shapes.all[id].wild })
}

// plainForm returns the plain form of the tree. The result ok is false if the plain form is longer
// than maxBytes.
func (t *Tree) plainForm(maxBytes int) (form []byte, ok bool) {
	w := newEncoder(t)
	w.plain = true
	last := make([]uint64, len(t.refs))
	var run uint32         // 1 + the number of the reference of the current run
	var rows, begun uint64 // number of records before the current run, and number of records in the current run
	var deltas []byte      // address differences of the run
	end := func() {
		if run > 0 {
			w.uv(uint64(w.refs[run-1] - 1))
			w.uv(begun - 1)
			w.text(deltas)
		}
		rows += begun
		begun, deltas = 0, deltas[:0]
	}
	e, b := t.numberedExpander(), trace.NewBatch(int(min(t.rows, trace.DefaultRows)))
	for e.Next(b) == nil {
		for i, addr := range b.Addr {
			ref := b.Site[i]
			if run != ref+1 {
				end()
				run = ref + 1
				w.assignNumber(ref)
			}
			begun++
			deltas = binary.AppendVarint(deltas, int64(addr-last[ref]))
			last[ref] = addr
		}
		if len(w.dst)+len(deltas) >= maxBytes {
			return nil, false
		}
	}
	if end(); e.err != io.EOF || rows != t.rows {
		return nil, false
	}
	form = w.withHead(nil)
	return form, len(form) <= maxBytes
}

// numberedExpander returns an expander that replaces the site of each record by the number of its
// reference.
func (t *Tree) numberedExpander() *Expander {
	n := *t
	n.refs, n.has = make([]Reference, len(t.refs)), columns{site: true}
	for i := range n.refs {
		n.refs[i].Site = uint32(i)
	}
	return n.expander()
}
