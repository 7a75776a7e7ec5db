package e2e

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// modulePath returns the path of a demo's LLVM IR file.
func modulePath(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../core/costmodel/testdata/matmul-naive.ll")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// waitModels waits until the page shows the results of the performance models.
func (p *tab) waitModels() {
	p.t.Helper()
	p.waitTrue("the blocks and their graph", `document.querySelector("#blocks-answer") && document.querySelector("sg-graph [data-ready]")`)
}

// blocksEverywhere shows the blocks of a run, first with a possible change and then with an
// impossible change. The function also shows the blocks of a module that never ran.
func (p *tab) blocksEverywhere(look func(state string)) {
	p.t.Helper()
	p.clickElement("#demo-matmul-naive")
	p.waitFinished()
	p.openView("blocks", "#table-schedule tbody tr")
	p.waitModels()
	look("blocks")
	p.setBranchCounts("trip 7 : 1")
	p.waitFor("#blocks-wrong")
	look("blocks, with an impossible branch")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
	p.dropFiles(modulePath(p.t))
	p.waitModels()
	look("blocks of a module")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}

// setBranchCounts enters on the page how often the function's last branch goes to each of its
// successors.
func (p *tab) setBranchCounts(text string) {
	p.t.Helper()
	eval[bool](p, `(() => {
		const all = document.querySelectorAll("#branches input[type=text]"), e = all[all.length - 1];
		e.value = `+quoteText(text)+`;
		return e.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
}

// TestBlocks checks that the table of a demo's blocks opens with the keyboard, and that the user
// can change how often a branch is taken.
func TestBlocks(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-matmul-naive")
	p.waitFinished()
	p.openView("blocks", "#table-schedule tbody tr")
	p.waitModels()
	p.takeScreenshots("blocks")
	const ran = `Array.from(document.querySelectorAll("#blocks-rows tbody tr")).find((r) => r.cells[0].textContent === "for.body8")?.cells[2].textContent.replace(/\D/g, "")`
	p.waitTrue("the run's counts", ran+` === "32768"`)

	// The whole graph is a single tab stop. Arrow keys follow the edges.
	p.tabTo("the graph", `!!document.activeElement.closest("sg-graph")`)
	p.pressKeys(kb.ArrowUp)
	p.pressKeys(kb.Enter)
	p.waitTrue("the previous block in the graph", `document.querySelector("#block-title").textContent.startsWith("Block for.cond5.preheader")`)
	p.pressKeys(kb.ArrowDown)
	p.pressKeys(kb.Enter)
	p.waitTrue("the loop again", `document.querySelector("#block-title").textContent.startsWith("Block for.body8")`)

	// A click on a heading sorts the blocks, and another click reverses the order.
	const first = `document.querySelector("#blocks-rows tbody td").textContent`
	p.clickElement(`#blocks-rows [data-sort="block"]`)
	p.waitTrue("the blocks sorted by name", first+` === "entry" && location.hash.includes("order=blocks:block")`)
	p.pressKeys(kb.Enter)
	p.waitTrue("the blocks in reverse order", first+` === "for.cond5.preheader" && document.querySelector('#blocks-rows [aria-sort="descending"]')`)
	p.pressKeys(kb.Enter)
	p.waitTrue("the blocks sorted by cycles", first+` === "for.body8" && !location.hash.includes("order=")`)

	// When a slider is moved, all results are updated.
	took := eval[float64](p, `new Promise((done) => {
		const all = document.querySelectorAll("#branches input[type=range]"), e = all[all.length - 1];
		const from = performance.now();
		const look = () => (`+ran+` === "4096" ? done(performance.now() - from) : performance.now() - from > 300000 ? done(-1) : requestAnimationFrame(look));
		e.value = 750;
		e.dispatchEvent(new Event("input", { bubbles: true }));
		requestAnimationFrame(look);
	})`)
	if took < 0 {
		t.Fatal("the loop does not run 4,096 times, although its branch continues the loop three times for each exit")
	}
	t.Logf("time from the slider's move until the page shows the counts and the run time: %.0f ms", took)
	p.setBranchCounts("trip 10")
	p.waitTrue("10,240 executions", ran+` === "10240"`)
	p.takeScreenshots("blocks-changed")
	p.clickElement("#probabilities-forget")
	p.waitTrue("the executions counted in the run", ran+` === "32768"`)
	p.setValue("processor", "neoverse-n1")
	p.waitTrue("the costs on a different processor", `document.querySelector("#blocks-summary").textContent.includes("Neoverse N1")`)
}

// TestModule checks that the page analyses LLVM IR after the user enters how often a branch is
// taken, and that it also opens a trace of the same program.
func TestModule(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.dropFiles(modulePath(t))
	p.waitModels()
	p.takeScreenshots("blocks-module")
	p.waitTrue("the list of assumptions", `document.querySelector("#blocks-notes").textContent.includes("loops are assumed to run ten times")`)
	p.setBranchCounts("trip 32")
	p.waitTrue("the entered count", `document.querySelector("#branches").textContent.includes("yours")`)
	p.clickElement("#back")
	p.waitFor("#kept .delete")
	p.clickElement("#demo-matmul-naive")
	p.waitFinished()
	p.dropFiles(modulePath(t))
	p.waitTrue("the comparison with the module", `document.querySelector("#note")?.textContent.includes("is now compared with")`)
	p.waitModels()
	p.waitTrue("the counts of the run", `document.querySelector("#branches").textContent.includes("as it ran")`)
}
