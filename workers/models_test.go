package workers_test

import (
	"errors"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/local"
)

// echo answers with what it was asked.
type echo string

func (e echo) Answer(q answers.ModelQuestion) *answers.ModelReply {
	return &answers.ModelReply{Function: q.Function, File: string(e) + q.Changes}
}

func TestModelHost(t *testing.T) {
	asker, host := local.Pair()
	served := make(chan error)
	h := &workers.ModelHost{Carrier: host, Open: func(s workers.Subject) (workers.Model, error) {
		if s.Module == nil {
			return nil, errors.New("no module")
		}
		return echo(s.Name), nil
	}}
	go func() { served <- h.Serve() }()
	if m, err := asker.Receive(); err != nil || m.Type != workers.TypeReady {
		t.Fatal(m, err)
	}
	ask := func(want answers.ModelReply) {
		t.Helper()
		body := workers.EncodeQuestion(answers.ModelQuestion{Function: 7, Changes: ": x"})
		if err := asker.Send(workers.Message{Type: workers.TypeQuestion, Job: 5, Body: body}); err != nil {
			t.Fatal(err)
		}
		m, err := asker.Receive()
		if err != nil || m.Type != workers.TypeReply || m.Job != 5 {
			t.Fatal(m, err)
		}
		got, err := workers.DecodeReply(m.Body)
		if err != nil || got.Problem != want.Problem || got.File != want.File || got.Function != want.Function {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	subject := func(body []byte) { _ = asker.Send(workers.Message{Type: workers.TypeSubject, Body: body}) }
	ask(answers.ModelReply{Problem: "nothing was given to ask about"})
	subject(workers.Subject{Name: "a.ll", Module: []byte("define")}.Encode())
	ask(answers.ModelReply{Function: 7, File: "a.ll: x"})
	subject(workers.Subject{Name: "b.ll"}.Encode())
	ask(answers.ModelReply{Problem: "no module"})
	subject([]byte("nonsense"))
	ask(answers.ModelReply{Problem: "subject message: byte 0: want version 5 of the protocol; page and worker are of different builds: reload the page"})
	_ = asker.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
