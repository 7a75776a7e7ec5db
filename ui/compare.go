package ui

import (
	"cmp"
	"strconv"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
)

// comparing reports whether two analyses are compared, or will be compared as soon as both are
// loaded.
func (a *App) comparing() bool { return a.Screen.Other != "" }

// comparison returns the comparison of both analyses; nil until both are loaded.
func (a *App) comparison() *state.Comparison {
	x, y := a.result, a.other
	if !a.comparing() || x == nil || y == nil || x.View == nil || y.View == nil {
		return nil
	}
	if a.compared == nil || a.compared.A != x.View || a.compared.B != y.View {
		a.compared = &state.Comparison{A: x.View, B: y.View}
		a.comparedTables = map[string]*state.Table{}
	}
	return a.compared
}

// loadOther opens the analysis with which the analysis in view is compared. loadOther may block.
func (a *App) loadOther() {
	var key string
	var lineBytes uint32
	a.update(func() {
		if key = a.Screen.Other; a.other != nil && a.other.Key == key {
			key = ""
		}
		if a.result != nil && a.result.View != nil {
			lineBytes = uint32(a.result.View.LineBytes)
		}
	})
	if key == "" {
		return
	}
	r, problem := a.readKept(key)
	if problem != "" && a.analysesLinked(key) {
		return
	}
	a.update(func() {
		if a.Screen.Other != key { // the user has navigated elsewhere
			return
		}
		if problem != "" {
			a.addProblem("There is nothing to compare with: " + problem)
			a.goTo(a.Screen.Against(""), true)
			return
		}
		a.other = r
		r.show(lineBytes)
		a.readNames(r)
		a.drawCharts()
		a.Port.Announce(state.SideName(0) + ": " + a.sideName(0) + ". " + state.SideName(1) + ": " + r.Name + ".")
	})
}

// sideName returns the name of analysis A (side 0) or B (side 1).
func (a *App) sideName(side int) string {
	r := a.result
	if side == 1 {
		r = a.other
	}
	if r == nil {
		return "…"
	}
	return r.Name
}

// Candidates returns the stored analyses with which the analysis in view can be compared.
func (a *App) Candidates() (list []profile.Entry) {
	for _, e := range a.kept {
		if e.Key != a.Screen.Open && e.State != profile.EntryInterrupted {
			list = append(list, e)
		}
	}
	return list
}

// otherFile is the choice to compare with a file instead of a stored analysis.
const otherFile = "-file"

// CompareWith compares the analysis in view with a stored analysis, or with the next file that the
// user opens.
func (a *App) CompareWith(key string) {
	if key != otherFile {
		a.against = ""
		a.compare(a.Screen.Against(key), false)
		return
	}
	a.against = a.Screen.Open
	a.Note = "Choose or drop a trace or a profile to compare with."
	a.Port.Pick()
	a.touch()
}

// Against selects the first of two stored analyses to compare. The key "" cancels the selection.
func (a *App) Against(key string) {
	a.against = key
	a.touch()
	if key != "" {
		a.Port.Announce("Choose the analysis to compare with, or drop a file.")
	}
}

// compareOpened compares a newly opened result with the analysis that the user has selected for
// comparison. The caller holds the lock.
func (a *App) compareOpened(key string) {
	if a.against == "" || a.against == key {
		return
	}
	first := a.against
	a.against = ""
	a.compare(state.Screen{Open: first, Other: key}, true)
}

// compare shows two analyses side by side. A is the older analysis. The caller holds the lock.
func (a *App) compare(s state.Screen, replace bool) {
	s = a.olderFirst(s)
	if a.result != nil && a.result.Key == s.Other {
		a.other, a.result = a.result, nil
	}
	a.Screen, a.step = s, ""
	a.Port.SetHash(s.Hash(), replace)
	a.touch()
	go a.navigate(func() (string, bool) { // unless the user has navigated elsewhere
		return "#" + a.Screen.Hash(), a.Screen.Open == s.Open && a.Screen.Other == s.Other
	})
}

// olderFirst selects the older analysis as A, because the older analysis is usually the run before
// a change.
func (a *App) olderFirst(s state.Screen) state.Screen {
	var made [2]int64
	for _, e := range a.kept {
		for side, key := range [...]string{s.Open, s.Other} {
			if e.Key == key {
				made[side] = e.Created
			}
		}
	}
	if made[1] != 0 && made[1] < made[0] {
		s.Open, s.Other = s.Other, s.Open
	}
	return s
}

// OfferPair opens two demos side by side. OfferPair does not analyse a demo again if its analysis
// is already stored.
func (a *App) OfferPair(first, second Item) {
	var keys [2]string
	for i, item := range [...]Item{first, second} {
		if keys[i] = a.keptDemo(item); keys[i] != "" {
			continue
		}
		a.Offer(item)
		if keys[i] = a.keptDemo(item); keys[i] == "" {
			return // a problem is already shown, or the demo waits for another run
		}
	}
	var hash string
	a.update(func() {
		screen := a.screenOf(second, keys[0]).With(state.TabDiagnosis)
		screen.Other = keys[1]
		hash = screen.Hash()
		a.Port.SetHash(hash, false)
	})
	a.Navigate(hash)
	a.update(func() { a.origin = "pair-" + second.Demo })
}

// comparedCapacity returns the capacity for which both runs are shown over time.
func (a *App) comparedCapacity() int {
	list := a.capacities()
	return list[min(1, len(list)-1)]
}

// comparedCalls returns the direction in which the call paths of both runs are shown.
func (a *App) comparedCalls() string {
	if a.Screen.Calls == state.CallsUp {
		return state.CallsUp
	}
	return state.CallsDown
}

// Waits implements [View].
func (v *CompareView) Waits() string {
	switch a := v.App; {
	case a.comparison() != nil:
		return ""
	case a.other == nil:
		return "Opening …"
	default:
		return a.missingAccesses()
	}
}

// Placed implements [placed].
func (v *CompareView) Placed() bool {
	switch v.App.Screen.Tab {
	case state.TabDiagnosis, state.TabCaches, state.TabCode, state.TabCalls, state.TabBlocks:
		return true
	}
	return false
}

// Processors implements [timed].
func (v *CompareView) Processors() (list *report.Table, depends bool) {
	switch v.App.Screen.Tab {
	case state.TabDiagnosis:
		return v.App.diagnosis.processors(), true
	case state.TabBlocks:
		if pair := v.App.pairBlocks(); pair != nil {
			list = pair.A.Table("processors")
		}
		return list, true
	}
	return nil, false
}

// Draw implements [View].
func (v *CompareView) Draw() {
	a, c := v.App, v.App.comparison()
	switch a.Screen.Tab {
	case state.TabDiagnosis:
		a.askDiagnoses()
		a.draw(c.Curve(nil))
	case state.TabLocality:
		a.draw(c.Histogram())
		a.draw(c.OverTime(a.comparedCapacity()))
	case state.TabCaches:
		a.draw(c.Curve(a.Levels()))
	case state.TabBlocks:
		a.drawPairBlocks(c)
	case state.TabLoops:
		a.askBoth(state.TabLoops, state.LoopsQuestion(a.Levels()))
	case state.TabCalls:
		a.askBoth(state.TabCalls, state.CallsQuestion(a.Machine(), a.comparedCalls(), "", "", state.Range{}))
	case state.TabData:
		a.askBoth(state.TabData, state.DataQuestion(a.Machine()))
	case state.TabFootprint:
		a.draw(c.Footprint())
	case state.TabAssociativity:
		m := c.SetsMap(a.cell(), a.Levels())
		a.charts[m.ID] = &state.Chart{ID: m.ID, Title: m.Title, Summary: m.Summary}
		a.Port.Heat(m)
	case state.TabThreads:
		if a.measuredThreads() != nil {
			a.drawCores()
		}
	}
}

// Table implements [View]. The key of a cached table contains levels, sort orders and capacities,
// because the table depends on them.
func (v *CompareView) Table(chart string) *state.Table {
	a, c := v.App, v.App.comparison()
	once := func(question string, make func() *state.Table) *state.Table {
		key := chart + " " + question
		if a.comparedTables[key] == nil {
			a.comparedTables[key] = make()
		}
		return a.comparedTables[key]
	}
	machine := a.Machine()
	asked := state.Screen{Open: "x", Levels: machine.Levels, Threads: machine.Threads}.Hash()
	switch chart {
	case "curve":
		return once("", c.CurveTable)
	case "histogram":
		return once("", c.HistogramTable)
	case "time":
		k := a.comparedCapacity()
		return once(strconv.Itoa(k), func() *state.Table { return c.TimeTable(k) })
	case "problems":
		return a.compareDiagnoses().problems
	case "facts":
		return once("", c.Facts)
	case "levels":
		return once(asked, func() *state.Table { return c.Levels(machine) })
	case "code-compared":
		if c.A.Run.Ranker() == nil || c.B.Run.Ranker() == nil {
			return nil
		}
		by, sort := cmp.Or(a.Screen.Place, attribution.Line), a.Screen.Sort
		return once(asked+" "+string(by)+" "+sort, func() *state.Table { return c.Code(by, machine, sort) })
	case "counters-compared":
		if c.A.Profile.Counters == nil || c.B.Profile.Counters == nil {
			return nil
		}
		by, sort := a.grouping(), a.Screen.Sort
		return once(string(by)+" "+sort, func() *state.Table { return c.CountersBy(by, sort) })
	case "functions-compared", "blocks-compared":
		p := a.pairBlocks()
		if p == nil {
			return nil
		}
		if chart == "functions-compared" {
			return p.Functions(a.Screen.Sort)
		}
		return p.OfFunction(a.Screen.Sort)
	case "cores-compared":
		return once(keyOf(a.coresQuestion().Question().Words), a.predictedAndMeasured)
	case "loops-compared", "loop-misses-compared":
		both, known := a.replies(state.LoopsQuestion(a.Levels()))
		if !known {
			return nil
		}
		sort := a.Screen.Sort
		return once(asked+" "+sort, func() *state.Table {
			if chart == "loops-compared" {
				return c.LoopsTable(both, machine, sort)
			}
			return c.LoopMissesTable(both, machine, sort)
		})
	case "calls-compared":
		direction := a.comparedCalls()
		both, known := a.replies(state.CallsQuestion(machine, direction, "", "", state.Range{}))
		if !known {
			return nil
		}
		sort := a.Screen.Sort
		return once(asked+" "+direction+" "+sort, func() *state.Table { return c.CallsTable(direction, both, machine, sort) })
	case "data-compared":
		both, known := a.replies(state.DataQuestion(machine))
		if !known {
			return nil
		}
		sort := a.Screen.Sort
		return once(asked+" "+sort, func() *state.Table { return c.DataTable(both, machine, sort) })
	case "sets":
		return once(a.Screen.Sort, func() *state.Table { return c.SetsTable(a.Screen.Sort) })
	case "footprint":
		return once("", c.FootprintTable)
	case "own-compared", "shared-compared":
		bytes, make := a.ownBytes(), c.Own
		if chart == "shared-compared" {
			bytes, make = a.sharedBytes(), c.Shared
		}
		sort := a.Screen.Sort
		return once(strconv.FormatUint(bytes, 10)+" "+sort, func() *state.Table { return make(bytes, sort) })
	case "flows-compared":
		return c.Flows(a.Screen.Sort)
	case "pairs-compared":
		return once(a.Screen.Sort, func() *state.Table { return c.Pairs(a.Screen.Sort) })
	}
	return nil
}
