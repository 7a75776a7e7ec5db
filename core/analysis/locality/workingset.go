package locality

import (
	"math"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
)

// workingSets counts the distinct lines in each window of references: Denning's working set (The
// working set model for program behavior, 1968).
//
// The lines of the current window are on top of the LRU stack. If the stack distance of an access
// is less than the number of distinct lines in the window so far, the window already contains the
// line. Otherwise, the access is the first access to its line in the window. It is therefore
// sufficient to know the number of distinct lines, and the time of each line's last access is not
// needed. A window inside a larger window never has more lines than the larger window. The search
// therefore begins at the smallest window, and ends at the first window that already contains the
// line.
//
// The window size doubles as the trace grows. The working set of a window cannot be computed from
// the working sets of its two halves, so larger windows are also counted from the beginning. Level
// j consists of windows of MinWindow << j references. The lowest level in use yields the rows of
// the result. On the highest level, one window contains the whole segment.
type workingSets struct {
	off        bool // nothing is counted, because the run continues a saved run without working sets
	start      uint64
	least, top int
	open       [levels]uint64   // number of lines in the current window, by level
	closed     [levels][]uint64 // number of lines in earlier windows, by level
}

const levels = 64 - 10 + 1 // on the last level, a single window contains all possible references

func levelOf(references uint64) int {
	return bits.TrailingZeros64(references / profile.MinWindow)
}

// window returns the index of the window that contains a reference, on the given level.
func window(level int, reference uint64) uint64 { return reference / profile.MinWindow >> level }

// beginWindows begins a new window on each level on which a window begins at the given reference,
// and drops the levels below least.
func (w *workingSets) beginWindows(reference uint64, least int) {
	w.addLevels(least, reference)
	for j := w.least; j <= w.top; j++ {
		if reference > w.start && window(j, reference) != window(j, reference-1) {
			w.closed[j] = append(w.closed[j], w.open[j])
			w.open[j] = 0
		}
	}
}

// addLevels adds levels until a single window contains the given reference and all earlier
// references, and drops the levels below least.
func (w *workingSets) addLevels(least int, reference uint64) {
	for w.top < least || window(w.top, w.start) != window(w.top, reference) {
		w.top++
		w.open[w.top] = w.open[w.top-1]
	}
	for ; w.least < least; w.least++ {
		w.closed[w.least] = nil
	}
}

// smallestNoted returns the minimum distance of the accesses that must be passed to countAccess on
// a level.
func (w *workingSets) smallestNoted(level int) uint64 {
	if w.off {
		return math.MaxUint64
	}
	return w.open[level]
}

// countAccess counts an access at distance d in the windows of the given level and of higher
// levels. countAccess returns the new result of smallestNoted for the level.
func (w *workingSets) countAccess(level int, d uint64) uint64 {
	for j := level; j <= w.top && d >= w.open[j]; j++ {
		w.open[j]++
	}
	return w.open[level]
}

// lineCounts returns the number of distinct lines in each window of a level so far.
func (w *workingSets) lineCounts(level int) []uint64 {
	return append(slices.Clone(w.closed[level]), w.open[level])
}

// result returns the working sets of the rows, and the working sets of all higher levels, which are
// part of a segment's state.
func (w *workingSets) result(windows int) (rows []uint64, above [][]uint64) {
	if w.off || windows == 0 {
		return nil, nil
	}
	for j := w.least + 1; j <= w.top; j++ {
		above = append(above, w.lineCounts(j))
	}
	return w.lineCounts(w.least), above
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

// segmentJoin counts lines in the windows that contain the border between two segments. A first
// touch of the second segment adds a line to such a window, unless the line has been accessed in
// the part of the window that belongs to the first segment.
type segmentJoin struct {
	*workingSets
	start uint64 // first reference of the next segment
}

// join begins to append a segment with the given rows. The parameter resumed is true if the segment
// begins within the last reference of the previous segment.
func (w *workingSets) join(start, references uint64, resumed bool, rows *profile.Windows) segmentJoin {
	if references > 0 {
		w.off = w.off || rows.Distinct == nil
		if resumed {
			w.addLevels(levelOf(rows.References), start)
		} else {
			w.beginWindows(start, levelOf(rows.References))
		}
		w.addLevels(w.least, start+references-1)
	}
	return segmentJoin{w, start}
}

func (j segmentJoin) countAccess(reference uint64, d uint32) {
	from := bits.Len64(window(0, reference) ^ window(0, j.start))
	j.workingSets.countAccess(max(from, j.least), uint64(d))
}

// addInnerWindows adds the windows that lie entirely within the appended segment.
func (j segmentJoin) addInnerWindows(rows *profile.Windows, above [][]uint64) {
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
