package loops

import (
	"errors"

	"github.com/stackglass/stackglass/core/trace"
)

// DefaultWindow is the default number of recent nodes that a [Folder] searches for repetitions.
const DefaultWindow = 1024

var errFinished = errors.New("loops: Consume was called after Finish; use a new Folder")

// Folder compresses a trace, batch by batch. The tree does not depend on the sizes of the batches.
type Folder struct {
	tree   *Tree
	window int

	nodes  []node   // unfinished nodes; if there are more than 2*window, all but the most recent ones are finished
	list   []uint32 // shape of each node, stored separately because shapes are read most often
	params []uint64
	base   int      // number of finished nodes before the window
	ends   []uint32 // by slot: 1 + the number of the last node in this slot, which may already be finished
	// by sequence length n: the number of a node whose shape differed from the shape n nodes
	// earlier when merge last compared two sequences of n nodes
	unlike []uint32
	loops  []loopAt
	used   []bool // the result of isUsed for each shape

	walk    walk // position in the last node, if the last node is a running loop
	past    []candidate
	known   map[Reference]uint32
	latest  uint32                // reference of the last unpredicted record
	near    [1 << nearBits]uint32 // by hash of site and PC: the last reference with that hash
	scratch []uint64              // parameters of an iteration
	ahead   walk                  // position in a predicted iteration
	wilds   []int                 // wild rows of an iteration
	zeros   []uint64              // replaces missing columns
	zeros32 []uint32

	calls      callTracker
	places     []referenceState      // state of each reference
	habits     []habit               // by reference: habit in the context of its first record
	others     []habit               // habits of references in contexts other than the contexts of their first records
	contexts   map[inContext]uint32  // index of each habit in the slice "others"
	nearOthers [1 << nearBits]uint32 // by hash of reference and context: an index in the slice "others"

	output      func(*Tree) error // function to which trees are passed (see [Folder.Give]), or nil
	outputBytes uint64            // a tree that takes more bytes is passed to output
	every       uint64            // number of records between two memory checks
	unasked     uint64            // number of records since the last memory check
	err         error             // error returned by output

	unpredicted uint64 // number of rows that no loop predicted

	measured   int    // number of shapes whose memory is included in shapeBytes
	shapeBytes uint64 // approximate memory of the measured shapes in bytes
}

// node is a leaf or a loop in the window.
type node struct {
	at   int    // index of the node's first parameter
	prev uint32 // 1 + the number of the previous node in the same slot, which may already be finished
	// hash of the shapes of this node and of the nodes before it; the constant "chained" is the
	// number of these shapes
	slot uint32
}

type loopAt struct {
	number int
	next   int // the nodes from number+1 to next-1 may be a further iteration of the loop
}

const (
	maxAgain   = 256 // maximum number of records of an unfinished iteration that are replayed
	candidates = 4   // maximum number of earlier nodes in one slot, or of earlier loops, that are compared with the end of the list
	chained    = 3   // number of nodes whose shapes determine the slot of a node
	slotBits   = 12
	nearBits   = 8
	maxNumber  = 1 << 30 // approximate maximum node number
)

// NewFolder returns a Folder that searches its last nodes for repetitions. The argument window is
// the number of nodes to search. If the argument window is less than 1, the Folder uses
// [DefaultWindow].
func NewFolder(window int) *Folder {
	if window < 1 {
		window = DefaultWindow
	}
	return &Folder{
		tree:     newTree(),
		window:   window,
		known:    map[Reference]uint32{},
		contexts: map[inContext]uint32{},
		unlike:   make([]uint32, max(window+1, chained)),
		ends:     make([]uint32, 1<<slotBits),
	}
}

// rows is a batch in which missing columns are replaced by zeros.
type rows struct {
	trace.Batch
	has     columns  // the columns that are present in the batch
	context []uint32 // context of each row (see callTracker); nil if the context of all rows is 0
}

func (f *Folder) rowsOf(b *trace.Batch) rows {
	n := b.Len()
	if n > len(f.zeros) {
		f.zeros, f.zeros32 = make([]uint64, n), make([]uint32, n)
	}
	c := rows{Batch: *b, has: columns{b.Thread != nil, b.PC != nil, b.Site != nil, b.Arg != nil}}
	f.tree.has = f.tree.has.or(c.has)
	c.PC, c.Arg = or(b.PC, f.zeros[:n]), or(b.Arg, f.zeros[:n])
	c.Thread, c.Site = or(b.Thread, f.zeros32[:n]), or(b.Site, f.zeros32[:n])
	if f.calls.now != nil {
		c.context = f.calls.contextsOf(&c, 0)
	}
	return c
}

func or[T any](column, instead []T) []T {
	if column == nil {
		return instead
	}
	return column[:len(instead)]
}

func (c *rows) contextOf(i int) uint32 {
	if i < len(c.context) {
		return c.context[i]
	}
	return 0
}

// matches reports whether row i is a record of reference r.
func (c *rows) matches(i int, r *Reference) bool {
	return c.Site[i] == r.Site && c.Kind[i] == r.Kind && c.Bytes[i] == r.Bytes && c.PC[i] == r.PC &&
		c.Thread[i] == r.Thread && c.Arg[i] == r.Arg
}

func (c *rows) reference(i int) Reference {
	return Reference{PC: c.PC[i], Arg: c.Arg[i], Site: c.Site[i], Thread: c.Thread[i], Bytes: c.Bytes[i], Kind: c.Kind[i]}
}

// Consume reads the next records. Consume returns an error if the function that was passed to
// [Folder.Give] returned an error, or if Finish has been called.
func (f *Folder) Consume(b *trace.Batch) error {
	if f.tree == nil {
		return errFinished
	}
	c := f.rowsOf(b)
	for i := 0; i < len(c.Addr) && f.err == nil; {
		end := len(c.Addr)
		if f.output != nil {
			end = min(end, i+int(f.every-f.unasked))
		}
		f.consume(&c, i, end)
		if f.unasked += uint64(end - i); f.unasked == f.every && f.output != nil {
			f.checkMemory()
		}
		i = end
	}
	return f.err
}

// consume processes the rows from i up to end.
func (f *Folder) consume(c *rows, i, end int) {
	f.tree.rows += uint64(end - i)
	part := c.upTo(end)
	for i < end {
		if i = f.consumePredicted(&part, i); i < end {
			f.consumeUnpredicted(&part, i)
			if f.calls.now == nil && c.Kind[i] == trace.Call { // the first call in the trace, which no loop can predict
				c.context = f.calls.contextsOf(c, i)
				part = c.upTo(end)
			}
			i++
		}
	}
}

func (c *rows) upTo(n int) (first rows) {
	c.View(&first.Batch, 0, n)
	first.has, first.context = c.has, c.context[:min(n, len(c.context))]
	return first
}

// Finish returns the tree. The Folder must not be used afterwards.
func (f *Folder) Finish() *Tree {
	t := f.tree
	if t == nil {
		return nil
	}
	f.completeTree()
	*f = Folder{}
	return t
}

// consumePredicted consumes rows, starting with row i, until the running loop does not predict a
// row. It returns the index of this row.
func (f *Folder) consumePredicted(c *rows, i int) int {
	w, refs, addrs := &f.walk, f.tree.refs, c.Addr
	n := len(addrs)
	sites, kinds, sizes, pcs, threads, args := c.Site[:n], c.Kind[:n], c.Bytes[:n], c.PC[:n], c.Thread[:n], c.Arg[:n]
	habits, contexts := f.habits, c.context
	for i < n && w.depth > 0 && !w.stuck {
		t := &w.frames[w.depth-1]
		items, cur, pos, at := t.items, t.cur, t.pos, t.at
		more := true
		for more && i < n {
			it := &items[pos]
			r := &refs[it.ref]
			if sites[i] != r.Site || kinds[i] != r.Kind || sizes[i] != r.Bytes || pcs[i] != r.PC || threads[i] != r.Thread || args[i] != r.Arg {
				t.pos, t.at = pos, at
				return i
			}
			addr := addrs[i]
			if it.wild {
				f.tree.streams[it.ref].add(addr)
			} else if addr != cur[at] {
				t.pos, t.at = pos, at
				return i
			}
			h := &habits[it.ref]
			if i < len(contexts) && h.context != contexts[i] {
				h = f.habit(it.ref, contexts[i])
				habits = f.habits
			}
			h.seen++
			h.last = addr
			i++
			at++
			pos++
			more = pos < len(items) && !items[pos].loop
		}
		if t.pos, t.at = pos, at; !more {
			if w.settle(f.tree.shapes.all); w.begun > 0 {
				i = f.sweep(c, i)
			}
		}
	}
	return i
}

// Unpredicted returns the number of records so far that no loop predicted. An unpredicted record
// takes about ten times as long as a predicted record, and enlarges the tree.
func (f *Folder) Unpredicted() uint64 { return f.unpredicted }

// consumeUnpredicted consumes a row that the running loop does not predict.
func (f *Folder) consumeUnpredicted(c *rows, i int) {
	f.unpredicted++
	if len(f.nodes) > 2*f.window {
		f.retire(len(f.nodes) - f.window)
	}
	next := candidate{ref: f.referenceNumber(c, i), context: c.contextOf(i), addr: c.Addr[i]}
	if f.walk.depth > 0 && f.continuesElsewhere(next) {
		return
	}
	h := f.habit(next.ref, next.context)
	h.addUnpredicted(next.addr)
	if (h.wild || h.isIrregular()) && f.tree.refs[next.ref].hasLocation(f.tree.has) {
		h.wild = true
		f.tree.streams[next.ref].add(next.addr)
		next.addr, next.wild = 0, true
	}
	f.leaf(next)
}

// candidate is a row that a loop may accept.
type candidate struct {
	ref, context   uint32
	addr           trace.Addr
	replayed, wild bool // replayed means that the row has already been counted and classified as wild or tame
}

// fits reports whether the row matches an item whose predicted address is addr.
func (c *candidate) fits(it *item, addr trace.Addr) bool {
	return it.ref == c.ref && (!c.replayed || it.wild == c.wild) && (it.wild || c.addr == addr)
}

func (f *Folder) leaf(c candidate) {
	p, kind := &f.places[c.ref], 0
	if c.wild {
		kind = 1
	}
	if p.leaf[kind] == 0 {
		p.leaf[kind] = 1 + f.tree.shapes.leaf(c.ref, c.wild)
	}
	f.params = append(f.params, c.addr)
	f.push(p.leaf[kind]-1, 1)
	if f.reduce() {
		f.run()
	}
}

// continuesElsewhere ends running loops until a loop accepts the row. After each loop, an outer or
// earlier loop may become the running loop. continuesElsewhere returns false if no loop accepts the
// row.
func (f *Folder) continuesElsewhere(c candidate) bool {
	// Fold the list only once per row: a replay may split a loop, which a second folding would
	// create again.
	fold := !c.replayed
	for f.walk.depth > 0 {
		if f.accept(c) {
			return true
		}
		between := f.walk.isIterationEmpty()
		if parts := f.stopLoop(fold); parts > 0 {
			fold = false
			f.replay(parts)
			continue
		}
		switch {
		case between && f.extendInnerLoop(c):
		case !between && f.endsInLoop(): // the most recent loop can still continue
		case f.reduce():
		default:
			return false
		}
		f.run()
	}
	return false
}

// referenceNumber returns the number of the reference of a row. References are numbered from 0, in
// the order of their first records in the trace.
func (f *Folder) referenceNumber(c *rows, i int) uint32 {
	refs := f.tree.refs
	if id := f.latest; int(id) < len(refs) {
		if id = f.places[id].follower; int(id) < len(refs) && c.matches(i, &refs[id]) {
			f.latest = id
			return id
		}
	}
	near := &f.near[(uint64(c.Site[i])^c.PC[i])*0x9e3779b97f4a7c15>>(64-nearBits)]
	id := *near
	if int(id) >= len(refs) || !c.matches(i, &refs[id]) {
		r, ok := c.reference(i), false
		if id, ok = f.known[r]; !ok {
			id = f.newReference(r, c.contextOf(i))
		}
		*near = id
	}
	f.places[f.latest].follower = id
	f.latest = id
	return id
}

func (f *Folder) newReference(r Reference, context uint32) uint32 {
	id := uint32(len(f.tree.refs))
	f.known[r] = id
	f.tree.refs = append(f.tree.refs, r)
	f.tree.streams = append(f.tree.streams, stream{})
	f.places = append(f.places, referenceState{})
	f.habits = append(f.habits, habit{inContext: inContext{id, context}})
	return id
}
