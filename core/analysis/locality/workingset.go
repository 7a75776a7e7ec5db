package locality

import (
	"math"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// workingSets counts the distinct lines of each window of references, Denning's working set
// (The working set model for program behavior, 1968).
//
// An access is its line's first in a window if its distance is at least the number of lines in the
// window: then all of them are above the line on the LRU stack. So the count itself decides,
// without the time of the line's last access. A window within another never has more lines, so the
// search begins at the smallest window and ends at the first that contains the line.
//
// Windows double as the trace grows, and the lines of two neighbours do not add up, so larger
// windows are counted from the beginning. Level j consists of windows of MinWindow << j references;
// the rows are the lowest level in use, and the highest is the first level whose window contains
// the whole segment.
type workingSets struct {
	off        bool // not counted: the run that this one continues did not count
	start      uint64
	least, top int
	open       [levels]uint64   // lines of the window that the run is in
	closed     [levels][]uint64 // of the windows before it
}

const levels = 64 - 10 + 1 // the last level's window contains every reference

func levelOf(references uint64) int {
	return bits.TrailingZeros64(references / profile.MinWindow)
}

// window returns the number of a reference's window at a level.
func window(level int, reference uint64) uint64 { return reference / profile.MinWindow >> level }

// begin starts the windows that begin with a reference, and drops levels below least.
func (w *workingSets) begin(at uint64, least int) {
	w.raise(least, at)
	for j := w.least; j <= w.top; j++ {
		if at > w.start && window(j, at) != window(j, at-1) {
			w.closed[j] = append(w.closed[j], w.open[j])
			w.open[j] = 0
		}
	}
}

// raise uses levels up to the first whose window contains a reference and everything before it, and
// drops levels below least.
func (w *workingSets) raise(least int, at uint64) {
	for w.top < least || window(w.top, w.start) != window(w.top, at) {
		w.top++
		w.open[w.top] = w.open[w.top-1]
	}
	for ; w.least < least; w.least++ {
		w.closed[w.least] = nil
	}
}

// from returns the least distance that has to be noted at a level.
func (w *workingSets) from(level int) uint64 {
	if w.off {
		return math.MaxUint64
	}
	return w.open[level]
}

// note counts an access at distance d in the windows from level on, and returns the least
// distance to note at that level next.
func (w *workingSets) note(level int, d uint64) uint64 {
	for j := level; j <= w.top && d >= w.open[j]; j++ {
		w.open[j]++
	}
	return w.open[level]
}

// of returns the lines of every window of a level so far.
func (w *workingSets) of(level int) []uint64 {
	return append(slices.Clone(w.closed[level]), w.open[level])
}

// result returns the working sets of the rows, and of the levels above, which a segment keeps.
func (w *workingSets) result(windows int) (rows []uint64, above [][]uint64) {
	if w.off || windows == 0 {
		return nil, nil
	}
	for j := w.least + 1; j <= w.top; j++ {
		above = append(above, w.of(j))
	}
	return w.of(w.least), above
}

// restore continues from a result.
func (w *workingSets) restore(rows *profile.Windows, above [][]uint64) {
	w.least = levelOf(rows.References)
	w.top = w.least
	if rows.Distinct == nil {
		w.off = len(rows.Rows) > 0
		return
	}
	for i, lines := range append([][]uint64{rows.Distinct}, above...) {
		w.top = w.least + i
		last := len(lines) - 1
		w.closed[w.top], w.open[w.top] = slices.Clone(lines[:last]), lines[last]
	}
}

// joint counts the windows that contain the end of one segment and the beginning of the next: lines
// that the next one touched first are new to them unless they were in their part of this one.
type joint struct {
	*workingSets
	start uint64 // of the next segment
}

// join begins to append a segment with these rows. resumed: it begins within the last reference of
// the segment before.
func (w *workingSets) join(start, references uint64, resumed bool, rows *profile.Windows) joint {
	if references > 0 {
		w.off = w.off || rows.Distinct == nil
		if resumed {
			w.raise(levelOf(rows.References), start)
		} else {
			w.begin(start, levelOf(rows.References))
		}
		w.raise(w.least, start+references-1)
	}
	return joint{w, start}
}

func (j joint) note(reference uint64, d uint32) {
	from := bits.Len64(window(0, reference) ^ window(0, j.start))
	j.workingSets.note(max(from, j.least), uint64(d))
}

// close continues with the windows that are completely in the next segment.
func (j joint) close(rows *profile.Windows, above [][]uint64) {
	w := j.workingSets
	if w.off {
		return
	}
	for i, lines := range append([][]uint64{rows.Distinct}, above...) {
		level := w.least + i
		if last := len(lines) - 1; last > 0 {
			w.closed[level] = append(append(w.closed[level], w.open[level]), lines[1:last]...)
			w.open[level] = lines[last]
		}
	}
}
