package ui

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
)

// The function "alone" analyses a single-threaded demo, and opens the predictions for several
// cores.
func alone(t *testing.T) *desk {
	t.Helper()
	d := at(t, "openmp-alone", state.TabThreads)
	d.predictedAll()
	return d
}

// predictedAll waits until all predictions are complete.
func (d *desk) predictedAll() {
	d.t.Helper()
	until(d.t, func() (yes bool) {
		d.act(func() { yes = d.app.predicted() != nil && !d.app.cores.asker.busy() })
		return yes
	})
}

// TestPredictCores checks that the page uses a single-threaded run to predict runs on any number of
// cores.
func TestPredictCores(t *testing.T) {
	d := alone(t)
	d.wants(`id="cores-view"`, `id="cores-number"`, "Hit ratios over cores", "Speed-up over cores", `id="cores-sentence"`, "Misses with 4 cores, as shares of all accesses: L1 ")
	d.act(func() {
		if s := d.app.predicted().RatesSentence(4); strings.Count(s, "L1") != 1 {
			t.Errorf("sentence = %s, want L1 once: either simulated or modelled", s)
		}
	})
	c := d.charts["rates"]
	if c == nil || len(c.At) != 7 || c.At[6] != 64 || len(c.Series) < 3 {
		t.Fatalf("%+v", c)
	}
	l1 := c.Series[0].Y
	if l1[0] > 0.96 || l1[3] < 0.98 {
		t.Errorf("hit ratios of L1 = %v, want more hits with 8 cores than with one core, because each core's share of the data fits", l1)
	}
	if s := d.charts["speedup"]; s == nil || s.Series[0].Y[0] != 1 || s.Series[0].Y[2] < 2 {
		t.Errorf("%+v", s)
	}

	d.act(func() { d.app.SetCores(6) })
	d.predictedAll()
	d.wants("Misses with 6 cores", `>6</output>`)
	if n := len(d.charts["rates"].At); n != 8 || !strings.Contains(d.hash, "cores=6") {
		t.Errorf("numbers of cores in the chart = %d, hash = %s; want 8 and cores=6", n, d.hash)
	}
	before := d.charts["rates"].Series[0].Y[4]
	d.act(func() { d.app.SetSchedule("dynamic,1") })
	d.predictedAll()
	if after := d.charts["rates"].Series[0].Y[4]; after >= before {
		t.Errorf("hit ratio with a dynamic schedule = %[2]v, want less than %[1]v with a static schedule", before, after)
	}
	if s := state.ParseScreen(d.hash); s.Schedule != "dynamic,1" || s.Cores != 6 {
		t.Errorf("%+v of %s", s, d.hash)
	}
	d.act(func() { d.app.SaveCSV("rates-of") })
	if csv := d.saw("openmp-alone-rates-of.csv"); !strings.Contains(csv, "global_rate") {
		t.Errorf("%q", csv)
	}
	for _, bad := range []func(){func() { d.app.SetSchedule("nonsense") }, func() { d.app.SetDivision("nonsense") }} {
		d.act(bad)
		until(t, func() (yes bool) {
			d.act(func() { yes = d.app.cores.failed != "" })
			return yes
		})
		d.wants(`id="cores-failed"`, "nonsense")
		d.act(func() { d.app.SetSchedule(""); d.app.SetDivision("") })
		d.predictedAll()
	}
}

// TestInputOfSDCM checks that the input for SDCM can be selected, and that the page describes
// the sample. The test also interleaves references according to the cores' clocks. For some ways to
// divide the work, the page predicts no times.
func TestInputOfSDCM(t *testing.T) {
	d := alone(t)
	d.wants(`id="cores-model"`, "by the cores&#39; clocks", `id="cores-sampled"`, "For L1, SDCM uses ", " lines. Bands and ± are 95 % confidence intervals.")
	d.act(func() { d.app.SetModel("windows") })
	d.predictedAll()
	d.wants("For L1, SDCM uses ", "block executions. Bands and", "±")
	if !strings.Contains(d.hash, "sdcm=windows") || state.ParseScreen(d.hash).Model != "windows" {
		t.Error(d.hash)
	}
	bands := 0
	for _, s := range d.charts["rates"].Series {
		if s.Low == nil {
			continue
		}
		bands++
		if !strings.HasSuffix(s.Label, ", windows") || !(s.Low[2] < s.Y[2]) || !(s.Y[2] <= s.High[2]) || s.Low[2] < d.charts["rates"].Y.Min {
			t.Errorf("%+v", s)
		}
	}
	if bands == 0 || len(d.charts["rates"].Series) != 2*bands {
		t.Errorf("curves with a band = %d of %d curves, want half", bands, len(d.charts["rates"].Series))
	}
	some := d.charts["rates"].Series[1]
	d.act(func() { d.app.SetModel("windows-10") })
	d.predictedAll()
	if more := d.charts["rates"].Series[1]; more.High[2]-more.Low[2] >= some.High[2]-some.Low[2] {
		t.Errorf("interval with ten times the windows = %v to %v, want a narrower interval than %v to %v", more.Low[2], more.High[2], some.Low[2], some.High[2])
	}
	d.act(func() { d.app.SetModel("none") })
	d.predictedAll()
	if n := len(d.charts["rates"].Series); n != bands {
		t.Errorf("curves after the model was set to none = %d, want %d", n, bands)
	}
	d.act(func() { d.app.SetInterleave("time") })
	d.predictedAll()
	d.wants("Misses with 4 cores")
	d.act(func() { d.app.SetInterleave(""); d.app.SetDivision("region") })
	d.predictedAll()
	d.wants("Misses with 4 cores")
	if strings.Contains(d.html(), `id="processor"`) {
		t.Error("the page offers processors for a division of work that predicts no times")
	}
	d.act(func() {
		if d.app.predicted().Table("speedup") != nil || d.app.cores.failed != "" {
			t.Errorf("the page shows times for a division of work that predicts no times (problem %q)", d.app.cores.failed)
		}
	})
}

// TestKeepPredictedThreads checks that predicted threads can be kept and compared with measured
// threads.
func TestKeepPredictedThreads(t *testing.T) {
	d := alone(t)
	one := d.app.Screen.Open
	d.act(d.app.KeepCores)
	until(t, func() (yes bool) {
		d.act(func() { yes = d.app.Screen.Open != one && d.app.threads() != nil })
		return yes
	})
	d.wants("predicted for 4 cores", `id="threads"`)
	if p := d.app.result.Profile; len(p.Totals.Threads) != 4 || len(p.Sharing) == 0 {
		t.Fatalf("%d threads", len(p.Totals.Threads))
	}
	kept := d.app.Screen.Open
	d.act(func() {
		if d.app.cores.of != nil || d.app.cores.asker != nil {
			t.Error("the page still computes predictions after the user left the view")
		}
	})
	d.app.Navigate("#" + state.Screen{Open: one, Other: kept, Tab: state.TabThreads}.Hash())
	until(t, func() (yes bool) {
		d.act(func() { yes = d.app.comparison() != nil && d.app.predictedAndMeasured() != nil })
		return yes
	})
	d.wants(`id="compare-cores"`, "Levels: A predicted, B measured")
	d.act(func() {
		table := d.app.predictedAndMeasured()
		if table == nil || table.Rows < 2 {
			t.Fatal("there is no comparison of predicted and measured threads")
		}
		for i := range table.Rows {
			if row := table.Row(i); row[0] == "L1" && row[2] != row[3] {
				t.Errorf("row of the first level = %q, want equal numbers for equal threads", row)
			}
		}
	})
}

// TestNothingToPredict checks that there is no prediction for a run without a parallel region or
// without a trace file.
func TestNothingToPredict(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabThreads).Hash())
	d.wants(`id="missing"`)

	d = alone(t)
	encoded := d.app.result.Profile.Encode()
	other := newDesk(t)
	other.app.Offer(Item{File: fileWith("alone.sgp", encoded)})
	other.app.Navigate("#" + other.app.Screen.With(state.TabThreads).Hash())
	other.wants(`id="cores-gone"`)
}
