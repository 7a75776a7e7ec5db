package wasmcode

import (
	"bytes"
	"math"
	"slices"
)

// A Go program repeats a few sequences of instructions very often, for example the instructions of a
// call. A compressor refers to an earlier copy of such a sequence, which takes two or three bytes. A
// folded file instead contains one byte for each sequence in the list phrases: an opcode that wasm
// does not use. A phrase begins with an opcode, and may end before the operands of its last
// instruction. These operands then follow the byte.

// firstPhrase is the opcode for the first phrase.
const firstPhrase = opLast + 1

// foldedMark is the section that marks folded code. It consists of the section's kind (0) and
// length, the name "folded" after its length, and the phrases, each after its length.
var foldedMark = func() []byte {
	content := []byte("\x06folded")
	for _, p := range phrases {
		content = append(append(content, byte(len(p))), p...)
	}
	if len(content) < 1<<7 || len(content) >= 1<<14 || firstPhrase+len(phrases) > opMore {
		panic("the list of phrases is too short or too long")
	}
	return slices.Concat([]byte{0, byte(len(content)) | 0x80, byte(len(content) >> 7)}, content)
}()

// phrasesByOpcode contains the indices of the phrases that begin with each opcode, the longest
// phrases first.
var phrasesByOpcode = func() (list [256][]int) {
	for i, p := range phrases {
		list[p[0]] = append(list[p[0]], i)
	}
	for _, l := range list {
		slices.SortStableFunc(l, func(a, b int) int { return len(phrases[b]) - len(phrases[a]) })
	}
	return list
}()

// shrink replaces phrases in the body of a function. At each instruction, it uses the longest phrase
// that fits.
func shrink(body []byte) []byte {
	r := &functionCode{Reader: &Reader{File: body}}
	r.skipVariables()
	out := bytes.Clone(body[:r.At])
	for r.At < len(body) {
		start := r.At
		rest := start // the bytes that are copied
		if i := phraseAt(body[start:]); i >= 0 {
			out = append(out, byte(firstPhrase+i))
			rest += len(phrases[i])
		}
		r.readInstructions(max(rest, start+1))
		out = append(out, body[rest:r.At]...)
	}
	return out
}

func phraseAt(code []byte) int {
	for _, i := range phrasesByOpcode[code[0]] {
		if bytes.HasPrefix(code, []byte(phrases[i])) {
			return i
		}
	}
	return -1
}

// readInstructions reads whole instructions until it has reached a position.
func (f *functionCode) readInstructions(to int) {
	for f.At < to {
		op := f.Next()
		switch {
		case op >= opBlock && op <= opIf:
			f.depth++
		case op == opEnd:
			f.depth--
		}
		f.readImmediates(op)
	}
}

// mostOperands is the maximum number of bytes of the operands that follow a phrase.
const mostOperands = 20

// expand restores the body of a function after shrink. It also returns the length of the shrunk body,
// which is at the beginning of code.
func expand(code []byte) (body []byte, length int) {
	r := &functionCode{Reader: &Reader{File: code}}
	r.skipVariables()
	body = bytes.Clone(code[:r.At])
	for ended := uint32(math.MaxUint32); r.depth != ended; {
		start := r.At
		i := int(code[start]) - firstPhrase
		if i < 0 || i >= len(phrases) {
			r.readInstructions(start + 1)
			body = append(body, code[start:r.At]...)
			continue
		}
		operands := code[start+1 : min(start+1+mostOperands, len(code))]
		whole := &functionCode{Reader: &Reader{File: slices.Concat([]byte(phrases[i]), operands)}, depth: r.depth}
		whole.readInstructions(len(phrases[i]))
		body = append(body, whole.File[:whole.At]...)
		r.At, r.depth = start+1+whole.At-len(phrases[i]), whole.depth
	}
	return body, r.At
}

// phrases lists frequent sequences of instructions. Byte-pair encoding of app.wasm found them: the most
// frequent pair of adjacent opcodes, operands or pairs was replaced repeatedly. The file would be
// 0.3 % larger with 54 phrases, and 0.1 % larger with 30 phrases.
var phrases = []string{
	"\x00\x0b\x41\x01", // end of a function that may wait
	"\x02\x40\x02\x40\x02\x40\x02\x40",
	"\x02\x40\x02\x40\x02\x40\x02\x40\x02\x40\x02\x40\x02\x40\x02\x40",
	"\x0b\x20\x01\x29\x03",
	"\x20\x01",
	"\x20\x01\x20",
	"\x20\x01\x20\x01\x29\x03",
	"\x20\x01\x20\x02",
	"\x20\x01\x20\x02\x37\x03",
	"\x20\x01\x20\x03",
	"\x20\x01\x20\x03\x37\x03",
	"\x20\x01\x20\x04",
	"\x20\x01\x29\x03", // load from the stack
	"\x20\x01\x41",
	"\x20\x01\x41\x08\x6b\x22\x01\x24\x00\x20\x01\x42", // call: reserve the word for the return address
	"\x20\x01\x41\x08\x6b\x22\x01\x24\x00\x20\x01\x42\x81\x80\x80\x80\x00\x37\x03\x00\x41\x00\x10",
	"\x20\x01\x41\x08\x6b\x22\x01\x24\x00\x20\x01\x42\x82\x80\x80\x80\x00",
	"\x20\x01\x41\x08\x6b\x22\x01\x24\x00\x20\x01\x42\x82\x80\x80\x80\x00\x37\x03\x00\x41\x00\x10",
	"\x20\x01\x42",
	"\x20\x01\x42\x00",
	"\x20\x02",
	"\x21\x00\x0c",
	"\x21\x02\x20\x01\x20\x02\x37\x03",
	"\x21\x02\x20\x01\x29\x03",
	"\x21\x03\x20\x01\x29\x03",
	"\x23\x00\x21\x01",
	"\x23\x00\x21\x01\x0d\x01\x0b", // after a call: read the stack pointer, and return if the goroutine waits
	"\x23\x00\x21\x01\x0d\x01\x0b\x20\x01\x29\x03",
	"\x23\x00\x21\x01\x0d\x01\x0b\x20\x01\x41",
	"\x37\x03", // store
	"\x37\x03\x00",
	"\x37\x03\x00\x41\x00\x10",
	"\x37\x03\x08",
	"\x37\x03\x10",
	"\x50\x04\x40",
	"\x6a\x22\x01\x24\x00\x20\x01\x41\x08\x6a\x22\x01\x24\x00\x41\x00\x0f", // return
	"\x6b\x22\x01\x24\x00",
	"\xa7\x20\x01\x29\x03",
	"\xa7\x29\x03", // load at an address
	"\xa7\x29\x03\x00",
}
