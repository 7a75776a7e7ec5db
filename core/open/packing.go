package open

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// Packing is a compression format.
type Packing struct {
	Name string // "lz4", "gzip", "zstd", "xz", "zip" or "snappy"
	// New returns a reader that decompresses r. The reader r also implements io.ByteReader. If the
	// stream ends too early, the error must be io.ErrUnexpectedEOF. All other errors are treated as
	// damage, except errors of r and an [*UnpackerError].
	New func(r io.Reader) (io.Reader, error)
}

// builtin is the compression format that every program supports.
var builtin = Packing{Name: "lz4", New: newLZ4}

// magics lists the first bytes of compressed files, including formats that may not be supported.
var magics = []struct{ magic, packing, unpack string }{
	{"\x04\x22\x4d\x18", "lz4", "lz4 -d"},
	{"\x02\x21\x4c\x18", "lz4", "lz4 -d"},
	{"\x1f\x8b", "gzip", "gzip -d"},
	{"\x28\xb5\x2f\xfd", "zstd", "zstd -d"},
	{"\xfd7zXZ\x00", "xz", "xz -d"},
	{"PK\x03\x04", "zip", "unzip -p"},
	{"\xff\x06\x00\x00", "snappy", "snzip -d"},
}

// packingOf returns the compression format of a stream that begins with head, or nil if the stream
// is not compressed.
func packingOf(file string, head []byte, more []Packing) (*Packing, error) {
	name, unpack := magicOf(head)
	if name == "" {
		return nil, nil
	}
	if name == builtin.Name {
		return &builtin, nil
	}
	if i := slices.IndexFunc(more, func(p Packing) bool { return p.Name == name }); i >= 0 {
		return &more[i], nil
	}
	return nil, &PackingError{File: file, Packing: name, Unpack: unpack}
}

// magicOf detects the compression format from the magic number at the beginning of head. magicOf
// returns the format's name and the command that decompresses it. Both LZ4 and zstd files may begin
// with skippable frames, so the first frame that is not skippable determines the format. If head
// does not contain such a frame, the format is assumed to be LZ4.
func magicOf(head []byte) (name, unpack string) {
	rest, skipped := head, false
	for len(rest) >= 8 && isSkippable(binary.LittleEndian.Uint32(rest)) {
		length := uint64(binary.LittleEndian.Uint32(rest[4:]))
		rest, skipped = rest[8:], true
		rest = rest[min(uint64(len(rest)), length):]
	}
	for _, m := range magics {
		if bytes.HasPrefix(rest, []byte(m.magic)) {
			return m.packing, m.unpack
		}
	}
	if skipped {
		return "lz4", "lz4 -d"
	}
	return "", ""
}

// isSkippable reports whether magic is one of the sixteen magic numbers of skippable frames.
func isSkippable(magic uint32) bool { return magic&^0xf == 0x184d2a50 }

// origin wraps the caller's reader, and stores the reader's error to distinguish this error from an
// error of the decompression.
type origin struct {
	reader io.Reader
	watch  func() error // the function [Options.Watch]
	err    error
}

// proceed calls watch, and treats an error of watch as a read error.
func (o *origin) proceed() error {
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
	if err := o.proceed(); err != nil {
		return 0, err
	}
	n, err := o.reader.Read(p)
	o.err = err
	return n, err
}

// layer is a reader that decompresses one compression format, and reports the kind and the position
// of damage.
type layer struct {
	file     string
	packing  Packing
	packed   io.Reader
	source   *origin
	unpacked io.Reader // nil before the first Read
	bytes    int64
	err      error // the error at which reading ended
}

// Read returns all bytes that could be decompressed before an error.
func (l *layer) Read(p []byte) (n int, err error) {
	if l.err != nil {
		return 0, l.err
	}
	if l.err = l.source.proceed(); l.err != nil {
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

// classify converts an error of the decompressor to the error that the trace returns.
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
		if unpacker.File != "" { // an inner layer of compression has already set the error's fields
			return unpacker
		}
		return &UnpackerError{File: l.file, Packing: l.packing.Name, Err: unpacker.Err}
	}
	cut := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	return &trace.DamageError{File: l.file, Layer: l.packing.Name, Offset: l.bytes, Cut: cut, Err: err}
}

// lz4Reader decompresses a file of LZ4 frames. The library reads one frame after the other,
// including skippable and legacy frames. However, a legacy frame has no end mark, so the library
// misinterprets the magic number of the next frame as the size of a block, and fails. Since the
// library never reads ahead, a new reader can resume at the next frame.
type lz4Reader struct {
	frames *lz4.Reader
	packed *lastWord
}

// newLZ4 returns a reader that decompresses in the caller's goroutine. Additional goroutines would
// not help: in the browser, there is only one thread, and in native programs, parsing takes longer
// than decompression.
func newLZ4(r io.Reader) (io.Reader, error) {
	z := &lz4Reader{packed: &lastWord{reader: r}}
	return z, z.begin(z.packed)
}

func (z *lz4Reader) begin(r io.Reader) error {
	z.frames = lz4.NewReader(r)
	return z.frames.Apply(lz4.ConcurrencyOption(1))
}

func (z *lz4Reader) Read(p []byte) (int, error) {
	for {
		n, err := z.frames.Read(p)
		if !errors.Is(err, lz4.ErrOptionInvalidBlockSize) || !z.packed.isMagic() {
			return n, err
		}
		z.packed.again = bytes.Clone(z.packed.word[:])
		if err := z.begin(z.packed); err != nil || n > 0 {
			return n, err
		}
	}
}

// lastWord is a reader that remembers the last four bytes that were read.
type lastWord struct {
	reader io.Reader
	word   [4]byte
	again  []byte // bytes that are returned before more bytes are read
}

func (l *lastWord) Read(p []byte) (int, error) {
	if len(l.again) > 0 {
		n := copy(p, l.again)
		l.again = l.again[n:]
		return n, nil
	}
	n, err := l.reader.Read(p)
	if n >= len(l.word) {
		copy(l.word[:], p[n-len(l.word):n])
	} else {
		copy(l.word[:], l.word[n:])
		copy(l.word[len(l.word)-n:], p[:n])
	}
	return n, err
}

// isMagic reports whether the last four bytes are the magic number of a frame.
func (l *lastWord) isMagic() bool {
	const frame = 0x184d2204
	word := binary.LittleEndian.Uint32(l.word[:])
	return word == frame || isSkippable(word)
}
