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
	p.tabTo("the demo's card", `document.activeElement.id === `+quote("demo-"+demo.Name))
	p.press(kb.Enter)
	if got, want := p.finished(), truthOf(t, "demo:"+demo.Name).Digest; got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
	p.wait("the focus is on the result", `document.activeElement.id === "result-title"`)
	for _, next := range []struct{ key, view string }{{"1", "diagnosis"}, {"2", "code"}, {"2", "calls"}, {"2", "loops"}, {"2", "code"}, {"5", "blocks"}, {"3", "caches"}, {"3", "locality"}, {"3", "associativity"}, {"3", "caches"}} {
		p.press(next.key)
		p.wait("the view "+next.view, inView(next.view)+` && document.querySelectorAll("[aria-current=page]").length === 1 && document.querySelector('[data-key="`+next.key+`"]').ariaCurrent`)
	}

	p.press("?")
	p.wait("the list of keys", `document.getElementById("keys").open`)
	p.press(kb.Escape)
	p.wait("a closed list of keys", `!document.getElementById("keys").open`)
	if !p.has("#result") {
		t.Error("closing the list of keys with Escape also closed the result")
	}

	// Each row of tabs is a single tab stop. Arrow keys move between the tabs.
	p.tabTo("the groups", `document.activeElement.matches(".tab-groups a[aria-current]")`)
	if stops := eval[int](p, `Array.from(document.querySelectorAll(".tabs a")).filter((a) => a.tabIndex === 0).length`); stops != 2 {
		t.Errorf("tab stops in the rows of tabs = %d, want 2", stops)
	}
	p.tabTo("the views of the group", `document.activeElement.id === "tab-caches"`)
	p.press(kb.ArrowRight)
	p.wait("the next view", `document.activeElement.id === "tab-locality"`)
	p.tabTo("the groups", `document.activeElement.matches(".tab-groups a[aria-current]")`)
	p.press(kb.ArrowLeft)
	p.wait("the previous group", `document.activeElement.id === "group-code"`)
	p.press(kb.Home)
	p.press(kb.Enter)
	p.wait("the first tab", `document.activeElement.id === "tab-diagnosis" && document.activeElement.ariaCurrent === "page"`)
	p.press("3")
	p.wait("the third tab", `document.querySelector("#tab-caches").ariaCurrent === "page"`)

	p.press("c")
	p.wait("the chart", `document.activeElement.matches("#chart-curve .plot")`)
	eval[any](p, `document.getElementById("result-title").focus()`)
	p.tabTo("the chart", `document.activeElement.matches("#chart-curve .plot")`)
	p.press(kb.Home)
	p.wait("an announced value", `document.getElementById("live").textContent.includes(":")`)
	seen := p.text("#live")
	for _, key := range []string{kb.ArrowRight, kb.ArrowRight, kb.End, kb.ArrowLeft} {
		p.press(key)
		p.wait("a changed value", `document.getElementById("live").textContent.replace(/\s+/g, " ").trim() !== `+quote(seen))
		seen = p.text("#live")
		if read := p.text("#chart-curve .readout"); read != seen || !strings.Contains(seen, "%") {
			t.Errorf("values shown by the chart = %q, want the announced values %q", read, seen)
		}
	}
	p.press("+")
	p.press("+")
	p.wait("a zoom in the URL", `location.hash.includes("zoom=curve:") && document.querySelector("#chart-curve .plot").hasAttribute("data-zoomed")`)
	p.press(kb.Escape)
	p.wait("the whole curve without a zoom", `!location.hash.includes("zoom=") && !document.querySelector("#chart-curve .plot").hasAttribute("data-zoomed")`)
	if !p.has("#result") {
		t.Error("pressing Escape in a zoomed chart closed the result")
	}

	p.press("t")
	p.waitFor("#table-curve tbody tr")
	p.press("t")
	p.waitGone("#table-curve")
	p.tabTo("the first level's size", `document.activeElement.id === "size-1"`)
	before := p.text("#level-1 h3") + p.text("#level-1 .misses")
	p.press(kb.ArrowRight)
	p.wait("a changed size", `document.querySelector("#level-1 h3").textContent + document.querySelector("#level-1 .misses").textContent !== `+quote(before))

	p.press(kb.Escape)
	p.wait("the list after Back", `document.querySelector("#kept tr .open")`)
	p.wait("the focus is on the card", `document.activeElement.id === `+quote("demo-"+demo.Name))
	p.tabTo("the kept analysis", `document.activeElement.matches("#kept tr .open")`)
	p.press(kb.Enter)
	p.waitFor("#digest")
	p.press(kb.Escape)
	p.wait("the focus is on the row", `document.activeElement.matches("#kept tr .open")`)
}

// tabTo presses Tab until the given element has the focus. Every element on the way must show its
// focus.
func (p *tab) tabTo(what, there string) {
	p.t.Helper()
	for range 80 {
		p.press("\t")
		if eval[bool](p, there) {
			return
		}
		if unseen := eval[string](p, invisibleFocus); unseen != "" {
			p.t.Errorf("the focus on %s is not visible", unseen)
		}
	}
	p.t.Fatalf("pressing Tab never reaches %s\n%s", what, p.screen())
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
