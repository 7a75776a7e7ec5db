package ui

import (
	"os"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
)

// The function "modelled" analyses the desk's demo and opens its blocks.
func modelled(t *testing.T, d *desk) {
	t.Helper()
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabBlocks).Hash())
	d.answered()
}

// The method "answered" waits until the models have answered the current question.
func (d *desk) answered() {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() { m := &d.app.models; yes = !m.asker.busy() && (m.blocks != nil || m.problem != "") })
		return yes
	})
}

// TestBlocks checks the blocks of the hottest function in a demo, and that changes to them can be
// made and undone.
func TestBlocks(t *testing.T) {
	d := newDesk(t)
	modelled(t, d)
	d.wants("Function main", "Block for.body8, matmul-naive.c:19–20", "limited by", "recurrence", "Not modelled: ", "cycles on ", "llvm.fmuladd double")
	if d.graph == nil || len(d.graph.Nodes) != 7 || d.graph.Selected != 6 || d.graph.Nodes[6].Lines[2] != "32\u202f768\u202f×" {
		t.Fatalf("graph = %+v, want 7 blocks with the selected block 6", d.graph)
	}
	rows, marks := d.grids["blocks"].View(0, 9)
	if len(rows) != 7 || rows[0][0] != "for.body8" || rows[0][2] != "32\u202f768" || marks[0] != "most" {
		t.Errorf("blocks %q %q", rows, marks)
	}

	// A click on a heading sorts the table. The method PickRow counts the rows in the order in
	// which the page shows them.
	d.app.SortBy("blocks", "count")
	d.app.SortBy("blocks", "count")
	g := d.grids["blocks"]
	if first, _ := g.View(0, 1); first[0][2] != "1" || g.Sort != "count" || !g.Reverse || g.Selected != 6 || !strings.Contains(d.hash, "order=blocks:count:reverse") {
		t.Errorf("sorted by executions: first row = %q, selected row = %d, hash = %q; want the fewest executions first and row 6", first, g.Selected, d.hash)
	}
	d.app.PickRow("blocks", 0)
	d.answered()
	if first, _ := d.grids["blocks"].View(0, 1); !strings.HasPrefix(d.app.blocks().BlockName(), first[0][0]+",") {
		t.Errorf("selected block = %q, want %q", d.app.blocks().BlockName(), first[0][0])
	}
	d.app.SortBy("blocks", "count")
	d.act(func() { s := d.app.Screen; s.Block = 0; d.app.goTo(s, true) })
	d.answered()

	// Move the slider for the innermost loop's branch so that 3 of 4 outcomes stay in the loop.
	branch := func(to string) (r state.BranchRow) {
		d.act(func() {
			for _, row := range d.app.blocks().Rows {
				if row.To == to {
					r = row
				}
			}
		})
		return r
	}
	ran := func(row int) string {
		rows, _ := d.grids["blocks"].View(row, 1)
		return rows[0][2]
	}
	inner := branch("for.body8")
	d.act(func() { d.app.SetBranch(inner.Branch, inner.With(0.75)) })
	d.answered()
	if got := ran(0); got != "4\u202f096" {
		t.Errorf("executions of the innermost block if 3 of 4 outcomes stay in the loop = %s, want 4 096", got)
	}
	d.wants("yours", "undo all changes")

	// Enter the branch in the syntax of the branch-probability file, with a parameter.
	d.act(func() { d.app.SetBranch(inner.Branch, "trip n/2"); d.app.NameNumber("n = 200") })
	d.answered()
	if got := ran(0); got != "102\u202f400" {
		t.Errorf("executions of the innermost block with trip count 100 = %s, want 102 400", got)
	}
	d.wants(`id="parameter-n"`)
	d.act(func() { d.app.SetParameter("n", "20") })
	d.answered()
	if got := ran(0); got != "10\u202f240" {
		t.Errorf("executions of the innermost block with trip count 10 = %s, want 10 240", got)
	}
	d.act(d.app.SaveProbabilities)
	until(t, func() bool { return d.saw("Matrix multiplication-probabilities.txt") != "" })
	saved := d.saw("Matrix multiplication-probabilities.txt")
	if !strings.Contains(saved, "n = 20\n") || !strings.Contains(saved, "= trip n/2\n") {
		t.Errorf("saved:\n%s", saved)
	}

	// Impossible values are reported and have no effect.
	d.act(func() { d.app.SetBranch(inner.Branch, "0.5, 0.6") })
	d.answered()
	d.wants(`id="blocks-wrong"`, "the probabilities sum to 11/10, want 1", `aria-invalid="true"`)
	if got := ran(0); got != "32\u202f768" {
		t.Errorf("executions of the innermost block after the changes are undone = %s, want the recorded 32 768", got)
	}
	d.act(d.app.ForgetBranches)
	d.answered()
	d.wants("as it ran")

	// When the saved file is loaded, the result is the same.
	d.app.Offer(Item{File: fileWith("mine-probabilities.txt", []byte(saved))})
	d.answered()
	if got := ran(0); got != "10\u202f240" {
		t.Errorf("executions of the innermost block with the saved file = %s, want 10 240", got)
	}

	// The link contains the selected block and the selected processor.
	d.app.PickBlock(1)
	d.answered()
	d.wants("Block for.cond1.preheader")
	d.act(func() { d.app.SetProcessor("neoverse-n1") })
	d.answered()
	if !strings.Contains(d.hash, "block=6") || !strings.Contains(d.hash, "processor=neoverse-n1") {
		t.Errorf("hash %q", d.hash)
	}
	d.act(func() { d.app.SaveCSV("blocks") })
	if csv := d.saw("Matrix multiplication-blocks.csv"); !strings.Contains(csv, "for.body8") {
		t.Errorf("CSV %q", csv)
	}
}

// TestModuleWithoutTrace checks that, if a module is dropped while no result is open, it becomes a
// separate result and is stored.
func TestModuleWithoutTrace(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(Item{File: fileWith("matmul-naive.ll", moduleText(t))})
	d.answered()
	d.wants("Function main", "for.body8", "matmul-naive.c", "loops are assumed to run ten times", `class="dim" `)
	entries := d.entries()
	if len(entries) != 1 || entries[0].Name != "matmul-naive.ll" {
		t.Fatalf("kept %+v", entries)
	}
	for _, tab := range state.Tabs() { // no other view may fail for a module
		d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
		d.html()
	}
	d.app.Navigate("")
	d.wants("matmul-naive.ll")
	d.app.Offer(Item{File: fileWith("none.ll", []byte("BC\xc0\xde"))})
	d.wants("none.ll could not be read as LLVM IR", "bitcode")
}

// TestModuleComparedWithTrace checks that, if a module is dropped while a trace is open, the page
// compares the module with the trace.
func TestModuleComparedWithTrace(t *testing.T) {
	d := newDesk(t)
	modelled(t, d)
	other := strings.ReplaceAll(string(moduleText(t)), "for.body8", "for.body9")
	d.app.Offer(Item{File: fileWith("other.ll", []byte(other))})
	d.answered()
	d.wants("other.ll is now compared with Matrix multiplication.", "Functions of other.ll that do not occur in the trace are ignored.", "the trace is from a different build")
	if len(d.entries()) != 1 {
		t.Error("the compared module was stored as a separate result")
	}

	// A module that is dropped on the first screen becomes a separate result, whatever the previous
	// view was.
	d.app.Navigate("")
	d.app.Offer(Item{File: fileWith("matmul-naive.ll", moduleText(t))})
	d.answered()
	d.wants("loops are assumed to run ten times")
	if len(d.entries()) != 2 {
		t.Errorf("kept %+v", d.entries())
	}
	d.app.Navigate("")
	d.app.Offer(Item{File: fileWith("a-probabilities.txt", []byte("# The branches of a program\n"))})
	d.wants("Open the trace or the module to which the probabilities belong")
}

func moduleText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../core/costmodel/testdata/matmul-naive.ll")
	if err != nil {
		t.Fatal(err)
	}
	return text
}
