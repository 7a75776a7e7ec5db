package main

import (
	"bytes"
	"errors"
	"slices"
)

// Many numbers in the code of a Go program follow from their position, but no compressor sees that, because
// they differ from place to place: they are a quarter of the compressed code. So the code is folded, which
// changes numbers but not the length of anything, and unfold.js unfolds it as it arrives, a function at a
// time, so that browsers compile while they load. For each function:
//
//   - the address behind a call, which the caller writes to the stack: an i64.const of 5 digits, the
//     function's number times 2^16 and the number of a block, which grows by one or two from call to
//     call. Folded to the step from the previous one; its last two digits are 0, which other numbers
//     of 5 digits never need;
//   - how many blocks a branch leaves, which decreases with each block that ends before it. Folded to
//     how many blocks it stays in: mostly one, the whole function, or two, its loop;
//   - the table by which a function jumps to a block: each entry to the step from the previous one;
//   - the target block of a jump, an i32.const before local.set 0: to the distance from the block
//     behind the last call.
//
// The last three keep their digits, seven bits each, and are taken modulo the range of those. Folded code
// begins with a custom section that says so.

// foldedMark is that section: its kind, 0, its length, and its name with length.
var foldedMark = []byte("\x00\x07\x06folded")

// Instructions.
const (
	opBlock   = 0x02
	opIf      = 0x04
	opEnd     = 0x0b
	opBranch  = 0x0c
	opBranch2 = 0x0d // br_if
	opTable   = 0x0e
	opCall    = 0x10
	opCall2   = 0x11 // call_indirect
	opGet     = 0x20 // the first of those of variables
	opSet     = 0x21
	opGlobal  = 0x24 // the last
	opLoad    = 0x28
	opStore   = 0x3e
	opSize    = 0x3f
	opGrow    = 0x40
	opI32     = 0x41
	opI64     = 0x42
	opF32     = 0x43
	opF64     = 0x44
	opLast    = 0xc4 // of those without numbers
	opMore    = 0xfc

	opConvert = 7 // the last of opMore's that have no number
	opCopy    = 10
	opFill    = 11
)

const (
	codeSection   = 10
	firstFunction = 0x1000 // the number of the first one in the code (funcValueOffset)
	addressDigits = 5
)

var errCode = errors.New("the code of the program has not the form that is known of Go 1.26: " +
	"look at src/cmd/link/internal/wasm/asm.go, and mend foldCode or leave it out")

// foldCode returns a wasm file with its code folded. If unfolding does not restore the file, its form is
// unknown.
func foldCode(file []byte) (folded []byte, err error) {
	defer unknownForm(&err, errCode)
	folded = slices.Insert(bytes.Clone(file), headBytes, foldedMark...)
	same := bytes.Clone(folded)
	changeCode(folded, false)
	again := bytes.Clone(folded)
	changeCode(again, true)
	if bytes.Equal(folded, same) || !bytes.Equal(again, same) {
		return nil, errCode
	}
	return folded, nil
}

// unknownForm, deferred, turns a panic into an error: a program in an unknown form makes indices wrong.
func unknownForm(err *error, form error) {
	if recover() != nil {
		*err = form
	}
}

// changeCode folds a file's code or, like unfold.js, unfolds it.
func changeCode(file []byte, unfold bool) {
	r := &wasmReader{file: file, at: headBytes}
	for id := range r.sections() {
		if id != codeSection {
			continue
		}
		for number := range r.unsigned() {
			end := r.unsigned() + r.at
			if r.bad || end > len(file) {
				panic(errCode)
			}
			f := &functionCode{wasmReader: r, unfold: unfold, address: uint32(firstFunction+number) << 16}
			f.change(end)
		}
	}
	if r.bad {
		panic(errCode)
	}
}

// functionCode is a reader at the code of one function.
type functionCode struct {
	*wasmReader
	unfold  bool
	address uint32 // behind the last call
	depth   uint32 // number of open blocks
	digits  []byte // of the last number
}

func (f *functionCode) change(end int) {
	for range f.number() { // kinds of local variables: number and kind
		f.number()
		f.at++
	}
	for f.at < end {
		f.instruction(f.next())
	}
	if f.at != end {
		panic(errCode)
	}
}

// instruction skips one instruction, and changes its numbers.
func (f *functionCode) instruction(op byte) {
	switch {
	case op >= opBlock && op <= opIf:
		f.depth++
		f.number()
	case op == opEnd:
		f.depth--
	case op == opBranch, op == opBranch2:
		f.put(f.depth - f.number())
	case op == opTable:
		f.table()
	case op == opI32:
		f.jump()
	case op == opI64:
		f.constant()
	case op == opF32:
		f.at += 4
	case op == opF64:
		f.at += 8
	case op == opCall, op >= opGet && op <= opGlobal:
		f.number()
	case op == opCall2, op >= opLoad && op <= opStore:
		f.number()
		f.number()
	case op == opSize, op == opGrow:
		f.at++
	case op == opMore:
		f.more()
	case op > opLast:
		panic(errCode)
	}
}

func (f *functionCode) more() {
	switch op := f.next(); {
	case op == opCopy:
		f.at += 2
	case op == opFill:
		f.at++
	case op > opConvert:
		panic(errCode)
	}
}

func (f *functionCode) table() {
	last := uint32(0)
	for range f.number() + 1 {
		is := f.number()
		if f.unfold {
			last += is
			f.put(last)
			last &= 1<<(7*len(f.digits)) - 1
		} else {
			f.put(is - last)
			last = is
		}
	}
}

func (f *functionCode) jump() {
	block, from := f.number(), f.address&0xffff
	switch {
	case f.file[f.at] != opSet || f.file[f.at+1] != 0:
	case f.unfold:
		f.put(block + from)
	default:
		f.put(block - from)
	}
}

func (f *functionCode) constant() {
	is := f.number()
	if len(f.digits) != addressDigits {
		return
	}
	switch {
	case f.unfold && f.digits[3] == 0x80 && f.digits[4] == 0:
		f.address += is
		f.write(f.address)
	case !f.unfold && is>>16 == f.address>>16 && is >= f.address:
		f.write(is - f.address)
		f.address = is
	}
}

// number reads a number, of which it returns the lowest 32 bits.
func (f *functionCode) number() (n uint32) {
	start := f.at
	for shift := 0; ; shift += 7 {
		b := f.file[f.at] // panics at the end
		f.at++
		n |= uint32(b&0x7f) << shift
		if b < 0x80 {
			f.digits = f.file[start:f.at]
			return n
		}
	}
}

// put overwrites the number that was read last, if its digits have less than 32 bits.
func (f *functionCode) put(n uint32) {
	if len(f.digits) < addressDigits {
		f.write(n)
	}
}

func (f *functionCode) write(n uint32) {
	for i := range f.digits {
		f.digits[i] = f.digits[i]&0x80 | byte(n>>(7*i))&0x7f
	}
}
