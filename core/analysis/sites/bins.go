package sites

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// bins contains many lists of counts. A list counts distances in the bins of profile.SiteBin, and
// cold accesses in an additional bin. Most sites have few different distances. Groups of eight bins
// are therefore allocated on demand, so that a million lists fit into memory.
type bins struct {
	groups []binGroups // indexed by list
	counts []uint64    // groups of eight bins; group 0 is unused
	owners []uint32    // indexed by group: list × binsOf8 + index in binGroups
}

// binGroups contains, for each group of bins of a list, the index of the group in the slice counts;
// 0: not allocated.
type binGroups [binsOf8]uint32

const (
	coldBin = profile.SiteBins
	binsOf8 = (coldBin + 8) / 8
	subBins = 4 // a power of two
)

func (t *bins) addList() { t.groups = append(t.groups, binGroups{}) }

func (t *bins) add(lists []uint32, distances []uint32) {
	counts := t.counts
	lists = lists[:len(distances)]
	for i, d := range distances {
		bin := binOf(d)
		group := t.groups[lists[i]][bin>>3&(binsOf8-1)]
		if group == 0 {
			group = t.newGroup(lists[i], bin)
			counts = t.counts
		}
		counts[group<<3|uint32(bin)&7]++
	}
}

// addBoth counts each distance in two lists: distance i in lists[i] and in others[i].
func (t *bins) addBoth(lists, others []uint32, distances []uint32) {
	counts := t.counts
	lists, others = lists[:len(distances)], others[:len(distances)]
	for i, d := range distances {
		bin := binOf(d)
		at, in := bin>>3&(binsOf8-1), uint32(bin)&7
		group, other := t.groups[lists[i]][at], t.groups[others[i]][at]
		if group == 0 {
			group = t.newGroup(lists[i], bin)
			counts = t.counts
		}
		if other == 0 {
			other = t.newGroup(others[i], bin)
			counts = t.counts
		}
		counts[group<<3|in]++
		counts[other<<3|in]++
	}
}

// addCoherent counts each depth on a coherent stack in its list. The parameter lost receives the
// coherence misses.
func (t *bins) addCoherent(lost *bins, lists, depths, lostAt []uint32) {
	lists, lostAt = lists[:len(depths)], lostAt[:len(depths)]
	for i, d := range depths {
		if d != stack.Lost {
			*t.counter(lists[i], binOf(d))++
		} else {
			*lost.counter(lists[i], binOf(lostAt[i]))++
		}
	}
}

// binOf returns profile.SiteBin(d), or coldBin for cold accesses. binOf needs no branch.
func binOf(d uint32) int {
	e := bits.Len32(d|subBins) - 3
	return e*subBins + int(d>>e) + int((uint64(d)+1)>>32)
}

func (t *bins) counter(list uint32, bin int) *uint64 { return &t.counts[t.index(list, bin)] }

// index returns the index of a list's bin in the slice counts.
func (t *bins) index(list uint32, bin int) uint32 {
	group := t.groups[list][bin>>3]
	if group == 0 {
		group = t.newGroup(list, bin)
	}
	return group<<3 | uint32(bin)&7
}

// owner returns the list and the bin that belong to an index in the slice counts.
func (t *bins) owner(index uint32) (list uint32, bin int) {
	owner := t.owners[index>>3]
	return owner / binsOf8, int(owner%binsOf8<<3 | index&7)
}

func (t *bins) clone() bins {
	return bins{slices.Clone(t.groups), slices.Clone(t.counts), slices.Clone(t.owners)}
}

func (t *bins) newGroup(list uint32, bin int) uint32 {
	if len(t.counts) == 0 {
		t.counts, t.owners = append(t.counts, make([]uint64, 8)...), append(t.owners, 0)
	}
	group := uint32(len(t.counts) / 8)
	t.counts = append(t.counts, 0, 0, 0, 0, 0, 0, 0, 0)
	t.owners = append(t.owners, list*binsOf8|uint32(bin>>3))
	t.groups[list][bin>>3] = group
	return group
}

// moveFromCold changes one cold access of a list into an access at the given distance.
func (t *bins) moveFromCold(list, distance uint32) {
	*t.counter(list, coldBin)--
	*t.counter(list, binOf(distance))++
}

func (t *bins) addTo(sum *[coldBin + 1]uint64, list uint32) {
	for g, group := range t.groups[list] {
		if group == 0 {
			continue
		}
		for i, n := range t.counts[group<<3:][:8] {
			if n != 0 {
				sum[g<<3|i] += n
			}
		}
	}
}

// addTimes multiplies counts from a profile by the parameter times, and adds the products to a
// list.
func (t *bins) addTimes(list uint32, times, cold uint64, counts []profile.BinCount) {
	*t.counter(list, coldBin) += times * cold
	for _, b := range counts {
		*t.counter(list, int(b.Bin)) += times * b.Count
	}
}

// nonzeroBins returns the bins whose count is not zero.
func nonzeroBins(sum *[coldBin + 1]uint64) (list []profile.BinCount) {
	for bin, n := range sum[:coldBin] {
		if n != 0 {
			list = append(list, profile.BinCount{Bin: uint8(bin), Count: n})
		}
	}
	return list
}

func reuse(sum *[coldBin + 1]uint64) profile.Reuse {
	return profile.Reuse{Cold: sum[coldBin], Bins: nonzeroBins(sum)}
}

func isCold(d uint32) bool { return d == stack.Cold }
