package e2e

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// waitPredictions waits until the page shows all predictions.
func (p *tab) waitPredictions() {
	p.t.Helper()
	p.waitTrue("the predictions for several cores", `document.querySelector("#table-rates-of tbody tr") && !document.querySelector("#cores-pending") && document.querySelector("#chart-speedup canvas")`)
}

// coresEverywhere shows predictions for several cores, and the error for an invalid request.
func (p *tab) coresEverywhere(look func(state string)) {
	p.t.Helper()
	p.clickElement("#demo-openmp-alone")
	p.waitFinished()
	p.openView("threads", "#cores-view")
	p.waitPredictions()
	look("cores")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}

// TestCores checks that the page predicts runs on several cores from a single-threaded run. The
// test types the numbers of cores, and changes the schedule. Finally, the test keeps the predicted
// threads as an analysis, and compares them.
func TestCores(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.openPath("/#demo=openmp-alone&cores=4")
	p.waitFinished()
	p.openView("threads", "#cores-view")
	p.waitPredictions()
	p.takeScreenshots("cores")
	const misses = `document.querySelector("#table-rates-of tbody tr").cells[2].textContent`
	p.waitTrue("four cores", `document.querySelector("#cores-sentence").textContent.startsWith("Misses with 4 cores, as shares of all accesses: L1 ")`)
	p.tabTo("the slider", `document.activeElement.id === "cores-number"`)
	p.pressKeys(kb.ArrowRight)
	p.waitTrue("five cores", `document.querySelector("#cores-sentence")?.textContent.startsWith("Misses with 5 cores")`)
	p.waitPredictions()
	static := eval[string](p, misses)
	p.setValue("cores-schedule", "dynamic")
	p.waitTrue("misses for a different division of the rows", misses+` !== `+quoteText(static))
	p.waitPredictions()
	if !eval[bool](p, `location.hash.includes("cores=5") && location.hash.includes("schedule=dynamic")`) {
		t.Errorf("hash = %s, want cores=5 and schedule=dynamic", eval[string](p, `location.hash`))
	}
	p.setValue("cores-schedule", "")

	// If the stack distance cache model (SDCM) uses sampled windows, the prediction has confidence
	// bands and describes the sample. The URL contains the method.
	p.setValue("cores-model", "windows")
	p.waitTrue("predictions from windows", `document.querySelector("#cores-sampled")?.textContent.includes("block executions")`)
	p.waitPredictions()
	p.takeScreenshots("cores-windows")
	if !eval[bool](p, `location.hash.includes("sdcm=windows")`) {
		t.Errorf("hash = %s, want sdcm=windows", eval[string](p, `location.hash`))
	}
	if !eval[bool](p, `document.querySelector("#table-rates-of").textContent.includes("±")`) {
		t.Error("the table of hit ratios contains no confidence intervals")
	}
	p.setValue("cores-interleave", "time")
	p.waitTrue("the sort order “clocks” in the URL", `location.hash.includes("interleave=time")`)
	p.waitPredictions()
	p.setValue("cores-interleave", "")
	p.setValue("cores-model", "")

	// If the executions of a block are divided among the threads, the page does not predict times.
	p.setValue("cores-division", "region")
	p.waitTrue("the predictions for the changed division", `document.querySelector("#cores-notes")?.textContent.includes("Algorithm 1") && !document.querySelector("#cores-pending") && !document.querySelector("#processor") && !document.querySelector("#chart-speedup")`)
	p.takeScreenshots("cores-region")
	p.setValue("cores-division", "")
	p.waitPredictions()

	// The threads that are predicted for five cores can be kept like any other analysis.
	p.clickElement("#cores-keep")
	p.waitTrue("the kept threads", `document.querySelector("#result-title")?.textContent.includes("predicted for 5 cores")`)
	p.waitFor("#threads")
	p.clickElement("#back")
	p.waitFor("#kept .delete")
}

// TestPredictedAndMeasuredThreads checks that a prediction can be compared with a real
// multi-threaded run.
func TestPredictedAndMeasuredThreads(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#demo-openmp-alone")
	p.waitFinished()
	alone := eval[string](p, `location.hash`)
	path, err := filepath.Abs("../../site/demos/openmp-stencil.sgt")
	if err != nil {
		t.Fatal(err)
	}
	p.clickElement("#back")
	p.waitFor("#kept .delete")
	p.dropFiles(path)
	p.waitFinished()
	key := eval[string](p, `new URLSearchParams(location.hash.slice(1)).get("open")`)
	eval[bool](p, `(location.hash = `+quoteText(alone+"&with="+key+"&view=threads")+`, true)`)
	p.waitTrue("the table of predicted and measured levels", `document.querySelector("#compare-cores .caption")?.textContent.includes("A predicted, B measured") && document.querySelector("#compare-cores table tbody tr")`)
	p.takeScreenshots("cores-compared")
}
