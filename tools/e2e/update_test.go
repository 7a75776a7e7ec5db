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
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// TestUpdate changes the site between two visits: a page keeps its version, a tab
// that is opened when all others are closed has the new one, and what was kept
// stays.
func TestUpdate(t *testing.T) {
	needStage(t)
	site := newChanging(t, serve(t, ":0"))
	p := newTab(t, site.server)
	p.watch.unwatched = true
	p.visit("/")
	p.ready()
	p.wait("the site is kept for offline use", `document.getElementById("offline-state").textContent === "It is kept now."`)
	demo := demos(t)[0]
	p.click("#demo-" + demo.Name)
	p.finished()

	style := append(site.get("/app.css"), "\n:root { --site-version: second; }\n"...)
	sum := sha256.Sum256(style)
	list := site.get("/precache.js")
	changed := regexp.MustCompile(`("app.css", ?")[0-9a-f]+`).ReplaceAll(list, []byte("${1}"+hex.EncodeToString(sum[:8])))
	changed = regexp.MustCompile(`(stackglassVersion ?= ?")[0-9a-f]+`).ReplaceAll(changed, []byte("${1}0123456789abcdef"))
	if bytes.Equal(list, changed) {
		t.Fatalf("precache.js is not what it was: %s", list)
	}
	site.change("/app.css", style)
	site.change("/precache.js", changed)

	const version = `getComputedStyle(document.documentElement).getPropertyValue("--site-version").trim()`
	p.visit("/")
	p.ready()
	p.wait("the new version is there, and waits", `(await navigator.serviceWorker.getRegistration()).waiting`)
	p.drop(realTrace(t))
	if got, want := p.finished(), truthOf(t, realTrace(t)).Digest; got != want {
		t.Errorf("while a new version waits: digest %s, want %s", got, want)
	}
	if got := eval[string](p, version); got != "" {
		t.Errorf("the %s version took over under a running page", got)
	}

	// With the last page of the old version its worker goes.
	call(p, page.Navigate, page.NavigateParams{URL: "about:blank"})
	p = newTab(t, site.server)
	p.watch.unwatched = true
	p.visit("/")
	p.ready()
	if got := eval[string](p, version); got != "second" {
		t.Errorf("the version %q after all pages of the first were closed, want second", got)
	}
	p.waitFor(row(demo.Title) + " .chip.complete")
	if caches := eval[[]string](p, `caches.keys()`); len(caches) != 1 {
		t.Errorf("the caches %q are left", caches)
	}
}

// changing stands between the browser and a server, and answers some requests
// with other content.
type changing struct {
	server *server // as the browser sees it
	t      *testing.T
	behind string

	mu    sync.Mutex
	other map[string][]byte // by path
}

func newChanging(t *testing.T, behind *server) *changing {
	t.Helper()
	to, err := url.Parse(behind.origin)
	if err != nil {
		t.Fatal(err)
	}
	c := &changing{t: t, behind: behind.origin, other: map[string][]byte{}}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		content, ok := c.other[r.URL.Path]
		c.mu.Unlock()
		if !ok {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", map[string]string{".css": "text/css", ".js": "text/javascript"}[path.Ext(r.URL.Path)])
		w.Header().Set("Cache-Control", "no-cache")
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

// get gives what the server behind has.
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
