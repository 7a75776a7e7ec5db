//go:build js && wasm

package file

import (
	"errors"
	"io"
	"strconv"
	"syscall/js"

	"github.com/stackglass/stackglass/workers/web"
)

const (
	// smallRead is the size of the largest read that is served from a buffer in Go's memory.
	smallRead = 64 << 10
	// smallBuffer is the size of the buffer for small reads.
	smallBuffer = 256 << 10
)

// File is an open local file for use by one goroutine. Event handlers must not use a File.
type File struct {
	name   string
	size   uint64
	blob   js.Value
	source source
	ahead  js.Value // the promise of the chunk after the field "view"
	view   js.Value // the chunk that is being read, a Uint8Array
	at     int      // number of bytes that were read from the field "view"
	length int      // number of bytes in the field "view"
	small  []byte   // the unread part of the field "buffer"
	buffer []byte   // buffer for small reads
	read   uint64
	end    error // io.EOF or an error; never changes once set
}

// ReadError reports that the browser could not continue reading a file.
type ReadError struct {
	Name   string // the file's name
	Offset uint64 // number of bytes read before the error
	Cause  string // the browser's explanation
}

// Nameless returns the text of the error without the file's name.
func (e *ReadError) Nameless() string {
	nameless := *e
	nameless.Name = "the file"
	return nameless.Error()
}

func (e *ReadError) Error() string {
	return e.Name + ": the browser could not continue reading after byte " + strconv.FormatUint(e.Offset, 10) + " (" + e.Cause +
		"); the file was changed, moved or deleted since it was chosen, or the disk was removed: choose the file again"
}

// Open opens a File or a Blob.
func Open(blob js.Value) (*File, error) {
	if !isBlob(blob) {
		return nil, errNoFile
	}
	f := &File{name: "the file", size: uint64(blob.Get("size").Float()), blob: blob, view: js.Undefined()}
	if name := blob.Get("name"); name.Type() == js.TypeString {
		f.name = name.String()
	}
	f.source = newSource(blob)
	f.ahead = f.source.begin(js.Undefined())
	return f, nil
}

var errNoFile = errors.New("the object to analyse is not a local file")

func isBlob(v js.Value) bool {
	return v.Type() == js.TypeObject && v.Get("size").Type() == js.TypeNumber
}

// Size returns the number of bytes in the file.
func (f *File) Size() uint64 { return f.size }

// BytesRead returns the number of bytes that Read has returned.
func (f *File) BytesRead() uint64 { return f.read }

// Read implements io.Reader. Errors other than io.EOF have the type *[ReadError].
func (f *File) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	switch {
	case len(f.small) > 0:
		n = f.readSmall(p)
	case len(p) > smallRead:
		n, err = f.readLarge(p)
	default:
		if f.buffer == nil {
			f.buffer = make([]byte, smallBuffer)
		}
		n, err = f.readLarge(f.buffer)
		f.small = f.buffer[:n]
		n = f.readSmall(p)
	}
	f.read += uint64(n)
	return n, err
}

func (f *File) readSmall(p []byte) int {
	n := copy(p, f.small)
	f.small = f.small[n:]
	return n
}

// readLarge copies from the current chunk, and waits for the next chunk if necessary.
func (f *File) readLarge(p []byte) (int, error) {
	for f.at == f.length {
		if f.end == nil {
			f.end = f.turnOver()
		}
		if f.end != nil {
			return 0, f.end
		}
	}
	part := f.view
	if f.at > 0 || f.length > len(p) {
		part = f.view.Call("subarray", f.at, min(f.length, f.at+len(p)))
	}
	n := js.CopyBytesToGo(p, part)
	f.at += n
	return n, nil
}

// turnOver waits for the next chunk, and requests the chunk after it. This request reuses the
// memory of the previous chunk.
func (f *File) turnOver() error {
	result, err := web.Await(f.ahead)
	if err != nil {
		return &ReadError{Name: f.name, Offset: f.read, Cause: errorText(err)}
	}
	spare := js.Undefined()
	if !f.view.IsUndefined() {
		spare = f.view.Get("buffer")
	}
	chunk, done := f.source.take(result)
	if done {
		f.view, f.at, f.length = js.Undefined(), 0, 0
		if got := f.read + uint64(len(f.small)); got != f.size {
			return &ReadError{Name: f.name, Offset: f.read, Cause: "the file ends at this position instead of after " + strconv.FormatUint(f.size, 10) + " bytes"}
		}
		return f.checkUnchanged()
	}
	f.view, f.at, f.length = chunk, 0, chunk.Length()
	f.ahead = f.source.begin(spare)
	return nil
}

// checkUnchanged returns io.EOF if the file has not changed since it was chosen, and otherwise an
// error. Browsers check this only when they open a file, so checkUnchanged opens the file again and
// reads its last byte.
func (f *File) checkUnchanged() error {
	last, err := web.Try(func() js.Value { return f.blob.Call("slice", max(1, f.size)-1).Call("arrayBuffer") })
	if err == nil {
		_, err = web.Await(last)
	}
	if err != nil {
		return &ReadError{Name: f.name, Offset: f.read, Cause: errorText(err)}
	}
	return io.EOF
}

// Close closes the file. Close does not block.
func (f *File) Close() error {
	if f.end == nil {
		f.end = &ReadError{Name: f.name, Offset: f.read, Cause: "the file was closed"}
		f.source.cancel()
	}
	f.view, f.length, f.at, f.small = js.Undefined(), 0, 0, nil
	return nil
}

// errorText returns the browser's description of an error, including the kind of error.
func errorText(err error) string {
	thrown, ok := err.(js.Error)
	if !ok || thrown.Value.Type() != js.TypeObject {
		return err.Error()
	}
	return thrown.Value.Get("name").String() + ": " + thrown.Value.Get("message").String()
}

// source delivers a file's chunks in order. A chunk may be requested while the program still
// reads the previous chunk.
type source interface {
	// begin requests the next chunk, and returns a promise for this chunk. It may reuse the memory
	// of the parameter "spare", which is an ArrayBuffer or undefined.
	begin(spare js.Value) (promise js.Value)
	// take returns the chunk that the settled promise contains, as a Uint8Array.
	take(result js.Value) (chunk js.Value, done bool)
	// cancel cancels the current request.
	cancel()
}

// newSource returns the fastest source that the browser supports.
func newSource(blob js.Value) source {
	if blob.Get("stream").Type() == js.TypeFunction {
		file := blob.Call("stream")
		reader, err := web.Try(func() js.Value {
			return file.Call("getReader", map[string]any{"mode": "byob"})
		})
		if err == nil {
			return &stream{reader, true}
		}
		if reader, err = web.Try(func() js.Value { return file.Call("getReader") }); err == nil {
			return &stream{reader, false}
		}
	}
	return &slicing{blob: blob}
}

const ownBufferBytes = 4 << 20

// stream reads a stream. If the field "own" is set, it passes its own buffers to the browser, which
// fills them and returns them. Otherwise, the browser allocates the buffers.
type stream struct {
	reader js.Value
	own    bool
}

func (s *stream) begin(spare js.Value) js.Value {
	if !s.own {
		return s.reader.Call("read")
	}
	if spare.IsUndefined() {
		spare = js.Global().Get("ArrayBuffer").New(ownBufferBytes)
	}
	return s.reader.Call("read", js.Global().Get("Uint8Array").New(spare))
}

func (s *stream) take(result js.Value) (js.Value, bool) {
	return result.Get("value"), result.Get("done").Bool()
}

func (s *stream) cancel() { ignore(s.reader.Call("cancel")) }

const sliceBytes = 8 << 20

// slicing reads a file slice by slice, for browsers without streams.
type slicing struct {
	blob js.Value
	at   float64
}

func (s *slicing) begin(js.Value) js.Value {
	part := s.blob.Call("slice", s.at, s.at+sliceBytes)
	s.at += part.Get("size").Float()
	return part.Call("arrayBuffer")
}

func (s *slicing) take(result js.Value) (js.Value, bool) {
	bytes := js.Global().Get("Uint8Array").New(result)
	return bytes, bytes.Length() == 0
}

func (s *slicing) cancel() {}

// ignore prevents an error in the console if a promise fails. Function.prototype is a function
// that does nothing.
func ignore(promise js.Value) {
	promise.Call("catch", js.Global().Get("Function").Get("prototype"))
}
