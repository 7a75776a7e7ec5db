package sgt

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// index is the content of the INDX frame.
type index struct {
	chunks []chunkEntry
	tables []uint64
	at     uint64 // of its frame
}

// endBytes is the length of the end of a file with an index: the offset of the INDX frame, a mark,
// and the checksum.
const endBytes = 8 + len(indexEnd) + 4

// parseIndex reads the body of an INDX frame.
func parseIndex(body []byte) (x index, err error) {
	r := cursor{bytes: body}
	x.chunks = list[chunkEntry](r.count(6, "chunks"))
	at := uint64(0)
	for i := range x.chunks {
		at += r.uv()
		x.chunks[i] = chunkEntry{
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

// ReadOutline reads only the index at the end of a container of size bytes. The error reports that
// the file has no index.
func ReadOutline(file io.ReaderAt, size int64) (trace.Outline, error) {
	x, err := readIndex(file, size)
	if err != nil {
		return trace.Outline{}, err
	}
	return outlineOf(x.chunks), nil
}

func outlineOf(chunks []chunkEntry) (o trace.Outline) {
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

// readIndex finds the index of a file by its last bytes.
func readIndex(r io.ReaderAt, size int64) (index, error) {
	var end [endBytes]byte
	if size < int64(endBytes) {
		return index{}, errNoIndex
	}
	if n, err := r.ReadAt(end[:], size-int64(endBytes)); n < endBytes {
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
	in := feed{r: sectionFrom(r, at, size), at: at}
	return in.next()
}

// sectionFrom returns a reader of a file of size bytes from an offset on, which skips for free.
func sectionFrom(r io.ReaderAt, at uint64, size int64) *io.SectionReader {
	return io.NewSectionReader(r, int64(at), max(0, size-int64(at)))
}
