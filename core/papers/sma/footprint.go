package sma

import (
	"math"

	"github.com/stackglass/stackglass/core/loops"
)

// slot is a set of the cache with the number of an array's lines in it.
type slot struct {
	set   uint32
	lines float32
}

// footprint says which sets an array's lines are in, in one of three ways.
type footprint struct {
	run   bool     // all bytes of the array's span
	slots [][]slot // these sets, by where in a line the array begins
	even  float32  // so many lines in every set
}

// mostRuns bounds the runs of lines that are put in their sets one by one. More runs are taken as even,
// unless a single stride repeats the same sets.
func (a *analysis) mostRuns() float64 { return float64(16*uint64(a.cache.Sets) + 256) }

// put adds a section's lines, moved by some bytes, to the counts of sets. It returns false for lines
// that are even.
func (a *analysis) put(s *section, offset uint64) bool {
	line, sets := uint64(a.cache.LineBytes), uint64(a.cache.Sets)
	all := 1.
	for _, d := range s.dims {
		all *= math.Ceil(d.trips)
	}
	each := math.Ceil((s.run-1)/float64(line)) + 1
	if all*each > a.mostRuns() {
		// The runs of one stride come round to the same sets.
		if len(s.dims) != 1 || math.Mod(s.dims[0].step, float64(line)) != 0 || each > float64(sets) {
			return false
		}
	}
	at := s.span.lo + offset
	if len(s.dims) == 1 {
		n, step := uint64(math.Ceil(s.dims[0].trips)), uint64(s.dims[0].step)
		if round := sets / max(loops.GCD(step/line, sets), 1); step%line == 0 && n > round {
			// It comes to each of these sets in turn.
			for i := range round {
				times := n / round
				if i < n%round {
					times++
				}
				for k := range (at%line+uint64(s.run)-1)/line + 1 {
					a.count(uint32(((at+i*step)/line+k)%sets), float32(times))
				}
			}
			return true
		}
	}
	s.each(len(s.dims)-1, at, func(at uint64) {
		for n := at / line; n <= (at+uint64(s.run)-1)/line; n++ {
			a.count(uint32(n%sets), 1)
		}
	})
	return true
}

// each calls visit with the addresses of the runs that the dimensions up to number d make.
func (s *section) each(d int, at uint64, visit func(at uint64)) {
	if d < 0 {
		visit(at)
		return
	}
	for i := range uint64(math.Ceil(s.dims[d].trips)) {
		s.each(d-1, at+i*uint64(s.dims[d].step), visit)
	}
}

// where appends the sets of an array's lines, at its place in the context, to a list. It also returns
// how many lines are in every set besides.
func (a *analysis) where(c *context, s *array, i int, list []slot) (in []slot, even float32) {
	line, sets := uint64(a.cache.LineBytes), uint64(a.cache.Sets)
	if s.print.run {
		lo, hi := (s.span.lo+c.offset[i])/line, (s.span.hi+c.offset[i])/line
		if s.edgeLo && lo < hi {
			lo++
		}
		if s.edgeHi && lo < hi {
			hi--
		}
		n := max(lo, hi) - lo + 1
		for k := range n % sets {
			list = append(list, slot{uint32((lo + k) % sets), 1})
		}
		return list, float32(n / sets)
	}
	if s.print.slots != nil {
		n, step := a.phases(s)
		for _, x := range s.print.slots[(s.span.lo+c.offset[i])%line/step%n] {
			list = append(list, slot{(x.set + c.shift[i]) % a.cache.Sets, x.lines})
		}
	}
	return list, s.print.even
}

// occupy adds an array's lines to the counts of sets. It returns how many are in every set besides.
func (a *analysis) occupy(c *context, s *array, i int) (even float32) {
	c.other, even = a.where(c, s, i, c.other[:0])
	for _, x := range c.other {
		a.count(x.set, x.lines)
	}
	return even
}

// forget resets the counts of sets.
func (a *analysis) forget() {
	for _, set := range a.counted {
		a.counts[set] = 0
	}
	a.counted = a.counted[:0]
}

// count adds lines to a set.
func (a *analysis) count(set uint32, lines float32) {
	if a.counts[set] == 0 {
		a.counted = append(a.counted, set)
	}
	a.counts[set] += lines
}

// slots returns the counts as those of an array, at most so many lines in each set, and resets them.
func (a *analysis) slots(most float32) (list []slot) {
	list = make([]slot, 0, len(a.counted))
	for _, set := range a.counted {
		list = append(list, slot{set, min(a.counts[set], most)})
		a.counts[set] = 0
	}
	a.counted = a.counted[:0]
	return list
}

// mostPhases bounds the places in a line that are distinguished.
const mostPhases = 8

// phases returns at how many places in a line an array begins, and their distance.
func (a *analysis) phases(s *array) (n, step uint64) {
	line := uint64(a.cache.LineBytes)
	n = min(line/s.granule, mostPhases)
	return n, line / n
}
