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

// Encode gives the binary form of s.
func (s Start) Encode() []byte {
	w := newBody(len(s.Key) + len(s.Name) + 64)
	w.text(s.Key)
	w.text(s.Name)
	w.text(s.Format)
	w.spec(s.Spec)
	w.flag(s.Resume)
	w.number(s.Memory)
	w.number(uint64(s.Workers))
	w.number(uint64(s.SegmentReferences))
	return w.bytes
}

// DecodeStart reads what [Start.Encode] wrote. Its error is a *[BodyError].
func DecodeStart(body []byte) (Start, error) {
	r := openBody(TypeStart, body)
	s := Start{Key: r.text("the key"), Name: r.text("the name"), Format: r.text("the format")}
	s.Spec = r.spec()
	s.Resume = r.flag("the resume flag")
	s.Memory = r.number("the limit of memory")
	s.Workers = uint32(r.below(1<<32, "the workers"))
	s.SegmentReferences = uint32(r.below(1<<32, "the references of a segment"))
	return s, r.end()
}

// Encode gives the binary form of p.
func (p Progress) Encode() []byte {
	w := newBody(64)
	for _, n := range []uint64{p.Bytes, p.TotalBytes, p.References, p.Lines, uint64(max(p.Threads, 0)),
		p.BadRecords, p.Memory, p.Limit, p.Outside, p.Storage, p.Millis} {
		w.number(n)
	}
	w.flag(p.Paused)
	w.flag(p.Resuming)
	w.flag(p.Beyond)
	w.flag(p.Ending)
	w.text(p.Unsaved)
	w.number(uint64(p.Workers))
	w.number(p.Ahead)
	w.number(p.Total)
	w.number(p.LeftOut)
	w.number(p.Speed)
	return w.bytes
}

// DecodeProgress reads what [Progress.Encode] wrote. Its error is a
// *[BodyError].
func DecodeProgress(body []byte) (Progress, error) {
	r := openBody(TypeProgress, body)
	p := Progress{
		Bytes:      r.number("the bytes read"),
		TotalBytes: r.number("the file's bytes"),
		References: r.number("the references"),
		Lines:      r.number("the lines"),
		Threads:    int(r.below(1<<31, "the threads")),
		BadRecords: r.number("the bad records"),
		Memory:     r.number("the memory"),
		Limit:      r.number("the limit of memory"),
		Outside:    r.number("the bytes outside of memory"),
		Storage:    r.number("the storage"),
		Millis:     r.number("the milliseconds"),
		Paused:     r.flag("the paused flag"),
		Resuming:   r.flag("the resuming flag"),
		Beyond:     r.flag("the flag of stacks outside of memory"),
		Ending:     r.flag("the ending flag"),
		Unsaved:    r.text("why no checkpoint is kept"),
		Workers:    uint32(r.below(1<<32, "the workers")),
		Ahead:      r.number("the references further on"),
		Total:      r.number("the references of the trace"),
		LeftOut:    r.number("the references left out"),
		Speed:      r.number("the speed"),
	}
	return p, r.end()
}

// Encode gives the binary form of d.
func (d Done) Encode() []byte {
	w := newBody(len(d.Key) + len(d.Digest) + len(d.Problem) + len(d.Profile) + 32)
	w.text(d.Key)
	w.text(d.Digest)
	w.flag(d.Kept)
	w.text(d.Problem)
	w.bytes = append(w.bytes, d.Profile...)
	return w.bytes
}

// DecodeDone reads what [Done.Encode] wrote; its Profile lies in body. Its
// error is a *[BodyError].
func DecodeDone(body []byte) (Done, error) {
	r := openBody(TypeDone, body)
	d := Done{Key: r.text("the key"), Digest: r.text("the digest"), Kept: r.flag("the kept flag"), Problem: r.text("the problem")}
	d.Profile = r.rest()
	return d, r.end()
}

// Encode gives the binary form of f.
func (f Failed) Encode() []byte {
	w := newBody(len(f.Problem) + 8)
	w.text(f.Problem)
	return w.bytes
}

// DecodeFailed reads what [Failed.Encode] wrote. Its error is a *[BodyError].
func DecodeFailed(body []byte) (Failed, error) {
	r := openBody(TypeFailed, body)
	f := Failed{Problem: r.text("the problem")}
	return f, r.end()
}

// Encode gives the binary form of h.
func (h Help) Encode() []byte {
	w := newBody(len(h.Name) + 64)
	w.text(h.Name)
	w.spec(h.Spec)
	w.number(h.MostLines)
	return w.bytes
}

// DecodeHelp reads what [Help.Encode] wrote. Its error is a *[BodyError].
func DecodeHelp(body []byte) (Help, error) {
	r := openBody(TypeHelp, body)
	h := Help{Name: r.text("the name")}
	h.Spec = r.spec()
	h.MostLines = r.number("the lines")
	return h, r.end()
}

// Encode gives the binary form of a.
func (a Analysed) Encode() []byte {
	w := newBody(24)
	w.number(a.References)
	w.number(a.Memory)
	return w.bytes
}

// DecodeAnalysed reads what [Analysed.Encode] wrote. Its error is a *[BodyError].
func DecodeAnalysed(body []byte) (Analysed, error) {
	r := openBody(TypeAnalysed, body)
	a := Analysed{References: r.number("the references"), Memory: r.number("the memory")}
	return a, r.end()
}

// EncodeStretch gives the binary form of s.
func EncodeStretch(s analysis.Stretch) []byte {
	w := newBody(64)
	w.position(s.From)
	w.position(s.To)
	w.number(s.First)
	w.number(uint64(s.Events))
	w.flag(s.Lone)
	return w.bytes
}

// DecodeStretch reads what [EncodeStretch] wrote. Its error is a *[BodyError].
func DecodeStretch(body []byte) (analysis.Stretch, error) {
	r := openBody(TypeStretch, body)
	s := analysis.Stretch{
		From: r.position(), To: r.position(), First: r.number("the first reference"),
		Events: trace.Kinds(r.below(1<<32, "the events")), Lone: r.flag("the flag of one core"),
	}
	return s, r.end()
}

// EncodeSegment gives the binary form of s, with a checksum: what goes wrong with it would
// be counted. One without a profile is told so.
func EncodeSegment(s analysis.Segment) []byte {
	w := newBody(64)
	w.position(s.To)
	w.number(s.Rows)
	if s.Profile != nil {
		w.bytes = append(w.bytes, s.Profile.Encode()...)
	}
	return binary.LittleEndian.AppendUint64(w.bytes, xxhash.Sum64(w.bytes))
}

// DecodeSegment reads what [EncodeSegment] wrote. Its error is a *[BodyError], or tells
// what is wrong with the profile.
func DecodeSegment(body []byte) (s analysis.Segment, err error) {
	sum := max(0, len(body)-8)
	r := openBody(TypeSegment, body[:sum])
	if r.err == nil && xxhash.Sum64(r.body) != binary.LittleEndian.Uint64(body[sum:]) {
		r.fail("a segment with its checksum")
	}
	s.To, s.Rows = r.position(), r.number("the rows")
	encoded := r.rest()
	if err := r.end(); err != nil {
		return analysis.Segment{}, err
	}
	if len(encoded) > 0 {
		s.Profile, err = profile.Decode(encoded)
	}
	return s, err
}

func (w *bodyWriter) position(p trace.Position) {
	w.number(p.Chunk)
	w.number(p.Rows)
}

func (r *bodyReader) position() trace.Position {
	return trace.Position{Chunk: r.number("the chunk"), Rows: r.number("the rows in the chunk")}
}

func (w *bodyWriter) spec(s analysis.Spec) {
	w.number(uint64(s.Kinds))
	w.number(s.Skip)
	w.number(s.Limit)
	w.list(s.Threads)
	w.list(s.LineBytes)
	w.number(s.SkipBad)
	w.flag(s.Mergeable)
	w.number(uint64(s.Analyses))
	w.number(s.Start)
	w.numbers(s.Utilisation)
	w.list(s.UtilisationWays)
	w.flag(s.Previous)
	w.lists(s.Cores)
	w.lists(s.Domains)
	w.sample(s.Sample)
	w.budget(s.Budget)
}

// budget writes what models may take. The shelf is the worker's own.
func (w *bodyWriter) budget(b *locality.Budget) {
	w.flag(b != nil)
	if b != nil {
		w.number(b.Bytes)
		w.number(uint64(b.Lines))
		w.number(uint64(b.Events))
	}
}

func (r *bodyReader) budget() *locality.Budget {
	if !r.flag("the flag of a budget") {
		return nil
	}
	return &locality.Budget{
		Bytes: r.number("the budget"), Lines: int(r.below(1<<32, "the lines of a segment")), Events: trace.Kinds(r.below(1<<32, "the events")),
	}
}

// sample writes how to sample; nothing but the options of package sample gets to a
// worker.
func (w *bodyWriter) sample(s analysis.Sampling) {
	o, ok := s.(sample.Options)
	w.flag(ok)
	if !ok {
		return
	}
	for _, n := range []uint64{uint64(o.Mode), o.Threshold, o.Lines, o.Gap, o.On, o.Period, o.Seed} {
		w.number(n)
	}
}

func (r *bodyReader) sample() analysis.Sampling {
	if !r.flag("the flag of a sample") {
		return nil
	}
	o := sample.Options{
		Mode: profile.SampleMode(r.below(256, "the way to sample")), Threshold: r.number("the threshold"), Lines: r.number("the lines to keep"),
		Gap: r.number("the gap"), On: r.number("the stretch"), Period: r.number("the period"), Seed: r.number("the seed"),
	}
	if !o.Valid() {
		r.fail("a sample")
		return nil
	}
	return o
}

func (r *bodyReader) spec() analysis.Spec {
	return analysis.Spec{
		Kinds:     trace.Kinds(r.below(1<<32, "the kinds")),
		Skip:      r.number("the skip"),
		Limit:     r.number("the limit"),
		Threads:   r.list("the threads"),
		LineBytes: r.list("the line sizes"),
		SkipBad:   r.number("the bad records to tolerate"),
		Mergeable: r.flag("the mergeable flag"),
		Analyses:  analysis.Analyses(r.below(1<<32, "the analyses")),
		Start:     r.number("the segment's start"),

		Utilisation:     r.numbers("the capacities"),
		UtilisationWays: r.list("the ways"),
		Previous:        r.flag("the flag of who was before"),

		Cores:   r.lists("the cores"),
		Domains: r.lists("the domains"),
		Sample:  r.sample(),
		Budget:  r.budget(),
	}
}
