// Package wasmcode changes the code of Go programs for WebAssembly after they were linked: Straighten makes it
// faster, and Fold makes it compress better.
package wasmcode

import "iter"

// HeadBytes is the length of the head of a wasm file, which no section has.
const HeadBytes = 8

// CodeSection is the kind of the section with the code of functions.
const CodeSection = 10

// Reader reads numbers of a wasm file.
type Reader struct {
	File []byte
	At   int
	Bad  bool // the file ended too early
}

// Sections yields the kind and place of each section, with the reader at its content.
func (r *Reader) Sections() iter.Seq2[byte, Span] {
	return func(yield func(byte, Span) bool) {
		for r.At < len(r.File) && !r.Bad {
			start := r.At
			id := r.Next()
			length := r.Unsigned()
			end := r.At + length
			if !yield(id, Span{start, end}) {
				return
			}
			r.At = end
		}
	}
}

// Next reads a byte.
func (r *Reader) Next() byte {
	if r.At >= len(r.File) {
		r.Bad = true
		return 0
	}
	r.At++
	return r.File[r.At-1]
}

// Unsigned reads a number of up to 35 bits, seven at a time.
func (r *Reader) Unsigned() int {
	n := 0
	for shift := 0; shift < 35; shift += 7 {
		b := r.Next()
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.Bad = true
	return 0
}

// Span is part of a file or of a memory.
type Span struct{ Start, End int }

// AppendSigned writes a constant of wasm: seven bits a byte, the last with the sign.
func AppendSigned(out []byte, n int64) []byte {
	for n < -64 || n > 63 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n)&0x7f)
}

// UnknownForm, deferred, turns a panic into an error: a program in an unknown form makes indices wrong.
func UnknownForm(err *error, form error) {
	if recover() != nil {
		*err = form
	}
}
