package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The following tests check that TestPolicy would detect violations. The decoys must count
// connections, and the watch must detect faults.

// sendAttempts is a script that tries to reach another server from a page or a worker, in every
// possible way. In each URL, NAME is replaced with the name of the attempt. Each attempt must
// either throw an exception or be blocked by the policy.
const sendAttempts = `async (address) => {
	const tries = {
		fetch: (url) => fetch(url, { mode: "no-cors" }),
		post: (url) => fetch(url, { mode: "no-cors", method: "POST", body: "trace" }),
		request: (url) => { const r = new XMLHttpRequest(); r.open("GET", url, false); r.send(); },
		socket: (url) => new WebSocket(url.replace("http", "ws")),
		events: (url) => new EventSource(url),
	};
	if (self.document) {
		const add = (tag, attributes) => new Promise((done) => {
			const e = Object.assign(document.createElement(tag), attributes);
			e.onload = e.onerror = done;
			document.body.append(e);
			setTimeout(done, 1000); // some ways end without a word
		});
		Object.assign(tries, {
			beacon: (url) => navigator.sendBeacon(url, "trace"),
			image: (url) => add("img", { src: url }),
			script: (url) => add("script", { src: url }),
			style: (url) => add("link", { rel: "stylesheet", href: url }),
			frame: (url) => add("iframe", { src: url }),
			media: (url) => add("video", { src: url }),
			object: (url) => add("object", { data: url }),
			worker: (url) => new Worker(URL.createObjectURL(new Blob(["fetch('" + url + "')"]))),
			form: (url) => { const f = Object.assign(document.createElement("form"), { action: url, method: "post" }); document.body.append(f); f.submit(); },
		});
	}
	for (const [name, attempt] of Object.entries(tries)) {
		try { await attempt(address.replace("NAME", name)); } catch (e) { /* as it should be */ }
	}
	return Object.keys(tries).length;
}`

// TestDecoysCountConnections checks that the decoys count every connection, whether it was opened
// by host name or by IP address.
func TestDecoysCountConnections(t *testing.T) {
	s := needStage(t)
	for _, url := range []string{"http://stackglass.example/control", "http://127.0.0.1:" + strconv.Itoa(s.neighbour.port) + "/control"} {
		stranger, closeTab := chromedp.NewContext(s.ctx)
		_ = chromedp.Do(stranger, chromedp.Navigate(url)) // the navigation returns an error, because the decoy answers with status 204
		closeTab()
	}
	for name, d := range map[string]*decoy{"for all hosts": s.anyHost, "on another port": s.neighbour} {
		if got := fmt.Sprint(d.firstRequests()); !strings.Contains(got, "/control") {
			t.Errorf("the decoy %s received %s, want a request for /control", name, got)
		}
		d.clearRequests()
	}
}

// wantNoRequests fails the test if a decoy has received a request. Connections without data
// are ignored, because the browser itself opens such connections in advance.
func wantNoRequests(t *testing.T, when string) {
	t.Helper()
	for name, d := range map[string]*decoy{"any other host": sharedStage.anyHost, "another port": sharedStage.neighbour} {
		d.removeAllowed(emptyConnection)
		for _, call := range d.firstRequests() {
			t.Errorf("%s: %s received a request: %q", when, name, call)
		}
	}
}

// TestMonitorDetectsFaults checks that the monitoring of pages and workers detects every kind of
// fault. The test causes one fault of each kind.
func TestMonitorDetectsFaults(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.startPaused(func() { p.dropFiles(longTrace(t, 20e6)) })
	p.watch.attached.Wait()
	eval[any](p, `console.error("a word to the console")`)
	eval[any](p, `void setTimeout(() => { throw new Error("an exception") })`)
	eval[any](p, `void fetch("https://stackglass.example/away").catch(() => null)`)
	eval[any](p, `fetch("no-such-file").then(() => null)`)
	for _, ctx := range p.watch.workersOf("worker") {
		ctx, cancel := context.WithTimeout(ctx, waitLimit)
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](`console.error("a word from the worker"); void fetch("https://stackglass.example/workers-away").catch(() => null); null`))
		cancel()
		if err != nil {
			t.Error(err)
		}
	}
	p.clickElement("#run-cancel")
	p.waitFinished()
	for _, want := range []string{
		"page: console.error: \"a word to the console\"", "page: exception: ", "page: console.error: \"policy violated: connect-src",
		"404", "worker: console.error: \"a word from the worker\"", "workers-away",
	} {
		if p.watch.waitFaults(want, 1) == 0 {
			t.Errorf("the watch did not detect the fault %s", want)
		}
	}
	p.watch.allowFault("")
}

// TestInitialTransfer checks how many bytes a first visit loads before an analysis has ended. The
// test adds up all files that the page and its worker need. The sum does not include the demo or
// the files that are fetched later for offline use.
func TestInitialTransfer(t *testing.T) {
	needStage(t)
	const limit = 1_500_000
	between := newCountingProxy(t, serveCommand(t, ":0"), "/sw.js")
	p := newTab(t, between.server)
	p.watch.allowFault("A bad HTTP response code (404) was received when fetching the script.") // the missing file is the service worker's script
	p.openPath("/")
	p.waitReady()
	demo := demos(t)[0]
	p.clickElement("#demo-" + demo.Name)
	p.waitFinished()
	total := 0
	for path, n := range between.bytesByPath() {
		t.Logf("%8d %s", n, path)
		if !strings.HasPrefix(path, "/demos/") {
			total += n
		}
	}
	t.Logf("%8d bytes without the demo, want at most %d", total, limit)
	if total > limit {
		t.Errorf("bytes of a first visit = %d, want at most %d", total, limit)
	}
	if total < limit/3 {
		t.Errorf("bytes of a first visit = %d, want more than the size of the program alone", total)
	}
}
