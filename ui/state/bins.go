package state

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
)

// binLabel returns the label of a bin of stack distances: 0, 1, 2–3, 4–7, …
func binLabel(k int) string {
	if k < 2 {
		return Exact(uint64(k))
	}
	return Exact(1<<(k-1)) + "–" + Exact(1<<k-1)
}

// Bins sums the histogram of stack distances into bins, from distance 0 to the longest distance,
// including empty bins. Bins also returns the number of cold accesses.
func (v *View) Bins() (counts []uint64, cold uint64) {
	if longest, ok := v.Curve.Longest(); ok {
		upto := uint64(0)
		for k := 0; k <= profile.DistanceBin(longest); k++ {
			hits := v.Curve.Hits(1 << k)
			counts, upto = append(counts, hits-upto), hits
		}
	}
	return counts, v.Curve.Cold
}

// HistogramTable lists every distance that occurs, with its exact count. For a part of the run, the
// table lists the bins, because the distances of parts are counted in bins.
func (v *View) HistogramTable() *Table {
	return v.cachedTable("histogram", func() *Table {
		if v.Part != nil {
			counts, cold := v.Bins()
			t := answers.Distances("Accesses by stack distance", counts, cold)
			return show(&t, words, nil).setDocument(oneTable("stackglass.histogram", t))
		}
		return v.table("Accesses by stack distance", v.question("histogram"), nil)
	})
}
