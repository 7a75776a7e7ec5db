package profile

import (
	"cmp"
	"math"
	"math/bits"
	"strings"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// Sites attributes a trace's line accesses to sites in the code and to data structures, at one
// line size. Package analysis/sites defines the numbers and computes them.
//
// Distances are counted in bins, so the misses of a site are exact for fully associative caches
// whose capacity is the edge of a bin, and estimates between. The sums over all sites are exact:
// they are in Locality.
type Sites struct {
	LineBytes uint32
	// Capacities are the sizes, in lines, of the LRU caches for which line utilisation was
	// measured, and Ways their ways, 0 if they are fully associative; ascending, or nil.
	Capacities []uint64
	Ways       []uint32
	Previous   bool // Reuse.Before was recorded

	Code []Site       // ascending: see [CompareSites]
	Data []DataObject // ascending: see [CompareObjects]; nil if the trace names no data
	// Coherent counts the same accesses on the coherent stacks of cores. It is nil if Sharing
	// is, and in profiles of earlier versions.
	Coherent *CoherentSites
}

// Measured returns the index in Capacities of a cache, or -1 if its utilisation was not
// measured. 0 ways: fully associative.
func (s *Sites) Measured(lines uint64, ways uint32) int {
	for i := range s.Capacities {
		if s.Capacities[i] == lines && s.Ways[i] == ways {
			return i
		}
	}
	return -1
}

// MaxCapacities is the most capacities that utilisation is measured for.
const MaxCapacities = 8

// NoSite is the number of sites in traces with PCs instead, and of objects that the trace's
// tables do not list.
const NoSite = ^uint32(0)

// Site is one instruction that makes references. Texts are "" if they are unknown.
type Site struct {
	Number   uint32 // in the trace's tables, or NoSite
	PC       uint64 // 0: unknown
	Module   string // file that contains the PC, without its folder
	Offset   uint64 // of the PC in it
	Function string
	File     string // the shortest unique end of its path, see trace.FileNames
	Line     uint32
	Column   uint32
	Kind     trace.Kind // of its references
	Bytes    uint32     // of each; 0: they differ
	Type     string     // datatype
	Variable string     // named in the code there

	Strides [NumStrides]uint64 // references by their distance from the previous one of the site and thread
	Reuse   Reuse
}

// References returns the number of references that the site made.
func (s *Site) References() uint64 { return sum(s.Strides[:]) }

// Stride returns the most frequent class of the site's references, or the most regular of several.
func (s *Site) Stride() Stride {
	most := ZeroStride
	for c := range NumStrides {
		if s.Strides[c] > s.Strides[most] {
			most = c
		}
	}
	return most
}

// Stride classifies the distance of a reference from the site's previous one.
type Stride uint8

// The strides. The first reference of a site counts as irregular.
const (
	ZeroStride      Stride = iota // the same address
	UnitStride                    // the next bytes, up or down
	ConstantStride                // any other distance that is the same as the last one
	IrregularStride               // anything else
	NumStrides
)

var strideNames = [NumStrides]string{"zero", "unit", "constant", "irregular"}

func (s Stride) String() string { return strideNames[s] }

// Reuse counts line accesses by stack distance.
type Reuse struct {
	Cold uint64     // first accesses to a line
	Bins []BinCount // of distances: ascending, none is zero
	// Used is the utilisation of the lines that these accesses fetched, for each
	// of Sites.Capacities.
	Used []Utilisation
	// Before counts the sites that touched the lines last before these accesses, for
	// distances from PreviousFrom on; ascending, none is zero.
	Before []SiteCount
	// Off is, for estimates, half the width of the 95 % confidence interval of the misses of a
	// fully associative LRU cache of SiteBinFrom(Bin) lines. It lists changes, ascending, and
	// begins at 0.
	Off []BinCount
}

// OffAt returns half the width of the interval for a cache of this many lines; between two bins,
// the wider one.
func (r *Reuse) OffAt(lines uint64) uint64 { return offAt(r.Off, lines) }

func offAt(list []BinCount, lines uint64) (off uint64) {
	bin := SiteBin(uint32(min(lines, math.MaxUint32)))
	for _, b := range list {
		if int(b.Bin) > bin && (int(b.Bin) > bin+1 || SiteBinFrom(bin) == lines) {
			break
		}
		if off = max(off, b.Count); int(b.Bin) < bin {
			off = b.Count
		}
	}
	return off
}

// PreviousFrom is the least stack distance for Reuse.Before: nearer reuse hits in any cache.
const PreviousFrom = 16

// Misses returns the misses in a fully associative LRU cache. They are exact at the edge of a
// bin, such as a power of two lines, otherwise slightly too high.
func (r *Reuse) Misses(lines uint64) uint64 {
	n := r.Cold
	for _, b := range r.Bins {
		if SiteBinFrom(int(b.Bin)+1) > lines {
			n += b.Count
		}
	}
	return n
}

// Accesses returns the number of line accesses.
func (r *Reuse) Accesses() uint64 { return r.Cold + counted(r.Bins) }

// BinCount is a bin of distances, see [SiteBin].
type BinCount struct {
	Bin   uint8
	Count uint64
}

// counted returns the sum of bins.
func counted(bins []BinCount) (n uint64) {
	for _, b := range bins {
		n += b.Count
	}
	return n
}

// Utilisation counts the lines that an LRU cache fetched, which are its misses, and the bytes
// of them that were used until their eviction or the end of the trace.
type Utilisation struct{ Fetched, BytesUsed uint64 }

// Share returns the share of the fetched bytes that were used, or 0.
func (u Utilisation) Share(lineBytes uint32) float64 {
	if u.Fetched == 0 {
		return 0
	}
	return float64(u.BytesUsed) / (float64(u.Fetched) * float64(lineBytes))
}

// SiteCount counts for a site, by its index in [Sites].Code.
type SiteCount struct {
	Site  uint32
	Count uint64
}

// ObjectKind says where in memory a data object lies.
type ObjectKind uint8

// The kinds.
const (
	HeapObject   ObjectKind = iota // blocks from one allocation site
	GlobalObject                   // a global variable
	StackObject                    // a local variable, or a thread's stack
	OtherObject                    // everything else
	numObjectKinds
)

var objectNames = [numObjectKinds]string{"heap", "global", "stack", "other"}

func (k ObjectKind) String() string { return objectNames[k] }

// DataObject is one data structure: a variable, or all blocks that one site allocated.
type DataObject struct {
	Kind     ObjectKind
	Number   uint32 // in the trace's tables: of the allocating site, or of the variable; or NoSite
	Name     string // of the variable; "" if it is unknown
	Function string // that allocates, or that contains the variable
	File     string // of the allocation or declaration, named as in Site
	Line     uint32
	Blocks   uint64 // allocated
	Bytes    uint64 // allocated, or the size

	References uint64
	Reuse      Reuse
}

// CompareSites orders by number, then by PC and kind.
func CompareSites(x, y *Site) int {
	return cmp.Or(cmp.Compare(x.Number, y.Number), cmp.Compare(x.PC, y.PC), cmp.Compare(x.Kind, y.Kind))
}

// CompareObjects orders by kind, number, function and name.
func CompareObjects(x, y *DataObject) int {
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Number, y.Number),
		strings.Compare(x.Function, y.Function), strings.Compare(x.Name, y.Name))
}

// siteSubBins is the number of bins of each power of two of distances.
const siteSubBins = 4

// SiteBins is the number of bins of distances: one each for 0 to 3, and four for each power of
// two up to 2^32.
const SiteBins = siteSubBins + 30*siteSubBins

// SiteBin returns the bin that counts distance d.
func SiteBin(d uint32) int {
	e := bits.Len32(d|siteSubBins) - 3 // d>>e is 4 to 7, or d itself
	return e*siteSubBins + int(d>>e)
}

// SiteBinFrom returns the least distance of a bin, and 2^32 for SiteBins.
func SiteBinFrom(bin int) uint64 {
	if bin < 2*siteSubBins {
		return uint64(bin)
	}
	e := bin/siteSubBins - 1
	return uint64(bin%siteSubBins+siteSubBins) << e
}

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

// OffAt is as in [Reuse].
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
		return &CheckError{"the coherent stacks of its sites or data objects do not add up to the stacks of its cores"}
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
	misses := Reuse{Cold: c.Cold + c.Coherence(), Bins: c.Bins} // these are always misses here
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

// add adds a site's counts. It reports whether they are in order, and sum to its accesses.
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
