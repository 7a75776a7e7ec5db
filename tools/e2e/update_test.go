package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"github.com/stackglass/stackglass/site/policy"
)

// TestSiteUpdate checks what happens if the site changes between two visits. An open page must keep
// its version, although the host no longer has the files of this version. A tab that is opened
// after all other tabs have been closed must show the new version, and still contain all kept
// results.
func TestSiteUpdate(t *testing.T) {
	needStage(t)
	site := newChangingProxy(t, serveCommand(t, ":0"))
	p := newTab(t, site.server)
	p.watch.ignoreServiceWorkers = true
	p.openPath("/")
	p.waitReady()
	p.keptOffline()
	demo := demos(t)[0]
	p.clickElement("#demo-" + demo.Name)
	p.waitFinished()
	site.installSecond()

	p.openPath("/")
	p.waitReady()
	p.waitTrue("a new version that is installed and waits", `(await navigator.serviceWorker.getRegistration()).waiting`)
	p.dropFiles(shortTrace(t))
	if got, want := p.waitFinished(), truthOf(t, shortTrace(t)).Digest; got != want {
		t.Errorf("digest while a new version waits = %s, want %s", got, want)
	}
	if got := eval[string](p, siteVersion); got != "" {
		t.Errorf("version of the site = %q while a page of the first version is open, want the first version", got)
	}

	// When the last page with the old version is closed, the old service worker ends.
	next := p.nextVersion()
	callDevTools(p, page.Navigate, page.NavigateParams{URL: "about:blank"})
	next()
	p = newTab(t, site.server)
	p.watch.ignoreServiceWorkers = true
	p.openPath("/")
	p.waitReady()
	if got := eval[string](p, siteVersion); got != "second" {
		t.Errorf("version of the site after all pages of the first version were closed = %q, want second", got)
	}
	p.waitFor(rowSelector(demo.Title) + " .chip.complete")
	if caches := eval[[]string](p, `caches.keys()`); len(caches) != 1 {
		t.Errorf("remaining caches = %q, want 1", caches)
	}
}

// nextVersion finds the service worker that is waiting to become active. It returns a function that
// waits until this worker is active. The browser opens every page in the old version until this
// worker is active.
func (p *tab) nextVersion() (active func()) {
	p.t.Helper()
	waiting, over := make(chan bool, 1), make(chan bool, 1)
	next := "" // identifies the waiting service worker
	if err := chromedp.Listen(p.ctx, func(ev any) {
		updated, ok := ev.(*serviceworker.EventWorkerVersionUpdated)
		if !ok {
			return
		}
		for _, v := range updated.Versions {
			switch {
			case !strings.HasPrefix(v.ScriptURL, p.server.origin+"/"):
			case v.Status == serviceworker.VersionStatusInstalled && next == "":
				next = v.VersionID
				waiting <- true
			case v.Status == serviceworker.VersionStatusActivated && v.VersionID == next:
				next = ""
				over <- true
			}
		}
	}); err != nil {
		p.t.Fatal(err)
	}
	until := func(what string, happens chan bool) {
		p.t.Helper()
		select {
		case <-happens:
		case <-time.After(waitLimit):
			p.t.Fatalf("timeout: %s", what)
		}
	}
	callDevTools(p, serviceworker.Enable, cdp.Empty{})
	until("no new version is waiting", waiting)
	return func() { p.t.Helper(); until("the new version did not become active", over) }
}

// TestUpdateDuringRun checks what happens if the site changes while a page without a service worker
// analyses a trace. The current run and the next run on the same page must end normally, because
// the browser may never fetch the page's files again.
func TestUpdateDuringRun(t *testing.T) {
	needStage(t)
	site := newChangingProxy(t, serveCommand(t, ":0"))
	site.change("/sw.js", nil)
	p := newTab(t, site.server)
	p.watch.allowFault("A bad HTTP response code (404) was received when fetching the script.") // the missing file is the service worker's script
	p.openPath("/")
	p.waitReady()
	trace := longTrace(t, pausableLength)
	p.startPaused(func() { p.dropFiles(trace) })
	site.installSecond()
	p.clickElement("#run-pause")
	for _, next := range []string{"", shortTrace(t)} {
		if next != "" {
			p.dropFiles(next)
			trace = next
			p.waitTrue("the next result", `document.title.startsWith(`+quoteText(filepath.Base(next))+`)`)
		}
		if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
			t.Errorf("digest of %s after the site has changed = %s, want %s", trace, got, want)
		}
	}
	p.openPath("/?") // a different URL, because the browser has cached the old page
	p.waitReady()
	if got := eval[string](p, siteVersion); got != "second" {
		t.Errorf("version of the site on the next visit = %q, want second", got)
	}
}

// TestStoringSiteIsRetried checks that, if a file of the site could not be fetched, the page later
// tries again to store the site.
func TestStoringSiteIsRetried(t *testing.T) {
	needStage(t)
	site := newChangingProxy(t, serveCommand(t, ":0"))
	missing := "/demos/" + demos(t)[0].Name + ".sgt"
	site.change(missing, nil)
	p := newTab(t, site.server)
	p.watch.ignoreServiceWorkers = true
	p.openPath("/")
	p.waitReady()
	for late := time.Now().Add(waitLimit); site.requestCount(missing) == 0; time.Sleep(askEvery) {
		if time.Now().After(late) {
			t.Fatalf("the page never requested %s", missing)
		}
	}
	site.undoChange(missing)
	p.keptOffline()
}

const siteVersion = `getComputedStyle(document.documentElement).getPropertyValue("--site-version").trim()`

// A changingProxy is a proxy between the browser and a server. The proxy answers some requests with
// different content.
type changingProxy struct {
	server *server // the address of the proxy, to which the browser connects
	t      *testing.T
	behind string

	mu              sync.Mutex
	replacedContent map[string][]byte // the new content for each path, or nil if the proxy answers that the file does not exist
	requests        map[string]int    // number of requests for each path
}

func newChangingProxy(t *testing.T, behind *server) *changingProxy {
	t.Helper()
	to, err := url.Parse(behind.origin)
	if err != nil {
		t.Fatal(err)
	}
	c := &changingProxy{t: t, behind: behind.origin, replacedContent: map[string][]byte{}, requests: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.requests[r.URL.Path]++
		content, ok := c.replacedContent[r.URL.Path]
		c.mu.Unlock()
		if !ok {
			proxy.ServeHTTP(w, r)
			return
		}
		if content == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", map[string]string{".css": "text/css", ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", "": "text/html"}[path.Ext(r.URL.Path)])
		w.Header().Set("Cache-Control", policy.Cache(strings.TrimPrefix(r.URL.Path, "/")))
		w.Write(content)
	}))
	t.Cleanup(front.Close)
	c.server = &server{origin: front.URL, address: strings.TrimPrefix(front.URL, "http://")}
	return c
}

func (c *changingProxy) change(path string, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replacedContent[path] = content
}

// undoChange undoes a change.
func (c *changingProxy) undoChange(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.replacedContent, path)
}

// requestCount returns the number of requests for a path.
func (c *changingProxy) requestCount(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[path]
}

// installSecond replaces the first version of the site with a second version. Every script,
// style sheet and program has new content and a new name, and the old names no longer exist.
func (c *changingProxy) installSecond() {
	c.t.Helper()
	index, list := c.contentOf("/"), string(c.contentOf("/precache.js"))
	names := regexp.MustCompile(`assets/[^"]+`).FindAllString(list, -1)
	if len(names) < 10 {
		c.t.Fatalf("unknown format of precache.js: %s", list)
	}
	entry := func(name string, content []byte) string {
		sum := sha256.Sum256(content)
		return `"` + name + `","` + hex.EncodeToString(sum[:8]) + `"`
	}
	list = strings.ReplaceAll(list, `", "`, `","`)
	before := entry("index.html", index)
	for _, name := range names {
		content := c.contentOf("/" + name)
		second := append(bytes.Clone(content), secondVersionSuffix[path.Ext(name)]...)
		renamed := regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllStringFunc(name, func(hash string) string { return hash[8:] + hash[:8] })
		index = bytes.ReplaceAll(index, []byte(path.Base(name)), []byte(path.Base(renamed)))
		list = strings.ReplaceAll(list, entry(name, content), entry(renamed, second))
		c.change("/"+name, nil)
		c.change("/"+renamed, second)
	}
	list = strings.ReplaceAll(list, before, entry("index.html", index))
	list = regexp.MustCompile(`(stackglassVersion ?= ?")[0-9a-f]+`).ReplaceAllString(list, "${1}0123456789abcdef")
	c.change("/", index)
	c.change("/index.html", index)
	c.change("/precache.js", []byte(list))
}

// secondVersionSuffix contains, for each file extension, the text that is appended to a file to make its
// second version. For a WebAssembly program, this text is a section that browsers ignore.
var secondVersionSuffix = map[string]string{".css": "\n:root { --site-version: second; }\n", ".js": "\n// second\n", ".wasm": "\x00\x07\x06second"}

// contentOf returns the original content of a path, from the server behind the proxy.
func (c *changingProxy) contentOf(path string) []byte {
	c.t.Helper()
	answer, err := http.Get(c.behind + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: status %d, %v", path, answer.StatusCode, err)
	}
	return content
}
