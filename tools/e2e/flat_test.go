package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"github.com/stackglass/stackglass/tools/internal/chromium"
)

// memoryInUse is the memory that a tab uses after garbage collection, in bytes.
type memoryInUse struct {
	private  int64 // anonymous memory in the browser's renderer processes
	scripts  int64 // JavaScript objects
	buffers  int64 // the page's array buffers
	programs int64 // memory of the page's WebAssembly programs
	elements int   // DOM elements of the page
	workers  int
}

// TestMemoryStaysFlat checks that memory use does not grow when one tab of a separate browser
// analyses six files in a row. After each file, the tab may use at most 10 % more memory than after
// any earlier file. The first two files are excluded, because the program's memory grows to its
// final size while they are analysed.
//
// The JavaScript engine's optimising compilers are off, because the code that they generate would
// be counted as JavaScript objects. Such code would be generated at unpredictable times during
// about thirty analyses, and would take up to a third of a megabyte, so it could hide a leak in the
// page.
func TestMemoryStaysFlat(t *testing.T) {
	s := needStage(t)
	if _, err := os.Stat("/proc/self/smaps_rollup"); err != nil {
		t.Skip("skipped: this system does not report the memory of a process")
	}
	path, err := chromium.Find()
	if err != nil {
		t.Fatal(err)
	}
	browser, err := startBrowser(t.Context(), path, t.TempDir(), s.anyHost.port, chromedp.Flag("js-flags", "--no-opt --no-maglev --no-sparkplug"))
	if err != nil {
		t.Fatal(err)
	}
	defer chromedp.Cancel(browser)
	const analyses, warm = 6, 2
	trace := shortTrace(t)
	want := truthOf(t, trace).Digest
	p := newTabIn(t, browser, serveCommand(t, ":0"))
	p.openFirstScreen()
	var after []memoryInUse
	for i := range analyses {
		copied := filepath.Join(t.TempDir(), fmt.Sprintf("run-%d.lackey.lz4", i))
		if err := os.Link(trace, copied); err != nil {
			t.Fatal(err)
		}
		p.dropFiles(copied)
		p.waitTrue("the result", fmt.Sprintf(`document.title.startsWith("run-%d") && !document.querySelector("[data-running]") && document.querySelector("#digest")`, i))
		if got := p.shownDigest(); got != want {
			t.Errorf("digest = %s, want the command's digest %s", got, want)
		}
		for _, view := range []string{"2", "3", "4", "5"} {
			p.pressKeys(view)
		}
		// A kept result is on disk, not in memory.
		p.clickElement("#back")
		p.waitFor("#kept .delete")
		p.clickElement("#kept .delete")
		p.waitFor("#delete-yes")
		p.clickElement("#delete-yes")
		p.waitFor("#kept-empty")
		h := p.measureMemory(browser)
		t.Logf("after %2d: %6.1f MB private, %5.3f MB of scripts, %4.2f MB of buffers, %4.1f MB of programs, %d elements, %d workers",
			i+1, float64(h.private)/1e6, float64(h.scripts)/1e6, float64(h.buffers)/1e6, float64(h.programs)/1e6, h.elements, h.workers)
		after = append(after, h)
	}
	for what, of := range map[string]func(memoryInUse) (bytes, slack int64){
		"private memory": func(h memoryInUse) (int64, int64) { return h.private, 0 },
		"scripts":        func(h memoryInUse) (int64, int64) { return h.scripts, 0 },
		"programs":       func(h memoryInUse) (int64, int64) { return h.programs, 0 },
		"buffers":        func(h memoryInUse) (int64, int64) { return h.buffers, 1 << 20 },
		"elements":       func(h memoryInUse) (int64, int64) { return int64(h.elements), 0 },
		"workers":        func(h memoryInUse) (int64, int64) { return int64(h.workers), 0 },
	} {
		least, _ := of(after[warm])
		for i, h := range after[warm:] {
			now, slack := of(h)
			if least = min(least, now); now > least+max(least/10, slack) {
				t.Errorf("%s = %d after analysis %d, want at most 10 %% more than the earlier minimum, %d", what, now, warm+i+1, least)
			}
		}
	}
}

// measureMemory collects garbage, and returns the memory that is still in use.
func (p *tab) measureMemory(browser context.Context) (h memoryInUse) {
	p.t.Helper()
	for range 3 { // another garbage collection may free more memory
		callDevTools(p, heapprofiler.CollectGarbage, cdp.Empty{})
	}
	heap := callDevTools(p, runtime.GetHeapUsage, cdp.Empty{})
	h.scripts, h.buffers = int64(heap.UsedSize), int64(heap.BackingStorageSize)
	h.programs = p.programMemory()
	h.elements = eval[int](p, `document.querySelectorAll("*").length`)
	processes, err := chromedp.CallBrowser(browser, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, process := range processes.ProcessInfo {
		if process.Type == "renderer" {
			h.private += anonymousMemory(p.t, int(process.ID))
		}
	}
	targets, err := chromedp.Targets(p.ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, target := range targets {
		if target.Type == "worker" {
			h.workers++
		}
	}
	return h
}

// programMemory returns the total size of the page's WebAssembly memories in bytes, without the
// memories of its workers.
func (p *tab) programMemory() (bytes int64) {
	p.t.Helper()
	const group = "memories"
	kind := callDevTools(p, runtime.Evaluate, runtime.EvaluateParams{Expression: "WebAssembly.Memory.prototype", ObjectGroup: group})
	all := callDevTools(p, runtime.QueryObjects, runtime.QueryObjectsParams{PrototypeObjectID: kind.Result.ObjectID, ObjectGroup: group})
	yes := true
	sum := callDevTools(p, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		ObjectID: all.Objects.ObjectID, ReturnByValue: &yes, FunctionDeclaration: `function() { return this.reduce((sum, memory) => sum + memory.buffer.byteLength, 0); }`,
	})
	if err := json.Unmarshal(sum.Result.Value, &bytes); err != nil {
		p.t.Fatal(err)
	}
	callDevTools(p, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: group})
	return bytes
}

var anonymousOf = regexp.MustCompile(`(?m)^Anonymous: +([0-9]+) kB$`)

// anonymousMemory returns how much anonymous memory a process uses, in bytes.
func anonymousMemory(t *testing.T, process int) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(process) + "/smaps_rollup")
	if err != nil {
		return 0 // the process has ended
	}
	kB, err := strconv.ParseInt(string(anonymousOf.FindSubmatch(text)[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}
