// Package edge implements the Cloudflare worker that serves the page. The implementation is an
// http.Handler, so it also runs natively in tests. ./program connects the handler to the worker
// with github.com/syumai/workers.
//
// Every request starts the Go program again, which takes about ten milliseconds. The program
// therefore answers only a few kinds of requests. Cloudflare itself serves the files of the site,
// with the headers of site/dist/_headers, and rejects uploads to their URLs. wrangler.jsonc in this
// folder lists the paths that this program handles:
//
//	/healthz   "ok", for monitoring
//	/version   the version, as JSON
//	/upload    a page that says that nothing can be uploaded
//
// The program also handles all paths that do not belong to a file. Requests with a body, or with a
// method other than GET and HEAD, are answered with status 405 and the page for /upload. The
// program does not read the bodies of requests. Every response has the headers of package policy.
package edge

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/site/policy"
)

// The program itself answers requests for these paths, which are not paths of files.
const (
	HealthPath  = "/healthz"
	VersionPath = "/version"
	UploadPath  = "/upload"
)

// noUploads is the page that is sent in response to uploads.
const noUploads = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>stackglass: no uploads</title>
<h1>Nothing can be uploaded here</h1>
<p>This server only serves the files of the page. It accepts no traces, no profiles
and no forms. Traces are analysed in the browser, on the computer where they are, and do not
leave it.</p>
<p><a href="/">Open the page</a> and drop a trace there.</p>
`

// Handler returns a handler for a version of the site. The parameter "files" serves the site's
// files.
func Handler(version string, files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range policy.Headers() {
			w.Header().Set(h.Name, h.Value)
		}
		switch {
		case hasBody(r):
			w.Header().Set("Allow", "GET, HEAD")
			answer(w, r, http.StatusMethodNotAllowed, "text/html; charset=utf-8", noUploads)
		case r.URL.Path == HealthPath:
			answer(w, r, http.StatusOK, "text/plain; charset=utf-8", "ok\n")
		case r.URL.Path == VersionPath:
			answer(w, r, http.StatusOK, "application/json", `{"name":"stackglass","version":`+strconv.Quote(version)+"}\n")
		case strings.TrimSuffix(r.URL.Path, "/") == UploadPath:
			answer(w, r, http.StatusOK, "text/html; charset=utf-8", noUploads)
		default:
			files.ServeHTTP(w, r)
		}
	})
}

// hasBody reports whether a request has a body, or a method other than GET and HEAD.
func hasBody(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return true
	}
	return r.ContentLength != 0 || r.Header.Get("Transfer-Encoding") != ""
}

func answer(w http.ResponseWriter, r *http.Request, status int, mediaType, text string) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Header().Set("Cache-Control", policy.Ask)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		io.WriteString(w, text)
	}
}
