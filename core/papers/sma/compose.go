package sma

import (
	"cmp"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
)

type analysis struct {
	cache  geometry
	leaves []*leaf
	wild   map[loops.Reference]Level // accesses and misses per access of each wild reference
	loops  int
	budget int // limits the number of sampled iterations; see the method samplePositions

	counts   []float32 // number of lines in each set
	counted  []uint32  // sets whose counts may differ from 0
	examined []int32   // arrays of the context that evictedShare has examined
}

// geometry contains the dimensions of a cache, each of which fits in 32 bits.
type geometry struct{ Sets, Ways, LineBytes uint32 }

func (g geometry) lines() float64 { return float64(g.Sets) * float64(g.Ways) }

// array describes the data that some leaves touch while a loop runs once: a union of overlapping
// sections.
type array struct {
	span     span
	lines    float64 // number of distinct lines
	leaves   []*leaf
	sections []section
	granule  uint64 // unit of the distances by which the outer loops move the array; see analysis.granule
	print    footprint
	level    Level
	grows    bool // whether many lines of the array were not touched in the previous iteration
	direct   bool // whether one of the leaves is directly in the body of the loop
	stays    bool // whether the array belongs to the loop's right context (see findRightContext)
	// edgeLo means that the first line also belongs to another array, which counts this line.
	// edgeHi means that the last line also belongs to another array, which counts that line.
	edgeLo, edgeHi bool
}

// touch describes how one part of a loop body uses an array during an iteration.
type touch struct {
	of     *array
	part   int
	direct bool    // whether the part is a leaf
	to     int     // index of the array in the arrays of an iteration
	group  int     // index of the array in the arrays of the loop
	own    float64 // share of the array's lines that no earlier touch in the iteration has used

	// lost and lostAgain are the shares of lines that have been evicted since the previous iteration,
	// and since an earlier touch in this iteration. The shares are averaged over the sampled
	// positions.
	lost, lostAgain tally
	level           Level

	// looked is the number of lookups of lines, and missed is the number of lookups that missed.
	// The field "again" is true if one of the missing lines had been used before. Only the root
	// uses the fields looked, missed and again.
	looked, missed float64
	again          bool
}

// tally accumulates the weighted mean of the shares of evicted lines, and the first known reason
// for the evictions.
type tally struct {
	sum, weight float64
	why         reason
}

// reason is the first known reason why lines do not stay in the cache.
type reason uint8

const (
	stays    reason = iota
	partly          // another array uses some of the same sets
	purely          // another array begins in the same set, has the same length and moves by the same stride
	shallow         // an array of an inner loop occupies the same sets
	capacity        // the arrays need more lines than the cache has
)

func (t *tally) add(share, weight float64, why reason) {
	t.sum += share * weight
	t.weight += weight
	if t.why == stays && share > 0 {
		t.why = why
	}
}

func (t *tally) mean() float64 {
	if t.weight == 0 {
		return 0
	}
	return t.sum / t.weight
}

// compose analyses the parts of a loop, and then the loop itself (thesis, Algorithms 1 and 2).
func (a *analysis) compose(l *loop) {
	touches := a.bodyTouches(l)
	arrays := a.loopArrays(l, touches)
	if l.around == nil {
		a.composeRoot(touches, arrays)
		a.finishLoop(l, touches, arrays)
		return
	}
	its := a.iterationArrays(touches)
	a.setOwnShares(touches, its)
	a.measureEvictions(l, touches, its)
	a.countMisses(l, touches, its, arrays)
	a.finishLoop(l, touches, arrays)
}

// finishLoop determines the contexts of a loop, and the levels of its leaves.
func (a *analysis) finishLoop(l *loop, touches []touch, arrays []array) {
	l.arrays = sortByLastUse(touches, arrays)
	a.findRightContext(l)
	a.storeLevels(l, touches)
}

// bodyTouches returns the touches of all parts of a loop body, in order.
func (a *analysis) bodyTouches(l *loop) (list []touch) {
	for i, p := range l.body {
		switch {
		case p.inner != nil:
			a.compose(p.inner)
			for j := range p.inner.arrays {
				list = append(list, touch{of: &p.inner.arrays[j], part: i})
			}
		case p.leaf.item.Wild:
			v, known := a.wild[p.leaf.item.Ref]
			if !known {
				v = Level{Accesses: 1, Misses: 1, Class: AlwaysMiss}
			}
			n := l.trips * p.leaf.wide
			p.leaf.levels[l.depth] = Level{Accesses: n * v.Accesses, Misses: n * v.Misses, Class: v.Class}
			l.wild = append(l.wild, p.leaf)
		default:
			s := a.arrayOf([]*leaf{p.leaf}, l.depth+1)
			s.direct = true
			s.level = Level{Accesses: p.leaf.wide, Misses: s.lines, Class: FirstMiss}
			list = append(list, touch{of: &s, part: i, direct: true})
		}
	}
	return list
}

// arrayOf returns the array that the leaves touch during one run of their loops, starting at the
// given depth.
func (a *analysis) arrayOf(leaves []*leaf, depth int) array {
	s := array{leaves: leaves}
	for i, l := range leaves {
		sec := a.section(l, depth)
		if i == 0 {
			s.span = sec.span
		}
		s.span = s.span.join(sec.span)
		s.add(sec, a.cache.LineBytes)
	}
	a.finish(&s)
	return s
}

// mostSections is the maximum number of sections of an array that are distinguished.
const mostSections = 64

// add adds a section unless the array already has a section with the same lines.
func (s *array) add(sec section, line uint32) {
	s.granule = loops.GCD(s.granule, sec.granule)
	in := sec.span.in(line)
	for i := range s.sections {
		if o := &s.sections[i]; o.span.in(line) == in && math.Abs(o.lines-sec.lines) < 0.01*sec.lines {
			return
		}
	}
	if len(s.sections) < mostSections {
		s.sections = append(s.sections, sec)
	}
	s.lines += sec.lines
}

func (a *analysis) finish(s *array) {
	n := a.linesOf(s.span.len(), s.span.lo, s.granule)
	s.lines = min(s.lines, n)
	if s.lines >= 0.9*n {
		s.print.run = true
		return
	}
	phases, step := a.phases(s)
	in := s.span.lo % uint64(a.cache.LineBytes)
	for p := range phases {
		for i := range s.sections {
			if !a.addSection(&s.sections[i], p*step-in/step*step) {
				a.takeSlots(0)
				s.print = footprint{even: float32(s.lines / float64(a.cache.Sets))}
				return
			}
		}
		s.print.slots = append(s.print.slots, a.takeSlots(float32(math.Ceil(n/float64(a.cache.Sets)))))
	}
}

// sorted returns the numbers from 0 to n-1, sorted with the function "compare". The sort is stable.
func sorted(n int, compare func(i, j int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	return order
}

// loopArrays returns the arrays of a loop. Two touches belong to one array if their bytes overlap
// during the loop, or if the bytes of both touches stay in one line.
func (a *analysis) loopArrays(l *loop, touches []touch) []array {
	spans := make([]span, len(touches))
	for i := range touches {
		for j, u := range touches[i].of.leaves {
			s := a.section(u, l.depth).span
			if j == 0 {
				spans[i] = s
			}
			spans[i] = spans[i].join(s)
		}
	}
	order := sorted(len(touches), func(x, y int) int { return cmp.Compare(spans[x].lo, spans[y].lo) })
	var all span
	var members [][]*leaf
	for k, i := range order {
		if s := spans[i]; k == 0 || s.lo > all.hi && all.join(s).in(a.cache.LineBytes).len() > 1 {
			members = append(members, nil)
			all = s
		}
		all = all.join(spans[i])
		n := len(members) - 1
		touches[i].group = n
		members[n] = append(members[n], touches[i].of.leaves...)
	}
	list := make([]array, len(members))
	for i := range list {
		list[i] = a.arrayOf(members[i], l.depth)
	}
	for i := range touches {
		if touches[i].direct {
			list[touches[i].group].direct = true
		}
	}
	a.markSharedEdges(list)
	return list
}

// markSharedEdges marks arrays that share a line at their edges, which is not a conflict
// (thesis §4.10).
func (a *analysis) markSharedEdges(list []array) {
	order := sorted(len(list), func(x, y int) int { return cmp.Compare(list[x].span.lo, list[y].span.lo) })
	for k := 1; k < len(order); k++ {
		before, s := &list[order[k-1]], &list[order[k]]
		in, next := before.span.in(a.cache.LineBytes), s.span.in(a.cache.LineBytes)
		switch {
		case in.hi != next.lo:
		case in.lo != in.hi && next.lo == next.hi:
			before.edgeHi = true
		default:
			s.edgeLo = true
		}
	}
}

// iterationArrays returns the arrays of one iteration. Two touches that belong to one array of the
// loop also belong to one array of the iteration if they may be in one line, or if they mostly
// overlap.
func (a *analysis) iterationArrays(touches []touch) []array {
	order := sorted(len(touches), func(x, y int) int {
		return cmp.Or(touches[x].group-touches[y].group, cmp.Compare(touches[x].of.span.lo, touches[y].of.span.lo))
	})
	group, n := -1, -1
	var all span
	for _, i := range order {
		t := &touches[i]
		if t.group != group || !a.sameArray(all, t.of.span) {
			n++
			group, all = t.group, t.of.span
		}
		all = all.join(t.of.span)
		t.to = n
	}
	return a.combine(touches, n+1)
}

// sameArray reports whether span s belongs to the same array as the span "all". Span s must not
// begin before the span "all".
func (a *analysis) sameArray(all, s span) bool {
	line := uint64(a.cache.LineBytes)
	if s.lo > all.hi {
		return s.lo-all.hi < line && (all.hi-all.lo < line || s.hi-s.lo < line)
	}
	both, shorter, longer := min(all.hi, s.hi)-s.lo, min(all.hi-all.lo, s.hi-s.lo), max(all.hi-all.lo, s.hi-s.lo)
	return shorter < line || both >= shorter/2 && shorter >= longer/4
}

// combine combines touches into n arrays. Array i combines all touches whose field "to" is i.
func (a *analysis) combine(touches []touch, n int) []array {
	list := make([]array, n)
	for i := range touches {
		part, s := touches[i].of, &list[touches[i].to]
		if s.leaves == nil {
			s.leaves, s.span = part.leaves, part.span
		}
		s.direct = s.direct || touches[i].direct
		s.span = s.span.join(part.span)
		for _, sec := range part.sections {
			s.add(sec, a.cache.LineBytes)
		}
	}
	for i := range list {
		a.finish(&list[i])
	}
	a.markSharedEdges(list)
	return list
}

// setOwnShares computes for each touch the share of its lines that no earlier touch of the iteration
// has accessed.
func (a *analysis) setOwnShares(touches []touch, its []array) {
	seen := make([]span, len(its))
	total := make([]float64, len(its))
	for i := range touches {
		t := &touches[i]
		in := t.of.span
		t.own = 1
		if total[t.to] > 0 {
			s, g := seen[t.to], its[t.to].granule
			n := a.linesOf(in.len(), in.lo, g)
			both := n + a.linesOf(s.len(), s.lo, g) - a.linesOf(in.join(s).len(), min(in.lo, s.lo), g)
			t.own = 1 - min(1, max(0, both/n))
			in = in.join(s)
		}
		seen[t.to] = in
		total[t.to] += t.own * t.of.lines
	}
	for i := range touches {
		t := &touches[i]
		t.own = min(1, t.own*its[t.to].lines/total[t.to])
	}
}

// countMisses computes the misses of each touch in all iterations of the loop.
//
// If an iteration touches D lines of an array, and all n iterations of the loop touch B lines of
// it, then (B-D)/(n-1) lines are new in each iteration after the first. The other lines of an
// iteration were also touched in the previous iteration, and miss if they have been evicted since
// then. Lines that miss repeatedly within a part of the body do so in every iteration.
func (a *analysis) countMisses(l *loop, touches []touch, its, arrays []array) {
	once := make([]float64, len(arrays))
	seen := make([]bool, len(its))
	for i := range touches {
		if t := &touches[i]; !seen[t.to] {
			seen[t.to] = true
			once[t.group] += its[t.to].lines
		}
	}
	n := max(l.trips, 1)
	most := make([]float64, len(arrays))
	for i := range touches {
		t := &touches[i]
		of := &arrays[t.group]
		d := once[t.group]
		of.lines = max(of.lines, d)
		of.grows = of.lines > 1.5*d
		old := 0.
		if n > 1 {
			old = max(0, 1-(of.lines-d)/((n-1)*d))
		}
		first := t.own * t.of.lines
		again := t.of.lines - first
		inside := max(0, t.of.level.Misses-t.of.lines)
		misses := first*of.lines/d + (n-1)*first*old*t.lost.mean() + n*(again*t.lostAgain.mean()+inside)
		accesses := n * t.of.level.Accesses
		t.level = Level{Accesses: accesses, Misses: min(misses, accesses), Class: t.classify(old, inside)}
		if l.trips < 1 {
			t.level.Accesses *= l.trips
			t.level.Misses *= l.trips
		}
		t.addTo(arrays, most)
	}
}

// addTo adds the counts of a touch to the touch's array. The array has the class of the touch with
// the most misses.
func (t *touch) addTo(arrays []array, most []float64) {
	level, top := &arrays[t.group].level, &most[t.group]
	level.add(t.level)
	if *top == 0 || t.level.Misses > *top {
		*top, level.Class = t.level.Misses, t.level.Class
	}
}

// slight is the largest difference between shares of lines or misses that is treated as a
// rounding error.
const slight = 1e-6

// classify returns the class of the touched array. The parameter "old" is the share of lines
// that the previous iteration also touched. The parameter "inside" is the number of misses
// within the part of the body, in addition to one miss per line.
func (t *touch) classify(old, inside float64) Class {
	lost, mean := t.lost, t.lost.mean()*old
	if t.own < 0.5 {
		lost, mean = t.lostAgain, t.lostAgain.mean()
	}
	if mean > slight {
		switch {
		case lost.why == capacity:
			return CapMiss
		case lost.why == purely, lost.why == shallow && t.direct:
			return AlwaysMiss
		}
		return ConfMiss
	}
	inner := t.of.level.Class
	switch {
	case t.own >= 0.5 && inside > slight*t.of.lines:
		return inner
	case t.own >= 0.5:
		return FirstMiss
	case inside <= slight*t.of.lines:
		return AlwaysHit
	case inner == AlwaysMiss:
		return FirstHit
	}
	return inner
}

// sortByLastUse sorts the arrays of a loop by their last use. Growing arrays precede arrays that
// each iteration uses completely.
func sortByLastUse(touches []touch, arrays []array) []array {
	last := make([]int, len(arrays))
	for i := range touches {
		last[touches[i].group] = i
	}
	order := sorted(len(arrays), func(x, y int) int {
		switch {
		case arrays[x].grows == arrays[y].grows:
			return last[x] - last[y]
		case arrays[x].grows:
			return -1
		}
		return 1
	})
	list := make([]array, len(arrays))
	at := make([]int, len(arrays))
	for i, g := range order {
		list[i] = arrays[g]
		at[g] = i
	}
	for i := range touches {
		touches[i].group = at[touches[i].group]
	}
	return list
}

// storeLevels stores, in each leaf, the counts at the level of loop l.
func (a *analysis) storeLevels(l *loop, touches []touch) {
	for i := range touches {
		t := &touches[i]
		of := l.arrays[t.group].level.Class
		if t.level.Class == FirstMiss && of != AlwaysHit && of != FirstHit {
			t.level.Class = of // the array does not stay in the cache
		}
		if t.direct {
			t.of.leaves[0].levels[l.depth] = t.level
			continue
		}
		t.distribute(l)
	}
	for _, p := range l.body {
		if p.inner == nil {
			continue
		}
		for _, u := range p.inner.wild {
			in := u.levels[l.depth+1]
			u.levels[l.depth] = Level{Accesses: l.trips * in.Accesses, Misses: l.trips * in.Misses, Class: in.Class}
		}
		l.wild = append(l.wild, p.inner.wild...)
	}
}

// distribute divides the misses of a touch among the touch's leaves, in proportion to the misses of
// each leaf within the part of the body. No leaf is assigned more misses than it has accesses.
func (t *touch) distribute(l *loop) {
	given, room := 0., 0.
	for _, u := range t.of.leaves {
		in, v := u.levels[l.depth+1], Level{Class: t.level.Class}
		v.Accesses = l.trips * in.Accesses
		if t.of.level.Misses > 0 {
			v.Misses = min(v.Accesses, t.level.Misses*in.Misses/t.of.level.Misses)
		}
		if in.Class == AlwaysHit {
			v.Class = AlwaysHit
		}
		given += v.Misses
		room += v.Accesses - v.Misses
		u.levels[l.depth] = v
	}
	left := t.level.Misses - given
	if room <= 0 || left <= 0 {
		return
	}
	for _, u := range t.of.leaves {
		v := &u.levels[l.depth]
		v.Misses += left * (v.Accesses - v.Misses) / room
	}
}

// countWild computes the misses per access of each wild reference in a separate cache, which only wild
// references use.
func (a *analysis) countWild(n *loops.Nest, c misses.Cache) {
	list := n.Clone()
	if list.Items = onlyWild(list.Items); len(list.Items) == 0 {
		return
	}
	t, err := list.Build()
	if err != nil {
		return
	}
	counted, err := misses.Run(t, c)
	if err != nil {
		return
	}
	for i, r := range t.References() {
		n := counted.Refs[i]
		if n.Accesses == 0 {
			continue
		}
		v := Level{Accesses: 1, Misses: float64(n.Misses) / float64(n.Accesses)}
		switch {
		case n.Misses == n.Accesses:
			v.Class = AlwaysMiss
		case n.Misses == 0:
			v.Class = AlwaysHit
		case n.Misses == n.Cold:
			v.Class = FirstMiss
		case n.Full < n.Misses/2:
			v.Class = ConfMiss
		default:
			v.Class = CapMiss
		}
		a.wild[r] = v
	}
}

// onlyWild returns a copy of the items that contains only the wild references.
func onlyWild(items []loops.Item) (list []loops.Item) {
	for _, it := range items {
		if it.IsLoop() {
			if it.Body = onlyWild(it.Body); len(it.Body) > 0 {
				list = append(list, it)
			}
		} else if it.Wild && it.Ref.Kind.IsReference() {
			list = append(list, it)
		}
	}
	return list
}
