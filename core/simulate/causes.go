package simulate

import (
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// cause is the cause of a miss (Hill and Smith, Evaluating Associativity in CPU Caches, IEEE Trans.
// Computers 38(12), 1989).
type cause uint8

const (
	noCause  cause = iota // the access hits
	cold                  // the first access to the line
	capacity              // a fully associative cache of the same size and policy would also miss
	conflict              // a fully associative cache of the same size and policy would hit
)

// causes determines the causes of a level's misses. causes simulates a fully associative cache of
// the same size and policy, and records the lines that were accessed.
type causes struct {
	full tags
	seen map[trace.Line]uint64 // the accessed sub-blocks of each line
	held map[trace.Line]uint64 // the sub-blocks that the fully associative cache contains; nil if lines have no sub-blocks
}

func newCauses(c hierarchy.Cache, seed uint64) *causes {
	k := &causes{seen: map[trace.Line]uint64{}}
	if c.SubBlockBytes > 0 {
		k.held = map[trace.Line]uint64{}
	}
	c.Ways, c.Hashed = 0, false
	if ways := c.Lines(); c.Replacement == hierarchy.TreePLRU && ways&(ways-1) != 0 {
		c.Replacement = hierarchy.LRU // tree-PLRU requires a number of ways that is a power of two
	}
	k.full = newTags(c, ^seed)
	return k
}

// access processes an access to some sub-blocks of a line, or to the whole line (mask 1). If bypass
// is true, the access does not insert an absent line. The results are the cause of the sub-block
// miss and the cause of the line miss.
func (k *causes) access(line trace.Line, mask uint64, bypass, missed, lineMissed bool) (why, lineWhy cause) {
	here := k.full.touch(line, false)
	held := here && (k.held == nil || k.held[line]&mask == mask)
	if !here && !bypass {
		if victim, _, evicted := k.full.insert(line, false); evicted && k.held != nil {
			delete(k.held, victim)
		}
	}
	if k.held != nil && (here || !bypass) {
		k.held[line] |= mask
	}
	seen := k.seen[line]
	k.seen[line] = seen | mask
	return causeOf(missed, held, seen&mask == mask), causeOf(lineMissed, here, seen != 0)
}

func causeOf(missed, held, seen bool) cause {
	switch {
	case !missed:
		return noCause
	case held:
		return conflict
	case seen:
		return capacity
	}
	return cold
}

// count increments the counter of a demand miss's cause.
func (c *Counts) count(why cause) {
	switch why {
	case cold:
		c.Cold++
	case capacity:
		c.Capacity++
	case conflict:
		c.Conflict++
	}
}
