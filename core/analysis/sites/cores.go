package sites

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
)

// cores counts the accesses of pairs on the coherent stacks of the cores that made them,
// which package sharing tells batch by batch. It begins with a second core: what the
// first one did alone, its coherent stack tells as the stack of the trace does.
type cores struct {
	bins bins // by depth
	lost bins // coherence misses, by the depth at which the line was lost

	firsts []uint32 // pairs of each core's first touches of lines so far, where mergeable
	// absent: a part of the run was analysed by a program that did not count this.
	absent bool
}

// addList makes room for another pair.
func (c *cores) addList() {
	if c != nil {
		c.bins.addList()
		c.lost.addList()
	}
}

// BeginCores implements sharing.Follower.
func (a *Analysis) BeginCores() {
	if a.absent {
		return
	}
	a.cores = &cores{bins: a.bins.clone()}
	for range a.pairs {
		a.cores.lost.addList()
	}
	if a.options.Mergeable {
		a.cores.firsts = slices.Clone(a.joining.firsts)
	}
	if part := a.joining.part; part != nil { // which is in bins already, and joined later
		part.addCoherent(alone(part.in), ^uint64(0))
	}
}

// OnCores reports whether it is counted what accesses found on the stacks of cores.
func (a *Analysis) OnCores() bool { return a.cores != nil && !a.cores.absent }

// FollowCores implements sharing.Follower.
func (a *Analysis) FollowCores(depths, lostAt []uint32, lost bool) {
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
	if a.options.Mergeable {
		c.firsts = appendCold(c.firsts, pairs, depths)
	}
}

// appendCold appends the pairs of first touches.
func appendCold(firsts, pairs, distances []uint32) []uint32 {
	for i, d := range distances {
		if isCold(d) {
			firsts = append(firsts, pairs[i])
		}
	}
	return firsts
}

// JoinCores implements sharing.Follower. What the segment counted on stacks that were
// empty is added; its first touches are then counted at the depths that they have in the
// whole.
func (a *Analysis) JoinCores(depths, lostAt []uint32) {
	c, part := a.cores, a.joining.part
	if a.absent || c == nil || c.absent || part == nil {
		return
	}
	counts, firsts := part.in.Coherent, part.coreFirsts
	if !part.several {
		counts, firsts = alone(part.in), part.firstTouches
	}
	if c.absent = counts == nil || depths != nil && len(depths) != len(firsts); c.absent {
		return
	}
	part.addCoherent(counts, 1)
	if depths == nil {
		c.firsts = append(c.firsts, firsts...)
		return
	}
	for i, d := range depths {
		switch n := firsts[i]; d {
		case stack.Cold:
			if a.options.Mergeable {
				c.firsts = append(c.firsts, n)
			}
		case stack.Lost:
			*c.bins.at(n, coldBin)--
			*c.lost.at(n, binOf(lostAt[i]))++
		default:
			c.bins.move(n, d)
		}
	}
}

// restoreCores continues with what a profile tells of cores.
func (r *loader) restoreCores() {
	a := r.a
	a.cores = &cores{absent: r.in.Coherent == nil, firsts: r.coreFirsts}
	for range a.pairs {
		a.cores.addList()
	}
	if r.in.Coherent != nil {
		r.addCoherent(r.in.Coherent, 1)
	}
}

// alone gives what the coherent stack of a core that was alone tells of sites.
func alone(s *profile.Sites) *profile.CoherentSites {
	out := new(profile.CoherentSites)
	for i := range s.Code {
		out.Code = append(out.Code, profile.CoherentReuse{Cold: s.Code[i].Reuse.Cold, Bins: s.Code[i].Reuse.Bins})
	}
	for i := range s.Data {
		out.Data = append(out.Data, profile.CoherentReuse{Cold: s.Data[i].Reuse.Cold, Bins: s.Data[i].Reuse.Bins})
	}
	return out
}

// addCoherent adds counts of the profile's sites and objects; times is 1, or -1 modulo
// 2^64 to take them away.
func (r *loader) addCoherent(from *profile.CoherentSites, times uint64) {
	a := r.a
	add := func(p pair, counts *profile.CoherentReuse) {
		n := a.pairNumber(p)
		a.cores.bins.addTimes(n, times, counts.Cold, counts.Bins)
		a.cores.lost.addTimes(n, times, 0, counts.Lost)
	}
	for i := range from.Code {
		add(pair{r.slots[i], noObject}, &from.Code[i])
		if r.in.Data == nil {
			add(pair{noSlot, rest}, &from.Code[i])
		}
	}
	for i := range from.Data {
		add(pair{noSlot, r.objects[i+1]}, &from.Data[i])
	}
}

// coherent gives the counts of sites and objects on coherent stacks; nil: there are none.
func (s *summary) coherent(of *profile.Sites) *profile.CoherentSites {
	if !s.a.OnCores() {
		return nil
	}
	out := &profile.CoherentSites{Code: make([]profile.CoherentReuse, len(of.Code))}
	for slot, at := range s.codeAt {
		if at > 0 {
			out.Code[at-1] = s.coherentReuse(s.bySlot[slot])
		}
	}
	if of.Data == nil {
		return out
	}
	out.Data = make([]profile.CoherentReuse, len(of.Data))
	for object, at := range s.dataAt {
		if at > 0 {
			out.Data[at-1] = s.coherentReuse(s.byObject[object])
		}
	}
	return out
}

// coherentReuse sums pairs up.
func (s *summary) coherentReuse(pairs []uint32) profile.CoherentReuse {
	var found, lost [coldBin + 1]uint64
	for _, n := range pairs {
		s.a.cores.bins.addTo(&found, n)
		s.a.cores.lost.addTo(&lost, n)
	}
	return profile.CoherentReuse{Cold: found[coldBin], Bins: counted(&found), Lost: counted(&lost)}
}
