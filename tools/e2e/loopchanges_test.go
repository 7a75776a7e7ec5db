package e2e

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// tryChanges uses the keyboard to try a change to the demo's loop nest, and to request proposals.
func (p *tab) tryChanges(text string) {
	p.t.Helper()
	p.tabTo("the form", `document.activeElement.id === "change-text"`)
	p.pressKeys(text + kb.Enter)
	p.waitTrue("the result of the change", `document.querySelector("#table-tried-1 tbody tr") && !document.getElementById("changes-counting")`)
	p.clickElement("#propose")
	p.waitTrue("proposals", `document.querySelector("#table-proposed tbody tr") && !document.getElementById("changes-counting")`)
}

// TestLoopChanges checks that the page predicts how many misses a loop nest would have after
// changes to its loops.
func TestLoopChanges(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.openPath("/#demo=matmul-naive&preset=i7-4770K")
	p.waitFinished()
	p.openView("loops", "#table-loop-misses tbody tr")
	p.shrinkL1("4 KiB")
	p.tryChanges("b=+8")
	row := func(n string) string { return p.textOf("#table-tried-1 tbody tr:nth-child(1) td:nth-child(" + n + ")") }
	if got := row("1"); got != "pad each row of b by 1 element (8 bytes)" {
		t.Errorf("name of the change = %q, want “pad each row of b by 1 element (8 bytes)”", got)
	}
	if got := p.textOf("#table-proposed caption, #table-proposed .caption"); got == "" {
		t.Error("the table of proposals has no title")
	}
	p.takeScreenshots("loops-changes")
	p.setValue("change-kind", "interchange")
	p.waitTrue("an empty form", `document.getElementById("change-text").value === ""`)
	p.clickElement("#change-text")
	p.pressKeys("i,k")
	p.clickElement("#change-try")
	p.waitTrue("the reason why the change is impossible", `document.getElementById("change-problem")?.textContent.includes("contains code outside the next inner loop")`)
	p.clickElement("#changes-forget")
	p.waitGone("#table-tried-1")
	p.waitTrue("the focus on the form", `document.activeElement.id === "change-kind"`)
}
