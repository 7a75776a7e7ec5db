package workers

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
)

// AnswerHostName is the name of the workers that run the page's second program, an AnswerHost.
const AnswerHostName = "answers"

// Answerer answers a question about one subject. An Answerer receives the question and its
// attachment, and calls the function "give" with each reply. From time to time, the Answerer calls
// the function "wanted", which reports whether the answer is still needed. An error explains in a
// sentence why there is no answer.
type Answerer func(q answers.Question, attachment any, wanted func() bool, give func(*answers.Reply)) error

// AnswerHost answers questions about a Subject, which the client sends first and can replace later.
// A new question replaces the question of the same name that is being answered.
type AnswerHost struct {
	Carrier Carrier
	// Open maps the names of questions to the functions that open an answerer for a subject. The
	// errors explain, in a sentence, why there is no answerer.
	Open map[string]func(Subject) (Answerer, error)
	// Breathe is called during computations, so that messages can arrive. Breathe may be nil if
	// messages can arrive without such calls.
	Breathe func()

	subject Subject
	opened  map[string]opened // the answerers opened for the subject
	arrived chan arrival
	waiting []arrival // arrivals that were received during a computation
}

// opened is an answerer, or the reason why there is no answerer.
type opened struct {
	answer Answerer
	err    error
}

// arrival is a received message or an error.
type arrival struct {
	message  Message
	question answers.Question // the question, if the message has type TypeAsk
	wrong    error            // error in the message
	err      error            // the error that ended the connection
}

// Serve answers questions until the connection ends. Serve returns the error that ended the
// connection, or nil if the client closed it.
func (h *AnswerHost) Serve() error {
	if err := h.Carrier.Send(Message{Type: TypeReady}); err != nil {
		return endOf(err)
	}
	h.arrived, h.opened = make(chan arrival, 1), map[string]opened{}
	go h.receive()
	for {
		a := h.nextArrival()
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

// receive receives messages until the connection ends.
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

// nextArrival returns the next arrival, and waits for it if necessary.
func (h *AnswerHost) nextArrival() arrival {
	if len(h.waiting) == 0 {
		return <-h.arrived
	}
	a := h.waiting[0]
	h.waiting = h.waiting[1:]
	return a
}

// wanted reports whether the question with the given name still needs an answer. A question needs
// no answer if a later message has replaced the question or the subject.
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

// answer sends the replies to a question, with the question's number. It returns an error of the
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

// open returns the answerer that answers questions with the given name about the current subject.
func (h *AnswerHost) open(name string) (Answerer, error) {
	o, known := h.opened[name]
	if known {
		return o.answer, o.err
	}
	if open := h.Open[name]; open == nil {
		o.err = &BodyError{Message: TypeAsk, Offset: 1, Want: "the name of an answerer, got " + strconv.Quote(name)}
	} else {
		o.answer, o.err = open(h.subject)
	}
	h.opened[name] = o
	return o.answer, o.err
}
