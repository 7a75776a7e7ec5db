package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
)

// TestTimeline brushes a part of the run with the mouse and with keys, and compares the code view
// with the command's answer for the same part.
func TestTimeline(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.click("#demo-array-list")
	p.finished()
	p.openView("code", "#code-summary")
	p.waitFor("sg-timeline canvas")
	hash := func() string { return eval[string](p, `(location.hash.match(/range=([0-9.]+)/) || ["", ""])[1]`) }
	at := func(window float64) (x, y float64) {
		box := eval[struct{ X, Y float64 }](p, fmt.Sprintf(`(() => { const h = document.querySelector("sg-timeline"); h.scrollIntoView({ block: "center" }); const b = h.canvas.getBoundingClientRect(); return { x: b.left + h.x(%v), y: b.top + 8 }; })()`, window))
		return box.X, box.Y
	}
	mouse := func(kind input.DispatchMouseEventType, window float64) {
		x, y := at(window)
		call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: "left", Buttons: 1, ClickCount: 1})
	}
	mouse("mousePressed", 10.5)
	for _, window := range []float64{14.5, 20.5, 34.5} {
		mouse("mouseMoved", window)
	}
	mouse("mouseReleased", 34.5)
	p.wait("the range in the address", `location.hash.includes("range=10240..35840")`)

	// The CSV of the page is the answer of the command.
	p.choose("preset", "i7-6700")
	p.wait("the hierarchy", `location.hash.includes("preset=i7-6700")`)
	_, exported := p.download(func() { p.click("#export-profile") })
	_, path := p.download(func() { p.click("#code-csv") })
	want := ask(t, "sites", exported, "--hierarchy", "i7-6700", "--range", "10240..35840", "--format", "csv")
	if got := p.read(path); string(got) != string(want) {
		t.Errorf("the page saved\n%s\nthe command prints\n%s", got, want)
	}

	key := func(name string, shift bool) {
		eval[any](p, fmt.Sprintf(`document.querySelector("sg-timeline .plot").dispatchEvent(new KeyboardEvent("keydown", { key: %s, shiftKey: %t, bubbles: true, cancelable: true }))`, quote(name), shift))
	}
	key("ArrowRight", false)
	p.wait("a moved range", `location.hash.includes("range=11264..36864")`)
	key("ArrowLeft", true)
	p.wait("a shorter range", `location.hash.includes("range=11264..35840")`)
	eval[any](p, `history.back()`)
	p.wait("Back", `!location.hash.includes("range=11264..35840")`)
	key("Escape", false)
	p.wait("the whole run", `!location.hash.includes("range=")`)
	if got := hash(); got != "" || !eval[bool](p, `location.hash.includes("view=code")`) {
		t.Errorf("Escape leads to %q", got)
	}
	key("PageDown", false)
	p.wait("the first phase", `location.hash.includes("range=0..2048")`)
	p.openView("locality", "#timeline-whole-view")
	p.click("#timeline-whole")
	p.wait("the whole run", `!location.hash.includes("range=")`)
}
