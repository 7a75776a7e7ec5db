package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
)

// TestTerms checks that the explanation of a term can be opened with the mouse, with the keyboard
// and from the list of keys, and that it can be closed again.
func TestTerms(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-matmul-naive")
	p.waitFinished()
	p.openView("caches", "#level-1")
	const open = `document.querySelector("#term")?.matches(":popover-open")`
	mouse := func(selector string) {
		eval[any](p, `document.querySelector(`+quoteText(selector)+`).scrollIntoView({ block: "center" })`)
		p.waitDrawn()
		at := eval[struct{ X, Y float64 }](p, `(() => {
			const range = document.createRange();
			range.selectNodeContents(document.querySelector(`+quoteText(selector)+`));
			const box = range.getBoundingClientRect();
			return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
		})()`)
		for by := range 3 {
			callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseMoved", X: at.X + float64(by), Y: at.Y})
		}
	}
	// The page loads the script when the mouse moves. A busy browser may ignore one of these moves.
	const underlined = `CSS.highlights.get("term")?.size > 3`
	for range 20 {
		if mouse("#result-title"); eval[bool](p, underlined+" === true") {
			break
		}
		time.Sleep(betweenDownloads)
	}
	p.waitTrue("underlined terms", underlined)
	if n := eval[int](p, `Array.from(CSS.highlights.get("term")).filter((r) => r.toString() === "exact" && r.startContainer.parentElement.matches("#level-1 .chip")).length`); n != 1 {
		t.Errorf("underlined terms in the chip of L1 = %d, want 1", n)
	}
	mouse("#level-1 .chip")
	p.waitTrue("the explanation of the term under the mouse", open)
	if got, want := p.textOf("#term"), "exact Equal to the result of simulating every access. more"; got != want {
		t.Errorf("explanation of the term = %q, want %q", got, want)
	}
	if to := eval[string](p, `document.querySelector("#term a").getAttribute("href")`); to != "docs/accuracy.html" {
		t.Errorf("target of the link to more information = %s, want docs/accuracy.html", to)
	}
	p.pressKeys("\x1b")
	p.waitTrue("the explanation to be closed by Escape", "!"+open)
	if p.textOf("#result-title") == "" {
		t.Error("Escape also closed the result")
	}
	mouse("#level-1 .chip")
	p.waitTrue("the explanation to be opened again", open)
	mouse("#result-title")
	p.waitTrue("the explanation to be closed when the mouse leaves the term", "!"+open)

	p.pressKeys("?")
	p.waitFor("dialog#keys[open]")
	list := p.textOf("#terms")
	for _, want := range []string{"exactEqual to the result of simulating every access.", "miss ratioMisses divided by line accesses."} {
		if !strings.Contains(list, want) {
			t.Errorf("the list of terms lacks %q: %s", want, list)
		}
	}
	p.takeScreenshots("keys")
	p.pressKeys("\x1b")

	p.openView("code", "#code-rows")
	p.clickElement("#code-wide")
	const sorts = `Array.from(document.querySelectorAll("#code-rows th button")).find((e) => e.textContent === "references")`
	p.waitTrue("the focus on a sortable column heading", sorts+` && Array.from(CSS.highlights.get("term")).some((r) => r.startContainer.parentElement === `+sorts+`)`)
	p.pressKeys("\t") // this key makes the browser show the focus, as for keyboard users
	eval[any](p, sorts+`.focus()`)
	p.waitTrue("the explanation of the focused term", open+` && `+sorts+`.getAttribute("aria-describedby") === "term"`)
}

// TestCommands checks that the commands for recording a program can be copied.
func TestCommands(t *testing.T) {
	needStage(t)
	p := openPage(t)
	const visible = `Array.from(document.querySelectorAll(".commands pre")).filter((e) => e.checkVisibility()).map((e) => e.textContent).join()`
	if first := eval[string](p, visible); !strings.HasPrefix(first, "stackglass cc -- clang -O2 -g prog.c -o prog\n./prog\n") {
		t.Errorf("commands before a language is chosen = %q, want clang", first)
	}
	p.clickElement(`[name=language][value=fortran]`)
	if now := eval[string](p, visible); !strings.HasPrefix(now, "stackglass cc -- flang-19 ") || strings.Contains(now, "clang -O2") {
		t.Errorf("commands for Fortran = %q, want only flang-19", now)
	}
	p.takeScreenshots("first")
	p.clickElement("#commands-copy")
	p.waitTrue("the confirmation that the commands were copied", `/Copied|Selected/.test(document.querySelector("#commands-copy").textContent)`)
	p.clickElement("#accepted-open")
	p.waitFor("dialog#accepted[open]")
	for _, want := range []string{"lackey", "drmemtrace", ".sgp", ".lz4"} {
		if list := p.textOf("#accepted"); !strings.Contains(list, want) {
			t.Errorf("the list of accepted files lacks %s: %s", want, list)
		}
	}
	p.takeScreenshots("accepted")
}
