package trace

import (
	"errors"
	"io"
	"strconv"
)

// Reader reads a trace in batches.
type Reader interface {
	// Next fills b with the next rows, in trace order. It allocates nothing in steady state.
	//
	// With any error the batch is empty: the call before delivered the rows before the error.
	// io.EOF ends a whole trace. A *SyntaxError reports one record; the next call resumes after it.
	// Every other error is final and will be returned again.
	Next(b *Batch) error
}

// Header describes a trace apart from its references. Facts become known while reading, so read it at
// the end.
type Header struct {
	Format  string // the format's name, as for --input-format: "lackey", "din", ...
	Threads bool   // records have thread numbers
	PCs     bool   // data records have the instruction's address
	Sizes   bool   // records have the number of bytes
	Sites   bool   // rows have their site
	// Sliced: the references of several threads are in order only from one time slice to
	// the next. The order within a slice is unknown.
	Sliced bool

	// Program describes the program; nil if the format does not. It only grows: numbers keep their meaning.
	Program *Program
	// Capture are facts about how the trace was made, in the order of the capture tool.
	Capture []Fact
}

// Fact is a statement of a capture tool about a trace.
type Fact struct{ Name, Value string }

// LeftOutFact is the name of the fact that says which records of a trace are no references.
const LeftOutFact = "left out"

// LeftOut returns the value of that fact, "" if there is none.
func (h *Header) LeftOut() string {
	for _, f := range h.Capture {
		if f.Name == LeftOutFact {
			return f.Value
		}
	}
	return ""
}

// Join adds the facts of another segment of the same trace.
func (h *Header) Join(other Header) {
	if h.Format == "" {
		h.Format = other.Format
	}
	h.Threads = h.Threads || other.Threads
	h.PCs = h.PCs || other.PCs
	h.Sizes = h.Sizes || other.Sizes
	h.Sites = h.Sites || other.Sites
	h.Sliced = h.Sliced || other.Sliced
	if h.Program == nil {
		h.Program = other.Program
	}
	if h.Capture == nil {
		h.Capture = other.Capture
	}
}

// Describer is a [Reader] that knows its [Header].
type Describer interface{ Header() Header }

// Selector is a [Reader] that can return events. Select chooses the kinds of rows, before the
// first Next; without it a reader returns references only.
type Selector interface{ Select(Kinds) }

// Position is a place between two rows of a trace that is stored in chunks. The number of rows of
// a chunk depends on the selected kinds.
type Position struct {
	Chunk uint64 // offset of the chunk in the file, or [AtEnd]
	Rows  uint64 // rows of the chunk before the position
}

// Before reports whether p comes before another position, with rows of the same kinds.
func (p Position) Before(other Position) bool {
	return p.Chunk < other.Chunk || p.Chunk == other.Chunk && p.Rows < other.Rows
}

// AtEnd is the chunk of the position after all rows.
const AtEnd = ^uint64(0)

// Chunk is a segment of a trace that can be read without earlier segments.
type Chunk struct {
	At         uint64 // its offset in the file
	References uint64
}

// Outline is the information of an index about a whole trace before it is read.
type Outline struct {
	References uint64 // of all kinds
	Threads    int    // threads that make references
}

// Source is a trace that several workers can read from several positions at the same time.
type Source interface {
	// Chunks lists the chunks in the order of the trace; nil if it cannot be shared.
	Chunks() []Chunk
	// Kinds is the set of kinds of rows that the trace may have.
	Kinds() Kinds
	// Open returns a reader of the rows of these kinds from the beginning of a chunk on.
	// Such readers may be used at the same time.
	Open(chunk uint64, kinds Kinds) Mover
	// Agrees reports whether a reader of the same trace that has reached a chunk has seen
	// the same header state before it as a reader that Open returns.
	Agrees(r Mover, chunk uint64) bool
}

// Mover is a [Reader] of a trace in chunks. Its batches contain rows of one chunk.
type Mover interface {
	Reader
	Describer
	// Position is the position after the returned rows.
	Position() Position
	// Until makes Next return rows up to a position that was not passed yet, and then [ErrThere].
	Until(Position)
	// Narrow restricts the rows of later chunks to these of the selected kinds. Positions in these
	// chunks count them.
	Narrow(Kinds)
	// Pass skips to the beginning of a chunk, or to the end, without decoding. The error is
	// one that Next returns, or [ErrNotThere].
	Pass(chunk uint64) error
}

// ErrThere reports that a reader has reached the position where it shall stop.
var ErrThere = errors.New("the position to stop at is reached")

// ErrNotThere reports that a trace does not have a position any more.
var ErrNotThere = errors.New("the file is not the same any more as a moment ago: it was changed while it was read")

// Filler fills batches for [LateError.Next].
type Filler interface {
	// Begin prepares an empty batch, which is as long as it can be.
	Begin(b *Batch)
	// Fill returns the number of rows written, and the error after them if it is known.
	Fill(b *Batch) (rows int, err error)
}

// LateError keeps the error after the rows of a batch until those have been delivered.
type LateError struct{ err error }

// Next fills b as [Reader] says.
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

// SyntaxError reports one record that does not follow its format. The reader resumes after it.
type SyntaxError struct {
	File   string // the trace's name
	Line   int    // line, from 1, in text formats; 0 in binary ones
	Offset int64  // byte offset of the record in the unpacked stream, in binary formats
	What   string // the field or record that is wrong: "label", "address", "line"
	Got    string // the text found there, shortened
	Want   string // what the format expects there
}

func (e *SyntaxError) Error() string {
	where := ":" + strconv.Itoa(e.Line)
	if e.Line == 0 {
		where = " at byte " + strconv.FormatInt(e.Offset, 10)
	}
	return e.File + where + ": " + e.What + " " + quote(e.Got) + ", want " + e.Want
}

// Clause returns the error without the place.
func (e *SyntaxError) Clause() string {
	return e.What + " " + strconv.Quote(e.Got) + ", want " + e.Want
}

// SetPlace completes the error of a text format.
func (e *SyntaxError) SetPlace(file string, line int) { e.File, e.Line = file, line }

// Nameless returns the error without the trace's name.
func (e *SyntaxError) Nameless() string {
	nameless := *e
	nameless.File = theTrace
	return nameless.Error()
}

const theTrace = "the trace"

// ErrCutShort is the Err of a [DamageError] about a trace that ends without the record of
// how the run ended, as when the recorder was killed.
var ErrCutShort = errors.New("the recorder was killed, or only a part of the file was copied")

// DamageError reports that the stream is broken: it was cut off, or a checksum or a compressed
// block is wrong. Rows before the damage were delivered.
type DamageError struct {
	File   string // the trace's name
	Layer  string // the broken layer: "lz4", "gzip", "zstd", "xz", or the format's name
	Offset int64  // bytes that the layer delivered before
	Cut    bool   // the stream ends too early; false: its bytes are wrong
	Err    error  // of the layer
}

func (e *DamageError) Error() string {
	offset := strconv.FormatInt(e.Offset, 10)
	switch {
	case e.Err == ErrCutShort:
		return e.File + " is cut short after " + offset + " bytes: " + e.Err.Error() + "; everything up to there can be read"
	case e.Cut:
		return e.File + ": the " + e.Layer + " stream is cut off after " + offset +
			" unpacked bytes; copy the file again, or use the part before the cut"
	}
	return e.File + ": the " + e.Layer + " stream is damaged after " + offset + " unpacked bytes (" + e.Err.Error() +
		"); copy the file again, or use the part before the damage"
}

// Nameless returns the error without the trace's name.
func (e *DamageError) Nameless() string {
	nameless := *e
	nameless.File = theTrace
	return nameless.Error()
}

func (e *DamageError) Unwrap() error { return e.Err }

// IsSyntax reports whether err is a [*SyntaxError], after which a reader resumes.
func IsSyntax(err error) bool {
	var s *SyntaxError
	return errors.As(err, &s)
}

// ReadAll reads a whole trace into one batch: for tests and small traces only.
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

// quote shows s in quotes, shortened, with unprintable bytes escaped.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
