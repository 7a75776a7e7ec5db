package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// allViews contains all views of a result, with and without content.
var allViews = []struct{ name, shows string }{
	{"diagnosis", ".overviewed"},
	{"locality", "#chart-histogram canvas"},
	{"caches", "#level-1"},
	{"associativity", "sg-heatmap canvas[data-ready]"},
	{"code", "#missing"},
	{"loops", "#missing"},
	{"counters", "#missing"},
}

// comparedViews lists the views that show two results side by side.
var comparedViews = []struct{ name, shows string }{
	{"diagnosis", "#differences"}, {"locality", "#chart-time canvas"}, {"caches", "#table-levels tbody tr"},
	{"code", "#table-code-compared tbody tr"}, {"loops", "#table-loop-misses-compared tbody tr"}, {"associativity", "sg-heatmap canvas[data-ready]"}, {"blocks", "#table-blocks-compared tbody tr"}, {"counters", "#table-counters-compared tbody tr"},
}

// toView returns a script that changes the URL to open a view of the result.
func toView(slug string) string {
	return `(() => { const at = new URLSearchParams(location.hash.slice(1)); at.set("view", ` + quoteText(slug) + `); location.hash = at; })()`
}

// inView returns a script that reports whether a view of the result is selected.
func inView(slug string) string {
	return `document.querySelector("#tab-` + slug + `")?.ariaCurrent === "page"`
}

// openView opens the given view of the result.
func (p *tab) openView(slug, shows string) {
	p.t.Helper()
	eval[any](p, toView(slug))
	p.waitTrue("view "+slug, inView(slug)+` && document.querySelector(`+quoteText(shows)+`)`)
}

// unfoldFacts expands the facts below a finding in the diagnosis.
func (p *tab) unfoldFacts() {
	p.t.Helper()
	p.clickElement(`#facts-open[aria-expanded="false"]`)
	p.waitFor("#findings")
}

// setTheme sets the colour scheme that the operating system prefers.
func (p *tab) setTheme(scheme string) {
	p.t.Helper()
	callDevTools(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

func (p *tab) viewport(width, height int64) {
	p.t.Helper()
	p.do("set the viewport", chromedp.EmulateViewport(width, height))
	p.waitTrue("the viewport", fmt.Sprintf("innerWidth === %d || document.documentElement.clientWidth === %d", width, width))
}

// showEverything shows all states of the page one after another, including the first
// screen, a paused run, and a result in every view.
func (p *tab) showEverything(look func(state string)) {
	p.t.Helper()
	look("the first screen, without kept results")
	p.pressKeys("?")
	p.waitTrue("the list of keys", `document.getElementById("keys").open`)
	look("the list of keys")
	p.pressKeys("\x1b")
	eval[any](p, `document.querySelectorAll("details").forEach((d) => { d.open = true; })`)
	look("the first screen, with everything expanded")

	p.startPaused(func() { p.dropFiles(longTrace(p.t, 20e6)) })
	for _, v := range allViews {
		p.openView(v.name, v.shows)
		look("a run, " + v.name)
	}
	p.pressKeys("\x1b")
	p.waitFor("#kept-title")
	look("the first screen, with a run")
	p.clickElement("#run-cancel")
	p.waitFor("#kept .chip.partial")
	p.waitGone("[data-running]")

	p.pickFiles(p.writeFile("a-name-that-is-long-enough-to-need-more-than-the-width-of-a-telephone.txt", []byte("no trace\n")))
	p.waitProblem()
	look("a problem")
	p.clickElement("#problem-dismiss")
	p.waitGone("#problem")

	p.clickElement("#kept .open")
	p.waitFor("#digest")
	for _, v := range allViews {
		p.openView(v.name, v.shows)
		look("a result, " + v.name)
		if p.has("#facts") {
			p.unfoldFacts()
			look("the facts, " + v.name)
		}
		for _, chart := range eval[[]string](p, `Array.from(document.querySelectorAll("sg-chart, sg-heatmap"), (c) => c.getAttribute("chart"))`) {
			p.clickElement("#" + chart + "-table")
			p.waitFor("#table-" + chart + " tbody tr")
			look("the table of " + chart + ", " + v.name)
			p.clickElement("#" + chart + "-help-open")
			p.waitTrue("the definition", `document.querySelector("#`+chart+`-help:popover-open")`)
			look("the definition of " + chart + ", " + v.name)
			p.pressKeys("\x1b")
			p.clickElement("#" + chart + "-table")
			p.waitGone("#table-" + chart)
		}
	}
	p.clickElement("#back")
	p.waitFor("#kept .delete")
	p.countersEverywhere(look)
	p.codeEverywhere(look)
	p.callsEverywhere(look)
	p.loopsEverywhere(look)
	p.blocksEverywhere(look)
	p.coresEverywhere(look)
	p.threadsEverywhere(look)
	p.policiesEverywhere(look)
	p.clickElement("#kept .rename")
	p.waitFor("#rename-input")
	look("renaming")
	p.clickElement("#kept .delete")
	p.waitFor("#delete-no")
	look("deleting")
}

// countersEverywhere shows a profile's counters in every form.
func (p *tab) countersEverywhere(look func(state string)) {
	p.t.Helper()
	p.dropFiles(p.countersProfile())
	p.waitFor("#digest")
	p.openView("counters", "#counters")
	look("counters of the program")
	p.clickElement("#counters-definitions summary")
	look("counters of the program, with definitions")
	for _, by := range []string{"function", "block"} {
		p.clickElement("#by-" + by)
		p.waitFor("#table-" + by + "s tbody tr")
		look("counters by " + by)
	}
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}

// codeEverywhere shows source locations with their source code, and compares two analyses.
func (p *tab) codeEverywhere(look func(state string)) {
	p.t.Helper()
	p.dropFiles(demoSource(p.t, "matmul-naive"))
	p.waitFor("#note")
	look("the source, without a result")
	p.clickElement("#pair-matmul-blocked")
	p.waitFor("#differences")
	for _, v := range comparedViews {
		p.openView(v.name, v.shows)
		look("two analyses, " + v.name)
	}
	p.clickElement("#compare-end")
	p.waitFor("#compare-with")
	p.openView("code", "#code-rows tbody td")
	look("source locations")
	p.clickElement("#code-rows tbody td")
	p.waitFor("#source-rows tbody td")
	look("one source location")
	p.clickElement("#place-instructions")
	p.waitFor("#instructions-rows tr[aria-selected]")
	look("the instructions of a source line")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
	p.clickElement("#kept .compare")
	p.waitFor("#kept a.compare")
	look("the choice of results to compare")
	p.clickElement("#kept button.compare")
	p.waitGone("#kept a.compare")
}

// countersProfile returns the path of a matrix multiplication's profile that contains
// counters.
func (p *tab) countersProfile() string {
	p.t.Helper()
	path, err := filepath.Abs(filepath.Join(rootFolder, "tools", "stackglass", "internal", "command", "testdata", "multiply.sgp"))
	if err != nil {
		p.t.Fatal(err)
	}
	return path
}

// TestEveryState checks that the page fits the width of a phone screen in every state, with and
// without fourfold magnification. The test then checks the page with axe-core on a wide screen, in
// the light and the dark theme.
func TestEveryState(t *testing.T) {
	needStage(t)
	axe, err := os.ReadFile(filepath.Join(rootFolder, "site", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Log("skipped: axe-core is not installed (make setup installs it): ", err)
	}
	p := openPage(t)
	p.viewport(320, 640)
	looked := 0
	p.showEverything(func(state string) {
		for _, height := range []int64{640, 256} {
			p.viewport(320, height)
			if wide := eval[[]string](p, tooWide); len(wide) > 0 {
				t.Errorf("%s in a window of 320 × %d: these elements are wider than the window: %q", state, height, wide)
			}
		}
		if len(axe) == 0 {
			return
		}
		p.viewport(1280, 720)
		p.waitDrawn()
		for _, scheme := range []string{"light", "dark"} {
			p.setTheme(scheme)
			p.waitTrue("the theme", `matchMedia("(prefers-color-scheme: `+scheme+`)").matches`)
			if !eval[bool](p, `typeof axe === "object"`) {
				eval[any](p, "(() => {"+string(axe)+"\n})()")
			}
			rules, least := `rules: { "target-size": { enabled: true } },`, 10
			if scheme == "dark" { // the themes differ only in their colours, so these rules are enough
				rules, least = `runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] },`, 1
			}
			passes := eval[int](p, runAxe(rules))
			for _, v := range eval[[]string](p, `axeViolations`) {
				t.Errorf("%s, %s: %s", state, scheme, v)
			}
			if passes < least {
				t.Errorf("%s, %s: %d rules of axe passed, want at least %d", state, scheme, passes, least)
			}
			looked++
		}
		p.viewport(320, 640)
		p.waitDrawn()
	})
	t.Logf("axe checked %d states", looked)

	if len(axe) > 0 {
		eval[any](p, `document.body.insertAdjacentHTML("beforeend", "<main><img src='icon.svg'><input></main>")`)
		eval[int](p, runAxe(""))
		if found := eval[[]string](p, `axeViolations`); len(found) < 3 {
			t.Errorf("violations in a picture without a name, an input without a name and a second main element = %q, want at least 3", found)
		}
	}
	eval[any](p, `(() => { const e = document.createElement("pre"); e.textContent = "x".repeat(400); e.style.setProperty("white-space", "pre"); document.body.append(e); })()`)
	if wide := eval[[]string](p, tooWide); len(wide) == 0 {
		t.Error("a line of 400 letters was not reported as too wide")
	}
}

// TestSwitchingViews switches from each view to every other view. A reload must not change the new
// view, because nothing of the previous view may remain on the page.
func TestSwitchingViews(t *testing.T) {
	needStage(t)
	const shown = `Array.from(document.querySelectorAll("#view .figure, #view .datatable, #view sg-table, #view .threads-on"), (e) => e.id || e.className).join()`
	p := openPage(t)
	p.clickElement("#demo-matmul-naive")
	p.waitFinished()
	slugs := []string{"diagnosis", "locality", "caches", "associativity", "code", "threads", "communication", "counters"}
	alone := map[string]string{}
	drawn := func(slug string) {
		if p.waitDrawn(); slug == "code" {
			p.waitTrue("the evictions, which a worker counts", `document.querySelector("#view #table-evictions")`)
		}
	}
	for _, slug := range slugs {
		p.openView(slug, "#view")
		p.reload()
		p.waitFor("#digest")
		drawn(slug)
		alone[slug] = eval[string](p, shown)
	}
	at := ""
	move := func(from, to string) {
		if at != from {
			p.openView(from, "#view")
		}
		p.openView(to, "#view")
		drawn(to)
		if got := eval[string](p, shown); got != alone[to] {
			t.Errorf("after the views %s and %s: the page shows %s, want %s, as after a reload", from, to, got, alone[to])
		}
		at = to
	}
	for i, one := range slugs {
		move(one, one)
		for _, other := range slugs[i+1:] {
			move(one, other)
			move(other, one)
		}
	}
}

// runAxe returns a script that collects axe-core's findings for all or some of its rules, and
// returns how many rules passed.
func runAxe(rules string) string {
	return `axe.run(document, { ` + rules + ` preload: false, resultTypes: ["violations"] }).then((result) => {
	globalThis.axeViolations = result.violations.map((v) => v.id + ": " + v.help + ": " +
		v.nodes.slice(0, 40).map((n) => n.html.slice(0, 160) + " " + n.failureSummary.replace(/\s+/g, " ")).join(" | "));
	return result.passes.length;
})`
}

// TestLongNamesOnPhoneScreen keeps two analyses, one of which has a long name. Neither the list nor
// a select element with this name may become wider than a phone screen, and the last action in the
// list must stay reachable.
func TestLongNamesOnPhoneScreen(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.viewport(320, 640)
	names := []string{"short.lackey", strings.Repeat("a_long_name_", 6) + ".lackey"}
	for i, name := range names {
		p.dropFiles(p.writeFile(name, []byte(" L 1000,4\n S 2000,4\n")))
		p.waitFor("#digest")
		p.clickElement("#back")
		p.waitTrue("the row", fmt.Sprintf(`document.querySelectorAll("#kept .delete").length === %d`, i+1))
	}
	narrow := func(state string) {
		if wide := eval[[]string](p, tooWide); len(wide) > 0 {
			t.Errorf("%s: these elements are wider than the window: %q", state, wide)
		}
	}
	narrow("the list")
	if right := eval[float64](p, `Math.max(...Array.from(document.querySelectorAll("#kept .delete"), (e) => e.getBoundingClientRect().right))`); right > 320 {
		t.Errorf("right edge of “delete” = %g pixels, want at most 320", right)
	}
	p.clickElement(`#kept [data-name="short.lackey"] .open`)
	p.waitFor("#compare-with")
	narrow("a result")
}

// tooWide is a script that, if the page scrolls sideways, returns the elements that are wider than
// the page.
const tooWide = `(() => {
	const root = document.documentElement;
	if (root.scrollWidth <= root.clientWidth) return [];
	return ["scrollWidth " + root.scrollWidth].concat(Array.from(document.body.querySelectorAll("*"))
		.filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest(".scroll, .visually-hidden"))
		.slice(0, 4).map((e) => e.outerHTML.slice(0, 100)));
})()`

// mapWords redraws the map of sets and ways, and checks the texts on it.
const mapWords = `(async () => {
	const host = document.querySelector("sg-heatmap"), canvas = host.querySelector("canvas"), ctx = canvas.getContext("2d");
	const words = [], fillText = CanvasRenderingContext2D.prototype.fillText;
	ctx.fillText = function (text, x, y) {
		const width = this.measureText(text).width, shift = { left: 0, center: 0.5, right: 1 }[this.textAlign];
		words.push({ text: String(text), left: x - width * shift, right: x + width * (1 - shift), y });
		return fillText.apply(this, arguments);
	};
	host.draw();
	delete ctx.fillText;
	const numbers = words.filter((w) => /^[<>−.\d]+$/.test(w.text)), names = words.filter((w) => /^L\d: /.test(w.text));
	const over = names.flatMap((n) => words.filter((w) => w !== n && Math.abs(w.y - n.y) < 8 && w.left < n.right && n.left < w.right).map((w) => n.text + " over " + w.text));
	return {
		bad: over.concat(words.filter((w) => w.right > host.plot.clientWidth || w.text === "−0").map((w) => "cut or void: " + w.text)),
		numbers: numbers.filter((w) => w.left >= host.left && w.y < host.row * host.data.rows).length, names: names.length,
		sizes: words.filter((w) => /KiB|MiB/.test(w.text)).length,
	};
})()`

// TestLabelsOnSetsMap checks that the labels on the map of sets and ways are complete and readable.
// The levels and the sizes of the diagonals must have labels. No label may be cut off or covered,
// and no cell may contain a number. When the mouse points at a cell, the page shows the cell's
// number.
func TestLabelsOnSetsMap(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.openPath("/#demo=matmul-naive&preset=i7-4770K")
	p.waitFor("#digest")
	p.openView("associativity", "sg-heatmap canvas[data-ready]")
	for _, width := range []int64{1280, 320} {
		p.viewport(width, 900)
		for _, conflicts := range []bool{false, true} {
			eval[any](p, fmt.Sprintf(`document.querySelectorAll('input[name="map"]')[%d]?.click()`, map[bool]int{true: 1}[conflicts]))
			p.waitTrue("the map", fmt.Sprintf(`document.querySelector("sg-heatmap").data.signed === %t`, conflicts))
			m := eval[struct {
				Bad                   []string
				Numbers, Names, Sizes int
			}](p, mapWords)
			if len(m.Bad) > 0 || m.Numbers > 0 || m.Names == 0 || m.Sizes == 0 {
				t.Errorf("map with a width of %d pixels, conflicts %t: %+v, want legible texts", width, conflicts, m)
			}
			box := eval[struct{ X, Y float64 }](p, `(() => { const h = document.querySelector("sg-heatmap"); h.scrollIntoView({ block: "center" }); const b = h.canvas.getBoundingClientRect(); return { x: b.left + h.x(2) + 3, y: b.top + h.y(5) + 3 }; })()`)
			callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseMoved", X: box.X, Y: box.Y})
			p.waitTrue("the cell's number", `/^32 sets, 2 ways, 4\s*KiB: .*%/.test(document.querySelector("sg-heatmap .readout").textContent)`)
		}
	}
}
