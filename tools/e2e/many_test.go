package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"
)

// TestEightWorkers checks that a run that is divided among eight workers, as on a machine with
// eight processors, has the same result as the command. The test prints how responsive the page
// stays, and how quickly a cancelled run ends. The test does not fail if these times are long. The
// test runs only in make soak. In other runs, TestSharedRuns tests the division among workers.
func TestEightWorkers(t *testing.T) {
	needStage(t)
	if !isSoak {
		t.Skip("skipped: this test takes a minute and only prints times; set STACKGLASS_SOAK=1 to run it")
	}
	trace := filepath.Join(t.TempDir(), "long.sgt")
	runCommand(t, "convert", longTrace(t, 30e6), "-o", trace)
	p := newTab(t, serveCommand(t, ":0"))
	callDevTools[emulation.SetHardwareConcurrencyOverrideParams, cdp.Empty](p, emulation.SetHardwareConcurrencyOverride, emulation.SetHardwareConcurrencyOverrideParams{HardwareConcurrency: 8})
	p.openPath("/")
	p.waitReady()
	callDevTools(p, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"})
	run := func(count int) {
		busy := p.mainThreadTime()
		p.setValue("workers", strconv.Itoa(count))
		again := strings.TrimSuffix(trace, ".sgt") + "-" + strconv.Itoa(count) + ".sgt"
		if err := os.Link(trace, again); err != nil { // use a new file name, because the page would not analyse the same file again
			t.Fatal(err)
		}
		p.dropFiles(again)
		p.waitTrue("the first references", `document.querySelector(".chip.growing") && !document.querySelector("#run-cancel").disabled`)
		begun := eval[float64](p, `performance.now()`)
		if count > 1 {
			p.waitTrue("the number of workers", `/\b`+strconv.Itoa(count)+`\b/.test(document.getElementById("run-workers")?.textContent)`)
		}
		if got, want := p.waitFinished(), truthOf(t, trace).Digest; got != want {
			t.Errorf("%d workers: digest = %s, want the command's digest %s", count, got, want)
		}
		took := eval[float64](p, `performance.now()`) - begun
		t.Logf("%d workers: %.0f ms; the page was busy for %.0f ms", count, took, p.mainThreadTime()-busy)
	}
	for _, count := range []int{1, 2, 8} {
		tasks := p.longTasks(func() { run(count) })
		wall := slices.SortedFunc(slices.Values(tasks), func(a, b task) int { return int(b.Wall - a.Wall) })
		t.Logf("the page's longest tasks: wall-clock time %v; CPU time %v", wall[:min(5, len(wall))], tasks[:min(5, len(tasks))])
	}

	var ends []int
	for range 3 {
		p.dropFiles(trace)
		p.waitTrue("the number of workers", `/\b8\b/.test(document.getElementById("run-workers")?.textContent)`)
		ends = append(ends, int(eval[float64](p, `new Promise((done) => {
			const from = performance.now();
			const look = () => !document.querySelector("[data-running]") && document.querySelector(".chip.partial") ? done(performance.now() - from) : requestAnimationFrame(look);
			document.getElementById("run-cancel").click();
			look();
		})`)))
	}
	slices.Sort(ends)
	t.Logf("time from the click on Cancel to the partial result: %v ms", ends)
}
