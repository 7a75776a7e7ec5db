package profile

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
)

// Timeline divides the counts of Sites and Calls into windows of time. All windows except the last
// have the same number of references. From a timeline, the misses of every source location, data
// structure and call path in any cache can be computed for each interval of the run. In each bin,
// the counts of all windows add up to the count of the whole run.
//
// The number of references in a window doubles as the trace grows, so there are at most
// [MaxTimelineWindows] windows. To limit the memory, the windows also double in length if the
// number of sites, data objects and call paths with accesses, summed over all windows, exceeds
// [MostTimelinePlaces]. The windows depend only on the trace.
type Timeline struct {
	References uint64 // number of references in each window: MinWindow × 2^k
	First      uint64 // index of the first window in the whole trace; 0, except in later segments of the trace
	Windows    [][]TimeCount
	// Lanes contains the number of line accesses of each thread in each window, in the order of
	// Totals.Threads. Lanes is nil if there are fewer than two threads.
	Lanes [][]uint64
}

// TimeCount is the number of line accesses in one bin of distances, for one site, data object or
// call path. The counts of a window are in ascending order of their keys, without zero counts.
type TimeCount struct {
	Key   TimeKey
	Count uint64
}

// TimeKey identifies a count. From the highest to the lowest bits, a key contains the TimePart, the
// index of the site, data object or call path, the TimeStack, and the bin.
type TimeKey uint64

// TimePart states whether a count belongs to a site, a data object or a call path.
type TimePart uint8

// The values of TimePart. Each comment names the list to which the index refers.
const (
	TimeSite   TimePart = iota // Sites.Code
	TimeObject                 // Sites.Data
	TimePath                   // Calls.Paths
	numTimeParts
)

// TimeStack selects the stack and the list to which a count belongs.
type TimeStack uint8

// The values of TimeStack.
const (
	TimeWhole TimeStack = iota // counts of Reuse, on the stack of the trace
	TimeFound                  // counts of CoherentReuse, on the coherent stacks of the cores, without coherence misses
	TimeLost                   // counts of CoherentReuse.Lost, which are coherence misses
	numTimeStacks
)

// ColdSiteBin is the bin of first accesses in a TimeKey.
const ColdSiteBin = SiteBins

const (
	timeBinBits   = 7
	timeStackBits = 2
	timeIndexBits = 32
	timeKeys      = uint64(numTimeParts) << (timeBinBits + timeStackBits + timeIndexBits)
)

// NewTimeKey returns the key of a count.
func NewTimeKey(part TimePart, index uint32, stack TimeStack, bin int) TimeKey {
	return TimeKey((uint64(part)<<timeIndexBits|uint64(index))<<timeStackBits|uint64(stack))<<timeBinBits | TimeKey(bin)
}

// Part returns whether the count belongs to a site, a data object or a call path.
func (k TimeKey) Part() TimePart { return TimePart(k >> (timeBinBits + timeStackBits + timeIndexBits)) }

// Index returns the index in the list that Part selects.
func (k TimeKey) Index() uint32 { return uint32(k >> (timeBinBits + timeStackBits)) }

// Stack returns the stack and the list to which the count belongs.
func (k TimeKey) Stack() TimeStack { return TimeStack(k>>timeBinBits) & (1<<timeStackBits - 1) }

// Bin returns the bin: see [SiteBin], or ColdSiteBin for first accesses.
func (k TimeKey) Bin() int { return int(k & (1<<timeBinBits - 1)) }

const (
	// MaxTimelineWindows is the maximum number of windows of a [Timeline].
	MaxTimelineWindows = 128
	// MostTimelinePlaces limits the size of a [Timeline]: it is the maximum sum, over all windows,
	// of the number of sites, data objects and call paths with accesses in the window. A single
	// window may exceed this number.
	MostTimelinePlaces = 1 << 17
)

// TimelineWindow returns the minimum number of references in a window for a trace of the given
// length: the smallest power of two that is at least MinWindow and yields at most
// MaxTimelineWindows windows.
func TimelineWindow(references uint64) uint64 {
	size := uint64(MinWindow)
	for (references+size-1)/size > MaxTimelineWindows {
		size *= 2
	}
	return size
}

func (t *Timeline) code(c *coder) {
	c.U64s(&t.References, &t.First)
	codec.Bounded(c.Coder, &t.Windows, MaxTimelineWindows, func(w *[]TimeCount) {
		next := uint64(0)
		codec.Slice(c.Coder, w, 2, func(n *TimeCount) {
			codec.Next(c.Coder, &n.Key, &next, timeKeys)
			c.U64(&n.Count)
		})
	})
	codec.Slice(c.Coder, &t.Lanes, len(t.Windows), func(lane *[]uint64) {
		codec.Members(c.Coder, lane, len(t.Windows), c.U64)
	})
}

// check checks that the windows cover the run, and that their counts add up to the counts
// of the run.
func (t *Timeline) check(p *Profile) error {
	if p.Sites == nil {
		return &CheckError{"the profile has a timeline, but no sites"}
	}
	start := uint64(0)
	if p.Segment != nil {
		start = p.Segment.Start
	}
	references := p.Totals.AllReferences()
	size := t.References
	if size < TimelineWindow(start+references) || size&(size-1) != 0 {
		return &CheckError{"the number of references in a window of the timeline is too small or not a power of two"}
	}
	windows := Windows{References: size}
	if first, n := windows.Span(start, references); t.First != first || uint64(len(t.Windows)) != n {
		return &CheckError{"the windows of the timeline do not cover the references"}
	}
	sum, ok := p.Within(0, len(t.Windows))
	if !ok || !sum.equal(p) {
		return &CheckError{"the windows of the timeline do not add up to the counts of the sites, data structures or call paths"}
	}
	return p.checkLanes(t)
}

func (p *Profile) checkLanes(t *Timeline) error {
	if t.Lanes == nil {
		return nil
	}
	if len(t.Lanes) != len(p.Totals.Threads) {
		return &CheckError{"the timeline and the trace have different numbers of threads"}
	}
	var want, got counter
	for i := range p.Sites.Code {
		want.add(p.Sites.Code[i].Reuse.Accesses())
	}
	for _, lane := range t.Lanes {
		for _, n := range lane {
			got.add(n)
		}
	}
	if got != want {
		return &CheckError{"the accesses by thread in the timeline do not add up to all accesses"}
	}
	return nil
}

// Bounds returns the range of references in the windows [from, to): the number of the first
// reference, and the number of the first reference after these windows. The parameter "references"
// is the total number of references in the run.
func (t *Timeline) Bounds(from, to int, references uint64) (first, end uint64) {
	return (t.First + uint64(from)) * t.References, min((t.First+uint64(to))*t.References, references)
}

// Span contains the counts of consecutive windows of a [Timeline].
type Span struct {
	Code, Data, Paths []CoherentSpan // in the order of Sites.Code, Sites.Data and Calls.Paths
}

// CoherentSpan contains the counts of one site, data object or call path: on the stack of the
// trace, and on the coherent stacks of the cores. Only the fields Cold, Bins and Lost are set.
type CoherentSpan struct {
	Reuse   Reuse
	OnCores CoherentReuse
}

// Within returns the counts of the windows [from, to) of the timeline. The result ok is false if
// the profile has no timeline, or if a window refers to an unknown site, data object or call path.
func (p *Profile) Within(from, to int) (s Span, ok bool) {
	t := p.Timeline
	if t == nil || p.Sites == nil || from < 0 || from > to || to > len(t.Windows) {
		return s, false
	}
	s.Code, s.Data = make([]CoherentSpan, len(p.Sites.Code)), make([]CoherentSpan, len(p.Sites.Data))
	if p.Calls != nil {
		s.Paths = make([]CoherentSpan, len(p.Calls.Paths))
	}
	all := 0
	for _, w := range t.Windows[from:to] {
		all += len(w)
	}
	counts := make([]TimeCount, 0, all)
	for _, w := range t.Windows[from:to] {
		counts = append(counts, w...)
	}
	counts = SumTimes(counts)
	bins := make([]BinCount, 0, len(counts))
	for i := 0; i < len(counts); {
		k := counts[i].Key
		list := [][]CoherentSpan{s.Code, s.Data, s.Paths}[k.Part()]
		if uint64(k.Index()) >= uint64(len(list)) || k.Stack() >= numTimeStacks {
			return s, false
		}
		at, first, cold := &list[k.Index()], len(bins), uint64(0)
		for ; i < len(counts) && counts[i].Key>>timeBinBits == k>>timeBinBits; i++ {
			switch bin := counts[i].Key.Bin(); {
			case bin < SiteBins:
				bins = append(bins, BinCount{uint8(bin), counts[i].Count})
			case bin == ColdSiteBin && k.Stack() != TimeLost:
				cold = counts[i].Count
			default:
				return s, false
			}
		}
		own := bins[first:len(bins):len(bins)]
		if len(own) == 0 {
			own = nil
		}
		switch k.Stack() {
		case TimeWhole:
			at.Reuse.Cold, at.Reuse.Bins = cold, own
		case TimeFound:
			at.OnCores.Cold, at.OnCores.Bins = cold, own
		case TimeLost:
			at.OnCores.Lost = own
		}
	}
	return s, true
}

// SumTimes sorts counts by key, adds up counts with the same key, and removes counts of zero. Sums
// are modulo 2^64. The result shares memory with the parameter "counts".
func SumTimes(counts []TimeCount) []TimeCount {
	slices.SortFunc(counts, func(a, b TimeCount) int { return cmp.Compare(a.Key, b.Key) })
	sums := counts[:0]
	for _, c := range counts {
		if n := len(sums); n > 0 && sums[n-1].Key == c.Key {
			sums[n-1].Count += c.Count
		} else {
			sums = append(sums, c)
		}
	}
	return slices.DeleteFunc(sums, func(c TimeCount) bool { return c.Count == 0 })
}

// equal reports whether the counts of the span are equal to the counts of the whole run.
func (s *Span) equal(p *Profile) bool {
	c := p.Sites.Coherent
	same := func(at *CoherentSpan, reuse *Reuse, onCores *CoherentReuse) bool {
		if onCores == nil {
			onCores = &CoherentReuse{}
		}
		return at.Reuse.Cold == reuse.Cold && slices.Equal(at.Reuse.Bins, reuse.Bins) &&
			at.OnCores.Cold == onCores.Cold && slices.Equal(at.OnCores.Bins, onCores.Bins) && slices.Equal(at.OnCores.Lost, onCores.Lost)
	}
	for i := range s.Code {
		var onCores *CoherentReuse
		if c != nil {
			onCores = &c.Code[i]
		}
		if !same(&s.Code[i], &p.Sites.Code[i].Reuse, onCores) {
			return false
		}
	}
	for i := range s.Data {
		var onCores *CoherentReuse
		if c != nil {
			onCores = &c.Data[i]
		}
		if !same(&s.Data[i], &p.Sites.Data[i].Reuse, onCores) {
			return false
		}
	}
	for i := range s.Paths {
		if at := &p.Calls.Paths[i]; !same(&s.Paths[i], &at.Reuse, &at.OnCores) {
			return false
		}
	}
	return true
}
