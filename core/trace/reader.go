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
}

// Join adds the facts that another part of the same trace made known.
func (h *Header) Join(other Header) {
	if h.Format == "" {
		h.Format = other.Format
	}
	h.Threads = h.Threads || other.Threads
	h.PCs = h.PCs || other.PCs
	h.Sizes = h.Sizes || other.Sizes
}

// Describer is a [Reader] that knows its [Header].
type Describer interface{ Header() Header }

// Source is a trace that can be read in spans, so that several workers share
// it. Span i covers the references before span i+1; a reader of a span starts
// at its first reference.
type Source interface {
	Spans() int
	Open(span int) (Reader, error)
}

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
		if b.Thread != nil && whole.Thread == nil {
			whole.Thread = make([]uint32, whole.Len())
		}
		if b.PC != nil && whole.PC == nil {
			whole.PC = make([]Addr, whole.Len())
		}
		for i := range b.Addr {
			var thread uint32
			var pc Addr
			if b.Thread != nil {
				thread = b.Thread[i]
			}
			if b.PC != nil {
				pc = b.PC[i]
			}
			whole.Append(b.Kind[i], b.Addr[i], b.Bytes[i], thread, pc)
		}
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
