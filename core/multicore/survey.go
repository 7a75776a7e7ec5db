package multicore

import "github.com/stackglass/stackglass/core/trace"

// preScan is the state of the pre-scan in the current region and phase.
type preScan struct {
	thread   uint32 // the only thread of the trace
	threaded bool   // whether the field "thread" is set
	ended    bool   // whether the trace has ended
	later    error  // error of an invalid record, which is returned after the preceding rows
	failure  error  // first error of the region buffer; the pre-scan stops after the current row

	forks   []openFork // forks that have not joined yet, outermost first
	teams   int        // number of these forks that are not leagues
	again   bool       // whether the current row must be processed again, because a phase ended before it
	pending pendingEvent
	private privacy

	parts    []part // parts of the phase
	partFrom uint64 // row in the region buffer at which the current part begins
	partWho  who    // the cores that execute the current part
	run      int    // first row of the batch that has neither been written to the region buffer nor passed on

	reducing  bool         // whether the current block adds a thread's partial result to a reduction variable
	reduction *trace.Batch // the references of this block so far

	guard guard
	loop  *loopRun // nil outside worksharing loops

	cost   float64 // cost since the current unit of the loop began
	bytes  uint64  // number of bytes referenced since the loop began
	byTime bool    // whether the order of references depends on the cycles of blocks
	timed  bool    // whether the number of cycles of the current block is known
	clock  []float64

	outside uint64 // number of references outside of regions
	found   scanCounts
}

// openFork is a fork whose threads have not joined yet.
type openFork struct {
	league   bool   // whether the fork creates a league of teams
	function uint32 // the function that forks
}

// pendingEvent is an event that has already been processed, at the entry of the preceding block.
type pendingEvent uint8

const (
	nothing    pendingEvent = iota
	itsJoin                 // ParallelEnd of a region that has ended
	itsBarrier              // Barrier between two phases
)

// guard tracks code that one thread executes for all threads.
type guard struct {
	state guardState
	block uint32
}

type guardState uint8

const (
	noGuard   guardState = iota
	isAsked              // the runtime was asked whether this thread executes the code
	isChecked            // the block that tests the runtime's answer is running
	isOne                // the guarded code is running
	isEnding             // the block that ends the guarded code is running
)

// inRegion reports whether rows are written to the region buffer.
func (s *preScan) inRegion() bool { return s.teams > 0 }

// workIsShared reports whether several threads share the work in the current rows. A nested region
// has only one thread.
func (s *preScan) workIsShared() bool { return s.teams == 1 && !s.forks[len(s.forks)-1].league }

// step processes rows of the current batch until the batch ends, b is full, or a phase ends.
func (m *Reader) step(b *trace.Batch) error {
	m.run = m.at
	to := m.flushLimit(b)
	for m.at < to {
		k := m.batch.Kind[m.at]
		if k.IsReference() {
			if m.reducing {
				m.holdReference()
			}
			if k != trace.Fetch && !m.timed {
				m.cost++
			}
			m.bytes += uint64(m.batch.Bytes[m.at])
			m.at++
			continue
		}
		if k == trace.BlockEntry && m.loop != nil && m.isPlain(m.batch.Site[m.at]) {
			m.at++
			continue
		}
		if m.reducing {
			m.releaseReferences()
		}
		m.again = m.processEvent(k, m.batch.Site[m.at])
		if m.again || m.failure != nil {
			return m.failure
		}
		m.at++
		switch k {
		case trace.ParallelBegin:
			m.processFork(b)
		case trace.ParallelEnd:
			m.processJoin()
		}
		to = m.flushLimit(b)
	}
	m.flush(b)
	return m.failure
}

// isPlain reports whether entering a block has no effect on the current loop. Most blocks have no
// effect, because they are in the middle of an iteration.
func (m *Reader) isPlain(block uint32) bool {
	s := m.loop.shape
	i := block - s.first
	return uint64(i) < uint64(len(s.plain)) && s.plain[i] && !m.loop.iterations.tested && !m.loop.chunks.tested && !m.byTime
}

// flushLimit returns an index in the batch. The method "step" must call flush before it processes
// the row at this index.
func (m *Reader) flushLimit(b *trace.Batch) int {
	if m.inRegion() {
		return m.batch.Len()
	}
	return min(m.batch.Len(), m.run+b.Cap()-b.Len())
}

// flush writes the rows before the current row to the region buffer or, outside regions, to b.
func (m *Reader) flush(b *trace.Batch) {
	from := m.run
	m.run = m.at
	switch {
	case from == m.at:
	case m.inRegion():
		m.record(m.batch, from, m.at)
	default:
		m.passOn(b, from, m.at)
	}
}

// record appends rows to the region buffer.
func (m *Reader) record(b *trace.Batch, from, to int) {
	if m.failure == nil {
		m.failure = m.tape.Add(b, from, to, m.kept)
	}
}

// currentRow returns the number of the current row in the region buffer. It may be called only in a
// region.
func (m *Reader) currentRow() uint64 {
	m.flush(nil)
	return m.tape.Rows()
}

// processEvent processes the event in the current row. It returns true if a phase ended before this
// row. In this case, the row must be processed again.
func (m *Reader) processEvent(k trace.Kind, site uint32) (phase bool) {
	switch k {
	case trace.BlockEntry:
		return m.enterBlock(site)
	case trace.ParallelEnd:
		if m.workIsShared() {
			m.leaveRegion()
			return true
		}
	case trace.Barrier:
		if m.workIsShared() && m.pending != itsBarrier && !m.again {
			m.splitPhase()
			return true
		}
		if m.pending == itsBarrier {
			m.pending = nothing
		}
	}
	if !m.workIsShared() {
		return false
	}
	switch k {
	case trace.Return:
		if m.loop != nil && m.code.function(site) == m.loop.shape.function {
			if m.loop.calls--; m.loop.calls < 0 {
				m.endLoop()
			}
		}
	case trace.LoopBegin:
		m.beginLoop(site)
	case trace.LoopEnd:
		if block, ok := m.code.block(site); ok && m.loop != nil && m.loop.calls == 0 && m.code.function(block) == m.loop.shape.function {
			m.noMoreChunks()
		}
	case trace.Alloc:
		if addr := m.batch.Addr[m.at]; addr < m.private.low || addr >= m.private.high {
			m.found.allocs++
		}
	default:
		m.found.event(k)
	}
	return false
}

// processFork processes the ParallelBegin in the row before the current row.
func (m *Reader) processFork(b *trace.Batch) {
	site := m.batch.Site[m.at-1]
	f := openFork{league: m.code.callee(site) == "__kmpc_fork_teams", function: ^uint32(0)}
	if block, ok := m.code.block(site); ok {
		f.function = m.code.function(block)
	}
	switch {
	case f.league:
		m.found.leagues++
	case m.inRegion():
		m.found.nested++
	default:
		m.flush(b)
	}
	if m.forks = append(m.forks, f); !f.league {
		if m.teams++; m.teams == 1 {
			m.beginRegion(m.batch.Addr[m.at-1])
		}
	}
}

// processJoin processes the ParallelEnd in the row before the current row.
func (m *Reader) processJoin() {
	switch {
	case m.pending == itsJoin:
		m.pending = nothing
	case len(m.forks) == 0:
		m.found.strayEnds++
	default:
		m.popFork()
	}
}

func (m *Reader) popFork() {
	last := len(m.forks) - 1
	if !m.forks[last].league {
		m.teams--
	}
	m.forks = m.forks[:last]
}

// beginRegion starts to record a region. The parameter "stack" is the stack pointer of the
// function that forks.
func (m *Reader) beginRegion(stack trace.Addr) {
	m.found.regions++
	m.guard, m.loop, m.pending = guard{}, nil, nothing
	m.private.low, m.private.high = 0, 0
	if stack == 0 {
		m.found.noStack = true
		return
	}
	m.private.high = stack
	if m.private.low = m.stackLow(stack); m.private.low == 0 {
		m.found.noStackEnd = true
		m.private.low = stack - min(stack, stackBytes)
	}
}

// stackLow returns the lowest address of the stack that contains an address, or 0 if the stack is
// unknown.
func (m *Reader) stackLow(addr trace.Addr) trace.Addr {
	for i := range m.code.program.Threads {
		t := &m.code.program.Threads[i]
		if t.StackLow <= addr && addr < t.StackHigh {
			return t.StackLow
		}
	}
	return 0
}

// leaveRegion ends the current region. The current row is not in this region.
func (m *Reader) leaveRegion() {
	m.closePhase()
	m.popFork()
	m.pending = itsJoin
	m.beginPhase()
}

// splitPhase ends the current phase. The current row belongs to the next phase.
func (m *Reader) splitPhase() {
	m.closePhase()
	m.beginPhase()
}

func (m *Reader) closePhase() {
	m.guard = guard{}
	if m.loop != nil {
		m.endLoop()
	}
	m.found.phases++
	m.endPart(everyCore)
}

// endIncompleteRegion ends the region if the trace ends within a region.
func (m *Reader) endIncompleteRegion() error {
	if !m.inRegion() {
		return nil
	}
	m.found.cut = true
	m.run = m.at
	m.releaseReferences()
	m.closePhase()
	m.forks, m.teams = m.forks[:0], 0
	m.beginPhase()
	return m.failure
}

// endPart ends the current part. The current row belongs to the next part. The parameter "who"
// selects the cores that execute the next part.
func (m *Reader) endPart(who who) {
	row := m.currentRow()
	m.appendPart(part{from: m.partFrom, to: row, who: m.partWho})
	m.partFrom, m.partWho = row, who
}

// appendPart adds a part to the phase unless the part is empty.
func (m *Reader) appendPart(p part) {
	if p.from < p.to {
		m.parts = append(m.parts, p)
	}
}

// enterBlock processes the entry of a block, and reports whether a phase ended before it.
func (m *Reader) enterBlock(block uint32) (phase bool) {
	if uint64(block) >= uint64(len(m.code.roles)) {
		return false
	}
	roles := m.code.roles[block]
	m.timed = m.byTime && uint64(block) < uint64(len(m.options.Order.Cycles))
	if !m.inRegion() {
		m.found.roles |= roles & setsThreads
		return false
	}
	if m.workIsShared() {
		switch {
		case m.again:
		case roles&joins != 0 && m.code.function(block) == m.forks[len(m.forks)-1].function:
			m.leaveRegion()
			return true
		case roles&waits != 0:
			m.pending = itsBarrier
			m.splitPhase()
			return true
		}
		m.found.roles |= roles
		m.reducing = roles&adds != 0 && len(m.cursors) > 1
		if m.loop == nil {
			m.followGuard(block, roles)
		} else {
			m.enterInLoop(block)
		}
	}
	if m.timed {
		m.cost += m.options.Order.Cycles[block]
	}
	return false
}

// followGuard detects code that one thread executes for all threads.
func (m *Reader) followGuard(block uint32, roles roles) {
	switch g := &m.guard; g.state {
	case isEnding:
		if m.code.continues(g.block, block) {
			g.block = block
		} else if m.code.function(g.block) == m.code.function(block) || m.code.program.Blocks[g.block].Flags&trace.ReturnBlock != 0 {
			m.endPart(everyCore)
			*g = guard{}
		}
	case isAsked:
		*g = guard{isChecked, block}
	case isChecked:
		if m.code.guarded(g.block, block) {
			m.found.ones++
			m.endPart(firstCore)
			*g = guard{state: isOne}
		} else {
			*g = guard{}
		}
	}
	switch m.guard.state {
	case noGuard:
		if roles&asksForOne != 0 {
			m.guard.state = isAsked
		}
	case isOne:
		if roles&oneIsDone != 0 {
			m.guard = guard{isEnding, block}
		}
	}
}

// mostSummed is the maximum number of references that are held back during a reduction.
const mostSummed = 256

func (m *Reader) holdReference() {
	m.flush(nil)
	m.run = m.at + 1
	if m.reduction == nil {
		m.reduction = trace.NewBatch(mostSummed)
	}
	held := m.reduction
	m.addColumns(held)
	held.AppendRows(m.batch, m.at, m.at+1)
	if held.Len() == mostSummed {
		m.releaseReferences()
	}
}

// releaseReferences records the references of a block that adds to a reduction variable. It
// combines a load and a store of the same address into one modify. The single thread of the
// recorded run loads and stores the variable. In teams of up to four threads, however, LLVM's
// runtime makes each thread modify the variable atomically. No reference of another core may be
// placed between the load and the store.
func (m *Reader) releaseReferences() {
	m.reducing = false
	held := m.reduction
	if held == nil || held.Len() == 0 {
		return
	}
	m.keep = m.keep[:0]
	for i, k := range held.Kind {
		if k != trace.Store || !m.makesModify(held, i) {
			m.keep = append(m.keep, int32(i))
		}
	}
	held.Select(m.keep)
	m.record(held, 0, held.Len())
	held.Reset()
}

// makesModify finds the last load from the address to which row i stores, and converts this load to
// a modify.
func (m *Reader) makesModify(held *trace.Batch, i int) bool {
	if m.private.isPrivate(held.Addr[i]) {
		return false
	}
	for j := i - 1; j >= 0; j-- {
		if held.Kind[j] == trace.Load && held.Addr[j] == held.Addr[i] && held.Bytes[j] == held.Bytes[i] {
			held.Kind[j], held.Site[j] = trace.Modify, held.Site[i]
			return true
		}
	}
	return false
}

// beginPhase starts to merge the rows that the cores execute. These rows have already been written
// to the region buffer.
func (m *Reader) beginPhase() {
	if m.tape.Rows() == 0 {
		m.endPhase()
		return
	}
	if m.failure == nil {
		m.failure = m.tape.Seal()
	}
	if m.failure != nil {
		return
	}
	for c := range m.cursors {
		m.cursors[c].begin()
	}
	m.merger.Begin(m.numbers, m.streams)
	m.merging = true
}

// endPhase empties the region buffer for the next phase.
func (m *Reader) endPhase() {
	m.merging = false
	m.tape.Reset()
	m.parts, m.partFrom, m.partWho = m.parts[:0], 0, everyCore
}
