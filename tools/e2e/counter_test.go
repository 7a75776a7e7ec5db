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

// A countingProxy is a proxy between the browser and a server. The proxy counts the bytes of the
// responses, including the headers. Compressed bodies are counted by their compressed size.
type countingProxy struct {
	server *server // the address of the proxy, to which the browser connects

	mu    sync.Mutex
	bytes map[string]int // number of transferred bytes for each path
}

// newCountingProxy starts a proxy for a server. The proxy runs until the test ends. Requests for paths
// that match the pattern are answered with status 404.
func newCountingProxy(t *testing.T, behind *server, hidden string) *countingProxy {
	t.Helper()
	to, err := url.Parse(behind.origin)
	if err != nil {
		t.Fatal(err)
	}
	c := &countingProxy{bytes: map[string]int{}}
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

func (c *countingProxy) add(path string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes[path] += n
}

// bytesByPath returns how many bytes have been transferred so far for each path.
func (c *countingProxy) bytesByPath() map[string]int {
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
