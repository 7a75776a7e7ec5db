// Package locality computes a trace's stack-distance histograms: for each line size and each kind
// of reference, the number of accesses at each LRU stack distance (MODELS §2). The package also
// computes binned histograms for windows of the run.
//
//  1. A batch that extends beyond the end of a window is divided at the end of the window.
//  2. References are divided into line accesses. Most references make one line access.
//  3. A stack.Model for each line size computes the stack distance of each line access.
//  4. Distances are counted by kind. Distances below topDepths are counted in small arrays. All
//     other distances are counted in a profile.Histogram and in the bins of the window.
//  5. The distance shows whether an access is the first access to its line in a window. The number
//     of these first accesses is the size of the window's working set.
//  6. On request, the model is a stack.Sets, which also counts the stack distances within each set
//     (MODELS §4).
//
// On request, the analysis also keeps the data for joining segments: the first touches, in order,
// and the final stack (MODELS §9).
package locality

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis is the locality analysis for one or several line sizes.
type Analysis struct {
	sizes []*lineSize
	start uint64 // number of references in earlier segments
	done  uint64 // number of references of this segment that have been analysed

	SetNumbers stack.SetNumbers // numbers of sets that the set tables cover
}

var (
	_ contract.Analysis      = (*Analysis)(nil)
	_ contract.LineCounter   = (*Analysis)(nil)
	_ contract.PieceConsumer = (*Analysis)(nil)
	_ contract.Spiller       = (*Analysis)(nil)
)

// New returns an analysis for line sizes in bytes, ascending. The parameter start is the number of
// references in earlier segments. If the parameter mergeable is true, first touches are recorded.
// The parameter sets selects the numbers of sets that the set tables cover; 0 means no set tables.
func New(lineBytes []uint32, start uint64, mergeable bool, sets stack.SetNumbers) *Analysis {
	a := &Analysis{start: start, SetNumbers: sets}
	for _, n := range lineBytes {
		s := &lineSize{Splitter: Splitter{Shift: uint(bits.TrailingZeros32(n))}, mergeable: mergeable, numbers: sets}
		if sets != 0 {
			s.sets = stack.NewSets(sets)
			s.model = s.sets
		} else {
			s.model = stack.NewExact()
		}
		s.begin(start)
		a.sizes = append(a.sizes, s)
	}
	return a
}

// begin sets the number of the reference at which the segment and its first window begin.
func (s *lineSize) begin(start uint64) {
	s.firstTouches.Reset(start)
	s.windows.References = profile.WindowSize(start)
	s.windows.First = start / s.windows.References
	s.working.start, s.working.least = start, levelOf(s.windows.References)
	s.working.top = s.working.least
}

// Lines returns the number of distinct lines so far, at the smallest line size.
func (a *Analysis) Lines() uint64 {
	var lines uint64
	for _, cold := range a.sizes[0].cold {
		lines += cold
	}
	return lines
}

// Takes implements [contract.Analysis]. Locality reads only references.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return 0, false, false }

// Close implements [contract.Analysis].
func (a *Analysis) Close() {
	for _, s := range a.sizes {
		s.table, s.marked = s.setTable(), s.markedTable()
		s.model, s.sets, s.shelved = nil, nil, nil
	}
}

// Consume implements [contract.Analysis].
func (a *Analysis) Consume(b *trace.Batch) error {
	EachWindow(b.Len(), a.start+a.done, func(lo, hi int, at, size uint64) {
		for _, s := range a.sizes {
			s.windowFor(at, size)
			s.accesses.Batch = b
			s.Each(b, lo, hi, func(first, n int, kinds []trace.Kind, rows []uint32) {
				s.accesses.First = first
				s.settle(n, kinds, rows, at+uint64(first-lo))
			})
		}
	})
	a.done += uint64(b.Len())
	return nil
}

// ConsumePiece implements [contract.PieceConsumer].
func (a *Analysis) ConsumePiece(b *trace.Batch, from, end uint64) {
	if from == 0 {
		a.done++
	}
	at := a.start + a.done - 1
	addrs, bytes := []trace.Addr{b.Addr[0] + from}, []uint32{uint32(end - from)}
	for _, s := range a.sizes {
		s.windowFor(at, profile.WindowSize(at+1))
		s.accesses.Batch, s.accesses.First = b, 0
		s.Split(addrs, bytes, b.Kind, func(n int, kinds []trace.Kind, rows []uint32) { s.settle(n, kinds, rows, at) })
	}
}

const (
	topDepths = 16 // distances below topDepths are counted in arrays
	kindSlots = 8  // a power of two ≥ trace.NumKinds, so that masks replace bounds checks
)

// lineSize is the analysis for one line size.
type lineSize struct {
	Splitter
	model     stack.Model
	stopped   bool              // followers receive accesses without distances
	numbers   stack.SetNumbers  // the numbers of sets that the set table covers
	sets      *stack.Sets       // the model, if it counts stack distances within sets; otherwise nil
	shelved   *stack.Shelved    // the stack, if it is in a spill store and there is no model; otherwise nil
	table     *profile.SetTable // counts that the model does not contain; nil: none
	mergeable bool
	followers []Follower
	marker    Marker           // nil: no accesses are marked
	marked    profile.SetTable // counts of the marked accesses, after the model has been closed

	// top counts the accesses of kind k at distance d < 16, at index k<<4 | d. Even and odd
	// accesses use different tables, because otherwise an increment of a counter often has to wait
	// for the previous store to the same counter.
	top  [2][kindSlots * topDepths]uint64
	deep [trace.NumKinds]profile.Histogram
	cold [trace.NumKinds]uint64

	windows profile.Windows
	counted [topDepths]uint64 // sum of the counts in top over all kinds, up to the end of the last closed window
	working workingSets

	firstTouches profile.FirstTouches

	accesses  Accesses // buffer for the followers
	distances [MaxLines]uint32
}

// settle counts the first n accesses in s.Lines. Access i belongs to the reference with the number
// at + origin[i], or at + i if origin is nil.
func (s *lineSize) settle(n int, kinds []trace.Kind, origin []uint32, at uint64) {
	distances := s.distances[:n]
	s.accesses.Lines, s.accesses.Distances, s.accesses.Rows, s.accesses.Reference = s.Lines[:n], nil, origin, at
	if s.stopped {
		s.marker.Mark(&s.accesses)
	} else {
		s.measure(s.Lines[:n], distances)
		s.accesses.Distances = distances
	}
	for _, f := range s.followers {
		f.Follow(&s.accesses)
	}
	if s.stopped {
		return
	}
	kinds = kinds[:n]
	level := s.working.least
	least := s.working.smallestNoted(level)
	for i, d := range distances {
		if uint64(d) >= least {
			least = s.working.countAccess(level, uint64(d))
		}
		if d < topDepths {
			s.top[i&1][int(kinds[i]&(kindSlots-1))<<4|int(d)]++
			continue
		}
		kind := kinds[i]
		row := &s.windows.Rows[len(s.windows.Rows)-1]
		if d != stack.Cold {
			s.deep[kind].Add(uint64(d))
			row[profile.DistanceBin(uint64(d))]++
			continue
		}
		s.cold[kind]++
		row[profile.ColdBin]++
		if s.mergeable {
			reference := at + uint64(i)
			if origin != nil {
				reference = at + uint64(origin[i])
			}
			s.firstTouches.Append(profile.FirstTouch{Line: s.Lines[i], Reference: reference, Kind: kind})
		}
	}
}

// windowFor appends a row if the given reference lies in a new window. The last row then belongs to
// the window that contains the reference. The parameter size is the number of references in a
// window.
func (s *lineSize) windowFor(reference, size uint64) {
	w := &s.windows
	if n := w.First + uint64(len(w.Rows)); n > reference/w.References {
		return // the reference is still in the last window
	}
	s.closeRow()
	coarsen(w, size)
	if w.First+uint64(len(w.Rows)) <= reference/w.References {
		w.Rows = append(w.Rows, profile.WindowRow{})
		s.working.beginWindows(reference, levelOf(w.References))
	}
}

// closeRow completes the last row: it adds the accesses that have been counted in top since the
// previous row was completed.
func (s *lineSize) closeRow() {
	for d := range topDepths {
		sum := s.topAt(d)
		if since := sum - s.counted[d]; since != 0 {
			s.windows.Rows[len(s.windows.Rows)-1][profile.DistanceBin(uint64(d))] += since
			s.counted[d] = sum
		}
	}
}

// topAt returns the number of accesses at distance d, which must be below topDepths.
func (s *lineSize) topAt(d int) (sum uint64) {
	for k := range trace.NumKinds {
		sum += s.top[0][k<<4|d] + s.top[1][k<<4|d]
	}
	return sum
}

func coarsen(w *profile.Windows, size uint64) {
	for w.References < size {
		first := w.First / 2
		rows := w.Rows[:0]
		for i, row := range w.Rows {
			to := (w.First+uint64(i))/2 - first
			if to == uint64(len(rows)) {
				rows = append(rows, row)
				continue
			}
			for bin, count := range row {
				rows[to][bin] += count
			}
		}
		w.References, w.First, w.Rows = 2*w.References, first, rows
	}
}

// MaxLines is the maximum number of line accesses that are processed at once.
const MaxLines = 4096

// Splitter divides references into accesses to lines of 1 << Shift bytes.
type Splitter struct {
	Shift uint
	Lines [MaxLines]trace.Line

	kinds [MaxLines]trace.Kind
	rows  [MaxLines]uint32
}

// oneLineEach writes the line of each reference to Lines, for at most MaxLines references.
// oneLineEach returns false if a reference extends into a second line.
func (s *Splitter) oneLineEach(addrs []trace.Addr, bytes []uint32) bool {
	lineBytes, shift := int64(1)<<(s.Shift&63), s.Shift&63
	lines := s.Lines[:len(addrs)]
	bytes = bytes[:len(addrs)]
	var room int64 // negative if any reference extends into a second line
	for i, addr := range addrs {
		lines[i] = addr >> shift
		room |= lineBytes - int64(addr&uint64(lineBytes-1)) - int64(bytes[i])
	}
	return room >= 0
}

// Split writes every line of every reference to Lines. Split calls the function settle whenever
// Lines is full, and at the end. The function receives the number of accesses, their kinds, and the
// rows of their references.
func (s *Splitter) Split(addrs []trace.Addr, bytes []uint32, kinds []trace.Kind, settle func(n int, kinds []trace.Kind, rows []uint32)) {
	n := 0
	for i, addr := range addrs {
		line := addr >> s.Shift
		last := (addr + uint64(max(bytes[i], 1)) - 1) >> s.Shift
		for ; ; line++ {
			s.Lines[n], s.kinds[n], s.rows[n] = line, kinds[i], uint32(i)
			if n++; n == MaxLines {
				settle(n, s.kinds[:n], s.rows[:n])
				n = 0
			}
			if line >= last {
				break
			}
		}
	}
	settle(n, s.kinds[:n], s.rows[:n])
}

// Each divides the rows [lo, hi) of batch b into line accesses, and passes these accesses to the
// function settle, at most MaxLines rows at a time. The function receives the first row, the number
// of accesses, the kinds of the accesses, and the row of each access relative to the first row. The
// list of rows is nil if each row makes exactly one access.
func (s *Splitter) Each(b *trace.Batch, lo, hi int, settle func(first, n int, kinds []trace.Kind, rows []uint32)) {
	for ; lo < hi; lo += MaxLines {
		n := min(hi-lo, MaxLines)
		addrs, bytes, kinds := b.Addr[lo:lo+n], b.Bytes[lo:lo+n], b.Kind[lo:lo+n]
		if s.oneLineEach(addrs, bytes) {
			settle(lo, n, kinds, nil)
			continue
		}
		s.Split(addrs, bytes, kinds, func(n int, kinds []trace.Kind, rows []uint32) { settle(lo, n, kinds, rows) })
	}
}

// EachWindow divides consecutive references at the ends of windows. The parameter reference is the
// number of the first of these references. EachWindow calls a function (each) for every group of
// references in the same window. The function receives the rows [lo, hi) of the group, the number
// of the first reference in the group, and the number of references in a window.
func EachWindow(rows int, reference uint64, each func(lo, hi int, reference, size uint64)) {
	for lo := 0; lo < rows; {
		size, hi := profile.WindowSize(reference+1), rows
		if room := size - reference%size; uint64(hi-lo) > room {
			hi = lo + int(room)
		}
		each(lo, hi, reference, size)
		reference += uint64(hi - lo)
		lo = hi
	}
}
