// Package profile defines the result of one pass over a trace: how a program accesses memory,
// independent of any machine. Files, the browser's store, messages between workers, and questions
// all use profiles.
//
// A profile answers every later question about the run: hierarchy.Predict reads a profile and never
// the trace. It is exact (each stack distance has its own count), versioned and checksummed. The
// same trace and options give the same bytes, wherever and however the profile was made.
//
//   - [Profile] and the types in it: the data.
//   - [Curve]: the miss-ratio curve of a histogram, for any capacity at once.
//   - Encode, Decode, Digest: the binary form (.sgp), drawn in sections.go.
//   - Check: the invariants that hold in every valid profile.
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

	// Each of the following is nil if it was not analysed.
	Locality []Locality // one for each line size, ascending
	Sites    *Sites     // also nil if the trace has no code
	Counters *Counters  // the same
	Sharing  []Sharing  // one for each line size of Locality
	// Communication is also nil for a trace without threads. If it is nil for several threads,
	// NoCommunication says why.
	Communication   *Communication
	NoCommunication Absence
	Loops           []byte // the loop-compressed trace, as package loops writes it; empty if it grew too large
	Blocks          []byte // counts of blocks and branches, as package blocks writes them; empty if the trace has no blocks
	Footprint       *Footprint

	Sources []trace.SourceFile // of the program, for the lines that sites name; not part of the digest

	Sampled   *Sampled   // nil in an exact profile; otherwise counts are estimates
	Predicted *Predicted // nil in a profile of a real run

	// Segment contains the state that is needed to append a later segment of the same trace
	// (MODELS §9). It contains addresses, so it is nil unless requested, and not part of the
	// digest.
	Segment *Segment
}

// Input describes the analysis: facts of the trace and choices of the user. It contains no name,
// path or time.
type Input struct {
	Header  trace.Header
	Kinds   trace.Kinds // the kinds of references that were analysed
	Skip    uint64      // references left out at the start
	Limit   uint64      // references analysed at most; 0: all
	Threads []uint32    // the threads that were analysed, ascending; nil: all
}

// Totals counts the references that were read. A reference that crosses lines is several line
// accesses (MODELS §1).
type Totals struct {
	References [trace.NumKinds]uint64 // analysed references, by kind
	Bytes      [trace.NumKinds]uint64 // bytes that they touched, by kind
	Unselected uint64                 // references left out by kind or thread
	BadRecords uint64                 // tolerated records that could not be read
	Threads    []uint32               // threads of the analysed references, ascending; nil if the trace has none
}

// AllReferences returns the number of analysed references of all kinds.
func (t *Totals) AllReferences() uint64 { return sum(t.References[:]) }

func sum(counts []uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// State says whether the profile covers everything that was requested.
type State struct {
	Partial bool
	Reason  string // why it is partial, in a sentence
}

// Locality is the LRU stack model's result for one line size.
type Locality struct {
	LineBytes uint32
	Kinds     []KindLocality // the analysed kinds that occur, ascending
	Windows   Windows
	Sets      *SetTable // nil if it was not analysed
}

// KindLocality counts the line accesses of one kind of reference.
type KindLocality struct {
	Kind      trace.Kind
	Cold      uint64    // first accesses to a line: F(∞)
	Distances Histogram // F(Δ), Δ in distinct lines, from zero
}

// RoundDistances rounds the distances of p down to the given number of significant binary digits if
// its histograms take more than most bytes of memory, and reports whether they did. Miss counts of
// fully associative caches remain exact where the number of lines has no more significant digits,
// as in every cache whose size is a power of two. The digest changes.
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

// Accesses returns the number of line accesses of the kind.
func (k *KindLocality) Accesses() uint64 { return k.Cold + k.Distances.Total() }

// Lines returns the number of distinct lines, the footprint.
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

// Histogram returns the sum of the histograms of these kinds, and the number of cold accesses.
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

// SharingAt returns the stacks of threads at a line size, or nil.
func (p *Profile) SharingAt(lineBytes uint32) *Sharing {
	if i := slices.IndexFunc(p.Sharing, func(s Sharing) bool { return s.LineBytes == lineBytes }); i >= 0 {
		return &p.Sharing[i]
	}
	return nil
}

// WindowBins is the number of bins of a [Windows] row. Bin 0 counts distance 0, bin k the
// distances from 2^(k-1) to 2^k - 1, and the last bin cold accesses.
const WindowBins = 35

// ColdBin is the index of the bin that counts cold accesses.
const ColdBin = WindowBins - 1

// DistanceBin returns the bin that counts distance d. Distances beyond 2^33 share the last bin
// before the cold one.
func DistanceBin(d uint64) int { return min(bits.Len64(d), ColdBin-1) }

// Windows counts the misses of caches of 2^k lines over time, in windows with the same number of
// references, except for the last. The number of references doubles as the trace grows, so that
// there are at most [MaxWindows].
type Windows struct {
	References uint64 // in each window: MinWindow × 2^k
	First      uint64 // number of the first window, not 0 in later segments of a trace
	Rows       []WindowRow
	Distinct   []uint64 // distinct lines of each row, its working set; nil if they were not counted
}

// WindowRow counts the line accesses of one window by distance, in bins.
type WindowRow [WindowBins]uint64

const (
	// MinWindow is the least number of references in a window.
	MinWindow = 1024
	// MaxWindows is the most windows that a profile keeps.
	MaxWindows = 1024
)

// Accesses returns the number of line accesses in the window.
func (r *WindowRow) Accesses() uint64 { return sum(r[:]) }

// Misses returns the exact number of misses in the window of a fully associative LRU cache of
// 2^log2Lines lines, log2Lines ≤ 32.
func (r *WindowRow) Misses(log2Lines int) uint64 { return sum(r[log2Lines+1:]) }

// Segment is the state at the end of a segment of a trace, to resume from (MODELS §9). Each
// state of an analysis is in the form that its package writes, or nil without the analysis.
type Segment struct {
	Start         uint64         // number of analysed references before the segment
	Lines         []SegmentLines // for each line size of Locality
	Sites         []byte         // analysis/sites: lines, strides and blocks of memory
	Touched       []byte         // analysis/counters: accesses to each byte, and their functions
	Sharing       []byte         // analysis/sharing: the stacks of cores and domains
	Communication []byte         // analysis/communication: the values in words and lines, and their users
	Blocks        []byte         // analysis/branches: the calls that have not returned
	Sample        []byte         // analysis/sample: the samplers
	Kept          []byte         // analysis/sample: analyses of the lines of a sample
	Shelved       []byte         // stack: where the stacks are in the spill store; nil: Lines contain them
	LastUses      []byte         // analysis/footprint: the last accesses to lines
}

// SegmentLines is the state of one line size at the end of a segment.
type SegmentLines struct {
	FirstTouches []FirstTouch // in order
	Stack        []trace.Line // every line of the segment, most recently used first
	// WorkingSets are the distinct lines of larger windows. The windows of the first list have
	// twice as many references as the rows, the windows of each other list twice as many as the
	// windows of the list before. The last list has one window. nil: they were not counted.
	WorkingSets [][]uint64
}

// FirstTouch is a segment's first access to a line.
type FirstTouch struct {
	Line      trace.Line
	Reference uint64 // number of the reference in the whole trace, from 0
	Kind      trace.Kind
}
