package ui

import (
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
)

// newThreads makes the view of caches of their own and shared ones.
func newThreads(a *App, figure func(id, help string) vugu.Builder) *Threads {
	table := func(id string) vugu.Builder { return &DataTable{App: a, Chart: id} }
	return &Threads{App: a, Cores: figure("cores", helpCores), Own: table("own"), Shared: table("shared"), Change: table("change")}
}

// threads is the view of threads of the result in view; nil where there is none.
func (a *App) threads() *state.Threads {
	if r := a.result; r != nil && r.View != nil {
		return r.View.Threads()
	}
	return nil
}

// groups are the cores that share a cache in the view of threads.
func (a *App) groups() state.Groups {
	return state.ParseGroups(a.Screen.Groups, len(a.threads().Cores))
}

// ownBytes is the size of each thread's own cache in question: the first level's
// unless another is chosen.
func (a *App) ownBytes() uint64 {
	return a.lineMultiple(a.Screen.OwnBytes, a.Levels()[0].SizeBytes)
}

// sharedBytes is the size of shared caches in question: the last level's unless
// another is chosen.
func (a *App) sharedBytes() uint64 {
	levels := a.Levels()
	return a.lineMultiple(a.Screen.SharedBytes, levels[len(levels)-1].SizeBytes)
}

// lineMultiple is the chosen size, or else the other, in whole lines.
func (a *App) lineMultiple(chosen, other uint64) uint64 {
	if chosen == 0 {
		chosen = other
	}
	line := a.result.View.LineBytes
	return max(chosen-chosen%line, line)
}

// drawThreads hands over the charts of the view of threads. The caller holds the
// lock.
func (a *App) drawThreads() {
	t := a.threads()
	if t == nil {
		return
	}
	own := a.ownBytes()
	a.draw(t.Overlaid(a.stack(), own))
	if a.smalls == t {
		return
	}
	a.smalls = t // which no question changes
	for core := range min(len(t.Cores), state.MostCores) {
		a.Port.Chart(t.Each(core))
	}
}

// stack is the one whose curves are shown for all threads.
func (a *App) stack() state.Stack {
	if a.Screen.Stack == "" {
		return state.PrivateStack
	}
	return a.Screen.Stack
}

// threadsTable gives a table of the view of threads, or nil.
func (a *App) threadsTable(chart string) *state.Table {
	t := a.threads()
	if t == nil {
		return nil
	}
	switch chart {
	case "cores":
		return t.CurvesTable()
	case "own":
		return t.OwnTable(a.ownBytes())
	case "shared":
		return t.SharedTable(a.groups(), a.sharedBytes())
	}
	return t.ChangeTable()
}

// ShowStack shows another stack's curves of all threads.
func (a *App) ShowStack(s state.Stack) {
	screen := a.Screen
	if screen.Stack = s; s == state.PrivateStack {
		screen.Stack = ""
	}
	a.goTo(screen, true)
	a.Port.Announce(a.charts["cores"].Summary)
}

// SetOwn asks about another size of each thread's own cache.
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

// SetShared asks about another size of the caches that threads share.
func (a *App) SetShared(bytes uint64) {
	s := a.Screen
	s.SharedBytes = bytes
	a.adjust("shared", s)
	a.sayShared()
}

// MoveCore has a core share a cache with others.
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
