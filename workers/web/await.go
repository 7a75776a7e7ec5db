//go:build js && wasm

package web

import (
	"sync"
	"syscall/js"
)

// Await waits for promise and gives its value, or what it was rejected with, as
// a js.Error. It must not be called from an event handler.
func Await(promise js.Value) (js.Value, error) {
	type outcome struct {
		value js.Value
		err   error
	}
	settled := make(chan outcome, 1)
	fulfilled := js.FuncOf(func(_ js.Value, args []js.Value) any {
		settled <- outcome{value: args[0]}
		return nil
	})
	defer fulfilled.Release()
	rejected := js.FuncOf(func(_ js.Value, args []js.Value) any {
		settled <- outcome{err: js.Error{Value: args[0]}}
		return nil
	})
	defer rejected.Release()
	promise.Call("then", fulfilled, rejected)
	o := <-settled
	return o.value, o.err
}

// Try calls f and gives what it throws as an error.
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

// Release frees the memory of a typed array at once, where the browser can. Otherwise it
// stays until both Go and the browser have collected their garbage: Go does not know how
// large the array is, so its collector may not run for a long time.
func Release(array js.Value) {
	if buffer := array.Get("buffer"); buffer.Get("transfer").Type() == js.TypeFunction {
		buffer.Call("transfer", 0)
	}
}

// yielder passes a message to itself: the browser delivers it after the events
// that were waiting.
type yielder struct {
	turn    sync.Mutex
	port    js.Value
	arrived chan struct{}
}

var theYielder = sync.OnceValue(func() *yielder {
	y := &yielder{arrived: make(chan struct{}, 1)}
	channel := js.Global().Get("MessageChannel").New()
	channel.Get("port1").Set("onmessage", js.FuncOf(func(js.Value, []js.Value) any {
		y.arrived <- struct{}{}
		return nil
	}))
	y.port = channel.Get("port2")
	return y
})

// Yield lets the events in that wait for the program: some fifty microseconds.
// runtime.Gosched does not, and the least time.Sleep takes two milliseconds.
// It must not be called from an event handler.
func Yield() {
	y := theYielder()
	y.turn.Lock()
	defer y.turn.Unlock()
	y.port.Call("postMessage", 0)
	<-y.arrived
}
