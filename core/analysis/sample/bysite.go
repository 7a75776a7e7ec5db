package sample

import (
	"math"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// bySite estimates how the accesses of sites and data objects miss. Package sites counts
// all accesses, those that the front holds by their distance, all others at the shortest
// beyond it; of these the sample has some, which are counted here.
type bySite struct {
	sites *sites.Analysis
	space *space // nil where single accesses are sampled
	time  *timed
	first knownFirsts

	counts  map[placedBin]uint32 // places in parts
	parts   [][groups]uint64
	samples int

	distances []uint32
	accesses  uint64
}

// placedBin is a pair of package sites, and a bin of distances: outOf for first accesses.
type placedBin struct {
	pair uint32
	bin  uint32
}

// knownFirsts are lines, chosen by their hash, that tell of first accesses where single
// accesses are sampled: of a sample that is not used again, the last place that used its
// line is known, but not the first.
type knownFirsts struct {
	seed, threshold uint64
	halvings        uint
	lines           map[trace.Line]struct{}
}

func newBySite(o Options, s *sites.Analysis) *bySite {
	p := &bySite{sites: s, counts: map[placedBin]uint32{}}
	switch o.Mode {
	case profile.TimeSample:
		p.time = newTime(o.Gap, mix(0, o.Seed))
		p.first = knownFirsts{seed: o.Seed, threshold: math.MaxUint64, lines: map[trace.Line]struct{}{}}
	case profile.LinesSample:
		p.space = newSpace(math.MaxUint64, o.Seed, int(o.Lines))
	default:
		p.space = newSpace(o.Threshold, o.Seed, 0)
	}
	return p
}

// shortest is the distance at which package sites counts what is not exact.
func (p *bySite) shortest() uint32 {
	if p.time != nil {
		return 0
	}
	return frontLines
}

// take takes line accesses of rows of a batch.
func (p *bySite) take(b *trace.Batch, lines []trace.Line, rows []uint32) {
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
		if told[i] = p.shortest(); p.time != nil {
			p.takeTimed(line, pair)
		} else if d := p.space.access(line); d < frontLines {
			told[i] = d
		} else if d != passed {
			p.count(pair, d, p.space.weight(), p.space.group(line))
			p.space.after()
		}
	}
	p.accesses += uint64(len(lines))
	p.sites.Follow(&locality.Accesses{Lines: lines, Distances: told, Batch: b, Rows: rows})
}

func (p *bySite) takeTimed(line trace.Line, pair uint32) {
	if d, _ := p.time.access(line); d != passed {
		p.samples++
		p.count(pair, d, 1, p.samples)
	}
	f := &p.first
	h := mix(line, f.seed)
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
			if mix(line, f.seed) > f.threshold {
				delete(f.lines, line)
			}
		}
	}
}

func (p *bySite) count(pair, distance uint32, weight uint64, group int) {
	key := placedBin{pair, outOf}
	if distance != stack.Cold {
		key.bin = uint32(profile.SiteBin(distance))
	}
	n, known := p.counts[key]
	if !known {
		n = uint32(len(p.parts))
		p.counts[key] = n
		p.parts = append(p.parts, [groups]uint64{})
	}
	p.parts[n][group%groups] += weight
}

// weighing is how counts become accesses: see threads.
func (p *bySite) weighing() (w weighing) {
	if p.time == nil {
		w.cold, w.coldRest = math.Exp2(-float64(p.space.halvings))/p.space.rate, 1-p.space.rate
		w.front, w.deep, w.deepRest, w.deviation = frontLines, w.cold, w.coldRest, p.space.deviation
		return w
	}
	rate := profile.RateOf(p.first.threshold)
	w.cold, w.coldRest = math.Exp2(-float64(p.first.halvings))/rate, 1-rate
	w.deep, w.deepRest, w.deviation = 1, 1, p.time.deviation
	if p.time.samples > 0 {
		w.deep = max(1, float64(p.accesses)/float64(p.time.samples))
	}
	if p.time.gap == 1 {
		w.deepRest = 0
	}
	return w
}

// places are spreads by index in a profile.
type places map[uint32]*spread

func (p places) add(at, bin uint32, parts *[groups]uint64) {
	if at == profile.NoSite {
		return
	}
	s := p[at]
	if s == nil {
		s = new(spread)
		p[at] = s
	}
	for g, n := range parts {
		s[g][bin] += n
	}
}

// result makes what package sites told stand for estimates.
func (p *bySite) result(of *profile.Sites) {
	code, data := places{}, places{}
	for key, n := range p.counts {
		slot, object := p.sites.Pair(key.pair)
		code.add(p.sites.Code(slot), key.bin, &p.parts[n])
		data.add(p.sites.Data(object), key.bin, &p.parts[n])
	}
	w := p.weighing()
	for i := range of.Code {
		w.reuse(&of.Code[i].Reuse, code[uint32(i)])
	}
	for i := range of.Data {
		w.reuse(&of.Data[i].Reuse, data[uint32(i)])
	}
}

// reuse divides up what is in the shortest bin of a site or an object.
func (w *weighing) reuse(r *profile.Reuse, s *spread) {
	at := uint8(profile.SiteBin(w.front))
	i := slices.IndexFunc(r.Bins, func(b profile.BinCount) bool { return b.Bin == at })
	if i < 0 {
		return
	}
	if s == nil {
		s = new(spread)
	}
	b := budget{left: r.Bins[i].Count, factor: w.cold}
	r.Bins = slices.Delete(r.Bins, i, i+1)
	sums := s.sums()
	r.Cold = b.take(sums[outOf])
	b.factor = w.deep
	for bin := outOf - 1; bin >= 0; bin-- {
		if n := b.take(sums[bin]); n > 0 && bin > int(at) {
			r.Bins = append(r.Bins, profile.BinCount{Bin: uint8(bin), Count: n})
		} else {
			b.left += n
		}
	}
	if b.left > 0 {
		r.Bins = append(r.Bins, profile.BinCount{Bin: at, Count: b.left})
	}
	sort.Slice(r.Bins, func(i, j int) bool { return r.Bins[i].Bin < r.Bins[j].Bin })
	w.reuseOff(r, s)
}

// reuseOff tells by how much misses may be off, where that changes.
func (w *weighing) reuseOff(r *profile.Reuse, s *spread) {
	r.Off = w.offs(r.Cold, r.Bins, s, nil)
}

// offs is by how much the misses may be off of accesses of which some are certain misses
// and the others in bins; a spread, and that of coherence misses, tell of them.
func (w *weighing) offs(certain uint64, bins []profile.BinCount, s *spread, lost *[groups]uint64) (list []profile.BinCount) {
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

// sums are those of all parts, by bin.
func (s *spread) sums() (sums [outOf + 1]uint64) {
	for g := range s {
		for bin, n := range s[g] {
			sums[bin] += n
		}
	}
	return sums
}
