package state

import (
	"math"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// FootprintChart shows the average footprint of the windows of each length, and the sizes of the
// cache levels that a window can fill.
func (v *View) FootprintChart(levels []hierarchy.Cache) *Chart {
	f := v.Profile.Footprint
	chart := &Chart{
		ID: "footprint", Title: "Footprint by window length",
		X: Axis{Label: "accesses in the window", Unit: UnitReferences, Log: true, Min: 1},
		Y: Axis{Label: "distinct lines, in bytes", Unit: UnitBytes, Log: true, Min: float64(f.LineBytes)},
	}
	series := Series{Label: "footprint", Color: "ink", Shape: ShapeLine}
	for i := 0; profile.FootprintWindow(i) < f.Accesses; i++ {
		lines, _ := f.Average(i)
		chart.At = append(chart.At, float64(profile.FootprintWindow(i)))
		series.Y = append(series.Y, max(lines, 1)*float64(f.LineBytes))
	}
	n := len(chart.At)
	if n == 0 {
		chart.Summary = "The run is too short for a window."
		return chart
	}
	chart.X.Max, chart.Y.Max = max(chart.At[n-1], 2), max(2*series.Y[n-1], 2*chart.Y.Min)
	chart.Series = []Series{series}
	for i, l := range levels {
		window := footprintFills(chart.At, series.Y, float64(l.SizeBytes))
		if window == 0 {
			chart.Summary += "No window fills " + l.Name + " (" + Bytes(l.SizeBytes) + "). "
			break
		}
		chart.Summary += "A window of " + about + Plural(uint64(window), "access", "accesses") + " fills " + l.Name + " (" + Bytes(l.SizeBytes) + "). "
		size := Series{Label: l.Name, Color: LevelColor(i), Shape: ShapeLine, Dash: true}
		for range chart.At {
			size.Y = append(size.Y, float64(l.SizeBytes))
		}
		chart.Series = append(chart.Series, size)
	}
	chart.Summary += "The whole run touches " + Bytes(f.Lines*uint64(f.LineBytes)) + "."
	return chart
}

// footprintFills returns the window length at which the footprint is as large as the cache. The
// length is interpolated between known lengths. If no window has such a large footprint,
// footprintFills returns 0.
func footprintFills(windows, sizes []float64, bytes float64) float64 {
	for i, size := range sizes {
		switch {
		case size < bytes:
		case i == 0:
			return windows[0]
		default:
			part := (math.Log(bytes) - math.Log(sizes[i-1])) / (math.Log(size) - math.Log(sizes[i-1]))
			return math.Round(math.Exp(math.Log(windows[i-1]) + part*(math.Log(windows[i])-math.Log(windows[i-1]))))
		}
	}
	return 0
}

// FootprintMisses shows the miss ratio that the growth of the footprint predicts, and the exact
// miss ratio. FootprintMisses returns nil if the run has no stack distances for the footprint's
// line size.
func (v *View) FootprintMisses() *Chart {
	f := v.Profile.Footprint
	exact := v.Profile.LocalityAt(f.LineBytes)
	if exact == nil {
		return nil
	}
	curve := profile.NewCurve(exact.Histogram(trace.AllKinds))
	chart := &Chart{
		ID: "footprint-misses", Title: "Miss ratio from the footprint", How: "predicted",
		X: Axis{Label: "cache size, fully associative LRU", Unit: UnitBytes, Log: true, Min: float64(f.LineBytes)},
		Y: Axis{Label: "share of accesses that miss", Unit: UnitShare, Max: 1},
	}
	predicted := Series{Label: "from the footprint", Color: LevelColor(0), Shape: ShapeLine, Dash: true}
	counted := Series{Label: "from stack distances", Color: LevelColor(1), Shape: ShapeLine}
	most := 0.0
	for i := 0; profile.FootprintWindow(i) < f.Accesses; i++ {
		lines, growth := f.Average(i)
		at := max(lines, 1) * float64(f.LineBytes)
		if n := len(chart.At); n > 0 && at <= chart.At[n-1] {
			continue
		}
		chart.At = append(chart.At, at)
		predicted.Y = append(predicted.Y, growth)
		counted.Y = append(counted.Y, curve.MissRatio(uint64(max(lines, 1))))
		most = max(most, math.Abs(growth-counted.Y[len(counted.Y)-1]))
	}
	if n := len(chart.At); n > 0 {
		chart.X.Max = max(chart.At[n-1], 2*chart.X.Min)
	}
	chart.Series = []Series{predicted, counted}
	chart.Summary = "The prediction differs from the exact miss ratio by at most " + significant(100*most) + " percentage points. The prediction assumes that the behaviour of the program does not change during the run."
	return chart
}

// FootprintTable returns a table with a row for each window length.
func (v *View) FootprintTable() *Table {
	return v.cachedTable("footprint", func() *Table { return v.table("", v.question("footprint"), nil) })
}

// missingFootprint explains why a profile has no footprint, and how to obtain a profile that has
// a footprint.
func missingFootprint(p *profile.Profile) string {
	if p.Footprint != nil && p.Footprint.Accesses > 0 {
		return ""
	}
	return "This analysis did not compute the footprint, which is the average number of distinct lines in a window, for each window length. Analyse the trace again, including the footprint, " +
		"or run “stackglass analyze --analyses default,footprint -o file.sgp” and drop that file here."
}
