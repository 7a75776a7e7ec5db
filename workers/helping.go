package workers

import (
	"io"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
)

// HelperHost is the other end of a helper's [Carrier]: it analyses segments of one trace, one after the
// other, in the goroutine of [HelperHost.Serve].
type HelperHost struct {
	Carrier Carrier
	// OpenSource opens the attachment of a Help for reading at any position.
	OpenSource func(name string, attachment any) (trace.Source, error)
	// Yield, Now and Memory are as in [Host].
	Yield  func()
	Now    func() time.Time
	Memory func() uint64

	inbox     chan Message        // closed when the carrier ends
	end       error               // why
	stretcher *analysis.Stretcher // nil: there is no trace yet
	mostLines uint64              // of a segment; 0: any
}

// analysedEvery is the interval of progress messages.
const analysedEvery = 100 * time.Millisecond

// Serve analyses segments until the carrier ends. It returns the reason, nil after Close.
func (h *HelperHost) Serve() error {
	of := Host{Yield: h.Yield, Now: h.Now, Memory: h.Memory}
	of.fillDefaults()
	h.Yield, h.Now, h.Memory = of.Yield, of.Now, of.Memory
	h.inbox = make(chan Message)
	go receive(h.Carrier, h.inbox, &h.end, func(Message) {})
	for m := range h.inbox {
		switch m.Type { // others are late, or damaged
		case TypeHelp:
			h.open(m)
		case TypeStretch:
			s := h.analyse(m)
			if h.Carrier.Send(Message{Type: TypeSegment, Job: m.Job, Body: EncodeSegment(s)}) != nil {
				continue // the end shows at the next Receive
			}
		}
	}
	return endOf(h.end)
}

// open opens the trace. If that fails, its segments have no results.
func (h *HelperHost) open(m Message) {
	help, err := DecodeHelp(m.Body)
	if err != nil {
		return
	}
	if source, err := h.OpenSource(help.Name, m.Attachment); err == nil {
		h.stretcher, h.mostLines = analysis.NewStretcher(help.Spec, source), help.MostLines
	}
}

// analyse returns the result of a segment, nothing after any error: the run will find it, too.
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

// run steps to the end of a segment, or to where it is cut.
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
				tell.ran(now, now)
			}
			turn.ran(now, now)
		}
		if err := h.stretcher.Step(); err != nil {
			return false, err
		}
	}
}

// obey handles the waiting messages, and reports whether to cut the segment. It blocks while the run is
// paused.
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
