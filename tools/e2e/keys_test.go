package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestKeyboard checks that everything that can be done with the mouse can also be done with the
// keyboard.
func TestKeyboard(t *testing.T) {
	needStage(t)
	p := openPage(t)
	demo := demos(t)[2]
	p.tabTo("the demo's card", `document.activeElement.id === `+quoteText("demo-"+demo.Name))
	p.pressKeys(kb.Enter)
	if got, want := p.waitFinished(), truthOf(t, "demo:"+demo.Name).Digest; got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
	p.waitTrue("the focus on the result", `document.activeElement.id === "result-title"`)
	for _, next := range []struct{ key, view string }{{"1", "diagnosis"}, {"2", "code"}, {"2", "calls"}, {"2", "loops"}, {"2", "code"}, {"5", "blocks"}, {"3", "caches"}, {"3", "locality"}, {"3", "associativity"}, {"3", "caches"}} {
		p.pressKeys(next.key)
		p.waitTrue("the view "+next.view, inView(next.view)+` && document.querySelectorAll("[aria-current=page]").length === 1 && document.querySelector('[data-key="`+next.key+`"]').ariaCurrent`)
	}

	p.pressKeys("?")
	p.waitTrue("the list of keys", `document.getElementById("keys").open`)
	p.pressKeys(kb.Escape)
	p.waitTrue("the list of keys to be closed", `!document.getElementById("keys").open`)
	if !p.has("#result") {
		t.Error("closing the list of keys with Escape also closed the result")
	}

	// Each row of tabs is a single tab stop. Arrow keys move between the tabs.
	p.tabTo("the groups", `document.activeElement.matches(".tab-groups a[aria-current]")`)
	if stops := eval[int](p, `Array.from(document.querySelectorAll(".tabs a")).filter((a) => a.tabIndex === 0).length`); stops != 2 {
		t.Errorf("tab stops in the rows of tabs = %d, want 2", stops)
	}
	p.tabTo("the views of the group", `document.activeElement.id === "tab-caches"`)
	p.pressKeys(kb.ArrowRight)
	p.waitTrue("the next view", `document.activeElement.id === "tab-locality"`)
	p.tabTo("the groups", `document.activeElement.matches(".tab-groups a[aria-current]")`)
	p.pressKeys(kb.ArrowLeft)
	p.waitTrue("the previous group", `document.activeElement.id === "group-code"`)
	p.pressKeys(kb.Home)
	p.pressKeys(kb.Enter)
	p.waitTrue("the first tab", `document.activeElement.id === "tab-diagnosis" && document.activeElement.ariaCurrent === "page"`)
	p.pressKeys("3")
	p.waitTrue("the third tab", `document.querySelector("#tab-caches").ariaCurrent === "page"`)

	p.pressKeys("c")
	p.waitTrue("the chart", `document.activeElement.matches("#chart-curve .plot")`)
	eval[any](p, `document.getElementById("result-title").focus()`)
	p.tabTo("the chart", `document.activeElement.matches("#chart-curve .plot")`)
	p.pressKeys(kb.Home)
	p.waitTrue("an announced value", `document.getElementById("live").textContent.includes(":")`)
	seen := p.textOf("#live")
	for _, key := range []string{kb.ArrowRight, kb.ArrowRight, kb.End, kb.ArrowLeft} {
		p.pressKeys(key)
		p.waitTrue("a changed value", `document.getElementById("live").textContent.replace(/\s+/g, " ").trim() !== `+quoteText(seen))
		seen = p.textOf("#live")
		if read := p.textOf("#chart-curve .readout"); read != seen || !strings.Contains(seen, "%") {
			t.Errorf("values shown by the chart = %q, want the announced values %q", read, seen)
		}
	}
	p.pressKeys("+")
	p.pressKeys("+")
	p.waitTrue("the zoomed range in the URL", `location.hash.includes("zoom=curve:") && document.querySelector("#chart-curve .plot").hasAttribute("data-zoomed")`)
	p.pressKeys(kb.Escape)
	p.waitTrue("the whole curve, with no zoom in the URL", `!location.hash.includes("zoom=") && !document.querySelector("#chart-curve .plot").hasAttribute("data-zoomed")`)
	if !p.has("#result") {
		t.Error("pressing Escape in a zoomed chart closed the result")
	}

	p.pressKeys("t")
	p.waitFor("#table-curve tbody tr")
	p.pressKeys("t")
	p.waitGone("#table-curve")
	p.tabTo("the first level's size", `document.activeElement.id === "size-1"`)
	before := p.textOf("#level-1 h3") + p.textOf("#level-1 .misses")
	p.pressKeys(kb.ArrowRight)
	p.waitTrue("a changed size", `document.querySelector("#level-1 h3").textContent + document.querySelector("#level-1 .misses").textContent !== `+quoteText(before))

	p.pressKeys(kb.Escape)
	p.waitTrue("the list after Back", `document.querySelector("#kept tr .open")`)
	p.waitTrue("the focus on the demo's card", `document.activeElement.id === `+quoteText("demo-"+demo.Name))
	p.tabTo("the kept analysis", `document.activeElement.matches("#kept tr .open")`)
	p.pressKeys(kb.Enter)
	p.waitFor("#digest")
	p.pressKeys(kb.Escape)
	p.waitTrue("the focus on the analysis in the list", `document.activeElement.matches("#kept tr .open")`)
}

// tabTo presses Tab until the given element has the focus. Every element that Tab focuses must show
// its focus.
func (p *tab) tabTo(what, there string) {
	p.t.Helper()
	for range 80 {
		p.pressKeys("\t")
		if eval[bool](p, there) {
			return
		}
		if unseen := eval[string](p, invisibleFocus); unseen != "" {
			p.t.Errorf("the focus on %s is not visible", unseen)
		}
	}
	p.t.Fatalf("pressing Tab never reaches %s\n%s", what, p.pageText())
}

// invisibleFocus is a script that returns the focused element if its focus is not visible. The
// focus is visible if the element or one of its ancestors has an outline.
const invisibleFocus = `(() => {
	const e = document.activeElement;
	if (e === document.body || e.classList.contains("visually-hidden")) return "";
	for (let x = e; x && x !== document.body; x = x.parentElement) {
		const s = getComputedStyle(x);
		if (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) return "";
	}
	return e.outerHTML.slice(0, 120);
})()`
