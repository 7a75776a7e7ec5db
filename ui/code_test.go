package ui

import (
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
	d.wants(`id="code-summary"`, `id="place-none"`)
	grid := d.grids["code"]
	if grid == nil || grid.Rows == 0 {
		t.Fatalf("the table is %+v", grid)
	}
	rows, _ := grid.View(0, 1)
	d.app.PickRow("code", 0)
	d.wants(`id="source-wanted"`, "Drop <b>matmul-naive.c</b>", `id="before-missing"`)
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
	d.wants(`id="table-source"`, "matmul-naive.c is shown beside its lines")
	_, line := d.app.source()
	if g := d.grids["source"]; g == nil || g.Selected != int(line)-1 {
		t.Fatalf("line %d is not marked", line)
	}
	d.app.PickRow("source", 0) // a line without references is no place
	if d.app.Screen.Picked != picked {
		t.Error("a line without references was picked")
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

// A trace that tells no code says how to get one that does.
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
