package e2e

import (
	"path/filepath"

	"github.com/chromedp/cdproto/input"
)

// tracedCalls returns the path of the trace of a program in which several functions call each
// other.
func (p *tab) tracedCalls() string {
	p.t.Helper()
	path, err := filepath.Abs(filepath.Join(rootFolder, "tools", "stackglass", "internal", "command", "testdata", "calls", "tree.sgt"))
	if err != nil {
		p.t.Fatal(err)
	}
	return path
}

// openCalls analyses the trace of a program and shows the call paths.
func (p *tab) openCalls() {
	p.t.Helper()
	p.dropFiles(p.tracedCalls())
	p.waitFinished()
	p.openView("calls", "#flame-paths canvas[data-ready]")
	p.waitTrue("the table", `document.querySelector("#calls-paths-rows tbody td")`)
}

// frameAt moves the mouse to a frame of a flame graph. If the parameter click is true, frameAt also
// clicks on the frame.
func (p *tab) frameAt(graph, name string, click bool) {
	p.t.Helper()
	at := eval[[2]float64](p, `(() => {
		const e = document.querySelector("#flame-`+graph+`"), i = e.data.names.indexOf(`+quoteText(name)+`);
		e.scrollIntoViewIfNeeded();
		const box = e.canvas.getBoundingClientRect(), [x, wide] = e.place(i);
		return [box.left + x + Math.min(wide / 2, 40), box.top + e.row(i) * 21 - e.box.scrollTop + 10];
	})()`)
	kinds := []input.DispatchMouseEventType{"mouseMoved", "mousePressed", "mouseReleased"}
	if !click {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: "left", ClickCount: 1})
	}
}

const crumbs = `Array.from(document.querySelectorAll("#calls-crumbs li"), (e) => e.textContent).join(">")`

// callsEverywhere shows the call paths in every direction, zooms in, and searches.
func (p *tab) callsEverywhere(look func(state string)) {
	p.t.Helper()
	p.openCalls()
	look("call paths")
	p.clickElement(`#calls-paths-rows [data-sort="function"]`)
	p.waitTrue("the sorted table", `location.hash.includes("order=calls-paths:function") && document.querySelector('#calls-paths-rows [aria-sort="ascending"]')`)
	look("call paths, sorted")
	p.frameAt("paths", "sum", true)
	p.waitTrue("the zoomed graph", crumbs+`.endsWith(">sum")`) // the functions "main" and "twice" both call "sum"; the caller with more misses is first
	look("call paths, zoomed")
	p.clickElement("#calls-search")
	p.pressKeys("ins")
	p.waitTrue("the number of matching frames", `document.querySelector("#calls-summary").textContent.includes("matches")`)
	look("call paths, searched")
	p.clickElement("#calls-around")
	p.waitTrue("the callers and the callees", `document.querySelector("#flame-callees canvas[data-ready]") && document.querySelector("#calls-callers-rows tbody td")`)
	look("callers and callees")
	p.clickElement("#calls-by-callers")
	p.waitTrue("the callers", `!document.querySelector("#flame-callees") && document.querySelector("#calls-callers-rows tbody td")`)
	look("call paths, bottom-up")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}
