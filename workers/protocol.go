// Package workers is the protocol between the client of an analysis (the page, a test) and its worker (a web
// worker, a goroutine), and the [Host] that serves it.
//
// A run, message by message:
//
//  1. The host sends Ready. (A carrier keeps earlier messages.)
//  2. The client sends [Start] with a trace attached, and a job number, which every answer echoes.
//  3. The host sends [Progress] five times a second, and now and then a snapshot of the profile.
//  4. The client may send Pause, Resume and Cancel, without a body, which the host obeys within a
//     quarter of a second.
//  5. A last Progress reports Ending, because assembling the result of many millions of lines takes a while.
//  6. One [Done] or [Failed] ends the job. A cancelled or damaged run ends in Done with a partial
//     profile that says why; Failed means no result at all.
//
// A host may share a run with helpers in workers of their own ([Sharing], [HelperHost]):
//
//  1. The run sends [Help] with the trace attached, and Stretch, a segment to analyse, whose
//     number is in every message about it.
//  2. The helper sends [Analysed] ten times a second, and one Segment, the result.
//  3. The run may send Cut, which makes the result come soon, Pause and Resume.
//
// The run gives up a helper that dies or sends nonsense, and analyses its segment itself.
//
// Answers that take long, or need rarely used code, come from another program ([AnswerHost]): it sends
// Ready, and receives a [Subject] and questions about it ([answers.Question], TypeAsk). TypeAnswer contains
// a reply. If there are several, all but the last announce another. A question replaces the previous one of
// its name.
//
// Two kinds of [Carrier] behave alike, as one suite of tests (workerstest) shows: workers/local (channels)
// and workers/web (postMessage). Bodies are encoded by package codec: reflection and JSON would cost the
// browser more to load than the whole protocol.
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
	TypeReady    // the host can take a Start
	TypeProgress // body: Progress
	TypeSnapshot // body: an encoded partial profile
	TypeDone     // body: Done
	TypeFailed   // body: Failed
	// From a run to a helper.
	TypeHelp    // body: Help; attachment: the trace
	TypeStretch // body: an analysis.Stretch; Job: its number
	TypeCut     // no body
	// From a helper to the run.
	TypeAnalysed // body: Analysed
	TypeSegment  // body: an analysis.Segment
	// From a client with questions, and back.
	TypeSubject // body: Subject
	TypeAsk     // body: an answers.Question; attachment: the trace, if the answer needs it
	TypeAnswer  // body: an answers.Reply; Job: the question's
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

// Message is one message. Its Body belongs to the receiver.
type Message struct {
	Type       Type
	Job        uint32 // chosen by the client, echoed in every answer
	Body       []byte
	Attachment any // the trace of a Start: a local file in the browser, an opener natively
}

// Carrier is a transport: it carries messages to the other side and back, in order. Its methods may be called
// from several goroutines.
type Carrier interface {
	// Send does not wait until m is read.
	Send(m Message) error
	// Receive waits for the next message. After the last message it returns an error: ErrClosed
	// if either side closed the connection, a *DeadError if the other side died.
	Receive() (Message, error)
	// Close ends the connection; in the browser it ends the worker.
	Close() error
}

// ErrClosed is the error of a [Carrier] that was closed on either side.
var ErrClosed = errors.New("the connection to the worker is closed")

// DeadError reports that the other side of a [Carrier] died. Close the carrier and open another.
type DeadError struct {
	Code int    // the exit code, -1 if there is none
	Why  string // its last words, if known, or ""
}

func (e *DeadError) Error() string {
	s := "the analysis worker died"
	if e.Code >= 0 {
		s += " with exit code " + strconv.Itoa(e.Code)
	}
	if e.Why != "" {
		s += " (" + e.Why + ")"
	}
	s += "; kept analyses and checkpoints are unharmed"
	if strings.Contains(e.Why, "out of memory") {
		s += "; a trace with fewer distinct lines, larger lines, or the command line needs less of the browser's memory"
	}
	return s
}

// Start asks for one analysis.
type Start struct {
	Key    string // of the entry in the store
	Name   string // of the file, for errors and the entry
	Format string // as for --input-format; "" detects it
	Spec   analysis.Spec
	Resume bool // from the checkpoint under Key
	// Memory limits the program, in bytes; 0: no limit. A run that needs more spills its stacks, if
	// the host has a spill store.
	Memory uint64

	Workers uint32 // if the trace can be shared; 0: a number that suits the machine
	// SegmentReferences is about the number of references of segments for helpers, even of short
	// traces; 0: automatic.
	SegmentReferences uint32
}

// Progress is the progress of an analysis.
type Progress struct {
	Bytes      uint64 // of the file, read so far
	TotalBytes uint64 // of the file; 0: unknown
	References uint64
	Lines      uint64
	Threads    int
	BadRecords uint64
	Memory     uint64 // bytes of the host's Go program
	Limit      uint64 // of these; 0: none
	Outside    uint64 // spilled bytes of stacks
	Storage    uint64 // bytes in use in the store, if known
	Millis     uint64 // spent so far, pauses left out
	Paused     bool
	Resuming   bool   // reads again what was analysed before the interruption
	Unsaved    string // why no more checkpoints are saved, in a few words, or ""
	Beyond     bool   // the stacks are spilled, and [analysis.Spec.Beyond] is analysed
	Ending     bool   // the run is over, or Cancel was obeyed; the result is being assembled
	Workers    uint32 // that take part and live
	Ahead      uint64 // references that helpers have analysed in addition to References
	Total      uint64 // references of the trace; 0: unknown
	LeftOut    uint64 // references left out by kind or thread, if Total is known
	Speed      uint64 // recent, per second, in the unit of Done; 0: unknown
}

// Done returns the progress and its total: references if their total is known, else bytes of the file.
// whole is 0 if neither is known.
func (p *Progress) Done() (part, whole uint64) {
	if p.Total > 0 {
		return p.References + p.Ahead + p.LeftOut, p.Total
	}
	return p.Bytes, p.TotalBytes
}

// Done ends an analysis: complete, or partial with the reason in the profile.
type Done struct {
	Key     string
	Digest  string // hexadecimal
	Kept    bool   // the profile is in the store
	Problem string // why it is not kept, in a sentence; or ""
	Profile []byte // encoded
}

// Help describes a run to a helper.
type Help struct {
	Name string // of the file
	Spec analysis.Spec
	// MostLines is the number of distinct lines at which a segment is cut; 0: none.
	MostLines uint64
}

// Analysed is the progress of a helper with its segment.
type Analysed struct {
	References uint64
	Memory     uint64 // bytes of its Go program
}

// Failed ends an analysis that has no result at all.
type Failed struct {
	Problem string // the problem, what is kept, and what to do, in a sentence or two
}

// Mailbox is the receiving half of a [Carrier]: an unbounded queue that never blocks the sender, because
// event handlers of the browser must not block. The zero value is ready.
type Mailbox struct {
	mu      sync.Mutex
	arrived sync.Cond // L is set on first use
	waiting []Message
	end     error // once waiting is empty
}

func (b *Mailbox) lock() {
	b.mu.Lock()
	if b.arrived.L == nil {
		b.arrived.L = &b.mu
	}
}

// Put appends m; after End it is dropped.
func (b *Mailbox) Put(m Message) {
	b.lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.waiting = append(b.waiting, m)
		b.arrived.Signal()
	}
}

// End makes Take return err after the waiting messages. Only the first call counts.
func (b *Mailbox) End(err error) {
	b.lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.end = err
		b.arrived.Broadcast()
	}
}

// Take waits for the next message, or for the end.
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
	b.waiting[0] = Message{} // frees the body
	b.waiting = b.waiting[1:]
	return m, nil
}

// Ended returns the error of End, nil before it.
func (b *Mailbox) Ended() error {
	b.lock()
	defer b.mu.Unlock()
	return b.end
}
