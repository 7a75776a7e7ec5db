package workers

import (
	"cmp"
	"io"
	"sync"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
)

// Sharing configures how a host shares a run with helpers, each in a separate worker, if the trace
// can be read at arbitrary positions; see [analysis.Divided].
type Sharing struct {
	// OpenSource opens the attachment of a Start for reading at arbitrary positions. If OpenSource
	// fails, a single worker analyses the trace.
	OpenSource func(name string, attachment any) (trace.Source, error)
	// Connect starts a worker that serves as a [HelperHost].
	Connect func() (Carrier, error)
	// Workers is the default number of workers of a run. The number should suit the machine.
	Workers int
	// MemoryBytes limits the memory for the analyses of one worker.
	MemoryBytes uint64
	// Patience is the time after which a silent helper is considered dead; 0: half a minute. The
	// timeout is needed because some helpers die without an event.
	Patience time.Duration
}

const defaultPatience = 30 * time.Second

const (
	// mostWorkers is the maximum number of workers of a run.
	mostWorkers = 8
	// leastShared is the minimum number of references in a trace that is divided among helpers.
	leastShared = 1 << 22
	// bytesPerLine is the memory that a distinct line of a segment takes in the models, the result
	// and its encoding.
	bytesPerLine = 256
)

// team consists of the helpers of one run. A nil team has no helpers.
type team struct {
	sharing *Sharing
	help    []byte // the body of the Help message
	file    any
	wake    func()
	members []*helper
}

// divide divides the analysis of the reader's trace among helpers. It returns nil if the analysis
// cannot be divided, or if helpers would not make the analysis faster.
func (j *job) divide(reader trace.Reader, attachment any) *analysis.Divided {
	s, spec := j.host.Sharing, j.start.Spec
	if s == nil || !spec.Splits() {
		return nil
	}
	n := int(min(j.start.Workers, mostWorkers))
	if n == 0 {
		n = min(s.Workers, mostWorkers)
	}
	container, ok := reader.(interface{ Mover() trace.Mover })
	if n < 2 || !ok {
		return nil
	}
	mover := container.Mover()
	if mover == nil {
		return nil
	}
	source, err := s.OpenSource(j.start.Name, attachment)
	if err != nil || !spec.Divides(source.Kinds()) || !isLongEnough(source.Chunks(), j.start.SegmentReferences > 0) {
		return nil
	}
	help := Help{Name: j.start.Name, Spec: spec, MostLines: cmp.Or(j.start.Memory/uint64(n), s.MemoryBytes) / bytesPerLine}
	j.team = &team{sharing: s, help: help.Encode(), file: attachment}
	d, err := analysis.NewDivided(spec, reader, mover, source, analysis.DividedOptions{
		Helpers:           func(wake func()) []analysis.Helper { return j.team.newHelpers(n-1, wake) },
		SegmentReferences: int(j.start.SegmentReferences),
	})
	if err != nil {
		return nil // NewRunner returns the same error
	}
	return d
}

// isLongEnough reports whether a trace is long enough to be divided among helpers.
func isLongEnough(chunks []trace.Chunk, forced bool) bool {
	n := uint64(0)
	for _, c := range chunks {
		n += c.References
	}
	return n >= leastShared || forced && n > 0
}

// newHelpers returns n helpers. A helper's worker starts when the helper receives its first segment.
func (t *team) newHelpers(n int, wake func()) (list []analysis.Helper) {
	t.wake = wake
	for range n {
		h := &helper{team: t}
		t.members = append(t.members, h)
		list = append(list, h)
	}
	return list
}

func (t *team) all() []*helper {
	if t == nil {
		return nil
	}
	return t.members
}

// broadcast sends a message without a body to all helpers that are working.
func (t *team) broadcast(kind Type) {
	for _, h := range t.all() {
		h.tell(kind)
	}
}

// close ends all helpers.
func (t *team) close() {
	for _, h := range t.all() {
		h.Close()
	}
}

// size returns the number of helpers of the team that have started and have not died.
func (t *team) size() (n uint32) {
	t.forEach(func(h *helper) {
		if h.carrier != nil && !h.gone {
			n++
		}
	})
	return n
}

// memory returns the memory of the helpers' programs.
func (t *team) memory() (bytes uint64) {
	t.forEach(func(h *helper) { bytes += h.memory })
	return bytes
}

// forEach calls a function for every helper, with the helper locked.
func (t *team) forEach(f func(*helper)) {
	for _, h := range t.all() {
		h.mu.Lock()
		f(h)
		h.mu.Unlock()
	}
}

// helper implements [analysis.Helper] with a remote [HelperHost].
type helper struct {
	team    *team
	carrier Carrier // nil before the helper's first segment; set by the run's goroutine

	mu     sync.Mutex
	number uint32 // number of the segment
	// time of the helper's last progress message, or of the last command to begin or resume
	heard      time.Time
	references uint64
	memory     uint64
	ended      bool // whether the segment has ended
	segment    analysis.Segment
	gone       bool // whether the helper died or was closed
}

// Begin makes the helper analyse a segment. If the helper is dead or cannot be started, the segment
// ends at once without a result.
func (h *helper) Begin(s analysis.Stretch) {
	h.mu.Lock()
	h.number++
	h.references, h.ended, h.segment = 0, h.gone, analysis.Segment{}
	h.heard = time.Now()
	number, gone := h.number, h.gone
	h.mu.Unlock()
	if gone || h.carrier == nil && !h.start() {
		return
	}
	if h.carrier.Send(Message{Type: TypeStretch, Job: number, Body: EncodeStretch(s)}) != nil {
		h.markDead()
	}
}

// start connects to the helper, and reports whether the connection succeeded.
func (h *helper) start() bool {
	carrier, err := h.team.sharing.Connect()
	if err != nil {
		h.markDead()
		return false
	}
	h.mu.Lock()
	h.carrier = carrier
	h.mu.Unlock()
	if carrier.Send(Message{Type: TypeHelp, Body: h.team.help, Attachment: h.team.file}) != nil {
		h.markDead()
		return false
	}
	go h.listen()
	return true
}

// listen receives the helper's messages until it is gone.
func (h *helper) listen() {
	for {
		m, err := h.carrier.Receive()
		if err == nil {
			err = h.handle(m)
		}
		if err != nil {
			h.markDead()
			return
		}
	}
}

// handle handles a message. It returns an error if the message cannot be decoded.
func (h *helper) handle(m Message) error {
	switch m.Type {
	case TypeAnalysed:
		a, err := DecodeAnalysed(m.Body)
		if err != nil {
			return err
		}
		h.mu.Lock()
		if m.Job == h.number && !h.ended {
			h.references = a.References
		}
		h.memory, h.heard = a.Memory, time.Now()
		h.mu.Unlock()
	case TypeSegment:
		s, err := DecodeSegment(m.Body)
		if err != nil {
			return err
		}
		h.mu.Lock()
		mine := m.Job == h.number && !h.ended
		if mine {
			h.segment, h.ended = s, true
		}
		h.mu.Unlock()
		if mine {
			h.team.wake()
		}
	}
	return nil
}

// markDead marks the helper as dead.
func (h *helper) markDead() {
	h.mu.Lock()
	h.gone, h.ended, h.memory = true, true, 0
	carrier := h.carrier
	h.mu.Unlock()
	if carrier != nil {
		_ = carrier.Close()
	}
	h.team.wake()
}

func (h *helper) tell(kind Type) {
	h.mu.Lock()
	number, idle := h.number, h.carrier == nil || h.ended
	if kind == TypeResume {
		h.heard = time.Now()
	}
	h.mu.Unlock()
	if !idle && h.carrier.Send(Message{Type: kind, Job: number}) != nil {
		h.markDead()
	}
}

// Cut asks the helper to end its segment soon.
func (h *helper) Cut() { h.tell(TypeCut) }

// Analysed returns the helper's progress, and whether its segment has ended. A segment also ends if
// the helper is silent for too long.
func (h *helper) Analysed() (references uint64, ended bool) {
	h.mu.Lock()
	mute := !h.ended && time.Since(h.heard) > cmp.Or(h.team.sharing.Patience, defaultPatience)
	h.mu.Unlock()
	if mute {
		h.markDead()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.references, h.ended
}

// Segment returns the result of the segment. Segment must be called only once.
func (h *helper) Segment() analysis.Segment {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.segment
	h.segment = analysis.Segment{}
	return s
}

// Gone reports whether the helper can no longer be used.
func (h *helper) Gone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

// Close ends the helper's worker, even during an analysis.
func (h *helper) Close() {
	if !h.Gone() {
		h.markDead()
	}
}

// HelperHost serves the helper's end of its [Carrier]. HelperHost analyses segments of one trace,
// one after the other, in the goroutine of [HelperHost.Serve].
type HelperHost struct {
	Carrier Carrier
	// OpenSource opens the attachment of a Help message for reading at arbitrary positions.
	OpenSource func(name string, attachment any) (trace.Source, error)
	// Yield, Now and Memory have the same meaning as in [Host].
	Yield  func()
	Now    func() time.Time
	Memory func() uint64

	inbox     chan Message        // closed when the carrier ends
	end       error               // why inbox is closed
	stretcher *analysis.Stretcher // nil: the trace has not been opened yet
	mostLines uint64              // maximum number of distinct lines in a segment; 0: no limit
}

// analysedEvery is the interval of progress messages.
const analysedEvery = 100 * time.Millisecond

// Serve analyses segments until the carrier ends. Serve returns the reason, or nil after Close.
func (h *HelperHost) Serve() error {
	of := Host{Yield: h.Yield, Now: h.Now, Memory: h.Memory}
	of.fillDefaults()
	h.Yield, h.Now, h.Memory = of.Yield, of.Now, of.Memory
	h.inbox = make(chan Message)
	go receive(h.Carrier, h.inbox, &h.end, func(Message) {})
	for m := range h.inbox {
		switch m.Type { // drop all other messages, which are late or damaged
		case TypeHelp:
			h.open(m)
		case TypeStretch:
			s := h.analyse(m)
			if h.Carrier.Send(Message{Type: TypeSegment, Job: m.Job, Body: EncodeSegment(s)}) != nil {
				continue // an error here will also end Receive
			}
		}
	}
	return endOf(h.end)
}

// open opens the trace. If this fails, segments have no results.
func (h *HelperHost) open(m Message) {
	help, err := DecodeHelp(m.Body)
	if err != nil {
		return
	}
	if source, err := h.OpenSource(help.Name, m.Attachment); err == nil {
		h.stretcher, h.mostLines = analysis.NewStretcher(help.Spec, source), help.MostLines
	}
}

// analyse returns the result of a segment. After an error, it returns an empty segment; the run
// will then encounter the same error.
func (h *HelperHost) analyse(m Message) (segment analysis.Segment) {
	defer func() {
		if recover() != nil {
			segment, h.stretcher = analysis.Segment{}, nil
		}
	}()
	s, err := DecodeStretch(m.Body)
	if err != nil || h.stretcher == nil {
		return analysis.Segment{}
	}
	h.stretcher.Begin(s)
	if cut, err := h.run(m.Job); cut || err == io.EOF {
		return h.stretcher.Segment(!cut)
	}
	return analysis.Segment{}
}

// run analyses a segment step by step until the segment ends or is cut.
func (h *HelperHost) run(number uint32) (cut bool, err error) {
	now := h.Now()
	turn, tell := pace{least: turnEvery, next: now}, pace{least: analysedEvery, next: now}
	for {
		if now := h.Now(); turn.due(now) {
			h.Yield()
			if cut, err = h.obey(number); cut || err != nil {
				return cut, err
			}
			if now = h.Now(); tell.due(now) {
				references, lines := h.stretcher.Progress()
				if h.mostLines > 0 && lines >= h.mostLines {
					return true, nil
				}
				a := Analysed{References: references, Memory: h.Memory()}
				if err := h.Carrier.Send(Message{Type: TypeAnalysed, Job: number, Body: a.Encode()}); err != nil {
					return false, err
				}
				tell.recordRun(now, now)
			}
			turn.recordRun(now, now)
		}
		if err := h.stretcher.Step(); err != nil {
			return false, err
		}
	}
}

// obey handles the waiting messages and reports whether to cut the segment. It blocks while the run
// is paused.
func (h *HelperHost) obey(number uint32) (cut bool, err error) {
	for paused := false; ; {
		var m Message
		ok := true
		if paused {
			m, ok = <-h.inbox
		} else {
			select {
			case m, ok = <-h.inbox:
			default:
				return cut, nil
			}
		}
		switch {
		case !ok:
			return false, errGone
		case m.Job != number:
		case m.Type == TypeCut:
			cut = true
		case m.Type == TypePause:
			paused = true
		case m.Type == TypeResume:
			paused = false
		}
	}
}
