package misses

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// series looks for a progression in one run of a loop whose inner trip counts vary: see
// the package's documentation, When trip counts vary.
type series struct {
	next  uint64 // the iteration before which to look
	block uint64 // iterations
	need  int    // blocks that are made one by one
	gap   uint64 // blocks until the next try
	jumps uint64 // of the engine, before the block

	first  uint64 // iteration of the first block
	marks  []mark // before each block, and behind the last
	states [][]uint64
	counts [][]hits
	out    [][]uint64
	depths [][]uint64
	order  order
}

// mark is a place in a transcript.
type mark struct{ lines, notes, times, cuts int }

// transcript is what was done, as far as it hangs on where lines are.
type transcript struct {
	open   int          // series that write
	lines  []trace.Line // accesses that were made, with states between them
	cuts   []int        // where states begin: what is in the cache later on is in them or comes behind
	notes  []uint64     // decisions
	times  []uint64     // by how many periods was jumped
	broken bool         // something happened that cannot be compared
}

// mostWritten bounds a transcript.
const mostWritten = 1 << 22

func (t *transcript) here() mark {
	return mark{len(t.lines), len(t.notes), len(t.times), len(t.cuts)}
}

func (t *transcript) back(to mark) {
	t.lines, t.notes, t.times, t.cuts = t.lines[:to.lines], t.notes[:to.notes], t.times[:to.times], t.cuts[:to.cuts]
}

// close ends what a series wrote, whom nobody else reads.
func (t *transcript) close() {
	if t.open--; t.open == 0 {
		t.back(mark{})
		t.broken = false
	}
}

func (t *transcript) note(values ...uint64) {
	if t.open > 0 {
		t.notes = append(t.notes, values...)
	}
}

// depthOf is how many loops lie below one another in a loop.
func (b *block) depthOf() (depth int) {
	for i := range b.items {
		if it := &b.items[i]; it.loop {
			depth = max(depth, 1+it.depthOf())
		}
	}
	return depth
}

// iterationsOf is after how many iterations every reference is at the same place of a line
// and of the same set, and inner trip counts have changed by whole periods of theirs. 0:
// more than so many.
func (e *engine) iterationsOf(b *block, most uint64) uint64 {
	n := uint64(1)
	unit := e.sets << e.shift
	for i := range b.drifts {
		of := unit / gcd(unit, min(b.drifts[i].step, -b.drifts[i].step))
		if n = n / gcd(n, of) * of; n > most {
			return 0
		}
	}
	for i := range b.items {
		it := &b.items[i]
		if !it.loop || it.events {
			continue
		}
		step := b.steps[it.at]
		inner := e.iterationsOf(it.block, most)
		if inner == 0 {
			return 0
		}
		of := uint64(1)
		if step != 0 {
			of = inner / gcd(inner, min(step, -step))
		} else if it.tripsStep(b.steps[it.at : it.at+it.n]) {
			of = inner
		}
		if n = n / gcd(n, of) * of; n > most {
			return 0
		}
	}
	return n
}

// begin prepares for a run of a loop.
func (s *series) begin(e *engine, b *block, cur []uint64, trips uint64) {
	s.next = never
	s.marks = s.marks[:0]
	if !b.varies || b.wilds || e.plain || len(b.leaves) > mostLeaves || len(b.leaves) == 0 {
		return
	}
	if _, several := e.state.(*stacks); several && e.sets > 1 {
		return
	}
	s.need = max(2, 1+b.depthOf())
	if trips < uint64(s.need)+2 {
		return
	}
	s.block = e.iterationsOf(b, trips/uint64(s.need+2))
	if s.block == 0 {
		return
	}
	s.gap = 1
	s.next = 0
	s.jumps = e.jumps
}

// give ends looking for now.
func (s *series) give(e *engine, i uint64) {
	if len(s.marks) > 0 {
		s.marks = s.marks[:0]
		e.close()
	}
	s.gap = min(2*s.gap, 12)
	s.next = i + s.gap*s.block
}

// look is called before iteration i, where a block ends and another one begins. It gives
// the number of iterations to jump over, and has the parameters be those behind.
func (s *series) look(e *engine, b *block, cur []uint64, i, trips uint64, at int) (jump uint64) {
	e.flush()
	defer func() { s.jumps = e.jumps }()
	n := len(s.marks)
	if n == 0 {
		if (trips-i)/s.block < uint64(s.need)+2 {
			s.next = never
			return 0
		}
		if e.jumps == s.jumps {
			s.next = i + s.block // inner loops that vary were run one by one: no two blocks are alike
			return 0
		}
		e.open++
		s.first = i
	}
	s.save(e, n, b, at)
	if e.broken || len(e.lines) > mostWritten {
		e.broken = true
		s.give(e, i)
		return 0
	}
	if n >= 2 && !s.goesOn(e, n) {
		s.give(e, i)
		return 0
	}
	if n < s.need {
		s.next = i + s.block
		return 0
	}
	return s.jump(e, b, cur, i, trips, at)
}

// finish ends a run of the loop.
func (s *series) finish(e *engine) {
	if len(s.marks) > 0 {
		s.marks = s.marks[:0]
		e.close()
	}
}

// save keeps what there is before a block.
func (s *series) save(e *engine, n int, b *block, at int) {
	for len(s.states) <= n+1 {
		s.states = append(s.states, nil)
		s.counts = append(s.counts, nil)
		s.out = append(s.out, nil)
		s.depths = append(s.depths, nil)
	}
	s.states[n] = e.state.save(s.states[n][:0])
	s.counts[n] = append(s.counts[n][:0], e.tally.counts[at:at+b.nodes]...)
	s.out[n] = append(s.out[n][:0], e.tally.out...)
	s.depths[n] = append(s.depths[n][:0], e.tally.depths...)
	s.marks = append(s.marks, e.here())
	e.writeState()
}

// goesOn tells whether the block that ends at mark n repeats the one before, and all
// since the first are in progression.
func (s *series) goesOn(e *engine, n int) bool {
	a, b, c := s.marks[n-2], s.marks[n-1], s.marks[n]
	if !slices.Equal(e.notes[a.notes:b.notes], e.notes[b.notes:c.notes]) ||
		b.lines-a.lines != c.lines-b.lines || b.times-a.times != c.times-b.times {
		return false
	}
	if !inProgression(s.states[n-2], s.states[n-1], s.states[n], e.sets) {
		return false
	}
	if n == 2 {
		return true
	}
	before := s.marks[n-3]
	return inProgression(e.lines[before.lines:a.lines], e.lines[a.lines:b.lines], e.lines[b.lines:c.lines], e.sets) &&
		inProgression(e.times[before.times:a.times], e.times[a.times:b.times], e.times[b.times:c.times], 1)
}

// farthest bounds by how much lines move in a block.
const farthest = 1 << 40

// inProgression tells whether values grow by the same from a to b as from b to c, which
// is a multiple of sets.
func inProgression(a, b, c []uint64, sets uint64) bool {
	if len(a) != len(b) || len(b) != len(c) {
		return false
	}
	for i := range a {
		d := b[i] - a[i]
		if d == 0 && c[i] == b[i] {
			continue
		}
		if c[i]-b[i] != d || d+farthest > 2*farthest || sets > 1 && min(d, -d)%sets != 0 {
			return false
		}
	}
	return true
}

// jump makes the last block that there is room for, or an earlier one, from the state
// that it would find. If that is as the first ones, so are all between.
func (s *series) jump(e *engine, b *block, cur []uint64, i, trips uint64, at int) (iterations uint64) {
	n := s.need // blocks made
	last := (trips - s.first) / s.block
	good, bad := uint64(n), last+1
	if !s.ordered(e, last) {
		lo := good
		for hi := last; hi-lo > 1; {
			if mid := lo + (hi-lo)/2; s.ordered(e, mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
		bad = lo + 1
	}
	end := e.here()
	start := append([]uint64(nil), cur...)
	state := append([]uint64(nil), s.states[n]...)
	counts, out, depths := slices.Clone(s.counts[n]), slices.Clone(s.out[n]), slices.Clone(s.depths[n])
	var best struct {
		state []uint64
		times []uint64
		notes []uint64
		lines []uint64
		cuts  []int
	}
	try, all := bad-1, bad-1
	for tries := 0; tries < mostTries && good+1 < bad && !e.over; tries++ {
		before := e.done
		e.state.load(s.at(try - 1))
		copy(e.tally.counts[at:], counts)
		copy(e.tally.out, out)
		copy(e.tally.depths, depths)
		copy(cur, start)
		advance(cur, b.steps, (try-1)*s.block-(i-s.first))
		e.broken = false
		e.writeState()
		for range s.block {
			e.body(b, cur, at)
			advance(cur, b.steps, 1)
		}
		e.flush()
		if !e.over && s.alike(e, end, try, b, at, counts, out, depths) {
			good = try
			best.state = e.state.save(best.state[:0])
			best.lines = append(best.lines[:0], e.lines[end.lines:]...)
			best.cuts = best.cuts[:0]
			for _, cut := range e.cuts[end.cuts:] {
				best.cuts = append(best.cuts, cut-end.lines)
			}
			best.notes = append(best.notes[:0], e.notes[end.notes:]...)
			best.times = append(best.times[:0], e.times[end.times:]...)
		} else {
			bad = try
			e.done = before
		}
		e.back(end)
		if good == all {
			break
		}
		try = good + (bad-good)/2
	}
	e.broken = false
	copy(cur, start)
	copy(e.tally.counts[at:], counts)
	copy(e.tally.out, out)
	copy(e.tally.depths, depths)
	if good == uint64(n) {
		e.state.load(state)
		s.give(e, i)
		return 0
	}
	e.state.load(best.state)
	for _, cut := range best.cuts {
		e.cuts = append(e.cuts, len(e.lines)+cut)
	}
	e.lines = append(e.lines, best.lines...)
	e.notes = append(e.notes, best.notes...)
	e.times = append(e.times, best.times...)
	e.writeState()
	e.note(s.block, s.first)
	e.times = append(e.times, good)
	s.sum(e, b, good, at)
	e.jumps++
	e.progressions++
	iterations = good*s.block - (i - s.first)
	s.marks = s.marks[:0]
	e.close()
	s.gap = 1
	if good < last {
		s.gap = 8
	}
	s.next = i + iterations + (s.gap-1)*s.block
	return iterations
}

// writeState writes which lines the cache holds, of which others may come to be.
func (e *engine) writeState() {
	if e.open > 0 {
		e.cuts = append(e.cuts, len(e.lines))
		e.lines = e.state.save(e.lines)
	}
}

// mostTries bounds the blocks that are made to find the last that is as the first.
const mostTries = 6

// at is the state before a block, the first being 0, by the progression.
func (s *series) at(block uint64) []uint64 {
	state := make([]uint64, len(s.states[0]))
	for i, line := range s.states[0] {
		state[i] = line + (s.states[1][i]-line)*block
	}
	return state
}

// alike tells whether the block that was made as number last, from 1, is as the first:
// the same decisions, jumps in progression, the state behind it in progression, counts
// as the polynomials say, and all lines in the same order.
func (s *series) alike(e *engine, end mark, last uint64, b *block, at int, counts []hits, out, depths []uint64) bool {
	m0, m1, m2 := s.marks[0], s.marks[1], s.marks[2]
	if e.broken || !slices.Equal(e.notes[m0.notes:m1.notes], e.notes[end.notes:]) {
		return false
	}
	lines, times := e.lines[end.lines:], e.times[end.times:]
	if !reaches(e.lines[m0.lines:m1.lines], e.lines[m1.lines:m2.lines], lines, last-1) ||
		!reaches(e.times[m0.times:m1.times], e.times[m1.times:m2.times], times, last-1) ||
		!slices.Equal(e.state.save(nil), s.at(last)) {
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
	value := newton{n: s.need, at: last - 1}
	for j := range counts {
		now := e.tally.counts[at+j]
		if value.of(func(k int) uint64 { return s.counts[k][j].accesses }, 0) != now.accesses-counts[j].accesses ||
			value.of(func(k int) uint64 { return s.counts[k][j].misses }, 0) != now.misses-counts[j].misses {
			return false
		}
	}
	for j := range out {
		if value.of(func(k int) uint64 { return s.out[k][j] }, 0) != e.tally.out[j]-out[j] {
			return false
		}
	}
	for j := range depths {
		if value.of(func(k int) uint64 { return s.depths[k][j] }, 0) != e.tally.depths[j]-depths[j] {
			return false
		}
	}
	return true
}

// ordered tells whether all lines that may meet in the cache keep their order until a
// block, the first being 1.
func (s *series) ordered(e *engine, last uint64) bool {
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
		if !s.order.kept(first[cut:next], second[cut:next], last-1) {
			return false
		}
	}
	return true
}

// reaches tells whether the progression from a to b comes to c in so many steps, and
// does not leave the lines that there are.
func reaches(a, b, c []uint64, steps uint64) bool {
	if len(a) != len(b) || len(a) != len(c) {
		return false
	}
	most := uint64(1<<61) / max(1, steps)
	for i := range a {
		d := b[i] - a[i]
		if min(d, -d) > most || a[i]+d*steps != c[i] {
			return false
		}
	}
	return true
}

// sum counts all blocks from the first to the last.
func (s *series) sum(e *engine, b *block, last uint64, at int) {
	total := newton{n: s.need, at: last}
	for j := range s.counts[0] {
		e.tally.counts[at+j].accesses = s.counts[0][j].accesses + total.of(func(k int) uint64 { return s.counts[k][j].accesses }, 1)
		e.tally.counts[at+j].misses = s.counts[0][j].misses + total.of(func(k int) uint64 { return s.counts[k][j].misses }, 1)
	}
	for j := range s.out[0] {
		e.tally.out[j] = s.out[0][j] + total.of(func(k int) uint64 { return s.out[k][j] }, 1)
	}
	for j := range s.depths[0] {
		e.tally.depths[j] = s.depths[0][j] + total.of(func(k int) uint64 { return s.depths[k][j] }, 1)
	}
}

// newton evaluates polynomials that n values give, by forward differences.
type newton struct {
	n       int
	at      uint64
	choices []uint64
	d       []uint64
}

// of gives the value of a polynomial, or with sum = 1 the sum of those below, whose
// first n values are the differences of what sums gives for 0 to n.
func (w *newton) of(sums func(int) uint64, sum uint64) (v uint64) {
	if w.choices == nil {
		for k := range w.n {
			w.choices = append(w.choices, loops.Binomial(w.at, uint64(k)+sum))
		}
	}
	w.d = w.d[:0]
	any := uint64(0)
	for k := range w.n {
		d := sums(k+1) - sums(k)
		any |= d
		w.d = append(w.d, d)
	}
	if any == 0 {
		return 0
	}
	for k := range w.n {
		v += w.d[0] * w.choices[k]
		for j := range w.d[:len(w.d)-1-k] {
			w.d[j] = w.d[j+1] - w.d[j]
		}
	}
	return v
}

// order looks whether lines keep theirs.
type order struct {
	groups []group
	used   []pair
}

// group are lines that move alike, which keep their order.
type group struct{ step, first, last uint64 }

// pair is a line with where it is later on.
type pair struct{ from, to uint64 }

const mostGroups = 16

// kept tells whether lines that go from a to b in a step keep their order for so many
// steps: two that are one stay one, and others pass none.
func (o *order) kept(a, b []uint64, steps uint64) bool {
	o.groups = o.groups[:0]
	g := 0
	for i, line := range a {
		step := b[i] - line
		if line == none {
			if step != 0 {
				return false
			}
			continue
		}
		if g >= len(o.groups) || o.groups[g].step != step {
			for g = 0; g < len(o.groups) && o.groups[g].step != step; g++ {
			}
			if g == len(o.groups) {
				if g == mostGroups {
					return o.ascends(a, b, steps)
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
			return o.ascends(a, b, steps)
		}
	}
	return true
}

// ascends is kept where lines that move differently lie among one another.
func (o *order) ascends(a, b []uint64, steps uint64) bool {
	o.used = o.used[:0]
	for i, line := range a {
		if line != none && b[i] != none {
			o.used = append(o.used, pair{line, line + (b[i]-line)*steps})
		} else if line != b[i] {
			return false
		}
	}
	slices.SortFunc(o.used, func(a, b pair) int {
		if a.from != b.from {
			return cmp.Compare(a.from, b.from)
		}
		return cmp.Compare(a.to, b.to)
	})
	for i := 1; i < len(o.used); i++ {
		if (o.used[i].from == o.used[i-1].from) != (o.used[i].to == o.used[i-1].to) || o.used[i].to < o.used[i-1].to {
			return false
		}
	}
	return true
}
