package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
)

// A wasm file contains the program's data in segments. Go's linker begins a segment wherever a few bytes
// are zero, up to the 100,000 segments that engines allow, whose addresses were a fifteenth of what a first
// visit transferred. Zeros compress to nothing, so here only a long gap of zeros ends a segment.

// gapBytes is the least number of zeros between two segments.
const gapBytes = 4096

// changeData returns a wasm file with changed data, in few segments.
func changeData(file []byte, changes ...func(memory []byte) error) ([]byte, error) {
	section, segments, err := dataSegments(file)
	if err != nil {
		return nil, err
	}
	memory := image(file, segments)
	for _, change := range changes {
		if err := change(memory); err != nil {
			return nil, err
		}
	}
	body := appendSegments(nil, memory)
	out := bytes.Clone(file[:section.start])
	out = append(out, dataSection)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(append(out, body...), file[section.end:]...), nil
}

// appendSegments writes a data section for a memory.
func appendSegments(out, memory []byte) []byte {
	pieces := piecesOf(memory)
	out = binary.AppendUvarint(out, uint64(len(pieces)))
	for _, p := range pieces {
		out = append(out, 0, i32const)
		out = appendSigned(out, int64(p.start))
		out = append(out, endOfExpression)
		out = binary.AppendUvarint(out, uint64(p.end-p.start))
		out = append(out, memory[p.start:p.end]...)
	}
	return out
}

// span is part of a file or of a memory.
type span struct{ start, end int }

// piecesOf returns the parts of a memory between long gaps of zeros.
func piecesOf(memory []byte) (pieces []span) {
	for at, zeros := 0, gapBytes; at < len(memory); at++ {
		switch {
		case memory[at] == 0:
			zeros++
			continue
		case zeros >= gapBytes:
			pieces = append(pieces, span{at, at + 1})
		default:
			pieces[len(pieces)-1].end = at + 1
		}
		zeros = 0
	}
	return pieces
}

// appendSigned writes a constant of wasm: seven bits a byte, the last with the sign.
func appendSigned(out []byte, n int64) []byte {
	for n < -64 || n > 63 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n)&0x7f)
}

// segment is a part of a wasm file that is copied to memory at the start.
type segment struct{ file, memory, bytes int }

const (
	headBytes       = 8
	dataSection     = 11
	i32const        = 0x41
	endOfExpression = 0x0b
)

// dataSegments returns the data segments, and their section.
func dataSegments(file []byte) (section span, list []segment, err error) {
	r := &wasmReader{file: file, at: headBytes}
	for id, whole := range r.sections() {
		if id != dataSection {
			continue
		}
		section = whole
		for range r.unsigned() {
			if s, ok := r.segment(); ok {
				list = append(list, s)
			}
		}
	}
	if r.bad || len(list) == 0 {
		return section, nil, errors.New("the wasm file has no data segments that begin at constants")
	}
	return section, list, nil
}

// image returns the memory that segments fill.
func image(file []byte, segments []segment) []byte {
	size := 0
	for _, s := range segments {
		size = max(size, s.memory+s.bytes)
	}
	memory := make([]byte, size)
	for _, s := range segments {
		copy(memory[s.memory:], file[s.file:s.file+s.bytes])
	}
	return memory
}

// wasmReader reads numbers of a wasm file; bad reports that it ended too early.
type wasmReader struct {
	file []byte
	at   int
	bad  bool
}

// sections yields the kind and place of each section, with the reader at its content.
func (r *wasmReader) sections() iter.Seq2[byte, span] {
	return func(yield func(byte, span) bool) {
		for r.at < len(r.file) && !r.bad {
			start := r.at
			id := r.next()
			length := r.unsigned()
			end := r.at + length
			if !yield(id, span{start, end}) {
				return
			}
			r.at = end
		}
	}
}

func (r *wasmReader) next() byte {
	if r.at >= len(r.file) {
		r.bad = true
		return 0
	}
	r.at++
	return r.file[r.at-1]
}

// unsigned reads a number of up to 35 bits, seven at a time.
func (r *wasmReader) unsigned() int {
	n := 0
	for shift := 0; shift < 35; shift += 7 {
		b := r.next()
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.bad = true
	return 0
}

// segment reads a segment: memory 0, i32.const, the address, end, the bytes.
func (r *wasmReader) segment() (s segment, ok bool) {
	ok = r.next() == 0 && r.next() == i32const
	s.memory = r.unsigned() & (1<<32 - 1) // addresses below 2 GiB end in a positive digit
	ok = r.next() == endOfExpression && ok
	s.bytes = r.unsigned()
	s.file = r.at
	r.at += s.bytes
	if !ok || r.at > len(r.file) {
		r.bad = true
		return segment{}, false
	}
	return s, true
}
