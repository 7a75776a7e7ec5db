package trace

import (
	"errors"
	"io"
	"strconv"
)

// Reader reads a trace in batches.
type Reader interface {
	// Next fills b with the next rows, in trace order. Next does not allocate in the steady state.
	//
	// If Next returns an error, the batch is empty, and earlier calls have returned all rows that
	// precede the error. io.EOF means the end of a complete trace. A *SyntaxError refers to one
	// record, and the next call continues after that record. Every other error is final, and all
	// further calls return the same error.
	Next(b *Batch) error
}

// Header describes a trace, but does not contain its references. Readers extend the header while
// they read, so the header is complete only at the end.
type Header struct {
	Format  string // the format's name, a value of --input-format: "lackey", "din", ...
	Threads bool   // whether records have thread numbers
	PCs     bool   // whether data records have the instruction's address
	Sizes   bool   // whether records contain the number of bytes
	Sites   bool   // whether rows have a site
	// Sliced means that the references of different threads are ordered only between time slices.
	// Their order within a slice is unknown.
	Sliced bool
	// Extent is the recorded part of each thread.
	Extent Extent

	// Program describes the program, or is nil if the format does not describe programs. Readers
	// only append to the program's tables, so indices remain valid.
	Program *Program
	// Capture lists facts about the capture, such as its options, in the order in which the capture
	// tool wrote them.
	Capture []Fact
}

// Fact is a name and a value with which a capture tool describes a trace.
type Fact struct{ Name, Value string }

// LeftOutFact is the name of the fact that lists the kinds of records that a trace contains but a
// reader ignores, because they are not references.
const LeftOutFact = "left out"

// LeftOut returns the value of the fact named [LeftOutFact], or "" if there is no such fact.
func (h *Header) LeftOut() string {
	for _, f := range h.Capture {
		if f.Name == LeftOutFact {
			return f.Value
		}
	}
	return ""
}

// Extent is the part of each thread that a capture tool records. The zero value is the whole thread.
type Extent struct {
	After uint64 // number of references that are left out at the beginning of each thread
	For   uint64 // maximum number of references of each thread that are then recorded; 0: no limit
}

// These facts describe an [Extent]. The runtime in tools/capture writes the same names.
const (
	afterFact = "references left out at the beginning of each thread"
	forFact   = "limit of references in each thread"
)

// Facts returns the facts that describe the extent.
func (e Extent) Facts() (facts []Fact) {
	for _, f := range []struct {
		name string
		n    uint64
	}{{afterFact, e.After}, {forFact, e.For}} {
		if f.n > 0 {
			facts = append(facts, Fact{f.name, strconv.FormatUint(f.n, 10)})
		}
	}
	return facts
}

// ExtentOf returns the extent that the facts describe.
func ExtentOf(facts []Fact) (e Extent) {
	for _, f := range facts {
		switch f.Name {
		case afterFact:
			e.After, _ = strconv.ParseUint(f.Value, 10, 64)
		case forFact:
			e.For, _ = strconv.ParseUint(f.Value, 10, 64)
		}
	}
	return e
}

// Join extends the header with the header of a different segment of the same trace.
func (h *Header) Join(other Header) {
	if h.Format == "" {
		h.Format = other.Format
	}
	h.Threads = h.Threads || other.Threads
	h.PCs = h.PCs || other.PCs
	h.Sizes = h.Sizes || other.Sizes
	h.Sites = h.Sites || other.Sites
	h.Sliced = h.Sliced || other.Sliced
	if h.Extent == (Extent{}) {
		h.Extent = other.Extent
	}
	if h.Program == nil {
		h.Program = other.Program
	}
	if h.Capture == nil {
		h.Capture = other.Capture
	}
}

// Describer is a [Reader] that can return a [Header].
type Describer interface{ Header() Header }

// Selector is a [Reader] that can return events in addition to references. Select chooses the kinds
// of rows to read, and must be called before the first call to Next. If Select is not called, the
// reader returns only references.
type Selector interface{ Select(Kinds) }

// Position is a position between two rows of a trace that is stored in chunks. Only rows of the
// selected kinds are counted.
type Position struct {
	Chunk uint64 // offset of the chunk in the file, or [AtEnd]
	Rows  uint64 // number of rows in the chunk that precede the position
}

// Before reports whether p precedes the other position. Both positions must count rows of the same
// kinds.
func (p Position) Before(other Position) bool {
	return p.Chunk < other.Chunk || p.Chunk == other.Chunk && p.Rows < other.Rows
}

// AtEnd is the value of Chunk for the position after the last row.
const AtEnd = ^uint64(0)

// Chunk is a segment of a trace that can be read without reading earlier segments.
type Chunk struct {
	At         uint64 // offset of the chunk in the file
	References uint64
}

// Outline contains properties of a whole trace. The index of a trace contains these properties, so
// they are known before the trace is read.
type Outline struct {
	References uint64 // number of references of all kinds
	Threads    int    // number of threads that make references
}

// Source is a trace that several workers can read from several positions at the same time.
type Source interface {
	// Chunks lists the chunks in trace order. Chunks returns nil if the trace cannot be divided among
	// workers.
	Chunks() []Chunk
	// Kinds returns the kinds of all rows that can occur in the trace.
	Kinds() Kinds
	// Open returns a reader of the rows of the given kinds, beginning with a chunk. Several such
	// readers may be used at the same time.
	Open(chunk uint64, kinds Kinds) Mover
	// Agrees reports whether a reader r of the same trace, which has reached a chunk, has the same
	// header as a reader that Open returns for this chunk.
	Agrees(r Mover, chunk uint64) bool
}

// Mover is a [Reader] of a trace that is stored in chunks. A batch contains only rows of one chunk.
type Mover interface {
	Reader
	Describer
	// Position returns the position after the rows returned so far.
	Position() Position
	// Until makes Next return the rows up to a position, and then [ErrThere]. The reader must not have
	// passed the position.
	Until(Position)
	// Narrow restricts the rows of later chunks to some of the selected kinds. Positions in these
	// chunks count only rows of these kinds.
	Narrow(Kinds)
	// Pass skips to the beginning of a chunk, or to the end of the trace, without decoding. Pass
	// returns the same errors as Next, or [ErrNotThere].
	Pass(chunk uint64) error
}

// ErrThere reports that a reader has reached the position that was passed to Until.
var ErrThere = errors.New("the reader has reached the position at which it should stop")

// ErrNotThere reports that a position no longer exists, because the file has changed.
var ErrNotThere = errors.New("the file was changed while it was being read")

// Filler fills batches for [LateError.Next].
type Filler interface {
	// Begin prepares a batch that has no data yet and whose length is its capacity.
	Begin(b *Batch)
	// Fill writes rows and returns their number. If the error that follows these rows is already
	// known, Fill also returns this error.
	Fill(b *Batch) (rows int, err error)
}

// LateError delays an error until the rows that precede it have been returned.
type LateError struct{ err error }

// Next implements [Reader] with a Filler.
func (l *LateError) Next(b *Batch, f Filler) error {
	if b.Cap() == 0 {
		*b = *NewBatch(0)
	}
	b.Reset()
	rows := 0
	if l.err == nil {
		b.Resize(b.Cap())
		f.Begin(b)
		rows, l.err = f.Fill(b)
		b.Resize(rows)
	}
	if rows > 0 {
		return nil
	}
	err := l.err
	if IsSyntax(err) {
		l.err = nil
	}
	return err
}

// SyntaxError reports one record that does not follow the format of the trace. The reader continues
// after this record.
type SyntaxError struct {
	File   string // the trace's name
	Line   int    // line number, from 1, in text formats; 0 in binary formats
	Offset int64  // byte offset of the record in the decompressed stream, in binary formats
	What   string // name of the invalid field or record: "label", "address", "line"
	Got    string // the invalid text, shortened
	Want   string // description of the text that the format expects
}

func (e *SyntaxError) Error() string {
	where := ":" + strconv.Itoa(e.Line)
	if e.Line == 0 {
		where = " at byte " + strconv.FormatInt(e.Offset, 10)
	}
	return e.File + where + ": " + e.What + " " + quote(e.Got) + ", want " + e.Want
}

// Clause returns the error without its position.
func (e *SyntaxError) Clause() string {
	return e.What + " " + strconv.Quote(e.Got) + ", want " + e.Want
}

// SetPlace sets the file and the line of an error in a text format.
func (e *SyntaxError) SetPlace(file string, line int) { e.File, e.Line = file, line }

// Nameless returns the error without the trace's name.
func (e *SyntaxError) Nameless() string {
	nameless := *e
	nameless.File = theTrace
	return nameless.Error()
}

const theTrace = "the trace"

// ErrCutShort is the value of DamageError.Err if the final record of the trace is missing, for
// example because the recorder was killed. The final record describes how the run ended.
var ErrCutShort = errors.New("the recorder was killed, or only a part of the file was copied")

// DamageError reports a damaged stream: the stream was truncated, or a checksum or a compressed
// block is wrong. All rows before the damage have been returned.
type DamageError struct {
	File   string // the trace's name
	Layer  string // the damaged layer: the name of a compression format, such as "lz4", or of the trace format
	Offset int64  // number of decompressed bytes before the damage
	Cut    bool   // true if the stream ends too early, and false if its bytes are wrong
	Err    error  // the error that the layer reported
}

func (e *DamageError) Error() string {
	offset := strconv.FormatInt(e.Offset, 10)
	switch {
	case e.Err == ErrCutShort:
		return e.File + " is truncated after " + offset + " bytes: " + e.Err.Error() + "; the references before this position can be read"
	case e.Cut:
		return e.File + ": the " + e.Layer + " stream is truncated after " + offset +
			" decompressed bytes; copy the file again, or use the part before the cut"
	}
	return e.File + ": the " + e.Layer + " stream is damaged after " + offset + " decompressed bytes (" + e.Err.Error() +
		"); copy the file again, or use the part before the damage"
}

// Nameless returns the error without the trace's name.
func (e *DamageError) Nameless() string {
	nameless := *e
	nameless.File = theTrace
	return nameless.Error()
}

func (e *DamageError) Unwrap() error { return e.Err }

// IsSyntax reports whether an error is a [*SyntaxError], after which a reader continues.
func IsSyntax(err error) bool {
	var s *SyntaxError
	return errors.As(err, &s)
}

// ReadAll reads a whole trace into one batch. ReadAll is meant only for tests and small traces.
func ReadAll(r Reader) (*Batch, error) {
	whole, b := NewBatch(0), NewBatch(0)
	for {
		err := r.Next(b)
		if err == io.EOF {
			err = nil
		} else if err == nil {
			whole.AppendRows(b, 0, b.Len())
			continue
		}
		return whole.View(&Batch{}, 0, whole.Len()), err
	}
}

// quote shortens s, and returns it in quotes, with escapes for unprintable bytes.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
