package answers

import "github.com/stackglass/stackglass/core/report"

// A view of loops lists the nests that make this share of the references or more, and at
// most so many; asker and answerer have to agree.
const (
	LeastNest = 0.001
	MostNests = 400
)

// NestChange is a change to the code as the command's options have it: its kind and the rest.
type NestChange struct{ Kind, Text string }

// LoopQuestion is what a page asks of a run's loops (package loopcount): misses by loop,
// and what changes to a nest would save. It always is all that is wanted; what was counted
// before is not counted again.
type LoopQuestion struct {
	Machine []string // the hierarchy in question, a level a line (hierarchy.Lines)
	Loop    uint32   // the number of the loop that is looked at
	Nest    uint32   // the number of the nest that changes are tried on
	Changes []NestChange
	Propose bool // changes are to be searched for
}

// LoopReply answers a part of a LoopQuestion. These are its tables, by their keys:
//
//	misses     of the loop, of all other accesses and of the run, by level and cause
//	evictions  whose lines went because whose came
//	classes    of the loop's arrays, in their order: class, in the level ClassLevel
//	tried      what the changes do, each by itself
//	proposed   changes that were found
type LoopReply struct {
	Trial   bool   // this is of the changes; else of the loops as they are
	Problem string // why there are no answers, in a sentence; ""

	Levels     []LoopLevel
	ClassLevel string // "" where there are no classes

	Refused string   // why no change can be tried on the nest, in a sentence; ""
	Wrong   []string // what is wrong with each change, in a sentence; "" for nothing
	Doubts  []string // what to know of the tables of changes

	Tables []report.Table
}

// LoopLevel is what was counted of a level that sees every access.
type LoopLevel struct {
	Name    string
	Problem string // why nothing was, in a sentence; with counts, what is otherwise in the cache

	Counted          bool
	Sets, Ways       uint64
	Accesses, Jumped uint64   // those that were not made one by one
	Misses           []uint64 // of each loop
}

// Table is the table with that key, or nil.
func (r *LoopReply) Table(key string) *report.Table {
	return tableOf(r.Tables, key)
}

func tableOf(tables []report.Table, key string) *report.Table {
	for i := range tables {
		if tables[i].Key == key {
			return &tables[i]
		}
	}
	return nil
}
