package sma

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
)

// context contains the arrays of a loop or of an iteration in the order of their last use. The
// right context of the thesis (§3.3) is this list without the arrays that do not fit in the cache.
type context struct {
	above, below []int32 // by array: 1 + the next array above or below, or 0 if there is no such array
	top          int32   // 1 + the most recently used array
	// by array: number of the array's batch, or 0 if the array is not in the context. The arrays of
	// a batch are used alternately.
	batch      []int32
	offset     []uint64
	shift      []uint32 // by array: offset in sets
	own, other []slot
}

func newContext(n int) *context {
	return &context{
		above: make([]int32, n), below: make([]int32, n), batch: make([]int32, n),
		offset: make([]uint64, n), shift: make([]uint32, n),
	}
}

// makeMostRecent makes an array the most recently used array.
func (c *context) makeMostRecent(i int, batch int32) {
	if c.batch[i] != 0 {
		up, down := c.above[i], c.below[i]
		if up != 0 {
			c.below[up-1] = down
		} else {
			c.top = down
		}
		if down != 0 {
			c.above[down-1] = up
		}
	}
	c.above[i], c.below[i] = 0, c.top
	if c.top != 0 {
		c.above[c.top-1] = int32(i) + 1
	}
	c.top = int32(i) + 1
	c.batch[i] = batch
}

// evictedShare computes the context-based reuse distance of an array, set by set. It returns the
// share of the array's lines that are in overfull sets, and the reason for their eviction. A set is
// overfull if the number of lines to keep in the set exceeds the number of ways. The lines to keep
// are the lines of this array, and the lines that were used since the last use of the array.
func (a *analysis) evictedShare(c *context, its []array, i int) (share float64, why reason) {
	of := &its[i]
	lines := of.lines
	a.examined = a.examined[:0]
	even := a.occupy(c, of, i)
	each := even
	c.own, c.other = c.other, c.own
	ways := a.wayLimit()
	// addArray adds array k to the counts, and returns true if further arrays cannot evict more
	// lines
	addArray := func(k int32) bool {
		lines += its[k].lines
		a.examined = append(a.examined, k)
		even += a.occupy(c, &its[k], int(k))
		return lines > 8*a.cache.lines()+64 || each == 0 && len(c.own) == 1 && a.counts[c.own[0].set]+even > ways
	}
	all := false
	k := c.top
	for ; k != 0 && int(k-1) != i && !all; k = c.below[k-1] {
		all = addArray(k - 1)
	}
	for k = c.below[i]; k != 0 && c.batch[k-1] == c.batch[i] && !all; k = c.below[k-1] {
		all = addArray(k - 1)
	}
	if lines > 8*a.cache.lines()+64 {
		even = math.MaxFloat32
	}
	share = a.overfullShare(c.own, each, even)
	a.resetCounts()
	if share > 0 {
		if why = a.evictionReason(c, its, i); lines > a.cache.lines() {
			why = capacity
		}
	}
	return share, why
}

// wayLimit returns the number of ways per set, plus a tolerance for rounding errors.
func (a *analysis) wayLimit() float32 { return float32(a.cache.Ways) + 1e-3 }

// overfullShare returns the share of an array's lines that are in overfull sets. The parameter
// "own" lists the lines that the array has in individual sets. In addition, the array has "each"
// lines in every set. The field "counts" contains the lines that all arrays have in individual
// sets. In addition, these arrays have "even" lines in every set.
func (a *analysis) overfullShare(own []slot, each, even float32) float64 {
	gone, all, ways := 0., 0., a.wayLimit()
	if each > 0 {
		n := 0
		for _, count := range a.counts {
			if count+even > ways {
				n++
			}
		}
		gone = float64(n) * float64(each)
		all = float64(a.cache.Sets) * float64(each)
	}
	for _, x := range own {
		all += float64(x.lines)
		if a.counts[x.set]+even > ways {
			gone += float64(x.lines)
		}
	}
	if all == 0 {
		return 0
	}
	return gone / all
}

// evictionReason returns the kind of array that causes the evictions. If several kinds apply, the
// result is the first of them in this order: an array in the same loop that begins in the same
// set, has the same length and moves by the same stride (thesis §4.3); an array of an inner loop,
// if the loop itself touches the evicted array (§4.7); any other array (§4.4, §4.5).
func (a *analysis) evictionReason(c *context, its []array, i int) reason {
	of := &its[i]
	why := partly
	for _, k := range a.examined {
		with := &its[k]
		switch {
		case of.direct && with.direct && a.firstSet(c, of, i) == a.firstSet(c, with, int(k)) && of.leaves[0].movesAs(with.leaves[0]):
			return purely
		case of.direct && !with.direct:
			why = shallow
		}
	}
	return why
}

func (a *analysis) firstSet(c *context, s *array, i int) uint64 {
	return (s.span.lo + c.offset[i]) / uint64(a.cache.LineBytes) % uint64(a.cache.Sets)
}

// movesAs reports whether two leaves have the same innermost loop and move by the same stride in
// this loop.
func (l *leaf) movesAs(m *leaf) bool {
	return l.within == m.within && l.step(l.within.depth) == m.step(l.within.depth)
}

// samplePositions returns the number of sampled iterations of a loop. The number is smaller if
// there are many loops, many arrays or long arrays.
func (a *analysis) samplePositions(touches []touch, its []array) int {
	cost := 0
	for i := range touches {
		cost += 8
		if s := &its[touches[i].to]; s.print.slots != nil {
			cost += len(s.print.slots[0])
		} else if s.print.run {
			cost += int(min(s.lines, float64(a.cache.Sets)))
		}
	}
	return min(max(a.budget/(cost*(len(touches)+1)+1), 8), 2048)
}

// measureEvictions determines which lines are evicted between two iterations, and within an iteration.
// The sampled iterations are spread over the loop and its enclosing loops, because of the strides of
// outer loops (thesis §4.6): arrays that conflict in the first iteration of an outer loop need not
// conflict in later iterations.
func (a *analysis) measureEvictions(l *loop, touches []touch, its []array) {
	c := newContext(len(its))
	by := [][]array{its}
	if l.tripsDependOn(l.depth) {
		by = a.iterationStages(l, touches, len(its))
	}
	for k := range a.samplePositions(touches, its) {
		a.iterate(l, c, touches, by[int(progress(k, 0)*float64(len(by)))], k)
	}
}

// iterate runs the sampled iteration k twice, and adds to each touch the lines that miss in the
// second run. The second run composes the right context of an iteration with the left context of
// the next iteration (thesis, Figure 3.4).
func (a *analysis) iterate(l *loop, c *context, touches []touch, its []array, k int) {
	line, sets := uint64(a.cache.LineBytes), uint64(a.cache.Sets)
	for i := range its {
		c.batch[i] = 0
		c.offset[i] = its[i].leaves[0].offset(l, k)
		from, to := its[i].span.lo/line, (its[i].span.lo+c.offset[i])/line
		c.shift[i] = uint32((to%sets + sets - from%sets) % sets)
	}
	c.top = 0
	second := 2*int32(len(l.body)) + 2
	for batch := int32(2); batch <= second; batch += second - 2 {
		if l.trips <= 1 && batch < second {
			continue // the loop has only one iteration
		}
		for lo, hi := 0, 0; lo < len(touches); lo = hi {
			for hi = lo; hi < len(touches) && touches[hi].part == touches[lo].part; hi++ {
				if batch == second {
					a.lookUp(c, its, &touches[hi], second)
				}
			}
			for _, t := range touches[lo:hi] {
				turn := int32(0) // growing arrays are treated as older than arrays that each iteration uses completely
				if !t.of.grows {
					turn = 1
				}
				c.makeMostRecent(t.to, batch+2*int32(t.part)+turn)
			}
		}
	}
}

// lookUp looks up the array of a touch in the context. Batches whose number is at least "second"
// belong to the current iteration.
func (a *analysis) lookUp(c *context, its []array, t *touch, second int32) {
	if c.batch[t.to] == 0 {
		return
	}
	share, why := a.evictedShare(c, its, t.to)
	if weight := its[t.to].lines; c.batch[t.to] >= second {
		t.lostAgain.add(share, weight, why)
	} else {
		t.lost.add(share, weight, why)
	}
}

// findRightContext finds the arrays that are still completely in the cache when the loop ends. It
// also composes the loop with itself, to find arrays whose misses outer loops would repeat
// (thesis §4.8, §4.9).
func (a *analysis) findRightContext(l *loop) {
	c := newContext(len(l.arrays))
	even, lines := float32(0), 0.
	end := len(l.arrays)
	for i := end - 1; i >= 0; i-- {
		s := &l.arrays[i]
		even += a.occupy(c, s, i)
		lines += s.lines
		s.stays = a.shareOf(c, l.arrays, i, even) == 0
		if i == 0 || l.arrays[i-1].grows != s.grows {
			a.markRepeatedMisses(c, l.arrays, i, end, even, lines > a.cache.lines())
			end = i
		}
	}
	a.resetCounts()
}

// shareOf returns the share of the lines of array i that are in overfull sets.
func (a *analysis) shareOf(c *context, arrays []array, i int, even float32) float64 {
	var each float32
	c.own, each = a.appendSets(c, &arrays[i], i, c.own[:0])
	return a.overfullShare(c.own, each, even)
}

// markRepeatedMisses changes the class of FIRST_MISS arrays in [from, to) that do not stay in the
// cache, because outer loops would repeat their misses.
func (a *analysis) markRepeatedMisses(c *context, arrays []array, from, to int, even float32, tooLong bool) {
	for i := from; i < to; i++ {
		if s := &arrays[i]; s.level.Class == FirstMiss && a.shareOf(c, arrays, i, even) > 0 {
			if s.level.Class = ConfMiss; tooLong {
				s.level.Class = CapMiss
			}
		}
	}
}

// leftContext returns the left context of a loop: its arrays in the order of their first use, up to
// the first array that does not fit in the cache.
func (a *analysis) leftContext(l *loop) (list []int) {
	first := func(i int) int { return l.arrays[i].leaves[0].number }
	order := sorted(len(l.arrays), func(x, y int) int { return first(x) - first(y) })
	c := newContext(len(l.arrays))
	even := float32(0)
	for _, i := range order {
		even += a.occupy(c, &l.arrays[i], i)
		full := even > a.wayLimit()
		for _, x := range c.other {
			full = full || a.counts[x.set]+even > a.wayLimit()
		}
		if full {
			break
		}
		list = append(list, i)
	}
	a.resetCounts()
	return list
}

// stages is the number of iterations for which the arrays are computed if trip counts change from
// one iteration to the next.
const stages = 8

// iterationStages computes the arrays of several iterations, which are spread evenly over the loop.
// Each iteration has n arrays.
func (a *analysis) iterationStages(l *loop, touches []touch, n int) [][]array {
	by := make([][]array, stages)
	arrays, then := make([]array, len(touches)), make([]touch, len(touches))
	for q := range by {
		at := ((float64(q)+0.5)/stages - 0.5) * (l.trips - 1)
		l.advanceTrips(l.depth, at)
		for i, t := range touches {
			arrays[i] = *t.of
			if p := l.body[t.part].inner; p != nil {
				arrays[i] = a.arrayOf(t.of.leaves, p.depth)
			}
			then[i] = t
			then[i].of = &arrays[i]
		}
		by[q] = a.combine(then, n)
		l.advanceTrips(l.depth, -at)
	}
	return by
}

// tripsDependOn reports whether the trip count of an inner loop depends on the enclosing loop at a
// depth.
func (l *loop) tripsDependOn(depth int) bool {
	return slices.ContainsFunc(l.body, func(p part) bool {
		return p.inner != nil && (p.inner.tripStep(depth) != 0 || p.inner.tripsDependOn(depth))
	})
}

// advanceTrips advances the trip counts of inner loops by the given number of iterations of
// the enclosing loop at a depth.
func (l *loop) advanceTrips(depth int, iterations float64) {
	for _, p := range l.body {
		if p.inner != nil {
			p.inner.trips += float64(p.inner.tripStep(depth)) * iterations
			p.inner.advanceTrips(depth, iterations)
		}
	}
}

// progress returns how far a loop has advanced at sampled position k, as a number from 0 to less
// than 1. The parameter "out" selects the loop: 0 for the loop itself, 1 for the next enclosing
// loop, and so on. At position 0, the progress is 0. The values are Halton sequences (Numerische
// Mathematik 2, 1960), which are spread evenly over all loops at once.
func progress(k, out int) float64 {
	base := primes[out%len(primes)]
	at, unit := 0., 1.
	for ; k > 0; k /= base {
		unit /= float64(base)
		at += unit * float64(k%base)
	}
	return at
}

var primes = [...]int{2, 3, 5, 7, 11, 13, 17, 19, 23, 29}

// offset returns the number of bytes by which a leaf has moved at sampled position k of a
// loop and its enclosing loops.
func (l *leaf) offset(of *loop, k int) (bytes uint64) {
	for d := 1; d <= of.depth; d++ {
		turn := math.Floor(progress(k, of.depth-d) * min(max(0, math.Floor(l.chain[d].trips)), 1<<53))
		bytes += uint64(turn) * uint64(l.step(d))
	}
	return bytes
}

// slot is a cache set, with the number of an array's lines in this set.
type slot struct {
	set   uint32
	lines float32
}

// footprint describes the sets that contain an array's lines, in one of three forms: a run of
// bytes, a list of sets, or an equal number of lines in every set.
type footprint struct {
	run   bool     // whether the array contains all bytes of its span
	slots [][]slot // for each start position of the array within a line: the list of sets
	even  float32  // number of lines in every set
}

// mostRuns returns the maximum number of runs of lines that are added to the counts individually.
// If there are more runs, their lines are treated as spread evenly over all sets, unless a single
// stride returns to the same sets.
func (a *analysis) mostRuns() float64 { return float64(16*uint64(a.cache.Sets) + 256) }

// addSection adds the lines of a section, moved by offset bytes, to the counts. It returns false if
// the lines should instead be treated as spread evenly over all sets.
func (a *analysis) addSection(s *section, offset uint64) bool {
	line, sets := uint64(a.cache.LineBytes), uint64(a.cache.Sets)
	all := 1.
	for _, d := range s.dims {
		all *= math.Ceil(d.trips)
	}
	each := math.Ceil((s.run-1)/float64(line)) + 1
	if all*each > a.mostRuns() {
		// If there is only one stride, the runs may return to the same sets.
		if len(s.dims) != 1 || math.Mod(s.dims[0].step, float64(line)) != 0 || each > float64(sets) {
			return false
		}
	}
	at := s.span.lo + offset
	if len(s.dims) == 1 {
		n, step := uint64(math.Ceil(s.dims[0].trips)), uint64(s.dims[0].step)
		if round := sets / max(loops.GCD(step/line, sets), 1); step%line == 0 && n > round {
			// With this stride, the runs visit "round" different sets before they return to the
			// first set.
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
	s.forEachRun(len(s.dims)-1, at, func(at uint64) {
		for n := at / line; n <= (at+uint64(s.run)-1)/line; n++ {
			a.count(uint32(n%sets), 1)
		}
	})
	return true
}

// forEachRun calls the function "visit" with the start address of each run of bytes that dimensions
// 0 to d generate.
func (s *section) forEachRun(d int, at uint64, visit func(at uint64)) {
	if d < 0 {
		visit(at)
		return
	}
	for i := range uint64(math.Ceil(s.dims[d].trips)) {
		s.forEachRun(d-1, at+i*uint64(s.dims[d].step), visit)
	}
}

// appendSets appends the sets that contain the lines of array i to a list. The offset of the array in
// the context is taken into account. The result "even" is the number of additional lines in every
// set.
func (a *analysis) appendSets(c *context, s *array, i int, list []slot) (in []slot, even float32) {
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

// occupy adds the lines of an array to the counts, and returns the number of additional lines in
// every set.
func (a *analysis) occupy(c *context, s *array, i int) (even float32) {
	c.other, even = a.appendSets(c, s, i, c.other[:0])
	for _, x := range c.other {
		a.count(x.set, x.lines)
	}
	return even
}

// resetCounts sets the counts of all sets to 0.
func (a *analysis) resetCounts() {
	for _, set := range a.counted {
		a.counts[set] = 0
	}
	a.counted = a.counted[:0]
}

func (a *analysis) count(set uint32, lines float32) {
	if a.counts[set] == 0 {
		a.counted = append(a.counted, set)
	}
	a.counts[set] += lines
}

// takeSlots returns the counts as the slots of an array, limited to a given number of lines per set,
// and resets the counts.
func (a *analysis) takeSlots(most float32) (list []slot) {
	list = make([]slot, 0, len(a.counted))
	for _, set := range a.counted {
		list = append(list, slot{set, min(a.counts[set], most)})
		a.counts[set] = 0
	}
	a.counted = a.counted[:0]
	return list
}

// mostPhases is the maximum number of start positions within a line that are distinguished.
const mostPhases = 8

// phases returns the number of start positions within a line that are distinguished for an
// array, and the distance between these positions.
func (a *analysis) phases(s *array) (n, step uint64) {
	line := uint64(a.cache.LineBytes)
	n = min(line/s.granule, mostPhases)
	return n, line / n
}
