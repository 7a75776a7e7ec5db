package workers

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
)

// Subject is what questions are about: a profile, a module of LLVM IR, or both.
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
func EncodeQuestion(q answers.Question) []byte {
	w := newBody(len(q.Bytes) + 256)
	w.text(q.Of)
	w.texts(q.Words)
	w.bytes = append(w.bytes, q.Bytes...)
	return w.bytes
}

// DecodeQuestion reads what [EncodeQuestion] wrote; its bytes lie in body. Its error is a
// *[BodyError].
func DecodeQuestion(body []byte) (answers.Question, error) {
	r := openBody(TypeAsk, body)
	q := answers.Question{Of: r.text("who answers"), Words: r.texts("the words")}
	if rest := r.rest(); len(rest) > 0 {
		q.Bytes = rest
	}
	return q, r.end()
}

// EncodeReply gives the binary form of a.
func EncodeReply(a *answers.Reply) []byte {
	w := newBody(1<<12 + len(a.Bytes))
	w.text(a.Part)
	w.flag(a.More)
	w.text(a.Problem)
	w.texts(a.Notes)
	w.texts(a.Unmodelled)
	w.text(string(a.Bytes))
	w.number(uint64(len(a.Tables)))
	for i := range a.Tables {
		w.bytes = a.Tables[i].AppendBinary(w.bytes)
	}
	return w.bytes
}

// DecodeReply reads what [EncodeReply] wrote. Its error is a *[BodyError], or tells what
// is wrong with a table.
func DecodeReply(body []byte) (*answers.Reply, error) {
	r := openBody(TypeAnswer, body)
	a := &answers.Reply{
		Part: r.text("the part"), More: r.flag("the flag of more"), Problem: r.text("the problem"),
		Notes: r.texts("the notes"), Unmodelled: r.texts("what is not modelled"),
	}
	if content := r.text("the bytes"); content != "" {
		a.Bytes = []byte(content)
	}
	n, rest := r.number("the tables"), r.rest()
	if err := r.end(); err != nil {
		return nil, err
	}
	for range n {
		t, left, err := report.ReadTable(rest)
		if err != nil {
			return nil, err
		}
		a.Tables, rest = append(a.Tables, t), left
	}
	return a, nil
}
