package sites

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// bins counts distances in the bins of profile.SiteBin, with cold accesses in
// one more, for many lists. A list is in groups of eight bins, made when first
// needed: most sites have few distances, and a million of them fit into memory.
type bins struct {
	groups []binGroups // by list
	counts []uint64    // groups of eight; group 0 is no one's
}

// binGroups are the numbers of a list's groups in counts; 0: not made yet.
type binGroups [binsOf8]uint32

const (
	coldBin = profile.SiteBins
	binsOf8 = (coldBin + 8) / 8
	subBins = 4 // a power of two
)

// addList makes another list.
func (t *bins) addList() { t.groups = append(t.groups, binGroups{}) }

// add counts a distance for each of the lists.
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

// addCoherent counts depths on coherent stacks for each of the lists, but for those of
// lines that were lost, which it counts in lost by the depth at which they were.
func (t *bins) addCoherent(lost *bins, lists, depths, lostAt []uint32) {
	lists, lostAt = lists[:len(depths)], lostAt[:len(depths)]
	for i, d := range depths {
		if d != stack.Lost {
			*t.at(lists[i], binOf(d))++
		} else {
			*lost.at(lists[i], binOf(lostAt[i]))++
		}
	}
}

// binOf is profile.SiteBin, or coldBin, without a branch.
func binOf(d uint32) int {
	e := bits.Len32(d|subBins) - 3
	return e*subBins + int(d>>e) + int((uint64(d)+1)>>32)
}

// at gives the place of a list's bin.
func (t *bins) at(list uint32, bin int) *uint64 {
	group := t.groups[list][bin>>3]
	if group == 0 {
		group = t.newGroup(list, bin)
	}
	return &t.counts[group<<3|uint32(bin)&7]
}

func (t *bins) newGroup(list uint32, bin int) uint32 {
	if len(t.counts) == 0 {
		t.counts = make([]uint64, 8)
	}
	group := uint32(len(t.counts) / 8)
	t.counts = append(t.counts, 0, 0, 0, 0, 0, 0, 0, 0)
	t.groups[list][bin>>3] = group
	return group
}

// move counts one access of a list, cold so far, at a distance.
func (t *bins) move(list, distance uint32) {
	*t.at(list, coldBin)--
	*t.at(list, binOf(distance))++
}

// addTo adds a list's counts to a sum over bins.
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

// addTimes adds what a profile tells, as often as times says.
func (t *bins) addTimes(list uint32, times, cold uint64, counts []profile.BinCount) {
	*t.at(list, coldBin) += times * cold
	for _, b := range counts {
		*t.at(list, int(b.Bin)) += times * b.Count
	}
}

// clone gives a copy.
func (t *bins) clone() bins { return bins{slices.Clone(t.groups), slices.Clone(t.counts)} }

// counted lists the bins of a sum that are not zero.
func counted(sum *[coldBin + 1]uint64) (list []profile.BinCount) {
	for bin, n := range sum[:coldBin] {
		if n != 0 {
			list = append(list, profile.BinCount{Bin: uint8(bin), Count: n})
		}
	}
	return list
}

// reuse tells a sum over bins as a profile does.
func reuse(sum *[coldBin + 1]uint64) profile.Reuse {
	return profile.Reuse{Cold: sum[coldBin], Bins: counted(sum)}
}

func isCold(d uint32) bool { return d == stack.Cold }
