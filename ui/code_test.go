package ui

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/ui/state"
)

// The method "saw" waits until the page has saved a file with the given name, and returns its
// content.
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

// TestCode checks the source line with the most misses in a demo, the stack distances of this line,
// and the displayed source.
func TestCode(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	// Before anything is selected, the page shows the source location with the most misses. If the
	// source is missing, the ranking has all columns.
	d.wants(`id="code-summary"`, `id="place-title"`, `id="source-wanted"`, "Drop <b>matmul-naive.c</b>", `id="before-missing"`, `class="code-below"`)
	grid := d.grids["code"]
	if grid == nil || grid.Rows == 0 {
		t.Fatalf("ranking = %+v, want rows", grid)
	}
	rows, _ := grid.View(0, 1)
	if len(rows[0]) < 8 {
		t.Errorf("first row with all columns = %q, want at least 8 cells", rows[0])
	}
	d.app.PickRow("code", 0)
	if !strings.HasPrefix(rows[0][0], "matmul-naive.c:") || d.charts["place"] == nil || d.grids["code"].Selected != 0 {
		t.Errorf("first row = %q, want the worst line, selected and with a chart", rows[0])
	}
	picked := d.app.Screen.Picked
	d.app.SortBy("code", "references")
	if d.app.Screen.Picked != picked || d.grids["code"].Selected < 0 {
		t.Error("sorting by references changed the selected row")
	}

	// The instructions of a line are listed on request. Whenever the misses of loops are counted,
	// evictions are also counted.
	instructions := func() { d.app.view().(*CodeView).toggleInstructions() }
	d.act(instructions)
	d.await(func() bool { return d.app.table("instructions") != nil && d.app.loopsCounted() })
	d.wants(`id="table-instructions"`, `id="evictions-note"`)
	d.checkInstructions(t)
	d.act(instructions)
	if html := d.html(); strings.Contains(html, `id="table-instructions"`) {
		t.Error("the page still shows the instructions after they were hidden")
	}
	d.act(func() { d.app.SetSize(1, 2048) })
	d.await(d.app.loopsCounted)
	d.wants("Evictions from L1 by source line, over the whole run: rows with this code")
	if table := d.app.table("evictions"); table.Rows != 3 || table.Source() == nil {
		t.Errorf("evictions %+v", table)
	}

	source, err := d.Fetch("demos/matmul-naive.c", "matmul-naive.c")
	if err != nil {
		t.Fatal(err)
	}
	d.app.Offer(Item{File: source})
	d.wants(`id="table-source"`, "matmul-naive.c is shown with the misses of each line", `class="code-beside"`)
	if rows, _ := d.grids["code"].View(0, 1); len(rows[0]) != 3 {
		t.Errorf("first row next to the source = %q, want 3 cells", rows[0])
	}
	d.act(d.app.ShowAllColumns)
	d.wants(`class="code-below"`)
	d.act(d.app.ShowAllColumns)
	_, line := d.app.source()
	if g := d.grids["source"]; g == nil || g.Selected != int(line)-1 {
		t.Fatalf("line %d of the source is not selected", line)
	}
	d.app.PickRow("source", 0) // a line without references cannot be selected
	if d.app.Screen.Picked != picked {
		t.Error("a line without references was selected")
	}
	// The keys move from one line with misses to the next, and from the last line to the first.
	before := d.grids["source"].Selected
	d.act(func() { d.app.NextHot(true) })
	if after := d.grids["source"].Selected; after == before {
		t.Errorf("hot line after line %d = %d, want a different line", before+1, after+1)
	}
	for range 50 {
		if d.act(func() { d.app.NextHot(true) }); d.grids["source"].Selected == before {
			break
		}
	}
	if d.app.Screen.Picked != picked {
		t.Error("stepping through the hot lines does not wrap around")
	}
	d.app.Offer(Item{File: fileWith("matmul-naive.c", []byte("int main(void) { return 0; }\n"))})
	d.wants(`id="source-which"`, "There are 2 files named matmul-naive.c now")
	d.act(func() { d.app.ChooseSource("matmul-naive.c", 1) })
	d.wants(`id="source-short"`)
	d.app.Offer(Item{File: fileWith("other.c", []byte("x"))})
	d.wants("other.c is source code, but this result does not refer to this file. The result refers to matmul-naive.c.")
	d.app.Offer(Item{File: fileWith("broken.c", []byte("x\x00"))})
	d.wants("broken.c is not a text file")
	if n := len(d.entries()); n != 1 {
		t.Errorf("kept analyses = %d, want 1; source code was opened as a trace", n)
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

// columnWalk returns the trace of a single source line that repeatedly reads one column of a
// matrix. None of the column's cache lines stays in an 8-way cache, but all of them stay in a fully
// associative cache.
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

// TestMeasuredHierarchy checks that the analysis counts misses by site in the levels of the
// hierarchy that the page shows. If a level is selected later, its misses must be estimated, with a
// note, and counted only on request.
func TestMeasuredHierarchy(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(columnWalk())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	first := func() string { // source location, kind, references and misses in the first row
		rows, _ := d.grids["code"].View(0, 1)
		return strings.ReplaceAll(strings.Join(rows[0][:4], "|"), "\u202f", " ")
	}
	if got := first(); got != "0x400000|load|512|512" {
		t.Errorf("first row = %s, want 512 misses of 512 references", got)
	}
	if page := d.html(); strings.Contains(page, `id="code-estimates"`) {
		t.Error("the page says that measured levels are estimates")
	}
	d.act(func() { d.app.SetSize(1, 16<<10) })
	d.wants(`id="code-estimates"`, "share of the misses in L1 is an estimate", `id="code-again"`)
	if got := first(); !strings.Contains(got, "≈") {
		t.Errorf("first row = %s, want an estimate (≈)", got)
	}
	d.app.Navigate(facts(d.app.Screen))
	d.wants("misses in L1 of 16 KiB, 8 ways: ≈")
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())

	d.act(func() { d.app.Repeat() })
	until(t, func() bool {
		return len(d.entries()) == 2 && !strings.Contains(d.html(), `id="code-estimates"`) && d.rests()
	})
	if l := d.app.Levels(); d.app.Screen.Tab != state.TabCode || l[0].SizeBytes != 16<<10 {
		t.Errorf("view after the second analysis = %v with the levels %v, want Code with L1 of 16 KiB", d.app.Screen.Tab, l)
	}
	if got := first(); got != "0x400000|load|512|512" {
		t.Errorf("first row after the second analysis = %s, want 512 misses of 512 references", got)
	}
	// A second tab does not have the trace.
	d.act(func() { d.app.items = nil; d.app.SetSize(1, 8<<10) })
	d.wants("Drop the trace here again")
}

// TestNoCode checks that, if a trace has no source locations, the page explains how to record a
// trace with source locations.
func TestNoCode(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(textItem())
	d.app.result.Profile.Sites = nil
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	d.wants(`id="missing"`, "stackglass cc")
	for _, f := range d.app.Forms() {
		if f.Sites {
			t.Errorf("the page offers the export %s, want only exports of this result", f.Name)
		}
	}
}

func TestExportAs(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	for _, f := range export.Forms() {
		d.act(func() { d.app.ExportAs(f.Name) })
		if content := d.saw("Matrix multiplication" + f.Ending); !strings.Contains(string(content), "main") { // each export contains the name of the function
			t.Errorf("%s: %q", f.Name, content)
		}
	}
}

// memorySources is an implementation of SourceFiles that keeps the files in memory.
type memorySources struct {
	mu    sync.Mutex
	files map[string][]*state.Source
}

func (m *memorySources) Keep(key string, files []*state.Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.files, key); len(files) > 0 {
		m.files[key] = files
	}
}

func (m *memorySources) Read(key string) []*state.Source {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[key]
}

func (m *memorySources) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.files))
}

// TestDroppedSourcesAreKept checks that a dropped source file is stored with its analysis, that it
// is shown again after a reload, and that it is removed on request or with the analysis.
func TestDroppedSourcesAreKept(t *testing.T) {
	kept := &memorySources{files: map[string][]*state.Source{}}
	d := newDesk(t)
	d.app.SourceFiles = kept
	d.app.Offer(demoItem())
	source, err := d.Fetch("demos/matmul-naive.c", "matmul-naive.c")
	if err != nil {
		t.Fatal(err)
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	d.app.Offer(Item{File: source})
	d.wants("kept in this browser, with the analysis", `id="source-remove"`)
	// the result does not refer to this file
	d.app.Offer(Item{File: fileWith("other.c", []byte("int x;\n"))})
	key := d.app.Screen.Open
	until(t, func() bool { return len(kept.Read(key)) == 1 })

	reload := func() {
		d.app.Navigate("")
		d.act(func() { d.app.code, d.app.result = codeState{}, nil })
		d.app.Navigate("#open=" + key + "&view=code")
	}
	reload()
	until(t, func() bool { return strings.Contains(d.html(), `id="source-remove"`) })
	d.act(func() {
		f, _ := d.app.source()
		d.app.RemoveSource(f)
	})
	until(t, func() bool { return len(kept.Keys()) == 0 })
	d.wants(`id="source-wanted"`, "matmul-naive.c was removed from this browser.")

	d.app.Offer(Item{File: source})
	until(t, func() bool { return len(kept.Keys()) == 1 })
	d.app.Navigate("")
	d.act(func() { d.app.Doom(key); d.app.Delete() })
	until(t, func() bool { return len(kept.Keys()) == 0 })
}

// checkInstructions checks the LLVM IR instructions of the worst line of matmul-naive: the misses of
// its instructions add up to the misses of the line, and selecting an instruction selects its line,
// or the instruction itself if the ranking is grouped by instruction.
func (d *desk) checkInstructions(t *testing.T) {
	t.Helper()
	all := func() [][]string {
		g := d.grids["instructions"]
		rows, _ := g.View(0, g.Rows)
		return rows
	}
	find := func(text string) int {
		at := slices.IndexFunc(all(), func(row []string) bool { return strings.Contains(row[len(row)-1], text) })
		if at < 0 {
			t.Fatalf("no instruction contains %q", text)
		}
		return at
	}
	find("#2 = phi double #7 of the previous iteration")
	find("#7 = llvm.fmuladd double #4, #6, #2")
	v, place := d.app.codeView(), d.app.pickedPlace()
	sums, marked := make([]float64, len(v.Levels)), 0
	g := d.grids["instructions"]
	for i := range g.Rows {
		if shares := g.Shares(i); g.Mark(i) == "line" {
			marked++
			for l := range sums {
				sums[l] += shares[l]
			}
		}
	}
	file, line := v.Location(place)
	for l := range sums {
		want := 0.
		for i := range v.Profile.Sites.Code {
			if s := &v.Profile.Sites.Code[i]; s.File == file && s.Line == line {
				want += v.Levels[l].Sites[i] / max(v.Levels[l].Level.Misses, 1)
			}
		}
		if math.Abs(sums[l]-want) > 1e-9 || l == 0 && want == 0 {
			t.Errorf("instructions of %s cause %g of the misses in level %d, want %g", v.Place(place), sums[l], l, want)
		}
	}
	if marked < 2 || g.Mark(g.Selected) != "line" {
		t.Errorf("%d instructions are marked, and row %d is selected, want at least 2 and a marked row", marked, g.Selected)
	}

	// Another instruction of the same line keeps the line selected. Site 0 is not selected before.
	if site := d.app.code.pickedSite(); site >= 0 {
		t.Errorf("site %d is selected, although the user has not selected an instruction", site)
	}
	first, other := g.Selected, -1
	for i := range g.Rows {
		if g.Mark(i) == "line" && i != g.Selected {
			other = i
		}
	}
	d.app.PickRow("instructions", other)
	if is := d.grids["instructions"].Selected; is != other || d.app.pickedPlace() != place {
		t.Errorf("selected instruction = %d of %s, want %d of %s", is, v.Place(d.app.pickedPlace()), other, v.Place(place))
	}
	d.app.PickRow("instructions", find("getelementptr"))
	if d.app.pickedPlace() != place || !strings.Contains(d.said[len(d.said)-1], "accesses no memory") {
		t.Errorf("an instruction that accesses no memory changed the selection; the page announced %q", d.said)
	}
	d.act(func() { d.app.SumCodeBy(attribution.Site) })
	d.app.PickRow("instructions", other)
	if v := d.app.codeView(); v.PlaceOf(d.app.code.listed.Site(other)) != d.app.pickedPlace() || d.grids["instructions"].Selected != other {
		t.Errorf("grouped by instruction, selecting row %d selected %s", other, v.Place(d.app.pickedPlace()))
	}
	d.act(func() { d.app.SumCodeBy(attribution.Line) })
	d.app.PickRow("code", 0)
	d.await(func() bool { return d.app.table("instructions") != nil })

	// Opening an analysis forgets the selected instruction.
	hash := d.hash
	d.act(func() { d.app.result = nil }) // as while a different analysis is opened
	d.app.Navigate("#" + hash)
	d.await(func() bool { return d.app.table("instructions") != nil && d.app.loopsCounted() })
	if is := d.grids["instructions"].Selected; is != first {
		t.Errorf("after the analysis was opened again, instruction %d is selected, want %d", is, first)
	}
}
