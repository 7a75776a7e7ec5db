// Package contract defines the interfaces between analyses and the framework that runs them,
// package analysis. Every analysis implements [Analysis]. The other interfaces are optional: an
// analysis implements the ones that it needs, and the framework checks for them. It knows no
// analysis by its type.
//
// Every analysis should assert what it implements, because a method with another signature
// would be ignored silently:
//
//	var _ contract.LineCounter = (*Analysis)(nil)
//
// The table of package analysis contains names, constructors and functions that join results.
package contract

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis consumes a trace, batch by batch, and writes its result into the profile.
//
// One goroutine at a time calls the methods. Consume sees every selected reference exactly once and
// in order, unless Append stands in for a segment. Analyses of one run are called in the order of
// the table, so an analysis may use results of an earlier one for the same batch.
type Analysis interface {
	// Takes says what Consume reads. It is called before the first batch, and its answer never
	// changes. Every analysis gets references, with the columns Addr, Bytes, Kind and Thread, and
	// the columns Site and PC if it asks for them and the trace has them. An analysis that takes
	// events gets all rows with all columns, and the events that other analyses asked for too.
	Takes() (events trace.Kinds, sites, pcs bool)
	// Consume reads the next rows. The batch is read-only and valid until Consume returns.
	// An error ends the run.
	Consume(b *trace.Batch) error
	// Result writes the sections of the analysis into p. It may be called at any time
	// between batches. Later batches do not change what it wrote. With state, it also
	// fills p.Segment, which is not nil then, with all that Restore and Append need.
	Result(p *profile.Profile, state bool)
	// Close frees what a Result without state does not need. Only Result may be called
	// afterwards, and the result may share memory with the analysis.
	Close()
	// Restore makes a fresh analysis continue where p ends. p has a Segment. An error says
	// that p is damaged.
	Restore(p *profile.Profile) error
	// Append adds the segment that follows what was analysed so far, as if Consume had read
	// its rows. next has a Segment that starts there.
	Append(next *profile.Profile) error
}

// LineCounter is an analysis that counts distinct lines. The framework calls it between
// batches to report progress. The last one in the order of the table is shown.
type LineCounter interface {
	// Lines returns the number of distinct lines so far, of the smallest line size.
	Lines() uint64
}

// PieceConsumer is an analysis whose time and memory grow with the bytes of a reference. A
// reference that touches more than a step may is passed to ConsumePiece instead of Consume,
// piece by piece, so that the program that runs the analysis soon has a turn. All other
// analyses consume the whole reference before the second piece.
type PieceConsumer interface {
	// ConsumePiece reads the bytes from from up to end of a reference, which is the only row
	// of b. Pieces are consecutive, the first begins at 0, and it counts the reference.
	// Pieces end at multiples of every line size.
	ConsumePiece(b *trace.Batch, from, end uint64)
}

// Settler is an analysis that has to do work that can fail before its result is complete.
type Settler interface {
	// Settle completes the result. The framework calls it when the trace has ended and when
	// it saves the state of a run. It may be called again, and in a saved run more batches
	// may follow. An error ends the run.
	Settle() error
}

// Joiner is an analysis that cannot append every segment of its run. The framework asks
// before it has workers analyse segments ahead, and again before it appends one. A segment
// that cannot be appended is analysed in order instead, which costs time but nothing else.
// Profiles of finished runs are joined without asking: there Append returns an error.
type Joiner interface {
	// Joins reports whether a segment with references of these threads can be appended now,
	// and whether there may be a time when one can. If later is false, no more segments are
	// analysed ahead.
	Joins(threads []uint32) (now, later bool)
}

// RowAppender is an analysis that cannot analyse segments: it has to read all rows in order. When
// other analyses append a segment, it reads the segment's rows.
type RowAppender interface {
	// Reads reports whether it still reads rows. After it has returned false it always
	// does, and the framework need not read segments again.
	Reads() bool
	// AppendRows reads the next rows of a segment, before or after Append is called for that
	// segment. Together the batches have all its rows in order, as an analysis gets them that
	// takes events.
	AppendRows(b *trace.Batch) error
}

// MultiCore is an analysis of threads on several cores, which has nothing to say of a
// segment whose references are of one core. Segments of such runs are analysed without it,
// and appended without it if Alone agrees.
type MultiCore interface {
	// Alone reports whether everything analysed so far, and references of these threads,
	// are of one core. The framework calls it between batches.
	Alone(threads []uint32) bool
	// Several reports whether more than one core has appeared.
	Several() bool
}

// Concurrent is an analysis that can use goroutines of its own.
type Concurrent interface {
	// RunConcurrently allows them. The framework calls it before the first batch of a run on
	// several processors.
	RunConcurrently()
}

// Spiller is an analysis that can move what it keeps of every line out of memory.
type Spiller interface {
	// Spill returns an analysis that continues here with an empty spill store. The framework
	// drops the receiver, and every analysis that it feeds, between two batches or two
	// pieces. If the store fails, the next call of the new analysis returns the error.
	Spill(b Budget) Analysis
}

// Budget limits the memory of the models.
type Budget struct {
	Bytes uint64
	Lines int // of a segment at most; 0: as many as fit
	Shelf stack.Shelf
	// Events are read although no analysis takes them: the run began in memory, with
	// analyses that did, and counts the same rows when it is restored.
	Events trace.Kinds
}

// LayoutFollower is an analysis whose result for a segment depends on where blocks of memory
// lie at the beginning of the segment. One analysis of a run at most is a LayoutFollower. A
// fresh one, made only to follow blocks, reads rows with Move and passes the layout on.
type LayoutFollower interface {
	Analysis
	// Move reads rows whose references another analysis counts. Only events of
	// [LayoutEvents] need to be among them, with the columns Kind, Addr, Site and Arg.
	Move(b *trace.Batch)
	// Layout returns the places of blocks now, by address. Blocks that the program's tables declare
	// are left out.
	Layout() []Block
	// Lay places blocks as in a layout of the same trace. It is called before the first batch
	// of a segment.
	Lay(layout []Block)
	// Succeed is Lay with the layout of another analysis of the same type. It takes over the memory
	// of that analysis, which must not be used any more, except for the results that it returned.
	Succeed(before LayoutFollower)
}

// LayoutEvents are the events that change where blocks of memory lie.
const LayoutEvents = trace.Kinds(1<<trace.Alloc | 1<<trace.Free)

// Block is the place of one block of memory, and its owner: the heap, by the allocating site, or a
// function's local variable.
type Block struct {
	From     trace.Addr
	Bytes    uint64
	Kind     profile.ObjectKind // HeapObject or StackObject
	Site     uint32             // of a HeapObject
	Function string             // of a StackObject, by name
	Name     string
}

// UnknownError reports a row that names code which the trace's tables do not contain.
type UnknownError struct {
	What    string // "block" or "site"
	Number  uint32
	Known   int
	Without string // the analyses that need it
}

func (e *UnknownError) Error() string {
	return "a row is of " + e.What + " " + strconv.FormatUint(uint64(e.Number), 10) + ", but the trace's tables contain " +
		strconv.Itoa(e.Known) + " only; the file is damaged or was joined from parts: capture it again, or analyse without " + e.Without
}
