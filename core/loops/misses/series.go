package misses

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// series searches one run of a loop with varying inner trip counts for a progression. See "When
// trip counts vary" in the package documentation.
type series struct {
	next  uint64 // iteration before which the next search for a progression begins
	block uint64 // number of iterations in a block
	need  int    // number of blocks that must be simulated one by one
	gap   uint64 // number of blocks until the next attempt
	jumps uint64 // number of jumps that the engine had made before the current block

	first  uint64     // iteration at which the first block begins
	marks  []mark     // positions in the transcript before each block and after the last block
	states [][]uint64 // states of the cache at each mark
	totals [][]uint64 // counters of the tally at each mark
	order  orderChecker
}

type mark struct{ lines, notes, times, cuts int }

// transcript records those parts of a loop's simulation that depend on the positions of lines in the
// cache.
type transcript struct {
	record
	open   int  // number of series that are writing to the transcript
	broken bool // set if the transcript is incomplete
}

// record is a transcript, or the part of a transcript after a mark.
type record struct {
	lines []trace.Line // accessed lines, interleaved with states
	cuts  []int        // positions at which the states begin
	notes []uint64     // decisions of the simulation
	times []uint64     // the number of periods that each jump skipped
}

const maxWritten = 1 << 22

func (t *transcript) here() mark {
	return mark{len(t.lines), len(t.notes), len(t.times), len(t.cuts)}
}

func (t *transcript) truncate(to mark) {
	t.lines, t.notes, t.times, t.cuts = t.lines[:to.lines], t.notes[:to.notes], t.times[:to.times], t.cuts[:to.cuts]
}

// copySince overwrites r with a copy of the part of the transcript after a mark.
func (r *record) copySince(t *transcript, from mark) {
	r.lines = append(r.lines[:0], t.lines[from.lines:]...)
	r.notes = append(r.notes[:0], t.notes[from.notes:]...)
	r.times = append(r.times[:0], t.times[from.times:]...)
	r.cuts = r.cuts[:0]
	for _, cut := range t.cuts[from.cuts:] {
		r.cuts = append(r.cuts, cut-from.lines)
	}
}

// append appends a record that copySince has copied.
func (t *transcript) append(r *record) {
	for _, cut := range r.cuts {
		t.cuts = append(t.cuts, len(t.lines)+cut)
	}
	t.lines = append(t.lines, r.lines...)
	t.notes = append(t.notes, r.notes...)
	t.times = append(t.times, r.times...)
}

// close ends the recording for one series. If no other series uses the transcript, close discards
// the transcript.
func (t *transcript) close() {
	if t.open--; t.open == 0 {
		t.truncate(mark{})
		t.broken = false
	}
}

func (t *transcript) note(values ...uint64) {
	if t.open > 0 {
		t.notes = append(t.notes, values...)
	}
}

// depth returns the nesting depth of the loops inside a loop.
func (b *block) depth() (depth int) {
	for i := range b.items {
		if it := &b.items[i]; it.loop {
			depth = max(depth, 1+it.depth())
		}
	}
	return depth
}

// blockSize returns the number of iterations after which every reference is at the same offset in
// its line and in the same set, and inner trip counts have changed by whole periods. It returns 0
// if this number is greater than the parameter "limit".
func (e *engine) blockSize(b *block, limit uint64) uint64 {
	n := uint64(1)
	unit := e.sets << e.shift
	for i := range b.drifts {
		if n = lcm(n, unit/loops.GCD(unit, magnitude(b.drifts[i].step))); n > limit {
			return 0
		}
	}
	for i := range b.items {
		it := &b.items[i]
		if !it.loop || it.events {
			continue
		}
		inner := e.blockSize(it.block, limit)
		if inner == 0 {
			return 0
		}
		if step := b.steps[it.at]; step != 0 {
			n = lcm(n, inner/loops.GCD(inner, magnitude(step)))
		} else if it.changesTrips(b.steps[it.at : it.at+it.n]) {
			n = lcm(n, inner)
		}
		if n > limit {
			return 0
		}
	}
	return n
}

// magnitude returns the absolute value of a step.
func magnitude(step uint64) uint64 { return min(step, -step) }

// begin starts the search for a progression in one run of a loop.
func (s *series) begin(e *engine, b *block, trips uint64) {
	s.next = noIteration
	s.marks = s.marks[:0]
	if !b.varies || b.wilds || e.plain || len(b.leaves) > maxLeaves || len(b.leaves) == 0 {
		return
	}
	if _, several := e.state.(*stacks); several && e.sets > 1 {
		return
	}
	s.need = max(2, 1+b.depth())
	if trips < uint64(s.need)+2 {
		return
	}
	if s.block = e.blockSize(b, trips/uint64(s.need+2)); s.block > 0 {
		s.gap, s.next, s.jumps = 1, 0, e.jumps
	}
}

// giveUp suspends the search for a number of blocks.
func (s *series) giveUp(e *engine, i uint64) {
	s.finish(e)
	s.gap = min(2*s.gap, 12)
	s.next = i + s.gap*s.block
}

// finish ends the recording of one run of the loop.
func (s *series) finish(e *engine) {
	if len(s.marks) > 0 {
		s.marks = s.marks[:0]
		e.close()
	}
}

// check is called at the border of two blocks, before iteration i. It returns the number of
// iterations to skip. The caller must advance the parameters.
func (s *series) check(e *engine, b *block, cur []uint64, i, trips uint64, at int) (jump uint64) {
	e.flush()
	defer func() { s.jumps = e.jumps }()
	n := len(s.marks)
	if n == 0 {
		if (trips-i)/s.block < uint64(s.need)+2 {
			s.next = noIteration
			return 0
		}
		if e.jumps == s.jumps {
			s.next = i + s.block // no inner loop skipped iterations, so no two blocks are alike
			return 0
		}
		e.open++
		s.first = i
	}
	s.save(e, n, b, at)
	e.broken = e.broken || len(e.lines) > maxWritten
	switch {
	case e.broken || n >= 2 && !s.isProgression(e, n):
		s.giveUp(e, i)
		return 0
	case n < s.need:
		s.next = i + s.block
		return 0
	}
	return s.jump(e, b, cur, i, trips, at)
}

func (s *series) save(e *engine, n int, b *block, at int) {
	for len(s.states) <= n+1 {
		s.states, s.totals = append(s.states, nil), append(s.totals, nil)
	}
	s.states[n] = e.state.save(s.states[n][:0])
	s.totals[n] = e.tally.save(s.totals[n][:0], at, b)
	s.marks = append(s.marks, e.here())
	e.writeState()
}

// isProgression reports whether the simulation made the same decisions in the block that ends at
// mark n as in the previous block, and whether this block continues the progression of the blocks
// before it.
func (s *series) isProgression(e *engine, n int) bool {
	a, b, c := s.marks[n-2], s.marks[n-1], s.marks[n]
	if !slices.Equal(e.notes[a.notes:b.notes], e.notes[b.notes:c.notes]) ||
		b.lines-a.lines != c.lines-b.lines || b.times-a.times != c.times-b.times {
		return false
	}
	x, y, z := s.states[n-2], s.states[n-1], s.states[n]
	lines := len(e.state.linesIn(x))
	if len(x) != len(y) || len(y) != len(z) || !slices.Equal(x[lines:], y[lines:]) || !slices.Equal(y[lines:], z[lines:]) ||
		!inProgression(x[:lines], y[:lines], z[:lines], e.sets) {
		return false
	}
	if n == 2 {
		return true
	}
	before := s.marks[n-3]
	return inProgression(e.lines[before.lines:a.lines], e.lines[a.lines:b.lines], e.lines[b.lines:c.lines], e.sets) &&
		inProgression(e.times[before.times:a.times], e.times[a.times:b.times], e.times[b.times:c.times], 1)
}

// maxMovement limits the distance, in lines, that a line moves per block.
const maxMovement = 1 << 40

// inProgression reports whether each value increases by equal amounts from a to b and from b to c,
// and whether all amounts are multiples of the number of sets.
func inProgression(a, b, c []uint64, sets uint64) bool {
	if len(a) != len(b) || len(b) != len(c) {
		return false
	}
	for i := range a {
		d := b[i] - a[i]
		if d == 0 && c[i] == b[i] {
			continue
		}
		if c[i]-b[i] != d || d+maxMovement > 2*maxMovement || sets > 1 && magnitude(d)%sets != 0 {
			return false
		}
	}
	return true
}

// jump simulates the last complete block of the loop, or an earlier block, from its extrapolated
// state. If this block is like the first blocks, so are all blocks in between, and jump skips
// these blocks.
func (s *series) jump(e *engine, b *block, cur []uint64, i, trips uint64, at int) (iterations uint64) {
	n := s.need // number of blocks that have been simulated
	last := (trips - s.first) / s.block
	good, bad := uint64(n), last+1
	if !s.keepsOrder(e, last) {
		lo := good
		for hi := last; hi-lo > 1; {
			if mid := lo + (hi-lo)/2; s.keepsOrder(e, mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
		bad = lo + 1
	}
	end := e.here()
	start := slices.Clone(cur)
	var behind []uint64 // the state after the block with number "good"
	var best record     // the record of the block with number "good"
	try, all := bad-1, bad-1
	for tries := 0; tries < maxTries && good+1 < bad && !e.over; tries++ {
		before := e.done
		e.state.load(s.stateBefore(try - 1))
		e.tally.load(s.totals[n], at, b)
		copy(cur, start)
		advance(cur, b.steps, (try-1)*s.block-(i-s.first))
		e.broken = false
		e.writeState()
		for range s.block {
			e.body(b, cur, at)
			advance(cur, b.steps, 1)
		}
		e.flush()
		if !e.over && s.matchesFirst(e, end, try, b, at) {
			good = try
			behind = e.state.save(behind[:0])
			best.copySince(&e.transcript, end)
		} else {
			bad = try
			e.done = before
		}
		e.truncate(end)
		if good == all {
			break
		}
		try = good + (bad-good)/2
	}
	e.broken = false
	copy(cur, start)
	if good == uint64(n) {
		e.tally.load(s.totals[n], at, b)
		e.state.load(s.states[n])
		s.giveUp(e, i)
		return 0
	}
	e.state.load(behind)
	e.append(&best)
	e.writeState()
	e.note(s.block, s.first)
	e.times = append(e.times, good)
	s.sum(e, b, good, at)
	e.jumps++
	e.progressions++
	iterations = good*s.block - (i - s.first)
	s.finish(e)
	s.gap = 1
	if good < last {
		s.gap = 8
	}
	s.next = i + iterations + (s.gap-1)*s.block
	return iterations
}

// writeState records the lines in the cache.
func (e *engine) writeState() {
	if e.open > 0 {
		e.cuts = append(e.cuts, len(e.lines))
		all := e.state.save(e.lines)
		e.lines = all[:len(e.lines)+len(e.state.linesIn(all[len(e.lines):]))]
	}
}

// maxTries limits the number of blocks that jump simulates in search of the last block that is like
// the first block.
const maxTries = 6

// stateBefore extrapolates the state before a block (numbered from 0) from the progression.
func (s *series) stateBefore(block uint64) []uint64 {
	state := make([]uint64, len(s.states[0]))
	for i, line := range s.states[0] {
		state[i] = line + (s.states[1][i]-line)*block
	}
	return state
}

// matchesFirst reports whether the most recently simulated block is like the first block. The
// argument "last" is the number of this block, counted from 1. The blocks are alike if the
// simulation makes the same decisions in both, if the jumps of this block and the state after it
// continue the progression, and if the counts of this block equal the values of the polynomials.
func (s *series) matchesFirst(e *engine, end mark, last uint64, b *block, at int) bool {
	m0, m1, m2 := s.marks[0], s.marks[1], s.marks[2]
	if e.broken || !slices.Equal(e.notes[m0.notes:m1.notes], e.notes[end.notes:]) {
		return false
	}
	if !reaches(e.lines[m0.lines:m1.lines], e.lines[m1.lines:m2.lines], e.lines[end.lines:], last-1) ||
		!reaches(e.times[m0.times:m1.times], e.times[m1.times:m2.times], e.times[end.times:], last-1) ||
		!slices.Equal(e.state.save(nil), s.stateBefore(last)) {
		return false
	}
	if len(e.cuts)-end.cuts != m1.cuts-m0.cuts {
		return false
	}
	for i, cut := range e.cuts[m0.cuts:m1.cuts] {
		if e.cuts[end.cuts+i]-end.lines != cut-m0.lines {
			return false
		}
	}
	value := newNewton(s.need, last-1, 0)
	before := s.totals[s.need]
	for j, now := range e.tally.save(nil, at, b) {
		if value.evaluate(s.totals, j) != now-before[j] {
			return false
		}
	}
	return true
}

// keepsOrder reports whether all lines that may be in the cache at the same time keep their order
// by address up to the given block, counted from 1.
func (s *series) keepsOrder(e *engine, last uint64) bool {
	m0, m1 := s.marks[0], s.marks[1]
	first, second := e.lines[m0.lines:m1.lines], e.lines[m1.lines:s.marks[2].lines]
	if len(first) != len(second) {
		return false
	}
	for i, cut := range e.cuts[m0.cuts:m1.cuts] {
		cut -= m0.lines
		next := len(first)
		if i+1 < m1.cuts-m0.cuts {
			next = e.cuts[m0.cuts+i+1] - m0.lines
		}
		if !s.order.isKept(first[cut:next], second[cut:next], last-1) {
			return false
		}
	}
	return true
}

// reaches reports whether the progression that begins with a and b reaches c after the given number
// of steps, and contains only valid line numbers.
func reaches(a, b, c []uint64, steps uint64) bool {
	if len(a) != len(b) || len(a) != len(c) {
		return false
	}
	most := uint64(1<<61) / max(1, steps)
	for i := range a {
		d := b[i] - a[i]
		if magnitude(d) > most || a[i]+d*steps != c[i] {
			return false
		}
	}
	return true
}

func (s *series) sum(e *engine, b *block, last uint64, at int) {
	total := newNewton(s.need, last, 1)
	sums := slices.Clone(s.totals[0])
	for j := range sums {
		sums[j] += total.evaluate(s.totals, j)
	}
	e.tally.load(sums, at, b)
}

// newton evaluates polynomials with Newton's forward differences.
type newton struct{ choices, d []uint64 }

// newNewton prepares the evaluation of polynomials at the given point. Each polynomial is
// determined by its first n values. If the parameter "sum" is 1, newNewton instead prepares the
// computation of the sum of a polynomial's values at all smaller points.
func newNewton(n int, at, sum uint64) *newton {
	w := &newton{}
	for k := range n {
		w.choices = append(w.choices, loops.Binomial(at, uint64(k)+sum))
	}
	return w
}

// evaluate evaluates the polynomial of counter j. The first values of the polynomial are the
// differences between consecutive totals.
func (w *newton) evaluate(totals [][]uint64, j int) (v uint64) {
	w.d = w.d[:0]
	changes := uint64(0)
	for k := range w.choices {
		d := totals[k+1][j] - totals[k][j]
		changes |= d
		w.d = append(w.d, d)
	}
	if changes == 0 {
		return 0
	}
	for k, ways := range w.choices {
		v += w.d[0] * ways
		for j := range w.d[:len(w.d)-1-k] {
			w.d[j] = w.d[j+1] - w.d[j]
		}
	}
	return v
}

// orderChecker checks whether moving lines keep their order by address.
type orderChecker struct {
	groups []group
	used   []pair
}

// group is a range of lines that move by the same step, and therefore keep their order.
type group struct{ step, first, last uint64 }

// pair is a line and the position to which it moves.
type pair struct{ from, to uint64 }

const maxGroups = 16

// isKept reports whether lines keep their order for the given number of steps: equal lines stay
// equal, and no line passes another line. The slices a and b contain the lines before and after the
// first step.
func (o *orderChecker) isKept(a, b []uint64, steps uint64) bool {
	o.groups = o.groups[:0]
	g := 0
	for i, line := range a {
		step := b[i] - line
		if line == noLine {
			if step != 0 {
				return false
			}
			continue
		}
		if g >= len(o.groups) || o.groups[g].step != step {
			for g = 0; g < len(o.groups) && o.groups[g].step != step; g++ {
			}
			if g == len(o.groups) {
				if g == maxGroups {
					return o.isKeptInterleaved(a, b, steps)
				}
				o.groups = append(o.groups, group{step, line, line})
			}
		}
		o.groups[g].first, o.groups[g].last = min(o.groups[g].first, line), max(o.groups[g].last, line)
	}
	slices.SortFunc(o.groups, func(a, b group) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(o.groups); i++ {
		l, r := &o.groups[i-1], &o.groups[i]
		if l.last >= r.first || l.last+l.step*steps >= r.first+r.step*steps {
			return o.isKeptInterleaved(a, b, steps)
		}
	}
	return true
}

// isKeptInterleaved works like isKept, but for interleaved lines that move by different amounts.
func (o *orderChecker) isKeptInterleaved(a, b []uint64, steps uint64) bool {
	o.used = o.used[:0]
	for i, line := range a {
		if line != noLine && b[i] != noLine {
			o.used = append(o.used, pair{line, line + (b[i]-line)*steps})
		} else if line != b[i] {
			return false
		}
	}
	slices.SortFunc(o.used, func(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for i := 1; i < len(o.used); i++ {
		before, p := o.used[i-1], o.used[i]
		if (p.from == before.from) != (p.to == before.to) || p.to < before.to {
			return false
		}
	}
	return true
}
