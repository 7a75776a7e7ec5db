package e2e

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
)

// TestPauseAndResume checks that several views can be opened while a run is paused, and that the
// run can be resumed.
func TestPauseAndResume(t *testing.T) {
	needStage(t)
	trace := longTrace(t, pausableLength)
	p := openPage(t)
	p.startPaused(func() { p.dropFiles(trace) })
	p.waitTrue("the text “paused” instead of the remaining time", `document.querySelector("#run-left").textContent === "paused"`)
	before := p.textOf("#run-references") + " " + p.textOf("#run-bytes")
	for _, key := range []string{"1", "2", "3"} {
		p.pressKeys(key)
		p.waitTrue("the group of views that opens with key "+key, `document.querySelector('[data-key="`+key+`"]').ariaCurrent`)
	}
	if after := p.textOf("#run-references") + " " + p.textOf("#run-bytes"); after != before {
		t.Errorf("progress while paused = %s, want %s, the progress at the start of the pause", after, before)
	}
	p.clickElement("#run-pause")
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest after a pause = %s, want the command's digest %s", got, want)
	}
}

// TestCancel checks that a cancelled run keeps its partial result.
func TestCancel(t *testing.T) {
	needStage(t)
	const references = 40e6
	trace := longTrace(t, references)
	p := openPage(t)
	p.dropFiles(trace)
	p.waitTrue("references", `document.querySelector(".chip.growing") && !document.querySelector("#run-cancel").disabled`)
	p.clickElement("#run-cancel")
	digest := p.waitFinished()
	if !p.has(".chip.partial") || p.has(".chip.complete") {
		t.Errorf("the result of a cancelled run is not marked as partial\n%s", p.pageText())
	}
	_, exported := p.awaitDownload(func() { p.clickElement("#export-profile") })
	got := infoOf(t, exported)
	if got.Digest != digest || got.Complete || got.References == 0 || got.References >= references {
		t.Errorf("the command reads the exported partial profile as %+v, want a partial profile with the page's digest %s", got, digest)
	}
	p.reload()
	p.waitFor(".chip.partial")
	if again := p.shownDigest(); again != digest {
		t.Errorf("digest after a reload = %s, want the digest before it, %s", again, digest)
	}
}

// TestDropBeforeReady checks that a file can be dropped while the program is still loading.
func TestDropBeforeReady(t *testing.T) {
	needStage(t)
	trace := shortTrace(t)
	p := newTab(t, serveCommand(t, ":0"))
	held, release := p.interceptRequests("*/app.*.wasm")
	p.openPath("/")
	held()
	p.dropFiles(trace)
	p.waitTrue("a note that the file will be analysed next", `document.getElementById("boot-state").textContent.includes("is next")`)
	if eval[bool](p, `document.documentElement.dataset.ready === "1"`) {
		t.Error("the program was running before the file was dropped, want a program that is still loading")
	}
	release()
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
}

// TestCancelAtOnce checks that a run can be cancelled while its worker is still loading.
func TestCancelAtOnce(t *testing.T) {
	needStage(t)
	trace := shortTrace(t)
	p := firstVisit(t)
	held, release := p.interceptRequests("*/app.*.wasm")
	p.dropFiles(trace)
	held()
	p.waitTrue("an enabled Cancel button", `document.querySelector("#run-cancel:enabled")`)
	p.clickElement("#run-cancel")
	release()
	p.waitGone("[data-running]")
	refused := p.has("#problem")
	p.openPath("/")
	p.waitReady()
	p.waitTrue("the list", `document.querySelector("#kept-empty, #kept tr")`)
	if p.has("#kept .chip.complete") || p.has("#kept .chip.partial") == refused {
		t.Errorf("the cancelled run neither left a partial result nor ended with an error message\n%s", p.pageText())
	}
	p.dropFiles(trace)
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest of the next run = %s, want the command's digest %s", got, want)
	}
}

// interceptRequests intercepts all requests from the page whose URLs match a pattern. The function
// waitIntercepted waits until a request is intercepted. The function release lets all intercepted
// requests continue.
func (p *tab) interceptRequests(pattern string) (held, release func()) {
	p.t.Helper()
	stopped := make(chan struct{}, 16)
	err := chromedp.Listen(p.ctx, func(ev any) {
		if _, ok := ev.(*fetch.EventRequestPaused); ok {
			stopped <- struct{}{}
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	callDevTools(p, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}})
	held = func() {
		p.t.Helper()
		select {
		case <-stopped:
		case <-time.After(waitLimit):
			p.t.Fatalf("timeout while waiting for a request for %s\n%s", pattern, p.pageText())
		}
	}
	return held, func() { p.t.Helper(); callDevTools(p, fetch.Disable, cdp.Empty{}) }
}

// TestQueue checks that two files that are dropped together are analysed one after the other.
func TestQueue(t *testing.T) {
	needStage(t)
	p := openPage(t)
	list := demos(t)
	const markup = `<img src=x onerror=alert(1)>&lt;` // a valid file name that the page must not interpret as markup
	first := p.writeFile(markup+".sgt", demoFile(t, list[0].Name))
	second := p.writeFile("second.sgt", demoFile(t, list[1].Name))
	p.dropFiles(first, second)
	p.waitTrue("the result of the second file", `document.title.startsWith("second") && !document.querySelector("[data-running]") && document.querySelector("#digest")`)
	p.clickElement("#back")
	p.waitFor(rowSelector(markup + ".sgt"))
	p.waitFor(rowSelector("second.sgt"))
	p.clickElement(rowSelector(markup+".sgt") + " .open")
	p.waitFor("#digest")
	if got, want := p.shownDigest(), truthOf(t, first).Digest; got != want {
		t.Errorf("digest of the first of two files = %s, want the command's digest %s", got, want)
	}
}
