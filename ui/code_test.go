package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/ui/state"
)

// saw waits for what a goroutine saves.
func (d *desk) saw(name string) (content string) {
	d.t.Helper()
	until(d.t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		content = string(d.saved[name])
		return content != ""
	})
	return content
}

// From a demo to its worst line, its distances and its source.
func TestCode(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	// The worst place is in view before anything is picked. Without its source, the ranking has all
	// columns.
	d.wants(`id="code-summary"`, `id="place-title"`, `id="source-wanted"`, "Drop <b>matmul-naive.c</b>", `id="before-missing"`, `class="code-below"`)
	grid := d.grids["code"]
	if grid == nil || grid.Rows == 0 {
		t.Fatalf("the table is %+v", grid)
	}
	rows, _ := grid.View(0, 1)
	if len(rows[0]) < 8 {
		t.Errorf("all columns are %q", rows[0])
	}
	d.app.PickRow("code", 0)
	if !strings.HasPrefix(rows[0][0], "matmul-naive.c:") || d.charts["place"] == nil || d.grids["code"].Selected != 0 {
		t.Errorf("the worst place is %q", rows[0])
	}
	picked := d.app.Screen.Picked
	d.app.SortBy("references")
	if d.app.Screen.Picked != picked || d.grids["code"].Selected < 0 {
		t.Error("another order loses the place")
	}

	source, err := d.Fetch("demos/matmul-naive.c", "matmul-naive.c")
	if err != nil {
		t.Fatal(err)
	}
	d.app.Offer(Item{File: source})
	d.wants(`id="table-source"`, "matmul-naive.c is shown beside its lines", `class="code-beside"`)
	if rows, _ := d.grids["code"].View(0, 1); len(rows[0]) != 3 {
		t.Errorf("beside the source, the ranking has %q", rows[0])
	}
	d.act(d.app.ShowAllColumns)
	d.wants(`class="code-below"`)
	d.act(d.app.ShowAllColumns)
	_, line := d.app.source()
	if g := d.grids["source"]; g == nil || g.Selected != int(line)-1 {
		t.Fatalf("line %d is not marked", line)
	}
	d.app.PickRow("source", 0) // a line without references is no place
	if d.app.Screen.Picked != picked {
		t.Error("a line without references was picked")
	}
	// The keys go through the lines with misses, and begin again after the last one.
	before := d.grids["source"].Selected
	d.act(func() { d.app.NextHot(true) })
	if after := d.grids["source"].Selected; after == before {
		t.Errorf("the next hot line after %d is %d", before+1, after+1)
	}
	for range 50 {
		if d.act(func() { d.app.NextHot(true) }); d.grids["source"].Selected == before {
			break
		}
	}
	if d.app.Screen.Picked != picked {
		t.Error("the hot lines do not begin again")
	}
	d.app.Offer(Item{File: fileWith("matmul-naive.c", []byte("int main(void) { return 0; }\n"))})
	d.wants(`id="source-which"`, "There are 2 files named matmul-naive.c now")
	d.act(func() { d.app.ChooseSource("matmul-naive.c", 1) })
	d.wants(`id="source-short"`)
	d.app.Offer(Item{File: fileWith("other.c", []byte("x"))})
	d.wants("other.c is source code that this result does not name. It names matmul-naive.c.")
	d.app.Offer(Item{File: fileWith("broken.c", []byte("x\x00"))})
	d.wants("broken.c is no text")
	if n := len(d.entries()); n != 1 {
		t.Errorf("%d analyses: source code was taken for a trace", n)
	}

	d.act(func() { d.app.Search("nowhere") })
	d.wants("0 source lines are found")
	d.act(func() { d.app.Search("") })
	for _, by := range state.CodeBys() {
		d.act(func() { d.app.SumCodeBy(by) })
		d.wants(`id="table-code"`)
		d.app.PickRow("code", 0)
		d.wants(`id="place-title"`)
	}
}

// columnWalk is a trace of one line of code that walks down a column: sets of eight ways keep none
// of its cache lines, and a cache without sets keeps all.
func columnWalk() Item {
	var text strings.Builder
	text.WriteString("address,rw,size,pc\n")
	for range 8 {
		for row := range 64 {
			fmt.Fprintf(&text, "%#x,r,8,0x400000\n", 1<<20+4096*row)
			fmt.Fprintf(&text, "%#x,r,8,0x500000\n", 1<<30)
		}
	}
	return Item{File: fileWith("walk.csv", []byte(text.String()))}
}

// The levels of the hierarchy in view are measured by site. One that is chosen afterwards is
// estimated, with a note, and is measured on request.
func TestMeasuredHierarchy(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(columnWalk())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	first := func() string { // place, kind, references and misses of the first row
		rows, _ := d.grids["code"].View(0, 1)
		return strings.ReplaceAll(strings.Join(rows[0][:4], "|"), "\u202f", " ")
	}
	if got := first(); got != "0x400000|load|512|512" {
		t.Errorf("first is %s", got)
	}
	if page := d.html(); strings.Contains(page, `id="code-estimates"`) {
		t.Error("measured levels are called estimates")
	}
	d.act(func() { d.app.SetSize(1, 16<<10) })
	d.wants(`id="code-estimates"`, "The rows that cause the misses in L1 are estimated", `id="code-again"`)
	if got := first(); !strings.Contains(got, "≈") {
		t.Errorf("an estimate reads %s", got)
	}
	d.app.Navigate(facts(d.app.Screen))
	d.wants("misses in L1 of 16 KiB, 8 ways: ≈")
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())

	d.act(func() { d.app.Repeat() })
	until(t, func() bool {
		return len(d.entries()) == 2 && !strings.Contains(d.html(), `id="code-estimates"`) && d.rests()
	})
	if l := d.app.Levels(); d.app.Screen.Tab != state.TabCode || l[0].SizeBytes != 16<<10 {
		t.Errorf("analysed again, the view is %v with %v", d.app.Screen.Tab, l)
	}
	if got := first(); got != "0x400000|load|512|512" {
		t.Errorf("measured again, first is %s", got)
	}
	// In another tab, the trace is not available any more.
	d.act(func() { d.app.items = nil; d.app.SetSize(1, 8<<10) })
	d.wants("Drop the trace here again")
}

// A trace without code comes with advice on how to get one with code.
func TestNoCode(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(textItem())
	d.app.result.Profile.Sites = nil
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	d.wants(`id="missing"`, "stackglass cc")
	for _, f := range d.app.Forms() {
		if f.Sites {
			t.Errorf("%s is offered", f.Name)
		}
	}
}

func TestExportAs(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	for _, f := range export.Forms() {
		d.act(func() { d.app.ExportAs(f.Name) })
		if content := d.saw("Matrix multiplication" + f.Ending); len(content) < 50 {
			t.Errorf("%s: %q", f.Name, content)
		}
	}
}
