package sgt

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// index is what the INDX frame tells.
type index struct {
	chunks []chunk // what it says of them
	tables []uint64
	at     uint64 // of its frame
}

// endBytes is the length of the end of a file with an index: where the INDX
// frame stands, what tells that it is one, and the check.
const endBytes = 8 + len(indexEnd) + 4

// parseIndex reads the body of an INDX frame.
func parseIndex(body []byte) (x index, err error) {
	r := cursor{bytes: body}
	x.chunks = list[chunk](r.count(6, "chunks"))
	at := uint64(0)
	for i := range x.chunks {
		at += r.uv()
		x.chunks[i] = chunk{
			at: at, thread: r.u32("thread"), steps: r.uv(), references: r.uv(), firstTicket: r.uv(), lastTicket: r.uv(),
		}
	}
	x.tables = list[uint64](r.count(1, "tables"))
	at = 0
	for i := range x.tables {
		at += r.uv()
		x.tables[i] = at
	}
	if rest := body[r.at:]; r.wrong == nil && (len(rest) != endBytes-4 || string(rest[8:]) != indexEnd) {
		r.fail("bytes of the index's end", uint64(len(rest)), decimal(uint64(endBytes-4))+" with its mark")
	}
	if r.wrong != nil {
		return x, r.wrong
	}
	x.at = binary.LittleEndian.Uint64(body[r.at:])
	return x, nil
}

// ReadOutline reads the index at the end of a container of size bytes, and nothing else.
// The error says that the file has no index.
func ReadOutline(file io.ReaderAt, size int64) (trace.Outline, error) {
	x, err := readIndex(file, size)
	if err != nil {
		return trace.Outline{}, err
	}
	return outlineOf(x.chunks), nil
}

func outlineOf(chunks []chunk) (o trace.Outline) {
	threads := map[uint32]bool{}
	for i := range chunks {
		if c := &chunks[i]; c.references > 0 {
			o.References += c.references
			threads[c.thread] = true
		}
	}
	o.Threads = len(threads)
	return o
}

var errNoIndex = errors.New("there is no index at the end")

// readIndex gets the index of a file by its last bytes.
func readIndex(r io.ReaderAt, size int64) (index, error) {
	var end [endBytes]byte
	if size < int64(len(end)) {
		return index{}, errNoIndex
	}
	if err := readAt(r, end[:], size-int64(len(end))); err != nil {
		return index{}, err
	}
	at := binary.LittleEndian.Uint64(end[:])
	if string(end[8:8+len(indexEnd)]) != indexEnd || at >= uint64(size) {
		return index{}, errNoIndex
	}
	f, err := frameAt(r, size, at)
	if err != nil || f.tag != tagIndex {
		return index{}, errNoIndex
	}
	return parseIndex(f.body)
}

// frameAt reads the frame at an offset.
func frameAt(r io.ReaderAt, size int64, at uint64) (frame, error) {
	in := feed{r: &section{file: r, at: int64(at), size: size}, at: at}
	return in.next()
}

// section reads a file from a place on, and passes over parts of it for nothing.
type section struct {
	file     io.ReaderAt
	at, size int64
}

func (s *section) Read(p []byte) (int, error) {
	if s.at >= s.size {
		return 0, io.EOF
	}
	n, err := s.file.ReadAt(p[:min(int64(len(p)), s.size-s.at)], s.at)
	if s.at += int64(n); n > 0 {
		err = nil
	}
	return n, err
}

// skip passes over n bytes, or to the end.
func (s *section) skip(n int64) (int64, error) {
	if n > s.size-s.at {
		n = s.size - s.at
		s.at = s.size
		return n, io.ErrUnexpectedEOF
	}
	s.at += n
	return n, nil
}

// readAt fills p.
func readAt(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	return err
}
