package estimate

import (
	"math"

	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// siteCores estimates the depths on the coherent stacks of cores, for the accesses of each site and
// data object. Package sites counts all accesses: hits in the front at their exact depths, and all
// other accesses at the shortest distance beyond the front. siteCores counts the sampled accesses
// beyond the front.
type siteCores struct {
	sites    *sites.Analysis
	counts   pairCounts
	shortest uint32

	// These fields describe the current line access. The lists contain the results of the latest
	// accesses.
	pair uint32 // pair of the current access
	// values for package sites: the depth of the current access, and the depth at which its line
	// was invalidated
	depth, at      uint32
	depths, lostAt []uint32
	lost           bool
}

// newSiteCores must be called when a second core appears. Until then, the coherent stack of the
// only core is the stack of all accesses.
func newSiteCores(p *siteSampler, w weighing) *siteCores {
	c := &siteCores{sites: p.sites, counts: pairCounts{}, shortest: p.shortestDistance()}
	before := p.weighing()
	for key, parts := range p.counts {
		for group, weight := range parts {
			if key.bin == outOf || p.time == nil { // otherwise, the weight is a number of samples, and stays the same
				weight = uint64(math.Round(float64(weight) * before.cold / w.cold))
			}
			c.counts.add(key, weight, group)
		}
	}
	return c
}

func (c *siteCores) begin() { c.depths, c.lostAt, c.lost = c.depths[:0], c.lostAt[:0], false }

// beginAccess begins the next access, which belongs to the given pair.
func (c *siteCores) beginAccess(pair uint32) { c.pair, c.depth, c.at = pair, c.shortest, 0 }

// setDepths sets the exact depth of the current access or, for a coherence miss, the exact depth at
// which the line was invalidated.
func (c *siteCores) setDepths(depth, lostAt uint32) {
	if c != nil {
		c.depth, c.at, c.lost = depth, lostAt, c.lost || depth == stack.Lost
	}
}

// countSampled counts a sampled access, which belongs to the given group, at its depth. A coherence
// miss is counted at the depth at which its line was invalidated, lostAt.
func (c *siteCores) countSampled(depth, lostAt uint32, weight uint64, group int) {
	if c != nil {
		c.counts.add(pairBin{c.pair, binOf(depth, lostAt)}, weight, group)
	}
}

func (c *siteCores) done() { c.depths, c.lostAt = append(c.depths, c.depth), append(c.lostAt, c.at) }

// passDepths passes the depths of the latest accesses to package sites.
func (c *siteCores) passDepths(cores []uint8) { c.sites.FollowCores(cores, c.depths, c.lostAt, c.lost) }

// result replaces the counts of package sites with estimates.
func (c *siteCores) result(of *profile.CoherentSites, w weighing) {
	code, data := c.counts.sumBySiteAndObject(c.sites, len(of.Code), len(of.Data))
	for i := range of.Code {
		w.distribute(&of.Code[i], code[i])
	}
	for i := range of.Data {
		w.distribute(&of.Data[i], data[i])
	}
}

func (c *siteCores) code(w *codec.Coder) { c.counts.code(w, c.sites, lostBin+profile.SiteBins) }

// beginSites starts counting by core. beginSites must be called before the first access by a second
// core.
func (s *sampledLineSize) beginSites() {
	if s.bySite == nil || s.threads == nil || s.siteCores != nil || s.without || len(s.threads.cores) < 2 {
		return
	}
	s.bySite.sites.BeginCores()
	if s.without = !s.bySite.sites.OnCores(); s.without { // the trace has no sites
		return
	}
	s.siteCores = newSiteCores(s.bySite, s.threads.siteWeighing())
	s.threads.sites = s.siteCores
}

// continueSites continues a saved run after beginSites.
func (s *sampledLineSize) continueSites() {
	if s.bySite == nil || s.threads == nil || len(s.threads.cores) < 2 {
		return
	}
	if s.without = !s.bySite.sites.OnCores(); s.without { // a different version saved the run
		return
	}
	s.siteCores = &siteCores{sites: s.bySite.sites, counts: pairCounts{}, shortest: s.bySite.shortestDistance()}
	s.threads.sites = s.siteCores
}

// siteWeighing returns the weighing for sites. This weighing covers the stacks of all cores.
func (t *threads) siteWeighing() weighing {
	accesses, samples := uint64(0), uint64(0)
	for _, c := range t.cores {
		if accesses += c.accesses; c.time != nil {
			samples += c.time.samples
		}
	}
	return newWeighing(t.lines.threshold, t.lines.halvings, t.cores[0].space, t.cores[0].time, accesses, samples)
}
