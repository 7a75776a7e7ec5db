package ui

import (
	"errors"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// coreState contains the predictions for several cores.
type coreState struct {
	of    *profile.Profile
	asker *asker // nil before the first question
	// the last question; while the asker is busy, answers for some numbers of cores are missing
	asked answers.MulticoreQuestion
	known *state.Cores // the answers so far to the question in the field "asked", for each number of cores
	begun bool         // whether the user has confirmed a long prediction
	keep  int          // the number of cores for which to keep the predicted threads; 0: none
	// the predicted threads, to compare with measured threads; nil: not known yet
	beside *state.View
	failed string // why there are no predictions, in a sentence
	tables map[string]*state.Table
}

// mostReread is the maximum number of references that the page reads again without asking the user.
const mostReread = 5_000_000

// usualCores is the default number of cores.
const usualCores = 4

// predictable reports whether several cores can be predicted from the result in view.
func (a *App) predictable() bool {
	r := a.result
	return r != nil && r.Profile != nil && !r.Live && state.Predictable(r.Profile)
}

// measuredThreads returns the measured threads of the other analysis. It returns nil if these
// threads cannot be compared with the prediction from this analysis.
func (a *App) measuredThreads() *state.Threads {
	if c := a.comparison(); c != nil && a.predictable() {
		return c.B.Threads()
	}
	return nil
}

// coresAsked returns the chosen number of cores, or the number of measured threads.
func (a *App) coresAsked() int {
	if t := a.measuredThreads(); t != nil {
		return min(len(t.Cores), state.MostPredicted)
	}
	if n := a.Screen.Cores; n > 0 {
		return n
	}
	return usualCores
}

// predicted returns the answers so far; nil if there are no answers.
func (a *App) predicted() *state.Cores {
	if s := &a.cores; s.of != nil && a.result != nil && s.of == a.result.Profile && s.known != nil && s.known.Some() {
		return s.known
	}
	return nil
}

// coresQuestion returns the question about every number of cores in view.
func (a *App) coresQuestion() answers.MulticoreQuestion {
	q := a.Screen.CoresQuestion(a.Machine())
	q.Name, q.Format = a.result.Name, a.Port.Settings().Format
	return q
}

// equalExceptCores reports whether two questions are equal except for the numbers of cores.
func equalExceptCores(x, y answers.MulticoreQuestion) bool {
	x.Cores, x.Keep, y.Cores, y.Keep = nil, 0, nil, 0
	return slices.Equal(x.Question().Words, y.Question().Words)
}

// drawCores draws the charts, and asks for missing predictions. The caller holds the lock.
func (a *App) drawCores() {
	if !a.predictable() {
		return
	}
	s := &a.cores
	if s.of != a.result.Profile {
		a.endCores()
		s.of = a.result.Profile
	}
	a.askCores()
	s.tables = nil
	if k := a.predicted(); k != nil && !a.comparing() {
		n := a.coresAsked()
		a.draw(k.RatesChart(n))
		if c := k.SpeedUpChart(n); c != nil {
			a.draw(c)
		}
	}
}

// endCores ends the program that computes the predictions. The caller holds the lock.
func (a *App) endCores() {
	a.cores.asker.end()
	a.cores = coreState{}
}

// canPredict reports whether the trace, which predictions read again, is available.
func (a *App) canPredict() bool {
	_, known := a.items[a.result.Key]
	return known
}

// mustConfirm reports whether the page must ask the user before it reads the long trace again.
func (a *App) mustConfirm() bool {
	return !a.cores.begun && a.result.Profile.Totals.AllReferences() > mostReread && a.predicted() == nil
}

// askCores asks for the missing predictions, starting with the chosen number of cores. askCores
// cancels predictions for other questions. The caller holds the lock.
func (a *App) askCores() {
	s := &a.cores
	if s.failed != "" || !a.canPredict() || a.mustConfirm() {
		return
	}
	q, chosen := a.coresQuestion(), a.coresAsked()
	running := s.asker.busy()
	if s.asker == nil || !equalExceptCores(q, s.asked) {
		s.known, s.beside, running = new(state.Cores), nil, false
	}
	keep := s.keep
	if a.comparing() && s.beside == nil {
		keep = chosen
	}
	if running && (s.known.Known(chosen) || s.asked.Cores[0] == uint32(chosen)) && keep == int(s.asked.Keep) {
		return // the question has already been asked or answered
	}
	if !s.known.Known(chosen) || keep != 0 {
		q.Cores, q.Keep = append(q.Cores, uint32(chosen)), uint32(keep)
	}
	for _, n := range state.PredictedCores() {
		if n != chosen && !a.comparing() && !s.known.Known(n) {
			q.Cores = append(q.Cores, uint32(n))
		}
	}
	if len(q.Cores) == 0 {
		return
	}
	s.known.Ask(q)
	if s.asked = q; s.asker == nil {
		s.asker = &asker{app: a, subject: a.subjectOf("", nil, nil), onReply: a.takeCores}
	}
	s.asker.ask(q.Question(), a.items[a.result.Key].File.Ref)
}

// coresFailed shows why there are no predictions. The caller holds the lock.
func (a *App) coresFailed(err error) {
	s := &a.cores
	s.asker.end()
	s.asker = nil
	s.failed = "Nothing can be predicted: " + err.Error() + "."
	a.Port.Announce(s.failed)
}

// takeCores handles a reply with predictions. The caller holds the lock.
func (a *App) takeCores(reply *answers.Reply, err error) {
	s := &a.cores
	if err != nil {
		a.coresFailed(err)
		return
	}
	if n := s.asked.Keep; n > 0 && reply.Bytes != nil {
		name := a.result.Name + ", predicted for " + strconv.Itoa(int(n)) + " cores"
		s.asked.Keep = 0
		if s.keep > 0 {
			s.keep = 0
			go a.importData(name+".sgp", reply.Bytes, state.TabThreads)
		} else if p, err := profile.Decode(reply.Bytes); err == nil {
			if s.beside = state.NewView(p, a.Screen.LineBytes); s.beside == nil {
				a.coresFailed(errors.New("the profile of the predicted threads contains no stack distances"))
				return
			}
			s.beside.Answers = state.NewAnswers(name, p)
		}
	}
	before := s.known.Known(a.coresAsked())
	s.known.Take(reply)
	if reply.Problem != "" {
		a.coresFailed(errors.New(reply.Problem))
	} else if !before && s.known.Known(a.coresAsked()) {
		a.Port.Announce(s.known.RatesSentence(a.coresAsked()))
	}
	a.drawAgain(state.TabThreads)
}

// predictedAndMeasured compares the predicted threads with the measured threads, or returns nil until both
// are known.
func (a *App) predictedAndMeasured() *state.Table {
	if a.cores.beside == nil || a.predicted() == nil || a.measuredThreads() == nil {
		return nil
	}
	c := state.Comparison{A: a.cores.beside, B: a.other.View}
	t := c.Levels(a.Machine())
	t.Caption = "Levels: A predicted, B measured"
	return t
}

// coresTable returns the table that belongs to the given chart of the prediction, or nil.
func (a *App) coresTable(chart string) *state.Table {
	k := a.predicted()
	if k == nil {
		return nil
	}
	s, n := &a.cores, a.coresAsked()
	if s.tables == nil {
		s.tables = map[string]*state.Table{}
	}
	if t, known := s.tables[chart]; known {
		return t
	}
	with := " with " + state.Plural(uint64(n), "core", "cores")
	var t *state.Table
	switch chart {
	case "rates":
		t = k.PredictedTable("rates", 0, "Hit ratios by level and number of cores")
	case "rates-of":
		t = k.PredictedTable("rates", n, "Caches"+with)
	case "cores-of":
		t = k.PredictedTable("cores", n, "Core by core"+with)
	case "work":
		t = k.PredictedTable("work", n, "Work"+with)
	case "speedup":
		t = k.PredictedTable("speedup", 0, "Time and losses by number of cores")
	}
	s.tables[chart] = t
	return t
}

// PredictCores starts the predictions after the user has agreed to have a long trace read again.
func (a *App) PredictCores() {
	a.cores.begun, a.cores.failed = true, ""
	a.drawCores()
	a.touch()
}

// SetCores chooses the number of cores to predict.
func (a *App) SetCores(n int) {
	s := a.Screen
	s.Cores = min(max(n, 1), state.MostPredicted)
	a.adjust("cores", s)
	if k := a.predicted(); k != nil && k.Known(s.Cores) {
		a.Port.Announce(k.RatesSentence(s.Cores))
	}
}

// SetDivision chooses how work is divided. Here and in the methods below, "" selects the default.
func (a *App) SetDivision(name string) { a.predictBy(func(s *state.Screen) { s.Division = name }) }

// SetSchedule sets the loop schedule, in OpenMP's notation.
func (a *App) SetSchedule(text string) { a.predictBy(func(s *state.Screen) { s.Schedule = text }) }

// SetInterleave sets how the references of the cores are interleaved.
func (a *App) SetInterleave(name string) { a.predictBy(func(s *state.Screen) { s.Interleave = name }) }

// SetModel sets the input of SDCM.
func (a *App) SetModel(name string) { a.predictBy(func(s *state.Screen) { s.Model = name }) }

// predictBy changes a setting and predicts again.
func (a *App) predictBy(change func(s *state.Screen)) {
	s := a.Screen
	change(&s)
	a.cores.failed = ""
	a.goTo(s, true)
}

// KeepCores stores the predicted threads for the chosen number of cores as a separate analysis.
func (a *App) KeepCores() {
	if a.predicted() == nil || a.cores.keep != 0 {
		return
	}
	a.cores.keep = a.coresAsked()
	a.askCores()
	a.touch()
}
