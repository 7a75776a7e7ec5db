package sample

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// siteCores estimates what the accesses of sites and data objects find on the coherent
// stacks of cores. Package sites counts all accesses: what the fronts tell exactly, and
// all others at the shortest distance beyond them. Those of the others that are sampled
// are counted here, by weight.
type siteCores struct {
	sites    *sites.Analysis
	counts   map[placedBin]*[groups]uint64
	shortest uint32

	// Of the accesses that are being made:
	pair           uint32 // of the current one
	depth, at      uint32 // what package sites is told of it
	depths, lostAt []uint32
	lost           bool
}

// lostBin is the bin of coherence misses whose line was lost in bin 0, in the keys of
// siteCores; behind first accesses.
const lostBin = outOf + 1

// newSiteCores begins with a second core: until then, accesses found on the coherent
// stack of the only one what they found on the stack of all.
func newSiteCores(p *bySite, w weighing) *siteCores {
	c := &siteCores{sites: p.sites, counts: map[placedBin]*[groups]uint64{}, shortest: p.shortest()}
	before := p.weighing()
	for key, n := range p.counts {
		for group, weight := range p.parts[n] {
			if key.bin == outOf || p.time == nil { // else both count single samples
				weight = uint64(math.Round(float64(weight) * before.cold / w.cold))
			}
			c.count(key, weight, group)
		}
	}
	return c
}

// count counts accesses of a pair by bin.
func (c *siteCores) count(key placedBin, weight uint64, group int) {
	parts := c.counts[key]
	if parts == nil {
		parts = new([groups]uint64)
		c.counts[key] = parts
	}
	parts[group&(groups-1)] += weight
}

// begin begins some accesses.
func (c *siteCores) begin() { c.depths, c.lostAt, c.lost = c.depths[:0], c.lostAt[:0], false }

// next begins the next access, of a pair. Nothing is known of it yet.
func (c *siteCores) next(pair uint32) { c.pair, c.depth, c.at = pair, c.shortest, 0 }

// near says that the access is exactly at a depth, or was lost at one.
func (c *siteCores) near(depth, lostAt uint32) {
	if c != nil {
		c.depth, c.at, c.lost = depth, lostAt, c.lost || depth == stack.Lost
	}
}

// sampled says that the access is one of the sample, of a group: at a depth, or lost at
// one.
func (c *siteCores) sampled(depth, lostAt uint32, weight uint64, group int) {
	if c == nil {
		return
	}
	bin := uint32(outOf)
	switch depth {
	case stack.Cold:
	case stack.Lost:
		bin = lostBin + uint32(profile.SiteBin(lostAt))
	default:
		bin = uint32(profile.SiteBin(depth))
	}
	c.count(placedBin{c.pair, bin}, weight, group)
}

// done ends the access.
func (c *siteCores) done() { c.depths, c.lostAt = append(c.depths, c.depth), append(c.lostAt, c.at) }

// end ends the accesses, which package sites has followed last.
func (c *siteCores) end(cores []uint8) { c.sites.FollowCores(cores, c.depths, c.lostAt, c.lost) }

// coherentSpread is what is counted of a site or an object: of distances and first
// accesses by bin, and of coherence misses by the bin in which the line was lost.
type coherentSpread struct {
	found     spread
	lost      [profile.SiteBins]uint64
	lostParts [groups]uint64
}

func (s *coherentSpread) add(bin uint32, parts *[groups]uint64) {
	for g, n := range parts {
		if bin < lostBin {
			s.found[g][bin] += n
			continue
		}
		s.lost[bin-lostBin] += n
		s.lostParts[g] += n
	}
}

// result makes what package sites told stand for estimates.
func (c *siteCores) result(of *profile.CoherentSites, w weighing) {
	code, data := make([]*coherentSpread, len(of.Code)), make([]*coherentSpread, len(of.Data))
	add := func(to []*coherentSpread, at, bin uint32, parts *[groups]uint64) {
		if uint64(at) >= uint64(len(to)) {
			return
		}
		if to[at] == nil {
			to[at] = new(coherentSpread)
		}
		to[at].add(bin, parts)
	}
	for key, parts := range c.counts {
		slot, object := c.sites.Pair(key.pair)
		add(code, c.sites.Code(slot), key.bin, parts)
		add(data, c.sites.Data(object), key.bin, parts)
	}
	for i := range of.Code {
		w.coherent(&of.Code[i], code[i])
	}
	for i := range of.Data {
		w.coherent(&of.Data[i], data[i])
	}
}

// coherent divides up what is in the shortest bin of a site or an object: first accesses
// first, then coherence misses, then the longest distances; see [weighing.reuse].
func (w *weighing) coherent(r *profile.CoherentReuse, s *coherentSpread) {
	at := uint8(profile.SiteBin(w.front))
	i := slices.IndexFunc(r.Bins, func(b profile.BinCount) bool { return b.Bin == at })
	if i < 0 {
		return
	}
	if s == nil {
		s = new(coherentSpread)
	}
	b := budget{left: r.Bins[i].Count, factor: w.cold}
	r.Bins = slices.Delete(r.Bins, i, i+1)
	sums := s.found.sums()
	r.Cold = b.take(sums[outOf])
	b.factor = w.deep
	for bin := profile.SiteBins - 1; bin >= 0; bin-- {
		r.Lost = addBin(r.Lost, uint8(bin), b.take(s.lost[bin]))
	}
	for bin := profile.SiteBins - 1; bin >= 0; bin-- {
		if n := b.take(sums[bin]); bin > int(at) {
			r.Bins = addBin(r.Bins, uint8(bin), n)
		} else {
			b.left += n
		}
	}
	r.Bins = addBin(r.Bins, at, b.left)
	r.Off = w.offs(r.Cold+r.Coherence(), r.Bins, &s.found, &s.lostParts)
}

// addBin adds a count to a bin of an ascending list.
func addBin(list []profile.BinCount, bin uint8, n uint64) []profile.BinCount {
	if n == 0 {
		return list
	}
	i, found := slices.BinarySearchFunc(list, bin, func(b profile.BinCount, bin uint8) int { return int(b.Bin) - int(bin) })
	if found {
		list[i].Count += n
		return list
	}
	return slices.Insert(list, i, profile.BinCount{Bin: bin, Count: n})
}

// code codes what is counted by places in the profile of package sites' latest result.
func (c *siteCores) code(w *codec.Coder) {
	sums := map[placedCount]*[groups]uint64{}
	for key, parts := range c.counts {
		slot, object := c.sites.Pair(key.pair)
		place := placedCount{code: c.sites.Code(slot), data: c.sites.Data(object), bin: key.bin}
		if sums[place] == nil {
			sums[place] = new([groups]uint64)
		}
		for g, n := range parts {
			sums[place][g] += n
		}
	}
	list := make([]placedCount, 0, len(sums))
	for place, parts := range sums {
		place.parts = *parts
		list = append(list, place)
	}
	codePlaced(w, list, lostBin+profile.SiteBins, func(x *placedCount) {
		key := placedBin{c.sites.PairOf(c.sites.Slot(x.code), c.sites.Object(x.data)), x.bin}
		for g, n := range x.parts {
			c.count(key, n, g)
		}
	})
}

// beginSites has what follows sites begin with a second core, before the accesses that
// it is among.
func (s *keptSize) beginSites() {
	if s.bySite == nil || s.threads == nil || s.siteCores != nil || s.without || len(s.threads.cores) < 2 {
		return
	}
	s.bySite.sites.BeginCores()
	if s.without = !s.bySite.sites.OnCores(); s.without { // the trace tells no sites
		return
	}
	s.siteCores = newSiteCores(s.bySite, s.threads.siteWeighing())
	s.threads.sites = s.siteCores
}

// continueSites continues as [keptSize.beginSites] began, where that was saved.
func (s *keptSize) continueSites() {
	if s.bySite == nil || s.threads == nil || len(s.threads.cores) < 2 {
		return
	}
	if s.without = !s.bySite.sites.OnCores(); s.without { // another program saved the run
		return
	}
	s.siteCores = &siteCores{sites: s.bySite.sites, counts: map[placedBin]*[groups]uint64{}, shortest: s.bySite.shortest()}
	s.threads.sites = s.siteCores
}

// siteWeighing is how the counts of sites on all cores' stacks become accesses.
func (t *threads) siteWeighing() (w weighing) {
	accesses, samples := uint64(0), uint64(0)
	for _, c := range t.cores {
		if accesses += c.accesses; c.time != nil {
			samples += c.time.samples
		}
	}
	w = t.weighing(t.cores[0].space, t.cores[0].time, accesses)
	if t.single() && samples > 0 {
		w.deep = max(1, float64(accesses)/float64(samples))
	}
	return w
}
