package profile

import (
	"cmp"
	"math"
	"math/bits"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Sites tells which places in the code and which data make a trace's line
// accesses, at one line size. Package analysis/sites defines the numbers and
// makes them.
//
// Distances are counted in bins, so the misses of a site are exact for fully
// associative caches whose capacity is the edge of a bin, and estimates between.
// What all sites of a profile add up to is exact: it is in Locality.
type Sites struct {
	LineBytes uint32
	// Capacities are the sizes, in lines, of the LRU caches for which utilisation
	// was measured, and Ways their ways, 0 where they are fully associative;
	// ascending, nil: there are none.
	Capacities []uint64
	Ways       []uint32
	// Previous: it was noted who touched a line before.
	Previous bool

	Code []Site       // ascending: see [CompareSites]
	Data []DataObject // ascending: see [CompareObjects]; nil where the trace names no data
	// Coherent counts the same accesses on the coherent stacks of cores. It is nil where
	// Sharing is, and in profiles of programs that did not count it yet.
	Coherent *CoherentSites
}

// Measured is the index in Capacities of a cache of so many lines and ways, 0 for
// fully associative, or -1: its utilisation was not measured.
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

// NoSite is the number of sites of traces that have PCs instead, and of objects
// that the trace's tables do not list.
const NoSite = ^uint32(0)

// Site is one place in the code.
type Site struct {
	Number   uint32 // in the trace's tables, or NoSite
	PC       uint64 // 0: not known
	Module   string // file that holds the PC, without its folder; "" where not known
	Offset   uint64 // of the PC in it
	Function string // "" where not known, as the following
	File     string // the least tail of its path that tells it apart, see trace.FileNames
	Line     uint32
	Column   uint32
	Kind     trace.Kind // of its references
	Bytes    uint32     // of each; 0: they differ
	Type     string     // datatype
	Variable string     // named in the code there

	Strides [NumStrides]uint64 // how each reference lies behind the one before, of the same site and thread
	Reuse   Reuse
}

// References is the number of references that the site made.
func (s *Site) References() uint64 {
	return s.Strides[ZeroStride] + s.Strides[UnitStride] + s.Strides[ConstantStride] + s.Strides[IrregularStride]
}

// Stride is the class that most of the site's references are of, the more
// regular one of equals.
func (s *Site) Stride() Stride {
	most := ZeroStride
	for c := range NumStrides {
		if s.Strides[c] > s.Strides[most] {
			most = c
		}
	}
	return most
}

// Stride is what one reference of a site is off the one before.
type Stride uint8

// The strides. The first reference of a site has none; it counts as irregular.
const (
	ZeroStride      Stride = iota // the same address
	UnitStride                    // the next bytes, up or down
	ConstantStride                // as far as the time before, and not one of these
	IrregularStride               // anything else
	NumStrides
)

var strideNames = [NumStrides]string{"zero", "unit", "constant", "irregular"}

func (s Stride) String() string { return strideNames[s] }

// Reuse is how line accesses found their lines.
type Reuse struct {
	Cold uint64     // first accesses to a line
	Bins []BinCount // of distances: ascending, none is zero
	// Used is the utilisation of the lines that these accesses fetched, for each
	// of Sites.Capacities.
	Used []Utilisation
	// Before is which sites touched a line before these accesses did, for
	// distances from PreviousFrom on; ascending, none is zero.
	Before []SiteCount
	// Off is, where these are estimates, half of the interval about the misses of a
	// fully associative LRU cache of SiteBinFrom(Bin) lines that has the truth in 95 of
	// 100 runs; where it changes, ascending, and 0 below.
	Off []BinCount
}

// OffAt is half of the interval about the misses of a cache of so many lines; between
// two bins, the wider one.
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

// PreviousFrom is the least stack distance at which it is noted who touched a
// line before: nearer reuse hits in any cache.
const PreviousFrom = 16

// Accesses is the number of line accesses.
func (r *Reuse) Accesses() uint64 {
	n := r.Cold
	for _, b := range r.Bins {
		n += b.Count
	}
	return n
}

// BinCount is a bin of distances, see [SiteBin].
type BinCount struct {
	Bin   uint8
	Count uint64
}

// Utilisation counts, for an LRU cache, the lines that were fetched and then gone,
// the end of the trace included, and their bytes that were used in between. It
// sees every access: lines fetched are its misses.
type Utilisation struct{ Fetched, BytesUsed uint64 }

// Share is the share of the bytes fetched that were used; 0 of nothing.
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

// ObjectKind is where a data object lies.
type ObjectKind uint8

// The kinds.
const (
	HeapObject   ObjectKind = iota // blocks from one allocation site
	GlobalObject                   // a global variable
	StackObject                    // a local variable, or a thread's stack
	OtherObject                    // all that is none of the others
	numObjectKinds
)

var objectNames = [numObjectKinds]string{"heap", "global", "stack", "other"}

func (k ObjectKind) String() string { return objectNames[k] }

// DataObject is one data structure: a variable, or all blocks that one place in
// the code allocated.
type DataObject struct {
	Kind     ObjectKind
	Number   uint32 // in the trace's tables: of the allocation's site, or of the variable; or NoSite
	Name     string // of the variable; "" where not known
	Function string // that allocates, or whose variable it is
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

// SiteBins is the number of bins of distances: of 0 to 3 one each, of the
// others four a power of two, up to 2^32.
const SiteBins = siteSubBins + 30*siteSubBins

// SiteBin is the bin that counts distance d.
func SiteBin(d uint32) int {
	e := bits.Len32(d|siteSubBins) - 3 // d>>e is 4 to 7, or d itself
	return e*siteSubBins + int(d>>e)
}

// SiteBinFrom is the least distance of a bin, 2^32 for the one behind the last.
func SiteBinFrom(bin int) uint64 {
	if bin < 2*siteSubBins {
		return uint64(bin)
	}
	e := bin/siteSubBins - 1
	return uint64(bin%siteSubBins+siteSubBins) << e
}
