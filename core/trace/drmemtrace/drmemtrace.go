// Package drmemtrace reads the offline traces of DynamoRIO's drmemtrace (drcachesim) after their
// post-processing.
//
// A record is a struct trace_entry_t of DynamoRIO's clients/drcachesim/common/trace_entry.h, as
// written for a 64-bit program. Each record has 12 bytes and is little-endian.
//
//	offset  bytes
//	     0      2   type, trace_type_t
//	     2      2   size: bytes referenced, bytes of an instruction, ...
//	     4      8   address, or another value
//
// The first record has type 25, and its value is the version of the format (2 to 7). The types have
// the following meanings, as in DynamoRIO's clients/drcachesim/reader/reader.cpp:
//
//	0, 1              load, store of size bytes; its PC is the instruction before it
//	10 to 16, 31,     an instruction of size bytes: a fetch; size 0: only the PC of the
//	48, 49            data records after it
//	17                a bundle of size consecutive instructions; the bytes of the value are their lengths
//	29                an instruction without a fetch: a further iteration of a rep string loop
//	30                a fetch, unless the instruction before was the same
//	22                records from here on belong to the thread of this number
//	2 to 9, 18 to 21,  prefetches, flushes, ends of threads, processes, headers and footers,
//	23 to 28,          markers and encodings of instructions: no references of the program,
//	32 to 47           left out
//
// A trace consists of one file per thread or per core. [Merge] merges these files into one trace.
// Traces of 32-bit programs, whose records have 8 bytes, are not supported.
package drmemtrace

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/records"
)

// RecordBytes is the size of a record.
const RecordBytes = 12

const (
	sizeAt        = 2
	valueAt       = 4
	bundleLengths = 8 // maximum number of instructions of a bundle
)

const (
	typeRead        = 0
	typeWrite       = 1
	typeInstr       = 10
	typeInstrReturn = 16
	typeBundle      = 17
	typeThread      = 22
	typeHeader      = 25
	typeNoFetch     = 29
	typeMaybeFetch  = 30
	typeSysenter    = 31
	typeTakenJump   = 48
	typeUntakenJump = 49
)

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *records.Reader {
	return records.NewReader(name, "drmemtrace", r, &parser{})
}

type parser struct {
	pc      trace.Addr // address of the last instruction
	next    trace.Addr // address of the byte after that instruction
	pcs     bool       // whether an instruction has been read
	thread  uint32     // thread to which the records belong
	threads bool       // whether a thread record has been read
	bundled int        // number of instructions of the current bundle that have been read
}

// Header implements [records.Parser].
func (p *parser) Header() trace.Header {
	return trace.Header{Format: "drmemtrace", Threads: p.threads, PCs: p.pcs, Sizes: true}
}

// Begin adds the columns that have occurred in the trace so far.
func (p *parser) Begin(b *trace.Batch) {
	if p.pcs {
		b.NeedPC()
	}
	if p.threads {
		b.NeedThread()
	}
}

// Parse implements [records.Parser].
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, rows int, err error) {
	for len(window)-taken >= RecordBytes && row < b.Len() {
		record := (*[RecordBytes]byte)(window[taken:])
		kind := binary.LittleEndian.Uint16(record[:])
		size := binary.LittleEndian.Uint16(record[sizeAt:])
		value := binary.LittleEndian.Uint64(record[valueAt:])
		switch {
		case kind == typeRead || kind == typeWrite:
			row = p.reference(b, row, trace.Kind(kind), value, uint32(size))
		case isInstruction(kind):
			row = p.instruction(b, row, kind, value, uint32(size))
		case kind == typeBundle && size <= bundleLengths && p.pcs:
			if row = p.bundle(b, row, int(size), (*[8]byte)(record[valueAt:])); p.bundled < int(size) {
				return taken, row, nil
			}
			p.bundled = 0
		case kind == typeThread:
			if p.threads = true; b.Thread == nil && row > 0 {
				return taken, row, records.ErrEndBatch // end the batch, because its rows have no thread column
			}
			p.thread = uint32(value)
			b.NeedThread()
		case kind == typeBundle || kind > typeUntakenJump:
			return taken + RecordBytes, row, wrong(kind, size, int64(taken))
		}
		taken += RecordBytes
	}
	return taken, row, nil
}

// isInstruction reports whether a record represents one instruction.
func isInstruction(kind uint16) bool {
	switch kind {
	case typeNoFetch, typeMaybeFetch, typeSysenter, typeTakenJump, typeUntakenJump:
		return true
	}
	return kind >= typeInstr && kind <= typeInstrReturn
}

// instruction stores the PC of an instruction, and writes a row if the instruction was fetched.
func (p *parser) instruction(b *trace.Batch, row int, kind uint16, pc trace.Addr, bytes uint32) int {
	again := p.pcs && p.pc == pc
	p.pc, p.next, p.pcs = pc, pc+trace.Addr(bytes), true
	b.NeedPC()
	if bytes == 0 || kind == typeNoFetch || kind == typeMaybeFetch && again {
		return row
	}
	return p.reference(b, row, trace.Fetch, pc, bytes)
}

// bundle writes the rows of a bundle's instructions, starting with instruction p.bundled, until the
// batch is full.
func (p *parser) bundle(b *trace.Batch, row, count int, lengths *[8]byte) int {
	for ; p.bundled < count && row < b.Len(); p.bundled++ {
		bytes := lengths[p.bundled]
		p.pc, p.next = p.next, p.next+trace.Addr(bytes)
		row = p.reference(b, row, trace.Fetch, p.pc, uint32(bytes))
	}
	return row
}

func (p *parser) reference(b *trace.Batch, row int, kind trace.Kind, addr trace.Addr, bytes uint32) int {
	b.Addr[row], b.Bytes[row], b.Kind[row] = addr, bytes, kind
	if b.PC != nil {
		b.PC[row] = p.pc
	}
	if b.Thread != nil {
		b.Thread[row] = p.thread
	}
	return row + 1
}

func wrong(kind, size uint16, offset int64) error {
	what, got, want := "type", kind, "0 to "+strconv.Itoa(typeUntakenJump)
	if kind == typeBundle && size > bundleLengths {
		what, got, want = "number of instructions in a bundle", size, "at most "+strconv.Itoa(bundleLengths)
	} else if kind == typeBundle {
		want = "an instruction record before the first bundle"
	}
	return &trace.SyntaxError{Offset: offset, What: what, Got: strconv.Itoa(int(got)), Want: want}
}

// Recognise reports whether head, the beginning of a file, is a drmemtrace trace; if not, it
// returns the reason. The first record must be a header, and all records in head must have known
// types.
func Recognise(head []byte) (reason string, ok bool) {
	if len(head) < RecordBytes {
		return "the file is shorter than one record, which has " + strconv.Itoa(RecordBytes) + " bytes", false
	}
	if kind := binary.LittleEndian.Uint16(head); kind != typeHeader {
		return "the first record is of type " + strconv.Itoa(int(kind)) + ", want " + strconv.Itoa(typeHeader) + ", a header", false
	}
	const newest = 100 // larger than any plausible version number; so far, version numbers have one digit
	if version := binary.LittleEndian.Uint64(head[valueAt:]); version == 0 || version > newest {
		return "the header's version is " + strconv.FormatUint(version, 10), false
	}
	for n := 1; len(head) >= RecordBytes; n++ {
		if kind := binary.LittleEndian.Uint16(head); kind > typeUntakenJump {
			return "record " + strconv.Itoa(n) + " is of type " + strconv.Itoa(int(kind)), false
		}
		head = head[RecordBytes:]
	}
	return "", true
}
