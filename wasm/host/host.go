//go:build js && wasm

// Package host serves analyses inside a web worker: a workers.Host behind
// postMessage that reads local files and keeps results in IndexedDB.
//
// It runs one analysis at a time. WebAssembly memory never shrinks, so the page
// ends the worker after an analysis to give its memory back, and starts another
// for the next.
package host

import (
	"errors"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall/js"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/wasm/file"
	"github.com/stackglass/stackglass/wasm/idb"
	"github.com/stackglass/stackglass/wasm/unpack"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

const (
	// memoryLimit makes the collector work harder before WebAssembly's memory
	// ends, at 4 GiB, which would end the program.
	memoryLimit = 3 << 30
	// checkpointMemory is the most that may be in use for a checkpoint, which
	// holds a copy of the state until it is written: less than the models take,
	// and both stay within memoryLimit.
	checkpointMemory = memoryLimit / 2
	// collectAt is the growth of the heap, in percent, at which garbage is
	// collected. The models are few large arrays, cheap to scan, and the
	// address space is small.
	collectAt = 50
)

// unpackScript, relative to this worker's own script, starts unpackers.
const unpackScript = "worker.js?wasm=unpack.wasm"

// InWorker tells whether the program runs in a worker: there is no document.
func InWorker() bool { return !js.Global().Get("document").Truthy() }

// Run serves the page until it ends the worker. Its error is why it cannot go
// on.
func Run() error {
	if js.Global().Get("name").String() == web.Helper {
		return newHelper().Serve()
	}
	return newHost().Serve()
}

// newHelper shares an analysis with the worker that started this one.
func newHelper() *workers.HelperHost {
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(memoryLimit)
	return &workers.HelperHost{Carrier: web.Self(), OpenSource: openSource, Yield: web.Yield, Memory: memory()}
}

func newHost() *workers.Host {
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(memoryLimit)
	t := traces{unpackers: unpack.Workers{Script: setting("unpack", unpackScript)}}
	h := &workers.Host{
		Carrier:              web.Self(),
		OpenFile:             t.openFile,
		OpenTrace:            t.open,
		Outline:              outline,
		Yield:                web.Yield,
		CheckpointReferences: checkpointReferences(),
		CheckpointMemory:     checkpointMemory,
		SetLimit:             setLimit,
		Memory:               memory(),
		Sharing: &workers.Sharing{
			OpenSource: openSource, Connect: web.Help, MemoryBytes: memoryLimit,
			Workers: js.Global().Get("navigator").Get("hardwareConcurrency").Int(),
		},
	}
	name := setting("store", idb.DefaultName)
	if store, err := idb.Open(name); err != nil {
		h.NoStore = "This result is not kept (" + err.Error() + "). Export it now."
	} else {
		h.Store = store
		h.OpenShelf = func(key string, goesOn bool) (stack.Shelf, func(), error) {
			shelf, err := idb.OpenShelf(name, key, goesOn)
			if err != nil {
				return nil, nil, err
			}
			return shelf, shelf.Remove, nil
		}
	}
	return h
}

// setLimit has the program keep within so much memory, 0: as much as there is, but for
// the runtime's own.
func setLimit(bytes uint64) {
	limit := int64(memoryLimit)
	if bytes > 0 {
		limit = int64(min(bytes, memoryLimit) / 100 * 92)
	}
	debug.SetMemoryLimit(limit)
}

// memory returns what measures the program's linear memory, in bytes. That is what the
// browser holds for it: the Go runtime reuses what it has released, but WebAssembly gives
// nothing back to the system. It returns nil, for the runtime's own figure, where no
// worker.js tells which memory that is.
func memory() func() uint64 {
	of := js.Global().Get("memory")
	if of.Type() != js.TypeObject {
		return nil
	}
	return func() uint64 { return uint64(of.Get("buffer").Get("byteLength").Float()) }
}

// setting gives a parameter of the worker's address, where worker.js looks for its
// own, too. The site names the unpackers' script; tests keep to a database of their
// own, take checkpoints of small traces, and have another program for an unpacker.
func setting(name, otherwise string) string {
	address := js.Global().Get("location")
	parameters := address.Get("search").String()
	if parameters == "" {
		parameters = strings.TrimPrefix(address.Get("hash").String(), "#")
	}
	query := js.Global().Get("URLSearchParams").New(parameters)
	if value := query.Call("get", name); value.Type() == js.TypeString {
		return value.String()
	}
	return otherwise
}

// checkpointReferences is the number of references between two checkpoints; 0,
// also where the address has no number, leaves it to the host.
func checkpointReferences() uint64 {
	n, err := strconv.ParseUint(setting("checkpoint", "0"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// traces opens the traces of one analysis after the other.
type traces struct{ unpackers unpack.Workers }

// traceFile is a file whose unpackers end when it is closed.
type traceFile struct {
	*file.File
	unpackers *unpack.Workers
}

func (f traceFile) Close() error {
	f.unpackers.Close()
	return f.File.Close()
}

var errNoAttachment = errors.New("no file came with the request; choose it again")

func (t *traces) openFile(attachment any) (io.ReadCloser, uint64, error) {
	blob, ok := attachment.(js.Value)
	if !ok {
		return nil, 0, errNoAttachment
	}
	f, err := file.Open(blob)
	if err != nil {
		return nil, 0, err
	}
	return traceFile{f, &t.unpackers}, f.Size(), nil
}

// openSource reads a container at any place.
func openSource(name string, attachment any) (trace.Source, error) {
	blob, ok := attachment.(js.Value)
	if !ok {
		return nil, errNoAttachment
	}
	f, err := file.OpenAt(blob)
	if err != nil {
		return nil, err
	}
	return sgt.NewSource(name, f, f.Size(), nil)
}

// outline reads the index of a container.
func outline(attachment any) (trace.Outline, error) {
	blob, ok := attachment.(js.Value)
	if !ok {
		return trace.Outline{}, errNoAttachment
	}
	f, err := file.OpenAt(blob)
	if err != nil {
		return trace.Outline{}, err
	}
	return sgt.ReadOutline(f, f.Size())
}

func (t *traces) open(name string, r io.Reader, format string, watch func() error) (trace.Reader, error) {
	return open.Open(name, r, open.Options{Format: format, Packings: t.unpackers.Packings(), Watch: watch})
}
