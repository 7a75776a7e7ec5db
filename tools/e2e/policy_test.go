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

// userActions contains everything that a user can do with the page, in order. The actions open
// every view, and open and save data in every possible way. (TestDemos opens every view of every
// demo.)
var userActions = []struct {
	name string
	do   func(p *tab)
}{
	{"theme, keys, settings", func(p *tab) {
		for _, theme := range []string{"dark", "light", "system"} {
			p.setValue("theme", theme)
		}
		p.pressKeys("?")
		p.waitTrue("the list of keys", `document.getElementById("keys").open`)
		p.pressKeys("\x1b")
		p.clickElement("#settings summary")
		for _, choice := range []string{`[name=line][value="32"]`, "[name=touched]", "[name=touched]", "[name=reuse]", "[name=reuse]"} {
			p.clickElement("#settings-form " + choice)
		}
	}},
	{"two demos side by side", func(p *tab) {
		p.clickElement("#pair-matmul-blocked")
		p.waitFor("#differences")
		p.everyView(func() {})
		p.clickElement("#compare-end")
		p.waitFor("#compare-with")
		p.goHome()
	}},
	{"a trace, dropped", func(p *tab) {
		trace := lackeyTrace(p.t)
		p.dropFiles(trace)
		p.waitTrue("the result", `document.title.startsWith(`+quoteText(filepath.Base(trace))+`)`)
		if got, want := p.waitFinished(), p.commandDigest(trace); got != want {
			p.t.Errorf("digest = %s, want the command's digest %s", got, want)
		}
		p.goHome()
	}},
	{"packed traces, picked", func(p *tab) {
		text := unpacked(p.t, lackeyTrace(p.t))
		for name, packer := range map[string]func(io.Writer) (io.WriteCloser, error){
			"a.zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
			"a.xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
		} {
			path := p.writeFile(name, pack(p.t, text, packer))
			p.pickFiles(path)
			p.waitTrue("the result of "+name, `document.title.startsWith(`+quoteText(name)+`)`)
			if got, want := p.waitFinished(), p.commandDigest(path); got != want {
				p.t.Errorf("%s: digest %s, want the command's digest %s", name, got, want)
			}
			p.goHome()
		}
	}},
	{"files that are not traces", func(p *tab) {
		p.dropFiles(p.writeFile("letter.txt", []byte("Dear Sir or Madam,\n\nno trace\n")))
		p.waitProblem()
		p.clickElement("#problem-dismiss")
		p.waitGone("#problem")
	}},
	{"a profile: every view, with every download", func(p *tab) {
		p.dropFiles(p.countersProfile())
		p.waitFor("#digest")
		p.everyView(p.saveAll)
		p.goHome()
	}},
	{"a demo with threads: every view, with every download", func(p *tab) {
		p.clickElement("#demo-false-sharing")
		p.waitFinished()
		p.everyView(p.saveAll)
	}},
	{"files for other tools", func(p *tab) {
		if name, path := p.awaitDownload(func() { p.clickElement("#export-profile") }); !strings.HasSuffix(name, ".sgp") || len(p.read(path)) == 0 {
			p.t.Errorf("name of the exported profile = %q, want a non-empty file that ends with .sgp", name)
		}
		forms := eval[[]string](p, `Array.from(document.querySelectorAll("#export-as option"), (o) => o.value).filter((v) => v)`)
		if len(forms) < 5 {
			p.t.Errorf("export formats = %q, want at least 5", forms)
		}
		for _, form := range forms {
			if _, path := p.awaitDownload(func() { p.setValue("export-as", form) }); len(p.read(path)) == 0 {
				p.t.Errorf("%s: the saved file is empty", form)
			}
		}
	}},
	{"a hierarchy from a file", func(p *tab) {
		p.openView("caches", "#level-1")
		p.pickFiles(p.writeFile("mine.json", []byte(`{"levels": [{"name": "X1", "size": "2KiB", "ways": "full", "latency_cycles": 3}], "memory": {"latency_cycles": 70}}`)))
		p.waitTrue("the file's levels", `document.querySelector("#level-1 h3").textContent.includes("X1")`)
	}},
	{"a source file, next to a source location", func(p *tab) {
		p.openView("code", "#code-rows tbody td")
		p.clickElement("#code-rows tbody td")
		p.dropFiles(demoSource(p.t, "false-sharing"))
		p.waitFor("#source-rows tbody td")
		p.goHome()
	}},
	{"the list", func(p *tab) {
		_, path := p.awaitDownload(func() { p.clickElement("#kept .export") })
		p.clickElement("#kept .rename")
		p.waitTrue("the text field for the name", `document.activeElement.id === "rename-input"`)
		eval[any](p, `document.getElementById("rename-input").select()`)
		p.pressKeys("another name\r")
		p.waitFor(rowSelector("another name"))
		p.clickElement(rowSelector("another name") + " .delete")
		p.clickElement("#delete-yes")
		p.waitGone(rowSelector("another name"))
		p.dropFiles(p.writeFile("back again.sgp", p.read(path)))
		p.waitFor("#digest")
		p.goHome()
		p.waitFor(rowSelector("back again"))
	}},
	{"a visit later", func(p *tab) {
		p.openPath("/")
		p.waitReady()
		p.waitFor(rowSelector("back again"))
		p.clickElement(rowSelector("back again") + " .open")
		p.waitFor("#digest")
		p.goHome()
	}},
}

// everyView opens every view of the result that the page shows.
func (p *tab) everyView(there func()) {
	p.t.Helper()
	for _, view := range state.Tabs() {
		eval[any](p, toView(view.Slug()))
		p.waitTrue(view.Name(), inView(view.Slug())+` && document.querySelector("main") && !document.querySelector("main [id$=pending]")`)
		p.waitDrawn()
		there()
	}
}

// betweenDownloads is the length of the pause between two downloads. Without this pause, Chromium
// silently drops downloads after the first ten in one second.
const betweenDownloads = 150 * time.Millisecond

// saveAll saves all tables and pictures in a view.
func (p *tab) saveAll() {
	p.t.Helper()
	for _, id := range eval[[]string](p, `Array.from(document.querySelectorAll('button[id$="-csv"], button[id$="-json"], button[id$="-png"]')).filter((b) => b.checkVisibility()).map((b) => b.id)`) {
		next := time.After(betweenDownloads)
		if name, path := p.awaitDownload(func() { p.clickElement("#" + id) }); len(p.read(path)) == 0 {
			p.t.Errorf("%s: the saved file %s is empty", id, name)
		}
		<-next
	}
}

// goHome returns to the first screen.
func (p *tab) goHome() {
	p.t.Helper()
	p.pressKeys("\x1b")
	p.waitFor("#kept .delete")
}

// commandDigest returns the digest that the command computes for a trace if it uses the settings
// that the actions select.
func (p *tab) commandDigest(trace string) string {
	p.t.Helper()
	profile := filepath.Join(p.t.TempDir(), "p.sgp")
	return truthIn(p.t, runCommand(p.t, "analyze", trace, "--lines", "32,64", "--utilisation", measuredCaches, "--format", "json", "-o", profile)).Digest
}

// TestPolicy does everything that a user can do with the page, once for each kind of hosting. The
// page must violate no policy, and contact only its host. Finally, the test runs a script that
// tries to contact other hosts.
func TestPolicy(t *testing.T) {
	needStage(t)
	for _, h := range allHostings {
		if h.name == "unzipped folder" {
			continue // the static host has the same files (see TestArchive) and the same server
		}
		actions := userActions
		if h.name == "Cloudflare" {
			actions = nil // "stackglass serve" sends the same files and headers (see TestRequests)
		}
		t.Run(h.name, func(t *testing.T) {
			p := newTab(t, h.open(t))
			p.openPath("/")
			p.waitReady()
			for _, a := range actions {
				a.do(p)
				p.watch.failOnFaults(t)
				wantNoRequests(t, a.name)
				if t.Failed() {
					t.Fatalf("the action %q failed; skipping the remaining actions", a.name)
				}
			}
			p.takeScreenshots("hosted-" + strings.ReplaceAll(h.name, " ", "-"))
			p.waitTrue("the message that no network is needed", `document.getElementById("offline-state").textContent === `+quoteText(h.offlineMessage))
			p.reload()
			p.tryToSendData()
		})
	}
}

// TestArchive checks that the archive contains the single-file page and, except for compressed
// copies, the same files as the static host. TestPolicy's results therefore also apply to an
// unzipped folder.
func TestArchive(t *testing.T) {
	needStage(t)
	archive, dist := os.DirFS(filepath.Join(unzipArchive(t), "stackglass")), os.DirFS(filepath.Join(rootFolder, "site", "dist"))
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
	same(archive, "stackglass.html", os.DirFS(filepath.Join(rootFolder, "build")), "stackglass.html")
}

// tryToSendData tries to send data from the page and from one of its workers. The decoys must not
// receive any data.
func (p *tab) tryToSendData() {
	t, s := p.t, sharedStage
	t.Helper()
	p.watch.dropWorkers()
	p.startPaused(func() { p.dropFiles(longTrace(t, 20e6)) }) // a long trace, so that the worker exists long enough
	worker, err := p.watch.awaitWorker("worker")
	if err != nil {
		t.Fatal(err)
	}
	neighbour := "http://127.0.0.1:" + strconv.Itoa(s.neighbour.port) + "/"
	for _, part := range []string{neighbour, "stackglass.example", "policy violated: ", "violates the following Content Security Policy"} {
		p.watch.allowFault(part)
	}
	for _, base := range []string{neighbour + "NAME", "https://NAME.stackglass.example/", "http://NAME.stackglass.example/"} {
		before := p.watch.countFaults("policy violated: ")
		tries := eval[int](p, "("+sendAttempts+")("+quoteText(base)+")")
		want := tries - 1 // a beacon may be blocked without an event
		if p.server.origin == "file://" {
			want -= 3 // fetch (tried twice) and Worker can only access the page's own file
		}
		if seen := p.watch.waitFaults("policy violated: ", before+want) - before; seen < want {
			t.Errorf("%d attempts to reach %s from the page caused %d policy violations, want %d", tries, base, seen, want)
		}
		ctx, cancel := context.WithTimeout(worker, waitLimit)
		_, err := chromedp.Run(ctx, chromedp.Evaluate[int]("("+sendAttempts+")("+quoteText(base)+")", chromedp.EvalAwaitPromise))
		cancel()
		if err != nil {
			t.Errorf("in the worker: %v", err)
		}
	}
	// Before Chromium checks the policy, it connects to the target of a form or a frame, but sends
	// no data.
	s.anyHost.removeAllowed("TLS form.stackglass.example", "TLS frame.stackglass.example")
	wantNoRequests(t, "after the page and its worker tried to send data")
	p.clickElement("#run-cancel")
	p.waitFinished()
}

// TestFolderFromDisk checks what happens if the page in the unzipped folder is opened as a file.
// This page cannot run from a file, so the page must explain how to run the program.
func TestFolderFromDisk(t *testing.T) {
	needStage(t)
	dir := filepath.Join(unzipArchive(t), "stackglass")
	p := newTab(t, &server{origin: "file://", home: filepath.ToSlash(filepath.Join(dir, "index.html"))})
	p.watch.allowFault("file://")
	p.openPath("/")
	p.waitTrue("the instructions for a page opened from disk", `document.getElementById("boot-state").textContent.includes("stackglass.html")`)
	readme, err := os.ReadFile(filepath.Join(dir, "README.txt"))
	if err != nil || !bytes.Contains(readme, []byte("stackglass.html")) {
		t.Errorf("README.txt: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "stackglass.html")); err != nil {
		t.Error(err)
	}
}
