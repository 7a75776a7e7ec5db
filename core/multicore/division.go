package multicore

import (
	"math"
	"sort"
)

// part is a run of a phase's rows, from from up to to, and who does them.
type part struct {
	from, to uint64
	who      who
	loop     *loop // of whoShares and whoWorks
}

type who uint8

const (
	everyCore who = iota
	firstCore
	whoShares // the iterations are divided
	whoWorks  // cores that have any of them
)

// loop is one execution of a worksharing loop. Its units are iterations.
type loop struct {
	shape *shape
	asked schedule
	used  Schedule
	mark  uint64 // before the first unit
	units uint64
	chunk uint64 // units that are given out at once; of Guided: the fewest; 0: of Static, as few as there are cores
	// Rows that each chunk begins with, and ends with.
	before, behind, rest span
	// What a chunk with fewer units than others begins with instead. Not optimised, a
	// thread asks whether its upper bound is above the loop's, and goes another way then.
	short [2]span

	kinds []kind    // of units, by the loops that the compiler made; in order
	total uint64    // iterations of the program
	width uint64    // most of them that a unit is, as the code tells
	clock []float64 // of each core
	costs sums      // of units, if they are given out when all are known
	runs  [][]run   // of Guided, and of Dynamic that steals, once the loop is over: what each core does, in its order
	owner uint8     // of Dynamic: of the chunk that is being given out
	left  uint64    // and its units to come
	given uint64    // of Dynamic: bit c: core c has got some
	// steals: of Dynamic: cores begin with parts of their own, and steal chunks when they
	// are done.
	steals bool
}

// later tells that units are given out when all are known.
func (l *loop) later() bool { return l.used.Kind == Guided || l.used.Kind == Dynamic && l.steals }

// run is units from from up to to.
type run struct{ from, to uint64 }

// span is a run of rows, from from up to to.
type span struct{ from, to uint64 }

// apart tells that chunks have rows of their own.
func (l *loop) apart() bool {
	return l.before.from < l.before.to || l.behind.from < l.behind.to || l.rest.from < l.rest.to
}

// passage is a run through the test of a loop over chunks, from the loop's header on.
type passage struct {
	header uint32 // 1 + the loop's header; 0: it did not come by
	blocks []passed
}

// passed is a block of the function, by its number there, and the row that it begins with.
type passed struct {
	block uint32
	row   uint64
}

// mostBetween is the most blocks that are looked at.
const mostBetween = 64

func (p *passage) reset() { p.header, p.blocks = 0, p.blocks[:0] }

// enter takes in a block that a row begins.
func (p *passage) enter(s *step, block uint32, row uint64) {
	if s.header != 0 && !s.whole {
		p.reset()
		p.header = s.header
	}
	if p.header != 0 {
		p.blocks = append(p.blocks, passed{block, row})
	}
}

// meets gives the rows of the last block of t that is in p, too, in both of them. From
// there on one that came as t did can go on as p does.
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

// behind is the core whose clock says least; of several the first.
func behind(clock []float64) uint8 {
	least := 0
	for c := range clock {
		if clock[c] < clock[least] {
			least = c
		}
	}
	return uint8(least)
}

// next tells who does the next unit of a dynamic schedule, when the one before it has
// taken cost.
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

// works tells whether a core has any units.
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

// give gives out the units of a schedule that does so when all are known.
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

// giveStolen has cores steal chunks, the one whose clock says least first.
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

// takes has a core's clock go on.
func (l *loop) takes(core uint8, r run) { l.clock[core] += l.costs.upTo(r.to) - l.costs.upTo(r.from) }

// kind is a run of units that belong to one loop of the code, up to the next run.
type kind struct {
	head  uint32 // 1 + the loop's header
	unit  uint64 // the first
	bytes uint64 // that the units before it referenced
	width uint64 // iterations of the program that one is
	from  uint64 // of which this is the first's first
}

// widen looks up how wide units are.
func (l *loop) widen() {
	l.width = 1
	for i := range l.kinds {
		l.width = max(l.width, l.shape.widths[l.kinds[i].head-1])
	}
}

// tooWide tells that a chunk, or a core's part, has fewer of the program's iterations than
// a unit is.
func (l *loop) tooWide(cores uint64) bool {
	if l.used.Kind != Static || l.used.Chunk > 0 {
		return max(l.used.Chunk, 1) < l.width
	}
	return max(l.total, l.units*l.width)/cores < l.width && l.width > 1
}

// mostKinds is the most runs of units of several loops that are told apart.
const mostKinds = 1 << 12

// weigh finds how many of the program's iterations each unit is, when the loop's units
// have referenced so many bytes. Only static schedules ask.
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
		// Chunks cannot be told apart then. Units in turn are as near as one comes.
		l.chunk, l.kinds = 1, l.kinds[:0]
	}
}

// iterations is the number of the program's, as far as they can be told apart.
func (l *loop) iterations() uint64 {
	if n := len(l.kinds); n > 0 {
		k := &l.kinds[n-1]
		return k.from + (l.units-k.unit)*k.width
	}
	return l.units
}

// unitAt is the unit that begins nearest to an iteration.
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

// static gives the n-th run of units of a core in a static schedule, which may be empty.
// more: there is one, and there may be others.
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

// mostSums is the number of sums that are kept.
const mostSums = 1 << 16

// sums are the costs of all units up to each 2^shift-th one, with shift as small as
// mostSums permits. In between they are taken to grow evenly: with more than mostSums
// units it hardly matters when exactly a core is done with a large chunk of them.
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

// upTo is the cost of the first n units.
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
