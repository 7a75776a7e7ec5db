// Package workers defines the protocol between the client of an analysis (the page or a test) and
// its worker (a web worker or a goroutine), and the [Host] that implements the worker's side.
//
// A run consists of these messages:
//
//  1. The host sends Ready. The client may send messages before Ready, because carriers queue them.
//  2. The client sends [Start] with the trace attached, and with a job number that every reply
//     repeats.
//  3. The host sends [Progress] five times a second, and from time to time a snapshot of the
//     profile.
//  4. The client may send Pause, Resume and Cancel, which have no body. The host responds to these
//     messages within a quarter of a second.
//  5. In the last Progress message, the field Ending is true, because assembling the result of many
//     millions of lines takes a while.
//  6. A [Done] or a [Failed] message ends the job. If a run is cancelled, or its file is damaged,
//     the run ends with Done and a partial profile that contains the reason. A Failed message means
//     that there is no result.
//
// A host may share a run with helpers in other workers ([Sharing], [HelperHost]):
//
//  1. The run sends [Help] with the trace attached, and then the message Stretch, which describes
//     the segment to analyse. Every message about a segment contains the number of the segment.
//  2. The helper sends [Analysed] ten times a second, and finally the message Segment, which
//     contains the result.
//  3. The run may send Pause, Resume, and Cut. The message Cut requests an early result.
//
// If a helper dies or sends invalid messages, the run stops using the helper, and analyses the
// segment itself.
//
// Answers that take long to compute, or that need rarely used code, come from a second program
// ([AnswerHost]). The second program sends Ready, and receives a [Subject] and questions about it
// ([answers.Question], TypeAsk). A message of the type TypeAnswer contains a reply. If a question
// has several replies, every reply except the last states that more replies follow. If a new
// question has the same name as an unanswered question, the new question replaces the unanswered
// question.
//
// There are two kinds of [Carrier], workers/local (channels) and workers/web (postMessage). Both
// kinds of carriers must pass the same test suite (workerstest), so they behave alike. Package
// codec encodes the bodies, because reflection and JSON would add more code to the page than the
// whole protocol.
package workers

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/stackglass/stackglass/core/analysis"
)

// Type is the type of a message.
type Type uint8

// The types of messages.
const (
	// From the client to the host.
	TypeStart  Type = iota + 1 // body: Start; attachment: the trace
	TypePause                  // no body
	TypeResume                 // no body
	TypeCancel                 // no body
	// From the host to the client.
	TypeReady    // the host is ready for a Start
	TypeProgress // body: Progress
	TypeSnapshot // body: an encoded partial profile
	TypeDone     // body: Done
	TypeFailed   // body: Failed
	// From a run to a helper.
	TypeHelp    // body: Help; attachment: the trace
	TypeStretch // body: an analysis.Stretch; Job: the number of the segment
	TypeCut     // no body
	// From a helper to the run.
	TypeAnalysed // body: Analysed
	TypeSegment  // body: an analysis.Segment
	// Between a client with questions and an AnswerHost.
	TypeSubject // body: Subject
	TypeAsk     // body: an answers.Question; attachment: the trace, if the answer needs it
	TypeAnswer  // body: an answers.Reply; Job: the job number of the question
)

var typeNames = [...]string{"none", "start", "pause", "resume", "cancel", "ready", "progress", "snapshot", "done", "failed",
	"help", "stretch", "cut", "analysed", "segment", "subject", "ask", "answer"}

// String returns the type's name in lower case.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// Message is one message. The message's Body belongs to the receiver.
type Message struct {
	Type       Type
	Job        uint32 // chosen by the client, repeated in every reply
	Body       []byte
	Attachment any // the trace of a Start: in the browser a local file, natively a function that opens it
}

// Carrier is a transport that carries messages in both directions, in order. Its methods may be
// called from several goroutines.
type Carrier interface {
	// Send does not wait until the other side has read m.
	Send(m Message) error
	// Receive waits for the next message. After the last message, Receive returns an error: ErrClosed
	// if either side closed the connection, a *DeadError if the other side died, or ErrLeft.
	Receive() (Message, error)
	// Close ends the connection. In the browser, Close also ends the worker.
	Close() error
}

// ErrClosed reports that a [Carrier] was closed on either side.
var ErrClosed = errors.New("the connection to the worker is closed")

// ErrLeft reports that the user left the page while a worker was starting. The browser may restore
// such a page.
var ErrLeft = errors.New("you left the page before the program for this answer had started: reload the page")

// DeadError reports that the other side of a [Carrier] died. The caller must close the carrier, and
// can open a new one.
type DeadError struct {
	Code int    // the exit code, -1 if there is none
	Why  string // the first line of the worker's last output; "": unknown
}

func (e *DeadError) Error() string {
	s := "the analysis worker crashed"
	if e.Code >= 0 {
		s += " with exit code " + strconv.Itoa(e.Code)
	}
	if e.Why != "" {
		s += " (" + e.Why + ")"
	}
	s += "; kept analyses and checkpoints are not affected"
	if strings.Contains(e.Why, "out of memory") {
		s += "; to use less of the browser's memory, analyse a trace with fewer distinct lines, choose larger lines, or use the stackglass command"
	}
	return s
}

// Start requests an analysis.
type Start struct {
	Key    string // key of the entry in the store
	Name   string // name of the file, for errors and the entry
	Format string // a value of --input-format; "" detects the format
	Spec   analysis.Spec
	Resume bool // resume from the checkpoint under Key
	// Memory is the memory limit of the program in bytes; 0: no limit. If a run needs more memory, and
	// the host has a spill store, the run moves its stacks to the spill store.
	Memory uint64

	Workers uint32 // maximum number of workers if the run can be shared; 0: a number that suits the machine
	// SegmentReferences is the approximate number of references in a segment for helpers, even for
	// short traces; 0: automatic.
	SegmentReferences uint32
}

// Progress is the progress of an analysis.
type Progress struct {
	Bytes      uint64 // bytes of the file that were read so far
	TotalBytes uint64 // size of the file; 0: unknown
	References uint64
	Lines      uint64
	Threads    int
	BadRecords uint64
	Memory     uint64 // memory of the host's Go program, in bytes
	Limit      uint64 // memory limit of the program, in bytes; 0: no limit
	Outside    uint64 // bytes of spilled stacks
	Storage    uint64 // bytes in use in the store, if known
	Millis     uint64 // time spent so far, excluding pauses
	Paused     bool
	Resuming   bool   // the run is rereading the part of the file that was analysed before the interruption
	Unsaved    string // why no more checkpoints are saved, in a few words; "": checkpoints are saved
	Beyond     bool   // the stacks are spilled, and [analysis.Spec.Beyond] is analysed
	Ending     bool   // the run has ended or was cancelled, and the result is being assembled
	Workers    uint32 // number of workers that currently share the run
	Ahead      uint64 // references that helpers have analysed, but that the field References does not include yet
	Total      uint64 // references of the trace; 0: unknown
	LeftOut    uint64 // references that are skipped, or that the settings exclude by kind or thread
	Speed      uint64 // recent speed, in references or bytes per second: the unit of [Progress.Done]; 0: unknown
}

// Done returns the progress and the total: in references if the total number of references is
// known, and otherwise in bytes of the file. The total is 0 if it is unknown in both units.
func (p *Progress) Done() (part, whole uint64) {
	if p.Total > 0 {
		return p.References + p.Ahead + p.LeftOut, p.Total
	}
	return p.Bytes, p.TotalBytes
}

// Done ends an analysis with a complete result, or with a partial result whose profile contains the
// reason.
type Done struct {
	Key     string
	Digest  string // hexadecimal
	Kept    bool   // the profile is in the store
	Problem string // why the profile is not kept, in a sentence; "": the profile is kept
	Profile []byte // the encoded profile
}

// Help is the description of a run that a helper receives.
type Help struct {
	Name string // name of the trace file
	Spec analysis.Spec
	// MostLines is the maximum number of distinct lines in a segment; 0: no limit. A segment ends when
	// the number of its lines reaches this maximum.
	MostLines uint64
}

// Analysed is a helper's progress with its segment.
type Analysed struct {
	References uint64
	Memory     uint64 // memory of the helper's Go program, in bytes
}

// Failed ends an analysis that has no result, not even a partial result.
type Failed struct {
	Problem string // one or two sentences: the failure, the data that is kept, and advice
}

// Mailbox is the receiving half of a [Carrier]: an unbounded queue that never blocks the sender,
// because event handlers of the browser must not block. The zero value is ready.
type Mailbox struct {
	mu      sync.Mutex
	arrived sync.Cond // the field L is set on first use
	waiting []Message
	end     error // the error that Take returns when no messages are waiting
}

func (b *Mailbox) lock() {
	b.mu.Lock()
	if b.arrived.L == nil {
		b.arrived.L = &b.mu
	}
}

// Put appends the message m. After End has been called, Put discards m.
func (b *Mailbox) Put(m Message) {
	b.lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.waiting = append(b.waiting, m)
		b.arrived.Signal()
	}
}

// End makes Take return the given error after the remaining messages. Only the first call has an
// effect.
func (b *Mailbox) End(err error) {
	b.lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.end = err
		b.arrived.Broadcast()
	}
}

// Take waits for the next message, or until End is called.
func (b *Mailbox) Take() (Message, error) {
	b.lock()
	defer b.mu.Unlock()
	for len(b.waiting) == 0 {
		if b.end != nil {
			return Message{}, b.end
		}
		b.arrived.Wait()
	}
	m := b.waiting[0]
	b.waiting[0] = Message{} // so that the body can be freed
	b.waiting = b.waiting[1:]
	return m, nil
}

// Ended returns the error that was passed to End, or nil before End.
func (b *Mailbox) Ended() error {
	b.lock()
	defer b.mu.Unlock()
	return b.end
}
