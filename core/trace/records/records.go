// Package records reads traces of binary formats: a format's parser turns windows of a stream of
// bytes into batches. It does for binary formats what package lines does for text.
//
// [Reader] passes a [Parser] a window of the stream. The parser reads whole records into rows of a
// batch until either is used up or a record is wrong. If the window has no whole record, more is
// read. A stream that ends within a record is a [*trace.DamageError]: binary formats have no other
// sign that they were cut.
package records

import (
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	// Longest is the number of bytes that a record may have.
	Longest = 64 << 10

	emptyReads = 100 // reads without a byte or an error before giving up
)

// ErrEndBatch makes a [Reader] end the batch before the current record.
var ErrEndBatch = errors.New("the batch ends here")

// Parser reads records of one format.
type Parser interface {
	// Header describes the records read so far.
	Header() trace.Header
	// Begin adds the optional columns that the trace is known to have to an empty batch,
	// which is as long as it can be.
	Begin(b *trace.Batch)
	// Parse reads records of window into b, from row on, and returns the number of bytes that it no longer
	// needs and the number of rows in b. A record with more rows than fit is taken with its last row; the
	// parser remembers its position in it. If it takes nothing although there is room, it gets more bytes.
	// A *trace.SyntaxError has the offset of its record in the window.
	Parse(window []byte, b *trace.Batch, row int) (taken, rows int, err error)
}

// Reader reads a trace of a binary format.
type Reader struct {
	file, layer string // for errors: the trace's name and the format's
	parser      Parser
	source      io.Reader
	buf         []byte // unread bytes are buf[next:end]
	next, end   int
	offset      int64 // of buf[next] in the stream
	late        trace.LateError
	err         error // of the stream's end
}

// NewReader returns a reader of the records of r; file is the trace's name in errors.
func NewReader(file, format string, r io.Reader, p Parser) *Reader {
	return &Reader{file: file, layer: format, source: r, parser: p, buf: make([]byte, 2*Longest)}
}

// Header describes the trace as far as it was read.
func (r *Reader) Header() trace.Header { return r.parser.Header() }

// Next fills b as [trace.Reader] says.
func (r *Reader) Next(b *trace.Batch) error { return r.late.Next(b, r) }

// Begin implements [trace.Filler].
func (r *Reader) Begin(b *trace.Batch) { r.parser.Begin(b) }

// Fill implements [trace.Filler].
func (r *Reader) Fill(b *trace.Batch) (rows int, err error) {
	for rows < b.Cap() {
		taken, now, err := r.parser.Parse(r.buf[r.next:r.end], b, rows)
		if wrong, ok := err.(*trace.SyntaxError); ok {
			wrong.File, wrong.Offset = r.file, r.offset+wrong.Offset
		}
		r.next, r.offset = r.next+taken, r.offset+int64(taken)
		progress := taken > 0 || now > rows
		if rows = now; err == ErrEndBatch {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if progress {
			continue
		}
		if err := r.read(); err != nil {
			if rows > 0 {
				return rows, nil // the next call returns the error
			}
			return 0, err
		}
	}
	return rows, nil
}

// read adds the bytes of one read of the stream.
func (r *Reader) read() error {
	r.end = copy(r.buf, r.buf[r.next:r.end])
	r.next = 0
	for range emptyReads {
		if r.err == io.EOF && r.end > 0 {
			return &trace.DamageError{File: r.file, Layer: r.layer, Offset: r.offset, Cut: true, Err: io.ErrUnexpectedEOF}
		}
		if r.err != nil {
			return r.err
		}
		n, err := r.source.Read(r.buf[r.end:])
		r.end, r.err = r.end+n, err
		if n > 0 {
			return nil
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}
