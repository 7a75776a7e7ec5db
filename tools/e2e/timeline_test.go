package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// TestTimeline checks that a part of the run can be selected with the mouse and with keys. The code
// view must then equal the command's answer for the same part.
func TestTimeline(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-array-list")
	p.waitFinished()
	p.openView("code", "#code-summary")
	p.waitFor("sg-timeline canvas")
	hash := func() string { return eval[string](p, `(location.hash.match(/range=([0-9.]+)/) || ["", ""])[1]`) }
	p.brush(10, 34)
	p.waitTrue("the range in the URL", `location.hash.includes("range=10240..35840")`)

	// The page's CSV file equals the command's answer.
	p.setValue("preset", "i7-6700")
	p.waitTrue("the chosen hierarchy", `location.hash.includes("preset=i7-6700")`)
	_, exported := p.awaitDownload(func() { p.clickElement("#export-profile") })
	_, path := p.awaitDownload(func() { p.clickElement("#code-csv") })
	want := runCommand(t, "sites", exported, "--hierarchy", "i7-6700", "--range", "10240..35840", "--format", "csv")
	if got := p.read(path); string(got) != string(want) {
		t.Errorf("saved ranking =\n%s\nwant the ranking that the command prints:\n%s", got, want)
	}

	key := func(name string, shift bool) {
		eval[any](p, fmt.Sprintf(`document.querySelector("sg-timeline .plot").dispatchEvent(new KeyboardEvent("keydown", { key: %s, shiftKey: %t, bubbles: true, cancelable: true }))`, quoteText(name), shift))
	}
	key("ArrowRight", false)
	p.waitTrue("a moved range", `location.hash.includes("range=11264..36864")`)
	key("ArrowLeft", true)
	p.waitTrue("a shorter range", `location.hash.includes("range=11264..35840")`)
	eval[any](p, `history.back()`)
	p.waitTrue("the previous range after Back", `!location.hash.includes("range=11264..35840")`)
	key("Escape", false)
	p.waitTrue("the whole run", `!location.hash.includes("range=")`)
	if got := hash(); got != "" || !eval[bool](p, `location.hash.includes("view=code")`) {
		t.Errorf("range after Escape = %q, want the whole run in the Code view", got)
	}
	key("PageDown", false)
	p.waitTrue("the first phase", `location.hash.includes("range=0..2048")`)
	p.openView("locality", "#timeline-view")
	p.clickElement("#timeline-whole")
	p.waitTrue("the whole run", `!location.hash.includes("range=")`)

	// The keys and the wheel zoom and move the range like in other timelines.
	windows := func() [3]int {
		return eval[[3]int](p, `(() => { const h = document.querySelector("sg-timeline"), n = Math.ceil(104480 / 1024); return [...h.range, n]; })()`)
	}
	key("w", false)
	p.waitTrue("a part of the run", `location.hash.includes("range=")`)
	zoomed := windows()
	if n := zoomed[2]; zoomed[0] <= 0 || zoomed[1] >= n || zoomed[1]-zoomed[0] != (n*4+2)/5 {
		t.Errorf("range after w = %v of %d windows, want four fifths in the middle", zoomed[:2], n)
	}
	before := eval[string](p, `location.hash`)
	key("a", false)
	p.waitTrue("a moved range", `location.hash !== `+quoteText(before))
	if moved := windows(); moved[0] >= zoomed[0] || moved[1]-moved[0] != zoomed[1]-zoomed[0] {
		t.Errorf("range after a = %v, want an earlier range as long as %v", moved[:2], zoomed[:2])
	}
	wheel := func(share float64, turn int, ctrl bool) {
		eval[any](p, fmt.Sprintf(`(() => {
			const h = document.querySelector("sg-timeline"), b = h.canvas.getBoundingClientRect();
			h.plot.dispatchEvent(new WheelEvent("wheel", { clientX: b.left + h.left + h.width * %v, clientY: b.top + 8, deltaY: %d, ctrlKey: %t, bubbles: true, cancelable: true }));
		})()`, share, turn, ctrl))
	}
	key("Escape", false)
	p.waitTrue("the whole run", `!location.hash.includes("range=")`)
	wheel(0, -100, false)
	p.waitDrawn()
	if got := windows(); got[1] != got[0] {
		t.Errorf("range after a turn of the wheel without Ctrl = %v, want none", got[:2])
	}
	eval[any](p, `(() => { const to = window.stackglassTimelines, set = to.set; to.set = (d) => { window.timelineData = d; set(d); }; })()`)
	wheel(0, -100, true)
	p.waitTrue("the beginning of the run", `location.hash.includes("range=0..")`)
	wheel(0, 100, true)
	p.waitTrue("the whole run", `!location.hash.includes("range=")`)

	// Each tick of a part that begins late has its own label.
	labels := eval[[]string](p, `(() => {
		const h = document.querySelector("sg-timeline"), ctx = h.canvas.getContext("2d"), list = [], bottom = h.canvas.clientHeight;
		ctx.fillText = (text, x, y) => { if (x > h.left && y > bottom - 16) list.push(text); };
		window.stackglassTimelines.set({ ...window.timelineData, first: 9765625 });
		delete ctx.fillText;
		return list;
	})()`)
	if distinct := slices.Compact(slices.Sorted(slices.Values(labels))); len(labels) < 5 || len(distinct) != len(labels) {
		t.Errorf("labels of the axis of a part that begins after 10 G references = %q, want at least 5 different ones", labels)
	}
}

// brush drags the mouse across the timeline, from one window to another.
func (p *tab) brush(from, to float64) {
	p.t.Helper()
	mouse := func(kind input.DispatchMouseEventType, window float64) {
		box := eval[[2]float64](p, fmt.Sprintf(`(() => { const h = document.querySelector("sg-timeline"); h.scrollIntoView({ block: "center" }); const b = h.canvas.getBoundingClientRect(); return [b.left + h.x(%v), b.top + 8]; })()`, window+0.5))
		callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: box[0], Y: box[1], Button: "left", Buttons: 1, ClickCount: 1})
	}
	mouse("mousePressed", from)
	for _, window := range []float64{(from + to) / 2, to} {
		mouse("mouseMoved", window)
	}
	mouse("mouseReleased", to)
}

// markedTrace writes a trace with two regions, the second of which contains a third region. Each
// region begins and ends at the boundary of a timeline window.
func markedTrace(t *testing.T) string {
	t.Helper()
	p := &trace.Program{Modules: []trace.Module{{Name: "m"}}, Tags: []string{"read", "solve", "sweep"}}
	for i, kind := range []trace.Kind{trace.Load, trace.RegionBegin, trace.RegionEnd} {
		p.Blocks = append(p.Blocks, trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic, FirstSite: uint32(i), Sites: 1})
		p.Sites = append(p.Sites, trace.Site{Kind: kind, Block: uint32(i)})
	}
	p.Sites[0].Bytes = 8
	var out bytes.Buffer
	w := sgt.NewWriter(&out, 4096, nil)
	if err := w.Module(sgt.AppendModule(nil, p)); err != nil {
		t.Fatal(err)
	}
	w.Tags(0, p.Tags)
	ticket := uint64(0)
	step := func(block uint32, values ...uint64) {
		if err := w.Step(1, ticket, block, values); err != nil {
			t.Fatal(err)
		}
		ticket++
	}
	loads := func(n int) {
		for i := range n {
			step(0, uint64(i)*64)
		}
	}
	begin := func(tag uint64) { step(1, tag) }
	end := func() { step(2) }
	loads(1024)
	begin(0)
	loads(8192)
	end()
	begin(1)
	loads(4096)
	begin(2)
	loads(2048)
	end()
	loads(4096)
	end()
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "marked.sgt")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMarkedRegions checks that the timeline shows the regions of a trace, that they can be
// selected with the mouse and with keys, and that they equal the command's answer.
func TestMarkedRegions(t *testing.T) {
	needStage(t)
	path := markedTrace(t)
	var answer struct {
		Regions []struct {
			Name       string
			From       float64 `json:"from_reference"`
			To         float64 `json:"to_reference"`
			References float64
		}
	}
	if err := json.Unmarshal(runCommand(t, "timeline", path, "--format", "json"), &answer); err != nil || len(answer.Regions) != 3 {
		t.Fatalf("timeline of the command = %+v (error %v), want 3 regions", answer, err)
	}
	p := openPage(t)
	p.dropFiles(path)
	p.waitFinished()
	p.openView("code", "#code-summary")
	p.waitFor("sg-timeline canvas")
	chosen := func(n int) {
		r := answer.Regions[n]
		p.waitTrue("the selection of region "+r.Name, fmt.Sprintf(`location.hash.includes("range=%v..%v")`, r.From, r.To))
	}
	mouse := func(n int, kind input.DispatchMouseEventType) {
		at := eval[[2]float64](p, fmt.Sprintf(`(() => { const h = document.querySelector("sg-timeline"); h.scrollIntoView({ block: "center" });
			const b = h.canvas.getBoundingClientRect(), row = %d === 2 ? 1 : 0;
			return [b.left + h.left + (%v) / %v * h.width, b.top + h.bandsTo + 2 + (row + 0.5) * h.rowHigh]; })()`, n, answer.Regions[n].From+1000, answer.Regions[1].To))
		callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: "left", Buttons: 1, ClickCount: 1})
	}
	for n, r := range answer.Regions {
		mouse(n, "mouseMoved")
		p.waitTrue("the description of region "+r.Name, `document.querySelector("sg-timeline .readout").textContent.includes(`+quoteText(r.Name)+`)`)
	}
	p.takeScreenshots("timeline-regions")
	mouse(1, "mousePressed")
	mouse(1, "mouseReleased")
	chosen(1)
	eval[any](p, `document.querySelector("sg-timeline .plot").focus()`)
	withShift := func(key string) {
		p.do("press Shift and a key", chromedp.KeyEvent(key, chromedp.KeyModifiers(chromedp.ModifierShift)))
	}
	withShift(kb.PageDown)
	chosen(2)
	withShift(kb.PageUp)
	withShift(kb.PageUp)
	chosen(0)
}

// TestZoom checks that the mouse zooms in on a curve, that Back undoes the zoom, and that a link
// opens the zoomed curve.
func TestZoom(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-array-list")
	p.waitFinished()
	p.openView("caches", "#chart-curve canvas")
	shown := func() [2]float64 {
		return eval[[2]float64](p, `(() => { const x = document.querySelector("#chart-curve").u.scales.x; return [x.min, x.max]; })()`)
	}
	whole := shown()
	mouse := func(kind input.DispatchMouseEventType, share float64) {
		at := eval[[2]float64](p, fmt.Sprintf(`(() => { const h = document.querySelector("#chart-curve"); h.scrollIntoView({ block: "center" }); const b = h.u.over.getBoundingClientRect(); return [b.left + b.width * %v, b.top + 20]; })()`, share))
		callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: "left", Buttons: 1, ClickCount: 1})
	}
	drag := func(from, to float64) {
		mouse("mousePressed", from)
		mouse("mouseMoved", (from+to)/2)
		mouse("mouseMoved", to)
		mouse("mouseReleased", to)
	}
	drag(0.55, 0.95)
	p.waitTrue("the zoomed range in the URL", `location.hash.includes("zoom=curve:")`)
	first := shown()
	if first[0] <= whole[0] || first[1] >= whole[1] {
		t.Errorf("range of the chart after a drag = %v, want a part of %v", first, whole)
	}
	read := func() string { return p.textOf("#chart-curve .readout") }
	point := func() string {
		mouse("mouseMoved", 0.4)
		p.waitDrawn()
		return read()
	}
	p.viewport(1440, 900)
	p.waitDrawn()
	wide := point()
	p.viewport(600, 900)
	p.waitDrawn()
	if got := read(); strings.Contains(got, "Infinity") || strings.Contains(got, "NaN") {
		t.Errorf("values read while the width changes = %q, want finite numbers", got)
	}
	if got := point(); !strings.Contains(got, ": miss ratio ") {
		t.Errorf("values read in a narrow window = %q, want a miss ratio", got)
	}
	p.takeScreenshots("zoomed")
	p.viewport(1440, 900)
	p.waitDrawn()
	if got := point(); got != wide || !strings.Contains(got, ": miss ratio ") {
		t.Errorf("values read after the width has changed = %q, want %q", got, wide)
	}
	link := eval[string](p, `location.href`)
	drag(0.2, 0.6)
	p.waitTrue("a changed zoom", `location.href !== `+quoteText(link))
	second := shown()
	if second[0] <= first[0] || second[1] >= first[1] {
		t.Errorf("range of the chart after a second drag = %v, want a part of %v", second, first)
	}
	is := func(want [2]float64) string {
		return fmt.Sprintf(`(() => { const x = document.querySelector("#chart-curve").u.scales.x; return Math.abs(x.min / %v - 1) < 1e-6 && Math.abs(x.max / %v - 1) < 1e-6; })()`, want[0], want[1])
	}
	eval[any](p, `history.back()`)
	p.waitTrue("the first zoom", is(first))
	eval[any](p, `history.back()`)
	p.waitTrue("the whole curve", is(whole))
	eval[any](p, `location.href = `+quoteText(link))
	p.reload()
	p.waitFor("#chart-curve canvas")
	p.waitTrue("the linked zoom", is(first))
	p.clickElement("#curve-reset")
	p.waitTrue("the whole curve", `!location.hash.includes("zoom=") && `+is(whole))
}

// TestFunctionLanes checks that the timeline contains the functions with the most misses, and that a
// function can be opened in the Code view with the mouse and with keys.
func TestFunctionLanes(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-array-list")
	p.waitFinished()
	p.openView("caches", "#caches")
	p.waitFor("sg-timeline canvas")
	p.waitTrue("lanes of functions", `document.querySelector("sg-timeline").functions?.length >= 2`)
	p.takeScreenshots("timeline-functions")
	p.viewport(1440, 900)
	point := func(lane int) (x, y float64) {
		at := eval[struct{ X, Y float64 }](p, fmt.Sprintf(`(() => { const h = document.querySelector("sg-timeline"); h.scrollIntoView({ block: "center" }); const b = h.canvas.getBoundingClientRect(); return { x: b.left + b.width * 0.9, y: b.top + h.functionsFrom + (%d + 0.5) * h.functionHigh }; })()`, lane))
		return at.X, at.Y
	}
	mouse := func(kind input.DispatchMouseEventType, lane int) {
		x, y := point(lane)
		callDevTools(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: "left", Buttons: 1, ClickCount: 1})
	}
	mouse("mouseMoved", 0)
	p.waitTrue("the function at the pointer", `document.querySelector("sg-timeline .readout").textContent.startsWith("walk_list: ")`)
	// The names of the rows are beside the drawing, and belong to no window.
	eval[any](p, `(() => { const h = document.querySelector("sg-timeline"), b = h.canvas.getBoundingClientRect();
		h.plot.dispatchEvent(new PointerEvent("pointermove", { clientX: b.left + h.left / 2, clientY: b.top + h.functionsFrom + 1.5 * h.functionHigh })); })()`)
	p.waitTrue("the function at the pointer", `(() => { const h = document.querySelector("sg-timeline"), text = h.readout.textContent; return h.left > 0 && text.startsWith(h.functions[1].label + ": ") && !text.includes("at the pointer"); })()`)
	mouse("mousePressed", 0)
	mouse("mouseReleased", 0)
	const selected = `document.querySelector("#code-rows tr[aria-selected] td")?.textContent`
	p.waitTrue("the selected function", selected+` === "walk_list" && location.hash.includes("view=code&") && location.hash.includes("place=function") && !location.hash.includes("range=")`)
	p.tabTo("the timeline", `document.activeElement.matches("sg-timeline .plot")`)
	p.pressKeys(kb.ArrowDown)
	p.pressKeys(kb.ArrowDown)
	second := eval[string](p, `document.querySelector("sg-timeline").functions[1].label`)
	p.waitTrue("the announced function", `document.getElementById("live").textContent.startsWith(`+quoteText(second+": ")+`)`)
	p.pressKeys(kb.Enter)
	p.waitTrue("the second function", selected+` === `+quoteText(second))
}
