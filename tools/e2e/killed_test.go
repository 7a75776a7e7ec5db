package e2e

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

// openFirstScreen loads the page, and checks that it shows the first screen.
func (p *tab) openFirstScreen() {
	p.t.Helper()
	p.openPath("/")
	p.waitReady()
}

// inWorker evaluates an expression in all existing workers, and reports whether there was at least
// one worker.
func (p *tab) inWorker(expression string) (done bool) {
	p.t.Helper()
	for _, ctx := range p.watch.workersOf("worker") {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](expression))
		cancel()
		done = done || err == nil
	}
	return done
}

// isSoak reports whether the tests run as in make soak, with many interruptions instead of a few.
var isSoak = os.Getenv("STACKGLASS_SOAK") != ""

// killsOf returns how often a test interrupts the analysis: a few times, or more often in make
// soak.
func killsOf(few, all int) int {
	if isSoak {
		return all
	}
	return few
}

// TestWorkerKilledAtRandom checks that an analysis that is interrupted at random moments resumes
// when its file is dropped again, and that its result is the same as without interruption. The test
// reloads the page, kills the worker with and without an error, and crashes the tab. Each of these
// faults occurs once, or twenty times in make soak.
func TestWorkerKilledAtRandom(t *testing.T) {
	needStage(t)
	kills := killsOf(4, 20)
	trace := longTrace(t, 30e6)
	want := truthOf(t, trace).Digest
	random := rand.New(rand.NewPCG(20, 2026))
	p := openPage(t)
	interrupted, finished := 0, 0
	for i := range kills {
		p.dropFiles(trace)
		share := random.IntN(100)
		p.waitTrue("the progress of the run, or its result", `document.querySelector("#digest") ||
			parseInt(document.querySelector("#run-percent")?.textContent) >= `+strconv.Itoa(share))
		switch i % 4 {
		case 0:
			p.reload()
		case 1:
			p.watch.allowFault(crashText)
			p.inWorker(`performance.now = () => { throw new Error(` + quoteText(crashText) + `); }; null`)
			p.waitGone("[data-running]")
		case 2:
			p.inWorker(`self.close(); null`)
			p.waitGone("[data-running]")
		case 3:
			p.watch.allowFault(tabCrash)
			_, _ = chromedp.Call(p.ctx, page.Crash, cdp.Empty{}) // returns when the watch has closed the tab
			p = newTab(t, p.server)
		}
		p.openFirstScreen()
		p.waitTrue("the list", `document.querySelector("#kept-empty, #kept .chip")`)
		switch {
		case p.has("#kept .chip.interrupted"):
			interrupted++
		case p.has("#kept .chip.complete"):
			finished++
			p.clickElement("#kept .open")
			p.waitTrue("the opened analysis", `document.querySelector("#digest")`)
			if got := p.shownDigest(); got != want {
				t.Errorf("digest after %[2]d kills = %[1]s, want the command's digest %[3]s", got, i+1, want)
			}
			p.clickElement("#back")
			p.clickElement("#kept .delete")
			p.waitFor("#delete-yes")
			p.clickElement("#delete-yes")
			p.waitFor("#kept-empty")
		case p.has("#kept .chip.partial"):
			p.clickElement("#kept .delete")
			p.waitFor("#delete-yes")
			p.clickElement("#delete-yes")
			p.waitFor("#kept-empty")
		}
	}
	p.dropFiles(trace)
	if got := p.waitFinished(); got != want {
		t.Errorf("digest after %[2]d kills = %[1]s, want the command's digest %[3]s", got, kills, want)
	}
	if interrupted == 0 {
		t.Error("none of the killed runs left a checkpoint")
	}
	t.Logf("%d kills: %d left a checkpoint, %d happened after the end of the run", kills, interrupted, finished)
}

// TestLeaveWhileWorkerStarts checks that a worker that is starting ends when the user leaves the
// page. Chromium suspends such a page, and a suspended worker that is granted a lock crashes the
// tab.
func TestLeaveWhileWorkerStarts(t *testing.T) {
	p := openPage(t)
	trace := absolute(t, filepath.Join(rootFolder, "site", "demos", "matmul-naive.sgt"))
	callDevTools(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		window.Worker = class extends Worker {
			constructor(...of) {
				super(...of);
				if (this.leave = window.leave && of[1].name === "answers") location.href = "docs/";
			}
			terminate() {
				if (this.leave) localStorage.terminated = "yes";
				super.terminate();
			}
		};`})
	p.openFirstScreen()
	eval[any](p, "window.leave = true")
	p.dropFiles(trace)
	p.waitTrue("the manual", `location.pathname.endsWith("/docs/") && document.readyState === "complete"`)
	if !eval[bool](p, `"terminated" in localStorage`) {
		t.Error("the page did not end the worker that answers questions")
	}
	p.openFirstScreen()
	p.dropFiles(trace)
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
}

// TestBrowserKilled checks that an analysis resumes after the whole browser is killed (SIGKILL) and
// a new browser is started with the same profile. The first kill follows the first checkpoint, and
// the other kills occur at random moments. The last writes may be missing, because IndexedDB does
// not wait for the disk.
func TestBrowserKilled(t *testing.T) {
	s := needStage(t)
	trace := longTrace(t, 30e6)
	path, err := chromium.Find()
	if err != nil {
		t.Fatal(err)
	}
	profile := t.TempDir()
	server := serveCommand(t, ":0")
	start := func() (*tab, context.Context) {
		ctx, err := startBrowser(t.Context(), path, profile, s.anyHost.port)
		if err != nil {
			t.Fatal(err)
		}
		p := newTabIn(t, ctx, server)
		p.openFirstScreen()
		return p, ctx
	}
	random := rand.New(rand.NewPCG(21, 2026))
	for kill := range killsOf(2, 20) {
		p, ctx := start()
		p.waitFor("#kept-empty, #kept .chip")
		if p.has("#kept .chip.complete") {
			p.clickElement("#kept .delete")
			p.waitFor("#delete-yes")
			p.clickElement("#delete-yes")
			p.waitFor("#kept-empty")
		}
		p.dropFiles(trace)
		if share := random.IntN(100); kill == 0 {
			p.waitTrue("a checkpoint", storedEntries+" > 0")
		} else {
			p.waitTrue("the progress of the run, or its result", `document.querySelector("#digest") ||
				parseInt(document.querySelector("#run-percent")?.textContent) >= `+strconv.Itoa(share))
		}
		if err := chromedp.FromContext(ctx).Browser.Process().Kill(); err != nil {
			t.Fatal(err)
		}
		t.Logf("kill %d", kill+1)
		awaitEnd(t, profile)
		for _, lock := range []string{"SingletonLock", "SingletonSocket", "SingletonCookie"} {
			_ = os.Remove(filepath.Join(profile, lock))
		}
	}
	p, ctx := start()
	p.waitFor("#kept .chip")
	t.Log(p.textOf("#kept .chip"))
	if p.has("#kept .chip.complete") {
		p.clickElement("#kept .open")
	} else {
		p.dropFiles(trace)
	}
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
	chromedp.Cancel(ctx)
}

// awaitEnd waits until all browser processes that use the given profile have ended. The other
// processes end when they notice that the main process has ended.
func awaitEnd(t *testing.T, profile string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		time.Sleep(time.Second) // this operating system does not list its processes
		return
	}
	for late := time.Now().Add(waitLimit); time.Now().Before(late); time.Sleep(askEvery) {
		processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(processes, func(path string) bool {
			words, _ := os.ReadFile(path) // an error only means that the process has ended
			return bytes.Contains(words, []byte("="+profile))
		}) {
			return
		}
	}
	t.Fatal("a process of the killed browser did not end")
}

// TestTwoTabs checks that, if the same file is opened in two tabs, only one tab analyses it. The
// other tab shows the progress, and continues the analysis when the first tab is closed.
func TestTwoTabs(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 30e6)
	first := openPage(t)
	first.dropFiles(trace)
	first.waitTrue("a checkpoint, and a pause while the other tab loads", `(`+storedEntries+`) > 0 && (document.querySelector("#run-pause:enabled")?.click(), true)`)
	first.waitPaused()

	second := newTab(t, first.server)
	second.openFirstScreen()
	second.waitFor("#kept .chip.interrupted")
	if says := second.textOf("#kept .chip.interrupted"); says != "running in another tab" || second.has("#kept .go-on") {
		t.Errorf("state of the analysis in the list of the second tab = %q, want “running in another tab”", says)
	}
	first.clickElement("#run-pause")
	second.dropFiles(trace)
	second.waitTrue("the second tab to follow the first", `document.querySelector("#run-cancel")?.textContent === "Stop watching"`)
	second.waitTrue("the progress of the other tab", `/^[1-9]/.test(document.querySelector("#run-percent")?.textContent)`)
	t.Log(second.textOf("#note"))
	// The browser keeps the page in its back/forward cache.
	first.do("leave", chromedp.Navigate("about:blank"))
	second.waitTrue("the analysis in this tab", `document.querySelector("#run-cancel")?.textContent === "Cancel and keep"`)
	if got, want := second.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
}

// TestWorkerEndsSilently checks what the page does if a worker ends and the page receives neither a
// message nor an event.
func TestWorkerEndsSilently(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.dropFiles(longTrace(t, 30e6))
	p.waitTrue("a checkpoint", storedEntries+" > 0")
	for !p.inWorker(`self.close(); null`) {
		if len(p.watch.workersOf("worker")) == 0 {
			t.Fatal("there is no worker to terminate")
		}
	}
	p.waitGone("[data-running]")
	t.Log(p.waitProblem())
	p.openFirstScreen()
	p.waitFor("#kept .go-on")
}

// TestOneClickResumes checks that one click resumes an analysis if the browser still has access to
// the dropped file. A headless browser never grants permission to read such a file, so the test
// replaces it with a file for which no permission is needed.
func TestOneClickResumes(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 30e6)
	p := openPage(t)
	p.dropFiles(trace)
	p.waitTrue("a checkpoint", storedEntries+" > 0")
	p.reload()
	p.openFirstScreen()
	p.waitFor("#kept .go-on")
	eval[any](p, `document.body.append(Object.assign(document.createElement("input"), { type: "file", id: "other-file" }))`)
	object := callDevTools(p, runtime.Evaluate, runtime.EvaluateParams{Expression: `document.getElementById("other-file")`})
	callDevTools(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{trace}, ObjectID: object.Result.ObjectID})
	if kept := eval[int](p, replaceHandles); kept != 1 {
		t.Fatalf("stored file handles = %d, want 1, the handle of the dropped file", kept)
	}
	p.clickElement("#kept .go-on")
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
}

// replaceHandles replaces every stored file handle with a handle to a private copy of the file in
// the element #other-file, and returns the number of handles.
const replaceHandles = `(async () => {
	const root = await navigator.storage.getDirectory();
	const copy = await root.getFileHandle("copy", { create: true });
	const out = await copy.createWritable();
	await out.write(document.getElementById("other-file").files[0]);
	await out.close();
	const ask = (request) => new Promise((done, fail) => {
		request.onsuccess = () => done(request.result);
		request.onerror = () => fail(request.error);
	});
	const database = await ask(indexedDB.open("stackglass files"));
	const handles = () => database.transaction("handles", "readwrite").objectStore("handles");
	const keys = await ask(handles().getAllKeys());
	for (const key of keys) await ask(handles().put(copy, key));
	database.close();
	return keys.length;
})()`
