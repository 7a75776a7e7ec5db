package ui

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/ui/state"
)

// simulatedAll waits until the simulation of the Caches view is complete.
func (d *desk) simulatedAll() *Caches {
	d.t.Helper()
	var c *Caches
	until(d.t, func() (yes bool) {
		d.act(func() {
			c = d.app.view().(*Caches)
			yes = c.simulation.reply != nil && c.simulation.current(d.app.result, c.simulationQuestion())
		})
		return yes
	})
	return c
}

// TestSimulatePolicies checks that the page simulates other policies than LRU, that the baseline
// equals the prediction for LRU in the first level, and that a range counts only its references.
func TestSimulatePolicies(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#open=" + d.app.Screen.Open + "&view=caches&levels=L1.2048.4.64_L2.16384.8.64")
	d.wants(`id="machine-policies"`, "replacement, prefetchers")
	d.act(func() { d.app.ShowPolicies(true) })
	d.wants(`id="policy-4"`, "L1 replacement", "L2 prefetcher", "The profile is exact for LRU replacement")
	d.act(func() {
		if c := d.app.view().(*Caches); c.simulation.asker != nil || c.simulationButton() != "" {
			t.Error("LRU is simulated, although the profile is exact for LRU")
		}
		d.app.SetPolicy(0, 0, "drrip")
		d.app.SetPolicy(1, 3, "next-line")
	})
	c := d.simulatedAll()
	d.wants(`id="table-simulation"`, `id="table-prefetch"`, `id="table-bound"`, "misses instead of", "DRRIP", "next line")
	d.act(func() {
		lru := d.app.answer().Prediction.Levels[0].Misses
		if got := d.app.table("simulation").Row(0); got[2] != state.Count(lru) || got[3] == got[2] {
			t.Errorf("misses of L1 = %q, want %s before and another number after", got, state.Count(lru))
		}
		if !strings.Contains(d.hash, "simulate=1") || !strings.Contains(d.hash, ".r9") || !strings.Contains(d.hash, ".f1") {
			t.Errorf("hash = %s, want the policies", d.hash)
		}
	})
	whole := d.app.table("simulation").Row(0)[3]
	if !strings.Contains(d.lastSaid(), "instead of") {
		t.Errorf("announced %q, want the result", d.lastSaid())
	}

	s := d.app.Screen
	s.Range = state.Range{From: 20000, To: 40000}
	d.app.Navigate("#" + s.Hash())
	d.simulatedAll()
	d.act(func() {
		if q := strings.Join(c.simulationQuestion().Words, " "); !strings.Contains(q, "range=") {
			t.Errorf("question = %s, want the range", q)
		}
		if got := d.app.table("simulation").Row(0)[3]; got == whole {
			t.Errorf("misses of L1 in a range = %s, as in the whole run", got)
		}
	})

	d.act(func() { d.app.SetPolicy(0, 0, "lru"); d.app.SetPolicy(1, 3, "none") })
	until(t, func() (yes bool) {
		d.act(func() { yes = c.simulation.asker == nil && d.app.table("simulation") == nil })
		return yes
	})
	d.act(func() { d.app.ShowPolicies(false) })
	if page := d.html(); strings.Contains(page, `id="simulation"`) || strings.Contains(d.hash, "simulate=") {
		t.Error("the policies are still shown")
	}
}

// TestSimulateLongTrace checks that the page asks before it reads a long trace again, and that the
// user can stop the simulation and start it again.
func TestSimulateLongTrace(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#open=" + d.app.Screen.Open + "&view=caches&simulate=1&levels=L1.2048.4.64.r3")
	c := d.simulatedAll()
	totals := d.app.result.Profile.Totals
	d.act(func() {
		c.simulation = verbAnswer{}
		d.app.result.Profile.Totals.References[0] += mostReread
		c.Draw()
		if c.simulation.asker != nil || c.simulationButton() != "Simulate" || !strings.Contains(c.simulationNote(), "reads all") {
			t.Errorf("%q, %q; want a question", c.simulationButton(), c.simulationNote())
		}
		if q := strings.Join(c.simulationQuestion().Words, " "); strings.Contains(q, "bound") {
			t.Errorf("question about a long trace = %s, want no optimal replacement", q)
		}
		c.stopOrSimulate()
		if c.simulationButton() != "stop" || !strings.Contains(c.simulationNote(), "Simulating") {
			t.Errorf("%q, %q; want a running simulation", c.simulationButton(), c.simulationNote())
		}
		c.stopOrSimulate()
		if c.simulationButton() != "simulate again" || !strings.Contains(c.simulationNote(), "was stopped") {
			t.Errorf("%q, %q; want a stopped simulation", c.simulationButton(), c.simulationNote())
		}
		c.Draw()
		if c.simulation.asker.busy() {
			t.Error("a stopped simulation continues by itself")
		}
		d.app.result.Profile.Totals = totals
		c.stopOrSimulate()
	})
	d.simulatedAll()
	d.act(func() {
		if note := c.simulationNote(); !strings.Contains(note, "instead of") {
			t.Errorf("note = %q, want the result", note)
		}
	})
}

// TestSimulateWithoutTrace checks that the page explains why it cannot simulate a profile.
func TestSimulateWithoutTrace(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#open=" + d.app.Screen.Open + "&view=caches&simulate=1&levels=L1.2048.4.64.r3")
	d.simulatedAll()
	d.act(func() { d.app.items = nil })
	d.wants("must be simulated from the trace, which is no longer available")
	if page := d.html(); strings.Contains(page, `id="policy-1"`) || strings.Contains(page, `id="simulate"`) {
		t.Error("the page offers policies without a trace")
	}
}

// TestSimulateAfterError checks that the button "simulate again" works after an error.
func TestSimulateAfterError(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Port = unloaded{d}
	d.app.Navigate("#open=" + d.app.Screen.Open + "&view=caches&simulate=1&levels=L1.2048.4.64.r3")
	until(t, func() bool {
		return strings.Contains(d.html(), "The hierarchy could not be simulated: the query program")
	})
	d.act(func() {
		c := d.app.view().(*Caches)
		if c.simulationButton() != "simulate again" {
			t.Errorf("button = %q, want simulate again", c.simulationButton())
		}
		d.app.Port = d
		c.stopOrSimulate()
	})
	d.simulatedAll()
	d.wants("misses instead of")
	if d.restored != "simulation-title" {
		t.Errorf("focus restored to %q, want the heading, because the button disappears", d.restored)
	}
}

// TestSimulationWarnings checks that the view shows the warnings of a simulation only while the
// simulation answers the current question. The note must not describe an earlier simulation.
func TestSimulationWarnings(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#open=" + d.app.Screen.Open + "&view=caches&simulate=1&levels=L1.2048.4.64.r3")
	c := d.simulatedAll()
	const warning = "a warning of the simulation"
	d.act(func() {
		c.simulation.reply.Notes = append(c.simulation.reply.Notes, warning)
		if before := c.answer().Warnings; !slices.Contains(c.notes(), warning) || slices.Contains(before, warning) {
			t.Errorf("warnings = %q, want also the warning of the simulation", c.notes())
		}
		d.app.Screen.Levels = state.WithPolicy(d.app.Levels(), 0, "drrip")
		if note := c.simulationNote(); slices.Contains(c.notes(), warning) || note != "Simulating …" {
			t.Errorf("after a change: %q with the warnings %q, want no answer yet", note, c.notes())
		}
	})
}

// TestLeaveSimulation checks that a simulation ends when its view or its result is left, and that the
// page keeps a complete answer. Each result must be confirmed separately.
func TestLeaveSimulation(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Navigate("#open=" + d.app.Screen.Open + "&view=caches&simulate=1&levels=L1.2048.4.64.r3")
	c := d.simulatedAll()
	here := d.app.Screen
	totals := &d.app.result.Profile.Totals
	for name, leave := range map[string]string{"another tab": here.With(state.TabLocality).Hash(), "the list": ""} {
		d.app.Navigate("#" + leave)
		d.act(func() {
			if c.simulation.asker != nil || c.simulation.reply == nil {
				t.Errorf("%s: the program of a complete simulation runs, or its answer is lost", name)
			}
		})
		d.app.Navigate("#" + here.Hash())
		c = d.simulatedAll()
	}
	for name, leave := range map[string]string{"another tab": here.With(state.TabLocality).Hash(), "the list": ""} {
		var x *asker
		d.act(func() {
			c.simulation = verbAnswer{}
			totals.References[0] += mostReread
			c.stopOrSimulate()
			x = c.simulation.asker
		})
		if x == nil {
			t.Fatal("the simulation did not start")
		}
		d.app.Navigate("#" + leave)
		d.act(func() {
			if !x.ended || c.simulation.asker != nil || c.begun != nil {
				t.Errorf("%s: the simulation continues", name)
			}
			totals.References[0] -= mostReread
		})
		d.app.Navigate("#" + here.Hash())
		c = d.simulatedAll()
	}
	d.act(func() {
		c.begun = d.app.result.Profile
		long := *c.begun
		long.Totals.References[0] += mostReread
		d.app.result.Profile = &long
		if !c.mustConfirmSimulation() {
			t.Error("the confirmation for one result also applies to another result")
		}
	})
}
