package ui

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/tally"
	"github.com/stackglass/stackglass/ui/state"
)

// drawCharts hands the charts of the tab in view to the browser. The caller
// holds the lock.
func (a *App) drawCharts() {
	a.charts = map[string]*state.Chart{}
	r := a.result
	if r == nil || r.View == nil || a.Screen.Open != r.Key {
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
		a.draw(r.View.OverTime(a.capacities()))
	case state.TabCaches:
		a.draw(r.View.MissCurve(a.answer().Levels))
	}
}

func (a *App) draw(c *state.Chart) {
	a.charts[c.ID] = c
	a.Port.Chart(c)
}

// Levels are the caches in question: those of the URL, or the preset's.
func (a *App) Levels() []hierarchy.Cache {
	levels := a.Screen.Levels
	if levels == nil {
		if p := a.preset(); p != nil {
			levels = p.Levels
		}
	}
	if v := a.result.View; v != nil {
		levels = v.WithLines(levels)
	}
	return levels
}

func (a *App) preset() *hierarchy.Hierarchy {
	presets := hierarchy.Presets()
	for i := range presets {
		if state.PresetSlug(presets[i].Name) == a.Screen.Preset {
			return &presets[i]
		}
	}
	if len(presets) > 0 {
		return &presets[0]
	}
	return nil
}

// answer is the prediction for the levels in question, made when they or the
// view change.
func (a *App) answer() *state.Caches {
	r := a.result
	levels := a.Levels()
	if r.answer == nil || !slices.Equal(r.asked, levels) {
		r.asked, r.answer = levels, r.View.Ask(levels)
	}
	return r.answer
}

// capacities are those of the view over time.
func (a *App) capacities() []int {
	if a.Screen.Log2Lines != nil {
		return a.Screen.Log2Lines
	}
	return a.result.View.DefaultLog2Lines()
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
	if t := a.counterTable(chart); t != nil || r.View == nil {
		return t
	}
	switch chart {
	case "curve":
		return r.once(chart, r.View.CurveTable)
	case "histogram":
		return r.once(chart, r.View.HistogramTable)
	case "time":
		return r.View.OverTimeTable(a.capacities())
	case "common":
		return r.View.CommonTable()
	case "kinds":
		return r.View.KindsTable()
	}
	return nil
}

// once makes a table when it is first asked for.
func (r *Result) once(name string, make func() *state.Table) *state.Table {
	if r.tables[name] == nil {
		r.tables[name] = make()
	}
	return r.tables[name]
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

// Findings are the sentences of the overview.
func (r *Result) Findings() []state.Finding {
	if r.findings == nil && r.View != nil {
		r.findings = r.View.Findings()
	}
	return r.findings
}

// by is what the counters in view are summed up by.
func (a *App) by() tally.By { return cmp.Or(a.Screen.By, tally.Program) }

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
		r.counterKeys, r.counters = state.CounterTables(r.Profile, r.summed, r.sorted)
	}
}

// SaveJSON downloads a table of counters.
func (a *App) SaveJSON(chart string) {
	if t := a.table(chart); t != nil && t.Source != nil {
		a.Port.Save(FileName(a.result.Name)+"-"+chart+".json", "application/json", []byte(t.JSON()))
	}
}

// SaveCSV downloads the table behind a chart.
func (a *App) SaveCSV(chart string) {
	if t := a.table(chart); t != nil {
		a.Port.Save(FileName(a.result.Name)+"-"+chart+".csv", "text/csv", []byte(t.CSV()))
	}
}

// CopyCSV puts the table behind a chart on the clipboard.
func (a *App) CopyCSV(chart string) {
	t := a.table(chart)
	if t == nil {
		return
	}
	text := t.CSV()
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

// SetSize asks about another size of a level, from 1.
func (a *App) SetSize(level int, bytes uint64) {
	if a.result == nil || a.result.View == nil {
		return
	}
	levels := a.Levels()
	if level < 1 || level > len(levels) {
		return
	}
	bytes = max(bytes-bytes%uint64(levels[level-1].LineBytes), uint64(levels[level-1].LineBytes))
	s := a.Screen
	s.Levels = state.WithSize(levels, level-1, bytes)
	a.goTo(s, true)
}

// SetWays asks about another associativity of a level, from 1; 0 ways: full.
func (a *App) SetWays(level int, ways uint32) {
	s := a.Screen
	s.Levels = state.WithWays(a.Levels(), level-1, ways)
	a.goTo(s, true)
}

// SetPreset asks about a preset's levels.
func (a *App) SetPreset(slug string) {
	s := a.Screen
	s.Levels, s.Preset = nil, slug
	a.goTo(s, true)
}

// Move asks about another size of a level, from 1, from a goroutine: a handle on
// the curve was dragged.
func (a *App) Move(level int, bytes uint64) {
	a.update(func() { a.SetSize(level, bytes) })
}
