package ui

import (
	"os"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
)

// The function "particles" returns a trace of a program with structures and memory blocks.
func particles(t *testing.T) Item {
	t.Helper()
	const path = "../tools/stackglass/internal/command/testdata/manual/particles.sgt"
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Item{File: File{Name: "particles.sgt", Bytes: uint64(len(content)), Ref: content, Read: func(int) ([]byte, error) { return content, nil }}}
}

// The method "about" waits for the answer about a data structure.
func (d *desk) about(name string) {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() {
			v := d.app.dataRanking()
			yes = v != nil && strings.HasPrefix(v.Named(d.app.pickedData()), name+" ") && d.app.data.view != nil && !d.app.data.asker.busy()
		})
		return yes
	})
}

// TestData checks the analysis of a trace with its data structures. The test looks at the members
// of two structures, at a map, and at memory blocks.
func TestData(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(particles(t))
	d.app.Navigate("#" + d.app.Screen.With(state.TabData).Hash())
	d.wants(`id="missing"`, "did not measure how data structures are used", `id="data-again"`)
	_, analyse := d.app.view().(repeater).Repeat()
	analyse()
	until(t, func() (yes bool) {
		d.act(func() { yes = d.app.result != nil && d.app.result.Profile != nil && d.app.result.Profile.Data != nil })
		return yes
	})
	d.about("all")
	d.wants(`id="data"`, "Move to a second structure:", "kind, name (48 B).", "Members of particle over cache lines", `id="shade-L1_misses"`, "Members that are used together", "Memory blocks by allocation")
	grid := d.grids["data"]
	if rows, _ := grid.View(0, 3); grid.Selected != 0 || !strings.HasPrefix(rows[0][0], "all") || !strings.HasPrefix(rows[2][0], "grid") {
		t.Errorf("ranking = %q, selected row = %d; want “all” first and selected, and “grid” third", rows, grid.Selected)
	}

	ruler := d.matrixOf("fields")
	if len(ruler.Rows) != 2 || len(ruler.Columns) != 64 || ruler.Names[0] != "x" || ruler.Names[63] != "name" || ruler.Values[0] != 12_000 || ruler.Values[104] != -1 ||
		!strings.Contains(strings.ReplaceAll(ruler.Texts[24], "\u202f", " "), "vx (double, 8 B at offset 24): 12 000 loads, 1 000 stores, in 100 % of the visits") {
		t.Errorf("ruler = %+v, want two cache lines with the members of particle", ruler)
	}
	sum := func() (n float64) {
		for _, v := range d.matrixOf("map").Values {
			n += v
		}
		return n
	}
	if plot := d.matrixOf("map"); !plot.Zoom || sum() != 65_250 {
		t.Errorf("accesses in the map = %v in %d rows, want 65 250 and a map that can be zoomed", sum(), len(plot.Rows))
	}
	d.act(func() { d.app.ShadeBy("L1_misses") })
	d.act(func() { d.app.drawCharts() })
	if total := d.sum("members", "misses L1"); sum() != float64(total) || d.matrixOf("fields").Values[24] != 9_250 || d.lastSaid() != "L1 misses" {
		t.Errorf("misses in the map = %v, want the misses of the members, %d", sum(), total)
	}
	if s := state.ParseScreen(d.hash); s.Own(state.Shade) != "L1_misses" || s.Tab != state.TabData {
		t.Errorf("hash %q", d.hash)
	}

	// The URL contains the zoom of the map, and Back undoes the zoom. When a data structure is
	// selected, its map is not zoomed.
	part := state.Part{1, 2, 5, 60}
	d.app.ZoomMap(part)
	if got := d.matrixOf("map"); got.Part != part || !strings.Contains(d.hash, "zoom=map-rows:") || got.Zoomed(state.ParseScreen(d.hash)).Part != part {
		t.Errorf("part of the map = %+v, hash = %q; want %+v in both", got.Part, d.hash, part)
	}
	d.back()
	if got := d.matrixOf("map").Part; got != (state.Part{}) {
		t.Errorf("part of the map after Back = %+v, want the whole map", got)
	}
	d.app.ZoomMap(part)
	d.app.ZoomMap(state.Part{})
	if strings.Contains(d.hash, "zoom=") || d.matrixOf("map").Part != (state.Part{}) {
		t.Errorf("hash %q", d.hash)
	}
	d.app.ZoomMap(part)
	d.app.PickRow("data", 1)
	d.about("n")
	if strings.Contains(d.hash, "zoom=") {
		t.Errorf("hash %q", d.hash)
	}
	d.wants("Members of node over cache lines", "payload")
	d.app.PickRow("data", 2)
	d.about("grid")
	d.wants("no structure is known for grid")
	if d.app.PickRow("data", 99); d.app.Screen.Data == 0 {
		t.Error("PickRow selected a row that does not exist")
	}
	d.act(func() { d.app.SaveCSV("heap"); d.app.SaveCSV("data") })
	heap := ""
	for name, content := range d.saved {
		if strings.HasSuffix(name, "-heap.csv") {
			heap = string(content)
		}
	}
	if !strings.HasPrefix(heap, "name,kind,function,file,line,blocks,") || strings.Count(heap, "\n") != 3 {
		t.Errorf("exported table of memory blocks = %q, want 3 lines", heap)
	}
}
