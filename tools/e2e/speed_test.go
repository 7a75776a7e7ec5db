package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/performance"

	"github.com/stackglass/stackglass/ui/state"
)

// timing is the time in milliseconds from an event until the frame after which what it changes is
// there. The page asks for another frame as long as ready is false.
const timing = `(async (act, ready) => {
	const begun = performance.now();
	act();
	for (let frames = 0; !ready() && frames < 200; frames++) await new Promise(requestAnimationFrame);
	await new Promise((done) => requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); }));
	return performance.now() - begun;
})`

// reaction is the median of several times by the clock and of a processor, in milliseconds.
type reaction struct{ wall, cpu []float64 }

func (m *reaction) take(p *tab, act, ready string) {
	before := p.busy()
	m.wall = append(m.wall, eval[float64](p, timing+"(() => {"+act+"}, () => "+ready+")"))
	m.cpu = append(m.cpu, p.busy()-before)
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// TestSpeed prints how long the page takes to switch to each view and to follow each slider, for
// the traces and profiles that STACKGLASS_SPEED names, with a colon between them. Where more
// programs want to run than there are processors, the time of a processor says more.
func TestSpeed(t *testing.T) {
	files := os.Getenv("STACKGLASS_SPEED")
	if files == "" {
		t.Skip("STACKGLASS_SPEED names no files")
	}
	const rounds = 5
	p := openPage(t)
	p.viewport(1440, 900)
	call(p, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"})
	for _, file := range strings.Split(files, ":") {
		p.pick(file)
		p.finished()
		say := func(what string, m *reaction) {
			t.Logf("%s: %-28s median %4.0f ms, of a processor %4.0f ms", file[strings.LastIndex(file, "/")+1:], what, median(m.wall), median(m.cpu))
		}
		for _, tab := range state.Tabs() {
			m := new(reaction)
			for range rounds {
				for _, id := range []string{"#tab-overview", "#tab-" + tab.Slug()} {
					if id == "#tab-overview" && tab != state.TabDiagnosis {
						new(reaction).take(p, fmt.Sprintf("document.querySelector(%q).click()", id), fmt.Sprintf(`document.querySelector(%q).ariaCurrent === "page"`, id))
						continue
					}
					m.take(p, fmt.Sprintf("document.querySelector(%q).click()", id), fmt.Sprintf(`document.querySelector(%q).ariaCurrent === "page"`, id))
				}
			}
			say(tab.Slug(), m)
		}
		for _, s := range []struct{ view, slider, changes string }{
			{"caches", "#size-1", "#level-1"}, {"threads", "#own-size", "#table-own"}, {"threads", "#shared-size", "#table-shared"},
			{"communication", "#source-size", "#source-sentence"}, {"communication", "#flow-window", "#flows-summary"},
		} {
			p.click("#tab-" + s.view)
			p.wait("the view "+s.view, fmt.Sprintf(`document.querySelector("#tab-%s").ariaCurrent === "page"`, s.view))
			if !p.has(s.slider) || !p.has(s.changes) {
				continue
			}
			m := new(reaction)
			for i := range 2 * rounds {
				m.take(p, fmt.Sprintf(`
					window.before = document.querySelector(%q).outerHTML;
					const slider = document.querySelector(%q);
					slider.value = Number(slider.value) + (%d ? -1 : 1);
					slider.dispatchEvent(new Event("input", { bubbles: true }));`, s.changes, s.slider, i%2),
					fmt.Sprintf("document.querySelector(%q)?.outerHTML !== window.before", s.changes))
			}
			say(s.view+" "+s.slider, m)
		}
		p.home()
	}
}
