package ui

import (
	"slices"
	"strings"
	"time"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// loopState is the part of the state of the Loops view that is not in the URL: the answer of
// "stackglass loops" for the run in view.
type loopState struct {
	of     *profile.Profile
	asker  *asker       // nil before the first question
	asked  []string     // the last question
	loops  *state.Loops // the last answer, for any hierarchy; nil: no answer yet
	failed string       // why there is no answer, in a sentence

	soon bool // whether the Code view will soon ask for loops; see askForLoops

	tables map[string]*state.Table
	picked int // the loop to which the tables belong

	changes changeState
}

func newLoops(a *App) View {
	return &LoopsView{controls: controls{a}, Arrays: newTable(a, "arrays"), Misses: newTable(a, "loop-misses"), Evictions: newTable(a, "evictions"),
		Changes: &LoopChanges{App: a, Proposed: newTable(a, "proposed")}}
}

// Waits implements [View].
func (c *LoopsView) Waits() string {
	why := c.App.missingAccesses()
	switch {
	case why != "":
	case c.App.result.Live:
		return "The loops will be listed once the trace has been read."
	case c.App.loops() == nil:
		return c.App.nests.failed
	}
	return why
}

// Repeat implements [repeater].
func (c *LoopsView) Repeat() (words string, analyse func()) {
	if p := c.App.result.Profile; p == nil || p.Loops != nil {
		return "", nil
	}
	return "Analyse again, including loops", c.App.RepeatForLoops
}

// Draw passes the tree to the browser, and asks for the misses.
func (c *LoopsView) Draw() {
	a, s := c.App, &c.App.nests
	l := a.loops()
	a.askLoops()
	if s.tables = nil; l != nil {
		a.grid(l.Grid(c.picked(), a.Levels()))
	}
}

// Table implements [View].
func (c *LoopsView) Table(name string) *state.Table {
	if t := c.App.changeTable(name); t != nil {
		return t
	}
	l, picked, s := c.loops(), c.picked(), &c.App.nests
	if picked < 0 {
		return nil
	}
	if s.tables == nil || s.picked != picked {
		s.tables, s.picked = map[string]*state.Table{"loops": l.Grid(-1, nil).Table, "arrays": l.ArraysTable(picked)}, picked
		if c.counted() {
			s.tables["loop-misses"], s.tables["evictions"] = l.MissesTable(picked), l.EvictionsTable()
		}
	}
	return s.tables[name]
}

// loops returns the loops of the result in view; nil while there is no answer.
func (a *App) loops() *state.Loops {
	r := a.result
	if r == nil || r.Profile == nil {
		return nil
	}
	if s := &a.nests; s.of != r.Profile {
		s.asker.end()
		*s = loopState{of: r.Profile}
	}
	return a.nests.loops
}

// pickedLoop returns the number of the selected loop, or -1.
func (a *App) pickedLoop() int {
	l := a.loops()
	if l == nil {
		return -1
	}
	if row := l.Row(a.Screen.Loop); row >= 0 {
		return row
	}
	return l.Hottest()
}

// loopsCounted reports whether the loops' misses are known for the current hierarchy.
func (a *App) loopsCounted() bool {
	l := a.loops()
	return l != nil && l.Counted(a.Levels())
}

// evictionsCounted reports whether the loops' evictions are known for the current caches.
func (a *App) evictionsCounted() bool {
	l := a.loops()
	return l != nil && l.CountedIn(a.Levels())
}

// loopQuestion returns the next question that needs an answer: about the loops, about their misses,
// or about changes to a nest and their savings.
func (a *App) loopQuestion() (q answers.Question, wanted bool) {
	switch {
	case a.nests.loops == nil:
		return state.LoopsQuestion(nil, state.EachLoop), true
	case !a.loopsCounted():
		return state.LoopsQuestion(a.Levels(), state.EachLoop), true
	case a.Screen.Tab == state.TabCode:
		return q, false
	}
	return a.changeQuestion()
}

// askLoops asks the next question, and cancels other work. It does not repeat the last question.
// The caller holds the lock.
func (a *App) askLoops() {
	s := &a.nests
	if a.result == nil || a.result.Live || a.loops() == nil && s.failed != "" {
		return
	}
	q, wanted := a.loopQuestion()
	s.changes.busy = wanted && a.changes().active()
	if !wanted || slices.Equal(q.Words, s.asked) {
		return
	}
	if s.asked = q.Words; s.asker == nil {
		part := *s.of
		part.Blocks = nil // the field Blocks is large, and questions about loops do not need it
		s.asker = &asker{app: a, onReply: a.takeLoops, subject: a.subjectOf(a.result.Name, &part, nil)}
	}
	s.asker.ask(q, nil)
}

// takeLoops handles a reply about loops. The caller holds the lock.
func (a *App) takeLoops(reply *answers.Reply, err error) {
	s := &a.nests
	switch {
	case err != nil:
		s.asker.end()
		s.asker, s.asked = nil, nil
		s.failed = "The misses of the loops could not be counted: " + err.Error() + ". Reload the page to try again."
		s.changes.busy = false
		a.Port.Announce(s.failed)
		a.drawAgain(state.TabLoops)
		return
	case slices.ContainsFunc(s.asked, func(word string) bool { return strings.HasPrefix(word, "nest=") }):
		a.takeChange(reply)
	case reply.Problem != "":
		s.failed = "The misses of the loops could not be counted: " + reply.Problem + "."
		a.Port.Announce(s.failed)
	default:
		s.loops, s.failed = state.NewLoops(s.of, s.asked, reply), ""
	}
	a.drawAgain(state.TabLoops)
	a.drawAgain(state.TabCode)
	if a.Screen.Tab == state.TabLoops || a.lacksEvictions() {
		a.askLoops()
	}
}

// lacksEvictions reports whether the Code view needs evictions: the view is shown, and the
// evictions in the loops of the run are unknown but can be counted.
func (a *App) lacksEvictions() bool {
	r := a.result
	return a.Screen.Tab == state.TabCode && r != nil && !r.Live && r.Profile != nil && len(r.Profile.Loops) > 0 && !a.evictionsCounted() && a.nests.failed == ""
}

// evictionsAfter is the time after which the Code view asks for evictions. Because of this delay,
// no worker slows down the first display of the view, and nothing is counted for users who leave
// the view at once.
const evictionsAfter = 400 * time.Millisecond

// askForLoops asks for the loops of the run in view, and for their misses, if the Code view lacks them
// and is still shown after evictionsAfter. The caller holds the lock.
func (a *App) askForLoops() {
	s := &a.nests
	if !a.lacksEvictions() || s.soon {
		return
	}
	s.soon = true
	time.AfterFunc(evictionsAfter, func() {
		a.Env.Lock()
		if s.soon = false; a.lacksEvictions() {
			a.askLoops()
		}
		a.Env.UnlockOnly()
	})
}

// pickLoop selects the loop of a row of the tree. The caller holds the lock.
func (a *App) pickLoop(row int) {
	l := a.loops()
	if l == nil || a.comparing() || row < 0 || row >= l.Len() || l.ID(row) == 0 {
		return
	}
	s := a.Screen
	s.Loop = l.ID(row)
	a.goTo(s, true)
	a.Port.Announce("Loop " + l.Title(row) + ". " + l.Sentence(row))
}
