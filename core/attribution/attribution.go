// Package attribution attributes the misses of a cache hierarchy to source locations and data
// structures (MODELS §15).
//
// A profile contains binned stack distances for each site (analysis/sites), and the exact distances
// for all sites together. The misses of each site in a fully associative LRU level are therefore
// exact if the level's capacity is the edge of a bin. If the capacity lies within a bin, the share
// of misses in that bin is assumed to be the same for each site as for all sites together. The
// share for all sites is known, so the sum of the misses is exact for every capacity.
//
// If line utilisation was measured in a cache with the capacity, associativity and line size of the
// level, the pass also counted the lines that each site fetched into that cache. These exact
// numbers are then used instead of the bins.
//
// For any other set-associative level, the share of misses in each bin is the share that SDCM
// expects at the bin's mean distance (MODELS §5). These estimates are scaled to the total that
// hierarchy.Asker predicts for the level. If this total is smaller than the sum of the estimates,
// the uncertain misses are scaled down. If the total is larger, the difference is added to bins
// whose accesses may hit or miss. Any misses that remain are attributed to no site. These misses
// are conflicts among few lines, which cannot be attributed from stack distances, but only by an
// analysis of that cache with --utilisation.
//
// # Cores
//
// If a program's threads run on several cores, the stack from which the misses of a level are
// computed depends on the level:
//
//   - A private cache uses the coherent stack of the core that makes the access. Other cores'
//     stores remove lines from this stack (MODELS §6.4). The certain misses of a site are the first
//     accesses of each core to a line, and the coherence misses. A miss on an invalidated line is a
//     coherence miss if the line's depth on the stack at its invalidation was smaller than the
//     number of lines in the cache; otherwise, the cache had already evicted the line.
//   - A cache that all cores share uses the stack of the whole trace.
//   - A cache that only some cores share also uses the stack of the whole trace, because profiles
//     do not contain the stack of a group of cores by site. The misses are scaled to the
//     prediction.
//
// Line utilisation is measured in a cache shared by all threads, and in private caches of the
// cores.
//
// For a sample of lines, the bins of sites are estimates, too. These estimates do not add up to the
// histogram, and are scaled to the prediction in the same way. In each level, the misses of all
// sites and the remaining misses always add up to the prediction, and so do the coherence misses.
package attribution

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Attribution attributes the misses of one level.
type Attribution struct {
	Level hierarchy.Level // the predicted level
	Sites []float64       // misses by site, in the order of profile.Sites.Code
	Data  []float64       // misses by data object, in the order of profile.Sites.Data
	Paths []float64       // misses by call path, in the order of profile.Calls.Paths; nil: not in the profile
	Rest  float64         // misses that belong to no site and no object

	RestUnknown bool // Rest consists of misses that the profile cannot attribute, and not of conflict misses
	Exact       bool // the misses of sites and objects are not estimates
	PathsExact  bool // the misses of call paths are not estimates

	// Coherence is the number of misses on lines that another core's store invalidated. If
	// Coherence is not 0, SiteCoherence and DataCoherence attribute these misses.
	Coherence                    float64
	SiteCoherence, DataCoherence []float64

	Part *Ranker // the ranker of a part of the run if the numbers apply only to this part; otherwise nil

	Private bool // each core has a private cache at this level
	// Countable is the cache's size and number of ways, such as 32KiB,8, if the misses of sites are
	// estimates but could be counted in another analysis. Otherwise, Countable is "".
	Countable string

	capacity capacity
	fit      *fitting // the expected misses in each bin of the stack named on
	on       *stack
	gone     *binShares // share of the coherence misses in each bin whose line had already been evicted
	model    bool       // whether the expected misses of sites are exact
}

// Ranker attributes the misses of one profile in any number of hierarchies. The profile must not
// change while the Ranker is in use.
type Ranker struct {
	p           *profile.Profile
	sites, data []part
	paths       []part // call paths; empty if the profile has none
	asker       *hierarchy.Asker
	whole       stack    // stack of the whole trace, as if all threads ran on one core
	coherent    *stack   // coherent stacks of all cores together; nil if the profile does not split them by site
	lost        *binning // depths at which lines of the coherent stacks were invalidated, or nil

	estimated bool // the bins are estimated from a sample of lines

	of *Ranker // ranker of the whole run, if this ranker is for a part of it
}

// stack contains the accesses of all sites to an LRU stack, in the bins that sites use.
type stack struct {
	binning
	certain uint64 // number of accesses that miss in every cache
}

type binning struct {
	bins  [profile.SiteBins]bin
	curve *profile.Curve
}

// bin describes the accesses of all sites in a bin of distances.
type bin struct {
	count uint64
	mean  float64 // mean of the distances
}

// New returns a Ranker for p. ok is false if p has no sites.
func New(p *profile.Profile) (r *Ranker, ok bool) {
	if p.Sites == nil || p.LocalityAt(p.Sites.LineBytes) == nil {
		return nil, false
	}
	r = &Ranker{p: p, asker: hierarchy.NewAsker(p), estimated: p.Sampled.Chosen()}
	r.sites, r.data = r.parts()
	if p.Calls != nil && (p.Calls.Coherent || p.Sites.Coherent == nil) {
		for i := range p.Calls.Paths {
			r.paths = append(r.paths, part{reuse: &p.Calls.Paths[i].Reuse, coherent: &p.Calls.Paths[i].OnCores})
		}
	}
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
		for _, p := range r.sites {
			r.lost.add(p.coherent.Lost)
		}
	}
}

// binned divides a histogram into bins. certain is the number of accesses that miss in every cache,
// which only the curve contains.
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

// addUp sets each bin to its sum over all sites. For a sample, the sums differ from the histogram.
func (r *Ranker) addUp(s *stack) {
	s.certain = 0
	s.clear()
	for _, p := range r.sites {
		n := r.on(s, p)
		s.certain += n.certain
		s.add(n.bins)
	}
}

// clear resets the counts of all bins, and sets the means to the values for empty bins.
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

type accesses struct {
	certain uint64 // number of accesses that miss in every cache
	bins    []profile.BinCount
	lost    []profile.BinCount // coherence misses, which are among the certain misses
}

// part is a site, a data object or a call path.
type part struct {
	reuse    *profile.Reuse
	coherent *profile.CoherentReuse // counts on the coherent stacks; nil: not in the profile
}

// parts returns the sites and the data objects, with their reuse.
func (r *Ranker) parts() (sites, data []part) {
	s := r.p.Sites
	sites, data = make([]part, len(s.Code)), make([]part, len(s.Data))
	for i := range sites {
		if sites[i].reuse = &s.Code[i].Reuse; s.Coherent != nil {
			sites[i].coherent = &s.Coherent.Code[i]
		}
	}
	for i := range data {
		if data[i].reuse = &s.Data[i].Reuse; s.Coherent != nil {
			data[i].coherent = &s.Coherent.Data[i]
		}
	}
	return sites, data
}

// on returns the accesses of a part on s, which is the stack of the trace or the coherent stacks of
// the cores.
func (r *Ranker) on(s *stack, p part) accesses {
	if s == r.coherent {
		c := p.coherent
		return accesses{certain: c.Cold + c.Coherence(), bins: c.Bins, lost: c.Lost}
	}
	return accesses{certain: p.reuse.Cold, bins: p.reuse.Bins}
}

func each[T any](parts []T, number func(T) float64) []float64 {
	list := make([]float64, len(parts))
	for i, p := range parts {
		list[i] = number(p)
	}
	return list
}

// sharers describes which cores share a cache of a level.
type sharers uint8

const (
	oneCore   sharers = iota // all threads run on one core
	ownCache                 // each core has a separate cache
	someCores                // some cores share a cache
	allCores
)

// Attribute predicts a hierarchy and attributes the misses of each level. Attribute returns the
// error and the warnings of the prediction, and warnings about sites.
func (r *Ranker) Attribute(h hierarchy.Hierarchy) ([]Attribution, []hierarchy.Warning, error) {
	if r.of != nil {
		list, warnings, err := r.of.Attribute(h)
		r.within(list)
		return list, warnings, err
	}
	predicted, warnings, err := r.asker.Predict(h, nil)
	if err != nil {
		return nil, nil, err
	}
	list := make([]Attribution, len(predicted.Levels))
	others, own, some := "", "", ""
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
		case by == ownCache && r.coherent == nil:
			own = l.Cache.Name
		case by == someCores:
			some = l.Cache.Name
		}
	}
	warn := func(cache, what string) {
		if cache != "" {
			warnings = append(warnings, hierarchy.Warning(cache+what))
		}
	}
	warn(others, " has a line size for which sites were not analysed, so its misses are divided among the sites in the same proportions as for the analysed line size, and its line utilisation is unknown")
	warn(own, " is private to a core, and the profile does not attribute coherence misses to source lines, so "+
		"the misses of each source location are estimated as if all threads ran on one core; to count coherence misses, analyze the trace again")
	warn(some, " is shared by some of the cores, so its misses are divided among the source locations as if all cores shared the cache")
	return list, warnings, nil
}

// sharersOf determines which cores share a cache. cores = 0 means that all threads run on one core.
func sharersOf(c hierarchy.Cache, cores int) sharers {
	switch by := max(c.SharedBy, 1); {
	case cores == 0:
		return oneCore
	case by == 1 || cores == 1:
		return ownCache
	case uint64(by) >= uint64(cores):
		return allCores
	}
	return someCores
}

// capacity is the size of a cache in lines.
type capacity struct {
	lines, ways uint64 // ways = lines means fully associative
}

// capacity returns the capacity of the last level, in lines of the sites' line size. For exclusive
// levels that are predicted together, it returns the sum of their capacities.
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

// level attributes the misses of one level. coherence is the number of coherence misses among them.
func (r *Ranker) level(l *hierarchy.Level, c capacity, by sharers, coherence float64) Attribution {
	a := Attribution{Level: *l, Coherence: coherence, Private: by == ownCache, capacity: c}
	on := &r.whole
	if by == ownCache && r.coherent != nil {
		on = r.coherent
	}
	if on == r.coherent && coherence > 0 {
		r.attributeCoherence(&a, c)
	}
	// whether the stack of the level's caches is known
	known := by != someCores && (by != ownCache || r.coherent != nil)
	f := fitting{stack: on, shares: on.shares(c), part: 1}
	a.fit, a.on = &f, on
	expected := f.misses()
	misses := func(p part) float64 { return f.missesOf(r.on(on, p)) }
	same := known && !r.estimated && l.Cache.LineBytes == r.p.Sites.LineBytes
	a.model = same && (nearly(l.Misses, float64(on.certain)) ||
		nearly(l.Misses, expected) && c.ways == c.lines && (atEdge(c.lines) || on.allOrNothing(&f.shares)))
	if at := r.measured(l, c, by); at >= 0 {
		a.Sites, a.Data, a.Exact = r.fetched(at, l.Misses, by == ownCache)
		f.fit(l.Misses, r.estimated)
		a.Paths = r.byPath(misses, a.Sites)
		a.PathsExact = a.Exact && (a.model || !r.divides())
		return a
	}
	a.Rest = f.fit(l.Misses, r.estimated || by == someCores)
	a.RestUnknown = !known
	if a.Exact, a.PathsExact = a.model, a.model; !a.Exact && !r.estimated {
		a.Countable = r.countable(l, c, by)
	}
	a.Sites, a.Data = each(r.sites, misses), each(r.data, misses)
	a.Paths = r.byPath(misses, a.Sites)
	if r.estimated {
		tie(a.Data, l.Misses-a.Rest)
	}
	return a
}

// byPath returns the misses of each call path. The misses of a function's paths add up to the
// misses of its sites. If the misses of the sites were measured, they are divided among the
// function's paths in proportion to the expected misses on each path, or to the accesses if no path
// has expected misses. The remaining misses belong to paths that the profile does not distinguish.
func (r *Ranker) byPath(misses func(part) float64, sites []float64) []float64 {
	if len(r.paths) == 0 {
		return nil
	}
	type sum struct{ misses, expected, accesses float64 }
	of, rest := map[string]*sum{}, 0.0
	for i, n := range sites {
		f := r.p.Sites.Code[i].Function
		if of[f] == nil {
			of[f] = new(sum)
		}
		of[f].misses += n
		of[f].expected += misses(r.sites[i])
		of[f].accesses += float64(r.sites[i].reuse.Accesses())
		rest += n
	}
	list, further, expected := each(r.paths, misses), []int{}, 0.0
	for i := range list {
		f := of[r.p.Calls.Paths[i].Function]
		switch {
		case r.p.Calls.Paths[i].Function == profile.FurtherPaths:
			further = append(further, i)
			expected += list[i]
			continue
		case f == nil: // the path makes no accesses
			list[i] = 0
		case f.expected > 0:
			list[i] *= f.misses / f.expected
		case f.accesses > 0:
			list[i] = f.misses * float64(r.paths[i].reuse.Accesses()) / f.accesses
		}
		rest -= list[i]
	}
	for _, i := range further {
		if list[i] *= max(0, rest); expected > 0 {
			list[i] /= expected
		} else {
			list[i] = max(0, rest) / float64(len(further))
		}
	}
	return list
}

// divides reports whether the misses of any function are divided among several call paths.
func (r *Ranker) divides() bool {
	seen := map[string]bool{}
	for i := range r.paths {
		f := r.p.Calls.Paths[i].Function
		if r.paths[i].reuse.Accesses() == 0 {
			continue
		}
		if seen[f] || f == profile.FurtherPaths {
			return true
		}
		seen[f] = true
	}
	return false
}

// attributeCoherence attributes the coherence misses: the misses on lines that would still be in
// the cache if another core's store had not invalidated them.
func (r *Ranker) attributeCoherence(a *Attribution, c capacity) {
	gone := r.lost.shares(c)
	a.gone = &gone
	misses := func(p part) float64 { return gone.kept(p.coherent.Lost) }
	a.SiteCoherence, a.DataCoherence = each(r.sites, misses), each(r.data, misses)
	tie(a.SiteCoherence, a.Coherence)
	tie(a.DataCoherence, a.Coherence)
}

// kept returns the expected number of coherence misses whose lines were still in the cache at their
// invalidation.
func (gone *binShares) kept(lost []profile.BinCount) (sum float64) {
	for _, b := range lost {
		sum += (1 - gone[b.Bin]) * float64(b.Count)
	}
	return sum
}

// tie scales numbers to a given sum. This is necessary because, in a sample, the total over all
// objects differs from the total over all sites.
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

// measured returns the index of a cache in the list of caches with measured line utilisation, or
// -1.
func (r *Ranker) measured(l *hierarchy.Level, c capacity, by sharers) int {
	if by == someCores || by == ownCache && !r.measuredPrivate() || l.Cache.Hashed || l.Cache.LineBytes != r.p.Sites.LineBytes {
		return -1
	}
	return r.p.Sites.Measured(c.lines, c.waysOrFull())
}

// waysOrFull returns the ways, or 0 for a fully associative cache.
func (c capacity) waysOrFull() uint32 {
	if c.ways == c.lines {
		return 0
	}
	return uint32(c.ways)
}

// countable describes the cache in the notation of the option that measures utilisation, or returns
// "".
func (r *Ranker) countable(l *hierarchy.Level, c capacity, by sharers) string {
	ways := c.waysOrFull()
	if by == someCores || l.Cache.Hashed || l.Cache.LineBytes != r.p.Sites.LineBytes || !profile.ValidUtilisation(c.lines, ways) {
		return ""
	}
	text := hierarchy.FormatSize(c.lines * uint64(r.p.Sites.LineBytes))
	if ways > 0 {
		text += "," + strconv.FormatUint(uint64(ways), 10)
	}
	return text
}

// measuredPrivate reports whether utilisation was also measured in private caches.
func (r *Ranker) measuredPrivate() bool {
	return r.p.Sites.Coherent != nil && r.p.Sites.Coherent.Measured
}

// used returns the line utilisation that was measured in private caches or in a single cache for
// all threads.
func (p part) used(private bool) []profile.Utilisation {
	if private {
		return p.coherent.Used
	}
	return p.reuse.Used
}

// UsedIn reports in which caches line utilisation was measured for the capacity
// profile.Sites.Capacities[at]. private is true if it was measured in private caches of the cores,
// as in one of the levels. oneCore is true if it was measured in a single cache for all threads,
// although no level consists of such a cache.
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

// fetched returns the misses that were counted when line utilisation was measured, in private
// caches or in a single cache. If the level has a different number of predicted misses, because a
// model or the level above affects the prediction, the counts are scaled, and exact is false.
func (r *Ranker) fetched(at int, total float64, private bool) (sites, data []float64, exact bool) {
	var sum uint64
	for _, p := range r.sites {
		sum += p.used(private)[at].Fetched
	}
	factor := 1.0
	if exact = float64(sum) == total; !exact && sum > 0 {
		factor = total / float64(sum)
	}
	misses := func(p part) float64 { return factor * float64(p.used(private)[at].Fetched) }
	return each(r.sites, misses), each(r.data, misses), exact
}

// binShares contains the miss ratio of each bin.
type binShares [profile.SiteBins]float64

// shares returns the expected share of misses in each bin.
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

// within returns, among the accesses at distances in [from, end), the share with a distance of at
// least lines.
func (b *binning) within(from, lines, end uint64) float64 {
	far, all := b.curve.Misses(lines)-b.curve.Misses(end), b.curve.Misses(from)-b.curve.Misses(end)
	if all == 0 {
		return float64(end-lines) / float64(end-from)
	}
	return float64(far) / float64(all)
}

// hitProbability returns SDCM's hit probability at a mean distance, by interpolation.
func hitProbability(distance float64, c capacity) float64 {
	below := uint64(distance)
	low := hierarchy.HitProbability(below, c.lines, c.ways)
	high := hierarchy.HitProbability(below+1, c.lines, c.ways)
	return low + (high-low)*(distance-float64(below))
}

func atEdge(lines uint64) bool {
	return lines >= 1<<32 || profile.SiteBinFrom(profile.SiteBin(uint32(lines))) == lines
}

// allOrNothing reports whether, in each bin, either all accesses hit or all accesses miss.
func (b *binning) allOrNothing(shares *binShares) bool {
	for i, n := range b.bins {
		if n.count > 0 && shares[i] != 0 && shares[i] != 1 {
			return false
		}
	}
	return true
}

// nearly reports whether two numbers of misses are equal except for rounding errors.
func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+a) }

// fitting scales the expected misses of a stack to the misses of a level.
type fitting struct {
	*stack
	shares binShares
	part   float64 // the factor by which the certain misses are scaled
}

// misses returns the expected number of misses of all accesses.
func (f *fitting) misses() float64 {
	sum := f.part * float64(f.certain)
	for i, b := range f.bins {
		sum += f.shares[i] * float64(b.count)
	}
	return sum
}

// missesOf returns the expected number of misses of a site or an object.
func (f *fitting) missesOf(n accesses) float64 {
	sum := f.part * float64(n.certain)
	for _, b := range n.bins {
		sum += f.shares[b.Bin] * float64(b.Count)
	}
	return sum
}

// fit scales the shares so that the expected misses add up to the misses of the level. fit returns
// the number of misses for which no bin has room. anyBin means that the bins do not describe the
// caches of the level, so the difference may be added to any bin.
func (f *fitting) fit(misses float64, anyBin bool) (rest float64) {
	certain, expected := float64(f.certain), f.misses()
	missing := misses - expected
	switch {
	case nearly(misses, expected):
		return 0
	case misses < certain: // a level with longer lines has fewer cold misses
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

// fill adds the missing misses to the bins whose accesses hit, starting with the longest distances,
// because the outcome is least certain for distances near the capacity. fill returns the number of
// misses for which no bin has room.
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
