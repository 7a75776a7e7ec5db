package sgt

import (
	"encoding/binary"
	"io"
)

// stream is a source that reads a file from front to back.
type stream struct {
	feed
	headersOnly bool // pass over the content of chunks
}

func (s *stream) at() uint64 { return s.feed.at }

// next reads frames until a chunk comes.
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
				// The numbers of all later blocks hang on it.
				return nil, r.damage(f.at, err)
			}
			r.lose(Lost{Frames: 1, First: err, Offset: f.at})
		default:
			err := r.take(f)
			if err == nil && r.each != nil {
				err = r.each(f)
			}
			if err != nil {
				return nil, r.refuse(f.at, err)
			}
		}
	}
}

// chunk reads what follows the frame of a chunk; wrong is what is wrong with the
// frame itself. A chunk that is wrong is passed over: it is nil.
func (s *stream) chunk(r *Reader, f frame, wrong error) (*chunk, error) {
	c := r.reused.chunk()
	packed := c.packed
	if wrong == nil {
		*c, wrong = parseChunk(f.body)
	}
	if wrong != nil {
		r.lose(Lost{Chunks: 1, First: wrong, Offset: f.at})
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

// skipLZ4 passes over an LZ4 frame whose length is not known.
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

// bit is 1 where flags have the flag.
func bit(flags, flag byte) int {
	if flags&flag != 0 {
		return 1
	}
	return 0
}

// skip passes over n bytes.
func (f *feed) skip(n int) error {
	var done int64
	var err error
	if s, ok := f.r.(*section); ok {
		done, err = s.skip(int64(n))
	} else {
		done, err = io.CopyN(io.Discard, f.r, int64(n))
	}
	f.at += uint64(done)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
