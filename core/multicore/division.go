package multicore

import (
	"math"
	"sort"
)

// part is a range of rows [from, to) of a phase, and the cores that execute these rows.
type part struct {
	from, to uint64
	who      who
	loop     *loop // the loop that is divided; only for whoShares and whoWorks
}

type who uint8

const (
	everyCore who = iota
	firstCore
	whoShares // the iterations are divided among the cores
	whoWorks  // only cores with iterations execute the rows
)

// loop is one execution of a worksharing loop. A unit is an iteration in the recorded run.
type loop struct {
	shape *shape
	asked schedule
	used  Schedule
	mark  uint64 // the mark before the first unit
	units uint64
	chunk uint64 // number of units in a chunk; minimum for Guided; 0 for Static without chunks
	// before, behind and rest are the rows at the beginning and at the end of each chunk.
	before, behind, rest span
	// short contains the rows at the beginning of a chunk with fewer units than the other chunks.
	// In unoptimised code, these rows differ if a thread's upper bound exceeds the upper bound of
	// the loop.
	short [2]span

	kinds []kind    // runs of units, one for each execution of a compiled loop, in order
	total uint64    // number of iterations in the program
	width uint64    // maximum number of iterations per unit, according to the code
	clock []float64 // time at which each core becomes idle
	costs sums      // costs of the units, if units are assigned only after all units are known
	runs  [][]run   // runs of each core after the loop, for Guided and for Dynamic with stealing
	owner uint8     // for Dynamic: owner of the current chunk
	left  uint64    // for Dynamic: remaining units of the current chunk
	given uint64    // for Dynamic: bit c is set if core c has received units
	// steals is set for a Dynamic schedule in which each core begins with its own part, and then
	// steals chunks.
	steals bool
}

// later reports whether units are assigned only when the loop has ended.
func (l *loop) later() bool { return l.used.Kind == Guided || l.used.Kind == Dynamic && l.steals }

// run is a range of units [from, to).
type run struct{ from, to uint64 }

// span is a range of rows [from, to).
type span struct{ from, to uint64 }

// apart reports whether each chunk has separate rows before or after its units.
func (l *loop) apart() bool {
	return l.before.from < l.before.to || l.behind.from < l.behind.to || l.rest.from < l.rest.to
}

// passage contains the blocks of one execution of the test of a loop over chunks, beginning with
// the loop's header.
type passage struct {
	header uint32 // 1 + the loop's header; 0 if the passage does not contain the header
	blocks []passed
}

type passed struct {
	block uint32
	row   uint64
}

const mostBetween = 64

func (p *passage) reset() { p.header, p.blocks = 0, p.blocks[:0] }

func (p *passage) enter(s *step, block uint32, row uint64) {
	if s.header != 0 && !s.whole {
		p.reset()
		p.header = s.header
	}
	if p.header != 0 {
		p.blocks = append(p.blocks, passed{block, row})
	}
}

// meets finds the last block that both p and t contain, and returns the rows of this block in p and
// in t. A passage that began like t can continue like p from this block on.
func (p *passage) meets(t *passage) (row, rowOfT uint64) {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		for _, b := range p.blocks {
			if b.block == t.blocks[i].block {
				return b.row, t.blocks[i].row
			}
		}
	}
	return p.blocks[0].row, t.blocks[0].row
}

// behind returns the core with the earliest clock, or the first of several such cores.
func behind(clock []float64) uint8 {
	least := 0
	for c := range clock {
		if clock[c] < clock[least] {
			least = c
		}
	}
	return uint8(least)
}

// next returns the owner of the next unit of a dynamic schedule. cost is the cost of the previous
// unit.
func (l *loop) next(cost float64) uint8 {
	if l.units > 0 {
		l.clock[l.owner] += cost
	}
	if l.left == 0 {
		l.owner, l.left = behind(l.clock), max(l.chunk, 1)
		l.given |= 1 << l.owner
	}
	l.left--
	return l.owner
}

func (l *loop) works(core, cores int) bool {
	switch {
	case l.later():
		return len(l.runs[core]) > 0
	case l.used.Kind == Dynamic:
		return l.given>>core&1 != 0
	}
	for n := uint64(0); ; n++ {
		if from, to, more := l.static(core, cores, n); !more || from < to {
			return more
		}
	}
}

// give assigns all units to cores.
func (l *loop) give() {
	l.runs = make([][]run, len(l.clock))
	if l.used.Kind == Guided {
		l.giveGuided()
	} else {
		l.giveStolen()
	}
}

func (l *loop) giveGuided() {
	for unit := uint64(0); unit < l.units; {
		n := guidedChunk(l.units-unit, l.chunk, len(l.clock))
		core := behind(l.clock)
		l.takes(core, run{unit, unit + n})
		l.runs[core] = append(l.runs[core], run{unit, unit + n})
		unit += n
	}
}

// giveStolen assigns chunks to the cores by stealing. The core with the earliest clock always takes
// the next chunk.
func (l *loop) giveStolen() {
	chunk := max(l.chunk, 1)
	next := newThieves((l.units+chunk-1)/chunk, len(l.clock)).next
	for range l.clock {
		for core := behind(l.clock); ; core = behind(l.clock) {
			n, ok := next(int(core))
			if !ok {
				l.clock[core] = math.Inf(1)
				break
			}
			r := run{n * chunk, min(l.units, n*chunk+chunk)}
			l.takes(core, r)
			if list := l.runs[core]; len(list) > 0 && list[len(list)-1].to == r.from {
				list[len(list)-1].to = r.to
			} else {
				l.runs[core] = append(list, r)
			}
		}
	}
}

// takes adds the cost of a run to a core's clock.
func (l *loop) takes(core uint8, r run) { l.clock[core] += l.costs.upTo(r.to) - l.costs.upTo(r.from) }

// kind is a run of units of one loop in the compiled code.
type kind struct {
	head  uint32 // 1 + the loop's header
	unit  uint64 // the first unit
	bytes uint64 // number of bytes referenced by the units before the first unit
	width uint64 // number of the program's iterations per unit
	from  uint64 // first iteration of the first unit
}

// widen sets the maximum width of units.
func (l *loop) widen() {
	l.width = 1
	for i := range l.kinds {
		l.width = max(l.width, l.shape.widths[l.kinds[i].head-1])
	}
}

// tooWide reports whether a unit is larger than a chunk or a core's part.
func (l *loop) tooWide(cores uint64) bool {
	if l.used.Kind != Static || l.used.Chunk > 0 {
		return max(l.used.Chunk, 1) < l.width
	}
	return max(l.total, l.units*l.width)/cores < l.width && l.width > 1
}

const mostKinds = 1 << 12

// weigh computes the number of iterations in each unit from the number of bytes that all units
// referenced. Only static schedules need weigh.
func (l *loop) weigh(bytes uint64) {
	if len(l.kinds) < 2 || len(l.kinds) > mostKinds || l.used.Kind != Static {
		l.total, l.kinds = l.units, l.kinds[:0]
		return
	}
	type sum struct{ units, bytes float64 }
	sums := map[uint32]*sum{}
	for i, k := range l.kinds {
		s := sums[k.head]
		if s == nil {
			s = &sum{}
			sums[k.head] = s
		}
		end, to := l.units, bytes
		if i+1 < len(l.kinds) {
			end, to = l.kinds[i+1].unit, l.kinds[i+1].bytes
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
	for i := range l.kinds {
		k := &l.kinds[i]
		s := sums[k.head]
		k.from, k.width = from, uint64(max(1, math.Round(s.bytes/s.units/least)))
		end := l.units
		if i+1 < len(l.kinds) {
			end = l.kinds[i+1].unit
		}
		from += (end - k.unit) * k.width
		widest = max(widest, k.width)
	}
	if l.total = from; l.chunk > 0 && l.chunk < widest {
		// A unit that contains several chunks cannot be divided, so assign whole units in turn.
		l.chunk, l.kinds = 1, l.kinds[:0]
	}
}

// iterations returns the number of the program's iterations that have been found so far.
func (l *loop) iterations() uint64 {
	if n := len(l.kinds); n > 0 {
		k := &l.kinds[n-1]
		return k.from + (l.units-k.unit)*k.width
	}
	return l.units
}

// unitAt returns the unit whose beginning is nearest to an iteration.
func (l *loop) unitAt(iteration uint64) uint64 {
	if len(l.kinds) == 0 {
		return iteration
	}
	n := sort.Search(len(l.kinds), func(i int) bool { return l.kinds[i].from > iteration }) - 1
	k := &l.kinds[n]
	end := l.units
	if n+1 < len(l.kinds) {
		end = l.kinds[n+1].unit
	}
	return min(end, k.unit+(iteration-k.from+k.width/2)/k.width)
}

// static returns the n-th run of units of a core in a static schedule. The run may be empty. more
// reports whether the run exists. More runs may follow an existing run.
func (l *loop) static(core, cores int, n uint64) (from, to uint64, more bool) {
	iterations := l.iterations()
	if l.chunk == 0 && n > 0 {
		return 0, 0, false
	}
	if l.chunk == 0 {
		from, to = share(iterations, core, cores)
		return l.unitAt(from), l.unitAt(to), true
	}
	chunk := min(l.chunk, max(iterations, 1))
	at := n*uint64(cores) + uint64(core)
	if at > iterations/chunk || at*chunk >= iterations {
		return 0, 0, false
	}
	return l.unitAt(at * chunk), l.unitAt(min(iterations, at*chunk+chunk)), true
}

// mostSums is the maximum number of partial sums.
const mostSums = 1 << 16

// sums contains the total cost of the preceding units, for one in 2^shift units. Costs of the other
// units are interpolated. shift is as small as mostSums permits.
type sums struct {
	list  []float64
	shift uint
	units uint64
	total float64
}

func (s *sums) add(cost float64) {
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

// upTo returns the cost of the first n units.
func (s *sums) upTo(n uint64) float64 {
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
