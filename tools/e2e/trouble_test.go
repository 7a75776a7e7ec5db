package e2e

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/pierrec/lz4/v4"
)

// TestBadFiles checks what the page does if invalid files are opened. The page must report the
// error in each file in a sentence, and continue to work.
func TestBadFiles(t *testing.T) {
	needStage(t)
	p := openPage(t)
	trace := p.read(beginning(t))
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
		{"flipped.lackey.lz4", flipped(t, p.read(lackeyTrace(t))), true, `^The analysis of flipped.lackey.lz4 is partial: .*(checksum|damaged)`},
		{"letter.txt", []byte("Dear Sir or Madam,\n\nthis is not a trace.\n"), false, `^letter.txt is not in a supported format\. .*“Format” in the settings`},
		{"empty.lackey", nil, false, `^empty.lackey: the file is empty`},
		{"newer.sgp", newer, false, `newer.sgp could not be imported: .*version 99.*newer stackglass`},
		{"damaged.sgp", damaged, false, `damaged.sgp could not be imported: .*checksum.*copy the file again`},
		{"cut.sgp", profile[:len(profile)/2], false, `cut.sgp could not be imported: `},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &tab{t: t, ctx: p.ctx, server: p.server, watch: p.watch}
			p.drop(p.write(c.name, c.content))
			said := p.problem()
			if !regexp.MustCompile(c.says).MatchString(said) {
				t.Errorf("problem = %q, want a match of %s", said, c.says)
			}
			t.Log(said)
			p.waitGone("[data-running]")
			if c.partial {
				p.finished()
				if !p.has(".chip.partial") {
					t.Errorf("the result is not marked as partial\n%s", p.screen())
				}
			} else if p.has("#result") {
				t.Errorf("the page shows a result for an invalid file\n%s", p.screen())
			}
			p.click("#problem-dismiss")
			p.waitGone("#problem")
			p.press("\x1b")
			p.waitFor("#kept-title")
			p.watch.check(t)
		})
	}
	p.click("#demo-" + demo.Name)
	if got, want := p.finished(), truthOf(t, "demo:"+demo.Name).Digest; got != want {
		t.Errorf("digest of a demo after the errors = %s, want %s", got, want)
	}
}

// The function "flipped" returns a compressed copy of a trace that has a checksum for every block,
// and one flipped bit.
func flipped(t *testing.T, packed []byte) []byte {
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
	p.drop(trace)
	p.wait("a checkpoint", storedEntries+" > 0")
	p.watch.allow(lastWords)
	p.kill()
	said := p.problem()
	t.Log(said)
	if !regexp.MustCompile(`long-.*: the analysis worker crashed.*resume the analysis from the list`).MatchString(said) {
		t.Errorf("problem = %q, want a crashed worker and the advice to resume", said)
	}
	p.press("\x1b")
	p.waitFor(`#kept .chip.interrupted`)
	p.reload()
	p.waitFor(`#kept .chip.interrupted`)
	t.Log(p.text("#kept .chip.interrupted"))

	p.drop(trace)
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest after an interruption = %s, want the command's digest %s", got, want)
	}
	p.click("#back")
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
	p.pick(trace) // the test uses a file picker because the browser would ask for permission to open a dropped file again
	p.wait("a checkpoint", storedEntries+" > 0")
	p.reload()
	p.visit("/")
	p.ready()
	p.waitFor("#kept .go-on")
	p.click("#kept .go-on")
	p.waitFor("#note")
	p.pick(trace)
	if got, want := p.finished(), truthOf(t, trace).Digest; got != want {
		t.Errorf("digest after a reload = %s, want the command's digest %s", got, want)
	}
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

// The constant "lastWords" is the text of the error that kills a worker.
const lastWords = "the clock is gone"

// TestNamesInACrash checks that the stack trace of a crashed program contains function names,
// although the program itself does not contain them. The program crashes at once because it cannot
// call the browser.
func TestNamesInACrash(t *testing.T) {
	needStage(t)
	const names = "With the names of functions:"
	for name, from := range map[string]*server{"site": serve(t, ":0"), "file": singleFile(t)} {
		t.Run(name, func(t *testing.T) {
			p := newTab(t, from)
			p.open()
			p.watch.allow(names)
			p.watch.allow("exit code:")
			eval[any](p, `(async () => {
				const go = new Go();
				go.importObject.gojs["syscall/js.valueCall"] = () => {};
				const instance = await WebAssembly.instantiate(await compileProgram(document.documentElement.dataset.program), go.importObject);
				await go.run(instance);
				return null;
			})()`)
			if p.watch.await(names, 1) == 0 || p.watch.count("main.main") == 0 || p.watch.count("syscall/js.Value.Call(") == 0 {
				t.Errorf("the stack trace on the console has no function names: %q", p.watch.faults)
			}
		})
	}
}

// The method "kill" makes the clock of the analysis worker fail, which crashes the worker's
// program.
func (p *tab) kill() {
	p.t.Helper()
	killed := false
	for _, ctx := range p.watch.workersOf("worker") {
		ctx, cancel := context.WithTimeout(ctx, patience)
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](`performance.now = () => { throw new Error(`+quote(lastWords)+`); }; null`))
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
	trace := beginning(t)
	p := firstVisit(t)
	// The site cannot be stored for offline use either, and the browser reports this as an error.
	p.watch.allow("service_worker: exception: Uncaught (in promise) QuotaExceededError")
	size := float64(1)
	call(p, storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: p.server.origin, QuotaSize: &size})
	p.pick(trace)
	want := truthOf(t, trace)
	if got := p.finished(); got != want.Digest {
		t.Errorf("digest = %s, want the command's digest %s", got, want.Digest)
	}
	said := p.problem()
	t.Log(said)
	if !regexp.MustCompile(`^The storage is full, .*not kept.*[Ee]xport`).MatchString(said) {
		t.Errorf("problem = %q, want full storage and the advice to export", said)
	}
	_, exported := p.download(func() { p.click("#export-profile") })
	if !bytes.Equal(p.read(exported), p.read(want.Profile)) {
		t.Error("the exported profile differs from the profile that the command writes with -o")
	}
	p.press("\x1b")
	p.waitFor("#kept-empty")

	call(p, storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: p.server.origin})
	p.pick(trace)
	p.finished()
	p.click("#back")
	p.waitFor("#kept .chip.complete")
}
