package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestManualPages opens each page of the manual as a visitor does: wide and narrow, light and dark.
func TestManualPages(t *testing.T) {
	needStage(t)
	axe, err := os.ReadFile(filepath.Join(root, "site", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("axe-core is not installed (make setup installs it): ", err)
	}
	p := openPage(t)
	p.visit("/docs/index.html")
	pages := eval[[]string](p, `[...document.querySelectorAll("nav a")].map((a) => a.pathname)`)
	if len(pages) < 25 {
		t.Fatalf("the manual has only the pages %q", pages)
	}
	p.visit("/docs/tutorial.html?q=conflict+padding")
	p.waitFor(`#found a[href^="padding.html#"]`)
	for _, page := range pages {
		p.visit(page)
		p.waitFor(".manual h1")
		for _, width := range []int64{320, 1440} {
			p.viewport(width, 900)
			if more := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); more > 0 {
				t.Errorf("%s: the page is %d pixels wide, the window %d", page, more, width)
			}
		}
		for _, scheme := range []string{"light", "dark"} {
			eval[any](p, `document.documentElement.dataset.theme = "`+scheme+`"`)
			eval[any](p, "(() => {"+string(axe)+"\n})()")
			if passes := eval[int](p, runAxe("")); passes < 10 {
				t.Errorf("%s, %s: axe passed only %d rules", page, scheme, passes)
			}
			for _, v := range eval[[]string](p, `axeViolations`) {
				t.Errorf("%s, %s: %s", page, scheme, v)
			}
			p.shoot("manual-" + filepath.Base(page) + "-" + scheme)
		}
	}
}
