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

// A hosting is one way to host the page.
type hosting struct {
	name string
	open func(t *testing.T) *server
	// The constant "offline" is the message that the page shows when it no longer needs the
	// network.
	offline string
}

const kept = "It is stored now."

// The list "hostings" contains all ways to host the page. Each kind of hosting has its own origin.
var hostings = []hosting{
	{"serve", func(t *testing.T) *server { return serve(t, ":0") }, kept},
	{"static host without headers", func(t *testing.T) *server { return folder(t, filepath.Join(root, "site", "dist")) }, kept},
	{"Cloudflare", cloudflare, kept},
	{"unzipped folder", func(t *testing.T) *server { return folder(t, filepath.Join(unzipped(t), "stackglass")) }, kept},
	{"single file", singleFile, "It is stored: this file contains everything."},
}

// The function "folder" serves the files in a folder at a path other than the root, with a plain
// server that adds no headers.
func folder(t *testing.T, files string) *server {
	t.Helper()
	const home = "/some/folder/"
	host := httptest.NewServer(http.StripPrefix(home, http.FileServer(http.Dir(files))))
	t.Cleanup(host.Close)
	return &server{origin: host.URL, address: strings.TrimPrefix(host.URL, "http://"), home: home}
}

// The function "unzipped" unpacks the archive that `make zip` wrote, and returns the path of the
// folder with its files.
func unzipped(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	archive, err := zip.OpenReader(filepath.Join(root, "build", "stackglass.zip"))
	if err != nil {
		t.Fatalf("%v; run make zip", err)
	}
	defer archive.Close()
	if err := os.CopyFS(to, archive); err != nil {
		t.Fatal(err)
	}
	return to
}

// singleFile opens the file that `make single` wrote, without a server. It first copies the file to
// a separate folder to make sure that no other files are needed.
func singleFile(t *testing.T) *server {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "build", "stackglass.html"))
	if err != nil {
		t.Fatalf("%v; run make single", err)
	}
	path := filepath.Join(t.TempDir(), "stackglass.html")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return &server{origin: "file://", home: filepath.ToSlash(path)}
}
