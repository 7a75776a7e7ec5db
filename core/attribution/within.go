package attribution

import (
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Within returns a ranker for the windows [from, to) of the profile's timeline. The result ok is
// false if the profile has no timeline or no such windows.
//
// For each site, the profile contains the exact number of accesses in each window and in each bin
// of distances. The misses in the windows are computed from the miss ratio of each bin in the whole
// run. If the misses in the whole run are exact for a fully associative level, the misses in the
// windows are also exact; see [Attribution.Exact]. Otherwise, the misses in the windows are
// estimates. The ranker adjusts the estimates so that, for each site, data object and call path,
// the misses of all windows add up to the misses of the whole run. Misses without a known site are
// divided among the windows in proportion to the number of accesses in each window that are
// expected to hit. Line utilisation is known only for the whole run.
func (r *Ranker) Within(from, to int) (within *Ranker, ok bool) {
	if r.wholeRun != nil || r.estimated {
		return nil, false
	}
	span, ok := r.p.Within(from, to)
	if !ok {
		return nil, false
	}
	alone := r.p.Sites.Coherent == nil
	list := func(spans []profile.CoherentSpan) []item {
		parts := make([]item, len(spans))
		for i := range spans {
			if parts[i].reuse = &spans[i].Reuse; !alone {
				parts[i].coherent = &spans[i].OnCores
			}
		}
		return parts
	}
	within = &Ranker{p: r.p, wholeRun: r, asker: r.asker, whole: r.whole, coherent: r.coherent, invalidated: r.invalidated, sites: list(span.Code), data: list(span.Data)}
	if len(r.paths) > 0 {
		within.paths = list(span.Paths)
	}
	return within, true
}

// Accesses returns the number of line accesses of all sites.
func (r *Ranker) Accesses() (n uint64) {
	for i := range r.sites {
		n += r.sites[i].reuse.Accesses()
	}
	return n
}

// PathAccesses returns the number of line accesses of a call path.
func (r *Ranker) PathAccesses(i int) uint64 { return r.paths[i].reuse.Accesses() }

// Part reports whether the ranker is for a part of the run.
func (r *Ranker) Part() bool { return r.wholeRun != nil }

// Reuse returns the reuse profile of a site or of a data object.
func (r *Ranker) Reuse(by By, index int) *profile.Reuse {
	if by == Object {
		return r.data[index].reuse
	}
	return r.sites[index].reuse
}

// restrictToWindows replaces the numbers of the whole run with the numbers of the selected windows.
func (r *Ranker) restrictToWindows(list []Attribution) {
	own, all := float64(r.Accesses()), float64(r.wholeRun.Accesses())
	accesses := own
	for i := range list {
		a := &list[i]
		misses := func(value float64, whole, own item) float64 {
			s := a.fit.newSpread(value, r.accessesOn(a.usedStack, whole))
			return s.missesIn(a.fit, r.accessesOn(a.usedStack, own))
		}
		before := total(a.Sites)
		a.Sites, a.Data, a.Paths = inWindows(a.Sites, r.wholeRun.sites, r.sites, misses), inWindows(a.Data, r.wholeRun.data, r.data, misses), inWindows(a.Paths, r.wholeRun.paths, r.paths, misses)
		if a.evicted != nil {
			coherence := func(value float64, whole, own item) float64 {
				expected := a.evicted.notEvicted(whole.coherent.Lost)
				if nearlyEqual(expected, value) {
					return a.evicted.notEvicted(own.coherent.Lost)
				}
				return a.evicted.notEvicted(own.coherent.Lost) * ratio(value, expected)
			}
			a.SiteCoherence, a.DataCoherence = inWindows(a.SiteCoherence, r.wholeRun.sites, r.sites, coherence), inWindows(a.DataCoherence, r.wholeRun.data, r.data, coherence)
			a.Coherence = total(a.SiteCoherence)
		}
		a.Rest *= ratio(own-total(a.Sites), all-before)
		a.Exact, a.PathsExact, a.Countable, a.Part = a.Exact && a.model, a.Exact && a.model, "", r
		l := &a.Level
		if !a.Exact {
			l.Method = hierarchy.Windowed
		}
		l.Misses = min(a.Rest+total(a.Sites), accesses)
		l.Accesses, l.Hits = accesses, accesses-l.Misses
		accesses = l.Misses
	}
}

// inWindows calls the function misses for each item, and returns the results. The parameter values
// contains the misses of each item in the whole run.
func inWindows(values []float64, whole, own []item, misses func(value float64, whole, own item) float64) []float64 {
	if values == nil {
		return nil
	}
	list := make([]float64, len(values))
	for i, value := range values {
		list[i] = misses(value, whole[i], own[i])
	}
	return list
}

// spread describes how the misses of an item are divided among the windows of the timeline. It
// contains one factor for the certain misses, one for the expected misses in each bin, and one for
// the expected hits in each bin.
type spread struct{ certain, misses, hits float64 }

// newSpread returns the spread for an item with the given misses and accesses in the whole run. If
// there are fewer misses than expected, the uncertain misses are scaled down. If there are more
// misses than expected, a share of the expected hits also counts as misses. Therefore, the misses
// of all windows add up to the given misses, and no window has more misses than accesses.
func (f *fitting) newSpread(misses float64, n accesses) spread {
	expected, certain, all := f.missesOf(n), f.certainFactor*float64(n.certain), float64(n.certain)
	for _, b := range n.bins {
		all += float64(b.Count)
	}
	switch {
	case nearlyEqual(expected, misses):
		return spread{f.certainFactor, 1, 0}
	case misses > expected && all > expected:
		more := (misses - expected) / (all - expected)
		return spread{f.certainFactor + more*(1-f.certainFactor), 1, more}
	case misses >= certain && expected > certain:
		return spread{f.certainFactor, (misses - certain) / (expected - certain), 0}
	}
	factor := ratio(misses, expected)
	return spread{f.certainFactor * factor, factor, 0}
}

func total(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// ratio returns a/b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// missesAmong returns the number of misses among the given number of accesses (count) with the
// given expected miss ratio (share).
func (s *spread) missesAmong(count, share float64) float64 {
	return count * (s.misses*share + s.hits*(1-share))
}

// missesIn returns the number of misses among accesses with the given stack distances.
func (s *spread) missesIn(f *fitting, n accesses) float64 {
	sum := s.certain * float64(n.certain)
	for _, b := range n.bins {
		sum += s.missesAmong(float64(b.Count), f.shares[b.Bin])
	}
	return sum
}

// OverTime returns the number of line accesses and the misses of each level in each window of the
// timeline. The ranker must be for a whole run with a timeline, and the levels must be a result of
// this ranker. [Ranker.Within] computes the same numbers for given windows.
func (r *Ranker) OverTime(levels []Attribution) (accesses []uint64, misses [][]float64) {
	windows := r.p.Timeline.Windows
	accesses, misses = make([]uint64, len(windows)), make([][]float64, len(levels))
	for i, w := range windows {
		for _, s := range accessesBySite(w) {
			accesses[i] += s.Count
		}
	}
	together := make([]int, len(r.sites))
	for n := range levels {
		a := &levels[n]
		misses[n] = r.GroupsOverTime(a, together, 1)[0]
		hits := float64(r.Accesses()) - total(a.Sites)
		for i := range windows {
			misses[n][i] += a.Rest * ratio(float64(accesses[i])-misses[n][i], hits)
		}
	}
	return accesses, misses
}

// GroupsOverTime returns the misses of groups of sites in each window of the timeline, for one of
// the levels for which [Ranker.OverTime] can be called. The list groups contains the group of each
// site, from 0 to count-1, or -1. Misses without a known site are not included.
func (r *Ranker) GroupsOverTime(a *Attribution, groups []int, count int) [][]float64 {
	windows, spreads := r.p.Timeline.Windows, make([]spread, len(r.sites))
	misses := make([][]float64, count)
	for g := range misses {
		misses[g] = make([]float64, len(windows))
	}
	for i, value := range a.Sites {
		spreads[i] = a.fit.newSpread(value, r.accessesOn(a.usedStack, r.sites[i]))
	}
	onCores := a.usedStack == r.coherent
	for i, w := range windows {
		for _, c := range w {
			if c.Key.Part() != profile.TimeSite {
				continue
			}
			g, s, count := groups[c.Key.Index()], &spreads[c.Key.Index()], float64(c.Count)
			switch bin := c.Key.Bin(); {
			case g < 0 || (c.Key.Stack() == profile.TimeWhole) == onCores:
			case bin == profile.ColdSiteBin || c.Key.Stack() == profile.TimeLost:
				misses[g][i] += s.certain * count
			default:
				misses[g][i] += s.missesAmong(count, a.fit.shares[bin])
			}
		}
	}
	return misses
}

// Phase is a sequence of consecutive windows in which the program behaves in the same way.
type Phase struct {
	From, To int // index of the first window of the phase, and of the first window after the phase
	Number   int // starting from 1; phases with the same behaviour have the same number
	Site     int // index in profile.Sites.Code of the site with the most accesses; -1: none
}

const (
	phaseDistance = 0.5 // upper limit of the distance between windows of one phase; distances range from 0 to 2
	mostPhases    = 16  // maximum number of different phases
)

// Phases divides the timeline into phases. A window is represented by each source line's share of
// the window's accesses. Windows belong to the same phase if their Manhattan distance is less than
// phaseDistance. This is the method of Sherwood et al. (Automatically characterizing large scale
// program behavior, ASPLOS 2002), with source lines instead of basic blocks. A window is assigned
// to the nearest earlier phase, or begins a new phase if no phase is near (Sherwood, Sair and
// Calder, Phase tracking and prediction, ISCA 2003).
func (r *Ranker) Phases() (list []Phase) {
	type sums struct {
		byLine map[int]float64
		total  float64
	}
	var phases []sums
	lineOf, known := make([]int, len(r.p.Sites.Code)), map[rowKey]int{}
	for i := range lineOf {
		key := rowKeyOf(&r.p.Sites.Code[i], i, Line, nil)
		if _, is := known[key]; !is {
			known[key] = i
		}
		lineOf[i] = known[key]
	}
	for i, w := range r.p.Timeline.Windows {
		var lines []int // in the order of their first sites
		of, total := map[int]float64{}, 0.
		for _, s := range accessesBySite(w) {
			line := lineOf[s.Site]
			if of[line] == 0 {
				lines = append(lines, line)
			}
			of[line] += float64(s.Count)
			total += float64(s.Count)
		}
		if total == 0 {
			continue
		}
		near, least := -1, 2.
		for n := range phases {
			at, apart := &phases[n], 2.
			for _, line := range lines { // accesses that the window and the phase have in common reduce the distance
				apart -= 2 * min(of[line]/total, at.byLine[line]/at.total)
			}
			if apart < least-1e-9 {
				near, least = n, apart
			}
		}
		if near < 0 || least >= phaseDistance && len(phases) < mostPhases {
			near = len(phases)
			phases = append(phases, sums{byLine: map[int]float64{}})
		}
		for _, line := range lines {
			phases[near].byLine[line] += of[line]
		}
		phases[near].total += total
		if n := len(list); n > 0 && list[n-1].Number == near+1 {
			list[n-1].To = i + 1
		} else {
			list = append(list, Phase{From: i, To: i + 1, Number: near + 1, Site: -1})
		}
	}
	for i := range list {
		list[i].Site = r.Busiest(list[i].From, list[i].To)
	}
	return list
}

// accessesBySite returns the number of line accesses of each site in a window, in ascending order of sites.
func accessesBySite(window []profile.TimeCount) (list []profile.SiteCount) {
	for _, c := range window {
		if c.Key.Part() != profile.TimeSite || c.Key.Stack() != profile.TimeWhole {
			continue
		}
		if n := len(list); n > 0 && list[n-1].Site == c.Key.Index() {
			list[n-1].Count += c.Count
		} else {
			list = append(list, profile.SiteCount{Site: c.Key.Index(), Count: c.Count})
		}
	}
	return list
}

// Busiest returns the site with the most accesses in the windows [from, to), or -1.
func (r *Ranker) Busiest(from, to int) int {
	counts := map[uint32]uint64{}
	best, most := -1, uint64(0)
	for _, w := range r.p.Timeline.Windows[from:to] {
		for _, s := range accessesBySite(w) {
			counts[s.Site] += s.Count
		}
	}
	for site := range r.p.Sites.Code {
		if n := counts[uint32(site)]; n > most {
			best, most = site, n
		}
	}
	return best
}

// Predicted converts attributed levels into a prediction for a part of the run with the given
// number of references.
func Predicted(h hierarchy.Hierarchy, list []Attribution, references uint64) hierarchy.Prediction {
	levels := make([]hierarchy.Level, len(list))
	for i := range list {
		levels[i] = list[i].Level
	}
	return hierarchy.PartOf(h, levels, references)
}

// Curve returns the misses of all sites in fully associative LRU caches that all threads share. The
// misses are exact for capacities at the edges of bins. For other capacities, they are upper
// bounds.
func (r *Ranker) Curve() *profile.Curve {
	var h profile.Histogram
	cold := uint64(0)
	for i := range r.sites {
		cold += r.sites[i].reuse.Cold
		for _, b := range r.sites[i].reuse.Bins {
			h.AddN(profile.SiteBinFrom(int(b.Bin)+1)-1, b.Count)
		}
	}
	return profile.NewCurve(&h, cold)
}

// ExactOverTime reports whether the misses of the level are exact in every part of the run.
func (a *Attribution) ExactOverTime() bool { return a.Exact && a.model }
