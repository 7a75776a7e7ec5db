package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// The function "tabled" returns the view of a trace that consists of the given line numbers. A
// naive implementation counts the misses in its table of sets.
func tabled(lines []uint64) *View {
	l := profile.Locality{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load}}, Sets: new(profile.SetTable)}
	for a := range profile.SetCounts {
		sets := map[uint64][]uint64{}
		for _, line := range lines {
			set := line & (1<<a - 1)
			depth := slices.Index(sets[set], line)
			if depth >= 0 {
				sets[set] = slices.Delete(sets[set], depth, depth+1)
			}
			sets[set] = slices.Insert(sets[set], 0, line)
			switch {
			case a == 0 && depth < 0:
				l.Kinds[0].Cold++
			case a == 0:
				l.Kinds[0].Distances.Add(uint64(depth))
			}
			if depth >= 0 && depth < profile.MaxWays {
				l.Sets.Depths[a][depth]++
			}
		}
	}
	p := &profile.Profile{Locality: []profile.Locality{l}}
	p.Totals.References[trace.Load] = uint64(len(lines))
	return NewView(p, 64)
}

// The function "columns" returns the line numbers of a trace that reads a matrix column by column,
// several times. All lines of a column map to a few sets.
func columns() (lines []uint64) {
	for range 3 {
		for row := range uint64(40) {
			lines = append(lines, row*64, row*64+1)
		}
	}
	return lines
}

// TestCellAnswersAddUp checks that the misses in each cell are the sum of their causes, and equal
// the misses that the function Predict returns. A single set must have no conflict misses.
func TestCellAnswersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stride := rapid.SampledFrom([]uint64{1, 3, 64}).Draw(t, "stride")
		lines := rapid.SliceOfN(rapid.Uint64Range(0, 90), 1, 300).Draw(t, "lines")
		for i := range lines {
			lines[i] *= stride
		}
		v := tabled(lines)
		c := Cell{rapid.IntRange(0, profile.SetCounts-1).Draw(t, "log2 sets"), rapid.IntRange(1, profile.MaxWays).Draw(t, "ways")}
		if rapid.Bool().Draw(t, "omits some") {
			v.Locality.Sets.Omit(uint32(rapid.IntRange(0, 1<<profile.SetCounts-1).Draw(t, "omitted")) &^ (1 | 1<<c.Log2Sets))
		}
		a := v.CellAnswer(c)
		if int64(a.Misses) != int64(a.Cold)+int64(a.Capacity)+a.Conflict || c.Log2Sets == 0 && a.Conflict != 0 {
			t.Errorf("%+v: %+v", c, a)
		}
		level := hierarchy.Cache{Name: "L1", SizeBytes: c.Lines() * 64, Ways: uint32(c.Ways), LineBytes: 64}
		if got := predictLevels(v, []hierarchy.Cache{level}).Prediction; got.MemoryAccesses != float64(a.Misses) {
			t.Errorf("cell %+v: misses on the map = %d, want the predicted misses, %v", c, a.Misses, got.MemoryAccesses)
		}
		if at, ok := cellOf(level); c.Log2Sets > 0 && (!ok || at != c) {
			t.Errorf("cell of %s = %+v, want %+v", level, at, c)
		}
	})
}

func TestSetsMap(t *testing.T) {
	v := tabled(columns())
	levels := []hierarchy.Cache{{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64}, {Name: "L2", SizeBytes: 1 << 20, LineBytes: 64}, {Name: "L3", SizeBytes: 8 << 20, Ways: 16, LineBytes: 64, Hashed: true}}
	ratios, conflicts := v.SetsMap(Cell{6, 8}, false, levels), v.SetsMap(Cell{6, 8}, true, levels)
	if len(ratios.Marks) != 1 || ratios.Marks[0].Cell != (Cell{6, 8}) {
		t.Errorf("marks %+v, want L1 at 64 sets of 8 ways", ratios.Marks)
	}
	for _, m := range []*HeatMap{ratios, conflicts} {
		if len(m.Values) != m.Rows*m.Columns || slices.Min(m.Values) != m.Least || slices.Max(m.Values) != m.Most || m.Summary == "" {
			t.Errorf("%s: values = %d, from %g to %g; want a value for each cell, and the extremes of these values", m.Title, len(m.Values), m.Least, m.Most)
		}
	}
	// The 80 lines map to only two of the 64 sets, so a direct-mapped cache of 64 lines always
	// misses.
	at := 6*ratios.Columns + 0
	if ratios.Values[at] != 1 || conflicts.Values[at] != 0 {
		t.Errorf("64 sets of one way: miss ratio = %g, conflict misses = %g; want 1 and 0", ratios.Values[at], conflicts.Values[at])
	}
	// A cache with 64 sets and 16 ways has space for 1,024 lines, but not for 40 lines that map to
	// the same set.
	if at = 6*ratios.Columns + 15; conflicts.Values[at] <= 0.6 || !conflicts.Signed || ratios.Signed {
		t.Errorf("64 sets of 16 ways: conflict misses = %g, want two thirds", conflicts.Values[at])
	}
	if !strings.Contains(ratios.Summary, "conflict misses") {
		t.Errorf("summary %q", ratios.Summary)
	}
	facts := v.CellFacts(Cell{6, 16})
	if facts[3].ID != "conflict" || !strings.HasPrefix(facts[3].Value, "+") || facts[len(facts)-1].ID != "model" {
		t.Errorf("facts %+v", facts)
	}
	if says := v.ConflictSentence(Cell{6, 16}); !strings.Contains(says, "fewer") {
		t.Errorf("%q", says)
	}
	if says := v.ConflictSentence(Cell{0, 16}); !strings.Contains(says, "no conflict misses") {
		t.Errorf("%q", says)
	}
	if says := v.CellSentence(Cell{6, 16}); !strings.Contains(says, "64 sets, 16 ways") {
		t.Errorf("%q", says)
	}
}

// TestSetsTable checks that the table has a row with the misses for every cell.
func TestSetsTable(t *testing.T) {
	v := tabled(columns())
	table := v.SetsTable()
	if table.Rows < profile.SetCounts*profile.MaxWays {
		t.Fatalf("%d rows", table.Rows)
	}
	rows := table.Source().Rows
	for i := range profile.SetCounts * profile.MaxWays {
		at := len(rows) - profile.SetCounts*profile.MaxWays + i // between the map's rows with one set and its other rows, there are rows for larger fully associative caches
		if i < profile.MaxWays {
			at = i
		}
		c := Cell{i / profile.MaxWays, i%profile.MaxWays + 1}
		if want := "[" + strconv.Itoa(1<<c.Log2Sets) + " " + strconv.Itoa(c.Ways) + " 240 " + Exact(v.CellAnswer(c).Misses) + "]"; strings.ReplaceAll(fmt.Sprint(table.Row(at)), thin, "") != strings.ReplaceAll(want, thin, "") {
			t.Errorf("row %d of the table = %v, want %s", at, table.Row(at), want)
		}
	}
}

func TestParseCell(t *testing.T) {
	for s, want := range map[string]Cell{"64x8": {6, 8}, "1x1": {0, 1}, "65536x32": {16, 32}, "": {}, "x": {}, "3x4": {}, "131072x1": {}, "64x33": {}, "64x0": {}} {
		if got := parseCell(s); got != want || want.valid() && got.format() != s {
			t.Errorf("parseCell(%q) = %+v, which is formatted as %q; want %+v and the same text", s, got, got.format(), want)
		}
	}
	if got := (Cell{0, 1}).Move(-1, -1); got != (Cell{0, 1}) {
		t.Errorf("Move beyond the edge = %+v, want the cell at the edge", got)
	}
	if got := DefaultCell([]hierarchy.Cache{{Name: "L1", SizeBytes: 48 << 10, Ways: 12, LineBytes: 64}}, 64); got != (Cell{6, 12}) {
		t.Errorf("DefaultCell for 48 KiB and 12 ways = %+v, want 64 sets of 12 ways", got)
	}
	if got := DefaultCell(nil, 64); !got.valid() {
		t.Errorf("DefaultCell without levels = %+v, want a valid cell", got)
	}
}

// TestCardsShowExactMissesAndEstimates checks that, if the profile has a table of sets, the misses
// of the levels are exact, and the cards also show the model's estimates.
func TestCardsShowExactMissesAndEstimates(t *testing.T) {
	v := tabled(columns())
	got := v.Predict(hierarchy.Hierarchy{ClockGHz: 2, Memory: hierarchy.Memory{LatencyCycles: 100, BytesPerCycle: 8}, Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 4096, Ways: 16, LineBytes: 64, LatencyCycles: 4}, {Name: "L2", SizeBytes: 1 << 20, Ways: 8, LineBytes: 64, LatencyCycles: 12}}})
	l1, l2 := got.Levels[0], got.Levels[1]
	if l1.Chip != "exact" || l2.Chip != "independent" || numberOfID(l1.Numbers, "served") == "" {
		t.Errorf("%+v\n%+v", l1, l2)
	}
	if !strings.Contains(got.Average, "ns") || got.Unknown != "" || numberOfID(got.Memory, "least") == "" {
		t.Errorf("average = %q, unknown latencies = %q, minimum = %q; want an average in ns and no unknown latency", got.Average, got.Unknown, numberOfID(got.Memory, "least"))
	}
	if got := predictLevels(v, []hierarchy.Cache{{Name: "L1", SizeBytes: 4096, Ways: 16, LineBytes: 64}}); got.Average != "" || !strings.Contains(got.Unknown, "memory") {
		t.Errorf("prediction without latencies: average = %q, unknown latencies = %q; want no average, and the latency of memory", got.Average, got.Unknown)
	}
}

func TestTableOfTwoHierarchies(t *testing.T) {
	v := tabled(columns())
	level := func(ways uint32, latency float64) hierarchy.Hierarchy {
		return hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 64 * 64 * uint64(ways), Ways: ways, LineBytes: 64, LatencyCycles: latency}}, Memory: hierarchy.Memory{LatencyCycles: latency * 10}}
	}
	small, large := level(16, 4), level(64, 0)
	table := v.Against(small, AgainstWords(large))
	rows := map[string]string{}
	for i := range table.Rows {
		row := table.Row(i)
		rows[row[0]+" "+row[1]] = strings.ReplaceAll(strings.Join(row[2:], "|"), thin, " ")
	}
	misses, fewer := v.Predict(small).Prediction.MemoryAccesses, v.Predict(large).Prediction.MemoryAccesses
	if got := rows["L1 misses"]; !strings.HasPrefix(got, strconv.FormatFloat(misses, 'f', 0, 64)+"|") || !strings.Contains(got, "|≈ −"+strconv.FormatFloat(misses-fewer, 'f', 0, 64)+"|−") {
		t.Errorf("%q, %v misses", rows, misses)
	}
	if time := rows["all accesses average access time (cycles)"]; !strings.HasSuffix(time, "|–|–|–") {
		t.Errorf("rows = %q, want no times, because B has no latencies", rows)
	}
	if same := v.Against(small, AgainstWords(small)); same.Row(0)[4] != "0"+thin+"B" {
		t.Errorf("first row of a comparison with itself = %q, want a difference of 0 B", same.Row(0))
	}
	if got := v.Against(small, []string{"nothing"}); !strings.HasPrefix(got.Caption, "Against \"nothing\", want a preset") {
		t.Errorf("caption of a comparison with an invalid hierarchy = %q, want the problem", got.Caption)
	}
}

func TestAddAndRemoveLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var levels []hierarchy.Cache
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				levels = WithLevel(levels, 64)
			case 2:
				levels = WithoutLevel(levels, rapid.IntRange(-1, 5).Draw(t, "which"))
			default:
				levels = WithLine(levels, 0, rapid.SampledFrom([]uint32{32, 64, 4096}).Draw(t, "line"))
			}
			names := map[string]bool{}
			for _, c := range levels {
				if err := c.Check(); err != nil || names[c.Name] {
					t.Fatalf("%v, %v", levels, err)
				}
				names[c.Name] = true
			}
			if len(levels) > MaxLevels {
				t.Fatalf("%d levels", len(levels))
			}
		}
	})
}

// FuzzMachine checks that no text makes parseMachine panic, and that a parsed hierarchy is the same
// after it is formatted and parsed again.
func FuzzMachine(f *testing.F) {
	for _, s := range []string{"", "L1.32768.8.64", "name.x_L1.32768.8.64.l4d5.b64.s4.h.r2.i1.w3_memory.l200.b7d3_clock.g3d5", "a.b.c.d", "L1.64.0.64_", "memory.l1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h := parseMachine(s)
		again := parseMachine(formatMachine(h))
		if !SameMachine(h, again) || h.Name != again.Name {
			t.Fatalf("parseMachine(%q) = %+v, but %+v after formatting and parsing it again", s, h, again)
		}
	})
}

// TestInclusionInLinks checks that links preserve inclusion policies. In older links, i1 must mean
// non-inclusive.
func TestInclusionInLinks(t *testing.T) {
	for inclusion, code := range map[hierarchy.Inclusion]string{hierarchy.NonInclusive: "", hierarchy.Inclusive: ".i3", hierarchy.Exclusive: ".i2"} {
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L2", SizeBytes: 4096, Ways: 8, LineBytes: 64, Inclusion: inclusion}}}
		if text := formatMachine(h); text != "L2.4096.8.64"+code || parseMachine(text).Levels[0].Inclusion != inclusion {
			t.Errorf("formatMachine of a cache that is %v = %s", inclusion, text)
		}
	}
	if got := parseMachine("L2.4096.8.64.i1").Levels[0].Inclusion; got != hierarchy.NonInclusive {
		t.Errorf("inclusion i1 = %v, want non-inclusive", got)
	}
}

// TestLevelsWithOtherLineSizes checks that the chart marks only levels with its own line size, and
// lists the other levels.
func TestLevelsWithOtherLineSizes(t *testing.T) {
	p := multiplied(t, 8, analysis.Spec{LineBytes: []uint32{64, 128}})
	levels := []hierarchy.Cache{{Name: "L1", SizeBytes: 4096, Ways: 2, LineBytes: 128}, {Name: "L2", SizeBytes: 8192, Ways: 4, LineBytes: 64}}
	for line, names := range map[uint32][2]string{64: {"L2", "L1"}, 128: {"L1", "L2"}} {
		v := NewView(p, line)
		curve, sets := v.MissCurve(levels), v.SetsMap(DefaultCell(levels, line), false, levels)
		if len(curve.Marks) != 1 || curve.Marks[0].Label != names[0] || len(sets.Marks) != 1 || !strings.HasPrefix(sets.Marks[0].Label, names[0]+": ") {
			t.Errorf("line size %d: marks of the curve = %v, marks of the map = %v; want one mark of the same level", line, curve.Marks, sets.Marks)
		}
		for _, summary := range []string{curve.Summary, sets.Summary} {
			if !strings.Contains(summary, names[1]+" has ") || strings.Contains(summary, names[0]+" has ") {
				t.Errorf("line size %d: %s", line, summary)
			}
		}
		if len(sets.Marks) == 1 && sets.Cell != sets.Marks[0].Cell {
			t.Errorf("line size %d: default cell = %v, want the marked cell", line, sets.Cell)
		}
	}
}

// TestLargestDifferenceFits checks that the largest difference between two runs is reported at a
// cache size of at least one line, even if their line sizes differ.
func TestLargestDifferenceFits(t *testing.T) {
	p := multiplied(t, 8, analysis.Spec{LineBytes: []uint32{32, 64}})
	for _, c := range []*Comparison{{A: NewView(p, 32), B: NewView(p, 64)}, {A: NewView(p, 64), B: NewView(p, 32)}} {
		if got := c.worstSize().Text; strings.Contains(got, "with 32"+thin+"B ") {
			t.Error(got)
		}
	}
}
