package workers

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/report"
)

// Subject is the subject of questions: a profile, a module of LLVM IR, or both.
type Subject struct {
	Profile []byte // encoded; nil: none
	Name    string // of the module's file
	Module  []byte // its text; nil: none
}

// Encode returns the binary form of s.
func (s Subject) Encode() []byte { return encode(s.code) }

// DecodeSubject reads what [Subject.Encode] wrote; its bytes lie in data. Its error is a *[BodyError].
func DecodeSubject(data []byte) (Subject, error) { return decodeAs(TypeSubject, data, (*Subject).code) }

func (s *Subject) code(b *body) {
	b.text(&s.Name, "the module's name")
	b.bytes(&s.Profile, "the profile")
	b.rest(&s.Module)
}

// EncodeQuestion returns the binary form of q.
func EncodeQuestion(q answers.Question) []byte { return encode(func(b *body) { codeQuestion(&q, b) }) }

// DecodeQuestion reads what [EncodeQuestion] wrote; its bytes lie in data. Its error is a *[BodyError].
func DecodeQuestion(data []byte) (answers.Question, error) {
	return decodeAs(TypeAsk, data, codeQuestion)
}

func codeQuestion(q *answers.Question, b *body) {
	b.text(&q.Of, "who answers")
	b.texts(&q.Words, "the words")
	b.rest(&q.Bytes)
}

// EncodeReply returns the binary form of a.
func EncodeReply(a *answers.Reply) []byte { return encode(func(b *body) { codeReply(a, b) }) }

// DecodeReply reads what [EncodeReply] wrote; its bytes lie in data. Its error is a *[BodyError].
func DecodeReply(data []byte) (*answers.Reply, error) {
	a, err := decodeAs(TypeAnswer, data, codeReply)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

func codeReply(a *answers.Reply, b *body) {
	b.text(&a.Part, "the part")
	b.flag(&a.More, "the flag of more")
	b.text(&a.Problem, "the problem")
	b.texts(&a.Notes, "the notes")
	b.texts(&a.Unmodelled, "what is not modelled")
	b.bytes(&a.Bytes, "the bytes")
	codec.Slice(b.Coder, &a.Tables, 4, func(t *report.Table) { t.Code(b.Coder) })
	b.failed("the tables")
}
