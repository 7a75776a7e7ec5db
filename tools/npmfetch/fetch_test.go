package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// makeArchive returns the archive of an npm package with the given files.
func makeArchive(t *testing.T, files map[string]string, extra ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	for i := range extra {
		if err := w.WriteHeader(&extra[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func lockEntry(name string, archive []byte) string {
	sum := sha512.Sum512(archive)
	return `"node_modules/` + name + `": {"version": "1.2.3", "integrity": "sha512-` + base64.StdEncoding.EncodeToString(sum[:]) + `"}`
}

// A testRegistry is a registry that records requests, with a fetcher that installs packages from it
// in a temporary folder.
type testRegistry struct {
	fetcher
	serve     func(w http.ResponseWriter, path string)
	requested []string
}

func newTestRegistry(t *testing.T, entries ...string) *testRegistry {
	t.Helper()
	w := &testRegistry{}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.requested = append(w.requested, r.URL.Path)
		w.serve(out, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	w.fetcher = fetcher{folder: t.TempDir(), registry: server.URL, client: server.Client(), log: io.Discard}
	lock := `{"lockfileVersion": 3, "packages": {"": {"name": "x"}, ` + strings.Join(entries, ", ") + `}}`
	if err := os.WriteFile(filepath.Join(w.folder, "package-lock.json"), []byte(lock), 0o644); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *testRegistry) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, "node_modules", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// remainingFiles returns the names of all files and folders in node_modules.
func (w *testRegistry) remainingFiles(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.folder, "node_modules"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func whole(name string) map[string]string {
	return map[string]string{
		"package/package.json": `{"name": "` + name + `", "version": "1.2.3"}`,
		"package/dist/a.js":    "code of " + name,
	}
}

func TestFetchPackages(t *testing.T) {
	archives := map[string][]byte{
		"/plain/-/plain-1.2.3.tgz":          makeArchive(t, whole("plain")),
		"/@scope/scoped/-/scoped-1.2.3.tgz": makeArchive(t, whole("@scope/scoped")),
	}
	w := newTestRegistry(t, lockEntry("plain", archives["/plain/-/plain-1.2.3.tgz"]), lockEntry("@scope/scoped", archives["/@scope/scoped/-/scoped-1.2.3.tgz"]))
	w.serve = func(out http.ResponseWriter, path string) { out.Write(archives[path]) }
	// First install an older version, which contains a file that the new version does not contain.
	old := filepath.Join(w.folder, "node_modules", "plain")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"package.json": `{"name": "plain", "version": "1.2.2"}`, "gone.js": ""} {
		if err := os.WriteFile(filepath.Join(old, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second run may not fetch anything
		if err := w.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.requested) != 2 {
		t.Errorf("requested %v, want each archive once", w.requested)
	}
	for _, name := range []string{"plain", "@scope/scoped"} {
		if got := w.file(t, name+"/dist/a.js"); got != "code of "+name {
			t.Errorf("%s/dist/a.js contains %q", name, got)
		}
	}
	if _, err := os.Stat(filepath.Join(old, "gone.js")); !os.IsNotExist(err) {
		t.Errorf("Stat(gone.js) = %v, want an error, because gone.js belongs to the old version", err)
	}
	if got := w.remainingFiles(t); !slices.Equal(got, []string{"@scope", "plain"}) {
		t.Errorf("node_modules contains %v", got)
	}
}

// TestFetchesNamedPackages checks that the named packages and their dependencies are installed,
// except for packages for other platforms.
func TestFetchesNamedPackages(t *testing.T) {
	with := func(name, more string) string {
		entry := lockEntry(name, makeArchive(t, whole(name)))
		return strings.TrimSuffix(entry, "}") + ", " + more + "}"
	}
	w := newTestRegistry(t,
		with("tool", `"dependencies": {"part": "^1", "tool": "*"}, "optionalDependencies": {"here": "1", "elsewhere": "1", "unknown": "1"}`),
		with("part", `"dependencies": {"tool": "1"}`),
		with("here", `"os": ["`+npmName(runtime.GOOS)+`"], "cpu": ["`+npmName(runtime.GOARCH)+`"]`),
		with("elsewhere", `"os": ["plan10"], "dependencies": {"needed-there": "1"}`),
		with("needed-there", `"dev": true`),
		with("other", `"dev": true`),
	)
	w.serve = func(out http.ResponseWriter, path string) {
		out.Write(makeArchive(t, whole(strings.Split(path, "/")[1])))
	}
	w.names = []string{"tool"}
	if err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.remainingFiles(t); !slices.Equal(got, []string{"here", "part", "tool"}) {
		t.Errorf("node_modules contains %v", got)
	}
	w.names = nil
	if err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.remainingFiles(t); !slices.Equal(got, []string{"here", "needed-there", "other", "part", "tool"}) {
		t.Errorf("node_modules contains %v, want all packages except those for another machine", got)
	}
	w.names = []string{"unknown"}
	if err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown is not in the lock file") {
		t.Errorf("fetching an unknown package: %v, want an error that names the lock file", err)
	}
}

// TestExecutableFilesStayExecutable checks that an installed file is executable if, and only if, it
// is executable in the archive.
func TestExecutableFilesStayExecutable(t *testing.T) {
	archive := makeArchive(t, whole("plain"), tar.Header{Name: "package/bin/run", Typeflag: tar.TypeReg, Mode: 0o755})
	w := newTestRegistry(t, lockEntry("plain", archive))
	w.serve = func(out http.ResponseWriter, _ string) { out.Write(archive) }
	if err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"bin/run": 0o111, "dist/a.js": 0} {
		info, err := os.Stat(filepath.Join(w.folder, "node_modules", "plain", name))
		if err != nil || info.Mode()&0o111 != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestRejectsBadArchives(t *testing.T) {
	good := makeArchive(t, whole("plain"))
	with := func(name string) []byte {
		files := whole("plain")
		files[name] = "out"
		return makeArchive(t, files)
	}
	send := func(b []byte) func(http.ResponseWriter, string) {
		return func(out http.ResponseWriter, _ string) { out.Write(b) }
	}
	escape, absolute := with("package/../../escaped"), with("/package/escaped")
	link := makeArchive(t, whole("plain"), tar.Header{Name: "package/link", Typeflag: tar.TypeSymlink, Linkname: "/etc"})
	huge := makeArchive(t, whole("other"))
	cut := good[:len(good)/2]
	for _, c := range []struct {
		name  string
		entry string
		serve func(http.ResponseWriter, string)
		want  string
	}{
		{"integrity", lockEntry("plain", good), send(huge), "the lock file wants"},
		{"escape", lockEntry("plain", escape), send(escape), "has a path outside the package's folder"},
		{"absolute", lockEntry("plain", absolute), send(absolute), "has a path outside the package's folder"},
		{"link", lockEntry("plain", link), send(link), "want regular files only"},
		{"another package", lockEntry("plain", huge), send(huge), "names a different package"},
		{"no archive", lockEntry("plain", []byte("x")), send([]byte("x")), "not a gzip file"},
		{"cut archive", lockEntry("plain", cut), send(cut), "truncated or damaged"},
		{"cut download", lockEntry("plain", good), func(out http.ResponseWriter, _ string) {
			out.Header().Set("Content-Length", "100000")
			out.Write(good)
		}, "the download ended after"},
		{"missing", lockEntry("plain", good), func(out http.ResponseWriter, _ string) { http.Error(out, "", 404) }, "404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestRegistry(t, c.entry)
			w.serve = c.serve
			err := w.run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error with %q", err, c.want)
			}
			if !strings.Contains(err.Error(), "plain@1.2.3: ") || !strings.Contains(err.Error(), "npm ci") {
				t.Errorf("got %v, want an error that names the package and npm ci", err)
			}
			if got := w.remainingFiles(t); len(got) > 0 {
				t.Errorf("node_modules still contains %v", got)
			}
		})
	}
}

func TestRejectsBadLockFiles(t *testing.T) {
	digest := `"integrity": "sha512-` + base64.StdEncoding.EncodeToString(make([]byte, 64)) + `"`
	for text, want := range map[string]string{
		`{"lockfileVersion": 2}`: "want 3",
		`{`:                      "package-lock.json: ",
		`{"lockfileVersion": 3, "packages": {"node_modules/../../x": {"version": "1.2.3", ` + digest + `}}}`:          "want node_modules/NAME",
		`{"lockfileVersion": 3, "packages": {"node_modules/a/node_modules/b": {"version": "1.2.3", ` + digest + `}}}`: "want node_modules/NAME",
		`{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.2.3/../../x", ` + digest + `}}}`:        "version",
		`{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.2.3", "integrity": "sha1-AAAA"}}}`:      "want sha512-",
		`{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.2.3", "integrity": "sha512-AAAA"}}}`:    "64 bytes",
	} {
		file := filepath.Join(t.TempDir(), "package-lock.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readLock(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readLock(%s) = %v, want an error with %q", text, err, want)
		}
	}
}
