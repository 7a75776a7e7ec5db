package ui

import (
	"bytes"
	"errors"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers"
)

// asker runs a separate program, a workers.AnswerHost, that answers questions about one subject. A
// new question replaces the previous one. A nil asker has no program. The methods must be called
// with the lock held.
type asker struct {
	app     *App
	subject func() workers.Subject // called without holding the lock
	// called with each reply to the last question, or with an error after which no more replies follow
	onReply func(*answers.Reply, error)

	carrier workers.Carrier // nil while the program is starting or is not needed yet
	last    workers.Message // the last question
	running bool            // whether more replies to the last question will follow
	ended   bool
}

// ask asks a question, and starts the program if this is the first question.
func (x *asker) ask(q answers.Question, attachment any) {
	first := x.last.Job == 0
	x.last = workers.Message{Type: workers.TypeAsk, Job: x.last.Job + 1, Body: workers.EncodeQuestion(q), Attachment: attachment}
	x.running = true
	if first {
		go x.run()
	} else if x.carrier != nil {
		_ = x.carrier.Send(x.last) // an error also arrives as a message
	}
}

// busy reports whether a reply is expected.
func (x *asker) busy() bool { return x != nil && x.running }

// end ends the program. After that, it no longer calls onReply.
func (x *asker) end() {
	if x == nil {
		return
	}
	if x.ended = true; x.carrier != nil {
		go func(c workers.Carrier) { _ = c.Close() }(x.carrier)
	}
}

// run starts the program and passes its replies to onReply. It blocks, and must be called without the
// lock.
func (x *asker) run() {
	c, err := x.app.openSubject(x.subject())
	var m workers.Message
	var reply *answers.Reply
	for over := false; !over; {
		x.app.update(func() {
			if x.ended {
				over = true
				return
			}
			if err == nil && x.carrier == nil {
				x.carrier, err = c, c.Send(x.last)
			}
			switch {
			case err != nil:
				x.ended, x.running, over = true, false, true
				x.onReply(nil, err)
			case reply != nil && m.Job == x.last.Job:
				x.running = reply.More
				x.onReply(reply, nil)
			}
		})
		if !over {
			m, reply, err = receive(c)
		}
	}
	if c != nil {
		_ = c.Close()
	}
}

// subjectOf returns a function that opens the subject of questions: a profile, a module, or both.
// Answers refer to the profile by the given name. The function blocks, because it encodes a large
// profile in several tasks of the page.
func (a *App) subjectOf(name string, of *profile.Profile, given *module) func() workers.Subject {
	return func() workers.Subject {
		s := workers.Subject{Name: name}
		if of != nil {
			w := pieces{port: a.Port}
			_ = of.EncodeTo(&w) // writing to a buffer cannot fail
			s.Profile = w.Bytes()
		}
		if given != nil {
			s.Name, s.Module = given.name, given.text
		}
		return s
	}
}

// pieces is a buffer. After every 256 KiB, pieces lets the page handle waiting events.
type pieces struct {
	bytes.Buffer
	port Port
	new  int // number of bytes since the last pause
}

func (w *pieces) Write(b []byte) (int, error) {
	if w.new += len(b); w.new >= 256<<10 {
		w.new = 0
		w.port.Breathe()
	}
	return w.Buffer.Write(b)
}

// openSubject starts the answering program and sends it the subject of the questions. openSubject
// blocks until the program has started.
func (a *App) openSubject(s workers.Subject) (workers.Carrier, error) {
	c, err := a.Port.Answerer()
	if err != nil {
		return nil, err
	}
	m, err := c.Receive()
	var dead *workers.DeadError
	switch {
	case errors.As(err, &dead):
		err = errors.New("the query program could not be loaded (" + dead.Why + "): this program is downloaded when it is first needed, so go online and reload the page")
	case err == nil && m.Type != workers.TypeReady:
		err = errors.New("the query program is from a different build: reload the page")
	case err == nil:
		err = c.Send(workers.Message{Type: workers.TypeSubject, Body: s.Encode()})
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// receive waits for a reply.
func receive(c workers.Carrier) (m workers.Message, reply *answers.Reply, err error) {
	if m, err = c.Receive(); err == nil {
		reply, err = workers.DecodeReply(m.Body)
	}
	return m, reply, err
}

// askOnce starts the program, asks one question, waits for the reply and ends the program. The
// reply may contain a problem.
func (a *App) askOnce(s workers.Subject, q answers.Question) (*answers.Reply, error) {
	c, err := a.openSubject(s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return ask(c, q)
}

// ask sends a question and waits for its only reply.
func ask(c workers.Carrier, q answers.Question) (*answers.Reply, error) {
	if err := c.Send(workers.Message{Type: workers.TypeAsk, Job: job, Body: workers.EncodeQuestion(q)}); err != nil {
		return nil, err
	}
	_, reply, err := receive(c)
	return reply, err
}

// fileOf returns the file in a reply, or the reason why there is no file.
func fileOf(reply *answers.Reply, err error) ([]byte, error) {
	if err == nil && reply.Problem != "" {
		err = errors.New(reply.Problem)
	}
	if err != nil {
		return nil, err
	}
	return reply.Bytes, nil
}
