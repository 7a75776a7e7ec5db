package ui

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
)

// openCalls analyses the trace of a captured program, and opens the Calls view.
func openCalls(t *testing.T) *desk {
	t.Helper()
	content, err := os.ReadFile("../tools/stackglass/internal/command/testdata/calls/tree.sgt")
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	d.app.Offer(Item{File: fileWith("tree.sgt", content)})
	d.app.Navigate("#" + d.app.Screen.With(state.TabCalls).Hash())
	d.listed("paths")
	return d
}

// The method "listed" waits until the page shows an answer with a tree.
func (d *desk) listed(tree string) {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() {
			calls := d.app.callPaths()
			yes = calls != nil && calls.Tree(tree) != nil && !d.app.calls.asker.busy()
		})
		return yes
	})
}

func TestCallsZoom(t *testing.T) {
	d := openCalls(t)
	f := d.flames["paths"]
	if len(f.Names) != 8 || f.Names[0] != "main" || f.Starts[0] != 0 || f.Zoom != -1 || f.Parents[0] != -1 {
		t.Fatalf("flame graph = %+v, want 8 frames with main at the root", f)
	}
	d.wants(`id="calls-hint"`, "L1 misses. The width of a call path shows its count, with callees.")
	twice := slices.Index(f.Names, "twice")
	for i, parent := range f.Parents {
		if parent >= 0 && (f.Starts[i] < f.Starts[parent] || f.Starts[i]+f.Weights[i] > f.Starts[parent]+f.Weights[parent]) {
			t.Errorf("frame %s is not within its parent %s", f.Names[i], f.Names[parent])
		}
	}
	if where, lines := f.About(twice); where != "tree.c:9, 1 call" || lines[0][0] != "Instructions" || !strings.Contains(f.Words(twice), "twice: ") {
		t.Errorf("%q %q", where, lines)
	}

	d.app.ZoomCalls("paths", twice)
	d.wants("Whole run", `aria-current="location">twice<`, "Callers and callees")
	if f := d.flames["paths"]; f.Zoom != twice || d.grids["calls-paths"].Selected != twice {
		t.Errorf("zoom = %d, want %d", f.Zoom, twice)
	}
	if got := state.ParseScreen(d.hash); got.Frame == "" || got.Frame != d.app.Screen.Frame {
		t.Errorf("hash %q", d.hash)
	}
	sum := twice + 1
	d.app.ZoomCalls("paths", sum)
	if page := d.html(); !strings.Contains(page, "Show in Code") {
		t.Error("the page has no link to the source of the zoomed function")
	}
	d.back()
	if got := d.flames["paths"].Zoom; got != twice {
		t.Errorf("zoom after Back = %d, want %d", got, twice)
	}
	d.app.ZoomCalls("paths", -1)
	if got := d.flames["paths"].Zoom; got != -1 || d.app.Screen.Frame != "" {
		t.Errorf("zoom = %d, want -1, the whole tree", got)
	}
	d.app.SortBy("calls-paths", "function")
	rows := d.grids["calls-paths"]
	if cells, _ := rows.View(1, 2); len(cells) != 2 || cells[0][0] > cells[1][0] || rows.At(1) == 1 {
		t.Errorf("first callees of main, sorted by function = %q, want ascending names", cells)
	}
	for row := range rows.Rows {
		if rows.At(row) == twice {
			d.app.PickRow("calls-paths", row)
		}
	}
	if got := d.flames["paths"].Zoom; got != twice {
		t.Errorf("zoom after a row of the table was picked = %d, want %d", got, twice)
	}
}

func TestDirectionsInCallsView(t *testing.T) {
	d := openCalls(t)
	f := d.flames["paths"]
	d.app.ZoomCalls("paths", slices.Index(f.Names, "twice")+1) // the call to "sum" below the function "twice"
	d.act(func() { d.app.ReadCalls(state.CallsFunction) })
	d.listed("callees")
	up := d.flames["callers"]
	if up.Names[0] != "sum" || !up.Up || !slices.Contains(up.Names, "twice") || !slices.Contains(up.Names, "main") || up.Weights[0] != d.flames["callees"].Weights[0] {
		t.Errorf("callers %v", up.Names)
	}
	d.wants("Callers of sum", "Callees of sum")
	d.act(func() { d.app.ReadCalls(state.CallsUp) })
	until(t, func() (yes bool) {
		d.act(func() { calls := d.app.callPaths(); yes = calls.Tree("callees") == nil && calls.Tree("callers") != nil })
		return yes
	})
	if up := d.flames["callers"]; up.Up || up.Names[0] != "sum" && up.Names[0] != "ins" {
		t.Errorf("bottom-up: %v", up.Names)
	}
	if s := state.ParseScreen(d.hash); s.Calls != state.CallsUp || s.Root != 0 {
		t.Errorf("hash %q", d.hash)
	}
	d.act(func() { d.app.SearchCalls("twice") })
	d.wants("match", "% of the L1 misses")
	if up := d.flames["callers"]; !slices.Contains(up.Matches, true) || up.Matches[0] {
		t.Errorf("matches %v", up.Matches)
	}
	d.act(func() { d.app.SearchCalls("") })
	// A selected part of the run has misses, but neither calls nor bytes.
	d.act(func() { d.app.goTo(d.app.Screen.Called(state.CallsDown, 0), true) })
	d.listed("paths")
	total := d.app.callPaths().Total
	d.act(func() { d.app.SetRange(0, 1, false) })
	d.listed("paths")
	if calls := d.app.callPaths(); calls.Total >= total || calls.Total == 0 || len(d.grids["calls-paths"].Columns) != 6 {
		t.Errorf("misses in the first window = %v of %v, columns = %v; want fewer misses, and 6 columns", calls.Total, total, d.grids["calls-paths"].Columns)
	}
	d.act(func() { d.app.SetRange(0, 0, false) })
	d.act(func() { d.app.WeighCalls("bytes") })
	until(t, func() (yes bool) {
		d.act(func() { yes = d.app.callPaths().Event == "bytes" })
		return yes
	})
	if s := state.ParseScreen(d.hash); s.Weight != "bytes" {
		t.Errorf("hash %q", d.hash)
	}
}
