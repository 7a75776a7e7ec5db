package unpack

import (
	"errors"
	"io"

	"github.com/stackglass/stackglass/core/open"
)

// errBroken is the error that the decoder receives if the file could not be read.
var errBroken = errors.New("the rest of the file could not be read")

// server is the decompressor's side of the connection. The decoder reads compressed bytes from it.
type server struct {
	port   port
	queue  [][]byte // compressed parts that wait to be read
	end    error    // how the stream ends after the parts in the queue: io.EOF or errBroken; nil: not known yet
	part   []byte   // the compressed part that is being read
	rest   []byte   // the unread bytes of part
	broke  bool     // whether the decoder has received errBroken
	credit int      // number of decompressed parts that may be sent
}

// serve decompresses one stream completely.
func serve(p port, packings []open.Packing) error {
	p.post(message{kind: ready, number: protocolVersion})
	m := p.take()
	for _, packing := range packings {
		if m.kind == begin && packing.Name == m.text {
			s := &server{port: p, credit: ahead}
			s.reportEnd(s.unpack(packing))
			return nil
		}
	}
	return errors.New("there is no decompressor for " + m.text)
}

// unpack sends the decoder's output, and returns its error.
func (s *server) unpack(packing open.Packing) error {
	decoder, err := packing.New(s)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the stream ended before its first byte
	}
	for chunk := make([]byte, unpackedBytes); err == nil; {
		var n int
		n, err = fill(decoder.Read, chunk)
		if n > 0 {
			s.send(chunk[:n])
		}
	}
	return err
}

// send sends a decompressed part as soon as the protocol allows it.
func (s *server) send(part []byte) {
	for s.credit == 0 {
		s.receive()
	}
	s.credit--
	s.port.post(message{kind: unpacked, bytes: part})
}

// reportEnd sends a message about how the stream ended. The message distinguishes the errors that
// [open.Packing] specifies.
func (s *server) reportEnd(err error) {
	m := message{kind: damaged, text: err.Error()}
	switch {
	case err == io.EOF:
		m = message{kind: whole}
	case s.broke:
		m = message{kind: stopped}
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		m = message{kind: cut}
	}
	s.port.post(m)
}

// receive waits for a message and handles it.
func (s *server) receive() {
	switch m := s.port.take(); m.kind {
	case packed:
		s.queue = append(s.queue, m.bytes)
	case more:
		s.credit++
	case ended:
		s.end = io.EOF
	case broken:
		s.end = errBroken
	}
}

// next waits until there are compressed bytes to read.
func (s *server) next() error {
	if len(s.rest) > 0 {
		return nil
	}
	for len(s.queue) == 0 {
		if s.end != nil {
			s.broke = s.end == errBroken
			return s.end
		}
		s.receive()
	}
	if s.part != nil {
		s.port.free(s.part)
	}
	s.part, s.queue = s.queue[0], s.queue[1:]
	s.rest = s.part
	s.port.post(message{kind: took})
	return nil
}

// Read returns compressed bytes.
func (s *server) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.next(); err != nil {
		return 0, err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// ReadByte implements io.ByteReader, which decoders require.
func (s *server) ReadByte() (byte, error) {
	if err := s.next(); err != nil {
		return 0, err
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c, nil
}
