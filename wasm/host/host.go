//go:build js && wasm

// Package host runs analyses in a web worker. The package connects a workers.Host to the browser:
// the host communicates by postMessage, reads local files, and stores results in IndexedDB.
//
// A worker runs one analysis at a time. WebAssembly memory never shrinks, so the page ends the
// worker after an analysis, and starts a new worker for the next analysis.
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
	// memoryLimit is the memory size above which the garbage collector runs more often. It is far
	// below WebAssembly's limit of 4 GiB.
	memoryLimit = 3 << 30
	// checkpointMemory is the maximum memory use at which checkpoints are saved. A checkpoint
	// copies the state of the models. The copy is smaller than the models, so both fit within
	// memoryLimit.
	checkpointMemory = memoryLimit / 2
	// collectAt is the heap growth, in percent, at which garbage is collected. The percentage is
	// low because the models are a few large arrays, which are cheap to scan, and the address space
	// is small.
	collectAt = 50
)

// Name is the name of the workers that run analyses.
const Name = "analysis"

// InWorker reports whether the program runs in a worker, where there is no document.
func InWorker() bool { return !js.Global().Get("document").Truthy() }

// Run serves the page until the page ends the worker or an error occurs. Run returns the error.
func Run() error {
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(memoryLimit)
	if js.Global().Get("name").String() == web.Helper {
		h := &workers.HelperHost{Carrier: web.Self(), OpenSource: openSource, Yield: web.Yield, Memory: memory()}
		return h.Serve()
	}
	return newHost().Serve()
}

func newHost() *workers.Host {
	// The page's second program is itself the decompressor, so its URL names no other decompressor.
	own := js.Global().Get("location").Get("href").String()
	t := traces{unpackers: unpack.Workers{Script: queryParameter("unpack", own)}}
	h := &workers.Host{
		Carrier:              web.Self(),
		OpenFile:             t.openFile,
		OpenTrace:            t.open,
		Outline:              readOutline,
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
	name := queryParameter("store", idb.DefaultName)
	if store, err := idb.Open(name); err != nil {
		h.NoStore = "This result could not be stored (" + err.Error() + "). Export this result now."
	} else {
		h.Store = store
		h.OpenShelf = func(key string, resume bool) (stack.Shelf, func(), error) {
			shelf, err := idb.OpenShelf(name, key, resume)
			if err != nil {
				return nil, nil, err
			}
			return shelf, shelf.Remove, nil
		}
	}
	return h
}

// setLimit limits the program's memory. It reserves 8 % of the given bytes for the memory of the
// runtime. If the parameter "bytes" is 0, the limit is memoryLimit.
func setLimit(bytes uint64) {
	limit := int64(memoryLimit)
	if bytes > 0 {
		limit = int64(min(bytes, memoryLimit) / 100 * 92)
	}
	debug.SetMemoryLimit(limit)
}

// memory returns a function that returns the size in bytes of the program's linear memory, which
// never shrinks. The result is nil if worker.js has not provided access to that memory. In this
// case, the host uses the value that the Go runtime reports.
func memory() func() uint64 {
	of := js.Global().Get("memory")
	if of.Type() != js.TypeObject {
		return nil
	}
	return func() uint64 { return uint64(of.Get("buffer").Get("byteLength").Float()) }
}

// queryParameter returns a query parameter of the worker's URL. The site sets only the parameter with
// the script of the decompressors. Tests also set the database, the interval between checkpoints, and
// a different decompressor program.
func queryParameter(name, otherwise string) string {
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

// checkpointReferences returns the number of references between two checkpoints, or 0 for the
// host's default.
func checkpointReferences() uint64 {
	n, err := strconv.ParseUint(queryParameter("checkpoint", "0"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// traces opens one trace after another, one for each analysis.
type traces struct{ unpackers unpack.Workers }

// traceFile is a file that, when closed, also ends its decompressors.
type traceFile struct {
	*file.File
	unpackers *unpack.Workers
}

func (f traceFile) Close() error {
	f.unpackers.Close()
	return f.File.Close()
}

var errNoAttachment = errors.New("the request contained no file; choose the file again")

func (t *traces) openFile(attachment any) (io.ReadCloser, uint64, error) {
	blob, ok := attachment.(js.Value)
	if !ok {
		return nil, 0, errNoAttachment
	}
	f, err := file.Open(blob)
	if err != nil {
		return nil, 0, err
	}
	if folder, err := t.openFolder(blob, f); folder != nil || err != nil {
		return folder, 0, err // the size of the merged trace is unknown
	}
	return traceFile{f, &t.unpackers}, f.Size(), nil
}

func openAt(attachment any) (*file.At, error) {
	blob, ok := attachment.(js.Value)
	if !ok {
		return nil, errNoAttachment
	}
	return file.OpenAt(blob)
}

// openSource opens a container for reading at any position.
func openSource(name string, attachment any) (trace.Source, error) {
	f, err := openAt(attachment)
	if err != nil {
		return nil, err
	}
	return sgt.NewSource(name, f, f.Size(), nil)
}

// readOutline reads the outline of a trace from the index of a container.
func readOutline(attachment any) (trace.Outline, error) {
	f, err := openAt(attachment)
	if err != nil {
		return trace.Outline{}, err
	}
	return sgt.ReadOutline(f, f.Size())
}

func (t *traces) open(name string, r io.Reader, format string, watch func() error) (trace.Reader, error) {
	return open.Open(name, r, open.Options{Format: format, Packings: t.unpackers.Packings(), Watch: watch})
}
