package ui

import (
	"slices"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
)

// verbAnswer contains the answer program's last answer to a question about the run in view. Callers
// of its methods must hold the lock.
type verbAnswer struct {
	of    *profile.Profile
	asker *asker // nil before the first question
	asked answers.Question
	reply *answers.Reply // the last reply; nil: no reply yet
	err   error          // why there is no answer
	// whether the user stopped the answer, so that the field "reply" is incomplete
	stopped bool
}

// ask asks a question about a complete result. It does not repeat the last question. After each
// answer, ask calls the parameter "take" with the lock held.
func (x *verbAnswer) ask(a *App, r *Result, q answers.Question, take func()) {
	x.askOfTrace(a, r, q, nil, take)
}

// askOfTrace is like ask, for a question whose answer needs the trace.
func (x *verbAnswer) askOfTrace(a *App, r *Result, q answers.Question, trace any, take func()) {
	if x.of != r.Profile {
		x.asker.end()
		*x = verbAnswer{of: r.Profile}
	}
	if x.err != nil || x.asks(q) {
		return
	}
	if x.asked, x.stopped = q, false; x.asker == nil {
		x.asker = &asker{app: a, subject: a.subjectOf(r.Name, r.Profile, nil), onReply: func(reply *answers.Reply, err error) {
			if x.reply, x.err = reply, err; err != nil {
				x.asker = nil
			}
			take()
		}}
	}
	x.asker.ask(q, trace)
}

// asks reports whether a question is the last question.
func (x *verbAnswer) asks(q answers.Question) bool {
	return slices.Equal(q.Words, x.asked.Words) && string(q.Bytes) == string(x.asked.Bytes)
}

// current reports whether the reply is the whole answer to a question about a result.
func (x *verbAnswer) current(r *Result, q answers.Question) bool {
	return x.of == r.Profile && x.reply != nil && !x.asker.busy() && x.asks(q)
}

// stop ends the computation of the answer, and keeps the latest reply.
func (x *verbAnswer) stop() {
	x.asker.end()
	x.asker, x.stopped = nil, true
}

// forgetQuestion forgets the last question and its error, so that the same question can be asked
// again.
func (x *verbAnswer) forgetQuestion() { x.asked, x.err = answers.Question{}, nil }

// table returns the answer's table with the given key, or nil if there is no such table.
func (x *verbAnswer) table(key string) *state.Table {
	if x.reply == nil {
		return nil
	}
	return state.AnsweredTable(x.reply, key)
}

// processors returns the table of processors to choose from, or nil if it is unknown.
func (x *verbAnswer) processors() *report.Table {
	if x.reply == nil {
		return nil
	}
	return x.reply.Table("processors")
}
