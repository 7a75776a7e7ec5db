package profile

import "github.com/stackglass/stackglass/core/codec"

// CoherentSites counts the line accesses of sites and data objects on the coherent stacks of
// their cores ([Core].Coherent), which give the misses of private caches by site. Their sums
// are the cores' counts, in bins.
type CoherentSites struct {
	Code     []CoherentReuse // in the order of Sites.Code
	Data     []CoherentReuse // in the order of Sites.Data
	Measured bool            // utilisation was measured in private caches, too
}

// CoherentReuse counts the accesses of one site or data object on its cores' coherent stacks:
// as many as its Reuse has.
type CoherentReuse struct {
	Cold uint64     // first accesses of a core to a line
	Bins []BinCount // of distances: ascending, none is zero
	// Lost counts coherence misses by the depth of the line when another core's store
	// invalidated it, as in CoherentCounts: ascending, none is zero.
	Lost []BinCount
	// Used is the utilisation of the lines that these accesses fetched into the coherent
	// private caches of their cores, for each of Sites.Capacities; nil: not measured.
	Used []Utilisation
	Off  []BinCount // as in Reuse, for the misses of private caches
}

// OffAt is like that of [Reuse].
func (r *CoherentReuse) OffAt(lines uint64) uint64 { return offAt(r.Off, lines) }

// Coherence returns the number of coherence misses, in private caches of any size.
func (r *CoherentReuse) Coherence() uint64 { return counted(r.Lost) }

// Accesses returns the number of line accesses.
func (r *CoherentReuse) Accesses() uint64 { return r.Cold + r.Coherence() + counted(r.Bins) }

func (p *Profile) codeCoherent(c *coder) {
	s := p.Sites
	if c.Check(s != nil, "coherent stacks of sites without sites"); s == nil {
		return
	}
	if c.Reads() {
		s.Coherent = new(CoherentSites)
	}
	if c.Flag(&s.Coherent.Measured); s.Coherent.Measured {
		c.capacities = len(s.Capacities)
	}
	code := func(r *CoherentReuse) {
		c.U64(&r.Cold)
		c.binCounts(&r.Bins)
		c.binCounts(&r.Lost)
		c.utilisation(&r.Used)
	}
	codec.Members(c.Coder, &s.Coherent.Code, len(s.Code), code)
	codec.Members(c.Coder, &s.Coherent.Data, len(s.Data), code)
}

// checkCoherent tests that each site has as many accesses on the coherent stacks, and that
// these add up to the counts of the cores.
func (p *Profile) checkCoherent() error {
	if p.Sites == nil || p.Sites.Coherent == nil {
		return nil
	}
	s := p.Sites.Coherent
	cores := p.SharingAt(p.Sites.LineBytes)
	if cores == nil && !p.Sampled.Chosen() || len(s.Code) != len(p.Sites.Code) || len(s.Data) != len(p.Sites.Data) {
		return &CheckError{"it has coherent stacks of other sites, or of sites but not of cores"}
	}
	var code, data, want coherentSums
	for i := range s.Code {
		if !code.add(&s.Code[i], &p.Sites.Code[i].Reuse) || !p.Sites.fits(&s.Code[i]) {
			return errCoherentReuse
		}
	}
	for i := range s.Data {
		if !data.add(&s.Data[i], &p.Sites.Data[i].Reuse) || !p.Sites.fits(&s.Data[i]) {
			return errCoherentReuse
		}
	}
	if p.Sampled.Chosen() {
		return nil
	}
	for i := range cores.Cores {
		want.addCore(&cores.Cores[i].Coherent)
	}
	if code != want || p.Sites.Data != nil && data != want {
		return &CheckError{"the coherent stacks of its sites or data objects do not add up to those of its cores"}
	}
	return nil
}

var errCoherentReuse = &CheckError{"a site's accesses on the coherent stacks are out of order, or not as many as it made, or its utilisation does not fit them"}

// fits reports whether the utilisation of a site in private caches fits its depths.
func (s *Sites) fits(c *CoherentReuse) bool {
	if !s.Coherent.Measured {
		return len(c.Used) == 0
	}
	if len(c.Used) != len(s.Capacities) || len(c.Used) == 0 {
		return false
	}
	misses := Reuse{Cold: c.Cold + c.Coherence(), Bins: c.Bins} // certain ones are cold here
	for i, u := range c.Used {
		low, high := misses.Cold, misses.Accesses()
		if s.Ways[i] == 0 {
			low, high = misses.missBounds(s.Capacities[i])
		}
		if !u.fits(low, high, s.LineBytes) {
			return false
		}
	}
	return true
}

// coherentSums are sums over sites. They cannot overflow, since the total is checked.
type coherentSums struct {
	cold       uint64
	bins, lost [SiteBins]uint64
}

// add adds a site's counts. It reports whether they are in order, and as many as its accesses.
func (t *coherentSums) add(c *CoherentReuse, of *Reuse) bool {
	all := counter{n: c.Cold}
	t.cold += c.Cold
	for _, list := range []struct {
		counts []BinCount
		sum    *[SiteBins]uint64
	}{{c.Bins, &t.bins}, {c.Lost, &t.lost}} {
		for i, b := range list.counts {
			if b.Count == 0 || b.Bin >= SiteBins || i > 0 && list.counts[i-1].Bin >= b.Bin {
				return false
			}
			list.sum[b.Bin] += b.Count
			all.add(b.Count)
		}
	}
	return !all.over && all.n == of.Accesses()
}

func (t *coherentSums) addCore(c *CoherentCounts) {
	t.cold += c.Cold
	for d, n := range c.Distances.All() {
		t.bins[SiteBin(uint32(d))] += n
	}
	for d, n := range c.Lost.All() {
		t.lost[SiteBin(uint32(d))] += n
	}
}
