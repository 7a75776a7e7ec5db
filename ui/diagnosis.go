package ui

import (
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// mostProblems is how many findings a diagnosis shows.
const mostProblems = 5

// diagnosisState is what was said of the run in view.
type diagnosisState struct {
	of     *profile.Profile
	asker  *asker // nil: nothing was asked
	asked  []string
	reply  *answers.Reply // nil: not yet
	failed string         // why there is none, in a sentence
}

// askDiagnosis asks what is wrong with the run in view, unless that was asked last. The caller
// holds the lock.
func (a *App) askDiagnosis() {
	r, s := a.result, &a.diagnosis
	if r == nil || r.Live || r.Profile == nil {
		return
	}
	if s.of != r.Profile {
		s.asker.end()
		*s = diagnosisState{of: r.Profile}
	}
	if r.Profile.Sites == nil {
		s.failed = "Nothing says which place in the code makes a reference, so there is no diagnosis: record the program with stackglass cc or stackglass trace."
		return
	}
	q := state.DiagnosisQuestion(a.Machine(), a.Screen.Processor)
	if s.failed != "" || slices.Equal(q.Words, s.asked) {
		return
	}
	if s.asked = q.Words; s.asker == nil {
		s.asker = &asker{app: a, subject: subjectOf(r.Profile, nil), take: a.takeDiagnosis}
	}
	s.asker.ask(q, nil)
}

// takeDiagnosis takes an answer. The caller holds the lock.
func (a *App) takeDiagnosis(reply *answers.Reply, err error) {
	s := &a.diagnosis
	if err != nil {
		s.asker.end()
		s.asker = nil
		s.failed = "No diagnosis could be made: " + err.Error() + ". Reload the page to try once more."
		return
	}
	s.reply = reply
}
