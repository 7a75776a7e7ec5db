package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// loopsEverywhere shows the loops of a run, the view of a run without loops, and the loops of a run
// that is compressed on request.
func (p *tab) loopsEverywhere(look func(state string)) {
	p.t.Helper()
	p.clickElement("#demo-matmul-naive")
	p.waitFinished()
	p.openView("loops", "#table-loop-misses tbody tr")
	look("loops")
	p.clickElement("#loops-rows tbody tr:first-child td")
	p.waitTrue("the title of the nest", `document.querySelector("#loop-title").textContent.startsWith("Loop 1,")`)
	look("loops, a nest")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
	p.dropFiles(p.withoutCode())
	p.waitFinished()
	p.openView("loops", "#loops-again")
	look("the reason why there are no loops")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}

// TestLoops checks that a demo's loop tree can be opened with the keyboard, and that the page
// predicts misses for other caches.
func TestLoops(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-matmul-naive")
	if got, want := p.waitFinished(), truthOf(t, "demo:matmul-naive").Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
	p.openView("loops", "#table-loop-misses tbody tr")
	p.takeScreenshots("loops")
	if roles := eval[string](p, `document.querySelector("#loops-rows").getAttribute("role") + Array.from(document.querySelectorAll("#loops-rows tbody tr"), (r) => r.getAttribute("aria-level")).join("")`); roles != "treegrid123" {
		t.Errorf("role and levels of the tree = %q, want treegrid123", roles)
	}

	// All rows together are a single tab stop. Arrow keys follow the tree.
	p.tabTo("the rows", `document.activeElement.id === "loops-rows"`)
	p.pressKeys(kb.ArrowLeft)
	p.pressKeys(kb.Enter)
	p.waitTrue("the enclosing loop", `document.querySelector("#loop-title").textContent.startsWith("Loop 1.1,")`)
	p.waitTrue("the announcement of the loop", `document.getElementById("live").textContent.includes("The loop runs 32 times")`)
	p.pressKeys(kb.ArrowRight)
	p.pressKeys(kb.Enter)
	p.waitTrue("the inner loop", `document.querySelector("#loop-title").textContent.startsWith("Loop 1.1.1,")`)
	if focus := eval[string](p, `document.activeElement.id`); focus != "loops-rows" {
		t.Errorf("the focus moved to %q, want loops-rows", focus)
	}

	// Changing the size of a level makes the page count the misses again. A column of array b does
	// not fit in 2 KiB.
	for range 20 {
		if p.textOf("#ways-1") == "fully associative" {
			break
		}
		p.clickElement("#ways-more-1")
	}
	p.shrinkL1("2 KiB")
	const missesOfNest = `document.querySelector("#loops-rows tbody tr td:nth-child(7)").textContent.replace(/\D/g, "")`
	p.waitTrue("33,920 misses", missesOfNest+` === "33920"`)
	p.waitTrue("the table of evictions", `document.querySelector("#table-evictions tbody tr")`)
	p.takeScreenshots("loops-small-cache")

	// A link to the loop opens the same loop.
	p.reload()
	p.waitFor("#loop-title")
	p.waitTrue("the linked loop", `document.querySelector("#loop-title").textContent.startsWith("Loop 1.1.1,")`)
}

// shrinkL1 moves the slider of the first cache level to a smaller size, step by step. Before each
// step, the function waits until the page shows the effect of the previous step.
func (p *tab) shrinkL1(size string) {
	p.t.Helper()
	p.waitTrue("an L1 cache of "+size, `(() => {
		const s = document.getElementById("size-1");
		if (s.ariaValueText.replace(/\u202f/, " ") === `+quoteText(size)+`) return true;
		if (s.ariaValueText === window.sizeLeft) return false;
		window.sizeLeft = s.ariaValueText;
		s.value = Number(s.value) - 1;
		s.dispatchEvent(new Event("input", { bubbles: true }));
	})()`)
}

// withoutCode returns the path of a trace that contains no code. The page loop-compresses such a
// trace only on request.
func (p *tab) withoutCode() string {
	return p.writeFile("rows.din", []byte(strings.Repeat("0 1000\n0 1040\n1 2000\n", 100)))
}

// TestLoopsOnRequest checks that, if a result has no loops, they can be requested.
func TestLoopsOnRequest(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.dropFiles(p.withoutCode())
	p.waitFinished()
	p.openView("loops", "#loops-again")
	p.takeScreenshots("loops-missing")
	p.clickElement("#loops-again")
	p.waitFor("#table-loop-misses tbody tr")
	p.takeScreenshots("loops-without-code")
}

// TestLoopsOfThreads checks that each thread's loops can be expanded with the mouse and with the
// keyboard.
func TestLoopsOfThreads(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-ring")
	p.waitFinished()
	p.openView("loops", "#table-loop-misses tbody tr")
	const rows = `Array.from(document.querySelectorAll("#loops-rows tbody tr"), (r) => r.firstChild.textContent.trim().replace(/ ·.*/, "").replace(/\s+/g, " ")).join()`
	folded := eval[string](p, rows)
	if !strings.Contains(folded, "▸ 2+") || strings.Contains(folded, "each thread") {
		t.Errorf("rows = %s, want a folded loop of all threads", folded)
	}
	p.takeScreenshots("loops-of-threads")
	p.clickElement("#loops-rows tr[aria-expanded=\"false\"] .fold")
	p.waitTrue("the loops of the threads", rows+` !== `+quoteText(folded))
	p.takeScreenshots("loops-of-threads-unfolded")
}
