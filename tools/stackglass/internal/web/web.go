// Package web serves the page's files on this machine, as a careful static host
// would: with the page's security policy on every answer, the right types,
// compressed where the browser takes it, and never a stale file.
package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// types are the media types of the page's files, by ending: the system's own
// table differs between machines.
var types = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".mjs":         "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".json":        "application/json",
	".webmanifest": "application/manifest+json",
	".wasm":        "application/wasm",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".ico":         "image/x-icon",
	".txt":         "text/plain; charset=utf-8",
	".md":          "text/plain; charset=utf-8",
	".c":           "text/plain; charset=utf-8",
	".h":           "text/plain; charset=utf-8",
}

// file is one file of the page, in memory.
type file struct {
	plain, brotli       []byte // brotli is nil where there is none
	plainTag, brotliTag string
	mediaType           string
}

// handler serves files.
type handler struct {
	files  map[string]*file // by path, without a leading slash
	policy string
}

// Handler serves the files under the policy. Files named X.br are what X is
// packed by brotli, and serve as X for browsers that take that.
func Handler(files fs.FS, policy string) (http.Handler, error) {
	h := &handler{files: map[string]*file{}, policy: policy}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || hidden(name) {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		h.add(name, content)
		return nil
	})
	return h, err
}

// hidden tells of files that are for other hosts: .gitkeep, _headers.
func hidden(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func (h *handler) add(name string, content []byte) {
	plainName, packed := strings.CutSuffix(name, ".br")
	f := h.files[plainName]
	if f == nil {
		f = &file{mediaType: mediaType(plainName)}
		h.files[plainName] = f
	}
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	if packed {
		f.brotli, f.brotliTag = content, tag
	} else {
		f.plain, f.plainTag = content, tag
	}
}

func mediaType(name string) string {
	if t, ok := types[path.Ext(name)]; ok {
		return t
	}
	return "application/octet-stream"
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header(), h.policy)
	if !local(r.Host) {
		// A name that some other site made to point here (DNS rebinding).
		http.Error(w, "this server answers on loopback addresses only", http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "there is nothing to send to: traces stay in the browser", http.StatusMethodNotAllowed)
		return
	}
	f := h.find(r.URL.Path)
	if f == nil || f.plain == nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	head := w.Header()
	head.Set("Content-Type", f.mediaType)
	head.Set("Vary", "Accept-Encoding")
	// Ask every time; the answer is almost always 304. So a page is never made
	// of files of two versions.
	head.Set("Cache-Control", "no-cache")
	content, tag := f.plain, f.plainTag
	if f.brotli != nil && takesBrotli(r.Header) {
		content, tag = f.brotli, f.brotliTag
		head.Set("Content-Encoding", "br")
	}
	head.Set("ETag", tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// find gives the file of a URL's path; a folder's is its index.html.
func (h *handler) find(urlPath string) *file {
	name := strings.TrimPrefix(urlPath, "/")
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	return h.files[name]
}

// secure sets what keeps the page to itself.
func secure(head http.Header, policy string) {
	head.Set("Content-Security-Policy", policy)
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
}

// local tells whether a request was sent to a loopback address by name or
// number.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// takesBrotli reads Accept-Encoding.
func takesBrotli(head http.Header) bool {
	for _, word := range strings.Split(strings.Join(head.Values("Accept-Encoding"), ","), ",") {
		coding, parameters, _ := strings.Cut(strings.TrimSpace(word), ";")
		if strings.TrimSpace(coding) != "br" {
			continue
		}
		q, weighed := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
		if !weighed {
			return true
		}
		weight, err := strconv.ParseFloat(q, 64)
		return err == nil && weight > 0
	}
	return false
}
