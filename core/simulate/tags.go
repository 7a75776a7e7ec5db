package simulate

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// tags records which lines are in a cache, which lines are dirty, and in which order lines are
// replaced.
type tags interface {
	// touch records a use of a line, if the line is present. If the parameter dirty is true, touch
	// also marks the line dirty.
	touch(line trace.Line, dirty bool) (hit bool)
	// insert adds an absent line to the line's set, and evicts a victim if the set is full.
	insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool)
	// remove removes a line, if it is present.
	remove(line trace.Line) (present, dirty bool)
	// peek returns the state of a line. A peek does not count as a use of the line.
	peek(line trace.Line) (present, dirty bool)
	// markClean marks a line clean, if it is present.
	markClean(line trace.Line)
	// cleanAll marks each dirty line clean and passes it to the callback, set by set. With LRU, the
	// lines of a set are passed in order of recency, the most recently used line first.
	cleanAll(back func(trace.Line))
	// resident returns the number of lines.
	resident() uint64
	// each calls the function for every line, in any order. The function may remove the line.
	each(func(line trace.Line))
}

// fewWays is the maximum number of ways that are searched linearly.
const fewWays = 32

func newTags(c hierarchy.Cache, seed uint64) tags {
	where, ways := newIndex(c.Sets(), c.Hashed), c.Lines()/c.Sets()
	switch few := ways <= fewWays; {
	case c.Replacement == hierarchy.TreePLRU:
		return newTree(where, ways)
	case c.Replacement == hierarchy.Random:
		return newRandom(where, ways, seed)
	case c.Replacement == hierarchy.FIFO && few:
		return fifoRecency{newRecency(where, ways)}
	case c.Replacement == hierarchy.FIFO:
		return fifoList{newList(where, ways)}
	case c.Replacement != hierarchy.LRU:
		return newRanked(where, ways, c.Replacement)
	case few:
		return newRecency(where, ways)
	}
	return newList(where, ways)
}

// tagBytes returns the number of bytes that newTags allocates.
func tagBytes(c hierarchy.Cache) uint64 {
	// listBytes is the number of bytes that the type "list" needs for each set
	const frameBytes, wayBytes, bitBytes, listBytes = 8, 4, 1, 24
	inOrder := c.Replacement == hierarchy.LRU || c.Replacement == hierarchy.FIFO
	switch ways := c.Lines() / c.Sets(); {
	case c.Replacement == hierarchy.TreePLRU:
		return c.Lines()*(frameBytes+wayBytes+bitBytes) + c.Sets()*wayBytes
	case c.Replacement == hierarchy.Random:
		return c.Lines()*(frameBytes+wayBytes) + c.Sets()*wayBytes
	case !inOrder:
		return c.Lines()*(frameBytes+2*wayBytes) + c.Sets()*wayBytes
	case ways <= fewWays:
		return c.Lines() * frameBytes
	}
	return c.Sets() * listBytes
}

// index selects the set of a line.
type index struct {
	sets     uint64
	mask     uint64 // sets - 1
	plain    bool   // whether the mask alone determines the set
	hashBits uint   // number of bits in each field that the hash combines; 0 if the index is not hashed
}

func newIndex(sets uint64, hashed bool) index {
	x := index{sets: sets, mask: sets - 1, plain: sets&(sets-1) == 0 && !hashed}
	if hashed {
		x.hashBits = uint(bits.Len64(sets - 1))
	}
	return x
}

func (x *index) set(line trace.Line) uint64 {
	if x.plain {
		return line & x.mask
	}
	return x.slowSet(line)
}

// slowSet returns the set of a line if the mask alone does not select the set.
func (x *index) slowSet(line trace.Line) uint64 {
	if x.hashBits > 0 {
		line = xorFields(line, x.hashBits)
	}
	if x.sets&x.mask == 0 {
		return line & x.mask
	}
	return line % x.sets
}

// xorFields returns the XOR of all bit fields of a line number. Each field has the given number of
// bits.
func xorFields(line trace.Line, pieces uint) trace.Line {
	folded := trace.Line(0)
	for ; line != 0; line >>= pieces {
		folded ^= line & (1<<pieces - 1)
	}
	return folded
}

// A frame contains a line number and, in the lowest bit, whether the line is dirty. Lines have at
// least 4 bytes, so this bit is free.
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

// cleanFrames implements tags.clean.
func cleanFrames(frames []frame, back func(trace.Line)) {
	for i, f := range frames {
		if f != emptyFrame && f.dirty() {
			frames[i] &^= 1
			back(f.line())
		}
	}
}

// eachFrame implements tags.each. eachFrame iterates over a copy, because removing a line may move
// other frames.
func eachFrame(frames []frame, f func(trace.Line)) {
	for _, frame := range slices.Clone(frames) {
		if frame != emptyFrame {
			f(frame.line())
		}
	}
}
