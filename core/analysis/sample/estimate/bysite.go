package estimate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// siteSampler estimates the misses of sites and data objects. Package sites counts all accesses:
// hits in the front at their exact distances, and all other accesses at the shortest distance
// beyond the front. siteSampler counts the sampled accesses beyond the front.
type siteSampler struct {
	sites *sites.Analysis
	space *spaceSampler // nil: single accesses are sampled
	time  *timeSampler
	first knownFirsts

	counts  pairCounts
	samples int

	distances []uint32
	accesses  uint64
}

// pairCounts contains the weights of sampled accesses, by pair of site and object, and by bin of
// distances. The weights are divided into groups, because the variance between the groups
// determines the confidence intervals.
type pairCounts map[pairBin]*[groups]uint64

// pairBin identifies a pair of site and object, and a bin. First accesses have the bin outOf.
// Coherence misses have the bin lostBin or a higher bin.
type pairBin struct {
	pair uint32
	bin  uint32
}

// lostBin is the first bin of coherence misses. It contains the coherence misses whose line was
// invalidated at a depth in bin 0.
const lostBin = outOf + 1

// binOf returns the bin of an access at the given depth, or of a coherence miss whose line was
// invalidated at depth lostAt.
func binOf(depth, lostAt uint32) uint32 {
	switch depth {
	case stack.Cold:
		return outOf
	case stack.Lost:
		return lostBin + uint32(profile.SiteBin(lostAt))
	}
	return uint32(profile.SiteBin(depth))
}

func (c pairCounts) add(key pairBin, weight uint64, group int) {
	parts := c[key]
	if parts == nil {
		parts = new([groups]uint64)
		c[key] = parts
	}
	parts[group&(groups-1)] += weight
}

// placeCounts contains the counts of one site or data object: the accesses by bin of distances, the
// first accesses, and the coherence misses by bin of the depth at which the line was invalidated.
type placeCounts struct {
	found     groupWeights
	lost      [profile.SiteBins]uint64
	lostParts [groups]uint64
}

func (p *placeCounts) add(bin uint32, parts *[groups]uint64) {
	for g, n := range parts {
		if bin < lostBin {
			p.found[g][bin] += n
			continue
		}
		p.lost[bin-lostBin] += n
		p.lostParts[g] += n
	}
}

// sumBySiteAndObject adds up the counts of each site and of each object. The results are indexed
// like the lists of sites and objects in the latest result of package sites. The parameters
// codeCount and dataCount are the lengths of these lists. Elements without counts are nil.
func (c pairCounts) sumBySiteAndObject(s *sites.Analysis, codeCount, dataCount int) (code, data []*placeCounts) {
	code, data = make([]*placeCounts, codeCount), make([]*placeCounts, dataCount)
	add := func(list []*placeCounts, at, bin uint32, parts *[groups]uint64) {
		if uint64(at) >= uint64(len(list)) {
			return
		}
		if list[at] == nil {
			list[at] = new(placeCounts)
		}
		list[at].add(bin, parts)
	}
	for key, parts := range c {
		slot, object := s.Pair(key.pair)
		add(code, s.Code(slot), key.bin, parts)
		add(data, s.Data(object), key.bin, parts)
	}
	return code, data
}

// code reads or writes the counts, by index in the latest result of package sites. The parameter
// bins is an upper bound for the bins.
func (c pairCounts) code(w *codec.Coder, s *sites.Analysis, bins uint64) {
	type place struct{ code, data, bin uint32 }
	sums := map[place]*[groups]uint64{}
	for key, parts := range c {
		slot, object := s.Pair(key.pair)
		at := place{s.Code(slot), s.Data(object), key.bin}
		if sums[at] == nil {
			sums[at] = new([groups]uint64)
		}
		for g, n := range parts {
			sums[at][g] += n
		}
	}
	list := slices.Collect(maps.Keys(sums))
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(cmp.Compare(x.code, y.code), cmp.Compare(x.data, y.data), cmp.Compare(x.bin, y.bin)) < 0
	})
	codec.Slice(w, &list, 3+groups, func(x *place) {
		w.U32s(&x.code, &x.data)
		codec.Below(w, &x.bin, bins)
		parts := sums[*x]
		if w.Reads() {
			parts = new([groups]uint64)
		}
		if w.Array(parts[:]); w.Reads() && !w.Failed() {
			key := pairBin{s.PairOf(s.Slot(x.code), s.Object(x.data)), x.bin}
			for g, n := range parts {
				c.add(key, n, g)
			}
		}
	})
}

// knownFirsts contains lines, chosen by their hash, whose first accesses are recorded if single
// accesses are sampled. First accesses are recorded because a sample of a single access can detect
// the last access to a line, but not the first.
type knownFirsts struct {
	seed, threshold uint64
	halvings        uint
	lines           map[trace.Line]struct{}
}

func newBySite(o sample.Options, s *sites.Analysis) *siteSampler {
	p := &siteSampler{sites: s, counts: pairCounts{}}
	switch o.Mode {
	case profile.TimeSample:
		p.time = newTime(o.Gap, hashLine(0, o.Seed))
		p.first = knownFirsts{seed: o.Seed, threshold: math.MaxUint64, lines: map[trace.Line]struct{}{}}
	case profile.LinesSample:
		p.space = newSpace(math.MaxUint64, o.Seed, int(o.Lines))
	default:
		p.space = newSpace(o.Threshold, o.Seed, 0)
	}
	return p
}

// shortestDistance returns the distance at which package sites counts accesses whose distance is
// unknown.
func (p *siteSampler) shortestDistance() uint32 {
	if p.time != nil {
		return 0
	}
	return frontLines
}

// processAccesses processes the line accesses of a batch.
func (p *siteSampler) processAccesses(b *trace.Batch, lines []trace.Line, rows []uint32) {
	if len(p.distances) < len(lines) {
		p.distances = make([]uint32, max(len(lines), maxLines))
	}
	pairs, _ := p.sites.Rows()
	told := p.distances[:len(lines)]
	for i, line := range lines {
		pair := uint32(0)
		if pairs != nil {
			pair = pairs[rows[i]]
		}
		if told[i] = p.shortestDistance(); p.time != nil {
			p.takeTimed(line, pair)
		} else if d := p.space.access(line); d < frontLines {
			told[i] = d
		} else if d != passed {
			p.count(pair, d, p.space.weight(), p.space.group(line))
			p.space.limitLines()
		}
	}
	p.accesses += uint64(len(lines))
	p.sites.Follow(&locality.Accesses{Lines: lines, Distances: told, Batch: b, Rows: rows})
}

func (p *siteSampler) takeTimed(line trace.Line, pair uint32) {
	if d, _ := p.time.access(line); d != passed {
		p.samples++
		p.count(pair, d, 1, p.samples)
	}
	f := &p.first
	h := hashLine(line, f.seed)
	if h > f.threshold {
		return
	}
	if _, known := f.lines[line]; known {
		return
	}
	f.lines[line] = struct{}{}
	p.count(pair, stack.Cold, 1<<f.halvings, int(h%groups))
	for len(f.lines) > firstLines {
		f.threshold /= 2
		f.halvings++
		for line := range f.lines {
			if hashLine(line, f.seed) > f.threshold {
				delete(f.lines, line)
			}
		}
	}
}

func (p *siteSampler) count(pair, distance uint32, weight uint64, group int) {
	p.counts.add(pairBin{pair, binOf(distance, 0)}, weight, group)
}

func (p *siteSampler) weighing() weighing {
	if p.time == nil {
		return newWeighing(p.space.threshold, p.space.halvings, p.space, nil, 0, 0)
	}
	return newWeighing(p.first.threshold, p.first.halvings, nil, p.time, p.accesses, p.time.samples)
}

// result replaces the counts of package sites with estimates.
func (p *siteSampler) result(of *profile.Sites) {
	code, data := p.counts.sumBySiteAndObject(p.sites, len(of.Code), len(of.Data))
	w := p.weighing()
	for i := range of.Code {
		w.distributeReuse(&of.Code[i].Reuse, code[i])
	}
	for i := range of.Data {
		w.distributeReuse(&of.Data[i].Reuse, data[i])
	}
}

// distributeReuse does the same as distribute for a site or an object without coherence misses.
func (w *weighing) distributeReuse(r *profile.Reuse, p *placeCounts) {
	all := profile.CoherentReuse{Cold: r.Cold, Bins: r.Bins, Off: r.Off}
	w.distribute(&all, p)
	r.Cold, r.Bins, r.Off = all.Cold, all.Bins, all.Off
}

// distribute moves accesses of a site or an object out of the bin of the shortest distance, in this
// order: to the count of cold accesses, to the coherence misses, and to the other bins, longest
// distances first. All other accesses stay in the shortest bin (SHARDS-adj).
func (w *weighing) distribute(r *profile.CoherentReuse, p *placeCounts) {
	shortest := uint8(profile.SiteBin(w.front))
	i := slices.IndexFunc(r.Bins, func(b profile.BinCount) bool { return b.Bin == shortest })
	if i < 0 {
		return
	}
	if p == nil {
		p = new(placeCounts)
	}
	b := scaledCounts{left: r.Bins[i].Count, factor: w.cold}
	r.Bins = slices.Delete(r.Bins, i, i+1)
	sums := p.found.sums()
	r.Cold = b.take(sums[outOf])
	b.factor = w.deep
	for bin := profile.SiteBins - 1; bin >= 0; bin-- {
		r.Lost = addBin(r.Lost, uint8(bin), b.take(p.lost[bin]))
	}
	for bin := profile.SiteBins - 1; bin >= 0; bin-- {
		if n := b.take(sums[bin]); bin > int(shortest) {
			r.Bins = addBin(r.Bins, uint8(bin), n)
		} else {
			b.left += n
		}
	}
	r.Bins = addBin(r.Bins, shortest, b.left)
	r.Off = w.halfWidths(r.Cold+r.Coherence(), r.Bins, &p.found, &p.lostParts)
}

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

// halfWidths computes the half-widths of the confidence intervals of miss counts from the weights of
// the groups. The parameter certain is the number of accesses that certainly miss. The parameter
// bins contains all other accesses, and the parameter s contains the group weights of these
// accesses. The parameter lost contains the group weights of the coherence misses.
func (w *weighing) halfWidths(certain uint64, bins []profile.BinCount, s *groupWeights, lost *[groups]uint64) (list []profile.BinCount) {
	if w.deepRest <= 0 && w.coldRest <= 0 {
		return nil
	}
	var misses [outOf + 1]uint64
	misses[outOf] = certain
	for _, b := range bins {
		misses[b.Bin] = b.Count
	}
	for bin := outOf - 1; bin >= 0; bin-- {
		misses[bin] += misses[bin+1]
	}
	last := uint64(0)
	for bin, b := range w.boundsOf(&misses, s, lost) {
		off := max(b.High-misses[bin], misses[bin]-b.Low)
		if off != last {
			list = append(list, profile.BinCount{Bin: uint8(bin), Count: off})
			last = off
		}
	}
	return list
}

// sums returns the sum over all groups for each bin.
func (s *groupWeights) sums() (sums [outOf + 1]uint64) {
	for g := range s {
		for bin, n := range s[g] {
			sums[bin] += n
		}
	}
	return sums
}
