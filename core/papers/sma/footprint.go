package sma

import "math"

// slot is a set of the cache, and how many lines of an array are in it.
type slot struct {
	set   uint32
	lines float32
}

// footprint says which sets an array's lines are in.
type footprint struct {
	run   bool     // it is all the bytes of the array's span
	slots [][]slot // or so many lines in these sets, by where in a line the array begins
	even  float32  // or as many in every set
}

// mostRuns bounds the runs of lines that are put in their sets one by one. An array of
// more of them, or of runs that strides spread otherwise, is taken as even.
func (a *analysis) mostRuns() float64 { return float64(16*uint64(a.cache.Sets) + 256) }

// put adds a section's lines, moved by some bytes, to the counts of sets. Of lines that
// are even it adds nothing, and gives false.
func (a *analysis) put(s *section, offset uint64) bool {
	line, sets := uint64(a.cache.LineBytes), uint64(a.cache.Sets)
	all := 1.
	for _, d := range s.dims {
		all *= math.Ceil(d.trips)
	}
	each := math.Ceil((s.run-1)/float64(line)) + 1
	if all*each > a.mostRuns() {
		// Of one stride, the runs come round to the same sets.
		if len(s.dims) != 1 || math.Mod(s.dims[0].step, float64(line)) != 0 || each > float64(sets) {
			return false
		}
	}
	a.putRuns(s, len(s.dims)-1, s.span.lo+offset)
	return true
}

// putRuns puts the runs that the strides from number d down make.
func (a *analysis) putRuns(s *section, d int, at uint64) {
	line, sets := uint64(a.cache.LineBytes), uint64(a.cache.Sets)
	if d < 0 {
		for n := at / line; n <= (at+uint64(s.run)-1)/line; n++ {
			a.count(uint32(n%sets), 1)
		}
		return
	}
	n, step := uint64(math.Ceil(s.dims[d].trips)), uint64(s.dims[d].step)
	if round := sets / gcd(step/line, sets); len(s.dims) == 1 && step%line == 0 && n > round {
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
		return
	}
	for i := range n {
		a.putRuns(s, d-1, at+i*step)
	}
}

// where appends the sets that an array's lines are in, where the context has it, to a
// list. It gives how many are in every set besides.
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

// occupy adds an array's lines to the counts of sets. It gives how many are in every set
// besides.
func (a *analysis) occupy(c *context, s *array, i int) (even float32) {
	c.other, even = a.where(c, s, i, c.other[:0])
	for _, x := range c.other {
		a.count(x.set, x.lines)
	}
	return even
}

// forget makes the counts of sets zero.
func (a *analysis) forget() {
	for _, set := range a.counted {
		a.counts[set] = 0
	}
	a.counted = a.counted[:0]
}

// gcd is the greatest common divisor, at least 1.
func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, 1)
}

// count adds lines to a set.
func (a *analysis) count(set uint32, lines float32) {
	if a.counts[set] == 0 {
		a.counted = append(a.counted, set)
	}
	a.counts[set] += lines
}

// slots takes the counts as those of an array, at most so many lines in each set,
// and makes them zero.
func (a *analysis) slots(most float32) (list []slot) {
	list = make([]slot, 0, len(a.counted))
	for _, set := range a.counted {
		list = append(list, slot{set, min(a.counts[set], most)})
		a.counts[set] = 0
	}
	a.counted = a.counted[:0]
	return list
}

// mostPhases bounds the places in a line that are told apart.
const mostPhases = 8

// phases gives how many places in a line an array begins at, and how far one is from
// the next.
func (a *analysis) phases(s *array) (n, step uint64) {
	line := uint64(a.cache.LineBytes)
	n = min(line/s.granule, mostPhases)
	return n, line / n
}
