package sgt

import (
	"errors"
	"io"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// Source is a container with an index, which can be read at any place, and at several at
// the same time: see [trace.Source]. What the index says is believed until a reader finds
// something else in the file, which ends it.
type Source struct {
	name   string
	file   io.ReaderAt
	size   int64
	first  *told    // of the tables before all chunks
	all    *told    // of all tables
	tables []uint64 // offsets of all
	chunks []chunk  // in the order of the file
}

// NewSource looks where everything is in a file of size bytes. beside is a reader of the
// same file, or nil: what it is told before it comes to a chunk need not be read again.
// The error tells that the file has no index, or one of something else.
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
		s.first = beside.told.clone()
	} else if s.first, err = s.tell(&told{}, end); err != nil {
		return nil, err
	}
	s.first.program.ThreadCount = outlineOf(s.chunks).Threads
	if s.all, err = s.tell(s.first, ^uint64(0)); err != nil {
		return nil, err
	}
	if !s.all.begun {
		return nil, errNoIndex
	}
	return s, nil
}

// ascends tells whether everything is in the file, and one behind the other.
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

// before lists the tables before a place.
func (s *Source) before(end uint64) []uint64 {
	n, _ := slices.BinarySearch(s.tables, end)
	return s.tables[:n]
}

// tell gives one that knows the tables before a place, of which another knows the first.
func (s *Source) tell(t *told, end uint64) (*told, error) {
	t = t.clone()
	for _, at := range s.before(end)[len(t.tables):] {
		f, err := frameAt(s.file, s.size, at)
		if err != nil {
			return nil, err
		}
		if f.tag == tagIndex || f.tag == tagChunk || f.at != at {
			return nil, errNoIndex
		}
		if err := t.take(f); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// mostReferences is more than there is in any file, so that sums of them stay sums.
const mostReferences = 1 << 60

// Chunks lists the chunks. There are none to share if more than one thread has some:
// then where a chunk ends says nothing of what comes before what.
func (s *Source) Chunks() (list []trace.Chunk) {
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

// Kinds are those of all rows that the file may hold.
func (s *Source) Kinds() (all trace.Kinds) {
	for i := range s.all.program.Sites {
		all |= 1 << (s.all.program.Sites[i].Kind & 31)
	}
	return all
}

// Open makes a reader of the rows from a chunk on: see [trace.Source]. It knows as much
// of the program as one that has read the file up to there.
func (s *Source) Open(chunk uint64, kinds trace.Kinds) trace.Mover {
	i := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].at >= chunk })
	in := &indexed{of: s, chunks: s.chunks[i:]}
	known, err := s.first, error(nil)
	if i < len(s.chunks) {
		chunk = s.chunks[i].at
		known, err = s.tell(s.first, chunk)
	}
	in.feed = feed{r: &section{file: s.file, at: int64(chunk), size: s.size}, at: chunk}
	r := newReader(s.name, Options{Strict: true}, in, known)
	r.Select(kinds)
	r.Until(trace.Position{Chunk: trace.AtEnd})
	if err != nil {
		r.err = r.refuse(chunk, notEOF(err))
	}
	return r
}

// Agrees tells whether a reader that has come to a chunk was told the same on its way as
// one that [Source.Open] makes of it: see [trace.Source].
func (s *Source) Agrees(r trace.Mover, chunk uint64) bool {
	of, ok := r.(*Reader)
	if !ok {
		return false
	}
	n, _ := slices.BinarySearch(of.tables, chunk)
	return slices.Equal(of.tables[:n], s.before(chunk))
}

// indexed is a stream from a chunk on, in which comes what the index says.
type indexed struct {
	stream
	of     *Source
	chunks []chunk // to come
}

func (s *indexed) next(r *Reader) (*chunk, error) {
	c, err := s.stream.next(r)
	switch {
	case err == io.EOF && len(s.chunks) == 0 && slices.Equal(r.tables, s.of.tables):
		return nil, io.EOF
	case err == io.EOF:
		return nil, r.refuse(s.feed.at, errIndex)
	case err != nil:
		return nil, err
	case len(s.chunks) == 0:
		return nil, r.refuse(c.at, errIndex)
	}
	if is := &s.chunks[0]; c.at != is.at || c.thread != is.thread || c.steps != is.steps || c.references != is.references ||
		c.firstTicket != is.firstTicket || c.lastTicket != is.lastTicket || !slices.Equal(r.tables, s.of.before(c.at)) {
		return nil, r.refuse(c.at, errIndex)
	}
	s.chunks = s.chunks[1:]
	return c, nil
}

var errIndex = errors.New("the index tells something else of it")

// notEOF keeps the end of a chunk from being taken for the end of the trace.
func notEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
