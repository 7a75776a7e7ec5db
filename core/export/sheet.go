// Package export writes profiles in the forms of other tools, and as a report
// that needs none.
//
//   - [Sheet.Pprof]: profile.proto, for pprof and what reads its files.
//   - [Sheet.Callgrind]: for callgrind_annotate, KCachegrind and QCachegrind.
//   - [Sheet.Folded]: a stack a line, for flame graphs of one event.
//   - [Tables]: all that a profile tells, for CSV and JSON.
//   - [HTML]: one file with tables and drawings, for a browser or a printer.
//
// The first three are about places in the code and start from a [Sheet]: events
// in columns, places in rows. What no place is known for is a row of its own, so
// that every event adds up to the exact number of the whole run.
//
// Everything here is a function from a profile to bytes: no clock, no name of a
// machine; the same profile gives the same file anywhere.
package export

import (
	"math"
	"strconv"
)

// Sheet counts events by place in the code.
type Sheet struct {
	Command string   // what was traced, "" where it is not known
	Notes   []string // doubts and definitions, in sentences
	Events  []Event
	Entries []Entry
	Main    int // the event to look at first
}

// Event is a thing that is counted. Counts of events can be added up.
type Event struct {
	Key  string // letters, digits and _: "L1_misses"
	Unit string // "count", "lines"
	Text string // for people: "misses of L1"
}

// Entry is one place in the code.
type Entry struct {
	Function     string // "" where not known, as the following
	Symbol       string // its name in the program, as the linker has it
	File         string
	Line, Column uint32
	PC           uint64 // 0: not known
	Module       string
	Offset       uint64 // of the PC in the module
	Kind         string // of reference: "load"
	Type         string // of the data
	Variable     string

	Counts []uint64 // of Sheet.Events
}

// Name is what the place is called: its function, or its address.
func (e *Entry) Name() string {
	switch {
	case e.Function != "":
		return e.Function
	case e.Module != "":
		return e.Module + "+0x" + strconv.FormatUint(e.Offset, 16)
	case e.PC != 0:
		return "0x" + strconv.FormatUint(e.PC, 16)
	}
	return "(not known)"
}

// Totals are the sums of all entries.
func (s *Sheet) Totals() []uint64 {
	totals := make([]uint64, len(s.Events))
	for i := range s.Entries {
		for event, n := range s.Entries[i].Counts {
			totals[event] = saturatingAdd(totals[event], n)
		}
	}
	return totals
}

// Event is the index of the event with that key, or -1.
func (s *Sheet) Event(key string) int {
	for i := range s.Events {
		if s.Events[i].Key == key {
			return i
		}
	}
	return -1
}

func saturatingAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
