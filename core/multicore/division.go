package multicore

import "math"

// part is a run of a phase's rows, from from up to to, and who does them.
type part struct {
	from, to uint64
	who      who
	loop     *loop // of whoShares
}

type who uint8

const (
	everyCore who = iota
	firstCore
	whoShares // the iterations are divided
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

	clock []float64 // of each core
	costs sums      // of Guided
	given []given   // of Guided, once the loop is over
	owner uint8     // of Dynamic: of the chunk that is being given out
	left  uint64    // and its units to come
}

// span is a run of rows, from from up to to.
type span struct{ from, to uint64 }

// apart tells that chunks have rows of their own.
func (l *loop) apart() bool {
	return l.before.from < l.before.to || l.behind.from < l.behind.to || l.rest.from < l.rest.to
}

// given is a chunk, up to the first unit of the next one, or the loop's last.
type given struct {
	unit uint64
	core uint8
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
	}
	l.left--
	return l.owner
}

// giveGuided gives out the units of a guided schedule, when all are known.
func (l *loop) giveGuided() {
	cores := len(l.clock)
	for unit := uint64(0); unit < l.units; {
		n := guidedChunk(l.units-unit, l.chunk, cores)
		core := behind(l.clock)
		l.given = append(l.given, given{unit, core})
		l.clock[core] += l.costs.upTo(unit+n) - l.costs.upTo(unit)
		unit += n
	}
}

// static gives the n-th run of units of a core in a static schedule; none: from = to.
func (l *loop) static(core, cores int, n uint64) (from, to uint64) {
	if l.chunk == 0 {
		if n > 0 {
			return 0, 0
		}
		return share(l.units, core, cores)
	}
	chunk := min(l.chunk, max(l.units, 1))
	at := n*uint64(cores) + uint64(core)
	if at > l.units/chunk || at*chunk >= l.units {
		return 0, 0
	}
	return at * chunk, min(l.units, at*chunk+chunk)
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
