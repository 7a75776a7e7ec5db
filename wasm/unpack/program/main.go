//go:build js && wasm

// Program contains what few visits need: it decompresses what the page's own program does not (package
// unpack), or answers the page's questions (package answerers).
package main

import (
	"runtime/debug"
	"syscall/js"

	"github.com/stackglass/stackglass/wasm/unpack"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/answerers"
	"github.com/stackglass/stackglass/workers/web"
)

// memoryLimit limits the garbage to a few windows.
const memoryLimit = 1 << 30

func main() {
	debug.SetMemoryLimit(memoryLimit)
	serve := func() error { return unpack.Serve(packings) }
	if js.Global().Get("name").String() == workers.AnswerHostName {
		serve = (&workers.AnswerHost{Carrier: web.Self(), Open: answerers.All(openTrace), Breathe: web.Yield}).Serve
	}
	if err := serve(); err != nil {
		panic(err) // worker.js reports it
	}
}
