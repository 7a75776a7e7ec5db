package wasmcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// Go's compiler writes some operations on wasm's stack in a longer form than necessary. Shorten
// replaces these forms, so that the program is smaller and browsers compile it faster:
//
//	before                                         after
//	nop
//	i64.extend_i32_u, i64.const c, i64.add,        i32.const c, i32.add
//	  i32.wrap_i64
//	stack pointer, i32.const c, i32.add, …,        stack pointer, …,
//	  load or store with offset d                    load or store with offset c + d
//	i64.const c, i32.wrap_i64                      i32.const c
//	i64.extend_i32_u, i64.eqz                      i32.eqz
//	i32.eqz, i32.eqz, br_if                        br_if
//
// The third rule requires that the sum of the stack pointer and c is less than 2^32. This is the
// case because the sum is the address of a variable on the stack. The other rules never change a
// result.

// These are the opcodes that Shorten has to recognise.
const (
	opNop      = 0x01
	opDrop     = 0x1a
	opSelect   = 0x1b
	opLastLoad = 0x35
	opEqz32    = 0x45 // i32.eqz, the first test or comparison
	opEqz64    = 0x50
	opAdd32    = 0x6a
	opAdd64    = 0x7c
	opWrap     = 0xa7 // i32.wrap_i64, the first conversion
	opExtend   = 0xad // i64.extend_i32_u
	globalSP   = 0    // the global variable that contains the stack pointer
	localSP    = 1    // the local variable that contains a copy of the stack pointer
	shortLEB   = 4    // the maximum length in bytes of constants that Shorten changes
)

var errShorten = errors.New("the program's code does not have the form that Go 1.26 generates: " +
	"look at src/cmd/compile/internal/wasm/ssa.go, and adapt Shorten or remove it")

// Shorten returns a Go program in wasm with shorter code. It must run after Straighten, which
// expects the code of Go's linker.
func Shorten(file []byte) (out []byte, err error) {
	defer UnknownForm(&err, errShorten)
	code := readCode(file)
	code.change(func(_ int, body []byte) []byte { return shortenFunction(body) })
	return code.file(), nil
}

// instruction is an instruction with its operands in the encoding of wasm.
type instruction struct {
	op       byte
	operands []byte
}

// shortener collects the instructions of a function, and shortens them.
type shortener struct {
	list []instruction
	// stack describes the values at the top of wasm's stack. For an address on Go's stack, it
	// contains the index of the constant that is added to the stack pointer; for other values, -1.
	stack []int
	hasSP bool // whether the function copies globalSP to localSP
}

// shortenFunction returns the shortened body of a function.
func shortenFunction(body []byte) []byte {
	r := &functionCode{Reader: &Reader{File: body}}
	r.skipVariables()
	out := bytes.Clone(body[:r.At])
	s := &shortener{}
	for r.At < len(body) {
		start := r.At
		op := r.Next()
		r.readImmediates(op)
		s.add(instruction{op, body[start+1 : r.At]})
	}
	for _, is := range s.list {
		if is.op != opNop {
			out = append(append(out, is.op), is.operands...)
		}
	}
	return out
}

func (s *shortener) add(is instruction) {
	if is.op == opNop {
		return
	}
	address := -1
	switch op := is.op; {
	case op >= opLoad && op <= opLastLoad:
		address = s.top(0)
	case op > opLastLoad && op <= opStore:
		address = s.top(1)
	}
	s.trackStack(is)
	s.list = append(s.list, is)
	switch {
	case address >= 0:
		s.moveOffset(address)
	case s.endsWith(opGlobalGet, opSet) && len(s.list) == 2:
		s.hasSP = s.list[0].operands[0] == globalSP && s.list[1].operands[0] == localSP
	case s.endsWith(opExtend, opI64, opAdd64, opWrap) && s.fromEnd(3).isShort():
		c := s.fromEnd(3).operands
		s.replace(4, instruction{opI32, c}, instruction{op: opAdd32})
		if base := s.fromEnd(3); s.hasSP && base.op == opGet && base.operands[0] == localSP && c[len(c)-1] < 0x40 { // c is not negative
			s.stack[len(s.stack)-1] = len(s.list) - 2
		}
	case s.endsWith(opI64, opWrap) && s.fromEnd(2).isShort():
		s.replace(2, instruction{opI32, s.fromEnd(2).operands})
	case s.endsWith(opExtend, opEqz64):
		s.replace(2, instruction{op: opEqz32})
	case s.endsWith(opEqz32, opEqz32, opBranch2):
		s.replace(3, is)
	}
}

// moveOffset adds the constant of an address on the stack to the offset of the last instruction,
// which reads or writes at this address.
func (s *shortener) moveOffset(constant int) {
	last := &s.list[len(s.list)-1]
	offset, _ := binary.Uvarint(last.operands[1:]) // the first operand is the alignment
	c, _ := binary.Uvarint(s.list[constant].operands)
	if c+offset > math.MaxInt32 {
		return
	}
	last.operands = binary.AppendUvarint([]byte{last.operands[0]}, c+offset)
	s.list[constant].op, s.list[constant+1].op = opNop, opNop
}

func (s *shortener) fromEnd(n int) *instruction {
	if n > len(s.list) {
		return &instruction{}
	}
	return &s.list[len(s.list)-n]
}

func (s *shortener) endsWith(ops ...byte) bool {
	for i, op := range ops {
		if s.fromEnd(len(ops)-i).op != op {
			return false
		}
	}
	return true
}

// replace replaces the last n instructions.
func (s *shortener) replace(n int, by ...instruction) {
	s.list = append(s.list[:len(s.list)-n], by...)
}

func (is *instruction) isShort() bool { return len(is.operands) <= shortLEB }

// top returns the description of a value on the stack. The number of the top value is 0.
func (s *shortener) top(n int) int {
	if n >= len(s.stack) {
		return -1
	}
	return s.stack[len(s.stack)-1-n]
}

// trackStack applies the effect of an instruction to the description of the stack. Nothing is known
// about the stack after instructions that change the control flow.
func (s *shortener) trackStack(is instruction) {
	pops, pushes := 0, 0
	switch op := is.op; {
	case op == opGet, op == opGlobalGet, op >= opI32 && op <= opF64, op == opSize:
		pushes = 1
	case op == opSet, op == opGlobal, op == opDrop:
		pops = 1
	case op > opLastLoad && op <= opStore:
		pops = 2
	case op == opTee, op == opGrow, op >= opLoad && op <= opLastLoad, hasOneOperand(op), op == opMore && is.operands[0] <= opConvert:
		pops, pushes = 1, 1
	case op >= opEqz32 && op < opWrap:
		pops, pushes = 2, 1
	case op == opSelect:
		pops, pushes = 3, 1
	case op == opMore:
		pops = 3
	default:
		s.stack = nil
	}
	s.stack = s.stack[:max(0, len(s.stack)-pops)]
	for range pushes {
		s.stack = append(s.stack, -1)
	}
}

// hasOneOperand reports whether a numeric instruction replaces one value on the stack. Other numeric
// instructions replace two values.
func hasOneOperand(op byte) bool {
	switch {
	case op == opEqz32, op == opEqz64:
	case op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b: // leading zeros, trailing zeros and ones of integers
	case op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f: // abs to sqrt of floating-point numbers
	case op >= opWrap && op <= opLast:
	default:
		return false
	}
	return true
}
