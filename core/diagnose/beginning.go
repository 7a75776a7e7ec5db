package diagnose

import "slices"

// If a run is long, changes to the layout of data that threads share are tried on its beginning. A
// beginning ends at a synchronisation point, and has at least leastBeginning references. There are
// at most mostBeginnings beginnings, about stepOfBeginnings references apart.
const (
	leastBeginning   = 2 << 20
	stepOfBeginnings = 1 << 19
	mostBeginnings   = 16
)

// beginning contains the counts of a replay of several threads at a synchronisation point.
type beginning struct {
	met               int // number of the synchronisation point, from 1
	misses, coherence [][]float64
	uses              []siteAccesses
	idle              float64 // cycles that threads wait for each other
}

// snapshot returns the counts at the current synchronisation point.
func (s *replay) snapshot() beginning {
	b := beginning{met: s.met, uses: slices.Clone(s.uses), idle: s.idleCycles()}
	for k := range s.misses {
		b.misses = append(b.misses, slices.Clone(s.misses[k]))
		b.coherence = append(b.coherence, slices.Clone(s.coherence[k]))
	}
	return b
}

// idleCycles returns the cycles that threads wait for each other because the work was divided
// unequally before the work began.
func (c *counts) idleCycles() (cycles float64) {
	for _, w := range c.idle {
		if !w.dynamic {
			cycles += w.cycles
		}
	}
	return cycles
}

// accesses returns the number of accesses of all sites, in the whole run and in a beginning.
func (c *counts) accesses(in *beginning) (all, begun float64) {
	for i := range c.sites {
		all += float64(c.sites[i].accesses)
		begun += float64(in.uses[i].accesses)
	}
	return all, begun
}

// represents reports whether the effect of a change on the run can be computed from its effect on a
// beginning. There are two conditions: the beginning must be considerably shorter than the run, and
// the sites that wait for lines from other cores must wait for such lines in the beginning, too.
func (c *counts) represents(b beginning) bool {
	const most, least, fewest = 0.75, 0.05, 0.2 // shares
	all, begun := c.accesses(&b)
	missing, lost := 0.0, 0.0
	for i, n := range c.coherence[0] {
		if lost += n; b.coherence[0][i] < fewest*n*share(begun, all) {
			missing += n
		}
	}
	return begun <= most*all && missing <= least*lost
}

// extend replaces the counts of the beginning of a changed run with estimated counts of the whole
// run. For each count, the difference that the change makes in the beginning is scaled to the whole
// run. The factor is the ratio of the site's coherence misses in the whole run to its coherence
// misses in the beginning. If the site has no coherence misses in the beginning, the factor is the
// ratio of its accesses. The parameter unchanged contains the counts of the unchanged run.
func (c *counts) extend(unchanged *counts, to *beginning) {
	from := unchanged.beginning
	all, begun := unchanged.accesses(from)
	c.simulated = share(begun, all)
	for i := range c.sites {
		by := share(float64(unchanged.sites[i].accesses), float64(from.uses[i].accesses))
		if lost := from.coherence[0][i]; lost > 0 {
			by = unchanged.coherence[0][i] / lost
		}
		whole := func(of, from, to float64) float64 { return max(0, of-by*(from-to)) }
		for k := range c.misses {
			c.misses[k][i] = whole(unchanged.misses[k][i], from.misses[k][i], to.misses[k][i])
			c.coherence[k][i] = min(c.misses[k][i], whole(unchanged.coherence[k][i], from.coherence[k][i], to.coherence[k][i]))
		}
		n := &c.sites[i]
		n.accesses = unchanged.sites[i].accesses
		n.near = min(n.accesses, uint64(whole(float64(unchanged.sites[i].near), float64(from.uses[i].near), float64(to.uses[i].near))))
	}
	c.idle = []waiting{{cycles: max(0, unchanged.idleCycles()-share(all, begun)*(from.idle-to.idle))}}
}

// extended returns a sentence about a result that was computed from the beginning of the run; empty
// if the whole run was simulated.
func (c *counts) extended() string {
	if c == nil || c.simulated == 0 {
		return ""
	}
	return " The first " + percent(c.simulated) + " of the run were simulated, and the differences were scaled to the whole run."
}
