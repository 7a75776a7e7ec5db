package state

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"github.com/stackglass/stackglass/workers"
	"pgregory.net/rapid"
)

// The function "analysed" returns the profile of a trace.
func analysed(t *testing.T, r trace.Reader, spec analysis.Spec) *profile.Profile {
	t.Helper()
	runner, err := analysis.NewRunner(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return runner.Profile(profile.State{})
}

// The function "demo" returns the view of a demo's profile.
func demo(t *testing.T, name string, limit uint64) *View {
	t.Helper()
	file, err := os.Open("../../site/demos/" + name + ".sgt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open(name, file, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return NewView(analysed(t, r, analysis.Spec{Limit: limit}), 0)
}

// The function "multiplied" returns the profile of a program that multiplies two n × n matrices.
func multiplied(t *testing.T, n uint64, spec analysis.Spec) *profile.Profile {
	t.Helper()
	p, steps := tracetest.Multiplication(n)
	return analysed(t, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0), spec)
}

func TestCounterTables(t *testing.T) {
	p := multiplied(t, 6, analysis.Spec{Analyses: analysis.Locality | analysis.Counters})
	for _, by := range []answers.CountersBy{answers.ByProgram, answers.ByFunction, answers.ByBlock} {
		keys, tables := CounterTables(NewAnswers("p", p), by, "")
		if len(keys) == 0 || len(keys) != len(tables) {
			t.Fatalf("by %s: %q", by, keys)
		}
		for _, key := range keys {
			table := tables[key]
			for i := range table.Rows {
				if row := table.Row(i); len(row) != len(table.Columns) {
					t.Errorf("%s: row %q, want %d cells", key, row, len(table.Columns))
				}
			}
			if by != answers.ByProgram && table.Sort != "bytes" || !strings.HasPrefix(string(table.CSV()), table.Source().Columns[0].Key+",") {
				t.Errorf("%s: sort column = %q, beginning of the CSV = %.40q; want bytes and the column keys", key, table.Sort, table.CSV())
			}
			var document map[string]any
			if err := json.Unmarshal(table.JSON(), &document); err != nil || len(document[key].([]any)) != table.Rows {
				t.Errorf("%s as JSON: %v", key, err)
			}
		}
	}
	_, tables := CounterTables(NewAnswers("p", p), answers.ByProgram, "")
	ratios := map[string]string{}
	for i := range tables["ratios"].Rows {
		row := tables["ratios"].Row(i)
		ratios[row[0]] = row[1]
	}
	if ratios["bytes per flop"] != "16" || ratios["vectorised share"] != "0\u202f%" || ratios["median reuse distance, in lines of 64 bytes"] == "" {
		t.Errorf("ratios %q", ratios)
	}
	definitions := CounterDefinitions(p)
	for i := range definitions.Rows {
		if row := definitions.Row(i); row[0] == "" || row[1] == "" {
			t.Errorf("definition %q", row)
		}
	}
	if definitions.Rows < int(profile.NumCounters) {
		t.Errorf("%d definitions", definitions.Rows)
	}
}

func TestOperationsFinding(t *testing.T) {
	find := func(p *profile.Profile) string {
		for _, f := range NewView(p, 0).Findings(hierarchy.Presets()[0]) {
			if f.ID == "operations" {
				return f.Text
			}
		}
		return ""
	}
	p := multiplied(t, 6, analysis.Spec{})
	if text := find(p); !strings.HasPrefix(text, "This run executes 432 flops, and moves 16 bytes for each flop.") {
		t.Errorf("finding for a matrix multiplication = %q, want 16 bytes for each flop", text)
	}
	for i := range p.Counters.Code {
		p.Counters.Code[i].Counts[profile.Flops] = 0
	}
	if text := find(p); !strings.Contains(text, "no floating-point operations") || !strings.Contains(text, "bytes for each integer operation") {
		t.Errorf("finding for integer operations = %q, want the bytes for each integer operation", text)
	}
	p.Counters = nil
	if text := find(p); text != "" {
		t.Errorf("finding without counters = %q, want none", text)
	}
}

func TestFormatNumbers(t *testing.T) {
	for got, want := range map[string]string{
		Exact(0):                     "0",
		Exact(9999):                  "9 999",
		Exact(10761110):              "10 761 110",
		SI(9999):                     "9 999",
		SI(10_498_764):               "10.5 M",
		SI(999_499):                  "999 k",
		SI(999_999):                  "1 M",
		Bytes(0):                     "0 B",
		Bytes(64):                    "64 B",
		Bytes(32 << 10):              "32 KiB",
		Bytes(1023):                  "1023 B",
		Bytes(22494 * 64):            "1.37 MiB",
		Bytes(1<<20 - 1):             "1 MiB",
		Percent(0):                   "0 %",
		Percent(1):                   "100 %",
		Percent(0.9999):              "> 99.9 %",
		Percent(0.0236):              "2.36 %",
		Percent(0.000_001):           "< 0.001 %",
		Percent(0.41256):             "41.3 %",
		Duration(400):                "less than a second",
		Duration(40_000):             "40 s",
		Duration(150_000):            "3 min",
		Duration(9_000_000):          "2.5 h",
		Plural(1, "line", "lines"):   "1 line",
		Plural(384, "line", "lines"): "384 lines",
		Count(1234567.5):             "1 234 568",
		threeDigits(3877.6):          "3 878",
		threeDigits(38.776):          "38.8",
	} {
		if got := strings.ReplaceAll(got, thin, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestSignificantIsAccurate checks that the rounding error is never more than half a unit of the
// third significant digit.
func TestSignificantIsAccurate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-6, 1e9).Draw(t, "x")
		var got float64
		if err := json.Unmarshal([]byte(significant(x)), &got); err != nil {
			t.Fatalf("significant(%g) = %q is not a number", x, significant(x))
		}
		if math.Abs(got-x) > x*0.00501 {
			t.Fatalf("significant(%g) = %g", x, got)
		}
	})
}

// TestDemoFindings checks that the findings contain the numbers in the demo's lesson.
func TestDemoFindings(t *testing.T) {
	v := demo(t, "matmul-naive", 0)
	if got := v.Curve.Misses(2048 / 64); got != 33920 {
		t.Fatalf("misses of 2 KiB = %d, want 33920", got)
	}
	text := map[string]string{}
	for _, f := range v.Findings(hierarchy.Presets()[0]) {
		if f.Text == "" || f.Title == "" {
			t.Errorf("finding %s has no title or no text", f.ID)
		}
		text[f.ID] = strings.ReplaceAll(f.Text, thin, " ")
	}
	for id, want := range map[string]string{
		"footprint":   "66.6 k references touch 384 lines of 64 bytes, 24 KiB in all",
		"cold":        "384 accesses, 0.577 %, are first accesses to a line",
		"knees":       "between 36 and 37 lines (2.31 KiB) from 51 % to 6.54 %",
		"first-level": "0.577 % of accesses would miss in a cache of 32 KiB",
		"recorded":    "the loads and stores of the optimised LLVM IR",
	} {
		if !strings.Contains(text[id], want) {
			t.Errorf("finding %s = %q, want %q in it", id, text[id], want)
		}
	}
}

// TestRecordedFinding checks that a finding distinguishes traces of LLVM IR from traces of machine
// code, and says nothing about other traces.
func TestRecordedFinding(t *testing.T) {
	v := demo(t, "matmul-naive", 0)
	v.Profile.Counters = nil
	if f, ok := v.recorded(); ok {
		t.Errorf("without operations and instruction addresses: %q, want no finding", f.Text)
	}
	v.Profile.Input.Header.PCs = true
	if f, ok := v.recorded(); !ok || !strings.Contains(f.Text, "machine code") {
		t.Errorf("with instruction addresses: %q, want machine code", f.Text)
	}
	v.Profile.Input.Header.Format = "csv"
	if f, ok := v.recorded(); ok {
		t.Errorf("in another format: %q, want no finding", f.Text)
	}
}

// TestStepsAreOnTheCurve checks that both ends of each step are points on the curve, and that steps
// do not overlap.
func TestStepsAreOnTheCurve(t *testing.T) {
	for _, name := range []string{"matmul-naive", "matmul-blocked", "array-list"} {
		v := demo(t, name, 0)
		d, err := v.Answer(v.question("curve").With("steps", "true"))
		if err != nil || len(d.Tables[0].Rows) == 0 {
			t.Fatalf("%s: the curve has no steps (error %v)", name, err)
		}
		above := uint64(0)
		for i, row := range d.Tables[0].Rows {
			number := func(key string) float64 { x, _ := cell(&d.Tables[0], i, key).Number(); return x }
			below, lines := uint64(number("below_lines")), uint64(number("capacity_lines"))
			if number("miss_ratio_below") != v.MissRatio(below*64) || number("miss_ratio") != v.MissRatio(lines*64) || number("miss_ratio_below")-number("miss_ratio") < 0.02 {
				t.Errorf("%s: the step %v is not on the curve, or is smaller than 2 %%", name, row)
			}
			if v.Curve.Misses(below+1) == v.Curve.Misses(below) || v.Curve.Misses(lines-1) == v.Curve.Misses(lines) {
				t.Errorf("%s: the curve does not fall at both ends of the step %v", name, row)
			}
			if below < above {
				t.Errorf("%s: the step %v overlaps the previous step", name, row)
			}
			above = lines
		}
	}
	text := strings.ReplaceAll(demo(t, "array-list", 0).steps().Text, thin, " ")
	for _, want := range []string{"between 255 and 258 lines (16.1 KiB) from 23.4 % to 19.2 %", " and 32.1 KiB from ", "to 0.736 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("steps of array-list = %q, want %q in it", text, want)
		}
	}
}

// TestSummaryCountsThreads checks that the summary mentions threads only if there are several.
func TestSummaryCountsThreads(t *testing.T) {
	for name, want := range map[string][]string{
		"matmul-naive":  {"references", "lines", "line"},
		"false-sharing": {"references", "lines", "threads", "line"},
	} {
		var got []string
		for _, f := range NewSummary(demo(t, name, 0), "", false).Facts {
			got = append(got, f.ID)
			if f.ID == "threads" && f.Value != "4" {
				t.Errorf("%s: threads = %s, want 4", name, f.Value)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: facts %q, want %q", name, got, want)
		}
	}
}

func TestPhasesAreFound(t *testing.T) {
	v := demo(t, "array-list", 0)
	if f, ok := v.phases(); !ok || !strings.Contains(f.Text, "has phases") {
		t.Errorf("finding of a run with phases = %+v, want phases", f)
	}
	// A run that repeatedly reads an array that fits in no cache is uniform.
	even := NewView(analysed(t, tracetest.Stream(100_000, tracetest.Strided(64, 1<<26)), analysis.Spec{}), 0)
	if f, ok := even.phases(); !ok || !strings.Contains(f.Text, "uniform") {
		t.Errorf("finding of a uniform run = %+v, want uniform", f)
	}
}

// TestBinsAddUp checks that the bins contain every access in the exact histogram.
func TestBinsAddUp(t *testing.T) {
	v := demo(t, "matmul-blocked", 0)
	bins, sum := v.Bins()
	next := uint64(0) // the first distance in the bin
	for k, n := range bins {
		low, high, wide := strings.Cut(strings.ReplaceAll(binLabel(k), thin, ""), "–")
		if sum += n; low != strconv.FormatUint(next, 10) || wide && high != strconv.FormatUint(2*next-1, 10) {
			t.Errorf("bin %d = %s, want a bin that begins at %d", k, binLabel(k), next)
		}
		next = max(1, 2*next)
	}
	if sum != v.Curve.Accesses {
		t.Errorf("sum of the bins = %d accesses, want %d", sum, v.Curve.Accesses)
	}
	// The windows of the run have their own counts, in the same bins.
	var rows profile.WindowRow
	for _, row := range v.Locality.Windows.Rows {
		for k, c := range row {
			rows[k] += c
		}
	}
	for k, n := range bins {
		if rows[k] != n {
			t.Errorf("sum over the windows = %d accesses in bin %d, want the histogram's %d", rows[k], k, n)
		}
	}
}

func TestTables(t *testing.T) {
	v := demo(t, "matmul-naive", 0)
	for name, table := range map[string]*Table{
		"histogram": v.HistogramTable(), "curve": v.CurveTable(), "kinds": v.KindsTable(),
		"time": v.OverTimeTable(v.DefaultLog2Lines()),
	} {
		seen := 0
		for page := range table.Pages() {
			rows, first := table.Page(page)
			if first != seen {
				t.Errorf("%s: first row of page %d = %d, want %d", name, page, first, seen)
			}
			for _, row := range rows {
				if len(row) != len(table.Columns) {
					t.Errorf("%s: cells of row %q = %d, want %d", name, row, len(row), len(table.Columns))
				}
			}
			seen += len(rows)
		}
		lines := strings.Split(strings.TrimSuffix(string(table.CSV()), "\n"), "\n")
		if seen != table.Rows || len(lines) != table.Rows+1 {
			t.Errorf("%s: rows on all pages = %d, lines of CSV = %d; want %d and %d", name, seen, len(lines), table.Rows, table.Rows+1)
		}
	}
	if got := string(v.CurveTable().CSV()); !strings.Contains(got, "\n2368,37,4352,") {
		t.Errorf("CSV of the curve =\n%s\nwant the step at 37 lines", got)
	}
	if rows, first := v.CurveTable().Page(10_000); first < 0 || len(rows) == 0 {
		t.Errorf("page beyond the end = %d rows from row %d, want the last page", len(rows), first)
	}
}

// TestTablesAreSorted checks that rows can be sorted by any column in both directions, and that
// rows without a value are always last.
func TestTablesAreSorted(t *testing.T) {
	whole := report.Table{Key: "members", Columns: report.Columns("file", "line", "function", "bytes", "type")}
	for _, row := range []struct {
		file  string
		line  uint64
		bytes report.Value
		kind  string
	}{{"b.c", 9, report.Count(4), "int"}, {"a.c", 10, report.Count(100), "char"}, {"a.c", 9, report.None(), "long"}, {"a.c", 11, report.Count(4), "int"}} {
		whole.Add(report.TextOf(row.file), report.Count(row.line), report.TextOf("f"), row.bytes, report.TextOf(row.kind))
	}
	table := show(&whole, words, nil, "file,line,function", "bytes", "type").addBars(&whole, "line")
	for _, test := range []struct{ clicks, want string }{
		{"", "b9 a10 a9 a11"},
		{"bytes", "a10 b9 a11 a9"},
		{"bytes bytes", "b9 a11 a10 a9"},
		{"bytes bytes bytes", "b9 a10 a9 a11"},
		{"function", "a9 a10 a11 b9"},
		{"bytes function function", "b9 a11 a10 a9"},
		{"type", "a10 b9 a11 a9"},
		{"absent", "b9 a10 a9 a11"},
	} {
		s := Screen{Open: "t1"}
		for _, column := range strings.Fields(test.clicks) {
			s = s.Ordered("members", column)
		}
		if again := ParseScreen("#" + s.Hash()); again.Order("members") != s.Order("members") {
			t.Errorf("after %q: order restored from the URL %q = %+v, want the same order", test.clicks, s.Hash(), again.Order("members"))
		}
		sorted := table.Ordered(s.Order("members"))
		var got []string
		for i := range sorted.Rows {
			place, _, _ := strings.Cut(sorted.Row(i)[0], " ")
			file, line, _ := strings.Cut(place, ".c:")
			got = append(got, file+line)
			if bar := strconv.FormatFloat(sorted.Bar(i)*11, 'f', 0, 64); bar != line {
				t.Errorf("after %q: row %d of line %s shows the bar of line %s", test.clicks, i, line, bar)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("after %q: rows = %q, want %q", test.clicks, got, test.want)
		}
	}
	// In this tree, b9 is the parent of a10, and a9 is the parent of a11.
	tree := &Grid{Table: table, ID: "members", Selected: 3, Depths: []int{1, 2, 1, 2}, Folded: []bool{false, false, true, false}, Mark: func(i int) string { return strconv.Itoa(i) }}
	for _, test := range []struct {
		order    Order
		rows     []int
		selected int
	}{
		{Order{}, []int{0, 1, 2, 3}, 3},
		{Order{"members", "bytes", false}, []int{0, 1, 2, 3}, 3},
		{Order{"members", "function", false}, []int{2, 3, 0, 1}, 1},
		{Order{"members", "type", true}, []int{2, 3, 0, 1}, 1},
	} {
		g := tree.Sorted(test.order)
		for i, row := range test.rows {
			if cells, marks := g.View(i, 1); g.At(i) != row || cells[0][0] != tree.Row(row)[0] || marks[0] != strconv.Itoa(row) || g.Depths[i] != tree.Depths[row] || g.Folded[i] != tree.Folded[row] {
				t.Errorf("%v: row %d shows row %d of the tree, want %d", test.order, i, g.At(i), row)
			}
		}
		if g.Selected != test.selected || g.Sort != test.order.Column || g.Reverse != test.order.Reverse {
			t.Errorf("%v: selected row = %d, sort column = %q", test.order, g.Selected, g.Sort)
		}
	}
	if s := (Screen{Orders: []Order{{Table: "a", Column: "b"}}}); s.Ordered("c", "d").Order("a") != s.Orders[0] {
		t.Error("sorting a table changed the order of a different table")
	}
}

func TestLongCurveIsThinnedExactly(t *testing.T) {
	v := NewView(analysed(t, tracetest.Stream(60_000, tracetest.Uniform(9000, 1)), analysis.Spec{}), 0)
	if v.Curve.Len() <= curvePoints {
		t.Fatalf("breakpoints of the curve = %d, too few to test thinning", v.Curve.Len())
	}
	c := v.MissCurve(nil)
	if n := len(c.At); n > curvePoints+2 || n < 100 {
		t.Errorf("drawn points = %d, want 100 to %d", n, curvePoints+2)
	}
	for i, x := range c.At {
		if want := v.MissRatio(uint64(x)); c.Series[0].Y[i] != want {
			t.Fatalf("at %g bytes: %g, want %g", x, c.Series[0].Y[i], want)
		}
		if i > 0 && x <= c.At[i-1] {
			t.Fatalf("points %d and %d are not in ascending order", i-1, i)
		}
	}
	if last := c.Series[0].Y[len(c.At)-1]; last != Ratio(v.Curve.Cold, v.Curve.Accesses) {
		t.Errorf("last value of the curve = %g, want the share of cold accesses", last)
	}
	// The value at a point is valid up to the next point, unless two breakpoints are less than a
	// pixel apart.
	for i := 1; i < len(c.At); i++ {
		if c.At[i] < c.At[i-1]*1.02 {
			continue
		}
		if want := v.MissRatio(uint64(c.At[i]) - v.LineBytes); c.Series[0].Y[i-1] != want {
			t.Errorf("value of the curve from %g to %g bytes = %g, want %g", c.At[i-1], c.At[i], c.Series[0].Y[i-1], want)
		}
	}
}

// predictLevels returns the prediction for cache levels without latencies.
func predictLevels(v *View, levels []hierarchy.Cache) *Caches {
	return v.Predict(hierarchy.Hierarchy{Levels: levels})
}

// TestChartsDoNotComputeDocuments checks that charts do not need documents, because a document
// about a long run has a million rows. A table's document must be computed only once.
func TestChartsDoNotComputeDocuments(t *testing.T) {
	v := demo(t, "openmp-stencil", 0)
	v.MissCurve(nil)
	v.HistogramChart()
	v.OverTime(v.DefaultLog2Lines())
	v.WorkingSet()
	v.Findings(hierarchy.Presets()[0])
	v.Predict(hierarchy.Presets()[0])
	v.Threads().Overlaid(SharedStack)
	v.Communication().FlowMatrix(0, 0, Events, [2]int{-1, -1})
	if n := len(v.documents); n > 0 {
		t.Errorf("documents created by charts = %d, want none", n)
	}
	source := v.CurveTable().Source()
	if v.CurveTable().Source() != source || len(v.documents) != 1 {
		t.Errorf("documents after the table of the curve was requested twice = %d, want 1", len(v.documents))
	}
	for bytes := uint64(64); bytes < 1<<20; bytes += 64 { // dragging a slider requests many such tables
		v.Threads().OwnTable(bytes)
	}
	if len(v.documents) > keptDocuments || len(v.tables) > keptTables {
		t.Errorf("kept documents = %d, kept tables = %d, want at most the limits", len(v.documents), len(v.tables))
	}
}

func TestCharts(t *testing.T) {
	v := demo(t, "array-list", 0)
	levels := hierarchy.Presets()[0].Levels
	for _, c := range []*Chart{v.MissCurve(levels), v.HistogramChart(), v.OverTime(v.DefaultLog2Lines())} {
		if c.Title == "" || c.Summary == "" || c.X.Label == "" || c.Y.Label == "" {
			t.Errorf("chart %s lacks a title or a label: %+v", c.ID, c)
		}
		for _, s := range c.Series {
			if len(s.Y) != len(c.At) {
				t.Errorf("chart %s: values of %q = %d, want a value for each of %d points", c.ID, s.Label, len(s.Y), len(c.At))
			}
			for i, y := range s.Y {
				if y < 0 || y > 1 || y > c.Y.Max || c.Y.Log && y < c.Y.Min {
					t.Errorf("chart %s: value of %q at point %d = %g, which is outside the axis", c.ID, s.Label, i, y)
				}
			}
		}
		for _, m := range c.Marks {
			if m.X < c.X.Min || m.X > c.X.Max {
				t.Errorf("chart %s: the mark %s at %g is outside the axis", c.ID, m.Label, m.X)
			}
		}
	}
}

func TestPredictLevels(t *testing.T) {
	v := demo(t, "matmul-naive", 0)
	got := predictLevels(v, []hierarchy.Cache{{Name: "L1", SizeBytes: 2048, LineBytes: 64}, {Name: "L2", SizeBytes: 8192, Ways: 8, LineBytes: 64}})
	if got.Problem != "" || len(got.Levels) != 2 {
		t.Fatalf("%+v", got)
	}
	l1 := got.Levels[0]
	if numberOfID(l1.Numbers, "misses") != Exact(33920) || l1.Chip != "exact" || !strings.Contains(l1.Method, "exact") {
		t.Errorf("L1: %+v", l1)
	}
	if l2 := got.Levels[1]; !strings.HasPrefix(numberOfID(l2.Numbers, "misses"), "≈") || l2.Chip != "independent" || numberOfID(l2.Numbers, "served") == "" {
		t.Errorf("L2: %+v", l2)
	}
	if got := predictLevels(v, []hierarchy.Cache{{Name: "L1", SizeBytes: 2048, LineBytes: 64}, {Name: "L2", SizeBytes: 8192, LineBytes: 64}}).Levels[1]; got.Chip != "independent" || !strings.HasPrefix(got.Method, "independent") || !strings.HasPrefix(numberOfID(got.Numbers, "misses"), "≈") {
		t.Errorf("prediction for a fully associative second level = %+v, want the independent-level model", got)
	}
	if len(got.Warnings) == 0 {
		t.Error("the prediction lacks a warning about the second level")
	}
	if got := predictLevels(v, []hierarchy.Cache{{Name: "L1", SizeBytes: 6144, Ways: 8, LineBytes: 64}}); got.Levels[0].Chip != "sdcm" || len(got.Warnings) == 0 {
		t.Errorf("prediction for twelve sets = %+v, warnings = %q", got.Levels[0], got.Warnings)
	}
	other := predictLevels(v, []hierarchy.Cache{{Name: "L1", SizeBytes: 2048, LineBytes: 32}, {Name: "L2", SizeBytes: 8192, LineBytes: 64}})
	if l := other.Levels[0]; l.Chip == "exact" || !strings.HasPrefix(numberOfID(l.Numbers, "misses"), "≈") || !strings.Contains(l.Note, "has 32-byte lines") || !strings.Contains(l.Note, "for 64") {
		t.Errorf("prediction for a line size without a histogram = %+v, want an estimate and a note", l)
	}
	if l := other.Levels[1]; l.Note != "" {
		t.Errorf("note for a line size of the profile = %q, want none", l.Note)
	}
	fixed := v.WithLines([]hierarchy.Cache{{Name: "L1", SizeBytes: 2048, LineBytes: 32, Ways: 64}})
	if answer := predictLevels(v, fixed); answer.Problem != "" {
		t.Errorf("prediction for the levels %+v of WithLines: problem = %s, want none", fixed, answer.Problem)
	}
}

// TestRatiosOfRoundedNumbers checks that ratios are computed from the rounded numbers on the page.
func TestRatiosOfRoundedNumbers(t *testing.T) {
	for _, c := range []struct {
		part, whole float64
		want        string
	}{{769.9, 770, "100 %"}, {769.4, 770, "99.9 %"}, {0.3, 770, "0 %"}, {0.2, 0.4, "–"}, {1, 4, "25 %"}} {
		if got := strings.ReplaceAll(shareOfWhole(c.part, c.whole), thin, " "); got != c.want {
			t.Errorf("share of %g of %g = %q, want %q", c.part, c.whole, got, c.want)
		}
	}
	summary := demo(t, "array-list", 0).MissCurve([]hierarchy.Cache{{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64}}).Summary
	if !strings.Contains(strings.ReplaceAll(summary, thin, " "), "fully associative: L1 32 KiB 0.909 %.") {
		t.Errorf("summary of the curve = %q, want the miss ratio of the mark L1", summary)
	}
}

func TestSizesAndWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		also := uint64(rapid.IntRange(1, 1<<22).Draw(t, "lines")) * 64
		sizes := Sizes(also)
		if !slices.Contains(sizes, also) || !slices.IsSorted(sizes) || len(slices.Compact(slices.Clone(sizes))) != len(sizes) {
			t.Fatalf("Sizes(%d) = %v", also, sizes)
		}
		levels := []hierarchy.Cache{{Name: "L1", SizeBytes: 32 << 10, Ways: uint32(rapid.IntRange(0, 200).Draw(t, "ways")), LineBytes: 64}}
		levels = With(levels, 0, func(c *hierarchy.Cache) { c.SizeBytes = also })
		if err := levels[0].Check(); err != nil {
			t.Fatalf("%d bytes: %v", also, err)
		}
		ways := Ways(levels[0])
		if !slices.Contains(ways, levels[0].Ways) || !slices.IsSortedFunc(ways, func(a, b uint32) int { return int(a-1) - int(b-1) }) {
			t.Fatalf("%s: ways %v", levels[0], ways)
		}
		for _, w := range ways {
			c := levels[0]
			if c.Ways = w; c.Check() != nil {
				t.Fatalf("%d bytes, %d ways: %v", also, w, c.Check())
			}
		}
	})
}

// wholeScreen is a screen in which no setting has its default value.
var wholeScreen = Screen{
	Open: "t12ab-2", Other: "t9", Exercise: 3, Tab: TabLocality, Facts: true, LineBytes: 128, Preset: "i7-4770K", Threads: hierarchy.OnOneCore,
	Levels:    []hierarchy.Cache{{Name: "L1", SizeBytes: 32768, Ways: 8, LineBytes: 64}, {Name: "L2", SizeBytes: 1 << 20, LineBytes: 64, SharedBy: hierarchy.AllCores}},
	TLBs:      []hierarchy.Cache{{Name: "DTLB", SizeBytes: 16 << 12, LineBytes: 4096}, {Name: "STLB", SizeBytes: 1536 << 12, Ways: 12, LineBytes: 4096, Pages: 2<<20 + 4<<10}},
	Log2Lines: []int{4, 9}, Table: "curve", Range: Range{4096, 81920}, Zooms: []Zoom{{"curve", 16384, 65536.5}, {"histogram", -0.6, 7}}, Orders: []Order{{"members", "size", true}, {"kinds", "count", false}}, Page: 3, By: answers.ByBlock, Sort: "integer_ops", Place: attribution.Object, Picked: 5,
	Memory: hierarchy.Memory{LatencyCycles: 235.5, BytesPerCycle: 7.25}, ClockGHz: 3.5, Cell: Cell{6, 8}, Conflicts: true,
	Beside: []string{"L1=64KiB,2,latency=3,shared=4,hashed,random,exclusive,write-through,no-allocate", "threads=own-cores"},
	Stack:  CoherentStack, OwnBytes: 12 << 10, SharedBytes: 1 << 30, Groups: "0-0-1", Granule: 2, Measure: FlowBytes, Window: 7, Flow: [2]int{2, 64}, Owner: 3,
	Data: 2, own: map[string]string{"shade": "L1_misses"}, Loop: 4, Calls: CallsFunction, Root: 12, Weight: "L2_misses", Frame: "up-17-3", Cores: 16, Division: "loops", Schedule: "dynamic,4", Interleave: "random", Model: "all", Processor: "zen3", Function: 70000, Block: 9,
}

// wholeHash is the hash for wholeScreen.
const wholeHash = "open=t12ab-2&view=locality&facts=1&with=t9&line=128&preset=i7-4770K&levels=L1.32768.8.64_L2.1048576.0.64.s4294967295_DTLB.65536.0.4096.t_STLB.6291456.12.4096.t.p2101248_memory.l235d5.b7d25_clock.g3d5&threads=one-core&against=L1=64KiB,2,latency=3,shared=4,hashed,random,exclusive,write-through,no-allocate&against=threads=own-cores&cell=64x8&map=conflicts&time=4.9&range=4096..81920&zoom=curve:16384:65536.5&zoom=histogram:-0.6:7&order=members:size:reverse&order=kinds:count&table=curve&by=block&sort=integer_ops&place=object&picked=5&stack=coherent&own=12288&shared=1073741824&groups=0-0-1&measure=bytes&calls=function&of=12&weight=L2_misses&frame=up-17-3&processor=zen3&division=loops&schedule=dynamic-4&interleave=random&sdcm=all&granule=2&exercise=3&window=7&from=2&to=64&owner=3&data=2&loop=4&function=70000&block=9&cores=16&page=4&shade=L1_misses"

// TestScreenFromHash checks that every setting of a screen is restored from its hash, and that
// hashes do not change between versions.
func TestScreenFromHash(t *testing.T) {
	for i, v := 0, reflect.ValueOf(wholeScreen); i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; name != "Demo" && v.Field(i).IsZero() { // the field Demo is set only in links, and only if no analysis is open
			t.Errorf("the field %s of wholeScreen has its zero value", name)
		}
	}
	if got := wholeScreen.Hash(); got != wholeHash {
		t.Errorf("hash =\n%s\nwant\n%s", got, wholeHash)
	}
	names := map[string]bool{}
	for _, s := range settings {
		if names[s.name] {
			t.Errorf("two settings have the name %s", s.name)
		}
		names[s.name] = true
	}
	if s := wholeScreen.WithOwn(Shade, ""); s.own == nil || s.Own(Shade) != "" || wholeScreen.Own(Shade) == "" || strings.Contains(s.Hash(), "shade") {
		t.Errorf("after the setting was reset, the screen has the hash %s, and the original screen has the setting %q", s.Hash(), wholeScreen.Own(Shade))
	}
	for _, want := range []Screen{{}, {Open: "x"}, {Open: "x", Tab: TabCounters}, wholeScreen} {
		if got := ParseScreen("#" + want.Hash()); !reflect.DeepEqual(got, want) {
			t.Errorf("ParseScreen(%q) = %+v, want %+v", want.Hash(), got, want)
		}
	}
	for hash, want := range map[string]int{"#pages=3KiB": 1, "#pages=8KiB": 0, "#pages=2MiB": 0} {
		if got := Unread(hash); len(got) != want {
			t.Errorf("sentences about %s = %q, want %d", hash, got, want)
		}
	}
	if got := ParseScreen("#demo=ring"); got.Demo != "ring" {
		t.Errorf("%+v", got)
	}
}

func FuzzParseScreen(f *testing.F) {
	f.Add("#open=a&view=caches&levels=L1.1024.8.64_L2.4096.0.64&time=1.2&page=9")
	f.Add("open=a&zoom=curve:1:1e999&zoom=curve:0.123456789:2&zoom=curve:5:nan&zoom=:1:2&zoom=time:9:3&order=a&order=a:b:c&order=a:c&order=:b")
	f.Add("levels=a.b.c.d&line=9999999999&time=-1.40&table=<script>&open=%00")
	f.Fuzz(func(t *testing.T, hash string) {
		s := ParseScreen(hash)
		again := ParseScreen(s.Hash())
		if s.Open != "" && again.Hash() != s.Hash() {
			t.Errorf("%q: hash %q is parsed and formatted as %q", hash, s.Hash(), again.Hash())
		}
		for _, l := range s.Levels {
			if l.LineBytes == 0 {
				t.Errorf("ParseScreen(%q) has a level without a line size: %+v", hash, l)
			}
		}
	})
}

func TestToggleCapacity(t *testing.T) {
	s := Screen{}
	for _, c := range []struct {
		shown []int
		k     int
		want  []int
	}{
		{[]int{4, 9}, 12, []int{4, 9, 12}},
		{[]int{4, 9, 12}, 13, []int{9, 12, 13}},
		{[]int{4, 9}, 4, []int{9}},
		{[]int{4}, 4, []int{4}},
	} {
		if got := s.ToggleCapacity(c.shown, c.k).Log2Lines; !slices.Equal(got, c.want) {
			t.Errorf("%v after %d was toggled = %v, want %v", c.shown, c.k, got, c.want)
		}
	}
}

func TestTabs(t *testing.T) {
	var grouped []Tab
	for i, g := range TabGroups() {
		for _, tab := range g.Tabs {
			if grouped = append(grouped, tab); tab.Group() != i {
				t.Errorf("group of tab %s = %d, want %d", tab.Name(), tab.Group(), i)
			}
		}
	}
	if slices.Sort(grouped); !slices.Equal(grouped, Tabs()) {
		t.Errorf("tabs of all groups = %v, want each tab once", grouped)
	}
	for _, tab := range Tabs() {
		if TabOf(tab.Slug()) != tab {
			t.Errorf("TabOf does not find the tab %s by its slug", tab.Name())
		}
		if here := tab <= TabCaches; here != (tab.Missing(&profile.Profile{}) == "") {
			t.Errorf("tab %s: Missing() = %q, want a text only for tabs after Caches", tab.Name(), tab.Missing(&profile.Profile{}))
		}
	}
}

// TestMissingCommunicationHasOneReason checks that, if communication is missing, the page states
// the actual reason and no other possible reason.
func TestMissingCommunicationHasOneReason(t *testing.T) {
	p := &profile.Profile{NoCommunication: profile.LateThread}
	p.Totals.Threads = []uint32{1, 2}
	if text := TabCommunication.Missing(p); !strings.Contains(text, "second thread appears before reference 65,536") || strings.Contains(text, "earlier version") || strings.Contains(text, "memory") {
		t.Errorf("text about a thread that appears late = %s", text)
	}
	p.NoCommunication = profile.NotAnalysed
	if text := TabCommunication.Missing(p); !strings.Contains(text, "was not requested") || strings.Contains(text, "second thread") {
		t.Errorf("text about results that were not analysed = %s", text)
	}
}

// TestRunBarForms checks that bars with different numbers have the same form, and that bars with
// different facts or meters have different forms.
func TestRunBarForms(t *testing.T) {
	p := workers.Progress{Bytes: 25 << 20, TotalBytes: 100 << 20, References: 9_000_000, Millis: 1000, Memory: 3 << 20}
	more, paused, limited, shared := p, p, p, p
	more.Bytes, more.References, more.Millis = 26<<20, 10_000_000, 1200
	paused.Paused = true
	limited.Limit = 1 << 30
	shared.Workers = 2
	if !NewRunBar(p).SameForm(NewRunBar(more)) {
		t.Error("SameForm = false for bars with different numbers")
	}
	for name, other := range map[string]workers.Progress{"paused": paused, "with a limit": limited, "with workers": shared} {
		if NewRunBar(p).SameForm(NewRunBar(other)) {
			t.Errorf("SameForm = true for the bar of a run that is %s", name)
		}
	}
}

func factOf(bar RunBar, id string) string {
	for _, f := range bar.Facts {
		if f.ID == id {
			return f.Value
		}
	}
	return ""
}

func TestRunBar(t *testing.T) {
	bar := NewRunBar(workers.Progress{Bytes: 25 << 20, TotalBytes: 100 << 20, References: 9_000_000, Millis: 1000, Memory: 3 << 20})
	facts := map[string]string{}
	for _, f := range bar.Facts {
		facts[f.ID] = strings.ReplaceAll(f.Value, thin, " ")
	}
	want := map[string]string{"bytes": "25 MiB of 100 MiB", "references": "9 M", "rate": "9 M/s", "left": "3 s", "memory": "3 MiB"}
	for id, value := range want {
		if facts[id] != value {
			t.Errorf("fact %s = %q, want %q", id, facts[id], value)
		}
	}
	if bar.Share != 0.25 || !bar.Known {
		t.Errorf("share = %g, known = %v; want 0.25 and true", bar.Share, bar.Known)
	}
	shared := NewRunBar(workers.Progress{Bytes: 20 << 20, TotalBytes: 100 << 20, References: 4_000_000, Ahead: 6_000_000, Total: 20_000_000, Workers: 3, Millis: 1000})
	for _, f := range shared.Facts {
		want := map[string]string{"bytes": "20 MiB of 100 MiB", "references": "10 M", "ahead": "6 M", "workers": "3", "rate": "10 M/s", "left": "1 s"}
		if w, ok := want[f.ID]; ok && strings.ReplaceAll(f.Value, "\u202f", " ") != w {
			t.Errorf("fact %s of a shared run = %q, want %q", f.ID, f.Value, w)
		}
	}
	// The threads are slower than the single-threaded start, so the remaining time is estimated
	// from the recent speed.
	threads := NewRunBar(workers.Progress{Bytes: 100, TotalBytes: 100, References: 5_000_000, LeftOut: 1_000_000, Total: 12_000_000, Speed: 500_000, Millis: 1000})
	if percent := strings.ReplaceAll(threads.Percent, thin, ""); percent != "50%" || factOf(threads, "left") != "12"+thin+"s" {
		t.Errorf("progress without excluded threads = %s, time left = %s; want 50%% and 12 s", threads.Percent, factOf(threads, "left"))
	}
	for name, p := range map[string]workers.Progress{"all read": {Bytes: 100, TotalBytes: 100, Millis: 1000}, "ending": {References: 9, Total: 10, Ending: true, Millis: 1000}} {
		if bar := NewRunBar(p); bar.Share > 0.99 || factOf(bar, "left") != "finishing" {
			t.Errorf("%s: share = %g, time left = %q; want a share below 1 and \"finishing\"", name, bar.Share, factOf(bar, "left"))
		}
	}
	if early := NewRunBar(workers.Progress{Bytes: 1}); early.Known || early.Share != 0 {
		t.Errorf("bar for a file of unknown length = %+v, want an unknown share", early)
	}
}

func TestRelativeDates(t *testing.T) {
	now := time.Date(2026, 3, 10, 0, 30, 0, 0, time.UTC) // half past midnight on a Tuesday
	for want, then := range map[string]time.Time{
		"today 00:10":     now.Add(-20 * time.Minute),
		"yesterday 23:50": now.Add(-40 * time.Minute),
		"Sunday 12:30":    now.Add(-36 * time.Hour),
		"28 February":     now.AddDate(0, 0, -10),
		"10 March 2025":   now.AddDate(-1, 0, 0),
	} {
		if got := When(then, now); got != want {
			t.Errorf("When(%v) = %q, want %q", then, got, want)
		}
	}
}

func TestRowsOfKeptAnalyses(t *testing.T) {
	rows := KeptRows([]profile.Entry{
		{Key: "a", Name: "sort", References: 10_498_764, Bytes: 1 << 20, State: profile.EntryComplete},
		{Key: "b", Name: "payroll", State: profile.EntryInterrupted, Done: 0.637},
	}, time.Now())
	if rows[0].Hash != "#open=a&view=diagnosis" || rows[0].Interrupted {
		t.Errorf("%+v", rows[0])
	}
	if strings.ReplaceAll(rows[1].State, thin, " ") != "interrupted at 63 %" || rows[1].Hash != "" {
		t.Errorf("%+v", rows[1])
	}
}

func TestSettings(t *testing.T) {
	spec, err := Settings{LineBytes: []string{"32", "128"}, Kinds: "store,modify"}.Spec()
	if err != nil || !slices.Equal(spec.LineBytes, []uint32{32, 128}) || spec.Kinds.Has(trace.Load) || !spec.Kinds.Has(trace.Modify) {
		t.Errorf("%+v, %v", spec, err)
	}
	if spec, err := (Settings{}).Spec(); err != nil || !slices.Equal(spec.LineBytes, []uint32{64}) || spec.Kinds != trace.DataKinds {
		t.Errorf("defaults: %+v, %v", spec, err)
	}
	for _, bad := range []Settings{{LineBytes: []string{"48"}}, {LineBytes: []string{"x"}}, {Kinds: "everything"}} {
		if _, err := bad.Spec(); err == nil {
			t.Errorf("Spec() accepted %+v, want an error", bad)
		}
	}
}

func TestEmptyProfile(t *testing.T) {
	p := analysed(t, tracetest.NewReader(tracetest.Of(), 1), analysis.Spec{})
	v := NewView(p, 64)
	if v == nil {
		return
	}
	if f := v.Findings(hierarchy.Presets()[0]); len(f) != 1 {
		t.Errorf("%+v", f)
	}
	v.MissCurve(nil)
	v.HistogramChart()
	v.OverTime(v.DefaultLog2Lines())
	v.HistogramTable().CSV()
	predictLevels(v, hierarchy.Presets()[0].Levels)
}

func TestSpacesInNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"33,920 times, one of 2,560 bytes": "33\u202f920 times, one of 2\u202f560 bytes", "1,234,567": "1\u202f234\u202f567", "1,23 or 4, 500": "1,23 or 4, 500",
		"32 KiB, 6 B, 5 % or 7 Bytes": "32\u202fKiB, 6\u202fB, 5\u202f% or 7 Bytes",
	} {
		if got := Spaced(text); got != want {
			t.Errorf("Spaced(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestPartNote checks that the page tells which part of a run was recorded or analysed, and that it
// tells nothing about a whole run.
func TestPartNote(t *testing.T) {
	for _, c := range []struct {
		extent trace.Extent
		skip   uint64
		want   []string
	}{
		{trace.Extent{}, 0, nil},
		{trace.Extent{For: 30000}, 0, []string{"The recording contains at most 30,000 references of each thread."}},
		{trace.Extent{After: 20000}, 7000, []string{"The recording begins with empty caches after the first 20,000 references of each thread, ", " unknown. The analysis begins at reference 7,000 with empty caches"}},
	} {
		p := &profile.Profile{Input: profile.Input{Skip: c.skip, Header: trace.Header{Extent: c.extent}}}
		p.Totals.References[trace.Load] = 1
		got := (&View{Profile: p}).PartNote()
		if (got == "") != (c.want == nil) {
			t.Errorf("%+v: the note is %q", c.extent, got)
		}
		for _, text := range c.want {
			if !strings.Contains(got, text) {
				t.Errorf("%+v: the note is %q, want %q", c.extent, got, text)
			}
		}
	}
}
