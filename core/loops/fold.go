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

	// The last nodes, and their parameters one after the other.
	nodes  []node // window <= len(nodes) <= 2*window, once there are as many
	params []uint64
	base   int    // nodes before these, which are finished
	before uint64 // the prefix hash of the last of them
	ends   []int  // by slot: 1 + the number of the last node of that slot; stale below base
	loops  []loopAt
	powers []uint64
	used   []bool // by shape; see isUsed

	walk    walk // of the last node, while it is a loop that runs
	past    []candidate
	habits  []habit
	known   map[Reference]uint32
	latest  uint32   // reference of the last row that was not predicted
	scratch []uint64 // parameters of some iteration
	zeros   []uint64 // for columns that are absent
	zeros32 []uint32

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
	shape uint32
	slot  uint32 // of its shape and those of the nodes before it, as many as chained says
	at    int    // its first parameter
	prev  int    // 1 + the number of the node before it in its slot; stale below base
	hash  uint64 // of the shapes up to this one, a polynomial in radix
}

// loopAt is a node that is a loop, in the order of nodes.
type loopAt struct {
	number int
	next   int // behind as many nodes behind it as its body has
}

const (
	radix      = 0x9e3779b97f4a7c15
	mostAgain  = 256 // rows of an iteration that has begun which are taken once more
	candidates = 4   // nodes of equal slot, or loops, that the end of the list is held against
	chained    = 3   // nodes that are equal where slots are
	slotBits   = 12
)

// NewFolder makes a folder that looks for repetitions among the last nodes, as many
// as window says; window < 1 means [DefaultWindow].
func NewFolder(window int) *Folder {
	if window < 1 {
		window = DefaultWindow
	}
	f := &Folder{
		tree:   &Tree{shapes: shapes{first: map[uint64]uint32{}}},
		window: window,
		known:  map[Reference]uint32{},
		powers: make([]uint64, 2*window+2),
		ends:   make([]int, 1<<slotBits),
	}
	f.powers[0] = 1
	for i := range f.powers[1:] {
		f.powers[i+1] = f.powers[i] * radix
	}
	return f
}

// rows are a batch with all of its columns.
type rows struct {
	addr, pc, arg       []uint64
	bytes, thread, site []uint32
	kind                []trace.Kind
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
	return rows{
		addr: b.Addr, pc: or(b.PC, f.zeros[:n]), arg: or(b.Arg, f.zeros[:n]), bytes: b.Bytes[:n],
		thread: or(b.Thread, f.zeros32[:n]), site: or(b.Site, f.zeros32[:n]), kind: b.Kind[:n],
	}
}

func or[T any](column, instead []T) []T {
	if column == nil {
		return instead
	}
	return column[:len(instead)]
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
		if i = f.predicted(&part, i); i < end {
			f.unpredicted(c.reference(i), c.addr[i])
			i++
		}
	}
}

// upTo gives the first rows.
func (c *rows) upTo(n int) rows {
	return rows{addr: c.addr[:n], pc: c.pc[:n], arg: c.arg[:n], bytes: c.bytes[:n], thread: c.thread[:n], site: c.site[:n], kind: c.kind[:n]}
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
		r := &f.tree.refs[it.ref]
		if c.site[i] != r.Site || c.kind[i] != r.Kind || c.bytes[i] != r.Bytes || c.pc[i] != r.PC ||
			c.thread[i] != r.Thread || c.arg[i] != r.Arg {
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

// unpredicted takes a row that is not as the loop that runs says.
func (f *Folder) unpredicted(r Reference, addr trace.Addr) {
	if len(f.nodes) > 2*f.window {
		f.retire(len(f.nodes) - f.window)
	}
	c := candidate{ref: f.number(r), addr: addr}
	if f.goesOnElsewhere(c) {
		return
	}
	h := &f.habits[c.ref]
	h.surprise(addr)
	if r.named(f.tree.has) && h.isWild() {
		f.tree.streams[c.ref].add(addr)
		c.addr, c.wild = 0, true
	}
	f.leaf(c)
}

// candidate is a row that a loop may take.
type candidate struct {
	ref  uint32
	addr trace.Addr
	// A row that is taken once more is one of a wild leaf or not, and counted.
	again, wild bool
}

// fits tells whether the row is an item's, with this address.
func (c *candidate) fits(it *item, addr trace.Addr) bool {
	return it.ref == c.ref && (!c.again || it.wild == c.wild) && (it.wild || c.addr == addr)
}

// leaf appends a leaf.
func (f *Folder) leaf(c candidate) {
	h, kind := &f.habits[c.ref], 0
	if c.wild {
		kind = 1
	}
	if h.leaf[kind] == 0 {
		h.leaf[kind] = 1 + f.tree.shapes.leaf(c.ref, c.wild)
	}
	f.params = append(f.params, c.addr)
	f.push(h.leaf[kind]-1, 1)
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

// number gives the number of a reference, from 0 in the order of the trace.
func (f *Folder) number(r Reference) uint32 {
	var habit *habit // of the row before that was not predicted
	if len(f.habits) > 0 {
		habit = &f.habits[f.latest]
		if f.tree.refs[habit.follower] == r {
			f.latest = habit.follower
			return f.latest
		}
	}
	id, ok := f.known[r]
	if !ok {
		id = f.newReference(r)
		habit = &f.habits[f.latest] // which may have moved
	}
	habit.follower = id
	f.latest = id
	return id
}

func (f *Folder) newReference(r Reference) uint32 {
	id := uint32(len(f.tree.refs))
	f.known[r] = id
	f.tree.refs = append(f.tree.refs, r)
	f.tree.streams = append(f.tree.streams, stream{})
	f.habits = append(f.habits, habit{})
	return id
}
