// Package lines turns a stream of bytes into windows of whole text lines, and
// windows into batches. It is what the text formats share.
//
// Parsing a line costs a few nanoseconds, so nothing here is done once a line:
//
//  1. [Buffer.Window] reads as much as the stream gives into one buffer and
//     hands out all lines in it that are whole. Behind them stay [Slack] bytes
//     that may be read but mean nothing, so that a parser may load eight bytes
//     at a time without looking where the window ends: a line's newline stops
//     it first.
//  2. A [Parser] reads lines of a window into rows of a batch until one of the
//     two is used up.
//  3. [Feed] alternates the two and gives the contract of [trace.Reader.Next]:
//     rows come before the error behind them.
//
// A last line without newline counts as a line when the stream ends with
// io.EOF; when it ends with any other error, the stream was broken off there
// and the rest of a line is dropped.
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

// Window gives the lines that are whole and unread, at least one, each with its
// newline. It stays valid until the next call; what was not taken with
// [Buffer.Take] comes again. long tells that it is the beginning of one line of
// more than [Longest] bytes, the rest of which is left out. The error is the stream's.
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

// read adds what one read of the stream gives. It says nothing of an error that
// comes behind bytes.
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

// endLine gives the unread bytes the newline that they lack.
func (b *Buffer) endLine() {
	b.buf[b.end] = '\n'
	b.end++
	b.whole = b.end
}

// dropRest leaves out what belongs to a line that was too long, and tells
// whether its end was found.
func (b *Buffer) dropRest() bool {
	newline := bytes.IndexByte(b.buf[:b.end], '\n')
	if newline < 0 {
		b.end = 0
		return false
	}
	b.end = copy(b.buf, b.buf[newline+1:b.end])
	b.rest = false
	return true
}
