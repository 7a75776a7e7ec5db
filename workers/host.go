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

// Host serves one [Carrier]. Host runs one analysis at a time, in the goroutine of [Host.Serve],
// and queues all others. The fields contain all differences between a host in a web worker and a
// host in a goroutine.
type Host struct {
	Carrier Carrier

	// Store keeps finished profiles and checkpoints. If Store is nil, NoStore explains why, in a
	// sentence.
	Store   profile.Store
	NoStore string

	// OpenFile opens the attachment of a Start. The size is 0 if it is unknown.
	OpenFile func(attachment any) (file io.ReadCloser, size uint64, err error)
	// OpenTrace opens a file as a trace. The parameter "format" has the same meaning as in Start.
	// The parameter "watch" has the same meaning as in open.Options, and can stop a job that
	// receives no records.
	OpenTrace func(name string, file io.Reader, format string, watch func() error) (trace.Reader, error)

	// Outline reads the index of the attachment of a Start. Outline returns an error if there is no
	// index. The field is nil if attachments cannot be read at arbitrary positions.
	Outline func(attachment any) (trace.Outline, error)

	// OpenShelf opens the spill store of the run with the given key. The spill store is empty unless
	// the parameter "resume" is set. The result "remove" is a function that deletes the spill store.
	// OpenShelf is nil if there are no spill stores.
	OpenShelf func(key string, resume bool) (shelf stack.Shelf, remove func(), err error)

	// Sharing shares long runs among helpers; nil: one worker does all the work.
	Sharing *Sharing

	// Yield lets the program receive messages. Yield is called about fifty times a second. If the
	// field is nil, the host calls runtime.Gosched instead.
	Yield func()
	// Now returns the current time. If the field is nil, the host calls time.Now instead.
	Now func() time.Time
	// Memory returns the memory of the program in bytes. If the field is nil, the host uses the value
	// that the Go runtime reports.
	Memory func() uint64
	// Live returns the part of Memory that is in use or has not been collected yet. If the field is
	// nil, the host uses the value that the Go runtime reports.
	Live func() uint64
	// SetLimit limits the memory of the program as far as the platform allows. SetLimit may be nil.
	SetLimit func(bytes uint64)

	// CheckpointBytes and CheckpointReferences have the same meaning as Bytes and References in
	// [Keeper].
	CheckpointBytes, CheckpointReferences uint64
	// CheckpointMemory is a memory limit in bytes; 0 means no limit. If the program uses more memory
	// than this limit, a run without a spill store saves no checkpoints, because a checkpoint copies
	// the model.
	CheckpointMemory uint64

	inbox chan Message // closed when the carrier ends
	// cancelled is 0, or 1 + the job number of the last Cancel message in the inbox. Jobs check it
	// within a step.
	cancelled atomic.Uint64
	pending   []Message // waiting Start messages
	end       error     // the reason why inbox is closed
	storage   uint64    // bytes in use in the store, according to the last query
}

// Serve runs jobs until the carrier is closed. Serve returns the reason, or nil after Close.
func (h *Host) Serve() error {
	h.fillDefaults()
	if err := h.Carrier.Send(Message{Type: TypeReady}); err != nil {
		return endOf(err)
	}
	const unread = 16 // a page sends fewer messages than this before it sends Cancel
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
			h.noteTaken(m)
			if m.Type == TypeStart { // drop other messages, because they arrived after their job had ended
				h.pending = append(h.pending, m)
			}
			continue
		}
		m := h.pending[0]
		h.pending = h.pending[1:]
		h.runJob(m)
	}
}

// receive calls the function "note" with each message, and puts the message into the inbox. When
// the carrier ends, receive sets *end to the reason and closes the inbox.
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

// noteTaken records that a message was taken from the field "inbox".
func (h *Host) noteTaken(m Message) {
	if m.Type == TypeCancel {
		h.cancelled.CompareAndSwap(uint64(m.Job)+1, 0)
	}
}

// unopened is the message about a job that was cancelled before its trace was opened.
const unopened = "This analysis was cancelled before any record of the trace was found."

// endOf returns nil if the error means that a carrier was closed, and any other error unchanged.
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
		h.NoStore = "This browser cannot store results here; export this result to keep it."
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
			h.fail(m.Job, "This analysis stopped because of a fault in the program ("+panicText(p)+
				"). Kept analyses and checkpoints are not affected. Please report this fault, and describe the trace.")
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
	// If this fails, Receive will report the carrier's end.
	_ = h.Carrier.Send(Message{Type: TypeFailed, Job: job, Body: Failed{Problem: problem}.Encode()})
}

// panicText returns a text for the value of a panic. The runtime and the standard library panic
// with errors and strings.
func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return "unknown"
}

// askStorage asks the store how many bytes it uses, and records the answer. Browsers answer slowly,
// so askStorage is called only at the start of a job and after each Put.
func (h *Host) askStorage() {
	if h.Store == nil {
		return
	}
	if used, _, err := h.Store.Usage(); err == nil {
		h.storage = used
	}
}

// put stores data for an entry. If the data cannot be stored, put returns a sentence that explains
// why.
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
			" bytes is not kept; earlier results are not affected. Export this result now, or delete kept analyses and run the analysis again."
	}
	return "This result could not be stored (" + err.Error() + "); earlier results are not affected. Export this result now."
}
