// Package change applies code transformations to the loop-compressed references of a program
// ([loops.Nest]; MODELS §11.4). The package computes the sequence of references that the program
// would make with a different data layout or loop order. The misses of the transformed nest show
// the benefit of a change before anyone edits the source.
//
//  1. Data layout: [Pad] adds bytes after each row of an array, [Align] aligns arrays to a power of
//     two, and [Records] merges several arrays into one array of structures. These changes modify
//     the addresses of leaves, which must remain affine functions of the loop iterations. If an
//     address would no longer be affine, the change cannot be applied, and the error contains the
//     reason.
//  2. Order: [Interchange] exchanges two loops, [Tile] divides loops into tiles, and [Fuse] merges
//     two neighbouring loops. The references stay the same, but their order changes.
//  3. [Search] tries many changes to a nest, and returns the best changes.
//
// An [Array] is a range of bytes that overlapping references cover. Block entries are leaves that
// access no memory. A change leaves block entries in their loop bodies.
//
// # Legality
//
// The package cannot check whether a changed program would still compute the same result, because a
// trace does not contain the necessary information. [Change.Illegal] states when a change would be
// illegal.
//
// # Sources
//
// The transformations are from Wolf and Lam, A data locality optimizing algorithm, PLDI 1991, and
// from Rivera and Tseng, Data transformations for eliminating conflict misses, PLDI 1998. Both
// papers transform source code and analyse its dependences, whereas this package works on the
// trace.
package change

import (
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Change is a change that a programmer could make to the code.
type Change interface {
	// Apply changes the nest. If there is an error, it is an [*Error], and the nest is unchanged.
	Apply(n *loops.Nest) error
	// Words describes the change, for example "pad a by 8 doubles".
	Words(names Names) string
	// Illegal returns a clause that states when the change would be illegal.
	Illegal() string
}

// Names contains the names of arrays and loops.
type Names struct {
	Array    func(at trace.Addr) string // name of the array that contains the address; if nil or "", the address is used
	Loop     func(p Path) string        // name of the loop; if nil, the loop's number is used
	Element  func(at trace.Addr) uint64 // element size of the array in bytes; nil or 0 if unknown
	Elements func(p Path) uint64        // see [Rolled.Elements]; nil if unknown
}

func (n Names) array(at trace.Addr) string {
	if n.Array != nil {
		if name := n.Array(at); name != "" {
			return name
		}
	}
	return "the array at 0x" + strconv.FormatUint(at, 16)
}

func (n Names) loop(p Path) string {
	if n.Loop != nil {
		return n.Loop(p)
	}
	return "loop " + p.String()
}

// bytes formats a length as a number of elements if possible, and otherwise as a number of bytes.
func (n Names) bytes(at trace.Addr, bytes uint64) string {
	if n.Element != nil {
		switch e := n.Element(at); {
		case e == 0 || bytes%e != 0:
		case bytes == e:
			return "1 element (" + strconv.FormatUint(bytes, 10) + " bytes)"
		default:
			return strconv.FormatUint(bytes/e, 10) + " elements (" + strconv.FormatUint(bytes, 10) + " bytes)"
		}
	}
	return strconv.FormatUint(bytes, 10) + " bytes"
}

// Error explains why a change does not apply to a nest.
type Error struct {
	Change string // the kind of change, such as "interchange"
	Why    string
}

func (e *Error) Error() string { return e.Change + " does not apply: " + e.Why }

// Path identifies a loop by a list of numbers: one number for each surrounding loop, outermost
// first, and one for the loop itself. Each number is the index of a loop among the items of its
// surrounding loop. In text form, a path looks like a section number: 2.1 is the first loop inside
// the second loop.
type Path []int

func (p Path) String() string {
	text := ""
	for i, at := range p {
		if i > 0 {
			text += "."
		}
		text += strconv.Itoa(at + 1)
	}
	return text
}

// list returns the list that contains the loop, and the index of the loop in this list.
func (p Path) list(n *loops.Nest) (list *[]loops.Item, at int, ok bool) {
	list = &n.Items
	for depth, number := range p {
		at := 0
		for at < len(*list) && (number > 0 || !(*list)[at].IsLoop()) {
			if (*list)[at].IsLoop() {
				number--
			}
			at++
		}
		if number < 0 || at == len(*list) {
			return nil, 0, false
		}
		if depth == len(p)-1 {
			return list, at, true
		}
		list = &(*list)[at].Body
	}
	return nil, 0, false
}

// Loop returns the loop at the path, or nil if there is no such loop.
func (p Path) Loop(n *loops.Nest) *loops.Item {
	list, at, ok := p.list(n)
	if !ok {
		return nil
	}
	return &(*list)[at]
}

// isEvent reports whether an item is a leaf that does not access memory.
func isEvent(it *loops.Item) bool { return !it.IsLoop() && !it.Ref.Kind.IsReference() }

// soleItem returns the index of the only item of a body that is not an event. It returns -1 if the
// number of such items is not 1.
func soleItem(body []loops.Item) int {
	found := -1
	for i := range body {
		if isEvent(&body[i]) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// stepAt returns the step of an item in the loop at the given depth: the change of the item's
// address or trip count per iteration of this loop.
func stepAt(it *loops.Item, depth int) int64 {
	if depth < len(it.Steps) {
		return it.Steps[depth]
	}
	return 0
}

func setStep(it *loops.Item, depth int, to int64) {
	for len(it.Steps) <= depth {
		if to == 0 {
			return
		}
		it.Steps = append(it.Steps, 0)
	}
	it.Steps[depth] = to
}

// eachLeaf calls the function "do" for each leaf that is a reference. The argument
// "around" contains the loops around the leaf, outermost first.
func eachLeaf(items []loops.Item, around []*loops.Item, do func(leaf *loops.Item, around []*loops.Item)) {
	for i := range items {
		switch it := &items[i]; {
		case it.IsLoop():
			eachLeaf(it.Body, append(around[:len(around):len(around)], it), do)
		case !isEvent(it):
			do(it, around)
		}
	}
}

// valueRange returns the lowest and the highest value of a parameter. The parameter initially has
// the value "start", and changes by the given steps in the loops around it (outermost first). If
// trip counts vary, valueRange eliminates the loops from the innermost outwards: the maximum amount
// that a loop adds is affine in the iterations of the loops around it.
func valueRange(start uint64, steps []int64, around []*loops.Item) (low, high uint64) {
	extreme := func(sign int64) uint64 {
		value, by := start, make([]int64, len(around))
		copy(by, steps)
		for d := len(around) - 1; d >= 0; d-- {
			if by[d]*sign <= 0 {
				continue
			}
			value += uint64(by[d]) * (around[d].Trips - 1)
			for e := range d {
				by[e] += by[d] * stepAt(around[d], e)
			}
		}
		return value
	}
	return extreme(-1), extreme(1)
}

// byteRange returns the addresses of the first and the last byte that a leaf accesses.
func byteRange(leaf *loops.Item, around []*loops.Item) (low, high trace.Addr) {
	low, high = valueRange(leaf.Addr, leaf.Steps, around)
	return low, high + max(1, uint64(leaf.Ref.Bytes)) - 1
}
