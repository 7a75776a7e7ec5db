package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
)

// TestCompareDemos checks that one click opens a pair of demos, and that every view shows the
// differences between them.
func TestCompareDemos(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#pair-matmul-blocked")
	p.waitFor("#differences")
	p.takeScreenshots("compare-overview")
	if text := p.textOf("#difference-references"); !strings.Contains(text, "10.8 % more") {
		t.Errorf("difference of the references = %q, want 10.8 %% more", text)
	}
	if text := p.textOf("#table-facts"); !strings.Contains(text, "66 560") || !strings.Contains(text, "73 728") || !strings.Contains(text, "+7 168") {
		t.Errorf("facts = %q, want 66 560, 73 728 and +7 168", text)
	}
	var truth struct{ Input struct{ Headline string } }
	if err := json.Unmarshal(runCommand(t, "compare", "demo:matmul-naive", "demo:matmul-blocked", "--on", "diagnose", "--format", "json",
		"--cache", "L1=2KiB,full,latency=4", "--cache", "L2=10KiB,full,latency=12", "--cache", "memory=latency=200"), &truth); err != nil || truth.Input.Headline == "" {
		t.Fatalf("headline of the command = %q, error %v", truth.Input.Headline, err)
	}
	p.waitTrue("the command's headline", `document.querySelector("#headline").textContent === `+quoteText(state.Spaced(truth.Input.Headline)))
	p.waitFor("#compare-assumptions li")
	if text := p.textOf("#table-problems"); !strings.Contains(text, "stride") || !strings.Contains(text, "fixed") {
		t.Errorf("problems = %q, want a stride that is fixed", text)
	}
	for _, v := range []struct{ key, shows, name string }{
		{"2", "#chart-time canvas", "locality"}, {"3", "#table-levels tbody tr", "caches"}, {"5", "#table-code-compared tbody tr", "code"}, {"9", "#table-blocks-compared tbody tr", "blocks"}, {"0", "#table-counters-compared tbody tr", "counters"},
	} {
		p.openView(v.name, v.shows)
		p.takeScreenshots("compare-" + v.name)
	}
	// The URL contains the whole state, so the page is the same after a reload.
	p.reload()
	p.waitFor("#table-counters-compared tbody tr")
	p.clickElement("#compare-by-function")
	p.waitTrue("the counters of functions", `document.querySelector("#table-counters-compared .caption").textContent.startsWith("Counters of functions")`)
	p.clickElement("#compare-swap")
	p.waitTrue("the comparison after A and B were swapped", `document.querySelector("#sides dd").textContent.includes("Blocked")`)
	p.clickElement("#compare-end")
	p.waitFor("#compare-with")
	// A comparison can also be started from the list of analyses.
	p.pressKeys("\x1b")
	p.clickElement("#kept .compare")
	p.waitFor("#kept a.compare")
	p.clickElement("#kept a.compare")
	p.waitFor("#differences")
}

// labelBoxes redraws the visible chart, and returns all pairs of labels that overlap.
const labelBoxes = `(async () => {
	const drawn = [], proto = CanvasRenderingContext2D.prototype, fillText = proto.fillText;
	proto.fillText = function (text, x, y) {
		if (/^(A|B|L\d)$/.test(text)) {
			const width = this.measureText(text).width, height = parseFloat(/[\d.]+px/.exec(this.font)[0]);
			drawn.push({ text, left: this.textAlign === "right" ? x - width : x, width, y, height });
		}
		return fillText.apply(this, arguments);
	};
	const chart = document.querySelector("sg-chart");
	await new Promise(requestAnimationFrame);
	chart.style.setProperty("width", "90%");
	const frame = () => new Promise(requestAnimationFrame);
	while (drawn.length === 0) await frame();
	for (let more = 0; more < 3; more++) await frame();
	proto.fillText = fillText;
	const last = {};
	for (const d of drawn) last[d.text] = d;
	const all = Object.values(last), over = ["drawn: " + all.length];
	all.forEach((a, i) => all.slice(i + 1).forEach((b) => {
		if (Math.abs(a.y - b.y) < 0.8 * a.height && a.left < b.left + b.width && b.left < a.left + a.width) over.push(a.text + " over " + b.text);
	}));
	return over;
})()`

// TestCompareLabels checks that the labels of curves and cache levels do not overlap, even if a
// cache level is at the end of a curve.
func TestCompareLabels(t *testing.T) {
	needStage(t)
	p := openPage(t)
	p.clickElement("#pair-matmul-blocked")
	p.waitFor("#differences")
	p.openView("caches", "#table-levels tbody tr")
	eval[any](p, `(() => { const e = document.querySelector("#preset"); e.value = "i7-4770K"; e.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	p.waitTrue("three levels", `document.querySelectorAll("#table-levels tbody tr").length > 9`)
	over := eval[[]string](p, labelBoxes)
	if len(over) != 1 || over[0] != "drawn: 5" {
		t.Errorf("overlapping labels and number of drawn labels = %q, want only \"drawn: 5\"", over)
	}
}
