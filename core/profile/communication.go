package profile

import (
	"cmp"
	"sort"
)

// Communication reports which values threads of a trace write and other threads use
// (MODELS §7). Package analysis/communication makes it.
//
// The source of a reference to a granule is the last thread that wrote it, if that
// is another one. An event is every reference that has a source (Kulkarni §3), a
// store too; a transfer is the first load by a thread of a value that another one
// wrote since: what has to be moved at least.
type Communication struct {
	Granules []Granule // ascending: words of 8 bytes, lines, pages

	// Beyond is how many threads are taken for one with the 64th: see [MaxThreads].
	Beyond uint32

	// The following are of words, but for False, the events that make an Ownership's
	// class, and Sources, which are of lines.
	Pairs   []SitePair     // in the order of ComparePairs; none is zero
	Windows []FlowWindow   // over the run: equal windows of references
	Window  uint64         // references of each window
	Owners  []Ownership    // by object
	False   []FalseSharing // most misses first
	// LineSharing ranks data structures by what their layout costs; nil: an earlier version
	// made the profile.
	LineSharing []LineSharing
	Sources     []SourceDistances // by from, to; nil where stacks were not kept, or the result can be appended to
	Messages    uint64            // bytes that a version with messages has to send at least

	Off *CommunicationOff // nil where these are no estimates
}

// Absence is why a profile of several threads has no [Communication].
type Absence uint8

// The reasons.
const (
	AbsenceUnknown  Absence = iota // an earlier version made the profile
	NotAnalysed                    // it was not among the analyses
	BeyondMemory                   // the lines did not fit in memory
	NotInSample                    // all sampled lines belong to one thread, or lines do not stay in the sample
	UnlistedThreads                // the result can be appended to, and the trace does not say how many threads it has
	LateThread                     // the trace does not say so, and the second thread came too late
	numAbsences
)

// SecondThreadBy is the number of the reference by which a second thread has to appear in a
// trace that does not say how many threads it has: after it, [LateThread].
const SecondThreadBy = 1 << 16

// CommunicationOff is half of each interval that has the truth in 95 of 100 runs, of
// what stands at the same place in a [Communication].
type CommunicationOff struct {
	Granules []GranuleOff
	Pairs    []FlowOff
	False    []FalseOff
}

// FalseOff is that of a [FalseSharing].
type FalseOff struct{ Lines, Events, Misses uint64 }

// GranuleOff is that of a [Granule].
type GranuleOff struct {
	Flows   []FlowOff
	Classes [NumSharingClasses]ClassCount
}

// FlowOff is that of a [Flow] or a [SitePair].
type FlowOff struct{ Events, Transfers uint64 }

// MaxThreads is the most threads that are told apart.
const MaxThreads = 64

// WordBytes and PageBytes are the least and the largest granule.
const (
	WordBytes = 8
	PageBytes = 4096
)

// Granule is what happened at one granularity.
type Granule struct {
	Bytes   uint32 // of a granule, a power of two
	Flows   []Flow // by from, to; none is zero
	Classes [NumSharingClasses]ClassCount
}

// Flow is what one thread wrote and another used.
type Flow struct {
	From, To  uint32 // threads
	Events    uint64
	Transfers uint64
	Bytes     uint64 // of the transfers: granules times their size
}

// SharingClass is how threads use a granule over the whole run.
type SharingClass uint8

// The classes. An event of a line or a page is false at a reference to words of
// which none has a source.
const (
	PrivateData      SharingClass = iota // one thread only
	ReadShared                           // several, and no value goes from one to another
	ProducerConsumer                     // the values of one thread are used by others
	Migratory                            // the values of several threads are used by others
	FalselyShared                        // more than half of its events are false: lines and pages only
	NumSharingClasses
)

var sharingClassNames = [NumSharingClasses]string{"private", "read-shared", "producer-consumer", "migratory", "falsely shared"}

func (c SharingClass) String() string { return sharingClassNames[c] }

// ClassCount counts the granules of a class, and the references to them.
type ClassCount struct{ Granules, References, Events uint64 }

// SitePair is what one place in the code wrote in one thread and another place used
// in another thread.
type SitePair struct {
	Producer, Consumer uint32 // indexes in Sites.Code, or NoSite
	Object             uint32 // index in Sites.Data, or NoSite
	From, To           uint32 // threads
	Events, Transfers  uint64
}

// ComparePairs orders by producer, consumer, object and threads; NoSite comes last.
func ComparePairs(x, y *SitePair) int {
	return cmp.Or(cmp.Compare(x.Producer, y.Producer), cmp.Compare(x.Consumer, y.Consumer), cmp.Compare(x.Object, y.Object),
		cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
}

// FlowWindow is what went between threads in one window.
type FlowWindow struct{ Flows []Flow }

// MaxFlowWindows is the most windows; windows double as the trace grows.
const MaxFlowWindows = 64

// Ownership tells which thread a data structure belongs to, part by part. The
// parts of objects of several blocks are counted together, by their offset in the
// block.
type Ownership struct {
	Object    uint32 // index in Sites.Data, or NoSite: addresses without a name
	PartBytes uint64 // a power of two
	First     uint64 // number of the first part that was touched: its offset in parts
	Parts     []OwnedPart
}

// MaxParts is the most parts of an [Ownership].
const MaxParts = 512

// OwnedPart is one part of a data structure; References 0: it was not touched.
type OwnedPart struct {
	FirstTouch uint32 // the thread that touched it first
	Most       uint32 // the thread that touches it most often, the first of equals
	Readers    uint32 // threads that load from it
	Writers    uint32 // threads that store to it
	Class      SharingClass
	References uint64
	Own        uint64 // of them by Most
}

// FalseSharing is a set of falsely shared lines of the same data object and with the
// same two places in the code, that go to and fro. A line that a thread has filled
// in, and another one goes on with, is not among them.
type FalseSharing struct {
	Object  uint32    // index in Sites.Data, or NoSite
	Offset  uint64    // of the first of the lines in it, from its block's begin
	Sites   [2]uint32 // indexes in Sites.Code, or NoSite: the store, and the reference of another thread that it disturbs most
	Threads [2]uint32 // that make them, most often
	Lines   uint64
	Events  uint64 // false ones of these lines
	// Misses are those events at which the thread had the line before, and lost it to
	// a store of another: misses in private caches of any size.
	Misses uint64
	// Apart is the least distance in bytes between words of different threads; what
	// lies Apart has to be a line apart.
	Apart uint32
}

// MaxFalseSharing is how many are kept; the last one may be the sum of the others,
// with NoSite for all.
const MaxFalseSharing = 256

// LineSharing is a data structure with cache lines in which several threads have words of
// their own: words that one thread stores to again and again, and others hardly ever. Such
// lines go back and forth if these threads run at the same time, in this run or another.
type LineSharing struct {
	Object    uint32    // index in Sites.Data, or NoSite
	Offset    uint64    // of the first of the lines, from the begin of its block
	Lines     uint64    // that have words of several threads
	Owners    uint32    // threads that have words of their own in them
	Moves     uint64    // at most so often the lines change hands if the threads run at the same time
	PingPongs uint64    // so often they were taken back in this run, for words that the other thread did not write
	Apart     uint32    // the least distance in bytes between words of different threads
	Sites     [2]uint32 // indexes in Sites.Code, or NoSite: the stores of the two threads that use a line most
	Threads   [2]uint32 // these
}

// CompareLineSharing orders by moves, descending, and then by object.
func CompareLineSharing(x, y LineSharing) int {
	return cmp.Or(cmp.Compare(y.Moves, x.Moves), cmp.Compare(x.Object, y.Object))
}

// SortLineSharing puts them in the order of [CompareLineSharing].
func SortLineSharing(list []LineSharing) {
	sort.Slice(list, func(i, j int) bool { return CompareLineSharing(list[i], list[j]) < 0 })
}

// MaxLineSharing is how many are kept.
const MaxLineSharing = 256

// SourceDistances are, of the events of lines between two threads, the current
// distances of the line in the source's coherent stack (Kulkarni §4.3): of a
// private cache of C lines, those below C are transfers from cache to cache.
type SourceDistances struct {
	From, To  uint32
	Distances Histogram
	Transfers Histogram // of those that are transfers
}
