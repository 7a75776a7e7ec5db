package e2e

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The function "predicted" waits until the page has finished all predictions.
func (p *tab) predicted() {
	p.t.Helper()
	p.wait("the predictions for several cores", `document.querySelector("#table-rates-of tbody tr") && !document.querySelector("#cores-pending") && document.querySelector("#chart-speedup canvas")`)
}

// coresEverywhere shows predictions for several cores, and the error for an invalid request.
func (p *tab) coresEverywhere(look func(state string)) {
	p.t.Helper()
	p.click("#demo-openmp-alone")
	p.finished()
	p.openView("threads", "#cores-view")
	p.predicted()
	look("cores")
	p.click("#back")
	p.waitFor("#kept .delete")
}

// TestCores checks that the page predicts runs on several cores from a single-threaded run. The
// test types the numbers of cores, and changes the schedule. It also keeps the predicted threads
// and compares them.
func TestCores(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.visit("/#demo=openmp-alone&cores=4")
	p.finished()
	p.openView("threads", "#cores-view")
	p.predicted()
	p.shoot("cores")
	const misses = `document.querySelector("#table-rates-of tbody tr").cells[2].textContent`
	p.wait("four cores", `document.querySelector("#cores-sentence").textContent.startsWith("Misses with 4 cores, as shares of all accesses: L1 ")`)
	p.tabTo("the slider", `document.activeElement.id === "cores-number"`)
	p.press(kb.ArrowRight)
	p.wait("five cores", `document.querySelector("#cores-sentence")?.textContent.startsWith("Misses with 5 cores")`)
	p.predicted()
	static := eval[string](p, misses)
	p.choose("cores-schedule", "dynamic")
	p.wait("a changed division of the rows", misses+` !== `+quote(static))
	p.predicted()
	if !eval[bool](p, `location.hash.includes("cores=5") && location.hash.includes("schedule=dynamic")`) {
		t.Errorf("hash = %s, want cores=5 and schedule=dynamic", eval[string](p, `location.hash`))
	}
	p.choose("cores-schedule", "")

	// If SDCM uses sampled windows, the prediction has confidence bands and describes the sample.
	// The URL contains the method.
	p.choose("cores-model", "windows")
	p.wait("predictions from windows", `document.querySelector("#cores-sampled")?.textContent.includes("block executions")`)
	p.predicted()
	p.shoot("cores-windows")
	if !eval[bool](p, `location.hash.includes("sdcm=windows") && document.querySelector("#table-rates-of").textContent.includes("±")`) {
		t.Errorf("hash = %s, want sdcm=windows and intervals in the table", eval[string](p, `location.hash`))
	}
	p.choose("cores-interleave", "time")
	p.wait("the order by clocks in the URL", `location.hash.includes("interleave=time")`)
	p.predicted()
	p.choose("cores-interleave", "")
	p.choose("cores-model", "")

	// If the executions of a block are divided among the threads, the page does not predict times.
	p.choose("cores-division", "region")
	p.wait("predictions with the changed division", `document.querySelector("#cores-notes")?.textContent.includes("Algorithm 1") && !document.querySelector("#cores-pending") && !document.querySelector("#processor") && !document.querySelector("#chart-speedup")`)
	p.shoot("cores-region")
	p.choose("cores-division", "")
	p.predicted()

	// The threads that are predicted for five cores can be kept like any other analysis.
	p.click("#cores-keep")
	p.wait("the kept threads", `document.querySelector("#result-title")?.textContent.includes("predicted for 5 cores")`)
	p.waitFor("#threads")
	p.click("#back")
	p.waitFor("#kept .delete")
}

// TestCoresBesideThreads checks that a prediction can be compared with a real multi-threaded run.
func TestCoresBesideThreads(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.click("#demo-openmp-alone")
	p.finished()
	alone := eval[string](p, `location.hash`)
	path, err := filepath.Abs("../../site/demos/openmp-stencil.sgt")
	if err != nil {
		t.Fatal(err)
	}
	p.click("#back")
	p.waitFor("#kept .delete")
	p.drop(path)
	p.finished()
	key := eval[string](p, `new URLSearchParams(location.hash.slice(1)).get("open")`)
	eval[bool](p, `(location.hash = `+quote(alone+"&with="+key+"&view=threads")+`, true)`)
	p.wait("the table of predicted and measured levels", `document.querySelector("#compare-cores .caption")?.textContent.includes("A predicted, B measured") && document.querySelector("#compare-cores table tbody tr")`)
	p.shoot("cores-compared")
}
