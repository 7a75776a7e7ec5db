// Package champsim reads the instruction traces that the tracers of the simulator ChampSim write
// (usually compressed with xz or gzip).
//
// A record describes one executed instruction. The record is a struct input_instr of ChampSim's
// inc/trace_instruction.h, which has 64 bytes and is little-endian. The file has no header.
//
//	offset  bytes
//	     0      8   address of the instruction
//	     8      1   1 if it is a branch, else 0
//	     9      1   1 if the branch was taken, else 0
//	    10      2   registers written
//	    12      4   registers read
//	    16   2 x 8  addresses stored to; 0 for none
//	    32   4 x 8  addresses loaded from; 0 for none
//
// Each record becomes several rows: one for the instruction fetch, one for each load, and one for
// each store, in this order. The PC of each row is the instruction's address. The format contains
// neither sizes nor threads (each file is the trace of one core). ChampSim's longer record,
// cloudsuite_instr, is not supported.
package champsim

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/records"
)

const (
	recordBytes  = 64
	branchAt     = 8
	takenAt      = 9
	storesAt     = 16
	loadsAt      = 32
	stores       = 2
	loads        = 4
	slots        = 1 + loads + stores // a record becomes one fetch, followed by the loads and the stores
	firstLoad    = 1
	firstStore   = 1 + loads
	canonicalTop = 47 // all higher bits of an x86-64 or AArch64 user address are equal
)

// NewReader returns a reader for the trace in r. Errors refer to the trace by the given name.
func NewReader(name string, r io.Reader) *records.Reader {
	return records.NewReader(name, "champsim", r, &parser{})
}

type parser struct {
	slot int // index of the current record's next slot to be written as a row
}

// Header implements [records.Parser].
func (p *parser) Header() trace.Header { return trace.Header{Format: "champsim", PCs: true} }

// Begin adds the PC column.
func (p *parser) Begin(b *trace.Batch) { b.NeedPC() }

// Parse implements [records.Parser].
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, rows int, err error) {
	for len(window)-taken >= recordBytes && row < b.Len() {
		record := (*[recordBytes]byte)(window[taken:])
		if wrong := check(record); wrong != nil {
			wrong.Offset = int64(taken)
			return taken + recordBytes, row, wrong
		}
		if row = p.rows(record, b, row); p.slot < slots {
			break
		}
		p.slot, taken = 0, taken+recordBytes
	}
	return taken, row, nil
}

// rows writes the rows of a record, starting with slot p.slot, until the batch is full.
func (p *parser) rows(record *[recordBytes]byte, b *trace.Batch, row int) int {
	pc := binary.LittleEndian.Uint64(record[:])
	for ; p.slot < slots; p.slot++ {
		addr, kind := pc, trace.Fetch
		switch {
		case p.slot >= firstStore:
			addr, kind = binary.LittleEndian.Uint64(record[storesAt+8*(p.slot-firstStore):]), trace.Store
		case p.slot >= firstLoad:
			addr, kind = binary.LittleEndian.Uint64(record[loadsAt+8*(p.slot-firstLoad):]), trace.Load
		}
		if addr == 0 && p.slot > 0 {
			continue
		}
		if row == b.Len() {
			break
		}
		b.Addr[row], b.Bytes[row], b.Kind[row], b.PC[row] = addr, 0, kind, pc
		row++
	}
	return row
}

// check returns an error if a record contains an impossible value.
func check(record *[recordBytes]byte) *trace.SyntaxError {
	branch, taken := record[branchAt], record[takenAt]
	switch {
	case branch > 1:
		return &trace.SyntaxError{What: "is_branch", Got: decimal(branch), Want: "0 or 1"}
	case taken > 1:
		return &trace.SyntaxError{What: "branch_taken", Got: decimal(taken), Want: "0 or 1"}
	case taken > branch:
		return &trace.SyntaxError{What: "branch_taken", Got: "1", Want: "0 for an instruction that is not a branch"}
	}
	return nil
}

func decimal(v byte) string { return strconv.Itoa(int(v)) }

// Recognise reports whether head, the beginning of a file, is a ChampSim trace; if not, it returns
// the reason. The format has no magic number, so all records in head must be plausible: addresses
// must be canonical (sign-extended 48-bit numbers), no instruction may be at address 0, and at
// least one record must access memory.
func Recognise(head []byte) (reason string, ok bool) {
	if len(head) < recordBytes {
		return "the file is shorter than one record, which has " + strconv.Itoa(recordBytes) + " bytes", false
	}
	references := 0
	for n := 1; len(head) >= recordBytes; n++ {
		record := (*[recordBytes]byte)(head)
		if wrong := check(record); wrong != nil {
			return "record " + strconv.Itoa(n) + ": " + wrong.What + " " + wrong.Got + ", want " + wrong.Want, false
		}
		if binary.LittleEndian.Uint64(record[:]) == 0 {
			return "record " + strconv.Itoa(n) + ": the instruction is at address 0", false
		}
		for at := 0; at < recordBytes; at += 8 {
			addr := binary.LittleEndian.Uint64(record[at:])
			if at != branchAt && !canonical(addr) {
				return "record " + strconv.Itoa(n) + ": 0x" + strconv.FormatUint(addr, 16) + " is not an address", false
			}
			if at >= storesAt && addr != 0 {
				references++
			}
		}
		head = head[recordBytes:]
	}
	if references == 0 {
		return "no record of the file accesses memory", false
	}
	return "", true
}

func canonical(addr trace.Addr) bool {
	top := int64(addr) >> canonicalTop
	return top == 0 || top == -1
}
