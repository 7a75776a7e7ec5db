package open

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// Packing is one way in which a stream can be compressed.
type Packing struct {
	Name string // as in messages: "lz4", "gzip", "zstd", "xz"
	// New unpacks r, which is also an io.ByteReader. A stream that ends too
	// early must end in an error of which io.ErrUnexpectedEOF is one. Errors are
	// taken for damage, unless they are r's or an [*UnpackerError].
	New func(r io.Reader) (io.Reader, error)
}

// builtin are the packings that every program reads.
var builtin = []Packing{
	{Name: "lz4", New: newLZ4},
}

// magics tell packings by their first bytes, those that are not read included.
var magics = []struct{ magic, packing, unpack string }{
	{"\x04\x22\x4d\x18", "lz4", "lz4 -d"},
	{"\x02\x21\x4c\x18", "lz4", "lz4 -d"},
	{"\x1f\x8b", "gzip", "gzip -d"},
	{"\x28\xb5\x2f\xfd", "zstd", "zstd -d"},
	{"\xfd7zXZ\x00", "xz", "xz -d"},
}

// packingOf gives what a stream that begins with head is packed in, or nil.
func packingOf(file string, head []byte, more []Packing) (*Packing, error) {
	name, unpack := magicOf(head)
	if name == "" {
		return nil, nil
	}
	for _, list := range [][]Packing{builtin, more} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
		}
	}
	return nil, &PackingError{File: file, Packing: name, Unpack: unpack}
}

// magicOf gives the packing that head begins with, and the command for it. LZ4
// and zstd may begin with skippable frames of the same form, so that the first
// other frame tells them apart; where it is out of sight it is taken for LZ4.
func magicOf(head []byte) (name, unpack string) {
	rest, skipped := head, false
	for len(rest) >= 8 && isSkippable(binary.LittleEndian.Uint32(rest)) {
		length := uint64(binary.LittleEndian.Uint32(rest[4:]))
		rest, skipped = rest[8:], true
		rest = rest[min(uint64(len(rest)), length):]
	}
	for _, m := range magics {
		if len(rest) >= len(m.magic) && string(rest[:len(m.magic)]) == m.magic {
			return m.packing, m.unpack
		}
	}
	if skipped {
		return "lz4", "lz4 -d"
	}
	return "", ""
}

// isSkippable tells whether magic begins one of the sixteen skippable frames.
func isSkippable(magic uint32) bool { return magic&^0xf == 0x184d2a50 }

// origin is the reader that a caller gave. It keeps its error, so that this is
// not taken for one of the packed bytes.
type origin struct {
	reader io.Reader
	watch  func() error // [Options.Watch]
	err    error
}

// goOn asks whether to; the error is kept like the reader's.
func (o *origin) goOn() error {
	if o.watch == nil {
		return nil
	}
	err := o.watch()
	if err != nil {
		o.err = err
	}
	return err
}

func (o *origin) Read(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	if err := o.goOn(); err != nil {
		return 0, err
	}
	n, err := o.reader.Read(p)
	o.err = err
	return n, err
}

// layer unpacks one packing and says what broke where.
type layer struct {
	file     string
	packing  Packing
	packed   io.Reader
	source   *origin
	unpacked io.Reader // nil: not begun
	bytes    int64
	err      error // what the layer ended with
}

func newLayer(file string, p Packing, packed io.Reader, source *origin) *layer {
	return &layer{file: file, packing: p, packed: packed, source: source}
}

// Read gives whatever could be unpacked before an error.
func (l *layer) Read(p []byte) (n int, err error) {
	if l.err != nil {
		return 0, l.err
	}
	if l.err = l.source.goOn(); l.err != nil {
		return 0, l.err
	}
	if l.unpacked == nil {
		l.unpacked, err = l.packing.New(l.packed)
	}
	if err == nil {
		n, err = l.unpacked.Read(p)
	}
	l.bytes += int64(n)
	l.err = l.classify(err)
	return n, l.err
}

// classify makes an error of the unpacker one of the trace.
func (l *layer) classify(err error) error {
	if err == nil || err == io.EOF && l.unpacked != nil {
		return err
	}
	if l.source.err != nil && l.source.err != io.EOF {
		return l.source.err
	}
	var damage *trace.DamageError
	if errors.As(err, &damage) {
		return damage
	}
	var unpacker *UnpackerError
	if errors.As(err, &unpacker) {
		return l.name(unpacker)
	}
	cut := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	return &trace.DamageError{File: l.file, Layer: l.packing.Name, Offset: l.bytes, Cut: cut, Err: err}
}

// name completes an error of the unpacker, unless a packing further out has.
func (l *layer) name(e *UnpackerError) error {
	if e.File != "" {
		return e
	}
	return &UnpackerError{File: l.file, Packing: l.packing.Name, Err: e.Err}
}
