package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// TestFootprint checks that the footprint chart ends at the footprint of the whole run, and that
// its summary states when the cache levels are full.
func TestFootprint(t *testing.T) {
	v := demo(t, "array-list", 0)
	if tab := TabFootprint; tab.Missing(v.Profile) == "" {
		t.Error("TabFootprint.Missing() = \"\" for a profile without a footprint")
	}
	f := &profile.Footprint{LineBytes: 64, Accesses: 1000, Lines: 100}
	for range 100 {
		f.Absent(90, 1)
	}
	v.Profile.Footprint = f
	if text := TabFootprint.Missing(v.Profile); text != "" {
		t.Error(text)
	}
	chart := v.FootprintChart([]hierarchy.Cache{{Name: "L1", SizeBytes: 4 << 10}, {Name: "L2", SizeBytes: 1 << 20}})
	sizes := chart.Series[0].Y
	if !slices.IsSorted(sizes) || sizes[len(sizes)-1] != 6400 || len(chart.Series) != 2 || len(sizes) != len(chart.At) {
		t.Errorf("%+v", chart)
	}
	for _, want := range []string{" fills L1 (4" + thin + "KiB).", "No window fills L2", "The whole run touches 6.25" + thin + "KiB."} {
		if !strings.Contains(chart.Summary, want) {
			t.Errorf("summary = %q, want %q in it", chart.Summary, want)
		}
	}
	if misses := v.FootprintMisses(); len(misses.Series) != 2 || misses.How != "predicted" || !slices.IsSorted(misses.At) {
		t.Errorf("%+v", misses)
	}
	if table := v.FootprintTable(); table.Rows != len(chart.At) || !table.Exports() {
		t.Errorf("%+v", table)
	}
	v.Profile.Footprint = &profile.Footprint{LineBytes: 64, Accesses: 1, Lines: 1}
	if chart := v.FootprintChart(nil); len(chart.At) != 0 || chart.Summary == "" {
		t.Errorf("chart of a run of one access = %+v, want no points and a summary", chart)
	}
	v.FootprintMisses()
}
