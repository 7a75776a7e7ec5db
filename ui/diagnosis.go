package ui

import (
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
)

// mostProblems is the maximum number of findings that a diagnosis shows.
const mostProblems = 5

// diagnosisState contains the diagnosis of the run in view.
type diagnosisState struct {
	verbAnswer
	// These fields are decoded from the reply.
	verdict string
	advice  []state.Advice
}

func newDiagnosis(a *App) View {
	c := &Diagnosis{App: a, Facts: &Facts{App: a, Curve: newFigure(a, "curve", helpCurve), Kinds: newTable(a, "kinds")}, Lesson: &Lesson{App: a}}
	c.Caveats = &Caveats{ID: "diagnosis-notes", List: c.notes, Words: state.Assumptions}
	return c
}

// Waits implements [View].
func (c *Diagnosis) Waits() string { return c.App.missingAccesses() }

// Placed implements [placed].
func (c *Diagnosis) Placed() bool { return true }

// Processors implements [timed].
func (c *Diagnosis) Processors() (list *report.Table, depends bool) {
	return c.App.diagnosis.processors(), true
}

// Draw implements [View].
func (c *Diagnosis) Draw() {
	c.App.askDiagnosis()
	if c.live() || c.unfolded() {
		c.App.draw(c.App.result.View.MissCurve(nil))
	}
}

// Table implements [View].
func (c *Diagnosis) Table(name string) *state.Table {
	switch name {
	case "curve":
		return c.App.result.View.CurveTable()
	case "kinds":
		return c.App.result.View.KindsTable()
	}
	return c.App.diagnosis.table(name)
}

// live reports whether the trace is still being read. Until the trace has been read, there is no
// diagnosis.
func (c *Diagnosis) live() bool { return c.App.result == nil || c.App.result.Live }

func (c *Diagnosis) busy() string {
	if c.App.diagnosis.asker.busy() {
		return "true"
	}
	return "false"
}

func (c *Diagnosis) verdict() string {
	s := &c.App.diagnosis
	switch {
	case s.err != nil:
		return "No diagnosis could be made: " + s.err.Error() + ". Reload the page to try again."
	case s.reply == nil && s.stopped:
		return "The search was stopped before the first result."
	case s.reply == nil || c.partial() && !s.stopped && len(s.advice) == 0:
		return "Searching for the largest costs, and trying changes to the code …"
	case s.reply.Problem != "":
		return s.reply.Problem + "."
	}
	return s.verdict
}

// partial reports whether the reply is only a part of the diagnosis. This is the case if the search
// continues or was stopped.
func (c *Diagnosis) partial() bool {
	_, partial := state.Tried(c.App.diagnosis.reply)
	return partial
}

// progress describes the progress of the search, or returns "" if the search is complete.
func (c *Diagnosis) progress() string {
	s := &c.App.diagnosis
	tried, _ := state.Tried(s.reply)
	switch {
	case s.stopped:
		return "The search was stopped after " + state.Plural(tried, "change", "changes") + ", so not all changes were tried."
	case s.asker.busy():
		return state.Plural(tried, "change", "changes") + " tried so far."
	}
	return ""
}

// stopWord returns the label of the button that stops the search or starts it again.
func (c *Diagnosis) stopWord() string {
	if c.App.diagnosis.stopped {
		return "search again"
	}
	return "stop"
}

// stopOrSearch stops the search, or starts it again.
func (c *Diagnosis) stopOrSearch() {
	if s := &c.App.diagnosis; s.stopped {
		s.forgetQuestion()
		c.App.askDiagnosis()
	} else {
		s.stop()
		c.App.Port.Announce(c.progress())
	}
	c.App.touch()
}

// advice returns the top findings.
func (c *Diagnosis) advice() []state.Advice { return c.App.diagnosis.advice }

// notes returns the assumptions and the warnings of the diagnosis.
func (c *Diagnosis) notes() []string {
	if r := c.App.diagnosis.reply; r != nil {
		return r.Notes
	}
	return nil
}

// lacksLoops reports whether the profile in view has no loops although an analysis could find
// loops.
func (c *Diagnosis) lacksLoops() bool {
	r := c.App.result
	return r != nil && r.Profile != nil && r.Profile.Sites != nil && r.Profile.Loops == nil && c.App.diagnosis.reply != nil && c.App.CanRepeat()
}

// unfolded reports whether the facts of a complete run are shown. The facts are shown if the user
// opened them, or if a link leads to one of their tables.
func (c *Diagnosis) unfolded() bool { return c.App.Screen.Facts || c.App.Screen.Table != "" }

func (c *Diagnosis) expanded() string {
	if c.unfolded() {
		return "true"
	}
	return "false"
}

func (c *Diagnosis) toggle() {
	s := c.App.Screen.Toggle("")
	s.Facts = !c.unfolded()
	c.App.goTo(s, true)
}

// hrefOf returns the URL of a view of the result.
func (a *App) hrefOf(t state.Tab) string { return "#" + a.Screen.With(t).Hash() }

// hrefOfLine returns the URL of a source line in the Code view, or of the Caches view if file is
// "".
func (a *App) hrefOfLine(file string, line uint32) string {
	if file == "" {
		return a.hrefOf(state.TabCaches)
	}
	s := a.Screen.SummedIn(attribution.Line).With(state.TabCode)
	if v := a.codeView(); v != nil && v.By == attribution.Line {
		if place := v.LinePlace(file, line); place >= 0 {
			s.Picked = v.ID(place) + 1
		}
	}
	return "#" + s.Hash()
}

// hrefOfPlace returns the URL of a source line in the Code view. The parameter id is the ID of the
// line's row in the ranking.
func (a *App) hrefOfPlace(id int) string {
	s := a.Screen.SummedIn(attribution.Line).With(state.TabCode)
	s.Picked = id + 1
	return "#" + s.Hash()
}

// sourceLine returns the text of a source line, or "" if the file is not available.
func (a *App) sourceLine(file string, line uint32) string {
	list := a.sourcesOf(file)
	if file == "" || len(list) != 1 || line < 1 || int(line) > len(list[0].Lines) {
		return ""
	}
	return strings.TrimSpace(list[0].Lines[line-1])
}

// askDiagnosis asks for the diagnosis of the run in view. It does not repeat the last question. The
// caller holds the lock.
func (a *App) askDiagnosis() {
	r, s := a.result, &a.diagnosis
	if r == nil || r.Live || r.Profile == nil {
		return
	}
	if !a.comparing() {
		a.diagnoses.other.asker.end() // otherwise, the program would not release its memory
		a.diagnoses = diagnosesState{}
	}
	if s.of != r.Profile {
		s.verdict, s.advice = "", nil
		a.fetchDemoSource()
	}
	s.ask(a, r, a.diagnosisQuestion(), func() {
		if s.reply != nil {
			s.verdict, s.advice = state.Diagnosis(s.reply, mostProblems)
			a.drawAgain(state.TabCode)
		}
	})
}

func (a *App) diagnosisQuestion() answers.Question {
	var args []string
	if a.Screen.Processor != "" {
		args = []string{"processor=" + a.Screen.Processor}
	}
	return state.VerbQuestion("diagnose", a.Machine(), args...)
}

// diagnosesState contains the comparison of the problems of A and B.
type diagnosesState struct {
	other    verbAnswer // the diagnosis of B
	of       [2]*answers.Reply
	headline string
	problems *state.Table // the compared problems; nil: no problems
}

// askDiagnoses asks for the diagnoses of both compared runs. The caller holds the lock.
func (a *App) askDiagnoses() {
	if a.diagnosis.stopped {
		a.diagnosis.forgetQuestion()
	}
	a.askDiagnosis()
	a.diagnoses.other.ask(a, a.other, a.diagnosisQuestion(), func() {})
}

// compareDiagnoses joins both diagnoses only once, as soon as both are complete. Until then, it
// keeps the previous comparison or, if there is none, reports that the diagnoses are incomplete.
// The caller holds the lock.
func (a *App) compareDiagnoses() *diagnosesState {
	s, c := &a.diagnoses, a.comparison()
	if c == nil {
		return s
	}
	of := [2]*answers.Reply{a.diagnosis.reply, s.other.reply}
	without := func(headline string) *diagnosesState {
		s.of, s.headline, s.problems = [2]*answers.Reply{}, headline, nil
		return s
	}
	for side, x := range [2]*verbAnswer{&a.diagnosis.verbAnswer, &s.other} {
		switch {
		case x.err != nil:
			return without("No diagnosis could be made: " + x.err.Error() + ". Reload the page to try again.")
		case x.reply == nil:
			return without("Searching for the largest differences …")
		case x.reply.Problem != "":
			return without(state.SideName(side) + ": " + x.reply.Problem + ".")
		}
	}
	busy := a.diagnosis.asker.busy() || s.other.asker.busy() // one of the two replies may still be about the previous hierarchy
	if s.of != of && !busy {
		s.of = of
		s.headline, s.problems = c.Diagnoses(of, a.Machine(), a.Screen.Processor)
	} else if s.headline == "" {
		s.headline = "Searching for the largest differences …"
	}
	return s
}
