package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// threadViews are the views that traces of several threads have besides.
var threadViews = []struct{ key, name, shows string }{
	{"6", "threads", "#chart-cores canvas"},
	{"7", "communication", "#chart-flows canvas[data-ready]"},
}

// threadsEverywhere shows how threads share caches and what they send each other,
// of a demo, with every table unfolded.
func (p *tab) threadsEverywhere(look func(state string)) {
	p.t.Helper()
	p.click("#demo-false-sharing")
	p.finished()
	for _, v := range threadViews {
		p.openView(v.key, v.shows)
		look("several threads, " + v.name)
		for _, chart := range eval[[]string](p, `Array.from(document.querySelectorAll(".figure sg-chart, .figure sg-matrix"), (c) => c.getAttribute("chart"))`) {
			p.click("#" + chart + "-table")
			p.waitFor("#table-" + chart + " tbody tr")
			look("the table of " + chart + ", " + v.name)
			p.click("#" + chart + "-table")
			p.waitGone("#table-" + chart)
		}
	}
	p.openView("6", "#core-group-1")
	p.choose("core-group-1", "1")
	p.waitFor("#group-2 #core-group-1")
	look("each thread with a cache of its own")
	p.click("#back")
	p.waitFor("#kept .delete")
}

// choose picks an option of a list.
func (p *tab) choose(id, value string) {
	p.t.Helper()
	eval[any](p, `(() => {
		const list = document.getElementById(`+quote(id)+`);
		list.value = `+quote(value)+`;
		list.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
}

// said waits until something with these words was said to those who listen.
func (p *tab) said(words string) {
	p.t.Helper()
	p.wait("“"+words+"” is announced", `document.getElementById("live").textContent.replace(/[\u00a0\u202f]/g, " ").includes(`+quote(words)+`)`)
}

// inked tells whether anything is drawn on each canvas of an element.
const inked = `Array.from(document.querySelectorAll(%s), (canvas) => {
	const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
	return new Set(new Uint32Array(pixels.buffer)).size > 3;
}).every((x) => x)`

func (p *tab) inked(selector string) bool {
	p.t.Helper()
	p.drawn()
	return eval[bool](p, strings.Replace(inked, "%s", quote(selector), 1))
}

// TestThreads goes through the view by keys: sizes, stacks, groups, and a table.
func TestThreads(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.click("#demo-ring")
	p.finished()
	p.openView("6", "#chart-core-3 canvas")
	if !p.inked("#threads canvas") {
		t.Error("a chart is empty")
	}
	before := p.text("#own-sentence")
	p.tabTo("the size of each thread's cache", `document.activeElement.id === "own-size"`)
	p.press(kb.Home)
	p.said("With 1 KiB for each thread")
	if after := p.text("#own-sentence"); after == before || !strings.HasPrefix(after, "With 1 KiB for each thread") {
		t.Errorf("the slider was moved, and it says %q", after)
	}
	p.press(kb.ArrowRight)
	p.said("With 1.5 KiB for each thread")
	p.click("#stack-coherent")
	p.said("a store of another thread takes the line away")

	// Two caches of two threads each: an answer needs an analysis of its own.
	p.choose("core-group-2", "1")
	p.waitFor("#group-2 #core-group-2")
	p.choose("core-group-3", "1")
	p.waitFor("#group-2 #core-group-3")
	p.waitFor("#groups-again")
	p.said("analyse the trace again with them")
	p.click("#groups-again")
	p.waitGone("#groups-again")
	p.finished()
	p.waitFor("#group-2 #core-group-3")
	if text := p.text("#shared-sentence"); !strings.Contains(text, "the threads miss") {
		t.Errorf("analysed with two groups, it says %q", text)
	}

	name, path := p.download(func() { p.click("#own-csv") })
	if csv := string(p.read(path)); !strings.HasSuffix(name, "-own.csv") || strings.Count(csv, "\n") != 5 || !strings.HasPrefix(csv, "threads,capacity_lines,accesses,misses,cold,capacity,coherence,") {
		t.Errorf("%s is\n%s", name, csv)
	}
}

// TestCommunication reads the matrix by arrow keys and picks a cell of it.
func TestCommunication(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.click("#demo-ring")
	p.finished()
	p.openView("7", "#chart-flows canvas[data-ready]")
	if !p.inked("#communication canvas") {
		t.Error("a matrix is empty")
	}
	all := p.text("#table-pairs tbody")
	p.tabTo("the matrix", `document.activeElement.closest("sg-matrix")?.id === "chart-flows"`)
	p.press(kb.ArrowDown) // to the first cell
	p.said("written by thread 1, used by thread 1: nothing")
	p.press(kb.ArrowRight)
	p.said("written by thread 1, used by thread 2: 2 048")
	p.press(kb.Enter)
	p.said("Thread 1 to thread 2: 2 048 transfers, 16 KiB, in 2 048 events.")
	if text := p.text("#flow-sentence"); !strings.HasPrefix(text, "Thread 1 to thread 2: 2 048 transfers") {
		t.Errorf("picked, it says %q", text)
	}
	if picked := p.text("#table-pairs tbody"); picked == all || !strings.Contains(picked, "ring.c:") {
		t.Errorf("the places of one flow are %q, those of all %q", picked, all)
	}
	p.press(kb.Enter)
	p.wait("nothing is picked", `document.getElementById("flow-sentence").textContent.startsWith("Pick a cell")`)

	p.click("#measure-bytes")
	p.wait("bytes", `document.querySelector("#figure-flows h2").textContent.startsWith("Bytes")`)
	p.click("#granule-1")
	p.wait("lines", `location.hash.includes("granule=1")`)
	p.tabTo("the part of the run", `document.activeElement.id === "flow-window"`)
	p.press(kb.ArrowRight)
	p.said("These are the words from reference 1 to")
	name, path := p.download(func() { p.click("#flows-csv") })
	if csv := string(p.read(path)); !strings.HasSuffix(name, "-flows.csv") || !strings.HasPrefix(csv, "from,to,transfers,bytes,events\n1,2,") {
		t.Errorf("%s is\n%s", name, csv)
	}
}

// TestFalseSharing reads the first thing that the page says of counters side by
// side: their name, the two lines of the source, and how far to put them apart.
func TestFalseSharing(t *testing.T) {
	needStage(t)
	source, err := os.ReadFile(demoSource(t, "false-sharing"))
	if err != nil {
		t.Fatal(err)
	}
	p := openPage(t)
	p.click("#demo-false-sharing")
	p.finished()
	p.openView("7", "#false-1")
	name, _, _ := strings.Cut(p.text("#false-1 h3"), " ")
	if name == "" || !strings.Contains(string(source), name) {
		t.Errorf("%q is named first, which is not in the source", name)
	}
	text := p.text("#false-1")
	for _, words := range []string{"false-sharing.c:", "stores at", "padding", "64 bytes apart"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q lacks %q", text, words)
		}
	}
	p.click("#false-1 a")
	p.waitFor("#place")
	if title := p.text("#place-title"); !strings.HasPrefix(title, "false-sharing.c:") {
		t.Errorf("the link leads to %q", title)
	}
	p.openView("1", "#finding-false-sharing")
	p.click("#finding-false-sharing a")
	p.waitFor("#false-1")
}
