package misses

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// firstTouchCounter counts cold misses, that is, first touches of lines. The time depends on the
// number of touched lines, not on the number of accesses:
//
//   - A loop is skipped if its references access only lines that have already been touched.
//   - References whose line ranges do not overlap are independent. Each group of references with
//     overlapping line ranges is processed separately.
//   - The lines of a single reference are marked in contiguous runs. Several references are treated
//     as one reference if they have the same address and the same steps in the same loops. All
//     first touches are then attributed to the first reference in the body.
//   - All other references are processed iteration by iteration. Iterations that access the same
//     lines as the previous iteration are skipped.
//
// References outside loops, and loops with wild references, are simulated by an engine without a
// cache. Each first touch is a miss of this engine.
type firstTouchCounter struct {
	*engine
	marks *marks
}

// marking is the state of an engine without a cache. It records only the lines that have been
// touched.
type marking struct {
	state
	marks *marks
}

func (m marking) lines() int { return 0 }

func (m marking) touch(all []access, t *tally) {
	for i := range all {
		if m.marks.add(all[i].line) {
			t.counts[all[i].at].misses++
		}
	}
}

// firstTouches returns the cold misses of each node, followed by the cold misses of each reference
// outside loops. It returns nil if there are too many touched lines to mark.
func firstTouches(l *layout, asks *pauser) []uint64 {
	f := &firstTouchCounter{newEngine(l, 1, 1), newMarks()}
	f.engine.firsts, f.state, f.pauser = f, marking{marks: f.marks}, asks
	f.run()
	if f.marks.full {
		return nil
	}
	cold := make([]uint64, len(f.tally.counts))
	for i, n := range f.tally.counts {
		cold[i] = n.misses
	}
	return cold
}

// isEnded reports whether the run was stopped, or must end because there are too many touched lines
// to mark.
func (f *firstTouchCounter) isEnded() bool { return f.over || f.marks.full }

// indices returns a list of the numbers from 0 to n-1.
func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (f *firstTouchCounter) touch(addr trace.Addr, bytes uint64, at int) {
	line, last := addr>>f.shift, (addr+bytes-1)>>f.shift
	f.spend(1)
	for {
		if f.marks.add(line) {
			f.tally.counts[at].misses++
		}
		if line >= last {
			return
		}
		line++
	}
}

// countLoop processes the given leaves of a loop.
func (f *firstTouchCounter) countLoop(b *block, p []uint64, at int, leaves []int) {
	hulls := make([]span, len(b.leaves))
	if len(leaves) == 0 || int64(p[0]) < 1 || b.makesNoReferences(p[1:]) {
		return
	}
	if !b.hullOf(p, hulls) {
		f.iterate(b, p, at, leaves, nil)
		return
	}
	for i := range hulls {
		hulls[i].first >>= f.shift
		hulls[i].last >>= f.shift
	}
	leaves = slices.Clone(leaves)
	slices.SortFunc(leaves, func(x, y int) int { return cmp.Compare(hulls[x].first, hulls[y].first) })
	for len(leaves) > 0 {
		all, n := hulls[leaves[0]], 1
		for n < len(leaves) && hulls[leaves[n]].first <= all.last {
			all.join(hulls[leaves[n]])
			n++
		}
		group := slices.Sorted(slices.Values(leaves[:n]))
		leaves = leaves[n:]
		if f.allTouched(group, hulls) {
			continue
		}
		if !f.markTogether(b, p, at, group) {
			f.iterate(b, p, at, group, hulls)
		}
	}
}

// allTouched reports whether all lines that the given leaves may touch have been touched already.
func (f *firstTouchCounter) allTouched(leaves []int, hulls []span) bool {
	return !slices.ContainsFunc(leaves, func(i int) bool {
		_, open := f.marks.firstUnmarked(hulls[i])
		return open
	})
}

// iterate processes the given leaves iteration by iteration.
func (f *firstTouchCounter) iterate(b *block, p []uint64, at int, leaves []int, hulls []span) {
	cur := append([]uint64(nil), p[1:]...)
	var open trace.Line // a line that was not touched yet at the most recent check
	known := false
	for i := uint64(0); i < p[0] && !f.isEnded(); {
		f.countIteration(b, cur, at, leaves)
		n := uint64(1)
		if !b.varies {
			n = f.sameLineIterations(b, cur, leaves, p[0]-i)
		}
		advance(cur, b.steps, n)
		i += n
		if hulls == nil || i == p[0] {
			continue
		}
		if known {
			if _, still := f.marks.firstUnmarked(span{open, open}); still {
				continue
			}
		}
		known = false
		for _, l := range leaves {
			if open, known = f.marks.firstUnmarked(hulls[l]); known {
				break
			}
		}
		if !known {
			return
		}
	}
}

// sameLineIterations works like [block.sameLineIterations], but for the given leaves only.
func (f *firstTouchCounter) sameLineIterations(b *block, cur []uint64, leaves []int, most uint64) uint64 {
	for _, i := range leaves {
		if l := &b.leaves[i]; l.step != 0 {
			most = l.sameLineIterations(cur, most)
		}
	}
	return most
}

// countIteration processes one iteration of the given leaves.
func (f *firstTouchCounter) countIteration(b *block, cur []uint64, at int, leaves []int) {
	first := 0
	for i := range b.items {
		it := &b.items[i]
		width := it.references()
		n := 0
		for n < len(leaves) && leaves[n] < first+width {
			n++
		}
		if n > 0 {
			if !it.loop {
				f.touch(cur[it.at], it.bytes, at+it.node)
			} else {
				below := make([]int, n)
				for j := range below {
					below[j] = leaves[j] - first
				}
				f.countLoop(it.block, cur[it.at:it.at+it.n], at+it.node, below)
			}
			leaves = leaves[n:]
		}
		first += width
	}
}

// dimension is a loop in which the address of a reference changes.
type dimension struct {
	step, trips uint64
	loop        int // node number of the loop
}

// markTogether marks the lines of the given leaves in contiguous runs, and attributes the first
// touches to the first leaf. It returns false if two leaves access different bytes in the same
// iteration, if a trip count varies, or if there are too many runs.
func (f *firstTouchCounter) markTogether(b *block, p []uint64, at int, leaves []int) bool {
	var first []dimension
	var start origin
	for i, l := range leaves {
		var dims []dimension
		to, ok := b.originOf(p, at, l, &dims)
		if !ok {
			return false
		}
		if i == 0 {
			first, start = dims, to
		} else if to.addr != start.addr || to.bytes != start.bytes || !slices.Equal(dims, first) {
			return false
		}
	}
	return f.markBox(start, first)
}

type origin struct {
	addr, bytes uint64
	node        int
}

// originOf returns the address of leaf l in the first iteration of a loop. The loops in which this
// address changes are appended to the slice "dims".
func (b *block) originOf(p []uint64, at, l int, dims *[]dimension) (to origin, ok bool) {
	if b.varies || int64(p[0]) < 1 {
		return origin{}, false
	}
	if step := b.leaves[l].step; step != 0 && p[0] > 1 {
		*dims = append(*dims, dimension{step, p[0], at})
	}
	for i := range b.items {
		it := &b.items[i]
		if l < it.references() {
			if !it.loop {
				return origin{p[1+it.at], it.bytes, at + it.node}, true
			}
			return it.originOf(p[1+it.at:1+it.at+it.n], at+it.node, l, dims)
		}
		l -= it.references()
	}
	return origin{}, false
}

// maxRuns limits the number of contiguous runs of lines that are marked for one reference.
const maxRuns = 1 << 26

// markBox marks the lines that a leaf touches in the given loops.
func (f *firstTouchCounter) markBox(start origin, dims []dimension) bool {
	dims = slices.Clone(dims)
	run := span{start.addr, start.addr + start.bytes - 1}
	for i := range dims {
		if d := &dims[i]; int64(d.step) < 0 {
			d.step = -d.step
			run.first -= d.step * (d.trips - 1)
			run.last -= d.step * (d.trips - 1)
		}
	}
	slices.SortFunc(dims, func(a, b dimension) int { return cmp.Compare(a.step, b.step) })
	for len(dims) > 0 && dims[0].step <= run.last-run.first+1<<f.shift {
		run.last += dims[0].step * (dims[0].trips - 1)
		dims = dims[1:]
	}
	runs := 1.0
	for _, d := range dims {
		runs *= float64(d.trips)
	}
	if runs > maxRuns {
		return false
	}
	f.markRuns(run, dims, start.node)
	return true
}

func (f *firstTouchCounter) markRuns(run span, dims []dimension, at int) {
	if len(dims) == 0 {
		f.spend(1)
		f.tally.counts[at].misses += f.marks.addSpan(span{run.first >> f.shift, run.last >> f.shift})
		return
	}
	d := dims[len(dims)-1]
	for range d.trips {
		if f.isEnded() {
			return
		}
		f.markRuns(run, dims[:len(dims)-1], at)
		run.first += d.step
		run.last += d.step
	}
}
