//go:build js && wasm

// Program is what few visits need: it unpacks what the page's own program does not (package
// unpack), and computes the compute-node models (package compute).
package main

import (
	"runtime/debug"
	"syscall/js"

	"github.com/stackglass/stackglass/wasm/unpack"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

// memoryLimit makes the collector work harder before there are more than a few
// windows' worth of garbage.
const memoryLimit = 1 << 30

func main() {
	debug.SetMemoryLimit(memoryLimit)
	serve := func() error { return unpack.Serve(packings) }
	if js.Global().Get("name").String() == unpack.Models {
		serve = (&workers.ModelHost{Carrier: web.Self(), Open: openModels, OpenLoops: openLoops, Predict: predictCores, Breathe: web.Yield}).Serve
	}
	if err := serve(); err != nil {
		panic(err) // worker.js tells whoever started this one
	}
}
