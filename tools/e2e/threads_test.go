package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp/kb"
)

// threadViews lists the views that only multi-threaded traces have.
var threadViews = []struct{ name, shows string }{
	{"threads", "#chart-cores canvas"},
	{"communication", "#chart-flows canvas[data-ready]"},
}

// threadsEverywhere opens the views that show how the threads of a demo share caches and
// communicate. The function also expands every table.
func (p *tab) threadsEverywhere(look func(state string)) {
	p.t.Helper()
	p.clickElement("#demo-false-sharing")
	p.waitFinished()
	for _, v := range threadViews {
		p.openView(v.name, v.shows)
		look("several threads, " + v.name)
		for _, chart := range eval[[]string](p, `Array.from(document.querySelectorAll(".figure sg-chart, .figure sg-matrix"), (c) => c.getAttribute("chart"))`) {
			p.clickElement("#" + chart + "-table")
			p.waitFor("#table-" + chart + " tbody tr")
			look("the table of " + chart + ", " + v.name)
			p.clickElement("#" + chart + "-table")
			p.waitGone("#table-" + chart)
		}
	}
	p.openView("threads", "#core-group-1")
	p.setValue("core-group-1", "2")
	p.waitFor("#group-2 #core-group-1")
	look("a separate cache for each thread")
	eval[any](p, `location.hash += "&range=4096..12288"`)
	p.waitFor("#timeline-analyse")
	look("a range that the view does not show")
	p.clickElement("#timeline-analyse")
	p.waitFor("#part-note")
	p.waitFinished()
	look("a part of a run")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}

// setValue selects an option in a list, or enters a number.
func (p *tab) setValue(id, value string) {
	p.t.Helper()
	eval[any](p, `(() => {
		const list = document.getElementById(`+quoteText(id)+`);
		list.value = `+quoteText(value)+`;
		list.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
}

// waitAnnounced waits until the text that the page announces to screen readers contains the given
// words.
func (p *tab) waitAnnounced(words string) {
	p.t.Helper()
	p.waitTrue("the announcement “"+words+"”", `document.getElementById("live").textContent.replace(/[\u00a0\u202f]/g, " ").includes(`+quoteText(words)+`)`)
}

// drawnScript is a script that reports whether every canvas that a selector matches contains a
// drawing.
const drawnScript = `Array.from(document.querySelectorAll(%s), (canvas) => {
	const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
	return new Set(new Uint32Array(pixels.buffer)).size > 3;
}).every((x) => x)`

func (p *tab) hasDrawings(selector string) bool {
	p.t.Helper()
	p.waitDrawn()
	return eval[bool](p, strings.Replace(drawnScript, "%s", quoteText(selector), 1))
}

// TestThreads checks that the sizes, stacks, groups and table of the Threads view can be used with
// the keyboard.
func TestThreads(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-ring")
	p.waitFinished()
	p.openView("threads", "#chart-core-3 canvas")
	if !p.hasDrawings("#threads canvas") {
		t.Error("a chart of the Threads view is empty")
	}
	p.tabTo("the size of each thread's cache", `document.activeElement.id === "own-size"`)
	p.pressKeys(kb.Home)
	p.waitAnnounced("With 1 KiB for each thread")
	p.waitTrue("the text for the slider's new value", `document.querySelector("#own-sentence").textContent.replace(/[\u00a0\u202f]/g, " ").startsWith("With 1 KiB for each thread")`)
	p.pressKeys(kb.ArrowRight)
	p.waitAnnounced("With 1.5 KiB for each thread")
	p.clickElement("#stack-coherent")
	p.waitAnnounced("another thread's store invalidates the line")

	// To show two caches, each of which is shared by two threads, the page must analyse the trace
	// again.
	p.setValue("core-group-2", "2")
	p.waitFor("#group-2 #core-group-2")
	p.setValue("core-group-3", "2")
	p.waitFor("#group-2 #core-group-3")
	p.waitFor("#groups-again")
	p.waitAnnounced("This analysis does not cover these groups of threads: analyse the trace again with these groups.")
	p.clickElement("#groups-again")
	p.waitGone("#groups-again")
	p.waitFinished()
	p.waitFor("#group-2 #core-group-3")
	if text := p.textOf("#shared-sentence"); !strings.Contains(text, "the threads miss") {
		t.Errorf("sentence about shared caches for two groups = %q, want a text with: the threads miss", text)
	}

	name, path := p.awaitDownload(func() { p.clickElement("#own-csv") })
	if csv := string(p.read(path)); !strings.HasSuffix(name, "-own.csv") || strings.Count(csv, "\n") != 5 || !strings.HasPrefix(csv, "level,core,threads,accesses,private_misses,misses,cold,") {
		t.Errorf("saved table %s =\n%s\nwant a line for each of the four threads", name, csv)
	}
}

// TestCommunication checks that arrow keys move through the communication matrix, and that a cell
// can be selected.
func TestCommunication(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-ring")
	p.waitFinished()
	p.openView("communication", "#chart-flows canvas[data-ready]")
	if !p.hasDrawings("#communication canvas") {
		t.Error("a matrix of the Communication view is empty")
	}
	all := p.textOf("#table-pairs tbody")
	p.tabTo("the matrix", `document.activeElement.closest("sg-matrix")?.id === "chart-flows"`)
	p.pressKeys(kb.ArrowDown) // moves to the first cell
	p.waitAnnounced("written by thread 1, used by thread 1: nothing")
	p.pressKeys(kb.ArrowRight)
	p.waitAnnounced("written by thread 1, used by thread 2: 2 048")
	p.pressKeys(kb.Enter)
	p.waitAnnounced("Thread 1 to thread 2: 2 048 transfers, 16 KiB, in 2 048 events.")
	p.waitTrue("the sentence about the selected cell", `document.getElementById("flow-sentence").textContent.startsWith("Thread 1 to thread 2:")`) // the page announces the cell before it draws the sentence
	if picked := p.textOf("#table-pairs tbody"); picked == all || !strings.Contains(picked, "ring.c:") {
		t.Errorf("source locations of one flow = %q, want fewer than those of all flows, %q", picked, all)
	}
	p.pressKeys(kb.Enter)
	p.waitTrue("a matrix without a selected cell", `document.getElementById("flow-sentence").textContent.startsWith("To see the source locations behind a cell")`)

	p.clickElement("#measure-bytes")
	p.waitTrue("the communication flows in bytes", `document.querySelector("#figure-flows h2").textContent.startsWith("Bytes")`)
	p.clickElement("#granule-1")
	p.waitTrue("the communication flows by cache line", `location.hash.includes("granule=1")`)
	p.tabTo("the slider for the window of the run", `document.activeElement.id === "flow-window"`)
	p.pressKeys(kb.ArrowRight)
	p.waitAnnounced("This window covers references 1 to")
	name, path := p.awaitDownload(func() { p.clickElement("#flows-csv") })
	if csv := string(p.read(path)); !strings.HasSuffix(name, "-flows.csv") || !strings.HasPrefix(csv, "first_reference,from,to,events,transfers,bytes\n0,1,2,") {
		t.Errorf("saved table %s =\n%s\nwant the flows of the first window", name, csv)
	}
}

// TestFalseSharing checks the page's first finding about a demo in which the counters of all
// threads are in the same cache line. The finding must name the counters, the source line and the
// fix, and state how often the threads invalidate each other's copies of the line.
func TestFalseSharing(t *testing.T) {
	needStage(t)
	source, err := os.ReadFile(demoSource(t, "false-sharing"))
	if err != nil {
		t.Fatal(err)
	}
	p := openPage(t)
	p.clickElement("#demo-false-sharing")
	p.waitFinished()
	p.openView("communication", "#false-1")
	name, _, _ := strings.Cut(p.textOf("#false-1 h3"), " ")
	if name == "" || !strings.Contains(string(source), name) {
		t.Errorf("first falsely shared variable = %q, want a name from the source", name)
	}
	text := p.textOf("#false-1")
	for _, words := range []string{"false-sharing.c:", "write different words of the same line", "8 189 times", "alignas(64)"} {
		if !strings.Contains(text, words) {
			t.Errorf("false sharing = %q, want a text with %q", text, words)
		}
	}
	p.clickElement("#false-1 a")
	p.waitFor("#place")
	if title := p.textOf("#place-title"); !strings.HasPrefix(title, "false-sharing.c:") {
		t.Errorf("title of the linked location = %q, want false-sharing.c", title)
	}
	p.openView("diagnosis", "#diagnosis")
	p.unfoldFacts()
	p.clickElement("#finding-false-sharing a")
	p.waitFor("#false-1")
}

// manyThreads returns the path of a trace with 64 threads. Each thread has private data, and reads
// some data of its neighbours.
func manyThreads() []byte {
	rng := rand.New(rand.NewPCG(1, 64))
	var text bytes.Buffer
	text.WriteString("addr,rw,size,tid\n")
	for range 200_000 {
		thread := rng.IntN(64)
		addr, kind := 1<<20+thread<<16+rng.IntN(1<<(6+rng.IntN(10)))&^7, "rw"[rng.IntN(2)]
		if rng.IntN(4) == 0 {
			addr = 1<<30 + (thread+rng.IntN(3))%64<<8 + rng.IntN(1<<12)&^7
		}
		fmt.Fprintf(&text, "%d,%c,8,%d\n", addr, kind, thread)
	}
	return text.Bytes()
}

// TestDelayWithManyThreads makes the same measurements as TestDelayOfAnswers in the Threads and
// Communication views, with 64 threads. The test repeats the measurements with 32 caches, each of
// which is shared by two threads.
func TestDelayWithManyThreads(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.dropFiles(p.writeFile("many.csv", manyThreads()))
	p.waitFinished()
	p.openView("threads", "#chart-core-3 canvas")
	p.measureSlider("the size of each thread's cache", "#own-size", "#own-sentence")
	p.measureSlider("the size of the cache that all threads share", "#shared-size", "#shared-sentence")
	groups := make([]string, 64)
	for i := range groups {
		groups[i] = strconv.Itoa(i / 2)
	}
	p.waitTrue("the sliders' sizes in the URL", `location.hash.includes("&shared=8192")`)
	hash := eval[string](p, `location.hash`)
	p.openPath("/" + hash + "&groups=" + strings.Join(groups, "-"))
	p.waitFor("#group-32")
	p.measureSlider("a cache for each thread, with groups", "#own-size", "#own-sentence")
	p.measureSlider("caches shared by two threads", "#shared-size", "#shared-bytes")
	p.openView("communication", "#chart-flows canvas[data-ready]")
	p.measureSlider("transfers from cache to cache", "#source-size", "#source-sentence")
	p.measureSlider("the window of the run", "#flow-window", "#flows-summary")
}

// measureSlider moves a slider back and forth, and logs how long the page takes to draw the
// effect.
func (p *tab) measureSlider(what, slider, changes string) {
	p.t.Helper()
	p.waitFor(slider)
	callDevTools(p, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"})
	before := p.mainThreadTime()
	took := eval[[]float64](p, `(async () => {
		const took = [];
		for (let i = 0; i < 6; i++) {
			const slider = document.querySelector(`+quoteText(slider)+`), most = Number(slider.max);
			const before = document.querySelector(`+quoteText(changes)+`).textContent;
			const old = slider.value;
			slider.value = 1 + (i % 2 ? i : most - i + most) % most;
			if (slider.value === old) continue; // nothing will change
			const begun = performance.now();
			slider.dispatchEvent(new Event("input", { bubbles: true }));
			while (document.querySelector(`+quoteText(changes)+`).textContent === before && performance.now() - begun < 300000) await new Promise((f) => requestAnimationFrame(f));
			await new Promise((f) => requestAnimationFrame(f));
			took.push(performance.now() - begun);
		}
		return took;
	})()`)
	slices.Sort(took)
	p.t.Logf("%s: time from the move to the drawn answer: median %.0f ms, maximum %.0f ms, %d moves; the page was busy for %.0f ms per move", what,
		took[len(took)/2], took[len(took)-1], len(took), (p.mainThreadTime()-before)/float64(len(took)))
	if took[len(took)/2] >= 300000 {
		p.t.Errorf("%s: the page did not respond to most moves of the slider", what)
	}
}

// mainThreadTime returns how much CPU time the page's main thread has used, in milliseconds.
func (p *tab) mainThreadTime() float64 {
	p.t.Helper()
	for _, m := range callDevTools(p, performance.GetMetrics, cdp.Empty{}).Metrics {
		if m.Name == "TaskDuration" {
			return 1000 * m.Value
		}
	}
	p.t.Fatal("the browser does not report the CPU time")
	return 0
}
