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

// A hosting is one way to make the page available.
type hosting struct {
	name string
	open func(t *testing.T) *server
	// offlineMessage is the message that the page shows when it no longer needs the
	// network.
	offlineMessage string
}

const kept = "It is stored now."

// allHostings contains all ways to make the page available. Each hosting has its own origin.
var allHostings = []hosting{
	{"serve", func(t *testing.T) *server { return serveCommand(t, ":0") }, kept},
	{"static host without headers", func(t *testing.T) *server { return serveFolder(t, filepath.Join(rootFolder, "site", "dist")) }, kept},
	{"Cloudflare", startCloudflare, kept},
	{"unzipped folder", func(t *testing.T) *server { return serveFolder(t, filepath.Join(unzipArchive(t), "stackglass")) }, kept},
	{"single file", singleFile, "It is stored: this file contains everything."},
}

// serveFolder serves the files in a folder at a path other than the root, with a plain
// server that adds no headers.
func serveFolder(t *testing.T, files string) *server {
	t.Helper()
	const home = "/some/folder/"
	host := httptest.NewServer(http.StripPrefix(home, http.FileServer(http.Dir(files))))
	t.Cleanup(host.Close)
	return &server{origin: host.URL, address: strings.TrimPrefix(host.URL, "http://"), home: home}
}

// unzipArchive unpacks the archive that `make zip` wrote, and returns the path of the
// folder with its files.
func unzipArchive(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	archive, err := zip.OpenReader(filepath.Join(rootFolder, "build", "stackglass.zip"))
	if err != nil {
		t.Fatalf("%v; run make zip", err)
	}
	defer archive.Close()
	if err := os.CopyFS(to, archive); err != nil {
		t.Fatal(err)
	}
	return to
}

// singleFile opens the file that `make single` wrote, without a server. singleFile first copies the
// file to an empty folder, so that the test fails if the page needs other files.
func singleFile(t *testing.T) *server {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(rootFolder, "build", "stackglass.html"))
	if err != nil {
		t.Fatalf("%v; run make single", err)
	}
	path := filepath.Join(t.TempDir(), "stackglass.html")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return &server{origin: "file://", home: filepath.ToSlash(path)}
}
