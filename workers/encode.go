package workers

import (
	"encoding/binary"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// The binary form of a body begins with one byte that contains the protocol's version. The fields
// follow in the order of the type:
//
//	number   unsigned LEB128 (encoding/binary's uvarint)
//	flag     one byte, 0 or 1
//	text     number of bytes, bytes
//	list number of elements + 1, elements; 0 for nil, as opposed to an empty list
//	profile  the rest of the body
//
// The version shows whether a message is damaged or only from a different build. The page and a
// worker can be from different builds if a browser has cached one of the two programs.
const protocolVersion = 7

// BodyError reports that a message's body cannot be read.
type BodyError struct {
	Message Type
	Offset  int    // offset in the body
	Want    string // what was expected at the offset
}

func (e *BodyError) Error() string {
	return e.Message.String() + " message: byte " + strconv.Itoa(e.Offset) + ": want " + e.Want +
		"; page and worker are from different builds: reload the page"
}

// Encode returns the binary form of the message.
func (s Start) Encode() []byte { return encode(s.code) }

// DecodeStart decodes the output of [Start.Encode]. Errors have the type *[BodyError].
func DecodeStart(data []byte) (Start, error) { return decodeAs(TypeStart, data, (*Start).code) }

func (s *Start) code(b *body) {
	b.text(&s.Key, "the key")
	b.text(&s.Name, "the name")
	b.text(&s.Format, "the format")
	b.spec(&s.Spec)
	b.flag(&s.Resume, "the resume flag")
	b.number(&s.Memory, "the memory limit")
	below(b, &s.Workers, 1<<32, "the workers")
	below(b, &s.SegmentReferences, 1<<32, "the number of references in a segment")
}

// Encode returns the binary form of the message.
func (p Progress) Encode() []byte {
	p.Threads = max(p.Threads, 0)
	return encode(p.code)
}

// DecodeProgress decodes the output of [Progress.Encode]. Errors have the type *[BodyError].
func DecodeProgress(data []byte) (Progress, error) {
	return decodeAs(TypeProgress, data, (*Progress).code)
}

func (p *Progress) code(b *body) {
	b.number(&p.Bytes, "the bytes read")
	b.number(&p.TotalBytes, "the file's bytes")
	b.number(&p.References, "the references")
	b.number(&p.Lines, "the lines")
	below(b, &p.Threads, 1<<31, "the threads")
	b.number(&p.BadRecords, "the bad records")
	b.number(&p.Memory, "the memory")
	b.number(&p.Limit, "the memory limit")
	b.number(&p.Outside, "the spilled bytes")
	b.number(&p.Storage, "the storage")
	b.number(&p.Millis, "the milliseconds")
	b.flag(&p.Paused, "the paused flag")
	b.flag(&p.Resuming, "the resuming flag")
	b.flag(&p.Beyond, "the flag for spilled stacks")
	b.flag(&p.Ending, "the ending flag")
	b.text(&p.Unsaved, "the reason why no checkpoint is kept")
	below(b, &p.Workers, 1<<32, "the workers")
	b.number(&p.Ahead, "the number of references analysed ahead")
	b.number(&p.Total, "the number of references in the trace")
	b.number(&p.LeftOut, "the omitted references")
	b.number(&p.Speed, "the speed")
}

// Encode returns the binary form of the message.
func (d Done) Encode() []byte { return encode(d.code) }

// DecodeDone decodes the output of [Done.Encode]; the Profile of the result shares memory with
// data. Errors have the type *[BodyError].
func DecodeDone(data []byte) (Done, error) { return decodeAs(TypeDone, data, (*Done).code) }

func (d *Done) code(b *body) {
	b.text(&d.Key, "the key")
	b.text(&d.Digest, "the digest")
	b.flag(&d.Kept, "the kept flag")
	b.text(&d.Problem, "the problem")
	b.rest(&d.Profile)
}

// Encode returns the binary form of the message.
func (f Failed) Encode() []byte { return encode(f.code) }

// DecodeFailed decodes the output of [Failed.Encode]. Errors have the type *[BodyError].
func DecodeFailed(data []byte) (Failed, error) { return decodeAs(TypeFailed, data, (*Failed).code) }

func (f *Failed) code(b *body) { b.text(&f.Problem, "the problem") }

// Encode returns the binary form of the message.
func (h Help) Encode() []byte { return encode(h.code) }

// DecodeHelp decodes the output of [Help.Encode]. Errors have the type *[BodyError].
func DecodeHelp(data []byte) (Help, error) { return decodeAs(TypeHelp, data, (*Help).code) }

func (h *Help) code(b *body) {
	b.text(&h.Name, "the name")
	b.spec(&h.Spec)
	b.number(&h.MostLines, "the lines")
}

// Encode returns the binary form of the message.
func (a Analysed) Encode() []byte { return encode(a.code) }

// DecodeAnalysed decodes the output of [Analysed.Encode]. Errors have the type *[BodyError].
func DecodeAnalysed(data []byte) (Analysed, error) {
	return decodeAs(TypeAnalysed, data, (*Analysed).code)
}

func (a *Analysed) code(b *body) {
	b.number(&a.References, "the references")
	b.number(&a.Memory, "the memory")
}

// EncodeStretch returns the binary form of an [analysis.Stretch].
func EncodeStretch(s analysis.Stretch) []byte { return encode(func(b *body) { codeStretch(&s, b) }) }

// DecodeStretch decodes the output of [EncodeStretch]. Errors have the type *[BodyError].
func DecodeStretch(data []byte) (analysis.Stretch, error) {
	return decodeAs(TypeStretch, data, codeStretch)
}

func codeStretch(s *analysis.Stretch, b *body) {
	b.position(&s.From)
	b.position(&s.To)
	b.number(&s.First, "the first reference")
	below(b, &s.Events, 1<<32, "the events")
	b.flag(&s.Lone, "the single-core flag")
	b.flag(&s.Whole, "the whole-chunks flag")
}

// EncodeSegment returns the binary form of a segment, which may have no profile. The binary form
// contains a checksum, because damaged counts would otherwise not be detected.
func EncodeSegment(s analysis.Segment) []byte {
	var encoded []byte
	if s.Profile != nil {
		encoded = s.Profile.Encode()
	}
	data := encode(func(b *body) { b.segment(&s, &encoded) })
	return binary.LittleEndian.AppendUint64(data, xxhash.Sum64(data))
}

// DecodeSegment decodes the output of [EncodeSegment]. Errors have the type *[BodyError], or an
// error of the profile.
func DecodeSegment(data []byte) (s analysis.Segment, err error) {
	sum := max(0, len(data)-8)
	var encoded []byte
	err = decode(TypeSegment, data[:sum], func(b *body) {
		if !b.Failed() { // at least eight more bytes follow
			b.Check(xxhash.Sum64(data[:sum]) == binary.LittleEndian.Uint64(data[sum:]), "damaged")
			b.failed("a segment with its checksum")
		}
		b.segment(&s, &encoded)
	})
	if err != nil {
		return analysis.Segment{}, err
	}
	if len(encoded) > 0 {
		s.Profile, err = profile.Decode(encoded)
	}
	return s, err
}

func (b *body) segment(s *analysis.Segment, encoded *[]byte) {
	b.position(&s.To)
	b.number(&s.Rows, "the rows")
	b.rest(encoded)
}

func (b *body) position(p *trace.Position) {
	b.number(&p.Chunk, "the chunk")
	b.number(&p.Rows, "the number of records in the chunk")
}

func (b *body) spec(s *analysis.Spec) {
	below(b, &s.Kinds, 1<<32, "the kinds")
	b.number(&s.Skip, "the skip")
	b.number(&s.Limit, "the limit")
	b.list(&s.Threads, "the threads")
	b.list(&s.LineBytes, "the line sizes")
	b.number(&s.SkipBad, "the number of bad records to tolerate")
	b.flag(&s.Mergeable, "the mergeable flag")
	below(b, &s.Analyses, 1<<32, "the analyses")
	below(b, &s.SetNumbers, 1<<32, "the numbers of sets")
	b.number(&s.Start, "the segment's start")
	b.numbers(&s.Utilisation, "the capacities")
	b.list(&s.UtilisationWays, "the ways")
	b.flag(&s.Previous, "the flag for previous accesses")
	b.lists(&s.Cores, "the cores")
	b.lists(&s.Domains, "the domains")
	below(b, &s.Stacks, 1<<8, "the stacks of cores")
	b.sample(&s.Sample)
	b.budget(&s.Budget)
}

// budget encodes or decodes the limits of the models, without the spill store, which belongs to the
// worker.
func (b *body) budget(v **locality.Budget) {
	there := *v != nil
	if b.flag(&there, "the budget flag"); !there {
		return
	}
	if b.Reads() {
		*v = new(locality.Budget)
	}
	b.number(&(*v).Bytes, "the budget")
	below(b, &(*v).Lines, 1<<32, "the maximum number of lines in a segment")
	below(b, &(*v).Events, 1<<32, "the events")
}

// sample encodes or decodes the sampling options. Workers support only the options of package
// sample.
func (b *body) sample(s *analysis.Sampling) {
	o, there := (*s).(sample.Options)
	if b.flag(&there, "the sample flag"); !there {
		return
	}
	below(b, &o.Mode, 256, "the sampling mode")
	b.number(&o.Threshold, "the threshold")
	b.number(&o.Lines, "the number of lines to keep")
	b.number(&o.Gap, "the gap")
	b.number(&o.On, "the sampled length")
	b.number(&o.Period, "the period")
	b.number(&o.Seed, "the seed")
	if b.Check(o.Valid(), "no sample"); b.Reads() && !b.failed("a sample") {
		*s = o
	}
}

// body writes or reads the fields of a message. The field Want of a [BodyError] names the first
// field that cannot be read.
type body struct {
	*codec.Coder
	want string
}

// encode calls the function "code", and returns the bytes that this function writes.
func encode(code func(*body)) []byte {
	b := &body{Coder: codec.Writer([]byte{protocolVersion})}
	code(b)
	return b.Out
}

// decodeAs reads a T from data. Errors have the type *[BodyError].
func decodeAs[T any](message Type, data []byte, code func(*T, *body)) (v T, err error) {
	err = decode(message, data, func(b *body) { code(&v, b) })
	return v, err
}

// decode calls the function "code" to read data, and checks that the function reads all of the
// data. Errors have the type *[BodyError].
func decode(message Type, data []byte, code func(*body)) error {
	b := &body{Coder: codec.Reader(data)}
	version := uint64(protocolVersion)
	if len(data) == 0 || data[0] != protocolVersion {
		b.In.Fail("another version")
		b.failed("version " + strconv.Itoa(protocolVersion) + " of the protocol")
	}
	b.U64(&version)
	code(b)
	b.Check(!b.More(), "more")
	if !b.failed("the end of the message") {
		return nil
	}
	return &BodyError{Message: message, Offset: b.In.Err().(*codec.Error).Offset, Want: b.want}
}

// failed reports whether reading has failed. At the first failure, it sets the field "want" to the
// description of the expected field.
func (b *body) failed(want string) bool {
	if b.Failed() && b.want == "" {
		b.want = want
	}
	return b.Failed()
}

func (b *body) number(v *uint64, want string) {
	b.U64(v)
	b.failed(want)
}

func below[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int](b *body, v *T, limit uint64, want string) {
	codec.Below(b.Coder, v, limit)
	b.failed(want)
}

func (b *body) flag(v *bool, want string) {
	b.Flag(v)
	b.failed(want)
}

func (b *body) text(v *string, want string) {
	b.Text(v)
	b.failed(want)
}

// texts encodes or decodes a list of texts. Nil and an empty list have the same binary form.
func (b *body) texts(v *[]string, want string) {
	codec.Slice(b.Coder, v, 1, b.Text)
	b.failed(want)
}

// bytes encodes or decodes bytes. Nil and an empty slice have the same binary form. Decoded bytes
// share the memory of the message.
func (b *body) bytes(v *[]byte, want string) {
	if b.Bytes(v); len(*v) == 0 {
		*v = nil
	}
	b.failed(want)
}

// list encodes or decodes a list of numbers: the length + 1, or 0 for nil, followed by the numbers.
func (b *body) list(v *[]uint32, want string) {
	n := 0
	if *v != nil {
		n = len(*v) + 1
	}
	if n = b.Length(n, 1); n > 0 {
		if b.Reads() {
			*v = []uint32{}
		}
		codec.Members(b.Coder, v, n-1, b.U32)
	}
	b.failed(want)
}

// numbers encodes or decodes a list of numbers. Nil and an empty list have the same binary form.
func (b *body) numbers(v *[]uint64, want string) {
	codec.Slice(b.Coder, v, 1, b.U64)
	b.failed(want)
}

// lists encodes or decodes lists of numbers. Nil and an empty list have the same binary form.
func (b *body) lists(v *[][]uint32, want string) {
	codec.Slice(b.Coder, v, 1, func(list *[]uint32) { b.list(list, want) })
	b.failed(want)
}

// rest encodes or decodes the remaining bytes of the message. Decoded bytes share the memory of the
// message.
func (b *body) rest(v *[]byte) {
	if !b.Reads() {
		b.Out = append(b.Out, *v...)
	} else if *v = b.In.Take(); len(*v) == 0 {
		*v = nil
	}
}

// Subject is the subject of questions: a profile, an LLVM IR module, or both.
type Subject struct {
	Profile []byte // encoded; nil: none
	Name    string // the name of the module's file
	Module  []byte // the module's text; nil: none
}

// Encode returns the binary form of the message.
func (s Subject) Encode() []byte { return encode(s.code) }

// DecodeSubject decodes the output of [Subject.Encode]; the result shares memory with data. Errors
// have the type *[BodyError].
func DecodeSubject(data []byte) (Subject, error) { return decodeAs(TypeSubject, data, (*Subject).code) }

func (s *Subject) code(b *body) {
	b.text(&s.Name, "the module's name")
	b.bytes(&s.Profile, "the profile")
	b.rest(&s.Module)
}

// EncodeQuestion returns the binary form of a question.
func EncodeQuestion(q answers.Question) []byte { return encode(func(b *body) { codeQuestion(&q, b) }) }

// DecodeQuestion decodes the output of [EncodeQuestion]; the result shares memory with data. Errors
// have the type *[BodyError].
func DecodeQuestion(data []byte) (answers.Question, error) {
	return decodeAs(TypeAsk, data, codeQuestion)
}

func codeQuestion(q *answers.Question, b *body) {
	b.text(&q.Of, "the answerer")
	b.texts(&q.Words, "the words")
	b.rest(&q.Bytes)
}

// EncodeReply returns the binary form of a reply.
func EncodeReply(a *answers.Reply) []byte { return encode(func(b *body) { codeReply(a, b) }) }

// DecodeReply decodes the output of [EncodeReply]; the result shares memory with data. Errors have
// the type *[BodyError].
func DecodeReply(data []byte) (*answers.Reply, error) {
	a, err := decodeAs(TypeAnswer, data, codeReply)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

func codeReply(a *answers.Reply, b *body) {
	b.flag(&a.More, "the flag that announces further replies")
	b.text(&a.Problem, "the problem")
	b.texts(&a.Notes, "the notes")
	b.texts(&a.Unmodelled, "the effects that are not modelled")
	b.bytes(&a.Bytes, "the bytes")
	codec.Slice(b.Coder, &a.Tables, 4, func(t *report.Table) { t.Code(b.Coder) })
	b.failed("the tables")
}
