package unpack

import (
	"errors"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/open"
)

// reader is the analysis worker's side of the connection. It sends compressed bytes from source and
// receives decompressed bytes.
type reader struct {
	port      port
	source    io.Reader
	part      []byte // compressed bytes to send
	window    int    // number of parts that may be sent now
	sourceEnd error  // how the source ended; nil until the decompressor has been informed of the end
	ready     bool   // whether the decompressor is running
	chunk     []byte // the decompressed part that is being read
	rest      []byte // the unread bytes of chunk
	err       error  // the end of the stream, or nil
}

// newReader starts decompressing source. newReader sends compressed bytes even while the
// decompressor is loading.
func newReader(p port, packing string, source io.Reader) *reader {
	p.post(message{kind: begin, text: packing})
	return &reader{port: p, source: source, part: make([]byte, packedBytes), window: ahead}
}

// Read returns decompressed bytes, and finally an error of a kind that [open.Packing] specifies.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.release()
		r.sendParts()
		r.hear(r.port.take())
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// release frees a decompressed part, and allows the decompressor to send one more part.
func (r *reader) release() {
	if r.chunk != nil {
		r.port.free(r.chunk)
		r.chunk = nil
		r.port.post(message{kind: more})
	}
}

// sendParts sends as many parts as the decompressor may receive now.
func (r *reader) sendParts() {
	for ; r.window > 0 && r.sourceEnd == nil; r.window-- {
		n, err := fill(r.source.Read, r.part)
		if n > 0 {
			r.port.post(message{kind: packed, bytes: r.part[:n]})
		}
		if err != nil {
			end := broken
			if r.sourceEnd = err; err == io.EOF {
				end = ended
			}
			r.port.post(message{kind: end})
		}
	}
}

func (r *reader) hear(m message) {
	switch m.kind {
	case ready:
		r.ready = m.number == protocolVersion
		if !r.ready {
			r.end(&open.UnpackerError{Err: &versionError{m.number}})
		}
	case took:
		r.window++
	case unpacked:
		r.chunk, r.rest = m.bytes, m.bytes
	case whole:
		r.end(io.EOF)
	case cut:
		r.end(io.ErrUnexpectedEOF)
	case damaged:
		r.end(errors.New(m.text))
	case stopped:
		r.end(r.sourceEnd)
	default:
		r.end(&open.UnpackerError{Err: &goneError{loaded: r.ready, why: m.text}})
	}
}

// end records the end of the stream, and ends the decompressor.
func (r *reader) end(err error) {
	r.err = err
	r.port.close()
}

// versionError reports that the decompressor is from a different build.
type versionError struct{ got int }

func (e *versionError) Error() string {
	return "the decompression program is from a different version of this site (" + strconv.Itoa(e.got) + ", want " +
		strconv.Itoa(protocolVersion) + "): reload the page"
}

// goneError reports that the decompressor could not be loaded or has died.
type goneError struct {
	loaded bool   // whether the decompressor had started before it died
	why    string // the reason, or "" if it is unknown
}

func (e *goneError) Error() string {
	why := ""
	if e.why != "" {
		why = " (" + e.why + ")"
	}
	if e.loaded {
		return "the decompression program crashed" + why + ": reload the page and try again"
	}
	return "the decompression program could not be loaded" + why + ": this program is downloaded when it is first needed, " +
		"so go online and reload the page"
}
