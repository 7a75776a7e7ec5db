package sharing

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

const topDepths = 16 // distances counted in an array

type counts struct {
	top  [topDepths]uint64
	cold uint64
	deep profile.Histogram
}

func (c *counts) add(distance uint32) {
	switch {
	case distance < topDepths:
		c.top[distance]++
	case distance == cold:
		c.cold++
	default:
		c.deep.Add(uint64(distance))
	}
}

// addAll adds distances, except those of lost lines.
func (c *counts) addAll(distances []uint32) {
	var top [2][topDepths]uint64 // adding to the place that was added to just before waits for that store
	for i, d := range distances {
		if d < topDepths {
			top[i&1][d]++
		} else if d != lost {
			c.add(d)
		}
	}
	for d := range c.top {
		c.top[d] += top[0][d] + top[1][d]
	}
}

func (c *counts) load(h *profile.Histogram, cold uint64) {
	c.cold += cold
	for d, n := range h.All() {
		if d < topDepths {
			c.top[d] += n
		} else {
			c.deep.AddN(d, n)
		}
	}
}

// histogram returns the finite distances; it shares nothing with c.
func (c *counts) histogram() (h profile.Histogram) {
	for d, n := range c.top {
		h.AddN(uint64(d), n)
	}
	h.Merge(&c.deep)
	return h
}

func (c *counts) with(t *table) profile.StackCounts {
	return profile.StackCounts{Cold: c.cold, Distances: c.histogram(), Sets: t.sum()}
}

type tabled interface{ Depths() *stack.SetDepths }

// marked counts the marked accesses of a model.
type marked struct{ *stack.Sets }

// Depths implements tabled.
func (m marked) Depths() *stack.SetDepths { return m.MarkedDepths() }

// table sums what a model counted and what was counted before. A closed model is nil.
type table struct {
	before profile.SetTable
	model  tabled
}

func (t *table) sum() profile.SetTable {
	sum := t.before
	if t.model != nil {
		sum.Add(&profile.SetTable{Depths: *t.model.Depths()})
	}
	return sum
}

func (t *table) close() { t.before, t.model = t.sum(), nil }
