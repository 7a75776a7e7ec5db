package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOtherBrowsers checks in Firefox and WebKit what other tests check in Chromium. The test opens
// a demo, a dropped file and a file from the file picker. It reloads the page, pauses an analysis,
// and uses the page without a server. The test also interrupts analyses: it leaves the page, kills
// the process of the tab, and kills the browser. All digests must equal the digests that the
// command prints.
//
// The test is part of make soak, not of make test. On two idle cores it takes a minute, which make
// test does not have within its time limit, and its browsers need 400 MB of packages that nothing
// else needs.
func TestOtherBrowsers(t *testing.T) {
	for name, start := range otherBrowsers {
		t.Run(name, func(t *testing.T) {
			needStage(t)
			if !isSoak {
				t.Skip("skipped: this test takes a minute more, and needs Firefox, WebKit and Xvfb (400 MB); set STACKGLASS_SOAK=1 to run it")
			}
			profile := t.TempDir()
			b, missing := start(t, profile)
			if b == nil {
				t.Skip("skipped: " + name + ": " + missing)
			}
			b.setTimeouts()
			s := serveCommand(t, ":0")
			b.openFirstScreen(s)

			demo := demos(t)[0]
			b.clickElement("#demo-" + demo.Name)
			b.wantDigest("the demo", "demo:"+demo.Name)
			b.openFirstScreen(s)
			b.waitTrue("the stored analysis", `document.querySelector("#kept")?.textContent.includes(`+quoteText(demo.Title)+`)`)
			b.dropFiles(shortTrace(t))
			b.wantDigest("a dropped file", shortTrace(t))
			b.testPause(s)

			// When the browser leaves the page in the middle of an analysis, WebKit suspends the
			// page and keeps it in memory.
			trace := longTrace(t, 30e6)
			b.interrupt(s, trace, func() { b.visit("about:blank") })
			b.pickFiles(trace)
			b.wantDigest("an analysis that was interrupted when the browser left the page", trace)

			b.openFirstScreen(s)
			b.waitTrue("the site is stored for offline use", `document.getElementById("offline-state").textContent === `+quoteText(kept))
			s.stopServer()
			b.openFirstScreen(s)
			b.pickFiles(shortTrace(t))
			b.wantDigest("a file without a server", shortTrace(t))

			// These tests come last, because WebKit forgets the site that it has stored when the
			// process of a tab is killed. While WebDriver controls MiniBrowser, all data is in memory.
			s = serveCommand(t, ":0")
			b.interrupt(s, trace, b.killTab)
			b.dropFiles(trace)
			b.wantDigest("an analysis whose tab was killed", trace)
			if !b.keepsData {
				return
			}
			b.deleteAnalysis(s, trace)
			b.interrupt(s, trace, func() {
				b.endBrowser()
				next, _ := start(t, profile)
				*b = *next
				b.setTimeouts()
			})
			b.pickFiles(trace)
			b.wantDigest("an analysis whose browser was killed", trace)
		})
	}
}

// wantDigest waits until an analysis is finished, and compares its digest with the command's digest
// for the same file or demo.
func (b *otherBrowser) wantDigest(what, path string) {
	b.t.Helper()
	got, want := b.waitFinished(), truthOf(b.t, path).Digest
	if got != want {
		b.t.Errorf("digest of %s = %s, want the command's digest %s", what, got, want)
	}
	b.t.Logf("%s: digest %s", what, got)
}

// testPause pauses an analysis of a file from the file picker, checks that the analysis stands still,
// and resumes it.
func (b *otherBrowser) testPause(s *server) {
	b.t.Helper()
	trace := ownTrace(b.t)
	b.openFirstScreen(s)
	b.textOf("String(" + pauseSoon + ")")
	b.pickFiles(trace)
	b.waitTrue("the paused run", `document.querySelector("#run-pause")?.textContent === "Resume"`)
	const progress = `["percent", "bytes", "references"].map((name) => document.getElementById("run-" + name).textContent).join(", ")`
	before := b.textOf(progress)
	time.Sleep(2 * time.Second)
	if after := b.textOf(progress); after != before {
		b.t.Errorf("progress of a paused analysis changed from %q to %q", before, after)
	}
	b.t.Logf("paused at %s", before)
	b.clickElement("#run-pause")
	b.wantDigest("a paused analysis", trace)
}

// interrupt starts an analysis, and interrupts it after its first checkpoint. The first screen must
// then list the interrupted analysis, and say that the user must choose the file again, because these
// browsers have no handles of dropped files.
func (b *otherBrowser) interrupt(s *server, trace string, interruption func()) {
	b.t.Helper()
	b.openFirstScreen(s)
	before := b.textOf("String(" + storedEntries + ")")
	b.pickFiles(trace)
	b.waitTrue("a checkpoint", storedEntries+" > "+before)
	interruption()
	b.openFirstScreen(s)
	b.waitTrue("the interrupted analysis", `document.querySelector("#kept .chip.interrupted")`)
	note := b.textOf(`document.getElementById("interrupted").innerText`)
	b.t.Log(note)
	if want := "This browser does not let a page open a file again. To resume the analysis where it stopped, choose " + filepath.Base(trace) + " again"; !strings.Contains(note, want) {
		b.t.Errorf("note on the first screen = %q, want a text with: %s", note, want)
	}
}

// deleteAnalysis deletes the stored analysis of a trace, because the page would otherwise open this
// analysis instead of analysing the trace again.
func (b *otherBrowser) deleteAnalysis(s *server, trace string) {
	b.t.Helper()
	b.openFirstScreen(s)
	row := rowSelector(filepath.Base(trace))
	b.clickElement(row + " .delete")
	b.clickElement("#delete-yes")
	b.waitTrue("the deletion of the analysis", `!document.querySelector(`+quoteText(row)+`)`)
}

func (b *otherBrowser) setTimeouts() {
	b.t.Helper()
	b.do("WebDriver:SetTimeouts", map[string]any{"script": waitLimit.Milliseconds(), "pageLoad": waitLimit.Milliseconds()})
}
