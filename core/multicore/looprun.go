package multicore

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// loopRun tracks one execution of a worksharing loop in the single-threaded run. Rows are numbered
// as in the region buffer.
type loopRun struct {
	*loop
	entry *Loop // the entry of this loop in the report

	// The fields "iterations" and "chunks" track the sequence of entered blocks, and detect where
	// iterations and chunks begin.
	iterations, chunks walk

	units extent // the rows of all units
	chunk extent // the rows of the first chunk
	begun int    // number of chunks that have begun
	// head contains the blocks before the first chunk or unit, and tail contains the blocks after the
	// last chunk or unit.
	head, tail blockPath
	// unitCost is the cost of the last unit, and unitBytes is the number of bytes that the loop
	// references up to the end of the last unit. Both are set after the last unit.
	unitCost  float64
	unitBytes uint64
	// ended is true after the runtime has reported that there are no more chunks. This report
	// precedes row endRow.
	ended  bool
	endRow uint64

	calls int // number of active recursive calls, made in the loop, of the function that contains the loop
}

// extent is a range of rows. The field "to" is valid only in the state hasEnded.
type extent struct {
	state    extentState
	from, to uint64
}

type extentState uint8

const (
	notBegun extentState = iota
	underway
	hasEnded // the extent has ended, unless a further unit or chunk begins
)

// beginLoop starts to track a worksharing loop if its code is known.
func (m *Reader) beginLoop(site uint32) {
	arg := uint64(0)
	if m.batch.Arg != nil {
		arg = m.batch.Arg[m.at]
	}
	a := decodeSchedule(m.batch.Addr[m.at], arg)
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
	used := a.effective(m.options.Schedule)
	l := &loop{shape: shape, requested: a, used: used, chunk: used.Chunk, clock: m.clock, steals: a.steals(m.options.Schedule)}
	clear(m.clock)
	m.loop = &loopRun{
		loop: l, entry: m.found.loopEntry(site, l),
		iterations: walk{steps: shape.iterations}, chunks: walk{steps: shape.chunks},
	}
	m.guard = guard{}
	m.cost, m.bytes = 0, 0
}

// enterInLoop processes the entry of a block while a loop is tracked.
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
				l.chunk.state, l.chunk.to = hasEnded, m.currentRow()
			}
			if l.ended {
				m.endLoop()
				return
			}
		} else if l.chunks.enter(i) {
			if row := m.currentRow(); l.chunk.state == notBegun {
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
		l.units.state, l.units.to = hasEnded, m.currentRow()
		l.unitCost, l.unitBytes = m.cost, m.bytes
	}
	if depth == inChunk {
		m.passBetween(i)
	} else {
		m.passAround(i)
	}
}

// passAround records an execution of block i of the function, before or after all units of a loop
// that has no loop over chunks.
func (m *Reader) passAround(i uint32) {
	l := m.loop
	pass := &l.head
	if l.units.state != notBegun {
		pass = &l.tail
	}
	if l.shape.chunks == nil && len(pass.blocks) < mostBetween {
		pass.blocks = append(pass.blocks, pathBlock{i, m.currentRow()})
	}
}

// passBetween records an execution of block i in the loop over chunks, but outside all units.
func (m *Reader) passBetween(i uint32) {
	l := m.loop
	pass := &l.head
	switch {
	case l.begun == 1 && l.units.state == hasEnded && l.chunk.state == underway:
		pass = &l.tail
	case l.begun > 0:
		return
	}
	s := &l.shape.chunks[i]
	if pass.header == 0 && s.header == 0 || len(pass.blocks) == mostBetween {
		return
	}
	pass.enter(s, i, m.currentRow())
}

// beginUnit begins a new unit of the loop at the current row.
func (m *Reader) beginUnit() {
	l := m.loop
	if row := m.currentRow(); l.units.state == notBegun {
		l.units.from, l.mark = row, m.tape.Marks()
	}
	owner := uint8(0)
	switch {
	case l.assignedAtEnd():
		if l.loop.units > 0 {
			l.costs.add(m.cost)
		}
	case l.used.Kind == Dynamic:
		owner = l.nextOwner(m.cost)
	}
	if n := len(l.unitRuns); n == 0 || n <= mostUnitRuns && l.unitRuns[n-1].head != l.iterations.head {
		l.unitRuns = append(l.unitRuns, unitRun{head: l.iterations.head, unit: l.loop.units, bytes: m.bytes})
	}
	l.loop.units++
	if l.units.state == hasEnded {
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
	l.ended, l.endRow = true, m.currentRow()
}

// endLoop ends the tracked loop before the current row, and adds the parts of the loop to the
// phase.
func (m *Reader) endLoop() {
	l := m.loop
	m.loop = nil
	rows := m.currentRow()
	if l.units.state != hasEnded {
		l.units.to, l.unitCost, l.unitBytes = rows, m.cost, m.bytes
	}
	l.setMaxWidth()
	l.setUnitWidths(l.unitBytes)
	m.found.ended(l.entry, l.loop)
	if l.units.state == notBegun || len(m.cursors) == 1 {
		return
	}
	if l.chunk.state != hasEnded {
		l.chunk.to = rows
	}
	if l.assignedAtEnd() {
		l.costs.add(l.unitCost)
		l.assignUnits()
	}
	l.clock = nil
	if l.begun == 1 && l.chunk.from <= l.units.from && l.units.to <= l.chunk.to {
		m.shareChunks(l)
		return
	}
	from, to := l.units.from, l.units.to
	if l.shape.chunks == nil {
		from, to = m.idleRows(l)
	}
	m.appendPart(part{from: m.partFrom, to: from, who: m.partWho})
	m.appendPart(part{from: from, to: l.units.from, who: whoWorks, loop: l.loop})
	m.appendPart(part{from: l.units.from, to: l.units.to, who: whoShares, loop: l.loop})
	m.appendPart(part{from: l.units.to, to: to, who: whoWorks, loop: l.loop})
	m.partFrom, m.partWho = to, everyCore
}

// idleRows returns the range of rows that a core without iterations of the loop skips. The range
// begins at the block from which the code before the loop can branch directly to the code after the
// loop.
func (m *Reader) idleRows(l *loopRun) (from, to uint64) {
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

// shareChunks divides a loop over chunks among the cores. A single-threaded run has only one chunk.
// Each core executes the code around this chunk for each of its own chunks. If the test for a
// further chunk precedes the chunk, the run executed the test twice. Each core executes the first
// test for each of its chunks, and the second test once, at the end. Otherwise, the run executed
// only the test after the chunk.
func (m *Reader) shareChunks(l *loopRun) {
	h, t := &l.head, &l.tail
	if h.header != 0 && h.header == t.header {
		test, end := h.blocks[0].row, t.blocks[0].row
		l.rowsBefore, l.rowsAfter = span{test, l.units.from}, span{l.units.to, end}
		if l.requested.kind == staticChunked && l.used.Kind == Static && len(l.unitRuns) == 0 {
			headRow, tailRow := h.lastCommonBlock(t)
			l.short = [2]span{{end, tailRow}, {headRow, l.units.from}}
		}
		m.appendPart(part{from: m.partFrom, to: test, who: m.partWho})
		m.appendPart(part{from: l.units.from, to: l.units.to, who: whoShares, loop: l.loop})
		m.partFrom, m.partWho = end, everyCore
		return
	}
	l.rowsBefore, l.rowsAfter = span{l.chunk.from, l.units.from}, span{l.units.to, l.chunk.to}
	ending := span{l.chunk.to, l.chunk.to} // the rows that end the loop
	if l.ended {
		ending = span{l.endRow, l.endRow}
		if m.kept.Has(trace.LoopEnd) {
			ending.to++
		}
		ending.to = min(ending.to, l.chunk.to)
		l.rowsAfter.to, l.rowsAfterEnd = ending.from, span{ending.to, l.chunk.to}
	}
	m.appendPart(part{from: m.partFrom, to: l.chunk.from, who: m.partWho})
	m.appendPart(part{from: l.units.from, to: l.units.to, who: whoShares, loop: l.loop})
	m.appendPart(part{from: ending.from, to: ending.to})
	m.partFrom, m.partWho = l.chunk.to, everyCore
}
