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
		t.Skip("STACKGLASS_SHOTS is not set to a folder for screenshots")
	}
	p := openPage(t)
	shoot := p.shoot
	shoot("first-empty")
	p.pausing(func() { p.drop(longTrace(t, 20e6)) })
	p.openView("caches", "#level-1")
	shoot("run")
	p.click("#run-pause")
	p.finished()
	for _, v := range views {
		p.openView(v.name, v.shows)
		shoot(v.name)
	}
	p.click("#back")
	p.waitFor("#kept .open")
	shoot("first")
	p.drop(p.multiplied())
	p.waitFor("#digest")
	p.openView("diagnosis", "#diagnosis")
	p.unfoldFacts()
	shoot("counted-facts")
	p.openView("counters", "#counters")
	shoot("counters-program")
	p.click("#by-block")
	p.waitFor("#table-blocks tbody tr")
	shoot("counters-block")
	p.click("#back")
	p.waitFor("#kept .open")
	p.drop(p.write("picture.png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")), p.write("letter.txt", []byte("Dear Sir or Madam,\n\nno trace\n")))
	p.wait("the messages about two files", `document.querySelectorAll("#problem details").length === 2`)
	shoot("problem")
	p.click("#problem-dismiss")
	p.click("#demo-array-list")
	p.finished()
	for _, v := range views[:3] {
		p.openView(v.name, v.shows)
		shoot("demo-" + v.name)
	}
	p.openView("code", "#code-rows tbody td")
	shoot("demo-code")
	p.click("#back")
	p.waitFor("#kept .open")
	p.click("#demo-matmul-naive")
	p.finished()
	p.openView("loops", "#table-loop-misses tbody tr")
	shoot("demo-loops")
	for _, demo := range []string{"ring", "false-sharing", "openmp-stencil"} {
		p.click("#back")
		p.waitFor("#kept .open")
		p.click("#demo-" + demo)
		p.finished()
		for _, v := range threadViews {
			p.openView(v.name, v.shows)
			shoot(demo + "-" + v.name)
		}
	}
	p.click("#back")
	p.waitFor("#kept .open")
	p.click("#pair-matmul-blocked")
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
		t.Skip("STACKGLASS_PICTURE is not set to a file for the picture")
	}
	p := openPage(t)
	p.do("set the viewport", chromedp.EmulateViewport(1280, 800, chromedp.EmulateScale(1.4)))
	p.click("#demo-array-list")
	p.finished()
	p.openView("caches", "#preset")
	eval[any](p, `document.documentElement.style.scrollbarWidth = "none"`)
	p.drawn()
	p.picture(file, chromedp.CaptureScreenshot())
}

// The method "shoot" takes screenshots of a view, for wide and narrow windows and for both themes,
// if STACKGLASS_SHOTS names a folder for them. After the last screenshot, the window is wide and
// the theme is light again.
func (p *tab) shoot(view string) {
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
			p.theme(scheme)
			p.drawn()
			p.picture(filepath.Join(dir, view+"-"+strconv.FormatInt(width, 10)+"-"+scheme+".png"), chromedp.FullScreenshot(100))
		}
	}
}

// The method "drawn" waits until the browser has drawn all changes.
func (p *tab) drawn() {
	p.t.Helper()
	eval[any](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))`)
}

// The method "picture" writes a screenshot to a file.
func (p *tab) picture(path string, take chromedp.Action[[]byte]) {
	p.t.Helper()
	// Hide the scroll bar. Otherwise, pictures of the whole page would be too narrow by its width.
	call(p, emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true})
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, take)
	if err != nil {
		p.t.Fatalf("picture %s: %v", path, err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
