package sgt

import (
	"encoding/binary"
	"io"
)

type chunkEntry struct {
	at                      uint64 // offset of the CHNK frame
	thread                  uint32
	steps, references       uint64
	firstTicket, lastTicket uint64
}

// chunk contains the fields of a CHNK frame, and the content of the chunk.
type chunk struct {
	chunkEntry
	floor                                 uint64 // lower bound of the tickets in later chunks
	controlBytes, valueBytes, ticketBytes uint64 // lengths of the chunk's three parts
	frameBytes                            uint64

	packed []byte       // the chunk's LZ4 frame
	early  *early       // the rows of the chunk if it is decoded in advance; otherwise nil
	known  *chunkTables // the tables that precede the chunk
}

// Limits on the size of a chunk.
const (
	mostSteps   = 1 << 26 // maximum number of steps in a chunk
	mostContent = 1 << 26 // maximum number of bytes in a chunk
	mostPacked  = mostContent + 1<<20
)

// parseChunk reads the body of a CHNK frame.
func parseChunk(body []byte) (c chunk, err error) {
	r := cursor{bytes: body}
	c.thread = r.u32("thread")
	c.steps = r.below(mostSteps+1, "number of steps")
	c.references, c.firstTicket, c.lastTicket, c.floor = r.uv(), r.uv(), r.uv(), r.uv()
	c.controlBytes = r.below(mostContent+1, "number of control bytes")
	c.valueBytes = r.below(mostContent+1, "number of value bytes")
	c.ticketBytes = r.below(mostContent+1, "number of ticket bytes")
	c.frameBytes = r.below(mostPacked+1, "number of frame bytes")
	if content := c.contentBytes(); content > mostContent {
		r.fail("number of content bytes", content, "at most "+decimal(mostContent))
	}
	if c.lastTicket < c.firstTicket {
		r.fail("last ticket", c.lastTicket, "at least the first ticket, "+decimal(c.firstTicket))
	}
	return c, r.end()
}

// contentBytes returns the total length of the three parts.
func (c *chunk) contentBytes() uint64 { return c.controlBytes + c.valueBytes + c.ticketBytes }

// stream is a source that reads a file from the beginning to the end.
type stream struct {
	feed
	headersOnly bool // whether to skip the content of chunks
}

func (s *stream) at() uint64 { return s.feed.at }

// next reads frames up to the next chunk.
func (s *stream) next(r *Reader) (*chunk, error) {
	for {
		f, err := s.feed.next()
		switch {
		case err == io.EOF && !r.indexed:
			return nil, io.ErrUnexpectedEOF
		case err != nil && err != errCheck:
			return nil, err
		case !r.begun && (err != nil || f.tag != tagFile):
			return nil, r.damage(f.at, errFirst)
		case f.tag == tagChunk:
			c, err := s.chunk(r, f, err)
			if c != nil || err != nil {
				return c, err
			}
		case err == errCheck:
			if f.tag == tagModule || f.tag == "" {
				// Reading stops, because the numbers of all later blocks depend on this frame.
				return nil, r.damage(f.at, err)
			}
			r.recordLoss(Lost{Frames: 1, First: err, Offset: f.at})
		default:
			err := r.takeFrame(f)
			if err == nil && r.each != nil {
				err = r.each(f)
			}
			if err != nil {
				return nil, r.addPosition(f.at, err)
			}
		}
	}
}

// chunk reads the content that follows the CHNK frame of a chunk. The parameter "wrong" is the
// error in the CHNK frame, or nil. If the frame or the content is wrong, chunk skips the chunk and
// returns nil.
func (s *stream) chunk(r *Reader, f frame, wrong error) (*chunk, error) {
	c := r.reused.chunk()
	packed := c.packed
	if wrong == nil {
		*c, wrong = parseChunk(f.body)
	}
	if wrong != nil {
		r.recordLoss(Lost{Chunks: 1, First: wrong, Offset: f.at})
		return nil, s.skipLZ4()
	}
	c.at = f.at
	if s.headersOnly {
		return c, s.skip(int(c.frameBytes))
	}
	var err error
	c.packed, err = s.readLong(packed[:0], int(c.frameBytes))
	return c, err
}

func (s *stream) skipLZ4() error {
	const (
		magic         = 0x184d2204
		blockChecksum = 1 << 4
		contentSize   = 1 << 3
		contentCheck  = 1 << 2
		dictionary    = 1 << 0
		notPacked     = 1 << 31
	)
	var head [6]byte
	if err := s.read(head[:]); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(head[:]) != magic {
		return errMagic
	}
	flags := head[4]
	err := s.skip(1 + 8*bit(flags, contentSize) + 4*bit(flags, dictionary))
	for err == nil {
		if err = s.read(head[:4]); err != nil {
			break
		}
		length := int(binary.LittleEndian.Uint32(head[:]) &^ notPacked)
		if length == 0 {
			return s.skip(4 * bit(flags, contentCheck))
		}
		err = s.skip(length + 4*bit(flags, blockChecksum))
	}
	return err
}

// bit returns 1 if the given flag is set in flags, and 0 otherwise.
func bit(flags, flag byte) int {
	if flags&flag != 0 {
		return 1
	}
	return 0
}

func (f *feed) skip(n int) error {
	done, err := int64(n), error(nil)
	if s, ok := f.r.(*io.SectionReader); ok {
		at, _ := s.Seek(0, io.SeekCurrent)
		if left := s.Size() - at; left < done {
			done, err = left, io.EOF
		}
		_, _ = s.Seek(done, io.SeekCurrent) // this cannot fail, because the target is within the file
	} else {
		done, err = io.CopyN(io.Discard, f.r, done)
	}
	f.at += uint64(done)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
