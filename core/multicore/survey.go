package multicore

import (
	"slices"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
)

// survey is where the trace is, and what of the phase belongs to whom so far.
type survey struct {
	thread   uint32 // the trace's only one
	threaded bool   // which is known
	ended    bool   // the trace
	later    error  // a record that is wrong, behind the rows that were given

	forks   []fork // that have not joined, outermost first
	teams   int    // of them, those that are no leagues
	resumed bool   // a phase ended before the row that is looked at
	joined  bool   // a region ended there, whose ParallelEnd is still to come
	waited  bool   // or at a block whose Barrier is
	private privacy

	parts    []part // of the phase
	partFrom uint64 // row of the tape that the part which is being written began with
	partWho  who
	run      int // first of the rows before the one that is looked at that have still to be written

	adds bool         // the block that runs adds a thread's part of a reduction
	sums *trace.Batch // what it has done

	guard guard
	loop  *loop // that is gone through; nil: none
	about *Loop // its entry in the report
	// Where in it the run is: rows of the tape.
	iterations, chunks walk
	units              bool   // one has begun
	chunkFrom          uint64 // the first of its chunks
	chunked            int    // chunks that have begun, if it has any
	unitsFrom          uint64
	unitsLeft          bool // as it seems
	unitsTo            uint64
	chunkLeft          bool
	chunkTo            uint64
	head, tail         passage // before the first chunk or iteration, and behind the last
	unitsCost          float64 // of the last unit, when unitsLeft
	unitsBytes         uint64  // of all units, when unitsLeft
	bytes              uint64  // that were referenced since the loop began
	over               bool    // it was told that there are no more chunks
	overAt             uint64  // before the row that says so

	deeper int // calls of the loop's function that the loop made
	cost   float64
	byTime bool // Order says how long blocks take
	timed  bool // the block that runs has a known number of cycles
	clock  []float64

	outside uint64 // references
	found   found
}

// fork is one that has not joined yet.
type fork struct {
	league   bool   // of teams
	function uint32 // that forks
}

// guard is where the run is in what one thread does for all.
type guard struct {
	state guardState
	block uint32
}

type guardState uint8

const (
	noGuard   guardState = iota
	isAsked              // the question was put
	isChecked            // block, which looks at the answer, runs
	isOne                // what the one does runs
	isEnding             // block, the last of it, runs
)

// inRegion tells whether rows go on the tape.
func (s *survey) inRegion() bool { return s.teams > 0 }

// shares tells whether the rows are those of the threads of one region, and not of another
// one within it, which has one thread.
func (s *survey) shares() bool { return s.teams == 1 && !s.forks[len(s.forks)-1].league }

// step goes through rows of the batch until it ends, b is full, or a phase ends.
func (m *Reader) step(b *trace.Batch) error {
	m.run = m.at
	to := m.room(b)
	for m.at < to {
		k := m.batch.Kind[m.at]
		if k.IsReference() {
			if m.adds {
				if err := m.hold(b); err != nil {
					return err
				}
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
		if m.adds {
			if err := m.release(); err != nil {
				return err
			}
		}
		phase, err := m.event(b, k, m.batch.Site[m.at])
		if err != nil {
			return err
		}
		if phase {
			m.resumed = true
			return nil
		}
		m.resumed = false
		m.at++
		if k == trace.ParallelBegin || k == trace.ParallelEnd {
			if err := m.change(b, k); err != nil {
				return err
			}
		}
		to = m.room(b)
	}
	return m.flush(b)
}

// isPlain tells, while a loop is gone through, that nothing hangs on a block being entered:
// most are in the midst of an iteration.
func (m *Reader) isPlain(block uint32) bool {
	s := m.loop.shape
	i := block - s.first
	return uint64(i) < uint64(len(s.plain)) && s.plain[i] && !m.iterations.tested && !m.chunks.tested && !m.byTime
}

// room is the row up to which those that are not written yet may go.
func (m *Reader) room(b *trace.Batch) int {
	if m.inRegion() {
		return m.batch.Len()
	}
	return min(m.batch.Len(), m.run+b.Cap()-b.Len())
}

// flush writes the rows up to the one that is looked at: on the tape, or to b.
func (m *Reader) flush(b *trace.Batch) error {
	from := m.run
	if m.run = m.at; from == m.at {
		return nil
	}
	if m.inRegion() {
		return m.tape.Add(m.batch, from, m.at, m.kept)
	}
	m.pass(b, from, m.at)
	return nil
}

// event takes in the row that is looked at. phase: a phase ends before it, and it is to be
// looked at again.
func (m *Reader) event(b *trace.Batch, k trace.Kind, site uint32) (phase bool, err error) {
	switch k {
	case trace.BlockEntry:
		return m.enter(b, site)
	case trace.ParallelEnd:
		if m.shares() && !m.joined {
			m.joined = true
			return true, m.leaveRegion(b)
		}
	case trace.Barrier:
		if m.inRegion() && m.shares() && !m.waited && !m.resumed {
			return true, m.splitPhase(b)
		}
		m.waited = false
	}
	if !m.inRegion() || !m.shares() {
		return false, nil
	}
	switch k {
	case trace.Return:
		if m.loop != nil && m.code.function(site) == m.loop.shape.function {
			if m.deeper--; m.deeper < 0 {
				err = m.endLoop(b)
			}
		}
	case trace.LoopBegin:
		err = m.beginLoop(b, site)
	case trace.LoopEnd:
		if block, ok := m.code.block(site); ok && m.loop != nil && m.deeper == 0 && m.code.function(block) == m.loop.shape.function {
			err = m.noMore(b)
		}
	case trace.Alloc:
		if addr := m.batch.Addr[m.at]; addr < m.private.low || addr >= m.private.high {
			m.found.allocs++
		}
	default:
		m.found.event(k)
	}
	return false, err
}

// change follows forks and joins, once their row is behind.
func (m *Reader) change(b *trace.Batch, k trace.Kind) error {
	row := m.at - 1
	site := m.batch.Site[row]
	if k == trace.ParallelBegin {
		f := fork{league: m.code.callee(site) == "__kmpc_fork_teams", function: ^uint32(0)}
		if block, ok := m.code.block(site); ok {
			f.function = m.code.function(block)
		}
		if f.league {
			m.found.leagues++
		} else if m.inRegion() {
			m.found.nested++
		} else if err := m.flush(b); err != nil {
			return err
		}
		if m.forks = append(m.forks, f); !f.league {
			if m.teams++; m.teams == 1 {
				m.beginRegion(m.batch.Addr[row])
			}
		}
		return nil
	}
	switch n := len(m.forks); {
	case m.joined:
		m.joined = false
	case n == 0:
		m.found.strayEnds++
	default:
		if !m.forks[n-1].league {
			m.teams--
		}
		m.forks = m.forks[:n-1]
	}
	return nil
}

// beginRegion starts to tape, behind a fork by a function with that stack pointer.
func (m *Reader) beginRegion(stack trace.Addr) {
	m.found.regions++
	m.guard, m.loop, m.waited, m.joined = guard{}, nil, false, false
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

// stackLow is the end of the stack that an address lies in, 0 where it is not known.
func (m *Reader) stackLow(addr trace.Addr) trace.Addr {
	for i := range m.code.program.Threads {
		t := &m.code.program.Threads[i]
		if t.StackLow <= addr && addr < t.StackHigh {
			return t.StackLow
		}
	}
	return 0
}

// leaveRegion ends the region before the row that is looked at.
func (m *Reader) leaveRegion(b *trace.Batch) error {
	if err := m.closePhase(b); err != nil {
		return err
	}
	m.teams--
	m.forks = m.forks[:len(m.forks)-1]
	return m.beginPhase()
}

// splitPhase ends the phase before the row that is looked at.
func (m *Reader) splitPhase(b *trace.Batch) error {
	if err := m.closePhase(b); err != nil {
		return err
	}
	return m.beginPhase()
}

func (m *Reader) closePhase(b *trace.Batch) error {
	m.guard = guard{}
	if m.loop != nil {
		if err := m.endLoop(b); err != nil {
			return err
		}
	}
	m.found.phases++
	return m.part(b, everyCore)
}

// end takes in that the trace has come to its end.
func (m *Reader) end() error {
	if !m.inRegion() {
		return nil
	}
	m.found.cut = true
	m.run = m.at
	if err := m.release(); err != nil {
		return err
	}
	if err := m.closePhase(nil); err != nil {
		return err
	}
	m.forks, m.teams = m.forks[:0], 0
	return m.beginPhase()
}

// part ends the part that is being written. The next one is for who.
func (m *Reader) part(b *trace.Batch, who who) error {
	if err := m.flush(b); err != nil {
		return err
	}
	rows := m.tape.Rows()
	m.add(part{from: m.partFrom, to: rows, who: m.partWho})
	m.partFrom, m.partWho = rows, who
	return nil
}

// enter takes in that a block is entered.
func (m *Reader) enter(b *trace.Batch, block uint32) (phase bool, err error) {
	if uint64(block) >= uint64(len(m.code.roles)) {
		return false, nil
	}
	roles := m.code.roles[block]
	m.timed = false
	if m.options.Order.Policy == interleave.ByTime && uint64(block) < uint64(len(m.options.Order.Cycles)) {
		m.timed = true
	}
	if !m.inRegion() {
		m.found.roles |= roles & setsThreads
		return false, nil
	}
	if m.shares() {
		switch {
		case m.resumed:
		case roles&joins != 0 && m.code.function(block) == m.forks[len(m.forks)-1].function:
			m.joined = true
			return true, m.leaveRegion(b)
		case roles&waits != 0:
			m.waited = true
			return true, m.splitPhase(b)
		}
		m.found.roles |= roles
		m.adds = roles&adds != 0 && len(m.cursors) > 1
		if m.loop == nil {
			err = m.follow(b, block, roles)
		} else {
			err = m.inLoop(b, block)
		}
	}
	if m.timed {
		m.cost += m.options.Order.Cycles[block]
	}
	return false, err
}

// follow finds what one thread does for all.
func (m *Reader) follow(b *trace.Batch, block uint32, roles roles) (err error) {
	switch g := &m.guard; g.state {
	case isEnding:
		if m.code.goesOn(g.block, block) {
			g.block = block
		} else if m.code.function(g.block) == m.code.function(block) || m.code.program.Blocks[g.block].Flags&trace.ReturnBlock != 0 {
			err = m.part(b, everyCore)
			*g = guard{}
		}
	case isAsked:
		*g = guard{isChecked, block}
	case isChecked:
		if m.code.guarded(g.block, block) {
			m.found.ones++
			err = m.part(b, firstCore)
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
	return err
}

// beginLoop starts to look for iterations.
func (m *Reader) beginLoop(b *trace.Batch, site uint32) error {
	arg := uint64(0)
	if m.batch.Arg != nil {
		arg = m.batch.Arg[m.at]
	}
	a := asked(m.batch.Addr[m.at], arg)
	if a.kind == distribute || m.guard.state >= isOne {
		return nil
	}
	if m.loop != nil {
		block, ok := m.code.block(site)
		if !ok || m.deeper > 0 || m.code.function(block) != m.loop.shape.function {
			m.found.loopsInLoops++
			return nil
		}
		if err := m.endLoop(b); err != nil {
			return err
		}
	}
	shape := m.code.shapeOf(site, a)
	if shape == nil {
		m.found.unknownLoops++
		return nil
	}
	used := a.used(m.options.Schedule)
	l := &loop{shape: shape, asked: a, used: used, chunk: used.Chunk, clock: m.clock, steals: a.steals(m.options.Schedule)}
	clear(m.clock)
	m.loop, m.about = l, m.found.loop(site, l)
	m.guard = guard{}
	m.iterations, m.chunks = walk{steps: shape.iterations}, walk{steps: shape.chunks}
	m.head.reset()
	m.tail.reset()
	m.units, m.unitsLeft, m.chunkLeft, m.over, m.chunked, m.deeper, m.cost, m.bytes = false, false, false, false, 0, 0, 0, 0
	return nil
}

// inLoop takes in that a block is entered while a loop is gone through.
func (m *Reader) inLoop(b *trace.Batch, block uint32) error {
	s := m.loop.shape
	i := block - s.first
	if block < s.first || uint64(i) >= uint64(len(s.depth)) {
		return nil
	}
	if m.code.program.Blocks[block].Flags&trace.EntryBlock != 0 {
		m.deeper++
	}
	if m.deeper > 0 {
		return nil
	}
	depth := s.depth[i]
	if s.chunks != nil {
		if depth == outside {
			m.chunks.reset()
			if m.chunked > 0 && !m.chunkLeft {
				if err := m.flush(b); err != nil {
					return err
				}
				m.chunkLeft, m.chunkTo = true, m.tape.Rows()
			}
			if m.over {
				return m.endLoop(b)
			}
		} else if m.chunks.enter(i) {
			if err := m.flush(b); err != nil {
				return err
			}
			if m.chunked++; m.chunked == 1 {
				m.chunkFrom = m.tape.Rows()
			}
			m.chunkLeft = false
		}
	}
	if depth != inIteration {
		m.iterations.reset()
		if m.units && !m.unitsLeft {
			if err := m.flush(b); err != nil {
				return err
			}
			m.unitsLeft, m.unitsTo, m.unitsCost, m.unitsBytes = true, m.tape.Rows(), m.cost, m.bytes
		}
		if depth == inChunk {
			return m.betweenChunks(b, i)
		}
		return m.aroundUnits(b, i)
	}
	if m.iterations.enter(i) {
		return m.beginUnit(b)
	}
	if !m.units {
		return m.aroundUnits(b, i)
	}
	return nil
}

// aroundUnits takes in that a block before or behind all iterations is entered, by its
// number in the function, if there is no loop over chunks.
func (m *Reader) aroundUnits(b *trace.Batch, i uint32) error {
	pass := &m.head
	if m.units {
		pass = &m.tail
	}
	if m.loop.shape.chunks != nil || len(pass.blocks) == mostBetween {
		return nil
	}
	if err := m.flush(b); err != nil {
		return err
	}
	pass.blocks = append(pass.blocks, passed{i, m.tape.Rows()})
	return nil
}

// idle gives the rows between which a core without iterations leaves out what there is:
// where code before the loop can go on as well with code behind it.
func (m *Reader) idle(l *loop) (from, to uint64) {
	blocks := m.code.program.Blocks[l.shape.first:]
	for i, h := range m.head.blocks {
		for _, t := range m.tail.blocks {
			if slices.Contains(blocks[h.block].Successors, l.shape.first+t.block) {
				if from = m.unitsFrom; i+1 < len(m.head.blocks) {
					from = m.head.blocks[i+1].row
				}
				return from, t.row
			}
		}
	}
	return m.unitsFrom, m.unitsTo
}

// betweenChunks takes in that a block of the loop over chunks is entered, by its number in
// the function.
func (m *Reader) betweenChunks(b *trace.Batch, i uint32) error {
	pass := &m.head
	switch {
	case m.chunked == 1 && m.unitsLeft && !m.chunkLeft:
		pass = &m.tail
	case m.chunked > 0:
		return nil
	}
	s := &m.loop.shape.chunks[i]
	if pass.header == 0 && s.header == 0 || len(pass.blocks) == mostBetween {
		return nil
	}
	if err := m.flush(b); err != nil {
		return err
	}
	pass.enter(s, i, m.tape.Rows())
	return nil
}

// beginUnit takes in that the next iteration of a loop begins with the row that is looked
// at.
func (m *Reader) beginUnit(b *trace.Batch) error {
	l := m.loop
	if err := m.flush(b); err != nil {
		return err
	}
	if !m.units {
		m.units = true
		m.unitsFrom, l.mark = m.tape.Rows(), m.tape.Marks()
	}
	owner := uint8(0)
	switch {
	case l.later():
		if l.units > 0 {
			l.costs.add(m.cost)
		}
	case l.used.Kind == Dynamic:
		owner = l.next(m.cost)
	}
	if n := len(l.kinds); n == 0 || n <= mostKinds && l.kinds[n-1].head != m.iterations.head {
		l.kinds = append(l.kinds, kind{head: m.iterations.head, unit: l.units, bytes: m.bytes})
	}
	l.units++
	if m.unitsLeft {
		m.tail.reset()
	}
	m.cost, m.unitsLeft = 0, false
	m.tape.Mark(owner)
	return nil
}

// mostSummed is the most references of a block that adds parts of a reduction.
const mostSummed = 256

// hold keeps the reference that is looked at, of a block that adds.
func (m *Reader) hold(b *trace.Batch) error {
	if err := m.flush(b); err != nil {
		return err
	}
	m.run = m.at + 1
	s := m.sums
	if s == nil {
		s = trace.NewBatch(mostSummed)
		m.sums = s
	}
	m.columns(s)
	n := s.Len()
	s.Resize(n + 1)
	m.copyRow(s, n, m.batch, m.at)
	if n+1 == mostSummed {
		return m.release()
	}
	return nil
}

// release writes what a block did that adds: what is loaded and then stored goes up in one
// go. A run with one thread adds to a variable that nobody else does. In teams of up to four
// LLVM's runtime has each thread modify it atomically; between a load and a store those of
// all cores would meet.
func (m *Reader) release() error {
	m.adds = false
	s := m.sums
	if s == nil || s.Len() == 0 {
		return nil
	}
	to := 0
	for i, k := range s.Kind {
		if k == trace.Store && m.makesModify(s, to, i) {
			continue
		}
		m.copyRow(s, to, s, i)
		to++
	}
	err := m.tape.Add(s, 0, to, m.kept)
	s.Reset()
	return err
}

// makesModify looks for the load, before row n, of what row i stores, and makes it the modify.
func (m *Reader) makesModify(s *trace.Batch, n, i int) bool {
	if m.private.has(s.Site[i], s.Addr[i]) {
		return false
	}
	for ; n > 0; n-- {
		if j := n - 1; s.Kind[j] == trace.Load && s.Addr[j] == s.Addr[i] && s.Bytes[j] == s.Bytes[i] {
			s.Kind[j], s.Site[j] = trace.Modify, s.Site[i]
			return true
		}
	}
	return false
}

// noMore takes in that the row that is looked at tells a loop's end. Where the runtime was
// asked for another chunk, that is not the end yet: what follows the question is done
// for each chunk, and the loop ends when it is left.
func (m *Reader) noMore(b *trace.Batch) error {
	if m.chunked == 0 || m.chunkLeft || m.over {
		return m.endLoop(b)
	}
	if err := m.flush(b); err != nil {
		return err
	}
	m.over, m.overAt = true, m.tape.Rows()
	return nil
}

// endLoop takes in that a loop ends before the row that is looked at.
func (m *Reader) endLoop(b *trace.Batch) error {
	l := m.loop
	m.loop = nil
	if err := m.flush(b); err != nil {
		return err
	}
	l.widen()
	l.weigh(m.unitBytes())
	m.found.ended(m.about, l)
	if !m.units || len(m.cursors) == 1 {
		return nil
	}
	rows := m.tape.Rows()
	if !m.unitsLeft {
		m.unitsTo, m.unitsCost = rows, m.cost
	}
	if !m.chunkLeft {
		m.chunkTo = rows
	}
	if l.later() {
		l.costs.add(m.unitsCost)
		l.give()
	}
	l.clock = nil
	if m.chunked == 1 && m.chunkFrom <= m.unitsFrom && m.unitsTo <= m.chunkTo {
		m.shareChunks(l)
		return nil
	}
	from, to := m.unitsFrom, m.unitsTo
	if l.shape.chunks == nil {
		from, to = m.idle(l)
	}
	m.add(part{from: m.partFrom, to: from, who: m.partWho})
	m.add(part{from: from, to: m.unitsFrom, who: whoWorks, loop: l})
	m.add(part{from: m.unitsFrom, to: m.unitsTo, who: whoShares, loop: l})
	m.add(part{from: m.unitsTo, to: to, who: whoWorks, loop: l})
	m.partFrom, m.partWho = to, everyCore
	return nil
}

// unitBytes are what all units of a loop referenced, when it ends.
func (m *Reader) unitBytes() uint64 {
	if m.unitsLeft {
		return m.unitsBytes
	}
	return m.bytes
}

// shareChunks divides a loop over chunks. A run with one thread has one chunk: what is
// done for it is done for each that threads have. If the test whether there is another one
// stands before the chunk, it was made twice: before the chunk, where it came out as it does
// before each, and behind it, as it does for each thread in the end. Else only that there
// are no more is told once.
func (m *Reader) shareChunks(l *loop) {
	h, t := &m.head, &m.tail
	if h.header != 0 && h.header == t.header {
		test, end := h.blocks[0].row, t.blocks[0].row
		l.before, l.behind = span{test, m.unitsFrom}, span{m.unitsTo, end}
		if l.asked.kind == staticChunked && l.used.Kind == Static && len(l.kinds) == 0 {
			headRow, tailRow := h.meets(t)
			l.short = [2]span{{end, tailRow}, {headRow, m.unitsFrom}}
		}
		m.add(part{from: m.partFrom, to: test, who: m.partWho})
		m.add(part{from: m.unitsFrom, to: m.unitsTo, who: whoShares, loop: l})
		m.partFrom, m.partWho = end, everyCore
		return
	}
	l.before, l.behind = span{m.chunkFrom, m.unitsFrom}, span{m.unitsTo, m.chunkTo}
	told := span{m.chunkTo, m.chunkTo}
	if m.over {
		told = span{m.overAt, min(m.overAt+m.toldRows(), m.chunkTo)}
		l.behind.to, l.rest = told.from, span{told.to, m.chunkTo}
	}
	m.add(part{from: m.partFrom, to: m.chunkFrom, who: m.partWho})
	m.add(part{from: m.unitsFrom, to: m.unitsTo, who: whoShares, loop: l})
	m.add(part{from: told.from, to: told.to})
	m.partFrom, m.partWho = m.chunkTo, everyCore
}

// toldRows is the number of rows on the tape that tell a loop's end.
func (m *Reader) toldRows() uint64 {
	if m.kept.Has(trace.LoopEnd) {
		return 1
	}
	return 0
}

// add adds a part, if it has rows.
func (m *Reader) add(p part) {
	if p.from < p.to {
		m.parts = append(m.parts, p)
	}
}
