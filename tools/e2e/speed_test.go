package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/stackglass/stackglass/ui/state"
)

// timingScript measures the time, in milliseconds, between an event and the frame that shows the
// effect of the event. The script requests frames until its function "ready" returns true.
const timingScript = `(async (act, ready) => {
	const begun = performance.now();
	act();
	for (let frames = 0; !ready() && frames < 200; frames++) await new Promise(requestAnimationFrame);
	await new Promise((done) => requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); }));
	return performance.now() - begun;
})`

// delays contains repeated measurements of how long the page takes to react: wall-clock times and
// CPU times, in milliseconds.
type delays struct{ wall, cpu []float64 }

func (m *delays) take(p *tab, act, ready string) {
	before := p.mainThreadTime()
	m.wall = append(m.wall, eval[float64](p, timingScript+"(() => {"+act+"}, () => "+ready+")"))
	m.cpu = append(m.cpu, p.mainThreadTime()-before)
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// printMeasurement prints a measurement in the format that tools/speed reads.
func printMeasurement(t *testing.T, file, what string, figure float64) {
	t.Logf("speed: %s: %s: %.3f", filepath.Base(file), what, figure)
}

// filesIn returns the paths in an environment variable, which are separated by colons. filesIn
// skips the test if the variable lists no files.
func filesIn(t *testing.T, variable string) []string {
	t.Helper()
	files := os.Getenv(variable)
	if files == "" {
		t.Skip("skipped: " + variable + " does not name any files")
	}
	return strings.Split(files, ":")
}

// switchTo opens a view.
func (p *tab) switchTo(view state.Tab, m *delays) {
	m.take(p, toView(view.Slug()), inView(view.Slug()))
}

// TestSpeed prints how long the page takes to react to each slider, and to open each view for the
// first time and again. The variable STACKGLASS_SPEED lists the traces and profiles to use. On a
// busy machine, the CPU time is more reliable than the wall-clock time.
func TestSpeed(t *testing.T) {
	files := filesIn(t, "STACKGLASS_SPEED")
	const rounds = 5
	p := openPage(t)
	p.viewport(1440, 900)
	callDevTools(p, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"})
	for _, file := range files {
		p.pickFiles(file)
		p.waitFinished()
		first, later, slider := 0., 0., 0.
		for _, tab := range state.Tabs() {
			m, from := new(delays), state.TabDiagnosis
			if tab == from {
				from = state.TabCaches
			}
			for range rounds {
				p.switchTo(from, new(delays))
				p.switchTo(tab, m)
			}
			first, later = max(first, m.wall[0]), max(later, median(m.wall[1:]))
			t.Logf("%s: %s: median %.0f ms, CPU time %.0f ms", filepath.Base(file), tab.Slug(), median(m.wall), median(m.cpu))
		}
		for _, s := range []struct{ view, slider, changes string }{
			{"caches", "#size-1", "#level-1"}, {"threads", "#own-size", "#table-own"}, {"threads", "#shared-size", "#table-shared"},
			{"communication", "#source-size", "#source-sentence"}, {"communication", "#flow-window", "#flows-summary"},
		} {
			eval[any](p, toView(s.view))
			p.waitTrue("the view "+s.view, inView(s.view))
			if !p.has(s.slider) || !p.has(s.changes) {
				continue
			}
			m := new(delays)
			for i := range 2 * rounds {
				m.take(p, fmt.Sprintf(`
					window.before = document.querySelector(%q).outerHTML;
					const slider = document.querySelector(%q);
					slider.value = Number(slider.value) + (%d ? -1 : 1);
					slider.dispatchEvent(new Event("input", { bubbles: true }));`, s.changes, s.slider, i%2),
					fmt.Sprintf("document.querySelector(%q)?.outerHTML !== window.before", s.changes))
			}
			slider = max(slider, median(m.wall))
			t.Logf("%s: %s %s: median %.0f ms, CPU time %.0f ms", filepath.Base(file), s.view, s.slider, median(m.wall), median(m.cpu))
		}
		brush := -1.
		for _, tab := range state.Tabs() {
			if times := p.brushes(tab, 3*rounds); times != nil {
				brush = max(brush, median(times))
				t.Logf("%s: %s: from a brush to the view: median %.0f ms, longest %.0f ms", filepath.Base(file), tab.Slug(), median(times), times[len(times)-1])
			}
		}
		if brush >= 0 {
			printMeasurement(t, file, "from a brush to the view", brush)
		}
		p.openView("caches", "#size-1")
		eval[any](p, `document.querySelector("#size-1").focus()`)
		const moves = 60
		tasks := p.longTasks(func() {
			for i := range moves {
				p.pressKeys([]string{kb.ArrowLeft, kb.ArrowRight}[i/(moves/2)])
			}
		})
		longest := task{}
		for _, of := range tasks {
			longest.Wall, longest.CPU = max(longest.Wall, of.Wall), max(longest.CPU, of.CPU)
		}
		t.Logf("%s: the longest task in %d moves of a slider: %v, CPU time %v; %d tasks of 10 ms and more", filepath.Base(file), moves, longest.Wall, longest.CPU, len(tasks))
		printMeasurement(t, file, "slowest view, first time", first)
		printMeasurement(t, file, "slowest view", later)
		printMeasurement(t, file, "slowest slider", slider)
		p.goHome()
	}
}

// The method "brushes" drags the mouse across the timeline several times in the given view. Each
// drag selects a different part of the run. The method returns the times in milliseconds between
// the release of the button and the last frame that the range changes, in ascending order. A view
// whose answer arrives later changes more than once. If there is no timeline, brushes returns nil.
func (p *tab) brushes(view state.Tab, rounds int) (took []float64) {
	eval[any](p, toView(view.Slug()))
	p.waitTrue("the view "+view.Slug(), inView(view.Slug()))
	if !p.has("sg-timeline canvas") || p.has("#missing") {
		return nil
	}
	p.waitTrue("the view's content", `!document.querySelector("#pending, #view progress")`)
	for i := range rounds {
		box := eval[[3]float64](p, `(async () => {
			const timeline = document.querySelector("sg-timeline"), quiet = 500, times = window.times = {};
			timeline.scrollIntoView({ block: "center" });
			await new Promise((done) => setTimeout(done, quiet));
			const range = () => timeline.readout.textContent, before = range(), render = window.vuguRender;
			addEventListener("mouseup", () => {
				const begun = performance.now();
				window.vuguRender = function () {
					const result = render.apply(this, arguments);
					if (range() !== before) requestAnimationFrame(() => {
						clearTimeout(times.end);
						const last = performance.now() - begun;
						times.end = setTimeout(() => { window.vuguRender = render; times.took = last; }, quiet);
					});
					return result;
				};
			}, { capture: true, once: true });
			const box = timeline.canvas.getBoundingClientRect();
			return [box.left + timeline.left, box.top + 8, timeline.width];
		})()`)
		at := func(share float64) float64 { return box[0] + share*box[2] }
		from := 0.02 * float64(1+i%20)
		release := p.startDrag(at(from), box[1])
		p.do("drag", chromedp.MouseEvent("mouseMoved", at(from+0.2), box[1], chromedp.ButtonLeft))
		release(at(from+0.4-0.01*float64(i%20)), box[1])
		p.waitTrue("the part of the run", `window.times.took`)
		took = append(took, eval[float64](p, `window.times.took`))
	}
	slices.Sort(took)
	return took
}

// TestSpeedOfRuns prints how long the page takes, after a file is opened, to show its curve and the
// complete result. The test measures the times with one worker and with two workers. The variable
// STACKGLASS_SPEED_RUNS lists the traces to use. If a run takes more than ten seconds, it is
// measured only once.
func TestSpeedOfRuns(t *testing.T) {
	files := filesIn(t, "STACKGLASS_SPEED_RUNS")
	const rounds, long = 2, 10
	p := openPage(t)
	took := map[string]float64{}
	for range rounds {
		for _, file := range files {
			for _, count := range []string{"1", "2"} {
				if took[file+count] > long {
					continue
				}
				p.setValue("workers", count)
				eval[any](p, `document.getElementById("file").addEventListener("change", () => {
					const times = window.times = { begun: performance.now() };
					const look = () => {
						if (!times.curve && document.querySelector("#chart-curve canvas") && document.querySelector("#chart-curve").points) times.curve = performance.now();
						if (!document.querySelector("[data-running]") && document.querySelector("#digest")?.dataset.digest) times.end = performance.now();
						else requestAnimationFrame(look);
					};
					look();
				}, { capture: true, once: true })`)
				p.pickFiles(file)
				p.waitTrue("the end of the run", `window.times?.end`)
				took[file+count] = eval[float64](p, `(times.end - times.begun) / 1000`)
				printMeasurement(t, file, "whole "+count, took[file+count])
				printMeasurement(t, file, "curve "+count, eval[float64](p, `((times.curve ?? times.end) - times.begun) / 1000`))
				p.goHome()
			}
		}
	}
}
