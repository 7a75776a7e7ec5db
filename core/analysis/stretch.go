package analysis

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Stretch describes a segment of a trace that another machine or goroutine analyses.
type Stretch struct {
	From, To trace.Position
	First    uint64      // number of references before the first chunk of the segment
	Events   trace.Kinds // kinds of events that the analyses of the whole run read
	Lone     bool        // all references belong to one core, so the segment is analysed without the analysis Sharing
	Whole    bool        // the segment may end only between chunks
}

// Segment is the result of analysing a segment.
type Segment struct {
	Profile *profile.Profile // profile of the segment, with the data for appending the next segment; nil: the analysis failed
	// position at which the analysis ended: before the end of the Stretch if the Stretcher was
	// interrupted
	To   trace.Position
	Rows uint64 // number of rows that were read, including events
}

// Stretcher analyses segments of a run, one after the other.
type Stretcher struct {
	spec   Spec
	source trace.Source
	reader trace.Mover
	stage  stage
	now    Stretch
	runner *Runner
	rows   *trace.Batch

	tracker contract.LayoutFollower // tracks the layout of memory blocks; nil: not needed
	settled bool                    // tracker contains the layout at position Stretcher.known
	known   trace.Position
	laid    bool // layout contains the memory blocks at the beginning of the segment
	layout  []contract.Block
	passed  uint64 // number of references before position Stretcher.known, plus the number of references read between this position and the segment
}

type stage int

const (
	toKnown   stage = iota // reading up to the position at which the layout is known
	toStretch              // reading up to the segment
	inStretch
)

// NewStretcher returns a stretcher for a run with the given spec.
func NewStretcher(spec Spec, source trace.Source) *Stretcher {
	return &Stretcher{spec: spec.WithDefaults(), source: source}
}

// Begin begins a segment. If the results depend on the layout of memory blocks, the Stretcher first
// reads all earlier rows of the trace that it has not read yet.
func (s *Stretcher) Begin(next Stretch) {
	s.laid, s.layout = false, nil
	s.begin(next)
}

// BeginLaid is like Begin, but the caller provides the layout of memory blocks at the beginning of
// the segment.
func (s *Stretcher) BeginLaid(next Stretch, layout []contract.Block) {
	s.laid, s.layout = true, layout
	s.begin(next)
}

func (s *Stretcher) begin(next Stretch) {
	// Do not reuse the layout if the selected events differ, because positions are numbers of rows,
	// including events.
	s.settled = s.settled && next.Events == s.now.Events
	s.now, s.runner = next, nil
	if s.stage = toKnown; s.laid || !s.dependsOnLayout() {
		s.tracker, s.known, s.passed = nil, trace.Position{Chunk: next.From.Chunk}, next.First
	} else if !s.settled || next.From.Before(s.known) {
		s.tracker, s.known, s.passed = s.spec.newLayout(s.program), trace.Position{}, 0
	}
	s.settled = false
	s.reader = s.source.Open(s.known.Chunk, trace.AllKinds|next.Events)
	s.reader.Until(s.known)
	if s.rows == nil {
		s.rows = trace.NewBatch(0)
	}
}

// dependsOnLayout reports whether the results depend on the layout of memory blocks.
func (s *Stretcher) dependsOnLayout() bool {
	return blocksMatter(s.now.Events, s.source, s.spec.Mergeable)
}

// blocksMatter reports whether the results of a run that reads the given events depend on the
// layout of memory blocks. Mergeable segments do not depend on the layout, because they do not
// distinguish blocks.
func blocksMatter(events trace.Kinds, source trace.Source, mergeable bool) bool {
	return !mergeable && events&source.Kinds()&contract.LayoutEvents != 0
}

func (s *Stretcher) program() *trace.Program { return s.reader.Header().Program }

// Step reads or analyses the next rows. Step returns io.EOF when the segment has been analysed
// completely. After any other error, there is no result.
func (s *Stretcher) Step() error {
	if s.stage == inStretch {
		return s.analyse()
	}
	switch err := s.reader.Next(s.rows); {
	case err == nil && s.stage == toStretch:
		s.countSkipped()
		return nil
	case err == nil:
		return nil
	case err != trace.ErrThere:
		return errorOrShort(err)
	}
	if s.stage++; s.stage == toStretch {
		s.reader.Until(s.now.From)
		return nil
	}
	s.prepare()
	return nil
}

// countSkipped counts the references before the segment, and tracks the layout of memory blocks.
func (s *Stretcher) countSkipped() {
	for _, k := range s.rows.Kind {
		if k.IsReference() {
			s.passed++
		}
	}
	if s.tracker != nil {
		s.tracker.Move(s.rows)
	}
}

func (s *Stretcher) prepare() {
	spec := s.spec
	spec.Start = s.passed
	r := &Runner{spec: spec, feed: feed{batch: s.rows, analyses: spec.segmentTable(s.program, s.now.Lone)}}
	r.feed.selectRows()
	if blocks, ok := findOptional[contract.LayoutFollower](r.analyses); ok && s.tracker != nil {
		blocks.Succeed(s.tracker)
	} else if ok && s.laid {
		blocks.Lay(s.layout)
	}
	r.intake = intake{want: spec, reader: s.reader, events: s.now.Events}
	s.reader.Until(s.now.To)
	s.runner = r
}

func (s *Stretcher) analyse() error {
	err := s.runner.step()
	switch {
	case err == nil:
		return nil
	case err == trace.ErrThere && (s.reader.Position() == s.now.To || s.now.To.Rows == 0),
		err == io.EOF && s.now.To.Chunk == trace.AtEnd:
		return io.EOF
	}
	return errorOrShort(err)
}

// errorOrShort replaces an error that means the end of the trace with errShort.
func errorOrShort(err error) error {
	if err == io.EOF || err == trace.ErrThere {
		return errShort
	}
	return err
}

var errShort = errors.New("the index of the trace does not match its chunks")

// Progress returns the numbers of references and distinct lines of the segment so far.
func (s *Stretcher) Progress() (references, lines uint64) {
	if s.runner == nil {
		return 0, 0
	}
	at := s.runner.Progress()
	return at.References, at.Lines
}

// Cut makes the current segment end with the current chunk.
func (s *Stretcher) Cut() {
	at := s.now.From.Chunk
	if s.stage == inStretch {
		at = max(at, s.reader.Position().Chunk)
	}
	for _, c := range s.source.Chunks() {
		if c.At > at {
			if s.now.To.Chunk > c.At {
				s.now.To = trace.Position{Chunk: c.At}
			}
			break
		}
	}
	if s.stage == inStretch {
		s.reader.Until(s.now.To)
	}
}

// Segment ends the analysis of the segment and returns its result. If the segment has been analysed
// completely, the parameter whole must be true.
func (s *Stretcher) Segment(whole bool) Segment {
	r := s.runner
	if r == nil || !whole && r.rows == 0 || r.feed.analyseBatch() != nil {
		return Segment{}
	}
	made := Segment{To: s.now.To, Rows: r.rows, Profile: r.profile(profile.State{}, true)}
	if !whole {
		made.To = s.reader.Position()
	}
	if s.dependsOnLayout() {
		s.tracker, _ = findOptional[contract.LayoutFollower](r.analyses)
		s.known, s.passed, s.settled = made.To, s.passed+r.analysed, true
	}
	return made
}

// Layout returns the layout of memory blocks at the end of the latest segment, or nil if the
// analyses do not need the layout.
func (s *Stretcher) Layout() []contract.Block {
	if !s.settled || s.tracker == nil {
		return nil
	}
	return s.tracker.Layout()
}

// Goroutines returns a function for [DividedOptions] that creates n helpers, each of which is a
// goroutine of this process.
func Goroutines(n int, spec Spec, source trace.Source) func(wake func()) []Helper {
	return func(wake func()) (list []Helper) {
		for range n {
			g := &goroutine{stretcher: NewStretcher(spec, source), wake: wake, stretches: make(chan Stretch, 1)}
			go g.work()
			list = append(list, g)
		}
		return list
	}
}

// goroutine is a [Helper] that runs in this process.
type goroutine struct {
	stretcher *Stretcher
	wake      func()
	stretches chan Stretch
	analysed  atomic.Uint64
	cut       atomic.Bool
	closed    atomic.Bool
	ended     atomic.Bool // the field segment contains a result
	segment   Segment
}

func (g *goroutine) Begin(s Stretch) {
	g.analysed.Store(0)
	g.cut.Store(false)
	g.ended.Store(false)
	g.stretches <- s
}

func (g *goroutine) Cut() { g.cut.Store(true) }

func (g *goroutine) Analysed() (uint64, bool) { return g.analysed.Load(), g.ended.Load() }

func (g *goroutine) Segment() Segment {
	s := g.segment
	g.segment = Segment{}
	return s
}

func (g *goroutine) Gone() bool { return false }

func (g *goroutine) Close() {
	g.closed.Store(true)
	g.cut.Store(true)
	close(g.stretches)
}

func (g *goroutine) work() {
	for s := range g.stretches {
		g.segment = g.analyse(s)
		g.ended.Store(true)
		g.wake()
	}
}

func (g *goroutine) analyse(s Stretch) Segment {
	g.stretcher.Begin(s)
	err, cut := error(nil), false
	for err == nil && (!g.cut.Load() || s.Whole && !g.closed.Load()) {
		if g.cut.Load() && !cut {
			cut = true
			g.stretcher.Cut()
		}
		err = g.stretcher.Step()
		references, _ := g.stretcher.Progress()
		g.analysed.Store(references)
	}
	if err != nil && err != io.EOF || g.closed.Load() {
		return Segment{}
	}
	return g.stretcher.Segment(err == io.EOF)
}
