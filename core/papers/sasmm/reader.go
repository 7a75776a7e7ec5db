package sasmm

import (
	"io"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
)

// Private returns a reader that synthesises the private traces of the cores with Algorithm 1, from
// the trace of a single-threaded run. The records of each core are in program order; the order of
// records of different cores has no meaning.
func Private(r trace.Reader, o Options) (*Reader, error) { return newReader(r, o, false) }

// Shared returns a reader that synthesises the trace of a shared cache with Algorithm 2, from
// the trace of a single-threaded run.
//
// Each core has the same records as in its private trace, but their order may differ: if cores take
// different branches, the blocks of all cores are in the order of core 0. To simulate private
// caches, use [Private].
func Shared(r trace.Reader, o Options) (*Reader, error) { return newReader(r, o, true) }

// Reader reads a synthesised trace. Reader implements trace.Selector and trace.Describer.
//
// The errors of Next are the errors of the original trace, *[LimitError], *[BlocksError],
// *[ThreadsError], *[AddressError], and *contract.UnknownError for a record whose site or block is
// unknown.
type Reader struct {
	in      trace.Reader
	options Options
	shared  bool
	kinds   trace.Kinds // the selected kinds
	started bool        // whether the kinds of records to read have been selected

	// The following fields contain the state of the input.
	batch   *trace.Batch // current batch of the trace; rows from index "at" on have not been processed
	at      int
	known   *trace.Program
	program trace.Program // the program that Header returns
	thread  int64         // the thread of the trace; -1: unknown
	pcs     bool          // whether rows have PCs
	done    bool          // whether the trace has ended, with error err
	err     error
	late    error // error to return before the next row

	// The following fields describe the execution that is being read.
	now     execution
	begun   bool   // whether the execution began with a BlockEntry
	site    uint32 // site of the execution's last reference
	outside bool   // whether the execution is at least partly outside of regions
	depth   int    // number of open regions
	frame   trace.Addr
	low     trace.Addr // the lowest address of the stack

	counts  []Count // counts of each block
	blocks  bool    // whether the trace has blocks
	regions uint64

	// The following fields contain the executions that are kept until the section is complete.
	section   section
	keeping   bool // whether the section is incomplete
	replaying bool
	order     orderReader
	group     *track // the track whose j-th executions on all cores are merged next
	j         uint64
	read      execution
	held      execution // the first execution after the section
	holding   bool

	// The following fields contain the output: the merged rows of lanes.
	merger  *interleave.Merger
	merging bool
	lanes   []lane
	waiting int // number of rows that are waiting in lanes
	cores   []uint32
	streams []interleave.Stream
}

// Count contains the counts of a block in the sequential trace.
type Count struct {
	Executions uint64 // number of executions, N_i
	References uint64 // number of references in all executions
	// Parallel is the number of executions that are divided or copied. If executions are divided as
	// in the paper, either all executions of a block are parallel, or none are. If executions are
	// divided by region, the executions inside regions are parallel.
	Parallel uint64
}

func newReader(in trace.Reader, o Options, shared bool) (*Reader, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.LimitBytes == 0 {
		o.LimitBytes = DefaultLimitBytes
	}
	r := &Reader{in: in, options: o, shared: shared, kinds: trace.AllKinds, batch: trace.NewBatch(0), thread: -1}
	r.section.limit, r.section.cores = o.LimitBytes, o.Cores
	r.keeping = !o.PerRegion
	r.merger = interleave.New(o.Order)
	r.lanes = make([]lane, o.Cores)
	for i := range r.lanes {
		r.lanes[i].batch = trace.NewBatch(0)
	}
	r.now.reset(noBlock)
	r.outside = true
	return r, nil
}

// Select implements [trace.Selector].
func (r *Reader) Select(kinds trace.Kinds) { r.kinds = kinds }

// Header returns the header of the trace, with one thread for each core instead of the original
// threads. Header implements [trace.Describer].
func (r *Reader) Header() trace.Header {
	var h trace.Header
	if d, ok := r.in.(trace.Describer); ok {
		h = d.Header()
	}
	h.Threads, h.Sliced, h.Sites = true, false, h.Sites || r.blocks
	if h.Program == nil {
		return h
	}
	r.program = *h.Program
	private := moveToCore
	if r.options.Ranges != nil {
		private = nil
	}
	r.program.Threads = h.Program.LikeFirst(r.options.Cores, private)
	h.Program = &r.program
	return h
}

// Blocks returns the counts of each block in the sequential trace so far, indexed by block number.
func (r *Reader) Blocks() []Count {
	if r.known == nil {
		return nil
	}
	return r.counts[:min(len(r.counts), len(r.known.Blocks))]
}

// Regions returns the number of parallel regions so far.
func (r *Reader) Regions() uint64 { return r.regions }

// requiredKinds contains the kinds of events that are always read.
const requiredKinds = trace.Kinds(1<<trace.BlockEntry | 1<<trace.ParallelBegin | 1<<trace.ParallelEnd)

// Next fills b as specified by [trace.Reader]. Records have a thread and, if the trace has blocks,
// a site.
func (r *Reader) Next(b *trace.Batch) error {
	if !r.started {
		r.started = true
		if s, ok := r.in.(trace.Selector); ok {
			s.Select(r.kinds&^(1<<trace.BareBlock) | requiredKinds)
		}
	}
	b.Reset()
	if err := r.late; err != nil {
		r.late = nil
		return err
	}
	for b.Len() < b.Cap() {
		if !r.merging {
			if err := r.advance(); err != nil {
				return r.fail(b, err)
			}
		} else if err := r.merger.Fill(b); err == io.EOF {
			r.merging = false
		} else if err != nil {
			return r.fail(b, err)
		}
	}
	return nil
}

// fail returns err if b is empty; otherwise, the next call of Next returns err.
func (r *Reader) fail(b *trace.Batch, err error) error {
	if b.Len() > 0 {
		r.late = err
		return nil
	}
	b.Reset()
	return err
}

// advance performs one step: it reads rows of the trace, replays stored executions, queues an
// execution, or starts a merge.
func (r *Reader) advance() error {
	switch {
	case r.group != nil:
		r.gather()
	case r.replaying:
		r.replay()
	case r.holding:
		r.holding = false
		r.queue(&r.held, 0)
	case !r.done:
		return r.readRows()
	case r.waiting > 0:
		r.flush()
	default:
		return r.err
	}
	return nil
}

// readRows reads rows of the trace. It stops if executions must be returned before further rows can
// be read.
func (r *Reader) readRows() error {
	for r.at < r.batch.Len() {
		if err := r.row(r.at); err != nil {
			r.done, r.err = true, err
			return nil
		}
		if r.at++; r.merging || r.replaying || r.holding {
			return nil
		}
	}
	r.at = 0
	err := r.in.Next(r.batch)
	if err != nil {
		r.batch.Reset()
		if !trace.IsSyntax(err) {
			r.done, r.err = true, r.finishInput(err)
			err = nil
		}
		return err
	}
	r.pcs = r.pcs || r.batch.PC != nil
	if d, ok := r.in.(trace.Describer); ok {
		r.known = d.Header().Program
	}
	return nil
}

// finishInput starts the replay of the stored executions at the end of the trace, and returns the
// final error.
func (r *Reader) finishInput(err error) error {
	if err != io.EOF {
		return err // a part of the trace was not read, so nothing is replayed
	}
	if err := r.beginExecution(noBlock); err != nil {
		return err
	}
	if !r.blocks {
		return &BlocksError{}
	}
	if r.keeping {
		r.beginReplay()
	}
	return io.EOF
}

func (r *Reader) row(i int) error {
	b := r.batch
	if b.Thread != nil && b.Kind[i].IsReference() {
		if t := int64(b.Thread[i]); r.thread != t {
			if r.thread >= 0 {
				return &ThreadsError{uint32(r.thread), b.Thread[i]}
			}
			r.thread = t
		}
	}
	c := cell{bytes: b.Bytes[i], kind: b.Kind[i]}
	if b.Site != nil {
		c.site = b.Site[i]
	}
	if b.PC != nil {
		c.pc = b.PC[i]
	}
	block, entry, err := r.blockOf(&c, b.Site != nil)
	if err != nil {
		return err
	}
	if entry || c.kind.IsReference() && r.startsExecution(block, c.site) {
		if err := r.beginExecution(block); err != nil {
			return err
		}
		r.begun = entry
	}
	return r.addRow(c, i)
}

// startsExecution reports whether a reference is the first reference of an execution. If the trace
// has no block entries, a reference begins an execution unless its site number is larger than the
// site number of the previous reference.
func (r *Reader) startsExecution(block, site uint32) bool {
	switch {
	case block != r.now.block:
		return true
	case r.begun || len(r.now.cells) == 0:
		return false
	case block == noBlock:
		return len(r.now.cells) >= enoughRows
	}
	return site <= r.site
}

// blockOf returns the block of a reference or of a BlockEntry event.
func (r *Reader) blockOf(c *cell, sites bool) (block uint32, entry bool, err error) {
	switch {
	case c.kind == trace.BlockEntry:
		if r.known == nil || uint64(c.site) >= uint64(len(r.known.Blocks)) {
			return 0, false, &contract.UnknownError{What: "block", Number: c.site, Known: r.blocksKnown(), Without: "blocks"}
		}
		r.blocks = true
		return c.site, true, nil
	case !c.kind.IsReference() || !sites || r.known == nil:
		return noBlock, false, nil
	case uint64(c.site) >= uint64(len(r.known.Sites)):
		return 0, false, &contract.UnknownError{What: "site", Number: c.site, Known: len(r.known.Sites), Without: "blocks"}
	}
	if block = r.known.Sites[c.site].Block; uint64(block) >= uint64(len(r.known.Blocks)) {
		return 0, false, &contract.UnknownError{What: "block", Number: block, Known: len(r.known.Blocks), Without: "blocks"}
	}
	r.blocks = r.blocks || r.known.Blocks[block].Flags&trace.Synthetic == 0
	return block, false, nil
}

func (r *Reader) blocksKnown() int {
	if r.known == nil {
		return 0
	}
	return len(r.known.Blocks)
}

// addRow adds row i of the current batch to the execution that is being read.
func (r *Reader) addRow(c cell, i int) error {
	addr, arg := r.batch.Addr[i], uint64(0)
	if r.batch.Arg != nil {
		arg = r.batch.Arg[i]
	}
	switch {
	case c.kind.IsReference():
		if r.site = c.site; r.now.block != noBlock {
			r.counts[r.now.block].References++
		}
		c.private = r.isPrivate(addr)
	case c.kind == trace.Alloc || c.kind == trace.Free:
		c.private = r.isPrivate(addr)
	case c.kind == trace.ParallelBegin:
		if r.depth++; r.depth == 1 {
			r.regions++
			r.recordFork(addr)
		}
	case c.kind == trace.ParallelEnd && r.depth > 0:
		r.depth--
		r.outside = r.outside || r.depth == 0
	}
	if c.private && r.depth > 0 && r.options.Cores > 1 && !movable(addr) {
		return &AddressError{addr}
	}
	if int64(len(r.now.cells)) > r.options.LimitBytes/48 {
		return r.tooLong()
	}
	r.now.add(c, addr, arg)
	return nil
}

// beginExecution completes the execution that is being read, and begins an execution of a block.
func (r *Reader) beginExecution(block uint32) error {
	if len(r.now.cells) > 0 {
		if err := r.routeExecution(); err != nil {
			return err
		}
	}
	r.now.reset(block)
	r.outside, r.begun, r.site = r.depth == 0, false, 0
	r.count(block)
	return nil
}

func (r *Reader) count(block uint32) {
	if block == noBlock {
		return
	}
	for uint64(len(r.counts)) <= uint64(block) {
		r.counts = append(r.counts, make([]Count, max(64, len(r.counts)))...)
	}
	r.counts[block].Executions++
}

// routeExecution adds the execution to the section if the execution is in a region, or if
// executions are divided as printed in the paper. All other executions are queued for the output.
// An execution in which a region begins or ends is outside of the region, because the executed
// block forks, or continues after the join.
func (r *Reader) routeExecution() error {
	x := &r.now
	if !r.options.PerRegion {
		return r.keep(x, !r.outside)
	}
	if !r.outside {
		if x.block != noBlock {
			r.counts[x.block].Parallel++
		}
		r.keeping = true
		return r.keep(x, true)
	}
	if !r.keeping {
		r.queue(x, 0)
		return nil
	}
	r.beginReplay()
	r.held, r.now, r.holding = r.now, r.held, true
	return nil
}

func (r *Reader) keep(x *execution, parallel bool) error {
	if r.section.add(x, parallel && x.block != noBlock) {
		return nil
	}
	return r.tooLong()
}

func (r *Reader) tooLong() error {
	return &LimitError{LimitBytes: r.options.LimitBytes, PerRegion: r.options.PerRegion, Executions: r.section.order.total}
}
