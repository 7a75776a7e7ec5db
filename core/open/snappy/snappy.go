// Package snappy adds decompression of Snappy's framing format (google/snappy, framing_format.txt)
// to package open. The package also reads DynamoRIO's variant of the format, which adds two types
// of chunks without a checksum.
package snappy

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/stackglass/stackglass/core/open"
)

// Packing is the Snappy framing format.
var Packing = open.Packing{Name: "snappy", New: newReader}

// Types of chunks in the Snappy framing format. A chunk of any other type up to lastRequired is an
// error; chunks of later types may be skipped.
const (
	compressed            = 0x00
	uncompressed          = 0x01
	compressedUnchecked   = 0x02 // a chunk type that only DynamoRIO writes
	uncompressedUnchecked = 0x03 // a chunk type that only DynamoRIO writes
	lastRequired          = 0x7f
	streamIdentifier      = 0xff
)

const (
	identifier    = "sNaPpY"
	blockBytes    = 64 << 10 // maximum size of a chunk's decompressed content
	checksumBytes = 4
)

type reader struct {
	file  io.Reader
	chunk []byte // content of the current chunk
	block []byte // decompressed content; the memory is reused
	rest  []byte // bytes that have not been read yet
}

func newReader(r io.Reader) (io.Reader, error) { return &reader{file: r}, nil }

// Read returns the next decompressed bytes.
func (s *reader) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next reads or skips the next chunk. next returns io.EOF after the last chunk.
func (s *reader) next() error {
	var head [4]byte
	if _, err := io.ReadFull(s.file, head[:]); err != nil {
		return err
	}
	kind, length := head[0], int(binary.LittleEndian.Uint32(head[:])>>8)
	if kind > lastRequired && kind != streamIdentifier {
		_, err := io.CopyN(io.Discard, s.file, int64(length))
		return cut(err)
	}
	if length > blockBytes+checksumBytes {
		return errors.New("a chunk is longer than 64 KiB")
	}
	if cap(s.chunk) < length {
		s.chunk = make([]byte, blockBytes+checksumBytes)
	}
	s.chunk = s.chunk[:length]
	if _, err := io.ReadFull(s.file, s.chunk); err != nil {
		return cut(err)
	}
	return s.decode(kind)
}

// decode decompresses the current chunk and verifies its checksum.
func (s *reader) decode(kind byte) error {
	content := s.chunk
	checked := kind == compressed || kind == uncompressed
	switch kind {
	case streamIdentifier:
		if string(content) != identifier {
			return errors.New("the stream identifier is wrong")
		}
		return nil
	case compressed, uncompressed, compressedUnchecked, uncompressedUnchecked:
	default:
		return errors.New("a chunk has an unknown type")
	}
	if checked {
		if len(content) < checksumBytes {
			return errors.New("a chunk is shorter than its checksum")
		}
		content = content[checksumBytes:]
	}
	if kind == compressed || kind == compressedUnchecked {
		length, err := snappy.DecodedLen(content)
		if err != nil {
			return err
		}
		if length > blockBytes {
			return errors.New("a chunk's content is longer than 64 KiB")
		}
		if s.block == nil {
			s.block = make([]byte, blockBytes)
		}
		if content, err = snappy.Decode(s.block, content); err != nil {
			return err
		}
	}
	if checked && mask(crc32.Checksum(content, castagnoli)) != binary.LittleEndian.Uint32(s.chunk) {
		return errors.New("a chunk's checksum is wrong")
	}
	s.rest = content
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mask transforms a checksum as section 3 of the specification requires.
func mask(sum uint32) uint32 { return (sum>>15 | sum<<17) + 0xa282ead8 }

// cut converts io.EOF within a chunk to io.ErrUnexpectedEOF. cut returns all other errors
// unchanged.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
