package state

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Comparison is two analyses side by side: A, B, and the difference B - A.
type Comparison struct {
	A, B         *View
	NameA, NameB string
}

// compareColors are those of A and B wherever they are drawn.
var compareColors = [2]string{"side-a", "side-b"}

// SideName is what a side is called where it is introduced.
func SideName(side int) string { return [...]string{"A (before)", "B (after)"}[side] }

// both calls f for A and for B.
func (c *Comparison) both(f func(side int, v *View)) {
	f(0, c.A)
	f(1, c.B)
}

// sideLetter names a side.
func sideLetter(side int) string { return [...]string{"A", "B"}[side] }

// Curve is both miss-ratio curves in one chart.
func (c *Comparison) Curve(levels []hierarchy.Cache) *Chart {
	cards := make([]LevelCard, len(levels))
	for i, l := range levels {
		cards[i].Cache = l
	}
	a, b := c.A.MissCurve(cards), c.B.MissCurve(cards)
	lowest := min(a.Y.Min, b.Y.Min)
	chart := a
	chart.Title = "Miss ratio over cache size, A and B" + cmp.Or(c.A.oneCache(), c.B.oneCache())
	chart.X.Min, chart.X.Max = min(a.X.Min, b.X.Min), max(a.X.Max, b.X.Max)
	chart.Y.Log = a.Y.Log && b.Y.Log
	if chart.Y.Min = 0; chart.Y.Log {
		chart.Y.Min = lowest
	}
	var ys [2][]float64
	chart.At, ys[0], ys[1] = joinSteps(a.At, a.Series[0].Y, b.At, b.Series[0].Y)
	chart.At, ys = extend(chart.At, ys, chart.X.Max)
	chart.Series = pairOf(ShapeStep, ys)
	chart.Summary = c.worstSize().Text
	return chart
}

// pairOf are the series of A and B.
func pairOf(shape Shape, ys [2][]float64) (list []Series) {
	for side, y := range ys {
		list = append(list, Series{Label: sideLetter(side), Color: compareColors[side], Shape: shape, Dash: side == 1, Y: y})
	}
	return list
}

// joinSteps gives two functions that hold their values between their points at
// the points of both; NaN before the first one.
func joinSteps(xa, ya, xb, yb []float64) (at, a, b []float64) {
	none := math.NaN()
	lastA, lastB := none, none
	for i, j := 0, 0; i < len(xa) || j < len(xb); {
		x := math.Inf(1)
		if i < len(xa) {
			x = xa[i]
		}
		if j < len(xb) {
			x = min(x, xb[j])
		}
		for ; i < len(xa) && xa[i] == x; i++ {
			lastA = ya[i]
		}
		for ; j < len(xb) && xb[j] == x; j++ {
			lastB = yb[j]
		}
		at, a, b = append(at, x), append(a, lastA), append(b, lastB)
	}
	return at, a, b
}

// extend holds the last values up to x.
func extend(at []float64, ys [2][]float64, x float64) ([]float64, [2][]float64) {
	if n := len(at); n > 0 && at[n-1] < x {
		at = append(at, x)
		for side := range ys {
			ys[side] = append(ys[side], ys[side][n-1])
		}
	}
	return at, ys
}

// Histogram is both histograms of stack distances in logarithmic bins.
func (c *Comparison) Histogram() *Chart {
	var bins [2][]Bin
	var total [2]uint64
	c.both(func(side int, v *View) { bins[side], total[side] = v.Bins(), v.Curve.Accesses })
	longest := bins[0]
	if len(bins[1]) > len(longest) {
		longest = bins[1]
	}
	last := len(longest) - 1
	chart := &Chart{
		ID: "histogram", Title: "Accesses by stack distance, A and B",
		X: Axis{Label: "stack distance: other lines used in between", Unit: UnitBin, Max: float64(last)},
		Y: Axis{Label: "of all accesses", Unit: UnitShare},
	}
	var ys [2][]float64
	for i, bin := range longest {
		chart.At = append(chart.At, float64(i))
		chart.X.Labels = append(chart.X.Labels, bin.Label())
		for side := range ys {
			n := len(bins[side]) - 1 // the cold one is last
			y := 0.0
			if i == last {
				y = Ratio(bins[side][n].Count, total[side])
			} else if i < n {
				y = Ratio(bins[side][i].Count, total[side])
			}
			chart.Y.Max = max(chart.Y.Max, y)
			ys[side] = append(ys[side], y)
		}
	}
	chart.Y.Max = min(1, max(chart.Y.Max*1.1, 0.001))
	chart.Series = pairOf(ShapeLine, ys)
	c.both(func(side int, v *View) {
		chart.Summary += sideLetter(side) + ": " + histogramSentence(bins[side], total[side]) + " "
	})
	chart.Summary = strings.TrimSpace(chart.Summary)
	return chart
}

// OverTime is the misses of both over the run in caches of 2^log2Lines lines.
// The runs need not be equally long: they are drawn over the references, each
// from its own first one.
func (c *Comparison) OverTime(log2Lines int) *Chart {
	var parts [2]*Chart
	c.both(func(side int, v *View) { parts[side] = v.OverTime([]int{log2Lines}) })
	chart := parts[0]
	chart.Title = "Misses over time in " + Bytes(c.A.CapacityBytes(log2Lines)) + ", A and B"
	chart.X.Label = "reference"
	chart.X.Max, chart.Y.Max = max(parts[0].X.Max, parts[1].X.Max), max(parts[0].Y.Max, parts[1].Y.Max)
	var ys [2][]float64
	chart.At, ys[0], ys[1] = joinSteps(parts[0].At, parts[0].Series[0].Y, parts[1].At, parts[1].Series[0].Y)
	for side := range ys { // behind its end a run misses nothing: it is over
		for i, x := range chart.At {
			if x > parts[side].X.Max {
				ys[side][i] = math.NaN()
			}
		}
	}
	chart.Series = pairOf(ShapeStep, ys)
	chart.Summary = "A: " + parts[0].Summary + " B: " + parts[1].Summary
	return chart
}

// factsTable lists what a view's run is, in numbers.
func (v *View) factsTable(h hierarchy.Hierarchy) report.Table {
	t := report.Table{Key: "facts", Title: "Facts", Columns: []report.Column{{Key: "fact", Label: "fact"}, {Key: "value", Label: "value"}}}
	add := func(name string, value report.Value) { t.Add(report.TextOf(name), value) }
	totals := &v.Profile.Totals
	add("references", report.Count(totals.AllReferences()))
	add("line accesses", report.Count(v.Curve.Accesses))
	add("lines", report.Count(v.Lines))
	add("footprint", report.Bytes(v.FootprintBytes()))
	add("cold accesses", report.Count(v.Curve.Cold))
	var bytes uint64
	for _, n := range totals.Bytes {
		bytes += n
	}
	if v.Profile.Input.Header.Sizes {
		add("bytes accessed", report.Bytes(bytes))
	}
	if p, _, err := v.predict(h); err == nil {
		for i, l := range p.Levels {
			exact, _ := exactTo(&p.Prediction, i)
			add(l.Cache.Name+" misses", predicted(l.Misses, exact))
			add(l.Cache.Name+" misses of all accesses", report.Ratio(l.Misses/max(float64(v.Curve.Accesses), 1)))
			if len(p.Cores) > 0 {
				add(l.Cache.Name+" coherence misses", predicted(p.Coherence[i], exact))
			}
		}
	}
	if d, ok := v.Curve.DistanceAtShare(0.5); ok {
		add("cache in which half of all accesses hit", report.Bytes((d+1)*v.LineBytes))
	}
	if d, ok := v.Curve.DistanceAtShare(0.9); ok {
		add("cache in which 90 % of all accesses hit", report.Bytes((d+1)*v.LineBytes))
	}
	return t
}

// predicted is a number of accesses of a model, to whole ones; a count where it
// is exact.
func predicted(x float64, exact bool) report.Value {
	if exact {
		return report.Count(uint64(math.Round(x)))
	}
	return report.Real(math.Round(x))
}

// Facts are the facts of both runs, with differences.
func (c *Comparison) Facts(h hierarchy.Hierarchy) *Table {
	joined := report.Join(c.A.factsTable(h), c.B.factsTable(h), report.Key{Columns: []string{"fact"}})
	return comparedTable(joined, "facts")
}

// levelsTable is the prediction for a hierarchy.
func (v *View) levelsTable(h hierarchy.Hierarchy) report.Table {
	t := report.Table{Key: "levels", Title: "Levels", Columns: []report.Column{
		{Key: "level", Label: "level"}, {Key: "accesses", Label: "accesses"}, {Key: "hits", Label: "hits"},
		{Key: "misses", Label: "misses"}, {Key: "miss_ratio", Label: "local miss ratio"}, {Key: "coherence_misses", Label: "coherence misses"}}}
	p, _, err := v.predict(h)
	if err != nil {
		return t
	}
	for i, l := range p.Levels {
		exact, above := exactTo(&p.Prediction, i)
		lost := report.None()
		if len(p.Cores) > 0 {
			lost = predicted(p.Coherence[i], exact)
		}
		t.Add(report.TextOf(l.Cache.Name+", "+Bytes(l.Cache.SizeBytes)+", "+WaysText(l.Cache.Ways)), predicted(l.Accesses, above), predicted(l.Hits, exact),
			predicted(l.Misses, exact), report.Ratio(l.Misses/max(l.Accesses, 1)), lost)
	}
	exact, _ := exactTo(&p.Prediction, len(p.Levels)-1)
	t.Add(report.TextOf("memory"), predicted(p.MemoryAccesses, exact), report.None(), report.None(), report.None(), report.None())
	return t
}

// Levels is the hierarchy's answer for both, with differences.
func (c *Comparison) Levels(h hierarchy.Hierarchy) *Table {
	a, b := c.A.levelsTable(h), c.B.levelsTable(h)
	if len(c.A.Profile.Sharing) == 0 && len(c.B.Profile.Sharing) == 0 || h.Threads == hierarchy.OnOneCore {
		for _, t := range []*report.Table{&a, &b} {
			*t = picked(*t, "level", "accesses", "hits", "misses", "miss_ratio")
		}
	}
	joined := report.Join(a, b, report.Key{Columns: []string{"level"}})
	joined.Title = "Levels, A and B"
	return comparedTable(joined, "levels")
}

// Doubts are what keeps the runs from being compared number by number, and the
// warnings about either prediction, each once.
func (c *Comparison) Doubts(h hierarchy.Hierarchy) []string {
	list := c.Mismatches()
	c.both(func(side int, v *View) {
		answer := v.Predict(h)
		if answer.Problem != "" {
			list = append(list, sideLetter(side)+" has no answer: "+answer.Problem+".")
		}
		for _, w := range answer.Warnings {
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	})
	return list
}

// Mismatches says how the analyses differ, rather than the programs.
func (c *Comparison) Mismatches() (list []string) {
	for _, m := range answers.Mismatches(c.A.Profile, c.B.Profile) {
		list = append(list, doubtOf(m))
	}
	return list
}

// doubtOf is a doubt as a sentence, without what it tells the command's user to do.
func doubtOf(text string) string {
	if text == "" {
		return ""
	}
	what, _, _ := strings.Cut(text, "; ")
	return upper(what) + "."
}

// CountersBy are the counters of both, joined by name: of the program, of
// functions, or of blocks.
func (c *Comparison) CountersBy(by answers.CountersBy, sort string) *Table {
	a, b := c.A.Profile.Counters, c.B.Profile.Counters
	if by == answers.ByProgram {
		joined := report.Join(answers.PickColumns(answers.CounterSums(a), 2, 1), answers.PickColumns(answers.CounterSums(b), 2, 1), report.Key{Columns: []string{"name"}, Counts: true})
		return newComparedTable(joined, "counters", words)
	}
	joined := answers.Join([]report.Table{answers.CountersOf(a, by, "")}, []report.Table{answers.CountersOf(b, by, "")})[0]
	t := sortedJoin(joined.Joined, joined.Key, words, "bytes", sort, "bytes", "flops", "integer_ops", "conditional_branches")
	t.Doubt = doubtOf(joined.Doubt)
	return t
}

// Code is CodeBy, of functions where the sources have no line in common: what
// functions of the same name do can be compared even then. The table's By says so.
func (c *Comparison) Code(by CodeBy, h hierarchy.Hierarchy, sort string) (*Table, error) {
	t, err := c.CodeBy(by, h, sort)
	if err != nil || by == ByFunction || by == ByObject || t.inBoth() {
		return t, err
	}
	if functions, err := c.CodeBy(ByFunction, h, sort); err == nil && functions.inBoth() {
		functions.Doubt = "No " + by.Name() + " of A is in B, as their sources differ: functions of the same name are compared instead."
		return functions, nil
	}
	return t, nil
}

// inBoth tells whether a row of a comparison is in A and in B.
func (t *Table) inBoth() bool {
	in := t.Source().Index("in")
	return in >= 0 && slices.ContainsFunc(t.Source().Rows, func(row []report.Value) bool {
		return row[in].Plain() == "both" && !strings.HasPrefix(row[0].Plain(), "(")
	})
}

// CodeBy is whose the misses of both are, joined by what the sources call them.
func (c *Comparison) CodeBy(by CodeBy, h hierarchy.Hierarchy, sort string) (*Table, error) {
	var tables [2][]report.Table
	var err error
	estimates := map[string]bool{} // columns
	c.both(func(side int, v *View) {
		r := v.Ranker()
		levels, _, failed := r.Attribute(h)
		if failed != nil {
			err = failed
			return
		}
		t := (&answers.Sites{Profile: v.Profile, Ranker: r, Levels: levels, By: by.attributed()}).Table(math.MaxInt)
		tables[side] = append(tables[side], t)
		for _, l := range levels {
			column := l.Level.Cache.Name + "_misses"
			for _, part := range [...]string{[...]string{"_a", "_b"}[side], "_difference"} {
				estimates[column+part] = estimates[column+part] || !l.Exact
			}
		}
	})
	if err != nil {
		return nil, err
	}
	joined := answers.Join(tables[0], tables[1])[0]
	joined.Title = "Misses by " + by.Name() + ", A and B"
	var shown []string
	for _, l := range h.Levels {
		shown = append(shown, l.Name+"_misses")
	}
	t := sortedJoin(joined.Joined, joined.Key, joinedWords, shown[0], sort, append(shown, "references")...)
	t.Doubt, t.By = doubtOf(joined.Doubt), by
	exactly := t.Row
	t.Row = func(i int) []string {
		cells := exactly(i)
		for j, column := range t.Columns {
			if estimates[column.Key] && cells[j] != "–" {
				cells[j] = about + cells[j]
			}
		}
		return cells
	}
	return t, nil
}

// sortedJoin lays a join out with few columns, sorted by one of them: "" for the
// difference of cell. Differences are sorted by what they are without their sign.
func sortedJoin(joined *report.Joined, key string, style report.Words, cell, by string, shown ...string) *Table {
	if by == "" {
		by = cell + "_difference"
	}
	if name, ok := strings.CutSuffix(by, "_difference"); ok {
		if at := joined.Cell(name); at >= 0 {
			joined.SortByDifference(at)
		}
	}
	whole := joined.Wide(key)
	if at := whole.Index(by); at >= 0 && !strings.HasSuffix(by, "_difference") {
		sort.SliceStable(whole.Rows, func(x, y int) bool { return report.Compare(whole.Rows[x][at], whole.Rows[y][at]) < 0 })
	}
	var columns []string // what names a row, and in which of the two it is
	for _, c := range whole.Columns[:len(joined.Columns)+1] {
		columns = append(columns, c.Key)
	}
	if columns[0] == "producer" {
		columns = []string{"producer_file,producer_line,producer", "consumer_file,consumer_line,consumer", "object", "in"}
	}
	for _, name := range shown {
		columns = append(columns, name+"_a", name+"_b", name+"_difference")
	}
	t := show(&whole, style, nil, columns...).of(documentOf(compareSchema, whole))
	t.Sort = by
	return t
}

// joinedWords are those of misses by place, of which whole numbers are shown, with a ≈
// in columns of estimates.
var joinedWords = report.Words{Count: Exact, Real: Count, Share: Percent}

// compareSchema names the JSON of comparisons.
const compareSchema = "stackglass.compare"

// comparedTable shows a join row by row.
func comparedTable(joined *report.Joined, key string) *Table {
	return newComparedTable(joined, key, predictedWords)
}

func newComparedTable(joined *report.Joined, key string, style report.Words) *Table {
	return newReportTable(compareSchema, joined.Brief(key), joined.Table(key), "", style)
}

// Findings are the largest differences, in sentences.
func (c *Comparison) Findings(h hierarchy.Hierarchy) []Finding {
	list := []Finding{c.work(), c.worstSize()}
	if f, ok := c.levelFinding(h); ok {
		list = append(list, f)
	}
	list = append(list, c.footprints())
	if f, ok := c.operations(); ok {
		list = append(list, f)
	}
	return append(list, c.threadFindings()...)
}

// changeWords says how b is to a: 3.2 % more, 96.6 % less, 12 times as many.
func changeWords(a, b float64, more, less string) string {
	switch {
	case a == b:
		return "as many"
	case a == 0:
		return "where A has none"
	case b >= 10*a:
		return significant(b/a) + " times as many"
	case b > a:
		return Percent(b/a-1) + " " + more
	}
	return Percent(1-b/a) + " " + less
}

func (c *Comparison) work() Finding {
	a, b := c.A.Profile.Totals.AllReferences(), c.B.Profile.Totals.AllReferences()
	return Finding{ID: "references", Title: "References", Tab: TabOverview,
		Text: "From " + Exact(a) + " references in A to " + Exact(b) + " in B: " + changeWords(float64(a), float64(b), "more", "fewer") + "."}
}

func (c *Comparison) footprints() Finding {
	a, b := c.A.FootprintBytes(), c.B.FootprintBytes()
	f := Finding{ID: "footprint", Title: "Footprint", Tab: TabLocality}
	if a == b {
		f.Text = "Both touch " + Bytes(a) + "."
		return f
	}
	f.Text = "From " + Bytes(a) + " in A to " + Bytes(b) + " in B: " + changeWords(float64(a), float64(b), "more", "less") + "."
	return f
}

// worstSize is the cache size at which both differ most, in misses of all
// accesses.
func (c *Comparison) worstSize() Finding {
	f := Finding{ID: "size", Title: "Largest difference", Tab: TabCaches}
	var capacity uint64
	most := 0.0
	look := func(v *View) {
		v.Curve.Points(func(lines, _ uint64) bool {
			bytes := lines * v.LineBytes
			if bytes < max(c.A.LineBytes, c.B.LineBytes) {
				return true // no cache of one of them, which would miss everything
			}
			if d := math.Abs(c.A.MissRatio(bytes) - c.B.MissRatio(bytes)); d > most {
				most, capacity = d, bytes
			}
			return true
		})
	}
	look(c.A)
	look(c.B)
	if most == 0 {
		f.Text = "Both miss the same share of accesses in a fully associative LRU cache of any size."
		return f
	}
	a, b := c.A.Curve.Misses(capacity/c.A.LineBytes), c.B.Curve.Misses(capacity/c.B.LineBytes)
	f.Text = "They differ most with " + Bytes(capacity) + " of fully associative cache" + c.A.oneCache() + ": A misses " + Percent(c.A.MissRatio(capacity)) +
		" of its accesses, B " + Percent(c.B.MissRatio(capacity)) + " (" + Exact(a) + " and " + Exact(b) + " misses)."
	return f
}

// levelFinding compares the misses of each level.
func (c *Comparison) levelFinding(h hierarchy.Hierarchy) (Finding, bool) {
	f := Finding{ID: "levels", Title: "In this hierarchy", Tab: TabCaches}
	a, _, errA := c.A.predict(h)
	b, _, errB := c.B.predict(h)
	if errA != nil || errB != nil {
		return f, false
	}
	for i := range a.Levels {
		x, y := math.Round(a.Levels[i].Misses), math.Round(b.Levels[i].Misses)
		if i > 0 {
			f.Text += "; "
		}
		f.Text += a.Levels[i].Cache.Name + ": from " + Count(x) + " misses in A to " + Count(y) + " in B, " + changeWords(x, y, "more", "fewer")
	}
	f.Text += "."
	return f, true
}

// operations compares what both do for each byte.
func (c *Comparison) operations() (Finding, bool) {
	a, okA := c.A.operations()
	b, okB := c.B.operations()
	return Finding{ID: "operations", Title: "Work", Tab: TabCounters, Text: "A: " + a.Text + " B: " + b.Text}, okA && okB
}

// CurveTable is both curves at powers of two of lines.
func (c *Comparison) CurveTable() *Table {
	at := answers.Powers(c.A.Curve, c.B.Curve)
	joined := answers.Join([]report.Table{answers.CurveAt(c.A.Curve, c.A.Locality.LineBytes, at)},
		[]report.Table{answers.CurveAt(c.B.Curve, c.B.Locality.LineBytes, at)})[0]
	joined.Title = "Misses by cache size, A and B"
	return comparedTable(joined.Joined, "curve")
}

// HistogramTable is the accesses of both by distance.
func (c *Comparison) HistogramTable() *Table {
	var tables [2]report.Table
	c.both(func(side int, v *View) { tables[side] = answers.BinnedHistogram(v.Locality.Histogram(trace.AllKinds)) })
	joined := report.Join(tables[0], tables[1], report.Key{Columns: []string{"distance"}, Counts: true}).Pick("count", "share")
	joined.Title = "Accesses by stack distance, A and B"
	return comparedTable(joined, "histogram")
}

// TimeTable is the misses of both by window, for one capacity. Windows of runs
// of unlike length differ in size: rows are the windows by number.
func (c *Comparison) TimeTable(log2Lines int) *Table {
	joined := report.Join(c.A.windowsReport(log2Lines), c.B.windowsReport(log2Lines), report.Key{Columns: []string{"reference"}})
	joined.Title = "Misses by first reference of the window, A and B"
	return comparedTable(joined, "time")
}

func (v *View) windowsReport(log2Lines int) report.Table {
	lines := strconv.FormatUint(1<<log2Lines, 10)
	t := report.Table{Key: "time", Columns: []report.Column{{Key: "reference", Label: "first reference"},
		{Key: "misses_" + lines + "_lines", Label: "misses"}}}
	w := &v.Locality.Windows
	for i := range w.Rows {
		t.Add(report.Count((w.First+uint64(i))*w.References), report.Count(w.Rows[i].Misses(log2Lines)))
	}
	return t
}
