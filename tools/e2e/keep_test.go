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
	trace := shortTrace(t)
	name, want := filepath.Base(trace), truthOf(t, trace).Digest
	p := openPage(t)
	p.pickFiles(trace)
	p.waitFinished()

	p.openPath("/")
	p.waitReady()
	p.waitFor(rowSelector(name))
	p.clickElement(rowSelector(name) + " .open")
	p.waitTrue("the opened analysis", `document.querySelector("#digest")`)
	if got := p.shownDigest(); got != want {
		t.Errorf("digest of the analysis opened after a reload = %s, want %s", got, want)
	}
	p.reload() // the URL contains the analysis and the view
	p.waitTrue("the analysis after a reload", `document.querySelector("#digest")`)
	if got := p.shownDigest(); got != want {
		t.Errorf("digest after a reload = %s, want %s", got, want)
	}

	p.do("go back", chromedp.NavigateBack())
	p.waitFor(rowSelector(name))
	p.do("go forward", chromedp.NavigateForward())
	p.waitTrue("the analysis again", `document.querySelector("#digest")`)

	p.clickElement("#back")
	p.waitFor(rowSelector(name))
	p.clickElement(rowSelector(name) + " .rename")
	p.waitTrue("the text field for the name", `document.activeElement.id === "rename-input"`)
	eval[any](p, `document.getElementById("rename-input").select()`)
	p.pressKeys("Sorting <b>20 000</b> keys\r")
	const renamed = "Sorting <b>20 000</b> keys"
	p.waitFor(rowSelector(renamed))
	p.reload()
	p.waitFor(rowSelector(renamed))
	p.clickElement(rowSelector(renamed) + " .open")
	p.waitTrue("the renamed analysis", `document.querySelector("#digest")`)
	if got, title := p.shownDigest(), p.textOf("#result-title"); got != want || title != renamed {
		t.Errorf("renamed analysis = %q with digest %s, want %q with digest %s", title, got, renamed, want)
	}

	p.clickElement("#back")
	p.waitFor(rowSelector(renamed))
	p.clickElement(rowSelector(renamed) + " .delete")
	p.waitFor("#delete-no")
	p.clickElement("#delete-no")
	p.waitGone("#delete-no")
	p.waitFor(rowSelector(renamed))
	p.clickElement(rowSelector(renamed) + " .delete")
	p.waitFor("#delete-yes")
	p.clickElement("#delete-yes")
	p.waitFor("#kept-empty")
	p.reload()
	p.waitFor("#kept-empty")
}

// rowSelector returns the selector for an analysis in the list.
func rowSelector(name string) string { return `#kept tr[data-name=` + quoteText(name) + `]` }

// TestExport checks that a profile can be exported to a file and imported into another browser. The
// file must equal the file that the command writes.
func TestExport(t *testing.T) {
	needStage(t)
	trace := shortTrace(t)
	want := truthOf(t, trace)
	p := openPage(t)
	p.pickFiles(trace)
	p.waitFinished()
	name, exported := p.awaitDownload(func() { p.clickElement("#export-profile") })
	if name != filepath.Base(trace)+".sgp" {
		t.Errorf("name of the exported file = %q, want %q", name, filepath.Base(trace)+".sgp")
	}
	if !bytes.Equal(p.read(exported), p.read(want.Profile)) {
		t.Errorf("the exported profile differs from the profile that the command writes with -o")
	}
	p.clickElement("#back")
	p.waitFor(rowSelector(filepath.Base(trace)))
	_, again := p.awaitDownload(func() { p.clickElement(rowSelector(filepath.Base(trace)) + " .export") })
	if !bytes.Equal(p.read(again), p.read(want.Profile)) {
		t.Errorf("the profile exported from the list differs from the profile that the command writes with -o")
	}

	other := firstVisit(t)
	other.dropFiles(other.writeFile("from elsewhere.sgp", p.read(exported)))
	if got := other.waitFinished(); got != want.Digest {
		t.Errorf("digest of the imported profile = %s, want %s", got, want.Digest)
	}
	other.reload()
	other.waitTrue("the imported analysis", `document.querySelector("#digest")`)
	if title := other.textOf("#result-title"); title != "from elsewhere" {
		t.Errorf("title of the imported analysis = %q, want “from elsewhere”", title)
	}
}

// TestTables checks that the page's tables equal the command's tables.
func TestTables(t *testing.T) {
	needStage(t)
	trace := shortTrace(t)
	profile := truthOf(t, trace).Profile
	p := openPage(t)
	p.pickFiles(trace)
	p.waitFinished()
	for _, c := range []struct{ view, chart, verb string }{
		{"caches", "curve", "curve"},
		{"locality", "histogram", "histogram"},
	} {
		p.openView(c.view, "#"+c.chart+"-csv")
		_, path := p.awaitDownload(func() { p.clickElement("#" + c.chart + "-csv") })
		got, want := p.read(path), runCommand(t, c.verb, profile, "--format", "csv")
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the page's table (%d bytes) differs from the command's (%d bytes)", c.chart, len(got), len(want))
		}
		if bytes.Count(got, []byte("\n")) < 100 {
			t.Errorf("%s: table = %q, want at least 100 lines", c.chart, got)
		}
	}
}

// TestDemos checks that each demo can be opened with a click on its card and with a link. The
// results of each demo must equal the command's results, and all of its views must open. The
// browser must store each demo only once.
func TestDemos(t *testing.T) {
	needStage(t)
	p := openPage(t)
	list := demos(t)
	for i, d := range append(list, list[0], list[1]) {
		if i%2 == 0 {
			p.clickElement("#demo-" + d.Name)
		} else {
			p.openPath("/#demo=" + d.Name)
		}
		p.waitTrue("the result of "+d.Name, `document.title.startsWith(`+quoteText(d.Title)+`)`)
		got, want := p.waitFinished(), truthOf(t, "demo:"+d.Name)
		if got != want.Digest {
			t.Errorf("%s: digest %s, want the command's digest %s", d.Name, got, want.Digest)
		}
		p.openView("diagnosis", "#diagnosis")
		p.unfoldFacts()
		total := eval[uint64](p, `Array.from(document.querySelectorAll("#table-kinds tbody td:nth-child(2)"))
			.map((cell) => Number(cell.textContent.replace(/\D/g, ""))).reduce((a, b) => a + b)`)
		if total != d.References || want.References != d.References {
			t.Errorf("%s: %d references on the page and %d in the command, want %d, as in demos.json", d.Name, total, want.References, d.References)
		}
		if i < len(list) {
			p.everyView(func() {})
		}
		p.clickElement("#back")
		p.waitFor("#kept-title")
	}
	p.waitTrue("each demo once", fmt.Sprintf(`document.querySelectorAll("#kept .chip.complete").length === %d`, len(list)))

	// First, open a demo's URL in a browser that has no stored data. Then open a URL that contains
	// the name of a demo that does not exist.
	p = firstVisit(t)
	p.openPath("/#open=demo-" + list[3].Name + "&view=communication&granule=1")
	p.waitFinished()
	p.waitFor("#false-1")
	p.openPath("/#demo=matmul")
	if said := p.waitProblem(); !strings.Contains(said, list[0].Name) {
		t.Errorf("problem for a demo that does not exist = %q, want the list of demos", said)
	}
}
