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
	path, err := filepath.Abs(filepath.Join(rootFolder, "site", "demos", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// headsApart is a script that returns the largest vertical distance between the bottom edges of the
// column headings.
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
	p.clickElement("#demo-array-list")
	p.waitFinished()
	p.openView("diagnosis", "#diagnosis")
	p.unfoldFacts()
	p.clickElement("#finding-worst-line a")
	p.waitFor("#code-rows tbody td")
	p.takeScreenshots("code")
	if apart := eval[float64](p, headsApart); apart > 1.5 {
		t.Errorf("the bottom edges of the column headings differ by up to %g pixels, want at most 1.5", apart)
	}

	// All rows together are a single tab stop. Arrow keys move between them.
	p.tabTo("the rows", `document.activeElement.id === "code-rows"`)
	p.pressKeys(kb.ArrowDown)
	p.pressKeys(kb.ArrowUp)
	p.pressKeys(kb.Enter)
	p.waitFor("#place")
	p.waitTrue("the announcement of the source location", `document.getElementById("live").textContent.includes("misses in")`)
	worst := p.textOf("#code-rows tbody tr td")
	if title := p.textOf("#place-title"); title != worst || !strings.HasPrefix(title, "array-list.c:") {
		t.Errorf("title of the selected location = %q, want %q, in array-list.c", title, worst)
	}
	if focus := eval[string](p, `document.activeElement.id`); focus != "code-rows" {
		t.Errorf("the focus moved to %q, want code-rows", focus)
	}
	p.takeScreenshots("code-picked")

	// Below the distances, the page lists the source lines that evict the line's cache lines.
	p.waitFor("#table-evictions tbody tr")
	if caption := p.textOf("#table-evictions .caption"); caption != "Evictions from L1 by source line, over the whole run: rows with this code" {
		t.Errorf("caption of the evictions = %q, want the evictions of this code from L1", caption)
	}
	p.checkInstructions(strings.Fields(worst)[0])

	// The demo's source is shown next to the ranking, with the worst line highlighted.
	p.waitFor("#source-rows tbody td")
	p.waitTrue("a selected line", `document.querySelector("#source-rows tr[aria-selected]")`)
	const marked = "#source-rows tr[aria-selected] td:nth-last-child(2)"
	line := strings.Fields(strings.TrimPrefix(worst, "array-list.c:"))[0]
	if is := p.textOf(marked); is != line {
		t.Errorf("selected line = %q, want %q", is, line)
	}
	if bar := eval[string](p, `document.querySelector("#source-rows tr[aria-selected] td.share").style.getPropertyValue("--share")`); bar == "" || bar == "0" {
		t.Errorf("length of the worst line's bar = %q, want a positive length", bar)
	}
	if words := p.textOf("#source-rows .word"); words == "" {
		t.Error("the source has no syntax highlighting")
	}
	p.takeScreenshots("code-source")
	p.pressKeys("n")
	p.waitTrue("the next hot line", `document.querySelector(`+quoteText(marked)+`).textContent !== `+quoteText(line))
	p.pressKeys("p")
	p.waitTrue("the previous hot line", `document.querySelector(`+quoteText(marked)+`).textContent === `+quoteText(line))
	p.pressKeys("t")
	p.waitFor(`#code-wide[aria-pressed="true"]`)
	p.waitTrue("all columns", `document.querySelectorAll("#code-rows thead th").length > 6`)
	p.pressKeys("t")
	p.waitTrue("the ranking beside the source", `document.querySelectorAll("#code-rows thead th").length === 3`)

	// If the result contains two source files with the same name, the page asks which of the two
	// was dropped.
	p.dropFiles(p.writeFile("array-list.c", []byte("int main(void) { return 0; }\n")))
	p.waitFor("#source-which")
	eval[any](p, `(() => { const s = document.getElementById("source-which"); s.value = "1"; s.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.waitFor("#source-short")

	for _, by := range []string{"site", "function", "object"} {
		p.clickElement("#code-by-" + by)
		p.waitTrue("the rows grouped by "+by, `location.hash.includes("place=`+by+`")`)
		p.waitFor("#code-rows tbody td")
		p.takeScreenshots("code-" + by)
	}
	p.pressKeys("t")
	p.waitFor(`#code-rows [data-sort="references"]`)
	p.clickElement(`#code-rows [data-sort="references"]`)
	p.waitTrue("sorted by references", `document.querySelector('#code-rows [data-sort="references"]').closest("th").ariaSort === "descending"`)
	p.clickElement("#code-by-line")
	p.waitTrue("the rows grouped by line", `!location.hash.includes("place=")`)
	p.clickElement("#code-search")
	p.pressKeys("array-list.c:")
	p.waitTrue("the number of matching rows", `document.getElementById("code-summary").textContent.includes("found")`)

	_, path := p.awaitDownload(func() { p.clickElement("#code-csv") })
	content, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(content), "function,file,line,L1_misses,L1_share,") {
		t.Errorf("saved ranking (error %v) does not begin with the columns of the CSV\n%s", err, content)
	}

	// The files for other tools are written by a WebAssembly program that is loaded on demand.
	for form, begins := range map[string]string{"html": "<!DOCTYPE html>", "callgrind": "# callgrind format", "folded": "main "} {
		_, path := p.awaitDownload(func() {
			eval[any](p, `(() => { const s = document.getElementById("export-as"); s.value = `+quoteText(form)+`; s.dispatchEvent(new Event("change", { bubbles: true })); })()`)
		})
		if content, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(content), begins) {
			t.Errorf("export as %s (error %v) begins with %.100q, want %q", form, err, content, begins)
		}
	}
}

// checkInstructions shows the LLVM IR instructions next to the source, with the keyboard. It checks
// that selecting a source line marks its instructions, and that selecting an instruction selects its
// source line.
func (p *tab) checkInstructions(worst string) {
	t := p.t
	t.Helper()
	p.viewport(1440, 900)
	p.pressKeys("i")
	p.waitFor("#instructions-rows tr.line[aria-selected]")
	p.waitFor("#source-rows tr[aria-selected]")
	if name := eval[string](p, `document.getElementById("instructions-rows").ariaLabel`); name != "LLVM IR instructions of the blocks with "+worst {
		t.Errorf("name of the instructions = %q, want the blocks with %s", name, worst)
	}
	const beside = `(() => {
		const [source, ir] = ["source", "instructions"].map((id) => document.getElementById("table-" + id).getBoundingClientRect());
		return Math.abs(source.top - ir.top) < 8 && ir.left >= source.right;
	})()`
	if !eval[bool](p, beside) {
		t.Error("on a wide screen, the instructions are not beside the source")
	}
	p.takeScreenshots("code-instructions")
	const lineOf = `document.querySelector("#instructions-rows tr.line[aria-selected] td:nth-last-child(2)")?.textContent`
	const selected = `document.querySelector("#source-rows tr[aria-selected] td:nth-last-child(2)").textContent`
	line := strings.TrimPrefix(worst, "array-list.c:")
	if is := eval[string](p, lineOf); is != line {
		t.Errorf("line of the selected instruction = %q, want %q", is, line)
	}
	p.tabTo("the instructions", `document.activeElement.id === "instructions-rows"`)
	p.pressKeys(kb.Home)
	p.pressKeys(kb.Enter)
	p.waitTrue("an announcement that no line is known", `document.getElementById("live").textContent.includes("accesses no memory")`)
	const other = `Array.from(document.querySelectorAll("#instructions-rows tbody tr:not(.line):not(.rest)")).find((tr) => tr.children[tr.children.length - 2].textContent)`
	if to := eval[string](p, `(() => { const tr = `+other+`; const line = tr?.children[tr.children.length - 2].textContent ?? ""; tr?.click(); return line; })()`); to != "" {
		p.waitTrue("the source line of another instruction", selected+` === `+quoteText(to))
		p.waitTrue("the instruction to stay selected", lineOf+` === `+quoteText(to))
		eval[any](p, `Array.from(document.querySelectorAll("#source-rows tbody tr")).find((tr) => tr.children[tr.children.length - 2].textContent === `+quoteText(line)+`).click()`)
		p.waitTrue("the instructions of the worst line", lineOf+` === `+quoteText(line))
	} else {
		t.Error("all instructions are on one source line; want a second line")
	}
	p.pressKeys("i")
	p.waitTrue("the instructions to be closed", `!document.querySelector("#table-instructions") && !location.hash.includes("table=")`)
	p.waitFor("#code-rows tbody td")
}
