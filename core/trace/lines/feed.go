package lines

import (
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// ErrEndBatch tells a [Feed] to end the batch before the line that was reached.
var ErrEndBatch = errors.New("the batch ends here")

// Parser reads lines of one format.
type Parser interface {
	// Begin makes the optional columns of an empty batch present, as far as
	// the trace is known to have them. The batch is as long as it can be.
	Begin(b *trace.Batch)
	// Parse reads lines of window into b, from row row on, until either is
	// used up or a line is wrong. It returns the bytes that it read, the wrong
	// line among them, and the number of rows that b holds now. The window may
	// be read up to Slack bytes behind its end. long: it is the beginning of
	// one line of more than Longest bytes.
	Parse(window []byte, long bool, b *trace.Batch, row int) (taken, rows int, err error)
	// End completes the columns of the first rows rows.
	End(b *trace.Batch, rows int)
}

// Feed fills batches from a stream by way of a parser.
type Feed struct {
	buffer *Buffer
	wrong  error // of the line behind the rows that were delivered
}

// NewFeed makes a feed that reads r.
func NewFeed(r io.Reader) Feed { return Feed{buffer: NewBuffer(r)} }

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
	p.End(b, rows)
	b.Resize(rows)
	if rows > 0 {
		f.wrong = err
		return nil
	}
	return err
}

// fill gives the number of rows, and the error of the line behind them if that
// is known already.
func (f *Feed) fill(b *trace.Batch, p Parser) (rows int, err error) {
	for rows < b.Cap() {
		window, long, err := f.buffer.Window()
		if err != nil {
			if rows > 0 {
				return rows, nil // the buffer gives it again
			}
			return 0, err
		}
		var taken int
		taken, rows, err = p.Parse(window, long, b, rows)
		f.buffer.Take(taken)
		if err == ErrEndBatch && rows > 0 {
			return rows, nil
		}
		if err != nil && err != ErrEndBatch {
			return rows, err
		}
	}
	return rows, nil
}
