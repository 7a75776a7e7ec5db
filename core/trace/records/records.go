// Package records turns a stream of bytes into batches for formats of binary
// records. It is to them what package lines is to text.
//
//  1. [Feed.Next] hands a [Parser] a window of the stream.
//  2. The parser reads whole records into rows of a batch, until either is used
//     up or a record is wrong; where it stopped, it goes on the next time.
//  3. If nothing of the window is a whole record, more is read. A stream that
//     ends within a record is a [*trace.DamageError]: binary formats have no
//     other way to tell that they were cut.
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

// ErrEndBatch tells a [Feed] to end the batch before the record that was reached.
var ErrEndBatch = errors.New("the batch ends here")

// Parser reads records of one format.
type Parser interface {
	// Begin makes the optional columns of an empty batch present, as far as
	// the trace is known to have them. The batch is as long as it can be.
	Begin(b *trace.Batch)
	// Parse reads records of window, which begins at byte offset of the stream,
	// into b, from row row on. It returns the bytes that it is done with and the
	// number of rows that b holds now. A record that makes more rows than there
	// is room for is taken with its last row; the parser remembers how far it
	// came. Taking nothing where there is room asks for more bytes.
	Parse(window []byte, offset int64, b *trace.Batch, row int) (taken, rows int, err error)
}

// Feed fills batches from a stream by way of a parser.
type Feed struct {
	file, layer string // for messages: the trace's name and the format's
	source      io.Reader
	buf         []byte // unread bytes are buf[next:end]
	next, end   int
	offset      int64 // of buf[next] in the stream
	wrong       error // of the record behind the rows that were delivered
	err         error // what the stream ended with
}

// NewFeed makes a feed of the format's records that r gives; file is for
// messages.
func NewFeed(file, format string, r io.Reader) Feed {
	return Feed{file: file, layer: format, source: r, buf: make([]byte, 2*Longest)}
}

// Next fills b by p as [trace.Reader] says.
func (f *Feed) Next(b *trace.Batch, p Parser) error {
	if b.Cap() == 0 {
		*b = *trace.NewBatch(0)
	}
	b.Reset()
	if err := f.wrong; err != nil {
		f.wrong = nil
		return err
	}
	b.Resize(b.Cap())
	p.Begin(b)
	rows, err := f.fill(b, p)
	b.Resize(rows)
	if rows > 0 {
		f.wrong = err
		return nil
	}
	return err
}

// fill gives the number of rows, and the error behind them if it is known
// already.
func (f *Feed) fill(b *trace.Batch, p Parser) (rows int, err error) {
	for rows < b.Cap() {
		taken, now, err := p.Parse(f.buf[f.next:f.end], f.offset, b, rows)
		f.next, f.offset = f.next+taken, f.offset+int64(taken)
		progress := taken > 0 || now > rows
		if rows = now; err == ErrEndBatch {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if progress {
			continue
		}
		if err := f.read(); err != nil {
			if rows > 0 {
				return rows, nil // it comes again
			}
			return 0, err
		}
	}
	return rows, nil
}

// read adds what one read of the stream gives.
func (f *Feed) read() error {
	if f.next > 0 {
		f.end = copy(f.buf, f.buf[f.next:f.end])
		f.next = 0
	}
	for range emptyReads {
		if f.err != nil {
			return f.ending()
		}
		n, err := f.source.Read(f.buf[f.end:])
		f.end, f.err = f.end+n, err
		if n > 0 {
			return nil
		}
	}
	f.err = io.ErrNoProgress
	return f.err
}

// ending is the error that the trace ends with.
func (f *Feed) ending() error {
	if f.err == io.EOF && f.end > f.next {
		return &trace.DamageError{File: f.file, Layer: f.layer, Offset: f.offset, Cut: true, Err: io.ErrUnexpectedEOF}
	}
	return f.err
}
