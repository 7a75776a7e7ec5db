package ui

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/local"
)

// The type "scripted" is a desk in which the test acts as the answer program.
type scripted struct {
	*desk
	carriers chan workers.Carrier // the test's ends of the connections
}

func (s scripted) Answerer() (workers.Carrier, error) {
	asker, other := local.Pair()
	s.carriers <- other
	return asker, nil
}

// The function "question" receives messages until it receives a question.
func question(t *testing.T, c workers.Carrier) (job uint32, q answers.Question) {
	t.Helper()
	for {
		m, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Type == workers.TypeAsk {
			q, err = workers.DecodeQuestion(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			return m.Job, q
		}
	}
}

// breathing is a desk that counts the calls of Breathe.
type breathing struct {
	*desk
	calls int
}

func (b *breathing) Breathe() { b.calls++ }

// TestSubjectInTasks checks that the page can handle events while a large profile is encoded for the
// answer program, and that this does not change the encoded profile.
func TestSubjectInTasks(t *testing.T) {
	d := newDesk(t)
	p, loops := &profile.Profile{}, make([]byte, 1<<20)
	for _, c := range []struct {
		bytes, calls int
	}{{1 << 10, 0}, {1 << 20, 4}} {
		b := &breathing{desk: d}
		d.app.Port, p.Loops = b, loops[:c.bytes]
		s := d.app.subjectOf("name", p, &module{"module", []byte("text")})()
		if s.Name != "module" || string(s.Module) != "text" || !bytes.Equal(s.Profile, p.Encode()) {
			t.Errorf("%d bytes of loops: subject with the name %q, the module %q and %d bytes; want the given module and the profile", c.bytes, s.Name, s.Module, len(s.Profile))
		}
		if b.calls != c.calls {
			t.Errorf("%d bytes of loops: %d pauses, want %d", c.bytes, b.calls, c.calls)
		}
	}
}

// TestAskerSendsLatestQuestion checks that, once the answer program is ready, an asker sends only
// the latest question. The asker must accept only replies to this question, and no reply after the
// method "end" was called.
func TestAskerSendsLatestQuestion(t *testing.T) {
	d := newDesk(t)
	s := scripted{d, make(chan workers.Carrier, 2)}
	d.app.Port = s
	took := make(chan string, 9)
	x := &asker{app: d.app, subject: d.app.subjectOf("", nil, nil), onReply: func(r *answers.Reply, err error) {
		if err != nil {
			took <- err.Error()
			return
		}
		took <- r.Problem
	}}
	ask := func(name string) { d.act(func() { x.ask(answers.Question{Of: name}, nil) }) }
	busy := func() (yes bool) { d.act(func() { yes = x.busy() }); return yes }
	wants := func(want string) {
		t.Helper()
		if got := <-took; got != want {
			t.Errorf("accepted reply = %q, want %q", got, want)
		}
	}
	if (*asker)(nil).busy() || busy() {
		t.Error("busy() = true before the first question, want false")
	}
	(*asker)(nil).end()

	ask("one")
	ask("two")
	c := <-s.carriers
	reply := func(job uint32, r answers.Reply) {
		_ = c.Send(workers.Message{Type: workers.TypeAnswer, Job: job, Body: workers.EncodeReply(&r)})
	}
	_ = c.Send(workers.Message{Type: workers.TypeReady})
	job, q := question(t, c)
	if q.Of != "two" || !busy() {
		t.Errorf("the program received the question %q, want only the latest question, two", q.Of)
	}
	reply(job, answers.Reply{Problem: "first", More: true})
	wants("first")
	if !busy() {
		t.Error("busy() = false while more replies follow, want true")
	}
	reply(job, answers.Reply{Problem: "last"})
	wants("last")
	if busy() {
		t.Error("busy() = true after the last reply, want false")
	}
	ask("three")
	old, _ := question(t, c)
	ask("four")
	job, _ = question(t, c)
	reply(old, answers.Reply{Problem: "late"})
	reply(job, answers.Reply{Problem: "of four"})
	wants("of four")
	_ = c.Send(workers.Message{Type: workers.TypeAnswer, Job: job, Body: []byte("nonsense")})
	wants("answer message: byte 0: want version 7 of the protocol; page and worker are from different builds: reload the page")
	if _, err := c.Receive(); !errors.Is(err, workers.ErrClosed) {
		t.Errorf("Receive after the asker has ended: %v, want ErrClosed", err)
	}

	y := &asker{app: d.app, subject: x.subject, onReply: x.onReply}
	d.act(func() { y.ask(answers.Question{Of: "five"}, nil) })
	c = <-s.carriers
	d.act(y.end)
	_ = c.Send(workers.Message{Type: workers.TypeReady})
	for err := error(nil); err == nil; _, err = c.Receive() {
	}
	select {
	case got := <-took:
		t.Errorf("the asker accepted the reply %q after it had ended", got)
	default:
	}
}

// The type "unloaded" is a desk whose answer program cannot be loaded.
type unloaded struct{ *desk }

func (unloaded) Answerer() (workers.Carrier, error) { return dead{}, nil }

type dead struct{ workers.Carrier }

func (dead) Receive() (workers.Message, error) {
	return workers.Message{}, &workers.DeadError{Code: -1, Why: "404"}
}
func (dead) Close() error { return nil }

// TestMissingAnswerProgram checks that, if the answer program cannot be loaded, the page shows the
// reason and advice.
func TestMissingAnswerProgram(t *testing.T) {
	d := newDesk(t)
	d.app.Offer(demoItem())
	d.app.Port = unloaded{d}
	shows := func(want string) { until(t, func() bool { return strings.Contains(d.html(), want) }) }
	d.act(func() { d.app.ExportAs("json") })
	shows("could not be created: the query program could not be loaded (404): this program is downloaded when it is first needed, so go online and reload the page.")
	d.app.Navigate("#" + d.app.Screen.With(state.TabBlocks).Hash())
	shows("The models could not be queried: the query program could not be loaded (404)")
	d.app.Port = d
	d.act(d.app.AskAgain)
	d.answered()
	d.wants("Function main")
	// If the answer program is requested again, the page tries to load the file again.
	d.act(func() { d.app.models.asker.end(); d.app.models.asker = nil })
	d.app.Port = unloaded{d}
	d.act(d.app.SaveProbabilities)
	shows("The branch-probability file could not be created: the query program could not be loaded (404)")
	d.app.Port = d
	d.act(d.app.SaveProbabilities)
	d.answered()
	if text := d.saw("Matrix multiplication-probabilities.txt"); !strings.HasPrefix(text, "# The branches of ") {
		t.Errorf("%q", text)
	}
}
