package ui

import (
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/ui/state"
)

// changeState are changes to the code that are tried on a nest.
type changeState struct {
	nest    int
	refused string // why nothing can be tried on the nest, a sentence

	kind, text string // in the form
	problem    string // with what is in the form, a sentence
	tried      []answers.NestChange
	search     bool // proposals are wanted
	busy       bool // being counted

	outcomes *state.Table // of tried
	proposed *state.Table
	doubts   []string
}

// changes are those to the nest of the picked loop. The caller holds the lock.
func (a *App) changes() *changeState {
	l, picked := a.loops(), a.pickedLoop()
	if l == nil || picked < 0 {
		return nil
	}
	s := &a.nests.changes
	if s.kind == "" {
		s.kind = state.ChangeKinds()[0].Kind
	}
	if nest := l.Outline.Loops[picked].Nest; s.nest != nest {
		*s = changeState{nest: nest, kind: s.kind}
	}
	return s
}

// TryChange tries what is in the form.
func (a *App) TryChange() {
	s := a.changes()
	if s == nil || s.refused != "" {
		return
	}
	s.problem = ""
	s.tried = append(s.tried, answers.NestChange{Kind: s.kind, Text: s.text})
	a.recount()
}

// recount has asked what is wanted now.
func (a *App) recount() {
	a.nests.changes.busy = a.nests.failed == ""
	a.askLoops()
	a.touch()
}

// ProposeChanges searches for changes that save misses, or ends that.
func (a *App) ProposeChanges() {
	s := a.changes()
	if s == nil || s.refused != "" {
		return
	}
	if s.busy && s.search {
		s.search = false
		a.Port.Announce("The search was ended.")
	} else {
		s.search = true
	}
	a.recount()
}

// ForgetChanges empties the tables.
func (a *App) ForgetChanges() {
	if s := a.changes(); s != nil {
		*s = changeState{nest: s.nest, kind: s.kind, refused: s.refused}
		a.askLoops()
		a.touch()
		a.Port.Focus("change-kind")
	}
}

// takeChanges takes what came of the changes. One that cannot be made goes back to the
// form. The caller holds the lock.
func (a *App) takeChanges(reply *answers.Reply) {
	s := a.changes()
	if s == nil {
		return
	}
	asked := len(s.tried) > 0 || s.search
	s.refused, s.busy, s.doubts = reply.Problem, false, reply.Notes
	s.outcomes, s.proposed = state.ChangesTable(reply.Table("tried")), state.ChangesTable(reply.Table("proposed"))
	for i, wrong := range slices.Backward(state.WrongChanges(reply)) {
		if wrong != "" && i < len(s.tried) {
			s.problem, s.tried = wrong, slices.Delete(s.tried, i, i+1)
			a.nests.asked.Changes = slices.Clone(s.tried)
		}
	}
	switch {
	case s.problem != "":
		a.Port.Announce(s.problem)
	case asked:
		a.Port.Announce("The changes are counted.")
	}
}

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
