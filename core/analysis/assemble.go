package analysis

import (
	"io"
	"iter"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Plan divides a run among machines that share only the trace, and that communicate by messages.
// The resulting profile is byte-identical to the profile of a [Runner] (MODELS §9):
//
//  1. A [Stretcher] analyses one segment of the trace. Segments can be analysed on any machine and
//     in any order.
//  2. [JoinSegments] joins the results of neighbouring segments. The results can be joined in any
//     grouping.
//  3. [Plan.Finish] analyses the trace up to the first segment, and appends the results one after the
//     other. The beginning of the trace belongs to no segment, because some decisions of the
//     analyses depend on it.
//  4. Some analyses do not support segments. [Plan.InOrder] runs only these analyses over the whole
//     trace. There are several such runs ([Plan.InOrderRuns]), and each of them can use another
//     machine. [Plan.AddOrdered] adds their results to the result of Finish.
//
// If a run cannot be divided, the plan has no segments, and Finish analyses the whole trace.
type Plan struct {
	Stretches  []Stretch
	References uint64 // number of references in the trace, according to its index

	// Moves reports whether Stretchers need the layout of the allocated memory blocks. A Stretcher
	// can compute the layout by reading the trace from the beginning up to its segment.
	// Alternatively, MovesOf reads the layout changes from each segment, and Layouts combines these
	// changes.
	Moves bool

	// Shares is the number of parts into which each half of the communication analysis is divided:
	// the values by page, and the depths of lines by core. Every part reads the whole trace. 0 means
	// 1. Shares must not be changed after the first call of InOrderRuns.
	Shares int

	spec    Spec
	threads int      // number of threads of the trace; 0: unknown
	inOrder Analyses // analyses that InOrder runs
	head    Stretch  // the part of the trace before the first segment
	index   chunkIndex
	lone    bool // each segment is analysed as if all its references belonged to one core
}

// headReferences is the maximum number of references that are analysed before the first segment.
// After this number of references, package communication knows whether the trace has a single
// thread, even if the trace's tables do not list its threads.
const headReferences = leastStretch

// NewPlan divides a run into segments of approximately the given number of references. A segment
// begins at the start of a chunk, unless chunks are longer than segments. If source is nil, the run
// cannot be divided. The error is a [*trace.OptionError].
func NewPlan(spec Spec, source trace.Source, references uint64) (*Plan, error) {
	return newPlan(spec, source, references, headReferences)
}

func newPlan(spec Spec, source trace.Source, references, head uint64) (*Plan, error) {
	p := &Plan{spec: spec.WithDefaults()}
	if err := p.spec.Check(); err != nil {
		return nil, err
	}
	if source == nil {
		return p, nil
	}
	chunks := source.Chunks()
	p.index = newChunkIndex(chunks)
	p.References = p.index.total()
	if references == 0 || p.References == 0 || !p.spec.Divides(source.Kinds()) {
		return p, nil
	}
	threads := 0 // unknown
	if known := source.Open(chunks[0].At, 0).Header().Program; known != nil {
		threads = known.ThreadCount
	}
	if threads > 1 {
		head = min(head, references)
	}
	if p.References <= head {
		return p, nil
	}
	if threads > profile.MaxCores && p.spec.has(Sharing) {
		return p, nil // the assignment of threads to cores depends on the whole trace
	}
	p.threads, p.inOrder = threads, p.spec.inOrderAnalyses(threads)
	references = min(references, p.References) // prevents overflows in the sums below
	events := p.selectEvents(source, threads)
	at := func(chunk int, rows, before uint64) Stretch {
		return Stretch{From: trace.Position{Chunk: chunks[chunk].At, Rows: rows}, First: before, Events: events, Lone: p.lone}
	}
	next := head // reference at which the next segment should begin
	for i, c := range chunks {
		before := p.index.before[i]
		for next < before+c.References {
			rows := next - before
			if near := references / 16; rows <= near && len(p.Stretches) > 0 {
				rows = 0
			}
			p.Stretches = append(p.Stretches, at(i, rows, before))
			next = before + rows + references
			if rest := before + c.References; next < rest && rest-next <= references/16 {
				next = rest
			}
		}
	}
	for i := range p.Stretches {
		p.Stretches[i].To = trace.Position{Chunk: trace.AtEnd}
		if i+1 < len(p.Stretches) {
			p.Stretches[i].To = p.Stretches[i+1].From
		}
	}
	p.head = Stretch{To: p.Stretches[0].From, Events: events, Lone: p.lone}
	return p, nil
}

// selectEvents returns the kinds of events that the analyses read.
func (p *Plan) selectEvents(source trace.Source, threads int) (events trace.Kinds) {
	f := feed{analyses: table(p.segmentSpec(), noProgram)}
	_, several := findOptional[contract.MultiCore](f.analyses)
	p.lone = several && threads < 2
	_, follows := findOptional[contract.LayoutFollower](f.analyses)
	events = f.selectRows()
	// If the trace has only one chunk, every reader starts at the beginning, and therefore knows
	// the layout.
	p.Moves = follows && len(p.index.chunks) > 1 && blocksMatter(events, source, p.spec.Mergeable)
	return events
}

// segmentSpec returns the spec without the analyses that do not support segments.
func (p *Plan) segmentSpec() Spec { return p.spec.withoutAnalyses(p.inOrder) }

// InOrderRuns returns the number of runs of InOrder whose results AddOrdered needs. The number is 0 if all
// analyses of the run support segments.
func (p *Plan) InOrderRuns() int { return len(p.orderedRuns()) }

func (p *Plan) orderedRuns() []orderedRun {
	if len(p.Stretches) == 0 {
		return nil
	}
	return p.spec.orderedRuns(p.inOrder, p.Shares, p.threads)
}

// InOrder computes the results of one of the runs over the whole trace. The parameter number is
// below InOrderRuns. InOrder calls onProgress between steps. If onProgress fails, InOrder returns its
// error.
func (p *Plan) InOrder(number int, r trace.Reader, onProgress func(Progress) error) (*profile.Profile, error) {
	of := p.orderedRuns()[number]
	if of.analyses == 0 {
		run := newRunnerOf(p.spec, r, func(program func() *trace.Program) []member { return p.spec.shareTable(of.share, program) })
		if err := runToEnd(run, onProgress); err != io.EOF {
			return nil, err
		}
		return &profile.Profile{Input: profile.Input{Kinds: p.spec.Kinds}, Totals: run.totals, Segment: &profile.Segment{Communication: shareState(run.analyses)}}, nil
	}
	run := newRunner(p.spec.onlyAnalyses(of.analyses), r)
	if err := runToEnd(run, onProgress); err != io.EOF {
		return nil, err
	}
	return run.Finish(profile.State{}), nil
}

// AddOrdered adds the results of all runs of InOrder to the result of Finish.
func (p *Plan) AddOrdered(to *profile.Profile, ordered []*profile.Profile) error {
	if len(ordered) != p.InOrderRuns() || slices.Contains(ordered, nil) {
		return &AppendError{"a result of the analyses that must read the whole trace in order (Plan.InOrder) is missing"}
	}
	if len(ordered) == 0 {
		return nil
	}
	var shares [][]byte
	for i, of := range p.orderedRuns() {
		switch from := ordered[i]; {
		case of.analyses != 0:
			p.spec.graft(of.analyses, to, from)
		case from.Segment == nil:
			return &AppendError{"the result of a part of the communication analysis is missing"}
		default:
			shares = append(shares, from.Segment.Communication)
		}
	}
	if len(shares) > 0 {
		if err := p.spec.joinShares(to, shares...); err != nil {
			return err
		}
	}
	p.spec.explain(to)
	return nil
}

// Range returns the range of reference numbers [from, to) of a segment. The numbers are approximate
// if segments begin within chunks that contain events.
func (p *Plan) Range(stretch int) (from, to uint64) {
	at := func(s *Stretch) uint64 { return s.First + s.From.Rows }
	to = p.References
	if stretch+1 < len(p.Stretches) {
		to = at(&p.Stretches[stretch+1])
	}
	return at(&p.Stretches[stretch]), to
}

// Rest returns the remainder of a segment, starting at a position in the segment.
func (p *Plan) Rest(of Stretch, from trace.Position) Stretch {
	of.From, of.First = from, p.index.referencesBeforeChunk(from)
	return of
}

// Moves contains the records of a segment that change the layout of memory blocks.
type Moves []Move

// Move contains consecutive records from one chunk that change the layout of memory blocks.
type Move struct {
	Chunk uint64       // the chunk that contains the records; the tables in its header describe the blocks
	Rows  *trace.Batch // the records, with their kinds, addresses, sites and arguments
}

// MovesOf reads the layout changes in the segment with the given index. Index -1 means the
// beginning of the trace, before the first segment.
func (p *Plan) MovesOf(source trace.Source, stretch int) (all Moves, err error) {
	of := p.head
	if stretch >= 0 {
		of = p.Stretches[stretch]
	}
	r := source.Open(of.From.Chunk, trace.AllKinds|of.Events)
	rows := trace.NewBatch(0)
	if r.Until(of.From); of.From.Rows > 0 {
		for err == nil {
			err = r.Next(rows)
		}
		if err != trace.ErrThere {
			return nil, errorOrShort(err)
		}
	}
	r.Until(of.To)
	var known trace.Program
	for {
		if err := r.Next(rows); err == trace.ErrThere || err == io.EOF && of.To.Chunk == trace.AtEnd {
			return all, nil
		} else if err != nil {
			return nil, errorOrShort(err)
		}
		now := r.Header().Program
		if some := eventsOf(rows, contract.LayoutEvents); now != nil && (len(some.Kind) > 0 || len(all) == 0 || len(now.Objects) != len(known.Objects) || len(now.Threads) != len(known.Threads)) {
			all = append(all, Move{r.Position().Chunk, some})
			known = *now
		}
	}
}

// Layouts computes the layout of memory blocks at the end of each segment.
type Layouts struct {
	source trace.Source
	chunk  uint64
	header trace.Header
	blocks contract.LayoutFollower
}

// Layouts returns a new Layouts, positioned at the beginning of the trace.
func (p *Plan) Layouts(source trace.Source) *Layouts {
	l := &Layouts{source: source, chunk: trace.AtEnd}
	l.blocks = p.spec.newLayout(func() *trace.Program { return l.header.Program })
	return l
}

// Behind returns the layout of memory blocks at the end of the next segment. The parameter moves
// must contain the layout changes in this segment. Behind must be called for each segment, in the
// order of the trace.
func (l *Layouts) Behind(moves Moves) []contract.Block {
	for _, m := range moves {
		if m.Chunk != l.chunk {
			l.chunk, l.header = m.Chunk, l.source.Open(m.Chunk, 0).Header()
		}
		l.blocks.Move(m.Rows)
	}
	return l.blocks.Layout()
}

// JoinSegments joins the results of neighbouring segments, which must be in the order of the trace.
// The error is an [*AppendError] if a segment does not begin where the previous segment ends, or
// the error of an analysis whose state is damaged.
func JoinSegments(spec Spec, segments ...*profile.Profile) (*profile.Profile, error) {
	return JoinSequence(spec, Sequence(segments...))
}

// Sequence returns the given profiles as a sequence without errors.
func Sequence(list ...*profile.Profile) iter.Seq2[*profile.Profile, error] {
	return func(yield func(*profile.Profile, error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// JoinSequence is like JoinSegments, but requests the segments one after the other. While it appends
// a segment, JoinSequence needs no other segment in memory. An error in the sequence ends the join.
func JoinSequence(spec Spec, segments iter.Seq2[*profile.Profile, error]) (joined *profile.Profile, err error) {
	spec = spec.WithDefaults()
	var analyses []member
	for next, err := range segments {
		switch {
		case err != nil:
			return nil, err
		case next.Segment == nil:
			return nil, &AppendError{"only segments can be joined"}
		case joined == nil:
			analyses = spec.joinTable(next)
			joined, err = restoreFirst(analyses, next)
		default:
			err = appendResults(joined, analyses, next)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, a := range analyses {
		a.Result(joined, true)
	}
	return joined, nil
}

// joinTable creates the analyses that append segments to the given segment.
func (s Spec) joinTable(first *profile.Profile) []member {
	s.Start = first.Segment.Start
	told := !s.Mergeable
	s.Mergeable = true
	lone := first.Segment.Sharing == nil && first.Totals.AllReferences() > 0
	return s.tableFor(noProgram, segmentInfo{is: true, layoutKnown: told, joins: true, lone: lone})
}

// restoreFirst restores the analyses of the first segment. The result joined does not contain their
// results yet.
func restoreFirst(analyses []member, first *profile.Profile) (joined *profile.Profile, err error) {
	for _, a := range analyses {
		if err := a.Restore(first); err != nil {
			return nil, err
		}
	}
	return &profile.Profile{Input: first.Input, Totals: first.Totals, State: first.State, Segment: &profile.Segment{Start: first.Segment.Start}, Sources: slices.Clone(first.Sources)}, nil
}

// Finish returns the profile of the run, without the results of InOrder. Finish analyses the trace up
// to the first segment, and then appends the given segments, which may have been joined. The
// parameter r must read the trace of the parameter source, and must be at the beginning of the trace.
// If a segment cannot be appended, Finish analyses all references itself, and returns joined = false.
// Finish calls onProgress between steps. If onProgress fails, Finish returns its error. Any other
// error is a read error, an error of the sequence, an [*AppendError] if segments are missing, or
// [trace.ErrNotThere]. The profile then contains the results up to the error.
func (p *Plan) Finish(r trace.Mover, source trace.Source, segments iter.Seq2[*profile.Profile, error], onProgress func(Progress) error) (whole *profile.Profile, joined bool, err error) {
	spec := p.spec
	if p.InOrderRuns() > 0 {
		spec = p.segmentSpec()
	}
	runner, err := NewRunner(spec, r)
	if err != nil {
		return nil, false, err
	}
	d := &Divided{Runner: runner, mover: r, source: source, over: true}
	if len(p.Stretches) > 0 {
		from := p.Stretches[0].From
		r.Until(from)
		head := uint64(0)
		if err = runToEnd(d.Runner, onProgress); err == trace.ErrThere {
			head = d.analysed
			joined, err = p.append(d, from, segments, onProgress)
		}
		if !joined && err == nil && d.analysed > head {
			r = source.Open(0, trace.AllKinds)
			d.Runner.Finish(profile.State{})
			if d.Runner, err = NewRunner(spec, r); err != nil {
				return nil, false, err
			}
			d.mover = r
		}
		if !joined && err == nil {
			r.Until(trace.Position{Chunk: trace.AtEnd})
		}
	}
	if !joined && err == nil {
		err = runToEnd(d.Runner, onProgress)
	}
	if err == io.EOF {
		err = nil
	}
	return d.Finish(StateAfter(err, d.analysed)), joined, err
}

// runToEnd calls Step until Step or onProgress returns an error. At the end of the trace, Step
// returns io.EOF. runToEnd calls onProgress between two steps.
func runToEnd(r *Runner, onProgress func(Progress) error) error {
	for {
		err := r.Step()
		if err == nil {
			err = onProgress(r.Progress())
		}
		if err != nil {
			return err
		}
	}
}

// append appends the segments, if all analyses can append them. If a segment cannot be appended, done
// is false, and the analyses may already contain earlier segments.
func (p *Plan) append(d *Divided, from trace.Position, segments iter.Seq2[*profile.Profile, error], onProgress func(Progress) error) (done bool, err error) {
	if !d.source.Agrees(d.mover, from.Chunk) {
		return false, nil
	}
	for next, err := range segments {
		switch {
		case err != nil:
			return false, err
		case next.Segment == nil || next.Segment.Start != d.analysed:
			return false, errMissing
		case !d.canAppend(next, p.lone):
			return false, nil
		}
		if err := d.feed.append(next, p.lone); err != nil {
			return false, err
		}
	}
	if d.analysed != p.References {
		return false, errMissing
	}
	// No analysis needs the layout of memory blocks at the end of the trace.
	if err := d.mover.Pass(trace.AtEnd); err != nil {
		return false, err
	}
	d.mover.Until(trace.Position{Chunk: trace.AtEnd})
	return true, runToEnd(d.Runner, onProgress)
}

var errMissing = &AppendError{"the segments do not cover the rest of the trace"}

// AppendError explains why segments cannot be joined.
type AppendError struct{ What string }

func (e *AppendError) Error() string { return e.What }

func noProgram() *trace.Program { return nil }

// appendResults appends a segment. All analyses append a segment before any analysis appends the next
// segment, because some analyses use the results that other analyses have for the same segment.
func appendResults(joined *profile.Profile, analyses []member, next *profile.Profile) error {
	if next.Segment.Start != joined.Segment.Start+joined.Totals.AllReferences() {
		return &AppendError{"a segment does not begin where the previous segment ends"}
	}
	for _, a := range analyses {
		if err := a.Append(next); err != nil {
			return err
		}
	}
	joined.Totals = addTotals(joined.Totals, next.Totals)
	joined.Sources = trace.JoinSources(joined.Sources, next.Sources)
	joined.Input.Header.Join(next.Input.Header)
	return nil
}

func addTotals(a, b profile.Totals) profile.Totals {
	for k := range a.References {
		a.References[k] += b.References[k]
		a.Bytes[k] += b.Bytes[k]
	}
	a.Unselected += b.Unselected
	a.BadRecords += b.BadRecords
	if b.Threads != nil {
		a.Threads = append(slices.Clone(a.Threads), b.Threads...)
		slices.Sort(a.Threads)
		a.Threads = slices.Compact(a.Threads)
	}
	return a
}
