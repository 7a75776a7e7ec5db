// Package records reads traces in binary formats. The parser of each format converts windows of a
// byte stream into batches. Package records is the counterpart of package lines for binary formats.
//
// [Reader] passes a [Parser] a window of the stream. The parser converts whole records to rows of a
// batch, until the window is exhausted, the batch is full or a record is invalid. If the window
// contains no whole record, the reader reads more bytes. A stream that ends within a record causes
// a [*trace.DamageError], because an incomplete record is the only sign that a trace in a binary
// format was truncated.
package records

import (
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	// Longest is the maximum length of a record in bytes.
	Longest = 64 << 10

	emptyReads = 100 // maximum number of consecutive reads that return neither a byte nor an error
)

// ErrEndBatch makes a [Reader] end the batch before the current record.
var ErrEndBatch = errors.New("end of the batch")

// Parser reads records of one format.
type Parser interface {
	// Header describes the records read so far.
	Header() trace.Header
	// Begin adds the optional columns that have occurred in the trace so far. The batch has no data
	// yet, and its length is its capacity.
	Begin(b *trace.Batch)
	// Parse reads records of window into b, starting at the given row. Parse returns the length of
	// the records that it has read completely, and the number of rows in b. If not all rows of a
	// record fit into the batch, the record counts as read only when its last row has been written,
	// and the parser remembers its position within the record. If Parse reads nothing although the
	// batch has room, Reader calls Parse again with more bytes. The offset of a *trace.SyntaxError
	// is relative to the window.
	Parse(window []byte, b *trace.Batch, row int) (taken, rows int, err error)
}

// Reader reads a trace in a binary format.
type Reader struct {
	file, layer string // the names of the trace and of the format, for errors
	parser      Parser
	source      io.Reader
	buf         []byte // unread bytes are buf[next:end]
	next, end   int
	offset      int64 // offset of buf[next] in the stream
	late        trace.LateError
	err         error // error at the end of the stream
}

// NewReader returns a reader for the records in r. The parameter "file" is the trace's name in
// errors.
func NewReader(file, format string, r io.Reader, p Parser) *Reader {
	return &Reader{file: file, layer: format, source: r, parser: p, buf: make([]byte, 2*Longest)}
}

// Header describes the part of the trace that has been read.
func (r *Reader) Header() trace.Header { return r.parser.Header() }

// Next implements [trace.Reader].
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
				return rows, nil // the next call returns this error
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
