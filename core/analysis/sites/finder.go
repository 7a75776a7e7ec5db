package sites

import (
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Finder finds the data structure that each reference accesses, as [Analysis] does. Finder serves
// analyses that read all rows. Finder assigns its own numbers to blocks and data structures.
type Finder struct {
	a     *Analysis
	slots []uint32
}

// Nowhere is the block number of references outside all memory blocks: references to local
// variables that the code names, and to addresses outside all data structures.
const Nowhere = everywhere

// Watcher is notified whenever a memory block is added or removed.
type Watcher interface {
	// Placed is called after a block has been added, and Removed is called before a block is
	// removed. Numbers of removed blocks are reused.
	Placed(block uint32)
	Removed(block uint32)
}

// NewFinder returns a finder. The function program returns the code that the trace's tables have
// described so far, or nil. The watcher w may be nil.
func NewFinder(program func() *trace.Program, w Watcher) *Finder {
	f := &Finder{a: New(Options{}, program)}
	f.a.memory.watcher = w
	return f
}

// Begin prepares the finder for the rows of a batch. The batch must have the column Site.
func (f *Finder) Begin(b *trace.Batch) error {
	f.a.addProgram()
	if len(f.slots) < b.Len() {
		f.slots = make([]uint32, b.Len())
	}
	if err := f.a.code.findSlots(b, f.slots[:b.Len()]); err != nil {
		return err
	}
	for len(f.a.near) < len(f.a.code.list) {
		f.a.near = append(f.a.near, lastTarget{})
	}
	return nil
}

// Event processes the allocation or release in row i of the batch.
func (f *Finder) Event(b *trace.Batch, i int) { f.a.event(b, i, true) }

// Find returns the data structure and the memory block of the reference in row i, whose address is
// addr.
func (f *Finder) Find(i int, addr trace.Addr) (object, block uint32) {
	slot, m := f.slots[i], &f.a.memory
	at := &f.a.near[slot]
	if !m.contains(at.block, addr) {
		at.block, at.object = m.findObject(addr, &f.a.code.list[slot].hint)
	}
	return at.object, at.block
}

// Slot returns the number of the site of row i. Numbers are consecutive, starting from 1.
func (f *Finder) Slot(i int) uint32 { return f.slots[i] }

// Block returns the first address, the size and the data structure of a block.
func (f *Finder) Block(block uint32) (from trace.Addr, bytes uint64, object uint32) {
	b := &f.a.memory.blocks[block]
	return b.from, b.bytes, f.a.memory.objectOf[block]
}

// Each calls the function visit for every current block, in ascending order of addresses.
func (f *Finder) Each(visit func(block uint32)) {
	for _, piece := range f.a.memory.placed.chunks {
		for _, p := range piece {
			visit(p.block)
		}
	}
}

// Objects returns a value that is larger than the numbers of all data structures.
func (f *Finder) Objects() int { return len(f.a.memory.objects) }

// Describe returns the kind of a data structure, and a number in the trace's tables: the number of
// the allocating site or of the variable, or profile.NoSite.
func (f *Finder) Describe(object uint32) (kind profile.ObjectKind, number uint32) {
	o := &f.a.memory.objects[object]
	return o.kind, o.number
}

// IndexIn returns, for each data structure of the finder, its index in the list, which contains the
// data structures of a profile. If the list does not contain the data structure, the index is
// profile.NoSite.
func (f *Finder) IndexIn(list []profile.DataObject) []uint32 {
	at := make([]uint32, len(f.a.memory.objects))
	for i := range at {
		at[i] = profile.NoSite
	}
	for i := range list {
		if n, known := f.a.memory.number[keyOf(&list[i])]; known {
			at[n] = uint32(i)
		}
	}
	return at
}

// Object returns the number that the finder assigns to a data structure from a profile.
func (f *Finder) Object(of *profile.DataObject) uint32 { return f.a.memory.object(keyOf(of)) }

// Code encodes or decodes the current blocks, except for declared variables. When encoding,
// objects[i] is the index of data structure i in a profile. When decoding, objects[i] is the data
// structure with index i. For every block, Code calls a function (each) that encodes or decodes
// additional data about the block.
func (f *Finder) Code(c *codec.Coder, objects []uint32, each func(block uint32)) {
	m := &f.a.memory
	var list []savedBlock
	if !c.Reads() {
		list = (&summary{a: f.a}).currentBlocks()
	}
	codec.Slice(c, &list, 1+8+1+1, func(b *savedBlock) {
		object := b.object
		if !c.Reads() {
			object = objects[object]
		}
		c.U32(&object)
		c.Word(&b.from)
		c.U64(&b.bytes)
		if c.Reads() {
			ok := uint64(object) < uint64(len(objects)) && b.bytes > 0 && b.from+b.bytes > b.from
			if ok {
				kind := m.objects[objects[object]].kind
				ok = kind == profile.HeapObject || kind == profile.StackObject
			}
			if c.Check(ok, "a memory block does not belong to a known allocation"); c.Failed() {
				return
			}
			m.addBlock(objects[object], b.from, b.bytes)
		}
		if n, _ := m.placed.neighbours(b.from); m.contains(n, b.from) {
			each(n)
		} else {
			c.Check(false, "memory blocks overlap")
		}
	})
}
