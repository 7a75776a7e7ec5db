package workers

import (
	"encoding/binary"
	"strconv"

	"github.com/stackglass/stackglass/core/codec"
)

// body writes or reads the fields of a message. The first field that cannot be read is
// what a [BodyError] wants.
type body struct {
	*codec.Coder
	want string
}

// encode returns what code writes.
func encode(code func(*body)) []byte {
	b := &body{Coder: codec.Writer([]byte{protocolVersion})}
	code(b)
	return b.Out
}

// decode has code read data to its end. Its error is a *[BodyError].
func decode(message Type, data []byte, code func(*body)) error {
	b := &body{Coder: codec.Reader(data)}
	version := uint64(protocolVersion)
	if len(data) == 0 || data[0] != protocolVersion {
		b.In.Fail("another version")
		b.failed("version " + strconv.Itoa(protocolVersion) + " of the protocol")
	}
	b.U64(&version)
	code(b)
	b.Check(!b.More(), "more")
	if !b.failed("the end of the message") {
		return nil
	}
	return &BodyError{Message: message, Offset: b.In.Err().(*codec.Error).Offset, Want: b.want}
}

// failed reports whether reading has failed, for want of this if it had not before.
func (b *body) failed(want string) bool {
	if b.Failed() && b.want == "" {
		b.want = want
	}
	return b.Failed()
}

func (b *body) number(v *uint64, want string) {
	b.U64(v)
	b.failed(want)
}

func below[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int](b *body, v *T, limit uint64, want string) {
	codec.Below(b.Coder, v, limit)
	b.failed(want)
}

func (b *body) flag(v *bool, want string) {
	b.Flag(v)
	b.failed(want)
}

func (b *body) text(v *string, want string) {
	b.Text(v)
	b.failed(want)
}

// list codes the length + 1 of a list, 0 for nil, and its numbers.
func (b *body) list(v *[]uint32, want string) {
	n := 0
	if *v != nil {
		n = len(*v) + 1
	}
	if n = b.Length(n, 1); n > 0 {
		if b.Reads() {
			*v = []uint32{}
		}
		codec.Members(b.Coder, v, n-1, b.U32)
	}
	b.failed(want)
}

// numbers codes a list for which none and an empty one are the same.
func (b *body) numbers(v *[]uint64, want string) {
	codec.Slice(b.Coder, v, 1, b.U64)
	b.failed(want)
}

// lists codes lists of numbers; none and an empty one are the same.
func (b *body) lists(v *[][]uint32, want string) {
	codec.Slice(b.Coder, v, 1, func(list *[]uint32) { b.list(list, want) })
	b.failed(want)
}

// rest codes bytes to the end of the message. What it reads lies in the message.
func (b *body) rest(v *[]byte) {
	if b.Reads() {
		*v = b.In.Take()
		return
	}
	b.Out = append(b.Out, *v...)
}

// bodyWriter appends the primitives of encode.go.
type bodyWriter struct{ bytes []byte }

func newBody(capacity int) *bodyWriter {
	return &bodyWriter{append(make([]byte, 0, capacity), protocolVersion)}
}

func (w *bodyWriter) number(n uint64) { w.bytes = binary.AppendUvarint(w.bytes, n) }

func (w *bodyWriter) flag(set bool) {
	var b byte
	if set {
		b = 1
	}
	w.bytes = append(w.bytes, b)
}

func (w *bodyWriter) text(s string) {
	w.number(uint64(len(s)))
	w.bytes = append(w.bytes, s...)
}

// texts writes a list for which none and an empty one are the same.
func (w *bodyWriter) texts(l []string) {
	w.number(uint64(len(l)))
	for _, s := range l {
		w.text(s)
	}
}

// bodyReader reads the primitives of encode.go. After the first error it reads
// zeros; end gives the error.
type bodyReader struct {
	message Type
	body    []byte
	at      int // ≤ len(body)
	err     *BodyError
}

func openBody(message Type, body []byte) *bodyReader {
	r := &bodyReader{message: message, body: body}
	if len(body) == 0 || body[0] != protocolVersion {
		r.fail("version " + strconv.Itoa(protocolVersion) + " of the protocol")
		return r
	}
	r.at = 1
	return r
}

// fail notes the first error and moves to the end, so that nothing more is
// read.
func (r *bodyReader) fail(want string) {
	if r.err == nil {
		r.err = &BodyError{Message: r.message, Offset: r.at, Want: want}
		r.at = len(r.body)
	}
}

func (r *bodyReader) number(want string) uint64 {
	n, length := binary.Uvarint(r.body[r.at:])
	if length <= 0 {
		r.fail(want)
		return 0
	}
	r.at += length
	return n
}

func (r *bodyReader) below(limit uint64, want string) uint64 {
	at := r.at
	n := r.number(want)
	if n >= limit {
		r.at = at
		r.fail(want)
		return 0
	}
	return n
}

func (r *bodyReader) flag(want string) bool { return r.below(2, want) == 1 }

func (r *bodyReader) text(want string) string {
	n := r.number(want)
	if n > uint64(len(r.body)-r.at) {
		r.fail(want)
		return ""
	}
	s := string(r.body[r.at : r.at+int(n)])
	r.at += int(n)
	return s
}

func (r *bodyReader) texts(want string) (l []string) {
	n := r.number(want)
	if n > uint64(len(r.body)-r.at) {
		r.fail(want)
		return nil
	}
	for range n {
		l = append(l, r.text(want))
	}
	return l
}

func (r *bodyReader) rest() []byte {
	rest := r.body[r.at:]
	r.at = len(r.body)
	return rest
}

// end gives the first error, or one for bytes that are left over.
func (r *bodyReader) end() error {
	if r.err == nil && r.at < len(r.body) {
		r.fail("the end of the message")
	}
	if r.err != nil {
		return r.err
	}
	return nil
}
