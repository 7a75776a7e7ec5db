package analysis

import (
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Parallel is a [Runner] on several processors. The result of a Parallel run is byte-identical to
// the result of a Runner (MODELS §9). The scheme is based on PARDA (Niu, Dinan, Lu and Sadayappan,
// PARDA: a fast parallel reuse distance analysis algorithm, IPDPS 2012).
//
//  1. A single goroutine reads the trace and selects rows, ahead of all other goroutines. Any trace
//     can therefore be analysed in parallel, and a limit, a bad record or a truncated file has the
//     same effect as on one processor.
//  2. In [Parallel.Step], the caller's goroutine runs the analyses of the run itself (the live
//     analyses), which read rows in order.
//  3. Workers analyse later segments of the trace. When the live analyses reach a segment, they
//     append it and continue after it. If the worker has not finished the segment, the segment is
//     shortened to the blocks that the worker has analysed, so the live analyses do not wait.
//
// PARDA assigns an equal share of the trace to each processor, and joins all shares at the end.
// Here, the references that the live analyses read need not be joined, and segments are only as
// long as necessary to make joining cheap: see [sizes].
type Parallel struct {
	spec    Spec
	intake  intake
	options ParallelOptions

	live     feed
	header   *trace.Header    // the trace's header at the position of the live analyses
	left     profile.Totals   // totals of the rows that were not selected, up to the position of the live analyses
	position position         // the reader's position that corresponds to the position of the live analyses
	restored *profile.Profile // state from which the run resumes; nil: the run begins at the start of the trace
	failed   error            // error that an analysis reported while its state was saved
	running  bool
	current  *block      // the block that the live analyses are processing; nil: none
	none     trace.Batch // an empty batch

	reading    chan struct{} // closed when reading has ended
	mu         sync.Mutex
	changed    *sync.Cond // signals changes to the following fields
	wake       signal     // signals these changes to Step
	blocks     []block    // the blocks that have not been dropped
	firstBlock int        // number of blocks[0], the block that the live analyses reach next
	claims     claims
	free       []*trace.Batch
	lone       bool    // all references so far belong to one core
	joining    bool    // the live analyses can append segments
	alone      bool    // the live analyses cannot append further segments
	halted     bool    // reading must stop
	closed     bool    // all goroutines must end
	ended      *ending // the reason why reading ended; nil: reading has not ended

	headerCopies headerCopies // copies of the trace's header for the blocks
	moves        layoutChanges
}

// ParallelOptions configures the division of the work.
type ParallelOptions struct {
	Workers int // number of goroutines that analyse the trace; at least 2
	// SegmentReferences is the length of segments; 0: the length is chosen automatically.
	SegmentReferences int
	// memory limit of the run, which limits the length of segments; 0: no limit
	MemoryBytes uint64
}

type ending struct {
	err    error
	header *trace.Header
	left   profile.Totals
}

// Splits reports whether several goroutines can share the work of a run with this spec. If the run
// skips references, the rows before its part must be followed in order.
func (s Spec) Splits() bool {
	return s.Sample == nil && s.Budget == nil && s.Analyses != None && s.Skip == 0
}

// NewParallel checks spec and begins to read r. The caller must call Close. The error is a
// [*trace.OptionError].
func NewParallel(spec Spec, r trace.Reader, o ParallelOptions) (*Parallel, error) {
	spec = spec.WithDefaults()
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if spec.Skip > 0 {
		return nil, &trace.OptionError{Option: "skip", Got: strconv.FormatUint(spec.Skip, 10), Want: "0, because a run that skips references reads all rows in order"}
	}
	o.Workers = max(2, o.Workers)
	p := &Parallel{spec: spec, options: o, wake: make(signal, 1), reading: make(chan struct{}), header: &trace.Header{}}
	p.changed = sync.NewCond(&p.mu)
	p.live.batch = &p.none
	p.live.analyses = table(spec, func() *trace.Program { return p.header.Program })
	p.runConcurrently()
	events := p.live.selectRows()
	p.intake = newIntake(spec, r, events)
	p.moves.wanted = events & contract.LayoutEvents
	return p, nil
}

// runConcurrently makes the stacks of several cores run concurrently, on different processors.
// Workers then do not analyse segments in advance. If communication is analysed, segments cannot be
// joined. Otherwise, joining the stacks of several cores would take longer than computing them.
func (p *Parallel) runConcurrently() {
	for _, a := range p.live.analyses {
		if c, ok := a.Analysis.(contract.Concurrent); ok {
			c.RunConcurrently()
		}
	}
}

// begin starts the reader and the workers.
func (p *Parallel) begin() {
	rows, segment := trace.DefaultRows, 0
	if n := p.options.SegmentReferences; n > 0 {
		rows = min(rows, n)
		segment = (n + rows - 1) / rows
	}
	p.claims.sizes = newSizes(p.options.Workers, segment, p.options.MemoryBytes)
	p.running = true
	go p.read(rows)
	for range p.options.Workers - 1 {
		w := &worker{p: p, header: &trace.Header{}}
		if p.restored != nil && p.moves.wanted != 0 {
			w.layout = p.spec.newLayout(w.program)
			if w.layout.Restore(p.restored) != nil { // unexpected, because Restore succeeded for the live analyses
				p.alone = true
			}
		}
		p.moves.followers = append(p.moves.followers, w)
		go w.work()
	}
}

// notify wakes all goroutines.
func (p *Parallel) notify() {
	p.changed.Broadcast()
	p.wake.notify()
}

// signal wakes the goroutine that calls Step. The channel has room for one value.
type signal chan struct{}

func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// wait waits for a notification, but at most for the duration patience.
func (s signal) wait() {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-s:
	case <-t.C:
	}
}

func (p *Parallel) read(rows int) {
	defer close(p.reading)
	analysed := p.live.analysed
	taken := p.intake.omitted() // totals up to the previous block
	for {
		b := p.emptyBatch(rows)
		if b == nil {
			return
		}
		err := error(io.EOF)
		mixed := false
		if !p.intake.isDone(analysed) {
			mixed, err = p.intake.read(b, analysed)
		}
		left := p.intake.omitted()
		since := profile.Totals{Unselected: left.Unselected - taken.Unselected, BadRecords: left.BadRecords - taken.BadRecords}
		if err != nil {
			p.mu.Lock()
			p.ended = &ending{err, p.headerCopies.header(p.intake.reader), since}
			p.notify()
			p.mu.Unlock()
			return
		}
		if b.Len() == 0 {
			p.mu.Lock()
			p.free = append(p.free, b)
			p.mu.Unlock()
			continue
		}
		taken = left
		made := block{rows: b, mixed: mixed, first: analysed, references: uint64(b.Len()), header: p.headerCopies.header(p.intake.reader), left: since, position: p.intake.position()}
		if mixed {
			made.countReferences()
		}
		analysed += made.references
		p.mu.Lock()
		p.moves.note(p.firstBlock+len(p.blocks), &made)
		p.blocks = append(p.blocks, made)
		p.notify()
		p.mu.Unlock()
	}
}

// countReferences counts the references of the block, and checks whether the block contains events
// that change the layout of memory blocks.
func (b *block) countReferences() {
	all, events := trace.Kinds(0), uint64(0)
	for _, k := range b.rows.Kind {
		all |= 1 << (k & 31)
		if !k.IsReference() {
			events++
		}
	}
	b.references -= events
	b.moves = all&contract.LayoutEvents != 0
}

// maxBlocks returns the maximum number of blocks that wait for analysis. If no workers analyse
// blocks, all waiting blocks should fit in a processor's cache.
func (p *Parallel) maxBlocks() int {
	if p.alone {
		return aloneBlocks
	}
	return p.claims.maxBlocks()
}

const aloneBlocks = 4

// emptyBatch waits until another block may be read, and returns a batch for it, or nil if the run
// ends.
func (p *Parallel) emptyBatch(rows int) *trace.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && !p.halted && len(p.blocks) >= p.maxBlocks() {
		p.changed.Wait()
	}
	if p.halted {
		p.ended = &ending{err: ErrStopped, header: p.headerCopies.header(p.intake.reader)}
		p.notify()
	}
	if p.closed || p.halted {
		return nil
	}
	if last := len(p.free) - 1; last >= 0 {
		b := p.free[last]
		p.free = p.free[:last]
		return b
	}
	return trace.NewBatch(rows)
}

// patience is the maximum time that Step waits. It is short, so that Step soon returns to its
// caller.
const patience = 20 * time.Millisecond

// Step analyses a batch or a part of a batch, appends a segment, or waits briefly for a segment.
// See [Runner.Step] for its results.
func (p *Parallel) Step() error {
	if !p.running {
		p.begin()
	}
	if p.live.rest.pending() {
		p.live.rest.consume()
		return nil
	}
	if p.failed != nil {
		return p.failed
	}
	if p.live.pending() {
		return p.live.consume()
	}
	p.mu.Lock()
	p.finishBlock()
	c := p.currentClaim()
	switch {
	case c != nil && c.ended:
		p.mu.Unlock()
		return p.appendClaim(c)
	case c == nil && len(p.blocks) > 0:
		p.current = &p.blocks[0]
		p.mu.Unlock()
		p.header, p.live.batch, p.live.mixed, p.live.next = p.current.header, p.current.rows, p.current.mixed, 0
		p.left, p.position = addTotals(p.left, p.current.left), p.current.position
		return p.live.consume()
	case c == nil && p.ended != nil:
		defer p.mu.Unlock()
		p.header, p.left = p.ended.header, addTotals(p.left, p.ended.left)
		p.ended.left = profile.Totals{}
		if p.ended.err == io.EOF {
			if err := p.live.settle(); err != nil {
				return err
			}
		}
		return p.ended.err
	}
	p.mu.Unlock()
	p.wake.wait()
	return nil
}

func (p *Parallel) finishBlock() {
	if p.current == nil {
		return
	}
	p.current = nil
	p.live.batch, p.live.next = &p.none, 0 // the batch will be filled again
	p.dropBlocks(1)
	if !p.alone {
		var later bool
		if p.joining, later = p.live.canJoin(nil); !later || !p.claims.fixed && p.live.hasSeveralCores() {
			p.alone, p.moves, p.free = true, layoutChanges{}, nil
		}
		p.lone = p.live.isSingleCore(nil)
	}
	p.notify()
}

// dropBlocks drops the batches of blocks that have been analysed.
func (p *Parallel) dropBlocks(blocks int) {
	for i := range p.blocks[:blocks] {
		p.free = append(p.free, p.blocks[i].rows)
	}
	p.blocks = p.blocks[blocks:]
	p.firstBlock += blocks
}

// currentClaim returns the claim that begins at the position of the live analyses, or nil. If the
// worker has not finished the claim, but has analysed enough blocks to make joining worthwhile,
// currentClaim stops the worker.
func (p *Parallel) currentClaim() *claim {
	if len(p.claims.list) == 0 || p.claims.list[0].from != p.firstBlock {
		return nil
	}
	c := p.claims.list[0]
	if !c.ended && !p.claims.fixed && c.done.Load() >= int64(max(1, p.claims.blocks/4)) {
		c.cut.Store(true)
	}
	return c
}

// appendClaim appends the result of a worker. If this is impossible, the live analyses analyse the
// blocks themselves, and report any error.
func (p *Parallel) appendClaim(c *claim) error {
	s := c.result
	if s != nil && (p.live.analysed == 0 || !p.live.canAppend(s, c.lone)) {
		s = nil
	}
	if s != nil {
		if err := p.live.append(s, c.lone); err != nil {
			return err
		}
		blocks, follows := findOptional[contract.LayoutFollower](p.live.analyses)
		for i := range c.blocks[:c.to-c.from] {
			b := &c.blocks[i]
			p.left, p.header, p.position = addTotals(p.left, b.left), b.header, b.position
			if follows && b.moves {
				blocks.Move(b.rows)
			}
			if err := p.live.appendRows(b.rows); err != nil {
				return err
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims.list = p.claims.list[1:]
	if s != nil {
		p.claims.adaptTo(s, c.to)
		p.dropBlocks(c.to - c.from)
	}
	p.notify()
	return nil
}

// Progress returns the progress of the run.
func (p *Parallel) Progress() Progress {
	at := p.live.progress()
	at.BadRecords, at.LeftOut = p.left.BadRecords, p.left.Unselected
	p.mu.Lock()
	defer p.mu.Unlock()
	at.Resuming = p.restored != nil && p.firstBlock == 0 && len(p.blocks) == 0 && p.ended == nil
	return at
}

// Profile returns the result so far. The result does not change if the analyses continue.
func (p *Parallel) Profile(state profile.State) *profile.Profile {
	return withoutRunState(p.profile(state, p.spec.Mergeable))
}

func (p *Parallel) profile(state profile.State, segment bool) *profile.Profile {
	header := *p.header
	if p.restored != nil {
		header.Join(p.restored.Input.Header)
	}
	return p.live.profile(&p.spec, header, p.left, state, segment)
}

// State returns the state of the run, excluding segments that have not been appended yet: see
// [Runner.State].
func (p *Parallel) State() *State {
	if p.failed == nil {
		p.failed = p.live.analyseBatch()
	}
	s := p.intake.state(p.position, p.profile(saved, true))
	s.failed = p.live.settle()
	return s
}

// Restore makes a new run continue from a state that [Parallel.State] or [Runner.State] returned:
// see [Runner.Restore].
func (p *Parallel) Restore(saved []byte) error {
	from, at, err := p.intake.restored(saved)
	if err != nil {
		return err
	}
	spec := p.spec.continuing(from)
	analyses, err := restore(spec, from, func() *trace.Program { return p.header.Program })
	if err != nil {
		return err
	}
	p.spec, p.intake.want = spec, spec
	p.live.analyses, p.restored = analyses, from
	p.runConcurrently()
	p.live.restore(&from.Totals)
	p.intake.restore(&from.Totals, at)
	p.left, p.position = p.intake.omitted(), at
	return nil
}

// Finish returns the result and ends the run. Finish frees the memory of the stacks before it
// creates the result. Only Progress may be called afterwards.
func (p *Parallel) Finish(state profile.State) *profile.Profile {
	p.Close()
	if !p.spec.Mergeable {
		p.live.close()
	}
	return p.Profile(state)
}

// Halt stops reading. Step still analyses the records that have already been read, and then returns
// [ErrStopped].
func (p *Parallel) Halt() {
	p.mu.Lock()
	p.halted = true
	p.notify()
	p.mu.Unlock()
}

// Close ends all goroutines. Close waits for at most a second until the goroutine that reads the
// trace ends, and reports whether this goroutine has ended. If the goroutine has not ended, the
// reader is still in use.
func (p *Parallel) Close() (unused bool) {
	p.mu.Lock()
	p.closed = true
	p.notify()
	p.mu.Unlock()
	if !p.running {
		return true
	}
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-p.reading:
		return true
	case <-t.C:
		return false
	}
}

// headerCopies copies the trace's header for each block, because readers later extend the tables in
// the header.
type headerCopies struct{ latest *trace.Header }

func (t *headerCopies) header(r trace.Reader) *trace.Header {
	d, ok := r.(trace.Describer)
	if !ok {
		return &trace.Header{}
	}
	h := d.Header()
	if t.latest != nil && sameHeader(t.latest, &h) {
		return t.latest
	}
	if h.Program != nil {
		program := *h.Program
		program.Objects, program.Threads = slices.Clone(program.Objects), slices.Clone(program.Threads)
		h.Program = &program
	}
	t.latest = &h
	return t.latest
}

// sameHeader reports whether a header has not changed since it was copied. Comparing the lengths of
// the tables is sufficient, because entries are only added.
func sameHeader(a, b *trace.Header) bool {
	p, q := a.Program, b.Program
	return a.Format == b.Format && a.Threads == b.Threads && a.PCs == b.PCs && a.Sizes == b.Sizes && a.Sites == b.Sites && a.Sliced == b.Sliced && a.Extent == b.Extent &&
		(p == nil) == (q == nil) && (p == nil || len(p.Modules) == len(q.Modules) && len(p.Functions) == len(q.Functions) &&
		len(p.Blocks) == len(q.Blocks) && len(p.Sites) == len(q.Sites) && len(p.Objects) == len(q.Objects) && len(p.Threads) == len(q.Threads))
}
