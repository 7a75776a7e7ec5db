package diagnose

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/pipeline"
)

// The nests on which changes are tried are those with the largest waits; smaller ones are
// not worth a change.
const (
	mostTried   = 4
	leastWait   = 0.02 // of the run's cycles
	mostChanges = 6    // of each search that are counted in every level
	mostSplit   = 8    // arrays
)

// trial is a change of a nest, and what came of it.
type trial struct {
	change        change.Change
	sunk          bool // statements beside the inner loop were moved into it first
	before, after []float64
	saved         float64 // cycles
}

// nests tries changes on the nests that wait most, and adds the best of each as a finding.
func (r *run) nests() {
	if r.loops == nil || r.loops.Nests == 0 || r.p.State.Partial {
		return
	}
	counted := loopcount.Count(r.loops, r.Machine.Levels, r.GoOn)
	if counted == nil {
		return
	}
	type candidate struct {
		loop  int
		waits []float64 // by level that misses
		sum   float64
	}
	var list []candidate
	for i := range r.loops.Loops {
		l := &r.loops.Loops[i]
		if l.Depth > 0 {
			continue
		}
		c := candidate{loop: i, waits: r.nestWaits(i, counted)}
		for _, cycles := range c.waits {
			c.sum += cycles
		}
		if c.sum+r.nestCycles(i) > leastWait*r.out.Cycles {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.sum, a.sum) })
	for _, c := range list[:min(len(list), mostTried)] {
		if !r.GoOn() {
			return
		}
		r.nest(c.loop, c.waits, c.sum, counted)
	}
}

// nestWaits are the cycles that a loop waits, by level that misses: its misses, counted
// exactly, at what the places in it wait for a line.
func (r *run) nestWaits(loop int, counted *loopcount.Misses) []float64 {
	waits := make([]float64, len(r.cost.levels))
	for k := range waits {
		cycles, lines := 0.0, 0.0
		for _, at := range r.placesOf(loop) {
			free := 1 - r.taken[at]
			for _, i := range at.sites {
				cycles += free * r.cost.site[i][k]
				lines += r.cost.fetches(i)[k]
			}
		}
		own := lines
		if m := counted.Levels[k]; m.Result != nil {
			own = float64(m.ByLoop[loop].Misses)
			if k+1 < len(counted.Levels) && counted.Levels[k+1].Result != nil {
				own = max(0, own-float64(counted.Levels[k+1].ByLoop[loop].Misses))
			}
		}
		waits[k] = cycles * min(1, share(own, lines))
	}
	return waits
}

// nest tries changes on a nest.
func (r *run) nest(loop int, waits []float64, wait float64, counted *loopcount.Misses) {
	l := r.loops
	t, err := loopcount.NewTrial(l, l.Loops[loop].Nest)
	if err != nil { // it has irregular references
		return
	}
	names := t.Names()
	worst := 0
	for k := range waits {
		if waits[k] > waits[worst] {
			worst = k
		}
	}
	var tried []trial
	try := func(n *loops.Nest, sunk bool, by change.Change) {
		if out := r.try(n, sunk, by, waits, loop); out != nil {
			tried = append(tried, *out)
		}
	}
	if cache, ok := loopcount.CacheOf(r.Machine.Levels[worst]); ok && wait > leastWait*r.out.Cycles {
		found, _, _ := change.Search(t.Nest, cache, mostChanges, r.GoOn)
		for _, o := range found {
			try(t.Nest, false, o.Change)
		}
	}
	for _, of := range sinkable(t.Nest) {
		try(of.nest, true, change.Interchange{Outer: of.path, Below: 1})
	}
	for _, a := range change.Arrays(t.Nest)[:min(mostSplit, len(change.Arrays(t.Nest)))] {
		try(t.Nest, false, change.Split{Array: a.First})
	}
	best := -1
	for i := range tried {
		if best < 0 || tried[i].saved*ease(tried[i].change) > tried[best].saved*ease(tried[best].change) {
			best = i
		}
	}
	for _, of := range r.placesOf(loop) {
		r.tried[of] = true
	}
	if best < 0 || tried[best].saved < Least*r.out.Cycles {
		return
	}
	b := &tried[best]
	at := r.placeOf(loop)
	if at == nil {
		return
	}
	kind := kindOf(b.change)
	if kind == Stride && r.strideWords(loop) == "" { // the order of loops only brings uses of the same data together
		kind = Capacity
	}
	f := Finding{Kind: kind, Cost: wait + r.nestRecurrence(loop, b.change), Saved: b.saved, Before: b.before, After: b.after, Tried: true, IllegalIf: b.change.Illegal(),
		Fix:  b.change.Words(names),
		How:  "The change was made on the recorded loops, and the misses of every level were counted again.",
		More: "loops --propose 5"}
	if b.sunk {
		f.Fix = "move the statements beside the inner loop into it, then " + f.Fix
	}
	if r.nestRecurrence(loop, b.change) > 0 {
		f.How += " The sum no longer waits for the one before, so the loop takes what its ports need."
	}
	f.Why = r.why(f.Kind, loop, worst, counted)
	for _, of := range r.placesOf(loop) {
		r.taken[of] = 1
	}
	r.add(at, f)
}

// try makes a change, and counts the misses in every level before and after; nil: it does
// not apply or saves nothing.
func (r *run) try(n *loops.Nest, sunk bool, by change.Change, waits []float64, loop int) *trial {
	if repeats(n, by) {
		return nil
	}
	out := &trial{change: by, sunk: sunk}
	for _, level := range r.Machine.Levels {
		cache, ok := loopcount.CacheOf(level)
		if !ok {
			return nil
		}
		o, err := change.Try(n, cache, r.GoOn, by)
		if err != nil {
			return nil
		}
		out.before, out.after = append(out.before, float64(o.Before)), append(out.after, float64(o.After))
	}
	for k := range waits {
		before, after := out.before[k], out.after[k]
		if k+1 < len(out.before) {
			before, after = max(0, before-out.before[k+1]), max(0, after-out.after[k+1])
		}
		if before > 0 {
			out.saved += waits[k] * (1 - after/before)
		}
	}
	out.saved += r.nestRecurrence(loop, by)
	return out
}

// repeats reports whether a change of order is of a loop in which no address changes: it
// repeats the same work, as time steps do, and an iteration mostly needs all of the one
// before.
func repeats(n *loops.Nest, by change.Change) bool {
	var outer change.Path
	switch c := by.(type) {
	case change.Interchange:
		outer = c.Outer
	case change.Tile:
		outer = c.Outer
	default:
		return false
	}
	l, depth := outer.Loop(n), len(outer)-1
	if l == nil {
		return false
	}
	moves := false
	var look func(items []loops.Item)
	look = func(items []loops.Item) {
		for i := range items {
			if items[i].IsLoop() {
				look(items[i].Body)
			}
			moves = moves || depth < len(items[i].Steps) && items[i].Steps[depth] != 0
		}
	}
	look(l.Body)
	return !moves
}

// nestRecurrence is how many cycles a loop no longer waits for results of its own last iteration
// once another loop is innermost.
func (r *run) nestRecurrence(loop int, by change.Change) (saved float64) {
	if _, ok := by.(change.Interchange); !ok || r.cost.program == nil || r.strideWords(loop) == "" {
		return 0
	}
	for _, b := range r.blocksOf(loop) {
		saved += r.recurrence(b)
	}
	return saved
}

// nestCycles are the cycles of the blocks of a loop without waits.
func (r *run) nestCycles(loop int) (cycles float64) {
	for _, b := range r.blocksOf(loop) {
		cycles += r.cost.hits.Blocks[b].Cycles
	}
	return cycles
}

// blocksOf are the blocks with references of a loop.
func (r *run) blocksOf(loop int) (list []int) {
	if r.cost.program == nil {
		return nil
	}
	for _, ref := range r.loops.Refs(loop) {
		s := r.loops.Place(ref)
		if s == nil {
			continue
		}
		for b := range r.cost.program.Blocks {
			k := &r.cost.program.Blocks[b]
			if s.Number >= k.FirstSite && s.Number < k.FirstSite+k.Sites && !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
	}
	return list
}

// recurrence is how many cycles a block waits for results of the iteration before, beyond
// what its ports and the width of the core need.
func (r *run) recurrence(b int) float64 {
	t := &r.cost.hits.Blocks[b]
	if t.Bottleneck != pipeline.Recurrence || t.Steady.Cycles <= 0 {
		return 0
	}
	other := max(t.Steady.Ports, t.Steady.Dispatch, t.Steady.Transfers)
	return t.Cycles * (1 - min(1, other/t.Steady.Cycles))
}

// ease weighs the saving of a change, so that of two that save about as much the one that is
// less work, and more often allowed, is the finding.
func ease(c change.Change) float64 {
	switch c.(type) {
	case change.Interchange:
		return 1.15
	case change.Pad, change.Align:
		return 1.1
	case change.Fuse:
		return 1.05
	case change.Records, change.Split:
		return 1.02
	}
	return 1
}

func kindOf(c change.Change) Kind {
	switch c.(type) {
	case change.Interchange:
		return Stride
	case change.Pad:
		return Conflict
	case change.Align:
		return Alignment
	case change.Fuse:
		return Fusion
	case change.Records, change.Split:
		return Layout
	}
	return Capacity
}

// why says what happens in a loop.
func (r *run) why(kind Kind, loop, level int, counted *loopcount.Misses) string {
	name := r.Machine.Levels[level].Name
	counts := ""
	if m := counted.Levels[level]; m.Result != nil {
		c := m.ByLoop[loop]
		counts = ratio(c.Misses, c.Accesses) + " of the accesses in this loop miss in " + name
		switch {
		case c.Misses == 0:
		case kind == Conflict && c.Conflict() > 0:
			counts += "; " + ratio(uint64(c.Conflict()), c.Misses) + " of these would hit if the cache had no sets: lines that are used together share few of them"
		case kind == Capacity:
			counts += ", because the loop comes back to its data after " + name + " has replaced them"
		case kind == Fusion:
			counts += ", because the second loop reads again what the first one has just used, after " + name + " has replaced it"
		}
	}
	if kind == Stride {
		if text := r.strideWords(loop); text != "" {
			return text + "; " + counts
		}
	}
	return counts
}

// strideWords says how the array that goes furthest moves.
func (r *run) strideWords(nest int) string {
	end := r.loops.Loops[nest].End
	for loop := end - 1; loop >= nest; loop-- {
		a := strided(r.loops.Arrays(loop), int64(r.loops.LineBytes))
		if a == nil {
			continue
		}
		name := a.Name
		if name == "" {
			name = "an array"
		}
		last := a.Strides[len(a.Strides)-1]
		return name + " moves " + bytesOf(magnitude(last)) + " in each iteration of the innermost loop, so each access is to another line"
	}
	return ""
}

// sunkNest is a nest in which a loop with statements beside its inner loop has them in it.
type sunkNest struct {
	nest *loops.Nest
	path change.Path
}

// sinkable finds loops whose body is one loop and leaves beside it, and moves these into it:
// as code does that adds to memory in each iteration instead of to a register. The addresses
// of the leaves do not change in the inner loop.
func sinkable(n *loops.Nest) (list []sunkNest) {
	var walk func(items []loops.Item, path change.Path)
	walk = func(items []loops.Item, path change.Path) {
		number := 0
		for i := range items {
			if !items[i].IsLoop() {
				continue
			}
			here := append(slices.Clone(path), number)
			number++
			inner := -1
			leaves, fits := 0, true
			for j := range items[i].Body {
				switch of := &items[i].Body[j]; {
				case !of.IsLoop():
					leaves++
				case inner >= 0:
					fits = false
				default:
					inner = j
				}
			}
			if inner >= 0 && fits && leaves > 0 && len(here) <= mostDeep && !hasLoop(items[i].Body[inner].Body) {
				clone := n.Clone()
				sink(here.Loop(clone), len(here))
				list = append(list, sunkNest{clone, here})
			}
			walk(items[i].Body, here)
		}
	}
	walk(n.Items, nil)
	return list
}

// mostDeep is how many loops may be around one that is exchanged.
const mostDeep = 8

func hasLoop(items []loops.Item) bool {
	return slices.ContainsFunc(items, func(it loops.Item) bool { return it.IsLoop() })
}

// sink moves the leaves of a loop's body into its inner loop; depth is the number of loops
// around them.
func sink(loop *loops.Item, depth int) {
	var before, after, body []loops.Item
	at := slices.IndexFunc(loop.Body, func(it loops.Item) bool { return it.IsLoop() })
	for i, it := range loop.Body {
		if i == at {
			continue
		}
		for len(it.Steps) < depth {
			it.Steps = append(it.Steps, 0)
		}
		it.Steps = append(it.Steps, 0)
		if i < at {
			before = append(before, it)
		} else {
			after = append(after, it)
		}
	}
	inner := loop.Body[at]
	body = append(before, inner.Body...)
	inner.Body = append(body, after...)
	loop.Body = []loops.Item{inner}
}
