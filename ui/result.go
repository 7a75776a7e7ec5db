package ui

import (
	"cmp"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// method describes the method that computed the drawn numbers. If two analyses are compared and one
// of them uses estimates, it describes the method of the analysis with estimates.
func (a *App) method() string {
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
	if zoom := a.Screen.Zoom(c.ID); a.handsOver(c.ID, [2]any{c, zoom}) {
		a.Port.Chart(c, zoom)
	}
}

// ZoomChart shows the part of a chart between two positions on the x axis, or the whole chart if
// both positions are equal. charts.js calls ZoomChart in a separate goroutine.
func (a *App) ZoomChart(chart string, from, to float64) {
	a.update(func() { a.zoom("zoom "+chart, state.Zoom{Chart: chart, From: from, To: to}) })
}

// zoom changes the zoom of a chart. The caller holds the lock.
func (a *App) zoom(control string, z state.Zoom) { a.adjust(control, a.Screen.Zoomed(z)) }

// unzoom shows a whole chart. The caller holds the lock.
func (a *App) unzoom(chart string) { a.zoom("unzoom "+chart, state.Zoom{Chart: chart}) }

// handsOver reports whether an object must be passed to the browser. This is the case unless the
// same object was passed last time with this id. This check avoids drawing many curves or cells
// again.
func (a *App) handsOver(id string, drawn any) bool {
	if a.handed == nil {
		a.handed = map[string]any{}
	}
	was := a.handed[id]
	a.handed[id] = drawn
	return was != drawn
}

// capacities returns the capacities that the view over time shows.
func (a *App) capacities() []int {
	if a.Screen.Log2Lines != nil {
		return a.Screen.Log2Lines
	}
	if list, _ := a.result.View.LevelLog2Lines(a.Levels()); len(list) > 0 {
		return list
	}
	return a.result.View.DefaultLog2Lines()
}

// demoOf recognises a demo by its counts and not by its name, because the numbers in a lesson are
// true only for the whole trace with 64-byte lines.
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

// Findings returns sentences about the run. The findings are recomputed when the view or the
// current hierarchy changes.
func (a *App) Findings() []state.Finding {
	r, h := a.result, a.Machine()
	if r.View != nil && (r.findings == nil || !state.SameMachine(r.foundFor, h)) {
		r.findings, r.foundFor = r.View.Findings(h), h
	}
	return r.findings
}

// grouping returns the grouping of the counters in view.
func (a *App) grouping() answers.CountersBy { return cmp.Or(a.Screen.By, answers.ByProgram) }

// sumUp recomputes the tables of counters if the profile, the grouping or the order has changed.
func (a *App) sumUp() {
	r := a.result
	if r.counters == nil || r.summed != a.grouping() || r.sorted != a.Screen.Sort {
		r.summed, r.sorted = a.grouping(), a.Screen.Sort
		r.counterKeys, r.counters = state.CounterTables(r.answers, r.summed, r.sorted)
		r.counters["definitions"] = state.CounterDefinitions(r.Profile)
	}
}

// export calls the given function with the table of a chart and a file name.
func (a *App) export(chart string, take func(t *state.Table, name string)) {
	if t := a.table(chart); t != nil && t.Exports() {
		take(t, FileName(a.result.Name)+"-"+chart)
	}
}

// SaveJSON downloads a chart's table as JSON.
func (a *App) SaveJSON(chart string) {
	a.export(chart, func(t *state.Table, name string) { a.Port.Save(name+".json", "application/json", t.JSON()) })
}

// SaveCSV downloads a chart's table as CSV.
func (a *App) SaveCSV(chart string) {
	a.export(chart, func(t *state.Table, name string) { a.Port.Save(name+".csv", "text/csv", t.CSV()) })
}

// CopyCSV copies a chart's table to the clipboard as CSV.
func (a *App) CopyCSV(chart string) {
	a.export(chart, func(t *state.Table, _ string) {
		text := string(t.CSV())
		go func() {
			err := a.Port.Copy(text)
			a.update(func() {
				if err != nil {
					a.Problem = "The browser did not allow the page to copy (" + err.Error() + "); use CSV instead."
					return
				}
				a.Port.Announce("Copied")
				a.Note = "Copied as CSV."
			})
		}()
	})
}

// SaveProfile downloads the profile in view.
func (a *App) SaveProfile() {
	r := a.result
	if r == nil || r.Profile == nil {
		return
	}
	a.Port.Save(FileName(r.Name)+".sgp", "application/octet-stream", r.Profile.Encode())
}

// Forms returns the export formats of the result in view.
func (a *App) Forms() (list []export.Form) {
	for _, f := range export.Forms() {
		if !f.Sites || a.result.Profile.Sites != nil {
			list = append(list, f)
		}
	}
	return list
}

// ExportAs downloads the result in view in the format of a different tool, or as a report, for the
// current hierarchy.
func (a *App) ExportAs(form string) {
	r := a.result
	if r == nil || r.View == nil {
		return
	}
	for _, f := range a.Forms() {
		if f.Name == form {
			request := export.Request{Form: form, Title: r.Name, Hierarchy: a.Machine(), Profile: r.Profile.Encode()}
			a.Note = "Creating the " + f.Title + " …"
			a.touch()
			go a.saveExport(f, FileName(r.Name)+f.Ending, &request)
		}
	}
}

// saveExport waits until a file is ready and downloads it.
func (a *App) saveExport(f export.Form, name string, request *export.Request) {
	content, err := fileOf(a.askOnce(workers.Subject{Profile: request.Profile}, request.Question()))
	a.update(func() {
		if a.Note = ""; err != nil {
			a.addProblem("The " + f.Title + " could not be created: " + err.Error() + ".")
			return
		}
		a.Port.Save(name, f.Media, content)
		a.Port.Announce(name + " is saved.")
	})
}
