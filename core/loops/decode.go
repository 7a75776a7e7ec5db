package loops

import (
	"encoding/binary"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// FormError reports an error in an encoded tree.
type FormError struct {
	Offset int    // position in the bytes
	What   string // the name of the erroneous number, such as "shape number"
	Got    uint64
	Want   string
}

func (e *FormError) Error() string {
	return "loop-compressed trace at byte " + strconv.Itoa(e.Offset) + ": " + e.What + " is " + decimal(e.Got) + ", want " + e.Want
}

func decimal(v uint64) string { return strconv.FormatUint(v, 10) }

// Decode decodes a tree that [Tree.Append] encoded. The tree shares no memory with the given bytes.
// Even for malicious input, the time and memory are proportional to the number of bytes. The
// [Expander], not Decode, checks that each wild reference has as many addresses as records.
//
// The error is a [*FormError], or a [*NestError] if the records cannot be counted.
func Decode(data []byte) (*Tree, error) {
	r := &decoder{data: data, tree: newTree()}
	r.shapePredictor = shapePredictor{next: []uint32{0}, other: []uint32{0}}
	r.numbers = []uint32{0}
	if r.readHead(); r.plain {
		r.readRows()
	} else {
		r.readNodes()
	}
	if r.err == nil && r.at < len(data) {
		r.fail("number of bytes after the end", uint64(len(data)-r.at), "0")
	}
	if r.err == nil && r.met < len(r.tree.refs) {
		r.fail("number of references with leaves", uint64(r.met), strconv.Itoa(len(r.tree.refs))+", the number of references")
	}
	if r.err != nil {
		return nil, r.err
	}
	rows, err := r.tree.count(1<<22 + 64*len(data))
	if err != nil {
		return nil, err
	}
	r.tree.rows, r.tree.bodies = rows.saturated(), rows.bodies
	return r.tree, nil
}

const (
	maxParams = 1 << 30 // maximum number of parameters per loop
	// maxDepth is the maximum nesting depth of loops. A Folder creates only loops that have at
	// least two iterations in some execution, so a trace with deeper nests would have more than
	// 2^63 records.
	maxDepth = 64
	// maxWildPerByte is the maximum number of wild leaves per byte of the tree, in addition to one
	// leaf per address. There can be more wild leaves than addresses: a leaf in a loop that does
	// not run needs no address.
	maxWildPerByte = 16
)

// decoder reads a tree. After an error, it reads zeros.
type decoder struct {
	data    []byte
	at      int
	last    int // position of the most recently read number
	err     error
	tree    *Tree
	plain   bool      // whether the tree is in the plain form
	met     int       // number of references that already have leaves
	leaves  [2][]bool // leaves[0][r]: whether reference r has a tame leaf; leaves[1][r]: whether it has a wild leaf
	numbers []uint32  // by shape number: the index of the shape
	wild    uint64    // number of further wild leaves that are allowed
	body    []uint32  // bodies of the loops whose definitions are being read
	shapePredictor
	lastAddresses
}

func (r *decoder) fail(what string, got uint64, want string) {
	if r.err == nil {
		r.err = &FormError{Offset: r.last, What: what, Got: got, Want: want}
	}
	r.at = len(r.data)
}

func (r *decoder) uv() uint64 {
	r.last = r.at
	v, n := binary.Uvarint(r.data[r.at:])
	if n <= 0 {
		r.fail("number of remaining bytes", uint64(len(r.data)-r.at), "a complete LEB128 number of at most 64 bits")
		return 0
	}
	r.at += n
	return v
}

func (r *decoder) zigzag() uint64 {
	v := r.uv()
	return v>>1 ^ -(v & 1)
}

// readBelow reads a number, which must be less than the parameter "limit".
func (r *decoder) readBelow(limit uint64, what string) uint64 {
	v := r.uv()
	if v >= limit {
		r.fail(what, v, "less than "+decimal(limit))
		return 0
	}
	return v
}

// readCount reads the number of items in a list. Each item takes at least one byte.
func (r *decoder) readCount(what string) int {
	n := r.uv()
	if left := uint64(len(r.data) - r.at); n > left {
		r.fail(what, n, "at most "+decimal(left)+", the number of remaining bytes")
		return 0
	}
	return int(n)
}

// readHead reads the head of the tree, which comes before the nodes or records.
func (r *decoder) readHead() {
	t := r.tree
	version := r.uv()
	if r.plain = version == plainVersion; r.err == nil && version != formVersion && !r.plain {
		r.fail("version", version, decimal(formVersion)+" or "+decimal(plainVersion)+"; use a newer stackglass")
	}
	columns := r.readBelow(allBits+1, "column mask")
	has := func(bit uint64) bool { return columns&bit != 0 }
	t.has.thread, t.has.pc, t.has.site, t.has.arg = has(bitThread), has(bitPC), has(bitSite), has(bitArg)
	n := r.readCount("number of references")
	var before Reference
	for range n {
		before = r.readReference(columns, before)
		if r.err != nil {
			return
		}
	}
	r.leaves[0], r.leaves[1] = make([]bool, n), make([]bool, n)
	r.lastAddresses.at = make([]uint64, n)
}

// readReference reads a reference and the addresses of its wild leaves.
func (r *decoder) readReference(columns uint64, before Reference) (of Reference) {
	head := r.readBelow(1<<9, "kind")
	if of.Kind = trace.Kind(head >> 1); !of.Kind.Valid() {
		r.fail("kind", head>>1, "the kind of a reference or an event")
	}
	of.Bytes = uint32(r.readBelow(1<<32, "size of a reference"))
	if columns&bitSite != 0 {
		site := uint64(before.Site) + r.zigzag()
		if site >= 1<<32 {
			r.fail("site", site, "less than 2^32")
		}
		of.Site = uint32(site)
	}
	if columns&bitPC != 0 {
		of.PC = before.PC + r.zigzag()
	}
	if columns&bitThread != 0 {
		of.Thread = uint32(r.readBelow(1<<32, "thread"))
	}
	if columns&bitArg != 0 {
		of.Arg = r.uv()
	}
	var s stream
	if head&1 != 0 && r.plain {
		r.fail("number of address lists", 1, "0, because every record has its own address")
	} else if head&1 != 0 {
		s = r.readStream()
	}
	r.tree.refs, r.tree.streams = append(r.tree.refs, of), append(r.tree.streams, s)
	return of
}

// readStream reads the addresses of a reference's wild leaves.
func (r *decoder) readStream() (s stream) {
	count := r.uv()
	n := r.readCount("number of address bytes")
	if r.err != nil {
		return stream{}
	}
	s.packed = append(s.packed, r.data[r.at:r.at+n]...)
	for at := 0; at < n; s.count++ {
		delta, length := varint(s.packed[at:])
		if length <= 0 {
			r.at, r.last = r.at+at, r.at+at
			r.fail("number of remaining address bytes", uint64(n-at), "a complete LEB128 number of at most 64 bits")
			return stream{}
		}
		s.last += delta
		s.extendRange(s.last)
		at += length
	}
	if count != s.count || count == 0 {
		r.fail("number of addresses of an irregular reference", count, decimal(max(s.count, 1))+", the number of addresses that follow")
		return stream{}
	}
	r.at += n
	r.wild += s.count
	return s
}

// readRows reads the records of the plain form, and adds a node for each record.
func (r *decoder) readRows() {
	t := r.tree
	var shapes []uint32 // for each reference: the shape of its leaf
	for left := r.readCount("number of records"); left > 0 && r.err == nil; {
		ref := r.uv()
		if most := uint64(min(r.met+1, len(t.refs))); ref >= most {
			r.fail("reference number", ref, "less than "+decimal(most))
		}
		n := 1 + r.readBelow(uint64(left), "length of a run minus 1")
		if r.err != nil {
			return
		}
		if int(ref) == r.met {
			r.met++
			shapes = append(shapes, t.shapes.leaf(uint32(ref), false))
		}
		left -= int(n)
		for range n {
			r.lastAddresses.at[ref] += r.zigzag()
			t.nodes, t.params = append(t.nodes, shapes[ref]), append(t.params, r.lastAddresses.at[ref])
		}
	}
}

func (r *decoder) readNodes() {
	r.wild += maxWildPerByte * uint64(len(r.data))
	n := r.uv()
	// Each node takes at least one byte: a wild leaf takes it in the list of its addresses, and any
	// other node takes it in its parameters.
	if most := uint64(len(r.data)); n > most {
		r.fail("number of nodes", n, "at most "+decimal(most)+", the number of bytes")
	}
	if r.err != nil {
		return
	}
	numbers := 0 // number of encoded integers, most of which are parameters
	for _, b := range r.data[r.at:] {
		numbers += int(b>>7 ^ 1)
	}
	r.tree.nodes, r.tree.params = make([]uint32, 0, n), make([]uint64, 0, numbers)
	for uint64(len(r.tree.nodes)) < n && r.err == nil {
		token := r.uv()
		predicted := token & maxInToken
		if predicted == maxInToken {
			predicted += r.readBelow(n, "number of predicted nodes")
		}
		if left := n - uint64(len(r.tree.nodes)); predicted > left {
			r.fail("number of predicted nodes", predicted, "at most "+decimal(left)+", the number of remaining nodes")
			return
		}
		for range predicted {
			if r.readNode(r.next[r.before]); r.err != nil {
				return
			}
		}
		r.readUnpredicted(token>>2, uint64(len(r.tree.nodes)) == n)
	}
}

// readUnpredicted reads the node that follows the predicted nodes of a token.
func (r *decoder) readUnpredicted(what uint64, atEnd bool) {
	switch {
	case r.err != nil:
	case atEnd:
		if what != takeOther {
			r.fail("shape after the last node", what, "0")
		}
	case what == takeOther:
		r.readNode(r.other[r.before])
	case what == takeNew:
		r.readNode(r.readDefinition(1))
	case what-takeNumber >= uint64(len(r.numbers)):
		r.fail("shape number", what-takeNumber, "less than "+strconv.Itoa(len(r.numbers)))
	default:
		r.readNode(uint32(what - takeNumber))
	}
}

func (r *decoder) readNode(number uint32) {
	if number == 0 {
		r.fail("shape number", 0, "at least 1")
	}
	if r.err != nil {
		return
	}
	t := r.tree
	id, lo := r.numbers[number], len(r.tree.params)
	r.readParams(id)
	if r.err != nil {
		return
	}
	t.nodes = append(t.nodes, id)
	r.lastAddresses.update(t.shapes.all, id, t.params[lo:])
	r.follow(number)
}

func (r *decoder) readParams(id uint32) {
	t := r.tree
	s := &t.shapes.all[id]
	switch {
	case s.loop:
		t.params = append(t.params, r.uv())
		for i := range s.items {
			if r.readParams(s.items[i].shape); r.err != nil {
				return
			}
		}
	case s.wild:
		if r.wild == 0 {
			r.fail("index of the first excess irregular leaf", uint64(len(t.nodes)), "at most 16 irregular leaves per byte, and one per address")
		}
		r.wild--
		t.params = append(t.params, 0)
	default:
		r.lastAddresses.at[s.ref] += r.zigzag()
		t.params = append(t.params, r.lastAddresses.at[s.ref])
	}
}

// readDefinition reads the definition of a shape at nesting depth level - 1, and returns the number
// of the shape.
func (r *decoder) readDefinition(level int) uint32 {
	if level > maxDepth+1 {
		r.fail("nesting depth of loops", uint64(level-1), "at most "+strconv.Itoa(maxDepth))
	}
	what := r.uv()
	if r.err != nil {
		return 0
	}
	var id uint32
	if what < defineLoop {
		id = r.readLeaf(what)
	} else {
		id = r.readLoop(what-defineLoop, level)
	}
	if r.err != nil {
		return 0
	}
	r.numbers = append(r.numbers, id)
	return r.shapePredictor.add()
}

func (r *decoder) readLeaf(what uint64) uint32 {
	refs := uint64(len(r.tree.refs))
	ref := uint64(r.met)
	if what >= defineKnownTame {
		ref = r.readBelow(ref, "reference number")
	} else if ref == refs {
		r.fail("reference number", ref, "less than "+decimal(refs))
	} else {
		r.met++
	}
	if r.err != nil {
		return 0
	}
	kind := what & 1
	if r.leaves[kind][ref] {
		r.fail("reference number", ref, "a reference that does not yet have a leaf of this kind")
	}
	if kind == defineWild && r.tree.streams[ref].count == 0 {
		r.fail("reference number", ref, "a reference with a list of addresses")
	}
	r.leaves[kind][ref] = true
	return r.tree.shapes.leaf(uint32(ref), kind == defineWild)
}

// readLoop reads the definition of a loop. The parameter "more" is the number of items, minus 1.
func (r *decoder) readLoop(more uint64, level int) uint32 {
	if left := uint64(len(r.data) - r.at); more >= left {
		r.fail("number of additional items of a loop", more, "fewer than "+decimal(left)+", the number of remaining bytes")
		return 0
	}
	t, lo, params, height := r.tree, len(r.body), 0, 0
	for range more + 1 {
		number := uint32(r.readBelow(uint64(len(r.numbers)), "shape number"))
		if number == 0 {
			number = r.readDefinition(level + 1)
		}
		if r.err != nil {
			return 0
		}
		id := r.numbers[number]
		params += t.shapes.all[id].params
		height = max(height, t.shapes.all[id].height)
		r.body = append(r.body, id)
		if most := min(len(r.data)-r.at, maxParams); params > most {
			r.fail("number of parameters of a loop", uint64(params), "at most "+strconv.Itoa(most)+" for the remaining bytes")
			return 0
		}
	}
	if height == maxDepth {
		r.fail("nesting depth of loops", maxDepth+1, "at most "+strconv.Itoa(maxDepth))
	}
	steps := make([]uint64, params)
	for i := range steps {
		steps[i] = r.zigzag()
	}
	if r.err != nil {
		return 0
	}
	before := len(t.shapes.all)
	id := t.shapes.loop(r.body[lo:], steps)
	r.body = r.body[:lo]
	if int(id) < before {
		r.fail("number of defined shapes", uint64(before), "a new shape that differs from all defined shapes")
		return 0
	}
	r.checkWild(&t.shapes.all[id], steps)
	return id
}

// checkWild checks that the steps of wild leaves are 0.
func (r *decoder) checkWild(s *shape, steps []uint64) {
	for i := range s.items {
		it := &s.items[i]
		if it.wild && steps[it.at] != 0 {
			r.fail("step of an irregular leaf", steps[it.at], "0")
		}
		if it.loop {
			r.checkWild(&r.tree.shapes.all[it.shape], steps[it.at+1:])
		}
	}
}
