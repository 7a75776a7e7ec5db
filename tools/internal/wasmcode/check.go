package wasmcode

import "bytes"

// check panics with errFlow unless the new code of a function is equivalent to its old code. The
// blocks must have the same instructions. Each jump, the end of each block, and each number with
// which a goroutine resumes must lead to the same block as before. check parses the new code
// independently of the code that wrote it, but uses the recorded start of each block.
func (f *flow) check() {
	c := newFlowChecker(f)
	first := c.at(len(f.head))
	for number, block := range f.blockOf {
		if f.resumed[block] {
			c.follow(first, number, block)
		}
	}
	for i := range f.blocks {
		c.block(i)
	}
}

// flowChecker follows the control flow of the new code.
type flowChecker struct {
	*flow
	list    []newInstruction
	byPlace map[int]int // index of each instruction by its offset in the code
	// instruction at which the function returns while its goroutine waits; -1: none
	unwind int
}

// newInstruction is an instruction of the new code.
type newInstruction struct {
	op     byte
	place  int
	number int   // the instruction's first immediate
	table  []int // the targets of br_table
	outer  int   // enclosing block, loop or if; -1: the function
	end    int   // index of the end of a block, loop or if
}

func newFlowChecker(f *flow) *flowChecker {
	c := &flowChecker{flow: f, byPlace: map[int]int{}, unwind: -1}
	r := &functionCode{Reader: &Reader{File: f.out, At: len(f.head)}}
	outer := -1
	for r.At < len(f.out) {
		n := len(c.list)
		is := newInstruction{place: r.At, outer: outer}
		is.op = r.Next()
		switch op := is.op; {
		case op >= opBlock && op <= opIf:
			r.At++
			outer = n
		case op == opEnd && outer >= 0:
			c.list[outer].end = n
			outer = c.list[outer].outer
			is.outer = outer
		case op == opEnd:
		case op == opTable:
			for range r.number() + 1 {
				is.table = append(is.table, int(r.number()))
			}
		case op == opI32:
			is.number = r.signed()
		case op == opBranch, op == opBranch2, op == opI64, op >= opGet && op <= opGlobal:
			is.number = int(r.number())
		default:
			r.instruction(op)
		}
		c.byPlace[is.place] = n
		c.list = append(c.list, is)
	}
	if outer >= 0 || r.At != len(f.out) || c.list[len(c.list)-1].op != opEnd {
		panic(errFlow)
	}
	if f.unwinds {
		c.unwind = c.list[c.at(len(f.head))].end + 1
		if !bytes.Equal(f.out[c.list[c.unwind].place:], []byte{opI32, 1, opEnd}) {
			panic(errFlow)
		}
	}
	return c
}

// at returns the index of the instruction at an offset.
func (c *flowChecker) at(place int) int {
	n, ok := c.byPlace[place]
	if !ok {
		panic(errFlow)
	}
	return n
}

// branch returns the target of a branch that leaves the given number of blocks.
func (c *flowChecker) branch(from, leaves int) int {
	to := c.list[from].outer
	for range leaves {
		to = c.list[to].outer // panics if the branch leads out of the function
	}
	if c.list[to].op == opLoop {
		return to + 1
	}
	return c.list[to].end + 1
}

// value of variable 0 where no code may read it
const unset = -1

// follow panics unless control flows from an instruction, through code between blocks, to the given
// block. number is the value of variable 0.
func (c *flowChecker) follow(at, variable, block int) {
	to := c.starts[block]
	var stack []int
	pop := func() int {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return n
	}
	for range 4 * len(c.list) {
		is := &c.list[at]
		if is.place == to && len(stack) == 0 {
			return
		}
		at++
		switch is.op {
		case opBlock, opLoop, opEnd:
		case opI32:
			stack = append(stack, is.number)
		case opGet:
			if is.number != 0 || variable == unset {
				panic(errFlow)
			}
			stack = append(stack, variable)
		case opSet:
			if is.number != 0 {
				panic(errFlow)
			}
			variable = pop()
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
			at = c.branch(at-1, is.number)
		case opBranch2:
			if pop() != 0 {
				at = c.branch(at-1, is.number)
			}
		case opTable:
			n := int(min(uint32(pop()), uint32(len(is.table)-1)))
			at = c.branch(at-1, is.table[n])
		default:
			panic(errFlow)
		}
	}
	panic(errFlow)
}

// block panics unless a block's new code is equivalent to the old code.
func (c *flowChecker) block(number int) {
	b := &c.blocks[number]
	at := c.at(c.starts[number])
	depth := 0 // nesting depth of blocks and ifs inside this block
	for i := 0; i < len(b.parts); i++ {
		p := &b.parts[i]
		is := &c.list[at]
		switch {
		case p.op == partOpen && is.op == opBranch2: // if, a jump, end
			if p.code[0] != opIf || b.parts[i+1].op != partJump || b.parts[i+2].op != partEnd {
				panic(errFlow)
			}
			c.follow(c.branch(at, is.number), unset, b.parts[i+1].target)
			i += 2
			at++
		case p.op == partJump:
			from, variable := at, unset
			if is.op == opI32 && c.list[at+1].op == opSet && c.list[at+1].number == 0 {
				variable = is.number
				at += 2
			}
			if c.list[at].op != opBranch || c.list[from].outer != c.list[at].outer {
				panic(errFlow)
			}
			c.follow(c.branch(at, c.list[at].number), variable, p.target)
			at++
		case p.op == partUnwind:
			if is.op != p.branch || c.branch(at, is.number) != c.unwind {
				panic(errFlow)
			}
			at++
		default:
			at = c.same(at, p.code)
			depth += map[byte]int{partOpen: 1, partEnd: -1}[p.op]
		}
	}
	if depth != 0 {
		panic(errFlow)
	}
	if b.falls {
		c.fall(at, number+1)
	}
}

// fall panics unless control flows from the end of a block to the next block, or from the last
// block to a trap.
func (c *flowChecker) fall(at, next int) {
	if next < len(c.blocks) {
		c.follow(at, unset, next)
		return
	}
	for c.list[at].op == opEnd {
		at++
	}
	if c.list[at].op != opUnreachable {
		panic(errFlow)
	}
}

// same checks that the new code equals the given old code, and returns the instruction after it. It
// panics if the new code differs. The code may use variable 0, as indirect calls do, but must set
// the variable before reading it.
func (c *flowChecker) same(at int, code []byte) int {
	place := c.list[at].place
	if !bytes.HasPrefix(c.out[place:], code) {
		panic(errFlow)
	}
	isSet := false
	for c.list[at].place < place+len(code) {
		if is := &c.list[at]; is.op >= opGet && is.op <= opTee && is.number == 0 {
			if isSet = isSet || is.op != opGet; !isSet {
				panic(errFlow)
			}
		}
		at++
	}
	if c.list[at].place != place+len(code) {
		panic(errFlow)
	}
	return at
}
