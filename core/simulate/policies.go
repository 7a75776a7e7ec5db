package simulate

import (
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// fifoRecency and fifoList implement FIFO. A hit does not move a line, so the lines of a set are in
// the order of insertion.
type (
	fifoRecency struct{ *recency }
	fifoList    struct{ *list }
)

func (t fifoRecency) touch(line trace.Line, dirty bool) bool {
	f := t.find(line)
	if f != nil && dirty {
		*f |= 1
	}
	return f != nil
}

func (t fifoList) touch(line trace.Line, dirty bool) bool {
	n, found := t.at[line]
	if found && dirty {
		t.nodes[n].frame |= 1
	}
	return found
}

// Re-reference prediction values (Jaleel, Theobald, Steely and Emer, ISCA 2010, §4), with 2 bits.
const (
	distant = 3 // value of a line that can be evicted
	long    = 2 // value of an inserted line under SRRIP
	soon    = 0 // value of a line after a hit

	// BRRIP inserts one of every bimodalPeriod lines, starting with the first, with the value
	// "long". All other lines have the value "distant".
	bimodalPeriod = 32

	selectorMost = 1<<10 - 1 // maximum value of DRRIP's selector
	// if the selector is at least this value, the follower sets use BRRIP
	selectorMiddle = 1 << 9
	dueling        = 32 // number of leader sets of each policy, if there are enough sets
)

// ranked implements the policies that store a number, the rank, for each way. The rank counts uses
// (LFU), records whether the way was used (bit-PLRU and NRU), or is a re-reference prediction value
// (RRIP).
type ranked struct {
	placed
	policy   hierarchy.Replacement
	rank     []uint32 // one number for each way, set by set
	inserts  uint64   // number of lines inserted under BRRIP
	selector int      // incremented by a miss in a leader set of SRRIP, and decremented by a miss in a leader set of BRRIP
	group    uint64   // number of sets in a group; the first set is a leader set of SRRIP, and the last set is a leader set of BRRIP
}

func newRanked(where index, ways uint64, policy hierarchy.Replacement) *ranked {
	return &ranked{placed: newPlaced(where, ways), policy: policy, rank: make([]uint32, where.sets*ways),
		selector: selectorMiddle - 1, group: max(2, where.sets/dueling)}
}

func (t *ranked) touch(line trace.Line, dirty bool) bool {
	set, way, found := t.find(line)
	if found {
		if dirty {
			t.frames[set*t.ways+way] |= 1
		}
		t.updateRanks(set, way, true)
	}
	return found
}

func (t *ranked) insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool) {
	set := t.set(line)
	way, found := t.takeEmpty(set)
	if !found {
		way = t.victim(set)
	}
	t.updateRanks(set, way, false)
	return t.replace(line, dirty, set, way)
}

// updateRanks updates the ranks of a set after a hit in a way, or after an insertion into the way.
func (t *ranked) updateRanks(set, way uint64, hit bool) {
	ranks := t.rank[set*t.ways : (set+1)*t.ways]
	switch t.policy {
	case hierarchy.LFU:
		if !hit {
			ranks[way] = 0
		}
		ranks[way] += min(1, ^ranks[way]) // the count of uses saturates
	case hierarchy.BitPLRU:
		ranks[way] = 1
		for _, r := range ranks {
			if r == 0 {
				return
			}
		}
		clear(ranks)
		ranks[way] = 1
	case hierarchy.NRU:
		ranks[way] = 1
	default:
		if ranks[way] = soon; !hit {
			ranks[way] = t.insertedRRPV(set)
		}
	}
}

// insertedRRPV returns the re-reference prediction value of an inserted line.
func (t *ranked) insertedRRPV(set uint64) uint32 {
	policy := t.policy
	if policy == hierarchy.DRRIP {
		policy = t.duelPolicy(set)
	}
	if policy == hierarchy.SRRIP {
		return long
	}
	t.inserts++
	if t.inserts%bimodalPeriod == 1 {
		return long
	}
	return distant
}

// duelPolicy updates DRRIP's selector after a miss in a set, and returns the policy for the
// inserted line.
func (t *ranked) duelPolicy(set uint64) hierarchy.Replacement {
	switch set % t.group {
	case 0:
		t.selector = min(t.selector+1, selectorMost)
		return hierarchy.SRRIP
	case t.group - 1:
		t.selector = max(t.selector-1, 0)
		return hierarchy.BRRIP
	}
	if t.selector >= selectorMiddle {
		return hierarchy.BRRIP
	}
	return hierarchy.SRRIP
}

// victim selects the way of a full set from which a line is evicted. If several ways qualify,
// victim returns the first.
func (t *ranked) victim(set uint64) (way uint64) {
	ranks := t.rank[set*t.ways : (set+1)*t.ways]
	switch t.policy {
	case hierarchy.LFU:
		for w, r := range ranks {
			if r < ranks[way] {
				way = uint64(w)
			}
		}
	case hierarchy.BitPLRU, hierarchy.NRU:
		for w, r := range ranks {
			if r == 0 {
				return uint64(w)
			}
		}
		clear(ranks) // all bits are set: the policy is NRU, or there is a single way
	default:
		for w, r := range ranks {
			if r > ranks[way] {
				way = uint64(w)
			}
		}
		older := distant - ranks[way]
		for w := range ranks {
			ranks[w] += older
		}
	}
	return way
}
