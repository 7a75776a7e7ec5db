package ui

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/ui/state"
)

// callState is the part of the state of the Calls view that is not in the URL: the search, and the
// answer of "stackglass calls" for the run in view.
type callState struct {
	verbAnswer
	search string

	read *state.Calls   // the last answer
	from *answers.Reply // the reply from which the field "read" was decoded
}

func newCalls(a *App) View {
	return &CallsView{App: a, Caveats: &Caveats{ID: "calls-notes", List: func() []string { return a.callPaths().Notes() }}}
}

// Placed implements [placed].
func (c *CallsView) Placed() bool { return true }

// Waits implements [View].
func (c *CallsView) Waits() string {
	s := &c.App.calls
	switch {
	case c.App.missingAccesses() != "":
		return c.App.missingAccesses()
	case c.App.result.Live:
		return "The call paths will be shown once the trace has been read."
	case s.of == c.App.result.Profile && s.err != nil:
		return "The call paths could not be listed: " + s.err.Error() + ". Reload the page to try again."
	case c.App.callPaths() != nil && s.reply.Problem != "":
		return "The call paths could not be listed: " + s.reply.Problem + "."
	}
	return ""
}

// callPaths returns the call paths in view; nil while there is no answer.
func (a *App) callPaths() *state.Calls {
	r, s := a.result, &a.calls
	if r == nil || s.of != r.Profile || s.reply == nil {
		return nil
	}
	if s.from != s.reply {
		s.from, s.read = s.reply, state.NewCalls(r.Profile, s.reply)
	}
	return s.read
}

// direction returns the chosen direction of call paths, and the key of the function in view.
func (a *App) direction() (direction, function string) {
	paths, root := a.result.Profile.Calls.Paths, a.Screen.Root
	if a.Screen.Calls != state.CallsFunction {
		return a.Screen.Calls, ""
	}
	if root <= 0 || root >= len(paths) {
		return state.CallsDown, ""
	}
	return state.CallsFunction, state.CallKey(paths, root)
}

// Draw asks for the call paths, and passes the graphs and tables of the last answer to the browser.
func (c *CallsView) Draw() {
	a, r := c.App, c.App.result
	if r.Live || r.Profile.Calls == nil {
		return
	}
	h := a.Machine()
	direction, function := a.direction()
	a.calls.ask(a, r, state.CallsQuestion(h, direction, function, a.Screen.Weight, a.inRange().Range), func() {
		a.drawAgain(state.TabCalls)
		if calls := a.callPaths(); calls != nil {
			a.Port.Announce(calls.Summary(""))
		}
	})
	calls := a.callPaths()
	if calls == nil {
		return
	}
	zoomed, row := calls.Find(a.Screen.Frame)
	for _, t := range calls.Trees {
		at := -1
		if t == zoomed {
			at = row
		}
		a.Port.Flame(t.Flame(a.calls.search, at))
		a.grid(t.Grid(at))
	}
}

// Table implements [View].
func (c *CallsView) Table(name string) *state.Table {
	if calls := c.App.callPaths(); calls != nil && name == "calls" {
		return calls.Trees[len(calls.Trees)-1].Grid(-1).Table
	}
	return nil
}

// ZoomCalls zooms to a row of a tree, or shows the whole tree if row is negative. ZoomCalls must be
// called from a separate goroutine.
func (a *App) ZoomCalls(tree string, row int) {
	a.update(func() { a.zoomCalls(tree, row) })
}

// zoomCalls adds a history entry, so that Back undoes the zoom. The caller holds the lock.
func (a *App) zoomCalls(tree string, row int) {
	calls := a.callPaths()
	if calls == nil || a.comparing() {
		return
	}
	t := calls.Tree(tree)
	if t == nil || row >= len(t.Weights) {
		return
	}
	s := a.Screen
	s.Frame = t.Frame(row)
	a.goTo(s, s.Hash() == a.Screen.Hash())
	if row < 0 {
		a.Port.Announce("The whole tree. " + calls.Summary(""))
	} else {
		a.Port.Announce(t.Sentence(row))
	}
}

// ReadCalls shows call paths in the given direction. If the direction requires a function,
// ReadCalls uses the function in view, or else the function with the largest exclusive count.
func (a *App) ReadCalls(direction string) {
	root := 0
	if direction == state.CallsFunction {
		if root = a.functionInView(); root == 0 {
			return
		}
	}
	a.goTo(a.Screen.Called(direction, root), false)
}

// functionInView returns a path of the function that fills the graph, or else of the function with
// the largest exclusive count. functionInView returns 0 if there are no functions.
func (a *App) functionInView() int {
	calls := a.callPaths()
	if calls == nil || len(calls.Trees) == 0 {
		return 0
	}
	t, row := calls.Find(a.Screen.Frame)
	if t == nil {
		t = calls.Trees[0]
		row = t.Hottest()
	}
	if row < 0 {
		return 0
	}
	return t.Root(row)
}

// WeighCalls weights call paths by the given event.
func (a *App) WeighCalls(event string) {
	s := a.Screen
	s.Weight = event
	a.adjust("calls-weight", s)
}

// SearchCalls highlights the functions that contain the words.
func (a *App) SearchCalls(words string) {
	a.calls.search = words
	a.goTo(a.Screen, true)
	if calls := a.callPaths(); calls != nil {
		a.Port.Announce(calls.Summary(words))
	}
}

// crumb represents the row that fills the graph, or a row above this row.
type crumb struct {
	Name string
	Row  int // -1: the whole tree
}

// zoomedRow returns the tree and the row that fills the graph, or nil and -1.
func (c *CallsView) zoomedRow() (*state.CallTree, int) {
	if calls := c.App.callPaths(); calls != nil {
		return calls.Find(c.App.Screen.Frame)
	}
	return nil, -1
}

func (c *CallsView) crumbs() (list []crumb) {
	t, row := c.zoomedRow()
	if t == nil {
		return nil
	}
	list = append(list, crumb{"Whole run", -1})
	if len(c.calls().Trees) > 1 {
		list[0].Name = t.Title
	}
	for _, i := range t.Stack(row) {
		list = append(list, crumb{t.Names[i], i})
	}
	return list
}

// sourceURL returns the URL of the Code view with the function that fills the graph, or "" if the
// function makes no references.
func (c *CallsView) sourceURL() string {
	t, row := c.zoomedRow()
	if t == nil {
		return ""
	}
	site := t.Site(c.App.result.Profile, row)
	if site < 0 {
		return ""
	}
	s := c.App.Screen.With(state.TabCode).SummedIn(attribution.Function)
	s.Picked = site + 1
	return "#" + s.Hash()
}

// callersURL returns the URL of the callers and callees of the function that fills the graph, or "" if
// they are in view.
func (c *CallsView) callersURL() string {
	t, row := c.zoomedRow()
	if t == nil {
		return ""
	}
	root := t.Root(row)
	if direction, _ := c.App.direction(); root == 0 || direction == state.CallsFunction && root == c.App.Screen.Root {
		return ""
	}
	return "#" + c.App.Screen.Called(state.CallsFunction, root).Hash()
}
