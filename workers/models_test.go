package workers_test

import (
	"errors"
	"runtime"
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
	ask(answers.ModelReply{Problem: "subject message: byte 0: want version 6 of the protocol; page and worker are of different builds: reload the page"})
	_ = asker.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// slow answers once at once, and then only when it is told to stop.
type slow struct{ stopped chan bool }

func (s slow) Answer(q answers.LoopQuestion, goOn func() bool, give func(*answers.LoopReply)) {
	give(&answers.LoopReply{ClassLevel: q.Machine[0]})
	for q.Propose {
		if !goOn() {
			s.stopped <- true
			return
		}
	}
	give(&answers.LoopReply{Trial: true})
}

// A question about loops that comes while another one is answered takes its place.
func TestModelHostAnswersTheLatest(t *testing.T) {
	asker, host := local.Pair()
	s := slow{make(chan bool, 1)}
	h := &workers.ModelHost{Carrier: host, Breathe: runtime.Gosched, OpenLoops: func(of workers.Subject) (workers.Loops, error) {
		if of.Profile == nil {
			return nil, errors.New("no loops")
		}
		return s, nil
	}}
	served := make(chan error)
	go func() { served <- h.Serve() }()
	ask := func(job uint32, q answers.LoopQuestion) {
		_ = asker.Send(workers.Message{Type: workers.TypeLoopQuestion, Job: job, Body: workers.EncodeLoopQuestion(q)})
	}
	wants := func(job uint32, want answers.LoopReply) {
		t.Helper()
		m, err := asker.Receive()
		if err != nil || m.Type != workers.TypeLoopReply || m.Job != job {
			t.Fatal(m, err)
		}
		got, err := workers.DecodeLoopReply(m.Body)
		if err != nil || got.ClassLevel != want.ClassLevel || got.Trial != want.Trial || got.Problem != want.Problem {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	if m, err := asker.Receive(); err != nil || m.Type != workers.TypeReady {
		t.Fatal(m, err)
	}
	_ = asker.Send(workers.Message{Type: workers.TypeSubject, Body: workers.Subject{Name: "x"}.Encode()})
	ask(1, answers.LoopQuestion{Machine: []string{"L0"}})
	wants(1, answers.LoopReply{Problem: "no loops"})
	_ = asker.Send(workers.Message{Type: workers.TypeSubject, Body: workers.Subject{Profile: []byte("p")}.Encode()})
	ask(2, answers.LoopQuestion{Machine: []string{"L1"}, Propose: true})
	wants(2, answers.LoopReply{ClassLevel: "L1"})
	ask(3, answers.LoopQuestion{Machine: []string{"L2"}})
	wants(3, answers.LoopReply{ClassLevel: "L2"})
	wants(3, answers.LoopReply{Trial: true})
	if !<-s.stopped {
		t.Error("not stopped")
	}
	ask(4, answers.LoopQuestion{Machine: []string{"L1"}, Propose: true})
	wants(4, answers.LoopReply{ClassLevel: "L1"})
	_ = asker.Close()
	if err := <-served; err != nil || !<-s.stopped {
		t.Error(err)
	}
}
