package main

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/stackglass/stackglass/tools/internal/wasmcode"
)

// A wasm file contains the program's data in segments. Go's linker starts a new segment after every
// few zero bytes, up to the 100,000 segments that engines allow. The addresses of these segments
// would account for 7 % of the bytes of a first visit. Zeros compress to almost nothing, so
// changeData ends a segment only at a long gap of zeros.

// gapBytes is the minimum number of zero bytes between two segments.
const gapBytes = 4096

// changeData applies changes to the data of a wasm file, and returns the file with the data in few
// segments.
func changeData(file []byte, changes ...func(memory []byte) error) ([]byte, error) {
	section, segments, err := dataSegments(file)
	if err != nil {
		return nil, err
	}
	memory := initialMemory(file, segments)
	for _, change := range changes {
		if err := change(memory); err != nil {
			return nil, err
		}
	}
	body := appendSegments(nil, memory)
	out := bytes.Clone(file[:section.Start])
	out = append(out, dataSection)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(append(out, body...), file[section.End:]...), nil
}

// appendSegments appends the body of a data section that contains the given memory.
func appendSegments(out, memory []byte) []byte {
	spans := nonzeroSpans(memory)
	out = binary.AppendUvarint(out, uint64(len(spans)))
	for _, p := range spans {
		out = append(out, 0, i32const)
		out = wasmcode.AppendSigned(out, int64(p.Start))
		out = append(out, endOfExpression)
		out = binary.AppendUvarint(out, uint64(p.End-p.Start))
		out = append(out, memory[p.Start:p.End]...)
	}
	return out
}

// nonzeroSpans returns the spans of a memory that are separated by long gaps of zeros.
func nonzeroSpans(memory []byte) (spans []wasmcode.Span) {
	for at, zeros := 0, gapBytes; at < len(memory); at++ {
		switch {
		case memory[at] == 0:
			zeros++
			continue
		case zeros >= gapBytes:
			spans = append(spans, wasmcode.Span{Start: at, End: at + 1})
		default:
			spans[len(spans)-1].End = at + 1
		}
		zeros = 0
	}
	return spans
}

// segment is a data segment of a wasm file, which is copied to memory when the program starts.
type segment struct{ file, memory, bytes int }

const (
	dataSection     = 11
	i32const        = 0x41
	endOfExpression = 0x0b
)

// dataSegments returns the data segments and the section that contains them.
func dataSegments(file []byte) (section wasmcode.Span, list []segment, err error) {
	r := &wasmcode.Reader{File: file, At: wasmcode.HeadBytes}
	for id, whole := range r.Sections() {
		if id != dataSection {
			continue
		}
		section = whole
		for range r.Unsigned() {
			if s, ok := readSegment(r); ok {
				list = append(list, s)
			}
		}
	}
	if r.Bad || len(list) == 0 {
		return section, nil, errors.New("the wasm file has no data segments at constant addresses")
	}
	return section, list, nil
}

// initialMemory returns the program's memory as the data segments initialise it.
func initialMemory(file []byte, segments []segment) []byte {
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

// readSegment reads a data segment, which consists of memory 0, i32.const, the address, end, and
// the bytes.
func readSegment(r *wasmcode.Reader) (s segment, ok bool) {
	ok = r.Next() == 0 && r.Next() == i32const
	s.memory = r.Unsigned() & (1<<32 - 1) // the constant is signed, so the mask matters for addresses of 2 GiB or more
	ok = r.Next() == endOfExpression && ok
	s.bytes = r.Unsigned()
	s.file = r.At
	r.At += s.bytes
	if !ok || r.At > len(r.File) {
		r.Bad = true
		return segment{}, false
	}
	return s, true
}
