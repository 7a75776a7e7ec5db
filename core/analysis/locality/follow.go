package locality

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Follower receives the accesses of one line size with their stack distances.
type Follower interface {
	// Follow receives the next accesses, in order. The slices in the parameter a are valid until
	// Follow returns.
	Follow(a *Accesses)
	// Resolve receives the first touches of an appended segment, and the distances of these touches
	// on the stack as it was at the beginning of the segment. The distance is stack.Cold if the
	// stack does not contain the line. Resolve is called in the order of the touches, before the
	// segment's lines are pushed onto the stack.
	Resolve(touches []profile.FirstTouch, distances []uint32)
}

// Marker is a follower that selects the accesses that set tables count separately.
type Marker interface {
	// Mark reports which of the next accesses are counted separately; nil means none. The distances
	// of the accesses are not known yet. The result is valid until the next call.
	Mark(a *Accesses) []bool
	// MarkFirst does the same as Mark for the first touches of an appended segment.
	MarkFirst(touches []profile.FirstTouch) []bool
}

// Accesses contains line accesses with their stack distances.
type Accesses struct {
	Lines     []trace.Line
	Distances []uint32 // stack.Cold for the first access to a line
	// Batch contains the references of the accesses: see Row.
	Batch *trace.Batch
	First int
	Rows  []uint32
	// Reference is the number of the reference in row First, counted from the beginning of the
	// trace.
	Reference uint64
}

// Row returns the row number, in the batch, of the reference that makes access i.
func (a *Accesses) Row(i int) int {
	if a.Rows == nil {
		return a.First + i
	}
	return a.First + int(a.Rows[i])
}

// Feed adds a follower for a line size. Followers are called in the order in which they were added.
func (a *Analysis) Feed(lineBytes uint32, f Follower) {
	if s := a.sizeOf(lineBytes); s != nil {
		s.followers = append(s.followers, f)
		if m, ok := f.(Marker); ok && s.sets != nil {
			s.marker = m
		}
	}
}

// At returns the result so far for a line size, and the lines on the LRU stack, most recently used
// first.
func (a *Analysis) At(lineBytes uint32) (profile.Locality, []trace.Line) {
	s := a.sizeOf(lineBytes)
	return s.result(), s.model.Stack()
}

// Stop ends the computation of distances for a line size. The line size's marker and followers
// still receive all later accesses, but without distances.
func (a *Analysis) Stop(lineBytes uint32) { a.sizeOf(lineBytes).stopped = true }

// FirstTouches returns the first touches that have been recorded for a line size.
func (a *Analysis) FirstTouches(lineBytes uint32) *profile.FirstTouches {
	return &a.sizeOf(lineBytes).firstTouches
}

// Table returns the current set table for a line size, or nil if there is no table.
func (a *Analysis) Table(lineBytes uint32) *profile.SetTable { return a.sizeOf(lineBytes).setTable() }

// Marked returns the counts of the accesses that are counted separately.
func (a *Analysis) Marked(lineBytes uint32) profile.SetTable {
	return a.sizeOf(lineBytes).markedTable()
}

func (s *lineSize) markedTable() profile.SetTable {
	if s.sets == nil {
		return s.marked
	}
	return *s.tableOf(s.sets.MarkedDepths())
}

func (s *lineSize) measure(lines []trace.Line, distances []uint32) {
	if s.marker != nil {
		if marked := s.marker.Mark(&s.accesses); marked != nil {
			s.sets.DistancesMarked(lines, marked, distances)
			return
		}
	}
	s.model.Distances(lines, distances)
}

// distancer computes stack distances: see [stack.Model].
type distancer interface {
	Distances(lines []trace.Line, out []uint32)
}

// measureFirst uses a model to compute the stack distances of an appended segment's first touches.
func (s *lineSize) measureFirst(touches []profile.FirstTouch, on distancer) {
	lines, distances := s.Lines[:len(touches)], s.distances[:len(touches)]
	for i, t := range touches {
		lines[i] = t.Line
	}
	if s.marker != nil {
		if marked := s.marker.MarkFirst(touches); marked != nil {
			s.sets.DistancesMarked(lines, marked, distances)
			return
		}
	}
	on.Distances(lines, distances)
}

// StackOf returns the LRU stack for a line size from the saved state in a profile, or nil.
func StackOf(p *profile.Profile, lineBytes uint32) []trace.Line {
	for i := range p.Locality {
		if p.Locality[i].LineBytes == lineBytes && i < len(p.Segment.Lines) {
			return p.Segment.Lines[i].Stack
		}
	}
	return nil
}

// sizeOf returns the analysis for a line size, or nil.
func (a *Analysis) sizeOf(lineBytes uint32) *lineSize {
	for _, s := range a.sizes {
		if s.Shift == uint(bits.TrailingZeros32(lineBytes)) {
			return s
		}
	}
	return nil
}
