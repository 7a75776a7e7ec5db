package ir

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// maskedAccess is a masked load, store, gather or scatter. Its active lanes are known only at run
// time. The runtime records the references as steps of a separate block: one step for each run of
// contiguous lanes, or one step per lane for gathers and scatters.
type maskedAccess struct {
	number    uint32 // number of the block that records the references
	inst      int32
	kind      trace.Kind
	count     uint64
	elem      *datatype
	mask      operand
	signs     bool    // the mask consists of the sign bits of the lanes
	packed    bool    // active lanes are contiguous in memory
	scattered bool    // each lane has a separate address
	address   operand // address of the first lane, or a vector of addresses
	index     operand // vector of the lanes' indices, if the field "address" is a base address that all lanes share
	scale     operand
}

// maxLanes is the maximum number of lanes that fit in a mask.
const maxLanes = 64

// lanesOf reads a masked access. It returns nil if the instruction is not a masked access, or if
// the access cannot be recorded.
func (p *plan) lanesOf(i int32) *maskedAccess {
	in := &p.f.insts[i]
	if in.op != opCall || p.f.m.types.layout.bigEndian {
		return nil
	}
	l := newLanes(in.call.callee, p.arguments(in), in.typ)
	if l == nil || !l.isValid() {
		return nil
	}
	l.inst = i
	return l
}

// laneForm contains the positions of the arguments of an intrinsic, counted from 1. Position 0
// means that the intrinsic has no such argument.
type laneForm struct {
	prefix, part string // prefix and inner part of the intrinsic's name
	arguments    int
	stored       int // position of the stored value; 0 for a load
	address      int
	mask         int
	index, scale int
	signs        bool
	packed       bool
	scattered    bool
}

// laneForms lists LLVM's own masked intrinsics, and the masked intrinsics of AVX, AVX2 and AVX-512.
var laneForms = []laneForm{
	{prefix: "llvm.masked.load.", arguments: 4, address: 1, mask: 3},
	{prefix: "llvm.masked.store.", arguments: 4, stored: 1, address: 2, mask: 4},
	{prefix: "llvm.masked.gather.", arguments: 4, address: 1, mask: 3, scattered: true},
	{prefix: "llvm.masked.scatter.", arguments: 4, stored: 1, address: 2, mask: 4, scattered: true},
	{prefix: "llvm.masked.expandload.", arguments: 3, address: 1, mask: 2, packed: true},
	{prefix: "llvm.masked.compressstore.", arguments: 3, stored: 1, address: 2, mask: 3, packed: true},
	{prefix: "llvm.x86.avx", part: ".maskload.", arguments: 2, address: 1, mask: 2, signs: true},
	{prefix: "llvm.x86.avx", part: ".maskstore.", arguments: 3, stored: 3, address: 1, mask: 2, signs: true},
	{prefix: "llvm.x86.avx2.gather.", arguments: 5, address: 2, index: 3, mask: 4, scale: 5, signs: true, scattered: true},
	{prefix: "llvm.x86.avx512.mask.gather", arguments: 5, address: 2, index: 3, mask: 4, scale: 5, scattered: true},
	{prefix: "llvm.x86.avx512.mask.scatter", arguments: 5, stored: 4, address: 1, mask: 2, index: 3, scale: 5, scattered: true},
}

// newLanes reads a masked access from a call. It returns nil if the call is not a masked access.
func newLanes(callee string, a arguments, result *datatype) *maskedAccess {
	i := slices.IndexFunc(laneForms, func(f laneForm) bool {
		return len(a) == f.arguments && strings.HasPrefix(callee, f.prefix) && strings.Contains(callee, f.part)
	})
	if i < 0 {
		return nil
	}
	f := &laneForms[i]
	argument := func(number int) (o operand) {
		if number > 0 {
			o = a[number-1]
		}
		return o
	}
	l := &maskedAccess{
		kind: trace.Load, address: argument(f.address), mask: argument(f.mask), index: argument(f.index), scale: argument(f.scale),
		signs: f.signs, packed: f.packed, scattered: f.scattered,
	}
	if f.stored > 0 {
		l.kind, result = trace.Store, argument(f.stored).typ
	}
	return setVector(l, result)
}

// setVector sets the number and the type of the lanes from the vector type t. It returns nil if t
// is not a vector type.
func setVector(l *maskedAccess, t *datatype) *maskedAccess {
	if t == nil || t.kind != vectorType || t.elem == nil || t.scalable {
		return nil
	}
	l.count, l.elem = t.count, t.elem
	if l.index.typ != nil {
		l.count = min(l.count, l.index.typ.count)
	}
	return l
}

// isValid reports whether the operands have the expected types.
func (l *maskedAccess) isValid() bool {
	mask := l.mask.typ
	if l.count == 0 || l.count > maxLanes || l.elem.bits == 0 || l.elem.bits%8 != 0 || !l.elem.sized || mask == nil || mask.kind != vectorType || mask.elem == nil {
		return false
	}
	if mask.scalable || mask.count < l.count || mask.count > maxLanes || !l.signs && mask.elem.bits != 1 {
		return false
	}
	at := l.address.typ
	if l.scattered && l.index.typ == nil {
		return at != nil && at.kind == vectorType && at.elem != nil && at.elem.kind == pointerType && at.elem.space == 0 && at.count == l.count
	}
	if !isPointer(l.address) {
		return false
	}
	if l.index.typ == nil {
		return true
	}
	index := l.index.typ
	return index.kind == vectorType && index.elem != nil && index.elem.kind == intType && index.elem.bits <= 64 && isInteger(l.scale)
}

// writeLanes writes the call that records the references of a masked access.
func (e *emitter) writeLanes(l *maskedAccess) {
	mask := e.writeMask(l)
	if l.packed {
		mask = e.writeLowBits(mask)
	}
	function, where := "@__sg_masked", ""
	if l.scattered {
		e.need.lanes = true
		function, where = "@__sg_lanes", e.word+" "+e.writeAddresses(l)
	} else {
		e.need.masked = true
		where = "i64 " + e.writeValue(&recipe{how: asPointer, of: l.address})
	}
	e.put("  call void ", function, "(", e.block(l.number), ", ", where, ", i64 ", mask,
		", i32 ", decimal(l.count), ", i32 ", decimal(l.elem.bytes), ")\n")
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// writeMask converts the lanes' mask to an i64, with bit 0 for the first lane.
func (e *emitter) writeMask(l *maskedAccess) string {
	bits, typeText, text := l.mask.typ.count, l.mask.typeText, l.mask.text
	if l.signs {
		typeText, text = e.writeSigns(l)
	}
	v := e.writeInstruction("bitcast ", typeText, " ", text, " to i", decimal(bits))
	if bits < 64 {
		v = e.writeInstruction("zext i", decimal(bits), " ", v, " to i64")
	}
	if bits > l.count { // the vector is wider than the access, which uses only the low lanes
		v = e.writeInstruction("and i64 ", v, ", ", decimal(1<<l.count-1))
	}
	return v
}

// writeSigns writes code that extracts the sign bits of a vector of integers or floats.
func (e *emitter) writeSigns(l *maskedAccess) (typeText, text string) {
	t := l.mask.typ
	ints := "<" + decimal(t.count) + " x i" + decimal(t.elem.bits) + ">"
	text = l.mask.text
	if t.elem.kind == floatType {
		text = e.writeInstruction("bitcast ", l.mask.typeText, " ", text, " to ", ints)
	}
	return "<" + decimal(t.count) + " x i1>", e.writeInstruction("icmp slt ", ints, " ", text, ", zeroinitializer")
}

// writeLowBits counts the set bits of a mask, and returns a mask in which the same number of low
// bits are set. This mask describes the references of intrinsics such as expandload and
// compressstore, whose active lanes are contiguous in memory.
func (e *emitter) writeLowBits(mask string) string {
	e.need.ones = true
	n := e.writeInstruction("call i64 @llvm.ctpop.i64(i64 ", mask, ")")
	wide := e.writeInstruction("zext i64 ", n, " to i128") // shift a wider integer, because n may be 64
	high := e.writeInstruction("shl i128 -1, ", wide)
	return e.writeInstruction("trunc i128 ", e.writeInstruction("xor i128 ", high, ", -1"), " to i64")
}

// lanesArray returns the name of the function's array of lane addresses.
func (e *emitter) lanesArray() string { return e.name("l", 0) }

// writeAddresses stores each lane's address in the array, and returns the array.
func (e *emitter) writeAddresses(l *maskedAccess) string {
	base := ""
	if l.index.typ != nil {
		base = e.writeValue(&recipe{how: asPointer, of: l.address})
	}
	array := e.m.pointerTo("[" + decimal(e.widest) + " x i64]")
	list := e.writeInstruction("bitcast ", array, " ", e.lanesArray(), " to ", e.word)
	for i := range l.count {
		address := e.laneAddress(l, base, i)
		at := e.writeInstruction("getelementptr i64, ", e.word, " ", list, ", i64 ", decimal(i))
		e.put("  store i64 ", address, ", ", e.word, " ", at, "\n")
	}
	return list
}

// laneAddress returns the address of lane i: base + index · scale or, if there is no base, element
// i of the vector of addresses.
func (e *emitter) laneAddress(l *maskedAccess, base string, i uint64) string {
	if base == "" {
		v := e.writeInstruction("extractelement ", l.address.typeText, " ", l.address.text, ", i32 ", decimal(i))
		return e.writeInstruction("ptrtoint ", elementText(l.address), " ", v, " to i64")
	}
	v := e.writeInstruction("extractelement ", l.index.typeText, " ", l.index.text, ", i32 ", decimal(i))
	if bits := l.index.typ.elem.bits; bits < 64 {
		v = e.writeInstruction("sext i", decimal(bits), " ", v, " to i64")
	}
	scaled := e.writeInstruction("mul i64 ", v, ", ", e.widen(&l.scale))
	return e.writeInstruction("add i64 ", scaled, ", ", base)
}

// elementText returns the element type of a vector, in the notation of the module.
func elementText(o operand) string {
	c := cursor{text: o.typeText, at: 1}
	c.readWord()
	c.wantWord("x")
	c.skipSpace()
	return o.typeText[c.at : len(o.typeText)-1]
}
