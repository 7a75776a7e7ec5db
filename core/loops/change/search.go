package change

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/parallel"
	"github.com/stackglass/stackglass/core/trace"
)

// Outcome is the effect of a change on a nest: the misses before and after the change, counted in
// line accesses, in a cache that is initially empty.
type Outcome struct {
	Change        Change
	Before, After uint64
}

// Saved returns the fraction of the misses that the change saves. The fraction is negative if the
// change adds misses.
func (o *Outcome) Saved() float64 {
	if o.Before == 0 {
		return 0
	}
	return 1 - float64(o.After)/float64(o.Before)
}

// Try applies changes in order, and counts the misses before and after the changes. Try does not
// modify n. From time to time, Try calls the function goOn, which may be nil. If goOn returns
// false, Try stops and returns [misses.ErrStopped]. Any other error is an [*Error], a
// [*loops.NestError] or a [*trace.OptionError].
func Try(n *loops.Nest, c misses.Cache, goOn func() bool, changes ...Change) (o Outcome, err error) {
	if o.Before, err = Misses(n, c, goOn); err != nil {
		return o, err
	}
	for _, by := range changes {
		o.Change = by
	}
	o.After, err = Misses(n, c, goOn, changes...)
	return o, err
}

// Misses counts the misses of a nest after changes, in the same way as [Try].
func Misses(n *loops.Nest, c misses.Cache, goOn func() bool, changes ...Change) (uint64, error) {
	return Count(n, c, func(uint64) bool { return goOn == nil || goOn() }, changes...)
}

// Counter is a function that counts the misses of a nest after changes: [Count] or [Estimate]. A
// Counter calls the function goOn with a lower bound on the result.
type Counter func(n *loops.Nest, c misses.Cache, goOn func(least uint64) bool, changes ...Change) (uint64, error)

// Count counts all misses of a nest after changes.
func Count(n *loops.Nest, c misses.Cache, goOn func(least uint64) bool, changes ...Change) (uint64, error) {
	n, err := changed(n, changes)
	if err != nil {
		return 0, err
	}
	misses, _, err := total(n, c, func(least, _ uint64) bool { return goOn(least) })
	return misses, err
}

// Like [Count], Estimate counts the misses of a nest after changes. If the nest is a long loop,
// Estimate counts the misses of the first iterations, and assumes that all later iterations miss as
// often as the second half of the counted iterations. The result is inaccurate if data is reused
// only after many iterations. For other nests, Estimate counts all misses. As soon as three eighths
// of the accesses are counted, Estimate passes an extrapolated number of misses to goOn instead of
// a lower bound.
func Estimate(n *loops.Nest, c misses.Cache, goOn func(least uint64) bool, changes ...Change) (uint64, error) {
	n, err := changed(n, changes)
	if err != nil {
		return 0, err
	}
	at, half := beginning(n, c)
	if half == 0 {
		all := executions(n.Items)
		misses, _, err := total(n, c, func(least, accesses uint64) bool {
			if 8*accesses > 3*all {
				least = max(least, uint64(float64(least)*float64(all)/float64(accesses)))
			}
			return goOn(least)
		})
		return misses, err
	}
	// Two short loops replace the long loop. The variable "half" is the trip count of each short
	// loop.
	trips := n.Items[at].Trips
	short := n.Clone()
	l := &short.Items[at]
	l.Trips = half
	short.Items = slices.Insert(short.Items, at+1, *l)
	second := &short.Items[at+1]
	second.Body = n.Clone().Items[at].Body
	moveOn(second.Body, half)
	misses, before, err := total(short, c, func(uint64, uint64) bool { return goOn(0) }, at+1, at+2)
	if err != nil {
		return 0, err
	}
	rest := float64(before[1]-before[0]) / float64(half) * float64(trips-2*half)
	return misses + uint64(rest+0.5), nil
}

// moveOn changes the body of an outermost loop with equal iterations, so that the loop begins the
// given number of iterations later.
func moveOn(body []loops.Item, iterations uint64) {
	for i := range body {
		it := &body[i]
		if it.IsLoop() {
			moveOn(it.Body, iterations)
			continue
		}
		it.Addr += iterations * uint64(it.Step(0))
	}
}

// maxEstimated is the number of references that [Estimate] usually counts. [Estimate] counts more
// references if the smallest number of iterations that can represent the nest requires more.
const maxEstimated = 1 << 21

// Long reports whether [Estimate] may count only the first iterations of a nest.
func Long(n *loops.Nest) bool { return executions(n.Items) >= maxEstimated }

// beginning returns the index of the largest loop of a nest, and the number "half": the first
// 2·half iterations of this loop represent the whole loop. If all references return to the same
// line offsets after a certain number of iterations (a period), half is a multiple of the period.
// If the loop is short, if its iterations differ in length, or if there are several large loops,
// half is 0.
func beginning(n *loops.Nest, c misses.Cache) (at int, half uint64) {
	const maxPeriod, shortest = 32, 6
	all, largest := uint64(0), uint64(0)
	for i := range n.Items {
		own := executions(n.Items[i : i+1])
		if all += own; own > largest && n.Items[i].IsLoop() {
			at, largest = i, own
		}
	}
	if 4*largest < 3*all {
		return 0, 0
	}
	period, even := uint64(2), true
	l := &n.Items[at]
	var look func(items []loops.Item)
	look = func(items []loops.Item) {
		for i := range items {
			it := &items[i]
			step := uint64(max(it.Step(0), -it.Step(0)))
			if it.IsLoop() {
				even = even && step == 0
				look(it.Body)
				continue
			}
			even = even && !it.Wild
			for own := c.LineBytes; step%own != 0; own /= 2 {
				period = max(period, 2*c.LineBytes/own) // line sizes are powers of two
			}
		}
	}
	look(l.Body)
	each := executions(l.Body)
	if half = max(1, maxEstimated/3/max(1, each)); period <= maxPeriod && (half > 1 || period > 2) {
		half = (half + period - 1) / period * period
	}
	if !even || shortest*half > l.Trips || all < maxEstimated {
		return 0, 0
	}
	return at, half
}

// executions returns the number of references that items make, under the assumption that inner trip
// counts are constant.
func executions(items []loops.Item) (sum uint64) {
	for i := range items {
		if it := &items[i]; it.IsLoop() {
			sum += it.Trips * executions(it.Body)
		} else if it.Ref.Kind.IsReference() {
			sum++
		}
	}
	return sum
}

func changed(n *loops.Nest, changes []Change) (*loops.Nest, error) {
	if len(changes) > 0 {
		n = n.Clone()
	}
	for _, by := range changes {
		if err := by.Apply(n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func total(n *loops.Nest, c misses.Cache, goOn func(least, accesses uint64) bool, items ...int) (total uint64, before []uint64, err error) {
	tree, err := n.Build()
	if err != nil {
		return 0, nil, err
	}
	return misses.Total(tree, c, goOn, items...)
}

// Search tries interchanges, tilings, paddings, alignments, fusions and arrays of structures on a
// nest, one change at a time. Search returns at most maxOutcomes outcomes, in descending order of
// saved misses. Each outcome saves at least 2 % of the misses, and is the best outcome of its kind
// for the same loops or arrays. If the function wanted is not nil, Search skips changes for which
// this function returns false. If goOn returns false, Search stops, and returns the outcomes so far
// and stopped = true.
func Search(n *loops.Nest, c misses.Cache, count Counter, maxOutcomes int, wanted func(Change) bool, goOn func() bool) (found []Outcome, stopped bool, err error) {
	if goOn == nil {
		goOn = func() bool { return true }
	}
	before, err := count(n, c, func(uint64) bool { return goOn() })
	if err == misses.ErrStopped {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	s := search{nest: n, cache: c, count: count, goOn: goOn, most: maxOutcomes, before: before}
	var jobs []job
	for list, alternatives := range candidates(n, c) {
		s.best = append(s.best, Outcome{Before: before, After: math.MaxUint64})
		s.from = append(s.from, 0)
		for _, by := range alternatives {
			if wanted == nil || wanted(by) {
				jobs = append(jobs, job{list, len(jobs), by})
			}
		}
	}
	parallel.Each(len(jobs), func(i int) { s.tryJob(jobs[i]) })
	for _, o := range s.best {
		if o.Change != nil && o.Saved() >= worthwhile {
			found = append(found, o)
		}
	}
	slices.SortStableFunc(found, func(a, b Outcome) int { return cmp.Compare(a.After, b.After) })
	return found[:min(maxOutcomes, len(found))], s.stopped, nil
}

// search is the state of a running search. The result does not depend on the order in which jobs
// finish.
type search struct {
	nest   *loops.Nest
	cache  misses.Cache
	count  Counter
	goOn   func() bool
	most   int
	before uint64

	mutex   sync.Mutex // protects the following fields and the calls of the function "goOn"
	best    []Outcome  // by list of candidates: the best outcome so far
	from    []int      // by list of candidates: the number of the job that found the best outcome
	stopped bool
}

// job is a candidate to try.
type job struct {
	list, number int
	by           Change
}

// tryJob counts the misses of a candidate. It stops as soon as the candidate can no longer be among
// the results.
func (s *search) tryJob(j job) {
	promising := func(least uint64) bool {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.stopped = s.stopped || !s.goOn()
		return !s.stopped && least <= s.missLimit(j.list)
	}
	// most counts finish before they call the function "promising" for the first time
	if !promising(0) {
		return
	}
	after, err := s.count(s.nest, s.cache, promising, j.by)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if best := &s.best[j.list]; err == nil && (after < best.After || after == best.After && j.number < s.from[j.list]) {
		best.Change, best.After, s.from[j.list] = j.by, after, j.number
	}
}

// missLimit returns the maximum number of misses that a candidate may have to be among the results.
func (s *search) missLimit(list int) uint64 {
	least := uint64(float64(s.before)*(1-worthwhile)) + 1
	least = min(least, s.best[list].After)
	if len(s.best) > s.most {
		after := make([]uint64, len(s.best))
		for i := range s.best {
			after[i] = s.best[i].After
		}
		slices.Sort(after)
		least = min(least, after[max(0, s.most-1)])
	}
	return least
}

const (
	worthwhile = 0.02
	maxPadded  = 8  // maximum number of arrays to pad
	maxPairs   = 6  // maximum number of pairs of arrays to merge into structures
	maxNested  = 6  // maximum number of nested loops
	maxFused   = 7  // maximum number of further loops to fuse with a loop
	maxChained = 16 // maximum number of loops to which changes are applied
)

// candidates returns lists of changes to try. Search reports only the best change of each list.
func candidates(n *loops.Nest, c misses.Cache) (all [][]Change) {
	var paths []Path
	eachLoop(n.Items, nil, func(p Path, l *loops.Item) {
		if len(paths) < maxChained {
			paths = append(paths, slices.Clone(p))
		}
	})
	for _, p := range paths {
		nested := 1
		for nested < maxNested {
			if _, why := chain(n, p, nested); why != "" {
				break
			}
			nested++
		}
		for inner := 1; inner < nested; inner++ {
			all = append(all, []Change{Interchange{p, inner}})
		}
		var tiles []Change
		for _, size := range []uint64{8, 16, 32, 64, 128} {
			for loops := 1; loops <= nested; loops++ {
				for first := range loops {
					sizes := make([]uint64, loops)
					for i := first; i < loops; i++ {
						sizes[i] = size
					}
					if loops > 1 { // tiling a single loop does not change the order
						tiles = append(tiles, Tile{p, sizes})
					}
				}
			}
		}
		all = append(all, tiles, fusions(n, p))
	}
	uses := map[Array]uint64{}
	arrays := Arrays(n)
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		low, _ := byteRange(leaf, around)
		times := uint64(1)
		for _, l := range around {
			times *= max(1, l.Trips)
		}
		for _, a := range arrays {
			if !leaf.Wild && a.has(low) {
				uses[a] += times
			}
		}
	})
	slices.SortStableFunc(arrays, func(a, b Array) int { return cmp.Compare(uses[b], uses[a]) })
	for _, a := range arrays[:min(len(arrays), maxPadded)] {
		var pads []Change
		for _, bytes := range []uint64{c.LineBytes, 8, 2 * c.LineBytes, 16, 5 * c.LineBytes} {
			pads = append(pads, Pad{Array: a.First, Bytes: bytes})
		}
		all = append(all, pads)
	}
	all = append(all, []Change{Align{Bytes: c.LineBytes}})
	pairs := 0
	for i, a := range arrays {
		for _, b := range arrays[i+1:] {
			if pairs < maxPairs && a.Bytes() == b.Bytes() {
				all = append(all, []Change{Records{Arrays: []trace.Addr{a.First, b.First}}})
				pairs++
			}
		}
	}
	return all
}

// fusions returns the fusions of a loop with one or more of the loops after it.
func fusions(n *loops.Nest, first Path) (list []Change) {
	fused := n.Clone()
	for more := range maxFused {
		if (Fuse{First: first}).Apply(fused) != nil {
			break
		}
		list = append(list, Fuse{first, more})
	}
	return list
}

// eachLoop calls the function "do" for each loop in items, outer loops first.
func eachLoop(items []loops.Item, around Path, do func(p Path, l *loops.Item)) {
	number := 0
	for i := range items {
		if it := &items[i]; it.IsLoop() {
			p := append(around[:len(around):len(around)], number)
			do(p, it)
			eachLoop(it.Body, p, do)
			number++
		}
	}
}
