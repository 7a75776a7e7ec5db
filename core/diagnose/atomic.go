package diagnose

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// resultUse states whether the program uses the results of atomic operations, which are the values
// before the operations.
type resultUse uint8

// Uses of the result of an atomic operation, as far as the trace shows them.
const (
	notUsed   resultUse = iota // no instruction uses the result, as in a shared sum
	maybeUsed                  // the trace does not show whether the result is used
	isUsed                     // an instruction uses the result, as in a counter that numbers pieces of work
)

// The advice for words that several threads store to.
const (
	keepCopies = "give each thread a private copy, and combine the copies at the end; or store less often"
	takeMore   = "take several pieces of work at a time, so that the threads perform fewer atomic operations on this word"
	// takeOrKeep and takeOrKeepLocked are the advice if the trace does not show whether the results
	// are used. The advice is correct in both cases.
	takeOrKeep       = "if the program uses the result of the atomic operation, take several pieces of work at a time; otherwise give each thread a private copy, and combine the copies at the end"
	takeOrKeepLocked = "if the threads use the number that they read, for example as the index of the next piece of work, take several pieces of work at a time; otherwise give each thread a private copy, and combine the copies at the end"
	takeMoreLocked   = "take several pieces of work at a time, so that the threads lock less often; or use an atomic operation instead of the lock"
)

// atomicFix returns the advice for words that several threads store to at a source location. A
// private copy for each thread is wrong if a thread uses the result of the atomic operation,
// because all threads would then receive the same numbers.
func (r *run) atomicFix(at *place) string {
	use, locked := r.atomicUse(at), !r.isAtomic(at)
	switch {
	case use == isUsed && locked:
		return takeMoreLocked
	case use == isUsed:
		return takeMore
	case use == maybeUsed && locked:
		return takeOrKeepLocked
	case use == maybeUsed:
		return takeOrKeep
	}
	return keepCopies
}

// atomicUse returns the use of the results of the atomic operations at a source location. In a
// function that waits for locks, it also examines updates of a number by a load and a store. Any
// other store has no result.
func (r *run) atomicUse(at *place) (use resultUse) {
	p := r.cost.program
	if p == nil {
		return notUsed
	}
	for _, i := range slices.Concat(at.sites, r.replacing(at)) {
		number := r.p.Sites.Code[i].Number
		switch {
		case int64(number) >= int64(len(p.Sites)):
		case p.Sites[number].Flags&trace.AtomicSite != 0:
			use = max(use, r.resultUse(number))
		case r.p.Sites.Code[i].Kind == trace.Store && r.locksAround(p.Sites[number].Block):
			use = max(use, r.updateUse(number))
		}
	}
	return use
}

// resultUse returns the use of the result of the atomic operation at a site.
func (r *run) resultUse(number uint32) resultUse {
	p := r.cost.program
	b := p.Sites[number].Block
	if int64(b) >= int64(len(p.Blocks)) {
		return maybeUsed
	}
	k := &p.Blocks[b]
	at := slices.IndexFunc(k.Instrs, func(i trace.Instr) bool { return i.Site == number-k.FirstSite+1 })
	switch {
	case at < 0:
		return maybeUsed
	case k.Instrs[at].Opcode == "cmpxchg": // the result only reports whether another thread was faster
		return maybeUsed
	case k.Instrs[at].Opcode != "atomicrmw":
		return notUsed // an atomic load or store
	}
	use, typed := notUsed, k.Instrs[at].Type
	for i := range k.Instrs {
		if uses := k.Instrs[i].Uses; slices.Contains(uses, int32(at)) || slices.Contains(uses, -2-int32(at)) {
			if k.Instrs[i].Opcode != "store" {
				return isUsed
			}
			use = maybeUsed // unoptimised code stores every result
		}
	}
	return max(use, r.usedLater(b, typed))
}

// usedLater returns how the blocks that may be executed after a block use a value from the block.
func (r *run) usedLater(b uint32, typed string) resultUse {
	p, use, only := r.cost.program, notUsed, r.onlySource(b, typed)
	for _, after := range r.reachable(b) {
		for _, i := range p.Blocks[after].Instrs {
			uses := i.Uses
			if i.Opcode == "store" { // the last operand is the address
				uses = uses[:max(0, len(uses)-1)]
			}
			if !slices.Contains(uses, -1) || i.Opcode == "atomicrmw" || keepsType(i.Opcode) && i.Type != typed {
				continue
			}
			if use = maybeUsed; only && keepsType(i.Opcode) && i.Opcode != "store" {
				return isUsed
			}
		}
	}
	return use
}

// locksAround reports whether the function of a block calls a function that waits for a lock.
func (r *run) locksAround(b uint32) bool {
	p := r.cost.program
	locks := r.lockCalls()
	if locks == nil || int64(b) >= int64(len(p.Blocks)) {
		return false
	}
	for n := range p.Blocks {
		if p.Blocks[n].Function == p.Blocks[b].Function && locks(uint32(n)) {
			return true
		}
	}
	return false
}

// updateUse returns how the program uses the old value of a number that a store updates, as in next
// = next + 1. Sums of floating-point numbers are not used as indices.
func (r *run) updateUse(number uint32) resultUse {
	p := r.cost.program
	if int64(p.Sites[number].Block) >= int64(len(p.Blocks)) {
		return notUsed
	}
	b := p.Sites[number].Block
	k := &p.Blocks[b]
	store := slices.IndexFunc(k.Instrs, func(i trace.Instr) bool { return i.Opcode == "store" && i.Site == number-k.FirstSite+1 })
	if store < 0 || len(k.Instrs[store].Uses) == 0 || k.Instrs[store].Uses[0] < 0 || !strings.HasPrefix(k.Instrs[store].Type, "i") {
		return notUsed
	}
	update := int(k.Instrs[store].Uses[0])
	load := slices.IndexFunc(k.Instrs[update].Uses, func(use int32) bool {
		if use < 0 || k.Instrs[use].Opcode != "load" || k.Instrs[use].Site == 0 {
			return false
		}
		from, to := &p.Sites[k.FirstSite+k.Instrs[use].Site-1], &p.Sites[number]
		return from.Bytes == to.Bytes && from.Object == to.Object && from.Structure == to.Structure && from.Offset == to.Offset
	})
	if load < 0 {
		return notUsed
	}
	read := int(k.Instrs[update].Uses[load])
	for i := range k.Instrs {
		for _, of := range []int{read, update} {
			used := slices.Contains(k.Instrs[i].Uses, int32(of)) || slices.Contains(k.Instrs[i].Uses, -2-int32(of))
			if i != update && i != store && used {
				return isUsed
			}
		}
	}
	return r.usedLater(b, k.Instrs[store].Type)
}

// keepsType reports whether all operands of an instruction, except addresses and conditions, have
// the same type as the instruction.
func keepsType(opcode string) bool {
	return strings.Contains(" add sub mul and or xor shl lshr ashr udiv sdiv urem srem icmp fadd fsub fmul fdiv fcmp phi store br switch ret ", " "+opcode+" ")
}

// onlySource reports whether atomic operations are the only source of values of a type in the
// function around a block. If they are, a value of this type from another block is the result of an
// atomic operation.
func (r *run) onlySource(b uint32, typed string) bool {
	p := r.cost.program
	f := p.Blocks[b].Function
	if int64(f) >= int64(len(p.Functions)) {
		return false
	}
	for n := range p.Blocks {
		for _, i := range p.Blocks[n].Instrs {
			if p.Blocks[n].Function == f && i.Type == typed && !strings.Contains(" atomicrmw phi icmp fcmp store br switch ret ", " "+i.Opcode+" ") {
				return false
			}
		}
	}
	return true
}

// reachable returns the blocks of a function that may be executed after a block.
func (r *run) reachable(b uint32) (list []uint32) {
	blocks := r.cost.program.Blocks
	seen := map[uint32]bool{}
	for next := slices.Clone(blocks[b].Successors); len(next) > 0; {
		n := next[len(next)-1]
		if next = next[:len(next)-1]; seen[n] || int64(n) >= int64(len(blocks)) {
			continue
		}
		seen[n] = true
		list = append(list, n)
		next = append(next, blocks[n].Successors...)
	}
	return list
}
