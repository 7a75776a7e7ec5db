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

// Host serves one [Carrier]: it runs one analysis at a time, in the goroutine
// of [Host.Serve], and queues the others. What differs between a web worker
// and a goroutine is in its fields.
type Host struct {
	Carrier Carrier

	// Store keeps finished profiles and checkpoints. It may be nil; NoStore
	// then says why, in a sentence.
	Store   profile.Store
	NoStore string

	// OpenFile opens the attachment of a Start: its bytes and, where known,
	// their number, else 0.
	OpenFile func(attachment any) (file io.ReadCloser, size uint64, err error)
	// OpenTrace reads file as a trace; format is as in Start. The reader asks watch,
	// as open.Options has it, so that a job can be stopped in which no row comes.
	OpenTrace func(name string, file io.Reader, format string, watch func() error) (trace.Reader, error)

	// Outline reads what the index of the attachment of a Start says about the whole trace.
	// The error says that there is no index. nil: no attachment can be read at any place.
	Outline func(attachment any) (trace.Outline, error)

	// OpenShelf gives the place for what a run with a budget cannot hold in memory, by
	// the run's key: as it is, where the run goes on, else empty. remove deletes it. nil:
	// there is no such place.
	OpenShelf func(key string, goesOn bool) (shelf stack.Shelf, remove func(), err error)

	// Sharing has helpers share long runs; nil: one worker does all.
	Sharing *Sharing

	// Yield lets messages come in. It is called some fifty times a second.
	// nil: runtime.Gosched.
	Yield func()
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Memory is the number of bytes that the program holds; nil: ask the Go
	// runtime.
	Memory func() uint64
	// Live is the number of bytes of it that are in use, or were until garbage was
	// collected; nil: ask the Go runtime.
	Live func() uint64
	// SetLimit has the program hold no more than so many bytes, as far as it can; nil:
	// nobody cares.
	SetLimit func(bytes uint64)

	// CheckpointBytes and CheckpointReferences are as in [Keeper].
	CheckpointBytes, CheckpointReferences uint64
	// CheckpointMemory is the most memory the program may hold for a checkpoint
	// to be taken, which copies the model; 0: no bound.
	CheckpointMemory uint64

	inbox chan Message // closed when the carrier ends
	// cancelled is the job of the last Cancel in inbox, and one; 0: there is none.
	// A job that has no turn sees it there.
	cancelled atomic.Uint64
	pending   []Message // Starts that wait for the running job
	end       error     // why inbox is closed
	storage   uint64    // bytes in use in the store when last asked
}

// Serve runs jobs until the carrier ends. Its error is why; nil after Close.
func (h *Host) Serve() error {
	h.fillDefaults()
	if err := h.Carrier.Send(Message{Type: TypeReady}); err != nil {
		return endOf(err)
	}
	const unread = 16 // more messages than a page sends before it cancels
	h.inbox = make(chan Message, unread)
	go func() {
		for {
			m, err := h.Carrier.Receive()
			if err != nil {
				h.end = err
				close(h.inbox)
				return
			}
			if m.Type == TypeCancel {
				h.cancelled.Store(uint64(m.Job) + 1)
			}
			h.inbox <- m
		}
	}()
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

// took notes that a message is not in inbox any more.
func (h *Host) took(m Message) {
	if m.Type == TypeCancel {
		h.cancelled.CompareAndSwap(uint64(m.Job)+1, 0)
	}
}

// unopened tells of a trace that had nothing to show before it was cancelled.
const unopened = "This analysis was cancelled before anything of the trace was found."

// endOf makes an orderly end of a carrier no error.
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

// goMemory is what the Go runtime got from its system and has not given back.
func goMemory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}

// goLive is what the Go runtime has given out and not found to be garbage yet.
func goLive() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// runJob answers one Start. A panic ends the job, not the host.
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
	// The carrier's end shows at the next Receive.
	_ = h.Carrier.Send(Message{Type: TypeFailed, Job: job, Body: Failed{Problem: problem}.Encode()})
}

// panicText describes what a panic was called with. fmt would do it for any
// type; the runtime's own are errors and strings.
func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return "unknown"
}

// askStorage notes how much the store holds. It is asked at the start of a job
// and after each Put only: browsers answer slowly.
func (h *Host) askStorage() {
	if h.Store == nil {
		return
	}
	if used, _, err := h.Store.Usage(); err == nil {
		h.storage = used
	}
}

// put stores data, and gives the reason when that fails, in a sentence.
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
