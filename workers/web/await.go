//go:build js && wasm

package web

import (
	"sync"
	"syscall/js"
)

// Await waits for a promise and returns its value, or a js.Error if it was rejected. Event handlers
// must not call Await.
func Await(promise js.Value) (js.Value, error) {
	type outcome struct {
		value js.Value
		err   error
	}
	settled := make(chan outcome, 1)
	fulfilled := Function(func(args []js.Value) { settled <- outcome{value: args[0]} })
	defer fulfilled.Release()
	rejected := Function(func(args []js.Value) { settled <- outcome{err: js.Error{Value: args[0]}} })
	defer rejected.Release()
	promise.Call("then", fulfilled, rejected)
	o := <-settled
	return o.value, o.err
}

// Try calls f. If f throws an exception, Try returns the exception as an error.
func Try(f func() js.Value) (v js.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			thrown, ok := p.(js.Error)
			if !ok {
				panic(p)
			}
			err = thrown
		}
	}()
	return f(), nil
}

// Release frees the memory of a typed array at once if the browser supports that. Without Release,
// the memory is freed only after both Go and the browser have collected garbage. Go's collector
// does not know the size of the array, so the collector may run late.
func Release(array js.Value) {
	if buffer := array.Get("buffer"); buffer.Get("transfer").Type() == js.TypeFunction {
		buffer.Call("transfer", 0)
	}
}

// yielder sends itself a message. The browser delivers this message after the waiting events.
type yielder struct {
	turn    sync.Mutex
	port    js.Value
	arrived chan struct{}
}

var theYielder = sync.OnceValue(func() *yielder {
	y := &yielder{arrived: make(chan struct{}, 1)}
	channel := js.Global().Get("MessageChannel").New()
	channel.Get("port1").Set("onmessage", Function(func([]js.Value) { y.arrived <- struct{}{} }))
	y.port = channel.Get("port2")
	return y
})

// Yield lets the browser handle waiting events. Yield takes about fifty microseconds.
// runtime.Gosched does not let the browser handle events, and the shortest time.Sleep takes two
// milliseconds. Event handlers must not call Yield.
func Yield() {
	y := theYielder()
	y.turn.Lock()
	defer y.turn.Unlock()
	y.port.Call("postMessage", 0)
	<-y.arrived
}
