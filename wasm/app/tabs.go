//go:build js && wasm

package main

import (
	"strings"
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/workers/web"
)

// ownsPrefix is the first part of the name of an analysis's lock; the key of the analysis
// follows.
const ownsPrefix = "stackglass analysis "

// tabs implements [ui.Tabs]. Web Locks, which are released when a tab ends for any reason, show
// which tab runs which analysis. A BroadcastChannel carries all messages.
type tabs struct {
	locks   js.Value
	channel js.Value
}

// newTabs returns nil if the browser does not offer locks or channels, for example in an insecure
// context.
func newTabs(app *ui.App) ui.Tabs {
	locks, kind := js.Global().Get("navigator").Get("locks"), js.Global().Get("BroadcastChannel")
	if !locks.Truthy() || !kind.Truthy() {
		return nil
	}
	t := &tabs{locks: locks, channel: kind.New("stackglass")}
	t.channel.Call("addEventListener", "message", web.Function(func(args []js.Value) {
		key, progress, ok := decodeMessage(args[0].Get("data"))
		if ok {
			go app.Heard(key, progress)
		}
	}))
	return t
}

// decodeMessage decodes a message from another tab, which may run a different version of the
// page.
func decodeMessage(data js.Value) (key string, progress []byte, ok bool) {
	if data.Type() != js.TypeObject || data.Get("key").Type() != js.TypeString {
		return "", nil, false
	}
	if bytes := data.Get("progress"); bytes.InstanceOf(js.Global().Get("Uint8Array")) {
		const most = 1 << 16
		progress = make([]byte, min(bytes.Length(), most))
		js.CopyBytesToGo(progress, bytes)
	}
	return data.Get("key").String(), progress, true
}

// Own implements [ui.Tabs].
func (t *tabs) Own(key string) (release func()) {
	return t.request(key, map[string]any{"ifAvailable": true})
}

// Await implements [ui.Tabs].
func (t *tabs) Await(key string, leave <-chan struct{}) (release func()) {
	controller := js.Global().Get("AbortController").New()
	got := make(chan struct{})
	defer close(got)
	go func() {
		select {
		case <-leave:
			controller.Call("abort")
		case <-got:
		}
	}()
	return t.request(key, map[string]any{"signal": controller.Get("signal")})
}

// request requests a lock. It returns the function that releases the lock, or nil if the lock was
// not granted.
func (t *tabs) request(key string, options map[string]any) (release func()) {
	// This channel receives the function that settles the promise and thus releases the lock, or
	// undefined if the lock was not granted.
	granted := make(chan js.Value, 1)
	hold := js.FuncOf(func(_ js.Value, args []js.Value) any {
		if !args[0].Truthy() {
			granted <- js.Undefined()
			return nil
		}
		executor := web.Function(func(args []js.Value) { granted <- args[0] })
		defer executor.Release()
		return js.Global().Get("Promise").New(executor)
	})
	settled := make(chan struct{})
	request := t.locks.Call("request", ownsPrefix+key, options, hold)
	go func() {
		_, _ = web.Await(request) // the request may have been aborted
		hold.Release()
		close(settled)
	}()
	select {
	case end := <-granted:
		if end.IsUndefined() {
			return nil
		}
		return func() {
			end.Invoke()
			<-settled
		}
	case <-settled:
		return nil
	}
}

// Owned implements [ui.Tabs].
func (t *tabs) Owned() map[string]bool {
	owned := map[string]bool{}
	state, err := web.Await(t.locks.Call("query"))
	if err != nil {
		return owned
	}
	held := state.Get("held")
	for i := range held.Length() {
		if key, ok := strings.CutPrefix(held.Index(i).Get("name").String(), ownsPrefix); ok {
			owned[key] = true
		}
	}
	return owned
}

// Tell implements [ui.Tabs].
func (t *tabs) Tell(key string, progress []byte) {
	t.channel.Call("postMessage", map[string]any{"key": key, "progress": web.Array(progress)})
}
