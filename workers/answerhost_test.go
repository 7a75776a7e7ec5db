package workers_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/local"
)

// The type "asking" is the client's side of an AnswerHost.
type asking struct {
	*testing.T
	workers.Carrier
	served chan error
}

func askOf(t *testing.T, open map[string]func(workers.Subject) (workers.Answerer, error)) *asking {
	t.Helper()
	asker, host := local.Pair()
	a := &asking{t, asker, make(chan error, 1)}
	h := &workers.AnswerHost{Carrier: host, Open: open, Breathe: runtime.Gosched}
	go func() { a.served <- h.Serve() }()
	if m, err := asker.Receive(); err != nil || m.Type != workers.TypeReady {
		t.Fatal(m, err)
	}
	return a
}

func (a *asking) send(m workers.Message) {
	a.Helper()
	if err := a.Send(m); err != nil {
		a.Fatal(err)
	}
}

func (a *asking) subject(s workers.Subject) {
	a.send(workers.Message{Type: workers.TypeSubject, Body: s.Encode()})
}

func (a *asking) ask(job uint32, name string, words ...string) {
	a.send(workers.Message{Type: workers.TypeAsk, Job: job, Body: workers.EncodeQuestion(answers.Question{Of: name, Words: words}), Attachment: job})
}

func (a *asking) wants(job uint32, part, problem string) {
	a.Helper()
	m, err := a.Receive()
	if err != nil || m.Type != workers.TypeAnswer || m.Job != job {
		a.Fatal(m, err)
	}
	if got, err := workers.DecodeReply(m.Body); err != nil || string(got.Bytes) != part || got.Problem != problem {
		a.Errorf("reply = %+v, %v, want the part %q and the problem %q", got, err, part, problem)
	}
}

func (a *asking) end() {
	a.Helper()
	_ = a.Close()
	if err := <-a.served; err != nil {
		a.Error(err)
	}
}

// TestAnswerHost checks that an answerer is found by its name, and opened only once for each
// subject.
func TestAnswerHost(t *testing.T) {
	opened := 0
	a := askOf(t, map[string]func(workers.Subject) (workers.Answerer, error){
		"echo": func(s workers.Subject) (workers.Answerer, error) {
			if opened++; s.Module == nil {
				return nil, errors.New("no module")
			}
			return func(q answers.Question, attachment any, _ func() bool, give func(*answers.Reply)) error {
				if len(q.Words) == 0 || attachment != uint32(5) {
					return errors.New("nothing is asked")
				}
				give(&answers.Reply{Bytes: []byte(s.Name + q.Words[0])})
				return nil
			}, nil
		},
	})
	a.ask(5, "echo", "x")
	a.wants(5, "", "no module")
	a.subject(workers.Subject{Name: "a.ll", Module: []byte("define")})
	for range 2 {
		a.ask(5, "echo", ": x")
		a.wants(5, "a.ll: x", "")
	}
	a.ask(5, "echo")
	a.wants(5, "", "nothing is asked")
	if opened != 2 {
		t.Errorf("opened answerers = %d, want one for each of 2 subjects", opened)
	}
	const builds = "; page and worker are from different builds: reload the page"
	a.ask(6, "oracle")
	a.wants(6, "", `ask message: byte 1: want the name of an answerer, got "oracle"`+builds)
	a.send(workers.Message{Type: workers.TypeAsk, Job: 7, Body: []byte("nonsense")})
	a.wants(7, "", "ask message: byte 0: want version 7 of the protocol"+builds)
	a.send(workers.Message{Type: workers.TypeSubject, Body: []byte("nonsense")})
	a.ask(8, "echo", "x")
	a.wants(8, "", "subject message: byte 0: want version 7 of the protocol"+builds)
	a.end()
}

// TestAnswerHostAnswersLatestQuestion checks that a new question replaces a question with the same
// name that is being answered, and that a question with a different name waits.
func TestAnswerHostAnswersLatestQuestion(t *testing.T) {
	stopped := make(chan string, 3)
	asked := make(chan bool)
	a := askOf(t, map[string]func(workers.Subject) (workers.Answerer, error){
		"long": func(workers.Subject) (workers.Answerer, error) {
			return func(q answers.Question, _ any, wanted func() bool, give func(*answers.Reply)) error {
				give(&answers.Reply{Bytes: []byte("first"), More: true})
				if len(q.Words) > 0 {
					<-asked
					for q.Words[0] == "endless" {
						if !wanted() {
							stopped <- q.Words[0]
							return nil
						}
					}
					if !wanted() {
						t.Error("a question with a different name ended this question")
					}
				}
				give(&answers.Reply{Bytes: []byte("last")})
				return nil
			}, nil
		},
		"short": func(workers.Subject) (workers.Answerer, error) {
			return func(_ answers.Question, _ any, _ func() bool, give func(*answers.Reply)) error {
				give(&answers.Reply{Bytes: []byte("short")})
				return nil
			}, nil
		},
	})
	a.ask(1, "long", "endless")
	a.wants(1, "first", "")
	a.ask(2, "long")
	asked <- true
	a.wants(2, "first", "")
	a.wants(2, "last", "")
	a.ask(3, "long", "once")
	a.wants(3, "first", "")
	a.ask(4, "short")
	asked <- true
	a.wants(3, "last", "")
	a.wants(4, "short", "")
	a.ask(5, "long", "endless")
	a.wants(5, "first", "")
	asked <- true
	a.subject(workers.Subject{})
	for range 2 {
		if got := <-stopped; got != "endless" {
			t.Error(got)
		}
	}
	a.ask(6, "long", "endless")
	a.wants(6, "first", "")
	asked <- true
	a.end()
	<-stopped
}
