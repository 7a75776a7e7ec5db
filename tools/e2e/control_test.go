package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
)

// TestPauseAndGoOn pauses a run, looks around, and lets it end.
func TestPauseAndGoOn(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 20e6)
	p := openPage(t)
	p.drop(trace)
	p.wait("references", `document.querySelector(".chip.growing") && !document.querySelector("#run-pause").disabled`)
	p.click("#run-pause")
	p.wait("paused", `document.querySelector("#run-pause").textContent === "Go on" && document.querySelector("#run-left").textContent === "paused"`)
	before := p.text("#run-references") + " " + p.text("#run-bytes")
	for _, key := range []string{"1", "2", "3"} {
		p.press(key)
		p.wait("view "+key, `document.querySelector('[data-key="`+key+`"]').ariaCurrent === "page"`)
	}
	if after := p.text("#run-references") + " " + p.text("#run-bytes"); after != before {
		t.Errorf("paused at %s, then at %s", before, after)
	}
	p.click("#run-pause")
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest %s after a pause, the command's is %s", got, want)
	}
}

// TestCancel cancels a run and keeps what it has counted.
func TestCancel(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 40e6)
	p := openPage(t)
	p.drop(trace)
	p.wait("references", `document.querySelector(".chip.growing") && !document.querySelector("#run-cancel").disabled`)
	p.click("#run-cancel")
	digest := p.finished()
	if !p.has(".chip.partial") || p.has(".chip.complete") {
		t.Errorf("a cancelled run is not marked partial\n%s", p.screen())
	}
	_, exported := p.download(func() { p.click("#export-profile") })
	got := infoOf(t, exported)
	if got.Digest != digest || got.Complete || got.References == 0 || got.References >= truthOf(t, realTrace(t)).References*4 {
		t.Errorf("the command reads the partial profile as %+v, the page says %s", got, digest)
	}
	p.reload()
	p.waitFor(".chip.partial")
	if again := p.digest(); again != digest {
		t.Errorf("digest %s after a reload, %s before", again, digest)
	}
}

// TestDropBeforeReady drops a file while the program is still loading.
func TestDropBeforeReady(t *testing.T) {
	needStage(t)
	trace := realTrace(t)
	p := newTab(t, serve(t, ":0"))
	held := make(chan fetch.RequestID, 4)
	err := chromedp.Listen(p.ctx, func(ev any) {
		if ev, ok := ev.(*fetch.EventRequestPaused); ok {
			held <- ev.RequestID
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(p, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "*/app.wasm"}}})
	p.visit("/")
	id := <-held
	p.drop(trace)
	p.wait("a word that the file is next", `document.getElementById("boot-state").textContent.includes("is next")`)
	if eval[bool](p, `document.documentElement.dataset.ready === "1"`) {
		t.Error("the program runs already: this is no early drop")
	}
	call(p, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id})
	call(p, fetch.Disable, cdp.Empty{})
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest %s, the command's is %s", got, want)
	}
}

// TestQueue drops two files at once: one is analysed after the other.
func TestQueue(t *testing.T) {
	needStage(t)
	p := openPage(t)
	list := demos(t)
	first := p.write("first.lackey.lz4", demoFile(t, list[0].Name))
	second := p.write("second.lackey.lz4", demoFile(t, list[1].Name))
	p.drop(first, second)
	p.wait("both are done", `document.title.startsWith("second") && !document.querySelector("[data-running]") && document.querySelector("#digest")`)
	p.click("#back")
	p.waitFor(row("first.lackey.lz4"))
	p.waitFor(row("second.lackey.lz4"))
	p.click(row("first.lackey.lz4") + " .open")
	p.waitFor("#digest")
	if got, want := p.digest(), truthOf(t, "demo:"+list[0].Name).Digest; got != want {
		t.Errorf("the first of two: digest %s, the command's is %s", got, want)
	}
}
