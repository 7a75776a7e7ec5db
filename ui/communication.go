package ui

import (
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

func newCommunication(a *App) View {
	matrix := func(id, help string) vugu.Builder {
		figure := newFigure(a, id, help)
		figure.Matrix = true
		return figure
	}
	c := &Communication{App: a, Flows: matrix("flows", helpFlows), Owners: matrix("owners", helpOwners),
		Pairs: newTable(a, "pairs"), Classes: newTable(a, "classes"), False: newTable(a, "false")}
	c.Caveats = &Caveats{ID: "communication-notes", List: func() []string { return c.view().Doubts() }}
	return c
}

// Waits implements [View].
func (c *Communication) Waits() string { return c.App.missingAccesses() }

// Repeat implements [repeater].
func (c *Communication) Repeat() (words string, analyse func()) {
	if p := c.App.result.Profile; p == nil || p.Sampled != nil || len(p.Totals.Threads) < 2 {
		return "", nil
	}
	return "Analyse again, including communication", func() { c.App.RepeatWith(analysis.Sharing | analysis.Communication) }
}

// Draw implements [View].
func (c *Communication) Draw() {
	a, view := c.App, c.App.communication()
	if view == nil {
		return
	}
	a.drawMatrix(view.FlowMatrix(a.granule(), a.window(), a.measure(), a.flow()))
	if i := a.owner(); i >= 0 {
		a.drawMatrix(view.OwnerMap(i))
	}
}

// Table implements [View].
func (c *Communication) Table(name string) *state.Table {
	a, view := c.App, c.App.communication()
	if view == nil {
		return nil
	}
	switch name {
	case "flows":
		return view.FlowsTable(a.granule(), a.window())
	case "pairs":
		return view.PairsTable(a.flow())
	case "false":
		return view.FalseTable()
	case "classes":
		return view.TrafficTable()
	case "owners":
		if i := a.owner(); i >= 0 {
			return view.OwnersTable(i)
		}
	}
	return nil
}

// communication returns the threads' communication in the result in view, or nil if it was not
// counted.
func (a *App) communication() *state.Communication {
	if r := a.result; r != nil && r.View != nil {
		return r.View.Communication()
	}
	return nil
}

// granule returns the index of the granularity in view. In a window, communication is always
// counted in words.
func (a *App) granule() int {
	if a.Screen.Window > 0 {
		return 0
	}
	return min(a.Screen.Granule, len(a.communication().Granules)-1)
}

// flow returns the row and column of the selected cell, counted from 0, or -1.
func (a *App) flow() [2]int { return [2]int{a.Screen.Flow[0] - 1, a.Screen.Flow[1] - 1} }

// window returns the number of the window in view, counted from 1; 0 for the whole run.
func (a *App) window() int { return min(a.Screen.Window, len(a.communication().Windows)) }

// measure returns the unit in which the page counts flows.
func (a *App) measure() state.FlowMeasure {
	if a.Screen.Measure == "" {
		return state.Transfers
	}
	return a.Screen.Measure
}

// owner returns the index of the data structure whose owners are shown, or -1.
func (a *App) owner() int {
	objects := a.communication().Objects()
	switch n := a.Screen.Owner; {
	case len(objects) == 0:
		return -1
	case n > 0 && n <= len(objects):
		return n - 1
	}
	return objects[0]
}

func (a *App) drawMatrix(m *state.Matrix) {
	a.charts[m.ID] = &state.Chart{ID: m.ID, Title: m.Title, Summary: m.Summary}
	shown := m
	if m.Zoom {
		shown = m.Zoomed(a.Screen)
	}
	if a.handsOver(m.ID, [2]any{m, shown.Part}) {
		a.Port.Matrix(shown)
	}
}

// selectFlows changes which flows are shown.
func (a *App) selectFlows(control string, change func(s *state.Screen)) {
	s := a.Screen
	change(&s)
	a.adjust(control, s)
	a.Port.Announce(a.charts["flows"].Summary)
}

// ShowMeasure counts flows in the given unit.
func (a *App) ShowMeasure(m state.FlowMeasure) {
	a.selectFlows("measure", func(s *state.Screen) {
		if s.Measure = m; m == state.Transfers {
			s.Measure = ""
		}
	})
}

// ShowGranule shows the flows of the whole run at the given granularity.
func (a *App) ShowGranule(i int) {
	a.selectFlows("granule", func(s *state.Screen) { s.Granule, s.Window = i, 0 })
}

// ShowWindow shows the flows of words in one window of the run, or in the whole run if n is 0.
func (a *App) ShowWindow(n int) {
	a.selectFlows("window", func(s *state.Screen) { s.Window = n })
}

// ShowOwners shows the owners of the given data structure.
func (a *App) ShowOwners(i int) {
	s := a.Screen
	s.Owner = i + 1
	a.goTo(s, true)
	a.Port.Announce(a.charts["owners"].Summary)
}

// PickFlow selects or deselects a cell of the matrix. PickFlow must be called from a separate
// goroutine.
func (a *App) PickFlow(row, column int) {
	a.update(func() {
		c := a.communication()
		if c == nil || a.Screen.Tab != state.TabCommunication {
			return
		}
		s := a.Screen
		if picked := [2]int{row + 1, column + 1}; s.Flow == picked {
			s.Flow = [2]int{}
		} else {
			s.Flow = picked
		}
		s.Page = 0
		a.goTo(s, true)
		a.Port.Announce(c.FlowSentence(a.granule(), a.window(), a.flow()))
	})
}
