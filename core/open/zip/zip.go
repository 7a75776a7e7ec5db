// Package zip adds decompression of ZIP archives (PKWARE's APPNOTE.TXT, 6.3) to package open.
// DynamoRIO writes such archives: their members chunk.0000, chunk.0001, … are consecutive parts of
// one trace.
//
// The archive is read from its beginning to its end, so it may come from a pipe. Members are
// therefore located by their local file headers, and the central directory at the end of the
// archive is used only to check that the archive is complete. Bytes after the central directory are
// ignored. The checksum of every member is verified.
package zip

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"github.com/stackglass/stackglass/core/open"
)

// Packing concatenates the members of a ZIP archive.
var Packing = open.Packing{Name: "zip", New: newReader}

// Signatures of an archive's parts.
const (
	memberSignature     = 0x04034b50
	descriptorSignature = 0x08074b50
	entrySignature      = 0x02014b50 // an entry of the central directory
	wideEndSignature    = 0x06064b50 // the end of a central directory with 64-bit numbers
	wideLinkSignature   = 0x07064b50 // the locator of the end of a central directory with 64-bit numbers
	endSignature        = 0x06054b50 // the end of the central directory
)

// Flags and methods of members.
const (
	encrypted     = 1 << 0
	hasDescriptor = 1 << 3
	stored        = 0
	deflated      = 8
)

const (
	longestPart = 1 << 16 // maximum length of the end of the central directory
	memberBytes = 30      // length of a member's header without the name
	unknown32   = 0xffff_ffff
	zip64Extra  = 1
)

// chunkPrefix is the prefix of the members' names in archives that DynamoRIO writes.
const chunkPrefix = "chunk."

var errChecksum = errors.New("a member's checksum is wrong")

// reader concatenates the members' contents.
type reader struct {
	archive *bufio.Reader
	first   string    // name of the first member
	content io.Reader // decompressed content of the current member; nil between members
	packed  *counter  // counts the compressed bytes of the current member
	member  member
	sum     hash.Hash32
	bytes   uint64 // number of decompressed bytes of the current member
	err     error
}

// member contains the fields of a member's header that are needed to read its content.
type member struct {
	name             string
	flags, method    uint16
	sum              uint32
	packed, unpacked uint64 // sizes in bytes; 0 if a descriptor follows the content
}

func newReader(r io.Reader) (io.Reader, error) {
	return &reader{archive: bufio.NewReaderSize(r, 1<<16), sum: crc32.NewIEEE()}, nil
}

// Read returns the next bytes of the members' concatenated contents.
func (z *reader) Read(p []byte) (int, error) {
	for z.err == nil {
		if z.content == nil {
			z.err = z.begin()
			continue
		}
		n, err := z.content.Read(p)
		z.sum.Write(p[:n])
		z.bytes += uint64(n)
		if err == io.EOF {
			z.content = nil
			err = z.end()
		}
		z.err = err
		if n > 0 {
			return n, nil
		}
	}
	return 0, z.err
}

// begin reads headers up to the next member with content. begin returns io.EOF if the central
// directory follows.
func (z *reader) begin() error {
	for {
		head, err := z.archive.Peek(4)
		if err != nil {
			return cut(err)
		}
		switch signature := binary.LittleEndian.Uint32(head); signature {
		case memberSignature:
		case entrySignature, wideEndSignature, wideLinkSignature, endSignature:
			return z.skipDirectory()
		default:
			return errors.New("the archive contains neither a member nor the central directory at the expected position")
		}
		if z.member, err = readMember(z.archive); err != nil {
			return err
		}
		if err := z.open(); err != nil {
			return err
		}
		if z.isSkipped() {
			if _, err := io.Copy(io.Discard, z.content); err != nil {
				return err
			}
			z.content = nil
			continue
		}
		if z.first != "" && !(strings.HasPrefix(z.first, chunkPrefix) && strings.HasPrefix(z.member.name, chunkPrefix)) {
			return errors.New("the archive contains several files (" + z.first + ", " + z.member.name +
				", …); extract the files, and open one of them, or the folder if it is a DynamoRIO trace")
		}
		z.first = z.member.name
		return nil
	}
}

// skipDirectory reads the central directory to its end. skipDirectory returns io.EOF if the
// directory is complete.
func (z *reader) skipDirectory() error {
	for {
		head, err := z.archive.Peek(4)
		if err != nil {
			return cut(err)
		}
		// Each part begins with a header of fixed length. The header contains the lengths of the
		// fields that follow it.
		length, fields := 0, []int(nil)
		signature := binary.LittleEndian.Uint32(head)
		switch signature {
		case entrySignature:
			length, fields = 46, []int{28, 30, 32}
		case wideEndSignature:
			if head, err = z.archive.Peek(12); err != nil {
				return cut(err)
			}
			length = int(min(12+binary.LittleEndian.Uint64(head[4:]), longestPart))
		case wideLinkSignature:
			length = 20
		case endSignature:
			length, fields = 22, []int{20}
		default:
			return errors.New("the central directory is damaged")
		}
		if head, err = z.archive.Peek(length); err != nil {
			return cut(err)
		}
		for _, at := range fields {
			length += int(binary.LittleEndian.Uint16(head[at:]))
		}
		if _, err := z.archive.Discard(length); err != nil {
			return cut(err)
		}
		if signature == endSignature {
			return io.EOF
		}
	}
}

// isSkipped reports whether the current member is a folder, or metadata that macOS adds.
func (z *reader) isSkipped() bool {
	return strings.HasSuffix(z.member.name, "/") || strings.HasPrefix(z.member.name, "__MACOSX/")
}

// open prepares to read the current member's content.
func (z *reader) open() error {
	z.sum.Reset()
	z.bytes = 0
	z.packed = &counter{reader: z.archive}
	m := &z.member
	known := m.flags&hasDescriptor == 0
	switch {
	case m.flags&encrypted != 0:
		return errors.New(m.name + " is encrypted; decrypt the archive first")
	case m.method == stored && known:
		z.content = &exact{reader: z.packed, rest: m.packed}
	case m.method == deflated:
		z.content = flate.NewReader(z.packed)
	case m.method == stored:
		return errors.New(m.name + " is stored without its size; extract the archive, and open the file")
	default:
		return errors.New(m.name + " is compressed with a method that is not supported; extract the archive, and open the file")
	}
	return nil
}

// end verifies the current member's sizes and checksum.
func (z *reader) end() error {
	m := &z.member
	if m.flags&hasDescriptor != 0 {
		return z.descriptor()
	}
	if z.sum.Sum32() != m.sum || z.bytes != m.unpacked || z.packed.bytes != m.packed {
		return errChecksum
	}
	return nil
}

// descriptor reads the descriptor after a member's content. The signature is optional, and the
// sizes have 4 or 8 bytes. The sizes and the checksum are already known from the content, so only
// one form matches.
func (z *reader) descriptor() error {
	const longest = 4 + 4 + 8 + 8
	head, err := z.archive.Peek(longest)
	for _, signed := range []bool{true, false} {
		for _, size := range []int{4, 8} {
			want := make([]byte, 0, longest)
			if signed {
				want = binary.LittleEndian.AppendUint32(want, descriptorSignature)
			}
			want = binary.LittleEndian.AppendUint32(want, z.sum.Sum32())
			if size == 4 {
				want = binary.LittleEndian.AppendUint32(want, uint32(z.packed.bytes))
				want = binary.LittleEndian.AppendUint32(want, uint32(z.bytes))
			} else {
				want = binary.LittleEndian.AppendUint64(want, z.packed.bytes)
				want = binary.LittleEndian.AppendUint64(want, z.bytes)
			}
			if len(head) >= len(want) && string(head[:len(want)]) == string(want) {
				_, err := z.archive.Discard(len(want))
				return err
			}
		}
	}
	if len(head) < longest && err != nil {
		return cut(err)
	}
	return errChecksum
}

// readMember reads a member's header.
func readMember(r *bufio.Reader) (member, error) {
	var head [memberBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return member{}, cut(err)
	}
	m := member{
		flags: binary.LittleEndian.Uint16(head[6:]), method: binary.LittleEndian.Uint16(head[8:]),
		sum:    binary.LittleEndian.Uint32(head[14:]),
		packed: uint64(binary.LittleEndian.Uint32(head[18:])), unpacked: uint64(binary.LittleEndian.Uint32(head[22:])),
	}
	name, extra := int(binary.LittleEndian.Uint16(head[26:])), int(binary.LittleEndian.Uint16(head[28:]))
	rest := make([]byte, name+extra)
	if _, err := io.ReadFull(r, rest); err != nil {
		return member{}, cut(err)
	}
	m.name = string(rest[:name])
	m.widen(rest[name:])
	return m, nil
}

// widen reads sizes that need more than 32 bits from a member's extra fields.
func (m *member) widen(extra []byte) {
	for len(extra) >= 4 {
		kind, length := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		extra = extra[4:]
		field := extra[:min(length, len(extra))]
		extra = extra[len(field):]
		if kind != zip64Extra {
			continue
		}
		// the specification defines this order
		for _, size := range []*uint64{&m.unpacked, &m.packed} {
			if *size == unknown32 && len(field) >= 8 {
				*size, field = binary.LittleEndian.Uint64(field), field[8:]
			}
		}
	}
}

// cut converts io.EOF within a member or the directory to io.ErrUnexpectedEOF. It returns all other
// errors unchanged.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// counter is a reader that counts bytes and never reads ahead.
type counter struct {
	reader *bufio.Reader
	bytes  uint64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.bytes += uint64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.reader.ReadByte()
	if err == nil {
		c.bytes++
	}
	return b, err
}

// exact reads as many bytes as the field "rest" specifies. It returns io.ErrUnexpectedEOF if fewer
// bytes follow.
type exact struct {
	reader io.Reader
	rest   uint64
}

func (e *exact) Read(p []byte) (int, error) {
	if e.rest == 0 {
		return 0, io.EOF
	}
	n, err := e.reader.Read(p[:min(uint64(len(p)), e.rest)])
	e.rest -= uint64(n)
	if e.rest > 0 {
		return n, cut(err)
	}
	return n, nil
}
