// Package attribution attributes the misses of a cache hierarchy to source locations and data
// structures (MODELS §15).
//
// A profile contains binned stack distances for each site (analysis/sites), and the exact distances
// for all sites together. Therefore, the misses of each site in a fully associative LRU level are
// exact if the level's capacity is a bin boundary. If the capacity lies within a bin, each site is
// assumed to have the same share of misses in that bin as all sites together. The share for all
// sites together is known, so the sum of the misses is exact for every capacity.
//
// The measurement of line utilisation in a cache also counts the lines that each site fetches into
// that cache. If the level has the same capacity, associativity and line size as the measured
// cache, these exact counts are used instead of the bins.
//
// For any other set-associative level, the share of misses in each bin is the share that SDCM
// expects at the bin's mean distance (MODELS §5). These estimates are scaled to the total that
// hierarchy.Asker predicts for the level. If this total is smaller than the sum of the estimates,
// the uncertain misses are scaled down. If the total is larger, the difference is added to bins
// whose accesses may hit or miss. Any remaining misses are conflicts among a few lines, and are not
// attributed to a site. Stack distances do not show which sites cause conflict misses. If the trace
// is analysed with --utilisation for this cache, the profile contains the exact misses of each
// site.
//
// # Cores
//
// If a program's threads run on several cores, the misses of a level are computed from one of the
// following LRU stacks:
//
//   - For a private cache: the coherent stack of the core that makes the access. Other cores'
//     stores remove lines from this stack (MODELS §6.4). The following misses of a site are
//     certain: the first accesses of each core to a line, and the coherence misses. A miss on an
//     invalidated line is a coherence miss if the line was still in the cache when it was
//     invalidated, that is, if its depth on the stack was smaller than the number of lines in the
//     cache. If the depth was at least this number, the cache had already evicted the line.
//   - For a cache that all cores share: the stack of the whole trace.
//   - For a cache that only some cores share: also the stack of the whole trace, because profiles
//     do not contain stack distances by site for groups of cores. The misses are scaled to the
//     prediction.
//
// Line utilisation is measured in a cache shared by all threads, and in private caches of the
// cores.
//
// For a sample of lines, the bins of sites are estimates, too. These estimates do not add up to the
// histogram, and are therefore also scaled to the prediction. In each level, the misses of all
// sites and the remaining misses always add up to the prediction. The coherence misses of all sites
// and the remaining coherence misses also add up to the predicted coherence misses.
package attribution

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Attribution divides the misses of one level among sites, data objects and call paths.
type Attribution struct {
	Level hierarchy.Level // the level, as predicted
	Sites []float64       // misses by site, in the order of profile.Sites.Code
	Data  []float64       // misses by data object, in the order of profile.Sites.Data
	Paths []float64       // misses by call path, in the order of profile.Calls.Paths; nil if the profile has no call paths
	Rest  float64         // misses that belong to no site and no object

	RestUnknown bool // whether Rest consists of misses that the profile cannot attribute, rather than of conflict misses
	Exact       bool // whether the misses of sites and objects are exact
	PathsExact  bool // whether the misses of call paths are exact

	// Coherence is the number of misses on lines that another core's store invalidated. If
	// Coherence is not 0, SiteCoherence and DataCoherence divide these misses among sites and data
	// objects.
	Coherence                    float64
	SiteCoherence, DataCoherence []float64

	Part *Ranker // the ranker of the part of the run to which the numbers apply; nil for the whole run

	Private bool // whether each core has a private cache at this level
	// Countable is the cache's size and number of ways, such as "32KiB,8". Countable is "" unless
	// the misses of sites are estimates and a new analysis could count them.
	Countable string

	capacity  capacity
	fit       *fitting // the expected misses in each bin of usedStack
	usedStack *stack
	evicted   *binShares // for each bin of invalidation depths: the share of lines that had already been evicted
	model     bool       // whether the expected misses of sites are exact
}

// Ranker attributes misses to the code and data of one profile, for any number of hierarchies. The
// profile must not change while the Ranker is in use.
type Ranker struct {
	p           *profile.Profile
	sites, data []item
	paths       []item // call paths, if the profile contains call paths
	asker       *hierarchy.Asker
	whole       stack    // stack of the whole trace, as if all threads ran on one core
	coherent    *stack   // sum of the coherent stacks of all cores; nil if the profile does not contain these stacks by site
	invalidated *binning // stack depths at which lines of the coherent stacks were invalidated, or nil

	estimated bool // whether the bins are estimated from a sample of lines

	wholeRun *Ranker // the ranker of the whole run if this ranker is for a part of the run; otherwise nil
}

// stack contains the stack distances of all sites' accesses on one LRU stack, in the bins that the
// profile's sites use.
type stack struct {
	binning
	certain uint64 // number of accesses that miss in every cache
}

type binning struct {
	bins  [profile.SiteBins]bin
	curve *profile.Curve
}

// bin describes those accesses, of all sites, whose stack distances lie in one bin of
// profile.SiteBin.
type bin struct {
	count uint64
	mean  float64 // mean stack distance of these accesses
}

// New returns a Ranker for p. The result ok is false if p has no sites.
func New(p *profile.Profile) (r *Ranker, ok bool) {
	if p.Sites == nil || p.LocalityAt(p.Sites.LineBytes) == nil {
		return nil, false
	}
	r = &Ranker{p: p, asker: hierarchy.NewAsker(p), estimated: p.Sampled.Chosen()}
	r.sites, r.data = r.newItems()
	if p.Calls != nil && (p.Calls.Coherent || p.Sites.Coherent == nil) {
		for i := range p.Calls.Paths {
			r.paths = append(r.paths, item{reuse: &p.Calls.Paths[i].Reuse, coherent: &p.Calls.Paths[i].OnCores})
		}
	}
	h, cold := p.LocalityAt(p.Sites.LineBytes).Histogram(trace.AllKinds)
	r.whole = stack{binHistogram(h, cold), cold}
	if r.estimated {
		r.sumOverSites(&r.whole)
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
	all := binHistogram(&lost, 0)
	r.coherent, r.invalidated = &stack{binHistogram(&found, certain), certain}, &all
	if r.estimated {
		r.sumOverSites(r.coherent)
		r.invalidated.clear()
		for _, p := range r.sites {
			r.invalidated.add(p.coherent.Lost)
		}
	}
}

// binHistogram divides a histogram into bins. The parameter certain is the number of accesses that
// miss in every cache; only the curve includes these accesses.
func binHistogram(h *profile.Histogram, certain uint64) (b binning) {
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

// sumOverSites sets the count of each bin to the sum over all sites. In a sample, these sums differ
// from the histogram.
func (r *Ranker) sumOverSites(s *stack) {
	s.certain = 0
	s.clear()
	for _, p := range r.sites {
		n := r.accessesOn(s, p)
		s.certain += n.certain
		s.add(n.bins)
	}
}

// clear resets the counts of all bins. For each bin whose count is already 0, it sets the mean to
// the middle of the bin.
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
	lost    []profile.BinCount // accesses to invalidated lines; the certain misses include these accesses
}

// item is a site, a data object or a call path.
type item struct {
	reuse    *profile.Reuse
	coherent *profile.CoherentReuse // counts on the coherent stacks; nil if the profile does not contain them
}

// newItems returns the sites and the data objects as items.
func (r *Ranker) newItems() (sites, data []item) {
	s := r.p.Sites
	sites, data = make([]item, len(s.Code)), make([]item, len(s.Data))
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

// accessesOn returns the accesses of an item on s, which is either the stack of the trace, or the
// sum of the coherent stacks of the cores.
func (r *Ranker) accessesOn(s *stack, p item) accesses {
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

// Attribute predicts the misses of a hierarchy and attributes the misses of each level. The
// warnings are about the prediction and about the sites.
func (r *Ranker) Attribute(h hierarchy.Hierarchy) ([]Attribution, []hierarchy.Warning, error) {
	if r.wholeRun != nil {
		list, warnings, err := r.wholeRun.Attribute(h)
		r.restrictToWindows(list)
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
		list[i] = r.attributeLevel(l, r.capacityOf(predicted.Levels[:i+1]), by, coherence)
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

// sharersOf determines which cores share a cache. If the parameter cores is 0, all threads run on
// one core.
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
	lines, ways uint64 // size in lines, and number of ways; the two are equal for a fully associative cache
}

// capacityOf returns the capacity of the last of the given levels, in lines of the size used for
// sites. For exclusive levels that are predicted together, it returns the sum of their capacities.
func (r *Ranker) capacityOf(levels []hierarchy.Level) (c capacity) {
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

// attributeLevel attributes the misses of one level. The parameter coherence is the number of
// coherence misses among these misses.
func (r *Ranker) attributeLevel(l *hierarchy.Level, c capacity, by sharers, coherence float64) Attribution {
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
	f := fitting{stack: on, shares: on.missShares(c), certainFactor: 1}
	a.fit, a.usedStack = &f, on
	expected := f.totalMisses()
	misses := func(p item) float64 { return f.missesOf(r.accessesOn(on, p)) }
	same := known && !r.estimated && l.Cache.LineBytes == r.p.Sites.LineBytes
	a.model = same && (nearlyEqual(l.Misses, float64(on.certain)) ||
		nearlyEqual(l.Misses, expected) && c.ways == c.lines && (atEdge(c.lines) || on.allOrNothing(&f.shares)))
	if at := r.measuredIndex(l, c, by); at >= 0 {
		a.Sites, a.Data, a.Exact = r.fetchedMisses(at, l.Misses, by == ownCache)
		f.fit(l.Misses, r.estimated)
		a.Paths = r.byPath(misses, a.Sites)
		a.PathsExact = a.Exact && (a.model || !r.dividesFunctions())
		return a
	}
	a.Rest = f.fit(l.Misses, r.estimated || by == someCores)
	a.RestUnknown = !known
	if a.Exact, a.PathsExact = a.model, a.model; !a.Exact && !r.estimated {
		a.Countable = r.utilisationOption(l, c, by)
	}
	a.Sites, a.Data = each(r.sites, misses), each(r.data, misses)
	a.Paths = r.byPath(misses, a.Sites)
	if r.estimated {
		scaleTo(a.Data, l.Misses-a.Rest)
	}
	return a
}

// byPath returns the misses of each call path. The misses of a function's paths add up to the
// misses of its sites. The function's misses are divided in proportion to the expected misses of
// each path or, if there are none, to the accesses of each path. The remaining misses belong to
// paths that the profile does not distinguish.
func (r *Ranker) byPath(misses func(item) float64, sites []float64) []float64 {
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
		case f == nil: // the path has no accesses
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

// dividesFunctions reports whether any function has several call paths, so that its misses must be
// divided among them.
func (r *Ranker) dividesFunctions() bool {
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
	gone := r.invalidated.missShares(c)
	a.evicted = &gone
	misses := func(p item) float64 { return gone.notEvicted(p.coherent.Lost) }
	a.SiteCoherence, a.DataCoherence = each(r.sites, misses), each(r.data, misses)
	scaleTo(a.SiteCoherence, a.Coherence)
	scaleTo(a.DataCoherence, a.Coherence)
}

// notEvicted returns the expected number of lines that were still in the cache when they were
// invalidated.
func (gone *binShares) notEvicted(lost []profile.BinCount) (sum float64) {
	for _, b := range lost {
		sum += (1 - gone[b.Bin]) * float64(b.Count)
	}
	return sum
}

// scaleTo scales numbers so that they add up to the given sum. In a sample, for example, the total
// of all objects differs from the total of all sites.
func scaleTo(list []float64, to float64) {
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

// measuredIndex returns the index of a cache in the list of caches in which line utilisation was
// measured, or -1.
func (r *Ranker) measuredIndex(l *hierarchy.Level, c capacity, by sharers) int {
	if by == someCores || by == ownCache && !r.measuredPrivate() || l.Cache.Hashed || l.Cache.LineBytes != r.p.Sites.LineBytes {
		return -1
	}
	return r.p.Sites.Measured(c.lines, c.waysOrFull())
}

// waysOrFull returns the number of ways, or 0 for a fully associative cache.
func (c capacity) waysOrFull() uint32 {
	if c.ways == c.lines {
		return 0
	}
	return uint32(c.ways)
}

// utilisationOption describes the cache in the syntax of the option --utilisation. It returns "" if
// utilisation cannot be measured in the cache.
func (r *Ranker) utilisationOption(l *hierarchy.Level, c capacity, by sharers) string {
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

// measuredPrivate reports whether line utilisation was also measured in private caches.
func (r *Ranker) measuredPrivate() bool {
	return r.p.Sites.Coherent != nil && r.p.Sites.Coherent.Measured
}

// utilisation returns the line utilisation that was measured either in private caches or in a
// single cache for all threads.
func (p item) utilisation(private bool) []profile.Utilisation {
	if private {
		return p.coherent.Used
	}
	return p.reuse.Used
}

// UsedIn reports in which caches line utilisation was measured for the capacity
// profile.Sites.Capacities[at]. UsedIn returns private = true if line utilisation was measured in
// private caches of the cores, and one of the levels has private caches. UsedIn returns oneCore =
// true if line utilisation was measured in a single cache for all threads, although no level is
// such a cache.
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

// fetchedMisses returns the misses that were counted while line utilisation was measured in private
// caches or in a single cache. If the level's prediction differs, because of a model or the level
// above, the counts are scaled to the prediction, and exact is false.
func (r *Ranker) fetchedMisses(at int, total float64, private bool) (sites, data []float64, exact bool) {
	var sum uint64
	for _, p := range r.sites {
		sum += p.utilisation(private)[at].Fetched
	}
	factor := 1.0
	if exact = float64(sum) == total; !exact && sum > 0 {
		factor = total / float64(sum)
	}
	misses := func(p item) float64 { return factor * float64(p.utilisation(private)[at].Fetched) }
	return each(r.sites, misses), each(r.data, misses), exact
}

// binShares contains the miss ratio of each bin.
type binShares [profile.SiteBins]float64

// missShares returns the expected miss ratio of each bin.
func (b *binning) missShares(c capacity) (shares binShares) {
	for i, n := range b.bins {
		from, end := profile.SiteBinFrom(i), profile.SiteBinFrom(i+1)
		switch {
		case n.count == 0:
		case c.ways < c.lines:
			shares[i] = 1 - hitProbability(n.mean, c)
		case from >= c.lines:
			shares[i] = 1
		case end > c.lines:
			shares[i] = b.shareBeyond(from, c.lines, end)
		}
	}
	return shares
}

// shareBeyond returns the share of the accesses at distances in [from, end) whose distance is at
// least the given number of lines.
func (b *binning) shareBeyond(from, lines, end uint64) float64 {
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

// allOrNothing reports whether the accesses of each bin either all hit or all miss.
func (b *binning) allOrNothing(shares *binShares) bool {
	for i, n := range b.bins {
		if n.count > 0 && shares[i] != 0 && shares[i] != 1 {
			return false
		}
	}
	return true
}

// nearlyEqual reports whether two numbers of misses are equal except for rounding errors.
func nearlyEqual(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+a) }

// fitting scales the expected misses on a stack to the predicted misses of a level.
type fitting struct {
	*stack
	shares        binShares
	certainFactor float64 // the factor by which the certain misses are scaled
}

// totalMisses returns the expected number of misses of all accesses.
func (f *fitting) totalMisses() float64 {
	sum := f.certainFactor * float64(f.certain)
	for i, b := range f.bins {
		sum += f.shares[i] * float64(b.count)
	}
	return sum
}

// missesOf returns the expected number of misses of an item's accesses.
func (f *fitting) missesOf(n accesses) float64 {
	sum := f.certainFactor * float64(n.certain)
	for _, b := range n.bins {
		sum += f.shares[b.Bin] * float64(b.Count)
	}
	return sum
}

// fit scales the miss ratios of the bins so that the expected misses add up to the misses of the
// level. It returns the number of misses that cannot be assigned to any bin. If anyBin is set, the
// bins do not describe the caches of the level, so additional misses may be assigned to any bin.
func (f *fitting) fit(misses float64, anyBin bool) (rest float64) {
	certain, expected := float64(f.certain), f.totalMisses()
	missing := misses - expected
	switch {
	case nearlyEqual(misses, expected):
		return 0
	case misses < certain: // a level with longer lines has fewer cold misses
		f.scale(misses / expected)
		f.certainFactor = misses / expected
		return 0
	case missing < 0:
		f.scale((misses - certain) / (expected - certain))
		return 0
	case anyBin:
		return f.fillBins(missing)
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
	if nearlyEqual(misses, misses-missing) {
		return 0
	}
	return missing
}

// fillBins counts hits as misses until the bins contain the given number of additional misses. It
// starts with the bins of the longest distances, because these accesses are most likely to miss. It
// returns the number of misses that cannot be assigned to any bin.
func (f *fitting) fillBins(missing float64) (rest float64) {
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
