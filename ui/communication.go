package ui

import (
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// newCommunication makes the view of what threads write and others use.
func newCommunication(a *App, figure func(id, help string) vugu.Builder) *Communication {
	matrix := func(id, help string) vugu.Builder {
		return &Figure{App: a, ID: id, Matrix: true, Help: help, Table: &DataTable{App: a, Chart: id, Inside: true}}
	}
	return &Communication{App: a, Flows: matrix("flows", helpFlows), Owners: matrix("owners", helpOwners),
		Pairs: &DataTable{App: a, Chart: "pairs"}, Classes: &DataTable{App: a, Chart: "classes"}, False: &DataTable{App: a, Chart: "false"}}
}

// communication is the view of the result in view; nil where there is none.
func (a *App) communication() *state.Communication {
	if r := a.result; r != nil && r.View != nil {
		return r.View.Communication()
	}
	return nil
}

// granule is the granularity in view; windows are of words.
func (a *App) granule() int {
	if a.Screen.Window > 0 {
		return 0
	}
	return min(a.Screen.Granule, len(a.communication().Granules)-1)
}

// flow is the cell that is picked, from 0; -1: none.
func (a *App) flow() [2]int { return [2]int{a.Screen.Flow[0] - 1, a.Screen.Flow[1] - 1} }

// window is the part of the run in view, from 1; 0: all of it.
func (a *App) window() int { return min(a.Screen.Window, len(a.communication().Windows)) }

// measure is what flows are counted in.
func (a *App) measure() state.FlowMeasure {
	if a.Screen.Measure == "" {
		return state.Transfers
	}
	return a.Screen.Measure
}

// owner is the index of the data structure whose owners are shown, or -1.
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

// drawCommunication hands over the matrices. The caller holds the lock.
func (a *App) drawCommunication() {
	c := a.communication()
	if c == nil {
		return
	}
	a.drawMatrix(c.FlowMatrix(a.granule(), a.window(), a.measure(), a.flow()))
	if i := a.owner(); i >= 0 {
		a.drawMatrix(c.OwnerMap(i))
	}
}

func (a *App) drawMatrix(m *state.Matrix) {
	a.charts[m.ID] = &state.Chart{ID: m.ID, Title: m.Title, Summary: m.Summary}
	if a.handsOver(m.ID, m) {
		a.Port.Matrix(m)
	}
}

// communicationTable gives a table of the view, or nil.
func (a *App) communicationTable(chart string) *state.Table {
	c := a.communication()
	if c == nil {
		return nil
	}
	switch chart {
	case "flows":
		return c.FlowsTable(a.granule(), a.window())
	case "pairs":
		return c.PairsTable(a.flow())
	case "false":
		return c.FalseTable()
	case "classes":
		return c.TrafficTable()
	}
	if i := a.owner(); i >= 0 {
		return c.OwnersTable(i)
	}
	return nil
}

// look shows other flows.
func (a *App) look(control string, change func(s *state.Screen)) {
	s := a.Screen
	change(&s)
	a.adjust(control, s)
	a.Port.Announce(a.charts["flows"].Summary)
}

// ShowMeasure counts flows in something else.
func (a *App) ShowMeasure(m state.FlowMeasure) {
	a.look("measure", func(s *state.Screen) {
		if s.Measure = m; m == state.Transfers {
			s.Measure = ""
		}
	})
}

// ShowGranule shows flows at another granularity, of the whole run.
func (a *App) ShowGranule(i int) {
	a.look("granule", func(s *state.Screen) { s.Granule, s.Window = i, 0 })
}

// ShowWindow shows the flows of words in one part of the run; 0: in all of it.
func (a *App) ShowWindow(n int) {
	a.look("window", func(s *state.Screen) { s.Window = n })
}

// ShowOwners shows whose another data structure is.
func (a *App) ShowOwners(i int) {
	s := a.Screen
	s.Owner = i + 1
	a.goTo(s, true)
	a.Port.Announce(a.charts["owners"].Summary)
}

// PickFlow picks a cell of the matrix, or lets it go again, from a goroutine.
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
