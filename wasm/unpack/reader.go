package unpack

import (
	"errors"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/open"
)

// reader is the analysis worker's side: packed bytes of source go to the
// unpacker, unpacked ones come from it.
type reader struct {
	port   port
	source io.Reader
	part   []byte // packed bytes on their way out
	window int    // parts that may be sent now
	told   error  // why source gives no more, once the unpacker was told; or nil
	ready  bool   // the unpacker runs
	chunk  []byte // the unpacked part that is being read
	rest   []byte // what is left of it
	err    error  // what the stream ended with
}

// newReader asks for the unpacking of source. Packed bytes are sent before the
// unpacker is ready: reading them takes place while it loads.
func newReader(p port, packing string, source io.Reader) *reader {
	p.post(message{kind: begin, text: packing})
	return &reader{port: p, source: source, part: make([]byte, packedBytes), window: ahead}
}

// Read gives the unpacked bytes, and then an error as [open.Packing] asks for.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.letGo()
		r.feed()
		r.hear(r.port.take())
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// letGo makes room for another unpacked part.
func (r *reader) letGo() {
	if r.chunk != nil {
		r.port.free(r.chunk)
		r.chunk = nil
		r.port.post(message{kind: more})
	}
}

// feed sends as much as the unpacker may have.
func (r *reader) feed() {
	for ; r.window > 0 && r.told == nil; r.window-- {
		n, err := fill(r.source.Read, r.part)
		if n > 0 {
			r.port.post(message{kind: packed, bytes: r.part[:n]})
		}
		if err != nil {
			r.told = err
			r.port.post(message{kind: endOf(err)})
		}
	}
}

func endOf(err error) kind {
	if err == io.EOF {
		return ended
	}
	return broken
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
		r.end(r.told)
	default:
		r.end(&open.UnpackerError{Err: &goneError{loaded: r.ready, why: m.text}})
	}
}

// end notes how the stream ended, and lets the unpacker go.
func (r *reader) end(err error) {
	r.err = err
	r.port.close()
}

// versionError tells that the unpacker is of another build.
type versionError struct{ got int }

func (e *versionError) Error() string {
	return "what unpacks it is of another version of this site (" + strconv.Itoa(e.got) + ", want " +
		strconv.Itoa(protocolVersion) + "): reload the page"
}

// goneError tells that there is no unpacker, or none any more.
type goneError struct {
	loaded bool   // it ran, and died
	why    string // as far as known
}

func (e *goneError) Error() string {
	why := ""
	if e.why != "" {
		why = " (" + e.why + ")"
	}
	if e.loaded {
		return "what unpacks it died" + why + ": reload the page and try again"
	}
	return "what unpacks it could not be loaded" + why + ": it comes from this site when it is first needed, " +
		"so go online and reload the page"
}
