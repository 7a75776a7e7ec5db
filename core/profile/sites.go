package profile

import (
	"cmp"
	"math"
	"math/bits"
	"strings"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// Sites attributes the line accesses of a trace to sites in the code and to data structures, for
// one line size. Package analysis/sites defines and computes the counts.
//
// Distances are counted in bins. The misses of a site are therefore exact for fully associative
// caches whose capacity is a bin boundary, and estimated for all other capacities. The exact sums
// over all sites are in Locality.
type Sites struct {
	LineBytes uint32
	// Capacities contains the sizes of the LRU caches in which line utilisation was measured, in lines
	// and in ascending order. Ways contains the number of ways of each cache; 0 means fully
	// associative. Both lists are nil if line utilisation was not measured.
	Capacities []uint64
	Ways       []uint32
	Previous   bool // whether Reuse.Before was recorded

	Code []Site       // sorted by [CompareSites]
	Data []DataObject // sorted by [CompareObjects]; nil if the trace does not describe data
	// Coherent counts the accesses of the sites and data objects on the coherent stacks of cores.
	// Coherent is nil if Sharing is nil, and in profiles of earlier versions.
	Coherent *CoherentSites
	// Covered counts the accesses that a prefetcher covers (MODELS §15), in the order of Code. Only
	// Cold and Bins are set. Covered is nil in estimates, and in profiles of earlier versions.
	Covered []Reuse
}

// Measured returns the index of a cache in Capacities, or -1 if line utilisation was not measured
// in this cache. Zero ways means a fully associative cache.
func (s *Sites) Measured(lines uint64, ways uint32) int {
	for i := range s.Capacities {
		if s.Capacities[i] == lines && s.Ways[i] == ways {
			return i
		}
	}
	return -1
}

// MaxCapacities is the maximum number of caches in which line utilisation is measured.
const MaxCapacities = 8

// NoSite replaces the number of a site or object that is not in the trace's tables, for example the
// number of every site in a trace that identifies code by PCs.
const NoSite = ^uint32(0)

// Site is one instruction that makes references. Unknown strings are "".
type Site struct {
	Number   uint32 // number in the trace's tables, or NoSite
	PC       uint64 // 0: unknown
	Module   string // name of the file that contains the code, without its folder
	Offset   uint64 // offset of the PC within this file
	Function string
	File     string // the shortest unique suffix of the path: see trace.FileNames
	Line     uint32
	Column   uint32
	Kind     trace.Kind // kind of the site's references
	Bytes    uint32     // size of each reference; 0 if sizes differ
	Type     string     // data type of the references
	Variable string     // variable that the code refers to

	Strides [NumStrides]uint64 // number of references in each class of stride; a stride is the distance from the previous reference by the same site and thread
	Reuse   Reuse
}

// References returns the number of references that the site made.
func (s *Site) References() uint64 { return sum(s.Strides[:]) }

// Stride returns the most frequent stride of the site's references. If several strides are equally
// frequent, Stride returns the most regular stride.
func (s *Site) Stride() Stride {
	most := ZeroStride
	for c := range NumStrides {
		if s.Strides[c] > s.Strides[most] {
			most = c
		}
	}
	return most
}

// Stride classifies the distance of a reference from the site's previous reference.
type Stride uint8

// The classes of strides. The first reference of a site counts as irregular.
const (
	ZeroStride      Stride = iota // the same address
	UnitStride                    // the adjacent bytes, up or down
	ConstantStride                // any other distance that equals the previous distance
	IrregularStride               // all other distances
	NumStrides
)

var strideNames = [NumStrides]string{"zero", "unit", "constant", "irregular"}

func (s Stride) String() string { return strideNames[s] }

// Reuse contains counts of line accesses by stack distance.
type Reuse struct {
	Cold uint64     // number of first accesses to a line
	Bins []BinCount // counts by distance, ascending, without zero counts
	// Used contains the utilisation of the lines that these accesses fetched, for each cache in
	// Sites.Capacities.
	Used []Utilisation
	// Before counts the accesses whose distance is at least PreviousFrom, grouped by the site that
	// made the previous access to the same line. The list is in ascending order of sites, without
	// zero counts.
	Before []SiteCount
	// For estimates, Off contains half-widths of 95 % confidence intervals. The half-width at a bin
	// applies to the misses of a fully associative LRU cache of SiteBinFrom(Bin) lines. The list
	// contains only the bins at which the half-width changes, in ascending order. Below the first
	// of these bins, the half-width is 0.
	Off []BinCount
}

// OffAt returns the half-width of the confidence interval of the misses of a cache with the given
// number of lines. If the number of lines lies between two bins, the result is the larger of the
// half-widths at these bins.
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

// PreviousFrom is the smallest stack distance that Reuse.Before counts. Accesses with shorter
// distances hit in every fully associative LRU cache of at least 16 lines.
const PreviousFrom = 16

// Misses returns the number of misses in a fully associative LRU cache. The number is exact if the
// number of lines is a bin boundary, such as a power of two, and otherwise slightly too high.
func (r *Reuse) Misses(lines uint64) uint64 {
	n := r.Cold
	for _, b := range r.Bins {
		if SiteBinFrom(int(b.Bin)+1) > lines {
			n += b.Count
		}
	}
	return n
}

// Coverage returns the share of the misses of several sites that a prefetcher covers, in a fully
// associative LRU cache. The sites are indices in Code. ok is false if the share is unknown, or if the
// sites have no misses.
func (s *Sites) Coverage(sites []int, lines uint64) (share float64, ok bool) {
	if s.Covered == nil {
		return 0, false
	}
	covered, misses := uint64(0), uint64(0)
	for _, i := range sites {
		covered += s.Covered[i].Misses(lines)
		misses += s.Code[i].Reuse.Misses(lines)
	}
	return float64(covered) / float64(max(misses, 1)), misses > 0
}

// Accesses returns the number of line accesses.
func (r *Reuse) Accesses() uint64 { return r.Cold + sumCounts(r.Bins) }

// BinCount is the count of a bin of distances: see [SiteBin].
type BinCount struct {
	Bin   uint8
	Count uint64
}

func sumCounts(bins []BinCount) (n uint64) {
	for _, b := range bins {
		n += b.Count
	}
	return n
}

// Utilisation counts the lines that an LRU cache fetched, and the bytes of these lines that were
// used before eviction or the end of the trace. The number of fetched lines is the number of
// misses.
type Utilisation struct{ Fetched, BytesUsed uint64 }

// Share returns the share of fetched bytes that were used, or 0 if no bytes were fetched.
func (u Utilisation) Share(lineBytes uint32) float64 {
	if u.Fetched == 0 {
		return 0
	}
	return float64(u.BytesUsed) / (float64(u.Fetched) * float64(lineBytes))
}

// SiteCount is a count for a site, which is identified by its index in [Sites].Code.
type SiteCount struct {
	Site  uint32
	Count uint64
}

// ObjectKind is the part of memory that contains a data object.
type ObjectKind uint8

// The kinds.
const (
	HeapObject   ObjectKind = iota // all blocks allocated at one site
	GlobalObject                   // a global variable
	StackObject                    // a local variable, or a thread's stack
	OtherObject                    // all other memory
	numObjectKinds
)

var objectNames = [numObjectKinds]string{"heap", "global", "stack", "other"}

func (k ObjectKind) String() string { return objectNames[k] }

// DataObject is a data structure: a variable, or all blocks that one site allocated.
type DataObject struct {
	Kind     ObjectKind
	Number   uint32 // number of the allocating site or of the variable in the trace's tables, or NoSite
	Name     string // name of the variable; "" if it is unknown
	Function string // function that allocates the blocks or contains the variable
	File     string // file that contains the allocation or declaration, named as in Site
	Line     uint32
	Blocks   uint64 // number of allocated blocks
	Bytes    uint64 // total number of allocated bytes, or size of the variable

	References uint64
	Reuse      Reuse
}

// CompareSites orders sites by number, then by PC and kind.
func CompareSites(x, y *Site) int {
	return cmp.Or(cmp.Compare(x.Number, y.Number), cmp.Compare(x.PC, y.PC), cmp.Compare(x.Kind, y.Kind))
}

// CompareObjects orders objects by kind, number, function and name.
func CompareObjects(x, y *DataObject) int {
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Number, y.Number),
		strings.Compare(x.Function, y.Function), strings.Compare(x.Name, y.Name))
}

// siteSubBins is the number of bins between two powers of two.
const siteSubBins = 4

// SiteBins is the number of bins: one for each distance from 0 to 3, and four between successive
// powers of two up to 2^32.
const SiteBins = siteSubBins + 30*siteSubBins

// SiteBin returns the bin that counts distance d.
func SiteBin(d uint32) int {
	e := bits.Len32(d|siteSubBins) - 3 // d>>e is 4 to 7, or d itself
	return e*siteSubBins + int(d>>e)
}

// SiteBinFrom returns the smallest distance in a bin, or 2^32 for SiteBins.
func SiteBinFrom(bin int) uint64 {
	if bin < 2*siteSubBins {
		return uint64(bin)
	}
	e := bin/siteSubBins - 1
	return uint64(bin%siteSubBins+siteSubBins) << e
}

// CoherentSites counts the line accesses of sites and data objects on the coherent stacks of their
// cores ([Core].Coherent). From these counts, the misses of each site in private caches can be
// computed. In each bin, the sum over all sites equals the sum over all cores.
type CoherentSites struct {
	Code     []CoherentReuse // in the order of Sites.Code
	Data     []CoherentReuse // in the order of Sites.Data
	Measured bool            // line utilisation was also measured in private caches
}

// CoherentReuse counts the accesses of one site or data object on the coherent stacks of the cores
// that make these accesses. The number of accesses equals the number in the Reuse of the site or
// data object.
type CoherentReuse struct {
	Cold uint64     // number of first accesses to a line, counted for each core
	Bins []BinCount // counts by distance, ascending, without zero counts
	// Lost counts coherence misses, grouped by the depth of the line at the time of the
	// invalidation, as in CoherentCounts. Lost is in ascending order, without zero counts.
	Lost []BinCount
	// Used contains the utilisation of the lines that these accesses fetched into the coherent
	// private caches of their cores, for each cache in Sites.Capacities. Used is nil if utilisation
	// in private caches was not measured.
	Used []Utilisation
	Off  []BinCount // as in Reuse, but for the misses in private caches
}

// OffAt is like [Reuse.OffAt], but for coherent stacks.
func (r *CoherentReuse) OffAt(lines uint64) uint64 { return offAt(r.Off, lines) }

// Coherence returns the number of coherence misses in private caches of unlimited size.
func (r *CoherentReuse) Coherence() uint64 { return sumCounts(r.Lost) }

// Accesses returns the number of line accesses.
func (r *CoherentReuse) Accesses() uint64 { return r.Cold + r.Coherence() + sumCounts(r.Bins) }

func (p *Profile) codeCoherent(c *coder) {
	s := p.Sites
	if c.Check(s != nil, "the profile has coherent-stack counts of sites, but no sites"); s == nil {
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

// checkCoherent checks that the number of accesses of each site on the coherent stacks equals
// the number in the site's Reuse, and that these accesses add up to the counts of the cores.
func (p *Profile) checkCoherent() error {
	if p.Sites == nil || p.Sites.Coherent == nil {
		return nil
	}
	s := p.Sites.Coherent
	cores := p.SharingAt(p.Sites.LineBytes)
	if cores == nil && !p.Sampled.Chosen() || len(s.Code) != len(p.Sites.Code) || len(s.Data) != len(p.Sites.Data) {
		return &CheckError{"the coherent-stack counts of sites have no matching sites, or the cores have no coherent stacks"}
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
		return &CheckError{"the coherent-stack counts of sites or data structures do not add up to the counts of the cores"}
	}
	return nil
}

var errCoherentReuse = &CheckError{"a site's accesses on the coherent stacks are out of order, or do not match the site's references or utilisation"}

// fits reports whether the line utilisation of a site in private caches is consistent with the
// site's counts by depth.
func (s *Sites) fits(c *CoherentReuse) bool {
	if !s.Coherent.Measured {
		return len(c.Used) == 0
	}
	if len(c.Used) != len(s.Capacities) || len(c.Used) == 0 {
		return false
	}
	misses := Reuse{Cold: c.Cold + c.Coherence(), Bins: c.Bins} // coherence misses are misses in a cache of any size
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

// coherentSums contains sums over sites. The sums cannot overflow, because the total number of
// accesses is checked.
type coherentSums struct {
	cold       uint64
	bins, lost [SiteBins]uint64
}

// add adds the counts of a site, and reports whether the bins are in order and whether the counts
// add up to the accesses of the site.
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
