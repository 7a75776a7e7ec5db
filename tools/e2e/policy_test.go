package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/klauspost/compress/zstd"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/ulikunitz/xz"
)

// The list "actions" contains everything that a user can do with the page, in order. These actions
// open every view, and open and save data in every possible way. Every view of every demo is opened
// by the test TestDemos.
var actions = []struct {
	name string
	do   func(p *tab)
}{
	{"theme, keys, settings", func(p *tab) {
		for _, theme := range []string{"dark", "light", "system"} {
			p.choose("theme", theme)
		}
		p.press("?")
		p.wait("the list of keys", `document.getElementById("keys").open`)
		p.press("\x1b")
		p.click("#settings summary")
		for _, choice := range []string{`[name=line][value="32"]`, "[name=touched]", "[name=touched]", "[name=reuse]", "[name=reuse]"} {
			p.click("#settings-form " + choice)
		}
	}},
	{"two demos side by side", func(p *tab) {
		p.click("#pair-matmul-blocked")
		p.waitFor("#differences")
		p.everyView(func() {})
		p.click("#compare-end")
		p.waitFor("#compare-with")
		p.home()
	}},
	{"a trace, dropped", func(p *tab) {
		trace := lackeyTrace(p.t)
		p.drop(trace)
		p.wait("the result", `document.title.startsWith(`+quote(filepath.Base(trace))+`)`)
		if got, want := p.finished(), p.analysed(trace); got != want {
			p.t.Errorf("digest = %s, want the command's digest %s", got, want)
		}
		p.home()
	}},
	{"packed traces, picked", func(p *tab) {
		text := unpacked(p.t, lackeyTrace(p.t))
		for name, packer := range map[string]func(io.Writer) (io.WriteCloser, error){
			"a.zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
			"a.xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
		} {
			path := p.write(name, pack(p.t, text, packer))
			p.pick(path)
			p.wait("the result of "+name, `document.title.startsWith(`+quote(name)+`)`)
			if got, want := p.finished(), p.analysed(path); got != want {
				p.t.Errorf("%s: digest %s, want the command's digest %s", name, got, want)
			}
			p.home()
		}
	}},
	{"files that are not traces", func(p *tab) {
		p.drop(p.write("letter.txt", []byte("Dear Sir or Madam,\n\nno trace\n")))
		p.problem()
		p.click("#problem-dismiss")
		p.waitGone("#problem")
	}},
	{"a profile: every view, with every download", func(p *tab) {
		p.drop(p.multiplied())
		p.waitFor("#digest")
		p.everyView(p.saveAll)
		p.home()
	}},
	{"a demo with threads: every view, with every download", func(p *tab) {
		p.click("#demo-false-sharing")
		p.finished()
		p.everyView(p.saveAll)
	}},
	{"files for other tools", func(p *tab) {
		if name, path := p.download(func() { p.click("#export-profile") }); !strings.HasSuffix(name, ".sgp") || len(p.read(path)) == 0 {
			p.t.Errorf("name of the exported profile = %q, want a non-empty file that ends with .sgp", name)
		}
		forms := eval[[]string](p, `Array.from(document.querySelectorAll("#export-as option"), (o) => o.value).filter((v) => v)`)
		if len(forms) < 5 {
			p.t.Errorf("export formats = %q, want at least 5", forms)
		}
		for _, form := range forms {
			if _, path := p.download(func() { p.choose("export-as", form) }); len(p.read(path)) == 0 {
				p.t.Errorf("%s: the saved file is empty", form)
			}
		}
	}},
	{"a hierarchy from a file", func(p *tab) {
		p.openView("caches", "#level-1")
		p.pick(p.write("mine.json", []byte(`{"levels": [{"name": "X1", "size": "2KiB", "ways": "full", "latency_cycles": 3}], "memory": {"latency_cycles": 70}}`)))
		p.wait("the file's levels", `document.querySelector("#level-1 h3").textContent.includes("X1")`)
	}},
	{"a source file, next to a source location", func(p *tab) {
		p.openView("code", "#code-rows tbody td")
		p.click("#code-rows tbody td")
		p.drop(demoSource(p.t, "false-sharing"))
		p.waitFor("#source-rows tbody td")
		p.home()
	}},
	{"the list", func(p *tab) {
		_, path := p.download(func() { p.click("#kept .export") })
		p.click("#kept .rename")
		p.wait("the text field for the name", `document.activeElement.id === "rename-input"`)
		eval[any](p, `document.getElementById("rename-input").select()`)
		p.press("another name\r")
		p.waitFor(row("another name"))
		p.click(row("another name") + " .delete")
		p.click("#delete-yes")
		p.waitGone(row("another name"))
		p.drop(p.write("back again.sgp", p.read(path)))
		p.waitFor("#digest")
		p.home()
		p.waitFor(row("back again"))
	}},
	{"a visit later", func(p *tab) {
		p.visit("/")
		p.ready()
		p.waitFor(row("back again"))
		p.click(row("back again") + " .open")
		p.waitFor("#digest")
		p.home()
	}},
}

// everyView opens every view of the result that the page shows.
func (p *tab) everyView(there func()) {
	p.t.Helper()
	for _, view := range state.Tabs() {
		eval[any](p, toView(view.Slug()))
		p.wait(view.Name(), inView(view.Slug())+` && document.querySelector("main") && !document.querySelector("main [id$=pending]")`)
		p.drawn()
		there()
	}
}

// betweenDownloads is the length of the pause between two downloads. Without it, Chromium silently
// drops all downloads after the first ten in one second.
const betweenDownloads = 150 * time.Millisecond

// saveAll saves all tables and pictures in a view.
func (p *tab) saveAll() {
	p.t.Helper()
	for _, id := range eval[[]string](p, `Array.from(document.querySelectorAll('button[id$="-csv"], button[id$="-json"], button[id$="-png"]')).filter((b) => b.checkVisibility()).map((b) => b.id)`) {
		next := time.After(betweenDownloads)
		if name, path := p.download(func() { p.click("#" + id) }); len(p.read(path)) == 0 {
			p.t.Errorf("%s: the saved file %s is empty", id, name)
		}
		<-next
	}
}

// The method "home" returns to the first screen.
func (p *tab) home() {
	p.t.Helper()
	p.press("\x1b")
	p.waitFor("#kept .delete")
}

// The function "analysed" returns the digest that the command computes for a trace with the
// settings that the actions select.
func (p *tab) analysed(trace string) string {
	p.t.Helper()
	profile := filepath.Join(p.t.TempDir(), "p.sgp")
	return truthIn(p.t, ask(p.t, "analyze", trace, "--lines", "32,64", "--utilisation", measured, "--format", "json", "-o", profile)).Digest
}

// TestPolicy does everything that a user can do with the page, once for each kind of hosting. The
// page must violate no policy, and contact only its host. At the end, the test runs a script that
// tries to contact other hosts.
func TestPolicy(t *testing.T) {
	needStage(t)
	for _, h := range hostings {
		if h.name == "unzipped folder" {
			continue // both the files (see TestArchive) and the server are the same as for the static host
		}
		actions := actions
		if h.name == "Cloudflare" {
			actions = nil // the files and headers are the same as for serve (see TestRequests)
		}
		t.Run(h.name, func(t *testing.T) {
			p := newTab(t, h.open(t))
			p.visit("/")
			p.ready()
			for _, a := range actions {
				a.do(p)
				p.watch.check(t)
				quiet(t, a.name)
				if t.Failed() {
					t.Fatalf("stopping after a failure in: %s", a.name)
				}
			}
			p.shoot("hosted-" + strings.ReplaceAll(h.name, " ", "-"))
			p.wait("the message that no network is needed", `document.getElementById("offline-state").textContent === `+quote(h.offline))
			p.reload()
			p.tryToLeave()
		})
	}
}

// TestArchive checks that the archive contains the single-file page and, except for compressed
// copies, the same files as the static host. TestPolicy's results therefore also apply to an
// unzipped folder.
func TestArchive(t *testing.T) {
	needStage(t)
	archive, dist := os.DirFS(filepath.Join(unzipped(t), "stackglass")), os.DirFS(filepath.Join(root, "site", "dist"))
	same := func(here fs.FS, name string, there fs.FS, other string) {
		one, err := fs.ReadFile(here, name)
		two, err2 := fs.ReadFile(there, other)
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
		} else if !bytes.Equal(one, two) {
			t.Errorf("%s: %d bytes in the archive differ from %d bytes in the tested folder", name, len(one), len(two))
		}
	}
	files := 0
	for from, skips := range map[fs.FS]func(name string) bool{
		archive: func(name string) bool { return name == "README.txt" || name == "stackglass.html" },
		dist: func(name string) bool {
			return path.Base(name)[0] == '.' || packed(name)
		},
	} {
		err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !skips(name) {
				same(archive, name, dist, name)
				files++
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if files < 60 {
		t.Errorf("%d files were compared, want at least 60", files)
	}
	same(archive, "stackglass.html", os.DirFS(filepath.Join(root, "build")), "stackglass.html")
}

// tryToLeave tries to send data from the page and from one of its workers. The decoys must not
// receive any data.
func (p *tab) tryToLeave() {
	t, s := p.t, shared
	t.Helper()
	p.watch.forgetWorkers()
	p.pausing(func() { p.drop(longTrace(t, 20e6)) }) // a long trace, so that the worker exists long enough
	worker, err := p.watch.awaitWorker("worker")
	if err != nil {
		t.Fatal(err)
	}
	neighbour := "http://127.0.0.1:" + strconv.Itoa(s.neighbour.port) + "/"
	for _, part := range []string{neighbour, "stackglass.example", "policy violated: ", "violates the following Content Security Policy"} {
		p.watch.allow(part)
	}
	for _, base := range []string{neighbour + "NAME", "https://NAME.stackglass.example/", "http://NAME.stackglass.example/"} {
		before := p.watch.count("policy violated: ")
		tries := eval[int](p, "("+attempts+")("+quote(base)+")")
		want := tries - 1 // a beacon may be blocked without an event
		if p.server.origin == "file://" {
			want -= 3 // fetch (tried twice) and Worker can only access the page's own file
		}
		if seen := p.watch.await("policy violated: ", before+want) - before; seen < want {
			t.Errorf("%d attempts to reach %s from the page caused %d policy violations, want %d", tries, base, seen, want)
		}
		ctx, cancel := context.WithTimeout(worker, patience)
		_, err := chromedp.Run(ctx, chromedp.Evaluate[int]("("+attempts+")("+quote(base)+")", chromedp.EvalAwaitPromise))
		cancel()
		if err != nil {
			t.Errorf("in the worker: %v", err)
		}
	}
	// Before Chromium checks the policy, it connects to the target of a form or a frame, but sends
	// no data.
	s.anyHost.forgive("TLS form.stackglass.example", "TLS frame.stackglass.example")
	quiet(t, "after the page and its worker tried to send data")
	p.click("#run-cancel")
	p.finished()
}

// TestFolderFromDisk checks what happens if the page in the unzipped folder is opened as a file.
// This page cannot run from a file, so it must explain how to run it.
func TestFolderFromDisk(t *testing.T) {
	needStage(t)
	dir := filepath.Join(unzipped(t), "stackglass")
	p := newTab(t, &server{origin: "file://", home: filepath.ToSlash(filepath.Join(dir, "index.html"))})
	p.watch.allow("file://")
	p.visit("/")
	p.wait("the instructions for a page opened from disk", `document.getElementById("boot-state").textContent.includes("stackglass.html")`)
	readme, err := os.ReadFile(filepath.Join(dir, "README.txt"))
	if err != nil || !bytes.Contains(readme, []byte("stackglass.html")) {
		t.Errorf("README.txt: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "stackglass.html")); err != nil {
		t.Error(err)
	}
}
