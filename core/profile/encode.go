package profile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// Version is the newest version of the binary format that this package reads and writes. If the set
// tables of a profile contain all rows, the profile is still written in version 5.
const Version = 6

const (
	magic  = "\x89SGP\r\n\x1a\n"
	endTag = "END."
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// IsProfile reports whether a file that begins with the bytes in head is a profile. The first eight
// bytes of the file are sufficient.
func IsProfile(head []byte) bool {
	return len(head) >= len(magic) && string(head[:len(magic)]) == magic
}

// Encode returns the profile in binary format.
func (p *Profile) Encode() []byte {
	var b bytes.Buffer
	_ = p.EncodeTo(&b) // writing to a buffer cannot fail
	return b.Bytes()
}

// EncodeTo writes the profile in binary format, in pieces of at most about 64 KiB. EncodeTo keeps at
// most one section in memory. The locality histograms, which may be larger than all other sections
// combined, are also encoded in pieces.
// Any error is an error of the writer.
func (p *Profile) EncodeTo(to io.Writer) error {
	w := newWriter(to)
	w.send(binary.AppendUvarint([]byte(magic), p.version()))
	p.canonical(w)
	var sum [32]byte
	w.digest.Sum(sum[:0])
	if p.hasIntervals() {
		w.section("smpi", p.codeIntervals)
	}
	if c := p.Communication; c != nil && c.LineSharing != nil {
		w.section("coml", c.codeLineSharing)
	}
	if p.NoCommunication != AbsenceUnknown {
		w.putSection("comx", []byte{byte(p.NoCommunication)})
	}
	if len(p.Pages) > 0 {
		w.section("page", p.codePages)
	}
	if p.Sites != nil && p.Sites.Covered != nil {
		w.section("pref", p.Sites.codeCovered)
	}
	if len(p.Sources) > 0 {
		w.section("srcs", p.codeSources)
	}
	if s := p.Segment; s != nil {
		w.section("segm", s.code)
		w.payload = nil // release the memory, which may be large
		for i := range states {
			if state := *states[i].field(s); state != nil {
				w.putSection(states[i].tag, state)
			}
		}
	}
	w.putSection(endTag, sum[:])
	return w.err
}

func (p *Profile) version() uint64 {
	for i := range p.Locality {
		if s := p.Locality[i].Sets; s != nil && s.Omitted != 0 {
			return Version
		}
	}
	return Version - 1
}

func (p *Profile) codeSources(c *coder) {
	codec.Slice(c.Coder, &p.Sources, 2, func(f *trace.SourceFile) {
		c.Text(&f.Name)
		c.Text(&f.Packed)
	})
}

// Digest returns the SHA-256 of the profile's canonical sections. The digest depends only on the
// trace and the options. The digest does not depend on the machine, or on how the analysis is
// divided.
func (p *Profile) Digest() (sum [32]byte) {
	w := newWriter(io.Discard)
	p.canonical(w)
	w.digest.Sum(sum[:0])
	return sum
}

func (p *Profile) canonical(w *writer) {
	for i := range forms {
		forms[i].write(p, w)
	}
}

// digestSections hashes encoded sections without their checksums.
func digestSections(sections []byte) (sum [32]byte) {
	hash := newHash()
	for len(sections) > 0 {
		length, n := binary.Uvarint(sections[4:])
		end := 4 + n + int(length)
		hash.Write(sections[:end])
		sections = sections[end+4:]
	}
	hash.Sum(sum[:0])
	return sum
}

type writer struct {
	to     io.Writer
	digest interface { // hash of the sections whose tags begin with an upper-case letter
		io.Writer
		Sum(b []byte) []byte
	}
	payload []byte
	err     error // the first error of the underlying writer
}

func newWriter(to io.Writer) *writer { return &writer{to: to, digest: newHash()} }

func (w *writer) section(tag string, code func(*coder)) {
	c := coder{Coder: codec.Writer(w.payload[:0])}
	code(&c)
	w.payload = c.Out
	w.putSection(tag, w.payload)
}

// putSection writes a section without copying the payload.
func (w *writer) putSection(tag string, payload []byte) {
	check := w.writeHead(tag, len(payload))
	w.writeBody(tag, payload, &check)
	w.send(binary.LittleEndian.AppendUint32(nil, check))
}

// pieceBytes is the approximate length of the pieces of a section.
const pieceBytes = 1 << 16

// inPieces encodes a section twice: first to determine its length, and then to write it in pieces.
func (w *writer) inPieces(tag string, code func(*coder)) {
	length := 0
	count := coder{Coder: codec.Writer(w.payload[:0]), full: func(b []byte) { length += len(b) }}
	code(&count)
	check := w.writeHead(tag, length+len(count.Out))
	send := coder{Coder: codec.Writer(count.Out[:0]), full: func(b []byte) { w.writeBody(tag, b, &check) }}
	code(&send)
	w.payload = send.Out
	w.writeBody(tag, w.payload, &check)
	w.send(binary.LittleEndian.AppendUint32(nil, check))
}

// writeHead writes the beginning of a section and returns the checksum of the bytes so far.
func (w *writer) writeHead(tag string, length int) (check uint32) {
	head := binary.AppendUvarint(append(make([]byte, 0, 16), tag...), uint64(length))
	w.writeBody(tag, head, &check)
	return check
}

// writeBody writes a part of a section's payload in pieces, and updates the checksum.
func (w *writer) writeBody(tag string, part []byte, check *uint32) {
	for len(part) > 0 {
		piece := part[:min(len(part), pieceBytes)]
		part = part[len(piece):]
		*check = crc32.Update(*check, castagnoli, piece)
		if tag != endTag && tag[0] < 'a' {
			w.digest.Write(piece)
		}
		w.send(piece)
	}
}

func (w *writer) send(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
}
