package multicore

import (
	"math"
	"sort"
)

// part is a range of rows [from, to) in a phase, with the cores that execute these rows.
type part struct {
	from, to uint64
	who      who
	loop     *loop // the divided loop, if the field "who" is whoShares or whoWorks; otherwise nil
}

type who uint8

const (
	everyCore who = iota
	firstCore
	whoShares // the iterations are divided among the cores
	whoWorks  // the rows are executed only by cores that execute iterations of the loop
)

// loop is one execution of a worksharing loop. A unit is an iteration of the compiled code in the
// recorded run, and may consist of several iterations of the program.
type loop struct {
	shape     *shape
	requested schedule
	used      Schedule
	mark      uint64 // number of the mark before the first unit
	units     uint64
	chunk     uint64 // number of units in a chunk; minimum number for Guided; 0 for Static without chunks
	// For each chunk, a core executes the rows in rowsBefore, the units of the chunk, the
	// rows in rowsAfter, and the rows in rowsAfterEnd.
	rowsBefore, rowsAfter, rowsAfterEnd span
	// short contains the rows that precede a chunk with fewer units than the other chunks. In
	// unoptimised code, these rows differ from rowsBefore, because the thread's upper bound
	// exceeds the upper bound of the loop.
	short [2]span

	unitRuns []unitRun  // runs of units in order, one for each execution of a compiled loop
	total    uint64     // number of iterations in the program
	width    uint64     // maximum number of iterations per unit, according to the code
	clock    []float64  // by core: time at which the core becomes idle
	costs    prefixSums // costs of the units, if the units are assigned only after the end of the loop
	// by core: runs of units, known after the end of the loop; for Guided, and for Dynamic with
	// stealing
	runs     [][]run
	owner    uint8  // for Dynamic: core that owns the current chunk
	left     uint64 // for Dynamic: number of remaining units in the current chunk
	received uint64 // for Dynamic: bit c is set if core c has received units
	// steals means that the schedule is Dynamic, and that each core first executes its own part
	// and then steals chunks.
	steals bool
}

// assignedAtEnd reports whether the units are assigned to cores only after the loop has ended.
func (l *loop) assignedAtEnd() bool {
	return l.used.Kind == Guided || l.used.Kind == Dynamic && l.steals
}

// run is a range of units [from, to).
type run struct{ from, to uint64 }

// span is a range of rows [from, to).
type span struct{ from, to uint64 }

// hasChunkRows reports whether each chunk has rows of its own before or after its units.
func (l *loop) hasChunkRows() bool {
	return l.rowsBefore.from < l.rowsBefore.to || l.rowsAfter.from < l.rowsAfter.to || l.rowsAfterEnd.from < l.rowsAfterEnd.to
}

// blockPath contains the blocks of a path through the loop over chunks, beginning with the header
// of this loop.
type blockPath struct {
	header uint32 // 1 + the header of the loop; 0 if the path does not contain the header
	blocks []pathBlock
}

type pathBlock struct {
	block uint32
	row   uint64
}

const mostBetween = 64

func (p *blockPath) reset() { p.header, p.blocks = 0, p.blocks[:0] }

func (p *blockPath) enter(s *step, block uint32, row uint64) {
	if s.header != 0 && !s.whole {
		p.reset()
		p.header = s.header
	}
	if p.header != 0 {
		p.blocks = append(p.blocks, pathBlock{block, row})
	}
}

// lastCommonBlock finds the last block that the paths p and t have in common, and returns the rows
// of this block in p and in t. A path that begins like t can continue like p from this block
// onwards.
func (p *blockPath) lastCommonBlock(t *blockPath) (row, rowOfT uint64) {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		for _, b := range p.blocks {
			if b.block == t.blocks[i].block {
				return b.row, t.blocks[i].row
			}
		}
	}
	return p.blocks[0].row, t.blocks[0].row
}

// earliestCore returns the core with the earliest clock; of several such cores, it returns the
// first.
func earliestCore(clock []float64) uint8 {
	least := 0
	for c := range clock {
		if clock[c] < clock[least] {
			least = c
		}
	}
	return uint8(least)
}

// nextOwner returns the core that executes the next unit of a dynamic schedule. The parameter "cost"
// is the cost of the previous unit.
func (l *loop) nextOwner(cost float64) uint8 {
	if l.units > 0 {
		l.clock[l.owner] += cost
	}
	if l.left == 0 {
		l.owner, l.left = earliestCore(l.clock), max(l.chunk, 1)
		l.received |= 1 << l.owner
	}
	l.left--
	return l.owner
}

func (l *loop) works(core, cores int) bool {
	switch {
	case l.assignedAtEnd():
		return len(l.runs[core]) > 0
	case l.used.Kind == Dynamic:
		return l.received>>core&1 != 0
	}
	for n := uint64(0); ; n++ {
		if from, to, more := l.staticRun(core, cores, n); !more || from < to {
			return more
		}
	}
}

// assignUnits assigns all units of the loop to cores.
func (l *loop) assignUnits() {
	l.runs = make([][]run, len(l.clock))
	if l.used.Kind == Guided {
		l.assignGuided()
	} else {
		l.assignByStealing()
	}
}

func (l *loop) assignGuided() {
	for unit := uint64(0); unit < l.units; {
		n := guidedChunk(l.units-unit, l.chunk, len(l.clock))
		core := earliestCore(l.clock)
		l.addCost(core, run{unit, unit + n})
		l.runs[core] = append(l.runs[core], run{unit, unit + n})
		unit += n
	}
}

// assignByStealing assigns chunks to the cores as LLVM's runtime does, with stealing. The core with
// the earliest clock always takes the next chunk.
func (l *loop) assignByStealing() {
	chunk := max(l.chunk, 1)
	next := newThieves((l.units+chunk-1)/chunk, len(l.clock)).next
	for range l.clock {
		for core := earliestCore(l.clock); ; core = earliestCore(l.clock) {
			n, ok := next(int(core))
			if !ok {
				l.clock[core] = math.Inf(1)
				break
			}
			r := run{n * chunk, min(l.units, n*chunk+chunk)}
			l.addCost(core, r)
			if list := l.runs[core]; len(list) > 0 && list[len(list)-1].to == r.from {
				list[len(list)-1].to = r.to
			} else {
				l.runs[core] = append(list, r)
			}
		}
	}
}

// addCost advances a core's clock by the cost of a run of units.
func (l *loop) addCost(core uint8, r run) {
	l.clock[core] += l.costs.costOfFirst(r.to) - l.costs.costOfFirst(r.from)
}

// unitRun is a run of consecutive units that one loop of the compiled code executes.
type unitRun struct {
	head  uint32 // 1 + the loop's header
	unit  uint64 // the first unit
	bytes uint64 // number of bytes that the loop references before the first unit
	width uint64 // number of the program's iterations per unit
	from  uint64 // first iteration of the first unit
}

// setMaxWidth computes the maximum number of the program's iterations in a unit.
func (l *loop) setMaxWidth() {
	l.width = 1
	for i := range l.unitRuns {
		l.width = max(l.width, l.shape.widths[l.unitRuns[i].head-1])
	}
}

// tooWide reports whether a unit is larger than a chunk or a core's part.
func (l *loop) tooWide(cores uint64) bool {
	if l.used.Kind != Static || l.used.Chunk > 0 {
		return max(l.used.Chunk, 1) < l.width
	}
	return max(l.total, l.units*l.width)/cores < l.width && l.width > 1
}

const mostUnitRuns = 1 << 12

// setUnitWidths computes the number of the program's iterations in each unit from the number of
// bytes that each run of units references. The parameter "bytes" is the number of bytes that the
// loop references up to the end of the last unit. The numbers of iterations are needed only for
// static schedules.
func (l *loop) setUnitWidths(bytes uint64) {
	if len(l.unitRuns) < 2 || len(l.unitRuns) > mostUnitRuns || l.used.Kind != Static {
		l.total, l.unitRuns = l.units, l.unitRuns[:0]
		return
	}
	type sum struct{ units, bytes float64 }
	sums := map[uint32]*sum{}
	for i, k := range l.unitRuns {
		s := sums[k.head]
		if s == nil {
			s = &sum{}
			sums[k.head] = s
		}
		end, to := l.units, bytes
		if i+1 < len(l.unitRuns) {
			end, to = l.unitRuns[i+1].unit, l.unitRuns[i+1].bytes
		}
		s.units, s.bytes = s.units+float64(end-k.unit), s.bytes+float64(to-k.bytes)
	}
	least := math.Inf(1)
	for _, s := range sums {
		if s.bytes > 0 {
			least = min(least, s.bytes/s.units)
		}
	}
	from, widest := uint64(0), uint64(0)
	for i := range l.unitRuns {
		k := &l.unitRuns[i]
		s := sums[k.head]
		k.from, k.width = from, uint64(max(1, math.Round(s.bytes/s.units/least)))
		end := l.units
		if i+1 < len(l.unitRuns) {
			end = l.unitRuns[i+1].unit
		}
		from += (end - k.unit) * k.width
		widest = max(widest, k.width)
	}
	if l.total = from; l.chunk > 0 && l.chunk < widest {
		// A unit may contain several chunks, and cannot be divided. Therefore, assign whole units
		// to the cores in turn.
		l.chunk, l.unitRuns = 1, l.unitRuns[:0]
	}
}

// iterations returns the number of the program's iterations in the units that have been found so
// far.
func (l *loop) iterations() uint64 {
	if n := len(l.unitRuns); n > 0 {
		k := &l.unitRuns[n-1]
		return k.from + (l.units-k.unit)*k.width
	}
	return l.units
}

// unitAt returns the unit that begins nearest to an iteration of the program.
func (l *loop) unitAt(iteration uint64) uint64 {
	if len(l.unitRuns) == 0 {
		return iteration
	}
	n := sort.Search(len(l.unitRuns), func(i int) bool { return l.unitRuns[i].from > iteration }) - 1
	k := &l.unitRuns[n]
	end := l.units
	if n+1 < len(l.unitRuns) {
		end = l.unitRuns[n+1].unit
	}
	return min(end, k.unit+(iteration-k.from+k.width/2)/k.width)
}

// staticRun returns the n-th run of units of a core in a static schedule, or false if the core has
// at most n runs. A run may be empty.
func (l *loop) staticRun(core, cores int, n uint64) (from, to uint64, more bool) {
	iterations := l.iterations()
	if l.chunk == 0 && n > 0 {
		return 0, 0, false
	}
	if l.chunk == 0 {
		from, to = contiguousPart(iterations, core, cores)
		return l.unitAt(from), l.unitAt(to), true
	}
	chunk := min(l.chunk, max(iterations, 1))
	at := n*uint64(cores) + uint64(core)
	if at > iterations/chunk || at*chunk >= iterations {
		return 0, 0, false
	}
	return l.unitAt(at * chunk), l.unitAt(min(iterations, at*chunk+chunk)), true
}

// mostSums is the maximum number of stored prefix sums.
const mostSums = 1 << 16

// prefixSums contains, for every 2^shift-th unit, the total cost of all preceding units. The total
// costs for the other units are interpolated. The field "shift" is as small as mostSums permits.
type prefixSums struct {
	list  []float64
	shift uint
	units uint64
	total float64
}

func (s *prefixSums) add(cost float64) {
	if s.units&(1<<s.shift-1) == 0 {
		if len(s.list) == mostSums {
			for i := range mostSums / 2 {
				s.list[i] = s.list[2*i]
			}
			s.list = s.list[:mostSums/2]
			s.shift++
		}
		if s.units&(1<<s.shift-1) == 0 {
			s.list = append(s.list, s.total)
		}
	}
	s.units++
	s.total += cost
}

// costOfFirst returns the cost of the first n units.
func (s *prefixSums) costOfFirst(n uint64) float64 {
	if n >= s.units {
		return s.total
	}
	i := n >> s.shift
	from, to, end := s.list[i], s.total, s.units
	if i+1 < uint64(len(s.list)) {
		to, end = s.list[i+1], (i+1)<<s.shift
	}
	begin := i << s.shift
	return from + math.Floor((to-from)*float64(n-begin)/float64(end-begin))
}
