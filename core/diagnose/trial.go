package diagnose

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/parallel"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/trace"
)

// Changes are tried only on the nests with the largest waits. Changes to other nests would not be
// worth the effort.
const (
	mostTried   = 4
	leastWait   = 0.02 // waits, as a share of the run's cycles
	mostChanges = 6    // maximum number of changes in a search whose misses are counted in every level
	mostSplit   = 8    // number of arrays to split
)

// trial is a change of a nest, and its effects.
type trial struct {
	change        change.Change
	nest          *loops.Nest // the nest before the change
	sunk          bool        // statements beside the inner loop were moved into it first
	before, after []float64
	saved         float64 // number of cycles saved
	// number of consecutive runs of a nest that the change affects together; 0 if the change affects a
	// single run
	runs      uint64
	unchained bool    // the saving does not include a shorter chain of results or vector instructions
	vector    float64 // part of saved: cycles saved by vector instructions
	fetched   float64 // part of saved: cycles that the nest waits less for lines and address translation
	level     int     // level whose misses account for most of the saved cycles
}

// nests tries changes on the nests that wait longest, and adds the best change of each nest as a
// finding.
func (r *run) nests() {
	if r.loops == nil || r.loops.Nests == 0 || r.p.State.Partial {
		return
	}
	if !slices.ContainsFunc(r.inLoops(), func(level []inLoop) bool { return level != nil }) {
		return
	}
	// Copies of a loop that the compiler made have their largest waits at the same source location.
	byPlace := map[*place]*group{}
	var list []*group
	for i := range r.loops.Loops {
		if r.loops.Loops[i].Depth > 0 {
			continue
		}
		at := r.placeOf(i)
		if at == nil {
			continue
		}
		g := byPlace[at]
		if g == nil {
			g = &group{at: at, waits: make([]float64, len(r.cost.levels))}
			byPlace[at] = g
			list = append(list, g)
		}
		waits, sum := r.nestWaits(i), 0.0
		for k := range waits {
			g.waits[k] += waits[k]
			sum += waits[k]
		}
		g.loops = append(g.loops, i)
		for _, of := range r.placesOf(i) {
			r.swept[of] += r.loops.Loops[i].Runs
		}
		g.wait += sum
		g.cycles += r.nestCycles(i)
		if sum > g.most || len(g.loops) == 1 {
			g.most, g.largest = sum, i
		}
	}
	slices.SortStableFunc(list, func(a, b *group) int { return cmp.Compare(b.wait+b.cycles, a.wait+a.cycles) })
	var levels []int
	for _, g := range list[:min(mostTried, len(list))] {
		if _, err := r.trialOf(g.largest); err == nil && !r.explained(g) && g.wait+g.cycles >= leastWait*r.out.Cycles {
			if worst := worstOf(g.waits); r.mayConflict(g.largest, worst) {
				levels = append(levels, worst)
			}
		}
	}
	r.countConflicts(levels)
	for i, g := range list {
		if r.explained(g) {
			continue
		}
		if i == mostTried || g.wait+g.cycles < leastWait*r.out.Cycles || !r.GoOn() {
			break
		}
		r.nest(g)
	}
	r.neighbours(byPlace)
}

// explained reports whether other findings account for the waits of a group of loops. A loop that
// waits for lines from other threads may also wait for other lines, and another order of the loops
// may help in both cases.
func (r *run) explained(g *group) bool {
	return r.taken[g.at] > 0.5 && g.wait < leastWait*r.out.Cycles
}

// neighbours tries to fuse consecutive nests.
func (r *run) neighbours(byPlace map[*place]*group) {
	l := r.loops
	var order []int
	for i := range l.Loops {
		if l.Loops[i].Depth == 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(l.Loops[a].First, l.Loops[b].First) })
	order, end := r.withoutRests(order)
	fused := map[[2]*place]bool{}
	ends := map[*place]int{} // findings by the last loop that they fuse
	took := map[*place]float64{}
	for i := 1; i < len(order) && len(fused) < mostTried; i++ {
		a, b := &l.Loops[order[i-1]], &l.Loops[order[i]]
		first, second := r.placeOf(order[i-1]), r.placeOf(order[i])
		if b.First-end[i-1] > mostBetween || first == nil || second == nil || first == second && !r.inlinedTwice(order[i-1], order[i]) || first.function == second.function && first.file == second.file && first.line > second.line || first.stores > 0.9*first.wait || first != second && fused[[2]*place{first, second}] {
			continue
		}
		g := &group{at: second, waits: make([]float64, len(r.cost.levels)), largest: order[i]}
		references := uint64(0)
		both := [][]int{byPlace[first].loops, byPlace[second].loops}
		if first == second {
			both = [][]int{order[i-1 : i+1]}
		}
		for _, list := range both {
			for _, loop := range list {
				g.loops = append(g.loops, loop)
				for k, cycles := range r.nestWaits(loop) {
					g.waits[k] += cycles
					g.wait += cycles
				}
				g.cycles += r.nestCycles(loop)
				references += l.Loops[loop].References
			}
		}
		// some loops may differ, for example because the last of many runs is shorter
		if representative*(a.References+b.References) < references {
			continue
		}
		if _, more := ends[first]; !more && g.wait < leastWait*r.out.Cycles {
			continue
		}
		r.average(g, order[i-1], order[i])
		t, err := r.trialOf(order[i-1])
		if err != nil {
			continue
		}
		next, err := r.trialOf(order[i])
		if err != nil {
			continue
		}
		fused[[2]*place{first, second}] = true
		n := t.Nest.Clone()
		n.Items = append(n.Items, next.Nest.Clone().Items...)
		by := change.Fuse{First: change.Path{0}}
		o := r.try(n, false, by, g)
		if o == nil || o.saved < Least*r.out.Cycles || o.missesFew() {
			continue
		}
		for _, at := range []*place{first, second} {
			took[at] = max(took[at], share(o.saved, g.wait))
			r.fused[at] = len(r.out.Findings)
			if i, ok := ends[first]; ok {
				r.fused[at] = i
			}
		}
		if i, ok := ends[first]; ok { // extend the finding by a third loop, and so on
			f := &r.out.Findings[i]
			f.Saved, f.Least, f.Most, f.Cost = f.Saved+o.saved, f.Least+o.saved, f.Most+o.saved, max(f.Cost, g.wait)
			for k := range f.Before {
				f.Before[k], f.After[k] = f.Before[k]+o.before[k], f.After[k]+o.after[k]
			}
			if f.Fix += ", and with the next loop, " + second.source(); first == second {
				f.Fix = fuseInlined
			}
			ends[second] = i
			continue
		}
		ends[second] = len(r.out.Findings)
		fix := strings.TrimSuffix(fuseWith+first.source(), ", ")
		if first == second {
			fix = fuseInlined
		}
		r.add(second, Finding{Kind: Fusion, Cost: g.wait, Saved: o.saved, Before: o.before, After: o.after, Tried: true,
			Why:       r.why(Fusion, order[i], o.level),
			Fix:       fix,
			How:       r.recounted(o.nest),
			IllegalIf: by.Illegal() + r.storedIn(order[i-1], by), More: r.listing(order[i])})
	}
	// The waits are marked as taken only after the loop, because a third fused loop saves waits of
	// its own.
	for at, part := range took {
		r.taken[at] = max(r.taken[at], part)
	}
}

// withoutRests removes nests that only perform the last iterations of the previous nest, for which
// the compiler has generated a separate loop. For each remaining nest, the result end contains the
// node at which the nest begins or, if the nest's last iterations were removed, the node at which
// these iterations begin.
func (r *run) withoutRests(order []int) (list, end []int) {
	for _, loop := range order {
		first, last := r.loops.Loops[loop].First, len(list)-1
		if last >= 0 && first-end[last] <= mostBetween {
			both := r.loops.Nest(r.loops.Loops[list[last]].Nest).Clone()
			both.Items = append(both.Items, r.loops.Nest(r.loops.Loops[loop].Nest).Items...)
			if len(change.Roll(both, loopcount.CodeOf(r.loops)).Nest.Items) == 1 {
				end[last] = first
				continue
			}
		}
		list, end = append(list, loop), append(end, first)
	}
	return list, end
}

// fuseWith begins the advice to fuse two loops.
const fuseWith = "fuse this loop with the previous loop, "

// fuseInlined is the advice to fuse a loop with itself.
const fuseInlined = "several inlined copies of this loop iterate over the same data in turn: fuse the copies into one loop that does the work of all"

// inlinedTwice reports whether two loops at the same source line are different code for the same
// data, for example in a function template that was inlined for two calls. In contrast, a loop that
// runs twice is the same code or, if the compiler unrolled the loop around it, code with the same
// operations. The remainder of an unrolled loop processes different data.
func (r *run) inlinedTwice(first, second int) bool {
	l, top := r.loops, change.Path{0}
	a, b := top.Loop(l.Nest(l.Loops[first].Nest)), top.Loop(l.Nest(l.Loops[second].Nest))
	return a != nil && b != nil && r.differ(a, b) && copies(a, b, 0)
}

// differ reports whether two loops have different operations.
func (r *run) differ(a, b *loops.Item) bool {
	return r.cost.program != nil && !slices.Equal(r.operations(a), r.operations(b))
}

// copies does the same as [run.inlinedTwice] for two loops of a nest. The parameter depth is the
// number of loops around each of the two loops. One of the two loops may be unrolled further than
// the other loop.
func copies(a, b *loops.Item, depth int) (same bool) {
	before := leavesOf(a.Body)
	for _, it := range leavesOf(b.Body) {
		for _, of := range before {
			if of.Ref.Site == it.Ref.Site {
				return false
			}
			same = same || of.Addr == it.Addr && of.Step(depth) != 0 && of.Step(depth)*int64(a.Trips) == it.Step(depth)*int64(b.Trips)
		}
	}
	return same
}

// operations returns the kinds of operations that a loop performs on data. It omits operations that
// count iterations or compute addresses.
func (r *run) operations(l *loops.Item) (list []string) {
	for _, it := range leavesOf(l.Body) {
		s := r.loops.Place(it.Ref)
		for b := range r.cost.program.Blocks {
			if k := &r.cost.program.Blocks[b]; s != nil && s.Number >= k.FirstSite && s.Number < k.FirstSite+k.Sites {
				for _, i := range k.Instrs {
					if !strings.Contains(" load store getelementptr add or icmp br phi ", " "+i.Opcode+" ") {
						list = append(list, i.Opcode)
					}
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// The nests on which a change is tried represent all nests at the same source locations if they
// make at least 1/representative of the references of all these nests.
const representative = 32

// mostBetween is the largest distance between neighbouring loops, in nodes of the loop-compressed
// trace. A few references, and iterations that the compiler peeled off or left, may lie between the
// loops.
const mostBetween = 32

// group contains nests whose largest waits are at the same source location. Changes are tried on
// the nest that waits longest. The other nests are assumed to gain the same share of their waits.
type group struct {
	at       *place
	loops    []int
	largest  int       // the nest that waits longest
	most     float64   // the waits of that nest
	waits    []float64 // waits of all nests, by the level that misses
	wait     float64   // the sum of waits
	cycles   float64   // cycles without waits
	pages    float64   // cycles that the nests wait for address translation
	perRun   []float64 // number of lines fetched from below each level in one run of the nest on which changes are tried; -1 if unknown
	repeated float64   // number of runs of that nest in the code on which changes are tried
	times    float64   // number of runs of all nests in the group
	strided  bool      // whether an array advances by whole lines in the innermost loop
}

// sunkTile is the minimum tile size for a loop that has other statements beside it.
const sunkTile = 128

// withLarger returns a change and, if the change divides a single loop into tiles, the same change
// with larger tiles. Small tiles may have fewer misses, but enter the loop inside the tiles more
// often.
func withLarger(by change.Change) []change.Change {
	list := []change.Change{by}
	tile, ok := by.(change.Tile)
	if !ok {
		return list
	}
	at := slices.IndexFunc(tile.Trips, func(trips uint64) bool { return trips > 0 })
	if at < 0 || slices.ContainsFunc(tile.Trips[at+1:], func(trips uint64) bool { return trips > 0 }) {
		return list
	}
	for _, times := range []uint64{4, 16} {
		larger := tile
		larger.Trips = slices.Clone(tile.Trips)
		larger.Trips[at] *= times
		list = append(list, larger)
	}
	return list
}

// trialOf returns the trial of the nest of a loop. The error is a [*change.Error].
func (r *run) trialOf(loop int) (*loopcount.Trial, error) {
	nest := r.loops.Loops[loop].Nest
	t, ok := r.trials[nest]
	if !ok {
		if t.Trial, t.err = loopcount.NewTrial(r.loops, nest); t.err == nil {
			t.Rolled = r.rollNest(nest)
		}
		r.trials[nest] = t
	}
	return t.Trial, t.err
}

// nestTrial is the result of [loopcount.NewTrial] for a nest.
type nestTrial struct {
	*loopcount.Trial
	err error
}

// source describes the source code of a reference in a loop that the compiler unrolled.
type source struct {
	head   uint32 // the reference that represents all of its copies in the rolled nest
	copies uint64
}

// rollNest returns a nest as it is in the source. The nest is given by its number.
func (r *run) rollNest(nest int) *change.Rolled {
	if of, ok := r.rolled[nest]; ok {
		return of
	}
	n := r.loops.Nest(nest)
	of := change.Roll(n, loopcount.CodeOf(r.loops))
	r.rolled[nest] = of
	for _, it := range leavesOf(n.Items) {
		r.sources[it.Ref.Site] = source{of.Head(it.Ref).Site, of.Copies(it.Ref)}
	}
	return of
}

// copies returns the number of source iterations in each iteration of the compiled loop around a
// reference.
func (r *run) copies(site uint32) uint64 { return max(1, r.sources[site].copies) }

// leftOf returns the shares of a source location's waits for which no finding accounts yet. The
// result exchanged is the share of the waits for lines from other threads, and the result others is
// the share of all other waits. Findings account for the waits for other threads first.
func (r *run) leftOf(at *place) (exchanged, others float64) {
	taken := r.taken[at] * at.wait
	exchanged = 1 - min(1, share(taken, at.coherence))
	others = 1 - min(1, share(max(0, taken-at.coherence), at.wait-at.coherence))
	return exchanged, others
}

// nestWaits returns the cycles that a loop waits, by the level that misses. The cycles are the
// loop's misses, multiplied by the wait per line at its source locations.
func (r *run) nestWaits(loop int) []float64 {
	levels := r.inLoops()
	waits := make([]float64, len(r.cost.levels))
	for k := range waits {
		cycles, lines := 0.0, 0.0
		for _, at := range r.placesOf(loop) {
			exchanged, others := r.leftOf(at)
			for _, i := range at.sites {
				coherence := r.cost.coherenceOf(i, k)
				cycles += exchanged*coherence + others*(r.cost.site[i][k]-coherence)
				lines += r.cost.run.fetches(i)[k]
			}
		}
		own := lines
		if levels[k] != nil {
			own = levels[k][loop].misses
			if k+1 < len(levels) && levels[k+1] != nil {
				own = max(0, own-levels[k+1][loop].misses)
			}
		}
		waits[k] = cycles * min(1, share(own, lines))
	}
	return waits
}

// average sets g.perRun to the average number of misses in each level per run of the given nests.
// The average includes all nests of the group. The data of the first nest may be in no cache,
// whereas the data of the other nests may be in a cache.
func (r *run) average(g *group, nests ...int) {
	g.perRun, g.repeated, g.times = make([]float64, len(r.cost.levels)), 1, 1
	accesses := func(nest int) float64 {
		for _, level := range r.inLoops() {
			if level != nil {
				return level[nest].accesses
			}
		}
		return 0
	}
	all, once := 0.0, 0.0
	for _, nest := range g.loops {
		all += accesses(nest)
	}
	for _, nest := range nests {
		once += share(accesses(nest), float64(r.loops.Loops[nest].Runs))
	}
	if once > 0 {
		g.times = all / once
	}
	for k := range g.perRun {
		level := r.inLoops()[k]
		if level == nil || len(r.p.Totals.Threads) > 1 { // each thread has its own caches
			g.perRun[k] = -1
			continue
		}
		for _, nest := range g.loops {
			g.perRun[k] += level[nest].misses / g.times
		}
	}
}

// nest tries changes on a group of nests.
func (r *run) nest(g *group) {
	g.pages, g.strided = r.pagesOf(g), r.strided(g.largest) != nil
	r.average(g, g.largest)
	l, loop, waits, wait := r.loops, g.largest, g.waits, g.wait
	t, err := r.trialOf(loop)
	if err != nil { // the nest has irregular references
		return
	}
	names := t.Names()
	number := names.Loop
	names.Loop = func(p change.Path) string {
		line, innermost := r.lineOf(loop, t.Compiled(p), g.at.file)
		if line > 0 {
			return "the loop at line " + strconv.FormatUint(uint64(line), 10)
		}
		if innermost {
			return "the innermost loop"
		}
		return number(p)
	}
	worst := worstOf(waits)
	var tried []trial
	try := func(n *loops.Nest, sunk bool, by change.Change) {
		if slices.ContainsFunc(tried, func(t trial) bool { return t.nest == n && t.sunk == sunk && t.change.Words(names) == by.Words(names) }) {
			return
		}
		if out := r.try(n, sunk, by, g); out != nil {
			tried = append(tried, *out)
		}
	}
	if cache, ok := loopcount.CacheOf(r.Machine.Levels[worst]); ok && wait > leastWait*r.out.Cycles {
		found, _, _ := change.Search(t.Nest, cache, change.Estimate, mostChanges, func(by change.Change) bool {
			_, pad := by.(change.Pad)
			return r.applies(t.Nest, by) && !(pad && r.byChance(loop, worst))
		}, r.GoOn)
		if g.pages > leastPages*r.out.Cycles {
			// the tiles with the fewest misses may touch more pages than the TLB has entries
			inPages, _, _ := change.Search(t.Nest, translations[0].cache, change.Estimate, mostChanges, func(by change.Change) bool {
				_, tile := by.(change.Tile)
				return tile && r.applies(t.Nest, by)
			}, r.GoOn)
			found = append(found, inPages...)
		}
		for _, o := range found {
			for _, by := range withLarger(o.Change) {
				try(t.Nest, false, by)
			}
		}
	}
	if n, runs := r.repeatedNest(loop); n != nil && wait > leastWait*r.out.Cycles {
		if cache, ok := loopcount.CacheOf(r.Machine.Levels[worst]); ok {
			g.repeated = float64(runs)
			found, _, _ := change.Search(n, cache, change.Estimate, mostChanges, func(by change.Change) bool {
				c, ok := by.(change.Tile)
				return ok && len(c.Outer) == 1 && c.Trips[0] == 0 && r.applies(n, by)
			}, r.GoOn)
			for _, o := range found {
				before := len(tried)
				for _, by := range withLarger(o.Change) {
					try(n, false, by)
				}
				for i := before; i < len(tried); i++ {
					tried[i].runs = runs
				}
			}
			g.repeated = 1
		}
	}
	for _, of := range besides(t.Nest) {
		try(of.nest, false, change.Fuse{First: of.path})
	}
	for _, of := range sinkable(t.Nest) {
		try(of.nest, true, change.Interchange{Outer: of.path, Below: of.below})
		if of.below == 1 && wait > leastWait*r.out.Cycles {
			for _, by := range withLarger(change.Tile{Outer: of.path, Trips: []uint64{0, sunkTile}}) {
				try(of.nest, true, by)
			}
		}
	}
	if g.strided {
		for _, by := range distributions(t.Nest) {
			try(t.Nest, false, by)
		}
	}
	for _, a := range change.Arrays(t.Nest)[:min(mostSplit, len(change.Arrays(t.Nest)))] {
		try(t.Nest, false, change.Split{Array: a.First})
	}
	tried = slices.DeleteFunc(tried, func(t trial) bool { return r.isFragment(&t, g) })
	best := -1
	for i := range tried {
		// If the data stays in the first level, the problem is the chain of results and not the
		// order of loops: see compute.
		if chain := r.nestRecurrence(tried[i].nest, g, tried[i].change); chain > 0 && chain > 2*(tried[i].saved-chain-tried[i].vector) && tried[i].before[0] < 2*tried[i].before[len(tried[i].before)-1] {
			tried[i].saved -= chain + tried[i].vector
			tried[i].unchained = true
			r.instead[g.at] = tried[i].change.Words(names)
			if tried[i].after[0] > 0.9*tried[i].before[0] {
				continue
			}
		}
		if best < 0 || tried[i].saved*r.savingWeight(&tried[i], loop, worst) > tried[best].saved*r.savingWeight(&tried[best], loop, worst) {
			best = i
		}
	}
	for _, nest := range g.loops {
		for _, of := range r.placesOf(nest) {
			r.tried[of] = true
		}
	}
	saved := 0.0
	if r.conflicts(loop, worst) {
		saved = r.conflictWaits(g)
	}
	if saved > Least*r.out.Cycles &&
		(best < 0 || 1.3*saved > (tried[best].saved-tried[best].vector)*r.savingWeight(&tried[best], loop, worst) && kindOf(tried[best].change) != Conflict) {
		if r.addConflict(g, saved, worst, false) {
			return
		}
		// No padding has helped. A change that was tried is preferred to a change that was not
		// tried.
		if a, ok := r.recordOf(r.worstSite(g.at)); ok {
			if added, _ := r.split(g.at, a, nil); added {
				return
			}
		}
		if best < 0 || 2*tried[best].saved < saved { // use this change unless a different layout helps
			r.untried = append(r.untried, func() {
				if r.taken[g.at] <= 0.5 {
					r.addConflict(g, saved, worst, true)
				}
			})
			return
		}
	}
	if best < 0 || tried[best].saved < Least*r.out.Cycles {
		return
	}
	b := &tried[best]
	kind := kindOf(b.change)
	if kind == Layout || kind == Conflict || kind == Alignment {
		if g.pages > wait || g.at.fills() { // a different layout does not help
			return
		}
		if b.saved < wait/2 && r.splitInstead(g.at) {
			return
		}
	}
	// the strides do not change: the new order only brings uses of the same data closer together
	if kind == Stride && r.strideWords(loop) == "" {
		kind = Capacity
	}
	chain, vector := 0.0, 0.0
	if !b.unchained {
		chain, vector = r.nestRecurrence(b.nest, g, b.change), b.vector
	}
	if _, ok := b.change.(change.Tile); ok && r.transposes(loop) { // tiling helps even if no order of the loops does
		kind = Stride
	}
	f := Finding{Kind: kind, Cost: wait + g.pages + chain + vector, Saved: b.saved, Before: b.before, After: b.after, Tried: true, IllegalIf: b.change.Illegal() + r.storedIn(loop, b.change),
		Fix:  b.change.Words(names),
		How:  r.recounted(b.nest),
		More: r.trying(t, b, loop)}
	runs := b.runs
	if runs > 0 {
		runs++ // count the first run, too
	} else if c, ok := b.change.(change.Tile); ok {
		if l := c.Outer.Loop(b.nest); l != nil && steady(l, len(c.Outer)-1) {
			runs = l.Trips
		}
	}
	if runs > 0 {
		f.Fix = "this loop iterates over the same data " + strconv.FormatUint(runs, 10) + " times in a row: divide the data into parts that fit in " + r.Machine.Levels[0].Name + ", and do all " + strconv.FormatUint(runs, 10) + " passes over one part before starting the next"
	}
	if a := r.strided(loop); a != nil && kind == Stride {
		name := cmp.Or(named(a.Name), r.allocated(a), "the array")
		if r.staysStrided(b, a) {
			f.Fix += ", so that the code returns to each line of " + name + " before the line is evicted"
		} else {
			f.Fix += ", so that " + name + " moves " + bytesOf(nearest(a, int64(l.LineBytes))) + " in each iteration of the innermost loop"
		}
		f.Data = named(a.Name)
		f.unnamed = f.Data == ""
	}
	if _, tile := b.change.(change.Tile); tile && b.sunk {
		f.Fix += "; keep the sums of the inner loop in memory from one tile to the next"
	} else if b.sunk {
		f.Fix += "; if there are statements before or after the inner loop, move them into it, and add to memory instead of to a local variable"
	}
	if chain > 0 {
		f.How += " Additions no longer wait for each other, so the loop is limited only by the number of instructions that the core issues per cycle."
	}
	if vector > 0 {
		f.How += " The compiler can then use vector instructions, as in other loops of this program. Only half of the saving by vector instructions is counted, because the compiler may not use vector instructions."
	}
	if f.Kind == Stride || f.Kind == Capacity {
		f.Fix += r.orPad(tried, b, names)
	}
	f.Why = r.why(f.Kind, loop, b.level)
	if c, ok := b.change.(change.Split); ok {
		if n := r.inTurn(g, c.Array); n > 0 {
			f.Data, f.IllegalIf = names.Array(c.Array), ""
			f.Fix = "let each thread process consecutive elements of " + cmp.Or(f.Data, "the array") + " instead of one of every " + strconv.Itoa(n) + " elements"
		} else if a, ok := r.recordOf(r.worstSite(g.at)); ok {
			added, replayed := r.split(g.at, a, &f)
			if added || replayed && a.low <= c.Array && c.Array < a.high+a.pitch { // the replay of the whole run is exact
				return
			}
		}
	}
	if chain > 0 {
		f.Why += "; each iteration also waits for the sum from the previous iteration"
	}
	for _, nest := range g.loops {
		for _, of := range r.placesOf(nest) {
			r.taken[of] = min(1, r.taken[of]+partOf(g.wait, of.wait))
		}
	}
	at := g.at
	if c, ok := b.change.(change.Fuse); ok {
		second := c.Loop(1)
		first := r.worstIn(b.nest, c.First, at)
		if at = r.worstIn(b.nest, second, at); c.More == 0 && first != at && names.Loop(c.First) == names.Loop(second) {
			f.Fix = strings.TrimSuffix(fuseWith+first.source(), ", ")
		}
	}
	if c, ok := b.change.(change.Interchange); ok && len(c.Outer) == 1 && r.isDivided(g) {
		f.Fix += "; let the threads divide the new outer loop if its iterations are independent, and otherwise the inner loop, in parts of whole lines"
		if r.storesAlongLines(g) {
			r.includeSharing(&f, g)
		}
	}
	r.add(at, f)
}

// splitInstead tries to separate the fields of the elements for which a source location waits, and
// reports whether it added a finding.
func (r *run) splitInstead(at *place) bool {
	for _, of := range r.arraysAt(at) {
		if of.wait < leastElements*r.out.Cycles {
			break
		}
		if r.splittable(at, of) {
			added, _ := r.split(at, of.record, nil)
			return added
		}
	}
	return false
}

// staysStrided reports whether an array still advances by whole lines in the innermost loop after the
// change of a trial.
func (r *run) staysStrided(b *trial, a *outline.Array) bool {
	changed := b.nest.Clone()
	if b.change.Apply(changed) != nil {
		return false
	}
	least := int64(math.MaxInt64)
	deepest := 0
	for _, it := range leavesOf(changed.Items) {
		s := r.loops.Place(it.Ref)
		if it.Wild || s == nil || s.Variable != a.Name || a.Extent > 0 && it.Addr-a.Base >= a.Extent || len(it.Steps) < deepest || len(it.Steps) == 0 {
			continue
		}
		if len(it.Steps) > deepest {
			deepest, least = len(it.Steps), math.MaxInt64
		}
		least = min(least, magnitude(it.Steps[len(it.Steps)-1]))
	}
	return deepest > 0 && least >= int64(r.loops.LineBytes)
}

// isDivided reports whether several threads divide the iterations of a group of loops among themselves.
func (r *run) isDivided(g *group) bool { return r.threadsOf(g) > 1 }

// threadsOf returns the number of threads that execute a group of loops.
func (r *run) threadsOf(g *group) int {
	threads := map[uint32]bool{}
	for _, loop := range g.loops {
		for _, it := range leavesOf(r.loops.Nest(r.loops.Loops[loop].Nest).Items) {
			threads[it.Ref.Thread] = true
		}
	}
	return len(threads)
}

// inTurn returns the number of threads if the threads process the elements of an array in turn: if
// each thread skips as many elements as there are other threads. Otherwise, inTurn returns 0.
func (r *run) inTurn(g *group, array trace.Addr) int {
	n := r.threadsOf(g)
	for _, a := range r.arrays(g.largest) {
		if n > 1 && !a.Wild && array-a.Base < a.Extent && len(a.Strides) > 0 && magnitude(a.Strides[len(a.Strides)-1]) == int64(n)*int64(a.Refs[0].Bytes) {
			return n
		}
	}
	return 0
}

// storesAlongLines reports whether consecutive iterations of the outermost loop store to different
// words of the same lines.
func (r *run) storesAlongLines(g *group) bool {
	for loop := g.largest; loop < r.loops.Loops[g.largest].End; loop++ {
		if slices.ContainsFunc(r.arrays(loop), func(a outline.Array) bool {
			return a.Stores > 0 && len(a.Strides) > 1 && a.Strides[0] != 0 && magnitude(a.Strides[0]) < int64(r.loops.LineBytes)
		}) {
			return true
		}
	}
	return false
}

// includeSharing merges the findings about lines that the threads of a group of loops exchange into
// the finding about the order of these loops. In the new order, the threads divide whole lines among
// themselves. Lines of data that another loop has stored may still move from thread to thread.
func (r *run) includeSharing(f *Finding, g *group) {
	r.out.Findings = slices.DeleteFunc(r.out.Findings, func(by Finding) bool {
		if by.Kind != FalseSharing && by.Kind != TrueSharing || !slices.ContainsFunc(g.loops, func(loop int) bool {
			return slices.ContainsFunc(r.placesOf(loop), func(at *place) bool {
				return sourceFunction(at.function) == by.Function && at.file == by.File && at.line == by.Line
			})
		}) {
			return false
		}
		if f.Most == 0 {
			f.Least, f.Most = f.Saved, f.Saved
			f.Why += "; the threads also store to the same lines, and invalidate each other's copies"
			f.How += " The new order also divides whole lines among the threads. The upper bound therefore includes all waits for lines from other threads."
		}
		f.Cost += by.Cost
		if f.Most += by.Most; by.Tried {
			f.Saved, f.Least = f.Saved+by.Saved, f.Least+by.Least
		}
		return true
	})
}

// orPad returns a clause that names the best padding among the trials, if padding alone saves more
// than half as much as the other change. Padding often takes less work, and is legal more often.
func (r *run) orPad(tried []trial, best *trial, names change.Names) string {
	var pad *trial
	for i := range tried {
		if _, ok := tried[i].change.(change.Pad); ok && (pad == nil || tried[i].saved > pad.saved) {
			pad = &tried[i]
		}
	}
	if pad == nil || pad.saved < best.saved/2 {
		return ""
	}
	return "; or " + pad.change.Words(names) + ", which alone saves " + percent2(share(pad.saved, r.out.Cycles))
}

// worstIn returns the source location in a loop of a nest that waits longest.
func (r *run) worstIn(n *loops.Nest, path change.Path, at *place) *place {
	l := path.Loop(n)
	if l == nil {
		return at
	}
	most := -1.0
	for _, it := range leavesOf(l.Body) {
		if s := r.loops.Place(it.Ref); s != nil && r.cost.bySite[s] != nil && r.cost.bySite[s].wait > most {
			at = r.cost.bySite[s]
			most = at.wait
		}
	}
	return at
}

// besides finds consecutive loops that are separated only by references to variables, such as
// counters in unoptimised code. besides moves the references before both loops.
func besides(n *loops.Nest) (list []sunkNest) {
	var walk func(items []loops.Item, path change.Path)
	walk = func(items []loops.Item, path change.Path) {
		number, last, moved := 0, -1, false
		for i := range items {
			it := &items[i]
			if !it.IsLoop() {
				moves := it.Wild || slices.ContainsFunc(it.Steps, func(s int64) bool { return s != 0 })
				if moved = moved || it.Ref.Kind.IsReference(); moves {
					last = -1
				}
				continue
			}
			here := append(slices.Clone(path), number)
			if last >= 0 && moved {
				clone := n.Clone()
				body := clone.Items
				if len(path) > 0 {
					body = path.Loop(clone).Body
				}
				between := slices.Clone(body[last+1 : i])
				copy(body[last+len(between):], body[last:last+1])
				copy(body[last:], between)
				first := slices.Clone(here)
				first[len(first)-1]--
				list = append(list, sunkNest{nest: clone, path: first})
			}
			number, last, moved = number+1, i, false
			walk(it.Body, here)
		}
	}
	walk(n.Items, nil)
	return list
}

// storedIn lists the arrays to which a nest stores. A change of order is illegal if it breaks a
// dependence on one of these arrays.
func (r *run) storedIn(nest int, by change.Change) string {
	switch by.(type) {
	case change.Interchange, change.Tile, change.Fuse, distribute:
	default:
		return ""
	}
	var names []string
	for loop := nest; loop < r.loops.Loops[nest].End; loop++ {
		for _, a := range r.loops.Arrays(loop) {
			moves := slices.ContainsFunc(a.Strides, func(s int64) bool { return s != 0 })
			if moves && a.Stores > 0 && named(a.Name) != "" && !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; check the stores to " + strings.Join(names, ", ")
}

// lineOf returns the first line in a file that belongs to a loop of a nest, but not to a loop
// inside that loop. It returns 0 if the line is unknown. Loops of the nest are matched with the
// loops of the code around the references, from the innermost loop outwards. Two loops are
// considered the same if they have the same number of iterations.
func (r *run) lineOf(nest int, p change.Path, file string) (line uint32, innermost bool) {
	l, program := r.loops, r.cost.program
	loop := nest
	for _, sibling := range p[1:] {
		for loop++; sibling > 0 && l.Loops[loop].Depth > 0; sibling-- {
			loop = l.Loops[loop].End
		}
		if loop >= len(l.Loops) {
			return 0, false
		}
	}
	if program == nil || loop >= l.Loops[nest].End {
		return 0, false
	}
	innermost = l.Loops[loop].End == loop+1
	below := 0 // number of nested loops inside the loop
	for i := loop; i < l.Loops[loop].End; i++ {
		below = max(below, l.Loops[i].Depth-l.Loops[loop].Depth)
	}
	blocks, deepest := r.blocksOf(loop), uint32(0)
	for _, b := range blocks {
		deepest = max(deepest, program.Blocks[b].Depth)
	}
	for _, b := range blocks {
		for head := program.Blocks[b].Loop; head > 0; head = r.outer(head) {
			if program.Blocks[head-1].Depth+uint32(below) > deepest {
				continue // this loop is one of the inner loops
			}
			visits, trips, runs := r.cost.visits[head-1], float64(l.Loops[loop].Trips), float64(l.Loops[loop].Runs)
			most := trips + runs
			// the nest contains the iterations of a single thread, and a change of threads in the
			// recording can divide the outermost loop
			if entries := r.entriesOf(head); len(r.p.Totals.Threads) > 1 && visits > most && entries > 0 {
				visits, trips, most = math.Ceil(visits/entries), trips/runs, trips/runs+1
				if loop == nest {
					most = visits
				}
			}
			if visits < trips || visits > most {
				continue
			}
			return r.firstLine(head, file), innermost
		}
	}
	return 0, innermost
}

// entriesOf returns the number of times that the code enters a loop, which is given as 1 + its
// header block.
func (r *run) entriesOf(head uint32) float64 { return r.entriesWithin(head, mostDeep) }

// entriesWithin returns the number of times that the code enters a loop. If another loop directly
// precedes the loop, the loop is entered at most as often as the other loop, because loops end as
// often as they begin. entriesWithin follows at most the given number of preceding loops.
func (r *run) entriesWithin(head uint32, most int) (entries float64) {
	blocks := r.cost.program.Blocks
	for b := range blocks {
		of := &blocks[b]
		if of.Loop == head || !slices.Contains(of.Successors, head-1) {
			continue
		}
		visits := r.cost.visits[b]
		if of.Loop > 0 && of.Depth >= blocks[head-1].Depth && most > 0 {
			visits = min(visits, r.entriesWithin(of.Loop, most-1))
		}
		entries += visits
	}
	return entries
}

// firstLine returns the first line of a file that belongs to a loop but to no loop inside it. The
// loop is given as 1 + its header block. Lines before the enclosing loop, which belong to inlined
// code, do not count if there are other lines.
func (r *run) firstLine(head uint32, file string) (line uint32) {
	blocks, around, inside := r.cost.program.Blocks, uint32(0), uint32(0)
	if outer := r.outer(head); outer > 0 && outer != head {
		around = r.firstLine(outer, file)
	}
	for b := range blocks {
		k := &blocks[b]
		if k.Loop != head || path.Base(k.File) != path.Base(file) || k.FirstLine == 0 {
			continue
		}
		if line == 0 || k.FirstLine < line {
			line = k.FirstLine
		}
		for _, of := range append(r.cost.program.Sites[k.FirstSite:k.FirstSite+k.Sites:k.FirstSite+k.Sites], trace.Site{Place: trace.Place{File: k.File, Line: k.LastLine}}) {
			if at := of.Place; path.Base(at.File) == path.Base(file) && at.Line >= around && (inside == 0 || at.Line < inside) {
				inside = at.Line
			}
		}
	}
	if line < around && inside > 0 {
		return inside
	}
	return line
}

// outer returns the loop around a loop, or 0 if there is none. Both loops are given as 1 + the
// header block.
func (r *run) outer(head uint32) uint32 {
	blocks := r.cost.program.Blocks
	for b := range blocks {
		k := &blocks[b]
		if k.Depth+1 == blocks[head-1].Depth && k.Loop != head && slices.Contains(k.Successors, head-1) {
			return k.Loop
		}
	}
	return 0
}

// mostRepeats is the largest number of runs of a nest that are changed together.
const mostRepeats = 32

// repeatedNest returns a loop around a nest that runs several times in a row, including the
// references between its runs. It returns nil if the nest does not run several times, or if
// addresses do not change by the same amount from run to run.
func (r *run) repeatedNest(loop int) (n *loops.Nest, runs uint64) {
	l := &r.loops.Loops[loop]
	if l.Runs < 3 {
		return nil, 0
	}
	var turns [][]loops.Item // each run of the nest, with the code up to the next run
	var between []loops.Item
	nodes := 0
	for node := range r.loops.Tree().Nodes() {
		if nodes++; nodes <= l.First {
			continue
		}
		switch {
		case node.IsLoop() && node.Shape() == l.Shape:
			if last := len(turns) - 1; last >= 0 {
				turns[last] = append(turns[last], between...)
			}
			turns, between = append(turns, node.Nest().Items), nil
		case node.IsLoop() || len(between) > mostDeep:
			nodes = -1
		default:
			if _, _, wild := node.Leaf(); wild {
				nodes = -1
				break
			}
			if it := node.Nest().Items[0]; it.Ref.Kind.IsReference() {
				between = append(between, it)
			}
		}
		if nodes < 0 || len(turns) == mostRepeats {
			break
		}
	}
	if len(turns) < 4 {
		return nil, 0
	}
	turns = turns[:len(turns)-1] // the code after the last run is unknown
	body := turns[0]
	for i := range turns[1:] {
		if len(turns[i+1]) != len(body) {
			turns = turns[:i+1]
			break
		}
	}
	if len(turns) < 3 || !evenly(body, turns[1], turns[2], 0) {
		return nil, 0
	}
	of := r.loops.Nest(l.Nest).Clone()
	of.Items = []loops.Item{loops.Loop(uint64(len(turns)), body...)}
	of = change.Roll(of, loopcount.CodeOf(r.loops)).Nest
	// Move the leaves beside the nest into it, so that each loop contains only the next loop.
	outer := &of.Items[0]
	if feedsBack(outer, 0) {
		return nil, 0
	}
	if len(outer.Body) > 1 && onlyLoop(outer) != nil && !hasLoop(onlyLoop(outer).Body) {
		sink(outer, 1)
	}
	return of, uint64(len(turns))
}

// evenly computes, from the first three runs, the amount that each run adds to the parameters of
// items. It returns false if the amounts differ between the runs.
func evenly(a, b, c []loops.Item, depth int) bool {
	for i := range a {
		x, y, z := &a[i], &b[i], &c[i]
		if x.IsLoop() != y.IsLoop() || x.IsLoop() != z.IsLoop() || len(x.Body) != len(y.Body) || len(x.Body) != len(z.Body) || x.Wild || !sameCode(x, y, depth) || !sameCode(x, z, depth) {
			return false
		}
		by, next := int64(y.Addr-x.Addr), int64(z.Addr-y.Addr)
		if x.IsLoop() {
			by, next = int64(y.Trips-x.Trips), int64(z.Trips-y.Trips)
		}
		if by != next || x.IsLoop() && by != 0 || !evenly(x.Body, y.Body, z.Body, depth+1) {
			return false
		}
		for len(x.Steps) < depth {
			x.Steps = append(x.Steps, 0)
		}
		x.Steps = slices.Insert(x.Steps, 0, by)
	}
	return true
}

// sameCode reports whether two items come from the same code. References next to the nest may be
// copies, made when the compiler unrolled the loop around it.
func sameCode(a, b *loops.Item, depth int) bool {
	if depth == 0 && !a.IsLoop() {
		return a.Ref.Kind == b.Ref.Kind && a.Ref.Bytes == b.Ref.Bytes
	}
	return a.Ref == b.Ref
}

// try applies a change, and counts the misses in every level before and after. It returns nil if
// the change does not apply or saves nothing.
func (r *run) try(n *loops.Nest, sunk bool, by change.Change, g *group) *trial {
	waits := g.waits
	changed := n.Clone()
	if !r.applies(n, by) || by.Apply(changed) != nil {
		return nil
	}
	out := &trial{change: by, nest: n, sunk: sunk}
	chain := r.nestRecurrence(n, g, by)
	if part := r.vectorised(changed, g, by); part > 0 {
		cycles := 0.0
		for _, b := range r.blocksOf(g.loops...) {
			cycles += r.cost.hits.Blocks[b].Cycles
		}
		out.vector = max(0, cycles-chain) * part
	}
	core := chain + out.vector + r.fusedWork(n, by, g)
	if _, fuse := by.(change.Fuse); !fuse && g.wait+g.pages+core < leastWait*r.out.Cycles { // the saving is too small to spend time on counting misses
		return nil
	}
	var caches []misses.Cache
	for _, level := range r.Machine.Levels {
		cache, ok := loopcount.CacheOf(level)
		if !ok {
			return nil
		}
		caches = append(caches, cache)
	}
	sequence := false // whether the remaining misses are to consecutive lines
	switch by := by.(type) {
	case change.Interchange:
		l := by.Outer.Loop(changed)
		sequence = g.strided && l != nil && inSequence(l.Body, len(by.Outer), int64(r.loops.LineBytes))
	case distribute:
		sequence = g.strided && inSequence(changed.Items, 0, int64(r.loops.LineBytes))
	}
	// The level with the longest waits is counted first. If most of these waits remain, the saving may
	// be too small, and the other levels need not be counted.
	worst := worstOf(waits)
	sameLines := false
	switch by.(type) {
	case change.Interchange, change.Tile, change.Fuse, distribute:
		sameLines = true
	}
	r.changes.Add(1)
	defer r.progress()
	before, after, ok := r.missesOf(n, changed, caches[worst:worst+1], sameLines)
	if !ok {
		return nil
	}
	left := min(1, share(after[0], before[0]))
	if sequence {
		left *= r.inOrderAt(g, worst)
	}
	if g.wait-waits[worst]*left+g.pages+core < Least*r.out.Cycles {
		return nil
	}
	if out.before, out.after, ok = r.missesOf(n, changed, slices.Delete(caches, worst, worst+1), sameLines); !ok {
		return nil
	}
	out.before, out.after = slices.Insert(out.before, worst, before[0]), slices.Insert(out.after, worst, after[0])
	// The simulation of the nest begins with empty caches. In the whole run, the data of the nest
	// may already be in the caches, or data from its previous execution may have been evicted.
	// Therefore, the change of the nest's simulated misses is applied to the misses in the run.
	now, then := make([]float64, len(waits)+1), make([]float64, len(waits)+1)
	for k := range waits {
		now[k] = out.before[k]
		if run := g.perRun[k] * g.repeated; run >= 0 {
			now[k] = run
		}
		then[k] = now[k] * (1 - share(out.before[k]-out.after[k], max(out.before[k], now[k])))
	}
	most := 0.0
	out.level = worstOf(waits)
	for k := range waits {
		left := share(out.after[k], out.before[k])
		if lines := now[k] - now[k+1]; lines > 0 {
			left = max(0, then[k]-then[k+1]) / lines
		}
		if sequence {
			left *= r.inOrderAt(g, k)
		}
		gain := waits[k] * (1 - left)
		if waits[k] == 0 { // a cache that has kept no lines between their uses may now keep some
			gain = -max(0, then[k]-then[k+1]-max(0, now[k]-now[k+1])) * share(waits[worst], now[worst]-now[worst+1]) * share(r.cost.latency[k], r.cost.latency[worst])
		}
		if out.fetched += gain; gain > most {
			most, out.level = gain, k
		}
	}
	out.saved += core - r.newChain(changed, g, by) - r.scalar(n, changed, g, by)
	if _, fuse := by.(change.Fuse); !fuse {
		out.saved -= r.enteredMore(n, changed, g)
	}
	if g.pages > leastPages*r.out.Cycles {
		if before, after, ok := r.missesOf(n, changed, []misses.Cache{translations[0].cache, translations[1].cache}, sameLines); ok {
			for i, b := range translations {
				before[i] *= b.cycles
				after[i] *= b.cycles
			}
			out.fetched += g.pages * (1 - min(1, share(sum(after), sum(before))))
		}
	}
	out.saved += out.fetched
	return out
}

// inOrderAt returns the ratio of two waits of a group's nests for lines from below a level: the
// waits if the lines become sequential, and the waits in the run. The waits of stores, for example,
// do not change.
func (r *run) inOrderAt(g *group, level int) float64 {
	now, then := 0.0, 0.0
	seen := map[*place]bool{}
	for _, nest := range g.loops {
		for _, at := range r.placesOf(nest) {
			if seen[at] {
				continue
			}
			seen[at] = true
			for _, i := range at.sites {
				cycles, overlap := r.cost.site[i][level], r.cost.run.overlap[i]
				now += cycles
				then += cycles * min(overlap, overlapSequence) / overlapSequence
			}
		}
	}
	if now == 0 {
		return 1
	}
	return then / now
}

// isFragment reports whether the misses of a trial are too few to represent all runs of the group's
// nests. For example, each search in a hash table is a nest of a few iterations, and the next search
// accesses other lines.
func (r *run) isFragment(t *trial, g *group) bool {
	all := uint64(0)
	for _, loop := range g.loops {
		all += r.loops.Loops[loop].References
	}
	return t.missesFew() || t.fetched > t.saved/2 && t.runs == 0 && representative*r.loops.Loops[g.largest].References < all
}

// missesFew reports whether most of a trial's saving is computed from only a few misses.
func (t *trial) missesFew() bool { return t.fetched > t.saved/2 && t.before[t.level] < leastTried }

// If the nest on which a change is tried has fewer than leastTried misses in the level that
// accounts for most of the saving, these misses are too few to compute the saving.
const leastTried = 16

// inSequence reports whether each reference in items advances by less than a line in its innermost
// loop. The parameter depth is the number of loops around the items. In a matrix transposition, one
// of the two references advances by more in either order of the loops.
func inSequence(items []loops.Item, depth int, lineBytes int64) bool {
	for i := range items {
		if it := &items[i]; it.IsLoop() {
			if !inSequence(it.Body, depth+1, lineBytes) {
				return false
			}
		} else if it.Ref.Kind.IsReference() && depth > 0 && !hasLoop(items) && magnitude(it.Step(depth-1)) >= lineBytes {
			return false
		}
	}
	return true
}

// applies reports whether a programmer would make the change.
func (r *run) applies(n *loops.Nest, by change.Change) bool {
	fuse, ok := by.(change.Fuse)
	if tile, ok := by.(change.Tile); ok && !tile.Divides(n) {
		return false
	}
	if repeats(n, by) {
		return false
	}
	if !ok {
		return true
	}
	fused := n.Clone()
	for _, pair := range fuse.Pairs() {
		if r.sameSource(fused, pair) || fusionBreaksDependence(fused, pair) || loopcount.Separate(r.loops, fused, pair) || pair.Apply(fused) != nil {
			return false
		}
	}
	return true
}

// fusionBreaksDependence reports whether two loops cannot simply be fused, because an iteration of
// the second loop needs a value that the first loop stores in a later iteration, or overwrites a
// value that the first loop loads in a later iteration. For example, the second loop may copy the
// result of a stencil back.
func fusionBreaksDependence(n *loops.Nest, fuse change.Fuse) bool {
	if len(fuse.First) == 0 {
		return false
	}
	first, second, depth := fuse.First.Loop(n), fuse.Loop(1).Loop(n), len(fuse.First)-1
	if first == nil || second == nil {
		return false
	}
	turns := gcd(first.Trips, second.Trips)
	if rest := change.Rest(first, second); rest > 0 {
		turns = min(first.Trips, second.Trips)
	}
	for _, a := range spans(first, depth, turns) {
		for _, b := range spans(second, depth, turns) {
			if a.by != b.by || a.by == 0 || !a.stores && !b.stores {
				continue
			}
			for later := int64(1); later <= mostLater && later < int64(turns); later++ {
				if meet(a, b, int64(a.low-b.low)+later*a.by) {
					return true
				}
			}
		}
	}
	return false
}

// mostLater is the maximum distance, in turns, of the dependences that fusionBreaksDependence
// examines.
const mostLater = 4

// span is the memory that a reference touches in one turn, which is a group of iterations of a
// loop.
type span struct {
	low, bytes uint64 // the range touched by all inner loops together
	by         int64  // the distance from one turn to the next
	// stride in the only inner loop; 0 if there is no inner loop, or if there are several
	step   int64
	own    uint64 // size of the reference in bytes
	stores bool
}

// spans returns the spans of the references in a loop. The parameter depth is the number of loops
// around this loop, and the parameter turns is the number of turns into which the loop is divided.
func spans(l *loops.Item, depth int, turns uint64) (list []span) {
	var walk func(items []loops.Item, around []uint64)
	walk = func(items []loops.Item, around []uint64) {
		for i := range items {
			it := &items[i]
			if it.IsLoop() {
				walk(it.Body, append(around[:len(around):len(around)], it.Trips))
				continue
			}
			if it.Wild || !it.Ref.Kind.IsReference() {
				continue
			}
			s := span{low: it.Addr, bytes: uint64(it.Ref.Bytes), own: uint64(it.Ref.Bytes), stores: it.Ref.Kind != trace.Load}
			inner := 0
			for d, trips := range around {
				step := it.Step(depth + d)
				if d == 0 {
					s.by, trips = step*int64(l.Trips/turns), l.Trips/turns
				} else if step != 0 && trips > 1 {
					inner++
					s.step = step
				}
				reach := uint64(magnitude(step)) * (max(1, trips) - 1)
				if s.bytes += reach; step < 0 {
					s.low -= reach
				}
			}
			if inner != 1 {
				s.step = 0
			}
			list = append(list, s)
		}
	}
	walk(l.Body, []uint64{l.Trips})
	return list
}

// meet reports whether two spans overlap if the first span begins the given number of bytes
// (behind) after the second.
func meet(a, b span, behind int64) bool {
	if behind >= int64(b.bytes) || -behind >= int64(a.bytes) {
		return false
	}
	if step := magnitude(a.step); step > 0 && step == magnitude(b.step) { // the two spans may be two columns of a matrix
		in := (behind%step + step) % step
		return in < int64(b.own) || step-in < int64(a.own)
	}
	return true
}

// byChance reports whether padding could help a loop only by chance, because it has few conflicts.
func (r *run) byChance(loop, level int) bool { return !r.conflict(loop, level, 4) }

// recounted explains how the misses after a change of a nest were predicted.
func (r *run) recounted(n *loops.Nest) string {
	text := "The change was applied to the recorded loops, and the misses of every level were counted again"
	if change.Long(n) {
		text += " in the first iterations of the long loop"
	}
	return text + "."
}

// missesOf counts the misses of a nest in caches, before and after a change. sameLines reports whether
// the change keeps the addresses, and changes only their order. ok is false if the misses cannot be
// counted.
func (r *run) missesOf(n, changed *loops.Nest, caches []misses.Cache, sameLines bool) (before, after []float64, ok bool) {
	const unknown = -1.0
	before, after = make([]float64, len(caches)), make([]float64, len(caches))
	type job struct {
		nest  *loops.Nest
		cache misses.Cache
		to    *float64
	}
	var jobs []job
	first := map[uint64]int{}         // by line size: the first cache that keeps all lines
	equal := make([]int, len(caches)) // by cache: a cache that has the same number of misses, whatever the order of accesses is; -1: none
	for i, cache := range caches {
		if equal[i] = -1; sameLines && keeps(n, cache) {
			if _, known := first[cache.LineBytes]; !known {
				first[cache.LineBytes] = i
			}
			if equal[i] = first[cache.LineBytes]; equal[i] != i {
				continue
			}
		}
		if known, ok := r.plain[plainNest{n, cache}]; ok {
			before[i] = known
		} else {
			jobs = append(jobs, job{n, cache, &before[i]})
		}
		if equal[i] < 0 {
			jobs = append(jobs, job{changed, cache, &after[i]})
		}
	}
	parallel.Each(len(jobs), func(i int) {
		j := &jobs[i]
		*j.to = unknown
		if m, err := change.Estimate(j.nest, j.cache, func(uint64) bool { return r.GoOn() }); err == nil {
			*j.to = float64(m)
		}
	})
	for i, cache := range caches {
		if of := equal[i]; of >= 0 {
			before[i], after[i] = before[of], before[of]
		}
		if before[i] != unknown {
			r.plain[plainNest{n, cache}] = before[i]
		}
	}
	return before, after, !slices.Contains(before, unknown) && !slices.Contains(after, unknown)
}

// keeps reports whether a cache never evicts a line that a nest accesses, regardless of the order
// of accesses: each set of the cache has room for all lines of the nest's arrays that belong to the
// set.
func keeps(n *loops.Nest, cache misses.Cache) bool {
	if slices.ContainsFunc(leavesOf(n.Items), func(it *loops.Item) bool { return it.Wild }) {
		return false
	}
	var all []span
	for i := range n.Items {
		one := loops.Loop(1, n.Items[i])
		if n.Items[i].IsLoop() {
			one = n.Items[i]
		}
		all = append(all, spans(&one, 0, 1)...)
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	ways, next := uint64(0), trace.Line(0) // next is the line after the lines seen so far
	for _, s := range all {
		first, end := max(next, s.low/cache.LineBytes), (s.low+max(1, s.bytes)-1)/cache.LineBytes+1
		if end <= first {
			continue
		}
		next = end
		ways += (end - first + cache.Sets - 1) / cache.Sets
	}
	return ways <= cache.Ways
}

// sameSource reports whether two loops come from the same loop in the source, which either runs
// twice in a row or was duplicated by the compiler.
func (r *run) sameSource(n *loops.Nest, fuse change.Fuse) bool {
	if len(fuse.First) == 0 {
		return false
	}
	second := fuse.Loop(1)
	places := map[*place]bool{}
	var look func(items []loops.Item, do func(*place) bool) bool
	look = func(items []loops.Item, do func(*place) bool) bool {
		for i := range items {
			if items[i].IsLoop() {
				if !look(items[i].Body, do) {
					return false
				}
			} else if s := r.loops.Place(items[i].Ref); s != nil && items[i].Ref.Kind.IsReference() && !do(r.cost.bySite[s]) {
				return false
			}
		}
		return true
	}
	a, b := fuse.First.Loop(n), second.Loop(n)
	if a == nil || b == nil || r.differ(a, b) && copies(a, b, len(second)-1) {
		return false
	}
	look(a.Body, func(at *place) bool { places[at] = true; return true })
	return look(b.Body, func(at *place) bool { return places[at] })
}

// translation describes a TLB as a cache, with the cost of a miss.
type translation struct {
	cache  misses.Cache
	cycles float64
}

// level returns the TLB as a level of a hierarchy.
func (t translation) level() hierarchy.Cache {
	c := t.cache
	level := hierarchy.Cache{Name: "TLB", SizeBytes: c.Lines() * c.LineBytes, LineBytes: uint32(c.LineBytes)}
	if c.Sets > 1 {
		level.Ways = uint32(c.Ways)
	}
	return level
}

// translations describes the TLBs.
var translations = []translation{
	{misses.Cache{LineBytes: 1 << pageShift, Sets: firstPages / firstPageWays, Ways: firstPageWays}, secondPageCycles},
	{misses.Cache{LineBytes: 1 << pageShift, Sets: secondPages / secondPageWays, Ways: secondPageWays}, walkCycles - secondPageCycles},
}

// onlyLoop returns the only loop in a loop's body, or nil if the body contains no loop or several
// loops. The body may also contain a few references of a remainder loop.
func onlyLoop(l *loops.Item) (only *loops.Item) {
	for i := range l.Body {
		if !l.Body[i].IsLoop() {
			continue
		}
		if only != nil {
			return nil
		}
		only = &l.Body[i]
	}
	return only
}

// enteredMore returns the additional cycles of the code around the innermost loops, if a change
// such as tiling enters these loops more often.
func (r *run) enteredMore(n, changed *loops.Nest, g *group) float64 {
	more := (entries(changed.Items, 1) - entries(n.Items, 1)) * g.times / g.repeated
	blocks := r.blocksOf(g.largest)
	if more <= 0 || len(blocks) == 0 {
		return 0
	}
	all := r.cost.program.Blocks
	inner := slices.MaxFunc(blocks, func(a, b int) int { return cmp.Compare(all[a].Depth, all[b].Depth) })
	cycles := float64(countingInstrs) / plainWidth
	if head := all[inner].Loop; head > 0 && r.outer(head) > 0 {
		around := r.outer(head)
		for b := range all {
			if all[b].Loop == around {
				cycles += share(r.cost.hits.Blocks[b].Cycles, r.cost.visits[around-1])
			}
		}
	}
	return min(more*cycles, g.cycles)
}

// entries returns the number of times that the innermost loops in items are entered if the items
// are executed the given number of times.
func entries(items []loops.Item, times float64) (number float64) {
	for i := range items {
		switch it := &items[i]; {
		case !it.IsLoop():
		case hasLoop(it.Body):
			number += entries(it.Body, times*float64(it.Trips))
		default:
			number += times
		}
	}
	return number
}

// again reports whether a load uses the data of a reference in the previous loop. The parameter
// depth is the number of loops around each of the two loops. The compiler may have unrolled one
// loop further than the other.
func again(before, load *loops.Item, depth int) bool {
	step, by := before.Step(depth), load.Step(depth)
	apart := int64(load.Addr - before.Addr)
	if !before.Ref.Kind.IsReference() || before.Wild || load.Wild || before.Ref.Bytes != load.Ref.Bytes || step == 0 != (by == 0) || load.Ref.Bytes == 0 {
		return false
	}
	for d := range depth {
		if before.Step(d) != load.Step(d) {
			return false
		}
	}
	return apart == 0 && step == by || (step > 0) == (by > 0) && apart%int64(load.Ref.Bytes) == 0 && magnitude(apart) < max(magnitude(step), magnitude(by))
}

// countingInstrs is the number of instructions that count the iterations of a loop.
const countingInstrs = 3

// conflictWaits returns the cycles that nests wait for lines because of misses that would be hits
// in fully associative caches.
func (r *run) conflictWaits(g *group) (cycles float64) {
	for k, wait := range g.waits {
		level := r.inLoops()[k]
		if level == nil {
			continue
		}
		misses, conflicts := 0.0, 0.0
		for _, loop := range g.loops {
			misses += level[loop].misses
			conflicts += r.conflictMisses(loop, k)
		}
		cycles += wait * min(1, share(conflicts, misses))
	}
	return cycles
}

// addConflict adds a finding about conflicts if padding the rows or moving the arrays apart helps.
// If untried is set, no layout has been tried, and the saving that fully associative caches would
// bring is reported as the upper bound of the saving.
func (r *run) addConflict(g *group, saved float64, level int, untried bool) bool {
	f := Finding{Kind: Conflict, Cost: g.wait, Saved: saved / uncertaintyDivisor, Least: 0, Most: saved,
		Why:  r.why(Conflict, g.largest, level),
		Fix:  "pad the rows by a line, or move the arrays apart by different numbers of lines, so that lines that are used together map to different sets",
		How:  "The misses were counted again in fully associative caches of the same sizes. None of the paddings that were tried helped.",
		More: "loops --cache L1=48KiB,12"}
	if !untried {
		t := r.padded(g)
		if t == nil || t.saved < saved/2 {
			return false
		}
		f.Saved, f.Least, f.Most, f.Tried, f.Before, f.After, f.How = t.saved, 0, 0, true, t.before, t.after, r.retried(t)
		r.take(t)
	}
	for _, nest := range g.loops {
		for _, of := range r.placesOf(nest) {
			r.taken[of] = max(r.taken[of], min(1, share(max(f.Saved, f.Most), max(g.wait, of.wait))))
		}
	}
	r.add(g.at, f)
	return true
}

// partOf returns a nest's share of the waits of a source location. A location may be in several
// nests.
func partOf(nest, place float64) float64 {
	if part := share(nest, place); place > 0 && part < mostlyIn {
		return part
	}
	return 1
}

// If at least the share mostlyIn of a source location's waits is in one nest, all waits of the
// location are attributed to the nest.
const mostlyIn = 0.75

// pagesOf returns the cycles that nests wait for address translation.
func (r *run) pagesOf(g *group) (cycles float64) {
	seen := map[*place]bool{}
	for _, nest := range g.loops {
		for _, at := range r.placesOf(nest) {
			if !seen[at] {
				seen[at] = true
				cycles += at.pages
			}
		}
	}
	return cycles
}

// repeats reports whether a change of order affects a loop whose iterations usually need all results
// of the previous iteration: a loop that feeds a result back into the data (see feedsBack), or a loop
// whose iterations all use the same addresses, as time steps do. It returns false for tiling a loop
// that updates each element only from the element's own value.
func repeats(n *loops.Nest, by change.Change) bool {
	var outer change.Path
	tile := false
	switch c := by.(type) {
	case change.Interchange:
		outer = c.Outer
	case change.Tile:
		outer, tile = c.Outer, c.Trips[0] == 0
	default:
		return false
	}
	l, depth := outer.Loop(n), len(outer)-1
	if l == nil {
		return false
	}
	return feedsBack(l, depth) || steady(l, depth) && !(tile && updates(l, depth))
}

// feedsBack reports whether a loop stores to data that its inner loops load, but do not store to.
// The parameter depth is the number of loops around the loop. The store usually needs the result of
// an inner loop, and the next iteration needs the stored value. Single variables do not count:
// without optimisation, they are loop counters and intermediate results in memory, and each
// iteration can have its own.
func feedsBack(l *loops.Item, depth int) bool {
	var beside, inside []span
	for i := range l.Body {
		one := loops.Loop(l.Trips, l.Body[i])
		if list := spans(&one, depth, 1); l.Body[i].IsLoop() {
			inside = append(inside, list...)
		} else {
			beside = append(beside, list...)
		}
	}
	for _, a := range beside {
		loads, stores := false, false
		for _, b := range inside {
			if a.low < b.low+b.bytes && b.low < a.low+a.bytes {
				loads, stores = loads || !b.stores, stores || b.stores
			}
		}
		if a.stores && loads && !stores && a.bytes > a.own {
			return true
		}
	}
	return false
}

// steady reports whether all iterations of a loop use the same addresses. The parameter depth is
// the number of loops around the loop.
func steady(l *loops.Item, depth int) bool {
	return !slices.ContainsFunc(leavesOf(l.Body), func(it *loops.Item) bool { return it.Step(depth) != 0 })
}

// leavesOf returns the references in items, including the references inside loops.
func leavesOf(items []loops.Item) (list []*loops.Item) {
	for i := range items {
		if it := &items[i]; it.IsLoop() {
			list = append(list, leavesOf(it.Body)...)
		} else if it.Ref.Kind.IsReference() {
			list = append(list, it)
		}
	}
	return list
}

// updates reports whether a loop repeats an inner loop that computes each element's new value only
// from its old value and from data that the inner loop does not modify. All steps for one part of
// the elements can then be done before the steps for the next part.
func updates(l *loops.Item, depth int) bool {
	leaves := leavesOf(l.Body)
	at := slices.IndexFunc(l.Body, func(it loops.Item) bool { return it.IsLoop() })
	if at < 0 || hasLoop(l.Body[at+1:]) || hasLoop(l.Body[at].Body) {
		return false
	}
	updated := false
	for _, store := range leaves {
		updated = updated || store.Ref.Kind != trace.Load && slices.ContainsFunc(leaves, func(load *loops.Item) bool {
			return load.Ref.Kind != trace.Store && load.Addr == store.Addr
		})
	}
	return updated && independent(leaves, depth+1, l.Body[at].Trips)
}

// independent reports whether each iteration of a loop stores only to elements that no other
// iteration uses.
func independent(leaves []*loops.Item, depth int, trips uint64) bool {
	for _, store := range leaves {
		by := store.Step(depth)
		if store.Ref.Kind == trace.Load {
			continue
		}
		if store.Wild || by == 0 { // all iterations store to the same element, for example in a sum
			return false
		}
		reach := magnitude(by)*int64(trips) + int64(store.Ref.Bytes)
		for _, other := range leaves {
			if other.Wild {
				return false
			}
			apart := int64(other.Addr - store.Addr)
			switch {
			case magnitude(apart) >= reach:
			case other.Step(depth) != by:
				return false
			// the references are to different elements, which one or several iterations access
			case apart != 0:
				if in := (apart%by + magnitude(by)) % magnitude(by); in < int64(store.Ref.Bytes) || in+int64(other.Ref.Bytes) > magnitude(by) {
					return false
				}
			}
		}
	}
	return true
}

// vectorised returns the share of a loop's cycles that is saved because the compiler can use vector
// instructions once another loop is innermost. It returns 0 unless the compiler has used vector
// instructions elsewhere in the program.
func (r *run) vectorised(changed *loops.Nest, g *group, by change.Change) float64 {
	c, ok := by.(change.Interchange)
	if !ok || r.cost.program == nil || r.strideWords(g.largest) == "" {
		return 0
	}
	l := c.Outer.Loop(changed)
	if l == nil {
		return 0
	}
	l, depth := innermost(l, len(c.Outer)-1)
	leaves := leavesOf(l.Body)
	bytes := uint32(0)
	for _, it := range leaves {
		own, by := it.Ref.Bytes, it.Step(depth)
		if it.Wild || own == 0 || own > 8 || bytes != 0 && own != bytes || by != int64(own) && (by != 0 || it.Ref.Kind != trace.Load) {
			return 0
		}
		bytes = own
	}
	blocks := r.blocksOf(g.largest)
	if bytes == 0 || !independent(leaves, depth, l.Trips) || len(blocks) == 0 || slices.ContainsFunc(blocks, r.vectors) {
		return 0
	}
	for b := range r.cost.program.Blocks {
		if r.vectors(b) {
			lanes := max(nativeLeast, float64(r.cost.program.TargetOf(uint32(blocks[0])).VectorBits(true))/8) / float64(bytes)
			// half of the possible saving, because compilers do not always vectorise
			return (1 - 1/lanes) / 2
		}
	}
	return 0
}

// scalar returns the additional cycles of a loop if an interchange prevents vector instructions,
// because references advance by more than an element in the new innermost loop.
func (r *run) scalar(n, changed *loops.Nest, g *group, by change.Change) float64 {
	c, ok := by.(change.Interchange)
	if !ok {
		return 0
	}
	now, then := c.Outer.Loop(n), c.Outer.Loop(changed)
	if now == nil || then == nil || unitStrides(innermost(then, len(c.Outer)-1)) {
		return 0
	}
	return g.cycles * max(0, r.lanes(now, len(c.Outer)-1)-r.lanes(then, len(c.Outer)-1))
}

// unitStrides reports whether each reference in a loop at this depth either stays in place or
// advances by its own size.
func unitStrides(l *loops.Item, depth int) bool {
	return !slices.ContainsFunc(leavesOf(l.Body), func(it *loops.Item) bool {
		step := magnitude(it.Step(depth))
		return step != 0 && step != int64(it.Ref.Bytes)
	})
}

// lanes returns the number of elements that the compiler's vector instructions access at a time in
// an innermost loop, minus one. If the references differ, it returns the smallest number.
func (r *run) lanes(l *loops.Item, depth int) (least float64) {
	l, depth = innermost(l, depth)
	code := loopcount.CodeOf(r.loops)
	for _, it := range leavesOf(l.Body) {
		if it.Step(depth) == 0 {
			continue
		}
		if n := float64(code(it.Ref).Elements() - 1); least == 0 || n < least {
			least = n
		}
		if least == 0 {
			return 0
		}
	}
	return least
}

// innermost returns the first loop in l, or l itself, that contains no other loop, and the number
// of loops around it.
func innermost(l *loops.Item, depth int) (*loops.Item, int) {
	for i := 0; i < len(l.Body); i++ {
		if l.Body[i].IsLoop() {
			l, depth, i = &l.Body[i], depth+1, -1
		}
	}
	return l, depth
}

// vectors reports whether a block uses vector instructions.
func (r *run) vectors(b int) bool {
	return slices.ContainsFunc(r.cost.program.Blocks[b].Instrs, func(i trace.Instr) bool { return strings.HasPrefix(i.Type, "<") })
}

// nestRecurrence returns the cycles that are saved if another loop becomes innermost, because
// iterations then no longer wait for results of the previous iteration.
func (r *run) nestRecurrence(n *loops.Nest, g *group, by change.Change) (saved float64) {
	switch c := by.(type) {
	case change.Interchange:
		if !storesMove(n, c) {
			return 0
		}
	case distribute:
	default:
		return 0
	}
	if r.cost.program == nil || r.strideWords(g.largest) == "" {
		return 0
	}
	for _, b := range r.blocksOf(g.loops...) {
		saved += r.recurrence(b)
	}
	return saved
}

// newChain returns the additional cycles of a loop if an interchange turns it into a sum: each
// iteration of the innermost loop then adds to the same element.
func (r *run) newChain(changed *loops.Nest, g *group, by change.Change) float64 {
	c, ok := by.(change.Interchange)
	if !ok || r.cost.program == nil {
		return 0
	}
	l, depth := c.Outer.Loop(changed), len(c.Outer)-1
	if l == nil {
		return 0
	}
	inner, below := innermost(l, depth)
	leaves := leavesOf(inner.Body)
	sums := map[trace.Place]float64{} // the copies of an unrolled sum then form one chain
	for _, store := range leaves {
		sum := store.Ref.Kind == trace.Store && !store.Wild && store.Step(below) == 0 && below > depth && store.Step(depth) != 0 && r.adds(store) &&
			slices.ContainsFunc(leaves, func(load *loops.Item) bool {
				return load.Ref.Kind == trace.Load && load.Addr == store.Addr && load.Step(below) == 0
			})
		if !sum {
			continue
		}
		add := trace.Instr{Opcode: "fadd", Type: "double", Uses: []int32{-2}}
		cycles := r.Processor.NewBody([]trace.Instr{add}, pipeline.Options{}).Steady().Cycles * max(1, float64(store.Ref.Bytes)/8)
		for d := range depth {
			cycles *= float64(c.Outer[:d+1].Loop(changed).Trips)
		}
		for at := l; at != inner; at = onlyLoop(at) {
			if cycles *= float64(at.Trips); onlyLoop(at) == nil {
				return 0
			}
		}
		sums[r.cost.program.Sites[r.loops.Place(store.Ref).Number].Place] += cycles * float64(inner.Trips) * g.times
	}
	most := 0.0
	for _, cycles := range sums {
		most = max(most, cycles)
	}
	return max(0, most-g.cycles)
}

// adds reports whether a store writes the result of a floating-point addition.
func (r *run) adds(store *loops.Item) bool {
	s := r.loops.Place(store.Ref)
	for b := range r.cost.program.Blocks {
		k := &r.cost.program.Blocks[b]
		if s == nil || s.Number < k.FirstSite || s.Number >= k.FirstSite+k.Sites {
			continue
		}
		for _, i := range k.Instrs {
			if i.Opcode == "store" && i.Site == s.Number-k.FirstSite+1 && len(i.Uses) > 0 && i.Uses[0] >= 0 {
				return isFloat(k.Instrs[i.Uses[0]].Opcode)
			}
		}
	}
	return false
}

// storesMove reports whether code stores to a different address in each iteration of the loop that
// an interchange makes innermost. A sum in a variable waits for itself in either order.
func storesMove(n *loops.Nest, by change.Interchange) (moves bool) {
	l, depth := by.Outer.Loop(n), len(by.Outer)-1
	if l == nil {
		return false
	}
	var look func(items []loops.Item)
	look = func(items []loops.Item) {
		for i := range items {
			it := &items[i]
			if it.IsLoop() {
				look(it.Body)
			} else if it.Ref.Kind == trace.Store || it.Ref.Kind == trace.Modify {
				moves = moves || depth < len(it.Steps) && it.Steps[depth] != 0
			}
		}
	}
	look(l.Body)
	return moves
}

// nestCycles returns the cycles of a loop's blocks, without waits.
func (r *run) nestCycles(loop int) (cycles float64) {
	for _, b := range r.blocksOf(loop) {
		cycles += r.cost.hits.Blocks[b].Cycles
	}
	return cycles
}

// blocksOf returns the blocks that contain references of these loops.
func (r *run) blocksOf(nests ...int) (list []int) {
	if r.cost.program == nil {
		return nil
	}
	for _, loop := range nests {
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
	}
	return list
}

// recurrence returns the cycles that a block waits for results of the previous iteration, in
// addition to the cycles that its ports and the width of the core require.
func (r *run) recurrence(b int) float64 {
	t := &r.cost.hits.Blocks[b]
	if t.Bottleneck != pipeline.Recurrence || t.Steady.Cycles <= 0 {
		return 0
	}
	other := max(t.Steady.Ports, t.Steady.Dispatch, t.Steady.Transfers)
	return t.Cycles * (1 - min(1, other/t.Steady.Cycles))
}

// savingWeight returns the weight of a change's saving. If two changes save about the same, the
// finding should name the change that takes less work and is more often legal. If most misses are
// conflict misses, the finding should propose padding, which removes the cause.
func (r *run) savingWeight(t *trial, loop, level int) float64 {
	switch c := t.change.(type) {
	case change.Tile:
		if l := c.Outer.Loop(t.nest); t.runs > 0 || l != nil && steady(l, len(c.Outer)-1) { // tiling this loop performs all steps for a part of the data before the steps for the next part
			return 0.9
		}
	case distribute:
		return 1.1
	case change.Interchange:
		if r.strided(loop) != nil && !r.conflicts(loop, level) {
			return 1.35
		}
		return 1.15
	case change.Pad:
		if r.conflicts(loop, level) {
			return 1.3
		}
		return 1.1
	case change.Align:
		return 1.1
	case change.Fuse:
		return 1.05
	case change.Records, change.Split:
		return 1.02
	}
	return 1
}

// conflicts reports whether more than half of a loop's misses in a level would hit in a fully
// associative cache.
func (r *run) conflicts(loop, level int) bool { return r.conflict(loop, level, 2) }

// conflict reports whether a loop's conflict misses in a level, multiplied by a factor, exceed the
// loop's misses in this level.
func (r *run) conflict(loop, level int, factor float64) bool {
	in := r.inLoops()[level]
	return in != nil && factor*r.conflictMisses(loop, level) > in[loop].misses
}

// worstOf returns the index of the level whose misses cause the longest waits.
func worstOf(waits []float64) int {
	worst := 0
	for k := range waits {
		if waits[k] > waits[worst] {
			worst = k
		}
	}
	return worst
}

// conflictMisses returns the conflict misses of a loop in a level.
func (r *run) conflictMisses(loop, level int) float64 {
	if r.hashed[level] || !r.mayConflict(loop, level) {
		return 0
	}
	r.countConflicts([]int{level})
	if in := r.conflictsIn[level]; in != nil { // nil if counting was stopped
		return in[loop] * r.inLoops()[level][loop].misses
	}
	return 0
}

func kindOf(c change.Change) Kind {
	switch c.(type) {
	case change.Interchange, distribute:
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

// why returns a sentence that explains why a loop is slow.
func (r *run) why(kind Kind, loop, level int) string {
	name := r.Machine.Levels[level].Name
	counts := ""
	if in := r.inLoops()[level]; in != nil {
		c := in[loop]
		counts = percent(share(c.misses, c.accesses)) + " of the accesses in this loop miss in " + name
		switch {
		case c.misses == 0:
		case kind == Conflict && r.conflictMisses(loop, level) > 0:
			counts += r.conflictWords(loop, level)
		case (kind == Capacity || kind == Stride) && r.conflicts(loop, level):
			counts += r.conflictWords(loop, level)
		case kind == Capacity:
			counts += ", because the loop returns to its data after " + name + " has evicted it"
		case kind == Fusion:
			counts += ", because the second loop reads data that the first loop has used, after " + name + " has evicted it"
		}
	}
	if kind == Stride {
		if text := r.strideWords(loop); text != "" {
			return text + "; " + counts
		}
	}
	return counts
}

// conflictWords returns a clause that states the share of a loop's misses that are conflict misses.
func (r *run) conflictWords(loop, level int) string {
	return "; " + percent(share(r.conflictMisses(loop, level), r.inLoops()[level][loop].misses)) + " of these misses are conflict misses, because the lines map to only a few sets"
}

// strideWords describes the stride of the array with the largest stride.
func (r *run) strideWords(nest int) string {
	a := r.strided(nest)
	if a == nil {
		return ""
	}
	return "the address in " + cmp.Or(named(a.Name), r.allocated(a), "an array") + " moves " + bytesOf(magnitude(a.Strides[len(a.Strides)-1])) + " in each iteration of the innermost loop, so each access is to a different line"
}

// allocated describes an array without a name by the source line that allocates it, or returns "".
func (r *run) allocated(a *outline.Array) string {
	if by := r.loops.AllocatedAt(a.Base); by != nil && by.Line > 0 {
		return answers.Allocated(by, r.Readable)
	}
	return ""
}

// arrays returns the arrays of a loop, with the strides of the loops in the source.
func (r *run) arrays(loop int) []outline.Array {
	list, known := r.arraysOf[loop]
	if known {
		return list
	}
	list = r.loops.Arrays(loop)
	r.rollNest(r.loops.Loops[loop].Nest)
	for i := range list {
		a := &list[i]
		if n := len(a.Strides); n > 0 && !a.Wild {
			a.Strides = slices.Clone(a.Strides)
			a.Strides[n-1] /= int64(r.copies(a.Refs[0].Site))
		}
	}
	if r.arraysOf == nil {
		r.arraysOf = map[int][]outline.Array{}
	}
	r.arraysOf[loop] = list
	return list
}

// strided returns the array with the most references among the arrays that advance by whole lines
// in an innermost loop of a nest; nil: no such array.
func (r *run) strided(nest int) *outline.Array {
	for loop := r.loops.Loops[nest].End - 1; loop >= nest; loop-- {
		if a := strided(r.arrays(loop), int64(r.loops.LineBytes)); a != nil {
			return a
		}
	}
	// If the rows of an array are reached through pointers, rows and pointers look like a single
	// array. Each reference is therefore examined separately.
	for _, body := range bodies(r.rollNest(r.loops.Loops[nest].Nest).Nest.Items) {
		for _, it := range body {
			if s := r.loops.Place(it.Ref); s != nil && !it.Wild {
				a := []outline.Array{{Name: s.Variable, Base: it.Addr, Strides: it.Steps, References: 1}}
				if strided(a, int64(r.loops.LineBytes)) != nil {
					return &a[0]
				}
			}
		}
	}
	return nil
}

// transposes reports whether a nest looks like a matrix transposition. In the innermost loop of a
// transposition, one array advances by whole lines, and the other array advances by less than a
// line. After an interchange of the loops, the other array would advance by whole lines.
func (r *run) transposes(nest int) bool {
	a := r.strided(nest)
	if a == nil {
		return false
	}
	n, line := len(a.Strides), int64(r.loops.LineBytes)
	for loop := nest; loop < r.loops.Loops[nest].End; loop++ {
		if slices.ContainsFunc(r.arrays(loop), func(b outline.Array) bool {
			if b.Wild || len(b.Strides) != n || magnitude(b.Strides[n-1]) >= line || b.Strides[n-1] == 0 {
				return false
			}
			for d, s := range b.Strides[:n-1] {
				if magnitude(s) >= line && a.Strides[d] != 0 && magnitude(a.Strides[d]) < line {
					return true
				}
			}
			return false
		}) {
			return true
		}
	}
	return false
}

// nearest returns the smallest nonzero stride of an array in the loops around the innermost loop,
// or lineBytes if all these strides are larger.
func nearest(a *outline.Array, lineBytes int64) int64 {
	least := lineBytes
	for _, s := range a.Strides[:len(a.Strides)-1] {
		if s != 0 {
			least = min(least, magnitude(s))
		}
	}
	return least
}

// sunkNest is a nest after the statements beside an inner loop were moved into that loop.
type sunkNest struct {
	nest  *loops.Nest
	path  change.Path // the outer loop to interchange
	below int         // number of nesting levels from the outer loop to the inner loop
}

// sinkable finds loops whose body consists of one loop and of leaves. sinkable moves the leaves
// into that loop, down to the innermost loop, as if the code accumulated a sum in memory instead of
// in a register. The addresses of the leaves do not change in the inner loops.
func sinkable(n *loops.Nest) (list []sunkNest) {
	eachLoop(n.Items, nil, func(l *loops.Item, path change.Path) {
		if len(path) > mostDeep {
			return
		}
		if feedsBack(l, len(path)-1) {
			return
		}
		depths, moved := 1, false
		for at := l; hasLoop(at.Body); depths++ {
			inner := slices.IndexFunc(at.Body, func(it loops.Item) bool { return it.IsLoop() })
			if hasLoop(at.Body[inner+1:]) {
				return
			}
			moved = moved || len(at.Body) > 1
			at = &at.Body[inner]
		}
		if !moved {
			return
		}
		clone := n.Clone()
		for i, at := 0, path.Loop(clone); i < depths-1; i++ {
			sink(at, len(path)+i)
			at = &at.Body[0]
		}
		for below := 1; below < depths; below++ {
			list = append(list, sunkNest{clone, path, below})
		}
	})
	return list
}

// mostDeep is the largest number of loops that may surround a loop to be interchanged.
const mostDeep = 8

func hasLoop(items []loops.Item) bool {
	return slices.ContainsFunc(items, func(it loops.Item) bool { return it.IsLoop() })
}

// sink moves the leaves of a loop's body into its inner loop. depth is the number of loops around
// the leaves.
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

// trying returns the command that shows the effect of a trial. If the command has no option for the
// change, or numbers the loops differently, trying returns a command that lists the loops.
func (r *run) trying(nest *loopcount.Trial, b *trial, loop int) string {
	kind, text, ok := nest.Option(b.change)
	if !ok || b.sunk || b.runs > 0 || b.nest != nest.Nest || r.renumbered {
		return r.listing(loop)
	}
	level := r.Machine.Levels[b.level]
	cache := hierarchy.Cache{Name: level.Name, SizeBytes: level.SizeBytes, Ways: level.Ways, LineBytes: level.LineBytes}
	return "loops --nest " + strconv.Itoa(r.loops.Loops[loop].Count) + " --" + kind + " " + text + " --cache " + cache.String()
}

// listing returns the command that lists the arrays of a loop and their strides.
func (r *run) listing(loop int) string {
	if r.renumbered {
		return "loops"
	}
	return "loops --loop " + strconv.Itoa(r.loops.Loops[loop].Count)
}
