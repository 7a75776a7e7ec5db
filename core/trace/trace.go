// Package trace defines traces of memory references, and the batches in which traces are read.
// Every trace reader produces batches, and every analysis consumes batches. A trace is the sequence
// of a program's memory references. A trace may be larger than memory. A [Reader] therefore fills a
// [Batch] with a few thousand rows, the caller processes the batch, and the next call overwrites
// the batch.
//
//  1. The caller creates one batch with [NewBatch] and reuses it.
//  2. [Reader.Next] fills the batch. A column for which the trace contains no data is nil
//     (MODELS §1: fields that a trace does not contain are absent, not zero).
//  3. The caller reads the columns, does not retain them, and calls Next again until Next returns
//     io.EOF.
//
// A row is either a reference, which has an address, or an event, which accesses no data. Each
// analysis selects the kinds that it needs.
package trace

import (
	"slices"
	"strings"
)

// Addr is a byte address in the traced program.
type Addr = uint64

// Line is the number of a cache line: a byte address divided by the line size.
type Line = uint64

// Kind is the kind of a row of a [Batch].
type Kind uint8

// The kinds of references. A modify is a load and a store of the same bytes, and counts as one line
// access (MODELS §1). Fetches are instruction fetches. A range is an operation that reads or writes
// consecutive bytes, such as reading the source or writing the destination of a memcpy.
const (
	Load Kind = iota
	Store
	Modify
	Fetch
	RangeRead
	RangeWrite
	// NumKinds is the number of kinds of references.
	NumKinds = 6
)

// The kinds of events. Readers return only events that were selected with [Selector]. The comments
// describe the contents of the columns Addr and Arg.
const (
	// a basic block, or the part of a basic block after a call, begins; Site is the block
	BlockEntry    Kind = 8 + iota
	Call               // a function is entered; Site is its first block
	Return             // a function is about to return; Site is its last block
	Alloc              // a heap or stack object is created; Addr: its address; Arg: its size in bytes
	Free               // a heap or stack object is freed; Addr: its address
	ThreadStart        // a thread starts; Addr: number of the thread that created it
	ThreadEnd          //
	RegionBegin        // a caliper begins; Addr: its tag, an index in Program.Tags
	RegionEnd          //
	ParallelBegin      // a parallel region forks; Addr: stack pointer of the caller
	ParallelEnd        // all threads of the region have joined
	Barrier            // a thread has left a barrier
	LoopBegin          // a worksharing loop begins; Addr: OpenMP schedule; Arg: chunk size
	LoopEnd            // the value of Addr is 0
	CriticalBegin      // Addr: the lock
	CriticalEnd        // Addr: the lock
	ReduceBegin        //
	ReduceEnd          //
	TaskCreate         // Addr: the task
	TaskBegin          // Addr: the task
	TaskEnd            // Addr: the task
	TaskWait           //
	BareBlock          // entry of a block without loads, stores or modifies; replaces BlockEntry if BlockEntry is not selected
	endOfKinds
)

var kindNames = [endOfKinds]string{
	"load", "store", "modify", "fetch", "range-read", "range-write", "", "",
	"block", "call", "return", "alloc", "free", "thread-start", "thread-end",
	"region-begin", "region-end", "parallel-begin", "parallel-end", "barrier",
	"loop-begin", "loop-end", "critical-begin", "critical-end",
	"reduce-begin", "reduce-end", "task-create", "task-begin", "task-end", "task-wait", "bare-block",
}

// IsReference reports whether the kind is a kind of reference, and not a kind of event.
func (k Kind) IsReference() bool { return k < NumKinds }

// Valid reports whether the value is one of the kinds above.
func (k Kind) Valid() bool { return k < NumKinds || k >= BlockEntry && k < endOfKinds }

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	if k.Valid() {
		return kindNames[k]
	}
	return "unknown"
}

// Kinds is a set of kinds. Bit k represents Kind k.
type Kinds uint32

// DataKinds contains the kinds of data references: all references except instruction fetches.
const DataKinds = Kinds(1<<Load | 1<<Store | 1<<Modify | 1<<RangeRead | 1<<RangeWrite)

// WriteKinds contains the kinds of data references that write.
const WriteKinds = Kinds(1<<Store | 1<<Modify | 1<<RangeWrite)

// AllKinds contains all kinds of references: data references and instruction fetches.
const AllKinds = DataKinds | 1<<Fetch

// EventKinds contains all kinds of events.
const EventKinds = Kinds(1<<endOfKinds - 1<<BlockEntry)

// Has reports whether the set contains a kind.
func (s Kinds) Has(k Kind) bool { return s>>k&1 != 0 }

// String returns the names of the kinds, separated by commas. String returns "data" for DataKinds,
// and "all" for AllKinds.
func (s Kinds) String() string {
	switch s {
	case DataKinds:
		return "data"
	case AllKinds:
		return "all"
	}
	var names []string
	for k := range endOfKinds {
		if k.Valid() && s.Has(k) {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, ",")
}

// ParseKinds parses a comma-separated list of names of kinds of references and of the sets "data"
// and "all". The error quotes the unknown word.
func ParseKinds(list string) (set Kinds, err error) {
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		kind := slices.Index(kindNames[:NumKinds], word)
		switch {
		case word == "data":
			set |= DataKinds
		case word == "all":
			set |= AllKinds
		case kind >= 0:
			set |= 1 << kind
		default:
			return 0, &OptionError{Option: "kinds", Got: word,
				Want: "load, store, modify, fetch, range-read, range-write, data or all, separated by commas"}
		}
	}
	return set, nil
}

// OptionError reports an invalid option, which the user can correct.
type OptionError struct {
	Option string // name of the option, without dashes
	Got    string // the given value, or a text such as "with --other" that names a conflicting option
	Want   string // description of the accepted values
}

func (e *OptionError) Error() string {
	got := e.Got
	if !strings.HasPrefix(got, "with ") {
		got = quote(got)
	}
	return e.Option + " " + got + ", want " + e.Want
}
