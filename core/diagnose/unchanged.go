package diagnose

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/parallel"
	"github.com/stackglass/stackglass/core/profile"
)

// overheads contains, for each site, the events other than misses that cost time.
type overheads struct {
	second, walks []float64 // number of translations from the second-level TLB, and from the page table
	split         []float64 // number of accesses that cross a line boundary
}

// inLoop contains the line accesses and the misses of a loop, including the loops in it.
type inLoop struct{ accesses, misses float64 }

// If the share of irregular references is at most mostWild, misses are counted in the loops instead
// of in a replay. Counting simulates each irregular reference in each cache separately.
const mostWild = 1.0 / 16

// countUnchanged determines the misses and translations of the unchanged run. If the loops are
// regular, it counts both in the loop-compressed trace, because the counting time hardly depends on
// trip counts. Otherwise, it replays the trace.
func (r *run) countUnchanged() {
	if r.loops == nil {
		return
	}
	c, tree := r.cost, r.loops.Tree()
	replays, native := r.needsReplay()
	switch {
	case !replays:
		r.count()
	case len(r.p.Totals.Threads) > 1 || r.parts().period == 0 && float64(tree.Size().Wild) > mostWild*float64(tree.Rows()):
		parallel.Each(2, func(i int) {
			if i == 0 {
				c.replay = r.again(nil, nil, pageShift, true)
			} else {
				r.prepareNests()
			}
		})
		if c.replay == nil {
			r.count()
		}
	case native:
		r.count(translations[0].level(), translations[1].level())
		r.takeTranslations()
	default:
		parallel.Each(2, func(i int) {
			if i == 0 {
				r.count()
			} else {
				c.replay = r.again(nil, nil, pageShift, false)
			}
		})
	}
	if c.replay != nil {
		c.overheads = c.replay.overheads()
	}
}

// prepareNests computes what [run.nests] needs of the largest nests. It does not depend on the
// costs of the run, so a processor that a replay leaves idle can compute it.
func (r *run) prepareNests() {
	if runtime.GOMAXPROCS(0) < 2 {
		return
	}
	var largest []int
	for i := range r.loops.Loops {
		if r.loops.Loops[i].Depth == 0 {
			largest = append(largest, i)
		}
	}
	slices.SortStableFunc(largest, func(a, b int) int { return cmp.Compare(r.loops.Loops[b].References, r.loops.Loops[a].References) })
	for _, loop := range largest[:min(mostTried, len(largest))] {
		if _, err := r.trialOf(loop); err == nil && r.GoOn() {
			r.strided(loop)
		}
	}
}

// needsReplay reports whether the profile is not sufficient, and the trace can be replayed. A
// replay is needed in three cases: the run has several threads, because a machine with one core per
// thread would execute the references in a different order; the data is larger than the memory that
// the TLB covers; or references cross line boundaries. native reports whether each of these
// references is a single access of the machine.
func (r *run) needsReplay() (needs, native bool) {
	split := false
	native = true
	for i := range r.p.Sites.Code {
		s := &r.p.Sites.Code[i]
		if crossing(s, r.p.Sites.LineBytes) > 0 {
			split = true
			native = native && uint64(s.Bytes) <= nativeBytes(r.cost.program, s)
		}
	}
	lines := uint64(0)
	if l := r.p.LocalityAt(r.p.Sites.LineBytes); l != nil {
		lines = l.Lines()
	}
	return (len(r.p.Totals.Threads) > 1 || split || lines > secondPages) && r.canReplay(), native
}

// count counts the misses in the loop-compressed trace. The misses of the TLBs, if there are any,
// follow the misses of the levels.
func (r *run) count(tlbs ...hierarchy.Cache) {
	r.counted = loopcount.CountMisses(r.loops, slices.Concat(r.Machine.Levels, tlbs), r.GoOn)
}

// takeTranslations derives the numbers of translations from the counted misses of the TLBs. A
// translation that is not in the first level is in the second level, unless the second level
// misses, too.
func (r *run) takeTranslations() {
	if r.counted == nil {
		return
	}
	n := len(r.Machine.Levels)
	first, walks := r.bySite(r.counted.Levels[n].Result), r.bySite(r.counted.Levels[n+1].Result)
	r.counted.Levels = r.counted.Levels[:n]
	if first == nil || walks == nil {
		return
	}
	b := &overheads{second: make([]float64, len(first)), walks: walks}
	for i := range first {
		walks[i] = min(walks[i], first[i])
		b.second[i] = first[i] - walks[i]
		b.split = append(b.split, float64(crossing(&r.p.Sites.Code[i], r.p.Sites.LineBytes)))
	}
	r.cost.overheads = b
}

// overheads returns the numbers that a replay has counted.
func (c *counts) overheads() *overheads {
	b := &overheads{}
	for i := range c.sites {
		n := &c.sites[i]
		b.second, b.walks, b.split = append(b.second, n.second), append(b.walks, n.walks), append(b.split, float64(n.split))
	}
	return b
}

// exact replaces the estimated misses of sites with exact misses.
func (r *run) exact() {
	c := r.cost
	if len(r.p.Totals.Threads) > 1 {
		if c.replay != nil {
			c.run.misses, c.run.coherence = c.replay.misses, c.replay.coherence
		}
		return
	}
	for k, exact := range r.exactMisses() {
		if exact != nil {
			c.run.misses[k] = exact
		}
	}
	c.replay = r.withMisses(c.replay, pageShift)
}

// exactMisses returns the misses of the unchanged run of one thread by level and site. The result
// is nil for levels that were neither counted nor simulated.
func (r *run) exactMisses() [][]float64 {
	switch {
	case r.misses != nil:
	case r.counted != nil:
		for k := range r.counted.Levels {
			r.misses = append(r.misses, r.bySite(r.counted.Levels[k].Result))
		}
	case r.cost.replay != nil && r.cost.replay.misses != nil:
		r.misses = r.cost.replay.misses
	default:
		r.misses = make([][]float64, len(r.Machine.Levels))
	}
	return r.misses
}

// bySite returns the misses of each site, or nil if they were not counted.
func (r *run) bySite(m *misses.Result) []float64 {
	if m == nil {
		return nil
	}
	if r.number == nil {
		r.number = map[*profile.Site]int{}
		for i := range r.p.Sites.Code {
			r.number[&r.p.Sites.Code[i]] = i
		}
	}
	sites := make([]float64, len(r.p.Sites.Code))
	for ref, counts := range m.Refs {
		if i, ok := r.number[r.loops.Place(r.loops.Tree().References()[ref])]; ok {
			sites[i] += float64(counts.Misses)
		}
	}
	return sites
}

// withMisses adds the numbers of misses to the replay of the unchanged run if the replay did not
// count them.
func (r *run) withMisses(of *counts, pageShift uint) *counts {
	if of == nil || of.misses != nil {
		return of
	}
	of.misses = r.exactMisses()
	if slices.ContainsFunc(of.misses, func(sites []float64) bool { return sites == nil }) {
		return r.again(nil, nil, pageShift, true)
	}
	return of
}

// inLoops returns the accesses and misses in each loop of the unchanged run, by level; nil for
// levels that were neither counted nor simulated. The misses of a simulated site that is in several
// loops are divided among these loops by the number of references.
func (r *run) inLoops() [][]inLoop {
	if r.byLoop != nil {
		return r.byLoop
	}
	levels := make([][]inLoop, len(r.Machine.Levels))
	switch of := r.cost.replay; {
	case r.counted != nil:
		for k := range levels {
			if m := r.counted.Levels[k]; m.Result != nil {
				levels[k] = loopsOf(&m)
			}
		}
	case of != nil && of.misses != nil:
		index := newSiteIndex(r.p)
		for k := range levels {
			levels[k] = make([]inLoop, len(r.loops.Loops))
		}
		for loop := range r.loops.Loops {
			for ref, times := range r.loops.Executions(loop) {
				i := index.indexOf(ref.Site, ref.PC, ref.Kind)
				if i < 0 {
					continue
				}
				part := min(1, share(float64(times), float64(r.p.Sites.Code[i].References())))
				for k := range levels {
					levels[k][loop].accesses += part * float64(of.sites[i].accesses)
					levels[k][loop].misses += part * of.misses[k][i]
				}
			}
		}
	}
	r.byLoop = levels
	return levels
}

func loopsOf(m *loopcount.LevelMisses) (list []inLoop) {
	for _, n := range m.ByLoop {
		list = append(list, inLoop{float64(n.Accesses), float64(n.Misses)})
	}
	return list
}

// mayConflict reports whether a loop may have conflict misses in a level. Counting conflict misses
// takes long if the trace is irregular. In an irregular trace, a loop without irregular references
// is examined only if two runs of its nest, one after the other, have conflict misses.
func (r *run) mayConflict(loop, level int) bool {
	if r.counted != nil {
		return true
	}
	key := [2]int{r.loops.Loops[loop].Nest, level}
	may, known := r.mayConflictIn[key]
	if known {
		return may
	}
	may = true
	c := r.Machine.Levels[level]
	cache, ok := loopcount.CacheOf(c)
	if t, err := r.trialOf(loop); err == nil && ok {
		twice := t.Nest.Clone()
		twice.Items = append(twice.Items, t.Nest.Clone().Items...)
		full := cache
		full.Sets, full.Ways = 1, cache.Lines()
		caches := [2]misses.Cache{cache, full}
		var found [2]uint64
		var errs [2]error
		parallel.Each(len(caches), func(i int) { found[i], errs[i] = change.Misses(twice, caches[i], r.GoOn) })
		if errs[0] == nil && errs[1] == nil {
			may = leastConflicts*(float64(found[0])-float64(found[1])) > float64(found[0])
		}
	}
	r.mayConflictIn[key] = may
	return may
}

// leastConflicts is the ratio of misses to conflict misses above which conflict misses are ignored.
const leastConflicts = 64

// countConflicts counts the conflict misses of the loops in these levels, unless they are already
// counted. The conflict misses are the misses in the level minus the misses in a fully associative
// cache of the same size. In a replay of several threads, each thread has its own caches, but here
// all threads share one cache. Therefore, the result is not a number of misses, but a share of the
// loop's misses.
func (r *run) countConflicts(levels []int) {
	slices.Sort(levels)
	levels = slices.DeleteFunc(slices.Compact(levels), func(level int) bool { _, ok := r.conflictsIn[level]; return ok })
	both := make([][]inLoop, 2*len(levels))
	parallel.Each(len(both), func(n int) {
		c, count := r.Machine.Levels[levels[n/2]], loopcount.CountMisses
		if n%2 == 1 {
			c.Ways = 0
			if l := r.p.LocalityAt(c.LineBytes); l != nil && r.p.Sampled == nil && l.Lines() <= c.Lines() {
				count = loopcount.CountFirst // such a cache never evicts a line
			}
		} else if r.counted != nil {
			both[n] = r.inLoops()[levels[n/2]]
			return
		}
		if m := count(r.loops, []hierarchy.Cache{c}, r.GoOn); m != nil && m.Levels[0].Result != nil {
			both[n] = loopsOf(&m.Levels[0])
		}
	})
	for n, level := range levels {
		var conflicts []float64
		if real, full := both[2*n], both[2*n+1]; real != nil && full != nil {
			for loop := range real {
				conflicts = append(conflicts, max(0, share(real[loop].misses-full[loop].misses, real[loop].misses)))
			}
		}
		r.conflictsIn[level] = conflicts
	}
}
