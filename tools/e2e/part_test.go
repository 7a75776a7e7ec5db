package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// partViews lists views that do not show a range of the timeline.
var partViews = []struct{ name, shows string }{
	{"threads", "#chart-cores canvas"}, {"communication", "#chart-flows canvas[data-ready]"}, {"blocks", "#table-blocks tbody tr"},
	{"counters", "#counters"}, {"diagnosis", "#diagnosis"},
}

// TestPart selects a range with the mouse, and analyses the range with the keyboard. The result must
// equal the result of analyze --range, also after a reload, and must lead back to the whole run.
func TestPart(t *testing.T) {
	needStage(t)
	var card demoCard
	for _, d := range demos(t) {
		if d.Name == "false-sharing" {
			card = d
		}
	}
	p := openPage(t)
	p.viewport(1440, 900)
	p.clickElement("#demo-false-sharing")
	whole := p.waitFinished()
	p.waitFor("sg-timeline canvas")
	if p.has("#timeline-analyse") {
		t.Error("the page offers to analyse a range, but no range is selected")
	}
	p.brush(4, 10)
	p.waitTrue("the range in the URL", `location.hash.includes("range=4096..11264")`)
	for _, v := range partViews {
		p.openView(v.name, v.shows)
		if got := p.textOf("#timeline-analyse"); got != "analyse only references 4 096 to 11 264" {
			t.Errorf("%s: button = %q, want the selected references", v.name, got)
		}
	}
	p.brush(4, 11)
	p.waitTrue("the edited range", `document.getElementById("timeline-analyse").textContent === "analyse only references 4\u202f096 to 12\u202f288"`)
	p.openView("communication", "#chart-flows canvas[data-ready]")
	p.takeScreenshots("part-offered")
	p.viewport(1440, 900)
	p.tabTo("the button that analyses the range", `document.activeElement.id === "timeline-analyse"`)
	p.pressKeys(kb.Enter)
	p.waitFor("#part-note")
	digest := p.waitFinished()

	profile := filepath.Join(t.TempDir(), "part.sgp")
	want := truthIn(t, runCommand(t, "analyze", "demo:false-sharing", "--range", "4096..12288", "--utilisation", card.cachesBySite(), "-o", profile, "--format", "json"))
	if digest != want.Digest || digest == whole {
		t.Errorf("digest of the part = %s, want %s, as in the command", digest, want.Digest)
	}
	title := eval[string](p, `document.getElementById("result-title").textContent`)
	if title != "references 4\u202f096 to 12\u202f288 of 24\u202f583 of "+card.Title {
		t.Errorf("title = %q, want the references of the part and the name of the demo", title)
	}
	// The page's JSON files equal the command's answers, except for the name of the file.
	for _, c := range []struct {
		view, shows, button string
		command             []string
	}{
		{"communication", "#chart-flows canvas[data-ready]", "#classes-json", []string{"communication"}},
		{"threads", "#chart-cores canvas", "#change-json", []string{"threads", "--by", "change"}},
		{"diagnosis", "#findings-json", "#findings-json", []string{"diagnose"}},
		{"counters", "#counters", "#counters-json", []string{"counters"}},
		{"blocks", "#blocks-json", "#blocks-json", []string{"pipeline", "--hierarchy", "ryzen-9950x"}},
	} {
		p.openView(c.view, c.shows)
		p.waitFor(c.button)
		_, path := p.awaitDownload(func() { p.clickElement(c.button) })
		answer := string(runCommand(t, append(c.command, profile, "--format", "json")...))
		if got := strings.ReplaceAll(string(p.read(path)), title, profile); got != answer {
			t.Errorf("%s: the page's JSON file =\n%s\nwant the command's answer\n%s", c.view, got, answer)
		}
	}
	for _, v := range partViews {
		p.openView(v.name, v.shows)
		p.takeScreenshots("part-" + v.name)
		p.viewport(1440, 900)
	}
	p.reload()
	if again := p.waitFinished(); again != digest {
		t.Errorf("digest after a reload = %s, want %s", again, digest)
	}
	p.clickElement("#whole-run")
	p.waitTrue("the whole run", `!document.querySelector("#part-note") && document.querySelector("#digest")?.dataset.digest === `+quoteText(whole))
	eval[any](p, `history.back()`)
	p.waitFor("#part-note")
	p.clickElement("#back")
	p.waitTrue("the part in the list", `Array.from(document.querySelectorAll("#kept tr"), (row) => row.dataset.name).includes(`+quoteText(title)+`)`)
}

// TestRecordedPart opens a trace in which only a part of each thread was recorded. The page must warn.
func TestRecordedPart(t *testing.T) {
	var out bytes.Buffer
	w, b := sgt.NewImporter(&out, trace.Extent{After: 20000, For: 30000}.Facts()), trace.NewBatch(30000)
	b.Resize(30000)
	for i := range b.Addr {
		b.Kind[i], b.Addr[i], b.Bytes[i] = trace.Load, trace.Addr(i%5000*8), 8
	}
	if err := w.Write(b, trace.Header{Format: "test", Sizes: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	p := openPage(t)
	p.viewport(1440, 900)
	p.dropFiles(p.writeFile("part.sgt", out.Bytes()))
	p.waitFinished()
	p.waitFor("#part-note")
	if got := p.textOf("#part-note"); !strings.HasPrefix(got, "The recording begins with empty caches after the first 20,000 references of each thread") || !strings.HasSuffix(got, "The recording contains at most 30,000 references of each thread.") {
		t.Errorf("the note about the recorded part is %q", got)
	}
	p.takeScreenshots("recorded-part")
}
