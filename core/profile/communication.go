package profile

import (
	"cmp"
	"sort"
)

// Communication reports which values threads of a trace write and other threads use
// (MODELS §7). Package analysis/communication makes it.
//
// The source of a reference to a granule is the last thread that wrote it, if that is another one.
// An event is every reference that has a source (Kulkarni §3), a store too; a transfer is the first
// load by a thread of a value that another thread wrote since: the least data that has to be moved.
type Communication struct {
	Granules []Granule // ascending: words of 8 bytes, lines, pages

	// Beyond is the number of threads that are counted as the 64th: see [MaxThreads].
	Beyond uint32

	// The following count words. False, Sources and the events behind an Ownership's class
	// count lines.
	Pairs   []SitePair     // in the order of ComparePairs; none is zero
	Windows []FlowWindow   // over the run: equal windows of references
	Window  uint64         // references of each window
	Owners  []Ownership    // by object
	False   []FalseSharing // most misses first
	// LineSharing ranks data structures by the cost of their layout; nil: an earlier version
	// made the profile.
	LineSharing []LineSharing
	Sources     []SourceDistances // by from, to; nil if stacks were not kept
	Messages    uint64            // least number of bytes that a message-passing version has to send

	Off *CommunicationOff // nil if the counts are exact
}

// Absence is the reason why a profile of several threads has no [Communication].
type Absence uint8

// The reasons.
const (
	AbsenceUnknown  Absence = iota // an earlier version made the profile
	NotAnalysed                    // it was not among the analyses
	BeyondMemory                   // the lines did not fit in memory
	NotInSample                    // all sampled lines belong to one thread, or lines do not stay in the sample
	UnlistedThreads                // of older profiles: the result can be appended to, and the trace does not say how many threads it has
	LateThread                     // the trace does not say so, and the second thread came too late
	numAbsences
)

// SecondThreadBy is the number of the reference by which a second thread has to appear in a
// trace that does not say how many threads it has; otherwise [LateThread].
const SecondThreadBy = 1 << 16

// CommunicationOff contains half the width of the 95 % confidence interval of each count of a
// [Communication], at the same place.
type CommunicationOff struct {
	Granules []GranuleOff
	Pairs    []FlowOff
	False    []FalseOff
}

// FalseOff belongs to a [FalseSharing].
type FalseOff struct{ Lines, Events, Misses uint64 }

// GranuleOff belongs to a [Granule].
type GranuleOff struct {
	Flows   []FlowOff
	Classes [NumSharingClasses]ClassCount
}

// FlowOff belongs to a [Flow] or a [SitePair].
type FlowOff struct{ Events, Transfers uint64 }

// MaxThreads is the most threads that are distinguished.
const MaxThreads = 64

// WordBytes and PageBytes are the least and the largest granule.
const (
	WordBytes = 8
	PageBytes = 4096
)

// Granule is the communication at one granularity.
type Granule struct {
	Bytes   uint32 // of a granule, a power of two
	Flows   []Flow // by from, to; none is zero
	Classes [NumSharingClasses]ClassCount
}

// Flow counts values that one thread wrote and another used.
type Flow struct {
	From, To  uint32 // threads
	Events    uint64
	Transfers uint64
	Bytes     uint64 // of the transfers: granules times their size
}

// SharingClass classifies how threads use a granule over the whole run.
type SharingClass uint8

// The classes. An event of a line or a page is false if none of the referenced words has a source.
const (
	PrivateData      SharingClass = iota // one thread only
	ReadShared                           // several threads, and no value is passed between them
	ProducerConsumer                     // the values of one thread are used by others
	Migratory                            // the values of several threads are used by others
	FalselyShared                        // more than half of its events are false: lines and pages only
	NumSharingClasses
)

var sharingClassNames = [NumSharingClasses]string{"private", "read-shared", "producer-consumer", "migratory", "falsely shared"}

func (c SharingClass) String() string { return sharingClassNames[c] }

// ClassCount counts the granules of a class, their references and events.
type ClassCount struct{ Granules, References, Events uint64 }

// SitePair counts values that one site wrote in one thread and another site used in another thread.
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

// FlowWindow is the communication in one window.
type FlowWindow struct{ Flows []Flow }

// MaxFlowWindows is the most windows; windows double as the trace grows.
const MaxFlowWindows = 64

// Ownership says which thread each part of a data structure belongs to. If the structure has
// several blocks, parts at the same offset in their blocks are counted together.
type Ownership struct {
	Object    uint32 // index in Sites.Data, or NoSite: addresses without a name
	PartBytes uint64 // a power of two
	First     uint64 // index of the first part that was touched
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

// FalseSharing is a set of falsely shared lines that move between cores, of the same data object
// and the same two sites. Lines that one thread fills and another then uses are not included.
type FalseSharing struct {
	Object  uint32    // index in Sites.Data, or NoSite
	Offset  uint64    // of the set's first line, from its block's beginning
	Sites   [2]uint32 // indexes in Sites.Code, or NoSite: the store, and the reference of another thread that it disturbs most
	Threads [2]uint32 // that refer to the lines most often
	Lines   uint64
	Events  uint64 // false events of these lines
	// Misses are the events at which another thread's store had invalidated the line: misses in
	// private caches of any size.
	Misses uint64
	// Apart is the least distance in bytes between words of different threads.
	Apart uint32
}

// MaxFalseSharing is the most sets that are kept. The last one may be the sum of the rest, with
// NoSite for all indexes.
const MaxFalseSharing = 256

// LineSharing is a data structure with cache lines in which several threads have words of their
// own: one thread stores to them again and again, and other threads hardly ever. Such lines move
// between cores if these threads run at the same time, in this run or another.
type LineSharing struct {
	Object    uint32    // index in Sites.Data, or NoSite
	Offset    uint64    // of the first of the lines in its block
	Lines     uint64    // with words of several threads
	Owners    uint32    // threads with words of their own in them
	Moves     uint64    // most moves of the lines if the threads run at the same time
	PingPongs uint64    // moves back in this run for words that the other thread did not write
	Apart     uint32    // the least distance in bytes between words of different threads
	Sites     [2]uint32 // indexes in Sites.Code, or NoSite: the stores of the two threads that use a line most
	Threads   [2]uint32 // these
}

// CompareLineSharing orders by moves, descending, and then by object.
func CompareLineSharing(x, y LineSharing) int {
	return cmp.Or(cmp.Compare(y.Moves, x.Moves), cmp.Compare(x.Object, y.Object))
}

// SortLineSharing sorts a list by [CompareLineSharing].
func SortLineSharing(list []LineSharing) {
	sort.Slice(list, func(i, j int) bool { return CompareLineSharing(list[i], list[j]) < 0 })
}

// MaxLineSharing is the most structures that are kept.
const MaxLineSharing = 256

// SourceDistances count the events of lines between two threads by the current depth of the line in
// the source's coherent stack (Kulkarni §4.3). With private caches of C lines, events at depths
// below C are transfers from cache to cache.
type SourceDistances struct {
	From, To  uint32
	Distances Histogram
	Transfers Histogram // of the events that are transfers
}
