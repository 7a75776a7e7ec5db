//go:build js && wasm

package file

import (
	"syscall/js"

	"github.com/stackglass/stackglass/workers/web"
)

// source gives a file's chunks in order. One chunk may be under way while the
// one before is read.
type source interface {
	// begin asks for the next chunk and gives the promise of it. The memory of
	// spare, an ArrayBuffer or undefined, may be used for it.
	begin(spare js.Value) (promise js.Value)
	// take gives the chunk, a Uint8Array, from what the promise gave.
	take(result js.Value) (chunk js.Value, done bool)
	// cancel ends what is under way.
	cancel()
}

// newSource chooses the fastest source that the browser has.
func newSource(blob js.Value) source {
	if blob.Get("stream").Type() == js.TypeFunction {
		stream := blob.Call("stream")
		reader, err := web.Try(func() js.Value {
			return stream.Call("getReader", map[string]any{"mode": "byob"})
		})
		if err == nil {
			return &ownBuffers{reader}
		}
		if reader, err = web.Try(func() js.Value { return stream.Call("getReader") }); err == nil {
			return &plainStream{reader}
		}
	}
	return &slices{blob: blob}
}

const ownBufferBytes = 4 << 20

// ownBuffers reads into buffers that travel to the browser and back.
type ownBuffers struct{ reader js.Value }

func (s *ownBuffers) begin(spare js.Value) js.Value {
	if spare.IsUndefined() {
		spare = js.Global().Get("ArrayBuffer").New(ownBufferBytes)
	}
	return s.reader.Call("read", js.Global().Get("Uint8Array").New(spare))
}

func (s *ownBuffers) take(result js.Value) (js.Value, bool) {
	return result.Get("value"), result.Get("done").Bool()
}

func (s *ownBuffers) cancel() { ignore(s.reader.Call("cancel")) }

// plainStream reads into memory that the browser chooses.
type plainStream struct{ reader js.Value }

func (s *plainStream) begin(js.Value) js.Value { return s.reader.Call("read") }

func (s *plainStream) take(result js.Value) (js.Value, bool) {
	return result.Get("value"), result.Get("done").Bool()
}

func (s *plainStream) cancel() { ignore(s.reader.Call("cancel")) }

const sliceBytes = 8 << 20

// slices reads piece by piece, where there are no streams.
type slices struct {
	blob js.Value
	at   float64
}

func (s *slices) begin(js.Value) js.Value {
	part := s.blob.Call("slice", s.at, s.at+sliceBytes)
	s.at += part.Get("size").Float()
	return part.Call("arrayBuffer")
}

func (s *slices) take(result js.Value) (js.Value, bool) {
	bytes := js.Global().Get("Uint8Array").New(result)
	return bytes, bytes.Length() == 0
}

func (s *slices) cancel() {}

// ignore lets a promise fail without a complaint in the console.
// Function.prototype is the function that does nothing.
func ignore(promise js.Value) {
	promise.Call("catch", js.Global().Get("Function").Get("prototype"))
}
