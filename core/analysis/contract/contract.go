// Package contract defines the interfaces between analyses and the framework that runs them,
// package analysis. Every analysis implements [Analysis]. The other interfaces are optional. An
// analysis implements only the interfaces that it needs, and the framework detects them. The
// framework does not depend on the concrete type of any analysis.
//
// Every analysis should assert the interfaces that it implements, because the framework silently
// ignores a method with a wrong signature:
//
//	var _ contract.LineCounter = (*Analysis)(nil)
//
// The table of package analysis contains the names and constructors of the analyses, and the
// functions that join their results.
package contract

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// NewData returns an analysis of data structures. Package structures sets NewData. Only programs
// that need this analysis import package structures, so the page does not load the package on the
// first visit. In programs without the package, NewData panics.
var NewData = func(lineBytes uint32, program func() *trace.Program) Analysis {
	panic("contract: a program that analyses data structures must import core/analysis/structures")
}

// Analysis consumes a trace, batch by batch, and writes its result into the profile.
//
// The methods are never called concurrently. Consume receives every selected reference exactly once
// and in order, except for segments that are passed to Append. The analyses of a run are called in
// the order of the table, so an analysis may use the results of an earlier analysis for the same
// batch.
type Analysis interface {
	// Takes returns the kinds of rows and the columns that Consume reads. Takes is called before
	// the first batch, and its results never change. Every analysis receives references, with the
	// columns Addr, Bytes, Kind and Thread, and, if it requests them and the trace has them, the
	// columns Site and PC. An analysis that requests events receives all rows with all columns,
	// including events that only other analyses requested.
	Takes() (events trace.Kinds, sites, pcs bool)
	// Consume processes the next rows. The batch is read-only, and valid only until Consume
	// returns. An error ends the run.
	Consume(b *trace.Batch) error
	// Result writes the sections of the analysis into p. Result may be called at any time between
	// batches. Later batches must not change these sections. If state is true, p.Segment is not
	// nil, and Result also stores the data that Restore and Append need in p.Segment.
	Result(p *profile.Profile, state bool)
	// Close frees the data that Result would need only for state = true. After Close, only Result
	// may be called, and its result may share memory with the analysis.
	Close()
	// Restore makes a new analysis continue where the run of profile p ended. p.Segment is not nil.
	// Restore returns an error if p is damaged.
	Restore(p *profile.Profile) error
	// Append adds the next segment, as if Consume had received its rows. next.Segment is not nil.
	// The segment begins where the part that has been analysed ends.
	Append(next *profile.Profile) error
}

// LineCounter is an analysis that counts distinct lines. To report progress, the framework calls
// the Lines method of the last LineCounter in the table, between batches.
type LineCounter interface {
	// Lines returns the number of distinct lines so far, for the smallest line size.
	Lines() uint64
}

// PieceConsumer is an analysis whose time and memory grow with the size of a reference. A reference
// that is too large for one step is passed to ConsumePiece instead of Consume, in several pieces,
// so that each step is short. Analyses that are not PieceConsumers consume the whole reference
// before the second piece.
type PieceConsumer interface {
	// ConsumePiece processes the bytes [from, end) of a reference, which is the only row of batch
	// b. The first piece begins at 0, and each further piece begins where the previous piece ends.
	// The reference is counted only with the first piece. Pieces end at multiples of every line
	// size.
	ConsumePiece(b *trace.Batch, from, end uint64)
}

// Settler is an analysis that must do additional work to complete its result. The additional work
// can fail.
type Settler interface {
	// Settle completes the result. The framework calls Settle at the end of the trace, and before
	// it saves the state of a run. Settle may be called several times, because a saved run may
	// continue with more batches. An error ends the run.
	Settle() error
}

// Joiner is an analysis that cannot append every segment of its run. The framework calls Joins
// before workers analyse segments in advance, and again before it appends a segment. If a segment
// cannot be appended, its records are analysed in order instead, which takes longer. For profiles
// of finished runs, the framework does not call Joins, and Append returns an error.
type Joiner interface {
	// Joins reports whether the segment can be appended now, and whether segments may be appended
	// later. next is nil if the segment is not known yet. If the result later is false, the
	// framework analyses no more segments in advance.
	Joins(next *profile.Profile) (now, later bool)
}

// RowAppender is an analysis that cannot analyse segments, because it must read all rows in order.
// When other analyses append a segment, a RowAppender reads the rows of the segment.
type RowAppender interface {
	// Reads reports whether the analysis still reads rows. After Reads has returned false, it
	// always returns false, and the framework need not read the rows of segments for this analysis.
	Reads() bool
	// AppendRows reads the next rows of a segment, before or after Append is called for the
	// segment. The batches contain all rows of the segment in order, including all events.
	AppendRows(b *trace.Batch) error
}

// MultiCore is an analysis of threads on several cores. MultiCore has no results for a segment
// whose references belong to a single core, so segments are analysed without a MultiCore. If Alone
// returns true, segments are also appended without it.
type MultiCore interface {
	// Alone reports whether all references so far, and all references of the given threads, belong
	// to a single core. The framework calls Alone between batches.
	Alone(threads []uint32) bool
	// Several reports whether more than one core has appeared.
	Several() bool
}

// Concurrent is an analysis that can start its own goroutines.
type Concurrent interface {
	// RunConcurrently allows the analysis to start goroutines. The framework calls RunConcurrently
	// before the first batch of a run on several processors.
	RunConcurrently()
}

// Spiller is an analysis that can move its data about lines out of memory.
type Spiller interface {
	// Spill returns an analysis that continues at the current position with an empty spill store.
	// Spill is called between two batches or two pieces. Afterwards, the framework discards the
	// receiver and every analysis that receives data from it. If the store fails, the next call to
	// a method of the new analysis returns the error.
	Spill(b Budget) Analysis
}

// Budget contains the memory limit of the stacks and the spill store.
type Budget struct {
	Bytes uint64
	Lines int // maximum number of lines of a segment; 0: as many as fit
	Shelf stack.Shelf
	// Events are the events that are read even if no analysis requests them. If a run began in
	// memory, with analyses that requested events, the same rows must be counted when the run is
	// restored.
	Events trace.Kinds
}

// LayoutFollower is an analysis whose result for a segment depends on the layout of memory blocks
// at the beginning of the segment. At most one analysis of a run is a LayoutFollower. A separate
// instance, which only tracks the layout, reads rows with Move and passes its layout to the
// analyses of segments.
type LayoutFollower interface {
	Analysis
	// Move updates the layout from rows, without counting their references. The rows must contain
	// at least the events of [LayoutEvents], with the columns Kind, Addr, Site and Arg.
	Move(b *trace.Batch)
	// Layout returns the current memory blocks, sorted by address. Layout omits blocks that the
	// program's tables declare.
	Layout() []Block
	// Lay sets the layout. The layout must have been computed for the same trace. Lay is called
	// before the first batch of a segment.
	Lay(layout []Block)
	// Succeed is like Lay, but takes the layout and its memory from an analysis of the same type.
	// Afterwards, that analysis must not be used, except for the results that it has returned.
	Succeed(before LayoutFollower)
}

// LayoutEvents contains the events that change the layout of memory blocks.
const LayoutEvents = trace.Kinds(1<<trace.Alloc | 1<<trace.Free)

// Block describes the address range of a memory block, and its owner: the site of a heap
// allocation, or a function's local variable.
type Block struct {
	From     trace.Addr
	Bytes    uint64
	Kind     profile.ObjectKind // HeapObject or StackObject
	Site     uint32             // allocating site of a HeapObject
	Function string             // name of the function of a StackObject
	Name     string
}

// UnknownError reports a row that refers to code that the trace's tables do not contain.
type UnknownError struct {
	What    string // "block" or "site"
	Number  uint32
	Known   int
	Without string // the analyses that need the code
}

func (e *UnknownError) Error() string {
	return "a record refers to " + e.What + " " + strconv.FormatUint(uint64(e.Number), 10) + ", but the trace's tables contain only " +
		strconv.Itoa(e.Known) + "; the file is damaged, or was joined from parts; record the program again, or analyse the trace without " + e.Without
}
