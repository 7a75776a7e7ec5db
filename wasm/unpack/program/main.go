//go:build js && wasm

// Program unpacks what the page's own program does not: see package unpack.
package main

import (
	"runtime/debug"

	"github.com/stackglass/stackglass/wasm/unpack"
)

// memoryLimit makes the collector work harder before there are more than a few
// windows' worth of garbage.
const memoryLimit = 1 << 30

func main() {
	debug.SetMemoryLimit(memoryLimit)
	if err := unpack.Serve(packings); err != nil {
		panic(err) // worker.js tells the analysis worker
	}
}
