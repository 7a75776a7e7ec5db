package ir

import "slices"

// If the compiler has marked a call as a tail call, and the function only returns after this call,
// the code generator replaces the call by a jump. Deep recursion then needs no stack space. The
// jump requires that the return immediately follows the call, so no piece begins after such a call.
// If the call shares the return with other code, as in
//
//	  %r = tail call i32 @odd(i64 %m)            step of block done
//	  br label %done                             %r = tail call i32 @odd(i64 %m)
//	done:                                  →     ret i32 %r
//	  %v = phi i32 [ %r, %more ], [ 1, %entry ]
//	  ret i32 %v
//
// the rewriter inserts a separate return, as the code generator would do, and the step of the block
// that returns precedes the call.

// tailReturn describes a return that immediately follows a tail call.
type tailReturn struct {
	call int32 // the call instruction, or -1
	by   int32 // the basic block that contains the return
}

// returnsBy reports whether the function returns immediately after call i. It also records whether
// the return is in a different basic block.
func (p *plan) returnsBy(basic, i int32) bool {
	f := p.f
	in := &f.insts[i]
	if in.op != opCall || !in.call.tail || p.task {
		return false
	}
	end := &f.insts[p.nextCode(i+1)]
	if end.op == opReturn {
		return f.returnsValue(end, in.result)
	}
	if end.op != opJump || end.word != "br" || end.refsEnd != end.refs+1 {
		return false
	}
	by := f.blockOf[f.refs[end.refs].label]
	if !p.onlyReturns(by, basic, in.result) {
		return false
	}
	p.returnings[basic] = tailReturn{i, by}
	return true
}

// nextCode returns the first instruction that produces code, starting with instruction i.
func (p *plan) nextCode(i int32) int32 {
	for ; !p.f.insts[i].op.isTerminator(); i++ {
		if _, code := opName(&p.f.insts[i]); code {
			break
		}
	}
	return i
}

// returnsValue reports whether a return instruction returns the given value, or returns void.
func (f *function) returnsValue(end *inst, value int32) bool {
	uses := f.uses[end.uses:end.usesEnd]
	if len(uses) == 0 {
		return end.typ != nil && end.typ.kind == voidType
	}
	return len(uses) == 1 && uses[0] == value
}

// onlyReturns reports whether a basic block does nothing but return. The block must return void, or
// return the given value when it is entered from the block "predecessor".
func (p *plan) onlyReturns(basic, predecessor, value int32) bool {
	f := p.f
	b := &f.blocks[basic]
	i := b.first
	for i < b.last && f.insts[i].op == opPhi {
		i++
	}
	if i == b.last || f.insts[b.last-1].op != opReturn || p.nextCode(i) != b.last-1 {
		return false
	}
	for n := b.first; n < i; n++ {
		phi := &f.insts[n]
		for k, r := range f.refs[phi.refs:phi.refsEnd] {
			if value >= 0 && f.blockOf[r.label] == predecessor && f.uses[phi.uses+int32(k)] == value && f.returnsValue(&f.insts[b.last-1], phi.result) {
				return true
			}
		}
	}
	return f.returnsValue(&f.insts[b.last-1], -1)
}

// isDead reports whether a basic block has become unreachable, because all its predecessors now
// return immediately after their calls.
func (p *plan) isDead(basic int32) bool {
	first := &p.f.insts[p.f.blocks[basic].first]
	if first.op != opPhi {
		return false // the first block needs no predecessor
	}
	return !slices.ContainsFunc(p.f.refs[first.refs:first.refsEnd], func(r labelRef) bool {
		return p.returnings[p.f.blockOf[r.label]].call < 0
	})
}

// returnStep writes the step of the basic block that contains the return. The step is placed before
// the call.
func (e *emitter) returnStep(p *plan, q *piece, call int32, label string) {
	e.copyTo(int(p.f.insts[call].from))
	by := &p.pieces[p.heads[p.returnings[q.basic].by]]
	e.writeNamedStep(words("r"+decimal(uint64(q.number))), by, label)
}

// returnOfCall replaces a jump to a return by a return.
func (e *emitter) returnOfCall(p *plan, basic int32) {
	f, r := p.f, p.returnings[basic]
	jump, end := &f.insts[f.blocks[basic].last-1], &f.insts[f.blocks[r.by].last-1]
	e.copyTo(int(jump.from))
	if end.uses == end.usesEnd {
		e.put("  ret void")
	} else {
		e.put("  ret ", f.insts[r.call].call.typeText, " %", f.insts[r.call].resultName)
	}
	e.done = int(f.refs[jump.refs].to)
}

// deadEntry returns the label of a new, unreachable basic block. If a basic block has lost all its
// predecessors, its phis refer to the new block instead, because a phi must name a predecessor.
func (e *emitter) deadEntry(p *plan, basic int32) string {
	return e.name("y", p.pieces[p.heads[basic]].number)
}

func (e *emitter) writeDeadEntry(p *plan, basic int32) {
	b := &p.f.blocks[basic]
	e.copyTo(int(p.f.insts[b.last-1].to))
	e.put("\n\n", e.deadEntry(p, basic)[1:], ":\n  br label %", b.label, "\n")
}
