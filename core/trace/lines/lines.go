// Package lines reads traces in text formats. The package divides a stream of bytes into windows of
// whole lines, and the parser of a format converts windows into batches.
//
// Parsing a line takes only a few nanoseconds, so this package does not process lines individually:
//
//  1. [Buffer.Window] fills a buffer with the bytes that the stream delivers, and returns all whole
//     lines in the buffer. The lines are followed by [Slack] bytes of padding, whose values do not
//     matter. A parser can therefore load eight bytes at a time without checking for the end of the
//     window, because the newline at the end of the last line stops the parser.
//  2. A [Parser] reads lines of a window into rows of a batch, until the window ends or the batch
//     is full.
//  3. [Reader] alternates between the buffer and the parser, and implements [trace.Reader].
//
// If the stream ends with io.EOF, a last line without a newline counts as a line. If the stream
// ends with any other error, the incomplete line is dropped.
package lines

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	// Longest is the maximum length of a line in bytes, excluding the newline.
	Longest = 128<<10 - Slack - 2
	// Slack is the number of bytes after a window that a parser may read. The parser must not use the
	// values of these bytes.
	Slack = 64

	emptyReads = 100 // maximum number of consecutive reads that return neither a byte nor an error
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// Buffer divides a stream into windows of whole lines.
type Buffer struct {
	source io.Reader
	buf    []byte // buf[next:end] contains the unread bytes, of which buf[next:whole] are whole lines
	next   int
	whole  int
	end    int
	begun  bool  // whether Window has returned a window
	long   bool  // whether the window is the start of a line of more than Longest bytes
	rest   bool  // whether the next bytes belong to a line that was too long
	err    error // the stream's error, which is returned after the unread bytes
}

// NewBuffer returns a buffer that reads from r.
func NewBuffer(r io.Reader) *Buffer {
	return &Buffer{source: r, buf: make([]byte, Longest+2+Slack)}
}

// Window returns one or more unread lines, each with its newline. The window is valid until the
// next call of Window. The next window begins with the lines that [Buffer.Take] has not marked as
// read. If the result "long" is true, the window is the beginning of a line of more than [Longest]
// bytes, and the rest of that line is dropped. The error is the error of the stream.
func (b *Buffer) Window() (window []byte, long bool, err error) {
	if b.next == b.whole {
		if err := b.fill(); err != nil {
			return nil, false, err
		}
		if !b.begun {
			b.begun = true
			if bytes.HasPrefix(b.buf[b.next:b.whole], byteOrderMark) {
				b.next += len(byteOrderMark)
			}
		}
	}
	return b.buf[b.next:b.whole], b.long, nil
}

// Take marks the first n bytes of the window as read.
func (b *Buffer) Take(n int) { b.next += n }

// fill reads until the buffer contains a whole line.
func (b *Buffer) fill() error {
	b.long = false
	b.end = copy(b.buf, b.buf[b.next:b.end])
	b.next, b.whole = 0, 0
	for {
		searched := b.end // index at which the search for a newline begins
		if err := b.read(); err != nil {
			return err
		}
		if b.rest && !b.dropRest() {
			continue
		}
		if newline := bytes.LastIndexByte(b.buf[searched:b.end], '\n'); newline >= 0 {
			b.whole = searched + newline + 1
			return nil
		}
		switch {
		case b.end > Longest:
			b.long, b.rest = true, true
			b.endLine()
			return nil
		case b.err == io.EOF && b.end > 0:
			b.endLine()
			return nil
		case b.err != nil:
			return b.err
		}
	}
}

// read adds the bytes of one read of the stream. If the stream returns bytes together with an
// error, read stores the error, and the buffer returns it after these bytes.
func (b *Buffer) read() error {
	for range emptyReads {
		if b.err != nil {
			if b.end == 0 {
				return b.err
			}
			return nil
		}
		n, err := b.source.Read(b.buf[b.end : Longest+1])
		b.end += n
		b.err = err
		if n > 0 {
			return nil
		}
	}
	if b.err == nil {
		b.err = io.ErrNoProgress
	}
	return nil
}

// endLine adds the missing newline of the last line.
func (b *Buffer) endLine() {
	b.buf[b.end] = '\n'
	b.end++
	b.whole = b.end
}

// dropRest discards unread bytes of a line that is too long, and reports whether it found the end
// of the line.
func (b *Buffer) dropRest() bool {
	_, after, found := bytes.Cut(b.buf[:b.end], []byte("\n"))
	b.end = copy(b.buf, after)
	b.rest = !found
	return found
}

// ErrEndBatch makes a [Reader] end the batch before the current line.
var ErrEndBatch = errors.New("end of the batch")

// Parser reads lines of one format.
type Parser interface {
	// Header describes the lines read so far.
	Header() trace.Header
	// Begin adds the optional columns that have occurred in the trace so far. The batch has no data
	// yet, and its length is its capacity.
	Begin(b *trace.Batch)
	// Parse reads lines of window into b, starting at the given row, until the window is exhausted,
	// the batch is full, or a line is invalid. Parse returns the numbers of bytes and lines read,
	// including the invalid line, and the number of rows in b. A *trace.SyntaxError refers to the last
	// line read, and the reader adds its position. All other errors end the trace. Parse may read
	// Slack bytes after the window.
	Parse(window []byte, b *trace.Batch, row int) (taken, lines, rows int, err error)
}

// longSkipper is a [Parser] that can detect from the beginning of a long line that the line
// contains no reference.
type longSkipper interface{ Skips(line []byte) bool }

// Reader reads a trace in a text format.
type Reader struct {
	buffer *Buffer
	parser Parser
	file   string
	line   int
	late   trace.LateError
}

// NewReader returns a reader for the text in r. The parameter "file" is the trace's name in errors.
func NewReader(file string, r io.Reader, p Parser) *Reader {
	return &Reader{buffer: NewBuffer(r), parser: p, file: file}
}

// Lines returns the number of lines read.
func (r *Reader) Lines() int { return r.line }

// Header describes the part of the trace that has been read.
func (r *Reader) Header() trace.Header { return r.parser.Header() }

// Next implements [trace.Reader].
func (r *Reader) Next(b *trace.Batch) error { return r.late.Next(b, r) }

// Begin implements [trace.Filler].
func (r *Reader) Begin(b *trace.Batch) { r.parser.Begin(b) }

// Fill implements [trace.Filler].
func (r *Reader) Fill(b *trace.Batch) (rows int, err error) {
	for rows < b.Cap() {
		window, long, err := r.buffer.Window()
		if err != nil {
			if rows > 0 {
				return rows, nil // the buffer will return this error again
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

// tooLong returns the error for a line of more than [Longest] bytes, or nil if the format skips the
// line.
func (r *Reader) tooLong(start []byte) error {
	if s, ok := r.parser.(longSkipper); ok && s.Skips(start) {
		return nil
	}
	return Wrong("line", start, "at most "+strconv.Itoa(Longest)+" bytes")
}
