// Package wasmcode changes the WebAssembly code of Go programs after linking. Straighten makes the
// code faster, Shorten makes it shorter, and Fold makes it compress better.
package wasmcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
)

// HeadBytes is the length of the header of a wasm file, before the first section.
const HeadBytes = 8

// CodeSection is the kind of the section that contains the code of functions.
const CodeSection = 10

// Reader reads numbers from a wasm file.
type Reader struct {
	File []byte
	At   int
	Bad  bool // whether the file ended too early
}

// Sections yields the kind and the span of each section. Before each iteration, Sections positions
// the reader at the content of the section.
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

// changeFunctions returns a wasm file in which the body of each function is replaced by the result
// of the function change. The first function has the number firstFunction. If keepLength is true, the
// header of the code section keeps the length of the section. changeFunctions panics if the file has
// an unknown form.
func changeFunctions(file []byte, keepLength bool, change func(number int, body []byte) []byte) []byte {
	r := &Reader{File: file, At: HeadBytes}
	for id, section := range r.Sections() {
		if id != CodeSection {
			continue
		}
		contents := r.At
		n := r.Unsigned()
		if firstFunction+n > mostFunctions {
			panic(errors.New("the program has too many functions"))
		}
		code := binary.AppendUvarint(nil, uint64(n))
		for number := range n {
			length := r.Unsigned()
			end := r.At + length
			body := change(firstFunction+number, file[r.At:end])
			code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
			r.At = end
		}
		if r.Bad {
			break
		}
		length := len(code)
		if keepLength {
			length = section.End - contents
		}
		out := append(bytes.Clone(file[:section.Start]), CodeSection)
		out = binary.AppendUvarint(out, uint64(length))
		return append(append(out, code...), file[r.At:]...)
	}
	panic(errors.New("the program has no code, or ends too early"))
}

// Next reads and returns the next byte.
func (r *Reader) Next() byte {
	if r.At >= len(r.File) {
		r.Bad = true
		return 0
	}
	r.At++
	return r.File[r.At-1]
}

// Unsigned reads an unsigned number of up to 35 bits, seven bits per byte.
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

// Span is a contiguous part of a file or of a WebAssembly memory.
type Span struct{ Start, End int }

// AppendSigned appends a signed wasm constant: seven bits per byte, with the sign in the last byte.
func AppendSigned(out []byte, n int64) []byte {
	for n < -64 || n > 63 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n)&0x7f)
}

// UnknownForm is for use in a defer statement. If the function panics, for example because an index
// is out of range in a program of an unknown form, UnknownForm sets *err to the given error.
func UnknownForm(err *error, form error) {
	if recover() != nil {
		*err = form
	}
}
