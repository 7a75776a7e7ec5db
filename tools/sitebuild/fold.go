package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/stackglass/stackglass/tools/internal/wasmcode"
)

// After dropLines has shortened the function table, half of the table consists of offsets, which
// compress badly. The table is therefore folded: numbers that can be computed from other numbers
// are omitted, and the remaining numbers are stored field by field. An offset is stored as the
// difference from the largest offset before it, because most offsets have not occurred before and
// are in the linker's order. unfold.js, a part of wasm_exec.js, restores the table before the
// program starts, in a few milliseconds, and verifies a checksum. In 32-bit words:
//
//	the table, for n functions       folded
//	n pairs: entry, record           number of other tables, of each function
//	the entry behind the last        ids of each, the number of data on top
//	records, each at an even word:   1 for each that has a name of the runtime's
//	  entry                          further words of records, field by field: 2 to 6,
//	  name                           8 and 9, the other tables, and data by number
//	  words 2 to 10
//	  other tables, then data
//
// The entry of a function is its number in the file, which is one more than the entry of the
// previous function. A program counter consists of the function's number and, in the lower 16 bits,
// a block number. To find the function for a program counter, the runtime uses a table of buckets,
// which can be computed from the number of functions. Names are numbers (see symbols.go). The name
// offset in a record is therefore folded to a flag for the runtime's prefix, and the names
// themselves are omitted.

// folding tells unfold.js the location of the table. The folding is stored below the lowest address
// that Go programs use, and unfold.js clears it.
type folding struct {
	Magic     uint32
	Table     uint32 // address of the table; all addresses are in units of 32-bit words
	Words     uint32 // length of the folded table
	Functions uint32
	First     uint32 // entry of the first function
	Buckets   uint32 // address of the table of buckets
	Sum       uint32 // checksum of the table; see sumOf
	Names     uint32 // address of the table of names
}

const (
	foldingAt    = 4 // address of the folding, in words
	foldingWords = 8
	foldingMagic = 0x646c6f66
)

// These are the positions of fields in a record, in words.
const (
	wordEntry  = 0
	wordName   = 1
	wordStack  = recordStack / 4
	wordOthers = recordOthers / 4
	wordIDs    = recordData / 4
	wordHead   = recordOffsets / 4
)

// These are sizes in the runtime's table of buckets (abi.FuncTabBucketSize).
const (
	bucketsOfFunction = 1 << 16 / 4096
	bucketWords       = 5 // a function number, and 16 one-byte increments
)

// old marks an offset that does not exceed the largest previous offset.
const old = 1 << 31

var errFold = errors.New("the function table cannot be folded: its layout is not the layout of Go 1.26; " +
	"look at src/runtime/symtab.go and src/cmd/link/internal/ld/pcln.go, and adapt fold or remove it")

// fold folds the function table in a program's memory. It returns errFold if unfolding would not
// restore the memory.
func fold(memory []byte) (err error) {
	defer wasmcode.UnknownForm(&err, errFold)
	words := wordsOf(memory)
	whole := slices.Clone(words)
	f := (&lineTable{memory: memory, at: bytes.Index(memory, tableMagic)}).folding()
	t := newFunctionTable(f)
	for i := range f.Functions {
		record := f.Table + words[f.Table+2*i+1]/4
		t.others[i], t.data[i] = words[record+wordOthers], words[record+wordIDs]>>24
		t.ofRuntime[i] = beginsWith(words[f.Names:], words[record+wordName], runtimePrefix)
	}
	t.place()
	folded := t.fold(words)
	f.Words, f.Sum = uint32(len(folded)), sumOf(words[f.Table:t.end])
	clear(words[f.Table:t.end])
	copy(words[f.Table:], folded)
	clear(f.buckets(words))
	numberNames(t.ofRuntime, func(at int, _ byte) { words[f.Names+uint32(at)/4] = 0 })
	copy(words[foldingAt:], []uint32{f.Magic, f.Table, f.Words, f.Functions, f.First, f.Buckets, f.Sum, f.Names})
	writeWords(memory, words)
	unfold(words)
	if !slices.Equal(words, whole) {
		return errFold
	}
	return nil
}

// folding returns the description of a table that has not been folded yet.
func (t *lineTable) folding() folding {
	module, _ := t.module()
	buckets := binary.LittleEndian.Uint64(t.memory[module+8*moduleBuckets:])
	table := t.at + t.word(headRecords)
	return folding{
		Magic: foldingMagic, Table: uint32(table / 4), Functions: uint32(t.word(headFunctions)),
		First: uint32(t.number(table)), Buckets: uint32(buckets / 4),
		Names: uint32(t.at+t.word(headNames)) / 4,
	}
}

// beginsWith reports whether words, at the given byte offset, contains the given text.
func beginsWith(words []uint32, at uint32, text string) bool {
	for i := range text {
		if place := at + uint32(i); byte(words[place/4]>>(8*(place%4))) != text[i] {
			return false
		}
	}
	return true
}

// buckets returns the table of buckets. Only the first word of the last function's bucket is used.
func (f *folding) buckets(words []uint32) []uint32 {
	return words[f.Buckets:][:bucketWords*bucketsOfFunction*(f.Functions-1)+1]
}

// functionTable contains the addresses of the functions' records, whose lengths differ.
type functionTable struct {
	folding
	starts []uint32 // addresses of the records
	others []uint32 // number of other tables in each record
	data   []uint32
	end    uint32 // end of the last record

	ofRuntime []bool // whether the functions' names have the runtime's prefix
}

func newFunctionTable(f folding) *functionTable {
	n := f.Functions
	return &functionTable{
		folding: f, starts: make([]uint32, n), others: make([]uint32, n), data: make([]uint32, n),
		ofRuntime: make([]bool, n),
	}
}

// place computes the addresses of the records.
func (t *functionTable) place() {
	t.end = t.Table + 2*t.Functions + 1
	for i := range t.starts {
		t.end += t.end & 1
		t.starts[i] = t.end
		t.end += wordHead + t.others[i] + t.data[i]
	}
}

// field is a field of the records. It contains the address of the field in each record with this
// field.
type field struct {
	at      []uint32
	offsets bool // whether values are stored as differences
}

// fields returns the folded fields in order.
func (t *functionTable) fields() (list []field) {
	for word := uint32(wordName + 1); word < wordIDs; word++ {
		if word == wordOthers {
			continue
		}
		f := field{offsets: word == wordStack}
		for _, start := range t.starts {
			f.at = append(f.at, start+word)
		}
		list = append(list, f)
	}
	none := make([]uint32, t.Functions)
	return append(append(list, t.tables(none, t.others)...), t.tables(t.others, t.data)...)
}

// tables returns the fields of the offsets that follow the heads of records. Record i contains
// many[i] of these offsets, after after[i] other offsets.
func (t *functionTable) tables(after, many []uint32) (list []field) {
	for number := range slices.Max(many) {
		f := field{offsets: true}
		for i, start := range t.starts {
			if number < many[i] {
				f.at = append(f.at, start+wordHead+after[i]+number)
			}
		}
		list = append(list, f)
	}
	return list
}

// fold returns the folded table as a list of words.
func (t *functionTable) fold(words []uint32) (folded []uint32) {
	folded = append(folded, t.others...)
	for _, start := range t.starts {
		folded = append(folded, words[start+wordIDs])
	}
	for _, is := range t.ofRuntime {
		folded = append(folded, map[bool]uint32{true: 1}[is])
	}
	for _, f := range t.fields() {
		largest := uint32(0)
		for _, at := range f.at {
			word := words[at]
			switch {
			case !f.offsets || word == noData:
			case word > largest:
				word, largest = word-largest, word
			default:
				word |= old
			}
			folded = append(folded, word)
		}
	}
	return folded
}

// unfold restores the function table in the same way as unfold.js.
func unfold(words []uint32) {
	w := words[foldingAt:][:foldingWords]
	t := newFunctionTable(folding{Magic: w[0], Table: w[1], Words: w[2], Functions: w[3], First: w[4], Buckets: w[5], Sum: w[6], Names: w[7]})
	clear(w)
	folded := slices.Clone(words[t.Table:][:t.Words])
	clear(words[t.Table:][:t.Words])
	ids, runtimes := folded[t.Functions:], folded[2*t.Functions:]
	for i := range t.starts {
		t.others[i], t.data[i], t.ofRuntime[i] = folded[i], ids[i]>>24, runtimes[i] == 1
	}
	t.place()
	names := numberNames(t.ofRuntime, func(at int, b byte) {
		words[t.Names+uint32(at)/4] |= uint32(b) << (8 * (at % 4))
	})
	for i, start := range t.starts {
		entry := t.First + uint32(i)
		words[t.Table+2*uint32(i)], words[t.Table+2*uint32(i)+1] = entry, 4*(start-t.Table)
		words[start+wordEntry], words[start+wordName] = entry, uint32(names[i])
		words[start+wordOthers], words[start+wordIDs] = t.others[i], ids[i]
	}
	words[t.Table+2*t.Functions] = t.First + t.Functions
	t.unfold(words, folded[3*t.Functions:])
	buckets := t.buckets(words)
	for at := 0; at < len(buckets); at += bucketWords {
		buckets[at] = uint32(at / (bucketWords * bucketsOfFunction))
	}
}

// unfold restores the fields of records.
func (t *functionTable) unfold(words, folded []uint32) {
	for _, f := range t.fields() {
		largest := uint32(0)
		for i, at := range f.at {
			word := folded[i]
			switch {
			case !f.offsets || word == noData:
			case word < old:
				largest += word
				word = largest
			default:
				word &^= old
			}
			words[at] = word
		}
		folded = folded[len(f.at):]
	}
}

// sumOf returns a checksum of words, computed by FNV-1a with words in place of bytes.
func sumOf(words []uint32) uint32 {
	sum := uint32(2166136261)
	for _, word := range words {
		sum = (sum ^ word) * 16777619
	}
	return sum
}

// wordsOf converts memory to words and drops an incomplete last word.
func wordsOf(memory []byte) []uint32 {
	words := make([]uint32, len(memory)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(memory[4*i:])
	}
	return words
}

func writeWords(memory []byte, words []uint32) {
	for i, word := range words {
		binary.LittleEndian.PutUint32(memory[4*i:], word)
	}
}
