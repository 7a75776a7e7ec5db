package loops

import (
	"errors"

	"github.com/stackglass/stackglass/core/trace"
)

// DefaultWindow is the number of nodes among which repetitions are looked for.
const DefaultWindow = 1024

// errFinished tells of a wrong use.
var errFinished = errors.New("loops: Consume after Finish; make another Folder")

// Folder folds a trace, batch by batch. How rows are divided into batches does not
// change the tree.
type Folder struct {
	tree   *Tree
	window int

	// The last nodes, their shapes, and their parameters one after the other.
	nodes  []node   // window <= len(nodes) <= 2*window, once there are as many
	list   []uint32 // shapes of nodes, which are looked at most
	params []uint64
	base   int      // nodes before these, which are finished
	ends   []uint32 // by slot: 1 + the number of the last node of that slot; stale below base
	unlike []uint32 // by length: a node that was not like the one so many before it; see merge
	loops  []loopAt
	used   []bool // by shape; see isUsed

	walk    walk // of the last node, while it is a loop that runs
	past    []candidate
	known   map[Reference]uint32
	latest  uint32                // reference of the last row that was not predicted
	near    [1 << nearBits]uint32 // the same by site and PC, of those that share a hash
	scratch []uint64              // parameters of some iteration
	zeros   []uint64              // for columns that are absent
	zeros32 []uint32

	calls      calls
	places     []place               // by reference
	habits     []habit               // the same, in the context of the first row
	others     []habit               // in further ones
	contexts   map[inContext]uint32  // of others
	nearOthers [1 << nearBits]uint32 // of those that share a hash

	give    func(*Tree) error // see [Folder.Give]; nil: none is given
	most    uint64            // bytes before it
	every   uint64            // rows it is weighed
	unasked uint64            // rows since it was
	err     error             // of give

	weighed    int    // shapes that
	shapeBytes uint64 // is about the memory of
}

// node is a leaf or a loop in the window.
type node struct {
	at   int    // its first parameter
	prev uint32 // 1 + the number of the node before it in its slot; stale below base
	slot uint32 // of its shape and those of the nodes before it, as many as chained says
}

// loopAt is a node that is a loop, in the order of nodes.
type loopAt struct {
	number int
	next   int // behind as many nodes behind it as its body has
}

const (
	mostAgain  = 256 // rows of an iteration that has begun which are taken once more
	candidates = 4   // nodes of equal slot, or loops, that the end of the list is held against
	chained    = 3   // nodes that are equal where slots are
	slotBits   = 12
	nearBits   = 8
	mostNumber = 1 << 30 // of a node, about
)

// NewFolder makes a folder that looks for repetitions among the last nodes, as many
// as window says; window < 1 means [DefaultWindow].
func NewFolder(window int) *Folder {
	if window < 1 {
		window = DefaultWindow
	}
	f := &Folder{
		tree:     &Tree{shapes: shapes{first: map[uint64]uint32{}}},
		window:   window,
		known:    map[Reference]uint32{},
		contexts: map[inContext]uint32{},
		unlike:   make([]uint32, max(window+1, chained)),
		ends:     make([]uint32, 1<<slotBits),
	}
	return f
}

// rows are a batch with all of its columns.
type rows struct {
	addr, pc, arg       []uint64
	bytes, thread, site []uint32
	kind                []trace.Kind
	context             []uint32 // see calls; none: 0 for all
}

func (f *Folder) rowsOf(b *trace.Batch) rows {
	n := b.Len()
	if n > len(f.zeros) {
		f.zeros, f.zeros32 = make([]uint64, n), make([]uint32, n)
	}
	has := &f.tree.has
	has.thread = has.thread || b.Thread != nil
	has.pc = has.pc || b.PC != nil
	has.site = has.site || b.Site != nil
	has.arg = has.arg || b.Arg != nil
	c := rows{
		addr: b.Addr, pc: or(b.PC, f.zeros[:n]), arg: or(b.Arg, f.zeros[:n]), bytes: b.Bytes[:n],
		thread: or(b.Thread, f.zeros32[:n]), site: or(b.Site, f.zeros32[:n]), kind: b.Kind[:n],
	}
	if f.calls.now != nil {
		c.context = f.calls.of(&c, 0)
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

// is tells whether row i is one of a reference.
func (c *rows) is(i int, r *Reference) bool {
	return c.site[i] == r.Site && c.kind[i] == r.Kind && c.bytes[i] == r.Bytes && c.pc[i] == r.PC &&
		c.thread[i] == r.Thread && c.arg[i] == r.Arg
}

func (c *rows) reference(i int) Reference {
	return Reference{PC: c.pc[i], Arg: c.arg[i], Site: c.site[i], Thread: c.thread[i], Bytes: c.bytes[i], Kind: c.kind[i]}
}

// Consume takes the next rows. Its errors are those of give, see [Folder.Give], and
// that of a folder that was finished.
func (f *Folder) Consume(b *trace.Batch) error {
	if f.tree == nil {
		return errFinished
	}
	c := f.rowsOf(b)
	for i := 0; i < len(c.addr) && f.err == nil; {
		end := len(c.addr)
		if f.give != nil {
			end = min(end, i+int(f.every-f.unasked))
		}
		f.consume(&c, i, end)
		if f.unasked += uint64(end - i); f.unasked == f.every && f.give != nil {
			f.weigh()
		}
		i = end
	}
	return f.err
}

// consume takes the rows from i up to end.
func (f *Folder) consume(c *rows, i, end int) {
	f.tree.rows += uint64(end - i)
	part := c.upTo(end)
	for i < end {
		if len(part.context) > 0 {
			i = f.predictedIn(&part, i)
		} else {
			i = f.predicted(&part, i)
		}
		if i < end {
			f.unpredicted(&part, i)
			if f.calls.now == nil && c.kind[i] == trace.Call { // the first one, which nothing predicts
				c.context = f.calls.of(c, i)
				part = c.upTo(end)
			}
			i++
		}
	}
}

// upTo gives the first rows.
func (c *rows) upTo(n int) rows {
	return rows{addr: c.addr[:n], pc: c.pc[:n], arg: c.arg[:n], bytes: c.bytes[:n], thread: c.thread[:n], site: c.site[:n], kind: c.kind[:n], context: c.context[:min(n, len(c.context))]}
}

// Finish gives the tree. The folder can do nothing else afterwards.
func (f *Folder) Finish() *Tree {
	t := f.tree
	if t == nil {
		return nil
	}
	f.close()
	*f = Folder{}
	return t
}

// predicted passes the rows from i on that are as the loop that runs says, and
// gives the first that is not.
func (f *Folder) predicted(c *rows, i int) int {
	w := &f.walk
	for ; i < len(c.addr) && w.depth > 0 && !w.stuck; i++ {
		t := &w.frames[w.depth-1]
		it := &t.items[t.pos]
		if !c.is(i, &f.tree.refs[it.ref]) {
			break
		}
		if it.wild {
			f.tree.streams[it.ref].add(c.addr[i])
		} else if c.addr[i] != t.cur[t.at] {
			break
		}
		h := &f.habits[it.ref]
		h.seen++
		h.last = c.addr[i]
		t.pos++
		if t.at++; t.pos == len(t.items) || t.items[t.pos].loop {
			w.settle(f.tree.shapes.all)
		}
	}
	return i
}

// predictedIn is predicted for rows with contexts. The loop of a trace without calls is
// apart from it, for a third of its time would go into them.
func (f *Folder) predictedIn(c *rows, i int) int {
	w := &f.walk
	for ; i < len(c.addr) && w.depth > 0 && !w.stuck; i++ {
		t := &w.frames[w.depth-1]
		it := &t.items[t.pos]
		if !c.is(i, &f.tree.refs[it.ref]) {
			break
		}
		if it.wild {
			f.tree.streams[it.ref].add(c.addr[i])
		} else if c.addr[i] != t.cur[t.at] {
			break
		}
		h := f.habit(it.ref, c.context[i])
		h.seen++
		h.last = c.addr[i]
		t.pos++
		if t.at++; t.pos == len(t.items) || t.items[t.pos].loop {
			w.settle(f.tree.shapes.all)
		}
	}
	return i
}

// unpredicted takes a row that is not as the loop that runs says.
func (f *Folder) unpredicted(c *rows, i int) {
	if len(f.nodes) > 2*f.window {
		f.retire(len(f.nodes) - f.window)
	}
	of := candidate{ref: f.number(c, i), context: c.contextOf(i), addr: c.addr[i]}
	if f.walk.depth > 0 && f.goesOnElsewhere(of) {
		return
	}
	h := f.habit(of.ref, of.context)
	h.surprise(of.addr)
	if (h.wild || h.isOdd()) && f.tree.refs[of.ref].named(f.tree.has) {
		h.wild = true
		f.tree.streams[of.ref].add(of.addr)
		of.addr, of.wild = 0, true
	}
	f.leaf(of)
}

// candidate is a row that a loop may take.
type candidate struct {
	ref, context uint32
	addr         trace.Addr
	// A row that is taken once more is one of a wild leaf or not, and counted.
	again, wild bool
}

// fits tells whether the row is an item's, with this address.
func (c *candidate) fits(it *item, addr trace.Addr) bool {
	return it.ref == c.ref && (!c.again || it.wild == c.wild) && (it.wild || c.addr == addr)
}

// leaf appends a leaf.
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

// goesOnElsewhere ends the loop that runs, and others that come to run by that, until
// one takes the row.
func (f *Folder) goesOnElsewhere(c candidate) bool {
	fold := !c.again // once a row: what is taken again may take a loop apart, which folds anew
	for f.walk.depth > 0 {
		if f.accepts(c) {
			return true
		}
		between := f.walk.untouched()
		if parts := f.stop(fold); parts > 0 {
			fold = false
			f.takeAgain(parts)
			continue
		}
		switch {
		case between && f.lengthen(c):
		case !between && f.endsInLoop(): // the one that ran last is open still
		case f.reduce():
		default:
			return false
		}
		f.run()
	}
	return false
}

// number gives the number of a row's reference, from 0 in the order of the trace.
func (f *Folder) number(c *rows, i int) uint32 {
	refs := f.tree.refs
	if id := f.latest; int(id) < len(refs) {
		if id = f.places[id].follower; int(id) < len(refs) && c.is(i, &refs[id]) {
			f.latest = id
			return id
		}
	}
	near := &f.near[(uint64(c.site[i])^c.pc[i])*0x9e3779b97f4a7c15>>(64-nearBits)]
	id := *near
	if int(id) >= len(refs) || !c.is(i, &refs[id]) {
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
	f.places = append(f.places, place{})
	f.habits = append(f.habits, habit{inContext: inContext{id, context}})
	return id
}
