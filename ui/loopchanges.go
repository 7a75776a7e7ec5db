package ui

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/ui/state"
)

// changeState contains the code changes that the user tries on a loop nest. Each change is a
// separate question.
type changeState struct {
	nest string // number of the nest

	kind, text string   // the contents of the form
	problem    string   // error in the form's contents, in a sentence
	tried      []string // arguments of "stackglass loops", for example pad=b=+8
	search     bool     // whether the user has started a search for changes
	busy       bool     // whether misses are being counted

	replies map[string]*answers.Reply // for the text of each question: the reply
	tables  map[*answers.Reply]*state.Table
}

// changes returns the state of the changes to the nest of the selected loop. The caller holds the
// lock.
func (a *App) changes() *changeState {
	s, picked := &a.nests.changes, a.pickedLoop()
	if s.kind == "" {
		s.kind = state.ChangeKinds()[0].Kind
	}
	if picked < 0 {
		return s
	}
	if nest := a.loops().Nest(picked); s.nest != nest || s.replies == nil {
		*s = changeState{nest: nest, kind: s.kind, replies: map[string]*answers.Reply{}, tables: map[*answers.Reply]*state.Table{}}
	}
	return s
}

// active reports whether the user is trying changes or searching for changes.
func (s *changeState) active() bool { return len(s.tried) > 0 || s.search }

// proposals is an argument of "stackglass loops" that limits the number of changes that a search
// lists.
const proposals = "propose=5"

// changeQuestions returns the questions about the changes.
func (a *App) changeQuestions() (list []answers.Question) {
	s := a.changes()
	args := s.tried
	if s.search {
		args = append(slices.Clone(args), proposals)
	}
	for _, arg := range args {
		list = append(list, state.LoopsQuestion(a.Levels(), "nest="+s.nest, arg))
	}
	return list
}

func keyOf(words []string) string { return strings.Join(words, "\n") }

// changeQuestion returns the next unanswered question about the changes.
func (a *App) changeQuestion() (q answers.Question, wanted bool) {
	for _, q := range a.changeQuestions() {
		if a.changes().replies[keyOf(q.Words)] == nil {
			return q, true
		}
	}
	return q, false
}

// TryChange tries the change that the user entered in the form.
func (a *App) TryChange() {
	s := a.changes()
	if a.changesRefused() != "" {
		return
	}
	s.problem = ""
	if arg := s.kind + "=" + s.text; !slices.Contains(s.tried, arg) {
		s.tried = append(s.tried, arg)
	}
	a.askLoops()
	a.touch()
}

// ProposeChanges starts a search for changes that save misses, or ends a running search.
func (a *App) ProposeChanges() {
	s := a.changes()
	if a.changesRefused() != "" {
		return
	}
	if s.busy && s.search {
		s.search = false
		a.stopLoops()
		a.Port.Announce("The search was stopped.")
	} else {
		s.search = true
	}
	a.askLoops()
	a.touch()
}

// stopLoops cancels the count in progress.
func (a *App) stopLoops() {
	a.nests.asker.end()
	a.nests.asker, a.nests.asked = nil, nil
}

// ForgetChanges discards all changes and their tables.
func (a *App) ForgetChanges() {
	s := a.changes()
	if s.busy {
		a.stopLoops()
	}
	*s = changeState{nest: s.nest, kind: s.kind}
	a.askLoops()
	a.touch()
	a.Port.Focus("change-kind")
}

// changesRefused returns the reason why changes to the nest cannot be tried; "" if they can.
func (a *App) changesRefused() string {
	l := a.loops()
	switch {
	case l == nil || l.Len() == 0:
		return "There is no loop to change."
	case l.Irregular(a.changes().nest):
		return "Nest " + a.changes().nest + " has irregular references, whose addresses do not follow the loops. After a change, these addresses are unknown."
	}
	return ""
}

// takeChange handles the reply about a change. If the change is impossible, takeChange puts the
// text of the change back into the form. The caller holds the lock.
func (a *App) takeChange(reply *answers.Reply) {
	s := a.changes()
	s.replies[keyOf(a.nests.asked)] = reply
	for i, q := range a.changeQuestions() {
		if i < len(s.tried) && reply.Problem != "" && slices.Equal(q.Words, a.nests.asked) {
			s.problem, s.tried = state.Sentence(reply.Problem), slices.Delete(s.tried, i, i+1)
			a.Port.Announce(s.problem)
			return
		}
	}
	if _, more := a.changeQuestion(); !more {
		a.Port.Announce("The misses with these changes have been counted.")
	}
}

// changeTable returns the table of the proposed changes ("proposed") or of a tried change
// ("tried-1" and so on), or nil.
func (a *App) changeTable(chart string) *state.Table {
	if a.loops() == nil {
		return nil
	}
	s := a.changes()
	for i, q := range a.changeQuestions() {
		name := "tried-" + strconv.Itoa(i+1)
		if i == len(s.tried) {
			name = "proposed"
		}
		if reply := s.replies[keyOf(q.Words)]; name == chart && reply != nil {
			if s.tables[reply] == nil {
				s.tables[reply] = state.AnsweredTable(reply, "changes")
			}
			if t := s.tables[reply]; t != nil && t.Rows > 0 {
				return t
			}
		}
	}
	return nil
}

// changeDoubts returns the warnings of the answers about the changes, or the reason why there is no
// answer.
func (a *App) changeDoubts() (list []string) {
	if a.loops() == nil {
		return nil
	}
	for _, q := range a.changeQuestions() {
		reply := a.changes().replies[keyOf(q.Words)]
		if reply == nil {
			continue
		}
		if reply.Problem != "" {
			list = append(list, state.Sentence(reply.Problem))
		}
		for _, note := range reply.Notes {
			if text := state.Sentence(note); !slices.Contains(a.loops().Notes(), text) && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}
