// Package attribution attributes the misses of a cache hierarchy to source locations and data
// structures (MODELS §15).
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
// hierarchy.Asker predicts for the level: where it misses less, what sites miss
// beyond their certain misses is scaled down; where it misses more, bins that may
// hit or miss take up the difference, and what they cannot hold is of no site.
// That rest are conflicts among few lines: distances do not tell whose, and the
// trace has to be asked about the cache, by utilisation.
//
// # Cores
//
// Where a program's threads run on several cores, the cache that a level has decides
// which stack its misses are taken from:
//
//   - A core's own cache: the coherent stack of the core that makes an access, on which
//     other cores' stores take lines away (MODELS §6.4). The misses of a site that are
//     certain in every cache are then its cores' first accesses to lines and its coherence
//     misses. A coherence miss is one for the store if the line was no deeper on the stack
//     than the cache has lines when the store took it; else the cache had lost the line.
//   - A cache that all cores share: the stack of the whole trace.
//   - A cache that some cores share: the stack of the whole trace, too, tied to the
//     prediction, because the stacks of some cores are not told apart by site.
//
// Utilisation is measured in one cache of all threads, and in private ones of the cores.
//
// Of a sample of lines the bins of sites are estimates, too, and do not add up to the
// histogram; they are tied to the prediction in the same way.
//
// What all sites of a level miss, and the rest, always add up to the prediction, and so
// does what they miss for coherence.
package attribution

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
	// RestUnknown says that the rest is not conflicts in sets, but what the profile lacks.
	RestUnknown bool
	Exact       bool // the numbers of sites and objects are no estimates
	// Coherence is how many of the level's misses are coherence misses: of lines that
	// another core's store took from a cache. Where there are some, SiteCoherence and
	// DataCoherence have those of each site and object.
	Coherence                    float64
	SiteCoherence, DataCoherence []float64
	// Private says that each core has a cache of its own at this level.
	Private bool
	// Countable is the cache by size and ways, as in 32KiB,8, where the numbers of
	// sites are estimates and an analysis could count them; "" where it could not,
	// or has.
	Countable string

	capacity capacity
}

// Ranker attributes the misses of one profile, which must not change, to any
// number of hierarchies.
type Ranker struct {
	p        *profile.Profile
	asker    *hierarchy.Asker
	whole    stack    // of the trace, as if on one core
	coherent *stack   // of the cores, together; nil: the profile does not tell it by site
	lost     *binning // depths at which lines were lost, the same

	estimated bool // the bins are, from a sample of lines
}

// stack is what all accesses are on the stacks that sites' bins are of.
type stack struct {
	binning
	certain uint64 // misses in every cache
}

// binning is what a histogram is in bins.
type binning struct {
	bins  [profile.SiteBins]bin
	curve *profile.Curve
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
	r = &Ranker{p: p, asker: hierarchy.NewAsker(p), estimated: p.Sampled.Chosen()}
	h, cold := p.LocalityAt(p.Sites.LineBytes).Histogram(trace.AllKinds)
	r.whole = stack{binned(h, cold), cold}
	if r.estimated {
		r.addUp(&r.whole)
	}
	if cores := p.SharingAt(p.Sites.LineBytes); cores != nil && p.Sites.Coherent != nil {
		r.addCores(cores)
	}
	return r, true
}

// addCores sums the coherent stacks of cores up.
func (r *Ranker) addCores(s *profile.Sharing) {
	var found, lost profile.Histogram
	var certain uint64
	for i := range s.Cores {
		c := &s.Cores[i].Coherent
		found.Merge(&c.Distances)
		lost.Merge(&c.Lost)
		certain += c.Cold + c.Lost.Total()
	}
	all := binned(&lost, 0)
	r.coherent, r.lost = &stack{binned(&found, certain), certain}, &all
	if r.estimated {
		r.addUp(r.coherent)
		r.lost.clear()
		for i := range r.p.Sites.Coherent.Code {
			r.lost.add(r.p.Sites.Coherent.Code[i].Lost)
		}
	}
}

// binned puts a histogram into bins; misses in every cache count in the curve only.
func binned(h *profile.Histogram, certain uint64) (b binning) {
	b.curve = profile.NewCurve(h, certain)
	for d, n := range h.All() {
		at := &b.bins[profile.SiteBin(uint32(d))]
		at.count += n
		at.mean += float64(d) * float64(n)
	}
	for i := range b.bins {
		if n := b.bins[i].count; n > 0 {
			b.bins[i].mean /= float64(n)
		}
	}
	return b
}

// addUp has bins hold what sites add up to: of a sample, that is not the histogram.
func (r *Ranker) addUp(s *stack) {
	s.certain = 0
	s.clear()
	for i := range r.p.Sites.Code {
		n := r.site(s, i)
		s.certain += n.certain
		s.add(n.bins)
	}
}

// clear has bins count nothing, and mean something where they did.
func (b *binning) clear() {
	for i := range b.bins {
		if b.bins[i].count == 0 {
			b.bins[i].mean = float64(profile.SiteBinFrom(i)+profile.SiteBinFrom(i+1)-1) / 2
		}
		b.bins[i].count = 0
	}
}

func (b *binning) add(counts []profile.BinCount) {
	for _, n := range counts {
		b.bins[n.Bin].count += n.Count
	}
}

// accesses are those of a site or an object on a stack.
type accesses struct {
	certain uint64 // misses in every cache
	bins    []profile.BinCount
	lost    []profile.BinCount // coherence misses, which are among those that are certain
}

// site returns the accesses of a site on the stack of the trace or on those of the cores.
func (r *Ranker) site(on *stack, i int) accesses {
	if on == r.coherent {
		return onCores(&r.p.Sites.Coherent.Code[i])
	}
	u := &r.p.Sites.Code[i].Reuse
	return accesses{certain: u.Cold, bins: u.Bins}
}

// object does so for a data object.
func (r *Ranker) object(on *stack, i int) accesses {
	if on == r.coherent {
		return onCores(&r.p.Sites.Coherent.Data[i])
	}
	u := &r.p.Sites.Data[i].Reuse
	return accesses{certain: u.Cold, bins: u.Bins}
}

func onCores(c *profile.CoherentReuse) accesses {
	return accesses{certain: c.Cold + c.Coherence(), bins: c.Bins, lost: c.Lost}
}

// sharers says which cores have a cache of a level in common.
type sharers uint8

const (
	oneCore sharers = iota // all threads run on one core
	each                   // each core has a cache of its own
	some
	all
)

// Attribute predicts a hierarchy and says whose the misses of each level are. The
// error and the warnings are those of the prediction, and what else is doubtful
// about sites.
func (r *Ranker) Attribute(h hierarchy.Hierarchy) ([]Attribution, []hierarchy.Warning, error) {
	predicted, warnings, err := r.asker.Predict(h, nil)
	if err != nil {
		return nil, nil, err
	}
	list := make([]Attribution, len(predicted.Levels))
	others, own, apart := "", "", ""
	for i := range list {
		l := &predicted.Levels[i]
		by := sharersOf(l.Cache, len(predicted.Cores))
		coherence := 0.0
		if by != oneCore {
			coherence = predicted.Coherence[i]
		}
		list[i] = r.level(l, r.capacity(predicted.Levels[:i+1]), by, coherence)
		switch {
		case l.Cache.LineBytes != r.p.Sites.LineBytes:
			others = l.Cache.Name
		case by == each && r.coherent == nil:
			own = l.Cache.Name
		case by == some:
			apart = l.Cache.Name
		}
	}
	if others != "" {
		warnings = append(warnings, hierarchy.Warning(others+" has lines of another size than those at which sites are told apart: "+
			"its misses are divided among sites by the latter, and how much of its lines is used is not known"))
	}
	if own != "" {
		warnings = append(warnings, hierarchy.Warning(own+" is private to a core, and the profile does not say which source lines cause coherence misses: "+
			"the misses of each place are estimated as if all threads ran on one core; analyze the trace again to count them"))
	}
	if apart != "" {
		warnings = append(warnings, hierarchy.Warning(apart+" is shared by some of the cores: its misses are divided among places in the code as if all cores shared it"))
	}
	return list, warnings, nil
}

// sharersOf says which of the cores have a cache in common; 0 cores: all threads run on
// one.
func sharersOf(c hierarchy.Cache, cores int) sharers {
	switch by := max(c.SharedBy, 1); {
	case cores == 0:
		return oneCore
	case by == 1 || cores == 1:
		return each
	case uint64(by) >= uint64(cores):
		return all
	}
	return some
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

// level attributes the misses of one level, of which some are coherence misses.
func (r *Ranker) level(l *hierarchy.Level, c capacity, by sharers, coherence float64) Attribution {
	a := Attribution{Level: *l, Coherence: coherence, Private: by == each, capacity: c}
	on := &r.whole
	if by == each && r.coherent != nil {
		on = r.coherent
	}
	if on == r.coherent && coherence > 0 {
		r.attributeCoherence(&a, c)
	}
	if at := r.measured(l, c, by); at >= 0 {
		a.Sites, a.Data, a.Exact = r.fetched(at, l.Misses, by == each)
		return a
	}
	known := by != some && (by != each || r.coherent != nil) // the stack is that of the level's caches
	f := fitting{stack: on, shares: on.shares(c), part: 1}
	expected := f.misses()
	a.Rest = f.fit(l.Misses, r.estimated || by == some)
	a.RestUnknown = !known
	same := known && !r.estimated && l.Cache.LineBytes == r.p.Sites.LineBytes
	a.Exact = same && (nearly(l.Misses, float64(on.certain)) ||
		nearly(l.Misses, expected) && c.ways == c.lines && (atEdge(c.lines) || on.allOrNothing(&f.shares)))
	if !a.Exact && !r.estimated {
		a.Countable = r.countable(l, c, by)
	}
	a.Sites = make([]float64, len(r.p.Sites.Code))
	for i := range a.Sites {
		a.Sites[i] = f.missesOf(r.site(on, i))
	}
	a.Data = make([]float64, len(r.p.Sites.Data))
	for i := range a.Data {
		a.Data[i] = f.missesOf(r.object(on, i))
	}
	if r.estimated {
		tie(a.Data, l.Misses-a.Rest)
	}
	return a
}

// attributeCoherence says whose the coherence misses are: those to lines that the cache
// would still have had, but for another core's store.
func (r *Ranker) attributeCoherence(a *Attribution, c capacity) {
	gone := r.lost.shares(c)
	of := func(n accesses) (sum float64) {
		for _, b := range n.lost {
			sum += (1 - gone[b.Bin]) * float64(b.Count)
		}
		return sum
	}
	for i := range r.p.Sites.Code {
		a.SiteCoherence = append(a.SiteCoherence, of(r.site(r.coherent, i)))
	}
	for i := range r.p.Sites.Data {
		a.DataCoherence = append(a.DataCoherence, of(r.object(r.coherent, i)))
	}
	tie(a.SiteCoherence, a.Coherence)
	tie(a.DataCoherence, a.Coherence)
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
func (r *Ranker) measured(l *hierarchy.Level, c capacity, by sharers) int {
	if by == some || by == each && !r.measuredPrivate() || l.Cache.Hashed || l.Cache.LineBytes != r.p.Sites.LineBytes {
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
func (r *Ranker) countable(l *hierarchy.Level, c capacity, by sharers) string {
	ways := c.waysOrFull()
	if by == some || l.Cache.Hashed || l.Cache.LineBytes != r.p.Sites.LineBytes || !profile.ValidUtilisation(c.lines, ways) {
		return ""
	}
	text := hierarchy.FormatSize(c.lines * uint64(r.p.Sites.LineBytes))
	if ways > 0 {
		text += "," + strconv.FormatUint(uint64(ways), 10)
	}
	return text
}

// measuredPrivate reports whether utilisation was measured in private caches, too.
func (r *Ranker) measuredPrivate() bool {
	return r.p.Sites.Coherent != nil && r.p.Sites.Coherent.Measured
}

// usedBySite is the utilisation that was measured of a site, in private caches or in one.
func (r *Ranker) usedBySite(i int, private bool) []profile.Utilisation {
	if private {
		return r.p.Sites.Coherent.Code[i].Used
	}
	return r.p.Sites.Code[i].Reuse.Used
}

func (r *Ranker) usedByObject(i int, private bool) []profile.Utilisation {
	if private {
		return r.p.Sites.Coherent.Data[i].Used
	}
	return r.p.Sites.Data[i].Reuse.Used
}

// UsedIn says in which caches the utilisation of rows is measured, for one of
// profile.Sites.Capacities: private ones of the cores, as some levels have; or one of all
// threads, although no level has that.
func (r *Ranker) UsedIn(levels []Attribution, at int) (private, oneCore bool) {
	s := r.p.Sites
	some := false
	for i := range levels {
		l := &levels[i]
		if some = some || l.Private; !l.Private && l.capacity.lines == s.Capacities[at] && l.capacity.waysOrFull() == s.Ways[at] {
			return false, false
		}
	}
	return some && r.measuredPrivate(), some && !r.measuredPrivate()
}

// fetched are the misses that utilisation counted, in private caches or in one. Where the
// level is predicted to miss another number, by a model or because the level above lets
// fewer through, they are scaled to that, and no more exact.
func (r *Ranker) fetched(at int, total float64, private bool) (sites, data []float64, exact bool) {
	var sum uint64
	for i := range r.p.Sites.Code {
		sum += r.usedBySite(i, private)[at].Fetched
	}
	factor := 1.0
	if exact = float64(sum) == total; !exact && sum > 0 {
		factor = total / float64(sum)
	}
	for i := range r.p.Sites.Code {
		sites = append(sites, factor*float64(r.usedBySite(i, private)[at].Fetched))
	}
	for i := range r.p.Sites.Data {
		data = append(data, factor*float64(r.usedByObject(i, private)[at].Fetched))
	}
	return sites, data, exact
}

// binShares are the shares of each bin's accesses that miss.
type binShares [profile.SiteBins]float64

// shares gives what is expected of each bin.
func (b *binning) shares(c capacity) (shares binShares) {
	for i, n := range b.bins {
		from, end := profile.SiteBinFrom(i), profile.SiteBinFrom(i+1)
		switch {
		case n.count == 0:
		case c.ways < c.lines:
			shares[i] = 1 - hitProbability(n.mean, c)
		case from >= c.lines:
			shares[i] = 1
		case end > c.lines:
			shares[i] = b.within(from, c.lines, end)
		}
	}
	return shares
}

// within is the share of the accesses at distances from from up to end that are at
// lines or beyond.
func (b *binning) within(from, lines, end uint64) float64 {
	far, all := b.curve.Misses(lines)-b.curve.Misses(end), b.curve.Misses(from)-b.curve.Misses(end)
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

func atEdge(lines uint64) bool {
	return lines >= 1<<32 || profile.SiteBinFrom(profile.SiteBin(uint32(lines))) == lines
}

// allOrNothing reports whether each bin hits or misses as a whole.
func (b *binning) allOrNothing(shares *binShares) bool {
	for i, n := range b.bins {
		if n.count > 0 && shares[i] != 0 && shares[i] != 1 {
			return false
		}
	}
	return true
}

// nearly reports whether two numbers of misses differ by no more than sums of 64-bit
// floats are off.
func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+a) }

// fitting ties what is expected of the accesses on a stack to what a level misses.
type fitting struct {
	*stack
	shares binShares
	part   float64 // of the certain misses that count
}

// misses sums up what all accesses miss.
func (f *fitting) misses() float64 {
	sum := f.part * float64(f.certain)
	for i, b := range f.bins {
		sum += f.shares[i] * float64(b.count)
	}
	return sum
}

// missesOf sums up what a site or an object misses.
func (f *fitting) missesOf(n accesses) float64 {
	sum := f.part * float64(n.certain)
	for _, b := range n.bins {
		sum += f.shares[b.Bin] * float64(b.Count)
	}
	return sum
}

// fit scales the shares so that they add up to the misses of the level, and returns the
// misses that no bin can hold. With anyBin, the bins are of other caches than the level's, and
// any of them may take the missing ones.
func (f *fitting) fit(misses float64, anyBin bool) (rest float64) {
	certain, expected := float64(f.certain), f.misses()
	missing := misses - expected
	switch {
	case nearly(misses, expected):
		return 0
	case misses < certain: // of longer lines, there are fewer
		f.scale(misses / expected)
		f.part = misses / expected
		return 0
	case missing < 0:
		f.scale((misses - certain) / (expected - certain))
		return 0
	case anyBin:
		return f.fill(missing)
	}
	open := 0.0
	for i, b := range f.bins {
		open += min(f.shares[i], 1-f.shares[i]) * float64(b.count)
	}
	if open > 0 {
		part := min(1, missing/open)
		for i, share := range f.shares {
			f.shares[i] += part * min(share, 1-share)
		}
		missing -= part * open
	}
	if nearly(misses, misses-missing) {
		return 0
	}
	return missing
}

// fill takes what is missing from the bins of the longest distances that hit: distances
// about the capacity are the least certain. It gives what no bin has.
func (f *fitting) fill(missing float64) (rest float64) {
	for i := len(f.shares) - 1; i >= 0 && missing > 0; i-- {
		count := float64(f.bins[i].count)
		if hits := (1 - f.shares[i]) * count; hits > 0 {
			more := min(missing, hits)
			f.shares[i] += more / count
			missing -= more
		}
	}
	return max(missing, 0)
}

func (f *fitting) scale(factor float64) {
	for i := range f.shares {
		f.shares[i] *= factor
	}
}
