package ui

import (
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/ui/state"
)

// ShowPolicies shows or hides the replacement policies and the prefetchers.
func (a *App) ShowPolicies(show bool) {
	text := ""
	if show {
		text = "1"
	}
	a.adjust("policies", a.Screen.WithOwn(state.Simulated, text))
}

// SetPolicy chooses a replacement policy or a prefetcher of a level (counted from 0). The parameter
// "list" is the number of the list in which the user chose.
func (a *App) SetPolicy(level, list int, name string) {
	a.changeMachine(controlID("policy", list+1), func(s *state.Screen) { s.Levels = state.WithPolicy(s.Levels, level, name) })
}

// policyList is a list of replacement policies or prefetchers for a level.
type policyList struct {
	_             incomparable
	title, chosen string
	level         int
	options       []state.Choice
}

// policies returns the lists of policies and prefetchers, two for each level.
func (c *Caches) policies() (lists []policyList) {
	for i, l := range c.App.Levels() {
		lists = append(lists,
			policyList{title: l.Name + " replacement", chosen: l.Replacement.String(), level: i, options: state.Policies(l)},
			policyList{title: l.Name + " prefetcher", chosen: l.Prefetch.String(), level: i, options: state.Prefetchers(l)})
	}
	return lists
}

// simulates reports whether the view shows replacement policies and prefetchers.
func (c *Caches) simulates() bool {
	return c.App.Screen.Own(state.Simulated) != "" && !c.App.result.Live
}

func (c *Caches) policiesWords() string {
	if c.simulates() {
		return "hide replacement, prefetchers"
	}
	return "replacement, prefetchers"
}

// simulationQuestion returns the question for the simulation of the chosen policies.
func (c *Caches) simulationQuestion() answers.Question {
	var part state.Range
	if c.App.ranged() {
		part = c.App.inRange().Range
	}
	return state.SimulationQuestion(c.machine(), part, !c.readsLong(), c.App.Port.Settings().Format)
}

// readsLong reports whether a simulation reads a long trace. The page then asks the user first, and
// does not count the misses of optimal replacement, which takes three times as long.
func (c *Caches) readsLong() bool {
	return c.App.result.Profile.Totals.AllReferences() > mostReread
}

// mustConfirmSimulation reports whether the page must ask the user before it reads the long trace
// again.
func (c *Caches) mustConfirmSimulation() bool {
	return c.begun != c.App.result.Profile && c.readsLong()
}

// simulate asks for the simulation of the chosen policies, unless the profile already answers the
// question or the user must confirm it. If the parameter "again" is set, simulate also repeats a
// simulation that was stopped.
func (c *Caches) simulate(again bool) {
	x := &c.simulation
	if !c.simulates() || !c.App.canPredict() {
		return
	}
	if state.LRUOnly(c.App.Levels()) || c.mustConfirmSimulation() {
		x.asker.end()
		*x = verbAnswer{}
		return
	}
	if again {
		x.forgetQuestion()
	}
	x.askOfTrace(c.App, c.App.result, c.simulationQuestion(), c.App.items[c.App.result.Key].File.Ref, func() {
		if x.asker.busy() {
			return
		}
		if c.App.Port.Announce(c.simulationNote()); c.simulationButton() == "" {
			c.App.Port.RestoreFocus("simulation-title") // the button may have had the focus
		}
	})
}

// stopOrSimulate stops the simulation, or starts it.
func (c *Caches) stopOrSimulate() {
	if x := &c.simulation; x.asker.busy() {
		x.stop()
		c.App.Port.Announce(c.simulationNote())
	} else {
		c.begun = c.App.result.Profile
		c.simulate(true)
	}
	c.App.touch()
}

// leaveSimulation ends the simulation when its view is left. A complete answer remains.
func (c *Caches) leaveSimulation() {
	x := &c.simulation
	x.asker.end()
	if x.asker.busy() {
		*x, c.begun = verbAnswer{}, nil
	}
	x.asker = nil
}

// simulatedShare returns the simulated share of the references, between 0 and 1.
func (c *Caches) simulatedShare() string {
	return strconv.FormatFloat(state.SimulationProgress(c.simulation.reply), 'f', 3, 64)
}

// simulationButton returns the label of the button that stops or starts the simulation, or "" if
// there is nothing to stop or to start.
func (c *Caches) simulationButton() string {
	switch x := &c.simulation; {
	case !c.App.canPredict() || state.LRUOnly(c.App.Levels()):
	case x.asker.busy():
		return "stop"
	case c.mustConfirmSimulation():
		return "Simulate"
	case x.stopped || x.err != nil:
		return "simulate again"
	}
	return ""
}

// simulationNote describes the result of the simulation, or explains why there is none.
func (c *Caches) simulationNote() string {
	x := &c.simulation
	switch {
	case !c.App.canPredict():
		return "A profile is exact only for LRU replacement without prefetchers. Anything else must be simulated from the trace, which is no longer available. Go back and open the trace again."
	case state.LRUOnly(c.App.Levels()):
		return "The profile is exact for LRU replacement without prefetchers. If you choose anything else, the page reads the trace again and simulates the hierarchy before and after the change."
	case x.asker.busy():
		return "Simulating: " + state.Percent(state.SimulationProgress(c.simulation.reply)) + " of the references."
	case c.mustConfirmSimulation():
		return "To simulate the hierarchy, the page reads all " + state.Count(float64(c.App.result.Profile.Totals.AllReferences())) + " references of the trace again."
	case x.stopped:
		return "The simulation was stopped."
	case x.err != nil:
		return "The hierarchy could not be simulated: " + x.err.Error() + "."
	}
	switch r := c.simulated(); {
	case r == nil:
		return "Simulating …"
	case r.Problem != "":
		return "The hierarchy cannot be simulated: " + r.Problem + "."
	default:
		return state.SimulationSentence(r)
	}
}

// simulated returns the complete answer to the current question about a simulation, or nil.
func (c *Caches) simulated() *answers.Reply {
	if x := &c.simulation; c.simulates() && x.current(c.App.result, c.simulationQuestion()) {
		return x.reply
	}
	return nil
}

// simulatedTable returns a table of the current simulation by the name of its chart, or nil.
func (c *Caches) simulatedTable(name string) *state.Table {
	r := c.simulated()
	if r == nil || r.Problem != "" {
		return nil
	}
	switch name {
	case "simulation":
		return state.SimulatedTable(r, "against")
	case "prefetch", "bound":
		return state.SimulatedTable(r, name)
	}
	return nil
}
