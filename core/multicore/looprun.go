package multicore

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// loopRun tracks one execution of a worksharing loop in the single-threaded run. Rows are numbered
// as in the region buffer.
type loopRun struct {
	*loop
	entry *Loop // the loop's entry in the report

	// iterations and chunks detect where iterations and chunks begin, from the blocks that are
	// entered.
	iterations, chunks walk

	units extent // rows of all units
	chunk extent // rows of the first chunk
	begun int    // number of chunks that have begun
	// head contains the blocks before the first chunk or unit, and tail contains the blocks after the
	// last chunk or unit.
	head, tail passage
	// unitCost is the cost of the last unit, and unitBytes is the number of bytes that all units
	// reference. Both values are known only after the last unit.
	unitCost  float64
	unitBytes uint64
	// ended means that the runtime reported before row endRow that there are no more chunks.
	ended  bool
	endRow uint64

	calls int // number of recursive calls from the loop to the loop's function that have not returned
}

// extent is a range of rows. The end of the range is valid only in the state over.
type extent struct {
	state    extentState
	from, to uint64
}

type extentState uint8

const (
	notBegun extentState = iota
	underway
	over // the extent has ended, but continues if a further unit or chunk begins
)

// beginLoop begins to track a loop if its code is known.
func (m *Reader) beginLoop(site uint32) {
	arg := uint64(0)
	if m.batch.Arg != nil {
		arg = m.batch.Arg[m.at]
	}
	a := asked(m.batch.Addr[m.at], arg)
	if a.kind == distribute || m.guard.state >= isOne {
		return
	}
	if m.loop != nil {
		block, ok := m.code.block(site)
		if !ok || m.loop.calls > 0 || m.code.function(block) != m.loop.shape.function {
			m.found.loopsInLoops++
			return
		}
		m.endLoop()
	}
	shape := m.code.shapeOf(site, a)
	if shape == nil {
		m.found.unknownLoops++
		return
	}
	used := a.used(m.options.Schedule)
	l := &loop{shape: shape, asked: a, used: used, chunk: used.Chunk, clock: m.clock, steals: a.steals(m.options.Schedule)}
	clear(m.clock)
	m.loop = &loopRun{
		loop: l, entry: m.found.loop(site, l),
		iterations: walk{steps: shape.iterations}, chunks: walk{steps: shape.chunks},
	}
	m.guard = guard{}
	m.cost, m.bytes = 0, 0
}

// enterInLoop processes the entry of a block in the loop that is being tracked.
func (m *Reader) enterInLoop(block uint32) {
	l := m.loop
	i := block - l.shape.first
	if block < l.shape.first || uint64(i) >= uint64(len(l.shape.depth)) {
		return
	}
	if m.code.program.Blocks[block].Flags&trace.EntryBlock != 0 {
		l.calls++
	}
	if l.calls > 0 {
		return
	}
	depth := l.shape.depth[i]
	if l.shape.chunks != nil {
		if depth == outside {
			l.chunks.reset()
			if l.chunk.state == underway {
				l.chunk.state, l.chunk.to = over, m.row()
			}
			if l.ended {
				m.endLoop()
				return
			}
		} else if l.chunks.enter(i) {
			if row := m.row(); l.chunk.state == notBegun {
				l.chunk.from = row
			}
			l.begun++
			l.chunk.state = underway
		}
	}
	switch {
	case depth == inIteration && l.iterations.enter(i):
		m.beginUnit()
		return
	case depth == inIteration:
		if l.units.state == notBegun {
			m.passAround(i)
		}
		return
	}
	l.iterations.reset()
	if l.units.state == underway {
		l.units.state, l.units.to = over, m.row()
		l.unitCost, l.unitBytes = m.cost, m.bytes
	}
	if depth == inChunk {
		m.passBetween(i)
	} else {
		m.passAround(i)
	}
}

// passAround records that block i of the function was executed before or after all units of a loop
// without chunks.
func (m *Reader) passAround(i uint32) {
	l := m.loop
	pass := &l.head
	if l.units.state != notBegun {
		pass = &l.tail
	}
	if l.shape.chunks == nil && len(pass.blocks) < mostBetween {
		pass.blocks = append(pass.blocks, passed{i, m.row()})
	}
}

// passBetween records that block i was executed in the loop over chunks, but outside all units.
func (m *Reader) passBetween(i uint32) {
	l := m.loop
	pass := &l.head
	switch {
	case l.begun == 1 && l.units.state == over && l.chunk.state == underway:
		pass = &l.tail
	case l.begun > 0:
		return
	}
	s := &l.shape.chunks[i]
	if pass.header == 0 && s.header == 0 || len(pass.blocks) == mostBetween {
		return
	}
	pass.enter(s, i, m.row())
}

// beginUnit starts the loop's next unit at the current row.
func (m *Reader) beginUnit() {
	l := m.loop
	if row := m.row(); l.units.state == notBegun {
		l.units.from, l.mark = row, m.tape.Marks()
	}
	owner := uint8(0)
	switch {
	case l.later():
		if l.loop.units > 0 {
			l.costs.add(m.cost)
		}
	case l.used.Kind == Dynamic:
		owner = l.next(m.cost)
	}
	if n := len(l.kinds); n == 0 || n <= mostKinds && l.kinds[n-1].head != l.iterations.head {
		l.kinds = append(l.kinds, kind{head: l.iterations.head, unit: l.loop.units, bytes: m.bytes})
	}
	l.loop.units++
	if l.units.state == over {
		l.tail.reset()
	}
	l.units.state = underway
	m.cost = 0
	m.tape.Mark(owner)
}

// noMoreChunks processes the LoopEnd in the current row. If the program has requested a further
// chunk, the LoopEnd is not the end of the loop, because the code after the request runs for each
// chunk. The loop then ends when execution leaves its code.
func (m *Reader) noMoreChunks() {
	l := m.loop
	if l.chunk.state != underway || l.ended {
		m.endLoop()
		return
	}
	l.ended, l.endRow = true, m.row()
}

// endLoop ends the loop before the current row, and adds its parts to the phase.
func (m *Reader) endLoop() {
	l := m.loop
	m.loop = nil
	rows := m.row()
	if l.units.state != over {
		l.units.to, l.unitCost, l.unitBytes = rows, m.cost, m.bytes
	}
	l.widen()
	l.weigh(l.unitBytes)
	m.found.ended(l.entry, l.loop)
	if l.units.state == notBegun || len(m.cursors) == 1 {
		return
	}
	if l.chunk.state != over {
		l.chunk.to = rows
	}
	if l.later() {
		l.costs.add(l.unitCost)
		l.give()
	}
	l.clock = nil
	if l.begun == 1 && l.chunk.from <= l.units.from && l.units.to <= l.chunk.to {
		m.shareChunks(l)
		return
	}
	from, to := l.units.from, l.units.to
	if l.shape.chunks == nil {
		from, to = m.idle(l)
	}
	m.add(part{from: m.partFrom, to: from, who: m.partWho})
	m.add(part{from: from, to: l.units.from, who: whoWorks, loop: l.loop})
	m.add(part{from: l.units.from, to: l.units.to, who: whoShares, loop: l.loop})
	m.add(part{from: l.units.to, to: to, who: whoWorks, loop: l.loop})
	m.partFrom, m.partWho = to, everyCore
}

// idle returns the range of rows that a core without iterations of the loop skips. The range begins
// where the code before the loop can branch directly to the code after the loop.
func (m *Reader) idle(l *loopRun) (from, to uint64) {
	blocks := m.code.program.Blocks[l.shape.first:]
	for i, h := range l.head.blocks {
		for _, t := range l.tail.blocks {
			if slices.Contains(blocks[h.block].Successors, l.shape.first+t.block) {
				if from = l.units.from; i+1 < len(l.head.blocks) {
					from = l.head.blocks[i+1].row
				}
				return from, t.row
			}
		}
	}
	return l.units.from, l.units.to
}

// shareChunks divides a loop over chunks. A single-threaded run has one chunk. The code around this
// chunk is executed for every chunk of every thread. If the test for a further chunk precedes the
// chunk, the run executed the test twice. The code of the first test is executed for each chunk,
// and the code of the second test is executed once by each thread, at its end. Otherwise, the run
// executed only the test after the chunk.
func (m *Reader) shareChunks(l *loopRun) {
	h, t := &l.head, &l.tail
	if h.header != 0 && h.header == t.header {
		test, end := h.blocks[0].row, t.blocks[0].row
		l.before, l.behind = span{test, l.units.from}, span{l.units.to, end}
		if l.asked.kind == staticChunked && l.used.Kind == Static && len(l.kinds) == 0 {
			headRow, tailRow := h.meets(t)
			l.short = [2]span{{end, tailRow}, {headRow, l.units.from}}
		}
		m.add(part{from: m.partFrom, to: test, who: m.partWho})
		m.add(part{from: l.units.from, to: l.units.to, who: whoShares, loop: l.loop})
		m.partFrom, m.partWho = end, everyCore
		return
	}
	l.before, l.behind = span{l.chunk.from, l.units.from}, span{l.units.to, l.chunk.to}
	ending := span{l.chunk.to, l.chunk.to} // the rows that end the loop
	if l.ended {
		ending = span{l.endRow, l.endRow}
		if m.kept.Has(trace.LoopEnd) {
			ending.to++
		}
		ending.to = min(ending.to, l.chunk.to)
		l.behind.to, l.rest = ending.from, span{ending.to, l.chunk.to}
	}
	m.add(part{from: m.partFrom, to: l.chunk.from, who: m.partWho})
	m.add(part{from: l.units.from, to: l.units.to, who: whoShares, loop: l.loop})
	m.add(part{from: ending.from, to: ending.to})
	m.partFrom, m.partWho = l.chunk.to, everyCore
}
