package state

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Comparison compares two analyses: A, B, and the difference B - A.
type Comparison struct {
	A, B    *View
	largest *Finding // computed on first use
}

// compareColors are the colors of A and B in all charts.
var compareColors = [2]string{"side-a", "side-b"}

// SideName returns the title of a run: 0 is A, 1 is B.
func SideName(side int) string { return [...]string{"A (before)", "B (after)"}[side] }

// forBoth calls a function for A and for B.
func (c *Comparison) forBoth(f func(side int, v *View)) {
	f(0, c.A)
	f(1, c.B)
}

// sideLetter returns the letter of a run: A for side 0, B for side 1.
func sideLetter(side int) string { return [...]string{"A", "B"}[side] }

// Curve shows both miss-ratio curves in one chart.
func (c *Comparison) Curve(levels []hierarchy.Cache) *Chart {
	a, b := c.A.MissCurve(levels), c.B.MissCurve(levels)
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

// pairOf returns one series for A and one for B.
func pairOf(shape Shape, ys [2][]float64) (list []Series) {
	for side, y := range ys {
		list = append(list, Series{Label: sideLetter(side), Color: compareColors[side], Shape: shape, Dash: side == 1, Y: y})
	}
	return list
}

// joinSteps returns the values of two step functions at all points at which at least one of the
// functions changes. Before its first point, a function has the value NaN.
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

// extend adds the point x to the end of both step functions. At x, each function has the same value
// as at its previous point.
func extend(at []float64, ys [2][]float64, x float64) ([]float64, [2][]float64) {
	if n := len(at); n > 0 && at[n-1] < x {
		at = append(at, x)
		for side := range ys {
			ys[side] = append(ys[side], ys[side][n-1])
		}
	}
	return at, ys
}

// Histogram shows both histograms of stack distances in logarithmic bins.
func (c *Comparison) Histogram() *Chart {
	var parts [2]*Chart
	c.forBoth(func(side int, v *View) { parts[side] = v.HistogramChart() })
	chart := parts[0]
	if len(parts[1].At) > len(chart.At) {
		chart = parts[1]
	}
	chart.Title, chart.Y.Max = "Accesses by stack distance, A and B", 0
	var ys [2][]float64
	for side, part := range parts {
		y := make([]float64, len(chart.At))
		copy(y, part.Series[0].Y[:part.Split])
		y[chart.Split] = part.Series[1].Y[part.Split]
		ys[side], chart.Y.Max = y, max(chart.Y.Max, slices.Max(y))
	}
	chart.Y.Max = min(1, max(chart.Y.Max*1.1, 0.001))
	chart.Summary = "A: " + parts[0].Summary + " B: " + parts[1].Summary
	chart.Series, chart.Split = pairOf(ShapeLine, ys), 0
	return chart
}

// OverTime shows the misses of both runs over time in a cache of 2^log2Lines lines. Both curves
// begin at the first reference of their run, and may have different lengths.
func (c *Comparison) OverTime(log2Lines int) *Chart {
	var parts [2]*Chart
	c.forBoth(func(side int, v *View) { parts[side] = v.OverTime([]int{log2Lines}) })
	chart := parts[0]
	chart.Title = "Misses over time in " + Bytes(c.A.CapacityBytes(log2Lines)) + ", A and B"
	chart.X.Label = "reference"
	chart.X.Max, chart.Y.Max = max(parts[0].X.Max, parts[1].X.Max), max(parts[0].Y.Max, parts[1].Y.Max)
	var ys [2][]float64
	chart.At, ys[0], ys[1] = joinSteps(parts[0].At, parts[0].Series[0].Y, parts[1].At, parts[1].Series[0].Y)
	for side := range ys { // after the end of a run, its curve has no values
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

// answer contains the joined answers of two runs to one question.
type answer struct {
	joined []answers.Compared
	shown  string // key of the table to show
	err    error
	// document returns the document that the command prints, ranked by the difference in the given
	// number. "" selects the main number.
	document func(number string) func() *report.Document
}

// ask asks both runs a question. The tables on the page may combine rows, but the exported document
// contains all rows.
func (c *Comparison) ask(q ask.Question, key string) answer {
	runs := [2]*ask.Run{c.A.Run, c.B.Run}
	for _, r := range runs {
		r.Asker() // create the asker now, so that later questions reuse it
	}
	a := answer{shown: key}
	_, a.joined, a.err = ask.Compare(runs, q, onWords(q))
	q.Brief = false
	a.document = func(number string) func() *report.Document {
		return func() *report.Document {
			d, joined, err := ask.Compare(runs, q, onWords(q))
			if err != nil {
				return &report.Document{Schema: compareSchema, Version: 1, Warnings: []string{err.Error()}}
			}
			for i := range joined {
				joined[i].Rank(number)
				d.Tables = append(d.Tables, joined[i].Table(joined[i].Key))
			}
			return d
		}
	}
	return a
}

// repliedQuestion returns a question together with the second program's replies about both runs.
func (c *Comparison) repliedQuestion(verb, main string, replies [2]*answers.Reply, h hierarchy.Hierarchy, args ...ask.Arg) ask.Question {
	q := ask.New(ask.Replied(verb, main, map[*profile.Profile]*answers.Reply{c.A.Profile: replies[0], c.B.Profile: replies[1]}, args...))
	q.Machine = h
	return q
}

// LoopsTable shows the references of the loops of both runs.
func (c *Comparison) LoopsTable(replies [2]*answers.Reply, h hierarchy.Hierarchy, sort string) *Table {
	a := c.ask(c.repliedQuestion("loops", "misses", replies, h), "loops")
	return a.byRow("Loops, A and B", words, sort, []string{"loop", "function"}, "references")
}

// missesIn returns the keys of the columns with the misses in each level of a hierarchy.
func missesIn(h hierarchy.Hierarchy) (keys []string) {
	for _, l := range h.Levels {
		keys = append(keys, l.Name+"_misses")
	}
	return keys
}

// CallsTable shows the misses of the call paths of both runs, in the given direction.
func (c *Comparison) CallsTable(direction string, replies [2]*answers.Reply, h hierarchy.Hierarchy, sort string) *Table {
	key := "paths"
	if direction == CallsUp {
		key = "callers"
	}
	a := c.ask(c.repliedQuestion("calls", key, replies, h), key)
	return a.byRow("Misses by call path, A and B", answerWords, sort, []string{"path", "file"}, append(missesIn(h), "instructions", "calls")...)
}

// DataQuestion returns a question about the data structures of a run.
func DataQuestion(h hierarchy.Hierarchy, args ...string) answers.Question {
	return VerbQuestion("data", h, args...)
}

// DataTable shows the misses and sizes of the data structures of both runs.
func (c *Comparison) DataTable(replies [2]*answers.Reply, h hierarchy.Hierarchy, sort string) *Table {
	a := c.ask(c.repliedQuestion("data", "data", replies, h), "data")
	return a.byRow("Data structures, A and B", answerWords, sort, []string{"name", "function"}, append(missesIn(h), "references", "size_bytes")...)
}

// LoopMissesTable shows the misses of the loops of both runs in each level.
func (c *Comparison) LoopMissesTable(replies [2]*answers.Reply, h hierarchy.Hierarchy, sort string) *Table {
	a := c.ask(c.repliedQuestion("loops", "misses", replies, h), "misses")
	return a.byRow("Misses by loop, A and B", words, sort, []string{"loop", "level"}, "misses", "capacity", "conflict")
}

// SetsMap shows the differences between the miss ratios of B and A, by sets and ways.
func (c *Comparison) SetsMap(cell Cell, levels []hierarchy.Cache) *HeatMap {
	a, b := c.A.SetsMap(cell, false, levels), c.B.SetsMap(cell, false, levels)
	a.Title, a.Signed, a.Says = "Miss ratio by sets and ways, B − A"+cmp.Or(c.A.oneCache(), c.B.oneCache()), true, "of accesses; below zero: B has fewer misses"
	a.Least, a.Most = 0, 0
	for i := range a.Values {
		a.Values[i] = b.Values[i] - a.Values[i] // NaN if the cell was not counted in A or in B
		a.Least, a.Most = min(a.Least, orZero(a.Values[i])), max(a.Most, orZero(a.Values[i]))
	}
	a.Summary = "With the same sets and ways, the miss ratio of B is at most " + significant(-100*a.Least) + " percentage points lower and at most " + significant(100*a.Most) + " percentage points higher than the miss ratio of A."
	for i := range a.Marks { // the marks were copied from A, so remove the conflict misses of A from their labels
		a.Marks[i].Label, _, _ = strings.Cut(a.Marks[i].Label, ":")
	}
	return a
}

func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// SetsTable shows the misses of both runs by sets and ways.
func (c *Comparison) SetsTable(sort string) *Table {
	a := c.ask(c.A.question("sets"), "sets")
	return a.byRow("Misses by sets and ways, A and B", words, sort, []string{"sets", "ways"}, "misses")
}

// Footprint shows the footprints of both runs in one chart.
func (c *Comparison) Footprint() *Chart {
	a, b := c.A.FootprintChart(nil), c.B.FootprintChart(nil)
	if len(a.Series) == 0 || len(b.Series) == 0 {
		a.Series, a.At = nil, nil
		return a
	}
	var ys [2][]float64
	at := a.At
	if len(b.At) > len(at) {
		at = b.At
	}
	for side, part := range []*Chart{a, b} { // the windows of both runs have the same lengths
		ys[side] = slices.Repeat([]float64{math.NaN()}, len(at))
		copy(ys[side], part.Series[0].Y)
	}
	a.Title, a.At, a.Series = "Footprint by window length, A and B", at, pairOf(ShapeLine, ys)
	a.X.Max, a.Y.Max = max(a.X.Max, b.X.Max), max(a.Y.Max, b.Y.Max)
	a.Summary = "A: " + a.Summary + " B: " + b.Summary
	return a
}

// FootprintTable shows the footprints of both runs by window length.
func (c *Comparison) FootprintTable() *Table {
	a := c.ask(c.A.question("footprint"), "footprint")
	return a.byNumber("Footprint by window length, A and B", []string{"window_accesses"}, "footprint_lines")
}

// onWords returns the question as an argument of the command's option --on.
func onWords(q ask.Question) string {
	return strings.Join(slices.DeleteFunc(q.Words(), func(word string) bool {
		return word == "line=64" || word == "brief" || strings.HasPrefix(word, "machine=")
	}), " ")
}

// table returns the answer's table; the function "lay" determines its columns and rows. The rows of
// the exported document are ranked by the number in the parameter "number".
func (a *answer) table(title, number string, lay func(*answers.Compared) *Table) *Table {
	at := slices.IndexFunc(a.joined, func(j answers.Compared) bool { return j.Key == a.shown })
	switch {
	case a.err != nil:
		return &Table{Caption: upper(a.err.Error())}
	case at < 0:
		return &Table{Caption: title + ": nothing to compare"}
	}
	j := &a.joined[at]
	t := lay(j)
	t.Caption, t.Doubt, t.key, t.inBoth = title, doubtOf(j.Doubt), j.Key, inBoth(j.Joined)
	return t.setDocument(a.document(number))
}

// byNumber returns a table with one row for each number in the parameter "numbers", or for every
// number if numbers is empty. The table has the given columns and the values in both runs.
func (a *answer) byNumber(title string, columns []string, numbers ...string) *Table {
	return a.table(title, "", func(j *answers.Compared) *Table {
		joined := j.Joined
		if len(numbers) > 0 {
			joined = joined.Pick(numbers...)
			for i := range joined.Cells {
				if c := &joined.Cells[i]; c.Key == "coherence_misses" { // the usual label, "of coherence", is clear only next to the column of misses
					c.Label = "coherence misses"
				}
			}
		}
		tall := joined.Brief(j.Key)
		return show(&tall, answerWords, nil, append(columns, "in", "number", "a", "b", "difference", "change")...).fixOrder() // a column contains several units
	})
}

// byRow returns a table with the joined rows of both runs. The table has the given columns and, for
// each number, the values in both runs. Rows are sorted by the column in the parameter "by". If
// this parameter is "", the rows are sorted by the difference of the first number.
func (a *answer) byRow(title string, style report.Words, by string, columns []string, numbers ...string) *Table {
	number := by
	for _, side := range []string{"_a", "_b", "_difference"} {
		number = strings.TrimSuffix(number, side)
	}
	return a.table(title, number, func(j *answers.Compared) *Table { return sortedJoin(j, style, by, columns, numbers...) })
}

// Facts shows the facts of both runs, with differences.
func (c *Comparison) Facts() *Table {
	a := c.ask(ask.New(ask.Summary), "locality")
	return a.table("Lines of "+strconv.FormatUint(c.A.LineBytes, 10)+" bytes, A and B", "", func(j *answers.Compared) *Table {
		tall := j.Joined.Brief(j.Key)
		return show(&tall, answerWords, map[string]string{"line_bytes": strconv.FormatUint(c.A.LineBytes, 10)}, "number", "a", "b", "difference", "change").fixOrder()
	})
}

// Levels shows the prediction for the hierarchy for both runs, with differences.
func (c *Comparison) Levels(h hierarchy.Hierarchy) *Table {
	q := ask.New(ask.VerbOf("what-if"))
	q.Machine = h
	a := c.ask(q, "levels")
	return a.byNumber("Levels, A and B", []string{"name"}, "accesses", "hits", "misses", "miss_ratio", "coherence_misses")
}

// Doubts returns the reasons why the runs cannot be compared number by number, and the warnings
// about both predictions, without repetition.
func (c *Comparison) Doubts(h hierarchy.Hierarchy) []string {
	list := c.Mismatches()
	c.forBoth(func(side int, v *View) {
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

// Mismatches lists differences between the analyses, rather than between the programs.
func (c *Comparison) Mismatches() (list []string) {
	for _, m := range ask.Mismatches([2]*ask.Run{c.A.Run, c.B.Run}) {
		list = append(list, doubtOf(m))
	}
	return list
}

// doubtOf returns a caveat as a sentence, without the advice for users of the command.
func doubtOf(text string) string {
	if text == "" {
		return ""
	}
	what, _, _ := strings.Cut(text, "; ")
	return upper(what) + "."
}

// CountersBy shows the counters of both runs: of the program, of functions, or of blocks.
func (c *Comparison) CountersBy(by answers.CountersBy, sort string) *Table {
	q := ask.New(ask.VerbOf("counters"))
	if by == answers.ByProgram {
		a := c.ask(q, "counters")
		return a.byNumber("Counters of the program, A and B", []string{"counter"})
	}
	columns, key := []string{"function"}, "functions"
	if by == answers.ByBlock {
		columns, key = append(columns, "block"), "blocks"
	}
	a := c.ask(q.With("by", string(by)), key)
	return a.byRow("Counters of "+key+", A and B", words, sort, columns, "bytes", "flops", "integer_ops", "conditional_branches")
}

// Code is like CodeBy, but groups the misses by function if the sources of both runs have no line
// in common, because functions of the same name can still be compared. The field By of the returned
// table contains the grouping that was used.
func (c *Comparison) Code(by attribution.By, h hierarchy.Hierarchy, sort string) *Table {
	t := c.CodeBy(by, h, sort)
	if by == attribution.Function || by == attribution.Object || t.inBoth {
		return t
	}
	if functions := c.CodeBy(attribution.Function, h, sort); functions.inBoth {
		functions.Doubt = "A and B have no " + PlaceName(by) + " in common, because their sources differ: functions of the same name are compared instead."
		return functions
	}
	return t
}

// inBoth reports whether a row with a source location is in both A and B. The names of rows without
// a location are in brackets.
func inBoth(j *report.Joined) bool {
	return slices.ContainsFunc(j.Rows, func(row report.JoinedRow) bool {
		return row.In == report.InBoth && len(row.Name) > 0 && !strings.HasPrefix(row.Name[0].Plain(), "(")
	})
}

// CodeBy returns the misses of both runs, side by side, for each source location, function or data
// structure.
func (c *Comparison) CodeBy(by attribution.By, h hierarchy.Hierarchy, sort string) *Table {
	columns := []string{"function", "file", "line", "a_line", "text"}
	switch by {
	case attribution.Function:
		columns = columns[:2]
	case attribution.Object:
		columns = []string{"name", "kind", "function"}
	}
	a := c.ask(c.A.sitesQuestion(by, h), "sites")
	t := a.byRow("Misses by "+PlaceName(by)+", A and B", answerWords, sort, columns, append(missesIn(h), "references")...)
	t.By = by
	return t
}

// sortedJoin returns a table with the sorted rows of a join. Differences are sorted by absolute
// value.
func sortedJoin(j *answers.Compared, style report.Words, by string, columns []string, numbers ...string) *Table {
	if by == "" {
		by = numbers[0] + "_difference"
	}
	if name, ok := strings.CutSuffix(by, "_difference"); ok {
		if at := j.Cell(name); at >= 0 {
			j.SortByDifference(at)
		}
	}
	whole := j.Wide(j.Key)
	if at := whole.Index(by); at >= 0 && !strings.HasSuffix(by, "_difference") {
		sort.SliceStable(whole.Rows, func(i, j int) bool { return report.Compare(whole.Rows[i][at], whole.Rows[j][at]) < 0 })
	}
	columns = append(columns, "in")
	for _, name := range numbers {
		columns = append(columns, name+"_a", name+"_b", name+"_difference")
	}
	return show(&whole, style, nil, columns...).sortedBy(by)
}

// compareSchema is the schema name in the JSON of comparisons.
const compareSchema = "stackglass.compare"

// Findings describes the largest differences in sentences.
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

// changeWords describes b relative to a: 3.2 % more, 96.6 % less, 12 times as many.
func changeWords(a, b float64, more, less string) string {
	switch {
	case a == b:
		return "as many"
	case a == 0:
		return "none in A"
	case b >= 10*a:
		return significant(b/a) + " times as many"
	case b > a:
		return Percent(b/a-1) + " " + more
	}
	return Percent(1-b/a) + " " + less
}

func (c *Comparison) work() Finding {
	a, b := c.A.Profile.Totals.AllReferences(), c.B.Profile.Totals.AllReferences()
	return Finding{ID: "references", Title: "References", Tab: TabDiagnosis,
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

// worstSize returns the finding about the cache size at which the miss ratios differ most.
func (c *Comparison) worstSize() Finding {
	if c.largest == nil {
		c.largest = &Finding{ID: "size", Title: "Largest difference", Tab: TabCaches, Text: c.worstSizeWords()}
	}
	return *c.largest
}

func (c *Comparison) worstSizeWords() string {
	d, _, err := ask.Compare([2]*ask.Run{c.A.Run, c.B.Run}, c.briefQuestion("curve"), "curve")
	if err != nil {
		return upper(err.Error()) + "."
	}
	fact := func(key string) string {
		if at := slices.IndexFunc(d.Input, func(f report.Fact) bool { return f.Key == "apart_"+key }); at >= 0 {
			return shown(d.Input[at].Value, answerWords)
		}
		return ""
	}
	if fact("bytes") == "" {
		return "A and B have the same miss ratio in a fully associative LRU cache of any size."
	}
	return "A and B differ most in a fully associative cache of " + fact("bytes") + c.A.oneCache() + ": the miss ratio is " + fact("a_miss_ratio") +
		" for A and " + fact("b_miss_ratio") + " for B (" + fact("a_misses") + " and " + fact("b_misses") + " misses)."
}

// levelFinding compares the misses of each level.
func (c *Comparison) levelFinding(h hierarchy.Hierarchy) (Finding, bool) {
	f := Finding{ID: "levels", Title: "In this hierarchy", Tab: TabCaches}
	a, _, errA := c.A.Run.Asker().Predict(h, nil)
	b, _, errB := c.B.Run.Asker().Predict(h, nil)
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

// operations compares the operations per byte of both runs.
func (c *Comparison) operations() (Finding, bool) {
	a, okA := c.A.operations()
	b, okB := c.B.operations()
	return Finding{ID: "operations", Title: "Work", Tab: TabCounters, Text: "A: " + a.Text + " B: " + b.Text}, okA && okB
}

// briefQuestion returns a question about the line size that the page shows. A row of the answer may
// combine several rows.
func (c *Comparison) briefQuestion(verb string) ask.Question {
	q := c.A.question(verb)
	q.Brief = true
	return q
}

// CurveTable shows both curves at the cache sizes whose number of lines is a power of two.
func (c *Comparison) CurveTable() *Table {
	a := c.ask(c.briefQuestion("curve"), "curve")
	return a.byNumber("Misses by cache size, A and B", []string{"capacity_bytes", "capacity_lines"})
}

// HistogramTable shows the accesses of both runs by stack distance, in powers of two.
func (c *Comparison) HistogramTable() *Table {
	a := c.ask(c.briefQuestion("histogram"), "histogram")
	return a.byNumber("Accesses by stack distance, A and B", []string{"distance"}, "count", "share")
}

// TimeTable shows the misses of both runs by window, for one capacity. A row compares the windows
// with the same number in both runs. If the runs differ in length, the windows differ in length,
// too.
func (c *Comparison) TimeTable(log2Lines int) *Table {
	a := c.ask(c.A.question("windows"), "windows")
	return a.byNumber("Misses in each window of the run, A and B", []string{"first_reference"}, "misses_"+strconv.FormatUint(1<<log2Lines, 10))
}
