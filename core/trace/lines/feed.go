package lines

import (
	"errors"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// ErrEndBatch makes a [Reader] end the batch before the current line.
var ErrEndBatch = errors.New("the batch ends here")

// Parser reads lines of one format.
type Parser interface {
	// Header describes the lines read so far.
	Header() trace.Header
	// Begin adds the optional columns that the trace is known to have to an empty batch,
	// which is as long as it can be.
	Begin(b *trace.Batch)
	// Parse reads lines of window into b, from row on, until the window is read, b is full or a line is
	// wrong. It returns the number of bytes and lines read, the wrong line included, and the number of rows
	// in b. A *trace.SyntaxError concerns the last line read and gets its place; other errors are final.
	// The window has Slack bytes behind its end that may be read.
	Parse(window []byte, b *trace.Batch, row int) (taken, lines, rows int, err error)
}

// longSkipper is a [Parser] that knows lines without references by their beginning.
type longSkipper interface{ Skips(line []byte) bool }

// Reader reads a trace of a text format.
type Reader struct {
	buffer *Buffer
	parser Parser
	file   string
	line   int
	late   trace.LateError
}

// NewReader returns a reader of the text of r; file is the trace's name in errors.
func NewReader(file string, r io.Reader, p Parser) *Reader {
	return &Reader{buffer: NewBuffer(r), parser: p, file: file}
}

// Lines is the number of lines read.
func (r *Reader) Lines() int { return r.line }

// Header describes the trace as far as it was read.
func (r *Reader) Header() trace.Header { return r.parser.Header() }

// Next fills b as [trace.Reader] says.
func (r *Reader) Next(b *trace.Batch) error { return r.late.Next(b, r) }

// Begin implements [trace.Filler].
func (r *Reader) Begin(b *trace.Batch) { r.parser.Begin(b) }

// Fill implements [trace.Filler].
func (r *Reader) Fill(b *trace.Batch) (rows int, err error) {
	for rows < b.Cap() {
		window, long, err := r.buffer.Window()
		if err != nil {
			if rows > 0 {
				return rows, nil // the buffer returns the error again
			}
			return 0, err
		}
		var taken, lines int
		if long {
			taken, lines, err = len(window), 1, r.tooLong(window)
		} else {
			taken, lines, rows, err = r.parser.Parse(window, b, rows)
		}
		r.buffer.Take(taken)
		r.line += lines
		if err == ErrEndBatch && rows > 0 {
			return rows, nil
		}
		if err != nil && err != ErrEndBatch {
			if placed, ok := err.(interface{ SetPlace(file string, line int) }); ok {
				placed.SetPlace(r.file, r.line)
			}
			return rows, err
		}
	}
	return rows, nil
}

// tooLong returns the error for a line of more than [Longest] bytes, nil if the format skips it.
func (r *Reader) tooLong(start []byte) error {
	if s, ok := r.parser.(longSkipper); ok && s.Skips(start) {
		return nil
	}
	return Wrong("line", start, "at most "+strconv.Itoa(Longest)+" bytes")
}
