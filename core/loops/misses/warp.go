package misses

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// plan searches one run of a loop for repetitions.
type plan struct {
	next   uint64 // iteration before which the next search begins
	on     bool   // whether a search is worthwhile
	jumped bool   // whether a repetition was found at least once

	// number of iterations after which all references are at the same line offsets and have moved
	// by the same number of sets
	period uint64
	first  uint64 // first iteration for which the regions are valid
	end    uint64 // first iteration in which two regions may collide
	cost   uint64 // cost of a checkpoint, in accesses
	vain   int    // number of consecutive unsuccessful comparisons
	// 1 if two states that are several periods apart matched, so states that are one period apart
	// are compared next; 2 if these states did not match
	fine int

	motion motion // motion in one period
	over   motion // motion from one checkpoint to the next

	saved  bool     // whether there is a checkpoint
	at     uint64   // iteration of the checkpoint
	done   uint64   // number of accesses made before the checkpoint
	state  []uint64 // state of the cache at the checkpoint
	totals []uint64 // counters of the tally at the checkpoint
	now    []uint64 // state and counters at the end of a period

	hulls  []span
	sorted []region
}

// region is a range of lines that move in the same way from iteration to iteration.
type region struct {
	span
	class int    // class number; equal for all regions of one array that move by the same amount
	shift uint64 // number of lines by which the region moves, modulo 2^64
}

// motion describes how lines move: lines in regions move, and all other lines stay in place.
type motion struct {
	regions []region // disjoint, in ascending order
	turn    uint64   // number of sets by which lines move
}

// search returns the index of the first region that ends at or after the line.
func (m *motion) search(line trace.Line) int {
	lo, hi := 0, len(m.regions)
	for lo < hi {
		mid := (lo + hi) / 2
		if m.regions[mid].last < line {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find returns the region of a line, or nil.
func (m *motion) find(line trace.Line) *region {
	if n := m.search(line); n < len(m.regions) && m.regions[n].first <= line {
		return &m.regions[n]
	}
	return nil
}

// movesTo reports whether the motion moves a line from position "from" to position "now". A moving
// line must stay in a region of its class, because references of other classes could hit it outside
// these regions.
func (m *motion) movesTo(from, now trace.Line) bool {
	if from == noLine || now == noLine {
		return from == now
	}
	r := m.find(from)
	if r == nil {
		return from == now
	}
	if from+r.shift != now {
		return false
	}
	to := m.find(now)
	return to != nil && to.class == r.class
}

// positionAfter returns the position of a line after the given number of moves.
func (m *motion) positionAfter(line trace.Line, times uint64) trace.Line {
	if line == noLine {
		return noLine
	}
	if r := m.find(line); r != nil {
		return line + r.shift*times
	}
	return line
}

// begin starts the search for repetitions in one run of a loop with the given parameters.
func (w *plan) begin(e *engine, b *block, cur []uint64, trips uint64) {
	w.next, w.on, w.jumped = noIteration, false, false
	if e.plain || b.wilds || b.varies || trips < 4 || len(b.leaves) > maxLeaves || len(b.drifts) == 0 {
		return
	}
	if b.skip > 0 && e.open == 0 {
		b.skip--
		return
	}
	w.cost = e.checkpointCost(b)
	if b.referencesPerIteration(cur)*float64(trips) < 3*float64(w.cost) {
		return
	}
	if !w.setPeriod(e, b, trips) {
		return
	}
	if b.classes == nil {
		e.classify(b)
	}
	w.on = true
	w.setRegions(e, b, cur, 0, trips)
}

const maxLeaves = 512

// checkpointCost returns the cost of a checkpoint of a loop, in accesses.
func (e *engine) checkpointCost(b *block) uint64 {
	cost := e.state.lines() + len(e.tally.depths)
	if e.tally.out != nil {
		cost += e.state.lines() + len(b.refs)*len(e.arrays.columns)
	}
	return uint64(cost)
}

// setPeriod finds the number of iterations after which every reference is at the same offset in its
// line and all references have moved by the same number of sets.
func (w *plan) setPeriod(e *engine, b *block, trips uint64) bool {
	lineBytes := uint64(1) << e.shift
	w.period = 1
	for i := range b.drifts {
		w.period = max(w.period, lineBytes/loops.GCD(lineBytes, b.drifts[i].step))
	}
	w.motion.turn = 0
	if e.sets == 1 || len(b.leaves) == 0 {
		return w.period <= trips/2
	}
	first := e.turnOf(b.leaves[0].step, w.period)
	times := uint64(1)
	for i := range b.leaves {
		apart := (e.turnOf(b.leaves[i].step, w.period) + e.sets - first) % e.sets
		if apart != 0 {
			if times = lcm(times, e.sets/loops.GCD(e.sets, apart)); times > trips {
				return false
			}
		}
	}
	w.period *= times
	w.motion.turn = mulMod(first, times, e.sets)
	return w.period <= trips/2
}

// turnOf returns the number of sets by which a reference moves in a period. In a period, each
// reference moves by whole lines.
func (e *engine) turnOf(step, period uint64) uint64 {
	lines := uint64(int64(step*period) >> e.shift)
	if int64(lines) < 0 {
		return (e.sets - (-lines)%e.sets) % e.sets
	}
	return lines % e.sets
}

func lcm(a, b uint64) uint64 { return a / loops.GCD(a, b) * b }

// setRegions computes the regions from iteration i up to the iteration in which two regions would
// collide.
func (w *plan) setRegions(e *engine, b *block, cur []uint64, i, trips uint64) {
	w.saved, w.vain, w.fine = false, 0, 0
	w.first = i
	w.next = noIteration
	w.hulls = append(w.hulls[:0], make([]span, len(b.leaves))...)
	if trips-i < 2*w.period {
		return
	}
	if !b.hullOfBody(cur, w.hulls) {
		w.on = false
		return
	}
	n := trips - i
	if !w.disjoint(e, b, n) {
		lo, hi := uint64(1), n // invariant: the regions are disjoint for lo iterations, but not for hi iterations
		if !w.disjoint(e, b, 1) {
			lo = 0
		}
		for lo > 0 && hi-lo > 1 && hi > 2*w.period {
			if mid := lo + (hi-lo)/2; w.disjoint(e, b, mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
		n = lo
		if n < 2*w.period || !w.disjoint(e, b, n) {
			w.next = i + max(w.period, (trips-i)/16, n)
			w.end = i // compare no states before this iteration
			return
		}
	}
	w.end = i + n
	w.done = e.done + uint64(len(e.queue))
	w.next = i + w.period
}

// disjoint computes the regions of the next n iterations. It reports whether regions of different
// classes are disjoint.
func (w *plan) disjoint(e *engine, b *block, n uint64) bool {
	w.sorted = w.sorted[:0]
	for i := range b.leaves {
		l := &b.leaves[i]
		s := w.hulls[i]
		if !s.sweep(l.step, n-1) {
			return false
		}
		w.sorted = append(w.sorted, region{span{s.first >> e.shift, s.last >> e.shift}, b.classes[i], l.step})
	}
	slices.SortFunc(w.sorted, func(a, b region) int { return cmp.Compare(a.first, b.first) })
	w.motion.regions = w.motion.regions[:0]
	for _, r := range w.sorted {
		if n := len(w.motion.regions); n > 0 {
			if before := &w.motion.regions[n-1]; r.first <= before.last {
				if r.class != before.class {
					return false
				}
				before.join(r.span)
				continue
			}
		}
		w.motion.regions = append(w.motion.regions, r)
	}
	return true
}

// classify assigns class numbers to the leaves of a loop. Leaves that access one array with the
// same step have equal numbers.
func (e *engine) classify(b *block) {
	b.classes = make([]int, len(b.leaves))
	for i := range b.leaves {
		for j := range b.leaves[:i+1] {
			if b.leaves[j].step == b.leaves[i].step && e.arrays.byRef[b.leaves[j].ref] == e.arrays.byRef[b.leaves[i].ref] {
				b.classes[i] = j
				break
			}
		}
	}
}

// check compares the state before iteration i with the checkpoint, and makes a new checkpoint. If
// the states are equal except for moved lines, it skips all remaining periods, and returns the
// number of skipped iterations.
func (w *plan) check(e *engine, b *block, cur []uint64, i, trips uint64, at int) (jump uint64) {
	if !w.on {
		w.next = noIteration
		return 0
	}
	if i >= w.end || w.end-i < w.period {
		w.setRegions(e, b, cur, i, trips)
		return 0
	}
	if w.fine != 1 && e.done+uint64(len(e.queue))-w.done < w.cost/2 {
		w.next = i + w.period
		return 0
	}
	e.flush()
	if w.saved {
		if n := w.jump(e, b, i, at); n > 0 {
			w.jumped, w.saved = true, false
			w.next = i + n
			if w.end == trips {
				w.on, w.next = false, noIteration
			}
			w.end = i // new regions must be computed in this iteration
			return n
		}
	}
	w.save(e, b, i, at)
	w.next = i + w.period
	return 0
}

func (w *plan) jump(e *engine, b *block, i uint64, at int) (iterations uint64) {
	apart := i - w.at
	if w.end-i < apart {
		return 0
	}
	w.over.regions = append(w.over.regions[:0], w.motion.regions...)
	for j := range w.over.regions {
		r := &w.over.regions[j]
		r.shift = uint64(int64(r.shift*apart) >> e.shift)
	}
	w.over.turn = 0
	if e.sets > 1 {
		w.over.turn = mulMod(w.motion.turn, apart/w.period, e.sets)
	}
	if !e.state.moved(w.state, &w.over) {
		if w.fine == 1 {
			w.fine = 2
			return 0
		}
		if w.vain++; w.vain == 4 && w.motion.turn != 0 {
			// Lines that do not move stay in their sets. States can therefore match only after the
			// references have returned to their sets.
			n := e.sets / loops.GCD(e.sets, w.motion.turn)
			if hi, period := bits.Mul64(w.period, n); hi == 0 && period < w.end-i {
				w.period, w.motion.turn = period, 0
			}
		}
		return 0
	}
	if e.varying > 0 && apart > w.period && w.fine == 0 {
		// Try to jump over single periods: if the trip counts of several runs of a loop differ by
		// whole periods, the same number of iterations then remains in each run.
		w.fine = 1
		return 0
	}
	times := (w.end - i) / apart
	if e.open > 0 {
		w.write(e, i, apart, at)
	}
	e.jumps++
	e.state.move(&w.over, times)
	e.writeState()
	w.now = e.tally.save(w.now[:0], at, b)
	for j, before := range w.totals {
		w.now[j] += times * (w.now[j] - before)
	}
	e.tally.load(w.now, at, b)
	return times * apart
}

// write records the data that determine a jump: the regions and the lines.
func (w *plan) write(e *engine, i, apart uint64, at int) {
	e.note(uint64(at), i, apart, (w.end-i)%apart, w.over.turn, uint64(len(w.over.regions)))
	e.times = append(e.times, (w.end-i)/apart, w.end)
	for _, r := range w.over.regions {
		e.note(uint64(r.class), r.shift)
	}
	for _, h := range w.hulls {
		e.note(w.over.rank(h.first >> e.shift))
	}
	for range 2 {
		for _, line := range e.state.linesIn(w.state) {
			e.note(w.over.rank(line))
		}
		w.state = e.state.save(w.state[:0])
	}
}

// rank returns the position of a line relative to the regions: 2n + 1 for a line in region n, and
// 2n for a line between regions n - 1 and n.
func (m *motion) rank(line trace.Line) uint64 {
	n := m.search(line)
	if n < len(m.regions) && m.regions[n].first <= line {
		return uint64(2*n + 1)
	}
	return uint64(2 * n)
}

func (w *plan) save(e *engine, b *block, i uint64, at int) {
	w.saved = true
	w.at, w.done = i, e.done
	w.state = e.state.save(w.state[:0])
	w.totals = e.tally.save(w.totals[:0], at, b)
}

// finish records whether the search was worthwhile.
func (w *plan) finish(b *block) {
	switch {
	case w.jumped:
		b.patience = 0
	case w.on && w.saved:
		b.patience = min(2*b.patience+1, 256)
		if b.patience > 4 {
			b.skip = b.patience
		}
	}
}
