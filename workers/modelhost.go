package workers

import (
	"errors"

	"github.com/stackglass/stackglass/core/answers"
)

// Model answers questions to the compute-node models about one subject.
type Model interface {
	Answer(answers.ModelQuestion) *answers.ModelReply
}

// Loops answers questions about the loops of one run: as answers come, asking now and then
// whether to go on.
type Loops interface {
	Answer(q answers.LoopQuestion, goOn func() bool, give func(*answers.LoopReply))
}

// Predict answers what several cores would do, from the trace that is attached: as answers
// come, asking now and then whether to go on.
type Predict func(q answers.MulticoreQuestion, attachment any, goOn func() bool, give func(*answers.MulticoreReply))

// ModelHost serves answers that take work: it takes a Subject and then questions about
// it, until another subject comes. A question that comes while another one about loops or
// cores is answered takes its place.
type ModelHost struct {
	Carrier Carrier
	// Open and OpenLoops give who answers about a subject. Their errors say in a sentence
	// why there is nobody.
	Open      func(Subject) (Model, error)
	OpenLoops func(Subject) (Loops, error)
	Predict   Predict // needs no subject
	// Breathe lets messages in while something is computed; nil: they come by themselves.
	Breathe func()

	subject Subject
	problem error // with it
	model   Model
	loops   Loops

	arrived chan arrival
	next    *arrival // that came meanwhile
}

// arrival is what is received.
type arrival struct {
	message Message
	err     error
}

var errNothing = errors.New("nothing was given to ask about")

// Serve answers until the connection ends, and gives the error that ended it; nil where
// the asker closed it.
func (h *ModelHost) Serve() error {
	if err := h.Carrier.Send(Message{Type: TypeReady}); err != nil {
		return endOf(err)
	}
	h.problem, h.arrived = errNothing, make(chan arrival, 1)
	go func() {
		for {
			m, err := h.Carrier.Receive()
			h.arrived <- arrival{m, err}
			if err != nil {
				return
			}
		}
	}()
	for {
		a := h.take()
		if a.err != nil {
			return endOf(a.err)
		}
		var err error
		switch m := a.message; m.Type {
		case TypeSubject:
			h.model, h.loops = nil, nil
			h.subject, h.problem = DecodeSubject(m.Body)
		case TypeQuestion:
			err = h.Carrier.Send(Message{Type: TypeReply, Job: m.Job, Body: EncodeReply(h.answer(m.Body))})
		case TypeLoopQuestion:
			err = h.answerLoops(m)
		case TypeMulticore:
			err = h.predict(m)
		}
		if err != nil {
			return endOf(err)
		}
	}
}

// take gives what came next.
func (h *ModelHost) take() arrival {
	if a := h.next; a != nil {
		h.next = nil
		return *a
	}
	return <-h.arrived
}

// undisturbed tells whether nothing else came.
func (h *ModelHost) undisturbed() bool {
	if h.Breathe != nil {
		h.Breathe()
	}
	if h.next == nil {
		select {
		case a := <-h.arrived:
			h.next = &a
		default:
		}
	}
	return h.next == nil
}

func (h *ModelHost) answer(question []byte) *answers.ModelReply {
	q, err := DecodeQuestion(question)
	if err == nil {
		err = h.problem
	}
	if err == nil && h.model == nil {
		if h.model, err = h.Open(h.subject); err != nil {
			h.model, h.problem = nil, err
		}
	}
	if err != nil {
		return &answers.ModelReply{Problem: err.Error()}
	}
	return h.model.Answer(q)
}

// answerLoops sends what is answered to a question, with its number.
func (h *ModelHost) answerLoops(m Message) (sent error) {
	give := func(reply *answers.LoopReply) {
		if sent == nil {
			sent = h.Carrier.Send(Message{Type: TypeLoopReply, Job: m.Job, Body: EncodeLoopReply(reply)})
		}
	}
	q, err := DecodeLoopQuestion(m.Body)
	if err == nil {
		err = h.problem
	}
	if err == nil && h.loops == nil {
		if h.loops, err = h.OpenLoops(h.subject); err != nil {
			h.loops, h.problem = nil, err
		}
	}
	if err != nil {
		give(&answers.LoopReply{Problem: err.Error()})
		return sent
	}
	h.loops.Answer(q, h.undisturbed, give)
	return sent
}

// predict sends what is predicted, with the question's number.
func (h *ModelHost) predict(m Message) (sent error) {
	give := func(reply *answers.MulticoreReply) {
		if sent == nil {
			sent = h.Carrier.Send(Message{Type: TypePredicted, Job: m.Job, Body: EncodePredicted(reply)})
		}
	}
	q, err := DecodeMulticore(m.Body)
	if err != nil {
		give(&answers.MulticoreReply{Ended: true, Problem: err.Error()})
		return sent
	}
	h.Predict(q, m.Attachment, func() bool { return sent == nil && h.undisturbed() }, give)
	return sent
}
