package trace

import (
	"errors"
	"io"
	"strconv"
)

// Reader yields a trace in batches.
type Reader interface {
	// Next empties b and fills it with the next rows, in trace order. It
	// allocates nothing in steady state.
	//
	// With any error the batch is empty: rows before the error were delivered
	// by the call before. io.EOF ends a whole trace. A *SyntaxError reports one
	// record; the next call goes on behind it. Every other error is final and
	// will be returned again.
	Next(b *Batch) error
}

// Header is what a reader can tell of its trace besides the references. Facts
// become known while reading, so ask at the end.
type Header struct {
	Format  string // the format's name, as for --input-format: "lackey", "din", ...
	Threads bool   // records carry thread numbers
	PCs     bool   // data records carry the instruction's address
	Sizes   bool   // records carry the number of bytes
	Sites   bool   // rows carry their site
	// Sliced: the references of several threads are in order only from one slice of
	// time to the next. Within one, nobody knows which thread came first.
	Sliced bool

	// Program is what the capture tells of the program; nil where the format
	// tells nothing. It only grows: numbers keep their meaning.
	Program *Program
	// Capture are facts about how the trace was made, in the order in which the
	// capture tool wrote them.
	Capture []Fact
}

// Fact is one thing that a capture tool says of a trace.
type Fact struct{ Name, Value string }

// LeftOutFact is the name of the fact by which a reader says which records of a trace
// are no references.
const LeftOutFact = "left out"

// LeftOut is the value of that fact; "" if there is none.
func (h *Header) LeftOut() string {
	for _, f := range h.Capture {
		if f.Name == LeftOutFact {
			return f.Value
		}
	}
	return ""
}

// Join adds the facts that another part of the same trace made known.
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

// Selector is a [Reader] that can tell more than references. Select names the
// kinds of rows that it shall give, before the first Next; a reader that is not
// asked gives references only.
type Selector interface{ Select(Kinds) }

// Position is somewhere between two rows of a trace that is stored in chunks: so many
// rows behind the beginning of one. How many rows a chunk has hangs on the kinds that
// the reader was asked for.
type Position struct {
	Chunk uint64 // offset of the chunk in the file; [AtEnd]: behind all
	Rows  uint64
}

// Before tells whether p comes before another position, with rows of the same kinds.
func (p Position) Before(other Position) bool {
	return p.Chunk < other.Chunk || p.Chunk == other.Chunk && p.Rows < other.Rows
}

// AtEnd is the chunk of the position behind all rows.
const AtEnd = ^uint64(0)

// Chunk is a part of a trace that can be read without those before it.
type Chunk struct {
	At         uint64 // its offset in the file
	References uint64 // in it
}

// Outline is what an index says about a whole trace before it is read.
type Outline struct {
	References uint64 // of all kinds
	Threads    int    // threads that make references
}

// Source is a trace that can be read from several positions at the same time, so that
// several workers share it.
type Source interface {
	// Chunks lists the chunks in the order of the trace; nil: it cannot be shared.
	Chunks() []Chunk
	// Kinds are those of all rows that the trace may have.
	Kinds() Kinds
	// Open makes a reader of the rows of these kinds from the beginning of a chunk on.
	// Such readers may be used at the same time.
	Open(chunk uint64, kinds Kinds) Mover
	// Agrees tells whether another reader of the same trace, which has come to a chunk,
	// was told the same before it as one that Open makes.
	Agrees(r Mover, chunk uint64) bool
}

// Mover is a [Reader] of a trace in chunks.
type Mover interface {
	Reader
	Describer
	// Position is behind the rows that were given. Batches hold rows of one chunk.
	Position() Position
	// Until has Next give rows up to a position, and then [ErrThere], until it is called
	// with another one. It is no position that was passed.
	Until(Position)
	// Pass moves on to the beginning of a chunk, or to the end, and decodes nothing. The
	// error is one that Next gives, or [ErrNotThere].
	Pass(chunk uint64) error
}

// ErrThere tells that a reader has come to where it shall stop.
var ErrThere = errors.New("the position to stop at is reached")

// ErrNotThere tells that a trace has no such position any more.
var ErrNotThere = errors.New("the file is not the same any more as a moment ago: it was changed while it was read")

// SyntaxError is one record that does not follow its format. The reader goes on
// behind it.
type SyntaxError struct {
	File   string // the trace's name
	Line   int    // line, from 1, in text formats; 0 in binary ones
	Offset int64  // byte offset of the record in the unpacked stream, in binary formats
	What   string // the field or record that is wrong: "label", "address", "line"
	Got    string // what stands there, shortened
	Want   string // what the format expects there
}

func (e *SyntaxError) Error() string {
	where := ":" + strconv.Itoa(e.Line)
	if e.Line == 0 {
		where = " at byte " + strconv.FormatInt(e.Offset, 10)
	}
	return e.File + where + ": " + e.What + " " + quote(e.Got) + ", want " + e.Want
}

// Nameless is the error without the trace's name.
func (e *SyntaxError) Nameless() string {
	nameless := *e
	nameless.File = theTrace
	return nameless.Error()
}

const theTrace = "the trace"

// ErrCutShort is the Err of a [DamageError] about a trace that ends without the record of
// how the run ended, as when the recorder was killed.
var ErrCutShort = errors.New("the recorder was killed, or only a part of the file was copied")

// DamageError tells that the stream itself broke: it was cut off, or a checksum
// or a packed block is wrong. Rows before the damage were delivered.
type DamageError struct {
	File   string // the trace's name
	Layer  string // what broke: "lz4", "gzip", "zstd", "xz", or the format's name
	Offset int64  // bytes delivered by the layer before it broke
	Cut    bool   // the stream ends too early; false: its bytes are wrong
	Err    error  // what the layer said
}

func (e *DamageError) Error() string {
	at := " after " + strconv.FormatInt(e.Offset, 10) + " unpacked bytes"
	if e.Err == ErrCutShort {
		return e.File + " is cut short after " + strconv.FormatInt(e.Offset, 10) +
			" bytes: the recorder was killed, or only a part of the file was copied; everything up to there can be read"
	}
	if e.Cut {
		return e.File + ": the " + e.Layer + " stream is cut off" + at +
			"; copy the file again, or use what was read before the cut"
	}
	return e.File + ": the " + e.Layer + " stream is damaged" + at + " (" + e.Err.Error() +
		"); copy the file again, or use what was read before the damage"
}

// Nameless is the error without the trace's name.
func (e *DamageError) Nameless() string {
	nameless := *e
	nameless.File = theTrace
	return nameless.Error()
}

func (e *DamageError) Unwrap() error { return e.Err }

// IsSyntax reports whether err is a [*SyntaxError], after which a reader goes
// on.
func IsSyntax(err error) bool {
	var s *SyntaxError
	return errors.As(err, &s)
}

// ReadAll drains r into one batch that holds the whole trace: for tests and
// small traces only.
func ReadAll(r Reader) (*Batch, error) {
	whole, b := &Batch{}, NewBatch(0)
	for {
		if err := r.Next(b); err == io.EOF {
			return whole, nil
		} else if err != nil {
			return whole, err
		}
		whole.appendRows(b)
	}
}

// appendRows adds the rows of other; columns that only one of both has get
// zeros.
func (b *Batch) appendRows(other *Batch) {
	before := b.Len()
	b.Addr = append(b.Addr, other.Addr...)
	b.Bytes = append(b.Bytes, other.Bytes...)
	b.Kind = append(b.Kind, other.Kind...)
	b.Thread = extend(b.Thread, other.Thread, before, b.Len())
	b.PC = extend(b.PC, other.PC, before, b.Len())
	b.Site = extend(b.Site, other.Site, before, b.Len())
	b.Arg = extend(b.Arg, other.Arg, before, b.Len())
}

func extend[T any](column, more []T, before, after int) []T {
	if column == nil && more == nil {
		return nil
	}
	if column == nil {
		column = make([]T, before)
	}
	if more == nil {
		more = make([]T, after-before)
	}
	return append(column, more...)
}

// quote shows s in quotes, shortened, with unprintable bytes escaped.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
