package sma

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
)

// context contains the arrays of a loop or of an iteration in the order of their last use: the
// thesis's right context, before the arrays that do not fit are removed (§3.3).
type context struct {
	above, below []int32 // by array: 1 + the next array in that direction, or 0 at the end
	top          int32   // 1 + the most recently used array
	batch        []int32 // by array: number of its batch, whose arrays are used in turn; 0 if the array is not in the context
	offset       []uint64
	shift        []uint32 // by array: offset in sets
	own, other   []slot
}

func newContext(n int) *context {
	return &context{
		above: make([]int32, n), below: make([]int32, n), batch: make([]int32, n),
		offset: make([]uint64, n), shift: make([]uint32, n),
	}
}

// up makes an array the most recently used array.
func (c *context) up(i int, batch int32) {
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

// lost computes the context-based reuse distance of an array, set by set. lost returns the share of
// the array's lines that are in overfull sets, and the reason. A set is overfull if the lines of
// this array, and the lines used since the last use of the array, need more ways than the set has.
func (a *analysis) lost(c *context, its []array, i int) (share float64, why reason) {
	of := &its[i]
	lines := of.lines
	a.beside = a.beside[:0]
	even := a.occupy(c, of, i)
	each := even
	c.own, c.other = c.other, c.own
	ways := a.ways()
	past := func(k int32) bool { // past adds array k, and reports whether no further lines can be evicted
		lines += its[k].lines
		a.beside = append(a.beside, k)
		even += a.occupy(c, &its[k], int(k))
		return lines > 8*a.cache.lines()+64 || each == 0 && len(c.own) == 1 && a.counts[c.own[0].set]+even > ways
	}
	all := false
	k := c.top
	for ; k != 0 && int(k-1) != i && !all; k = c.below[k-1] {
		all = past(k - 1)
	}
	for k = c.below[i]; k != 0 && c.batch[k-1] == c.batch[i] && !all; k = c.below[k-1] {
		all = past(k - 1)
	}
	if lines > 8*a.cache.lines()+64 {
		even = math.MaxFloat32
	}
	share = a.shareLost(c.own, each, even)
	a.forget()
	if share > 0 {
		if why = a.why(c, its, i); lines > a.cache.lines() {
			why = capacity
		}
	}
	return share, why
}

// ways returns the number of ways, plus a tolerance for rounding errors.
func (a *analysis) ways() float32 { return float32(a.cache.Ways) + 1e-3 }

// shareLost returns the share of an array's lines that are in overfull sets. own contains the
// array's lines in some sets, and each is the number of the array's lines in every set. The counts
// of sets contain the lines of other arrays in some sets, and even is the number of their lines in
// every set.
func (a *analysis) shareLost(own []slot, each, even float32) float64 {
	gone, all, ways := 0., 0., a.ways()
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

// why determines why an array does not stay. The first reason that applies is returned: an array in
// the same loop that begins in the same set, has the same length and moves by the same stride
// (thesis §4.3); an array of an inner loop, if the loop itself touches the array (§4.7); any other
// array (§4.4, §4.5).
func (a *analysis) why(c *context, its []array, i int) reason {
	of := &its[i]
	why := partly
	for _, k := range a.beside {
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
// it.
func (l *leaf) movesAs(m *leaf) bool {
	return l.within == m.within && l.step(l.within.depth) == m.step(l.within.depth)
}

// places returns the number of positions at which a loop's iterations are sampled. The number of
// positions is smaller if there are many loops, many arrays or long arrays.
func (a *analysis) places(touches []touch, its []array) int {
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

// measure finds the lines that are evicted between two iterations and within an iteration. The
// sampled positions are spread over the iterations of the loop and of its enclosing loops, to take
// the strides of the outer loops into account (thesis §4.6): arrays that conflict in the first
// iteration need not conflict in later iterations.
func (a *analysis) measure(l *loop, touches []touch, its []array) {
	c := newContext(len(its))
	by := [][]array{its}
	if l.varies(l.depth) {
		by = a.stages(l, touches, len(its))
	}
	for k := range a.places(touches, its) {
		a.iterate(l, c, touches, by[int(place(k, 0)*float64(len(by)))], k)
	}
}

// iterate runs an iteration twice at place k, and adds to each touch the lines that miss in the
// second run. The two runs compose the right context of an iteration with the left context of the
// next iteration (thesis, Figure 3.4).
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
					a.find(c, its, &touches[hi], second)
				}
			}
			for _, t := range touches[lo:hi] {
				turn := int32(0) // growing arrays count as older than arrays that each iteration uses completely
				if !t.of.grows {
					turn = 1
				}
				c.up(t.to, batch+2*int32(t.part)+turn)
			}
		}
	}
}

// find looks up a touch in the context. Batches with a number of at least second belong to the
// current iteration.
func (a *analysis) find(c *context, its []array, t *touch, second int32) {
	if c.batch[t.to] == 0 {
		return
	}
	share, why := a.lost(c, its, t.to)
	if weight := its[t.to].lines; c.batch[t.to] >= second {
		t.lostAgain.add(share, weight, why)
	} else {
		t.lost.add(share, weight, why)
	}
}

// close finds the arrays that are still completely in the cache when the loop ends. To find arrays
// whose misses outer loops would repeat, close also composes the loop with itself (thesis §4.8,
// §4.9).
func (a *analysis) close(l *loop) {
	c := newContext(len(l.arrays))
	even, lines := float32(0), 0.
	end := len(l.arrays)
	for i := end - 1; i >= 0; i-- {
		s := &l.arrays[i]
		even += a.occupy(c, s, i)
		lines += s.lines
		s.stays = a.share(c, l.arrays, i, even) == 0
		if i == 0 || l.arrays[i-1].grows != s.grows {
			a.multiplies(c, l.arrays, i, end, even, lines > a.cache.lines())
			end = i
		}
	}
	a.forget()
}

// share returns the share of an array's lines that are in overfull sets.
func (a *analysis) share(c *context, arrays []array, i int, even float32) float64 {
	var each float32
	c.own, each = a.where(c, &arrays[i], i, c.own[:0])
	return a.shareLost(c.own, each, even)
}

// multiplies sets the class of the arrays in [from, to) that do not stay in the cache, and whose
// misses outer loops would repeat.
func (a *analysis) multiplies(c *context, arrays []array, from, to int, even float32, tooLong bool) {
	for i := from; i < to; i++ {
		if s := &arrays[i]; s.level.Class == FirstMiss && a.share(c, arrays, i, even) > 0 {
			if s.level.Class = ConfMiss; tooLong {
				s.level.Class = CapMiss
			}
		}
	}
}

// left returns the left context: the loop's arrays in the order of their first use, up to the first
// array that does not fit.
func (a *analysis) left(l *loop) (list []int) {
	first := func(i int) int { return l.arrays[i].leaves[0].number }
	order := sorted(len(l.arrays), func(x, y int) int { return first(x) - first(y) })
	c := newContext(len(l.arrays))
	even := float32(0)
	for _, i := range order {
		even += a.occupy(c, &l.arrays[i], i)
		full := even > a.ways()
		for _, x := range c.other {
			full = full || a.counts[x.set]+even > a.ways()
		}
		if full {
			break
		}
		list = append(list, i)
	}
	a.forget()
	return list
}

// stages is the number of times that an iteration's arrays are computed if trip counts change from
// one iteration to the next.
const stages = 8

// stages computes the n arrays of an iteration at several iterations of the loop.
func (a *analysis) stages(l *loop, touches []touch, n int) [][]array {
	by := make([][]array, stages)
	arrays, then := make([]array, len(touches)), make([]touch, len(touches))
	for q := range by {
		at := ((float64(q)+0.5)/stages - 0.5) * (l.trips - 1)
		l.vary(l.depth, at)
		for i, t := range touches {
			arrays[i] = *t.of
			if p := l.body[t.part].inner; p != nil {
				arrays[i] = a.join(t.of.leaves, p.depth)
			}
			then[i] = t
			then[i].of = &arrays[i]
		}
		by[q] = a.unite(then, n)
		l.vary(l.depth, -at)
	}
	return by
}

// varies reports whether the trip count of an inner loop depends on the loop at a depth.
func (l *loop) varies(depth int) bool {
	return slices.ContainsFunc(l.body, func(p part) bool {
		return p.inner != nil && (p.inner.tripStep(depth) != 0 || p.inner.varies(depth))
	})
}

// vary changes the trip counts of inner loops to their values after the given number of iterations
// of the loop at a depth.
func (l *loop) vary(depth int, iterations float64) {
	for _, p := range l.body {
		if p.inner != nil {
			p.inner.trips += float64(p.inner.tripStep(depth)) * iterations
			p.inner.vary(depth, iterations)
		}
	}
}

// place returns the progress of a loop at sampled place k, from 0 to less than 1. out selects an
// enclosing loop by the number of nesting levels, where 0 is the loop itself. At place 0, the
// progress is 0. The values are Halton sequences (Numerische Mathematik 2, 1960), which are spread
// evenly over all loops at once.
func place(k, out int) float64 {
	base := primes[out%len(primes)]
	at, unit := 0., 1.
	for ; k > 0; k /= base {
		unit /= float64(base)
		at += unit * float64(k%base)
	}
	return at
}

var primes = [...]int{2, 3, 5, 7, 11, 13, 17, 19, 23, 29}

// offset returns the number of bytes by which a leaf has moved at place k of a loop and its
// enclosing loops.
func (l *leaf) offset(of *loop, k int) (bytes uint64) {
	for d := 1; d <= of.depth; d++ {
		turn := math.Floor(place(k, of.depth-d) * min(max(0, math.Floor(l.chain[d].trips)), 1<<53))
		bytes += uint64(turn) * uint64(l.step(d))
	}
	return bytes
}

// slot is a set of the cache, and the number of an array's lines in it.
type slot struct {
	set   uint32
	lines float32
}

// footprint describes the sets that contain an array's lines, in one of three forms: a run of
// bytes, a list of sets, or an equal number of lines in every set.
type footprint struct {
	run   bool     // whether the array contains all bytes of its span
	slots [][]slot // the lists of sets, for each position within a line at which the array may begin
	even  float32  // number of lines in every set
}

// mostRuns returns the maximum number of runs of lines that are added to their sets one by one.
// If there are more runs, their lines are treated as spread evenly over the sets, unless a single
// stride repeats the same sets.
func (a *analysis) mostRuns() float64 { return float64(16*uint64(a.cache.Sets) + 256) }

// put adds a section's lines, moved by offset bytes, to the counts of sets. put returns false if
// the lines should instead be treated as spread evenly over the sets.
func (a *analysis) put(s *section, offset uint64) bool {
	line, sets := uint64(a.cache.LineBytes), uint64(a.cache.Sets)
	all := 1.
	for _, d := range s.dims {
		all *= math.Ceil(d.trips)
	}
	each := math.Ceil((s.run-1)/float64(line)) + 1
	if all*each > a.mostRuns() {
		// A single stride may return to the same sets after some runs.
		if len(s.dims) != 1 || math.Mod(s.dims[0].step, float64(line)) != 0 || each > float64(sets) {
			return false
		}
	}
	at := s.span.lo + offset
	if len(s.dims) == 1 {
		n, step := uint64(math.Ceil(s.dims[0].trips)), uint64(s.dims[0].step)
		if round := sets / max(loops.GCD(step/line, sets), 1); step%line == 0 && n > round {
			// The stride visits each of these sets in turn.
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

// each calls visit with the address of each run of bytes that the dimensions 0 to d generate.
func (s *section) each(d int, at uint64, visit func(at uint64)) {
	if d < 0 {
		visit(at)
		return
	}
	for i := range uint64(math.Ceil(s.dims[d].trips)) {
		s.each(d-1, at+i*uint64(s.dims[d].step), visit)
	}
}

// where appends to list the sets that contain the lines of an array, at the array's position in the
// context. The result even is the number of additional lines in every set.
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

// occupy adds an array's lines to the counts of sets, and returns the number of additional lines in
// every set.
func (a *analysis) occupy(c *context, s *array, i int) (even float32) {
	c.other, even = a.where(c, s, i, c.other[:0])
	for _, x := range c.other {
		a.count(x.set, x.lines)
	}
	return even
}

// forget sets the counts of all sets to 0.
func (a *analysis) forget() {
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

// slots returns the counts as slots of an array, with at most a given number of lines per set, and
// resets the counts.
func (a *analysis) slots(most float32) (list []slot) {
	list = make([]slot, 0, len(a.counted))
	for _, set := range a.counted {
		list = append(list, slot{set, min(a.counts[set], most)})
		a.counts[set] = 0
	}
	a.counted = a.counted[:0]
	return list
}

// mostPhases is the maximum number of positions within a line that are distinguished.
const mostPhases = 8

// phases returns the number of positions within a line at which an array may begin, and the
// distance between them.
func (a *analysis) phases(s *array) (n, step uint64) {
	line := uint64(a.cache.LineBytes)
	n = min(line/s.granule, mostPhases)
	return n, line / n
}
