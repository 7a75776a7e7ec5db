// Package workers is the protocol between whoever asks for an analysis (the
// page, a test) and whoever runs it (a web worker, a goroutine), and the host
// that serves it.
//
// The asker sends [Start] with a trace attached; the host answers with
// [Progress] five times a second, a [Snapshot] of the growing profile now and
// then, and one [Done] or [Failed]. Pause, resume and cancel need no body. A
// cancelled run ends in Done with a partial profile.
//
// A [Carrier] carries messages: local (channels) and web (postMessage) behave
// alike, which one suite of tests shows on both.
package workers

import "github.com/stackglass/stackglass/core/analysis"

// Type says what a message is.
type Type uint8

// The types of messages.
const (
	// From the asker to the host.
	TypeStart Type = iota + 1 // body: Start; attachment: the trace
	TypePause
	TypeResume
	TypeCancel
	// From the host to the asker.
	TypeReady    // the host can take a Start
	TypeProgress // body: Progress
	TypeSnapshot // body: an encoded partial profile
	TypeDone     // body: Done
	TypeFailed   // body: Failed
)

// Message is one message. Body belongs to the receiver.
type Message struct {
	Type       Type
	Job        uint32 // chosen by the asker, echoed in every answer
	Body       []byte
	Attachment any // the trace of a Start: a local file in the browser, an opener natively
}

// Carrier carries messages to the other side and back, in order.
type Carrier interface {
	// Send hands m over; it does not wait until m is read.
	Send(m Message) error
	// Receive waits for the next message. After the other side is gone it
	// gives an error.
	Receive() (Message, error)
	// Close ends the connection; in the browser it ends the worker.
	Close() error
}

// Start asks for one analysis.
type Start struct {
	Key    string // of the entry in the store; a checkpoint under it is resumed when Resume is set
	Name   string // of the file, for messages and the entry
	Format string // as for --input-format; "" finds out
	Spec   analysis.Spec
	Resume bool
}

// Progress tells how far an analysis is.
type Progress struct {
	Bytes      uint64 // of the file, read so far
	TotalBytes uint64 // of the file; 0: not known
	References uint64
	Lines      uint64
	Threads    int
	BadRecords uint64
	Memory     uint64 // bytes that the host's Go program holds
	Storage    uint64 // bytes in use in the store, as far as known
	Millis     uint64 // spent so far, pauses left out
	Paused     bool
}

// Done ends an analysis: complete, or partial with the reason in the profile.
type Done struct {
	Key     string
	Digest  string // hexadecimal
	Kept    bool   // the profile is in the store
	Problem string // why it is not kept, in a sentence; or ""
	Profile []byte // encoded
}

// Failed ends an analysis that has no result at all.
type Failed struct {
	Problem string // what happened, what is kept, what to do, in a sentence or two
}
