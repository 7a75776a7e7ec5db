// Package profile holds the result of one pass over a trace: what a program
// does to memory, independent of any machine. It is the only thing that files,
// the browser's store, messages between workers, and questions exchange.
//
// A profile answers every later question about the run: hierarchy.Predict reads
// one and never the trace. It is exact (each stack distance has its own count),
// versioned, checksummed, and the same bytes for the same trace and options
// wherever and however it was made.
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
	Input    Input
	Totals   Totals
	State    State
	Locality []Locality // one for each line size, ascending; none where it was not asked for
	Sites    *Sites     // nil where they were not asked for, or the trace tells of no code
	Counters *Counters  // the same
	Sharing  []Sharing  // as Locality, where threads were asked for
	// Communication is nil where it was not asked for, or the trace has no threads.
	// Where it is nil though there are several threads, NoCommunication says why.
	Communication   *Communication
	NoCommunication Absence
	// Loops is the trace folded into a tree of loops and references, in the form of
	// package loops. It is nil where it was not asked for, and empty where the tree was
	// given up because it grew too large. It holds addresses.
	Loops []byte
	// Blocks is how often blocks ran and branches were taken, with the program, in the
	// form of package blocks. It is nil where it was not asked for, and empty where the
	// trace tells of no blocks.
	Blocks []byte
	// Footprint is nil where it was not asked for.
	Footprint *Footprint

	// Sampled is nil in an exact profile; in others, counts are estimates.
	Sampled *Sampled
	// Predicted is nil in a profile of what ran.
	Predicted *Predicted

	// Segment is what a later segment of the same trace needs to be appended
	// (MODELS §9). It holds addresses: it is nil unless asked for, and not part
	// of the digest.
	Segment *Segment
}

// Input says what was analysed: facts of the trace and choices of the user.
// No name, path or time is in it.
type Input struct {
	Header  trace.Header
	Kinds   trace.Kinds // the kinds of references that were analysed
	Skip    uint64      // references left out at the start
	Limit   uint64      // references analysed at most; 0: all
	Threads []uint32    // the threads that were analysed, ascending; nil: all
}

// Totals counts what was read. References and line accesses are told apart
// (MODELS §1): a reference that crosses lines is several accesses.
type Totals struct {
	References [trace.NumKinds]uint64 // analysed references, by kind
	Bytes      [trace.NumKinds]uint64 // bytes that they touched, by kind
	Unselected uint64                 // references read but left out by kind or thread
	BadRecords uint64                 // records that could not be read and were tolerated
	Threads    []uint32               // threads seen among the analysed references, ascending; nil where the trace has none
}

// AllReferences is the number of analysed references of all kinds.
func (t *Totals) AllReferences() uint64 {
	var n uint64
	for _, c := range t.References {
		n += c
	}
	return n
}

// State says whether the profile covers all that was asked for.
type State struct {
	Partial bool
	Reason  string // why it is partial, in a sentence; "" when complete
}

// Locality is the LRU stack model's result for one line size.
type Locality struct {
	LineBytes uint32
	Kinds     []KindLocality // the analysed kinds that occur, ascending
	Windows   Windows
	Sets      *SetTable // nil where it was not asked for
}

// KindLocality counts the line accesses of one kind of reference.
type KindLocality struct {
	Kind      trace.Kind
	Cold      uint64    // first accesses to a line: F(∞)
	Distances Histogram // F(Δ), Δ in distinct lines, from zero
}

// RoundDistances rounds the distances of p down to the given number of significant binary
// digits if its histograms take more than most bytes of memory, and reports whether they
// did. Miss counts of fully associative caches remain exact where the number of lines has
// no more significant digits, as in every cache whose size is a power of two. The digest
// changes.
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

// Accesses is the number of line accesses of the kind.
func (k *KindLocality) Accesses() uint64 { return k.Cold + k.Distances.Total() }

// Lines is the number of distinct lines, the footprint.
func (l *Locality) Lines() uint64 {
	var n uint64
	for i := range l.Kinds {
		n += l.Kinds[i].Cold
	}
	return n
}

// Accesses is the number of line accesses of all kinds.
func (l *Locality) Accesses() uint64 {
	var n uint64
	for i := range l.Kinds {
		n += l.Kinds[i].Accesses()
	}
	return n
}

// Histogram sums the distances of the chosen kinds and gives them with the
// number of cold accesses.
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

// LocalityAt gives the result for a line size, or nil.
func (p *Profile) LocalityAt(lineBytes uint32) *Locality {
	for i := range p.Locality {
		if p.Locality[i].LineBytes == lineBytes {
			return &p.Locality[i]
		}
	}
	return nil
}

// SharingAt returns the stacks of threads at a line size, or nil.
func (p *Profile) SharingAt(lineBytes uint32) *Sharing {
	for i := range p.Sharing {
		if p.Sharing[i].LineBytes == lineBytes {
			return &p.Sharing[i]
		}
	}
	return nil
}

// WindowBins is the number of bins of a [Windows] row: bin 0 counts distance 0,
// bin k the distances from 2^(k-1) to 2^k - 1, the last one cold accesses.
const WindowBins = 35

// ColdBin is the index of the bin that counts cold accesses.
const ColdBin = WindowBins - 1

// DistanceBin is the bin that counts distance d. Distances beyond 2^33 share
// the last bin before the cold one.
func DistanceBin(d uint64) int { return min(bits.Len64(d), ColdBin-1) }

// Windows is the run in equal windows of references: how the misses of caches
// of 2^k lines change over time. Every window holds the same number of
// references, but the last; the number doubles as the trace grows, so that
// there are never more than [MaxWindows].
type Windows struct {
	References uint64 // references a window: MinWindow × 2^k
	First      uint64 // number of the first window, 0 but in later segments of a trace
	Rows       []WindowRow
	Distinct   []uint64 // distinct lines of each row, its working set; nil where they were not counted
}

// WindowRow counts the line accesses of one window by distance, in bins.
type WindowRow [WindowBins]uint64

const (
	// MinWindow is the least number of references in a window.
	MinWindow = 1024
	// MaxWindows is the most windows that a profile keeps.
	MaxWindows = 1024
)

// Accesses is the number of line accesses in the window.
func (r *WindowRow) Accesses() uint64 {
	var n uint64
	for _, c := range r {
		n += c
	}
	return n
}

// Misses is the exact number of misses in the window of a fully associative LRU
// cache of 2^log2Lines lines, log2Lines ≤ 32.
func (r *WindowRow) Misses(log2Lines int) uint64 {
	var n uint64
	for _, c := range r[log2Lines+1:] {
		n += c
	}
	return n
}

// Segment carries, for each line size of Locality, what MODELS §9 needs.
type Segment struct {
	Start uint64 // number of analysed references before the segment
	Lines []SegmentLines
	// Sites is what sites know of lines, strides and blocks of memory, in the form
	// of package analysis/sites; nil where they were not analysed.
	Sites []byte
	// Touched is how often each byte was accessed, and by which functions, in
	// the form of package analysis/counters; nil where that is not counted.
	Touched []byte
	// Sharing is what cores and domains have on their stacks, in the form of package
	// analysis/sharing; nil where there was one thread at most.
	Sharing []byte
	// Communication is what words and lines hold, and who used them, in the form of
	// package analysis/communication; nil where it was not analysed.
	Communication []byte
	// Blocks are the calls that have not returned, in the form of package
	// analysis/branches; nil where they were not analysed.
	Blocks []byte
	// Sample is the state of samplers, in the form of package analysis/sample; nil
	// where every access was analysed. Kept is that of analyses of the lines of a
	// sample, in the form of the same package; nil where there are none.
	Sample, Kept []byte
	// Shelved tells where stacks lie that are not in memory, in the form of package
	// stack, one after the other; Lines have none then. nil: they have.
	Shelved []byte
	// LastUses is when lines were accessed last, in the form of package
	// analysis/footprint; nil where that was not asked for.
	LastUses []byte
}

// SegmentLines is the state of one line size at the end of a segment.
type SegmentLines struct {
	FirstTouches []FirstTouch // in order
	Stack        []trace.Line // every line of the segment, most recently used first
	// WorkingSets are the distinct lines of larger windows, of twice as many
	// references in each list as in the one before; those of the first have twice as
	// many as the rows', and in the last there is one window. It is nil where there
	// are no working sets.
	WorkingSets [][]uint64
}

// FirstTouch is a segment's first access to a line.
type FirstTouch struct {
	Line      trace.Line
	Reference uint64 // number of the reference in the whole trace, from 0
	Kind      trace.Kind
}
