// Package ranking says which places in the code and which data make the misses of
// a hierarchy of caches.
//
// A profile tells the stack distances of each site in bins (analysis/sites), and
// those of all sites together exactly. So the misses of a fully associative LRU
// level are exact by site where its capacity is the edge of a bin. Within the bin
// that the capacity falls into, each site misses the share that all accesses of
// the bin do, which is known: so the sum is exact for every capacity.
//
// Where utilisation was measured for such a cache, fully associative or in sets,
// its count of fetched lines is exact by site, and is taken.
//
// Any other set-associative level misses, in each bin, the share that SDCM expects at the
// bin's mean distance (MODELS §5). These are estimates, and are tied to what
// hierarchy.Predict says of the level: where it misses less, what sites miss
// beyond their first accesses is scaled down; where it misses more, bins that may
// hit or miss take up the difference, and what they cannot hold is of no site.
// That rest are conflicts among few lines: distances do not tell whose, and the
// trace has to be asked about the cache, by utilisation.
//
// Of a sample of lines the bins of sites are estimates, too, and do not add up to the
// histogram; they are tied to the prediction in the same way.
//
// What all sites of a level miss, and the rest, always add up to the prediction.
package ranking

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Attribution says whose the misses of one level are.
type Attribution struct {
	Level hierarchy.Level // as predicted
	Sites []float64       // misses by site, in the order of profile.Sites.Code
	Data  []float64       // by data object, the same
	Rest  float64         // of no site and no object
	Exact bool            // the numbers of sites and objects are no estimates
	// Countable is the cache by size and ways, as in 32KiB,8, where the numbers of
	// sites are estimates and an analysis could count them; "" where it could not,
	// or has.
	Countable string
}

// Ranker attributes the misses of one profile, which must not change, to any
// number of hierarchies.
type Ranker struct {
	p     *profile.Profile
	asker *hierarchy.Asker
	bins  [profile.SiteBins]bin
	cold  uint64
	curve *profile.Curve

	estimated bool // the bins are, from a sample of lines
}

// bin is what all accesses of a bin of distances are.
type bin struct {
	count uint64
	mean  float64 // of their distances
}

// New prepares to attribute the misses of p. ok is false where it tells no sites.
func New(p *profile.Profile) (r *Ranker, ok bool) {
	if p.Sites == nil || p.LocalityAt(p.Sites.LineBytes) == nil {
		return nil, false
	}
	r = &Ranker{p: p, asker: hierarchy.NewAsker(p)}
	h, cold := p.LocalityAt(p.Sites.LineBytes).Histogram(trace.AllKinds)
	r.curve, r.cold = profile.NewCurve(h, cold), cold
	for d, n := range h.All() {
		b := &r.bins[profile.SiteBin(uint32(d))]
		b.count += n
		b.mean += float64(d) * float64(n)
	}
	for i := range r.bins {
		if n := r.bins[i].count; n > 0 {
			r.bins[i].mean /= float64(n)
		}
	}
	if r.estimated = p.Sampled.Chosen(); r.estimated {
		r.addUp()
	}
	return r, true
}

// addUp has bins hold what sites add up to: of a sample, that is not the histogram.
func (r *Ranker) addUp() {
	r.cold = 0
	for i := range r.bins {
		if r.bins[i].count == 0 {
			r.bins[i].mean = float64(profile.SiteBinFrom(i)+profile.SiteBinFrom(i+1)-1) / 2
		}
		r.bins[i].count = 0
	}
	for i := range r.p.Sites.Code {
		reuse := &r.p.Sites.Code[i].Reuse
		r.cold += reuse.Cold
		for _, b := range reuse.Bins {
			r.bins[b.Bin].count += b.Count
		}
	}
}

// Attribute predicts a hierarchy and says whose the misses of each level are. The
// error and the warnings are those of the prediction, and what else is doubtful
// about sites.
func (r *Ranker) Attribute(h hierarchy.Hierarchy) ([]Attribution, []hierarchy.Warning, error) {
	predicted, warnings, err := r.asker.Predict(h)
	if err != nil {
		return nil, nil, err
	}
	list := make([]Attribution, len(predicted.Levels))
	others := ""
	for i := range list {
		list[i] = r.level(&predicted.Levels[i], r.capacity(predicted.Levels[:i+1]))
		if c := predicted.Levels[i].Cache; c.LineBytes != r.p.Sites.LineBytes {
			others = c.Name
		}
	}
	if others != "" {
		warnings = append(warnings, hierarchy.Warning(others+" has lines of another size than those at which sites are told apart: "+
			"its misses are divided among sites by the latter, and how much of its lines is used is not known"))
	}
	return list, warnings, nil
}

// capacity is a cache as far as distances are asked about it.
type capacity struct {
	lines, ways uint64 // ways = lines: fully associative
}

// capacity is that of the last of levels, in lines as sites know them. Exclusive
// levels that are answered together hold what all above them do not.
func (r *Ranker) capacity(levels []hierarchy.Level) (c capacity) {
	last := &levels[len(levels)-1]
	if !last.Together {
		levels = levels[len(levels)-1:]
	}
	full := true
	for i := range levels {
		cache := levels[i].Cache
		lines := max(1, cache.SizeBytes/uint64(r.p.Sites.LineBytes))
		c.lines += lines
		c.ways += max(1, lines/cache.Sets())
		full = full && cache.Full()
	}
	if full || c.ways > c.lines {
		c.ways = c.lines
	}
	return c
}

// level attributes the misses of one level.
func (r *Ranker) level(l *hierarchy.Level, c capacity) Attribution {
	a := Attribution{Level: *l}
	if at := r.measured(l, c); at >= 0 {
		a.Sites, a.Data, a.Exact = r.fetched(at, l.Misses)
		return a
	}
	shares := r.shares(c)
	a.Exact = !r.estimated && c.ways == c.lines && (r.atEdge(c.lines) || r.allOrNothing(&shares))
	if !a.Exact && !r.estimated {
		a.Countable = r.countable(l, c)
	}
	cold := 1.0
	a.Rest = r.fit(&shares, &cold, l)
	a.Sites = make([]float64, len(r.p.Sites.Code))
	for i := range a.Sites {
		a.Sites[i] = misses(&r.p.Sites.Code[i].Reuse, &shares, cold)
	}
	a.Data = make([]float64, len(r.p.Sites.Data))
	for i := range a.Data {
		a.Data[i] = misses(&r.p.Sites.Data[i].Reuse, &shares, cold)
	}
	if r.estimated {
		tie(a.Data, l.Misses-a.Rest)
	}
	return a
}

// tie has numbers add up to a sum: objects of a sample differ from its sites.
func tie(list []float64, to float64) {
	var sum float64
	for _, n := range list {
		sum += n
	}
	if sum == 0 {
		return
	}
	for i := range list {
		list[i] *= to / sum
	}
}

// measured is the index of the utilisation that was measured for a cache, or -1.
func (r *Ranker) measured(l *hierarchy.Level, c capacity) int {
	if l.Cache.Hashed || l.Cache.LineBytes != r.p.Sites.LineBytes {
		return -1
	}
	return r.p.Sites.Measured(c.lines, c.waysOrFull())
}

// waysOrFull are the ways, 0 where it is fully associative.
func (c capacity) waysOrFull() uint32 {
	if c.ways == c.lines {
		return 0
	}
	return uint32(c.ways)
}

// countable is the cache as it would have to be measured.
func (r *Ranker) countable(l *hierarchy.Level, c capacity) string {
	ways := c.waysOrFull()
	if l.Cache.Hashed || l.Cache.LineBytes != r.p.Sites.LineBytes || !profile.ValidUtilisation(c.lines, ways) {
		return ""
	}
	text := hierarchy.FormatSize(c.lines * uint64(r.p.Sites.LineBytes))
	if ways > 0 {
		text += "," + strconv.FormatUint(uint64(ways), 10)
	}
	return text
}

// fetched are the misses that utilisation counted. Where the level is predicted to
// miss another number, by a model or because the level above lets fewer through,
// they are scaled to that, and no more exact.
func (r *Ranker) fetched(at int, total float64) (sites, data []float64, exact bool) {
	var sum uint64
	for i := range r.p.Sites.Code {
		sum += r.p.Sites.Code[i].Reuse.Used[at].Fetched
	}
	factor := 1.0
	if exact = float64(sum) == total; !exact && sum > 0 {
		factor = total / float64(sum)
	}
	for i := range r.p.Sites.Code {
		sites = append(sites, factor*float64(r.p.Sites.Code[i].Reuse.Used[at].Fetched))
	}
	for i := range r.p.Sites.Data {
		data = append(data, factor*float64(r.p.Sites.Data[i].Reuse.Used[at].Fetched))
	}
	return sites, data, exact
}

// binShares are the shares of each bin's accesses that miss.
type binShares [profile.SiteBins]float64

// misses sums up what a site or an object misses.
func misses(u *profile.Reuse, shares *binShares, cold float64) float64 {
	sum := cold * float64(u.Cold)
	for _, b := range u.Bins {
		sum += shares[b.Bin] * float64(b.Count)
	}
	return sum
}

// shares gives what is expected of each bin.
func (r *Ranker) shares(c capacity) (shares binShares) {
	for i, b := range r.bins {
		from, end := profile.SiteBinFrom(i), profile.SiteBinFrom(i+1)
		switch {
		case b.count == 0:
		case c.ways < c.lines:
			shares[i] = 1 - hitProbability(b.mean, c)
		case from >= c.lines:
			shares[i] = 1
		case end > c.lines:
			shares[i] = r.within(from, c.lines, end)
		}
	}
	return shares
}

// within is the share of the accesses at distances from from up to end that are at
// lines or beyond.
func (r *Ranker) within(from, lines, end uint64) float64 {
	far, all := r.curve.Misses(lines)-r.curve.Misses(end), r.curve.Misses(from)-r.curve.Misses(end)
	if all == 0 {
		return float64(end-lines) / float64(end-from)
	}
	return float64(far) / float64(all)
}

// hitProbability is SDCM's at a mean distance, between those of its neighbours.
func hitProbability(distance float64, c capacity) float64 {
	below := uint64(distance)
	low := hierarchy.HitProbability(below, c.lines, c.ways)
	high := hierarchy.HitProbability(below+1, c.lines, c.ways)
	return low + (high-low)*(distance-float64(below))
}

func (r *Ranker) atEdge(lines uint64) bool {
	return lines >= 1<<32 || profile.SiteBinFrom(profile.SiteBin(uint32(lines))) == lines
}

// allOrNothing reports whether each bin hits or misses as a whole.
func (r *Ranker) allOrNothing(shares *binShares) bool {
	for i, b := range r.bins {
		if b.count > 0 && shares[i] != 0 && shares[i] != 1 {
			return false
		}
	}
	return true
}

// fit ties the shares to what the level misses, and gives what is of no bin.
func (r *Ranker) fit(shares *binShares, cold *float64, l *hierarchy.Level) (rest float64) {
	first := float64(r.cold)
	expected, open := first, 0.0
	for i, b := range r.bins {
		expected += shares[i] * float64(b.count)
		open += min(shares[i], 1-shares[i]) * float64(b.count)
	}
	const negligible = 1e-9 // what sums of 64-bit floats are off
	missing := l.Misses - expected
	switch {
	case math.Abs(missing) <= negligible*(1+l.Misses):
		return 0
	case l.Misses < first: // of longer lines, there are fewer
		scale(shares, l.Misses/expected)
		*cold = l.Misses / expected
		return 0
	case missing < 0:
		scale(shares, (l.Misses-first)/(expected-first))
		return 0
	}
	if r.estimated {
		return r.fill(shares, missing)
	}
	if open > 0 {
		part := min(1, missing/open)
		for i, share := range shares {
			shares[i] += part * min(share, 1-share)
		}
		missing -= part * open
	}
	if missing <= negligible*(1+l.Misses) {
		return 0
	}
	return missing
}

// fill takes what is missing from the bins of the longest distances that hit: of a
// sample, distances about the capacity are the least certain. It gives what no bin has.
func (r *Ranker) fill(shares *binShares, missing float64) (rest float64) {
	for i := len(shares) - 1; i >= 0 && missing > 0; i-- {
		count := float64(r.bins[i].count)
		if hits := (1 - shares[i]) * count; hits > 0 {
			more := min(missing, hits)
			shares[i] += more / count
			missing -= more
		}
	}
	return max(missing, 0)
}

func scale(shares *binShares, factor float64) {
	for i := range shares {
		shares[i] *= factor
	}
}
