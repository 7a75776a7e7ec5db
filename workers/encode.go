package workers

import (
	"encoding/binary"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// The binary form of a body is its fields in the order of the type, after one
// byte with the version of the protocol:
//
//	number   unsigned LEB128 (encoding/binary's uvarint)
//	flag     one byte, 0 or 1
//	text     number of bytes, bytes
//	list     number of elements + 1, elements; 0 for nil, which is not empty
//	profile  the rest of the body
//
// A page and a worker of different versions meet when a browser holds an old
// one of them in its cache; the version tells that apart from damage.
const protocolVersion = 6

// BodyError tells that a message's body cannot be read.
type BodyError struct {
	Message Type
	Offset  int    // bytes into the body
	Want    string // what should stand there
}

func (e *BodyError) Error() string {
	return e.Message.String() + " message: byte " + strconv.Itoa(e.Offset) + ": want " + e.Want +
		"; page and worker are of different builds: reload the page"
}

// Encode returns the binary form of s.
func (s Start) Encode() []byte { return encode(s.code) }

// DecodeStart reads what [Start.Encode] wrote. Its error is a *[BodyError].
func DecodeStart(data []byte) (s Start, err error) {
	err = decode(TypeStart, data, s.code)
	return s, err
}

func (s *Start) code(b *body) {
	b.text(&s.Key, "the key")
	b.text(&s.Name, "the name")
	b.text(&s.Format, "the format")
	b.spec(&s.Spec)
	b.flag(&s.Resume, "the resume flag")
	b.number(&s.Memory, "the limit of memory")
	below(b, &s.Workers, 1<<32, "the workers")
	below(b, &s.SegmentReferences, 1<<32, "the references of a segment")
}

// Encode returns the binary form of p.
func (p Progress) Encode() []byte {
	p.Threads = max(p.Threads, 0)
	return encode(p.code)
}

// DecodeProgress reads what [Progress.Encode] wrote. Its error is a
// *[BodyError].
func DecodeProgress(data []byte) (p Progress, err error) {
	err = decode(TypeProgress, data, p.code)
	return p, err
}

func (p *Progress) code(b *body) {
	b.number(&p.Bytes, "the bytes read")
	b.number(&p.TotalBytes, "the file's bytes")
	b.number(&p.References, "the references")
	b.number(&p.Lines, "the lines")
	below(b, &p.Threads, 1<<31, "the threads")
	b.number(&p.BadRecords, "the bad records")
	b.number(&p.Memory, "the memory")
	b.number(&p.Limit, "the limit of memory")
	b.number(&p.Outside, "the bytes outside of memory")
	b.number(&p.Storage, "the storage")
	b.number(&p.Millis, "the milliseconds")
	b.flag(&p.Paused, "the paused flag")
	b.flag(&p.Resuming, "the resuming flag")
	b.flag(&p.Beyond, "the flag of stacks outside of memory")
	b.flag(&p.Ending, "the ending flag")
	b.text(&p.Unsaved, "why no checkpoint is kept")
	below(b, &p.Workers, 1<<32, "the workers")
	b.number(&p.Ahead, "the references further on")
	b.number(&p.Total, "the references of the trace")
	b.number(&p.LeftOut, "the references left out")
	b.number(&p.Speed, "the speed")
}

// Encode returns the binary form of d.
func (d Done) Encode() []byte { return encode(d.code) }

// DecodeDone reads what [Done.Encode] wrote; its Profile lies in data. Its
// error is a *[BodyError].
func DecodeDone(data []byte) (d Done, err error) {
	err = decode(TypeDone, data, d.code)
	return d, err
}

func (d *Done) code(b *body) {
	b.text(&d.Key, "the key")
	b.text(&d.Digest, "the digest")
	b.flag(&d.Kept, "the kept flag")
	b.text(&d.Problem, "the problem")
	b.rest(&d.Profile)
}

// Encode returns the binary form of f.
func (f Failed) Encode() []byte { return encode(f.code) }

// DecodeFailed reads what [Failed.Encode] wrote. Its error is a *[BodyError].
func DecodeFailed(data []byte) (f Failed, err error) {
	err = decode(TypeFailed, data, f.code)
	return f, err
}

func (f *Failed) code(b *body) { b.text(&f.Problem, "the problem") }

// Encode returns the binary form of h.
func (h Help) Encode() []byte { return encode(h.code) }

// DecodeHelp reads what [Help.Encode] wrote. Its error is a *[BodyError].
func DecodeHelp(data []byte) (h Help, err error) {
	err = decode(TypeHelp, data, h.code)
	return h, err
}

func (h *Help) code(b *body) {
	b.text(&h.Name, "the name")
	b.spec(&h.Spec)
	b.number(&h.MostLines, "the lines")
}

// Encode returns the binary form of a.
func (a Analysed) Encode() []byte { return encode(a.code) }

// DecodeAnalysed reads what [Analysed.Encode] wrote. Its error is a *[BodyError].
func DecodeAnalysed(data []byte) (a Analysed, err error) {
	err = decode(TypeAnalysed, data, a.code)
	return a, err
}

func (a *Analysed) code(b *body) {
	b.number(&a.References, "the references")
	b.number(&a.Memory, "the memory")
}

// EncodeStretch returns the binary form of s.
func EncodeStretch(s analysis.Stretch) []byte {
	return encode(func(b *body) { b.stretch(&s) })
}

// DecodeStretch reads what [EncodeStretch] wrote. Its error is a *[BodyError].
func DecodeStretch(data []byte) (s analysis.Stretch, err error) {
	err = decode(TypeStretch, data, func(b *body) { b.stretch(&s) })
	return s, err
}

func (b *body) stretch(s *analysis.Stretch) {
	b.position(&s.From)
	b.position(&s.To)
	b.number(&s.First, "the first reference")
	below(b, &s.Events, 1<<32, "the events")
	b.flag(&s.Lone, "the flag of one core")
}

// EncodeSegment returns the binary form of s, with a checksum: what goes wrong with it would
// be counted. One without a profile is told so.
func EncodeSegment(s analysis.Segment) []byte {
	var encoded []byte
	if s.Profile != nil {
		encoded = s.Profile.Encode()
	}
	data := encode(func(b *body) { b.segment(&s, &encoded) })
	return binary.LittleEndian.AppendUint64(data, xxhash.Sum64(data))
}

// DecodeSegment reads what [EncodeSegment] wrote. Its error is a *[BodyError], or tells
// what is wrong with the profile.
func DecodeSegment(data []byte) (s analysis.Segment, err error) {
	sum := max(0, len(data)-8)
	var encoded []byte
	err = decode(TypeSegment, data[:sum], func(b *body) {
		if !b.Failed() { // so that there are eight bytes more
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
	b.number(&p.Rows, "the rows in the chunk")
}

func (b *body) spec(s *analysis.Spec) {
	below(b, &s.Kinds, 1<<32, "the kinds")
	b.number(&s.Skip, "the skip")
	b.number(&s.Limit, "the limit")
	b.list(&s.Threads, "the threads")
	b.list(&s.LineBytes, "the line sizes")
	b.number(&s.SkipBad, "the bad records to tolerate")
	b.flag(&s.Mergeable, "the mergeable flag")
	below(b, &s.Analyses, 1<<32, "the analyses")
	b.number(&s.Start, "the segment's start")
	b.numbers(&s.Utilisation, "the capacities")
	b.list(&s.UtilisationWays, "the ways")
	b.flag(&s.Previous, "the flag of who was before")
	b.lists(&s.Cores, "the cores")
	b.lists(&s.Domains, "the domains")
	b.sample(&s.Sample)
	b.budget(&s.Budget)
}

// budget codes what models may take. The shelf is the worker's own.
func (b *body) budget(v **locality.Budget) {
	there := *v != nil
	if b.flag(&there, "the flag of a budget"); !there {
		return
	}
	if b.Reads() {
		*v = new(locality.Budget)
	}
	b.number(&(*v).Bytes, "the budget")
	below(b, &(*v).Lines, 1<<32, "the lines of a segment")
	below(b, &(*v).Events, 1<<32, "the events")
}

// sample codes how to sample; nothing but the options of package sample gets to a
// worker.
func (b *body) sample(s *analysis.Sampling) {
	o, there := (*s).(sample.Options)
	if b.flag(&there, "the flag of a sample"); !there {
		return
	}
	below(b, &o.Mode, 256, "the way to sample")
	b.number(&o.Threshold, "the threshold")
	b.number(&o.Lines, "the lines to keep")
	b.number(&o.Gap, "the gap")
	b.number(&o.On, "the stretch")
	b.number(&o.Period, "the period")
	b.number(&o.Seed, "the seed")
	if b.Check(o.Valid(), "no sample"); b.Reads() && !b.failed("a sample") {
		*s = o
	}
}
