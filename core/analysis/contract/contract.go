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
// The table in package analysis lists the analyses with their names and constructors.
package contract

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// NewData returns an analysis of data structures. Package structures sets NewData. Only programs
// that need this analysis import package structures, so that the page does not have to load the
// package on the first visit. In programs without the package, NewData panics.
var NewData = func(lineBytes uint32, program func() *trace.Program) Analysis {
	panic("contract: a program that analyses data structures must import core/analysis/structures")
}

// NewPrologue returns the prologue of a run that skips references. Package prologue sets NewPrologue.
// In programs without this package, NewPrologue is nil, and runs cannot skip references.
var NewPrologue func(analyses []Analysis, program func() *trace.Program) Prologue

// Prologue follows the rows before the part of a trace that a run analyses.
type Prologue interface {
	// Follow follows the first rows of a batch.
	Follow(b *trace.Batch, rows int) error
	// DropCounts removes the counts of the skipped rows from all analyses.
	DropCounts()
	// End ends the skipped rows, and passes the records of the open regions and of the current
	// memory blocks to the analyses that read events.
	End() error
}

// Analysis consumes a trace, batch by batch, and writes its result into the profile.
//
// The methods are never called concurrently. Consume receives every selected reference exactly once
// and in order, except for the references of segments that are passed to Append. The framework
// calls the analyses of a run in the order of the table, so an analysis may use the results that an
// earlier analysis has for the same batch.
type Analysis interface {
	// Takes returns the kinds of rows and the columns that Consume reads. The framework calls Takes
	// before the first batch, and Takes always returns the same results. Every analysis receives
	// references with the columns Addr, Bytes, Kind and Thread. An analysis also receives the
	// columns Site and PC if the analysis requests these columns and the trace has them. An
	// analysis that requests events receives all rows with all columns, including events that only
	// other analyses requested.
	Takes() (events trace.Kinds, sites, pcs bool)
	// Consume processes the next rows. The batch is read-only, and valid only until Consume
	// returns. An error ends the run.
	Consume(b *trace.Batch) error
	// Result writes the sections of the analysis into p. Result may be called at any time between
	// batches. Later batches must not change these sections. If the parameter state is true, Result
	// also stores the data for Restore and Append in p.Segment, which is then not nil.
	Result(p *profile.Profile, state bool)
	// Close frees the data that only Restore and Append need. After Close, only Result may be
	// called, with state = false, and its result may share memory with the analysis.
	Close()
	// Restore makes a new analysis continue a run that ended with profile p. p.Segment is not nil.
	// Restore returns an error if p is damaged.
	Restore(p *profile.Profile) error
	// Append adds the next segment, as if Consume had received its rows. next.Segment is not nil.
	// The segment begins at the position that the analysis has reached.
	Append(next *profile.Profile) error
}

// LineCounter is an analysis that counts distinct lines. Between batches, the framework calls the
// method Lines of the last LineCounter in the table, to report progress.
type LineCounter interface {
	// Lines returns the number of distinct lines so far, for the smallest line size.
	Lines() uint64
}

// PieceConsumer is an analysis whose time and memory grow with the size of a reference. The
// framework divides a reference that is too large for one step into pieces, and passes the pieces
// to ConsumePiece instead of Consume. Analyses that are not PieceConsumers receive the whole
// reference before the second piece.
type PieceConsumer interface {
	// ConsumePiece processes the bytes [from, end) of a reference, which is the only row of batch
	// b. The first piece begins at 0, and each further piece begins at the end of the previous
	// piece. The analysis counts the reference only for the first piece. Every piece except the
	// last one ends at an address that is a multiple of every line size.
	ConsumePiece(b *trace.Batch, from, end uint64)
}

// Settler is an analysis whose result must be completed by an additional step, which can fail.
type Settler interface {
	// Settle completes the result. The framework calls Settle at the end of the trace, and before
	// it saves the state of a run. Settle may be called several times, because a saved run may
	// continue with more batches. An error ends the run.
	Settle() error
}

// Joiner is an analysis that may be unable to append some segments of its run. The framework calls
// Joins before workers analyse segments in advance, and again before it appends a segment. If a
// segment cannot be appended, the framework analyses its records in order, which takes longer. For
// profiles of finished runs, the framework does not call Joins, and Append returns an error.
type Joiner interface {
	// Joins reports whether a segment can be appended now, and whether segments may be appended
	// later. The parameter next is nil if the result of the segment is not available yet. The
	// framework analyses no more segments in advance if Joins returns later = false.
	Joins(next *profile.Profile) (now, later bool)
}

// RowAppender is an analysis that cannot analyse segments, because it must read all rows in order.
// When other analyses append a segment, a RowAppender reads the rows of the segment.
type RowAppender interface {
	// Reads reports whether the analysis still reads rows. Once Reads has returned false, it always
	// returns false, and the framework need not read the rows of segments for this analysis.
	Reads() bool
	// AppendRows reads the next rows of a segment that other analyses append. The framework passes
	// all rows of the segment in order, including all events, either before or after it calls
	// Append.
	AppendRows(b *trace.Batch) error
}

// MultiCore is an analysis of threads on several cores. A MultiCore has no results for references
// that belong to a single core, so such segments are analysed without the MultiCore. If Alone
// returns true, the framework also appends the segment without calling the MultiCore.
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

// Spiller is an analysis that can move its data about each line out of memory.
type Spiller interface {
	// Spill returns an analysis that continues at the current position with an empty spill store.
	// Spill is called between two batches or two pieces. Afterwards, the framework discards the old
	// analysis and every analysis that receives data from it. If the store fails, the next method
	// call of the new analysis returns the error.
	Spill(b Budget) Analysis
}

// Budget contains the memory limit of the stacks and the spill store.
type Budget struct {
	Bytes uint64
	Lines int // maximum number of lines of a segment; 0: limited by Bytes only
	Shelf stack.Shelf
	// Events contains the kinds of events that are read even if no analysis requests them. A run
	// may have begun without a spill store, with analyses that requested events. When such a run is
	// restored, the reader must deliver the same rows, because positions are counted in rows.
	Events trace.Kinds
}

// CallFollower is an analysis that follows calls. If a run skips references, the framework passes the
// skipped rows to the CallFollower, so that the call stacks are known at the first analysed
// reference.
type CallFollower interface {
	Analysis
	// ForgetCounts resets all counts, but keeps the call stacks. ForgetCounts may be called several
	// times, but only before the first analysed reference.
	ForgetCounts()
}

// LayoutFollower is an analysis whose result for a segment depends on the layout of memory blocks
// at the beginning of the segment. At most one analysis of a run is a LayoutFollower. A separate
// instance only tracks the layout: it reads rows with Move, and provides the layout for the
// analyses of segments.
type LayoutFollower interface {
	Analysis
	// Move updates the layout from rows, without counting their references. The rows must contain
	// at least the events of [LayoutEvents], with the columns Kind, Addr, Site and Arg.
	Move(b *trace.Batch)
	// Layout returns the current memory blocks, sorted by address. The result omits blocks that the
	// program's tables declare.
	Layout() []Block
	// Lay sets the layout, which must have been computed for the same trace. The framework calls
	// Lay before the first batch of a segment.
	Lay(layout []Block)
	// Succeed is like Lay, but takes the layout from another analysis of the same type, without a
	// copy. Afterwards, the other analysis must not be used, but results that it has returned
	// remain valid.
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
	Site     uint32             // site that allocates a HeapObject
	Function string             // function that declares a StackObject
	Name     string
}

// UnknownError reports a row that refers to a block or a site that the trace's tables do not
// contain.
type UnknownError struct {
	What    string // "block" or "site"
	Number  uint32
	Known   int
	Without string // names of the analyses that need the missing block or site
}

func (e *UnknownError) Error() string {
	return "a record refers to " + e.What + " " + strconv.FormatUint(uint64(e.Number), 10) + ", but the trace's tables contain only " +
		strconv.Itoa(e.Known) + "; the file is damaged, or was concatenated from parts; record the program again, or analyse the trace without " + e.Without
}
