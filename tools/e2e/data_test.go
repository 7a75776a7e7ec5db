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
	path, err := filepath.Abs(filepath.Join(rootFolder, "tools", "stackglass", "internal", "command", "testdata", "manual", "particles.sgt"))
	if err != nil {
		t.Fatal(err)
	}
	p.dropFiles(path)
	p.waitFinished()
	p.pressKeys("6")
	p.clickElement("#data-again")
	p.waitFor("#chart-fields canvas[data-ready]")
	p.waitFor("#chart-map canvas[data-ready]")
	p.takeScreenshots("data")
	if title := p.textOf("#data-title"); !strings.HasPrefix(title, "all") {
		t.Errorf("data structure with the most misses = %q, want “all”", title)
	}
	if advice := p.textOf("#data-advice"); !strings.Contains(advice, "Move to a second structure: kind, name") {
		t.Errorf("advice = %q, want a second structure for kind and name", advice)
	}

	// Arrow keys move from one member to the next.
	p.tabTo("the members", `document.activeElement === document.querySelector("#chart-fields .plot")`)
	p.pressKeys(kb.ArrowRight)
	p.pressKeys(kb.ArrowRight)
	p.waitTrue("the announcement of the second member", `document.getElementById("live").textContent.startsWith("y (double")`)

	// The first click on a heading sorts the table, the second reverses the order, and the third
	// restores the original order.
	const members = `Array.from(document.querySelectorAll("#table-members tbody tr"), (r) => r.firstChild.textContent).join()`
	recorded := eval[string](p, members)
	p.clickElement(`#table-members [data-sort="bytes"]`)
	p.waitTrue("the members sorted by size", members+`.startsWith("name,") && location.hash.includes("order=members:bytes")`)
	p.takeScreenshots("data-sorted")
	p.pressKeys(kb.Enter)
	p.waitTrue("the members sorted in reverse order", members+`.endsWith(",name") && document.querySelector('#table-members [aria-sort="ascending"]')`)
	p.pressKeys(kb.Enter)
	p.waitTrue("the recorded order", members+` === `+quoteText(recorded)+` && !location.hash.includes("order=")`)

	// The shades of the map now show misses instead of accesses.
	p.clickElement("#shade-L1_misses")
	p.waitTrue("the misses on the map", `document.querySelector("#figure-map h2").textContent.startsWith("L1 misses")`)

	// Dragging the mouse over a part of the map enlarges this part. The "+" key also enlarges the
	// map.
	eval[any](p, `document.querySelector("#chart-map").scrollIntoView({ block: "center" })`)
	box := eval[[]float64](p, `(() => { const b = document.querySelector("#chart-map canvas").getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()`)
	at := func(x, y float64) (float64, float64) { return box[0] + x*box[2], box[1] + y*box[3] }
	p.startDrag(at(0.3, 0.3))(at(0.6, 0.7))
	const zoom = `location.hash.match(/zoom=map:[0-9]+:[0-9]+&zoom=map-rows:[0-9]+:[0-9]+|zoom=map-rows:[0-9]+:[0-9]+&zoom=map:[0-9]+:[0-9]+/)`
	p.waitTrue("the enlarged part of the map", `!document.querySelector("#chart-map .whole").hidden && `+zoom)
	p.takeScreenshots("data-part")
	part := eval[string](p, `document.querySelector("#chart-map").data.part.join()`)
	eval[any](p, `history.back()`)
	p.waitTrue("the whole map after Back", `document.querySelector("#chart-map .whole").hidden`)
	eval[any](p, `history.forward()`)
	p.waitTrue("the enlarged part of the map again", `!document.querySelector("#chart-map .whole").hidden`)
	p.reload()
	p.waitFor("#chart-map canvas[data-ready]")
	p.waitTrue("the enlarged part of the map after a reload", `document.querySelector("#chart-map").data?.part?.join() === `+quoteText(part))
	p.clickElement("#chart-map .whole")
	p.waitTrue("the whole map", `document.querySelector("#chart-map .whole").hidden`)
	p.pressKeys(kb.ArrowDown)
	p.pressKeys("+")
	p.waitTrue("one half of the map, enlarged", `!document.querySelector("#chart-map .whole").hidden`)
	p.pressKeys(kb.Escape)
	p.waitTrue("the whole map again", `document.querySelector("#chart-map .whole").hidden && location.hash.includes("view=data") && !location.hash.includes("zoom=")`)

	// The second row is a list whose payload is never read.
	p.clickElement("#table-data tbody tr:nth-child(2)")
	p.waitTrue("the list", `document.querySelector("#fields-title")?.textContent.includes("node") && document.querySelector("#data-title").textContent.startsWith("n")`)
	if heap := p.textOf("#table-heap"); !strings.Contains(heap, "28.1") {
		t.Errorf("memory blocks = %q, want 28.1", heap)
	}
	p.reload()
	p.waitFor("#chart-fields canvas[data-ready]")
	if title := p.textOf("#data-title"); !strings.HasPrefix(title, "n") {
		t.Errorf("selected data structure after a reload = %q, want “n”", title)
	}
}

// startDrag presses the mouse button at one point. It returns a function that moves the mouse to a
// second point and releases the button.
func (p *tab) startDrag(x, y float64) func(x, y float64) {
	p.t.Helper()
	p.do("press the mouse", chromedp.MouseEvent("mousePressed", x, y, chromedp.ButtonLeft))
	return func(x, y float64) {
		p.do("drag", chromedp.MouseEvent("mouseMoved", x, y, chromedp.ButtonLeft), chromedp.MouseEvent("mouseReleased", x, y, chromedp.ButtonLeft))
	}
}
