package ui

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	verbs "github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
)

// TestTimeline checks that, after a range is selected, the code and the caches equal the verbs'
// answers for the range.
func TestTimeline(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	d.wants(`id="timeline"`, "<sg-timeline")
	line := d.timeline
	if line == nil || line.Windows < 8 || len(line.Levels) == 0 || len(line.Bands) == 0 || line.From != 0 || line.To != 0 {
		t.Fatalf("timeline = %+v, want at least 8 windows, levels and phases", line)
	}
	whole := d.grids["code"].Rows
	entries := len(d.history)
	d.app.Pressed()
	d.app.BrushRange(2, 5, false)
	d.app.BrushRange(2, 6, false) // the same drag continues
	if len(d.history) != entries+1 {
		t.Errorf("history entries of a drag = %d, want 1", len(d.history)-entries)
	}
	from, to := 2*line.Window, 6*line.Window
	want := state.Range{From: from, To: to}
	if d.app.Screen.Range != want || !strings.Contains(d.hash, "range="+want.String()) || state.ParseScreen(d.hash).Range != want {
		t.Errorf("range = %v, hash = %s; want %v in both", d.app.Screen.Range, d.hash, want)
	}
	if d.timeline.From != 2 || d.timeline.To != 6 || !strings.HasPrefix(d.lastSaid(), "References ") {
		t.Errorf("windows of the timeline = %d to %d, announcement = %q; want 2 to 6 and the references", d.timeline.From, d.timeline.To, d.lastSaid())
	}
	d.wants(">export whole run as …<")
	if d.grids["code"].Rows == 0 || whole == 0 {
		t.Error("the ranking is empty")
	}

	// The ranking's CSV file equals the command's answer.
	q := verbs.New(verbs.VerbOf("sites")).With("range", want.String())
	q.Machine = d.app.Machine()
	run := verbs.NewRun(d.app.result.Name, d.app.result.Profile)
	document, err := run.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := document.Write(&text, report.CSV); err != nil {
		t.Fatal(err)
	}
	d.act(func() { d.app.SaveCSV("code") })
	if got := d.saw("Matrix multiplication-code.csv"); got != text.String() {
		t.Errorf("the ranking is\n%s\nwant\n%s", got, text.String())
	}

	// The Caches view shows only the misses in the range, and the curve shows only the accesses in
	// the range.
	d.app.Navigate("#" + d.app.Screen.With(state.TabCaches).Hash())
	q = verbs.New(verbs.VerbOf("what-if")).With("range", want.String())
	q.Machine = d.app.Machine()
	if document, err = run.Answer(q); err != nil {
		t.Fatal(err)
	}
	misses, _ := document.Tables[0].Rows[0][document.Tables[0].Index("misses")].Number()
	if got := d.app.answer().Prediction.Levels[0].Misses; got != misses {
		t.Errorf("misses in the first level = %v, want %v", got, misses)
	}
	if causes := d.app.view().(*Caches).causes(); len(causes) == 0 || !strings.HasSuffix(causes[0].References, " accesses") {
		t.Errorf("causes of the misses = %+v, want accesses of the range", causes)
	}
	if drawn, whole := d.charts["curve"], d.app.result.View.MissCurve(d.app.Levels()); drawn.Summary == whole.Summary || drawn.Series[0].Y[0] > 1 {
		t.Errorf("summary of the curve of the range = %s, want a summary that differs from the summary of the whole run", drawn.Summary)
	}
	if v := d.app.inRange(); v.Curve.Accesses != v.Ranker().Accesses() || v.Curve.Accesses >= d.app.result.View.Curve.Accesses {
		t.Errorf("accesses in the curve of the range = %d, want %v, and fewer than in the whole run", v.Curve.Accesses, v.Ranker().Accesses())
	}

	// The histogram of the range adds up the stack distances of all source lines in the range.
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	bins := map[string]uint64{}
	for row := range d.grids["code"].Rows {
		place := d.app.codeView().At(row)
		if place < 0 {
			continue // this row contains the remaining misses
		}
		of := d.app.codeView().DistancesTable(place)
		for i := range of.Rows {
			n, err := strconv.ParseUint(strings.ReplaceAll(of.Row(i)[1], "\u202f", ""), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			bins[of.Row(i)[0]] += n
		}
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabLocality).Hash())
	histogram := d.app.table("histogram")
	if histogram.Rows < 2 || len(d.charts["histogram"].At) != histogram.Rows {
		t.Errorf("bins of the histogram = %d in the chart, %d in the table; want equal numbers, at least 2", len(d.charts["histogram"].At), histogram.Rows)
	}
	for i := range histogram.Rows {
		if cells := histogram.Row(i); strings.ReplaceAll(cells[1], "\u202f", "") != strconv.FormatUint(bins[cells[0]], 10) {
			t.Errorf("bin %s of the range = %s accesses, want %d", cells[0], cells[1], bins[cells[0]])
		}
	}

	// If a view cannot show a range, it must have a note.
	d.wants(`id="timeline-view"`, "The histogram shows only this range.")
	d.app.Navigate("#" + d.app.Screen.With(state.TabDiagnosis).Hash())
	d.wants(`id="timeline-view"`, "This view shows the whole run. The range filters Code, Calls, Caches")

	// The windows must have the same estimated cycles as in the command's answer.
	q = verbs.New(program.Timeline)
	q.Machine = d.app.Machine()
	if document, err = run.Answer(q); err != nil {
		t.Fatal(err)
	}
	windows := document.Tables[1]
	for i, row := range windows.Rows {
		if n, _ := row[windows.Index("cycles_per_access")].Number(); n != d.timeline.Cycles[i] || n < q.Machine.Levels[0].LatencyCycles {
			t.Errorf("window %d: cycles per access = %v, want %v", i, d.timeline.Cycles[i], n)
		}
	}
	// When a phase is selected, the page shows its source lines.
	d.app.BrushRange(d.timeline.Bands[0].From, d.timeline.Bands[0].To, true)
	if d.app.Screen.Tab != state.TabCode {
		t.Errorf("view after a phase was chosen = %s, want Code", d.app.Screen.Tab.Name())
	}
	d.act(func() { d.app.SetRange(0, 0, false) })
	if d.app.Screen.Range != (state.Range{}) || d.grids["code"].Rows != whole || strings.Contains(d.hash, "range") {
		t.Errorf("hash of the whole run = %s, want no range", d.hash)
	}

	// A link must lead to a valid screen, whatever range it contains.
	for _, link := range []string{"5..2", "x..y", "999999999999..9999999999999", "1..2", "0..0", "..", "18446744073709551615..18446744073709551616"} {
		d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash() + "&range=" + link)
		d.wants(`id="timeline"`, `id="code-summary"`)
	}
}

// TestRegionBands checks that the timeline shows each marked region as a band. When a band is
// selected, the windows that contain its region must be selected.
func TestRegionBands(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	window := d.timeline.Window
	d.act(func() {
		d.app.result.Profile.Regions = &profile.Regions{Gap: 2, List: []profile.Region{
			{Name: "run", Thread: 1, From: 0, To: 4 * window, Times: 1},
			{Name: "solve", Thread: 1, Depth: 1, From: window + 10, To: 3*window - 10, Times: 3, Between: 2},
			{Name: "run", Thread: 1, From: 5 * window, To: 6 * window, Times: 1},
		}}
		d.app.line = timelineState{}
		d.app.drawCharts()
	})
	got := d.timeline.Regions
	if len(got) != 3 || got[0].Row != 0 || got[1].Row != 1 || got[2].Number != got[0].Number || got[1].Number == got[0].Number || got[0].To != 4 {
		t.Fatalf("regions = %+v, want three regions, the second below the first", got)
	}
	if text := got[1].Text; !strings.HasPrefix(text, "Region solve: references ") || !strings.HasSuffix(text, ", 3 joined regions with 2 references between them.") {
		t.Errorf("description of the region = %q, want the region solve and its number of regions", text)
	}
	if text := d.timeline.Summary; !strings.Contains(text, "3 marked regions. The run has more than 4096 marked regions.") {
		t.Errorf("summary = %q, want the number of marked regions", text)
	}
	if text := d.timeline.Sentence; !strings.HasSuffix(text, " The run has more than 4096 marked regions.") {
		t.Errorf("sentence of the timeline = %q, want a warning about more than 4096 regions", text)
	}
	d.act(func() {
		for depth := range uint32(8) {
			d.app.result.Profile.Regions.List = append(d.app.result.Profile.Regions.List, profile.Region{Name: "inner", Thread: 2, Depth: depth, From: 7 * window, To: 8 * window, Times: 1})
		}
		d.app.line = timelineState{}
		d.app.drawCharts()
	})
	if text := d.timeline.Sentence; len(d.timeline.Regions) != 7 || !strings.Contains(text, " Not drawn: 4 marked regions of other threads or nesting depths; ") {
		t.Errorf("drawn regions = %d, sentence of the timeline = %q; want 7, and a sentence about the 4 other regions", len(d.timeline.Regions), text)
	}
	d.app.BrushRange(1, 3, true)
	if text := d.lastSaid(); !strings.HasSuffix(text, " Marked region solve, rounded to windows.") {
		t.Errorf("announcement = %q, want the marked region solve", text)
	}
}
