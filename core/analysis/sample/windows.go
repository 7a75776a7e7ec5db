package sample

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// windows are the windows of the run, as in profile.Windows.
type windows struct {
	References uint64
	rows       []row
	counted    [frontLines]uint64 // of counts.near, what rows hold
}

// row is one window: accesses beyond the front, and by distance those in the front and sampled.
type row struct {
	beyond       uint64
	near, sample profile.WindowRow
}

func (w *windows) last() *row { return &w.rows[len(w.rows)-1] }

// reach makes the last row the window of reference number at, for windows of size references.
func (s *lineSize) reach(at, size uint64) {
	w := &s.windows
	if w.References >= size && uint64(len(w.rows)) > at/w.References {
		return
	}
	s.closeRow()
	for w.References < size {
		w.coarsen()
	}
	if uint64(len(w.rows)) <= at/w.References {
		w.rows = append(w.rows, row{})
	}
}

// coarsen joins windows in pairs.
func (w *windows) coarsen() {
	for i := range w.rows {
		from := w.rows[i]
		if i%2 == 0 {
			w.rows[i/2] = from
			continue
		}
		to := &w.rows[i/2]
		to.beyond += from.beyond
		for bin := range from.near {
			to.near[bin] += from.near[bin]
			to.sample[bin] += from.sample[bin]
		}
	}
	w.rows = w.rows[:(len(w.rows)+1)/2]
	w.References *= 2
}

// closeRow adds to the last row what the front held since the row before.
func (s *lineSize) closeRow() {
	for d := range frontLines {
		sum := uint64(0)
		for k := range trace.NumKinds {
			sum += s.nearAt(k, d)
		}
		if since := sum - s.windows.counted[d]; since != 0 {
			s.windows.last().near[profile.DistanceBin(uint64(d))] += since
			s.windows.counted[d] = sum
		}
	}
}
