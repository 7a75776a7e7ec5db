package workers

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
)

// AnswerHostName is what the global scopes of workers are called in which the page's second
// program is an AnswerHost.
const AnswerHostName = "answers"

// Answerer answers questions about one subject: as replies come, asking now and then whether
// to go on. attachment is what came with the question. Its error says in a sentence why
// there is no answer.
type Answerer func(q answers.Question, attachment any, goOn func() bool, give func(*answers.Reply)) error

// AnswerHost serves answers: it takes a Subject and then questions about it, until another
// subject comes. A question that comes while another one of the same name is answered takes
// its place.
type AnswerHost struct {
	Carrier Carrier
	// Open gives who answers about a subject, by the names of questions. Their errors say in
	// a sentence why there is nobody.
	Open map[string]func(Subject) (Answerer, error)
	// Breathe lets messages in while something is computed; nil: they come by themselves.
	Breathe func()

	subject Subject
	opened  map[string]opened // about it
	arrived chan arrival
	waiting []arrival // that came meanwhile
}

// opened is who answers, or why there is nobody.
type opened struct {
	answer Answerer
	err    error
}

// arrival is what is received.
type arrival struct {
	message  Message
	question answers.Question // of TypeAsk
	wrong    error            // with what the message holds
	err      error            // the connection ended
}

// Serve answers until the connection ends, and gives the error that ended it; nil where
// the asker closed it.
func (h *AnswerHost) Serve() error {
	if err := h.Carrier.Send(Message{Type: TypeReady}); err != nil {
		return endOf(err)
	}
	h.arrived, h.opened = make(chan arrival, 1), map[string]opened{}
	go h.receive()
	for {
		a := h.take()
		err := a.err
		switch a.message.Type {
		case TypeSubject:
			h.opened = map[string]opened{}
			if h.subject, err = DecodeSubject(a.message.Body); err != nil {
				for name := range h.Open {
					h.opened[name] = opened{err: err}
				}
				err = nil
			}
		case TypeAsk:
			err = h.answer(a)
		}
		if err != nil {
			return endOf(err)
		}
	}
}

// receive takes in what comes until the connection ends.
func (h *AnswerHost) receive() {
	for {
		var a arrival
		if a.message, a.err = h.Carrier.Receive(); a.message.Type == TypeAsk {
			a.question, a.wrong = DecodeQuestion(a.message.Body)
		}
		h.arrived <- a
		if a.err != nil {
			return
		}
	}
}

// take gives what came next.
func (h *AnswerHost) take() arrival {
	if len(h.waiting) == 0 {
		return <-h.arrived
	}
	a := h.waiting[0]
	h.waiting = h.waiting[1:]
	return a
}

// wanted tells whether the answer to a question still is: nothing came that takes its place.
func (h *AnswerHost) wanted(name string) bool {
	if h.Breathe != nil {
		h.Breathe()
	}
	for more := true; more; {
		select {
		case a := <-h.arrived:
			h.waiting = append(h.waiting, a)
		default:
			more = false
		}
	}
	return !slices.ContainsFunc(h.waiting, func(a arrival) bool {
		return a.err != nil || a.message.Type == TypeSubject || a.question.Of == name
	})
}

// answer sends what is answered to a question, with its number. It gives the error of the
// connection.
func (h *AnswerHost) answer(a arrival) (sent error) {
	give := func(reply *answers.Reply) {
		if sent == nil {
			sent = h.Carrier.Send(Message{Type: TypeAnswer, Job: a.message.Job, Body: EncodeReply(reply)})
		}
	}
	err := a.wrong
	var by Answerer
	if err == nil {
		by, err = h.open(a.question.Of)
	}
	if err == nil {
		err = by(a.question, a.message.Attachment, func() bool { return sent == nil && h.wanted(a.question.Of) }, give)
	}
	if err != nil {
		give(&answers.Reply{Problem: err.Error()})
	}
	return sent
}

// open gives who answers questions of a name about the subject.
func (h *AnswerHost) open(name string) (Answerer, error) {
	o, known := h.opened[name]
	if known {
		return o.answer, o.err
	}
	if open := h.Open[name]; open == nil {
		o.err = &BodyError{Message: TypeAsk, Offset: 1, Want: "a name of who answers, not " + strconv.Quote(name)}
	} else {
		o.answer, o.err = open(h.subject)
	}
	h.opened[name] = o
	return o.answer, o.err
}
