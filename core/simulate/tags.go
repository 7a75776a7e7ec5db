package simulate

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// tags is which lines a cache holds, which of them are dirty, and who leaves
// next.
type tags interface {
	// touch uses a line, if it is there, and marks it dirty, if asked to.
	touch(line trace.Line, dirty bool) (hit bool)
	// insert puts a line that is not there into its set. If the set is full,
	// another one leaves.
	insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool)
	// remove takes a line out, if it is there.
	remove(line trace.Line) (present, dirty bool)
	// look tells of a line, which is not used by that.
	look(line trace.Line) (present, dirty bool)
	// wash marks a line clean, if it is there.
	wash(line trace.Line)
	// clean calls back for each dirty line, set by set, which is clean then. In a
	// set, LRU goes from the most recently used line on.
	clean(back func(trace.Line))
	// resident is the number of lines that are there.
	resident() uint64
}

// fewWays is how many ways are searched one by one.
const fewWays = 32

func newTags(c hierarchy.Cache, seed uint64) tags {
	where, ways := newIndex(c.Sets(), c.Hashed), c.Lines()/c.Sets()
	switch {
	case c.Replacement == hierarchy.TreePLRU:
		return newTree(where, ways)
	case c.Replacement == hierarchy.Random:
		return newRandom(where, ways, seed)
	case ways <= fewWays:
		return newRecency(where, ways)
	}
	return newList(where, ways)
}

// tagBytes is the memory that newTags takes: frames of eight bytes, and what is kept
// beside them.
func tagBytes(c hierarchy.Cache) uint64 {
	const frameBytes, wayBytes, bitBytes, listBytes = 8, 4, 1, 24 // listBytes: of a set
	switch ways := c.Lines() / c.Sets(); {
	case c.Replacement == hierarchy.TreePLRU:
		return c.Lines()*(frameBytes+wayBytes+bitBytes) + c.Sets()*wayBytes
	case c.Replacement == hierarchy.Random:
		return c.Lines()*(frameBytes+wayBytes) + c.Sets()*wayBytes
	case ways <= fewWays:
		return c.Lines() * frameBytes
	}
	return c.Sets() * listBytes
}

// index chooses the set of a line.
type index struct {
	sets   uint64
	mask   uint64 // sets - 1
	plain  bool   // that is all ones, and there is no hash
	pieces uint   // bits of a piece to fold by; 0: no hash
}

func newIndex(sets uint64, hashed bool) index {
	x := index{sets: sets, mask: sets - 1, plain: sets&(sets-1) == 0 && !hashed}
	if hashed {
		x.pieces = uint(bits.Len64(sets - 1))
	}
	return x
}

func (x *index) set(line trace.Line) uint64 {
	if x.plain {
		return line & x.mask
	}
	return x.other(line)
}

// other is set where a mask does not do.
func (x *index) other(line trace.Line) uint64 {
	if x.pieces > 0 {
		line = fold(line, x.pieces)
	}
	if x.sets&x.mask == 0 {
		return line & x.mask
	}
	return line % x.sets
}

// fold adds the pieces of a line's number bit by bit.
func fold(line trace.Line, pieces uint) trace.Line {
	folded := trace.Line(0)
	for ; line != 0; line >>= pieces {
		folded ^= line & (1<<pieces - 1)
	}
	return folded
}

// A frame holds a line and, in its lowest bit, whether it is dirty. Lines are of
// 8 bytes at least, so the bits are there.
type frame uint64

const emptyFrame = ^frame(0)

func frameOf(line trace.Line, dirty bool) frame {
	if dirty {
		return frame(line<<1 | 1)
	}
	return frame(line << 1)
}

func (f frame) line() trace.Line { return trace.Line(f >> 1) }
func (f frame) dirty() bool      { return f&1 != 0 }

func emptyFrames(n uint64) []frame {
	frames := make([]frame, n)
	for i := range frames {
		frames[i] = emptyFrame
	}
	return frames
}
