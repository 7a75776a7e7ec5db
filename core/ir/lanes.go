package ir

import (
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// lanes is a masked access: which of its lanes are active is known when it runs.
// Its references are steps of a block of their own, one for each run of
// neighbours (or, of gathers and scatters, for each lane), which the runtime
// writes.
type lanes struct {
	number    uint32 // of the block
	inst      int32
	kind      trace.Kind
	count     uint64
	elem      *datatype
	mask      operand
	signs     bool    // the mask is the lanes' sign bits
	packed    bool    // active lanes lie side by side in memory
	scattered bool    // each lane has an address
	address   operand // of the first lane, or a vector of addresses
	index     operand // of each lane, if address is a base
	scale     operand
}

// mostLanes is what fits a mask.
const mostLanes = 64

// lanesOf reads a masked access; nil if the instruction is none that can be
// told.
func (p *plan) lanesOf(i int32) *lanes {
	in := &p.f.insts[i]
	if in.op != opCall || p.f.m.types.layout.bigEndian {
		return nil
	}
	a, callee := p.arguments(in), in.call.callee
	var l *lanes
	if rest, ok := strings.CutPrefix(callee, "llvm.masked."); ok {
		l = genericLanes(rest, a, in.typ)
	} else if rest, ok := strings.CutPrefix(callee, "llvm.x86.avx"); ok {
		l = x86Lanes(rest, a, in.typ)
	}
	if l == nil || !l.sound() {
		return nil
	}
	l.inst = i
	return l
}

// genericLanes reads LLVM's own masked intrinsics.
func genericLanes(name string, a arguments, result *datatype) *lanes {
	kind, _, _ := strings.Cut(name, ".")
	want := map[string]int{"load": 4, "store": 4, "gather": 4, "scatter": 4, "expandload": 3, "compressstore": 3}[kind]
	if want == 0 || len(a) != want {
		return nil
	}
	switch kind {
	case "load":
		return vector(&lanes{kind: trace.Load, address: a[0], mask: a[2]}, result)
	case "store":
		return vector(&lanes{kind: trace.Store, address: a[1], mask: a[3]}, a[0].typ)
	case "gather":
		return vector(&lanes{kind: trace.Load, address: a[0], mask: a[2], scattered: true}, result)
	case "scatter":
		return vector(&lanes{kind: trace.Store, address: a[1], mask: a[3], scattered: true}, a[0].typ)
	case "expandload":
		return vector(&lanes{kind: trace.Load, address: a[0], mask: a[1], packed: true}, result)
	}
	return vector(&lanes{kind: trace.Store, address: a[1], mask: a[2], packed: true}, a[0].typ)
}

// x86Lanes reads the intrinsics of AVX, AVX2 and AVX-512; name is what follows
// llvm.x86.avx.
func x86Lanes(name string, a arguments, result *datatype) *lanes {
	has := func(word string) bool { return strings.Contains(name, word) }
	switch {
	case has(".maskload.") && len(a) == 2:
		return vector(&lanes{kind: trace.Load, address: a[0], mask: a[1], signs: true}, result)
	case has(".maskstore.") && len(a) == 3:
		return vector(&lanes{kind: trace.Store, address: a[0], mask: a[1], signs: true}, a[2].typ)
	case strings.HasPrefix(name, "2.gather.") && len(a) == 5:
		return vector(&lanes{kind: trace.Load, address: a[1], index: a[2], mask: a[3], scale: a[4], signs: true, scattered: true}, result)
	case strings.HasPrefix(name, "512.mask.gather") && len(a) == 5:
		return vector(&lanes{kind: trace.Load, address: a[1], index: a[2], mask: a[3], scale: a[4], scattered: true}, result)
	case strings.HasPrefix(name, "512.mask.scatter") && len(a) == 5:
		return vector(&lanes{kind: trace.Store, address: a[0], mask: a[1], index: a[2], scale: a[4], scattered: true}, a[3].typ)
	}
	return nil
}

// vector gives the lanes the type of what they read or write, if that is a
// vector.
func vector(l *lanes, t *datatype) *lanes {
	if t == nil || t.kind != vectorType || t.elem == nil || t.scalable {
		return nil
	}
	l.count, l.elem = t.count, t.elem
	if l.index.typ != nil {
		l.count = min(l.count, l.index.typ.count)
	}
	return l
}

// sound tells whether the operands have the shapes that the rewriter relies on.
func (l *lanes) sound() bool {
	mask := l.mask.typ
	if l.count == 0 || l.count > mostLanes || l.elem.bits == 0 || l.elem.bits%8 != 0 || !l.elem.sized || mask == nil || mask.kind != vectorType || mask.elem == nil {
		return false
	}
	if mask.scalable || mask.count < l.count || mask.count > mostLanes || !l.signs && mask.elem.bits != 1 {
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
