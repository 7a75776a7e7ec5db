package edge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/site/policy"
)

// The function "ask" sends a request to the worker's handler. The site's only file is /index.html.
func ask(t *testing.T, method, path string, body io.Reader) (*http.Response, string) {
	t.Helper()
	files := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index.html" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, "the page")
	})
	w := httptest.NewRecorder()
	Handler(`v1 "quoted"`, files).ServeHTTP(w, httptest.NewRequest(method, path, body))
	got := w.Result()
	for _, h := range policy.Headers() {
		if got.Header.Get(h.Name) != h.Value {
			t.Errorf("%s %s: header %s = %q", method, path, h.Name, got.Header.Get(h.Name))
		}
	}
	return got, w.Body.String()
}

func TestResponses(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/version", 200, `"version":"v1 \"quoted\""`},
		{"GET", "/upload", 200, "Nothing can be uploaded"},
		{"GET", "/upload/", 200, "Nothing can be uploaded"},
		{"GET", "/index.html", 200, "the page"},
		{"GET", "/uploads", 404, ""},
		{"GET", "/none", 404, ""},
		{"HEAD", "/healthz", 200, ""},
		{"OPTIONS", "/", 405, "Nothing can be uploaded"},
		{"DELETE", "/index.html", 405, "Nothing can be uploaded"},
	} {
		got, text := ask(t, c.method, c.path, nil)
		if got.StatusCode != c.status || !strings.Contains(text, c.says) || c.method == "HEAD" && text != "" {
			t.Errorf("%s %s: status %d, %q", c.method, c.path, got.StatusCode, text)
		}
	}
}

// The type "unread" is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the handler read the body of the request")
	return 0, io.EOF
}

func TestUploadsAreRefused(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
		for _, path := range []string{"/", "/index.html", "/upload", "/healthz", "/version", "/none"} {
			got, _ := ask(t, method, path, unread{t}) // the length of the body is unknown
			if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s with a body: status %d, Allow %q; want 405", method, path, got.StatusCode, got.Header.Get("Allow"))
			}
		}
	}
}

func TestUploadPageMeetsPolicy(t *testing.T) {
	for _, part := range []string{"<script", "<style", "style=", "<form", "http://", "https://"} {
		if strings.Contains(noUploads, part) {
			t.Errorf("the page for uploads contains %q, which the policy forbids", part)
		}
	}
}
