//go:build js && wasm

package web

import (
	"errors"
	"math"
	"strconv"
	"sync"
	"syscall/js"
	"time"

	"github.com/stackglass/stackglass/workers"
)

// carrier is one end of a connection. remote is the object to which messages for the other side are
// posted: on the page a Worker, and in the worker the global scope.
type carrier struct {
	remote   js.Value
	mailbox  workers.Mailbox
	handlers []js.Func
	// number of handlers, at the beginning of the list "handlers", that remain after the connection
	// has ended
	kept  int
	close func() // ends the worker from this side of the connection
	once  sync.Once
}

// Spawn starts the worker whose script is at url. The worker's program can read its name from the
// global scope. Closing the carrier ends the worker at any time, and frees its memory.
func Spawn(url, name string) (workers.Carrier, error) {
	worker, err := Try(func() js.Value {
		return js.Global().Get("Worker").New(url, map[string]any{"name": name})
	})
	if err != nil {
		return nil, err
	}
	c := &carrier{remote: worker}
	c.on("error", func(event js.Value) { c.mailbox.End(&workers.DeadError{Code: -1, Why: ErrorOf(event)}) })
	c.kept = len(c.handlers) // an error event may still arrive after the worker has ended
	// If Chromium suspends a page while one of its workers waits for a lock, the tab crashes. Therefore,
	// a worker that is still starting ends when the user leaves the page.
	hide := Function(func([]js.Value) {
		c.mailbox.End(workers.ErrLeft)
		worker.Call("terminate")
	})
	started := func() {
		js.Global().Call("removeEventListener", "pagehide", hide)
		hide.Release()
	}
	js.Global().Call("addEventListener", "pagehide", hide)
	c.close = func() {
		started()
		worker.Call("terminate")
	}
	c.on("message", func(event js.Value) {
		if data := event.Get("data"); data.Type() == js.TypeObject && data.Get("alive").Type() == js.TypeString {
			started()
			c.watch(data.Get("alive"))
			return
		}
		c.takeMessage(event)
	})
	c.on("messageerror", func(js.Value) {
		c.mailbox.End(&workers.DeadError{Code: -1, Why: "a message could not be read"})
	})
	return c, nil
}

// Helper is the name of the workers that [Help] starts.
const Helper = "helper"

// Help starts a further worker with the same script and the same compiled program.
func Help() (workers.Carrier, error) {
	self := js.Global()
	address := self.Get("location").Get("href").String()
	// The script of this worker is a blob, so this worker has a hash instead of query parameters.
	if settings := self.Get("location").Get("hash").String(); settings != "" {
		address = "worker.js?" + settings[1:]
	}
	c, err := Spawn(address, Helper)
	if err != nil {
		return nil, err
	}
	_, err = Try(func() js.Value {
		return c.(*carrier).remote.Call("postMessage", map[string]any{"program": self.Get("program")})
	})
	return c, err
}

// lastWordsWait is the maximum time to wait for a worker's last message after its locks were
// released.
const lastWordsWait = 500 * time.Millisecond

// watch ends the connection when the worker's lock is released, because a worker may die without a
// message or an event.
func (c *carrier) watch(lock js.Value) {
	var free js.Func
	free = Function(func([]js.Value) {
		free.Release()
		time.AfterFunc(lastWordsWait, func() {
			c.mailbox.End(&workers.DeadError{Code: -1, Why: "the worker ended without a message"})
		})
	})
	js.Global().Get("navigator").Get("locks").Call("request", lock, free)
}

// beAlive requests a lock that this worker holds while it is alive, and sends the name of the lock
// to the page. It does nothing if the browser does not support locks.
func beAlive(self js.Value) {
	locks := self.Get("navigator").Get("locks")
	if !locks.Truthy() {
		return
	}
	name := "stackglass worker " + self.Get("crypto").Call("randomUUID").String()
	locks.Call("request", name, js.FuncOf(func(js.Value, []js.Value) any {
		self.Call("postMessage", map[string]any{"alive": name})
		// The promise is never settled, so the lock stays held. Function.prototype does nothing.
		return self.Get("Promise").New(self.Get("Function").Get("prototype"))
	}))
}

// Self returns the worker's end of its connection to the page. Call Self only once. Closing the
// carrier ends the worker.
func Self() workers.Carrier {
	self := js.Global()
	c := &carrier{remote: self, close: func() {
		self.Call("postMessage", map[string]any{"exited": 0})
		self.Call("close")
	}}
	c.on("message", c.takeMessage)
	EarlyMessages(c.takeMessage)
	beAlive(self)
	return c
}

// on adds an event handler. The handler must not block.
func (c *carrier) on(event string, handle func(event js.Value)) {
	handler := Function(func(args []js.Value) { handle(args[0]) })
	c.handlers = append(c.handlers, handler)
	c.remote.Call("addEventListener", event, handler)
}

// takeMessage puts the message of an event into the mailbox. takeMessage drops invalid messages,
// because any code of the page may send messages to a worker.
func (c *carrier) takeMessage(event js.Value) {
	object := event.Get("data")
	if object.Type() != js.TypeObject {
		return
	}
	if exited := object.Get("exited"); exited.Type() == js.TypeNumber {
		c.mailbox.End(endOf(exited.Int(), Text(object, "why")))
		return
	}
	kind, job := object.Get("type"), object.Get("job")
	if !isWhole(kind, 1<<8-1) || !isWhole(job, 1<<32-1) {
		return
	}
	m := workers.Message{Type: workers.Type(kind.Int()), Job: uint32(job.Float())}
	if body := object.Get("body"); !body.IsUndefined() {
		if !body.InstanceOf(js.Global().Get("ArrayBuffer")) {
			return
		}
		bytes := js.Global().Get("Uint8Array").New(body)
		m.Body = Bytes(bytes)
		Release(bytes)
	}
	if attachment := object.Get("attachment"); !attachment.IsUndefined() {
		m.Attachment = attachment
	}
	c.mailbox.Put(m)
}

// isWhole reports whether a value is an integer from 0 to the given maximum.
func isWhole(v js.Value, most float64) bool {
	if v.Type() != js.TypeNumber {
		return false
	}
	f := v.Float()
	return f >= 0 && f <= most && f == math.Trunc(f)
}

// endOf returns the error for the end of a worker's program.
func endOf(code int, why string) error {
	if code == 0 && why == "" {
		return workers.ErrClosed
	}
	return &workers.DeadError{Code: code, Why: why}
}

func (c *carrier) Send(m workers.Message) error {
	if err := c.mailbox.Ended(); err != nil {
		return err
	}
	object := js.Global().Get("Object").New()
	object.Set("type", int(m.Type))
	object.Set("job", float64(m.Job))
	var transfer []any
	if len(m.Body) > 0 {
		buffer := Array(m.Body).Get("buffer")
		object.Set("body", buffer)
		transfer = append(transfer, buffer)
	}
	if m.Attachment != nil {
		value, ok := m.Attachment.(js.Value)
		if !ok {
			return errors.New("the attachment of a " + m.Type.String() + " message for job " +
				strconv.FormatUint(uint64(m.Job), 10) + " is not a JavaScript value, want a File")
		}
		object.Set("attachment", value)
	}
	_, err := Try(func() js.Value { return c.remote.Call("postMessage", object, transfer) })
	return err
}

func (c *carrier) Receive() (workers.Message, error) { return c.mailbox.Take() }

func (c *carrier) Close() error {
	c.once.Do(func() {
		c.mailbox.End(workers.ErrClosed)
		c.close()
		for _, h := range c.handlers[c.kept:] {
			h.Release()
		}
	})
	return nil
}
