package answers

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// TestCurvesJoinWithoutGaps checks that both curves are known at each breakpoint of either curve,
// and that neither curve changes between two breakpoints.
func TestCurvesJoinWithoutGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ha, _, coldA := drawHistogram(t)
		hb, _, coldB := drawHistogram(t)
		a, b := profile.NewCurve(ha, coldA), profile.NewCurve(hb, coldB)
		points := Breakpoints(a, b)
		if !slices.IsSorted(points) {
			t.Fatalf("breakpoints %v are not ascending", points)
		}
		list := Join([]report.Table{CurveAt(a, 64, points)}, []report.Table{CurveAt(b, 64, points)})
		misses := list[0].Cell("misses")
		for i := range list[0].Rows {
			row := &list[0].Rows[i]
			if row.In != report.InBoth {
				t.Fatalf("only one of the curves contains the capacity of %d lines", points[i])
			}
			next := points[i] + 1
			if i+1 < len(points) {
				next = points[i+1]
			}
			if number(row.A[misses]) != a.Misses(next-1) || number(row.B[misses]) != b.Misses(next-1) {
				t.Fatalf("misses change between %d and %d lines", points[i], next)
			}
		}
	})
}

func TestJoinPairsTablesByKey(t *testing.T) {
	p := &profile.Profile{Counters: &profile.Counters{}}
	p.Totals.References[trace.Load] = 3
	q := &profile.Profile{Locality: []profile.Locality{{LineBytes: 64}}}
	list := Join(Summary(p), Summary(q))
	var tableKeys []string
	for i := range list {
		tableKeys = append(tableKeys, list[i].Key)
	}
	if got := strings.Join(tableKeys, " "); got != "kinds counters locality" {
		t.Errorf("joined %s", got)
	}
	if row := list[0].Rows[0]; row.In != report.InA || number(row.B[0]) != 0 {
		t.Errorf("the row of loads, which only A has, is %v, want 0 in B", row)
	}
}

func TestKeyOfUnknownTable(t *testing.T) {
	for want, table := range map[string]report.Table{
		"x": {Key: "new", Columns: []report.Column{{Key: "x"}, {Key: "y"}}},
		"":  {Key: "new", Columns: []report.Column{{Key: "x"}}, Single: true},
	} {
		if got := strings.Join(KeyOf(&table).Columns, " "); got != want {
			t.Errorf("KeyOf returned the columns %q, want %q", got, want)
		}
	}
}

func TestHeadlineOfComparison(t *testing.T) {
	side := func(cycles, waiting uint64, kinds ...string) []report.Table {
		verdict := report.Table{Key: "verdict", Columns: report.Columns("verdict", "cycles", "memory_cycles")}
		verdict.Add(report.TextOf("Memory costs something"), report.Count(cycles), report.Count(waiting))
		findings := report.Table{Key: "findings", Columns: report.Columns("kind", "function", "data", "saved_cycles")}
		for _, kind := range kinds {
			findings.Add(report.TextOf(kind), report.TextOf("main"), report.TextOf("a"), report.Count(1))
		}
		return []report.Table{verdict, findings}
	}
	for want, sides := range map[string][2][]report.Table{
		"B is an estimated 1.50 times as fast as A: 3,000 → 2,000 cycles, 900 → 100 of them waiting for memory. Problems: 1 fixed, 1 remaining, 2 new.":   {side(3000, 900, "stride", "tlb"), side(2000, 100, "tlb", "fusion", "layout")},
		"B takes an estimated 20 times as long as A: 100 → 2,000 cycles, 0 → 100 of them waiting for memory. No fixable problem was found in either run.": {side(100, 0), side(2000, 100)},
		"B is estimated to take about as long as A: 1,000 → 1,001 cycles, 9 → 9 of them waiting for memory. Problems: 0 fixed, 0 remaining, 1 new.":       {side(1000, 9), side(1001, 9, "tlb")},
		"": {side(0, 0), side(2000, 100, "tlb")},
	} {
		if got := Headline(Join(sides[0], sides[1]), [2]uint64{100, 125}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	want := "B is an estimated 125 times as fast as A: 2,000,000 → 16,000 cycles, 0 → 0 of them waiting for memory. The runs also do different amounts of work: 900,000 → 7,000 references. No fixable problem was found in either run."
	if got := Headline(Join(side(2000000, 0), side(16000, 0)), [2]uint64{900000, 7000}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Headline(Join([]report.Table{{Key: "curve", Columns: report.Columns("misses")}}, nil), [2]uint64{}); got != "" {
		t.Errorf("Headline returned %q for tables that are not diagnoses, want none", got)
	}
}

func TestMismatchesOfComparedProfiles(t *testing.T) {
	of := func(change func(*profile.Profile)) *profile.Profile {
		p := &profile.Profile{Input: profile.Input{Header: trace.Header{Format: "sgt", Sizes: true}, Kinds: trace.DataKinds}}
		change(p)
		return p
	}
	whole := of(func(p *profile.Profile) { p.Locality = []profile.Locality{{LineBytes: 64}} })
	for want, p := range map[string]*profile.Profile{
		"same run":                 whole,
		"--kinds":                  of(func(p *profile.Profile) { p.Input.Kinds = trace.AllKinds }),
		"references from number 7": of(func(p *profile.Profile) { p.Input.Skip = 7 }),
		"at most 9 references":     of(func(p *profile.Profile) { p.Input.Limit = 9 }),
		"only 1,2":                 of(func(p *profile.Profile) { p.Input.Threads = []uint32{1, 2} }),
		"format sgt (no access si": of(func(p *profile.Profile) { p.Input.Header.Sizes = false }),
		"lines of 32 128 bytes":    of(func(p *profile.Profile) { p.Locality = []profile.Locality{{LineBytes: 32}, {LineBytes: 128}} }),
		"format din":               of(func(p *profile.Profile) { p.Input.Header.Format = "din" }),
	} {
		if got := Mismatches(whole, p, func() bool { return p == whole }); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%q, want one sentence that contains %q", got, want)
		}
	}
	other := of(func(p *profile.Profile) { p.Totals.References[trace.Load] = 1 })
	if got := Mismatches(whole, other, func() bool { return false }); len(got) != 0 {
		t.Errorf("mismatches %q of two runs that were analysed in the same way, want none", got)
	}
}

func functions(rows ...string) report.Table {
	t := report.Table{Key: "functions", Title: "Functions", Columns: []report.Column{
		{Key: "function", Label: "function"}, {Key: "file", Label: "file"}, {Key: "loads", Label: "loads"}, {Key: "bytes", Label: "bytes"}}}
	for i := 0; i < len(rows); i += 2 {
		t.Add(report.TextOf(rows[i]), report.TextOf(rows[i+1]), report.Count(uint64(i)), report.Count(8*uint64(i)))
	}
	return t
}

// TestFunctionsInDifferentFiles checks that, if two programs have no file in common, functions such
// as main are compared by name.
func TestFunctionsInDifferentFiles(t *testing.T) {
	compared := func(a, b report.Table) (string, bool) {
		c := Join([]report.Table{a}, []report.Table{b})[0]
		table := c.Brief("")
		return string(table.CSV()), c.Doubt != ""
	}
	got, doubtful := compared(functions("main", "a.c", "solve", "a.c"), functions("main", "a.c", "solve", "b.c"))
	if want := "function,file,in,a,b,difference,change\nmain,a.c,both,0,0,0,0\nsolve,a.c,A,16,0,-16,-1\nsolve,b.c,B,0,16,16,\n"; got != want || doubtful {
		t.Errorf("programs with a common file: warning %v, table\n%swant\n%s", doubtful, got, want)
	}
	got, doubtful = compared(functions("main", "a.c"), functions("main", "b.c", "solve", "b.c"))
	if want := "function,in,a,b,difference,change\nmain,both,0,0,0,0\nsolve,B,0,16,16,\n"; got != want || !doubtful {
		t.Errorf("programs without a common file: warning %v, table\n%swant\n%s", doubtful, got, want)
	}
	if _, doubtful = compared(functions("main", "a.c"), functions("solve", "b.c")); doubtful {
		t.Error("got a warning for programs without a common function, want none")
	}
}

func sites(columns string, rows ...string) report.Table {
	t := report.Table{Key: "sites"}
	for key := range strings.FieldsSeq(columns) {
		t.Columns = append(t.Columns, report.Column{Key: key, Label: key})
	}
	for _, row := range rows {
		var cells []report.Value
		for i, word := range strings.Fields(row) {
			n, err := strconv.ParseUint(word, 10, 64)
			switch key := t.Columns[i].Key; {
			case word == "-":
				cells = append(cells, report.None())
			case err == nil && (key == "line" || key == "column" || strings.HasSuffix(key, "_misses")):
				cells = append(cells, report.Count(n))
			default:
				cells = append(cells, report.TextOf(word))
			}
		}
		t.Add(cells...)
	}
	return t
}

// TestRowsMatchByName checks that lines, functions, sites and data are matched by their names in
// the source.
func TestRowsMatchByName(t *testing.T) {
	const lines, site, object = "function file line L1_misses kind", "function file line column kind variable L1_misses number", "name kind function file line L1_misses"
	for _, c := range []struct {
		a, b report.Table
		want string // the rows as CSV, without the header
		says string // a part of the expected warning, or "" if no warning is expected
	}{
		{sites(lines, "f a.c 1 7 load", "f a.c 2 3 load"), sites(lines, "f a.c 2 9 load,store"), "f,a.c,1,A,7,0,-7,-1 f,a.c,2,both,3,9,6,2", ""},
		{sites(lines, "f a.c 1 7 load"), sites(lines, "f b.c 1 9 load"), "f,b.c,1,B,0,9,9, f,a.c,1,A,7,0,-7,-1", "--by function"},
		{sites(lines, "f a.c - 7 load", "(rest) - - 1 -"), sites(lines, "f b.c - 9 load", "(rest) - - 1 -"), "f,7,9,2,0.2857142857142857 (rest),1,1,0,0", "matched by name"},
		{sites(site, "f a.c 1 5 load x 7 12", "f a.c 1 9 load y 2 13"), sites(site, "f a.c 1 9 load y 3 12"), "f,a.c,1,5,load,x,A,7,0,-7,-1 f,a.c,1,9,load,y,both,2,3,1,0.5", ""},
		{sites(object, "x global - a.c 12 7"), sites(object, "x global - b.c 13 9"), "x,global,,7,9,2,0.2857142857142857", ""},
	} {
		joined := Join([]report.Table{c.a}, []report.Table{c.b})[0]
		joined.Rank("")
		table := joined.Brief("")
		_, rows, _ := strings.Cut(string(table.CSV()), "\n")
		if got := strings.Join(strings.Split(strings.TrimSpace(rows), "\n"), " "); got != c.want || c.says == "" != (joined.Doubt == "") || !strings.Contains(joined.Doubt, c.says) {
			t.Errorf("the table is %s with the warning %q, want %s with the warning %q", got, joined.Doubt, c.want, c.says)
		}
	}
}
