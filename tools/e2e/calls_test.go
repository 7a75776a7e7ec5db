package e2e

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

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
		return [box.left + x + Math.min(wide / 2, 40), box.top + e.y(i) + 10];
	})()`)
	kinds := []input.DispatchMouseEventType{"mouseMoved", "mousePressed", "mouseReleased"}
	if !click {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: "left", ClickCount: 1})
	}
}

// TestFlameGraph checks that the squares in the table have the colours of the frames in both themes,
// that the axis shows shares of the run, and that a click on the overview zooms to another frame.
func TestFlameGraph(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.openCalls()
	for _, theme := range []string{"light", "dark"} {
		p.setTheme(theme)
		p.waitDrawn()
		// The canvas converts both colours to the same notation.
		differ := eval[[]string](p, `(() => {
			const e = document.querySelector("#flame-paths"), of = (name) => +getComputedStyle(document.documentElement).getPropertyValue(name);
			const ctx = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
			const pixel = (color) => { ctx.fillStyle = color; ctx.fillRect(0, 0, 1, 1); return String(ctx.getImageData(0, 0, 1, 1).data); };
			const squares = Array.from(document.querySelectorAll("#calls-paths-rows .square"));
			const list = squares.map((s, i) => [s.textContent.trim(), pixel(getComputedStyle(s, "::before").backgroundColor), pixel(e.color(i, of("--base-light"), of("--base-chroma")))]);
			if (list.length !== e.data.names.length || new Set(list.map((l) => l[1])).size < 3) return ["too few squares or colours: " + JSON.stringify(list)];
			return list.filter(([name, a, b], i) => a !== b || name !== e.data.names[i]).map(String);
		})()`)
		if len(differ) > 0 {
			t.Errorf("%s: squares that differ from frames (name, square, frame): %q", theme, differ)
		}
	}
	// ticks returns the labels of the axis, and the share of the run in view.
	ticks := func() (labels []string, share float64) {
		labels = eval[[]string](p, `(() => {
			const e = document.querySelector("#flame-paths"), ctx = e.canvas.getContext("2d"), list = [];
			ctx.fillText = (text, x, y) => { if (y < e.head) list.push(text); };
			e.paint();
			delete ctx.fillText;
			e.paint();
			return list;
		})()`)
		return labels, eval[float64](p, `(() => { const e = document.querySelector("#flame-paths"); return (e.range[1] - e.range[0]) / e.data.total; })()`)
	}
	if labels, share := ticks(); labels[0] != "0\u202f%" || labels[len(labels)-1] != "100\u202f%" || share != 1 {
		t.Errorf("axis of the whole run = %q, share %v; want 0 %% to 100 %%, share 1", labels, share)
	}
	p.frameAt("paths", "twice", true)
	p.waitTrue("the zoomed graph", crumbs+`.endsWith(">twice") && document.querySelector("#flame-paths").range[0] === document.querySelector("#flame-paths").data.starts[document.querySelector("#flame-paths").data.zoom]`)
	if labels, share := ticks(); slices.Contains(labels, "100\u202f%") || labels[0] != "0\u202f%" || math.Abs(share-0.288) > 0.001 {
		t.Errorf("axis of a frame with 28.8 %% of the misses = %q, share %v; want 0 %% to 28 %%", labels, share)
	}
	eval[any](p, `(() => {
		const e = document.querySelector("#flame-paths"), [x, wide] = e.place(e.data.names.indexOf("ins"), [0, e.all]), box = e.canvas.getBoundingClientRect();
		e.box.dispatchEvent(new MouseEvent("click", { clientX: box.left + x + wide / 2, clientY: box.top + 3 }));
	})()`)
	p.waitTrue("the frame that was clicked in the overview", crumbs+`.endsWith(">ins")`)
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
