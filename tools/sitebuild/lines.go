package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Line tables tell a program in which file and line each of its instructions
// was written, which calls were inlined there and where arguments lie, for the
// traces that a crash prints. In a wasm file they cannot be left out as symbols
// can (-ldflags=-s -w), and packed they are a tenth of what a first visit
// transfers, because they hardly compress. What a crash prints here names the
// functions without them.
//
// They are part of the runtime's table of functions, whose layout is that of
// src/runtime/symtab.go and src/internal/abi/symtab.go of Go 1.20 to 1.26:
//
//	header    magic, then offsets of the parts; see lineHeader
//	pctab     tables from instruction to a number, shared where they are equal
//	functab   for each function where it begins and its record, with the offsets
//	          of its tables in pctab: stack depths, files, lines, and others by
//	          number; and behind them those of data that belongs to them
//
// Data lies apart, from where the program's moduledata says. An offset of 0 stands
// for no table, one of all ones for no data. So what is for traces only gets that
// offset, and what of pctab no other offset leads to, and data for traces, becomes
// zeros; so do the names of files, the lines at which functions begin, and where
// signals may interrupt a function, as there are none. What the collector and panics
// need is left alone.

// tableMagic begins the table: the number for Go 1.20 and later, two zeros, the
// unit of instructions and the size of pointers.
var tableMagic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

var errLineTable = errors.New("the table of functions has not the form that is known of Go 1.20 to 1.26: " +
	"look at src/runtime/symtab.go, and mend dropLines or leave it out")

// lineHeader are the words behind the magic.
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

// Offsets in a function's record, in bytes.
const (
	recordStack   = 16
	recordFiles   = 20
	recordLines   = 24
	recordOthers  = 28 // their number
	recordUnit    = 32 // where its files are named
	recordStart   = 36 // the line at which it begins
	recordData    = 43 // the number of data, a byte
	recordOffsets = 44 // of the others, then of data
)

// What of the others, and of data, is for traces only, by number.
const (
	unsafePoints  = 0 // PCDATA_UnsafePoint, for signals
	inlinedAt     = 2 // PCDATA_InlTreeIndex: where each inlined call stands
	argumentsLive = 3 // PCDATA_ArgLiveIndex

	inlinedCalls  = 3 // FUNCDATA_InlTree: records of inlinedBytes each
	argumentsInfo = 5 // FUNCDATA_ArgInfo: bytes up to argumentsEnd
	liveInfo      = 6 // FUNCDATA_ArgLiveInfo

	inlinedBytes = 16
	argumentsEnd = 0xff
)

var (
	traceTables = map[int]bool{unsafePoints: true, inlinedAt: true, argumentsLive: true}
	traceData   = map[int]bool{inlinedCalls: true, argumentsInfo: true, liveInfo: true}
)

const noData = 1<<32 - 1

// Words of moduledata: it begins with addresses of the header and of the names.
const (
	moduleHeader  = 0
	moduleNames   = 1
	moduleBuckets = 19 // findfunctab
	moduleData    = 40 // gofunc, which offsets of data count from
	moduleEnd     = 41 // epclntab, behind all that
)

// dropLines removes the line tables of a program that a Go compiler made from what
// is put into its memory.
func dropLines(memory []byte) error {
	at := bytes.Index(memory, tableMagic)
	if at < 0 || bytes.Contains(memory[at+1:], tableMagic) {
		return errLineTable
	}
	return (&lineTable{memory: memory, at: at}).drop()
}

// lineTable is the table of functions in a program's memory.
type lineTable struct {
	memory []byte
	at     int
}

func (t *lineTable) word(n int) int {
	return int(binary.LittleEndian.Uint64(t.memory[t.at+len(tableMagic)+8*n:]))
}

func (t *lineTable) number(at int) int { return int(binary.LittleEndian.Uint32(t.memory[at:])) }

// drop removes files and lines. Memory that ends before the table does makes it
// panic, which is reported as an unknown form.
func (t *lineTable) drop() (err error) {
	defer func() {
		if recover() != nil {
			err = errLineTable
		}
	}()
	tables := t.memory[t.at+t.word(headTables) : t.at+t.word(headRecords)]
	kept := make([]bool, len(tables))
	keep := func(offset int) {
		for end := tableEnd(tables, offset); offset > 0 && offset < end; offset++ {
			kept[offset] = true
		}
	}
	records := t.at + t.word(headRecords)
	data, known := t.data()
	if !known {
		return errLineTable
	}
	shared := t.keptData()
	for i := range t.word(headFunctions) {
		record := records + t.number(records+8*i+4)
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
				calls = callsOf(tables, t.number(at))
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

// data is where offsets of data count from.
func (t *lineTable) data() (at int, known bool) {
	module, known := t.module()
	if !known {
		return 0, false
	}
	word := func(n int) int { return int(binary.LittleEndian.Uint64(t.memory[module+8*n:])) }
	at = word(moduleData)
	return at, at > t.at+t.word(headRecords) && at < word(moduleEnd) && word(moduleEnd) <= len(t.memory)
}

// module is where the program's moduledata lies.
func (t *lineTable) module() (at int, known bool) {
	names := uint64(t.at + t.word(headNames))
	head := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(t.at)), names)
	at = bytes.Index(t.memory, head)
	return at, at >= 0 && !bytes.Contains(t.memory[at+1:], head)
}

// keptData are the offsets of data that is left alone. The linker keeps one copy of
// equal data, so some of what is for traces may be needed for something else.
func (t *lineTable) keptData() map[int]bool {
	kept := map[int]bool{}
	records := t.at + t.word(headRecords)
	for i := range t.word(headFunctions) {
		record := records + t.number(records+8*i+4)
		first := record + recordOffsets + 4*t.number(record+recordOthers)
		for n := range int(t.memory[record+recordData]) {
			if !traceData[n] {
				kept[t.number(first+4*n)] = true
			}
		}
	}
	return kept
}

// clearData makes zeros of data for traces, as far as its length is known.
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

// callsOf is the number of inlined calls that a table tells of: one more than its
// largest value.
func callsOf(tables []byte, at int) int {
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

// tableEnd is where the table of pctab ends that begins at an offset: pairs of
// variable-length numbers, until the first of a pair is a zero that is not the
// very first.
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
