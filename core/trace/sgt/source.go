package sgt

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// spanReferences is how many references a span has, more or less.
const spanReferences = 1 << 22

// Source is a container that can be read at any place, and in spans at the same
// time: each span is a range of tickets. A chunk that reaches into several is
// decoded for each of them.
type Source struct {
	name    string
	options Options
	file    io.ReaderAt
	size    int64
	told    *told
	chunks  []chunk // in the order of the file
	spans   []span
	ended   error // what the file ends with: io.EOF, or damage
	lost    Lost  // besides what is wrong inside of chunks
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
	s.share(spanReferences)
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
	for _, at := range x.tables {
		if at >= uint64(s.size) {
			return errNoIndex
		}
		f, err := frameAt(s.file, s.size, at)
		if err != nil {
			return err
		}
		if err := s.told.take(f); err != nil {
			return err
		}
	}
	if !s.told.begun {
		return errNoIndex
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

// share makes spans of about so many references each.
func (s *Source) share(spanReferences uint64) {
	order := make([]int, len(s.chunks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.chunks[a].firstTicket, s.chunks[b].firstTicket) })
	first, references := uint64(0), uint64(0)
	for _, i := range order {
		if c := &s.chunks[i]; references >= spanReferences && c.firstTicket > first {
			s.spans = append(s.spans, span{first, c.firstTicket})
			first, references = c.firstTicket, 0
		}
		references += min(s.chunks[i].references, spanReferences)
	}
	s.spans = append(s.spans, span{first, 0})
}

// Spans is the number of spans.
func (s *Source) Spans() int { return len(s.spans) }

// Open makes a reader of a span. Readers of different spans may be used at the
// same time.
func (s *Source) Open(span int) (trace.Reader, error) { return s.open(s.spans[span]), nil }

// Whole makes a reader of all spans.
func (s *Source) Whole() *Reader { return s.open(span{}) }

func (s *Source) open(part span) *Reader {
	in := &indexed{file: s.file, size: s.size, ended: io.EOF}
	for i := range s.chunks {
		if c := &s.chunks[i]; c.lastTicket >= part.first && (part.end == 0 || c.firstTicket < part.end) {
			in.chunks = append(in.chunks, *c)
		}
	}
	floor := ^uint64(0)
	for i := range in.chunks {
		c := &in.chunks[len(in.chunks)-1-i]
		c.floor = floor
		floor = min(floor, c.firstTicket)
	}
	r := newReader(s.name, s.options, in, s.told)
	if part != (span{}) {
		r.early = earlyLimit{} // other spans are for other processors
	}
	if r.span = part; part.end == 0 {
		in.ended, r.lost = s.ended, s.lost
	}
	return r
}

// indexed is a source that knows where chunks are, and reads them when it is
// their turn.
type indexed struct {
	file   io.ReaderAt
	size   int64
	chunks []chunk
	ended  error
	in     feed
	where  section
}

func (s *indexed) next(r *Reader) (*chunk, error) {
	if len(s.chunks) == 0 {
		return nil, s.ended
	}
	c := r.reused.chunk()
	packed := c.packed
	*c, s.chunks = s.chunks[0], s.chunks[1:]
	c.packed = packed[:0]
	return c, nil
}

func (s *indexed) at() uint64 { return uint64(s.size) }

var errIndex = errors.New("the index tells something else of it")

// load reads the frame and the content of a chunk.
func (s *indexed) load(c *chunk) error {
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
