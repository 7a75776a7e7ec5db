package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestScreenshots writes screenshots of all views to the folder that STACKGLASS_SHOTS names, for
// wide and narrow windows and for both themes.
func TestScreenshots(t *testing.T) {
	needStage(t)
	dir := os.Getenv("STACKGLASS_SHOTS")
	if dir == "" {
		t.Skip("skipped: STACKGLASS_SHOTS does not name a folder for the screenshots")
	}
	p := openPage(t)
	shoot := p.takeScreenshots
	shoot("first-empty")
	p.startPaused(func() { p.dropFiles(longTrace(t, 20e6)) })
	p.openView("caches", "#level-1")
	shoot("run")
	p.clickElement("#run-pause")
	p.waitFinished()
	for _, v := range allViews {
		p.openView(v.name, v.shows)
		shoot(v.name)
	}
	p.clickElement("#back")
	p.waitFor("#kept .open")
	shoot("first")
	p.dropFiles(p.countersProfile())
	p.waitFor("#digest")
	p.openView("diagnosis", "#diagnosis")
	p.unfoldFacts()
	shoot("counted-facts")
	p.openView("counters", "#counters")
	shoot("counters-program")
	p.clickElement("#by-block")
	p.waitFor("#table-blocks tbody tr")
	shoot("counters-block")
	p.clickElement("#back")
	p.waitFor("#kept .open")
	p.dropFiles(p.writeFile("picture.png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")), p.writeFile("letter.txt", []byte("Dear Sir or Madam,\n\nno trace\n")))
	p.waitTrue("the messages about two files", `document.querySelectorAll("#problem details").length === 2`)
	shoot("problem")
	p.clickElement("#problem-dismiss")
	p.clickElement("#demo-array-list")
	p.waitFinished()
	for _, v := range allViews[:3] {
		p.openView(v.name, v.shows)
		shoot("demo-" + v.name)
	}
	p.openView("code", "#code-rows tbody td")
	shoot("demo-code")
	p.clickElement("#back")
	p.waitFor("#kept .open")
	p.clickElement("#demo-matmul-naive")
	p.waitFinished()
	p.openView("loops", "#table-loop-misses tbody tr")
	shoot("demo-loops")
	for _, demo := range []string{"ring", "false-sharing", "openmp-stencil"} {
		p.clickElement("#back")
		p.waitFor("#kept .open")
		p.clickElement("#demo-" + demo)
		p.waitFinished()
		for _, v := range threadViews {
			p.openView(v.name, v.shows)
			shoot(demo + "-" + v.name)
		}
	}
	p.clickElement("#back")
	p.waitFor("#kept .open")
	p.clickElement("#pair-matmul-blocked")
	for _, v := range comparedViews {
		p.openView(v.name, v.shows)
		shoot("compare-" + v.name)
	}
}

// TestReadmePicture takes the picture for README.md, which shows a demo's miss-ratio curve, if
// STACKGLASS_PICTURE names a file for it.
func TestReadmePicture(t *testing.T) {
	needStage(t)
	file := os.Getenv("STACKGLASS_PICTURE")
	if file == "" {
		t.Skip("skipped: STACKGLASS_PICTURE does not name a file for the picture")
	}
	p := openPage(t)
	p.do("set the viewport", chromedp.EmulateViewport(1280, 800, chromedp.EmulateScale(1.4)))
	p.clickElement("#demo-array-list")
	p.waitFinished()
	p.openView("caches", "#preset")
	eval[any](p, `document.documentElement.style.scrollbarWidth = "none"`)
	p.waitDrawn()
	p.writeScreenshot(file, chromedp.CaptureScreenshot())
}

// takeScreenshots takes screenshots of a view, for wide and narrow windows and for both themes,
// if STACKGLASS_SHOTS names a folder for them. After the last screenshot, the window is wide and
// the theme is light again.
func (p *tab) takeScreenshots(view string) {
	p.t.Helper()
	dir := os.Getenv("STACKGLASS_SHOTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	for _, width := range []int64{320, 768, 1440} {
		p.viewport(width, 900)
		for _, scheme := range []string{"dark", "light"} {
			p.setTheme(scheme)
			p.waitDrawn()
			p.writeScreenshot(filepath.Join(dir, view+"-"+strconv.FormatInt(width, 10)+"-"+scheme+".png"), chromedp.FullScreenshot(100))
		}
	}
}

// waitDrawn waits until the browser has drawn all changes.
func (p *tab) waitDrawn() {
	p.t.Helper()
	eval[any](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))`)
}

// writeScreenshot writes a screenshot to a file.
func (p *tab) writeScreenshot(path string, take chromedp.Action[[]byte]) {
	p.t.Helper()
	// Hide the scroll bar. Otherwise, the scroll bar would make screenshots of the whole page
	// narrower.
	callDevTools(p, emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true})
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	png, err := chromedp.Run(ctx, take)
	if err != nil {
		p.t.Fatalf("picture %s: %v", path, err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
