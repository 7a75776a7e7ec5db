package e2e

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// tryChanges uses the keyboard to try a change to the demo's loop nest, and to request proposals.
func (p *tab) tryChanges(text string) {
	p.t.Helper()
	p.tabTo("the form", `document.activeElement.id === "change-text"`)
	p.press(text + kb.Enter)
	p.wait("the result of the change", `document.querySelector("#table-tried-1 tbody tr") && !document.getElementById("changes-counting")`)
	p.click("#propose")
	p.wait("proposals", `document.querySelector("#table-proposed tbody tr") && !document.getElementById("changes-counting")`)
}

// TestLoopChanges checks that the page predicts how many misses a loop nest would have after
// changes to its loops.
func TestLoopChanges(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.visit("/#demo=matmul-naive&preset=i7-4770K")
	p.finished()
	p.openView("loops", "#table-loop-misses tbody tr")
	p.shrinkL1("4 KiB")
	p.tryChanges("b=+8")
	row := func(n string) string { return p.text("#table-tried-1 tbody tr:nth-child(1) td:nth-child(" + n + ")") }
	if got := row("1"); got != "pad each row of b by 1 element (8 bytes)" {
		t.Errorf("name of the change = %q, want pad each row of b by 1 element (8 bytes)", got)
	}
	if got := p.text("#table-proposed caption, #table-proposed .caption"); got == "" {
		t.Error("the table of proposals has no title")
	}
	p.shoot("loops-changes")
	p.choose("change-kind", "interchange")
	p.wait("an empty form", `document.getElementById("change-text").value === ""`)
	p.click("#change-text")
	p.press("i,k")
	p.click("#change-try")
	p.wait("the reason why the change is impossible", `document.getElementById("change-problem")?.textContent.includes("contains code outside the next inner loop")`)
	p.click("#changes-forget")
	p.waitGone("#table-tried-1")
	p.wait("the focus", `document.activeElement.id === "change-kind"`)
}
