package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestManualPages checks every page of the manual in a wide and a narrow window, and in the light
// and the dark theme.
func TestManualPages(t *testing.T) {
	needStage(t)
	axe, err := os.ReadFile(filepath.Join(rootFolder, "site", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("skipped: axe-core is not installed (make setup installs it): ", err)
	}
	p := openPage(t)
	p.openPath("/docs/index.html")
	pages := eval[[]string](p, `[...document.querySelectorAll("nav a")].map((a) => a.pathname)`)
	if len(pages) < 25 {
		t.Fatalf("pages of the manual = %q, want more pages", pages)
	}
	p.openPath("/docs/tutorial.html?q=conflict+padding")
	p.waitFor(`#found a[href^="padding.html#"]`)
	for _, page := range pages {
		p.openPath(page)
		p.waitFor(".manual h1")
		for _, width := range []int64{320, 1440} {
			p.viewport(width, 900)
			if more := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); more > 0 {
				t.Errorf("%s: the page is %d pixels wider than the window of %d pixels", page, more, width)
			}
		}
		for _, scheme := range []string{"light", "dark"} {
			eval[any](p, `document.documentElement.dataset.theme = "`+scheme+`"`)
			eval[any](p, "(() => {"+string(axe)+"\n})()")
			if passes := eval[int](p, runAxe("")); passes < 10 {
				t.Errorf("%s, %s: %d rules of axe passed, want at least 10", page, scheme, passes)
			}
			for _, v := range eval[[]string](p, `axeViolations`) {
				t.Errorf("%s, %s: %s", page, scheme, v)
			}
			p.takeScreenshots("manual-" + filepath.Base(page) + "-" + scheme)
		}
	}
}

// TestLiveStack checks the live stack on the manual's page about stack distances. The test uses the
// live stack with the mouse and the keyboard, and compares each answer with a linear search in a
// list.
func TestLiveStack(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.openPath("/docs/stack-distance.html")
	p.waitFor(".live table")
	check := func(what, accesses string, lines int) {
		t.Helper()
		p.waitTrue(what+": the accesses", `document.getElementById("live-accesses").value === `+quoteText(accesses))
		p.waitTrue(what+": the lines", `document.getElementById("live-lines").value === "`+strconv.Itoa(lines)+`"`)
		rows := map[string][]string{}
		misses := make([]int, 8) // indexed by the number of lines in the cache, minus one
		var stack []string
		for _, line := range strings.Fields(accesses) {
			at := slices.Index(stack, line)
			distance, outcome := strconv.Itoa(at), "hit"
			if at < 0 {
				distance = "∞"
			} else {
				stack = slices.Delete(stack, at, at+1)
			}
			stack = slices.Insert(stack, 0, line)
			for i := range misses {
				if at < 0 || at > i {
					misses[i]++
				}
			}
			if at < 0 || at >= lines {
				outcome = "miss"
			}
			rows["access"] = append(rows["access"], line)
			rows["stack distance"] = append(rows["stack distance"], distance)
			rows["cache"] = append(rows["cache"], outcome)
		}
		for i, row := range []string{"access", "stack distance", "cache"} {
			got := eval[[]string](p, `[...document.querySelectorAll(".live tr:nth-child(`+strconv.Itoa(i+1)+`) td")].map((td) => td.textContent)`)
			if !slices.Equal(got, rows[row]) {
				t.Errorf("%s: row %q = %q, want %q", what, row, got, rows[row])
			}
		}
		bars := eval[[]int](p, `[...document.querySelectorAll(".live .bars > div")].map((bar) => +bar.firstChild.textContent)`)
		if !slices.Equal(bars, misses) {
			t.Errorf("%s: misses shown by the bars = %d, want %d", what, bars, misses)
		}
		want := fmt.Sprintf(", %d of %d accesses miss", misses[lines-1], len(rows["access"]))
		if said := p.textOf(".live [role=status]"); !strings.Contains(said, want) {
			t.Errorf("%s: status = %q, want a text with %q", what, said, want)
		}
		if now := eval[string](p, `document.querySelector(".live .bars .now").lastChild.textContent`); now != strconv.Itoa(lines) {
			t.Errorf("%s: lines of the highlighted bar = %s, want %d", what, now, lines)
		}
	}
	check("at first", "a b a c b d d a", 2)

	// Use the keyboard to add a line and then an access.
	p.tabTo("the number of lines", `document.activeElement.id === "live-lines"`)
	p.pressKeys(kb.ArrowRight)
	check("after the right arrow key", "a b a c b d d a", 3)
	p.pressKeys(kb.End)
	check("after End", "a b a c b d d a", 8)
	p.pressKeys(kb.Home)
	check("after Home", "a b a c b d d a", 1)
	eval[any](p, `document.getElementById("live-accesses").focus()`)
	p.pressKeys(kb.End)
	p.pressKeys(" c e b")
	check("after typing", "a b a c b d d a c e b", 1)
	p.pressKeys(kb.Enter)
	check("after Enter", "a b a c b d d a c e b", 1)

	// Use the mouse to click in the middle of the slider.
	p.clickElement("#live-lines")
	lines := eval[int](p, `+document.getElementById("live-lines").value`)
	if lines != 4 && lines != 5 {
		t.Errorf("a click on the middle of the slider selects %d lines, want 4 or 5", lines)
	}
	check("after a click", "a b a c b d d a c e b", lines)

	eval[any](p, `document.getElementById("live-accesses").select()`)
	p.pressKeys(kb.Delete)
	p.waitTrue("the hint for an empty text field", `document.querySelector(".live [role=status]").textContent.startsWith("Type accesses") && !document.querySelector(".live table")`)
	p.pressKeys("x x y")
	check("after typing again", "x x y", lines)
}
