package sgt

import (
	"errors"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Source is a container that can be read at any place, and at several at the same
// time: see [trace.Source].
type Source struct {
	name    string
	options Options
	file    io.ReaderAt
	size    int64
	told    *told
	first   *told    // of the tables before all chunks; nil: there is no index
	tables  []uint64 // offsets of the others
	chunks  []chunk  // in the order of the file
	ended   error    // what the file ends with: io.EOF, or damage
	lost    Lost     // besides what is wrong inside of chunks
}

// NewSource looks where everything is in a file of size bytes: by the index, or
// frame by frame where there is none.
func NewSource(name string, file io.ReaderAt, size int64, o Options) (*Source, error) {
	s := &Source{name: name, options: o, file: file, size: size}
	if s.byIndex() != nil {
		if err := s.byFrames(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// NewIndexed is [NewSource] for a file with an index only: without one it does not look
// at all of the file.
func NewIndexed(name string, file io.ReaderAt, size int64) (*Source, error) {
	s := &Source{name: name, file: file, size: size}
	if err := s.byIndex(); err != nil {
		return nil, err
	}
	return s, nil
}

// byIndex believes the index; an error tells not to.
func (s *Source) byIndex() error {
	x, err := readIndex(s.file, s.size)
	if err != nil {
		return err
	}
	s.told, s.chunks, s.ended = &told{}, x.chunks, io.EOF
	for i := range x.chunks {
		if x.chunks[i].at >= uint64(s.size) {
			return errNoIndex
		}
	}
	s.first = &told{}
	if err := s.tell(s.first, x.tables, 0); err != nil {
		return err
	}
	s.tables = x.tables[len(s.first.tables):]
	s.told = s.first.clone()
	if err := s.tell(s.told, s.tables, ^uint64(0)); err != nil {
		return err
	}
	if !s.told.begun {
		return errNoIndex
	}
	return nil
}

// tell has a reader know the tables at some offsets: those before all chunks, if end is
// 0, or those before it.
func (s *Source) tell(t *told, tables []uint64, end uint64) error {
	if end == 0 {
		if end = ^uint64(0); len(s.chunks) > 0 {
			end = s.chunks[0].at
		}
	}
	for _, at := range tables {
		if at >= uint64(s.size) {
			return errNoIndex
		}
		if at >= end {
			return nil
		}
		f, err := frameAt(s.file, s.size, at)
		if err != nil {
			return err
		}
		if err := t.take(f); err != nil {
			return err
		}
	}
	return nil
}

// byFrames looks at all frames. What is wrong with them is told at the end of
// the last span.
func (s *Source) byFrames() error {
	in := &stream{feed: feed{r: &section{file: s.file, size: s.size}}, headersOnly: true}
	r := newReader(s.name, s.options, in, &told{})
	s.told, s.chunks, s.ended = r.told, nil, nil
	for r.ended == nil {
		c, err := in.next(r)
		if err != nil {
			r.ended = err
			break
		}
		s.chunks = append(s.chunks, *c)
	}
	s.ended, s.lost = r.end(), r.lost
	var version *VersionError
	if errors.As(s.ended, &version) || !s.told.begun {
		return s.ended
	}
	return nil
}

// mostReferences is more than there is in any file, so that sums of them stay sums.
const mostReferences = 1 << 60

// Chunks lists the chunks. There are none to share if there is no index, or if more than
// one thread has some: then where a chunk ends says nothing of what comes before what.
func (s *Source) Chunks() (list []trace.Chunk) {
	if s.first == nil {
		return nil
	}
	references := uint64(0)
	for i := range s.chunks {
		c := &s.chunks[i]
		if references += min(c.references, mostReferences); references >= mostReferences || c.thread != s.chunks[0].thread || i > 0 && (c.at <= s.chunks[i-1].at || c.firstTicket < s.chunks[i-1].lastTicket) {
			return nil
		}
		list = append(list, trace.Chunk{At: c.at, References: c.references})
	}
	return list
}

// Kinds are those of all rows that the file may hold.
func (s *Source) Kinds() (all trace.Kinds) {
	for i := range s.told.program.Sites {
		all |= 1 << (s.told.program.Sites[i].Kind & 31)
	}
	return all
}

// Whole makes a reader of everything.
func (s *Source) Whole() *Reader {
	in := &indexed{file: s.file, size: s.size, ended: s.ended, chunks: slices.Clone(s.chunks)}
	in.setFloors()
	r := newReader(s.name, s.options, in, s.told)
	r.lost = s.lost
	return r
}

// Open makes a reader of the rows from a chunk on: see [trace.Source]. It knows as much
// of the program as one that has read the file up to there.
func (s *Source) Open(chunk uint64, kinds trace.Kinds) trace.Mover {
	in := &indexed{file: s.file, size: s.size, ended: io.EOF, tables: s.tables, whole: true}
	for i := range s.chunks {
		if c := &s.chunks[i]; c.at >= chunk {
			in.chunks = append(in.chunks, *c)
		}
	}
	known := &told{}
	if s.first != nil {
		known = s.first.clone()
	}
	r := newReader(s.name, Options{Strict: true}, in, known)
	r.Select(kinds)
	r.Until(trace.Position{Chunk: trace.AtEnd})
	return r
}

// indexed is a source that knows where chunks are, and reads them when it is
// their turn.
type indexed struct {
	file   io.ReaderAt
	size   int64
	tables []uint64 // offsets of frames that the reader is still to be told
	whole  bool     // chunks come with their content, as in a stream
	chunks []chunk
	ended  error
	in     feed
	where  section
}

// setFloors tells of each chunk what comes behind it.
func (s *indexed) setFloors() {
	floor := ^uint64(0)
	for i := len(s.chunks) - 1; i >= 0; i-- {
		c := &s.chunks[i]
		c.floor = floor
		floor = min(floor, c.firstTicket)
	}
}

func (s *indexed) next(r *Reader) (*chunk, error) {
	if len(s.chunks) == 0 {
		return nil, s.ended
	}
	for len(s.tables) > 0 && s.tables[0] < s.chunks[0].at {
		f, err := frameAt(s.file, s.size, s.tables[0])
		if err == nil {
			err = r.take(f)
		}
		if err != nil {
			return nil, r.refuse(s.tables[0], notEOF(err))
		}
		s.tables = s.tables[1:]
	}
	c := r.reused.chunk()
	packed := c.packed
	*c, s.chunks = s.chunks[0], s.chunks[1:]
	c.packed = packed[:0]
	if s.whole {
		return c, s.read(c)
	}
	return c, nil
}

func (s *indexed) at() uint64 { return uint64(s.size) }

var errIndex = errors.New("the index tells something else of it")

// load reads a chunk that came without its content.
func (s *indexed) load(c *chunk) error {
	if s.whole {
		return nil
	}
	return s.read(c)
}

// read reads the frame and the content of a chunk.
func (s *indexed) read(c *chunk) error {
	s.where = section{file: s.file, at: int64(c.at), size: s.size}
	s.in.r, s.in.at = &s.where, c.at
	f, err := s.in.next()
	if err != nil {
		return notEOF(err)
	}
	if f.tag != tagChunk || f.at != c.at {
		return errIndex
	}
	is, err := parseChunk(f.body)
	if err != nil {
		return err
	}
	if is.thread != c.thread || is.steps != c.steps || is.references != c.references || is.firstTicket != c.firstTicket || is.lastTicket != c.lastTicket {
		return errIndex
	}
	is.at = c.at
	is.packed, err = s.in.readLong(c.packed[:0], int(is.frameBytes))
	*c = is
	return notEOF(err)
}

// notEOF keeps the end of a chunk from being taken for the end of the trace.
func notEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
