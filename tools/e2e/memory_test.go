package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

// wideTrace writes a trace that accesses about 800,000 lines in random order, and returns the path
// of the trace.
func (p *tab) wideTrace() string {
	var b []byte
	x := uint32(1)
	for range 1_500_000 {
		x = x*1664525 + 1013904223
		b = append(b, '0')
		b = strconv.AppendUint(append(b, ' '), uint64(x>>12)<<6, 16)
		b = append(b, '\n')
	}
	return p.writeFile("wide.din", b)
}

// TestBudgetCoversTheWholeTab checks that the process of the tab exceeds the memory budget by at
// most half a gigabyte. The trace contains random references to many more lines than fit in the
// memory of the run, so all stack distances occur. The process includes the page, its workers and
// the data that the page passes to the browser. Most of the additional half gigabyte is used by
// compiled programs and by the browser itself.
func TestBudgetCoversTheWholeTab(t *testing.T) {
	if !isSoak {
		t.Skip("skipped: this test takes minutes; set STACKGLASS_SOAK=1 to run it")
	}
	s := needStage(t)
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skip("skipped: this system does not report the memory of a process")
	}
	path, err := chromium.Find()
	if err != nil {
		t.Fatal(err)
	}
	browser, err := startBrowser(t.Context(), path, t.TempDir(), s.anyHost.port)
	if err != nil {
		t.Fatal(err)
	}
	defer chromedp.Cancel(browser)
	const references, lines, budget, beside = 100_000_000, 60_000_000, 1 << 30, 512 << 20
	random := rand.New(rand.NewPCG(12, 34))
	var b []byte
	for range references {
		b = append(b, "0 "...)
		b = append(strconv.AppendUint(b, random.Uint64N(lines)<<6, 16), '\n')
	}
	p := newTabIn(t, browser, serveCommand(t, ":0"))
	p.openFirstScreen()
	eval[any](p, `document.querySelector("#settings").open = true, document.querySelector("#memory").add(new Option("1GiB", "1GiB", true, true))`)
	p.dropFiles(p.writeFile("chase.din", b))
	b = nil
	p.waitFor("[data-running]")
	const ended = `!document.querySelector("[data-running]") && !!document.querySelector("#digest")?.dataset.digest`
	var most int64
	beyond := false
	for ; !eval[bool](p, ended); time.Sleep(200 * time.Millisecond) {
		if held := largestRenderer(t, browser); held > most {
			most = held
			t.Logf("the tab uses %d MB; the page shows %q at %s", most>>20, p.textOf("#run-memory"), p.textOf("#run-percent"))
		}
		if beyond = beyond || p.has("#run-outside"); p.has("#problem") {
			t.Fatal(p.textOf("#problem"))
		}
	}
	if !beyond {
		t.Error("nothing was spilled, so the memory limit was not tested")
	}
	if most = max(most, largestRenderer(t, browser)); most > budget+beside {
		t.Errorf("memory of the tab = %d bytes, want at most %d", most, budget+beside)
	}
}

// largestRenderer returns how much anonymous memory the largest renderer process uses, in bytes.
func largestRenderer(t *testing.T, browser context.Context) (most int64) {
	t.Helper()
	processes, err := chromedp.CallBrowser(browser, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes.ProcessInfo {
		if process.Type == "renderer" {
			most = max(most, anonymousMemory(t, int(process.ID)))
		}
	}
	return most
}

// TestTraceLargerThanMemory checks the analysis of a trace with more lines than fit in the selected
// memory. The analysis must spill data and report this. The analysis's result must have the same
// digest as the command's result. At the end, only the result may remain in storage.
func TestTraceLargerThanMemory(t *testing.T) {
	p := openPage(t)
	eval[any](p, `document.querySelector("#settings").open = true, document.querySelector("#memory").add(new Option("40MiB", "40MiB", true, true))`)
	p.takeScreenshots("settings")
	trace := p.wideTrace()
	p.dropFiles(trace)
	p.waitFor("#run-outside")
	p.waitTrue("a pause", `!document.querySelector("#run-pause").disabled`)
	p.clickElement("#run-pause")
	p.waitTrue("the paused run", `document.querySelector("#run-pause").textContent === "Resume"`)
	if memory, note := p.textOf("#run-memory"), p.textOf("#note"); !strings.Contains(memory, " of 40") || !strings.Contains(note, "wide.din has more distinct lines than fit in 40") {
		t.Errorf("memory = %q, note = %q; want a limit of 40 MiB in both", memory, note)
	}
	if !eval[bool](p, `document.querySelector("#run meter").value > 0`) {
		t.Error("the memory bar is empty")
	}
	p.takeScreenshots("run-outside")
	p.clickElement("#run-pause")
	p.waitFinished()
	profile := filepath.Join(t.TempDir(), "wide.sgp")
	runCommand(t, "analyze", trace, "-o", profile, "--memory", "400MiB", "--spill", t.TempDir()) // uses the same settings as the page
	if got, want := p.shownDigest(), infoOf(t, profile).Digest; got != want {
		t.Errorf("digest = %s, want the command's digest %s", got, want)
	}
	p.clickElement("#back")
	p.waitFor("#storage-finished")
	if title := eval[string](p, `document.querySelector("#kept .chip").title`); !strings.Contains(title, "did not fit in memory") {
		t.Errorf("title of the chip = %q, want a text with: did not fit in memory", title)
	}
	p.takeScreenshots("storage")
	p.waitTrue("the deletion of the spilled data", `indexedDB.databases().then((all) => all.every((d) => !d.name.includes(" shelf ")))`)
}

// TestOrphansAreSwept checks that, when the page is opened, it deletes the spilled data of any
// analysis that can no longer be resumed.
func TestOrphansAreSwept(t *testing.T) {
	p := openPage(t)
	eval[any](p, `new Promise((done) => { const r = indexedDB.open("stackglass shelf t0", 1);
		r.onupgradeneeded = () => r.result.createObjectStore("blocks"); r.onsuccess = () => { r.result.close(); done(null); }; })`)
	p.reload()
	p.waitTrue("the deletion of the data of an analysis that cannot be resumed", `indexedDB.databases().then((all) => all.every((d) => !d.name.includes(" shelf ")))`)
}
