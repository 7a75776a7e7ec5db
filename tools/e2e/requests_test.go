package e2e

import (
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackglass/stackglass/site/policy"
)

// checkingHostings contains the hostings whose servers know the page's files, and can therefore
// reject invalid requests.
var checkingHostings = []string{"serve", "Cloudflare"}

// TestRequests checks how this project's servers answer valid and invalid requests.
func TestRequests(t *testing.T) {
	needStage(t)
	for _, h := range allHostings {
		if !slices.Contains(checkingHostings, h.name) {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			s := h.open(t)
			index := s.sendRequest(t, "GET", "/", "")
			if index.status != 200 || !strings.Contains(index.body, "<title>stackglass</title>") {
				t.Fatalf("GET /: status %d, want 200 and the page", index.status)
			}
			s.requestFiles(t, index.body)
			if isSoak {
				s.logTimes(t, index.body)
			}
			s.requestAll(t)
			s.sendInvalid(t, index.body)
			if h.name == "Cloudflare" {
				// In this test, Cloudflare's worker runs behind a proxy that waits for the end of
				// the body.
				s.sendChunked(t, "0\r\n\r\n")
				s.sendToWorker(t)
			} else {
				s.sendChunked(t, "")
			}
		})
	}
}

// An httpReply is a server's response.
type httpReply struct {
	status int
	head   http.Header
	body   string
}

// sendRequest sends a request, and checks the headers that every response must have. If a
// request has no answer after a minute, it is sent again, because Cloudflare's proxy sometimes
// loses a request.
func (s *server) sendRequest(t *testing.T, method, path, body string, headers ...string) httpReply {
	t.Helper()
	client := http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func() (answer *http.Response, text []byte, err error) {
		var sent io.Reader
		if body != "" {
			sent = strings.NewReader(body)
		}
		request, err := http.NewRequest(method, s.origin+path, sent)
		if err != nil {
			return nil, nil, err
		}
		request.Header.Set("Accept-Encoding", "identity")
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		if answer, err = client.Do(request); err != nil {
			return nil, nil, err
		}
		defer answer.Body.Close()
		text, err = io.ReadAll(answer.Body)
		return answer, text, err
	}
	answer, text, err := send()
	for tries := 1; err != nil && os.IsTimeout(err) && tries < 10; tries++ {
		t.Logf("%s %s: %v; trying again", method, path, err)
		answer, text, err = send()
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	for _, h := range policy.Headers() {
		if got := answer.Header.Values(h.Name); len(got) != 1 || got[0] != h.Value {
			t.Errorf("%s %s: header %s = %q, want %q once", method, path, h.Name, got, h.Value)
		}
	}
	return httpReply{answer.StatusCode, answer.Header, string(text)}
}

// requestFiles requests one file of each kind.
func (s *server) requestFiles(t *testing.T, index string) {
	t.Helper()
	for name, mediaType := range map[string]string{
		"/": "text/html", "/sw.js": "text/javascript", "/icon.svg": "image/svg+xml", "/manifest.webmanifest": "application/manifest+json", "/demos/ring.sgt": "",
		"/" + referencedURL(t, index, "page.*.css"): "text/css", "/" + referencedURL(t, index, "page.*.js"): "text/javascript", "/" + referencedURL(t, index, "app.*.wasm"): "application/wasm",
	} {
		got := s.sendRequest(t, "GET", name, "")
		if got.status != 200 || got.body == "" || !strings.HasPrefix(got.head.Get("Content-Type"), mediaType) {
			t.Errorf("GET %s: status %d, %d bytes of type %q; want 200 and the type %q", name, got.status, len(got.body), got.head.Get("Content-Type"), mediaType)
		}
		if name == "/manifest.webmanifest" || name == "/icon.svg" {
			continue // the host decides how long browsers may cache this file
		}
		if cache, want := got.head.Get("Cache-Control"), policy.Cache(name[1:]); cache != want {
			t.Errorf("%s: Cache-Control %q, want %q", name, cache, want)
		}
		head := s.sendRequest(t, "HEAD", name, "")
		if head.status != 200 || head.body != "" {
			t.Errorf("HEAD %s: status %d, %d bytes; want 200 without a body", name, head.status, len(head.body))
		}
		again := s.sendRequest(t, "GET", name, "", "If-None-Match", got.head.Get("ETag"))
		if again.status != http.StatusNotModified {
			t.Errorf("GET %s with its ETag: status %d, want 304", name, again.status)
		}
	}
	for _, coding := range []string{"br", "gzip"} {
		got := s.sendRequest(t, "GET", "/", "", "Accept-Encoding", coding)
		if got.head.Get("Content-Encoding") != coding || len(got.body) > len(index)/2 {
			t.Errorf("GET / with Accept-Encoding %s: %d bytes with content encoding %q, want a compressed body", coding, len(got.body), got.head.Get("Content-Encoding"))
		}
	}
}

// logTimes logs how long the server takes to answer requests for the page, its program and a demo,
// with the content encodings that browsers accept. Wrangler compresses responses itself, so its
// responses differ in size from the compressed files of the page. The times depend on the machine, so
// the test does not check them.
func (s *server) logTimes(t *testing.T, index string) {
	t.Helper()
	const requests = 9
	for _, name := range []string{"/", "/" + referencedURL(t, index, "app.*.wasm"), "/demos/ring.sgt"} {
		var times []time.Duration
		var last httpReply
		for range requests {
			start := time.Now()
			last = s.sendRequest(t, "GET", name, "", "Accept-Encoding", "br, gzip")
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		t.Logf("GET %s: %d bytes with content encoding %q; the median time of %d requests was %.1f ms, and the longest time %.1f ms",
			name, len(last.body), last.head.Get("Content-Encoding"), requests, milliseconds(times[requests/2]), milliseconds(times[requests-1]))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// requestAll requests every file of the page, and checks that the server sends the right bytes.
// sendRequest checks the headers. Because all servers answer in the same way, the page behaves in
// the same way with each of them.
func (s *server) requestAll(t *testing.T) {
	t.Helper()
	dist := os.DirFS(filepath.Join(rootFolder, "site", "dist"))
	files := 0
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.ContainsRune("._", rune(entry.Name()[0])) || packed(name) {
			return err
		}
		content, err := fs.ReadFile(dist, name)
		got := s.sendRequest(t, "GET", "/"+strings.TrimSuffix(name, "index.html"), "")
		if got.status == http.StatusTemporaryRedirect && path.Ext(name) == ".html" { // Cloudflare redirects this request to the path without the extension
			got = s.sendRequest(t, "GET", got.head.Get("Location"), "")
		}
		if got.status != 200 || got.body != string(content) {
			t.Errorf("GET /%s: status %d, %d bytes; want 200 and the %d bytes of the file", name, got.status, len(got.body), len(content))
		}
		files++
		return err
	})
	if err != nil || files < 40 {
		t.Errorf("%d files were compared, want at least 40 (%v)", files, err)
	}
}

// packed reports whether a file of the page is a compressed copy of another file.
func packed(name string) bool { return path.Ext(name) == ".br" || path.Ext(name) == ".gz" }

// referencedURL returns the URL of a file to which the page refers.
func referencedURL(t *testing.T, index, pattern string) string {
	t.Helper()
	for _, word := range strings.FieldsFunc(index, func(r rune) bool { return strings.ContainsRune(`"?`, r) }) {
		if folder, name := path.Split(word); folder == policy.Hashed {
			if found, err := path.Match(pattern, name); found && err == nil {
				return word
			}
		}
	}
	t.Fatalf("the page does not refer to %s", pattern)
	return ""
}

// sendInvalid sends requests that the server must reject.
func (s *server) sendInvalid(t *testing.T, index string) {
	t.Helper()
	paths := []string{"/", "/" + referencedURL(t, index, "app.*.wasm"), "/upload", "/healthz", "/version", "/nothing/here", "/demos/ring.sgt"}
	for _, path := range paths {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			got := s.sendRequest(t, method, path, "a trace")
			if got.status != http.StatusMethodNotAllowed || got.head.Get("Allow") != "GET, HEAD" || got.body == "" {
				t.Errorf("%s %s with a body: status %d, Allow %q, body %q; want 405 with an explanation", method, path, got.status, got.head.Get("Allow"), got.body)
			}
			if method == "GET" {
				continue
			}
			if got := s.sendRequest(t, method, path, ""); got.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d, want 405", method, path, got.status)
			}
		}
	}
	for _, path := range []string{"/nothing/here", "/_headers", "/.assetsignore", "/.gitkeep", "/index.html.br", "/sw.js.gz", "/assets/", "/../go.mod"} {
		if got := s.sendRequest(t, "GET", path, ""); got.status != http.StatusNotFound {
			t.Errorf("GET %s: status %d, want 404", path, got.status)
		}
	}
}

// sendChunked sends a chunked body, followed by the given end. If the parameter end is empty, the
// body remains incomplete, and the server must answer without waiting for the rest.
func (s *server) sendChunked(t *testing.T, end string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /upload HTTP/1.1\r\nHost: "+s.address+"\r\nTransfer-Encoding: chunked\r\n\r\n7\r\na trace\r\n"+end)
	conn.SetReadDeadline(time.Now().Add(waitLimit))
	line := make([]byte, len("HTTP/1.1 405"))
	if _, err := io.ReadFull(conn, line); err != nil || string(line) != "HTTP/1.1 405" {
		t.Errorf("POST with a chunked body: response %q (error %v), want HTTP/1.1 405", line, err)
	}
}

// sendToWorker sends requests for paths that only Cloudflare's worker serves.
func (s *server) sendToWorker(t *testing.T) {
	t.Helper()
	for path, says := range map[string]string{
		"/healthz": "ok", "/version": edgeVersion, "/upload": "Nothing can be uploaded here", "/upload/": "Nothing can be uploaded here",
	} {
		if got := s.sendRequest(t, "GET", path, ""); got.status != 200 || !strings.Contains(got.body, says) {
			t.Errorf("GET %s: status %d, body %q; want 200 and %q", path, got.status, got.body, says)
		}
	}
	if got := s.sendRequest(t, "POST", "/", "a trace"); !strings.Contains(got.body, "Nothing can be uploaded here") {
		t.Errorf("response to an uploaded trace = %q, want a text with: Nothing can be uploaded here", got.body)
	}
}
