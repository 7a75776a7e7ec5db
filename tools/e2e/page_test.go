package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

const (
	// waitLimit is the time limit for each wait. Even on a slow machine, the conditions of a
	// passing test become true much sooner, so the limit only ends tests that would otherwise never
	// end.
	waitLimit = 10 * time.Minute
	askEvery  = 50 * time.Millisecond
)

// A tab is a browser tab that shows the page.
type tab struct {
	t      *testing.T
	ctx    context.Context
	server *server
	watch  *watch
}

// openPage opens the page in a tab, as for a returning visitor who has no kept analyses. openPage
// uses the origin that most tests share, for which the browser has already stored the site and its
// compiled programs. openPage deletes the data that earlier tests stored for this origin.
func openPage(t *testing.T) *tab {
	t.Helper()
	s := needStage(t)
	if s.visited == nil {
		var err error
		if s.visited, err = startServer(s.program, ":0"); err != nil {
			t.Fatal(err)
		}
		first := newTab(t, s.visited)
		first.openFirstScreen()
		first.keptOffline()
		first.closeTab()
	}
	p := newTab(t, s.visited)
	p.waitAlone()
	callDevTools(p, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: p.server.origin, StorageTypes: "indexeddb,local_storage,file_systems"})
	p.openFirstScreen()
	return p
}

// firstVisit serves the page at a new origin and opens it in a tab.
func firstVisit(t *testing.T) *tab {
	t.Helper()
	p := newTab(t, serveCommand(t, ":0"))
	p.openFirstScreen()
	return p
}

// keptOffline waits until the service worker has stored the site.
func (p *tab) keptOffline() {
	p.t.Helper()
	p.waitTrue("the copy of the site for offline use", `document.getElementById("offline-state").textContent === `+quoteText(kept))
}

// closeTab closes the tab.
func (p *tab) closeTab() {
	p.t.Helper()
	if err := chromedp.Cancel(p.ctx); err != nil {
		p.t.Fatal("cannot close the tab: ", err)
	}
}

// waitAlone waits until no other tab shows a page from the same server, because a tab may store
// data while it is being closed.
func (p *tab) waitAlone() {
	p.t.Helper()
	for late := time.Now().Add(waitLimit); ; time.Sleep(askEvery) {
		targets, err := chromedp.Targets(p.ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		if !slices.ContainsFunc(targets, func(at *target.Info) bool {
			return (at.Type == "page" || at.Type == "worker") && strings.HasPrefix(at.URL, p.server.origin+"/")
		}) {
			return
		}
		if time.Now().After(late) {
			p.t.Fatal("a tab of an earlier test is still open")
		}
	}
}

// newTab opens an empty tab for the page of a server.
func newTab(t *testing.T, s *server) *tab {
	t.Helper()
	return newTabIn(t, needStage(t).ctx, s)
}

// newTabIn is like newTab, but opens the tab in the browser of the given context.
func newTabIn(t *testing.T, browser context.Context, s *server) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal("cannot open a tab: ", err)
	}
	p := &tab{t: t, ctx: ctx, server: s}
	var err error
	if p.watch, err = watchPage(ctx, s, closeTab); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.logOnFailure()
		p.watch.failOnFaults(t)
		wantNoRequests(t, "at the end of "+t.Name())
	})
	// Report policy violations on the console, because the browser does not report all of them
	// there.
	callDevTools(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `addEventListener("securitypolicyviolation", (e) => console.error("policy violated: " + e.violatedDirective + " " + e.blockedURI));`,
	})
	forgetEarlier(p)
	callDevTools(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return p
}

// originOwners contains, for each origin, the last server from which a tab opened the page.
var originOwners = map[string]*server{}

// forgetEarlier makes the browser delete the data that it stored for an earlier server with the
// same address.
func forgetEarlier(p *tab) {
	p.t.Helper()
	before := originOwners[p.server.origin]
	if originOwners[p.server.origin] = p.server; before != nil && before != p.server {
		callDevTools(p, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: p.server.origin, StorageTypes: "all"})
	}
}

// callDevTools runs a DevTools protocol command on the tab.
func callDevTools[P, R any](p *tab, cmd cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	r, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		p.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return r
}

func (p *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// openPath opens the page with the given URL path.
func (p *tab) openPath(path string) {
	p.t.Helper()
	home := cmp.Or(p.server.home, "/")
	p.do("open "+path, chromedp.Navigate(p.server.origin+home+strings.TrimPrefix(path, "/")))
}

// waitReady waits until the page's program is running.
func (p *tab) waitReady() {
	p.t.Helper()
	p.waitTrue("the program runs", `document.documentElement.dataset.ready === "1"`)
}

func (p *tab) reload() {
	p.t.Helper()
	p.do("reload", chromedp.Reload())
	p.waitReady()
}

// eval evaluates an expression in the page. If the value is a promise, eval waits for its result.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := tryEval[T](p, expression)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func tryEval[T any](p *tab, expression string) (v T, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	yes := true
	r, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()", AwaitPromise: &yes, ReturnByValue: &yes,
	})
	if err != nil {
		return v, err
	}
	if d := r.ExceptionDetails; d != nil {
		if d.Exception != nil {
			return v, fmt.Errorf("%s %s", d.Text, d.Exception.Description)
		}
		return v, fmt.Errorf("%s", d.Text)
	}
	var text string
	if err := json.Unmarshal(r.Result.Value, &text); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(text), &v)
}

// waitTrue waits until an expression is true. If the page is still loading and cannot answer,
// waitTrue evaluates the expression again.
func (p *tab) waitTrue(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	ask := time.NewTicker(askEvery)
	defer ask.Stop()
	var last error
	for {
		var yes bool
		if yes, last = tryEval[bool](p, "!!("+expression+")"); last == nil && yes {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("timeout while waiting for: %s\n%s\nlast error: %v\n%s", what, expression, last, p.pageText())
		case <-ask.C:
		}
	}
}

// textOf returns the text of an element, or "" if the element does not exist. Each run
// of white space is replaced with one space.
func (p *tab) textOf(selector string) string {
	p.t.Helper()
	return eval[string](p, `(document.querySelector(`+quoteText(selector)+`)?.textContent ?? "").replace(/\s+/g, " ").trim()`)
}

func (p *tab) has(selector string) bool {
	p.t.Helper()
	return eval[bool](p, `document.querySelector(`+quoteText(selector)+`) !== null`)
}

// waitFor waits until the page contains an element.
func (p *tab) waitFor(selector string) {
	p.t.Helper()
	p.waitTrue(selector, `document.querySelector(`+quoteText(selector)+`)`)
}

// waitGone waits until the page no longer contains an element.
func (p *tab) waitGone(selector string) {
	p.t.Helper()
	p.waitTrue("the disappearance of "+selector, `!document.querySelector(`+quoteText(selector)+`)`)
}

// clickElement clicks on an element with the mouse. If the element moves after its position has
// been read, the click hits a different element. clickElement then tries again, as a person would.
// A click on an element that covers the given element is accepted, because such covers are
// intentional.
func (p *tab) clickElement(selector string) {
	p.t.Helper()
	p.waitFor(selector)
	for range 3 {
		eval[bool](p, `(() => {
			window.clicked = false;
			const aim = document.querySelector(`+quoteText(selector)+`);
			if (!aim) return false;
			aim.scrollIntoViewIfNeeded();
			const box = aim.getBoundingClientRect();
			const over = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
			addEventListener("click", (e) => { window.clicked = aim.contains(e.target) || e.target === over }, { capture: true, once: true });
			return true;
		})()`)
		p.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
		// If the click opened a different page, this expression cannot be evaluated.
		if clicked, err := tryEval[bool](p, `window.clicked !== false`); err != nil || clicked {
			return
		}
		p.t.Logf("the click missed %s", selector)
	}
}

// pressKeys presses keys on the keyboard.
func (p *tab) pressKeys(keys string) {
	p.t.Helper()
	p.do("press "+strconv.Quote(keys), chromedp.KeyEvent(keys))
}

// dropFiles drags files onto the drop zone and drops them.
func (p *tab) dropFiles(paths ...string) {
	p.t.Helper()
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: paths, DragOperationsMask: 1}
	at := eval[[2]float64](p, `(() => {
		const drop = document.getElementById("drop");
		const box = (drop.checkVisibility() ? drop : document.getElementById("main")).getBoundingClientRect();
		return [box.left + box.width / 2, Math.max(1, Math.min(box.top + box.height / 2, innerHeight - 1))];
	})()`)
	for _, kind := range []input.DispatchDragEventType{"dragEnter", "dragOver", "drop"} {
		callDevTools(p, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at[0], Y: at[1], Data: data})
	}
}

// pickFiles selects files in the file picker.
func (p *tab) pickFiles(paths ...string) {
	p.t.Helper()
	object := callDevTools(p, runtime.Evaluate, runtime.EvaluateParams{Expression: `document.getElementById("file")`})
	callDevTools(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: object.Result.ObjectID})
}

// pauseSoon is a script that pauses the next run as soon as possible.
const pauseSoon = `(() => {
	const look = new MutationObserver(() => {
		const pause = document.querySelector("#run-pause:enabled");
		if (!pause || !document.querySelector(".chip.growing")) return;
		look.disconnect();
		pause.click();
	});
	look.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
	return true;
})()`

// startPaused starts a run and pauses it. A script in the page pauses the run as soon as
// possible, so that even a short run on a slow machine cannot end before it is paused.
func (p *tab) startPaused(start func()) {
	p.t.Helper()
	eval[bool](p, pauseSoon)
	start()
	p.waitPaused()
}

// waitPaused waits until the run is paused.
func (p *tab) waitPaused() {
	p.t.Helper()
	p.waitTrue("the paused run", `document.querySelector("#run-pause").textContent === "Resume"`)
}

// waitFinished waits until the run ends and the page shows its result, and returns the result's
// digest. The method cannot distinguish a new result from a result that the page already shows.
// Before calling waitFinished, a test must therefore navigate away from the previous result, or wait until the
// title changes.
func (p *tab) waitFinished() string {
	p.t.Helper()
	p.waitTrue("a result with a digest, and no run",
		`!document.querySelector("[data-running]") && document.querySelector("#digest")?.dataset.digest`)
	return p.shownDigest()
}

// shownDigest returns the digest of the result that the page shows.
func (p *tab) shownDigest() string {
	p.t.Helper()
	return eval[string](p, `document.getElementById("digest").dataset.digest`)
}

// waitProblem waits for an error message and returns it.
func (p *tab) waitProblem() string {
	p.t.Helper()
	p.waitFor("#problem")
	return p.textOf("#problem span")
}

// pageText returns the page's text for use in error messages.
func (p *tab) pageText() string {
	text, err := tryEval[string](p, `location.href + "\n" + document.body.innerText.slice(0, 2500)`)
	if err != nil {
		return err.Error()
	}
	return "the page says:\n" + text
}

// logOnFailure logs the page's text if the test has failed.
func (p *tab) logOnFailure() {
	if !p.t.Failed() {
		return
	}
	if dir := os.Getenv("STACKGLASS_SHOTS"); dir != "" {
		ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
		defer cancel()
		if shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
			os.WriteFile(filepath.Join(dir, "failed-"+strings.ReplaceAll(p.t.Name(), "/", "-")+".png"), shot, 0o644)
		}
	}
	p.t.Log(p.pageText())
}

// quoteText quotes a string for use in JavaScript and in selectors.
func quoteText(s string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
