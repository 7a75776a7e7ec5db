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
//	table of n functions             folded table
//	n pairs: entry, record           for each function: its number of other tables
//	the entry after the last         for each function: its ids, with the number of data
//	records, each at an even word:     offsets in the highest byte
//	  entry                          for each function: 1 if the name has the runtime's prefix
//	  name                           the remaining words of the records, field by field:
//	  words 2 to 10                    words 2 to 6, 8 and 9, the other tables, and the data
//	  other tables, then data
//
// The entry of a function is its number in the file, which is one more than the entry of the
// previous function. A program counter consists of the function's number and, in the lower 16 bits,
// a block number. To find the function for a program counter, the runtime uses a table of buckets,
// which can be computed from the number of functions. The names of functions have already been
// replaced with numbers (see symbols.go). The name offset in a record is therefore folded to a flag
// for the runtime's prefix, and the names themselves are omitted.

// foldedTable describes the location of the table to unfold.js. This description is stored below
// the lowest address that Go programs use, and unfold.js clears it.
type foldedTable struct {
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
	foldedTableAt    = 4 // address of the description, in words
	foldedTableWords = 8
	foldedTableMagic = 0x646c6f66
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
	bucketWords       = 5 // one word for a function number, and four words for 16 one-byte increments
)

// belowLargest is a flag for an offset that does not exceed the largest previous offset.
const belowLargest = 1 << 31

var errFold = errors.New("the function table cannot be folded: its layout is not the layout of Go 1.26; " +
	"look at src/runtime/symtab.go and src/cmd/link/internal/ld/pcln.go, and adapt fold or remove it")

// fold folds the function table in a program's memory. It returns errFold if unfolding would not
// restore the memory.
func fold(memory []byte) (err error) {
	defer wasmcode.UnknownForm(&err, errFold)
	words := wordsOf(memory)
	whole := slices.Clone(words)
	f := (&lineTable{memory: memory, at: bytes.Index(memory, tableMagic)}).newFoldedTable()
	t := newFunctionTable(f)
	for i := range f.Functions {
		record := f.Table + words[f.Table+2*i+1]/4
		t.others[i], t.data[i] = words[record+wordOthers], words[record+wordIDs]>>24
		t.ofRuntime[i] = beginsWith(words[f.Names:], words[record+wordName], runtimePrefix)
	}
	t.placeRecords()
	folded := t.fold(words)
	f.Words, f.Sum = uint32(len(folded)), sumOf(words[f.Table:t.end])
	clear(words[f.Table:t.end])
	copy(words[f.Table:], folded)
	clear(f.buckets(words))
	numberNames(t.ofRuntime, func(at int, _ byte) { words[f.Names+uint32(at)/4] = 0 })
	copy(words[foldedTableAt:], []uint32{f.Magic, f.Table, f.Words, f.Functions, f.First, f.Buckets, f.Sum, f.Names})
	writeWords(memory, words)
	unfold(words)
	if !slices.Equal(words, whole) {
		return errFold
	}
	return nil
}

// newFoldedTable returns the description of a function table before it is folded.
func (t *lineTable) newFoldedTable() foldedTable {
	module, _ := t.findModuleData()
	buckets := binary.LittleEndian.Uint64(t.memory[module+8*moduleBuckets:])
	table := t.at + t.word(headRecords)
	return foldedTable{
		Magic: foldedTableMagic, Table: uint32(table / 4), Functions: uint32(t.word(headFunctions)),
		First: uint32(t.number(table)), Buckets: uint32(buckets / 4),
		Names: uint32(t.at+t.word(headNames)) / 4,
	}
}

// beginsWith reports whether the memory (words) contains the given text at the given byte offset.
func beginsWith(words []uint32, at uint32, text string) bool {
	for i := range text {
		if place := at + uint32(i); byte(words[place/4]>>(8*(place%4))) != text[i] {
			return false
		}
	}
	return true
}

// buckets returns the table of buckets. The table ends after the first word of the last function's
// first bucket.
func (f *foldedTable) buckets(words []uint32) []uint32 {
	return words[f.Buckets:][:bucketWords*bucketsOfFunction*(f.Functions-1)+1]
}

// functionTable contains the addresses of the functions' records, whose lengths differ.
type functionTable struct {
	foldedTable
	starts []uint32 // the address of each record
	others []uint32 // the number of PCDATA tables in each record
	data   []uint32
	end    uint32 // the address after the last record

	ofRuntime []bool // for each function, whether its name has the runtime's prefix
}

func newFunctionTable(f foldedTable) *functionTable {
	n := f.Functions
	return &functionTable{
		foldedTable: f, starts: make([]uint32, n), others: make([]uint32, n), data: make([]uint32, n),
		ofRuntime: make([]bool, n),
	}
}

// placeRecords computes the addresses of the records.
func (t *functionTable) placeRecords() {
	t.end = t.Table + 2*t.Functions + 1
	for i := range t.starts {
		t.end += t.end & 1
		t.starts[i] = t.end
		t.end += wordHead + t.others[i] + t.data[i]
	}
}

// field describes one field of the records: its address in each record that contains the field.
type field struct {
	addresses   []uint32
	differences bool // whether values are stored as differences from the largest previous value
}

// fields returns the fields in the order in which the folded table contains them.
func (t *functionTable) fields() (list []field) {
	for word := uint32(wordName + 1); word < wordIDs; word++ {
		if word == wordOthers {
			continue
		}
		f := field{differences: word == wordStack}
		for _, start := range t.starts {
			f.addresses = append(f.addresses, start+word)
		}
		list = append(list, f)
	}
	none := make([]uint32, t.Functions)
	return append(append(list, t.offsetFields(none, t.others)...), t.offsetFields(t.others, t.data)...)
}

// offsetFields returns the fields for the offsets that follow the heads of records. Record i begins
// with its head and after[i] other offsets. The many[i] offsets that follow belong to the returned
// fields.
func (t *functionTable) offsetFields(after, many []uint32) (list []field) {
	for number := range slices.Max(many) {
		f := field{differences: true}
		for i, start := range t.starts {
			if number < many[i] {
				f.addresses = append(f.addresses, start+wordHead+after[i]+number)
			}
		}
		list = append(list, f)
	}
	return list
}

// fold returns the folded function table as a list of words.
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
		for _, at := range f.addresses {
			word := words[at]
			switch {
			case !f.differences || word == noData:
			case word > largest:
				word, largest = word-largest, word
			default:
				word |= belowLargest
			}
			folded = append(folded, word)
		}
	}
	return folded
}

// unfold restores the function table in the same way as unfold.js.
func unfold(words []uint32) {
	w := words[foldedTableAt:][:foldedTableWords]
	t := newFunctionTable(foldedTable{Magic: w[0], Table: w[1], Words: w[2], Functions: w[3], First: w[4], Buckets: w[5], Sum: w[6], Names: w[7]})
	clear(w)
	folded := slices.Clone(words[t.Table:][:t.Words])
	clear(words[t.Table:][:t.Words])
	ids, runtimes := folded[t.Functions:], folded[2*t.Functions:]
	for i := range t.starts {
		t.others[i], t.data[i], t.ofRuntime[i] = folded[i], ids[i]>>24, runtimes[i] == 1
	}
	t.placeRecords()
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
		for i, at := range f.addresses {
			word := folded[i]
			switch {
			case !f.differences || word == noData:
			case word < belowLargest:
				largest += word
				word = largest
			default:
				word &^= belowLargest
			}
			words[at] = word
		}
		folded = folded[len(f.addresses):]
	}
}

// sumOf returns a checksum of words: FNV-1a, applied to words instead of bytes.
func sumOf(words []uint32) uint32 {
	sum := uint32(2166136261)
	for _, word := range words {
		sum = (sum ^ word) * 16777619
	}
	return sum
}

// wordsOf converts memory to 32-bit words, and omits an incomplete last word.
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
