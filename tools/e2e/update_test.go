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

// TestUpdate checks what happens if the site changes between two visits. A page that is open must
// keep its version, although the host no longer has the files of this version. If a tab is opened
// after all other tabs are closed, it must show the new version and still have all kept results.
func TestUpdate(t *testing.T) {
	needStage(t)
	site := newChanging(t, serve(t, ":0"))
	p := newTab(t, site.server)
	p.watch.unwatched = true
	p.visit("/")
	p.ready()
	p.keptOffline()
	demo := demos(t)[0]
	p.click("#demo-" + demo.Name)
	p.finished()
	site.update()

	p.visit("/")
	p.ready()
	p.wait("an installed new version that waits", `(await navigator.serviceWorker.getRegistration()).waiting`)
	p.drop(beginning(t))
	if got, want := p.finished(), truthOf(t, beginning(t)).Digest; got != want {
		t.Errorf("digest while a new version waits = %s, want %s", got, want)
	}
	if got := eval[string](p, siteVersion); got != "" {
		t.Errorf("version = %q while a page of the first version is open, want the first version", got)
	}

	// When the last page with the old version is closed, the old service worker ends.
	next := p.nextVersion()
	call(p, page.Navigate, page.NavigateParams{URL: "about:blank"})
	next()
	p = newTab(t, site.server)
	p.watch.unwatched = true
	p.visit("/")
	p.ready()
	if got := eval[string](p, siteVersion); got != "second" {
		t.Errorf("version after all pages of the first version were closed = %q, want second", got)
	}
	p.waitFor(row(demo.Title) + " .chip.complete")
	if caches := eval[[]string](p, `caches.keys()`); len(caches) != 1 {
		t.Errorf("remaining caches = %q, want 1", caches)
	}
}

// nextVersion finds the service worker that is waiting to become active. It returns a function that
// waits until this worker is active. Until then, every page that is opened still has the old
// version.
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
		case <-time.After(patience):
			p.t.Fatalf("timeout: %s", what)
		}
	}
	call(p, serviceworker.Enable, cdp.Empty{})
	until("a version that waits", waiting)
	return func() { p.t.Helper(); until("it takes over", over) }
}

// TestUpdateDuringRun checks what happens if the site changes while a page without a service worker
// analyses a trace. This run and the next run on the same page must end normally, because the
// browser may never fetch the page's files again.
func TestUpdateDuringRun(t *testing.T) {
	needStage(t)
	site := newChanging(t, serve(t, ":0"))
	site.change("/sw.js", nil)
	p := newTab(t, site.server)
	p.watch.allow("A bad HTTP response code (404) was received when fetching the script.") // for the service worker's script
	p.visit("/")
	p.ready()
	trace := longTrace(t, pausable)
	p.pausing(func() { p.drop(trace) })
	site.update()
	p.click("#run-pause")
	for _, next := range []string{"", beginning(t)} {
		if next != "" {
			p.drop(next)
			trace = next
			p.wait("the next result", `document.title.startsWith(`+quote(filepath.Base(next))+`)`)
		}
		if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
			t.Errorf("digest of %s under a newer version = %s, want %s", trace, got, want)
		}
	}
	p.visit("/?") // a different URL, because the browser has cached the old page
	p.ready()
	if got := eval[string](p, siteVersion); got != "second" {
		t.Errorf("version on the next visit = %q, want second", got)
	}
}

// TestStoresSiteLater checks that, if a file of the site could not be fetched, the page later tries
// again to store the site.
func TestStoresSiteLater(t *testing.T) {
	needStage(t)
	site := newChanging(t, serve(t, ":0"))
	missing := "/demos/" + demos(t)[0].Name + ".sgt"
	site.change(missing, nil)
	p := newTab(t, site.server)
	p.watch.unwatched = true
	p.visit("/")
	p.ready()
	for late := time.Now().Add(patience); site.requests(missing) == 0; time.Sleep(askEvery) {
		if time.Now().After(late) {
			t.Fatalf("the page never requested %s", missing)
		}
	}
	site.restore(missing)
	p.keptOffline()
}

const siteVersion = `getComputedStyle(document.documentElement).getPropertyValue("--site-version").trim()`

// A changing proxy is between the browser and a server, and answers some requests with different
// content.
type changing struct {
	server *server // the server as the browser sees it, with the proxy's address
	t      *testing.T
	behind string

	mu    sync.Mutex
	other map[string][]byte // content for each path, or nil if the file is missing
	asked map[string]int    // number of requests for each path
}

func newChanging(t *testing.T, behind *server) *changing {
	t.Helper()
	to, err := url.Parse(behind.origin)
	if err != nil {
		t.Fatal(err)
	}
	c := &changing{t: t, behind: behind.origin, other: map[string][]byte{}, asked: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.asked[r.URL.Path]++
		content, ok := c.other[r.URL.Path]
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

func (c *changing) change(path string, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.other[path] = content
}

// The method "restore" undoes a change.
func (c *changing) restore(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.other, path)
}

// The method requests returns the number of requests for a path.
func (c *changing) requests(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[path]
}

// The method "update" replaces the first version of the site with a second version. Every script,
// style sheet and program has new content and a new name, and the old names no longer exist.
func (c *changing) update() {
	c.t.Helper()
	index, list := c.get("/"), string(c.get("/precache.js"))
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
		content := c.get("/" + name)
		second := append(bytes.Clone(content), secondOf[path.Ext(name)]...)
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

// secondOf contains, for each file extension, the text that is appended to a file to make its
// second version. For a WebAssembly program, this text is a section that browsers ignore.
var secondOf = map[string]string{".css": "\n:root { --site-version: second; }\n", ".js": "\n// second\n", ".wasm": "\x00\x07\x06second"}

// The method "get" returns the content of a path after the update.
func (c *changing) get(path string) []byte {
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
