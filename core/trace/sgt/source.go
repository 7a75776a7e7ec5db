package sgt

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// Source is a container with an index; see [trace.Source]. The readers of a Source return an error
// if they detect that the index is wrong.
type Source struct {
	name   string
	file   io.ReaderAt
	size   int64
	first  *metadata    // the tables that precede the first chunk
	all    *metadata    // all tables of the file
	tables []uint64     // offsets of all tables
	chunks []chunkEntry // entries of the chunks, in file order
	merged bool         // whether all chunks count as one chunk; see Merged
}

// NewSource reads the index of a file of size bytes. If the parameter "beside" is not nil, it must
// be a reader of the same file. If this reader has read the tables, NewSource need not read the
// tables again. NewSource returns an error if the index is missing or wrong.
func NewSource(name string, file io.ReaderAt, size int64, beside *Reader) (*Source, error) {
	x, err := readIndex(file, size)
	if err != nil {
		return nil, err
	}
	s := &Source{name: name, file: file, size: size, tables: x.tables, chunks: x.chunks}
	if !s.ascends() {
		return nil, errNoIndex
	}
	end := ^uint64(0)
	if len(s.chunks) > 0 {
		end = s.chunks[0].at
	}
	if beside != nil && beside.peek() == nil && slices.Equal(beside.tables, s.before(end)) {
		beside.shared = true
		s.first = beside.metadata.clone()
	} else if s.first, err = s.readTables(&metadata{}, end); err != nil {
		return nil, err
	}
	s.first.program.ThreadCount = outlineOf(s.chunks).Threads
	if s.all, err = s.readTables(s.first, ^uint64(0)); err != nil {
		return nil, err
	}
	if !s.all.begun {
		return nil, errNoIndex
	}
	return s, nil
}

// ascends reports whether the offsets in the index are in ascending order and within the file.
func (s *Source) ascends() bool {
	for i := range s.chunks {
		if s.chunks[i].at >= uint64(s.size) || i > 0 && s.chunks[i].at <= s.chunks[i-1].at {
			return false
		}
	}
	for i, at := range s.tables {
		if at >= uint64(s.size) || i > 0 && at <= s.tables[i-1] {
			return false
		}
	}
	return true
}

// before returns the offsets of all tables before a given offset.
func (s *Source) before(end uint64) []uint64 {
	n, _ := slices.BinarySearch(s.tables, end)
	return s.tables[:n]
}

// readTables returns the tables that precede an offset in the file. The parameter t contains the
// first of these tables, which readTables does not read again.
func (s *Source) readTables(t *metadata, end uint64) (*metadata, error) {
	t = t.clone()
	for _, at := range s.before(end)[len(t.tables):] {
		f, err := frameAt(s.file, s.size, at)
		if err != nil {
			return nil, err
		}
		if f.tag == tagIndex || f.tag == tagChunk || f.at != at {
			return nil, errNoIndex
		}
		if err := t.takeFrame(f); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// mostReferences is a limit that no file reaches. This limit prevents overflow when numbers of
// references are added.
const mostReferences = 1 << 60

// Chunks lists the chunks. If the chunks belong to several threads, Chunks returns nil, because the
// order of the chunks differs from the order of the references.
func (s *Source) Chunks() (list []trace.Chunk) {
	if s.merged {
		return []trace.Chunk{{At: s.chunks[0].at, References: s.references()}}
	}
	references := uint64(0)
	for i := range s.chunks {
		c := &s.chunks[i]
		if references += min(c.references, mostReferences); references >= mostReferences || c.thread != s.chunks[0].thread || i > 0 && c.firstTicket < s.chunks[i-1].lastTicket {
			return nil
		}
		list = append(list, trace.Chunk{At: c.at, References: c.references})
	}
	return list
}

// Merged returns a source that several workers can read even if the chunks belong to several
// threads. In this case, the whole trace counts as one chunk, because its rows are merged in the
// order of their tickets. A reader that begins in the middle must therefore read all earlier rows.
func (s *Source) Merged() *Source {
	if s.Chunks() != nil || len(s.chunks) == 0 || s.references() == 0 {
		return s
	}
	merged := *s
	merged.merged = true
	return &merged
}

func (s *Source) references() (sum uint64) {
	for i := range s.chunks {
		if sum += min(s.chunks[i].references, mostReferences); sum >= mostReferences {
			return 0
		}
	}
	return sum
}

// Kinds returns the kinds of all rows that the file may contain.
func (s *Source) Kinds() (all trace.Kinds) {
	for i := range s.all.program.Sites {
		all |= 1 << (s.all.program.Sites[i].Kind & 31)
	}
	return all
}

// Open implements [trace.Source]. The new reader has the same tables as a reader that has read the
// file up to the chunk.
func (s *Source) Open(chunk uint64, kinds trace.Kinds) trace.Mover {
	i := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].at >= chunk })
	in := &indexed{of: s, chunks: s.chunks[i:]}
	known, err := s.first, error(nil)
	if i < len(s.chunks) {
		chunk = s.chunks[i].at
		known, err = s.readTables(s.first, chunk)
	}
	in.feed = feed{r: sectionFrom(s.file, chunk, s.size), at: chunk}
	r := newReader(s.name, Options{Strict: true}, in, known)
	r.Select(kinds)
	if s.merged {
		r.apart.first = s.chunks[0].at
	}
	r.Until(trace.Position{Chunk: trace.AtEnd})
	if err != nil {
		r.err = r.addPosition(chunk, notEOF(err))
	}
	return r
}

// Agrees implements [trace.Source].
func (s *Source) Agrees(r trace.Mover, chunk uint64) bool {
	of, ok := r.(*Reader)
	if !ok {
		return false
	}
	n, _ := slices.BinarySearch(of.tables, chunk)
	return slices.Equal(of.tables[:n], s.before(chunk))
}

// indexed is a stream that begins at a given chunk. The stream checks that its chunks agree with
// the index.
type indexed struct {
	stream
	of     *Source
	chunks []chunkEntry // index entries of the chunks that have not been read yet
}

func (s *indexed) next(r *Reader) (*chunk, error) {
	c, err := s.stream.next(r)
	switch {
	case err == io.EOF && len(s.chunks) == 0 && slices.Equal(r.tables, s.of.tables):
		return nil, io.EOF
	case err == io.EOF:
		return nil, r.addPosition(s.feed.at, errIndex)
	case err != nil:
		return nil, err
	case len(s.chunks) == 0:
		return nil, r.addPosition(c.at, errIndex)
	}
	if c.chunkEntry != s.chunks[0] || !slices.Equal(r.tables, s.of.before(c.at)) {
		return nil, r.addPosition(c.at, errIndex)
	}
	s.chunks = s.chunks[1:]
	return c, nil
}

var errIndex = errors.New("the index does not match the file")

// notEOF replaces io.EOF within a chunk by io.ErrUnexpectedEOF, because the trace does not end
// there.
func notEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// movablePosition is the position of a reader that implements [trace.Mover]. All chunks belong to
// one thread, or count as one chunk.
type movablePosition struct {
	is    bool
	first uint64         // if all chunks count as one chunk, the offset of the first chunk; otherwise 0
	here  trace.Position // position after the returned rows
	stop  trace.Position // the argument of [Reader.Until]
}

// chunk returns the offset that identifies a chunk of the file: the chunk's own offset, or the
// offset of the first chunk if all chunks count as one.
func (a *movablePosition) chunk(at uint64) uint64 {
	if a.first > 0 {
		return a.first
	}
	return at
}

// advance moves the position forward by the given number of rows of a chunk.
func (a *movablePosition) advance(chunk uint64, rows int) {
	if a.here.Chunk != chunk {
		a.here = trace.Position{Chunk: chunk}
	}
	a.here.Rows += uint64(rows)
}

// limitBatch limits b to the rows of a chunk that precede the position a.stop. It returns false if
// no row of the chunk can precede this position.
func (a *movablePosition) limitBatch(b *trace.Batch, chunk uint64) bool {
	if chunk < a.stop.Chunk {
		return true
	}
	left := uint64(0)
	if chunk == a.stop.Chunk {
		left = a.stop.Rows
		if a.here.Chunk == chunk {
			left -= min(left, a.here.Rows)
		}
	}
	b.Resize(int(min(uint64(b.Cap()), left)))
	return left > 0
}

// Position returns the position after the rows returned so far.
func (r *Reader) Position() trace.Position { return r.apart.here }

// Until implements [trace.Mover]. The chunks must belong to one thread, or count as one chunk, as
// in [Source.Merged].
func (r *Reader) Until(stop trace.Position) {
	r.apart.is, r.apart.stop = true, stop
	r.early = earlyLimit{} // do not decode in advance, because chunks may be skipped
}

// Narrow implements [trace.Mover]. Narrow does not affect a chunk that is already being decoded,
// because the plans for its decoding exist already.
func (r *Reader) Narrow(kinds trace.Kinds) {
	r.planner = planner{kinds: kinds}
	r.extend(&r.program)
}

// Pass implements [trace.Mover]. Pass reads the bytes of the chunks that it skips, but does not
// decode them.
func (r *Reader) Pass(chunk uint64) error {
	for r.err == nil {
		l := r.top()
		switch {
		case l == nil && chunk == trace.AtEnd:
			r.shown = *r.metadata
			r.apart.here = trace.Position{Chunk: trace.AtEnd}
			return nil
		case l == nil:
			if r.err = r.end(); r.err == io.EOF {
				return trace.ErrNotThere
			}
			return r.err
		case l.queue[0].at > chunk || l.queue[0].at == chunk && r.apart.here.Chunk == chunk:
			return trace.ErrNotThere
		case l.queue[0].at == chunk:
			r.apart.here = trace.Position{Chunk: chunk}
			return nil
		}
		r.drop(l)
	}
	return r.err
}

// index is the content of the INDX frame.
type index struct {
	chunks []chunkEntry
	tables []uint64
	at     uint64 // offset of the INDX frame
}

// endBytes is the length of the end of the INDX frame, which comes last in a file: the offset of
// the frame, a magic string, and the checksum.
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
		r.fail("number of bytes at the end of the index", uint64(len(rest)), decimal(uint64(endBytes-4))+", including the magic string")
	}
	if r.wrong != nil {
		return x, r.wrong
	}
	x.at = binary.LittleEndian.Uint64(body[r.at:])
	return x, nil
}

// ReadOutline returns the outline of a container of size bytes. ReadOutline reads only the index at
// the end of the file. ReadOutline returns an error if the file has no index.
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

// readIndex reads the index of a file. The last bytes of the file contain the position of the
// index.
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

// sectionFrom returns a reader that starts at an offset in a file of the given size. The reader can
// skip bytes without reading them.
func sectionFrom(r io.ReaderAt, at uint64, size int64) *io.SectionReader {
	return io.NewSectionReader(r, int64(at), max(0, size-int64(at)))
}
