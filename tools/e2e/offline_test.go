package e2e

import (
	"bytes"
	"testing"
)

// TestOffline checks that the page still works if the server is stopped after the first visit.
func TestOffline(t *testing.T) {
	needStage(t)
	p := firstVisit(t)
	p.keptOffline()
	p.server.stopServer()

	p.reload()
	if !eval[bool](p, `(await fetch(document.documentElement.dataset.program)).headers.has("X-Stackglass-Unfolded")`) {
		t.Error("the cached program is compressed, so every visit must decompress it")
	}
	demo := demos(t)[0]
	want := truthOf(t, "demo:"+demo.Name)
	p.clickElement("#demo-" + demo.Name)
	if got := p.waitFinished(); got != want.Digest {
		t.Errorf("digest of the demo offline = %s, want %s", got, want.Digest)
	}
	_, exported := p.awaitDownload(func() { p.clickElement("#export-profile") })
	if !bytes.Equal(p.read(exported), p.read(want.Profile)) {
		t.Error("the profile exported offline differs from the profile that the command writes with -o")
	}
	p.openPath("/")
	p.waitReady()
	p.waitFor(rowSelector(demo.Title))
	p.dropFiles(shortTrace(t))
	if got, want := p.waitFinished(), truthOf(t, shortTrace(t)).Digest; got != want {
		t.Errorf("digest of a dropped trace offline = %s, want %s", got, want)
	}
}

// TestOfflineDuringARun checks that, if the server is stopped during a run, the page can be
// reloaded and the run resumes from its checkpoint.
func TestOfflineDuringARun(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 30e6)
	p := firstVisit(t)
	p.keptOffline()
	p.dropFiles(trace)
	p.waitTrue("a checkpoint", storedEntries+" > 0")
	p.server.stopServer()
	p.reload()
	p.openFirstScreen()
	p.waitFor("#kept .chip.interrupted")
	p.dropFiles(trace)
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest offline = %s, want the command's digest %s", got, want)
	}
}
