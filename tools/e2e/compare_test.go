package e2e

import (
	"strings"
	"testing"
)

// TestCompareDemos opens the pair of demos by one click, and reads the
// difference in every view.
func TestCompareDemos(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.click("#pair-matmul-blocked")
	p.waitFor("#differences")
	p.shoot("compare-overview")
	if text := p.text("#difference-references"); !strings.Contains(text, "10.8 % more") {
		t.Errorf("of the references it says %q", text)
	}
	if text := p.text("#table-facts"); !strings.Contains(text, "66 560") || !strings.Contains(text, "73 728") || !strings.Contains(text, "+7 168") {
		t.Errorf("the facts are %q", text)
	}
	for _, v := range []struct{ key, shows, name string }{
		{"2", "#chart-time canvas", "locality"}, {"3", "#table-levels tbody tr", "caches"}, {"5", "#table-code-compared tbody tr", "code"}, {"0", "#table-counters-compared tbody tr", "counters"},
	} {
		p.openView(v.key, v.shows)
		p.shoot("compare-" + v.name)
	}
	// The address says it all: a reload shows the same.
	p.reload()
	p.waitFor("#table-counters-compared tbody tr")
	p.click("#compare-by-function")
	p.waitFor(`#table-counters-compared [data-sort="bytes_difference"]`)
	p.click("#compare-swap")
	p.wait("the other way round", `document.querySelector("#sides dd").textContent.includes("in blocks")`)
	p.click("#compare-end")
	p.waitFor("#compare-with")
	// From the list, too.
	p.press("\x1b")
	p.click("#kept .compare")
	p.waitFor("#kept a.compare")
	p.click("#kept a.compare")
	p.waitFor("#differences")
}
