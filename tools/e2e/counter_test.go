package e2e

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
)

// counter is a proxy between the browser and a server. It counts the bytes of the responses,
// including the headers, with the bodies as compressed.
type counter struct {
	server *server // the server with the address of the proxy, as the browser sees it

	mu    sync.Mutex
	bytes map[string]int // number of bytes by path
}

// newCounter starts a proxy for a server. The proxy runs until the test ends. Paths that match the
// pattern are answered with 404.
func newCounter(t *testing.T, behind *server, hidden string) *counter {
	t.Helper()
	to, err := url.Parse(behind.origin)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{bytes: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(answer *http.Response) error {
		asked := answer.Request.URL.Path
		head, err := httputil.DumpResponse(answer, false)
		if err != nil {
			return err
		}
		c.add(asked, len(head))
		answer.Body = &countedBody{ReadCloser: answer.Body, add: func(n int) { c.add(asked, n) }}
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone, err := path.Match(hidden, r.URL.Path); gone || err != nil {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	c.server = &server{origin: front.URL, address: strings.TrimPrefix(front.URL, "http://")}
	return c
}

func (c *counter) add(path string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes[path] += n
}

// passed returns the bytes transferred so far, by path.
func (c *counter) passed() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.bytes)
}

type countedBody struct {
	io.ReadCloser
	add func(n int)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.add(n)
	return n, err
}
