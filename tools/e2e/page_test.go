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
	// patience is the time limit for waiting. All awaited conditions become true even on a slow
	// machine, so the limit only ends tests that would otherwise never end.
	patience = 10 * time.Minute
	askEvery = 50 * time.Millisecond
)

// tab is a browser tab that shows the page.
type tab struct {
	t      *testing.T
	ctx    context.Context
	server *server
	watch  *watch
}

// openPage opens the page in a tab as it appears to a returning visitor who has no kept analyses.
// openPage uses the origin that most tests share, for which the browser has stored the site and its
// compiled programs, and deletes the data that earlier tests stored there.
func openPage(t *testing.T) *tab {
	t.Helper()
	s := needStage(t)
	if s.visited == nil {
		var err error
		if s.visited, err = startServer(s.program, ":0"); err != nil {
			t.Fatal(err)
		}
		first := newTab(t, s.visited)
		first.open()
		first.keptOffline()
		first.close()
	}
	p := newTab(t, s.visited)
	p.alone()
	call(p, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: p.server.origin, StorageTypes: "indexeddb,local_storage,file_systems"})
	p.open()
	return p
}

// firstVisit serves the page at a new origin and opens it in a tab.
func firstVisit(t *testing.T) *tab {
	t.Helper()
	p := newTab(t, serve(t, ":0"))
	p.open()
	return p
}

// keptOffline waits until the service worker has stored the site.
func (p *tab) keptOffline() {
	p.t.Helper()
	p.wait("the copy of the site for offline use", `document.getElementById("offline-state").textContent === `+quote(kept))
}

// close closes the tab.
func (p *tab) close() {
	p.t.Helper()
	if err := chromedp.Cancel(p.ctx); err != nil {
		p.t.Fatal("close a tab: ", err)
	}
}

// alone waits until no other tab shows a page of the server. A tab that is being closed may still
// store data.
func (p *tab) alone() {
	p.t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(askEvery) {
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

// newTab opens an empty tab that will show the server's page.
func newTab(t *testing.T, s *server) *tab {
	t.Helper()
	return newTabIn(t, needStage(t).ctx, s)
}

// newTabIn does the same as newTab in the browser of a given context.
func newTabIn(t *testing.T, browser context.Context, s *server) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal("open a tab: ", err)
	}
	p := &tab{t: t, ctx: ctx, server: s}
	var err error
	if p.watch, err = watchPage(ctx, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.explain()
		p.watch.check(t)
		quiet(t, "by the end of "+t.Name())
	})
	// Report policy violations on the console, because the browser does not report all of them
	// there.
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `addEventListener("securitypolicyviolation", (e) => console.error("policy violated: " + e.violatedDirective + " " + e.blockedURI));`,
	})
	forgetEarlier(p)
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return p
}

// owners contains, for each origin, the last server whose page a tab has shown.
var owners = map[string]*server{}

// forgetEarlier makes the browser delete the data of an earlier server that happened to have the
// same address.
func forgetEarlier(p *tab) {
	p.t.Helper()
	before := owners[p.server.origin]
	if owners[p.server.origin] = p.server; before != nil && before != p.server {
		call(p, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: p.server.origin, StorageTypes: "all"})
	}
}

// call runs a command of the DevTools protocol on the tab.
func call[P, R any](p *tab, cmd cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	r, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		p.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return r
}

func (p *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// visit opens the page; path is the path of its URL.
func (p *tab) visit(path string) {
	p.t.Helper()
	home := cmp.Or(p.server.home, "/")
	p.do("open "+path, chromedp.Navigate(p.server.origin+home+strings.TrimPrefix(path, "/")))
}

// ready waits until the program runs.
func (p *tab) ready() {
	p.t.Helper()
	p.wait("the program runs", `document.documentElement.dataset.ready === "1"`)
}

func (p *tab) reload() {
	p.t.Helper()
	p.do("reload", chromedp.Reload())
	p.ready()
}

// eval evaluates an expression, which may be a promise, in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := tryEval[T](p, expression)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func tryEval[T any](p *tab, expression string) (v T, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
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

// wait waits until an expression is true. It evaluates the expression again if a page that is still
// loading cannot answer.
func (p *tab) wait(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
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
			p.t.Fatalf("timeout while waiting for: %s\n%s\nlast error: %v\n%s", what, expression, last, p.screen())
		case <-ask.C:
		}
	}
}

// text returns the text of an element, with white space replaced by single spaces, or "" if there
// is no element.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return eval[string](p, `(document.querySelector(`+quote(selector)+`)?.textContent ?? "").replace(/\s+/g, " ").trim()`)
}

func (p *tab) has(selector string) bool {
	p.t.Helper()
	return eval[bool](p, `document.querySelector(`+quote(selector)+`) !== null`)
}

// waitFor waits until an element exists.
func (p *tab) waitFor(selector string) {
	p.t.Helper()
	p.wait(selector, `document.querySelector(`+quote(selector)+`)`)
}

// waitGone waits until no such element exists.
func (p *tab) waitGone(selector string) {
	p.t.Helper()
	p.wait("the disappearance of "+selector, `!document.querySelector(`+quote(selector)+`)`)
}

// click clicks the element with the mouse. If something appears and moves the element after its
// position has been read, the click hits a different element, and click tries again, as a person
// would. A click on an element that covers the given element counts, because such elements are
// intentional.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.waitFor(selector)
	for range 3 {
		eval[bool](p, `(() => {
			window.clicked = false;
			const aim = document.querySelector(`+quote(selector)+`);
			if (!aim) return false;
			aim.scrollIntoViewIfNeeded();
			const box = aim.getBoundingClientRect();
			const over = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
			addEventListener("click", (e) => { window.clicked = aim.contains(e.target) || e.target === over }, { capture: true, once: true });
			return true;
		})()`)
		p.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
		// If the click has led to a different page, the expression cannot be evaluated.
		if clicked, err := tryEval[bool](p, `window.clicked !== false`); err != nil || clicked {
			return
		}
		p.t.Logf("the click missed %s", selector)
	}
}

// press presses keys as on a keyboard.
func (p *tab) press(keys string) {
	p.t.Helper()
	p.do("press "+strconv.Quote(keys), chromedp.KeyEvent(keys))
}

// drop drags files onto the drop zone and drops them.
func (p *tab) drop(paths ...string) {
	p.t.Helper()
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: paths, DragOperationsMask: 1}
	at := eval[[2]float64](p, `(() => {
		const drop = document.getElementById("drop");
		const box = (drop.checkVisibility() ? drop : document.getElementById("main")).getBoundingClientRect();
		return [box.left + box.width / 2, Math.max(1, Math.min(box.top + box.height / 2, innerHeight - 1))];
	})()`)
	for _, kind := range []input.DispatchDragEventType{"dragEnter", "dragOver", "drop"} {
		call(p, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at[0], Y: at[1], Data: data})
	}
}

// pick chooses files in the file picker.
func (p *tab) pick(paths ...string) {
	p.t.Helper()
	object := call(p, runtime.Evaluate, runtime.EvaluateParams{Expression: `document.getElementById("file")`})
	call(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: object.Result.ObjectID})
}

// pausing starts a run and pauses it. A script in the page pauses the run as soon as possible, so
// that the run cannot end first, even on a slow machine or if the run is short.
func (p *tab) pausing(start func()) {
	p.t.Helper()
	eval[bool](p, `(() => {
		const look = new MutationObserver(() => {
			const pause = document.querySelector("#run-pause:enabled");
			if (!pause || !document.querySelector(".chip.growing")) return;
			look.disconnect();
			pause.click();
		});
		look.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
		return true;
	})()`)
	start()
	p.paused()
}

// paused waits until the run is paused.
func (p *tab) paused() {
	p.t.Helper()
	p.wait("paused", `document.querySelector("#run-pause").textContent === "Resume"`)
}

// finished waits for the end of the run and for its result, and returns the digest. It cannot
// distinguish this result from a result that was in view before. Leave the old result first, or
// wait until the title changes.
func (p *tab) finished() string {
	p.t.Helper()
	p.wait("a result with a digest, and no run",
		`!document.querySelector("[data-running]") && document.querySelector("#digest")?.dataset.digest`)
	return p.digest()
}

// digest returns the digest of the result in view.
func (p *tab) digest() string {
	p.t.Helper()
	return eval[string](p, `document.getElementById("digest").dataset.digest`)
}

// problem waits for an error message, and returns it.
func (p *tab) problem() string {
	p.t.Helper()
	p.waitFor("#problem")
	return p.text("#problem span")
}

// screen returns the text of the page, for use in error messages.
func (p *tab) screen() string {
	text, err := tryEval[string](p, `location.href + "\n" + document.body.innerText.slice(0, 2500)`)
	if err != nil {
		return err.Error()
	}
	return "the page says:\n" + text
}

// explain logs the text of the page if the test has failed.
func (p *tab) explain() {
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
	p.t.Log(p.screen())
}

// quote quotes a string for JavaScript and for selectors.
func quote(s string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
