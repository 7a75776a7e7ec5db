// Package web serves the page's files on this machine. Every response has the page's security
// policy and the correct media type. Responses are compressed if the browser supports compression,
// and are never stale.
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

	"github.com/stackglass/stackglass/site/policy"
)

// mediaTypes maps file name extensions to media types. The table of the operating system is not
// used, because it differs between machines.
var mediaTypes = map[string]string{
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
	".names":       "text/plain; charset=utf-8",
}

// contentCodings lists the content codings in order of preference, with their names in HTTP and the
// extensions of compressed files.
var contentCodings = [...]struct{ name, ending string }{{"br", ".br"}, {"gzip", ".gz"}}

// variant is the plain or a compressed form of a file, as it is sent to browsers.
type variant struct {
	coding  string // the content coding; "" means uncompressed
	content []byte
	tag     string
}

// file contains one file of the page, in memory.
type file struct {
	plain      *variant
	compressed [len(contentCodings)]*variant // for each content coding: the compressed variant; nil if there is no such variant
	mediaType  string
}

// handler serves the files of the page.
type handler struct {
	files map[string]*file // for each path without a leading slash: the file
}

// Handler returns a handler that serves files with the page's security policy. Files X.br and X.gz
// are the compressed variants of X, for browsers that accept them.
func Handler(files fs.FS) (http.Handler, error) {
	h := &handler{files: map[string]*file{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		forOtherHosts := strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(path.Base(name), "_")
		if err != nil || entry.IsDir() || forOtherHosts { // such as .assetsignore and _headers
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

func (h *handler) add(name string, content []byte) {
	sum := sha256.Sum256(content)
	made := &variant{content: content, tag: `"` + hex.EncodeToString(sum[:16]) + `"`}
	for i, coding := range contentCodings {
		if plain, packed := strings.CutSuffix(name, coding.ending); packed {
			made.coding = coding.name
			h.fileNamed(plain).compressed[i] = made
			return
		}
	}
	h.fileNamed(name).plain = made
}

// fileNamed returns the file with the given name. It adds the file to the map if necessary.
func (h *handler) fileNamed(name string) *file {
	f := h.files[name]
	if f == nil {
		f = &file{mediaType: mediaType(name)}
		h.files[name] = f
	}
	return f
}

func mediaType(name string) string {
	if t, ok := mediaTypes[path.Ext(name)]; ok {
		return t
	}
	return "application/octet-stream"
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, header := range policy.Headers() {
		w.Header().Set(header.Name, header.Value)
	}
	if !isLoopback(r.Host) {
		// The host name belongs to another site, but resolves to this machine (DNS rebinding).
		http.Error(w, "this server answers only requests to loopback addresses", http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.ContentLength != 0 {
		w.Header().Set("Allow", "GET, HEAD")
		w.Header().Set("Connection", "close") // otherwise, the response would wait until the whole request body has arrived
		http.Error(w, "the server accepts no data, because traces stay in the browser", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	f := h.files[name]
	if f == nil || f.plain == nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	head := w.Header()
	head.Set("Content-Type", f.mediaType)
	head.Set("Vary", "Accept-Encoding")
	head.Set("Cache-Control", policy.Cache(name))
	sent := f.plain
	for i, coding := range contentCodings {
		if f.compressed[i] != nil && acceptsCoding(r.Header, coding.name) {
			sent = f.compressed[i]
			head.Set("Content-Encoding", sent.coding)
			break
		}
	}
	head.Set("ETag", sent.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(sent.content))
}

// isLoopback reports whether a request was sent to a loopback address.
func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// acceptsCoding reports whether the header Accept-Encoding contains a coding with a weight above 0.
func acceptsCoding(head http.Header, wanted string) bool {
	for word := range strings.SplitSeq(strings.Join(head.Values("Accept-Encoding"), ","), ",") {
		coding, parameters, _ := strings.Cut(strings.TrimSpace(word), ";")
		if strings.TrimSpace(coding) != wanted {
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
