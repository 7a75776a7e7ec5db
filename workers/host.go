package workers

import (
	"errors"
	"io"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Host serves one [Carrier]: it runs one analysis at a time, in the goroutine of [Host.Serve], and queues the
// others. Its fields have what differs between a web worker and a goroutine.
type Host struct {
	Carrier Carrier

	// Store keeps finished profiles and checkpoints. If it is nil, NoStore says why, in a sentence.
	Store   profile.Store
	NoStore string

	// OpenFile opens the attachment of a Start. size is 0 if it is unknown.
	OpenFile func(attachment any) (file io.ReadCloser, size uint64, err error)
	// OpenTrace reads file as a trace; format is as in Start, watch as in open.Options, to stop a
	// job without rows.
	OpenTrace func(name string, file io.Reader, format string, watch func() error) (trace.Reader, error)

	// Outline reads the index of the attachment of a Start. The error reports that there is none.
	// nil: no attachment can be read at any position.
	Outline func(attachment any) (trace.Outline, error)

	// OpenShelf opens the spill store of the run with that key, empty unless the run is resumed.
	// remove deletes it. nil: there are no spill stores.
	OpenShelf func(key string, goesOn bool) (shelf stack.Shelf, remove func(), err error)

	// Sharing shares long runs among helpers; nil: one worker does all.
	Sharing *Sharing

	// Yield lets messages in, some fifty times a second; nil: runtime.Gosched.
	Yield func()
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Memory is the memory of the program in bytes; nil: as the Go runtime says.
	Memory func() uint64
	// Live is the part of it that is in use, or not collected yet; nil: as the Go runtime says.
	Live func() uint64
	// SetLimit limits the memory of the program, as far as possible; may be nil.
	SetLimit func(bytes uint64)

	// CheckpointBytes and CheckpointReferences are as in [Keeper].
	CheckpointBytes, CheckpointReferences uint64
	// CheckpointMemory is the memory of the program up to which checkpoints, which copy the
	// model, are saved; 0: no limit.
	CheckpointMemory uint64

	inbox chan Message // closed when the carrier ends
	// cancelled is 1 + the job of the last Cancel in inbox, or 0. Jobs see it within a step.
	cancelled atomic.Uint64
	pending   []Message // Starts that wait
	end       error     // why inbox is closed
	storage   uint64    // bytes in use in the store when last asked
}

// Serve runs jobs until the carrier ends. It returns the reason, nil after Close.
func (h *Host) Serve() error {
	h.fillDefaults()
	if err := h.Carrier.Send(Message{Type: TypeReady}); err != nil {
		return endOf(err)
	}
	const unread = 16 // more messages than a page sends before it cancels
	h.inbox = make(chan Message, unread)
	go receive(h.Carrier, h.inbox, &h.end, func(m Message) {
		if m.Type == TypeCancel {
			h.cancelled.Store(uint64(m.Job) + 1)
		}
	})
	for {
		if len(h.pending) == 0 {
			m, ok := <-h.inbox
			if !ok {
				return endOf(h.end)
			}
			h.took(m)
			if m.Type == TypeStart { // others are late: their job is over
				h.pending = append(h.pending, m)
			}
			continue
		}
		m := h.pending[0]
		h.pending = h.pending[1:]
		h.runJob(m)
	}
}

// receive calls note with each message and puts it into inbox, until the carrier ends. Then it
// sets end to the reason and closes inbox.
func receive(c Carrier, inbox chan<- Message, end *error, note func(Message)) {
	defer close(inbox)
	for {
		m, err := c.Receive()
		if err != nil {
			*end = err
			return
		}
		note(m)
		inbox <- m
	}
}

// took records that a message has left inbox.
func (h *Host) took(m Message) {
	if m.Type == TypeCancel {
		h.cancelled.CompareAndSwap(uint64(m.Job)+1, 0)
	}
}

// unopened is the problem of a job that was cancelled before its trace was opened.
const unopened = "This analysis was cancelled before anything of the trace was found."

// endOf returns nil for a regular end of a carrier.
func endOf(err error) error {
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

func (h *Host) fillDefaults() {
	if h.Yield == nil {
		h.Yield = runtime.Gosched
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Memory == nil {
		h.Memory = goMemory
	}
	if h.Live == nil {
		h.Live = goLive
	}
	if h.NoStore == "" {
		h.NoStore = "There is no storage for results here; export this one to keep it."
	}
}

func goMemory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}

func goLive() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// runJob runs the job of one Start. A panic ends the job, not the host.
func (h *Host) runJob(m Message) {
	defer func() {
		if p := recover(); p != nil {
			h.fail(m.Job, "This analysis stopped by a fault in the program ("+panicText(p)+
				"). Kept analyses and checkpoints are unharmed. Please report it, with the kind of trace that it happened on.")
		}
	}()
	start, err := DecodeStart(m.Body)
	if err != nil {
		h.fail(m.Job, err.Error())
		return
	}
	j := &job{host: h, id: m.Job, start: start}
	defer j.close()
	if err := j.open(m.Attachment); err != nil {
		problem := err.Error()
		if errors.Is(err, errCancelled) {
			problem = unopened
		}
		h.fail(m.Job, problem)
		return
	}
	j.finish(j.run())
}

func (h *Host) fail(job uint32, problem string) {
	// Receive will report the carrier's end.
	_ = h.Carrier.Send(Message{Type: TypeFailed, Job: job, Body: Failed{Problem: problem}.Encode()})
}

// panicText describes the value of a panic. The runtime's are errors and strings.
func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return "unknown"
}

// askStorage records the usage of the store. Browsers answer slowly, so it is called only at the start of a
// job and after each Put.
func (h *Host) askStorage() {
	if h.Store == nil {
		return
	}
	if used, _, err := h.Store.Usage(); err == nil {
		h.storage = used
	}
}

// put stores data. If that fails, it returns the reason in a sentence.
func (h *Host) put(e profile.Entry, data []byte) (problem string) {
	if h.Store == nil {
		return h.NoStore
	}
	err := h.Store.Put(e, data)
	h.askStorage()
	switch {
	case err == nil:
		return ""
	case errors.Is(err, profile.ErrFull):
		return "The storage is full, so this result of " + strconv.Itoa(len(data)) +
			" bytes is not kept; earlier ones are. Export it now, or delete kept analyses and run again."
	}
	return "This result is not kept (" + err.Error() + "); earlier ones are. Export it now."
}
