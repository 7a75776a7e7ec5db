// Package profile defines the profile of a run, which is the result of one pass over its trace. A
// profile describes how the program accesses memory, independently of a machine. Profiles are
// stored in files and in the browser, and are sent between workers. All later questions about the
// run can be answered from the profile alone. For example, hierarchy.Predict never reads the trace.
// A profile is exact (each stack distance has its own count), versioned and checksummed. The same
// trace and options always yield the same bytes, regardless of the machine and of the division of
// the work.
//
//   - [Profile] contains all data of a profile.
//   - [Curve] is the miss-ratio curve of a histogram, for all capacities.
//   - [Profile.Encode], [Decode] and [Profile.Digest] implement the binary format (.sgp), which
//     sections.go documents.
//   - [Profile.Check] verifies the invariants that hold in every valid profile.
package profile

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Profile is the result of one pass over a trace.
type Profile struct {
	Input  Input
	Totals Totals
	State  State

	// Each of these fields is nil if the analysis that computes the field did not run.
	Locality []Locality // results for each line size, in ascending order
	Sites    *Sites     // also nil if the trace does not describe code
	Counters *Counters  // also nil if the trace does not describe code
	Sharing  []Sharing  // one for each line size of Locality
	// Communication is also nil for a trace without threads. If Communication is nil for a trace
	// with several threads, NoCommunication contains the reason.
	Communication   *Communication
	NoCommunication Absence
	Loops           []byte // the loop-compressed trace, in the format of package loops; empty if it grew too large
	Blocks          []byte // counts of blocks and branches, in the format of package blocks; empty if the trace has no blocks
	Footprint       *Footprint
	Calls           *Calls    // nil if Sites or Blocks is nil
	Timeline        *Timeline // counts of Sites and Calls over time; nil in profiles without Sites, in sampled profiles, and in profiles of earlier versions
	Data            *Data
	Pages           []Pages  // one for each of PageSizes; nil in sampled profiles, and in profiles of earlier versions
	Regions         *Regions // nil if the program has not marked any regions, and in profiles of earlier versions

	Sources []trace.SourceFile // source files of the program to which sites refer; not part of the digest

	// the sample from which the counts are estimated; nil in an exact profile
	Sampled   *Sampled
	Predicted *Predicted // nil in the profile of a real run

	// Segment contains the state that is needed to append a later segment of the trace (MODELS §9).
	// Segment is nil unless it was requested, because it contains addresses. Segment is not part of
	// the digest.
	Segment *Segment
}

// Input describes the trace and the options of the analysis. Input does not contain file names,
// paths or times.
type Input struct {
	Header  trace.Header
	Kinds   trace.Kinds // the kinds of references that were analysed
	Skip    uint64      // number of references skipped at the start
	Limit   uint64      // maximum number of analysed references; 0 if there is no limit
	Threads []uint32    // the threads that were analysed, ascending; nil: all threads
}

// Totals counts the references that were read. A reference that crosses lines counts as several
// line accesses (MODELS §1).
type Totals struct {
	References [trace.NumKinds]uint64 // number of analysed references of each kind
	Bytes      [trace.NumKinds]uint64 // number of bytes that the references of each kind touched
	Unselected uint64                 // number of references whose kind or thread was not selected
	BadRecords uint64                 // number of records that could not be read and were skipped
	Threads    []uint32               // threads of the analysed references, ascending; nil if the trace does not record threads
}

// AllReferences returns the number of analysed references of all kinds.
func (t *Totals) AllReferences() uint64 { return sum(t.References[:]) }

func sum(counts []uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// State describes whether the profile covers everything that was requested.
type State struct {
	Partial bool
	Reason  string // why the profile is partial, as a sentence
}

// Locality contains the results of the LRU stack model for one line size.
type Locality struct {
	LineBytes uint32
	Kinds     []KindLocality // the analysed kinds that occur in the trace, ascending
	Windows   Windows
	Sets      *SetTable // nil if distances within sets were not counted
}

// KindLocality counts the line accesses of one kind of reference.
type KindLocality struct {
	Kind      trace.Kind
	Cold      uint64    // number of first accesses to a line, F(∞)
	Distances Histogram // number of accesses F(Δ) at each stack distance Δ
}

// RoundDistances rounds the distances of a profile down to the given number of significant binary
// digits if the histograms need more than "most" bytes. RoundDistances reports whether it has
// rounded the distances. The miss count of a fully associative cache remains exact if the cache's
// number of lines has at most this number of significant digits, which is true for every power of
// two. Rounding changes the digest.
func (p *Profile) RoundDistances(most uint64, digits int) (rounded bool) {
	var bytes uint64
	for _, l := range p.Locality {
		for i := range l.Kinds {
			bytes += l.Kinds[i].Distances.MemoryBytes()
		}
	}
	if bytes <= most {
		return false
	}
	p.Locality = slices.Clone(p.Locality)
	for i := range p.Locality {
		l := &p.Locality[i]
		l.Kinds = slices.Clone(l.Kinds)
		for k := range l.Kinds {
			l.Kinds[k].Distances = *l.Kinds[k].Distances.Rounded(digits)
		}
	}
	return true
}

// Accesses returns the number of line accesses of this kind.
func (k *KindLocality) Accesses() uint64 { return k.Cold + k.Distances.Total() }

// Lines returns the footprint, which is the number of distinct lines.
func (l *Locality) Lines() uint64 {
	var n uint64
	for i := range l.Kinds {
		n += l.Kinds[i].Cold
	}
	return n
}

// Accesses returns the number of line accesses of all kinds.
func (l *Locality) Accesses() uint64 {
	var n uint64
	for i := range l.Kinds {
		n += l.Kinds[i].Accesses()
	}
	return n
}

// Histogram returns the sum of the histograms of the given kinds, and the number of cold accesses.
func (l *Locality) Histogram(kinds trace.Kinds) (sum *Histogram, cold uint64) {
	sum = new(Histogram)
	for i := range l.Kinds {
		if kinds.Has(l.Kinds[i].Kind) {
			sum.Merge(&l.Kinds[i].Distances)
			cold += l.Kinds[i].Cold
		}
	}
	return sum, cold
}

// LocalityAt returns the result for a line size, or nil.
func (p *Profile) LocalityAt(lineBytes uint32) *Locality {
	if i := slices.IndexFunc(p.Locality, func(l Locality) bool { return l.LineBytes == lineBytes }); i >= 0 {
		return &p.Locality[i]
	}
	return nil
}

// SharingAt returns the counts of Sharing for a line size, or nil.
func (p *Profile) SharingAt(lineBytes uint32) *Sharing {
	if i := slices.IndexFunc(p.Sharing, func(s Sharing) bool { return s.LineBytes == lineBytes }); i >= 0 {
		return &p.Sharing[i]
	}
	return nil
}

// WindowBins is the number of bins of a [Windows] row. Bin 0 counts distance 0, bin k counts the
// distances from 2^(k-1) to 2^k - 1, and the last bin counts cold accesses.
const WindowBins = 35

// ColdBin is the index of the bin that counts cold accesses.
const ColdBin = WindowBins - 1

// DistanceBin returns the bin that counts distance d. The last bin before the cold bin also counts
// distances beyond 2^33.
func DistanceBin(d uint64) int { return min(bits.Len64(d), ColdBin-1) }

// Windows counts the misses of caches of 2^k lines over time. All windows except the last have the
// same number of references. The size of the windows doubles as the trace grows, so there are at
// most [MaxWindows] windows.
type Windows struct {
	References uint64 // number of references in each window: MinWindow × 2^k
	First      uint64 // index of the first window in the whole trace; 0, except in later segments of the trace
	Rows       []WindowRow
	Distinct   []uint64 // number of distinct lines in each window, which is the window's working set; nil if working sets were not counted
}

// WindowRow contains the number of line accesses in each bin of stack distances, for one window.
type WindowRow [WindowBins]uint64

const (
	// MinWindow is the minimum number of references in a window.
	MinWindow = 1024
	// MaxWindows is the maximum number of windows in a profile.
	MaxWindows = 1024
)

// Accesses returns the number of line accesses in the window.
func (r *WindowRow) Accesses() uint64 { return sum(r[:]) }

// Misses returns the exact number of misses in this window for a fully associative LRU cache of
// 2^log2Lines lines. The parameter must not exceed 32.
func (r *WindowRow) Misses(log2Lines int) uint64 { return sum(r[log2Lines+1:]) }

// Segment is the state of a run at the end of a segment of a trace, from which the run can be
// resumed (MODELS §9). The state of each analysis is in the format of its package. The state is nil
// if the run does not include the analysis.
type Segment struct {
	Start         uint64         // number of analysed references before the segment
	Lines         []SegmentLines // one for each line size of Locality
	Sites         []byte         // analysis/sites: lines, strides and blocks of memory
	Moves         []byte         // analysis/sites: for each walk, how it last moved to another line; nil in earlier versions
	Touched       []byte         // analysis/counters: for each function, the accesses to each byte
	Sharing       []byte         // analysis/sharing: the stacks of cores and domains
	Communication []byte         // analysis/communication: for words and lines, the threads that wrote and used the values
	Blocks        []byte         // analysis/branches: calls that have not returned
	Sample        []byte         // analysis/sample/estimate: the samplers
	Kept          []byte         // analysis/sample/estimate: other analyses of sampled lines
	Shelved       []byte         // stack: positions of the stacks in the spill store; nil if Lines contains the stacks
	LastUses      []byte         // analysis/footprint: the last accesses to lines
	Structures    []byte         // analysis/structures: blocks, visits and the stack
	Regions       []byte         // analysis/regions: regions, and the ends of regions that began earlier
	Pages         []byte         // analysis/pages: for each thread and page size, the stack and the first accesses
}

// SegmentLines is the state of one line size at the end of a segment.
type SegmentLines struct {
	FirstTouches FirstTouches
	Stack        []trace.Line // every line of the segment, most recently used first
	// WorkingSets contains the numbers of distinct lines in larger windows. Each list contains the
	// windows of one length. In the first list, the windows are twice as long as the windows of
	// Locality, and the length doubles from list to list. The last list contains a single window.
	// WorkingSets is nil if working sets were not counted.
	WorkingSets [][]uint64
}
