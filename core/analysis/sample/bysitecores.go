package sample

import (
	"math"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// siteCores estimates what the accesses of sites and data objects find on the coherent
// stacks of cores. Package sites counts all accesses: what the fronts tell exactly, and
// all others at the shortest distance beyond them. Those of the others that are sampled
// are counted here, by weight.
type siteCores struct {
	sites    *sites.Analysis
	counts   map[placedBin]uint64
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
	c := &siteCores{sites: p.sites, counts: map[placedBin]uint64{}, shortest: p.shortest()}
	before := p.weighing()
	for key, n := range p.counts {
		weight := uint64(0)
		for _, x := range p.parts[n] {
			weight += x
		}
		if key.bin == outOf || p.time == nil { // else both count single samples
			weight = uint64(math.Round(float64(weight) * before.cold / w.cold))
		}
		c.counts[key] = weight
	}
	return c
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

// sampled says that the access is one of the sample: at a depth, or lost at one.
func (c *siteCores) sampled(depth, lostAt uint32, weight uint64) {
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
	c.counts[placedBin{c.pair, bin}] += weight
}

// done ends the access.
func (c *siteCores) done() { c.depths, c.lostAt = append(c.depths, c.depth), append(c.lostAt, c.at) }

// end ends the accesses, which package sites has followed last.
func (c *siteCores) end(cores []uint8) { c.sites.FollowCores(cores, c.depths, c.lostAt, c.lost) }

// coherentCounts are sums of weights by bin: of distances, first accesses, and coherence
// misses.
type coherentCounts [lostBin + profile.SiteBins]uint64

// result makes what package sites told stand for estimates.
func (c *siteCores) result(of *profile.CoherentSites, w weighing) {
	code, data := map[uint32]*coherentCounts{}, map[uint32]*coherentCounts{}
	add := func(to map[uint32]*coherentCounts, at, bin uint32, n uint64) {
		if at == profile.NoSite {
			return
		}
		if to[at] == nil {
			to[at] = new(coherentCounts)
		}
		to[at][bin] += n
	}
	for key, n := range c.counts {
		slot, object := c.sites.Pair(key.pair)
		add(code, c.sites.Code(slot), key.bin, n)
		add(data, c.sites.Data(object), key.bin, n)
	}
	for i := range of.Code {
		w.coherent(&of.Code[i], code[uint32(i)])
	}
	for i := range of.Data {
		w.coherent(&of.Data[i], data[uint32(i)])
	}
}

// coherent divides up what is in the shortest bin of a site or an object: first accesses
// first, then coherence misses, then the longest distances; see [weighing.reuse].
func (w *weighing) coherent(r *profile.CoherentReuse, counts *coherentCounts) {
	at := uint8(profile.SiteBin(w.front))
	i := slices.IndexFunc(r.Bins, func(b profile.BinCount) bool { return b.Bin == at })
	if i < 0 || counts == nil {
		return
	}
	b := budget{left: r.Bins[i].Count, factor: w.cold}
	r.Bins = slices.Delete(r.Bins, i, i+1)
	r.Cold = b.take(counts[outOf])
	b.factor = w.deep
	for bin := profile.SiteBins - 1; bin >= 0; bin-- {
		r.Lost = addBin(r.Lost, uint8(bin), b.take(counts[lostBin+bin]))
	}
	for bin := profile.SiteBins - 1; bin >= 0; bin-- {
		if n := b.take(counts[bin]); bin > int(at) {
			r.Bins = addBin(r.Bins, uint8(bin), n)
		} else {
			b.left += n
		}
	}
	r.Bins = addBin(r.Bins, at, b.left)
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

// save writes what is counted by places in the profile of package sites' latest result.
func (c *siteCores) save(b []byte) []byte {
	type placed struct{ code, data, bin uint32 }
	sums := map[placed]uint64{}
	for key, n := range c.counts {
		slot, object := c.sites.Pair(key.pair)
		sums[placed{c.sites.Code(slot), c.sites.Data(object), key.bin}] += n
	}
	list := make([]placed, 0, len(sums))
	for p := range sums {
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := list[i], list[j]
		return x.code < y.code || x.code == y.code && (x.data < y.data || x.data == y.data && x.bin < y.bin)
	})
	b = appendUint(b, uint64(len(list)))
	for _, p := range list {
		b = appendUint(b, uint64(p.code), uint64(p.data), uint64(p.bin), sums[p])
	}
	return b
}

func (c *siteCores) restore(d *profile.Decoder) {
	for range d.Length(4) {
		code, data, bin := uint32(d.UintBelow(1<<32)), uint32(d.UintBelow(1<<32)), uint32(d.UintBelow(lostBin+profile.SiteBins))
		c.counts[placedBin{c.sites.PairOf(c.sites.Slot(code), c.sites.Object(data)), bin}] += d.Uint()
	}
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

// restoreCores continues as [keptSize.beginSites] began, where that was saved.
func (s *keptSize) restoreCores(d *profile.Decoder) {
	if s.bySite == nil || s.threads == nil || len(s.threads.cores) < 2 {
		return
	}
	if s.without = !s.bySite.sites.OnCores(); s.without { // another program saved the run
		return
	}
	s.siteCores = &siteCores{sites: s.bySite.sites, counts: map[placedBin]uint64{}, shortest: s.bySite.shortest()}
	s.threads.sites = s.siteCores
	s.siteCores.restore(d)
}

// siteWeighing is how the counts of sites on all cores' stacks become accesses.
func (t *threads) siteWeighing() (w weighing) {
	w.cold = t.lines.factor()
	if !t.single() {
		w.front, w.deep = frontLines, w.cold
		return w
	}
	accesses, samples := uint64(0), uint64(0)
	for _, c := range t.cores {
		accesses, samples = accesses+c.accesses, samples+c.time.samples
	}
	if w.deep = 1; samples > 0 {
		w.deep = max(1, float64(accesses)/float64(samples))
	}
	return w
}
