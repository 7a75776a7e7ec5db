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

// Name is what the unpackers' global scopes are called.
const Name = "unpack"

// patience is how long an unpacker may take to load: 800 KB, but waiting has
// to give way to a sentence some time.
const patience = 2 * time.Minute

// Workers starts unpackers. They are for one analysis at a time.
type Workers struct {
	// Script is the address of the unpackers' script, with their program's in
	// it, relative to the script of the worker that starts them.
	Script  string
	running []*wire
}

// Packings are those that are unpacked in a worker.
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
	p.on("error", func(event js.Value) {
		// Else it would be taken for an error of the analysis worker.
		event.Call("preventDefault")
		why := "its script could not be loaded"
		if text := event.Get("message"); text.Type() == js.TypeString {
			why = text.String()
		}
		p.lose(why)
	})
	w.running = append(w.running, p)
	return p, nil
}

// Close ends the unpackers of an analysis.
func (w *Workers) Close() {
	for _, p := range w.running {
		p.close()
	}
	w.running = slices.Delete(w.running, 0, len(w.running))
}

// Serve is an unpacker's program: it unpacks the one stream that it was started
// for, and then waits until its worker is ended: a message may be on its way to
// it. Its error is why it cannot unpack.
func Serve(packings []open.Packing) error {
	if err := serve(selfWire(), packings); err != nil {
		return err
	}
	select {}
}
