package locality

import (
	"errors"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Budget contains the memory limit of the stacks and the spill store.
type Budget = contract.Budget

// Shelved is the locality analysis of a trace whose lines do not fit in memory. Shelved divides the
// trace into segments that fit in memory, and appends each segment to a stack in a spill store. The
// result equals the result of [Analysis].
type Shelved struct {
	near   *Analysis // analysis of the current segment
	far    *Analysis // analysis of all earlier segments
	budget Budget
	room   int    // maximum number of lines of a segment
	lines  uint64 // number of distinct lines before the current segment, at the smallest line size
	// resumed is true if the current segment begins within the last reference of the previous
	// segment.
	resumed bool
	failed  error
}

var (
	_ contract.Analysis      = (*Shelved)(nil)
	_ contract.LineCounter   = (*Shelved)(nil)
	_ contract.PieceConsumer = (*Shelved)(nil)
	_ contract.Settler       = (*Shelved)(nil)
)

// leastRoom is the minimum number of lines of a segment. The minimum is large, because the cost of
// appending a segment grows with the total number of lines.
const leastRoom = 1 << 16

// NewShelved is like [New], but its stacks are in a spill store, which must be empty.
func NewShelved(lineBytes []uint32, sets stack.SetNumbers, b Budget) *Shelved {
	a := &Shelved{near: New(lineBytes, 0, true, sets), far: New(lineBytes, 0, false, 0), budget: b}
	for i, s := range a.far.sizes {
		s.shelved, s.numbers = stack.NewShelved(a.shelf(i), sets), sets
		s.model = nil
	}
	a.makeRoom()
	return a
}

// Spill returns a [Shelved] that continues this analysis with its stacks in a spill store, which
// must be empty. Afterwards, the old analysis and its followers must not be used. If the store
// fails, the next method call returns the error.
func (a *Analysis) Spill(b Budget) contract.Analysis {
	var lineBytes []uint32
	for _, s := range a.sizes {
		lineBytes = append(lineBytes, 1<<s.Shift)
		s.followers, s.marker = nil, nil
	}
	to := NewShelved(lineBytes, a.SetNumbers, b)
	references := a.start + a.done
	for i, s := range a.sizes {
		l, above := s.wholeResult()
		if err := to.far.sizes[i].shelved.Adopt(s.model.(stack.Segment)); err != nil && to.failed == nil {
			to.failed = err
		}
		*s = lineSize{} // free the memory of this line size before the next line size is converted
		to.far.sizes[i].continueFrom(&l, above)
		to.near.sizes[i].beginSegment(references)
	}
	to.far.done, to.near.start = references, references
	to.lines = uint64(to.far.sizes[0].shelved.Lines())
	to.makeRoom()
	return to
}

func (a *Shelved) shelf(i int) stack.Shelf {
	return shelfOf{a.budget.Shelf, uint32(i), uint32(len(a.far.sizes))}
}

type shelfOf struct {
	stack.Shelf
	first, step uint32
}

func (s shelfOf) Write(run, block uint32, data []byte) error {
	return s.Shelf.Write(s.first+run*s.step, block, data)
}

func (s shelfOf) Read(run, block uint32) ([]byte, error) {
	return s.Shelf.Read(s.first+run*s.step, block)
}

func (s shelfOf) Drop(run, block uint32) error { return s.Shelf.Drop(s.first+run*s.step, block) }

const touchBytes = 24 // upper limit for the memory of a first touch: its encoded form has at most 20 bytes

// makeRoom sets the maximum size of segments. Segments may use the part of the memory budget that
// the model of all lines does not need.
func (a *Shelved) makeRoom() {
	taken := uint64(0)
	for i := range a.far.sizes {
		n, f := a.near.sizes[i], a.far.sizes[i]
		taken += f.shelved.MemoryBytes()
		if n.sets != nil {
			taken += f.shelved.MemoryBytes()
		}
		for k := range f.deep {
			taken += f.deep[k].MemoryBytes()
		}
	}
	line := uint64(len(a.near.sizes)) * (stack.SegmentLineBytes + touchBytes)
	a.room = int(max((a.budget.Bytes-min(taken, a.budget.Bytes))/line, leastRoom))
	if a.budget.Lines > 0 {
		a.room = min(a.room, a.budget.Lines)
	}
}

// Lines returns the number of distinct lines so far, at the smallest line size. Lines counts the
// lines of the current segment only if this segment is the first.
func (a *Shelved) Lines() uint64 {
	return max(a.lines, a.near.Lines())
}

// Takes implements [contract.Analysis].
func (a *Shelved) Takes() (events trace.Kinds, sites, pcs bool) { return 0, false, false }

// Close implements [contract.Analysis].
func (a *Shelved) Close() {
	_ = a.Settle() // Result reports the error
	for _, s := range a.near.sizes {
		*s = lineSize{}
	}
	a.far.Close()
}

// Consume implements [contract.Analysis].
func (a *Shelved) Consume(b *trace.Batch) error {
	// Consume the batch even after an error, because its rows have already been counted.
	if err := a.near.Consume(b); err != nil {
		return err
	}
	if a.failed != nil || a.near.sizes[0].model.Lines() < a.room {
		return a.failed
	}
	return a.Settle()
}

// ConsumePiece implements [contract.PieceConsumer]. If a segment ends in the middle of a
// reference, the next segment begins with the same reference.
func (a *Shelved) ConsumePiece(b *trace.Batch, from, end uint64) {
	if a.failed != nil {
		return
	}
	if from > 0 && a.near.done == 0 { // the previous segment ended within this reference
		a.near.start--
		a.near.done, a.resumed = 1, true
		for _, s := range a.near.sizes {
			s.begin(a.near.start)
		}
	}
	a.near.ConsumePiece(b, from, end)
	if a.near.sizes[0].model.Lines() >= a.room {
		_ = a.Settle() // the next call reports the error
	}
}

// Settle appends the current segment. Settle fails if the spill store fails.
func (a *Shelved) Settle() error {
	references := a.near.done
	if references == 0 {
		return a.failed
	}
	for i, f := range a.far.sizes {
		a.append(a.near.sizes[i], f, references)
	}
	a.lines = uint64(a.far.sizes[0].shelved.Lines())
	a.near.start, a.near.done, a.resumed = a.near.start+references, 0, false
	a.far.done = a.near.start
	a.makeRoom()
	return a.failed
}

// append appends a segment and moves its lines to the spill store. If the store fails, the
// segment's first touches are counted as cold misses.
func (a *Shelved) append(n, f *lineSize, references uint64) {
	l, above := n.wholeResult()
	if err := f.shelved.Join(n.model.(stack.Segment), n.touchedLines); err != nil && a.failed == nil {
		a.failed = err
	}
	f.closeRow()
	f.add(&l)
	f.appendWindows(&l.Windows)
	f.working.off = f.working.off || a.failed != nil
	j := f.working.join(a.near.start, references, a.resumed, &l.Windows)
	if a.failed == nil {
		f.replayTouches(&n.firstTouches, j, f.shelved)
	}
	j.addInnerWindows(&l.Windows, above)
	f.recount()
	n.beginSegment(a.near.start + references)
}

// touchedLines yields each line of the segment once, in the order of first touches.
func (s *lineSize) touchedLines(yield func(trace.Line) bool) {
	for t := range s.firstTouches.All() {
		if !yield(t.Line) {
			return
		}
	}
}

// beginSegment begins a new segment and reuses the memory of the previous segment.
func (s *lineSize) beginSegment(start uint64) {
	*s = lineSize{Splitter: Splitter{Shift: s.Shift}, model: s.model, numbers: s.numbers, sets: s.sets, mergeable: true, firstTouches: s.firstTouches}
	if s.sets != nil {
		s.sets.Reset()
	} else {
		s.model.(*stack.Exact).Reset()
	}
	s.begin(start)
}

// Result implements [contract.Analysis]. The spill store keeps the data of a saved state until
// Result has been called two more times with state = true.
func (a *Shelved) Result(p *profile.Profile, state bool) {
	if a.near.sizes[0].model != nil {
		_ = a.Settle()
	}
	a.far.Result(p, false)
	if state {
		if err := a.keepState(p.Segment); err != nil && a.failed == nil {
			a.failed = err
		}
	}
	if a.failed != nil && !p.State.Partial {
		p.State = profile.State{Partial: true, Reason: "lines that did not fit in memory could not be stored on disk, so accesses to these lines were counted as cold misses: " + a.failed.Error()}
	}
}

// keepState stores, in a segment, the data that Restore needs. It also makes the spill store keep
// the data that the store currently contains.
func (a *Shelved) keepState(segment *profile.Segment) error {
	c := codec.Writer([]byte{})
	for _, s := range a.far.sizes {
		_, above := s.working.result(len(s.windows.Rows))
		segment.Lines = append(segment.Lines, profile.SegmentLines{WorkingSets: above})
		state, err := s.shelved.Keep()
		if err != nil {
			return err
		}
		c.Bytes(&state)
	}
	segment.Shelved = c.Out
	if s, ok := a.budget.Shelf.(interface{ Sync() error }); ok {
		return s.Sync()
	}
	return nil
}

// Restore implements [contract.Analysis]. The analysis must use the spill store of the saved run.
func (a *Shelved) Restore(p *profile.Profile) error {
	states := codec.NewDecoder(p.Segment.Shelved)
	for i, s := range a.far.sizes {
		l := &p.Locality[i]
		var err error
		if s.shelved, err = stack.RestoreShelved(a.shelf(i), a.near.SetNumbers, states.Bytes()); err != nil {
			return err
		}
		if uint64(s.shelved.Lines()) != l.Lines() {
			return stack.ErrShelvedState
		}
		s.continueFrom(l, p.Segment.Lines[i].WorkingSets)
		a.near.sizes[i].beginSegment(p.Totals.AllReferences())
	}
	a.far.done, a.near.start = p.Totals.AllReferences(), p.Totals.AllReferences()
	a.lines = uint64(a.far.sizes[0].shelved.Lines())
	a.makeRoom()
	return nil
}

// Append implements [contract.Analysis].
func (a *Shelved) Append(*profile.Profile) error { return errNotMergeable }

var errNotMergeable = errors.New("a segment cannot be appended to an analysis that has stored lines on disk")
