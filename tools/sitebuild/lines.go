package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"

	"github.com/stackglass/stackglass/tools/internal/wasmcode"
)

// Line tables contain the file and line of each instruction, inlined calls and the locations of
// arguments, for the stack traces that a crash prints. The linker can strip symbols (-ldflags=-s
// -w), but not the line tables of a wasm file. Line tables account for 10 % of the bytes of a first
// visit, because they hardly compress. Without line tables, a crash still prints the names of
// functions.
//
// The tables are part of the runtime's function table, in the layout of src/runtime/symtab.go and
// src/internal/abi/symtab.go of Go 1.20 to 1.26:
//
//	header    magic, then offsets of the parts; see headFunctions
//	pctab     tables from instruction to a number, shared if they are equal
//	functab   for each function its entry and its record, with the offsets of its tables in pctab:
//	          stack depths, files, lines, and others by number; then the offsets of its data
//
// Data is stored separately. The program's moduledata contains the address of the data. An offset
// of 0 means no table, and an offset of all ones means no data. If only stack traces need a table,
// dropLines sets its offset to 0. If only stack traces need data, dropLines sets the offset of the
// data to all ones. Then dropLines overwrites the following with zeros: the parts of pctab to which
// no offset refers any more, the data for stack traces, the file names, and the first lines of
// functions. The points where a signal may interrupt a function are removed, too, because wasm has
// no signals. Tables that the garbage collector and panics need are kept.

// tableMagic is the start of the table: the magic number of Go 1.20 and later, two zeros, the
// instruction size quantum and the pointer size.
var tableMagic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

var errLineTable = errors.New("the function table does not have the layout of Go 1.20 to 1.26: " +
	"look at src/runtime/symtab.go, and adapt dropLines or remove it")

// These are the positions of fields in the header, in words after the magic.
const (
	headFunctions = iota
	headFiles
	headTextStart
	headNames
	headUnits
	headFileNames
	headTables // pctab
	headRecords
	headWords
)

// These are the offsets of fields in a function's record, in bytes.
const (
	recordStack   = 16
	recordFiles   = 20
	recordLines   = 24
	recordOthers  = 28 // number of other tables (PCDATA)
	recordUnit    = 32 // offset of the file names of the function's compilation unit
	recordStart   = 36 // the function's first line
	recordData    = 43 // number of data offsets, in one byte
	recordOffsets = 44 // offsets of the other tables, followed by the offsets of data
)

// These constants identify the other tables, and the kinds of data, that only stack traces use.
const (
	unsafePoints  = 0 // PCDATA_UnsafePoint, for signals
	inlinedAt     = 2 // PCDATA_InlTreeIndex: locations of inlined calls
	argumentsLive = 3 // PCDATA_ArgLiveIndex

	inlinedCalls  = 3 // FUNCDATA_InlTree: records of inlinedBytes bytes each
	argumentsInfo = 5 // FUNCDATA_ArgInfo: a list of bytes that ends with argumentsEnd
	liveInfo      = 6 // FUNCDATA_ArgLiveInfo

	inlinedBytes = 16
	argumentsEnd = 0xff
)

var (
	traceTables = map[int]bool{unsafePoints: true, inlinedAt: true, argumentsLive: true}
	traceData   = map[int]bool{inlinedCalls: true, argumentsInfo: true, liveInfo: true}
)

const noData = 1<<32 - 1

// These are positions in moduledata, in words. The first two words are the addresses of the header
// and of the names.
const (
	moduleHeader  = 0
	moduleNames   = 1
	moduleBuckets = 19 // findfunctab
	moduleData    = 40 // gofunc, the base of data offsets
	moduleEnd     = 41 // epclntab, the end of all data
)

// dropLines removes the line tables of a Go program from its memory.
func dropLines(memory []byte) error {
	at := bytes.Index(memory, tableMagic)
	if at < 0 || bytes.Contains(memory[at+1:], tableMagic) {
		return errLineTable
	}
	return (&lineTable{memory: memory, at: at}).clearLines()
}

// lineTable is the function table in a program's memory.
type lineTable struct {
	memory []byte
	at     int
}

func (t *lineTable) word(n int) int {
	return int(binary.LittleEndian.Uint64(t.memory[t.at+len(tableMagic)+8*n:]))
}

func (t *lineTable) number(at int) int { return int(binary.LittleEndian.Uint32(t.memory[at:])) }

// records yields the address of the record of each function.
func (t *lineTable) records() iter.Seq[int] {
	return func(yield func(int) bool) {
		records := t.at + t.word(headRecords)
		for i := range t.word(headFunctions) {
			if !yield(records + t.number(records+8*i+4)) {
				return
			}
		}
	}
}

// clearLines removes file names and line numbers from the table.
func (t *lineTable) clearLines() (err error) {
	defer wasmcode.UnknownForm(&err, errLineTable)
	tables := t.memory[t.at+t.word(headTables) : t.at+t.word(headRecords)]
	kept := make([]bool, len(tables))
	keep := func(offset int) {
		for end := tableEnd(tables, offset); offset > 0 && offset < end; offset++ {
			kept[offset] = true
		}
	}
	data, known := t.dataBase()
	if !known {
		return errLineTable
	}
	shared := t.keptData()
	for record := range t.records() {
		keep(t.number(record + recordStack))
		others := t.number(record + recordOthers)
		calls := 0
		for n := range others {
			at := record + recordOffsets + 4*n
			if !traceTables[n] {
				keep(t.number(at))
				continue
			}
			if n == inlinedAt {
				calls = inlinedCallCount(tables, t.number(at))
			}
			clear(t.memory[at : at+4])
		}
		for n := range int(t.memory[record+recordData]) {
			if at := record + recordOffsets + 4*(others+n); traceData[n] {
				if offset := t.number(at); !shared[offset] {
					t.clearData(n, data, offset, calls)
				}
				binary.LittleEndian.PutUint32(t.memory[at:], noData)
			}
		}
		clear(t.memory[record+recordFiles : record+recordLines+4])
		clear(t.memory[record+recordUnit : record+recordStart+4])
	}
	clear(t.memory[t.at+t.word(headUnits) : t.at+t.word(headTables)])
	for i := range tables {
		if !kept[i] {
			tables[i] = 0
		}
	}
	return nil
}

// dataBase returns the address to which data offsets are relative.
func (t *lineTable) dataBase() (at int, known bool) {
	module, known := t.findModuleData()
	if !known {
		return 0, false
	}
	word := func(n int) int { return int(binary.LittleEndian.Uint64(t.memory[module+8*n:])) }
	at = word(moduleData)
	return at, at > t.at+t.word(headRecords) && at < word(moduleEnd) && word(moduleEnd) <= len(t.memory)
}

// findModuleData returns the address of the program's moduledata, and whether this address is
// known.
func (t *lineTable) findModuleData() (at int, known bool) {
	names := uint64(t.at + t.word(headNames))
	head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(t.at)), names)
	at = bytes.Index(t.memory, head)
	return at, at >= 0 && !bytes.Contains(t.memory[at+1:], head)
}

// keptData returns the offsets of the data that must not be cleared. The linker merges equal data,
// so some data for stack traces may also have other uses.
func (t *lineTable) keptData() map[int]bool {
	kept := map[int]bool{}
	for record := range t.records() {
		first := record + recordOffsets + 4*t.number(record+recordOthers)
		for n := range int(t.memory[record+recordData]) {
			if !traceData[n] {
				kept[t.number(first+4*n)] = true
			}
		}
	}
	return kept
}

// clearData overwrites data for stack traces with zeros if the length of the data is known.
func (t *lineTable) clearData(number, data, offset, calls int) {
	switch {
	case offset == noData:
	case number == inlinedCalls:
		clear(t.memory[data+offset:][:calls*inlinedBytes])
	case number == argumentsInfo:
		info := t.memory[data+offset:]
		clear(info[:bytes.IndexByte(info, argumentsEnd)])
	}
}

// inlinedCallCount returns the number of inlined calls in a function: one more than the largest
// value in its table.
func inlinedCallCount(tables []byte, at int) int {
	if at == 0 {
		return 0
	}
	value, most := -1, -1
	for start := at; at == start || tables[at] != 0; at = numberEnd(tables, at) {
		zigzag, n := binary.Uvarint(tables[at:])
		value += int(zigzag>>1) ^ -int(zigzag&1)
		most = max(most, value)
		at += n
	}
	return most + 1
}

// tableEnd returns the end of the table at an offset of pctab. A table consists of pairs of
// varints. A pair whose first number is zero ends the table, unless it is the first pair.
func tableEnd(tables []byte, at int) int {
	for start := at; at == start || tables[at] != 0; {
		at = numberEnd(tables, numberEnd(tables, at))
	}
	return at + 1
}

func numberEnd(p []byte, at int) int {
	for p[at]&0x80 != 0 {
		at++
	}
	return at + 1
}
