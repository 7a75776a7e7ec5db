package ui

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/ui/state"
)

func demoPair() (Item, Item) {
	return demoItem(), Item{Demo: "matmul-blocked", URL: "demos/matmul-blocked.sgt", Title: "Blocked matrix multiplication"}
}

// TestComparePair checks that two demos can be compared in every view, and that neither demo is
// analysed twice.
func TestComparePair(t *testing.T) {
	d := newDesk(t)
	d.app.OfferPair(demoPair())
	d.wants("Two analyses compared", `id="differences"`, "66 560", "73 728", "From 66 560 references in A to 73 728 in B: 10.8 % more.", "A (before)", "B (after)")
	for _, r := range []*Result{d.app.result, d.app.other} {
		if got := r.answers.Run.Digest; got == "" || got != digestOf(r.Profile) {
			t.Errorf("digest of the compared run = %q, want %q", got, digestOf(r.Profile))
		}
	}
	for tab, want := range map[state.Tab]string{
		state.TabLocality: `id="compare-capacity"`, state.TabCaches: `id="table-levels"`, state.TabCounters: `id="table-counters-compared"`,
		state.TabCode: `id="table-code-compared"`, state.TabAssociativity: `id="figure-sets"`,
	} {
		d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
		d.wants(want)
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabCounters).Hash())
	d.wants(">bytes_loaded<", "524 288", "557 056")
	// The two demos differ only in small cache levels like these. The cache levels can be changed
	// in this view.
	d.app.Navigate("#" + d.app.Screen.With(state.TabCaches).Hash())
	d.wants("10 664", "892", `id="size-1"`, `id="ways-more-2"`, `id="compare-machine-file"`)
	d.act(func() { d.app.SetSize(1, 4<<10) })
	// The prediction assumes that the second level sees every access, although it sees only the
	// misses of the first level. The hits in the second level and the accesses to memory are
	// therefore estimates.
	d.wants("34 944", "1 272", "−33 672", "≈ 34 560", "≈ −33 672")
	if page := d.html(); strings.Contains(page, "≈ 34 944") || strings.Contains(page, ">-33") {
		t.Error("the page marks an exact number of misses with ≈, or writes a minus sign as a hyphen")
	}
	d.app.Offer(Item{File: fileWith("mine.json", []byte(`{"levels": [{"name": "L1", "size": "16KiB", "ways": 8}]}`))})
	d.wants(`aria-valuetext="16 KiB"`, "the hierarchy of mine.json")
	// The two demos have different source files, so the page compares functions instead of lines.
	d.app.Navigate("#" + d.app.Screen.With(state.TabCode).Hash())
	d.wants("functions of the same name are compared instead", "Misses by function, A and B")
	if c := d.charts["curve"]; len(c.Series) != 2 || c.Y.Log && c.Y.Min <= 0 || c.X.Min <= 0 || c.Series[0].Label != "A" || c.Series[1].Label != "B" {
		t.Errorf("curves = %+v, want A and B", c.Series)
	}
	for _, chart := range []string{"curve", "histogram", "time"} {
		d.act(func() { d.app.SaveCSV(chart) })
	}
	if csv := string(d.saved["Matrix multiplication-curve.csv"]); !strings.Contains(csv, "\n768,12,both,misses,37888,1536,-36352,") {
		t.Errorf("table of the curves =\n%s\nwant a row for 768 bytes", csv)
	}
	d.act(func() {
		d.app.SetPreset("i7-4770K")
		d.app.SumCodeBy(attribution.Function)
		d.app.SaveCSV("code-compared")
	})
	if csv := string(d.saved["Matrix multiplication-code-compared.csv"]); !strings.Contains(csv, "function,in,number,a,b,difference,change") || !strings.Contains(csv, "\nmain,both,L1_misses,384,384,0,") {
		t.Errorf("table of the compared functions =\n%s", csv)
	}
	// Functions with the same name are compared block by block, including their times.
	d.app.Navigate("#" + d.app.Screen.With(state.TabBlocks).Hash())
	until(t, func() bool { return strings.Contains(d.html(), `id="table-blocks-compared"`) })
	d.wants(`id="table-functions-compared"`, "Blocks of main, A and B", "for.body8", "cycles in A to", `id="processor"`, "Not modelled")
	d.act(func() { d.app.SaveCSV("functions-compared"); d.app.SaveCSV("blocks-compared") })
	for name, want := range map[string]string{"functions": "\nmain,both,", "blocks": "\nfor.body8,A,count,32768,0,"} {
		if csv := string(d.saved["Matrix multiplication-"+name+"-compared.csv"]); !strings.Contains(csv, want) {
			t.Errorf("table of the compared %s =\n%s", name, csv)
		}
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabLoops).Hash())
	until(t, func() bool { return strings.Contains(d.html(), `id="table-loop-misses-compared"`) })
	d.wants(`id="table-loops-compared"`, "Misses by loop, A and B")
	d.app.Navigate("#" + d.app.Screen.With(state.TabCalls).Hash())
	until(t, func() bool { return strings.Contains(d.html(), `id="table-calls-compared"`) })
	d.wants("Misses by call path, A and B")
	d.act(func() { d.app.SaveCSV("calls-compared") })
	if csv := string(d.saved["Matrix multiplication-calls-compared.csv"]); !strings.HasPrefix(csv, "path,") || !strings.Contains(csv, "\nmain,both,L1_misses,") {
		t.Errorf("table of the compared call paths =\n%s", csv)
	}
	d.act(func() { d.app.ReadCalls(state.CallsUp) })
	until(t, func() bool { return strings.Contains(d.html(), `id="table-calls-compared"`) })
	d.app.Navigate("#" + d.app.Screen.With(state.TabLoops).Hash())
	until(t, func() bool { return strings.Contains(d.html(), `id="table-loop-misses-compared"`) })
	d.act(func() { d.app.SaveCSV("loop-misses-compared") })
	if csv := string(d.saved["Matrix multiplication-loop-misses-compared.csv"]); !strings.HasPrefix(csv, "loop,level,in,number,a,b,") {
		t.Errorf("table of the compared loops =\n%s", csv)
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabData).Hash())
	d.wants(`id="missing"`, "did not measure how data structures are used")
	d.app.Navigate("#" + d.app.Screen.With(state.TabAssociativity).Hash())
	d.wants("Miss ratio by sets and ways, B − A", "the miss ratio of B is at most")
	if m := d.app.comparison().SetsMap(d.app.cell(), d.app.Levels()); m.Least >= 0 || m.Values[0] != m.Least && m.Values[0] > m.Most {
		t.Errorf("values of the map = %g to %g, first value = %g; want a negative minimum", m.Least, m.Most, m.Values[0])
	}
	d.app.Navigate("#" + d.app.Screen.With(state.TabBlocks).Hash())
	sentence := func() (text string) {
		d.act(func() { text = d.app.pairBlocks().Sentence() })
		return text
	}
	d.act(func() { d.app.SetProcessor("neoverse-n1") })
	until(t, func() bool { return strings.Contains(sentence(), "Neoverse N1") })
	d.app.Navigate("")
	d.app.OfferPair(demoPair())
	if n := len(d.entries()); n != 2 {
		t.Errorf("kept analyses = %d, want 2, one for each demo", n)
	}
	open := d.app.Screen
	d.focus = ""
	d.app.Navigate("#" + open.Against("").Hash())
	if d.focus != "result-title" {
		t.Errorf("focus after the comparison was ended = %q, want result-title", d.focus)
	}
	d.wants(`id="compare-with"`, "Blocked matrix multiplication")
}

// TestCompareWith checks that a result can be compared with the next file that is opened, and with
// an analysis in the list.
func TestCompareWith(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	first := d.app.Screen.Open
	d.act(func() { d.app.CompareWith(otherFile) })
	if d.picked != 1 {
		t.Error("the page did not open the file picker")
	}
	d.app.Offer(textItem())
	until(t, func() bool { return strings.Contains(d.html(), `id="differences"`) })
	if d.app.Screen.Open != first || d.app.Screen.Other == "" {
		t.Errorf("screen %+v", d.app.Screen)
	}
	second := d.app.Screen.Other
	d.app.Navigate("")
	d.act(func() { d.app.Against(second) })
	// The older analysis is called A, whichever analysis was selected first.
	d.wants("with this", `open=`+first+`&amp;view=diagnosis&amp;with=`+second)
	for _, chosen := range [][2]string{{first, second}, {second, first}} {
		d.app.Navigate("#open=" + chosen[0] + "&range=1..2000")
		d.act(func() { d.app.CompareWith(chosen[1]) })
		until(t, func() bool { return strings.Contains(d.html(), `id="differences"`) })
		if strings.Contains(d.hash, "range=") {
			t.Errorf("hash of a comparison = %s, want no range, because it shows whole runs", d.hash)
		}
		d.act(func() {
			if s := d.app.Screen; s.Open != first || s.Other != second {
				t.Errorf("A = %s and B = %s, want %s and %s", s.Open, s.Other, first, second)
			}
		})
	}
	// If a comparison is cancelled, later results do not reopen it.
	alone := state.Screen{Open: first}
	for range 50 {
		d.act(func() {
			d.app.goTo(alone, true)
			d.app.CompareWith(second)
			d.app.goTo(alone, true)
		})
		for range 100 {
			runtime.Gosched()
		}
		d.act(func() {
			if d.app.comparing() {
				t.Fatal("comparing() = true after the comparison was ended")
			}
		})
	}
	d.app.Navigate("#open=" + second + "&with=" + first) // the two analyses are swapped
	d.wants(`id="differences"`)
	if s := d.app.Screen; s.Open != second {
		t.Errorf("screen after a link with A and B swapped = %+v, want the older analysis as A", s)
	}
	// If an analysis was deleted in the meantime, it cannot be compared.
	if err := d.store.Delete(second); err != nil {
		t.Fatal(err)
	}
	d.app.other = nil
	d.app.Navigate("#open=" + first + "&with=" + second)
	d.wants("There is nothing to compare with")
	if d.app.comparing() {
		t.Error("comparing() = true after B was deleted")
	}
}

// TestCompareData compares the data structures of two runs.
func TestCompareData(t *testing.T) {
	d := newDesk(t)
	a, b := particles(t), demoItem()
	a.analyses, b.analyses = analysis.Data, analysis.Data
	d.app.Offer(a)
	d.act(func() { d.app.CompareWith(otherFile) })
	d.app.Offer(b)
	d.app.Navigate("#" + d.app.Screen.With(state.TabData).Hash())
	d.wants(`id="compare-data"`)
	until(t, func() bool { return strings.Contains(d.html(), `id="table-data-compared"`) })
	d.wants("Data structures, A and B")
	d.act(func() { d.app.SaveCSV("data-compared") })
	csv := string(d.saved["particles.sgt-data-compared.csv"])
	for _, want := range []string{"\nall,heap,main,A,L1_misses,19500,,,\n", "\na,global,,B,references,,32768,,\n"} {
		if !strings.Contains(csv, want) {
			t.Errorf("table of the compared data =\n%s\nwant %q in it", csv, want)
		}
	}
}
