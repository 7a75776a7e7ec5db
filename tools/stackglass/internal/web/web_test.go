package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stackglass/stackglass/site/policy"
)

func answer(t *testing.T, method, target string, head map[string]string) *http.Response {
	t.Helper()
	h, err := Handler(fstest.MapFS{
		"index.html":    {Data: []byte("<!doctype html>")},
		"index.html.br": {Data: []byte("packed")},
		"index.html.gz": {Data: []byte("zipped")},
		"gz.txt":        {Data: []byte("text")},
		"gz.txt.gz":     {Data: []byte("zipped text")},
		"assets/a.wasm": {Data: []byte("\x00asm")},
		"demos/a.sgt":   {Data: []byte("0123456789")},
		".gitkeep":      {},
		"_headers":      {Data: []byte("x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, target, nil)
	for k, v := range head {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFiles(t *testing.T) {
	for _, c := range []struct {
		path, accept             string
		status                   int
		body, encoding, mimeType string
	}{
		{"/", "", 200, "<!doctype html>", "", "text/html; charset=utf-8"},
		{"/", "gzip, deflate, br, zstd", 200, "packed", "br", "text/html; charset=utf-8"},
		{"/", "gzip, br;q=0", 200, "zipped", "gzip", "text/html; charset=utf-8"},
		{"/index.html", "br;q=0.5", 200, "packed", "br", "text/html; charset=utf-8"},
		{"/index.html", "gzip", 200, "zipped", "gzip", "text/html; charset=utf-8"},
		{"/gz.txt", "br, gzip", 200, "zipped text", "gzip", "text/plain; charset=utf-8"},
		{"/gz.txt", "gzip;q=0", 200, "text", "", "text/plain; charset=utf-8"},
		{"/assets/a.wasm", "br", 200, "\x00asm", "", "application/wasm"},
		{"/demos/a.sgt", "br", 200, "0123456789", "", "application/octet-stream"},
		{"/.gitkeep", "", 404, "", "", ""},
		{"/_headers", "", 404, "", "", ""},
		{"/index.html.br", "", 404, "", "", ""},
		{"/index.html.gz", "", 404, "", "", ""},
		{"/../web.go", "", 404, "", "", ""},
		{"/none", "", 404, "", "", ""},
	} {
		r := answer(t, "GET", "http://127.0.0.1:1"+c.path, map[string]string{"Accept-Encoding": c.accept})
		if r.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", c.path, r.StatusCode, c.status)
		}
		for _, want := range policy.Headers() {
			if got := r.Header.Get(want.Name); got != want.Value {
				t.Errorf("%s: %s is %q, want %q", c.path, want.Name, got, want.Value)
			}
		}
		if c.status != 200 {
			continue
		}
		if got := body(t, r); got != c.body {
			t.Errorf("%s, accepting %q: body %q, want %q", c.path, c.accept, got, c.body)
		}
		if got := r.Header.Get("Content-Encoding"); got != c.encoding {
			t.Errorf("%s, accepting %q: encoding %q, want %q", c.path, c.accept, got, c.encoding)
		}
		if got := r.Header.Get("Content-Type"); got != c.mimeType {
			t.Errorf("%s: type %q, want %q", c.path, got, c.mimeType)
		}
	}
}

func TestCacheHeaders(t *testing.T) {
	plain := answer(t, "GET", "http://localhost/", nil)
	packed := answer(t, "GET", "http://localhost/", map[string]string{"Accept-Encoding": "br"})
	if plain.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Error("the plain and the compressed file have the same ETag")
	}
	for path, want := range map[string]string{"/": policy.Ask, "/assets/a.wasm": policy.Forever} {
		if got := answer(t, "GET", "http://localhost"+path, nil).Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: Cache-Control %q, want %q", path, got, want)
		}
	}
	again := answer(t, "GET", "http://localhost/", map[string]string{"If-None-Match": plain.Header.Get("ETag")})
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("unexpected status for a request with the ETag of the file: %d", again.StatusCode)
	}
	other := answer(t, "GET", "http://localhost/", map[string]string{"If-None-Match": packed.Header.Get("ETag")})
	if other.StatusCode != http.StatusOK {
		t.Errorf("unexpected status for a request with a different ETag: %d", other.StatusCode)
	}
}

func TestRejectedRequests(t *testing.T) {
	if r := answer(t, "POST", "http://127.0.0.1/", nil); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d, want 405", r.StatusCode)
	}
	h, err := Handler(fstest.MapFS{"index.html": {}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/", strings.NewReader("a trace"))); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("unexpected status for a GET request with a body: %d", w.Code)
	}
	for _, host := range []string{"evil.example", "evil.example:7411", "10.0.0.1:80", "127.0.0.1.evil.example"} {
		if r := answer(t, "GET", "http://"+host+"/", nil); r.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: status %d", host, r.StatusCode)
		}
	}
	for _, host := range []string{"localhost", "localhost:7411", "127.0.0.1:7411", "[::1]:7411", "127.8.8.8"} {
		if r := answer(t, "GET", "http://"+host+"/", nil); r.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", host, r.StatusCode)
		}
	}
}

func TestRange(t *testing.T) {
	r := answer(t, "GET", "http://127.0.0.1/demos/a.sgt", map[string]string{"Range": "bytes=2-4"})
	if got := body(t, r); r.StatusCode != http.StatusPartialContent || got != "234" {
		t.Errorf("status %d, %q", r.StatusCode, got)
	}
	if head := answer(t, "HEAD", "http://127.0.0.1/", nil); strings.TrimSpace(body(t, head)) != "" {
		t.Error("HEAD has a body")
	}
}
