// Package edge is the Cloudflare worker that serves the page, as an http.Handler, which runs natively in
// tests. ./program connects it to the worker by github.com/syumai/workers.
//
// A Go program starts again for every request, which takes some ten milliseconds. So it answers only a few:
// Cloudflare itself serves the files of the site, with the headers of site/dist/_headers, and rejects
// uploads to their addresses; wrangler.jsonc in this folder lists the paths that come here first:
//
//	/healthz   "ok", for monitoring
//	/version   the version, as JSON
//	/upload    a page that says that nothing can be uploaded
//
// and all paths that are no files. Requests with another method than GET and HEAD, or with a body, are
// answered with status 405 and that page, and their body is not read. Every answer has the headers of
// package policy.
package edge

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/site/policy"
)

// Paths that have an answer of their own.
const (
	HealthPath  = "/healthz"
	VersionPath = "/version"
	UploadPath  = "/upload"
)

// noUploads is the page for uploads.
const noUploads = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>stackglass: no uploads</title>
<h1>Nothing can be uploaded here</h1>
<p>This server hands out the files of the page and takes nothing: no trace, no profile,
no form. Traces are analysed in the browser, on the computer where they are, and do not
leave it.</p>
<p><a href="/">Open the page</a> and drop a trace there.</p>
`

// Handler serves a version of the site. files serves its files.
func Handler(version string, files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range policy.Headers() {
			w.Header().Set(h.Name, h.Value)
		}
		switch {
		case sends(r):
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

// sends reports requests with a body, or with a method for one.
func sends(r *http.Request) bool {
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
