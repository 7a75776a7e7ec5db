package wasmcode

import "bytes"

// checkEquivalence panics with errFlow unless the new code of a function is equivalent to its old
// code. Apart from jumps, each block of the new code must contain the same instructions as the
// block with the same number in the old code. Each jump, the end of each block, and each block
// number at which a goroutine resumes must lead to the same block as before. checkEquivalence
// parses the new code independently of the functions that wrote it. However, these functions
// recorded where each block starts, and checkEquivalence uses these positions.
func (f *flow) checkEquivalence() {
	c := newFlowChecker(f)
	first := c.instructionAt(len(f.head))
	for number, block := range f.blockOf {
		if f.resumed[block] {
			c.checkFlow(first, number, block)
		}
	}
	for i := range f.blocks {
		c.checkBlock(i)
	}
}

// flowChecker follows the control flow of the new code.
type flowChecker struct {
	*flow
	list     []newInstruction
	byOffset map[int]int // index of each instruction by its offset in the code
	// index of the instruction at which the function returns while its goroutine waits, or -1
	unwind int
}

// newInstruction is one instruction of the new code.
type newInstruction struct {
	op        byte
	offset    int
	number    int   // the instruction's first immediate
	table     []int // the targets of br_table
	enclosing int   // index of the enclosing block, loop or if; -1: the function itself
	end       int   // index of the end instruction of this block, loop or if
}

func newFlowChecker(f *flow) *flowChecker {
	c := &flowChecker{flow: f, byOffset: map[int]int{}, unwind: -1}
	r := &functionCode{Reader: &Reader{File: f.out, At: len(f.head)}}
	outer := -1
	for r.At < len(f.out) {
		n := len(c.list)
		is := newInstruction{offset: r.At, enclosing: outer}
		is.op = r.Next()
		switch op := is.op; {
		case op >= opBlock && op <= opIf:
			r.At++
			outer = n
		case op == opEnd && outer >= 0:
			c.list[outer].end = n
			outer = c.list[outer].enclosing
			is.enclosing = outer
		case op == opEnd:
		case op == opTable:
			for range r.readNumber() + 1 {
				is.table = append(is.table, int(r.readNumber()))
			}
		case op == opI32:
			is.number = r.readSigned()
		case op == opBranch, op == opBranch2, op == opI64, op >= opGet && op <= opGlobal:
			is.number = int(r.readNumber())
		default:
			r.readImmediates(op)
		}
		c.byOffset[is.offset] = n
		c.list = append(c.list, is)
	}
	if outer >= 0 || r.At != len(f.out) || c.list[len(c.list)-1].op != opEnd {
		panic(errFlow)
	}
	if f.unwinds {
		c.unwind = c.list[c.instructionAt(len(f.head))].end + 1
		if !bytes.Equal(f.out[c.list[c.unwind].offset:], []byte{opI32, 1, opEnd}) {
			panic(errFlow)
		}
	}
	return c
}

// instructionAt returns the index of the instruction at an offset in the new code.
func (c *flowChecker) instructionAt(place int) int {
	n, ok := c.byOffset[place]
	if !ok {
		panic(errFlow)
	}
	return n
}

// branchTarget returns the index of the instruction to which a branch leads if it leaves the given
// number of blocks.
func (c *flowChecker) branchTarget(from, leaves int) int {
	to := c.list[from].enclosing
	for range leaves {
		to = c.list[to].enclosing // an index of -1 panics, because the branch would leave the function
	}
	if c.list[to].op == opLoop {
		return to + 1
	}
	return c.list[to].end + 1
}

// unset is the value of variable 0 while no code may read the variable
const unset = -1

// checkFlow panics unless control flows from the given instruction, through the code between
// blocks, to the given block. The parameter variable0 is the value of wasm variable 0 at that
// instruction.
func (c *flowChecker) checkFlow(at, variable0, block int) {
	to := c.newStarts[block]
	var stack []int
	pop := func() int {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return n
	}
	for range 4 * len(c.list) {
		is := &c.list[at]
		if is.offset == to && len(stack) == 0 {
			return
		}
		at++
		switch is.op {
		case opBlock, opLoop, opEnd:
		case opI32:
			stack = append(stack, is.number)
		case opGet:
			if is.number != 0 || variable0 == unset {
				panic(errFlow)
			}
			stack = append(stack, variable0)
		case opSet:
			if is.number != 0 {
				panic(errFlow)
			}
			variable0 = pop()
		case opGreater, opLessEqual, opSubtract:
			b, a := uint32(pop()), uint32(pop())
			n := int(int32(a - b))
			if is.op != opSubtract {
				n = 0
				if (a > b) == (is.op == opGreater) {
					n = 1
				}
			}
			stack = append(stack, n)
		case opBranch:
			at = c.branchTarget(at-1, is.number)
		case opBranch2:
			if pop() != 0 {
				at = c.branchTarget(at-1, is.number)
			}
		case opTable:
			n := int(min(uint32(pop()), uint32(len(is.table)-1)))
			at = c.branchTarget(at-1, is.table[n])
		default:
			panic(errFlow)
		}
	}
	panic(errFlow)
}

// checkBlock panics unless the new code of a block is equivalent to its old code.
func (c *flowChecker) checkBlock(number int) {
	b := &c.blocks[number]
	at := c.instructionAt(c.newStarts[number])
	depth := 0 // nesting depth of blocks and ifs inside this block
	for i := 0; i < len(b.parts); i++ {
		p := &b.parts[i]
		is := &c.list[at]
		switch {
		case p.op == partOpen && is.op == opBranch2: // an if, a jump and an end have become one branch
			if p.code[0] != opIf || b.parts[i+1].op != partJump || b.parts[i+2].op != partEnd {
				panic(errFlow)
			}
			c.checkFlow(c.branchTarget(at, is.number), unset, b.parts[i+1].target)
			i += 2
			at++
		case p.op == partJump:
			from, variable := at, unset
			if is.op == opI32 && c.list[at+1].op == opSet && c.list[at+1].number == 0 {
				variable = is.number
				at += 2
			}
			if c.list[at].op != opBranch || c.list[from].enclosing != c.list[at].enclosing {
				panic(errFlow)
			}
			c.checkFlow(c.branchTarget(at, c.list[at].number), variable, p.target)
			at++
		case p.op == partUnwind:
			if is.op != p.branch || c.branchTarget(at, is.number) != c.unwind {
				panic(errFlow)
			}
			at++
		default:
			at = c.checkCopied(at, p.code)
			depth += map[byte]int{partOpen: 1, partEnd: -1}[p.op]
		}
	}
	if depth != 0 {
		panic(errFlow)
	}
	if b.fallsThrough {
		c.checkFallThrough(at, number+1)
	}
}

// checkFallThrough panics unless control flows from the end of a block to the next block or, after
// the last block, to a trap.
func (c *flowChecker) checkFallThrough(at, next int) {
	if next < len(c.blocks) {
		c.checkFlow(at, unset, next)
		return
	}
	for c.list[at].op == opEnd {
		at++
	}
	if c.list[at].op != opUnreachable {
		panic(errFlow)
	}
}

// checkCopied panics unless the new code that starts at the given instruction equals the given old
// code. It returns the index of the instruction after the copied code. The code may use variable 0,
// as indirect calls do, but only after it has set the variable.
func (c *flowChecker) checkCopied(at int, code []byte) int {
	place := c.list[at].offset
	if !bytes.HasPrefix(c.out[place:], code) {
		panic(errFlow)
	}
	isSet := false
	for c.list[at].offset < place+len(code) {
		if is := &c.list[at]; is.op >= opGet && is.op <= opTee && is.number == 0 {
			if isSet = isSet || is.op != opGet; !isSet {
				panic(errFlow)
			}
		}
		at++
	}
	if c.list[at].offset != place+len(code) {
		panic(errFlow)
	}
	return at
}
