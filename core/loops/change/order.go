package change

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
)

// chain returns the loop at a path and the loops nested in it, down to the given number of levels.
// Each loop must be the only item of the surrounding loop, apart from block entries. Otherwise, the
// result "why" contains the reason.
func chain(n *loops.Nest, at Path, levels int) (list []*loops.Item, why string) {
	outer := at.Loop(n)
	if outer == nil {
		return nil, "there is no loop " + at.String()
	}
	list = []*loops.Item{outer}
	for range levels {
		l := list[len(list)-1]
		next := soleItem(l.Body)
		if next < 0 {
			return nil, "a loop contains code outside the next inner loop, so the change would make this code run more or less often"
		}
		if !l.Body[next].IsLoop() {
			return nil, "there are not enough nested loops"
		}
		list = append(list, &l.Body[next])
	}
	return list, ""
}

// checkRectangular returns "" if no trip count in a chain depends on another loop of the chain.
// Otherwise, it returns the reason why the change does not apply.
func checkRectangular(list []*loops.Item, depth int) (why string) {
	for i, l := range list {
		for d := range i {
			if by := stepAt(l, depth+d); by != 0 {
				return "the trip count of a loop changes by " + strconv.FormatInt(by, 10) + " with each iteration of an outer loop: the nest is not rectangular"
			}
		}
	}
	return ""
}

func wildBelow(items []loops.Item) map[loops.Reference]bool {
	wild := map[loops.Reference]bool{}
	eachBelow(items, func(it *loops.Item) {
		if it.Wild {
			wild[it.Ref] = true
		}
	})
	return wild
}

const irregular = "the order of irregular references would change, but their addresses are known only in the order of the trace"

// Interchange exchanges two loops of a nest. The loops must be perfectly nested: the outer loop,
// and each loop between the two, must contain only the next inner loop.
type Interchange struct {
	Outer Path
	Below int // number of levels from the outer loop to the inner loop, at least 1
}

// illegalOrder describes the condition under which a different order of iterations is illegal.
const illegalOrder = "an iteration needs a value that another iteration stores, which the new order would store too late"

// Illegal implements [Change].
func (Interchange) Illegal() string {
	return illegalOrder
}

// Words implements [Change].
func (c Interchange) Words(names Names) string {
	outer, inner := names.loop(c.Outer), names.loop(descendant(c.Outer, c.Below))
	if inner == outer { // both loops are on the same source line, or the inner loop belongs to a function that was inlined
		return "interchange " + inner + " and a loop around it"
	}
	return "interchange " + outer + " and " + inner
}

// descendant returns the path of the first loop at the given nesting depth inside loop p.
func descendant(p Path, levels int) Path {
	return append(p[:len(p):len(p)], make(Path, levels)...)
}

// Apply implements [Change].
func (c Interchange) Apply(n *loops.Nest) error {
	if c.Below < 1 {
		return &Error{"interchange", "a loop cannot be interchanged with itself"}
	}
	list, why := chain(n, c.Outer, c.Below)
	depth := len(c.Outer) - 1
	if why == "" {
		why = checkRectangular(list, depth)
	}
	if why == "" && len(wildBelow(list[0].Body)) > 0 {
		why = irregular
	}
	if why != "" {
		return &Error{"interchange", why}
	}
	outer, inner := list[0], list[c.Below]
	// Both trip counts may depend only on loops that surround the two loops.
	around := slices.Clone(inner.Steps)
	inner.Trips, outer.Trips = outer.Trips, inner.Trips
	for d := range max(len(around), depth) {
		setStep(inner, d, 0)
	}
	for d := range depth {
		setStep(inner, d, stepAt(outer, d))
		by := int64(0)
		if d < len(around) {
			by = around[d]
		}
		setStep(outer, d, by)
	}
	eachBelow(outer.Body, func(it *loops.Item) {
		a, b := stepAt(it, depth), stepAt(it, depth+c.Below)
		setStep(it, depth, b)
		setStep(it, depth+c.Below, a)
	})
	trimSteps(outer, depth)
	return nil
}

// eachBelow calls the function "do" for all items of a body, at any depth.
func eachBelow(items []loops.Item, do func(it *loops.Item)) {
	for i := range items {
		do(&items[i])
		eachBelow(items[i].Body, do)
	}
}

// trimSteps removes the steps for loops that do not surround the item. These steps are 0.
func trimSteps(it *loops.Item, depth int) {
	if len(it.Steps) > depth {
		it.Steps = it.Steps[:depth]
	}
	for i := range it.Body {
		trimSteps(&it.Body[i], depth+1)
	}
}

// Tile divides the iterations of directly nested loops into tiles. New loops over the tiles
// surround the tiled loops. If a trip count is not a multiple of the tile size, the last tile is
// smaller.
type Tile struct {
	Outer Path
	// for each loop, beginning with Outer: the trip count within a tile; 0 if the loop is not tiled
	Trips []uint64
}

// Illegal implements [Change].
func (Tile) Illegal() string {
	return illegalOrder
}

// Words implements [Change].
func (c Tile) Words(names Names) string {
	text := ""
	for i, size := range c.Trips {
		if size == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += names.loop(descendant(c.Outer, i)) + " by " + strconv.FormatUint(size, 10)
		if names.Elements != nil {
			if bytes := names.Elements(descendant(c.Outer, i)); bytes > 0 {
				text += " elements (" + strconv.FormatUint(size*bytes, 10) + " bytes)"
			}
		}
	}
	if len(c.Trips) > 0 && c.Trips[0] == 0 {
		text += ", with the loop over the tiles outside " + names.loop(c.Outer)
	}
	return "tile " + text
}

// Apply implements [Change].
func (c Tile) Apply(n *loops.Nest) error {
	refuse := func(why string) error { return &Error{"tiling", why} }
	if len(c.Trips) == 0 || !slices.ContainsFunc(c.Trips, func(trips uint64) bool { return trips != 0 }) {
		return refuse("no tile size is given")
	}
	found, why := chain(n, c.Outer, len(c.Trips)-1)
	depth := len(c.Outer) - 1
	if why == "" {
		why = checkRectangular(found, depth)
	}
	if why == "" && len(found) > 1 && len(wildBelow(found[0].Body)) > 0 {
		why = irregular
	}
	for i := range found {
		for d := range depth {
			if c.Trips[i] != 0 && stepAt(found[i], d) != 0 && why == "" {
				why = "the trip count of a loop changes with each iteration of a loop around the nest, so the number of tiles would change, too"
			}
		}
		if int64(found[i].Trips) <= 0 && why == "" {
			why = "a loop never runs"
		}
	}
	if why != "" {
		return refuse(why)
	}
	before, at, _ := c.Outer.list(n)
	t := tiling{nest: &(*before)[at], sizes: c.Trips, depth: depth}
	trips := make([]uint64, len(found))
	for i, l := range found {
		trips[i] = l.Trips
	}
	after := t.tileLoops(0, nil, make([]uint64, len(found)), trips)
	*before = slices.Concat((*before)[:at], after, (*before)[at+1:])
	return nil
}

// Divides reports whether tiling changes the nest: at least one loop must have more iterations than
// its tile.
func (c Tile) Divides(n *loops.Nest) bool {
	found, _ := chain(n, c.Outer, len(c.Trips)-1)
	for i, l := range found {
		if c.Trips[i] != 0 && c.Trips[i] < l.Trips {
			return true
		}
	}
	return false
}

// tiling builds the loops over the tiles.
type tiling struct {
	nest  *loops.Item
	sizes []uint64
	depth int
}

// tileLoops returns the items that replace loop i of the nest and the loops inside it. The slice
// "tiled" lists the loops before loop i that are divided into tiles. The slices "first" and "trips"
// contain, for each loop before loop i, the first iteration of the tile and the trip count within
// the tile.
func (t *tiling) tileLoops(i int, tiled []int, first, trips []uint64) []loops.Item {
	if i == len(t.sizes) {
		return []loops.Item{t.tileBody(tiled, first, trips)}
	}
	size := t.sizes[i]
	if size == 0 || size >= trips[i] {
		return t.tileLoops(i+1, tiled, first, trips)
	}
	whole, rest := trips[i]/size, trips[i]%size
	within := slices.Clone(trips)
	within[i] = size
	items := []loops.Item{loops.Loop(whole, t.tileLoops(i+1, append(slices.Clone(tiled), i), first, within)...)}
	if rest > 0 {
		begin := slices.Clone(first)
		begin[i] = whole * size
		within[i] = rest
		items = append(items, t.tileLoops(i+1, tiled, begin, within)...)
	}
	return items
}

// tileBody returns the loops of the nest within one tile.
func (t *tiling) tileBody(tiled []int, first, trips []uint64) loops.Item {
	copied := loops.Nest{Items: []loops.Item{*t.nest}}
	nest := &copied.Clone().Items[0]
	l := nest
	for i := range trips {
		l.Trips = trips[i]
		if i < len(trips)-1 {
			l = &l.Body[soleItem(l.Body)]
		}
	}
	var change func(it *loops.Item, loop int)
	change = func(it *loops.Item, loop int) {
		if loop >= len(trips) || !it.IsLoop() {
			for i, begin := range first {
				by := begin * uint64(stepAt(it, t.depth+i))
				if it.IsLoop() {
					it.Trips += by
				} else {
					it.Addr += by
				}
			}
		}
		if len(it.Steps) > t.depth {
			over := make([]int64, len(tiled))
			for j, i := range tiled {
				over[j] = stepAt(it, t.depth+i) * int64(t.sizes[i])
			}
			it.Steps = slices.Insert(it.Steps, t.depth, over...)
		}
		for i := range it.Body {
			change(&it.Body[i], loop+1)
		}
	}
	change(nest, 0)
	return *nest
}

// Fuse merges neighbouring loops: each iteration of the merged loop consists of one iteration of
// each original loop. If one loop has a few more iterations, a separate loop executes them
// afterwards. If the compiler unrolled the loops by different factors, the merged loop alternates
// between groups of iterations that cover the same data.
type Fuse struct {
	First Path // path of the first loop; the second loop is the next loop in the same list
	More  int  // number of fused loops after the second loop
}

// Pairs returns a list of fusions that together fuse all loops. Each of these fusions merges two
// loops.
func (c Fuse) Pairs() []Fuse {
	return slices.Repeat([]Fuse{{First: c.First}}, c.More+1)
}

// Loop returns the path of one of the fused loops, given its number, counted from 0.
func (c Fuse) Loop(number int) Path {
	p := slices.Clone(c.First)
	if len(p) > 0 {
		p[len(p)-1] += number
	}
	return p
}

// Illegal implements [Change].
func (Fuse) Illegal() string {
	return "iteration i of the second loop needs a value that the first loop stores in a later iteration, such as b[i+1], or overwrites a value that the first loop still needs"
}

// Words implements [Change].
func (c Fuse) Words(names Names) string {
	text := "fuse " + names.loop(c.First) + " with "
	for i := 1; i <= c.More+1; i++ {
		switch {
		case i > 1 && i == c.More+1:
			text += " and "
		case i > 1:
			text += ", "
		}
		text += names.loop(c.Loop(i))
	}
	return text
}

// Apply implements [Change].
func (c Fuse) Apply(n *loops.Nest) error {
	fused := n.Clone() // modify a copy: if one of the loops cannot be fused, n must stay unchanged
	for _, pair := range c.Pairs() {
		if err := pair.fuse(fused); err != nil {
			return err
		}
	}
	n.Items = fused.Items
	return nil
}

// fuse merges the first loop with the next loop.
func (c Fuse) fuse(n *loops.Nest) error {
	refuse := func(why string) error { return &Error{"fusing", why} }
	first := c.First.Loop(n)
	if first == nil {
		return refuse("there is no loop " + c.First.String())
	}
	list, at, _ := c.First.list(n)
	next := at + 1
	for next < len(*list) && isEvent(&(*list)[next]) {
		next++
	}
	if next == len(*list) || !(*list)[next].IsLoop() {
		return refuse("no loop directly follows loop " + c.First.String())
	}
	second := &(*list)[next]
	same := first.Trips == second.Trips
	for d := range len(c.First) - 1 {
		same = same && stepAt(first, d) == stepAt(second, d)
	}
	turns := uint64(0) // trip count of the merged loop; 0 if both loops have equal trip counts
	if !same {
		turns = commonTurns(first, second, len(c.First)-1)
	}
	rest := Rest(first, second)
	if !same && turns == 0 && rest == 0 {
		return refuse("the trip counts of the two loops differ: " + strconv.FormatUint(first.Trips, 10) + " and " + strconv.FormatUint(second.Trips, 10) + " in their first executions")
	}
	other := wildBelow(second.Body)
	for r := range wildBelow(first.Body) {
		if other[r] {
			return refuse(irregular)
		}
	}
	var last []loops.Item // the remaining iterations of the longer loop
	if !same && turns == 0 {
		longer := first
		if second.Trips > first.Trips {
			longer = second
		}
		end := *longer
		end.Trips, end.Body = rest, nil
		for i := range longer.Body {
			it := leafInIteration(longer, &longer.Body[i], len(c.First)-1, false, longer.Trips-rest)
			it.Steps = longer.Body[i].Steps
			end.Body = append(end.Body, it)
		}
		last, first.Trips = []loops.Item{end}, min(first.Trips, second.Trips)
	}
	if turns > 0 {
		both := loops.Loop(turns, turnLoop(first, turns, len(c.First)-1), turnLoop(second, turns, len(c.First)-1))
		*first = both
	} else {
		first.Body = slices.Concat(first.Body, second.Body)
	}
	// block entries between the two loops are kept
	*list = slices.Replace(slices.Clone(*list), next, next+1, last...)
	return nil
}

// Rest returns the difference between the trip counts of two innermost loops, if both trip counts
// are constant and differ only slightly, and 0 otherwise.
func Rest(a, b *loops.Item) uint64 {
	least, most := min(a.Trips, b.Trips), max(a.Trips, b.Trips)
	for _, l := range []*loops.Item{a, b} {
		if !isInnermost(l) || int64(l.Trips) <= 0 || slices.ContainsFunc(l.Steps, func(s int64) bool { return s != 0 }) {
			return 0
		}
	}
	if most-least > maxRest || most-least > least/8 {
		return 0
	}
	return most - least
}

// maxRest is the maximum difference between the trip counts of fused loops.
const maxRest = 64

// maxUnrolled is the maximum number of iterations per turn.
const maxUnrolled = 16

// commonTurns divides two loops with different trip counts into turns, so that both loops cover the
// same bytes in each turn. It returns the number of turns, or 0 if the loops cannot be divided in
// this way. The argument "depth" is the number of loops around the two loops.
func commonTurns(first, second *loops.Item, depth int) uint64 {
	for _, l := range []*loops.Item{first, second} {
		if slices.ContainsFunc(l.Steps, func(s int64) bool { return s != 0 }) || int64(l.Trips) <= 0 || slices.ContainsFunc(l.Body, func(it loops.Item) bool { return it.IsLoop() }) {
			return 0
		}
	}
	turns := gcd(first.Trips, second.Trips)
	a, b := first.Trips/turns, second.Trips/turns
	if max(a, b) > maxUnrolled {
		return 0
	}
	stepsOf := func(l *loops.Item) (steps []int64) {
		for i := range l.Body {
			if it := &l.Body[i]; !isEvent(it) && stepAt(it, depth) != 0 {
				steps = append(steps, stepAt(it, depth))
			}
		}
		slices.Sort(steps)
		return slices.Compact(steps)
	}
	for _, x := range stepsOf(first) {
		for _, y := range stepsOf(second) {
			if x*int64(a) == y*int64(b) {
				return turns
			}
		}
	}
	return 0
}

// turnLoop returns an inner loop that executes the iterations of a loop within one turn.
func turnLoop(l *loops.Item, turns uint64, depth int) loops.Item {
	part := *l
	part.Trips /= turns
	part.Steps = nil
	part.Body = slices.Clone(l.Body)
	for i := range part.Body {
		it := &part.Body[i]
		it.Steps = slices.Clone(it.Steps)
		for len(it.Steps) <= depth {
			it.Steps = append(it.Steps, 0)
		}
		it.Steps = slices.Insert(it.Steps, depth, it.Steps[depth]*int64(part.Trips))
	}
	return part
}
