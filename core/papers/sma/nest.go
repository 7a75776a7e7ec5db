package sma

import (
	"cmp"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
)

// loop is a loop of the tree, or the root, which runs once.
type loop struct {
	item   *loops.Item // nil for the root
	path   []int       // indices of items, outermost first
	around *loop
	depth  int     // 0 for the root
	trips  float64 // mean number of iterations per run
	turns  float64 // number of iterations in all runs
	body   []part

	arrays []array // arrays in the order of their last use
	wild   []*leaf // the wild references in the loop, whose addresses are stored as lists
	at     int     // the loop's number in the result
}

// part is an item of a body, either a leaf or a loop.
type part struct {
	leaf  *leaf
	inner *loop
}

// leaf is a reference in the tree, with its enclosing loops.
type leaf struct {
	number int
	path   []int
	item   *loops.Item
	within *loop
	chain  []*loop // the enclosing loops, the root first
	wide   float64 // average number of lines that an access touches
	levels []Level // counts at the level of each loop of the chain
}

// step returns the number of bytes by which the address changes in each iteration of the enclosing
// loop at a depth.
func (l *leaf) step(depth int) int64 {
	if depth == 0 {
		return 0
	}
	return l.item.Step(depth - 1)
}

// tripStep returns the change of the trip count in each iteration of the enclosing loop at a depth.
func (l *loop) tripStep(depth int) int64 {
	if depth == 0 || l.item == nil {
		return 0
	}
	return l.item.Step(depth - 1)
}

// buildLoops converts items to loops and leaves. Events, and references that never run, are omitted.
func (a *analysis) buildLoops(items []loops.Item, around *loop, chain []*loop) {
	for i := range items {
		it := &items[i]
		path := append(around.path[:len(around.path):len(around.path)], i)
		switch {
		case it.IsLoop():
			l := &loop{item: it, path: path, around: around, depth: around.depth + 1}
			below := append(chain[:len(chain):len(chain)], l)
			l.turns = totalIterations(below)
			if l.turns == 0 {
				continue
			}
			l.trips = l.turns / around.turns
			a.buildLoops(it.Body, l, below)
			if len(l.body) > 0 {
				a.loops++
				around.body = append(around.body, part{inner: l})
			}
		case it.Ref.Kind.IsReference():
			l := &leaf{number: len(a.leaves), path: path, item: it, within: around, chain: chain, levels: make([]Level, len(chain))}
			l.wide = a.linesPerAccess(l)
			a.leaves = append(a.leaves, l)
			around.body = append(around.body, part{leaf: l})
		}
	}
}

// totalIterations returns the total number of iterations of the innermost loop in a chain, over all
// executions of this loop.
func totalIterations(chain []*loop) float64 {
	last := chain[len(chain)-1]
	varies := false
	for _, l := range chain[1:] {
		for d := 1; d < l.depth; d++ {
			varies = varies || l.tripStep(d) != 0
		}
	}
	if !varies {
		if int64(last.item.Trips) < 1 {
			return 0
		}
		return last.around.turns * float64(last.item.Trips)
	}
	// The following nest contains only the loops of the chain and one reference. The reference is
	// executed once per iteration of the innermost loop.
	it := loops.Leaf(loops.Reference{Bytes: 1}, 0)
	for i := len(chain) - 1; i > 0; i-- {
		it = loops.Item{Body: []loops.Item{it}, Trips: chain[i].item.Trips, Steps: chain[i].item.Steps}
	}
	nest := loops.Nest{Items: []loops.Item{it}}
	t, err := nest.Build()
	if err != nil {
		return 0 // cannot happen, because the whole tree was counted without an overflow
	}
	return float64(t.Rows())
}

// linesPerAccess returns the average number of lines that an access of a leaf touches.
func (a *analysis) linesPerAccess(l *leaf) float64 {
	bytes := uint64(l.item.Ref.Bytes)
	if bytes <= 1 {
		return 1
	}
	line := uint64(a.cache.LineBytes)
	aligned := bytes&(bytes-1) == 0 && bytes <= line && l.item.Addr%bytes == 0
	still := true
	for _, s := range l.item.Steps {
		aligned = aligned && uint64(s)%bytes == 0
		still = still && uint64(s)%line == 0
	}
	switch {
	case aligned:
		return 1
	case still:
		return float64((l.item.Addr%line+bytes-1)/line + 1)
	}
	return 1 + float64(bytes-1)/float64(line)
}

// span is the range of bytes from lo to hi, both included. A range that would wrap around at the
// end of the address space ends at the last address.
type span struct{ lo, hi uint64 }

func (s span) join(t span) span { return span{min(s.lo, t.lo), max(s.hi, t.hi)} }

func (s span) in(line uint32) span { return span{s.lo / uint64(line), s.hi / uint64(line)} }

func (s span) len() float64 { return float64(s.hi-s.lo) + 1 }

// dim describes a loop in which the address of a reference changes.
type dim struct {
	step  float64 // absolute value of the stride in bytes
	trips float64
}

// section is a regular section: the bytes that a leaf touches while a loop runs once.
type section struct {
	span  span
	first uint64 // address of the first access
	dims  []dim  // in ascending order of step; loops whose accesses leave no gaps are included in the field "run" instead
	run   float64
	lines float64

	granule uint64 // unit of the distances by which the outer loops move the section
}

// section computes the section that a leaf touches during one run of its loops, starting at the
// given depth. Varying trip counts are replaced by their averages.
func (a *analysis) section(l *leaf, depth int) (s section) {
	line := float64(a.cache.LineBytes)
	bytes := float64(max(l.item.Ref.Bytes, 1))
	s.first, s.run = l.item.Addr, bytes
	down, up := a.extent(l, depth)
	s.span.lo = l.item.Addr - uint64(min(down, float64(l.item.Addr)))
	room := float64(math.MaxUint64 - l.item.Addr)
	if end := up + bytes - 1; end < room {
		s.span.hi = l.item.Addr + uint64(end)
	} else {
		s.span.hi = math.MaxUint64
	}
	accesses := l.wide
	for _, outer := range l.chain[depth:] {
		if n, step := outer.trips, math.Abs(float64(l.step(outer.depth))); step > 0 && n > 1 {
			accesses *= n
			s.dims = append(s.dims, dim{step, n})
		}
	}
	slices.SortStableFunc(s.dims, func(a, b dim) int { return cmp.Compare(a.step, b.step) })
	kept := s.dims[:0]
	for _, d := range s.dims {
		switch last := len(kept) - 1; {
		case len(kept) == 0 && (d.step <= s.run || d.step <= line):
			s.run += d.step * (d.trips - 1)
		case last >= 0 && d.step <= kept[last].step*kept[last].trips:
			kept[last].trips += (d.trips - 1) * d.step / kept[last].step
		default:
			kept = append(kept, d)
		}
	}
	s.dims = kept
	s.granule = a.granule(l, depth)
	g := s.granule
	for _, d := range s.dims {
		g = loops.GCD(g, uint64(d.step)%g)
	}
	s.lines = a.linesOf(s.run, s.first, g)
	for _, d := range s.dims {
		s.lines *= d.trips
	}
	s.lines = min(s.lines, max(1, accesses), a.linesOf(s.span.len(), s.span.lo, s.granule))
	return s
}

// linesOf returns the average number of lines that a run of bytes covers. The average is over all
// positions to which loops may move the run: the first address plus multiples of the parameter
// "granule". The line size is a multiple of this parameter.
func (a *analysis) linesOf(run float64, first, granule uint64) float64 {
	g := float64(granule)
	return 1 + math.Floor((float64(first%granule)+run-1)/g)*g/float64(a.cache.LineBytes)
}

// granule returns the greatest common divisor of the line size and of a leaf's steps in the
// enclosing loops above the given depth.
func (a *analysis) granule(l *leaf, depth int) uint64 {
	g := uint64(a.cache.LineBytes)
	for _, of := range l.chain[:min(depth, len(l.chain))] {
		if of.trips > 1 {
			g = loops.GCD(g, uint64(l.step(of.depth))%g)
		}
	}
	return g
}

// mostCorners is the maximum number of loops for which the corners of the iteration space are
// visited.
const mostCorners = 12

// extent returns how far the address of a leaf moves below and above its first address.
func (a *analysis) extent(l *leaf, depth int) (down, up float64) {
	chain := l.chain[depth:]
	varies := false
	for _, of := range chain {
		for _, out := range chain {
			varies = varies || out.depth < of.depth && of.tripStep(out.depth) != 0
		}
	}
	if varies && len(chain) <= mostCorners {
		turn := make([]float64, len(l.chain))
		for i, of := range l.chain[:depth] {
			turn[i] = (of.trips - 1) / 2
		}
		corners(l, depth, depth, turn, 0, &down, &up)
		return -down, up
	}
	for _, of := range chain {
		if s := float64(l.step(of.depth)) * max(of.trips-1, 0); s < 0 {
			down -= s
		} else {
			up += s
		}
	}
	return down, up
}

// corners visits the corners of the iteration space, at which an affine address reaches its minimum
// and maximum.
func corners(l *leaf, from, depth int, turn []float64, offset float64, least, most *float64) {
	if depth == len(l.chain) {
		*least, *most = min(*least, offset), max(*most, offset)
		return
	}
	of := l.chain[depth]
	trips := of.trips
	if depth > from {
		trips = float64(int64(of.item.Trips))
		for d := 1; d < depth; d++ {
			trips += float64(of.tripStep(d)) * turn[d]
		}
	}
	if trips < 1 {
		return
	}
	for _, at := range [2]float64{0, trips - 1} {
		turn[depth] = at
		corners(l, from, depth+1, turn, offset+at*float64(l.step(depth)), least, most)
	}
}
