//go:build js && wasm

// Program is the page's second program, which contains code that few visits to the page need. The
// second program decompresses files that the page's own program cannot read (package unpack),
// answers the page's questions (package answerers), or serves analyses that the page's own program
// does not contain (package host). The page's own program can analyse neither samples nor data
// structures, and cannot skip the beginning of a run. The code for data structures and for skipped
// references is linked into the second program, because package answerers contains the verb "data".
package main

import (
	"errors"
	"io"
	"runtime/debug"
	"syscall/js"

	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // registers the analysis of samples
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/wasm/file"
	"github.com/stackglass/stackglass/wasm/host"
	"github.com/stackglass/stackglass/wasm/unpack"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/answerers"
	"github.com/stackglass/stackglass/workers/web"
)

// memoryLimit limits the memory of the program, so that uncollected garbage takes at most the size
// of a few decoder windows.
const memoryLimit = 1 << 30

func main() {
	debug.SetMemoryLimit(memoryLimit)
	serve := func() error { return unpack.Serve(packings) }
	switch js.Global().Get("name").String() {
	case workers.AnswerHostName:
		serve = (&workers.AnswerHost{Carrier: web.Self(), Open: answerers.All(openTrace), Breathe: web.Yield}).Serve
	case host.Name, web.Helper:
		serve = host.Run
	}
	if err := serve(); err != nil {
		panic(err) // worker.js reports the error
	}
}

// openTrace opens the file that the page attached.
func openTrace(name, format string, attachment any) (trace.Reader, io.Closer, error) {
	blob, ok := attachment.(js.Value)
	if !ok {
		return nil, nil, errors.New("the request contained no file; choose the file again")
	}
	f, err := file.Open(blob)
	if err != nil {
		return nil, nil, err
	}
	r, err := open.Open(name, f, open.Options{Format: format, Packings: packings})
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return r, f, nil
}
