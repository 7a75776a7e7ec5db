// Package workers is the protocol between whoever asks for an analysis (the
// page, a test) and whoever runs it (a web worker, a goroutine), and the [Host]
// that serves it.
//
// A run, message by message:
//
//  1. The host sends Ready. (A carrier keeps what is sent earlier.)
//  2. The asker sends [Start] with a trace attached, and a job number that it
//     chose; every answer echoes the number.
//  3. The host answers with [Progress] five times a second and with a snapshot
//     of the growing profile now and then.
//  4. The asker may send Pause, Resume and Cancel, without a body, which the
//     host obeys within a quarter of a second.
//  5. When the run is over, or Cancel was obeyed, a last Progress says Ending:
//     putting together the result of many millions of lines takes a while.
//  6. One [Done] or [Failed] ends the job. A cancelled or damaged run ends in
//     Done with a partial profile that says why; Failed means no result at all.
//
// A host may share a run with helpers in workers of their own ([Sharing], [HelperHost]),
// which it reaches by carriers, too:
//
//  1. The run sends [Help] with the trace attached, and Stretch, whose number every
//     message about it carries.
//  2. The helper answers with [Analysed] ten times a second, and with one Segment.
//  3. The run may send Cut, which has the segment come soon, Pause and Resume.
//
// A helper that dies or answers what nobody understands is not used any more; the run
// analyses itself what that one had.
//
// Answers that take work, or code that few visits need, come from a program of its own
// ([AnswerHost]): it sends Ready, is sent a [Subject], and then questions about it
// ([answers.Question]), each by TypeAsk. TypeAnswer brings a reply, or several, all but the
// last of which say that more follow. A question takes the place of the one before that the
// same name answers.
//
// A [Carrier] carries messages: workers/local (channels) and workers/web
// (postMessage) behave alike, which one suite of tests (workerstest) shows on
// both. Bodies are bytes, encoded by hand (encode.go): reflection and JSON
// would cost the browser more to load than all of the protocol.
package workers

import (
	"errors"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
)

// Type says what a message is.
type Type uint8

// The types of messages.
const (
	// From the asker to the host.
	TypeStart  Type = iota + 1 // body: Start; attachment: the trace
	TypePause                  // no body
	TypeResume                 // no body
	TypeCancel                 // no body
	// From the host to the asker.
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
	// From whoever asks for answers that take work, and back.
	TypeSubject // body: Subject
	TypeAsk     // body: an answers.Question; attachment: the trace, for what is answered from it
	TypeAnswer  // body: an answers.Reply; Job: the question's
)

var typeNames = [...]string{"none", "start", "pause", "resume", "cancel", "ready", "progress", "snapshot", "done", "failed",
	"help", "stretch", "cut", "analysed", "segment", "subject", "ask", "answer"}

// String gives the type's name in lower case.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// Message is one message. Whoever sends it gives Body away; it belongs to the
// receiver.
type Message struct {
	Type       Type
	Job        uint32 // chosen by the asker, echoed in every answer
	Body       []byte
	Attachment any // the trace of a Start: a local file in the browser, an opener natively
}

// Carrier carries messages to the other side and back, in order. Its methods
// may be called from several goroutines.
type Carrier interface {
	// Send hands m over; it does not wait until m is read.
	Send(m Message) error
	// Receive waits for the next message. After the other side is gone, and
	// what it had sent is read, it gives an error: ErrClosed where either side
	// closed the connection, a *DeadError where the other side died.
	Receive() (Message, error)
	// Close ends the connection; in the browser it ends the worker.
	Close() error
}

// ErrClosed is what a [Carrier] gives after it was closed on either side.
var ErrClosed = errors.New("the connection to the worker is closed")

// DeadError tells that the other side of a [Carrier] died. Nothing more will
// come from it; close the carrier and open another.
type DeadError struct {
	Code int    // the exit code, -1 where there is none
	Why  string // the last words, as far as known; or ""
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
	Name   string // of the file, for messages and the entry
	Format string // as for --input-format; "" finds out
	Spec   analysis.Spec
	Resume bool // go on from the checkpoint under Key
	// Memory is how much the program may hold, in bytes. A run that would need more goes
	// on with its stacks outside, where the host has a place for them; 0: any.
	Memory uint64

	Workers uint32 // that analyse, as far as the trace can be shared; 0: as many as are good here
	// SegmentReferences has helpers take stretches of about so many references, of short
	// traces, too; 0 finds out what is good.
	SegmentReferences uint32
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
	Limit      uint64 // of these; 0: none
	Outside    uint64 // bytes of stacks that lie outside of memory
	Storage    uint64 // bytes in use in the store, as far as known
	Millis     uint64 // spent so far, pauses left out
	Paused     bool
	Resuming   bool   // reading again what was analysed before the interruption
	Unsaved    string // why no checkpoint can be kept any more, in a few words; ""
	Beyond     bool   // the stacks lie outside of memory, and [analysis.Spec.Beyond] is what is analysed
	Ending     bool   // the run is over, or Cancel was obeyed; the result is being put together
	Workers    uint32 // that take part so far, and have not died
	Ahead      uint64 // references that helpers have analysed further on, besides References
	Total      uint64 // references of the trace, where that is known from the start; else 0
	LeftOut    uint64 // references that were read and left out by kind or thread, where Total is known
	Speed      uint64 // of late, a second, in what Done counts; 0: unknown
}

// Done returns how much is done of how much: references where their total is known, and
// else bytes of the file. whole is 0 where neither is known.
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

// Help tells a helper what run it is for.
type Help struct {
	Name string // of the file
	Spec analysis.Spec
	// MostLines is how many distinct lines a stretch may have: it is cut there; 0: any.
	MostLines uint64
}

// Analysed tells how far a helper is with its stretch.
type Analysed struct {
	References uint64
	Memory     uint64 // bytes that its Go program holds
}

// Failed ends an analysis that has no result at all.
type Failed struct {
	Problem string // what happened, what is kept, what to do, in a sentence or two
}
