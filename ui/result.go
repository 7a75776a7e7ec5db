package ui

import (
	"cmp"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// drawCharts hands the charts of the tab in view to the browser. The caller
// holds the lock.
func (a *App) drawCharts() {
	a.charts = map[string]*state.Chart{}
	r := a.result
	inView := r != nil && a.Screen.Open == r.Key
	if of := a.cores.of; of != nil && (!inView || r.Profile != of) {
		a.endCores() // nobody waits for it
	}
	if !inView {
		return
	}
	if a.Screen.Tab == state.TabBlocks && !a.comparing() {
		a.drawBlocks()
		return
	}
	if r.View == nil {
		return
	}
	if a.comparing() {
		if c := a.comparison(); c != nil {
			a.drawComparison(c)
		}
		return
	}
	switch a.Screen.Tab {
	case state.TabOverview:
		a.draw(r.View.MissCurve(nil))
	case state.TabLocality:
		a.draw(r.View.HistogramChart())
		a.draw(a.overTime())
		if c := r.View.WorkingSet(); c != nil {
			a.draw(c)
		}
	case state.TabCommunication:
		a.drawCommunication()
	case state.TabThreads:
		a.drawThreads()
		a.drawCores()
	case state.TabLoops:
		a.drawLoops()
	case state.TabCode:
		a.drawCode()
	case state.TabCaches:
		a.draw(r.View.MissCurve(a.answer().Levels))
	case state.TabAssociativity:
		if r.View.Locality.Sets != nil {
			a.drawMap(r.View.SetsMap(a.cell(), a.Screen.Conflicts, a.Levels()))
		}
	}
}

// how says how what is drawn was computed: of two analyses, that of the estimates.
func (a *App) how() string {
	how := state.Exactly
	for _, r := range []*Result{a.result, a.other} {
		if r != nil && r.View != nil && how == state.Exactly && (r == a.result || a.comparing()) {
			how = r.View.How()
		}
	}
	return how
}

func (a *App) draw(c *state.Chart) {
	a.charts[c.ID] = c
	if a.handsOver(c.ID, c) {
		a.Port.Chart(c)
	}
}

// handsOver tells whether what is drawn is another thing than the browser has by that
// id already: to draw many curves or cells again takes long.
func (a *App) handsOver(id string, drawn any) bool {
	if a.handed == nil {
		a.handed = map[string]any{}
	}
	was := a.handed[id]
	a.handed[id] = drawn
	return was != drawn
}

// capacities are those of the view over time.
func (a *App) capacities() []int {
	if a.Screen.Log2Lines != nil {
		return a.Screen.Log2Lines
	}
	if list, _ := a.result.View.LevelLog2Lines(a.Levels()); len(list) > 0 {
		return list
	}
	return a.result.View.DefaultLog2Lines()
}

// overTime is the run over time, for the levels of the hierarchy in question
// unless other sizes are chosen.
func (a *App) overTime() *state.Chart {
	c := a.result.View.OverTime(a.capacities())
	if _, estimates := a.result.View.LevelLog2Lines(a.Levels()); a.Screen.Log2Lines == nil && len(estimates) > 0 {
		c.Summary += " For " + strings.Join(estimates, " and ") + ", whose number of lines is no power of two, the next smaller one is drawn: an estimate from above."
	}
	return c
}

// drawMap hands a map over; its title and summary are found where charts' are.
func (a *App) drawMap(m *state.HeatMap) {
	a.charts[m.ID] = &state.Chart{ID: m.ID, Title: m.Title, Summary: m.Summary}
	a.Port.Heat(m)
}

// table gives the table behind a chart, or nil.
func (a *App) table(chart string) *state.Table {
	r := a.result
	if r == nil {
		return nil
	}
	if a.comparing() {
		return a.comparedTable(chart)
	}
	if a.Screen.Tab == state.TabBlocks {
		return a.blocksTable(chart)
	}
	if t := a.counterTable(chart); t != nil || r.View == nil {
		return t
	}
	switch chart {
	case "curve":
		return r.View.CurveTable()
	case "histogram":
		return r.View.HistogramTable()
	case "time":
		return r.View.OverTimeTable(a.capacities())
	case "common":
		return r.View.CommonTable()
	case "working-set":
		return r.View.WorkingSetTable()
	case "code", "place", "before":
		return a.codeTable(chart)
	case "flows", "pairs", "classes", "owners", "false":
		return a.communicationTable(chart)
	case "loops", "arrays", "loop-misses", "evictions":
		return a.loopTable(chart)
	case "tried", "proposed":
		return a.changeTable(chart)
	case "rates", "speedup", "rates-of", "cores-of", "work":
		return a.coresTable(chart)
	case "cores", "own", "shared", "change":
		return a.threadsTable(chart)
	case "kinds":
		return r.View.KindsTable()
	case "by-core":
		return a.answer().Cores
	case "against":
		return a.besideTable()
	case "sets":
		if r.View.Locality.Sets != nil {
			return r.View.SetsTable()
		}
	}
	return nil
}

// demoOf recognises a demo by what the analysis counted, whatever it is called:
// a lesson's numbers hold for the whole trace in lines of 64 bytes.
func (a *App) demoOf(r *Result) *Demo {
	if r.Live || r.Profile == nil || r.Profile.State.Partial {
		return nil
	}
	l := r.Profile.LocalityAt(64)
	if l == nil {
		return nil
	}
	for _, d := range a.Port.Demos() {
		if d.References == r.Profile.Totals.AllReferences() && d.Lines == l.Lines() {
			return &d
		}
	}
	return nil
}

// Findings are the sentences of the overview, made when the view or the hierarchy in
// question change.
func (a *App) Findings() []state.Finding {
	r, h := a.result, a.Machine()
	if r.View != nil && (r.findings == nil || !state.SameMachine(r.foundFor, h)) {
		r.findings, r.foundFor = r.View.Findings(h), h
	}
	return r.findings
}

// by is what the counters in view are summed up by.
func (a *App) by() answers.CountersBy { return cmp.Or(a.Screen.By, answers.ByProgram) }

// counterKeys are the keys of the tables of counters in view.
func (a *App) counterKeys() []string {
	a.sumUp()
	return a.result.counterKeys
}

// counterTable gives a table of counters, or nil.
func (a *App) counterTable(key string) *state.Table {
	if a.Screen.Tab != state.TabCounters || a.result.Profile == nil || a.result.Profile.Counters == nil {
		return nil
	}
	if key == "definitions" {
		return state.CounterDefinitions(a.result.Profile)
	}
	a.sumUp()
	return a.result.counters[key]
}

// sumUp makes the tables of counters when the profile, what they are summed up
// by or their order changes.
func (a *App) sumUp() {
	r := a.result
	if r.counters == nil || r.summed != a.by() || r.sorted != a.Screen.Sort {
		r.summed, r.sorted = a.by(), a.Screen.Sort
		r.counterKeys, r.counters = state.CounterTables(r.answers, r.summed, r.sorted)
	}
}

// SaveJSON downloads the document of the table behind a chart.
func (a *App) SaveJSON(chart string) {
	if t := a.table(chart); t != nil && t.Exports() {
		a.Port.Save(FileName(a.result.Name)+"-"+chart+".json", "application/json", t.JSON())
	}
}

// SaveCSV downloads the table behind a chart.
func (a *App) SaveCSV(chart string) {
	if t := a.table(chart); t != nil {
		a.Port.Save(FileName(a.result.Name)+"-"+chart+".csv", "text/csv", t.CSV())
	}
}

// CopyCSV puts the table behind a chart on the clipboard.
func (a *App) CopyCSV(chart string) {
	t := a.table(chart)
	if t == nil {
		return
	}
	text := string(t.CSV())
	go func() {
		err := a.Port.Copy(text)
		a.update(func() {
			if err != nil {
				a.Problem = "The browser did not let the page copy (" + err.Error() + "); use CSV instead."
				return
			}
			a.Port.Announce("Copied")
			a.Note = "Copied as CSV."
		})
	}()
}

// SaveProfile downloads the profile in view.
func (a *App) SaveProfile() {
	r := a.result
	if r == nil || r.Profile == nil {
		return
	}
	a.Port.Save(FileName(r.Name)+".sgp", "application/octet-stream", r.Profile.Encode())
}

// Forms are what the result in view can be exported to.
func (a *App) Forms() (list []export.Form) {
	for _, f := range export.Forms() {
		if !f.Sites || a.result.Profile.Sites != nil {
			list = append(list, f)
		}
	}
	return list
}

// ExportAs downloads the result in view in the form of another tool, or as a
// report, with the hierarchy in question.
func (a *App) ExportAs(form string) {
	r := a.result
	if r == nil || r.View == nil {
		return
	}
	for _, f := range a.Forms() {
		if f.Name == form {
			request := export.Request{Form: form, Title: r.Name, Hierarchy: a.Machine(), Profile: r.Profile.Encode()}
			a.Note = "Making the " + f.Title + " …"
			a.touch()
			go a.saveExport(f, FileName(r.Name)+f.Ending, &request)
		}
	}
}

// saveExport waits for a file and downloads it.
func (a *App) saveExport(f export.Form, name string, request *export.Request) {
	content, err := fileOf(a.askOnce(workers.Subject{Profile: request.Profile}, request.Question()))
	a.update(func() {
		if a.Note = ""; err != nil {
			a.trouble("The " + f.Title + " could not be made: " + err.Error() + ".")
			return
		}
		a.Port.Save(name, f.Media, content)
		a.Port.Announce(name + " is saved.")
	})
}
