// Package wasmcode changes the WebAssembly code of Go programs after linking. Empty removes the code
// of functions that are never called, Straighten makes the code faster, Shorten makes it shorter, and
// Fold makes it compress better.
package wasmcode

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"
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

// codeSection is a wasm file whose code section is divided into the bodies of the functions.
type codeSection struct {
	before, after []byte // the sections before and after the code section
	length        int    // length of the code section
	bodies        [][]byte
}

// readCode reads the code section of a file. It panics if the file has an unknown form.
func readCode(file []byte) *codeSection {
	r := &Reader{File: file, At: HeadBytes}
	for id, section := range r.Sections() {
		if id != CodeSection {
			continue
		}
		c := &codeSection{before: file[:section.Start], length: section.End - r.At}
		for range r.Unsigned() {
			length := r.Unsigned()
			c.bodies = append(c.bodies, file[r.At:r.At+length])
			r.At += length
		}
		if c.after = file[r.At:]; !r.Bad && firstFunction+len(c.bodies) <= mostFunctions {
			return c
		}
		break
	}
	panic(errors.New("the program has no code, ends too early, or has too many functions"))
}

// change replaces the body of each function. The first function has the number firstFunction.
func (c *codeSection) change(change func(number int, body []byte) []byte) {
	for i, body := range c.bodies {
		c.bodies[i] = change(firstFunction+i, body)
	}
}

// file returns the whole file.
func (c *codeSection) file() []byte {
	code := binary.AppendUvarint(nil, uint64(len(c.bodies)))
	for _, body := range c.bodies {
		code = append(binary.AppendUvarint(code, uint64(len(body))), body...)
	}
	return c.join(code, len(code))
}

// join returns the file with the given contents of the code section and the given length in the
// section's header.
func (c *codeSection) join(code []byte, length int) []byte {
	header := binary.AppendUvarint([]byte{CodeSection}, uint64(length))
	return slices.Concat(c.before, header, code, c.after)
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
