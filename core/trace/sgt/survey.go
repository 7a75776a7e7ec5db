package sgt

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Survey describes a file without decoding its steps.
type Survey struct {
	Version      uint64
	PointerBits  uint64
	Header       trace.Header
	Ending       Ending
	Indexed      bool
	Bytes        uint64 // that were read
	ContentBytes uint64 // of chunks, unpacked
	Chunks       uint64
	Steps        uint64
	References   uint64
	FirstTicket  uint64
	LastTicket   uint64
	Threads      []ThreadSurvey // by number
	Lost         Lost
	Stopped      error // that kept the file from being read to its end, or nil
}

// ThreadSurvey describes a thread by its chunks.
type ThreadSurvey struct {
	Number                    uint32
	Chunks, Steps, References uint64
}

// Look reads the frames of a container, from which r has read nothing. The error reports that there is
// none. Look and [Check] are no methods, so that programs without them do not link them.
func Look(r *Reader) (*Survey, error) {
	in, ok := r.source.(*stream)
	if !ok {
		return nil, errNotStream
	}
	in.headersOnly = true
	s := &Survey{}
	threads := map[uint32]*ThreadSurvey{}
	for r.ended == nil {
		c, err := in.next(r)
		if err != nil {
			r.ended = err
			break
		}
		s.add(c, threads)
		r.reused.takeBack(c, nil)
	}
	if !r.begun {
		return nil, r.end()
	}
	s.finish(r, in, threads)
	if s.Stopped = r.end(); s.Stopped == io.EOF {
		s.Stopped = nil
	}
	var version *VersionError
	if errors.As(s.Stopped, &version) {
		return nil, version
	}
	return s, nil
}

// errNotStream reports a mistake of the caller.
var errNotStream = errors.New("sgt: the reader of a span is neither surveyed nor checked")

// finish adds what the reader of all frames knows.
func (s *Survey) finish(r *Reader, in *stream, threads map[uint32]*ThreadSurvey) {
	for _, t := range threads {
		s.Threads = append(s.Threads, *t)
	}
	slices.SortFunc(s.Threads, func(a, b ThreadSurvey) int { return cmp.Compare(a.Number, b.Number) })
	r.extend(&r.program)
	s.Version, s.PointerBits, s.Header, s.Ending = r.version, r.pointerBits, r.Header(), r.ending
	s.Bytes, s.Indexed, s.Lost = in.feed.at, r.indexed, r.lost
}

func (s *Survey) add(c *chunk, threads map[uint32]*ThreadSurvey) {
	t := threads[c.thread]
	if t == nil {
		t = &ThreadSurvey{Number: c.thread}
		threads[c.thread] = t
	}
	t.Chunks, t.Steps, t.References = t.Chunks+1, t.Steps+c.steps, t.References+c.references
	s.Chunks, s.Steps, s.References = s.Chunks+1, s.Steps+c.steps, s.References+c.references
	if s.Chunks == 1 {
		s.FirstTicket = c.firstTicket
	}
	s.FirstTicket, s.LastTicket = min(s.FirstTicket, c.firstTicket), max(s.LastTicket, c.lastTicket)
	s.ContentBytes += c.contentBytes()
}
