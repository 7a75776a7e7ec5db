package e2e

import (
	"archive/zip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hosting is a way in which the page can be offered.
type hosting struct {
	name string
	open func(t *testing.T) *server
	// The page's message once it needs no network any more.
	offline string
}

const kept = "It is kept now."

// hostings are all of them. Each has an origin of its own.
var hostings = []hosting{
	{"serve", func(t *testing.T) *server { return serve(t, ":0") }, kept},
	{"static host without headers", func(t *testing.T) *server { return folder(t, filepath.Join(root, "site", "dist")) }, kept},
	{"Cloudflare", cloudflare, kept},
	{"unzipped folder", func(t *testing.T) *server { return folder(t, filepath.Join(unzipped(t), "stackglass")) }, kept},
	{"single file", singleFile, "It is: all of it is in this one file."},
}

// folder serves files below another path, by a plain server that sends no headers of its own.
func folder(t *testing.T, files string) *server {
	t.Helper()
	const home = "/some/folder/"
	host := httptest.NewServer(http.StripPrefix(home, http.FileServer(http.Dir(files))))
	t.Cleanup(host.Close)
	return &server{origin: host.URL, address: strings.TrimPrefix(host.URL, "http://"), home: home}
}

// unzipped unpacks what `make zip` made.
func unzipped(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	archive, err := zip.OpenReader(filepath.Join(root, "build", "stackglass.zip"))
	if err != nil {
		t.Fatalf("%v; make zip makes it", err)
	}
	defer archive.Close()
	if err := os.CopyFS(to, archive); err != nil {
		t.Fatal(err)
	}
	return to
}

// singleFile is the result of `make single`, opened from the disk. It is in a folder of its own, to
// be sure that it needs no other files.
func singleFile(t *testing.T) *server {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "build", "stackglass.html"))
	if err != nil {
		t.Fatalf("%v; make single makes it", err)
	}
	path := filepath.Join(t.TempDir(), "stackglass.html")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return &server{origin: "file://", home: filepath.ToSlash(path)}
}
