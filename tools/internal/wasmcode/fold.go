package wasmcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// Many numbers in the code of a Go program can be computed from their positions. A compressor
// cannot exploit this dependence, because the numbers are all different. These numbers account for
// a quarter of the compressed code. Folding replaces these numbers with other numbers of the same
// length. unfold.js restores the numbers as the file arrives, one function at a time, so that
// browsers can compile the code while it loads. For each function, these numbers are replaced:
//
//   - the return address of a call, which the caller writes to the stack: an i64.const of 5 bytes.
//     Its value is the function's number times 2^16, plus a block number, which increases by one or
//     two from call to call. The address is replaced by its difference from the previous return
//     address. The last two bytes of the difference are 0x80 and 0. No other number of 5 bytes ends
//     with these two bytes;
//   - the number of blocks that the conditional branch after a call leaves, which decreases with
//     each block that ends before the branch. The number is replaced by the number of blocks that
//     the branch does not leave, which is usually 1 (the function itself). Such a branch is
//     recognised by the local.set of the stack pointer before it;
//   - the jump table of a function: each entry is replaced by the difference from the previous
//     entry.
//
// Numbers of the last two kinds keep their length in LEB128 bytes. Differences are computed modulo
// the range of numbers of this length. Afterwards, frequent sequences of instructions are replaced by
// single bytes (see phrases.go). The lengths of functions are omitted, because a function ends with
// the instruction that closes its outermost block. Instead, each group of functions begins with the
// length of the group, so that unfold.js knows when the whole group has arrived. A file with folded
// code begins with a custom section, which contains the sequences of instructions. The header of the
// code section contains the length of the unfolded code.

// These are the opcodes that Fold has to recognise.
const (
	opBlock   = 0x02
	opIf      = 0x04
	opEnd     = 0x0b
	opBranch  = 0x0c
	opBranch2 = 0x0d // the instruction br_if
	opTable   = 0x0e
	opCall    = 0x10
	opCall2   = 0x11 // the instruction call_indirect
	opGet     = 0x20 // local.get, the first opcode for variables
	opSet     = 0x21
	opGlobal  = 0x24 // global.set, the last opcode for variables
	opLoad    = 0x28
	opStore   = 0x3e
	opSize    = 0x3f
	opGrow    = 0x40
	opI32     = 0x41
	opI64     = 0x42
	opF32     = 0x43
	opF64     = 0x44
	opLast    = 0xc4 // the last numeric opcode, which has no immediates
	opMore    = 0xfc

	opConvert = 7 // after the prefix opMore: the last opcode without immediates
	opCopy    = 10
	opFill    = 11
)

const (
	// the number that Go assigns to the first function in the code (funcValueOffset)
	firstFunction = 0x1000
	mostFunctions = 1 << 18 // maximum number of functions, so that every address takes addressBytes LEB128 bytes
	addressBytes  = 5
)

var errCode = errors.New("the program's code does not have the form that Go 1.26 generates: " +
	"look at src/cmd/link/internal/wasm/asm.go, and adapt Fold or remove it")

// Fold returns a wasm file whose code is folded, so that the file compresses better. Fold returns
// an error if unfolding would not restore the file, because the code has an unknown form.
func Fold(file []byte) (folded []byte, err error) {
	defer UnknownForm(&err, errCode)
	marked := slices.Concat(file[:HeadBytes], foldedMark, file[HeadBytes:])
	c := readCode(marked)
	code := binary.AppendUvarint(nil, uint64(len(c.bodies)))
	c.change(func(number int, body []byte) []byte { return shrink(changeNumbers(body, number, false)) })
	for group := range slices.Chunk(c.bodies, functionsInGroup) {
		joined := slices.Concat(group...)
		code = append(binary.AppendUvarint(code, uint64(len(joined))), joined...)
	}
	folded = c.join(code, c.length)
	if !bytes.Equal(unfold(folded), marked) {
		return nil, errCode
	}
	return folded, nil
}

// functionsInGroup is the number of functions in a group. The last group may be smaller.
const functionsInGroup = 64

// unfold restores a file as unfold.js does, including the mark of folded code.
func unfold(file []byte) []byte {
	r := &Reader{File: file, At: HeadBytes}
	for id, section := range r.Sections() {
		if id != CodeSection {
			continue
		}
		c := &codeSection{before: file[:section.Start]}
		for number := range r.Unsigned() {
			if number%functionsInGroup == 0 {
				r.Unsigned()
			}
			body, length := expand(file[r.At:])
			c.bodies = append(c.bodies, changeNumbers(body, firstFunction+number, true))
			r.At += length
		}
		c.after = file[r.At:]
		return c.file()
	}
	panic(errCode)
}

// changeNumbers returns the body of a function with folded or unfolded numbers.
func changeNumbers(body []byte, number int, unfold bool) []byte {
	body = bytes.Clone(body)
	f := &functionCode{Reader: &Reader{File: body}, unfold: unfold, lastReturn: uint32(number) << 16}
	f.skipVariables()
	for f.At < len(body) {
		op := f.Next()
		f.changeImmediates(op)
		f.previous = op
	}
	return body
}

// functionCode reads and changes the code of one function.
type functionCode struct {
	*Reader
	unfold     bool
	lastReturn uint32 // return address of the last call
	depth      uint32 // nesting depth of wasm blocks at the current position
	previous   byte   // the previous instruction
	encoded    []byte // the LEB128 bytes of the last number read
}

// changeImmediates reads the immediates of one instruction, and folds or unfolds them.
func (f *functionCode) changeImmediates(op byte) {
	switch {
	case op >= opBlock && op <= opIf:
		f.depth++
		f.readNumber()
	case op == opEnd:
		f.depth--
	case op == opBranch2 && f.previous == opSet:
		f.overwrite(f.depth - f.readNumber())
	case op == opTable:
		f.table()
	case op == opI64:
		f.constant()
	default:
		f.readImmediates(op)
	}
}

// skipVariables reads the declarations of a function's local variables: groups, each with a count
// and a type.
func (f *functionCode) skipVariables() {
	for range f.readNumber() {
		f.readNumber()
		f.At++
	}
}

// readImmediates reads the immediates of one instruction.
func (f *functionCode) readImmediates(op byte) {
	switch {
	case op == opTable:
		for range f.readNumber() + 1 {
			f.readNumber()
		}
	case op == opF32:
		f.At += 4
	case op == opF64:
		f.At += 8
	case op >= opBlock && op <= opIf, op == opBranch, op == opBranch2, op == opCall,
		op >= opGet && op <= opGlobal, op == opI32, op == opI64:
		f.readNumber()
	case op == opCall2, op >= opLoad && op <= opStore:
		f.readNumber()
		f.readNumber()
	case op == opSize, op == opGrow:
		f.At++
	case op == opMore:
		f.more()
	case op > opLast:
		panic(errCode)
	}
}

func (f *functionCode) more() {
	switch op := f.Next(); {
	case op == opCopy:
		f.At += 2
	case op == opFill:
		f.At++
	case op > opConvert:
		panic(errCode)
	}
}

func (f *functionCode) table() {
	last := uint32(0)
	for range f.readNumber() + 1 {
		is := f.readNumber()
		if f.unfold {
			last += is
			f.overwrite(last)
			last &= 1<<(7*len(f.encoded)) - 1
		} else {
			f.overwrite(is - last)
			last = is
		}
	}
}

func (f *functionCode) constant() {
	is := f.readNumber()
	if len(f.encoded) != addressBytes {
		return
	}
	switch {
	case f.unfold && f.encoded[3] == 0x80 && f.encoded[4] == 0:
		f.lastReturn += is
		f.write(f.lastReturn)
	case !f.unfold && is>>16 == f.lastReturn>>16 && is >= f.lastReturn:
		f.write(is - f.lastReturn)
		f.lastReturn = is
	}
}

// readNumber reads a LEB128 number and returns its lowest 32 bits.
func (f *functionCode) readNumber() (n uint32) {
	start := f.At
	for shift := 0; ; shift += 7 {
		b := f.File[f.At] // the index panics at the end of the file
		f.At++
		n |= uint32(b&0x7f) << shift
		if b < 0x80 {
			f.encoded = f.File[start:f.At]
			return n
		}
	}
}

// readSigned reads a signed LEB128 number.
func (f *functionCode) readSigned() int {
	n := int(int32(f.readNumber()))
	bits := 7 * len(f.encoded)
	if bits < 32 {
		n = n << (64 - bits) >> (64 - bits)
	}
	return n
}

// overwrite replaces the last number read, but only if that number has fewer than addressBytes
// bytes.
func (f *functionCode) overwrite(n uint32) {
	if len(f.encoded) < addressBytes {
		f.write(n)
	}
}

func (f *functionCode) write(n uint32) {
	for i := range f.encoded {
		f.encoded[i] = f.encoded[i]&0x80 | byte(n>>(7*i))&0x7f
	}
}
