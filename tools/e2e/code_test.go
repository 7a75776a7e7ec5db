package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// demoSource returns the path of a demo's C source file.
func demoSource(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "site", "demos", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// headsApart is a script that returns how far apart the bottom edges of the column headings are at
// most.
const headsApart = `(() => {
	const bottoms = Array.from(document.querySelectorAll("#code-rows thead th"), (th) => {
		const text = document.createRange();
		text.selectNodeContents(th.querySelector("button, span") ?? th);
		return Math.max(...Array.from(text.getClientRects(), (r) => r.bottom));
	});
	return Math.max(...bottoms) - Math.min(...bottoms);
})()`

// TestCode checks that the page shows the source line with the most misses in a demo, and that a
// dropped source file is used.
func TestCode(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.click("#demo-array-list")
	p.finished()
	p.openView("diagnosis", "#diagnosis")
	p.unfoldFacts()
	p.click("#finding-worst-line a")
	p.waitFor("#code-rows tbody td")
	p.shoot("code")
	if apart := eval[float64](p, headsApart); apart > 1.5 {
		t.Errorf("the bottom edges of the column headings differ by up to %g pixels, want at most 1.5", apart)
	}

	// All rows together are a single tab stop. Arrow keys move between them.
	p.tabTo("the rows", `document.activeElement.id === "code-rows"`)
	p.press(kb.ArrowDown)
	p.press(kb.ArrowUp)
	p.press(kb.Enter)
	p.waitFor("#place")
	p.wait("the announcement of the source location", `document.getElementById("live").textContent.includes("misses in")`)
	worst := p.text("#code-rows tbody tr td")
	if title := p.text("#place-title"); title != worst || !strings.HasPrefix(title, "array-list.c:") {
		t.Errorf("title of the selected location = %q, want %q, in array-list.c", title, worst)
	}
	if focus := eval[string](p, `document.activeElement.id`); focus != "code-rows" {
		t.Errorf("the focus moved to %q, want code-rows", focus)
	}
	p.shoot("code-picked")

	// Below the distances, the page lists the arrays that evict the line's data. The test uses the
	// keyboard to show the instructions of the line.
	p.waitFor("#table-evictions tbody tr")
	if caption := p.text("#table-evictions .caption"); caption != "Evictions by array in L1, over the whole run: arrays of this code" {
		t.Errorf("caption of the evictions = %q, want the arrays of this code in L1", caption)
	}
	p.tabTo("the instructions", `document.activeElement.id === "place-instructions"`)
	p.press(kb.Enter)
	p.waitFor("#table-instructions tbody tr")
	if caption := p.text("#table-instructions .caption"); caption != "LLVM IR instructions of the blocks with "+strings.Fields(worst)[0] {
		t.Errorf("caption of the instructions = %q, want the blocks with %s", caption, strings.Fields(worst)[0])
	}
	p.shoot("code-instructions")
	p.press(kb.Enter)
	p.wait("the table of instructions to close", `!document.querySelector("#table-instructions") && !location.hash.includes("table=")`)

	// The demo's source is shown next to the ranking, with the worst line highlighted.
	p.waitFor("#source-rows tbody td")
	p.wait("a selected line", `document.querySelector("#source-rows tr[aria-selected]")`)
	const marked = "#source-rows tr[aria-selected] td:nth-last-child(2)"
	line := strings.Fields(strings.TrimPrefix(worst, "array-list.c:"))[0]
	if is := p.text(marked); is != line {
		t.Errorf("selected line = %q, want %q", is, line)
	}
	if bar := eval[string](p, `document.querySelector("#source-rows tr[aria-selected] td.share").style.getPropertyValue("--share")`); bar == "" || bar == "0" {
		t.Errorf("length of the worst line's bar = %q, want a positive length", bar)
	}
	if words := p.text("#source-rows .word"); words == "" {
		t.Error("the source has no syntax highlighting")
	}
	p.shoot("code-source")
	p.press("n")
	p.wait("the next hot line", `document.querySelector(`+quote(marked)+`).textContent !== `+quote(line))
	p.press("p")
	p.wait("the previous hot line", `document.querySelector(`+quote(marked)+`).textContent === `+quote(line))
	p.press("t")
	p.waitFor(`#code-wide[aria-pressed="true"]`)
	p.wait("all columns", `document.querySelectorAll("#code-rows thead th").length > 6`)
	p.press("t")
	p.wait("the ranking beside the source", `document.querySelectorAll("#code-rows thead th").length === 3`)

	// If the result contains two files with this name, the page asks which of them was dropped.
	p.drop(p.write("array-list.c", []byte("int main(void) { return 0; }\n")))
	p.waitFor("#source-which")
	eval[any](p, `(() => { const s = document.getElementById("source-which"); s.value = "1"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.waitFor("#source-short")

	for _, by := range []string{"site", "function", "object"} {
		p.click("#code-by-" + by)
		p.wait("the rows by "+by, `location.hash.includes("place=`+by+`")`)
		p.waitFor("#code-rows tbody td")
		p.shoot("code-" + by)
	}
	p.press("t")
	p.waitFor(`#code-rows [data-sort="references"]`)
	p.click(`#code-rows [data-sort="references"]`)
	p.wait("sorted by references", `document.querySelector('#code-rows [data-sort="references"]').closest("th").ariaSort === "descending"`)
	p.click("#code-by-line")
	p.wait("the rows by line", `!location.hash.includes("place=")`)
	p.click("#code-search")
	p.press("array-list.c:")
	p.wait("the number of found rows", `document.getElementById("code-summary").textContent.includes("found")`)

	_, path := p.download(func() { p.click("#code-csv") })
	content, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(content), "function,file,line,L1_misses,L1_share,") {
		t.Errorf("saved ranking (error %v) does not begin with the columns of the CSV\n%s", err, content)
	}

	// The files for other tools are written by a WebAssembly program that is loaded on demand.
	for form, begins := range map[string]string{"html": "<!DOCTYPE html>", "callgrind": "# callgrind format", "folded": "main "} {
		_, path := p.download(func() {
			eval[any](p, `(() => { const s = document.getElementById("export-as"); s.value = `+quote(form)+`; s.dispatchEvent(new Event("change", { bubbles: true })); })()`)
		})
		if content, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(content), begins) {
			t.Errorf("export as %s (error %v) begins with %.100q, want %q", form, err, content, begins)
		}
	}
}
