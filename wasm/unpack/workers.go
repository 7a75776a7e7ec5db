//go:build js && wasm

package unpack

import (
	"io"
	"slices"
	"syscall/js"
	"time"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/workers/web"
)

// Name is the name of the decompressors' global scopes.
const Name = "unpack"

// patience is how long a decompressor, 800 KB, may take to load before an error is reported.
const patience = 2 * time.Minute

// Workers starts decompressors, for one analysis at a time.
type Workers struct {
	// Script is the address of the decompressors' script, with the address of their program as a
	// parameter, relative to the script of the worker that starts them.
	Script  string
	running []*wire
}

// Packings are those that are decompressed in a worker.
func (w *Workers) Packings() []open.Packing {
	var list []open.Packing
	for _, name := range Names() {
		list = append(list, w.packing(name))
	}
	return list
}

func (w *Workers) packing(name string) open.Packing {
	return open.Packing{Name: name, New: func(r io.Reader) (io.Reader, error) {
		p, err := w.start()
		if err != nil {
			return nil, &open.UnpackerError{Err: &goneError{why: err.Error()}}
		}
		return newReader(p, name, r), nil
	}}
}

func (w *Workers) start() (*wire, error) {
	worker, err := web.Try(func() js.Value {
		return js.Global().Get("Worker").New(w.Script, map[string]any{"name": Name})
	})
	if err != nil {
		return nil, err
	}
	p := newWire(worker)
	p.late = time.After(patience)
	p.on("messageerror", func(js.Value) { p.lose("a message could not be read") })
	p.on("error", func(event js.Value) { p.lose(web.ErrorOf(event)) })
	w.running = append(w.running, p)
	return p, nil
}

// Close ends the decompressors of an analysis.
func (w *Workers) Close() {
	for _, p := range w.running {
		p.close()
	}
	w.running = slices.Delete(w.running, 0, len(w.running))
}

// Serve is a decompressor's program: it decompresses one stream, and then waits until its worker is ended,
// because a message may be in transit. It returns the reason if it cannot decompress.
func Serve(packings []open.Packing) error {
	if err := serve(selfWire(), packings); err != nil {
		return err
	}
	select {}
}
