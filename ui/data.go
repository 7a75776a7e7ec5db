package ui

import (
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/ui/state"
)

// dataState is the state of the Data view: the ranking, and the answer about the selected data
// structure.
type dataState struct {
	verbAnswer
	ranking *state.CodeView
	view    *state.DataView // the view of the last reply; nil: no reply yet
}

func newData(a *App) View {
	plot := newFigure(a, "map", helpMap)
	plot.Matrix = true
	return &Data{App: a, Map: plot, Members: newTable(a, "members"), Together: newTable(a, "together"), Heap: newTable(a, "heap")}
}

// Waits implements [View].
func (c *Data) Waits() string {
	why := c.App.missingAccesses()
	if why == "" && c.App.dataRanking() == nil {
		why = "The misses cannot be attributed: " + c.App.answer().Problem + "."
	}
	return why
}

// Repeat implements [repeater].
func (c *Data) Repeat() (words string, analyse func()) {
	p := c.App.result.Profile
	if p == nil || p.Sampled != nil || p.Data != nil || p.Sites == nil || p.Sites.Data == nil {
		return "", nil
	}
	return "Analyse again, including data structures", func() { c.App.RepeatWith(analysis.Data) }
}

// Draw implements [View].
func (c *Data) Draw() {
	a := c.App
	v, place := a.dataRanking(), a.pickedData()
	g := v.Grid(place)
	g.ID = "data"
	a.grid(g)
	a.askData()
	if d := a.data.view; d != nil {
		d.Shaded(a.Screen.Own(state.Shade))
		for _, m := range []*state.Matrix{d.Ruler(), d.Plot()} {
			if m != nil {
				a.drawMatrix(m)
			}
		}
	}
}

// Table implements [View].
func (c *Data) Table(name string) *state.Table {
	a := c.App
	switch {
	case name == "data":
		return a.dataRanking().Grid(-1).Table
	case a.data.view == nil:
		return nil
	}
	return a.data.view.DataTable(name)
}

// dataRanking returns the data structures of the result in view, ranked by misses, or nil.
func (a *App) dataRanking() *state.CodeView {
	base := a.codeView()
	if base == nil || len(a.result.Profile.Sites.Data) == 0 {
		return nil
	}
	sums := a.code.sums
	if sums[attribution.Object] == nil {
		sums[attribution.Object] = state.NewCode(a.result.answers.Run, a.inRange().Ranker(), attribution.Object, a.code.levels)
	}
	if v := a.data.ranking; v == nil || v.Code != sums[attribution.Object] || v.Sort != a.Screen.Sort {
		v = state.NewCodeView(sums[attribution.Object], a.Screen.Sort, "")
		v.Brief, v.Document = true, a.inRange().SitesDocument(attribution.Object, a.code.machine)
		a.data.ranking = v
	}
	return a.data.ranking
}

// pickedData returns the selected row of the ranking, or the first row if no row is selected.
func (a *App) pickedData() int {
	v := a.dataRanking()
	if place := v.Find(a.Screen.Data - 1); place >= 0 {
		return place
	}
	return v.At(0)
}

// pickData selects a row of the ranking.
func (a *App) pickData(row int) {
	v := a.dataRanking()
	if v == nil {
		return
	}
	if place := v.At(row); place >= 0 {
		s := a.Screen
		s.Data, s.Page, s.Table = v.ID(place)+1, 0, ""
		if d := a.data.view; d != nil && d.Plot() != nil {
			s = s.ZoomedInto(d.Plot(), state.Part{})
		}
		a.goTo(s, true)
		a.Port.Announce(v.Place(place) + ": " + v.Sentence(place))
	}
}

// ShadeBy selects the numbers that determine the shades of members and maps.
func (a *App) ShadeBy(column string) {
	a.adjust("data", a.Screen.WithOwn(state.Shade, column))
	a.Port.Announce(state.ShadeName(column))
}

// ZoomMap shows the given part of the map, or the whole map if the part is zero. matrix.js calls
// ZoomMap in a separate goroutine.
func (a *App) ZoomMap(part state.Part) {
	a.update(func() {
		if d := a.data.view; d != nil && d.Plot() != nil {
			a.adjust("zoom map", a.Screen.ZoomedInto(d.Plot(), part))
		}
	})
}

// askData asks for the members, the map and the memory blocks of the selected data structure. The
// caller holds the lock.
func (a *App) askData() {
	r, s := a.result, &a.data
	if r == nil || r.Live || r.Profile == nil || r.Profile.Data == nil {
		return
	}
	if s.of != r.Profile {
		s.view = nil
	}
	v := a.dataRanking()
	name := v.Named(a.pickedData())
	s.ask(a, r, state.DataQuestion(a.Machine(), "fields="+name, "map="+name, "heap=true"), func() {
		if s.view = nil; s.reply != nil {
			s.view = state.NewDataView(s.reply)
		}
		a.drawAgain(state.TabData)
	})
}

// busy reports whether an answer is expected.
func (c *Data) busy() string {
	if c.App.data.asker.busy() {
		return "true"
	}
	return "false"
}

func (c *Data) ranking() *state.CodeView { return c.App.dataRanking() }

func (c *Data) place() int { return c.App.pickedData() }

func (c *Data) view() *state.DataView { return c.App.data.view }

func (c *Data) has(table string) bool { return c.view() != nil && c.view().DataTable(table) != nil }

// drawn reports whether a matrix of the answer is drawn.
func (c *Data) drawn(id string) bool { return c.view() != nil && c.App.charts[id] != nil }

func (c *Data) chart(id string) *state.Chart {
	if chart := c.App.charts[id]; chart != nil {
		return chart
	}
	return &state.Chart{}
}

func (c *Data) advice() []state.DataAdvice {
	if c.view() == nil {
		return nil
	}
	return c.view().Advice()
}

// status explains why there is no answer; it returns "" if there is an answer.
func (c *Data) status() string {
	s := &c.App.data
	switch {
	case s.err != nil:
		return "There is no answer: " + s.err.Error() + ". Reload the page to try again."
	case s.reply == nil:
		return "Computing …"
	case s.reply.Problem != "":
		return s.reply.Problem + "."
	}
	return ""
}

func (c *Data) notes() []string {
	if c.view() == nil {
		return nil
	}
	return c.view().DataNotes()
}

func (c *Data) shades() []string {
	if c.view() == nil {
		return nil
	}
	return c.view().DataShades()
}

// declarationURL returns the URL, in the Code view, of the line that declares or allocates the data
// structure.
func (c *Data) declarationURL() string {
	s := c.App.Screen.With(state.TabCode)
	s.Place, s.Picked = attribution.Object, c.ranking().ID(c.place())+1
	return "#" + s.Hash()
}
