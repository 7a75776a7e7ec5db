package workers

import (
	"github.com/stackglass/stackglass/core/answers"
)

// Subject is what questions to the compute-node models are about: a profile, a module of
// LLVM IR, or both.
type Subject struct {
	Profile []byte // encoded; nil: none
	Name    string // of the module's file
	Module  []byte // its text; nil: none
}

// Encode gives the binary form of s.
func (s Subject) Encode() []byte {
	w := newBody(len(s.Profile) + len(s.Module) + len(s.Name) + 32)
	w.text(s.Name)
	w.number(uint64(len(s.Profile)))
	w.bytes = append(append(w.bytes, s.Profile...), s.Module...)
	return w.bytes
}

// DecodeSubject reads what [Subject.Encode] wrote; its parts lie in body. Its error is a
// *[BodyError].
func DecodeSubject(body []byte) (Subject, error) {
	r := openBody(TypeSubject, body)
	s := Subject{Name: r.text("the module's name")}
	length := r.number("the profile's length")
	if length > uint64(len(body)-r.at) {
		r.fail("the profile")
	}
	rest := r.rest()
	if err := r.end(); err != nil {
		return Subject{}, err
	}
	if length > 0 {
		s.Profile = rest[:length]
	}
	if rest = rest[length:]; len(rest) > 0 {
		s.Module = rest
	}
	return s, nil
}

// EncodeQuestion gives the binary form of q.
func EncodeQuestion(q answers.ModelQuestion) []byte {
	w := newBody(len(q.Changes) + 128)
	w.texts(q.Machine)
	w.text(q.Processor)
	w.text(q.Changes)
	w.number(uint64(q.Function))
	w.number(uint64(q.Block))
	w.flag(q.Whole)
	return w.bytes
}

// DecodeQuestion reads what [EncodeQuestion] wrote. Its error is a *[BodyError].
func DecodeQuestion(body []byte) (answers.ModelQuestion, error) {
	r := openBody(TypeQuestion, body)
	q := answers.ModelQuestion{
		Machine: r.texts("the hierarchy"), Processor: r.text("the processor"), Changes: r.text("the probabilities"),
		Function: uint32(r.below(1<<32, "the function")), Block: uint32(r.below(1<<32, "the block")), Whole: r.flag("the flag of the file"),
	}
	return q, r.end()
}

// EncodeReply gives the binary form of a.
func EncodeReply(a *answers.ModelReply) []byte {
	w := newBody(1 << 12)
	w.number(uint64(a.Function))
	w.number(uint64(a.Block))
	w.text(a.Problem)
	w.texts(a.Notes)
	w.texts(a.Unmodelled)
	w.text(a.File)
	w.text(string(a.Profile))
	w.tables(a.Tables)
	return w.bytes
}

// DecodeReply reads what [EncodeReply] wrote. Its error is a *[BodyError], or tells what
// is wrong with a table.
func DecodeReply(body []byte) (*answers.ModelReply, error) {
	r := openBody(TypeReply, body)
	a := &answers.ModelReply{
		Function: uint32(r.below(1<<32, "the function")), Block: uint32(r.below(1<<32, "the block")),
		Problem: r.text("the problem"), Notes: r.texts("the notes"), Unmodelled: r.texts("what is not modelled"),
		File: r.text("the file of probabilities"),
	}
	if profile := r.text("the profile"); profile != "" {
		a.Profile = []byte(profile)
	}
	var err error
	if a.Tables, err = r.tables(); err != nil {
		return nil, err
	}
	return a, nil
}
