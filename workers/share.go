package workers

import (
	"cmp"
	"sync"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
)

// Sharing is how a host shares a run with helpers, each in a worker of its own. It is
// for traces that can be read at any place: see [analysis.Divided].
type Sharing struct {
	// OpenSource has the attachment of a Start read at any place. An error tells that
	// it cannot be: one worker analyses it.
	OpenSource func(name string, attachment any) (trace.Source, error)
	// Connect starts a worker that serves as a [HelperHost].
	Connect func() (Carrier, error)
	// Workers is how many a run has that does not say: as many as the machine is good
	// for.
	Workers int
	// MemoryBytes is what the analyses of one worker may take.
	MemoryBytes uint64
	// Patience is how long a helper may say nothing that is waited for before it is given
	// up: some end without a sign. 0: half a minute.
	Patience time.Duration
}

const defaultPatience = 30 * time.Second

const (
	// mostWorkers is the most that a run has.
	mostWorkers = 8
	// leastShared is how many references are worth the time in which helpers start.
	leastShared = 1 << 22
	// bytesPerLine is what a distinct line of a stretch takes, in the end: in the models,
	// in the segment, and in that as bytes.
	bytesPerLine = 256
)

// team is the helpers of one run.
type team struct {
	sharing *Sharing
	help    []byte // the body of Help
	file    any
	wake    func()
	members []*helper
}

// divide has helpers share the run of a reader; nil: they cannot, or it would not pay.
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
	if err != nil || !spec.Divides(source.Kinds()) || !pays(source.Chunks(), j.start.SegmentReferences > 0) {
		return nil
	}
	help := Help{Name: j.start.Name, Spec: spec, MostLines: cmp.Or(j.start.Memory/uint64(n), s.MemoryBytes) / bytesPerLine}
	j.team = &team{sharing: s, help: help.Encode(), file: attachment}
	d, err := analysis.NewDivided(spec, reader, mover, source, analysis.DividedOptions{
		Helpers:           func(wake func()) []analysis.Helper { return j.team.gather(n-1, wake) },
		SegmentReferences: int(j.start.SegmentReferences),
	})
	if err != nil {
		return nil // who makes a Runner instead is told the same
	}
	return d
}

// pays tells whether a trace is long enough to be shared.
func pays(chunks []trace.Chunk, forced bool) bool {
	n := uint64(0)
	for _, c := range chunks {
		n += c.References
	}
	return n >= leastShared || forced && n > 0
}

// gather makes n helpers, whose workers start with their first stretches.
func (t *team) gather(n int, wake func()) (list []analysis.Helper) {
	t.wake = wake
	for range n {
		h := &helper{team: t}
		t.members = append(t.members, h)
		list = append(list, h)
	}
	return list
}

// tell sends all helpers that work a message without a body.
func (t *team) tell(kind Type) {
	if t == nil {
		return
	}
	for _, h := range t.members {
		h.tell(kind)
	}
}

// close ends all helpers.
func (t *team) close() {
	if t == nil {
		return
	}
	for _, h := range t.members {
		h.Close()
	}
}

// size is how many helpers have been started and live.
func (t *team) size() (n uint32) {
	t.each(func(h *helper) {
		if h.carrier != nil && !h.gone {
			n++
		}
	})
	return n
}

// memory is what the helpers' programs hold.
func (t *team) memory() (bytes uint64) {
	t.each(func(h *helper) { bytes += h.memory })
	return bytes
}

// each calls f with each helper locked.
func (t *team) each(f func(*helper)) {
	if t == nil {
		return
	}
	for _, h := range t.members {
		h.mu.Lock()
		f(h)
		h.mu.Unlock()
	}
}

// helper is a [HelperHost] elsewhere, as an [analysis.Helper].
type helper struct {
	team    *team
	carrier Carrier // nil before the first stretch; set by the run's goroutine

	mu         sync.Mutex
	number     uint32    // of the stretch
	heard      time.Time // when it last said how far it is, or was to begin or go on
	references uint64
	memory     uint64
	ended      bool // there is a segment
	segment    analysis.Segment
	gone       bool // it died, or was closed
}

// Begin has it analyse a stretch. One that is gone, or cannot be started, has ended it
// already, with nothing.
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
		h.lose()
	}
}

// start connects the helper, and tells whether that went well.
func (h *helper) start() bool {
	carrier, err := h.team.sharing.Connect()
	if err != nil {
		h.lose()
		return false
	}
	h.mu.Lock()
	h.carrier = carrier
	h.mu.Unlock()
	if carrier.Send(Message{Type: TypeHelp, Body: h.team.help, Attachment: h.team.file}) != nil {
		h.lose()
		return false
	}
	go h.listen()
	return true
}

// listen takes what the helper tells, until it is gone.
func (h *helper) listen() {
	for {
		m, err := h.carrier.Receive()
		if err == nil {
			err = h.take(m)
		}
		if err != nil {
			h.lose()
			return
		}
	}
}

// take takes one message. The error tells that it cannot be understood.
func (h *helper) take(m Message) error {
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

// lose is for a helper that is not to be used any more.
func (h *helper) lose() {
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
		h.lose()
	}
}

// Cut has it end its stretch soon.
func (h *helper) Cut() { h.tell(TypeCut) }

// Analysed tells how far it is, and whether its stretch has ended, if only because
// nothing was heard of it for too long.
func (h *helper) Analysed() (references uint64, ended bool) {
	h.mu.Lock()
	mute := !h.ended && time.Since(h.heard) > cmp.Or(h.team.sharing.Patience, defaultPatience)
	h.mu.Unlock()
	if mute {
		h.lose()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.references, h.ended
}

// Segment gives what came of the stretch, once.
func (h *helper) Segment() analysis.Segment {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.segment
	h.segment = analysis.Segment{}
	return s
}

// Gone tells that it cannot be used any more.
func (h *helper) Gone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

// Close ends its worker, whatever that does.
func (h *helper) Close() {
	if !h.Gone() {
		h.lose()
	}
}
