package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestData checks that the page analyses the data structures in a trace. The test uses the mouse
// and the keyboard to look at structure members, a map, and memory blocks.
func TestData(t *testing.T) {
	needStage(t)
	p := openPage(t)
	path, err := filepath.Abs(filepath.Join(root, "tools", "stackglass", "internal", "command", "testdata", "manual", "particles.sgt"))
	if err != nil {
		t.Fatal(err)
	}
	p.drop(path)
	p.finished()
	p.press("6")
	p.click("#data-again")
	p.waitFor("#chart-fields canvas[data-ready]")
	p.waitFor("#chart-map canvas[data-ready]")
	p.shoot("data")
	if title := p.text("#data-title"); !strings.HasPrefix(title, "all") {
		t.Errorf("data structure with the most misses = %q, want all", title)
	}
	if advice := p.text("#data-advice"); !strings.Contains(advice, "Move to a second structure: kind, name") {
		t.Errorf("advice = %q, want a second structure for kind and name", advice)
	}

	// Arrow keys move from one member to the next.
	p.tabTo("the members", `document.activeElement === document.querySelector("#chart-fields .plot")`)
	p.press(kb.ArrowRight)
	p.press(kb.ArrowRight)
	p.wait("the announcement of the second member", `document.getElementById("live").textContent.startsWith("y (double")`)

	// The first click on a heading sorts the table, the second reverses the order, and the third
	// restores the original order.
	const members = `Array.from(document.querySelectorAll("#table-members tbody tr"), (r) => r.firstChild.textContent).join()`
	recorded := eval[string](p, members)
	p.click(`#table-members [data-sort="bytes"]`)
	p.wait("members by size", members+`.startsWith("name,") && location.hash.includes("order=members:bytes")`)
	p.shoot("data-sorted")
	p.press(kb.Enter)
	p.wait("the members in reverse order", members+`.endsWith(",name") && document.querySelector('#table-members [aria-sort="ascending"]')`)
	p.press(kb.Enter)
	p.wait("the recorded order", members+` === `+quote(recorded)+` && !location.hash.includes("order=")`)

	// The shades of the map now show misses instead of accesses.
	p.click("#shade-L1_misses")
	p.wait("misses in the map", `document.querySelector("#figure-map h2").textContent.startsWith("L1 misses")`)

	// When the mouse is dragged over a part of the map, this part is enlarged. The "+" key also
	// enlarges the map.
	eval[any](p, `document.querySelector("#chart-map").scrollIntoView({ block: "center" })`)
	box := eval[[]float64](p, `(() => { const b = document.querySelector("#chart-map canvas").getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()`)
	at := func(x, y float64) (float64, float64) { return box[0] + x*box[2], box[1] + y*box[3] }
	p.drag(at(0.3, 0.3))(at(0.6, 0.7))
	const zoom = `location.hash.match(/zoom=map:[0-9]+:[0-9]+&zoom=map-rows:[0-9]+:[0-9]+|zoom=map-rows:[0-9]+:[0-9]+&zoom=map:[0-9]+:[0-9]+/)`
	p.wait("a part of the map", `!document.querySelector("#chart-map .whole").hidden && `+zoom)
	p.shoot("data-part")
	part := eval[string](p, `document.querySelector("#chart-map").data.part.join()`)
	eval[any](p, `history.back()`)
	p.wait("the whole map after Back", `document.querySelector("#chart-map .whole").hidden`)
	eval[any](p, `history.forward()`)
	p.wait("the part of the map again", `!document.querySelector("#chart-map .whole").hidden`)
	p.reload()
	p.waitFor("#chart-map canvas[data-ready]")
	p.wait("the part after a reload", `document.querySelector("#chart-map").data?.part?.join() === `+quote(part))
	p.click("#chart-map .whole")
	p.wait("the whole map", `document.querySelector("#chart-map .whole").hidden`)
	p.press(kb.ArrowDown)
	p.press("+")
	p.wait("half of the map", `!document.querySelector("#chart-map .whole").hidden`)
	p.press(kb.Escape)
	p.wait("the whole map again", `document.querySelector("#chart-map .whole").hidden && location.hash.includes("view=data") && !location.hash.includes("zoom=")`)

	// The second row is a list whose payload is never read.
	p.click("#table-data tbody tr:nth-child(2)")
	p.wait("the list", `document.querySelector("#fields-title")?.textContent.includes("node") && document.querySelector("#data-title").textContent.startsWith("n")`)
	if heap := p.text("#table-heap"); !strings.Contains(heap, "28.1") {
		t.Errorf("memory blocks = %q, want 28.1", heap)
	}
	p.reload()
	p.waitFor("#chart-fields canvas[data-ready]")
	if title := p.text("#data-title"); !strings.HasPrefix(title, "n") {
		t.Errorf("selected data structure after a reload = %q, want n", title)
	}
}

// The function "drag" presses the mouse button at one point, and returns a function that moves the
// mouse to another point and releases the button.
func (p *tab) drag(x, y float64) func(x, y float64) {
	p.t.Helper()
	p.do("press the mouse", chromedp.MouseEvent("mousePressed", x, y, chromedp.ButtonLeft))
	return func(x, y float64) {
		p.do("drag", chromedp.MouseEvent("mouseMoved", x, y, chromedp.ButtonLeft), chromedp.MouseEvent("mouseReleased", x, y, chromedp.ButtonLeft))
	}
}
