package change

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/trace"
)

// Outcome is what a change does to a nest: its misses in a cache that is empty at first,
// line accesses that miss, before and after.
type Outcome struct {
	Change        Change
	Before, After uint64
}

// Saved is the share of the misses that the change saves; less than 0: it adds some.
func (o *Outcome) Saved() float64 {
	if o.Before == 0 {
		return 0
	}
	return 1 - float64(o.After)/float64(o.Before)
}

// Try applies changes, one after the other, and counts the misses before and after. The
// nest stays as it is. goOn is asked now and then, where it is not nil; when it says no
// the error is [misses.ErrStopped]. Other errors are an [*Error], a [*loops.NestError] or
// a [*trace.OptionError].
func Try(n *loops.Nest, c misses.Cache, goOn func() bool, changes ...Change) (o Outcome, err error) {
	if o.Before, err = count(n, c, goOn); err != nil {
		return o, err
	}
	return after(n, c, goOn, o.Before, changes...)
}

func after(n *loops.Nest, c misses.Cache, goOn func() bool, before uint64, changes ...Change) (o Outcome, err error) {
	o.Before = before
	changed := n.Clone()
	for _, by := range changes {
		if err := by.Apply(changed); err != nil {
			return o, err
		}
		o.Change = by
	}
	o.After, err = count(changed, c, goOn)
	return o, err
}

func count(n *loops.Nest, c misses.Cache, goOn func() bool) (uint64, error) {
	tree, err := n.Build()
	if err != nil {
		return 0, err
	}
	if goOn == nil {
		goOn = func() bool { return true }
	}
	r, err := misses.CountAsking(tree, c, goOn)
	if err != nil {
		return 0, err
	}
	return r.Total.Misses, nil
}

// Search tries interchanges, tiles, pads, alignments, fusions and arrays of structures on
// a nest, one at a time, and gives those that save at least a fiftieth of the misses, the
// best first, most of them at most. Of changes of one kind to the same loops or arrays
// only the best is given. When goOn says no, it gives what it has found, and says that it
// was stopped.
func Search(n *loops.Nest, c misses.Cache, most int, goOn func() bool) (found []Outcome, stopped bool, err error) {
	before, err := count(n, c, goOn)
	if err == misses.ErrStopped {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, alternatives := range candidates(n, c) {
		var best Outcome
		for _, by := range alternatives {
			if goOn != nil && !goOn() { // most are counted before the count would ask
				stopped = true
				break
			}
			o, err := after(n, c, goOn, before, by)
			if err == misses.ErrStopped {
				stopped = true
				break
			}
			if err != nil { // it does not apply
				continue
			}
			if best.Change == nil || o.After < best.After {
				best = o
			}
		}
		if best.Change != nil && best.Saved() >= worthwhile {
			found = append(found, best)
		}
		if stopped {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b Outcome) int { return cmp.Compare(a.After, b.After) })
	return found[:min(most, len(found))], stopped, nil
}

const (
	worthwhile  = 0.02
	mostPadded  = 8  // arrays
	mostPairs   = 6  // of arrays to make structures of
	mostNested  = 6  // loops in each other
	mostChained = 16 // loops that something is tried on
)

// candidates gives changes to try: of each list only the best is of interest.
func candidates(n *loops.Nest, c misses.Cache) (all [][]Change) {
	var paths []Path
	eachLoop(n.Items, nil, func(p Path, l *loops.Item) {
		if len(paths) < mostChained {
			paths = append(paths, slices.Clone(p))
		}
	})
	for _, p := range paths {
		nested := 1
		for nested < mostNested {
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
					if loops > 1 { // a loop alone keeps its order
						tiles = append(tiles, Tile{p, sizes})
					}
				}
			}
		}
		all = append(all, tiles, []Change{Fuse{p}})
	}
	uses := map[Array]uint64{}
	arrays := Arrays(n)
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		low, _ := touched(leaf, around)
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
	for _, a := range arrays[:min(len(arrays), mostPadded)] {
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
			if pairs < mostPairs && a.Bytes() == b.Bytes() {
				all = append(all, []Change{Records{Arrays: []trace.Addr{a.First, b.First}}})
				pairs++
			}
		}
	}
	return all
}

// eachLoop gives the loops of items, the outer ones first.
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
