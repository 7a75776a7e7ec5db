package ui

import (
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// threadsView shows how the threads of a run share caches or, for a run with one thread,
// predictions for several cores.
type threadsView struct {
	App       *App
	measured  *Threads
	predicted *CoresView
}

func newThreads(a *App) View {
	return &threadsView{App: a,
		measured: &Threads{App: a, Cores: newFigure(a, "cores", helpCores), Own: newTable(a, "own"), Shared: newTable(a, "shared"), Change: newTable(a, "change"),
			Caveats: &Caveats{ID: "threads-notes", List: func() []string { return a.threads().Doubts() }}},
		predicted: newCores(a)}
}

func newCores(a *App) *CoresView {
	c := &CoresView{App: a, Rates: newFigure(a, "rates", helpRates), SpeedUp: newFigure(a, "speedup", helpSpeedUp), RatesOf: newTable(a, "rates-of"),
		Work: newTable(a, "work"), CoresOf: newTable(a, "cores-of")}
	c.Caveats = &Caveats{ID: "cores-notes", List: c.notes}
	return c
}

// predicts reports whether the view shows predictions for several cores. The view shows these
// predictions if the run had one thread and can be predicted.
func (c *threadsView) predicts() bool { return c.App.threads() == nil && c.App.predictable() }

// Build implements [View].
func (c *threadsView) Build(in *vugu.BuildIn) *vugu.BuildOut {
	if c.predicts() {
		return c.predicted.Build(in)
	}
	return c.measured.Build(in)
}

// Waits implements [View].
func (c *threadsView) Waits() string {
	why := c.App.missingAccesses()
	if why == "" && c.App.threads() == nil && !c.App.predictable() {
		why = "Sharing between the threads will be shown once the trace has been read."
	}
	return why
}

// Processors implements [timed]. If the work is divided by block executions instead of iterations,
// run times are unknown, and there are no processors to choose from.
func (c *threadsView) Processors() (list *report.Table, depends bool) {
	if k := c.App.predicted(); k != nil {
		list = k.Table("processors")
	}
	return list, c.predicts() && c.App.Screen.Division == ""
}

// Draw implements [View].
func (c *threadsView) Draw() {
	if c.predicts() {
		c.App.drawCores()
	} else {
		c.measured.draw()
	}
}

// Table implements [View].
func (c *threadsView) Table(name string) *state.Table {
	if c.predicts() {
		return c.App.coresTable(name)
	}
	return c.measured.table(name)
}

func (c *Threads) draw() {
	a, t, own := c.App, c.threads(), c.App.ownBytes()
	a.draw(t.Overlaid(a.stack(), own))
	if a.smalls != t {
		a.smalls, a.each = t, nil // these charts do not depend on settings
		for core := range min(len(t.Cores), state.MostCores) {
			a.each = append(a.each, t.Each(core))
		}
	}
	for _, c := range a.each {
		a.draw(c)
	}
}

func (c *Threads) table(name string) *state.Table {
	switch name {
	case "cores":
		return c.threads().CurvesTable()
	case "own":
		return c.threads().OwnTable(c.App.ownBytes())
	case "shared":
		return c.threads().SharedTable(c.App.groups(), c.App.sharedBytes())
	case "change":
		return c.threads().ChangeTable()
	}
	return nil
}

// threads returns the per-thread data of the result in view, or nil.
func (a *App) threads() *state.Threads {
	if r := a.result; r != nil && r.View != nil {
		return r.View.Threads()
	}
	return nil
}

// groups returns the groups of cores that share a cache, as the user has chosen them.
func (a *App) groups() state.Groups {
	return state.ParseGroups(a.Screen.Groups, len(a.threads().Cores))
}

// ownBytes returns the chosen size of each thread's private cache, by default the size of the first
// level.
func (a *App) ownBytes() uint64 {
	return a.lineMultiple(a.Screen.OwnBytes, a.Levels()[0].SizeBytes)
}

// sharedBytes returns the chosen size of shared caches, by default the size of the last level.
func (a *App) sharedBytes() uint64 {
	levels := a.Levels()
	return a.lineMultiple(a.Screen.SharedBytes, levels[len(levels)-1].SizeBytes)
}

// lineMultiple rounds the chosen number of bytes down to whole lines, but not below one line. If
// the chosen number is 0, lineMultiple rounds the parameter "other" instead.
func (a *App) lineMultiple(chosen, other uint64) uint64 {
	if chosen == 0 {
		chosen = other
	}
	line := a.result.View.LineBytes
	return max(chosen-chosen%line, line)
}

// stack returns the stack whose curves are shown for all threads.
func (a *App) stack() state.Stack {
	if a.Screen.Stack == "" {
		return state.PrivateStack
	}
	return a.Screen.Stack
}

// ShowStack shows the curves of all threads for the given kind of stack.
func (a *App) ShowStack(s state.Stack) {
	screen := a.Screen
	if screen.Stack = s; s == state.PrivateStack {
		screen.Stack = ""
	}
	a.goTo(screen, true)
	a.Port.Announce(a.charts["cores"].Summary)
}

// SetOwn sets the size of each thread's private cache.
func (a *App) SetOwn(bytes uint64) {
	s := a.Screen
	s.OwnBytes = bytes
	a.adjust("own", s)
	if c := a.comparison(); c != nil {
		a.Port.Announce(c.OwnSentence(a.ownBytes()))
	} else if c := a.communication(); a.Screen.Tab == state.TabCommunication && c != nil {
		a.Port.Announce(c.SourceSentence(a.ownBytes()))
	} else if t := a.threads(); t != nil {
		a.Port.Announce(t.OwnSentence(a.ownBytes()))
	}
}

// SetShared sets the size of the caches that threads share.
func (a *App) SetShared(bytes uint64) {
	s := a.Screen
	s.SharedBytes = bytes
	a.adjust("shared", s)
	a.sayShared()
}

// MoveCore moves a core to a group of cores that share a cache.
func (a *App) MoveCore(core, group int) {
	s := a.Screen
	s.Groups = a.groups().Move(core, group).String()
	a.adjust("groups", s)
	a.sayShared()
}

func (a *App) sayShared() {
	if c := a.comparison(); c != nil {
		a.Port.Announce(c.SharedSentence(a.sharedBytes()))
		return
	}
	a.Port.Announce(a.threads().SharedSentence(a.groups(), a.sharedBytes()))
}
