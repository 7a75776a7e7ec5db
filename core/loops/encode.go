package loops

import "encoding/binary"

// formVersion is the version of the bytes of a tree of loops and leaves.
const formVersion = 1

// Bits of the columns that a trace has.
const (
	bitThread = 1 << iota
	bitPC
	bitSite
	bitArg
	allBits = 1<<iota - 1
)

// How a shape is defined: a leaf of a reference that is new or known, or a loop over
// as many items as say the numbers from defineLoop on, the first of which is one.
const (
	defineTame      = iota // of the next reference
	defineWild             // the same, wild
	defineKnownTame        // a number of a reference follows
	defineKnownWild
	defineLoop
)

// What follows the nodes that were predicted.
const (
	takeOther   = 0 // the shape that followed before, or nothing at the end
	takeNew     = 1 // one that is defined here
	takeNumber  = 1 // more than the number of a shape, which are from 1
	mostInToken = 3 // predicted nodes that a token counts; more follow it
)

// appendFolded appends the tree as loops and leaves.
func (t *Tree) appendFolded(dst []byte) []byte {
	w := newEncoder(t, dst)
	body := w.nodes()
	w.head()
	return append(w.dst, body...)
}

func newEncoder(t *Tree, dst []byte) *encoder {
	return &encoder{
		tree: t, dst: dst,
		shapes: make([]uint32, len(t.shapes.all)), refs: make([]uint32, len(t.refs)),
		sequel: sequel{next: []uint32{0}, other: []uint32{0}},
		near:   near{at: make([]uint64, len(t.refs))},
	}
}

// encoder writes a tree. The nodes come first into a buffer of their own, for they say
// in which order references are met.
type encoder struct {
	tree   *Tree
	plain  bool // row for row: no lists
	dst    []byte
	shapes []uint32 // by shape: its number in the order of definition, from 1; 0: none yet
	refs   []uint32 // the same of references
	order  []uint32 // references, as they are met
	sequel
	near
}

func (w *encoder) uv(v uint64)      { w.dst = binary.AppendUvarint(w.dst, v) }
func (w *encoder) zigzag(v uint64)  { w.dst = binary.AppendVarint(w.dst, int64(v)) }
func (w *encoder) text(text []byte) { w.dst = append(w.dst, text...) }

// head writes what comes before the nodes, or the rows.
func (w *encoder) head() {
	t := w.tree
	columns := t.columns()
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
}

// columns are those that the trace had, and those that references have.
func (t *Tree) columns() (bits uint64) {
	set := func(bit uint64, has bool) {
		if has {
			bits |= bit
		}
	}
	set(bitThread, t.has.thread)
	set(bitPC, t.has.pc)
	set(bitSite, t.has.site)
	set(bitArg, t.has.arg)
	for i := range t.refs {
		r := &t.refs[i]
		set(bitThread, r.Thread != 0)
		set(bitPC, r.PC != 0)
		set(bitSite, r.Site != 0)
		set(bitArg, r.Arg != 0)
	}
	return bits
}

// nodes gives the bytes of the nodes.
func (w *encoder) nodes() []byte {
	front := w.dst
	w.dst = nil
	t := w.tree
	params := t.params
	give := func(id uint32) {
		n := t.shapes.all[id].params
		w.params(id, params[:n])
		w.near.leave(t.shapes.all, id, params[:n])
		params = params[n:]
	}
	for at := 0; at < len(t.nodes); {
		from := at
		for at < len(t.nodes) && w.isNext(w.shapes[t.nodes[at]]) {
			w.follow(w.shapes[t.nodes[at]])
			at++
		}
		w.token(at-from, at)
		for _, id := range t.nodes[from:at] {
			give(id)
		}
		if at == len(t.nodes) {
			break
		}
		id := t.nodes[at]
		if w.shapes[id] == 0 {
			w.define(id)
		}
		give(id)
		w.follow(w.shapes[id])
		at++
	}
	body := w.dst
	w.dst = front
	return body
}

// token says how many nodes were as predicted, and which shape the next one has.
func (w *encoder) token(predicted, at int) {
	what := uint64(takeOther)
	if at < len(w.tree.nodes) {
		switch number := w.shapes[w.tree.nodes[at]]; {
		case number == 0:
			what = takeNew
		case !w.isOther(number):
			what = uint64(number) + takeNumber
		}
	}
	w.uv(what<<2 | uint64(min(predicted, mostInToken)))
	if predicted >= mostInToken {
		w.uv(uint64(predicted - mostInToken))
	}
}

// define writes what a shape is, and numbers it.
func (w *encoder) define(id uint32) {
	s := &w.tree.shapes.all[id]
	switch {
	case s.loop:
		w.uv(uint64(len(s.items)) - 1 + defineLoop)
		for i := range s.items {
			of := s.items[i].shape
			w.uv(uint64(w.shapes[of]))
			if w.shapes[of] == 0 {
				w.define(of)
			}
		}
		for _, step := range s.steps {
			w.zigzag(step)
		}
	default:
		kind := uint64(defineTame)
		if s.wild {
			kind = defineWild
		}
		if w.refs[s.ref] == 0 {
			w.order = append(w.order, s.ref)
			w.refs[s.ref] = uint32(len(w.order))
			w.uv(kind)
		} else {
			w.uv(kind + defineKnownTame)
			w.uv(uint64(w.refs[s.ref] - 1))
		}
	}
	w.shapes[id] = w.sequel.add()
}

// params writes those of a node: trip counts as they are, and addresses as their
// differences to the nearest one of the reference before.
func (w *encoder) params(id uint32, p []uint64) {
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
		w.params(it.shape, p[1+it.at:1+it.at+it.params])
	}
}

// sequel predicts the shape of the next node: the one that followed its predecessor's
// last time. Shapes have numbers from 1; 0 is before the first.
type sequel struct {
	next, other []uint32 // by number: what followed last, and what did before that changed; at first, itself
	before      uint32
}

// add gives the number of a new shape.
func (q *sequel) add() uint32 {
	number := uint32(len(q.next))
	q.next, q.other = append(q.next, number), append(q.other, number)
	return number
}

func (q *sequel) isNext(number uint32) bool  { return number != 0 && q.next[q.before] == number }
func (q *sequel) isOther(number uint32) bool { return q.other[q.before] == number }

func (q *sequel) follow(number uint32) {
	if q.next[q.before] != number {
		q.other[q.before] = q.next[q.before]
		q.next[q.before] = number
	}
	q.before = number
}

// near knows the last address of every reference but those of wild leaves.
type near struct {
	at      []uint64 // by reference
	scratch []uint64
}

// leave takes the addresses of the last iteration of a loop.
func (n *near) leave(all []shape, id uint32, p []uint64) {
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
		n.leave(all, it.shape, n.scratch[lo+int(it.at):lo+int(it.at+it.params)])
	}
	n.scratch = n.scratch[:lo]
}
