package e2e

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/pierrec/lz4/v4"
)

// TestBadFiles checks what the page does if a user opens invalid files. The page must explain the
// error in each file in one sentence, and continue to work.
func TestBadFiles(t *testing.T) {
	needStage(t)
	p := openPage(t)
	trace := p.read(shortTrace(t))
	demo := demos(t)[0]
	profile := p.read(truthOf(t, "demo:"+demo.Name).Profile)
	newer := bytes.Clone(profile)
	newer[8] = 99 // the version number of the format
	damaged := bytes.Clone(profile)
	damaged[len(damaged)/2] ^= 0x20
	for _, c := range []struct {
		name    string
		content []byte
		partial bool
		says    string
	}{
		{"cut-off.lackey.lz4", trace[:len(trace)*3/5], true, `^The analysis of cut-off.lackey.lz4 is partial: .*(cut|ends|truncated)`},
		{"flipped.lackey.lz4", flipBit(t, p.read(lackeyTrace(t))), true, `^The analysis of flipped.lackey.lz4 is partial: .*(checksum|damaged)`},
		{"letter.txt", []byte("Dear Sir or Madam,\n\nthis is not a trace.\n"), false, `^letter.txt is not in a supported format\. .*“Format” in the settings`},
		{"empty.lackey", nil, false, `^empty.lackey: the file is empty`},
		{"newer.sgp", newer, false, `newer.sgp could not be imported: .*version 99.*newer stackglass`},
		{"damaged.sgp", damaged, false, `damaged.sgp could not be imported: .*checksum.*copy the file again`},
		{"cut.sgp", profile[:len(profile)/2], false, `cut.sgp could not be imported: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &tab{t: t, ctx: p.ctx, server: p.server, watch: p.watch}
			p.dropFiles(p.writeFile(c.name, c.content))
			said := p.waitProblem()
			if !regexp.MustCompile(c.says).MatchString(said) {
				t.Errorf("problem = %q, want a match of %s", said, c.says)
			}
			t.Log(said)
			p.waitGone("[data-running]")
			if c.partial {
				p.waitFinished()
				if !p.has(".chip.partial") {
					t.Errorf("the result is not marked as partial\n%s", p.pageText())
				}
			} else if p.has("#result") {
				t.Errorf("the page shows a result for an invalid file\n%s", p.pageText())
			}
			p.clickElement("#problem-dismiss")
			p.waitGone("#problem")
			p.pressKeys("\x1b")
			p.waitFor("#kept-title")
			p.watch.failOnFaults(t)
		})
	}
	p.clickElement("#demo-" + demo.Name)
	if got, want := p.waitFinished(), truthOf(t, "demo:"+demo.Name).Digest; got != want {
		t.Errorf("digest of a demo after the errors = %s, want %s", got, want)
	}
}

// flipBit returns a compressed copy of a trace. The copy has a checksum for every block, and one of
// its bits is flipped.
func flipBit(t *testing.T, packed []byte) []byte {
	t.Helper()
	text, err := io.ReadAll(lz4.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(lz4.BlockChecksumOption(true), lz4.BlockSizeOption(lz4.Block64Kb)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := out.Bytes()
	damaged[len(damaged)*3/5] ^= 1
	return damaged
}

// TestDeadWorker checks what the page does if its worker is killed between two checkpoints. The
// analysis must resume when its file is dropped again, and its result must be the same as without
// an interruption.
func TestDeadWorker(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 30e6)
	p := openPage(t)
	p.dropFiles(trace)
	p.waitTrue("a checkpoint", storedEntries+" > 0")
	p.watch.allowFault(crashText)
	p.crashWorker()
	said := p.waitProblem()
	t.Log(said)
	if !regexp.MustCompile(`long-.*: the analysis worker crashed.*resume the analysis from the list`).MatchString(said) {
		t.Errorf("problem = %q, want a crashed worker and the advice to resume", said)
	}
	p.pressKeys("\x1b")
	p.waitFor(`#kept .chip.interrupted`)
	p.reload()
	p.waitFor(`#kept .chip.interrupted`)
	t.Log(p.textOf("#kept .chip.interrupted"))

	p.dropFiles(trace)
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest after an interruption = %s, want the command's digest %s", got, want)
	}
	p.clickElement("#back")
	p.waitFor("#kept .chip.complete")
	if p.has("#kept .chip.interrupted") {
		t.Error("the list contains the complete analysis and also the interrupted analysis")
	}
}

// TestInterruptedByReload checks that, if the page is reloaded during a run, the run can be resumed
// from the list.
func TestInterruptedByReload(t *testing.T) {
	needStage(t)
	trace := longTrace(t, 30e6)
	p := openPage(t)
	p.pickFiles(trace) // the test uses a file picker because the browser would ask for permission to open a dropped file again
	p.waitTrue("a checkpoint", storedEntries+" > 0")
	p.reload()
	p.openPath("/")
	p.waitReady()
	p.waitFor("#kept .go-on")
	p.waitTrue("the note on the first screen", `document.getElementById("interrupted").checkVisibility()`)
	p.takeScreenshots("interrupted")
	name := filepath.Base(trace)
	if got, want := p.textOf("#interrupted span"), "To resume it where it stopped, choose "+name+" again"; !strings.HasPrefix(got, "The analysis of "+name+" was interrupted at ") || !strings.Contains(got, want) {
		t.Errorf("note on the first screen = %q, want a text with: %s", got, want)
	}
	p.clickElement("#interrupted-resume")
	p.waitFor("#note")
	p.pickFiles(trace)
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest after a reload = %s, want the command's digest %s", got, want)
	}
}

// TestInterruptedBeforeCheckpoint checks that, if the page is reloaded before the first checkpoint of
// an analysis, the first screen names this analysis and says what to do.
func TestInterruptedBeforeCheckpoint(t *testing.T) {
	needStage(t)
	trace := ownTrace(t)
	p := openPage(t)
	p.startPaused(func() { p.pickFiles(trace) })
	p.openFirstScreen()
	p.waitTrue("the note on the first screen", `document.getElementById("interrupted").checkVisibility()`)
	want := filepath.Base(trace) + " was interrupted before its first checkpoint"
	if got := p.textOf("#interrupted"); !strings.Contains(got, want) {
		t.Errorf("note on the first screen = %q, want a text with: %s", got, want)
	}
	p.pickFiles(trace)
	if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
	p.clickElement("#back")
	p.waitTrue("a first screen without the note", `!document.getElementById("interrupted").checkVisibility()`)
}

// storedEntries returns the number of entries in the store, including checkpoints.
const storedEntries = `await new Promise((done, fail) => {
	const opening = indexedDB.open("stackglass");
	opening.onerror = () => fail(opening.error);
	opening.onsuccess = () => {
		const asking = opening.result.transaction("entries").objectStore("entries").count();
		asking.onsuccess = () => { opening.result.close(); done(asking.result); };
		asking.onerror = () => { opening.result.close(); fail(asking.error); };
	};
})`

// crashText is the message of the error that crashes a worker.
const crashText = "the clock is gone"

// TestFunctionNamesInStackTrace checks that the stack trace of a crashed program contains function
// names, although the program itself does not contain them. The test makes all calls to the browser
// fail, so the program crashes at once.
func TestFunctionNamesInStackTrace(t *testing.T) {
	needStage(t)
	const names = "With the names of functions:"
	for name, from := range map[string]*server{"site": serveCommand(t, ":0"), "file": singleFile(t)} {
		t.Run(name, func(t *testing.T) {
			p := newTab(t, from)
			p.openFirstScreen()
			p.watch.allowFault(names)
			p.watch.allowFault("exit code:")
			eval[any](p, `(async () => {
				const go = new Go();
				go.importObject.gojs["syscall/js.valueCall"] = () => {};
				const instance = await WebAssembly.instantiate(await compileProgram(document.documentElement.dataset.program), go.importObject);
				await go.run(instance);
				return null;
			})()`)
			if p.watch.waitFaults(names, 1) == 0 || p.watch.countFaults("main.main") == 0 || p.watch.countFaults("syscall/js.Value.Call(") == 0 {
				t.Errorf("the stack trace on the console has no function names: %q", p.watch.faults)
			}
		})
	}
}

// crashWorker makes the clock of the analysis worker fail, which crashes the worker's
// program.
func (p *tab) crashWorker() {
	p.t.Helper()
	killed := false
	for _, ctx := range p.watch.workersOf("worker") {
		ctx, cancel := context.WithTimeout(ctx, waitLimit)
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](`performance.now = () => { throw new Error(`+quoteText(crashText)+`); }; null`))
		cancel()
		killed = killed || err == nil
	}
	if !killed {
		p.t.Fatal("there is no worker to kill")
	}
}

// TestFullStore checks the page in a browser that has no space to store the result of an analysis.
func TestFullStore(t *testing.T) {
	needStage(t)
	trace := shortTrace(t)
	p := firstVisit(t)
	// The browser also reports an error because it cannot store the site for offline use.
	p.watch.allowFault("service_worker: exception: Uncaught (in promise) QuotaExceededError")
	size := float64(1)
	callDevTools(p, storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: p.server.origin, QuotaSize: &size})
	p.pickFiles(trace)
	want := truthOf(t, trace)
	if got := p.waitFinished(); got != want.Digest {
		t.Errorf("digest = %s, want the command's digest %s", got, want.Digest)
	}
	said := p.waitProblem()
	t.Log(said)
	if !regexp.MustCompile(`^The storage is full, .*not kept.*[Ee]xport`).MatchString(said) {
		t.Errorf("problem = %q, want full storage and the advice to export", said)
	}
	_, exported := p.awaitDownload(func() { p.clickElement("#export-profile") })
	if !bytes.Equal(p.read(exported), p.read(want.Profile)) {
		t.Error("the exported profile differs from the profile that the command writes with -o")
	}
	p.pressKeys("\x1b")
	p.waitFor("#kept-empty")

	callDevTools(p, storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: p.server.origin})
	p.pickFiles(trace)
	p.waitFinished()
	p.clickElement("#back")
	p.waitFor("#kept .chip.complete")
}
