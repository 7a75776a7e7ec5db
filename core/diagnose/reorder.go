package diagnose

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
)

// reorder interchanges an outer loop and its inner loop in the recorded references. It collects the
// references of one execution of the outer loop, and passes them on in the order of the inner
// loop's iterations. Unlike a change of the loop-compressed trace, a reorder needs no constant
// strides.
type reorder struct {
	// by block: 1 + the first block of the outer loop that contains the block; around if no such
	// loop contains the block but the block's function contains one
	loop  []uint32
	turns [][]row // rows kept for each iteration of the inner loop
	inner []bool  // by block: whether it is the first block of an inner loop
	now   uint32  // the outer loop that is running
	at    int     // iteration of the inner loop; -1 before the inner loop
	rows  int     // total number of rows in turns
	// hash of the addresses in an iteration of the outer loop, except for references that only some
	// iterations of the inner loop make
	hash uint64
	rare []bool // by site: whether only some iterations make its references
	last [2]uint64
	// turn is the number of iterations of the outer loop. again is the number of iterations that
	// used the same addresses as one of the two previous iterations.
	turn, again int
	give        func(*row)
}

const around = ^uint32(0)

// mostKept is the maximum number of collected references. When this number is reached, the
// collected references are passed on before the outer loop ends, so the loop is interchanged in
// several parts.
const mostKept = 1 << 22

// mostTurns is the maximum number of distinguished iterations of the inner loop. All later
// iterations count as one.
const mostTurns = 1 << 20

// take receives a row of the trace.
func (o *reorder) take(w *row) {
	switch {
	case w.kind.IsReference() && o.now == around:
		o.give(w)
	case w.kind.IsReference():
		at := max(0, o.at)
		for at >= len(o.turns) {
			o.turns = append(o.turns, nil)
		}
		o.turns[at] = append(o.turns[at], *w)
		o.rows++
		if w.index < 0 || !o.rare[w.index] {
			o.hash = (o.hash ^ w.addr) * 0x9e3779b97f4a7c15
		}
	// a row of a function that the loop calls
	case int64(w.site) >= int64(len(o.loop)) || o.loop[w.site] == 0:
	default:
		if l := o.loop[w.site]; l != o.now {
			o.flush()
			o.now = l
		}
		switch {
		case w.site+1 == o.now:
			if o.turn++; o.hash != 0 && (o.hash == o.last[0] || o.hash == o.last[1]) {
				o.again++
			}
			if o.last, o.hash, o.at = [2]uint64{o.hash, o.last[0]}, 0, -1; o.rows > mostKept {
				o.flush()
			}
		case o.inner[w.site]:
			o.at = min(o.at+1, mostTurns-1)
		}
	}
}

// flush passes on the collected references.
func (o *reorder) flush() {
	for at := range o.turns {
		for i := range o.turns[at] {
			o.give(&o.turns[at][i])
		}
		o.turns[at] = o.turns[at][:0]
	}
	o.rows = 0
}

// interchange tries to interchange the loops around the source locations that wait longest. It
// tries loops whose references depend on data, because only some iterations make them, or because
// their addresses are irregular.
func (r *run) interchange() {
	if r.cost.program == nil || r.loops == nil || len(r.p.Totals.Threads) > 1 {
		return
	}
	seen := map[uint32]bool{}
	for _, at := range r.byWait() {
		if at.wait+at.pages < leastElements*r.out.Cycles || len(seen) >= mostElements {
			return
		}
		if r.taken[at] > 0.5 || at.irregular > 0.5 || at.dependent > at.wait/2 || at.fills() {
			continue
		}
		inner := r.unsteadyLoops(at)
		if len(inner) == 0 || seen[inner[0]] {
			continue
		}
		waits := 0.0
		for _, of := range r.places { // sum up the waits of all locations in the same loops
			if slices.ContainsFunc(of.sites, func(i int) bool { return slices.Contains(inner, r.loopOf(i)) }) {
				waits += (of.wait + of.pages) * (1 - r.taken[of])
			}
		}
		for _, loop := range inner {
			seen[loop] = true
		}
		of := r.base()
		if of == nil {
			return
		}
		o := r.newReorder(inner)
		changed := r.again(nil, o, pageShift, true)
		// most iterations repeat the addresses of a previous iteration, as time steps do
		if changed == nil || 2*o.again > o.turn {
			continue
		}
		t := r.compare(of, changed)
		if t == nil || t.saved < Least*r.out.Cycles || t.saved < waits/4 {
			continue
		}
		name := func(head uint32) string {
			if line := r.firstLine(head, at.file); line > 0 {
				return "the loop at line " + strconv.FormatUint(uint64(line), 10)
			}
			return "a loop"
		}
		f := Finding{Kind: Capacity, Cost: max(at.wait+at.pages, t.saved), Saved: t.saved, Tried: true, Before: t.before, After: t.after,
			Why:       "the inner loop returns to the same data after " + r.Machine.Levels[at.level].Name + " has evicted it",
			Fix:       "interchange " + name(r.outer(inner[0])) + " and " + name(inner[0]),
			How:       "The recorded references were put in the order of the interchanged loops, and the caches were simulated again.",
			IllegalIf: "an iteration needs a value that another iteration stores, which the new order would store too late",
			More:      "sites --by line"}
		if r.cost.run.overlap[r.worstSite(at)] < overlapSequence {
			f.Kind, f.Why = Stride, "each iteration of the inner loop accesses a different line, and the next iteration of the outer loop accesses the same lines again"
		}
		r.taken[at] = 1
		r.take(t)
		r.add(at, f)
	}
}

// newReorder returns a reorder that interchanges inner loops with the loops around them. A loop is
// given as 1 + its header block.
func (r *run) newReorder(inner []uint32) *reorder {
	blocks := r.cost.program.Blocks
	o := &reorder{loop: make([]uint32, len(blocks)), inner: make([]bool, len(blocks)), now: around, rare: make([]bool, len(r.p.Sites.Code))}
	for i := range o.rare {
		b, ok := r.blockOf(i)
		o.rare[i] = ok && r.conditional(b)
	}
	for _, loop := range inner {
		o.inner[loop-1] = true
		outer := r.outer(loop)
		for b := range blocks {
			if blocks[b].Function != blocks[loop-1].Function {
				continue
			}
			if o.loop[b] == 0 {
				o.loop[b] = around
			}
			for head := blocks[b].Loop; head > 0; head = r.outer(head) {
				if head == outer {
					o.loop[b] = outer
				}
			}
		}
	}
	return o
}

// unsteadyLoops returns innermost loops of a source location, in descending order of waits. Each of
// these loops is inside another loop, and has references that only some iterations make, or whose
// addresses are irregular.
func (r *run) unsteadyLoops(at *place) (list []uint32) {
	for _, i := range append([]int{r.worstSite(at)}, at.sites...) {
		loop := r.loopOf(i)
		if loop == 0 || slices.Contains(list, loop) || r.outer(loop) == 0 {
			continue
		}
		for j := range r.p.Sites.Code {
			if b, ok := r.blockOf(j); ok && r.loopOf(j) == loop && (r.conditional(b) || r.cost.run.scattered[j] && r.p.Sites.Code[j].Stride() == profile.IrregularStride) {
				list = append(list, loop)
				break
			}
		}
	}
	return list
}

// loopOf returns the innermost loop around a site, as 1 + its header block, or 0 if there is none.
func (r *run) loopOf(site int) uint32 {
	if b, ok := r.blockOf(site); ok {
		return r.cost.program.Blocks[b].Loop
	}
	return 0
}

// blockOf returns the block of a site. ok is false if the block is unknown.
func (r *run) blockOf(site int) (b uint32, ok bool) {
	p, number := r.cost.program, r.p.Sites.Code[site].Number
	if p == nil || int64(number) >= int64(len(p.Sites)) || int64(p.Sites[number].Block) >= int64(len(p.Blocks)) {
		return 0, false
	}
	return p.Sites[number].Block, true
}

// conditional reports whether a block runs in only some iterations of its innermost loop.
func (r *run) conditional(b uint32) bool {
	blocks := r.cost.program.Blocks
	iterations := 0.0
	for n := range blocks {
		if k := &blocks[n]; k.Loop == blocks[b].Loop && slices.Contains(k.Successors, k.Loop-1) {
			iterations += r.cost.visits[n]
		}
	}
	return r.cost.visits[b] < always*iterations
}

// If a block is executed in at least the share always of a loop's iterations, the block counts as
// part of every iteration.
const always = 0.999
