package diagnose

import (
	"math"
	"slices"
)

// If a run of several threads is long, changes of addresses are tried on its beginning. A beginning
// ends at a synchronisation point, and has at least leastBeginning references. There are at most
// mostBeginnings beginnings, about stepOfBeginnings references apart.
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
	if s.placer != nil {
		second, walks := s.placer.translations()
		for i := range b.uses {
			b.uses[i].second, b.uses[i].walks = second[i], walks[i]
		}
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

// findSteady returns two beginnings of a run, such that the run after the second beginning behaves
// like the part of the run between the two beginnings. It returns nil if there are no such
// beginnings.
func (c *counts) findSteady(begun []beginning) []beginning {
	for i := range begun {
		for j := range begun[:i] {
			if c.continues(&begun[j], &begun[i]) {
				return []beginning{begun[j], begun[i]}
			}
		}
	}
	return nil
}

// continues reports whether the run after the beginning to behaves like the part of the run between
// the beginnings from and to. The misses after to are estimated, for each level and site, from the
// misses between from and to. All estimates together may differ from the real numbers by at most a
// tenth of the misses after to, or by one fiftieth of the misses of the run.
func (c *counts) continues(from, to *beginning) bool {
	const most, differing, negligible = 0.75, 0.1, 0.02 // shares
	if all, begun := c.accesses(to); begun > most*all {
		return false
	}
	for k := range c.misses {
		run, rest, wrong := 0.0, 0.0, 0.0
		for i, n := range c.misses[k] {
			left := n - to.misses[k][i]
			run, rest = run+n, rest+left
			wrong += math.Abs(left - c.times(i, from, to)*(to.misses[k][i]-from.misses[k][i]))
		}
		if wrong > max(differing*rest, negligible*run) {
			return false
		}
	}
	return true
}

// times returns how many times a site repeats its accesses between two beginnings after the second
// beginning.
func (c *counts) times(i int, from, to *beginning) float64 {
	return share(float64(c.sites[i].accesses-to.uses[i].accesses), float64(to.uses[i].accesses-from.uses[i].accesses))
}

// extendSteady replaces the counts of the beginning of a changed run with estimated counts of the
// whole run. In the rest of the run, the change makes the same difference for each access of a site
// as between two beginnings. The parameter unchanged contains the counts of the unchanged run. The
// parameter changed contains the counts of the changed run at the same two beginnings.
func (c *counts) extendSteady(unchanged *counts, changed []beginning) {
	steady := unchanged.steady
	// whole estimates a count of the whole changed run. The parameter "run" is the same count of the
	// whole unchanged run. The function "at" returns the count at a beginning. After the second
	// beginning, the run repeats the part between the beginnings; "times" is the number of repetitions.
	whole := func(run, times float64, at func(b *beginning) float64) float64 {
		first, both := at(&steady[0])-at(&changed[0]), at(&steady[1])-at(&changed[1])
		return max(0, run-both-times*(both-first))
	}
	for i := range c.sites {
		times := unchanged.times(i, &steady[0], &steady[1])
		for k := range c.misses {
			c.misses[k][i] = whole(unchanged.misses[k][i], times, func(b *beginning) float64 { return b.misses[k][i] })
			c.coherence[k][i] = min(c.misses[k][i], whole(unchanged.coherence[k][i], times, func(b *beginning) float64 { return b.coherence[k][i] }))
		}
		n, of := &c.sites[i], &unchanged.sites[i]
		n.accesses = uint64(whole(float64(of.accesses), times, func(b *beginning) float64 { return float64(b.uses[i].accesses) }))
		n.near = min(n.accesses, uint64(whole(float64(of.near), times, func(b *beginning) float64 { return float64(b.uses[i].near) })))
		n.second = whole(of.second, times, func(b *beginning) float64 { return b.uses[i].second })
		n.walks = whole(of.walks, times, func(b *beginning) float64 { return b.uses[i].walks })
		// The goroutine that reads the trace counts strides and accesses across line boundaries, and does
		// not stop exactly at a synchronisation point.
		n.scale(share(float64(of.references), float64(n.references)))
	}
	_, first := unchanged.accesses(&steady[0])
	all, both := unchanged.accesses(&steady[1])
	c.simulated = share(both, all)
	c.idle = []waiting{{cycles: whole(unchanged.idleCycles(), share(all-both, both-first), func(b *beginning) float64 { return b.idle })}}
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
