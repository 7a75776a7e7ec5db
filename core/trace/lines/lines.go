// Package lines reads traces of text formats: it cuts a stream of bytes into windows of whole
// lines, and a format's parser turns windows into batches.
//
// Parsing a line costs a few nanoseconds, so nothing here is done once a line:
//
//  1. [Buffer.Window] reads as much as the stream gives into one buffer and returns all whole
//     lines in it. [Slack] meaningless bytes follow them, so that a parser may load eight bytes
//     at a time without looking where the window ends: a line's newline stops it first.
//  2. A [Parser] reads lines of a window into rows of a batch until either is used up.
//  3. [Reader] alternates the two and implements [trace.Reader].
//
// A last line without newline is a line if the stream ends with io.EOF. If it ends with any
// other error, the incomplete line is dropped.
package lines

import (
	"bytes"
	"io"
)

const (
	// Longest is the number of bytes that a line may have, its end left out.
	Longest = 128<<10 - Slack - 2
	// Slack is the number of bytes behind a window that may be read.
	Slack = 64

	emptyReads = 100 // reads without a byte or an error before giving up
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// Buffer cuts a stream into windows of whole lines.
type Buffer struct {
	source io.Reader
	buf    []byte // unread bytes are buf[next:end]; lines in buf[next:whole] are whole
	next   int
	whole  int
	end    int
	begun  bool  // a window was handed out
	long   bool  // the window is the beginning of one line of more than Longest bytes
	rest   bool  // what comes next is the rest of that line
	err    error // what the stream ended with
}

// NewBuffer makes a buffer that reads r.
func NewBuffer(r io.Reader) *Buffer {
	return &Buffer{source: r, buf: make([]byte, Longest+2+Slack)}
}

// Window returns the whole unread lines, at least one, each with its newline. It is valid until the next
// call, which returns again what was not taken with [Buffer.Take]. If long, the window is the beginning of
// one line of more than [Longest] bytes; the rest of it is dropped. The error is the stream's.
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

// fill reads until a line is whole.
func (b *Buffer) fill() error {
	b.long = false
	b.end = copy(b.buf, b.buf[b.next:b.end])
	b.next, b.whole = 0, 0
	for {
		searched := b.end // nothing before it ends a line; 0 while the rest of a line is dropped
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

// read adds the bytes of one read of the stream. It keeps an error behind bytes for later.
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

// endLine adds the missing newline behind the unread bytes.
func (b *Buffer) endLine() {
	b.buf[b.end] = '\n'
	b.end++
	b.whole = b.end
}

// dropRest drops bytes of a line that was too long, and reports whether its end was found.
func (b *Buffer) dropRest() bool {
	_, after, found := bytes.Cut(b.buf[:b.end], []byte("\n"))
	b.end = copy(b.buf, after)
	b.rest = !found
	return found
}
