//go:build js && wasm

package file

import (
	"syscall/js"

	"github.com/stackglass/stackglass/workers/web"
)

// source returns a file's chunks in order. A request for one chunk may run while the previous one is read.
type source interface {
	// begin requests the next chunk and returns its promise. It may use the memory of spare, an
	// ArrayBuffer or undefined.
	begin(spare js.Value) (promise js.Value)
	// take returns the chunk, a Uint8Array, from the promise's value.
	take(result js.Value) (chunk js.Value, done bool)
	// cancel cancels the current request.
	cancel()
}

// newSource returns the fastest source that the browser has.
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

// stream reads a stream, into buffers that travel to the browser and back or, unless own, into the browser's
// memory.
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

// slicing reads slice by slice, for browsers without streams.
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

// ignore lets a promise fail without an error in the console. Function.prototype does nothing.
func ignore(promise js.Value) {
	promise.Call("catch", js.Global().Get("Function").Get("prototype"))
}
