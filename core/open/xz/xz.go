// Package xz adds xz decompression to package open. The package increases the compressed size of a
// WebAssembly program by 120 KB.
//
// The imported library accepts a file that is truncated between two blocks or within a block's
// header. Package xz therefore checks that the file ends with the magic bytes of a stream footer,
// optionally followed by zeros.
package xz

import (
	"io"

	"github.com/stackglass/stackglass/core/open"
	"github.com/ulikunitz/xz"
)

// Packing is the xz compression.
var Packing = open.Packing{Name: "xz", New: newReader}

// source is the interface of the reader that package open passes to New.
type source interface {
	io.Reader
	io.ByteReader
}

type reader struct {
	*xz.Reader
	end *ending
}

func newReader(r io.Reader) (io.Reader, error) {
	end := &ending{source: r.(source)}
	unpacked, err := xz.NewReader(end)
	return reader{unpacked, end}, err
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && !r.end.isFooter() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// ending is a reader that remembers the last non-zero byte and the byte before it.
type ending struct {
	source source
	before byte // the byte before the last non-zero byte
	last   byte // the last non-zero byte
	latest byte // the last byte of the stream so far
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.source.Read(p)
	end := n // index after the last non-zero byte
	for end > 0 && p[end-1] == 0 {
		end--
	}
	for _, c := range p[max(0, end-2):end] {
		e.add(c)
	}
	if end < n {
		e.latest = 0
	}
	return n, err
}

func (e *ending) ReadByte() (byte, error) {
	c, err := e.source.ReadByte()
	if err == nil {
		e.add(c)
	}
	return c, err
}

func (e *ending) add(c byte) {
	if c != 0 {
		e.before, e.last = e.latest, c
	}
	e.latest = c
}

func (e *ending) isFooter() bool { return e.before == 'Y' && e.last == 'Z' }
