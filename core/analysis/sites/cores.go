package sites

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// cores counts the accesses of each pair by their depths on the coherent stacks of the cores.
// Package sharing reports the depths. Counting begins when a second core appears; until then, the
// coherent stack is the stack of the trace.
type cores struct {
	bins bins // accesses by depth
	lost bins // coherence misses, by the depth at which the line was invalidated

	private *privateLines // nil: line utilisation in private caches is not measured

	firsts     []uint32 // if the run is mergeable: the pair of each first touch by a core so far
	firstPaths []uint32 // for each of these first touches: the list of bins of its call path
	// absent is true if an older version, which did not count these accesses, has analysed a part
	// of the run.
	absent bool
}

func (c *cores) addList() {
	if c != nil {
		c.bins.addList()
		c.lost.addList()
		c.private.addPair()
	}
}

// BeginCores implements sharing.Follower.
func (a *Analysis) BeginCores() {
	if a.absent {
		return
	}
	if a.timeline.counting() {
		a.timeline.beforeCores(a)
	}
	a.cores = &cores{bins: a.bins.clone()}
	for range a.pairs {
		a.cores.lost.addList()
	}
	if a.options.Mergeable {
		a.cores.firsts = slices.Clone(a.joining.firsts)
		a.cores.firstPaths = slices.Clone(a.joining.firstPaths)
	}
	if a.options.measuresPrivate() {
		a.cores.private = newPrivateLines(a.options)
		a.cores.private.copyFirstCore(a.lines)
	}
	// subtract the counts of the segment from the bins, which already contain them; JoinCores adds
	// them later
	if part := a.joining.part; part != nil {
		part.addCoherent(singleCoreCounts(part.in), ^uint64(0))
	}
}

// OnCores reports whether accesses are counted by depth on the coherent stacks of cores.
func (a *Analysis) OnCores() bool { return a.cores != nil && !a.cores.absent }

// FollowCores implements sharing.Follower.
func (a *Analysis) FollowCores(cores []uint8, depths, lostAt []uint32, lost bool) {
	c := a.cores
	if a.absent || c == nil || c.absent {
		return
	}
	pairs := a.latest[:len(depths)]
	if lost {
		c.bins.addCoherent(&c.lost, pairs, depths, lostAt)
	} else {
		c.bins.add(pairs, depths)
	}
	if a.paths != nil {
		paths := a.paths.latest[:len(depths)]
		if lost {
			c.bins.addCoherent(&c.lost, paths, depths, lostAt)
		} else {
			c.bins.add(paths, depths)
		}
		if a.options.Mergeable {
			c.firstPaths = appendCold(c.firstPaths, paths, depths)
		}
	}
	if c.private != nil {
		c.private.recordAccesses(a.accesses, cores, depths, pairs)
	}
	if a.options.Mergeable {
		c.firsts = appendCold(c.firsts, pairs, depths)
	}
}

func appendCold(firsts, pairs, distances []uint32) []uint32 {
	for i, d := range distances {
		if isCold(d) {
			firsts = append(firsts, pairs[i])
		}
	}
	return firsts
}

// JoinCores implements sharing.Follower. JoinCores adds the counts of the segment, which began with
// empty stacks, and resolves its first touches.
func (a *Analysis) JoinCores(depths, lostAt []uint32) {
	c, part := a.cores, a.joining.part
	if a.absent || c == nil || c.absent || part == nil {
		return
	}
	counts, firsts, firstPaths := part.in.Coherent, part.coreFirsts, part.coreFirstPaths
	if !part.several {
		counts, firsts, firstPaths = singleCoreCounts(part.in), part.firstTouches, part.touchPaths
	}
	if c.absent = counts == nil || depths != nil && len(depths) != len(firsts); c.absent {
		return
	}
	part.addCoherent(counts, 1)
	if t := a.timeline; t.counting() && t.next != nil {
		if a.paths != nil {
			t.next.joinCores(part, depths, lostAt, firsts, firstPaths)
		} else {
			t.next.joinCores(part, depths, lostAt, firsts)
		}
	}
	c.firsts = c.appendSegment(c.firsts, firsts, depths, lostAt, a.options.Mergeable)
	if a.paths != nil {
		c.firstPaths = c.appendSegment(c.firstPaths, firstPaths, depths, lostAt, a.options.Mergeable)
	}
}

// appendSegment counts the first touches of a segment by depth, each in its list. The parameter
// depths is nil if all first touches of the segment remain first touches. If the run is mergeable,
// appendSegment appends to soFar the lists of the touches that remain first touches, and returns
// the result.
func (c *cores) appendSegment(soFar, firsts, depths, lostAt []uint32, mergeable bool) []uint32 {
	if depths == nil {
		if mergeable {
			soFar = append(soFar, firsts...)
		}
		return soFar
	}
	for i, d := range depths {
		switch n := firsts[i]; d {
		case stack.Cold:
			if mergeable {
				soFar = append(soFar, n)
			}
		case stack.Lost:
			*c.bins.counter(n, coldBin)--
			*c.lost.counter(n, binOf(lostAt[i]))++
		default:
			c.bins.moveFromCold(n, d)
		}
	}
	return soFar
}

// restoreCores loads the counts by core from a profile.
func (f *stateCoder) restoreCores() {
	a := f.a
	a.cores = &cores{absent: f.in.Coherent == nil, firsts: f.coreFirsts, firstPaths: f.coreFirstPaths}
	for range a.pairs {
		a.cores.addList()
	}
	if f.in.Coherent == nil {
		return
	}
	f.addCoherent(f.in.Coherent, 1)
	if t := a.timeline; t.counting() && t.next != nil {
		t.next.joinCores(f, nil, nil)
	}
	if !a.options.measuresPrivate() {
		return
	}
	a.cores.private = newPrivateLines(a.options)
	for range a.pairs {
		a.cores.private.addPair()
	}
	if f.failUnless(f.in.Coherent.Measured); !f.Failed() {
		f.eachCoherent(f.in.Coherent, func(n uint32, counts *profile.CoherentReuse) {
			addUsed(a.cores.private.used[int(n)*len(counts.Used):], counts.Used)
		})
		f.codePrivate(a.cores.private)
	}
}

// singleCoreCounts returns the counts on the coherent stack of a single core, which equal the
// counts of all accesses.
func singleCoreCounts(s *profile.Sites) *profile.CoherentSites {
	out := new(profile.CoherentSites)
	for i := range s.Code {
		out.Code = append(out.Code, profile.CoherentReuse{Cold: s.Code[i].Reuse.Cold, Bins: s.Code[i].Reuse.Bins})
	}
	for i := range s.Data {
		out.Data = append(out.Data, profile.CoherentReuse{Cold: s.Data[i].Reuse.Cold, Bins: s.Data[i].Reuse.Bins})
	}
	return out
}

// addCoherent adds the coherent counts of a profile's sites and objects (times = 1), or subtracts
// them (times = 2^64 - 1).
func (f *stateCoder) addCoherent(from *profile.CoherentSites, times uint64) {
	f.eachCoherent(from, func(n uint32, counts *profile.CoherentReuse) {
		f.a.cores.bins.addTimes(n, times, counts.Cold, counts.Bins)
		f.a.cores.lost.addTimes(n, times, 0, counts.Lost)
	})
}

// eachCoherent calls the function add for each site, object and call path of a profile, with its
// list of bins and its coherent counts.
func (f *stateCoder) eachCoherent(from *profile.CoherentSites, add func(pair uint32, counts *profile.CoherentReuse)) {
	for i := range from.Code {
		add(f.a.pairNumber(pair{slot: f.slots[i], object: noObject}), &from.Code[i])
		if f.in.Data == nil {
			add(f.a.pairNumber(pair{slot: noSlot, object: rest}), &from.Code[i])
		}
	}
	for i := range from.Data {
		add(f.a.pairNumber(pair{slot: noSlot, object: f.objects[i+1]}), &from.Data[i])
	}
	f.eachPath(from != f.in.Coherent, add)
}

// Joins reports whether a segment can be appended. A segment cannot be appended if line utilisation
// is measured in private caches of several cores, because stores in the segment invalidate lines in
// caches whose contents are unknown.
func (a *Analysis) Joins(next *profile.Profile) (now, later bool) {
	seen := map[uint32]bool{}
	for i := range a.threads.list {
		seen[a.threads.list[i].thread] = true
	}
	several := len(seen) > 1
	if next != nil {
		for _, t := range next.Totals.Threads {
			seen[t] = true
		}
	}
	measured := a.options.measuresPrivate() && !a.absent
	return !measured || len(seen) < 2, !measured || !several
}

// coherent returns the counts of sites and objects on coherent stacks, or nil if there are no such
// counts.
func (s *summary) coherent(of *profile.Sites) *profile.CoherentSites {
	if !s.a.OnCores() {
		return nil
	}
	out := &profile.CoherentSites{Code: make([]profile.CoherentReuse, len(of.Code)), Measured: s.a.cores.private != nil}
	var used []profile.Utilisation
	if out.Measured {
		used = s.a.cores.private.utilisation()
	}
	for slot, at := range s.codeAt {
		if at > 0 {
			out.Code[at-1] = s.coherentReuse(s.bySlot[slot], used)
		}
	}
	if of.Data == nil {
		return out
	}
	out.Data = make([]profile.CoherentReuse, len(of.Data))
	for object, at := range s.dataAt {
		if at > 0 {
			out.Data[at-1] = s.coherentReuse(s.byObject[object], used)
		}
	}
	return out
}

// coherentReuse adds up the counts of pairs. The parameter used is indexed by pair and capacity.
func (s *summary) coherentReuse(pairs []uint32, used []profile.Utilisation) profile.CoherentReuse {
	var found, lost [coldBin + 1]uint64
	for _, n := range pairs {
		s.a.cores.bins.addTo(&found, n)
		s.a.cores.lost.addTo(&lost, n)
	}
	r := profile.CoherentReuse{Cold: found[coldBin], Bins: nonzeroBins(&found), Lost: nonzeroBins(&lost)}
	if used != nil {
		r.Used = s.sumUtilisation(pairs, used)
	}
	return r
}
