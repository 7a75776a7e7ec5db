package multicore

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// model generates OpenMP programs, their single-threaded runs, and the rows that each core must
// execute. The model uses only plain lists and simple counting.
type model struct {
	rng     *rand.Rand
	program trace.Program
	cores   int
	used    *Schedule
	cycles  []float64 // cycles of each block; if nil, each reference costs 1

	sequence []row // rows of the single-threaded run
	out      []action
	phase    [][]row // rows of each core
	depth    int
	scale    int // factor for the number of iterations
}

// action is either a row that only core 0 executes, or a phase that all cores execute.
type action struct {
	row   row
	cores [][]row
}

type row struct {
	kind  trace.Kind
	site  uint32
	addr  trace.Addr
	bytes uint32
	arg   uint64
}

// The constants are the block numbers in the model's program.
const (
	mainEntry = iota
	forkBlock
	joinBlock
	outlinedEntry
	rotatedCall
	rotatedTest
	rotatedBefore
	rotatedLoop
	rotatedBehind
	rotatedEnd
	testedCall
	testedHead
	testedBody
	testedLatch
	testedEnd
	chunkedCall
	chunkedHead
	chunkedWithin
	chunkedAbove
	chunkedTest
	chunkedBegin
	chunkedLoop
	chunkedLatch
	chunkedEnd
	dispatchCall
	dispatchHead
	dispatchCheck
	dispatchBegin
	dispatchLoop
	dispatchLatch
	dispatchEnd
	nextCall
	nextAsk
	nextCheck
	nextBegin
	nextLoop
	nextLatch
	nextAgain
	nextEnd
	singleCall
	singleCheck
	singleBody
	singleRest
	singleBehind
	reduceCall
	reduceCheck
	reduceAdds
	reduceEnd
	barrierBlock
	plainBlock
	outlinedExit
	calleeEntry
	calleeLoop
	calleeExit
	modelBlocks
)

const (
	mainFunction = iota
	outlined
	called

	modelFrame = 0x7ffc_0000_8000
	modelLow   = 0x7ffc_0000_0000
)

func newModel(rng *rand.Rand, cores int) *model {
	m := &model{rng: rng, cores: cores}
	p := &m.program
	p.Threads = []trace.Thread{{Number: 1, StackLow: modelLow, StackHigh: modelFrame + 0x1000}}
	p.Functions = []trace.Function{
		{Name: "main", First: 0, Blocks: outlinedEntry},
		{Name: "main.omp_outlined", First: outlinedEntry, Blocks: calleeEntry - outlinedEntry, Outline: true},
		{Name: "callee", First: calleeEntry, Blocks: modelBlocks - calleeEntry},
	}
	const head, latch = trace.HeaderBlock, trace.LatchBlock
	block := func(function, depth, loop uint32, flags trace.BlockFlags, callee string, successors []uint32, kinds ...trace.Kind) {
		n := uint32(len(p.Blocks))
		p.Blocks = append(p.Blocks, trace.Block{Function: function, Label: string(rune('a' + n)), Depth: depth, Loop: loop, Flags: flags, Callee: callee,
			Successors: successors, FirstSite: uint32(len(p.Sites)), Sites: uint32(len(kinds))})
		for _, k := range kinds {
			s := trace.Site{Kind: k, Block: n}
			if k.IsReference() {
				s.Bytes = 8
			}
			p.Sites = append(p.Sites, s)
		}
	}
	to := func(s ...uint32) []uint32 { return s }
	block(mainFunction, 0, 0, trace.EntryBlock, "", to(forkBlock), trace.Store)
	block(mainFunction, 0, 0, 0, "__kmpc_fork_call", to(joinBlock), trace.Load, trace.ParallelBegin)
	block(mainFunction, 0, 0, trace.ReturnBlock, "", nil, trace.ParallelEnd, trace.Store)
	block(outlined, 0, 0, trace.EntryBlock, "", to(plainBlock), trace.Store)

	block(outlined, 0, 0, 0, "__kmpc_for_static_init_4", to(rotatedTest), trace.Store, trace.LoopBegin)
	block(outlined, 0, 0, 0, "", to(rotatedBefore, rotatedEnd), trace.Load)
	block(outlined, 0, 0, 0, "", to(rotatedLoop), trace.Load)
	block(outlined, 1, rotatedLoop+1, head|latch, "", to(rotatedLoop, rotatedBehind), trace.Load, trace.Store)
	block(outlined, 0, 0, 0, "", to(rotatedEnd), trace.Store)
	block(outlined, 0, 0, 0, "__kmpc_for_static_fini", to(plainBlock), trace.LoopEnd)

	block(outlined, 0, 0, 0, "__kmpc_for_static_init_4", to(testedHead), trace.LoopBegin)
	block(outlined, 1, testedHead+1, head, "", to(testedBody, testedEnd), trace.Load)
	block(outlined, 1, testedHead+1, 0, "callee", to(testedLatch), trace.Modify)
	block(outlined, 1, testedHead+1, latch, "", to(testedHead))
	block(outlined, 0, 0, 0, "__kmpc_for_static_fini", to(plainBlock), trace.Load, trace.LoopEnd)

	block(outlined, 0, 0, 0, "__kmpc_for_static_init_8", to(chunkedHead), trace.Store, trace.LoopBegin)
	block(outlined, 1, chunkedHead+1, head, "", to(chunkedWithin, chunkedAbove), trace.Load)
	block(outlined, 1, chunkedHead+1, 0, "", to(chunkedTest), trace.Load)
	block(outlined, 1, chunkedHead+1, 0, "", to(chunkedTest))
	block(outlined, 1, chunkedHead+1, 0, "", to(chunkedBegin, chunkedEnd), trace.Store, trace.Load)
	block(outlined, 1, chunkedHead+1, 0, "", to(chunkedLoop), trace.Load)
	block(outlined, 2, chunkedLoop+1, head|latch, "", to(chunkedLoop, chunkedLatch), trace.Load, trace.Store)
	block(outlined, 1, chunkedHead+1, latch, "", to(chunkedHead), trace.Modify)
	block(outlined, 0, 0, 0, "__kmpc_for_static_fini", to(plainBlock), trace.LoopEnd)

	block(outlined, 0, 0, 0, "__kmpc_dispatch_init_4", to(dispatchHead), trace.LoopBegin)
	block(outlined, 1, dispatchHead+1, head, "__kmpc_dispatch_next_4", to(dispatchCheck), trace.Load)
	block(outlined, 1, dispatchHead+1, 0, "", to(dispatchBegin, dispatchEnd), trace.LoopEnd, trace.Load)
	block(outlined, 1, dispatchHead+1, 0, "", to(dispatchLoop), trace.Load)
	block(outlined, 2, dispatchLoop+1, head|latch, "", to(dispatchLoop, dispatchLatch), trace.Load)
	block(outlined, 1, dispatchHead+1, latch, "", to(dispatchHead))
	block(outlined, 0, 0, 0, "", to(plainBlock), trace.Store)
	p.Blocks[dispatchCheck].Part, p.Blocks[dispatchCheck].Label = 1, p.Blocks[dispatchHead].Label

	block(outlined, 0, 0, 0, "__kmpc_dispatch_init_4", to(nextAsk), trace.LoopBegin)
	block(outlined, 0, 0, 0, "__kmpc_dispatch_next_4", to(nextCheck), trace.Load)
	block(outlined, 0, 0, 0, "", to(nextBegin, nextEnd), trace.LoopEnd, trace.Load)
	block(outlined, 1, nextBegin+1, head, "", to(nextLoop), trace.Load)
	block(outlined, 2, nextLoop+1, head|latch, "", to(nextLoop, nextLatch), trace.Load)
	block(outlined, 1, nextBegin+1, 0, "__kmpc_dispatch_next_4", to(nextAgain), trace.Store)
	block(outlined, 1, nextBegin+1, latch, "", to(nextBegin, nextEnd), trace.LoopEnd, trace.Load)
	block(outlined, 0, 0, 0, "", to(plainBlock), trace.Store)
	for _, n := range []uint32{nextCheck, nextAgain} {
		p.Blocks[n].Part, p.Blocks[n].Label = 1, p.Blocks[n-1].Label
	}

	block(outlined, 0, 0, 0, "__kmpc_single", to(singleCheck), trace.Load)
	block(outlined, 0, 0, 0, "", to(singleBehind, singleBody), trace.Load)
	block(outlined, 0, 0, 0, "__kmpc_end_single", to(singleRest), trace.Store)
	block(outlined, 0, 0, 0, "", to(singleBehind), trace.Store)
	block(outlined, 0, 0, 0, "", to(plainBlock), trace.Load)
	p.Blocks[singleRest].Part, p.Blocks[singleRest].Label = 1, p.Blocks[singleBody].Label

	block(outlined, 0, 0, 0, "__kmpc_reduce_nowait", to(reduceCheck), trace.Store, trace.ReduceBegin)
	block(outlined, 0, 0, 0, "", to(reduceAdds, reduceEnd), trace.Load)
	block(outlined, 0, 0, 0, "__kmpc_end_reduce_nowait", to(reduceEnd), trace.Load, trace.Load, trace.Store, trace.Load, trace.Store)
	block(outlined, 0, 0, 0, "", to(plainBlock), trace.Load)
	p.Blocks[reduceCheck].Part, p.Blocks[reduceCheck].Label = 1, p.Blocks[reduceCall].Label

	block(outlined, 0, 0, 0, "", to(plainBlock), trace.Barrier, trace.Load)
	block(outlined, 0, 0, 0, "callee", to(rotatedCall, testedCall, chunkedCall, dispatchCall, nextCall, singleCall, reduceCall, outlinedExit), trace.Load, trace.Store)
	block(outlined, 0, 0, trace.ReturnBlock, "", nil, trace.Load)

	block(called, 0, 0, trace.EntryBlock, "", to(calleeLoop), trace.Alloc, trace.Load)
	block(called, 1, calleeLoop+1, head|latch, "", to(calleeLoop, calleeExit), trace.Load, trace.Fetch)
	block(called, 0, 0, trace.ReturnBlock, "", nil)
	return m
}

// randomAddr returns a random address in an array, or in the stack above or below the frame.
func (m *model) randomAddr() trace.Addr {
	switch m.rng.IntN(4) {
	case 0:
		return modelFrame - 8*m.rng.Uint64N(0x100)
	case 1:
		return modelFrame + 8*m.rng.Uint64N(0x100)
	}
	return 0x10000 + 8*m.rng.Uint64N(0x400)
}

// blockRows returns the rows of one execution of a block. The parameter "values" contains the
// arguments of the block's events.
func (m *model) blockRows(n uint32, values ...uint64) (rows []row) {
	b := &m.program.Blocks[n]
	rows = append(rows, row{kind: trace.BlockEntry, site: n})
	if b.Flags&trace.EntryBlock != 0 {
		rows = append(rows, row{kind: trace.Call, site: n})
	}
	for s := b.FirstSite; s < b.FirstSite+b.Sites; s++ {
		site := &m.program.Sites[s]
		r := row{kind: site.Kind, site: s, bytes: site.Bytes}
		switch k := site.Kind; {
		case k.IsReference() || k == trace.Alloc:
			r.addr = m.randomAddr()
		case k == trace.ParallelBegin:
			r.addr = modelFrame
		case k == trace.LoopBegin:
			r.addr, r.arg = values[0], values[1]
		case k == trace.LoopEnd && (n == dispatchCheck || n == nextCheck || n == nextAgain) && values[0] != 0:
			continue
		}
		rows = append(rows, r)
	}
	if b.Flags&trace.ReturnBlock != 0 {
		rows = append(rows, row{kind: trace.Return, site: n})
	}
	return rows
}

// callRows returns the rows of one call of the function "callee". The called function may contain
// a region.
func (m *model) callRows() (rows []row) {
	rows = m.blockRows(calleeEntry)
	for range m.rng.IntN(3) {
		rows = append(rows, m.blockRows(calleeLoop)...)
	}
	if m.depth++; m.depth < 3 && m.rng.IntN(8+m.scale) == 0 {
		rows = append(rows, m.blockRows(forkBlock)...)
		rows = append(rows, m.generateRegion(true)...)
		rows = append(rows, m.blockRows(joinBlock)...)
		rows = rows[:len(rows)-1] // without the Return row, because main does not return here
	}
	m.depth--
	return append(rows, m.blockRows(calleeExit)...)
}

// addToAll adds rows that every core executes.
func (m *model) addToAll(rows []row) {
	m.sequence = append(m.sequence, rows...)
	for c := range m.phase {
		m.phase[c] = append(m.phase[c], rows...)
	}
}

func (m *model) first(rows []row) {
	m.sequence = append(m.sequence, rows...)
	m.phase[0] = append(m.phase[0], rows...)
}

func (m *model) alone(rows []row) {
	m.sequence = append(m.sequence, rows...)
	for _, r := range rows {
		m.out = append(m.out, action{row: r})
	}
}

func (m *model) newPhase() {
	if m.phase != nil {
		m.out = append(m.out, action{cores: m.phase})
	}
	m.phase = make([][]row, m.cores)
}

// modelLoop is one execution of a worksharing loop.
type modelLoop struct {
	prefix, before, behind, suffix []row
	// the rows before a chunk that is shorter than the other chunks; nil if they are the same as in
	// field "before"
	short  []row
	around [2][]row // rows that a core executes before its first chunk and after its last chunk
	// 1 + the index, in field "behind", of the row that each core executes only once; 0 if there
	// is no such row
	onceRow    int
	iterations [][]row
	asked      Schedule
	steals     bool
}

// rowsOfBlocks returns the rows of blocks whose events have no arguments.
func (m *model) rowsOfBlocks(list ...uint32) (rows []row) {
	for _, n := range list {
		rows = append(rows, m.blockRows(n)...)
	}
	return rows
}

func (m *model) loop() (l modelLoop) {
	chunk := 1 + m.rng.Uint64N(6)
	n := m.rng.IntN(40)
	if m.rng.IntN(4) == 0 {
		n = m.rng.IntN(4)
	}
	if m.depth == 0 {
		n *= max(m.scale, 1)
	}
	repeat := func(f func() []row) {
		for range n {
			l.iterations = append(l.iterations, f())
		}
	}
	switch m.rng.IntN(5) {
	case 0:
		l.prefix = append(m.blockRows(rotatedCall, 34, 1), m.blockRows(rotatedTest)...)
		if n > 0 {
			l.around = [2][]row{m.blockRows(rotatedBefore), m.blockRows(rotatedBehind)}
		}
		repeat(func() []row { return m.blockRows(rotatedLoop) })
		l.suffix = m.blockRows(rotatedEnd)
	case 1:
		l.prefix = append(m.blockRows(testedCall, 40, 0), m.blockRows(testedHead)...)
		repeat(func() []row {
			rows := append(m.blockRows(testedBody), m.callRows()...)
			return append(append(rows, m.blockRows(testedLatch)...), m.blockRows(testedHead)...)
		})
		l.suffix = m.blockRows(testedEnd)
	case 2:
		l.asked = Schedule{Static, chunk}
		l.prefix = m.blockRows(chunkedCall, 33|1<<29, chunk)
		if n > 0 {
			first := [][]row{m.blockRows(chunkedHead), m.blockRows(chunkedWithin), m.blockRows(chunkedTest), m.blockRows(chunkedBegin)}
			again := [][]row{m.blockRows(chunkedHead), m.blockRows(chunkedAbove), m.blockRows(chunkedTest), m.blockRows(chunkedEnd)}
			l.before, l.suffix = slices.Concat(first...), slices.Concat(again...)
			l.short = slices.Concat(again[0], again[1], first[2], first[3])
			repeat(func() []row { return m.blockRows(chunkedLoop) })
			l.behind = m.blockRows(chunkedLatch)
		} else {
			l.suffix = m.rowsOfBlocks(chunkedHead, chunkedAbove, chunkedTest, chunkedEnd)
		}
	case 3:
		l.prefix = m.blockRows(dispatchCall, m.randomSchedule(&l, chunk), chunk)
		if n > 0 {
			l.before = slices.Concat(m.blockRows(dispatchHead), m.blockRows(dispatchCheck, 1), m.blockRows(dispatchBegin))
			repeat(func() []row { return m.blockRows(dispatchLoop) })
			l.behind = m.blockRows(dispatchLatch)
		}
		l.suffix = slices.Concat(m.blockRows(dispatchHead), m.blockRows(dispatchCheck, 0), m.blockRows(dispatchEnd))
	default:
		l.prefix = slices.Concat(m.blockRows(nextCall, m.randomSchedule(&l, chunk), chunk), m.blockRows(nextAsk), m.blockRows(nextCheck, uint64(min(n, 1))))
		if n > 0 {
			l.before = m.blockRows(nextBegin)
			repeat(func() []row { return m.blockRows(nextLoop) })
			l.behind = slices.Concat(m.blockRows(nextLatch), m.blockRows(nextAgain, 0))
			l.onceRow = len(l.behind) - 1
		}
		l.suffix = m.blockRows(nextEnd)
	}
	return l
}

// randomSchedule chooses a schedule for a loop whose chunks are distributed by the runtime, and
// returns the number of this schedule.
func (m *model) randomSchedule(l *modelLoop, chunk uint64) uint64 {
	switch m.rng.IntN(4) {
	case 0:
		l.asked, l.steals = Schedule{Dynamic, chunk}, true
		return 35 | 1<<30
	case 1:
		l.asked = Schedule{Dynamic, chunk}
		return 35 | 1<<29
	case 2:
		l.asked = Schedule{Guided, chunk}
		return 68
	}
	return 37
}

func (l *modelLoop) sequence() (rows []row) {
	return slices.Concat(l.prefix, l.around[0], l.before, slices.Concat(l.iterations...), l.behind, l.around[1], l.suffix)
}

// iterationCost returns the execution time of an iteration.
func (m *model) iterationCost(rows []row) (cost float64) {
	timed := false
	for _, r := range rows {
		switch {
		case r.kind == trace.BlockEntry:
			timed = int(r.site) < len(m.cycles)
			if timed {
				cost += m.cycles[r.site]
			}
		case r.kind.IsReference() && r.kind != trace.Fetch && !timed:
			cost++
		}
	}
	return cost
}

// effectiveSchedule returns the schedule by which the model divides a loop.
func (m *model) effectiveSchedule(l *modelLoop) Schedule {
	if m.used != nil {
		return *m.used
	}
	return l.asked
}

// rowsBeforeChunk returns the rows that precede the chunk beginning with iteration i.
func (m *model) rowsBeforeChunk(l *modelLoop, i int) []row {
	if s := m.effectiveSchedule(l); m.cores > 1 && l.short != nil && s.Kind == Static && len(l.iterations)-i < int(s.Chunk) {
		return l.short
	}
	return l.before
}

// chunksByCore returns each core's chunks in execution order.
func (m *model) chunksByCore(l *modelLoop) [][][2]int {
	s := m.effectiveSchedule(l)
	n := len(l.iterations)
	done := make([][][2]int, m.cores)
	clock := make([]float64, m.cores)
	earliest := func() (c int) {
		for i := range clock {
			if clock[i] < clock[c] {
				c = i
			}
		}
		return c
	}
	chunk := int(max(s.Chunk, 1))
	give := func(core, from, to int) {
		done[core] = append(done[core], [2]int{from, to})
		for _, i := range l.iterations[from:to] {
			clock[core] += m.iterationCost(i)
		}
	}
	at := 0
	take := func(core, many int) {
		if many = min(many, n-at); many > 0 {
			give(core, at, at+many)
			at += many
		}
	}
	if s.Kind == Dynamic && l.steals && m.used == nil && m.cores > 1 && (n+chunk-1)/chunk >= m.cores {
		m.distributeByStealing(n, chunk, earliest, func(core, i int) { give(core, i*chunk, min(n, i*chunk+chunk)) }, clock)
		return done
	}
	for turn := 0; at < n; turn++ {
		switch {
		case m.cores == 1:
			take(0, n)
		case s.Kind == Static && s.Chunk == 0:
			many := n / m.cores
			if turn < n%m.cores {
				many++
			}
			take(turn, many)
		case s.Kind == Static:
			take(turn%m.cores, chunk)
		case s.Kind == Dynamic:
			take(earliest(), chunk)
		default:
			many := chunk
			if n-at >= 2*m.cores*(chunk+1) {
				many = (n - at) / (2 * m.cores)
			}
			take(earliest(), many)
		}
	}
	return done
}

// distributeByStealing distributes the chunks of n iterations among the cores. Each core has a
// list of chunks. The core takes chunks from the beginning of its list, and other cores steal
// chunks from the end.
func (m *model) distributeByStealing(n, chunk int, earliest func() int, give func(core, i int), clock []float64) {
	all := (n + chunk - 1) / chunk
	lists, next, closed := make([][]int, m.cores), make([]int, m.cores), make([]bool, m.cores)
	at := 0
	for c := range lists {
		next[c] = (c + 1) % m.cores
		for range (all + m.cores - 1 - c) / m.cores {
			lists[c] = append(lists[c], at)
			at++
		}
	}
	for idle := 0; idle < m.cores; {
		me := earliest()
		if len(lists[me]) == 0 {
			closed[me] = true
			for range m.cores - 1 {
				var open []int
				for i := range m.cores {
					if c := (next[me] + i) % m.cores; !closed[c] {
						open = append(open, c)
					}
				}
				if len(open) == 0 {
					break
				}
				of := open[0]
				if many := len(lists[of]); many > 0 {
					keep := many - 1
					if many >= 8 {
						keep = many - many/4
					}
					lists[me], lists[of], next[me] = lists[of][keep:], lists[of][:keep], of
					closed[me] = many-keep == 1
					break
				}
				next[me] = (of + 1) % m.cores
			}
		}
		if len(lists[me]) == 0 {
			clock[me] = math.Inf(1)
			idle++
			continue
		}
		give(me, lists[me][0])
		lists[me] = lists[me][1:]
	}
}

// executeLoop simulates how the cores execute a worksharing loop.
func (m *model) executeLoop(l *modelLoop) {
	m.sequence = append(m.sequence, l.sequence()...)
	chunks := m.chunksByCore(l)
	if l.onceRow > 0 && m.cores > 1 {
		told := l.behind[l.onceRow-1]
		l.behind = slices.Delete(l.behind, l.onceRow-1, l.onceRow)
		l.suffix = append([]row{told}, l.suffix...)
	}
	for c := range m.phase {
		p := append(m.phase[c], l.prefix...)
		if len(chunks[c]) > 0 {
			p = append(p, l.around[0]...)
		}
		for _, i := range chunks[c] {
			p = append(p, m.rowsBeforeChunk(l, i[0])...)
			p = append(append(p, slices.Concat(l.iterations[i[0]:i[1]]...)...), l.behind...)
		}
		if len(chunks[c]) > 0 {
			p = append(p, l.around[1]...)
		}
		m.phase[c] = append(p, l.suffix...)
	}
}

// generateRegion generates the rows of a region. If the parameter serial is true, the region is
// nested and executed by one thread.
func (m *model) generateRegion(serial bool) (rows []row) {
	all, first, share, wait := m.addToAll, m.first, m.executeLoop, m.newPhase
	if serial {
		add := func(r []row) { rows = append(rows, r...) }
		all, first, wait = add, add, func() {}
		share = func(l *modelLoop) { add(l.sequence()) }
	}
	all(m.blockRows(outlinedEntry))
	for range m.rng.IntN(6) {
		switch m.rng.IntN(7) {
		case 6:
			rows := m.blockRows(reduceAdds)
			switch a := rows[1:]; m.rng.IntN(4) { // the rows in slice a: load, load, store, load, store
			case 0:
				a[2].addr, a[4].addr = a[0].addr, a[3].addr
			case 1:
				a[2].addr, a[4].addr = a[1].addr, a[0].addr
			case 2:
				a[4].addr = a[1].addr
			}
			all(slices.Concat(m.blockRows(reduceCall), m.blockRows(reduceCheck), rows, m.blockRows(reduceEnd)))
		case 0:
			all(append(m.blockRows(plainBlock), m.callRows()...))
		case 1:
			all(append(m.blockRows(singleCall), m.blockRows(singleCheck)...))
			first(append(m.blockRows(singleBody), m.blockRows(singleRest)...))
			all(m.blockRows(singleBehind))
		case 2:
			wait()
			all(m.blockRows(barrierBlock))
		default:
			l := m.loop()
			share(&l)
		}
	}
	all(m.blockRows(outlinedExit))
	return rows
}

// generateRun generates the rows of a run with up to four regions.
func (m *model) generateRun() {
	m.alone(m.blockRows(mainEntry))
	for range m.rng.IntN(5) {
		m.alone(m.blockRows(forkBlock))
		m.phase = nil
		m.newPhase()
		m.generateRegion(false)
		m.newPhase()
		m.phase = nil
		end := m.blockRows(joinBlock)
		m.alone(end[:len(end)-1])
	}
	m.alone(m.blockRows(plainBlock))
}
