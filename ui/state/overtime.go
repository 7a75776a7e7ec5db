package state

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// MaxLines is the maximum number of capacities in the view over time.
const MaxLines = 3

// Log2Lines returns the capacities that are worth showing over time: from 1 KiB to the first
// capacity that is at least as large as the footprint. Capacities are base-2 logarithms of the
// number of lines.
func (v *View) Log2Lines() []int {
	var list []int
	low := max(bits.Len64(1024/v.LineBytes)-1, 0)
	high := min(bits.Len64(max(v.Lines, 1)-1), 32)
	for k := low; k <= max(high, low); k++ {
		list = append(list, k)
	}
	return list
}

// DefaultLog2Lines returns the default capacities, as near as possible to 1, 32 and 256 KiB.
func (v *View) DefaultLog2Lines() []int {
	all := v.Log2Lines()
	var list []int
	for _, kib := range []uint64{1, 32, 256} {
		want := bits.Len64(kib<<10/v.LineBytes) - 1
		k := min(max(want, all[0]), all[len(all)-1])
		if len(list) == 0 || list[len(list)-1] != k {
			list = append(list, k)
		}
	}
	return list
}

// CapacityBytes returns the size of a cache of 2^log2Lines lines.
func (v *View) CapacityBytes(log2Lines int) uint64 { return v.LineBytes << log2Lines }

// OverTime shows the miss ratio in each window of the run, for a cache of 2^k lines for each k in
// log2Lines.
func (v *View) OverTime(log2Lines []int) *Chart {
	w := &v.Locality.Windows
	chart := &Chart{
		ID: "time", Title: "Misses over time" + v.oneCache(),
		X: Axis{Label: "reference, in windows of " + Exact(w.References), Unit: UnitReferences},
		Y: Axis{Label: "share of the window's accesses that miss", Unit: UnitShare},
	}
	for i := range w.Rows {
		chart.At = append(chart.At, float64((w.First+uint64(i))*w.References))
	}
	if n := len(chart.At); n > 0 {
		// The value of the last window applies up to its end.
		end := chart.At[n-1] + float64(w.References)
		chart.At = append(chart.At, end)
		chart.X.Min, chart.X.Max = chart.At[0], end
	}
	for i, k := range log2Lines {
		var y []float64
		for j := range w.Rows {
			share := Ratio(w.Rows[j].Misses(k), w.Rows[j].Accesses())
			chart.Y.Max = max(chart.Y.Max, share)
			y = append(y, share)
		}
		if n := len(y); n > 0 {
			y = append(y, y[n-1])
		}
		chart.Series = append(chart.Series, Series{
			Label: Bytes(v.CapacityBytes(k)), Color: LevelColor(i), Shape: ShapeStep, Dash: i == 1, Y: y,
		})
	}
	chart.Y.Max = min(1, max(chart.Y.Max*1.1, 0.001))
	chart.Summary = "Each window has " + Exact(w.References) + " references. The run has " + Plural(uint64(len(w.Rows)), "window", "windows") + "."
	if f, ok := v.phases(); ok {
		chart.Summary = f.Text
	}
	return chart
}

// OverTimeTable lists the windows with their exact misses for each capacity.
func (v *View) OverTimeTable(log2Lines []int) *Table {
	name := "time"
	for _, k := range log2Lines {
		name += " " + strconv.Itoa(k)
	}
	return v.cachedTable(name, func() *Table {
		keys := []string{"first_reference", "accesses"}
		for _, k := range log2Lines {
			keys = append(keys, "misses_"+strconv.FormatUint(1<<min(k, v.lastLog2()), 10))
		}
		t := v.table("Misses by window of the run", v.question("windows"), nil, keys...)
		for i := 2; i < len(t.Columns); i++ { // the same size labels as in the chart
			t.Columns[i].Name = "misses in " + Bytes(v.CapacityBytes(log2Lines[i-2]))
		}
		return t
	})
}

// lastLog2 returns the binary logarithm of the largest capacity, in lines, in the answer about
// windows. Larger caches have the same misses.
func (v *View) lastLog2() int {
	last := 0
	if d, err := v.Answer(v.question("windows")); err == nil {
		for d.Tables[0].Index("misses_"+strconv.FormatUint(2<<last, 10)) >= 0 {
			last++
		}
	}
	return last
}

// WorkingSet shows the distinct lines of each window of the run in bytes, or returns nil if they
// were not counted.
func (v *View) WorkingSet() *Chart {
	w := &v.Locality.Windows
	if len(w.Distinct) == 0 || len(w.Distinct) != len(w.Rows) {
		return nil
	}
	chart := &Chart{
		ID: "working-set", Title: "Working set over time",
		X: Axis{Label: "reference, in windows of " + Exact(w.References), Unit: UnitReferences},
		Y: Axis{Label: "distinct lines in the window, in bytes", Unit: UnitBytes},
	}
	var y []float64
	most, sum := uint64(0), uint64(0)
	for i, lines := range w.Distinct {
		chart.At = append(chart.At, float64((w.First+uint64(i))*w.References))
		y = append(y, float64(lines*v.LineBytes))
		most, sum = max(most, lines), sum+lines
	}
	n := len(y)
	end := chart.At[n-1] + float64(w.References) // the value of the last window applies up to its end
	chart.At, y = append(chart.At, end), append(y, y[n-1])
	chart.X.Min, chart.X.Max, chart.Y.Max = chart.At[0], end, float64(most*v.LineBytes)*1.1
	chart.Series = []Series{{Label: "working set", Color: "ink", Shape: ShapeStep, Y: y}}
	chart.Summary = "A window of " + Exact(w.References) + " references touches at most " + Plural(most, "line", "lines") + ", " + Bytes(most*v.LineBytes) +
		", and " + Bytes(sum*v.LineBytes/uint64(n)) + " on average. Within a window, a fully associative LRU cache of " + Bytes(most*v.LineBytes) + " misses each line at most once."
	return chart
}

// WorkingSetTable lists the distinct lines of each window.
func (v *View) WorkingSetTable() *Table {
	return v.cachedTable("working set", func() *Table {
		return v.table("Distinct lines by window of the run", v.question("windows"), nil, "first_reference", "lines")
	})
}

// LevelLog2Lines returns, for each level, the capacity that the view over time shows instead of the
// level's size: the largest power of two that does not exceed the size, within the range of
// [View.Log2Lines]. The result contains no duplicates, and at most MaxLines capacities. The result
// "estimates" contains the names of the levels whose number of lines is not a power of two. The
// values of these levels are estimates.
func (v *View) LevelLog2Lines(levels []hierarchy.Cache) (list []int, estimates []string) {
	all := v.Log2Lines()
	for _, l := range levels {
		lines := max(l.SizeBytes/v.LineBytes, 1)
		k := bits.Len64(lines) - 1
		if lines != 1<<k {
			estimates = append(estimates, l.Name)
		}
		k = min(max(k, all[0]), all[len(all)-1])
		if !slices.Contains(list, k) && len(list) < MaxLines {
			list = append(list, k)
		}
	}
	return list, estimates
}
