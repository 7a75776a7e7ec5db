package state

import "github.com/stackglass/stackglass/core/profile"

// Bin counts the accesses whose stack distance is in a logarithmic bin: 0, 1, 2–3, 4–7, ... The
// counts behind it stay exact in the profile; cold accesses are a bin of their own.
type Bin struct {
	Low, High uint64 // distances, both included
	Cold      bool
	Count     uint64
}

// Label names the bin by its distances.
func (b Bin) Label() string {
	switch {
	case b.Cold:
		return "cold"
	case b.Low == b.High:
		return Exact(b.Low)
	}
	return Exact(b.Low) + "–" + Exact(b.High)
}

// Bins sums the histogram up: all bins from distance 0 to the longest, empty
// ones included, and the cold one at the end.
func (v *View) Bins() []Bin {
	var bins []Bin
	if longest, ok := v.Curve.Longest(); ok {
		for k := 0; k <= profile.DistanceBin(longest); k++ {
			b := Bin{}
			if k > 0 {
				b.Low, b.High = 1<<(k-1), 1<<k-1
			}
			b.Count = v.Curve.Hits(b.High+1) - v.Curve.Hits(b.Low)
			bins = append(bins, b)
		}
	}
	return append(bins, Bin{Cold: true, Count: v.Curve.Cold})
}

// HistogramTable is every distance that occurs with its exact count.
func (v *View) HistogramTable() *Table {
	return v.once("histogram", func() *Table {
		return v.table("Accesses by stack distance", v.question("histogram"), nil)
	})
}

// distances reads the distances of a curve by their index. It is fast for those that
// follow one another.
type distances struct {
	curve *profile.Curve
	first int // index of the first in read
	read  []distance
}

type distance struct{ d, count, upto uint64 }

// at returns the i-th distance, its accesses, and the accesses with at most that distance.
func (r *distances) at(i int) (d, count, upto uint64) {
	const together = 256
	if i < r.first || i >= r.first+len(r.read) {
		before := uint64(0)
		if i > 0 {
			_, before = r.curve.At(i - 1)
		}
		r.first, r.read = i, r.read[:0]
		for d, upto := range r.curve.From(i) {
			r.read = append(r.read, distance{d, upto - before, upto})
			if before = upto; len(r.read) == together {
				break
			}
		}
	}
	got := r.read[i-r.first]
	return got.d, got.count, got.upto
}
