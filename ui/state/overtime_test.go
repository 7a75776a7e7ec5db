package state

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
)

// TestWorkingSet checks that the number of lines in a window's working set is between the number
// of the window's new lines and the number of its accesses. The chart must show the same values
// as the table.
func TestWorkingSet(t *testing.T) {
	v := demo(t, "array-list", 0)
	c, table := v.WorkingSet(), v.WorkingSetTable()
	w := &v.Locality.Windows
	if c == nil || len(c.At) != len(w.Rows)+1 || table.Rows != len(w.Rows) {
		t.Fatalf("chart of the working set = %+v, want a value for each window", c)
	}
	most := uint64(0)
	for i, lines := range w.Distinct {
		row := &w.Rows[i]
		if cold := row[len(row)-1]; lines < cold || lines > row.Accesses() {
			t.Errorf("window %d: distinct lines = %d, want at least the %d new lines and at most the %d accesses", i, lines, cold, row.Accesses())
		}
		if c.Series[0].Y[i] != float64(lines*64) {
			t.Errorf("window %d: drawn value = %g bytes, want %d", i, c.Series[0].Y[i], lines*64)
		}
		most = max(most, lines)
	}
	if !strings.Contains(c.Summary, "at most "+Exact(most)+" lines") {
		t.Errorf("largest working set = %d lines, summary = %q; want the same number in the summary", most, c.Summary)
	}
	w.Distinct = nil
	if v.WorkingSet() != nil {
		t.Error("WorkingSet() != nil for a profile without distinct lines per window")
	}
}

func TestLevelsOverTime(t *testing.T) {
	v := demo(t, "array-list", 0) // this demo accesses 769 distinct lines
	list, estimates := v.LevelLog2Lines([]hierarchy.Cache{{Name: "L1", SizeBytes: 4 << 10}, {Name: "L2", SizeBytes: 24 << 10}, {Name: "L3", SizeBytes: 1 << 30}})
	if !slices.Equal(list, []int{6, 8, 10}) || !slices.Equal(estimates, []string{"L2"}) {
		t.Errorf("%v, %v", list, estimates)
	}
}

func TestSettingsSelectAnalyses(t *testing.T) {
	plain, err := Settings{}.Spec()
	asked, err2 := Settings{Reuse: true, Touched: true}.Spec()
	if err != nil || err2 != nil || plain.Previous || !asked.Previous || len(asked.Utilisation) == 0 || SpecKey(plain) == SpecKey(asked) {
		t.Errorf("%+v, %+v, %v, %v", plain, asked, err, err2)
	}
	if all := analysis.Locality | analysis.Counters | analysis.Sites | analysis.Sets | analysis.Sharing | analysis.Communication | analysis.Usual; asked.Analyses != all {
		t.Errorf("analyses %s, want %s", asked.Analyses, all)
	}
	if err := asked.WithDefaults().Check(); err != nil {
		t.Error(err)
	}
}

// TestFunctionLanes checks that the timeline shows the functions with the most misses, and that
// their misses equal the sums over their sites in each window.
func TestFunctionLanes(t *testing.T) {
	v := demo(t, "array-list", 0)
	h, rank := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 8 << 10, LineBytes: 64, Ways: 4}}}, v.Run.Ranker()
	levels, _, err := rank.Attribute(h)
	if err != nil {
		t.Fatal(err)
	}
	line := v.Timeline(levels, 0)
	if len(line.Functions) < 2 || line.Functions[0].Label != "walk_list" {
		t.Fatalf("functions = %+v, want walk_list and others", line.Functions)
	}
	for w := range line.Windows {
		part, _ := rank.Within(w, w+1)
		within, _, err := part.Attribute(h)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range line.Functions {
			want := 0.
			for i, misses := range within[0].Sites {
				if v.Run.FunctionName(v.Profile.Sites.Code[i].Function) == f.Label {
					want += misses
				}
			}
			if math.Abs(f.Y[w]-want) > 1e-6 {
				t.Errorf("window %d of %s: %g misses, want %g", w, f.Label, f.Y[w], want)
			}
		}
	}
}
