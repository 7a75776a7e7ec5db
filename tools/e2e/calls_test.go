package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// called returns the path of the trace of a program with several functions.
func (p *tab) called() string {
	p.t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "tools", "stackglass", "internal", "command", "testdata", "calls", "tree.sgt"))
	if err != nil {
		p.t.Fatal(err)
	}
	return path
}

// openCalls analyses this program and shows its call paths.
func (p *tab) openCalls() {
	p.t.Helper()
	p.drop(p.called())
	p.finished()
	p.openView("calls", "#flame-paths canvas[data-ready]")
	p.wait("the table", `document.querySelector("#calls-paths-rows tbody td")`)
}

// frameAt moves the mouse to a frame of a flame graph, and clicks it if asked to.
func (p *tab) frameAt(graph, name string, click bool) {
	p.t.Helper()
	at := eval[[2]float64](p, `(() => {
		const e = document.querySelector("#flame-`+graph+`"), i = e.data.names.indexOf(`+quote(name)+`);
		e.scrollIntoViewIfNeeded();
		const box = e.canvas.getBoundingClientRect(), [x, wide] = e.place(i);
		return [box.left + x + Math.min(wide / 2, 40), box.top + e.row(i) * 21 - e.box.scrollTop + 10];
	})()`)
	kinds := []input.DispatchMouseEventType{"mouseMoved", "mousePressed", "mouseReleased"}
	if !click {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: "left", ClickCount: 1})
	}
}

const crumbs = `Array.from(document.querySelectorAll("#calls-crumbs li"), (e) => e.textContent).join(">")`

// callsEverywhere shows call paths in every direction, zoomed and searched.
func (p *tab) callsEverywhere(look func(state string)) {
	p.t.Helper()
	p.openCalls()
	look("call paths")
	p.frameAt("paths", "sum", true)
	p.wait("zoomed", crumbs+` === "Whole run>main>sum"`)
	look("call paths, zoomed")
	p.click("#calls-search")
	p.press("ins")
	p.wait("found", `document.querySelector("#calls-summary").textContent.includes("matches")`)
	look("call paths, searched")
	p.click("#calls-around")
	p.wait("both sides", `document.querySelector("#flame-callees canvas[data-ready]") && document.querySelector("#calls-callers-rows tbody td")`)
	look("callers and callees")
	p.click("#calls-by-callers")
	p.wait("the callers", `!document.querySelector("#flame-callees") && document.querySelector("#calls-callers-rows tbody td")`)
	look("call paths, bottom-up")
	p.click("#back")
	p.waitFor("#kept .delete")
}

// TestCalls zooms, searches, and turns the flame graph of a program around, with the mouse and with
// the keyboard.
func TestCalls(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.openCalls()
	p.shoot("calls")

	// The mouse: a box describes the frame, and a click zooms in. Back zooms out.
	p.frameAt("paths", "ins", false)
	p.wait("the description", `!document.querySelector(".flame-tip").hidden && document.querySelector(".flame-tip").textContent.includes("tree.c:4")`)
	p.frameAt("paths", "ins", true)
	p.wait("zoomed", crumbs+` === "Whole run>main>ins"`)
	p.shoot("calls-zoomed")
	p.wait("the frame is as wide as the graph", `(() => { const e = document.querySelector("#flame-paths"); return Math.abs(e.place(e.data.names.indexOf("ins"))[1] - e.width) < 1; })()`)
	p.click("#calls-crumbs li:nth-child(2) button")
	p.wait("one level out", crumbs+` === "Whole run>main"`)
	eval[any](p, `history.back()`)
	p.wait("Back", crumbs+` === "Whole run>main>ins"`)
	p.reload()
	p.wait("the link leads to the same frame", crumbs+` === "Whole run>main>ins" && document.querySelector("#flame-paths canvas[data-ready]")`)
	p.click("#calls-source")
	p.wait("the source", `document.querySelector("#place-title")?.textContent.includes("ins")`)
	eval[any](p, `history.back()`)
	p.wait("the calls again", crumbs+` === "Whole run>main>ins" && document.querySelector("#flame-paths canvas[data-ready]")`)

	// The keyboard: arrow keys go from frame to frame, Enter zooms in and Escape out.
	p.tabTo("the graph", `!!document.activeElement.closest("sg-flame")`)
	said := func(text string) {
		t.Helper()
		p.wait(text+" is announced", `document.getElementById("live").textContent.startsWith(`+quote(text)+`)`)
	}
	p.press(kb.Escape)
	p.wait("Escape zooms out", crumbs+` === "Whole run>main"`)
	p.press("0")
	p.wait("0 shows all", crumbs+` === ""`)
	p.press(kb.ArrowDown)
	said("main: ")
	p.press(kb.ArrowDown)
	said("ins: ")
	p.press(kb.ArrowRight)
	said("sum: ")
	p.press(kb.Enter)
	p.wait("Enter zooms in", crumbs+` === "Whole run>main>sum"`)
	p.press("/")
	p.wait("the search", `document.activeElement.id === "calls-search"`)
	p.press("twice")
	p.wait("the share of what is found", `document.querySelector("#calls-summary").textContent.includes("1 frame matches: 27.")`)

	// Both sides of one function, and from callees to callers.
	p.click("#calls-around")
	p.wait("both sides", `document.querySelector("#flame-callees canvas[data-ready]") && document.querySelector("#flame-callers canvas[data-ready]")`)
	if up := eval[string](p, `(() => { const d = document.querySelector("#flame-callers").data; return d.up + d.names.join(); })()`); !strings.HasPrefix(up, "truesum,") || !strings.Contains(up, "twice") {
		t.Errorf("the callers are %s", up)
	}
	p.shoot("calls-around")
	p.click("#calls-by-callers")
	p.wait("bottom-up", `!document.querySelector("#flame-callees") && document.querySelector("#calls-callers-rows tbody tr")?.getAttribute("aria-expanded") === "false"`)
	rows := eval[int](p, `document.querySelectorAll("#calls-callers-rows tbody tr").length`)
	p.tabTo("the table", `document.activeElement.id === "calls-callers-rows"`)
	p.press(kb.ArrowRight)
	p.wait("the row is unfolded", `document.querySelector("#calls-callers-rows tbody tr").getAttribute("aria-expanded") === "true" && document.querySelectorAll("#calls-callers-rows tbody tr").length > `+strconv.Itoa(rows))
	p.press(kb.ArrowLeft)
	p.wait("the row is folded", `document.querySelectorAll("#calls-callers-rows tbody tr").length === `+strconv.Itoa(rows))
	p.shoot("calls-bottom-up")

	// Another width.
	p.choose("calls-weight", "instructions")
	p.wait("instructions", `document.querySelector("#calls-summary").textContent.includes("nstructions")`)
	eval[any](p, `history.back()`)
	p.wait("Back restores the width", `document.querySelector("#calls-weight").value === "L1_misses"`)
	if axe, err := os.ReadFile(filepath.Join(root, "site", "node_modules", "axe-core", "axe.min.js")); err == nil {
		eval[any](p, "(() => {"+string(axe)+"\n})()")
		for _, v := range eval[[]string](p, `axe.run("#result").then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")))`) {
			t.Error(v)
		}
	}
}
