//go:build js && wasm

package unpack

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"syscall/js"
	"time"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/workers/web"
)

// wire is a [port] that uses postMessage. A message is an object with the fields of [message]. The
// field "bytes" is an ArrayBuffer, and the field "length" is the number of bytes in use. The buffer
// is transferred, and later returned as the spare buffer of a message in the other direction, so
// parts need no new memory.
type wire struct {
	remote   js.Value // a Worker, or the global scope in the decompressor
	inbox    chan message
	late     <-chan time.Time // receives a value when the wait for the first message must end; nil: there is no limit
	buffers  []js.Value       // buffers that this side may use for messages
	spares   []js.Value       // buffers to return to the other side
	freed    [][]byte
	handlers []handler
	closed   bool
}

type handler struct {
	event string
	run   js.Func
}

func newWire(remote js.Value) *wire {
	// The inbox also has room for two reports of a worker's end: an error event and an exited message.
	w := &wire{remote: remote, inbox: make(chan message, mostWaiting+2)}
	w.on("message", w.receive)
	return w
}

// selfWire returns the decompressor's end.
func selfWire() *wire {
	w := newWire(js.Global())
	web.EarlyMessages(w.receive)
	return w
}

// on adds an event handler. The handler must not block.
func (w *wire) on(event string, handle func(event js.Value)) {
	run := web.Function(func(args []js.Value) { handle(args[0]) })
	w.handlers = append(w.handlers, handler{event, run})
	w.remote.Call("addEventListener", event, run)
}

// receive puts the message of an event into the inbox, which has room for all messages that the
// protocol allows.
func (w *wire) receive(event js.Value) {
	object := event.Get("data")
	if object.Type() != js.TypeObject {
		return
	}
	if exited := object.Get("exited"); exited.Type() == js.TypeNumber {
		w.reportDeath(cmp.Or(web.Text(object, "why"), "exit code "+strconv.Itoa(exited.Int())))
		return
	}
	m := message{
		kind: kind(numberIn(object, "kind", int(gone))), number: numberIn(object, "number", 1<<16), text: web.Text(object, "text"),
	}
	if m.kind == 0 || len(w.inbox) == cap(w.inbox) {
		return // no decompressor sends such a message
	}
	if buffer := object.Get("bytes"); isBuffer(buffer) {
		n := min(buffer.Get("byteLength").Int(), unpackedBytes)
		m.bytes = w.copy(buffer, numberIn(object, "length", n+1))
		w.spares = append(w.spares, buffer)
	}
	if spare := object.Get("spare"); isBuffer(spare) {
		w.buffers = append(w.buffers, spare)
	}
	w.inbox <- m
}

// numberIn returns the value of a field if it is a number below the given limit, and otherwise 0.
func numberIn(object js.Value, field string, limit int) int {
	v := web.Number(object, field)
	if !(v >= 0 && v < float64(limit)) {
		return 0
	}
	return int(v)
}

func isBuffer(v js.Value) bool {
	return v.Type() == js.TypeObject && v.InstanceOf(js.Global().Get("ArrayBuffer"))
}

// reportDeath reports that the other side has died.
func (w *wire) reportDeath(why string) {
	select {
	case w.inbox <- message{kind: gone, text: why}:
	default: // the end was already reported
	}
}

// copy copies the first n bytes of a buffer to Go's memory.
func (w *wire) copy(buffer js.Value, n int) []byte {
	var bytes []byte
	if last := len(w.freed) - 1; last >= 0 {
		bytes, w.freed = w.freed[last], w.freed[:last]
	}
	if cap(bytes) < n {
		bytes = make([]byte, n)
	}
	bytes = bytes[:n]
	js.CopyBytesToGo(bytes, js.Global().Get("Uint8Array").New(buffer, 0, n))
	return bytes
}

func (w *wire) free(bytes []byte) { w.freed = append(w.freed, bytes) }

func (w *wire) post(m message) {
	if w.closed {
		return
	}
	object := map[string]any{"kind": int(m.kind), "number": m.number, "text": m.text}
	var transfer []any
	if len(m.bytes) > 0 {
		buffer := w.buffer(len(m.bytes))
		js.CopyBytesToJS(js.Global().Get("Uint8Array").New(buffer), m.bytes)
		object["bytes"], object["length"] = buffer, len(m.bytes)
		transfer = append(transfer, buffer)
	}
	if last := len(w.spares) - 1; last >= 0 {
		object["spare"] = w.spares[last]
		transfer = append(transfer, w.spares[last])
		w.spares = w.spares[:last]
	}
	w.remote.Call("postMessage", object, transfer)
}

// buffer returns an ArrayBuffer of n bytes or more.
func (w *wire) buffer(n int) js.Value {
	if last := len(w.buffers) - 1; last >= 0 {
		b := w.buffers[last]
		w.buffers = w.buffers[:last]
		if b.Get("byteLength").Int() >= n {
			return b
		}
	}
	return js.Global().Get("ArrayBuffer").New(n)
}

func (w *wire) take() message {
	select {
	case m := <-w.inbox:
		w.late = nil
		return m
	case <-w.late:
		return message{kind: gone, text: "no data arrived within " + strconv.Itoa(int(patience.Seconds())) + " seconds"}
	}
}

// close ends the worker at once.
func (w *wire) close() {
	if w.closed {
		return
	}
	w.closed = true
	w.remote.Call("terminate")
	for _, h := range w.handlers {
		w.remote.Call("removeEventListener", h.event, h.run)
		h.run.Release()
	}
}

// Name is the name of the workers that run decompressors.
const Name = "unpack"

// patience is the maximum time that a decompressor may take to load its program, a file of 800 KB.
// After this time, an error is reported.
const patience = 2 * time.Minute

// Workers starts decompressors, for one analysis at a time.
type Workers struct {
	// Script is the URL of the decompressors' script, relative to the script of the worker that
	// starts the decompressors. A query parameter contains the URL of the decompressors' program.
	Script  string
	running []*wire
}

// Packings returns the compression formats that are decompressed in a worker.
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
	p.on("messageerror", func(js.Value) { p.reportDeath("a message could not be read") })
	p.on("error", func(event js.Value) { p.reportDeath(web.ErrorOf(event)) })
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

// Serve is the main function of a decompressor. Serve decompresses one stream, and then waits until
// its worker is ended, because a message may still be in transit. If the stream cannot be
// decompressed, Serve returns the reason.
func Serve(packings []open.Packing) error {
	if err := serve(selfWire(), packings); err != nil {
		return err
	}
	select {}
}
