package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestKeptAnalyses checks that an analysis in the list can be opened, renamed and deleted.
func TestKeptAnalyses(t *testing.T) {
	needStage(t)
	trace := beginning(t)
	name, want := filepath.Base(trace), truthOf(t, trace).Digest
	p := openPage(t)
	p.pick(trace)
	p.finished()

	p.visit("/")
	p.ready()
	p.waitFor(row(name))
	p.click(row(name) + " .open")
	p.wait("the opened analysis", `document.querySelector("#digest")`)
	if got := p.digest(); got != want {
		t.Errorf("digest of the analysis opened after a reload = %s, want %s", got, want)
	}
	p.reload() // the URL contains the analysis and the view
	p.wait("the analysis after a reload", `document.querySelector("#digest")`)
	if got := p.digest(); got != want {
		t.Errorf("digest after a reload = %s, want %s", got, want)
	}

	p.do("go back", chromedp.NavigateBack())
	p.waitFor(row(name))
	p.do("go forward", chromedp.NavigateForward())
	p.wait("the analysis again", `document.querySelector("#digest")`)

	p.click("#back")
	p.waitFor(row(name))
	p.click(row(name) + " .rename")
	p.wait("the text field for the name", `document.activeElement.id === "rename-input"`)
	eval[any](p, `document.getElementById("rename-input").select()`)
	p.press("Sorting <b>20 000</b> keys\r")
	const renamed = "Sorting <b>20 000</b> keys"
	p.waitFor(row(renamed))
	p.reload()
	p.waitFor(row(renamed))
	p.click(row(renamed) + " .open")
	p.wait("the renamed analysis", `document.querySelector("#digest")`)
	if got, title := p.digest(), p.text("#result-title"); got != want || title != renamed {
		t.Errorf("renamed analysis = %q with digest %s, want %q with digest %s", title, got, renamed, want)
	}

	p.click("#back")
	p.waitFor(row(renamed))
	p.click(row(renamed) + " .delete")
	p.waitFor("#delete-no")
	p.click("#delete-no")
	p.waitGone("#delete-no")
	p.waitFor(row(renamed))
	p.click(row(renamed) + " .delete")
	p.waitFor("#delete-yes")
	p.click("#delete-yes")
	p.waitFor("#kept-empty")
	p.reload()
	p.waitFor("#kept-empty")
}

// The function "row" returns the selector for an analysis in the list.
func row(name string) string { return `#kept tr[data-name=` + quote(name) + `]` }

// TestExport checks that a profile can be exported to a file and imported into another browser. The
// file must equal the file that the command writes.
func TestExport(t *testing.T) {
	needStage(t)
	trace := beginning(t)
	want := truthOf(t, trace)
	p := openPage(t)
	p.pick(trace)
	p.finished()
	name, exported := p.download(func() { p.click("#export-profile") })
	if name != filepath.Base(trace)+".sgp" {
		t.Errorf("name of the exported file = %q, want %q", name, filepath.Base(trace)+".sgp")
	}
	if !bytes.Equal(p.read(exported), p.read(want.Profile)) {
		t.Errorf("the exported profile differs from the profile that the command writes with -o")
	}
	p.click("#back")
	p.waitFor(row(filepath.Base(trace)))
	_, again := p.download(func() { p.click(row(filepath.Base(trace)) + " .export") })
	if !bytes.Equal(p.read(again), p.read(want.Profile)) {
		t.Errorf("the profile exported from the list differs from the profile that the command writes with -o")
	}

	other := firstVisit(t)
	other.drop(other.write("from elsewhere.sgp", p.read(exported)))
	if got := other.finished(); got != want.Digest {
		t.Errorf("digest of the imported profile = %s, want %s", got, want.Digest)
	}
	other.reload()
	other.wait("the imported analysis", `document.querySelector("#digest")`)
	if title := other.text("#result-title"); title != "from elsewhere" {
		t.Errorf("title of the imported analysis = %q, want from elsewhere", title)
	}
}

// TestTables checks that the page's tables equal the command's tables.
func TestTables(t *testing.T) {
	needStage(t)
	trace := beginning(t)
	profile := truthOf(t, trace).Profile
	p := openPage(t)
	p.pick(trace)
	p.finished()
	for _, c := range []struct{ view, chart, verb string }{
		{"caches", "curve", "curve"},
		{"locality", "histogram", "histogram"},
	} {
		p.openView(c.view, "#"+c.chart+"-csv")
		_, path := p.download(func() { p.click("#" + c.chart + "-csv") })
		got, want := p.read(path), ask(t, c.verb, profile, "--format", "csv")
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the page's table (%d bytes) differs from the command's (%d bytes)", c.chart, len(got), len(want))
		}
		if bytes.Count(got, []byte("\n")) < 100 {
			t.Errorf("%s: table = %q, want at least 100 lines", c.chart, got)
		}
	}
}

// TestDemos checks that each demo can be opened with a click on its card and with a link. Its
// results must equal the command's results, and all of its views must open. The browser must store
// each demo only once.
func TestDemos(t *testing.T) {
	needStage(t)
	p := openPage(t)
	list := demos(t)
	for i, d := range append(list, list[0], list[1]) {
		if i%2 == 0 {
			p.click("#demo-" + d.Name)
		} else {
			p.visit("/#demo=" + d.Name)
		}
		p.wait("the result of "+d.Name, `document.title.startsWith(`+quote(d.Title)+`)`)
		got, want := p.finished(), truthOf(t, "demo:"+d.Name)
		if got != want.Digest {
			t.Errorf("%s: digest %s, want the command's digest %s", d.Name, got, want.Digest)
		}
		p.openView("diagnosis", "#diagnosis")
		p.unfoldFacts()
		total := eval[uint64](p, `Array.from(document.querySelectorAll("#table-kinds tbody td:nth-child(2)"))
			.map((cell) => Number(cell.textContent.replace(/\D/g, ""))).reduce((a, b) => a + b)`)
		if total != d.References || want.References != d.References {
			t.Errorf("%s: %d references on the page and %d in the command, want %d as in demos.json", d.Name, total, want.References, d.References)
		}
		if i < len(list) {
			p.everyView(func() {})
		}
		p.click("#back")
		p.waitFor("#kept-title")
	}
	p.wait("each demo once", fmt.Sprintf(`document.querySelectorAll("#kept .chip.complete").length === %d`, len(list)))

	// First, open a demo's URL in a browser that has no stored data. Then open a URL that contains
	// the name of a demo that does not exist.
	p = firstVisit(t)
	p.visit("/#open=demo-" + list[3].Name + "&view=communication&granule=1")
	p.finished()
	p.waitFor("#false-1")
	p.visit("/#demo=matmul")
	if said := p.problem(); !strings.Contains(said, list[0].Name) {
		t.Errorf("problem for a demo that does not exist = %q, want the list of demos", said)
	}
}
