package workers

import (
	"strconv"

	"github.com/stackglass/stackglass/core/codec"
)

// body writes or reads the fields of a message. The Want of a [BodyError] is the first field that
// cannot be read.
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

// decodeAs reads a T from data. Its error is a *[BodyError].
func decodeAs[T any](message Type, data []byte, code func(*T, *body)) (v T, err error) {
	err = decode(message, data, func(b *body) { code(&v, b) })
	return v, err
}

// decode calls code to read data to its end. Its error is a *[BodyError].
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

// failed reports whether reading has failed, and records want if it is the first failure.
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

// texts codes a list; nil and an empty list are the same.
func (b *body) texts(v *[]string, want string) {
	codec.Slice(b.Coder, v, 1, b.Text)
	b.failed(want)
}

// bytes codes bytes; nil and empty are the same. What it reads lies in the message.
func (b *body) bytes(v *[]byte, want string) {
	if b.Bytes(v); len(*v) == 0 {
		*v = nil
	}
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

// numbers codes a list; nil and an empty list are the same.
func (b *body) numbers(v *[]uint64, want string) {
	codec.Slice(b.Coder, v, 1, b.U64)
	b.failed(want)
}

// lists codes lists of numbers; nil and an empty list are the same.
func (b *body) lists(v *[][]uint32, want string) {
	codec.Slice(b.Coder, v, 1, func(list *[]uint32) { b.list(list, want) })
	b.failed(want)
}

// rest codes bytes to the end of the message. What it reads lies in the message.
func (b *body) rest(v *[]byte) {
	if !b.Reads() {
		b.Out = append(b.Out, *v...)
	} else if *v = b.In.Take(); len(*v) == 0 {
		*v = nil
	}
}
