package ui

import (
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
)

// changeState are changes to the code that are tried on a nest.
type changeState struct {
	trial   *answers.Trial
	nest    int
	refused string // why nothing can be tried on the nest, a sentence

	kind, text string // in the form
	problem    string // with what is in the form, a sentence
	tried      []change.Change
	search     bool // proposals are wanted

	levels   []hierarchy.Cache // that the tables are of
	now      *changeWork       // under way, or nil
	outcomes *state.Table      // of tried
	proposed *state.Table
	doubts   []string
}

// changeWork is told apart by its address.
type changeWork struct{ search bool }

// changes are those to the nest of the picked loop. The caller holds the lock.
func (a *App) changes() *changeState {
	l, picked := a.loops(), a.pickedLoop()
	if l == nil || picked < 0 {
		return nil
	}
	s := &a.nests.changes
	if nest := l.Outline.Loops[picked].Nest; s.nest != nest || s.trial == nil && s.refused == "" {
		*s = changeState{nest: nest, kind: s.kind}
		var err error
		if s.trial, err = l.NewTrial(nest); err != nil {
			s.refused = upperFirst(err.Error()) + "."
		}
		if s.kind == "" {
			s.kind = state.ChangeKinds()[0].Kind
		}
	}
	return s
}

// recount has what was tried counted for other caches. The caller holds the lock.
func (s *changeState) recount(a *App) {
	if s.trial == nil || slices.Equal(s.levels, a.Levels()) || len(s.tried) == 0 && !s.search {
		return
	}
	s.count(a)
}

// TryChange tries what is in the form.
func (a *App) TryChange() {
	s := a.changes()
	if s == nil || s.trial == nil {
		return
	}
	a.touch()
	c, err := s.trial.Read(s.kind, s.text)
	if err == nil {
		err = c.Apply(s.trial.Nest.Clone())
	}
	if err != nil {
		s.problem = upperFirst(err.Error()) + "."
		a.Port.Announce(s.problem)
		return
	}
	s.problem = ""
	s.tried = append(s.tried, c)
	s.count(a)
}

// ProposeChanges searches for changes that save misses, or ends that.
func (a *App) ProposeChanges() {
	s := a.changes()
	if s == nil || s.trial == nil {
		return
	}
	a.touch()
	if s.now != nil && s.now.search {
		s.now, s.search = nil, false
		a.Port.Announce("The search was ended.")
		return
	}
	s.search = true
	s.count(a)
}

// ForgetChanges empties the tables.
func (a *App) ForgetChanges() {
	if s := a.changes(); s != nil {
		s.tried, s.search, s.now = nil, false, nil
		s.outcomes, s.proposed, s.doubts = nil, nil, nil
		a.touch()
		a.Port.Focus("change-kind")
	}
}

// count counts the misses of all that was tried, and searches if that is wanted. Others
// have their turn meanwhile. The caller holds the lock.
func (s *changeState) count(a *App) {
	mine := &changeWork{search: s.search}
	s.now = mine
	tried, trial, levels := slices.Clone(s.tried), s.trial, slices.Clone(a.Levels())
	goOn := func() bool {
		a.Port.Breathe()
		a.Env.Lock()
		defer a.Env.UnlockOnly()
		return a.nests.changes.now == mine
	}
	go func() {
		var outcomes, proposed *state.Table
		var doubts []string
		var all report.Table
		for _, c := range tried {
			t, notes, err := trial.Try(levels, goOn, c)
			if err != nil {
				notes = []string{err.Error()}
			}
			doubts = notes
			t.Rows = append(all.Rows, t.Rows...)
			all = t
		}
		if len(tried) > 0 {
			outcomes = state.ChangesTable(all)
		}
		if mine.search {
			found, _, err := trial.Propose(levels[0], mostProposals, goOn)
			switch {
			case err != nil:
				doubts = append(doubts, err.Error())
			case len(found.Rows) == 0:
				doubts = append(doubts, "None of the changes that were tried saves a fiftieth of the misses of "+levels[0].Name)
			default:
				proposed = state.ChangesTable(found)
			}
		}
		a.update(func() {
			s := &a.nests.changes
			if s.now != mine {
				return
			}
			s.now = nil
			s.levels, s.outcomes, s.proposed, s.doubts = levels, outcomes, proposed, doubts
			if a.Screen.Tab == state.TabLoops {
				a.Port.Announce("The changes are counted.")
			}
		})
	}()
}

// mostProposals is how many changes are proposed.
const mostProposals = 5

// changeTable gives a table of changes, or nil.
func (a *App) changeTable(chart string) *state.Table {
	s := a.changes()
	if s == nil {
		return nil
	}
	if chart == "tried" {
		return s.outcomes
	}
	return s.proposed
}
