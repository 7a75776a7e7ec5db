package ui

import (
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// incomparable is the type of a field that makes a struct incomparable. Without such a field, the
// compiler generates code that compares two structs, which makes a first visit larger.
type incomparable = [0]func()

// View shows one view of a result: the component of a tab, and the charts that the browser draws
// for it. Package state computes the texts and numbers of the view.
//
// A view may also implement [repeater], [placed] or [timed].
type View interface {
	vugu.Builder
	// Waits explains why there is nothing to show yet, or returns "".
	Waits() string
	// Draw passes charts, maps and long tables to the browser. Draw must not block. The caller
	// holds the lock.
	Draw()
	// Table returns a table of the view by the name of its chart, or nil.
	Table(name string) *state.Table
}

// repeater is a view that may need a second analysis of the trace.
type repeater interface {
	// Repeat returns the text of the button that starts the analysis, and its action.
	Repeat() (words string, analyse func())
}

// placed is a view whose numbers depend on the cores on which threads run.
type placed interface{ Placed() bool }

// timed is a view whose numbers may depend on a processor. The method Processors reports whether
// the numbers depend on a processor, and returns the table of processors, or nil while the table is
// unknown.
type timed interface {
	Processors() (list *report.Table, depends bool)
}

// views contains, for each tab, the function that creates its view.
var views = map[state.Tab]func(*App) View{
	state.TabDiagnosis:     newDiagnosis,
	state.TabLocality:      newLocality,
	state.TabCaches:        newCaches,
	state.TabAssociativity: newAssociativity,
	state.TabCode:          newCode,
	state.TabCalls:         newCalls,
	state.TabThreads:       newThreads,
	state.TabCommunication: newCommunication,
	state.TabLoops:         newLoops,
	state.TabBlocks:        newBlocks,
	state.TabCounters:      newCounters,
	state.TabFootprint:     newFootprint,
	state.TabData:          newData,
}

// view returns the chosen view of one result, or of two compared results.
func (a *App) view() View {
	if a.comparing() {
		if a.both == nil {
			a.both = newCompare(a)
		}
		return a.both
	}
	t := a.Screen.Tab
	if a.opened == nil {
		a.opened = map[state.Tab]View{}
	}
	if a.opened[t] == nil {
		a.opened[t] = views[t](a)
	}
	return a.opened[t]
}

// missing returns the reason why a tab has nothing to show for the result in view. It returns "" if
// there is something to show, or if there is no result.
func (a *App) missing(t state.Tab) string {
	r := a.result
	if r == nil {
		return ""
	}
	if !r.Live && r.Profile != nil && r.Profile.Totals.Unselected > 0 && t != state.TabCounters {
		if why := state.Nothing(r.Profile); why != "" {
			return why
		}
	}
	if why := t.Missing(r.Profile); why != "" || a.comparison() == nil {
		return why
	}
	if why := t.Missing(a.other.Profile); why != "" {
		return "B has nothing to compare in this view. " + why
	}
	return ""
}

// missingAccesses explains why the result in view has no data about accesses.
func (a *App) missingAccesses() string {
	switch r := a.result; {
	case r == nil:
		return "Opening …"
	case r.View != nil:
		return ""
	case r.Live && a.run != nil && a.run.leave != nil:
		return "Another tab is counting the references. The result will also be shown here once it is complete."
	case r.Live:
		return "The first references are being counted …"
	}
	return "This profile contains no stack distances: no reference of the selected kinds was analysed, or stack distances were not requested."
}

// drawCharts draws the charts of the current view. The caller holds the lock.
func (a *App) drawCharts() {
	a.charts = map[string]*state.Chart{}
	r := a.result
	inView := r != nil && a.Screen.Open == r.Key
	if of := a.cores.of; of != nil && (!inView || r.Profile != of) {
		a.endCores() // the program that computes the predictions is no longer needed
	}
	if c, opened := a.opened[state.TabCaches].(*Caches); opened {
		of := c.simulation.of
		if !inView || a.Screen.Tab != state.TabCaches || a.comparing() || of != nil && of != r.Profile {
			c.leaveSimulation()
		}
	}
	if !inView {
		return
	}
	if t := a.timeline(); t != nil && a.handsOver("timeline", [2]any{t, a.Screen.Range}) {
		a.Port.Timeline(t.Choose(r.View, a.Screen.Range))
	}
	if a.missing(a.Screen.Tab) != "" {
		return
	}
	if v := a.view(); v.Waits() == "" {
		v.Draw()
	}
}

// drawAgain redraws a tab in view after its answer has arrived. The caller holds the lock.
func (a *App) drawAgain(t state.Tab) {
	if a.Screen.Tab == t {
		a.drawCharts()
	}
}

// table returns the table of a chart of the current view, or nil.
func (a *App) table(chart string) *state.Table {
	if v := a.view(); a.result != nil && v.Waits() == "" {
		return v.Table(chart)
	}
	return nil
}

// newFigure returns a chart with its heading, its explanation and its table.
func newFigure(a *App, id, help string) *Figure {
	return &Figure{App: a, ID: id, Help: help, Table: &DataTable{App: a, Chart: id, Inside: true}}
}

// newTable returns a table without a chart.
func newTable(a *App, id string) *DataTable { return &DataTable{App: a, Chart: id} }
