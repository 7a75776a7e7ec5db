package state

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
	"pgregory.net/rapid"
)

func smallCaches() hierarchy.Hierarchy {
	return hierarchy.Hierarchy{Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 2 << 10, LineBytes: 64}, {Name: "L2", SizeBytes: 8 << 10, Ways: 4, LineBytes: 64}}}
}

// codeOf ranks a demo's source locations.
func codeOf(t *testing.T, v *View, by attribution.By) *Code {
	t.Helper()
	levels, _, err := v.Run.Ranker().Attribute(smallCaches())
	if err != nil {
		t.Fatal(err)
	}
	return NewCode(v.Run, v.Run.Ranker(), by, levels)
}

// TestCodeAddsUp checks that, for every grouping and order, the rows and the remainder add up to
// the misses in the level. The highlighted rows must be the smallest set of rows that cause 90 % of
// these misses.
func TestCodeAddsUp(t *testing.T) {
	v := demo(t, "array-list", 0)
	for _, by := range CodeBys() {
		c := codeOf(t, v, by)
		for l := range c.Levels {
			order, total := c.Ranked(c.Levels[l].Level.Cache.Name+"_misses", ""), c.Levels[l].Level.Misses
			sum, rest := 0.0, c.Levels[l].Rest
			for i, row := range order {
				if i > 0 && c.rows[row].Misses[l] > c.rows[order[i-1]].Misses[l] {
					t.Errorf("by %q: row %d has more misses in level %d than the previous row", by, i, l+1)
				}
				sum += c.rows[row].Misses[l]
			}
			if math.Abs(sum+rest-total) > 1e-6*(1+total) {
				t.Errorf("by %q: sum of the rows and the remainder = %g misses in level %d, want %g", by, sum+rest, l+1, total)
			}
			most := c.Most(l)
			n, marked, without := len(most), 0.0, 0.0
			for i, row := range order {
				if slices.Contains(most, row) != (i < n) {
					t.Errorf("by %q: row %d of the ranking has the wrong highlight: highlighted rows = %v, want the first %d rows", by, i, most, n)
				}
				if i < n {
					without = marked
					marked += c.rows[row].Misses[l]
				}
			}
			if nine := 0.9 * total; n < len(order) && marked < nine || without >= nine && n > 0 {
				t.Errorf("by %q: the %d highlighted rows cause %g of %g misses, and without the last row %g; want the fewest rows that cause 90 %%", by, n, marked, total, without)
			}
		}
	}
}

// TestSentenceAboutMostMisses checks that, if the listed lines cause less than 90 % of the misses
// because some misses have no source location, the page states the share that the lines cause.
// Estimates must be marked.
func TestSentenceAboutMostMisses(t *testing.T) {
	c := codeOf(t, demo(t, "array-list", 0), attribution.Line)
	c.Levels = slices.Clone(c.Levels)
	c.Levels[0].Exact, c.Levels[0].Level.Misses = false, 3*c.Levels[0].Level.Misses
	if got := c.MostWords(0); !strings.HasPrefix(got, "All ") || !strings.Contains(got, about+"33") || strings.Contains(got, "cause 90") {
		t.Errorf("MostWords with a third of the misses attributed = %q, want all rows and 33 %%", got)
	}
	c = codeOf(t, demo(t, "array-list", 0), attribution.Line)
	for l := range c.Levels {
		v := NewCodeView(c, "", "")
		if got := c.MostWords(l); !strings.Contains(got, Exact(uint64(len(c.Most(l))))+" of ") || strings.HasPrefix(got, "About") == c.Levels[l].Exact {
			t.Errorf("level %d: %s", l+1, got)
		}
		if rows, _ := v.Grid(-1).View(0, 1); strings.HasPrefix(rows[0][3+l], "≈") == c.Levels[l].Exact {
			t.Errorf("level %d: %q", l+1, rows[0])
		}
	}
}

func TestSearchCode(t *testing.T) {
	c := codeOf(t, demo(t, "array-list", 0), attribution.Site)
	all := len(c.Ranked("", ""))
	found := c.Ranked("place", " WALK_list ")
	if len(found) == 0 || len(found) == all {
		t.Fatalf("rows found by the search = %d of %d, want some but not all", len(found), all)
	}
	for i, row := range found {
		if !strings.Contains(c.Place(row), "walk_list") {
			t.Errorf("the search found %q, want only rows of walk_list", c.Place(row))
		}
		if i > 0 && c.Place(row) < c.Place(found[i-1]) {
			t.Errorf("row %q is after row %q, want ascending names", c.Place(row), c.Place(found[i-1]))
		}
	}
}

// TestCodeGrid checks that the grid can be sorted by every column, and has no empty cells.
func TestCodeGrid(t *testing.T) {
	v := demo(t, "matmul-blocked", 0)
	for _, by := range CodeBys() {
		c := codeOf(t, v, by)
		whole := NewCodeView(c, "", "").Grid(-1)
		for _, column := range whole.Columns {
			view := NewCodeView(c, column.Key, "")
			g := view.Grid(view.At(0))
			if g.Selected != 0 || g.Rows != whole.Rows {
				t.Errorf("by %q, sorted by %q: selected row = %d of %d, want the first of all rows", by, column.Key, g.Selected, g.Rows)
			}
			rows, marks := g.View(0, g.Rows+5)
			if len(rows) != g.Rows || len(marks) != g.Rows {
				t.Errorf("by %q: rows in view = %d, want all %d rows of the grid", by, len(rows), g.Rows)
			}
			for _, row := range rows {
				if len(row) != len(g.Columns) {
					t.Errorf("by %q: row %q, want %d cells", by, row, len(g.Columns))
				}
			}
		}
	}
}

// TestSourceLocations checks that the bins of all source locations add up to the histogram, and
// that, in any order, each location can be found by its ID.
func TestSourceLocations(t *testing.T) {
	v := demo(t, "matmul-naive", 0)
	view := NewCodeView(codeOf(t, v, attribution.Line), "references", "")
	sums := map[string]uint64{}
	for i := range view.rows {
		if view.Find(view.ID(i)) != i {
			t.Errorf("Find(ID of row %d) = %d, want the same row", i, view.Find(view.ID(i)))
		}
		counts, cold := view.Binned(&view.rows[i])
		for k, n := range counts {
			sums[binLabel(k)] += n
		}
		sums["cold"] += cold
		file, line := view.Location(i)
		if file != "matmul-naive.c" || view.LinePlace(file, line) != i {
			t.Errorf("Location of %q = %q, line %d, want matmul-naive.c and the line of the same row", view.Place(i), file, line)
		}
		if c := view.Distances(i); len(c.At) != view.DistancesTable(i).Rows {
			t.Errorf("drawn bins = %d, bins in the table = %d; want equal numbers", len(c.At), view.DistancesTable(i).Rows)
		}
	}
	counts, cold := v.Bins()
	for k, n := range counts {
		if sums[binLabel(k)] != n {
			t.Errorf("bin %s: sum over all locations = %d accesses, want the run's %d", binLabel(k), sums[binLabel(k)], n)
		}
	}
	if sums["cold"] != cold {
		t.Errorf("sum of the cold accesses over all locations = %d, want the run's %d", sums["cold"], cold)
	}
	if view.Find(1<<30) != -1 {
		t.Error("Find returned a row for an unknown ID")
	}
}

// drawSites returns sites at random source locations.
func drawSites(t *rapid.T) *profile.Profile {
	n := rapid.IntRange(1, 40).Draw(t, "sites")
	s := &profile.Sites{LineBytes: 64}
	hist := new(profile.Histogram)
	var cold uint64
	for i := range n {
		site := profile.Site{Number: uint32(i), Function: rapid.SampledFrom([]string{"", "f", "g"}).Draw(t, "function"),
			File: rapid.SampledFrom([]string{"", "a.c", "b,\"c.c"}).Draw(t, "file"), Line: uint32(rapid.IntRange(0, 3).Draw(t, "line"))}
		site.Reuse.Cold = uint64(rapid.IntRange(0, 5).Draw(t, "cold"))
		cold += site.Reuse.Cold
		for d := range 40 {
			if count := uint64(rapid.IntRange(0, 3).Draw(t, "count")); count > 0 && profile.SiteBinFrom(profile.SiteBin(uint32(d))) == uint64(d) {
				site.Reuse.Bins = append(site.Reuse.Bins, profile.BinCount{Bin: uint8(profile.SiteBin(uint32(d))), Count: count})
				hist.AddN(uint64(d), count)
			}
		}
		site.Strides[profile.IrregularStride] = site.Reuse.Accesses()
		s.Code = append(s.Code, site)
	}
	return &profile.Profile{Sites: s, Locality: []profile.Locality{{LineBytes: 64,
		Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: cold, Distances: *hist}}}}}
}

// TestLinesEqualReference checks that, in levels with exact counts, a source line's misses are the
// sum of the misses of its sites.
func TestLinesEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawSites(t)
		ranker, ok := attribution.New(p)
		if !ok {
			t.Fatal("Ranker() = nil")
		}
		lines := uint64(1) << rapid.IntRange(0, 5).Draw(t, "lines")
		levels, _, err := ranker.Attribute(hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * lines, LineBytes: 64}}})
		if err != nil {
			t.Fatal(err)
		}
		c := NewCode(ask.NewRun("", p), ranker, attribution.Line, levels)
		for _, row := range c.Ranked("", "") {
			want := 0.0
			for i := range p.Sites.Code {
				s := &p.Sites.Code[i]
				same := s.Line != 0 && s.Line == c.rows[row].Line && s.File == c.rows[row].File || slices.Contains(c.rows[row].Sites, i)
				if !same {
					continue
				}
				want += float64(s.Reuse.Cold)
				for _, b := range s.Reuse.Bins {
					if profile.SiteBinFrom(int(b.Bin)) >= lines {
						want += float64(b.Count)
					}
				}
			}
			if got := c.rows[row].Misses[0]; math.Abs(got-want) > 1e-6 {
				t.Fatalf("misses of %q = %g, want %g", c.Place(row), got, want)
			}
		}
	})
}

// TestSourcesWithTheSameName checks that, if several source files have the same name and their
// folders are known, the page shows the file in the folder of the source location.
func TestSourcesWithTheSameName(t *testing.T) {
	var s Sources
	for _, where := range []string{"x/a/util.c", "x/b/util.c", ""} {
		f, _ := NewSource("util.c", where, []byte("// "+where))
		s.Add(f)
	}
	for name, want := range map[string]string{
		"a/util.c": "x/a/util.c", "b/util.c": "x/b/util.c", "c/util.c": "", "util.c": "x/a/util.c x/b/util.c ", "main.c": "none",
	} {
		var got []string
		for _, f := range s.Of(name) {
			got = append(got, f.Path)
		}
		if got == nil {
			got = []string{"none"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("for %s %q, want %q", name, got, want)
		}
	}
}

func TestSources(t *testing.T) {
	var s Sources
	add := func(where, content string) {
		f, problem := NewSource("a.c", where, []byte(content))
		if problem != "" {
			t.Fatal(problem)
		}
		s.Add(f)
	}
	add("", "one\r\ntwo\n")
	add("", "one\ntwo\n")
	add("old/a.c", "one\n")
	files := s.Of("a.c")
	if len(files) != 2 || len(files[0].Lines) != 2 || files[1].Label(2) != "old/a.c" || !strings.Contains(files[0].Label(1), "2 lines") {
		t.Errorf("files named a.c = %+v, want the longer file first", files)
	}
	if MissingLine(files[0], 2) != "" || !strings.Contains(MissingLine(files[1], 2), "different version") {
		t.Error("MissingLine reports a line that exists, or does not report a line that is missing")
	}
	for _, content := range []string{"\x7fELF\x00", strings.Repeat("x", sourcefile.MostBytes+1)} {
		if f, problem := NewSource("a.c", "", []byte(content)); f != nil || problem == "" {
			t.Errorf("NewSource accepted %.10q as source code", content)
		}
	}
	for name, want := range map[string]bool{"a.c": true, "A.F90": true, "x.sgt": false, "trace.csv": false, "c": false, "a.din.gz": false} {
		if IsSource(name) != want {
			t.Errorf("IsSource(%s) = %v, want %v", name, !want, want)
		}
	}
}

// TestMeasureLevels checks that, for any line size, the page counts misses by site in the levels
// that the ranking uses.
func TestMeasureLevels(t *testing.T) {
	for _, lines := range [][]uint32{{64}, {32, 128}, {128}} {
		spec := analysis.Spec{LineBytes: lines, Kinds: trace.AllKinds}
		levels := []hierarchy.Cache{{Name: "L1", SizeBytes: 1 << 10, Ways: 2, LineBytes: 64}, {Name: "L2", SizeBytes: 4 << 10, LineBytes: 64},
			{Name: "L3", SizeBytes: 16 << 10, Ways: 4, LineBytes: 64, Hashed: true}}
		Measure(&spec, levels)
		if got := spec.Utilisation; !slices.Equal(got, []uint64{1 << 10, 4 << 10}) || !slices.Equal(spec.UtilisationWays, []uint32{2, 0}) {
			t.Fatalf("line sizes %d: measured caches = %d bytes with %d ways, want 1 and 4 KiB with 2 ways and full associativity", lines, got, spec.UtilisationWays)
		}
		p := &profile.Sites{LineBytes: spec.SiteLineBytes()}
		for i, n := range spec.Utilisation {
			p.Capacities, p.Ways = append(p.Capacities, n/uint64(p.LineBytes)), append(p.Ways, spec.UtilisationWays[i])
		}
		for _, l := range levels[:2] {
			if p.Measured(l.SizeBytes/uint64(p.LineBytes), l.Ways) < 0 {
				t.Errorf("line sizes %d: the profile lacks measured misses of %s", lines, l.Name)
			}
		}
	}
}

// TestComparedCodeMarksEstimates checks that comparisons also mark estimates.
func TestComparedCodeMarksEstimates(t *testing.T) {
	v := demo(t, "array-list", 0)
	levels, _, err := v.Run.Ranker().Attribute(smallCaches())
	if err != nil || !levels[0].Exact || levels[1].Exact {
		t.Fatalf("levels %+v, error %v, want an exact level and an estimated level", levels, err)
	}
	table := (&Comparison{A: v, B: v}).CodeBy(attribution.Function, smallCaches(), "")
	if table.Rows == 0 {
		t.Fatal(table)
	}
	row, seen := table.Row(0), 0
	for i, column := range table.Columns {
		level := strings.HasPrefix(column.Key, "L2_misses")
		if column.Words {
			continue
		}
		if seen += len(row[i]); strings.HasPrefix(row[i], about) != level || strings.Contains(row[i], ".") {
			t.Errorf("%s: %q", column.Key, row[i])
		}
	}
	if seen == 0 || len(row) < 8 {
		t.Errorf("%q", row)
	}
}

// TestWorstLineIsFalselyShared checks that, in a program with false sharing, the source line with
// the most misses accesses a cache line that other cores' stores invalidate. The Code view must
// list these misses separately.
func TestWorstLineIsFalselyShared(t *testing.T) {
	v := demo(t, "false-sharing", 0)
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64}, {Name: "L2", SizeBytes: 1 << 20, Ways: 8, LineBytes: 64, SharedBy: 4}}}
	f, ok := v.worstLine(h)
	text := strings.ReplaceAll(f.Text, thin, " ")
	for _, want := range []string{"false-sharing.c:31 in look causes 94.1 % of the misses", "8 192 of 8 707", "8 188 of them miss because a store by another core invalidated the line"} {
		if !ok || !strings.Contains(text, want) {
			t.Errorf("finding = %q, want %q in it", text, want)
		}
	}
	levels, _, err := v.Run.Ranker().Attribute(h)
	if err != nil {
		t.Fatal(err)
	}
	grid := NewCodeView(NewCode(v.Run, v.Run.Ranker(), attribution.Line, levels), "", "").Grid(-1)
	column := slices.IndexFunc(grid.Columns, func(c Column) bool { return c.Key == "L1_coherence_misses" })
	if column < 0 || grid.Columns[column].Name != "L1 coherence misses" || !strings.HasPrefix(grid.Row(0)[column], "8"+thin+"188") {
		t.Errorf("columns %+v, first row %q: want the coherence misses of L1", grid.Columns, grid.Row(0))
	}
	coverage := slices.IndexFunc(grid.Columns, func(c Column) bool { return c.Key == "prefetch_coverage" })
	var cells []string
	for i := range grid.Rows {
		cells = append(cells, grid.Row(i)[coverage])
	}
	// An unknown coverage has no mark.
	if !slices.Contains(cells, "–") || !slices.ContainsFunc(cells, func(cell string) bool { return strings.HasPrefix(cell, about+"96.9") }) || slices.Contains(cells, about+"–") {
		t.Errorf("prefetch coverage = %q, want – and ≈ 96.9 %% among the cells", cells)
	}
	sorted := NewCodeView(NewCode(v.Run, v.Run.Ranker(), attribution.Line, levels), "L1_coherence_misses", "")
	if place := sorted.Place(sorted.At(0)); !strings.HasPrefix(place, "false-sharing.c:31") {
		t.Errorf("first row sorted by coherence misses = %q, want line 31 of false-sharing.c", place)
	}
}

// TestLinesInComments checks that lines that begin within a multi-line comment are recognised,
// whatever the string literals contain.
func TestLinesInComments(t *testing.T) {
	f := &Source{Name: "a.c", Lines: strings.Split("int a; /* one */ int b; /* two\nthree\nfour */ int c; // /*\nchar *s = \"/*\"; char q = '\\''; /*\n*/", "\n")}
	for i, want := range []bool{false, true, true, false, true} {
		if got := f.InComment(i); got != want {
			t.Errorf("InComment for line %d = %v, want %v", i+1, got, want)
		}
	}
	if f = (&Source{Name: "a.f90", Lines: []string{"x = 1 /*", "y = 2"}}); f.InComment(1) {
		t.Error("InComment = true in Fortran, which has no multi-line comments")
	}
}

// TestSourceGrid checks that the grid shows each source line's misses on the left, with bars in
// proportion to them. On the right, the grid must show the operands and their strides, in
// descending order of misses.
func TestSourceGrid(t *testing.T) {
	view := NewCodeView(codeOf(t, demo(t, "matmul-naive", 0), attribution.Line), "L1_misses", "")
	view.Lines = view.Code
	lines := make([]string, 24)
	g := view.SourceGrid(&Source{Name: "matmul-naive.c", Lines: lines}, "matmul-naive.c", 20)
	rows, _ := g.View(0, len(lines))
	sums := make([]float64, 2)
	for i, row := range rows {
		if titles := g.Titles(i); row[0] != "" && !strings.Contains(titles[0], " misses in L1, ") {
			t.Errorf("line %d: text on hover = %q, want the misses in L1", i+1, titles)
		}
		if len(row) != len(g.Columns) {
			t.Fatalf("line %d: %q", i+1, row)
		}
		for l := range sums {
			if share := g.Shares(i)[l]; share >= 0 {
				sums[l] += share
			} else if row[l] != "" {
				t.Errorf("line %d: the cell %q has no bar", i+1, row[l])
			}
		}
	}
	for l, sum := range sums {
		if rest := view.Levels[l].Rest / view.Levels[l].Level.Misses; math.Abs(sum+rest-1) > 1e-9 {
			t.Errorf("the bars of level %d sum to %g of the level's misses, want all misses except the remainder", l+1, sum)
		}
	}
	if notes := g.After(19); !strings.HasPrefix(notes, "b constant stride ") || !strings.Contains(notes, "; a unit stride ") {
		t.Errorf("line 20: %q", notes)
	}
	view.Loops = func(_ string, line uint32) string { return map[uint32]string{20: "loop of 32"}[line] }
	g = view.SourceGrid(&Source{Name: "matmul-naive.c", Lines: lines}, "matmul-naive.c", 20)
	if !strings.HasPrefix(g.After(19), "loop of 32; b constant") || g.After(18) != "" || g.Longest < utf8.RuneCountInString(g.After(19)) {
		t.Errorf("with a loop in line 20: After(18) = %q, After(19) = %q, Longest = %d", g.After(18), g.After(19), g.Longest)
	}
	if hot := view.Hot("matmul-naive.c"); !slices.Equal(hot, []uint32{20, 21}) {
		t.Errorf("hot lines %v", hot)
	}
}
