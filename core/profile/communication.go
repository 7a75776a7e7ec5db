package profile

import (
	"cmp"
	"sort"
)

// Communication describes the values that some threads of a trace write and other threads use
// (MODELS §7). Package analysis/communication computes this description.
//
// The source of a reference to a granule is the thread that last wrote the granule, unless the same
// thread makes the reference. Every reference with a source is an event (Kulkarni §3), even if it
// is a store. A transfer is a thread's first load of a value that another thread wrote. The
// transfers are the minimum amount of data that must be moved.
type Communication struct {
	Granules []Granule // communication at each granularity, in ascending order: 8-byte words, lines, pages

	// Beyond is the number of threads whose counts are included in the counts of the last thread:
	// see [MaxThreads].
	Beyond uint32

	// The following fields count words, with three exceptions that count lines: False, Sources, and
	// the events that determine the class of an Ownership.
	Pairs   []SitePair     // ordered by ComparePairs, without zero counts
	Windows []FlowWindow   // flows over time, in windows that have the same number of references
	Window  uint64         // number of references in each window
	Owners  []Ownership    // ordered by object
	False   []FalseSharing // in descending order of misses
	// LineSharing ranks data structures by the cost of their layout. LineSharing is nil in profiles
	// of earlier versions.
	LineSharing []LineSharing
	Sources     []SourceDistances // ordered by From and To; nil if the coherent stacks of cores were not available
	Messages    uint64            // minimum number of bytes that a message-passing version must send

	Off *CommunicationOff // nil if the counts are exact
}

// Absence is the reason why a profile of several threads has no [Communication].
type Absence uint8

// The values of Absence.
const (
	AbsenceUnknown Absence = iota // the profile is from an earlier version
	NotAnalysed                   // the user did not request this analysis
	BeyondMemory                  // the lines did not fit in memory
	// the sample consists of single accesses, or only one thread accessed the sampled lines
	NotInSample
	UnlistedThreads // only in older profiles: the profile is mergeable, and the trace does not list its threads
	LateThread      // the trace does not list its threads, and the second thread appeared too late
	numAbsences
)

// SecondThreadBy applies to traces that do not list their threads: if no second thread appears
// within this number of references, communication is not analysed ([LateThread]).
const SecondThreadBy = 1 << 16

// CommunicationOff contains the half-widths of the 95 % confidence intervals of the counts of a
// [Communication], in the same order.
type CommunicationOff struct {
	Granules []GranuleOff
	Pairs    []FlowOff
	False    []FalseOff
}

// FalseOff contains the half-widths for a [FalseSharing].
type FalseOff struct{ Lines, Events, Misses uint64 }

// GranuleOff contains the half-widths for a [Granule].
type GranuleOff struct {
	Flows   []FlowOff
	Classes [NumSharingClasses]ClassCount
}

// FlowOff contains the half-widths for a [Flow] or a [SitePair].
type FlowOff struct{ Events, Transfers uint64 }

// MaxThreads is the maximum number of threads with separate counts.
const MaxThreads = 64

// WordBytes and PageBytes are the sizes of the smallest and of the largest granule.
const (
	WordBytes = 8
	PageBytes = 4096
)

// Granule contains the communication at one granularity.
type Granule struct {
	Bytes   uint32 // size of a granule, a power of two
	Flows   []Flow // ordered by From and To, without zero counts
	Classes [NumSharingClasses]ClassCount
}

// Flow counts the values that one thread wrote and another thread used.
type Flow struct {
	From, To  uint32 // threads
	Events    uint64
	Transfers uint64
	Bytes     uint64 // transferred bytes: number of granules × their size
}

// SharingClass classifies how threads use a granule over the whole run.
type SharingClass uint8

// An event of a line or a page is false if none of the referenced words has a source.
const (
	PrivateData      SharingClass = iota // used by only one thread
	ReadShared                           // used by several threads, but no thread uses a value that another thread wrote
	ProducerConsumer                     // one thread writes values that other threads use
	Migratory                            // several threads write values that other threads use
	// more than half of the granule's events are false; only for lines and pages
	FalselyShared
	NumSharingClasses
)

var sharingClassNames = [NumSharingClasses]string{"private", "read-shared", "producer-consumer", "migratory", "falsely shared"}

func (c SharingClass) String() string { return sharingClassNames[c] }

// ClassCount counts the granules of a class, and their references and events.
type ClassCount struct{ Granules, References, Events uint64 }

// SitePair counts values that one site wrote in one thread and another site used in another thread.
type SitePair struct {
	Producer, Consumer uint32 // indices into Sites.Code, or NoSite
	Object             uint32 // index in Sites.Data, or NoSite
	From, To           uint32 // threads
	Events, Transfers  uint64
}

// ComparePairs orders pairs by producer, consumer, object and threads. NoSite comes last.
func ComparePairs(x, y *SitePair) int {
	return cmp.Or(cmp.Compare(x.Producer, y.Producer), cmp.Compare(x.Consumer, y.Consumer), cmp.Compare(x.Object, y.Object),
		cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
}

// FlowWindow contains the communication in one window.
type FlowWindow struct{ Flows []Flow }

// MaxFlowWindows is the maximum number of windows. The size of the windows doubles as the trace
// grows.
const MaxFlowWindows = 64

// Ownership reports which thread owns each part of a data structure. If the structure has
// several blocks, parts at the same offset in different blocks are counted together.
type Ownership struct {
	Object    uint32 // index into Sites.Data, or NoSite for addresses without a name
	PartBytes uint64 // size of a part, a power of two
	First     uint64 // number of the first part that was touched
	Parts     []OwnedPart
}

// MaxParts is the maximum number of parts of an [Ownership].
const MaxParts = 512

// OwnedPart describes a part of a data structure. If References is 0, no thread touched the part.
type OwnedPart struct {
	FirstTouch uint32 // the thread that first touched the part
	// the thread that touches the part most often, or the first of several such threads
	Most       uint32
	Readers    uint32 // number of threads that load from the part
	Writers    uint32 // number of threads that store to the part
	Class      SharingClass
	References uint64
	Own        uint64 // number of references by the thread in the field Most
}

// FalseSharing describes a set of falsely shared lines that move between cores. All lines of the
// set belong to the same data object, and have the most false misses at the same pair of sites. The
// set excludes lines that one thread fills and another thread uses afterwards.
type FalseSharing struct {
	Object  uint32    // index in Sites.Data, or NoSite
	Offset  uint64    // offset of the first line from the start of its block
	Sites   [2]uint32 // indices into Sites.Code, or NoSite: the site whose stores invalidate the lines, and the site whose references then miss
	Threads [2]uint32 // the pair of threads with the most misses: the thread that stores, and the thread that misses
	Lines   uint64
	Events  uint64 // number of false events of these lines
	// Misses is the number of events whose line had been invalidated by a store of another thread.
	// Such an event is a miss in a private cache, however large the cache is.
	Misses uint64
	// Apart is the minimum distance in bytes between words of different threads.
	Apart uint32
}

// MaxFalseSharing is the maximum number of sets of falsely shared lines in a profile. If there are
// more, the last element is the sum of all remaining sets, and its indices are NoSite.
const MaxFalseSharing = 256

// LineSharing describes a data structure that has cache lines with words of different threads. A
// word belongs to a thread if this thread makes almost all stores to the word. Lines with words of
// different threads move between cores whenever these threads run at the same time, in this run or
// in another run.
type LineSharing struct {
	Object uint32 // index in Sites.Data, or NoSite
	Offset uint64 // offset of the first such line from the start of its block
	Lines  uint64 // number of such lines
	Owners uint32 // number of threads to which words of these lines belong
	Moves  uint64 // maximum number of moves of these lines between cores if the threads run at the same time
	// number of times in this run that a line moved back to a thread because another thread had
	// stored to other words of the line
	PingPongs uint64
	Apart     uint32    // the minimum distance in bytes between words of different threads
	Sites     [2]uint32 // indices into Sites.Code, or NoSite: for each of Threads, the site of its stores to the line with the most moves
	Threads   [2]uint32 // the two threads with the most references or false misses in the line with the most moves
}

// CompareLineSharing orders data structures by descending moves, and then by object.
func CompareLineSharing(x, y LineSharing) int {
	return cmp.Or(cmp.Compare(y.Moves, x.Moves), cmp.Compare(x.Object, y.Object))
}

// SortLineSharing sorts a list by [CompareLineSharing].
func SortLineSharing(list []LineSharing) {
	sort.Slice(list, func(i, j int) bool { return CompareLineSharing(list[i], list[j]) < 0 })
}

// MaxLineSharing is the maximum number of data structures in [Communication].LineSharing.
const MaxLineSharing = 256

// SourceDistances counts the events in which one thread uses a line that another thread (the
// source) wrote. The events are counted by the depth of the line in the coherent stack of the
// source at the time of the event (Kulkarni §4.3). With private caches of C lines, events at depths
// less than C are cache-to-cache transfers.
type SourceDistances struct {
	From, To  uint32
	Distances Histogram
	Transfers Histogram // the same counts as in Distances, but only for transfers
}
