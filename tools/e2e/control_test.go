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
	trace := longTrace(t, pausable)
	p := openPage(t)
	p.pausing(func() { p.drop(trace) })
	p.wait("the text paused instead of the remaining time", `document.querySelector("#run-left").textContent === "paused"`)
	before := p.text("#run-references") + " " + p.text("#run-bytes")
	for _, key := range []string{"1", "2", "3"} {
		p.press(key)
		p.wait("the group of views of key "+key, `document.querySelector('[data-key="`+key+`"]').ariaCurrent`)
	}
	if after := p.text("#run-references") + " " + p.text("#run-bytes"); after != before {
		t.Errorf("progress while paused = %s, want %s, the progress at the start of the pause", after, before)
	}
	p.click("#run-pause")
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest after a pause = %s, want the command's digest %s", got, want)
	}
}

// TestCancel checks that a cancelled run keeps its partial result.
func TestCancel(t *testing.T) {
	needStage(t)
	const references = 40e6
	trace := longTrace(t, references)
	p := openPage(t)
	p.drop(trace)
	p.wait("references", `document.querySelector(".chip.growing") && !document.querySelector("#run-cancel").disabled`)
	p.click("#run-cancel")
	digest := p.finished()
	if !p.has(".chip.partial") || p.has(".chip.complete") {
		t.Errorf("the result of a cancelled run is not marked as partial\n%s", p.screen())
	}
	_, exported := p.download(func() { p.click("#export-profile") })
	got := infoOf(t, exported)
	if got.Digest != digest || got.Complete || got.References == 0 || got.References >= references {
		t.Errorf("the command reads the exported partial profile as %+v, want a partial profile with the page's digest %s", got, digest)
	}
	p.reload()
	p.waitFor(".chip.partial")
	if again := p.digest(); again != digest {
		t.Errorf("digest after a reload = %s, want the digest before it, %s", again, digest)
	}
}

// TestDropBeforeReady checks that a file can be dropped while the program is still loading.
func TestDropBeforeReady(t *testing.T) {
	needStage(t)
	trace := beginning(t)
	p := newTab(t, serve(t, ":0"))
	held, release := p.hold("*/app.*.wasm")
	p.visit("/")
	held()
	p.drop(trace)
	p.wait("a note that the file will be analysed next", `document.getElementById("boot-state").textContent.includes("is next")`)
	if eval[bool](p, `document.documentElement.dataset.ready === "1"`) {
		t.Error("the program was running before the file was dropped, want a program that is still loading")
	}
	release()
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
}

// TestCancelAtOnce checks that a run can be cancelled while its worker is still loading.
func TestCancelAtOnce(t *testing.T) {
	needStage(t)
	trace := beginning(t)
	p := firstVisit(t)
	held, release := p.hold("*/app.*.wasm")
	p.drop(trace)
	held()
	p.wait("an enabled Cancel button", `document.querySelector("#run-cancel:enabled")`)
	p.click("#run-cancel")
	release()
	p.waitGone("[data-running]")
	refused := p.has("#problem")
	p.visit("/")
	p.ready()
	p.wait("the list", `document.querySelector("#kept-empty, #kept tr")`)
	if p.has("#kept .chip.complete") || p.has("#kept .chip.partial") == refused {
		t.Errorf("the cancelled run neither left a partial result nor ended with an error message\n%s", p.screen())
	}
	p.drop(trace)
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest of the next run = %s, want the command's digest %s", got, want)
	}
}

// The function "hold" intercepts all requests from the page whose URLs match a pattern. The
// function "held" waits until a request is intercepted. The function "release" lets all intercepted
// requests continue.
func (p *tab) hold(pattern string) (held, release func()) {
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
	call(p, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}})
	held = func() {
		p.t.Helper()
		select {
		case <-stopped:
		case <-time.After(patience):
			p.t.Fatalf("timeout while waiting for a request for %s\n%s", pattern, p.screen())
		}
	}
	return held, func() { p.t.Helper(); call(p, fetch.Disable, cdp.Empty{}) }
}

// TestQueue checks that two files that are dropped together are analysed one after the other.
func TestQueue(t *testing.T) {
	needStage(t)
	p := openPage(t)
	list := demos(t)
	const markup = `<img src=x onerror=alert(1)>&lt;` // a valid file name that must not be treated as markup
	first := p.write(markup+".sgt", demoFile(t, list[0].Name))
	second := p.write("second.sgt", demoFile(t, list[1].Name))
	p.drop(first, second)
	p.wait("the result of the second file", `document.title.startsWith("second") && !document.querySelector("[data-running]") && document.querySelector("#digest")`)
	p.click("#back")
	p.waitFor(row(markup + ".sgt"))
	p.waitFor(row("second.sgt"))
	p.click(row(markup+".sgt") + " .open")
	p.waitFor("#digest")
	if got, want := p.digest(), truthOf(t, first).Digest; got != want {
		t.Errorf("digest of the first of two files = %s, want the command's digest %s", got, want)
	}
}
