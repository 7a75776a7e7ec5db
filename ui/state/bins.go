package state

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
)

// Bin counts the accesses whose stack distance is in a logarithmic bin: 0, 1,
// 2–3, 4–7, ... The counts behind it stay exact in the profile; cold accesses
// are a bin of their own.
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
	if n := len(v.Curve.Distances); n > 0 {
		for k := 0; k <= profile.DistanceBin(v.Curve.Distances[n-1]); k++ {
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
	c := v.Curve
	rows := len(c.Distances) + 1
	return &Table{
		Caption: "Accesses by stack distance",
		Columns: []Column{{Name: "distance", Unit: "lines"}, {Name: "accesses"}, {Name: "cumulative share"}},
		Rows:    rows,
		Row: func(i int) []string {
			if i == rows-1 {
				return []string{"cold", Exact(c.Cold), Percent(1)}
			}
			return []string{Exact(c.Distances[i]), Exact(distanceCount(c, i)), Percent(Ratio(c.Upto[i], c.Accesses))}
		},
		CSVHeader: "distance,count",
		CSVRow: func(i int) string {
			if i == rows-1 {
				return "inf," + strconv.FormatUint(c.Cold, 10)
			}
			return strconv.FormatUint(c.Distances[i], 10) + "," + strconv.FormatUint(distanceCount(c, i), 10)
		},
	}
}

// distanceCount is the number of accesses with the i-th distance of a curve.
func distanceCount(c *profile.Curve, i int) uint64 {
	if i == 0 {
		return c.Upto[0]
	}
	return c.Upto[i] - c.Upto[i-1]
}
