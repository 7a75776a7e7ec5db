package state

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// curvePoints is the maximum number of points in a drawn curve. It exceeds the width of a screen
// in pixels. The chart's table contains all points.
const curvePoints = 2000

// MissCurve returns the miss-ratio curve over the cache size, with marks for the levels of a
// hierarchy.
func (v *View) MissCurve(levels []hierarchy.Cache) *Chart {
	lowest := v.MissRatio(math.MaxUint64)
	chart := &Chart{
		ID: "curve", Title: "Miss ratio over cache size" + v.oneCache(),
		X: Axis{Label: "cache size, fully associative LRU, " + strconv.FormatUint(v.LineBytes, 10) + "-byte lines", Unit: UnitBytes, Log: true},
		Y: Axis{Label: "share of accesses that miss", Unit: UnitShare, Max: 1},
	}
	most := float64(max(v.FootprintBytes()*2, 64*v.LineBytes))
	for _, l := range levels {
		most = max(most, float64(l.SizeBytes)*1.5)
	}
	chart.X.Min, chart.X.Max = float64(v.LineBytes), most
	if lowest > 0 && lowest < 0.3 { // a linear axis would hide the steps near the lowest ratio
		chart.Y.Log, chart.Y.Min = true, math.Pow(10, math.Floor(math.Log10(lowest)))
		if lowest >= 2*chart.Y.Min {
			chart.Y.Min *= 2
			if lowest >= 2.5*chart.Y.Min {
				chart.Y.Min *= 2.5
			}
		}
	}
	y := v.curvePoints(chart, most)
	chart.Series = []Series{{Label: "miss ratio", Color: "ink", Shape: ShapeStep, Y: y}}
	for i, l := range levels {
		if v.hasLines(l) {
			chart.Marks = append(chart.Marks, Mark{Label: l.Name, Color: LevelColor(i), X: float64(l.SizeBytes), Y: v.MissRatio(l.SizeBytes), Level: i + 1})
		}
	}
	chart.Summary = v.curveSentence() + v.marksSentence(levels)
	return chart
}

// marksSentence explains the marks on the curve. The value of a mark differs from the value on
// the level's card, because the card takes the associativity and the levels above into account.
func (v *View) marksSentence(levels []hierarchy.Cache) string {
	text := ""
	for _, l := range levels {
		if !v.hasLines(l) {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += l.Name + " " + Bytes(l.SizeBytes) + " " + Percent(v.MissRatio(l.SizeBytes))
	}
	if text != "" {
		text = " The marks show what the miss ratio of each level would be if the level were alone and fully associative" + v.oneCache() + ": " + text + "."
	}
	return text + v.unmarkedSentence(levels)
}

// hasLines reports whether a cache has the line size in view.
func (v *View) hasLines(c hierarchy.Cache) bool { return uint64(c.LineBytes) == v.LineBytes }

// unmarkedSentence returns sentences about the levels that have no mark, because their line size is not
// the line size in view.
func (v *View) unmarkedSentence(levels []hierarchy.Cache) (text string) {
	for _, l := range levels {
		if !v.hasLines(l) {
			text += " " + l.Name + " has " + strconv.FormatUint(uint64(l.LineBytes), 10) + "-byte lines and is not marked. To mark it, choose this line size above."
		}
	}
	return text
}

// curvePoints fills the chart's field At, and returns the miss ratios. If there are more
// breakpoints than a screen can show, the chart contains only the first and the last breakpoint
// in each step of the axis. The value of the last breakpoint applies up to the next step. All
// points in the chart are exact.
func (v *View) curvePoints(chart *Chart, most float64) []float64 {
	step := 1.0
	if v.Curve.Len() > curvePoints {
		step = math.Exp(math.Log(most/float64(v.LineBytes)) / (curvePoints / 2))
	}
	var y []float64
	draw := func(x float64, misses uint64) {
		chart.At = append(chart.At, x)
		y = append(y, Ratio(misses, v.Curve.Accesses))
	}
	first, skipped, skippedMisses := 0.0, 0.0, uint64(0)
	v.Curve.Points(func(capacity, misses uint64) bool {
		x := float64(capacity * v.LineBytes)
		if x < first*step {
			skipped, skippedMisses = x, misses
			return true
		}
		if skipped > first {
			draw(skipped, skippedMisses)
		}
		draw(x, misses)
		first = x
		return true
	})
	if skipped > first {
		draw(skipped, skippedMisses)
	}
	if max(first, skipped) < most {
		draw(most, v.Curve.Cold)
	}
	return y
}

func (v *View) curveSentence() string {
	c := v.Curve
	if c.Accesses == 0 {
		return "No accesses yet."
	}
	text := Percent(c.MissRatio(1)) + " of accesses miss in a cache of one line"
	if longest, ok := c.Longest(); ok {
		text += ", and " + Percent(v.MissRatio(32<<10)) + " in a cache of 32" + thin + "KiB. With " +
			Bytes((longest+1)*v.LineBytes) + " or more, only first accesses miss: " + Percent(Ratio(c.Cold, c.Accesses))
	}
	return text + "."
}

// CurveTable lists every breakpoint of the curve.
func (v *View) CurveTable() *Table {
	return v.cachedTable("curve", func() *Table {
		return v.table("Misses by cache size, for each size at which the misses change"+v.oneCache(), v.question("curve"), nil)
	})
}

// HistogramChart shows the histogram of stack distances in logarithmic bins, with the cumulative
// share above the bars and a separate bar for cold accesses.
func (v *View) HistogramChart() *Chart {
	counts, cold := v.Bins()
	return binsChart("histogram", "Accesses by stack distance"+v.oneCache(), counts, cold)
}

// binsChart draws the bins, followed by the cold accesses.
func binsChart(id, title string, counts []uint64, cold uint64) *Chart {
	chart := &Chart{
		ID: id, Title: title,
		X:     Axis{Label: "stack distance: other lines used since the last access", Unit: UnitBin, Max: float64(len(counts))},
		Y:     Axis{Label: "of all accesses", Unit: UnitShare, Max: 1},
		Split: len(counts),
	}
	total := sumOf(counts) + cold
	var finite, apart, upto []float64
	add := func(label string, bar, alone, line float64) {
		chart.At, chart.X.Labels = append(chart.At, float64(len(chart.At))), append(chart.X.Labels, label)
		finite, apart, upto = append(finite, bar), append(apart, alone), append(upto, line)
	}
	none, sum := math.NaN(), uint64(0)
	for k, n := range counts {
		sum += n
		add(binLabel(k), Ratio(n, total), none, Ratio(sum, total))
	}
	add("cold", none, Ratio(cold, total), none)
	chart.Series = []Series{
		{Label: "accesses", Color: "accent", Shape: ShapeBars, Y: finite},
		{Label: "cold", Color: "memory", Shape: ShapeBars, Y: apart},
		{Label: "cumulative", Color: "ink", Shape: ShapeLine, Y: upto},
	}
	chart.Summary = histogramSentence(counts, cold)
	return chart
}

func sumOf(counts []uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func histogramSentence(counts []uint64, cold uint64) string {
	total, best := sumOf(counts)+cold, -1
	for k, n := range counts {
		if best < 0 || n > counts[best] {
			best = k
		}
	}
	switch {
	case total == 0:
		return "No accesses yet."
	case best < 0 || cold > counts[best]:
		return "First accesses to a line are the largest group: " + Percent(Ratio(cold, total)) + " of accesses."
	}
	return "The largest bin, distance " + binLabel(best) + ", contains " + Percent(Ratio(counts[best], total)) +
		" of accesses; " + Percent(Ratio(cold, total)) + " are cold."
}
