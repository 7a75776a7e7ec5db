package analysis

import (
	"errors"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Divided is a [Runner] with helpers that independently read and analyse segments of the trace. The
// result is byte-identical to the result of a Runner (MODELS §9). Divided requires a file that can
// be read from any position. For all other files, use [Parallel].
//
//  1. In [Divided.Step], the analyses of the run itself (the live analyses) read rows in order, as
//     in a Runner.
//  2. Helpers analyse later segments of the trace. The lengths of the segments are chosen from the
//     file's index, so that all helpers and the live analyses finish at about the same time.
//  3. When the live analyses reach a segment, they append it and continue after it. If the helper
//     has not finished the segment, the segment is shortened to the part that the helper has
//     analysed, and the remaining references are divided again.
//
// This is the scheme of PARDA (Niu, Dinan, Lu and Sadayappan, IPDPS 2012) with one difference:
// PARDA joins all segments in its last step. Divided appends each segment as early as possible. The
// references that the live analyses read need not be joined.
type Divided struct {
	*Runner
	mover   trace.Mover // the runner's reader
	source  trace.Source
	index   chunkIndex
	helpers []*helping
	claims  []*segmentClaim // ascending
	wake    signal          // signals that a helper may have a result
	over    bool            // no more segments are assigned

	least, most uint64  // minimum and maximum length of segments, in references
	joining     float64 // cost of appending the latest segment, relative to the cost of analysing it
	live        uint64  // no segment may begin before this reference, at which a helper failed
	fixed       bool
	moves       bool // the results depend on the layout of memory blocks
	reads       bool // an analysis must also read the rows of segments: see contract.RowAppender

	helped trace.Kinds // events that helpers read
	wide   bool        // the run itself reads events that its helpers omit
	narrow uint64      // number of a reference; after this reference, the run itself no longer reads events that its helpers omit
}

// Helper analyses segments in a separate goroutine, worker or process. The goroutine that calls
// Step calls the methods of Helper, which must not block.
type Helper interface {
	// Begin starts the analysis of a segment. The helper must be idle.
	Begin(Stretch)
	// Cut makes the helper stop as soon as possible, so that the segment ends near the helper's
	// current position.
	Cut()
	// Analysed returns the number of references that the helper has analysed, and whether the
	// result of the segment is available.
	Analysed() (references uint64, ended bool)
	// Segment returns the result of a segment. Segment is called exactly once for each segment.
	Segment() Segment
	// Gone reports whether the helper has terminated unexpectedly.
	Gone() bool
	// Close terminates the helper. Close may be called in any state.
	Close()
}

// DividedOptions configures the division of the work.
type DividedOptions struct {
	// Helpers creates the helpers. A helper must call the function wake whenever the result of a
	// segment is available.
	Helpers func(wake func()) []Helper
	// SegmentReferences is the length of segments; 0: the length is chosen automatically.
	SegmentReferences int
	// memory limit of the run, which limits the length of segments; 0: no limit
	MemoryBytes uint64
	// Narrow omits the events that are needed only by analyses that do not support segments, such
	// as loop compression. Helpers always omit these events. The run itself omits these events as
	// soon as the analyses that do not support segments read no more rows. [Divided.State] then
	// fails, because positions in a state are counted in rows, including the rows of all events.
	Narrow bool
}

type helping struct {
	Helper
	claim *segmentClaim // nil: the helper is idle
}

// segmentClaim is a segment that a helper analyses or has analysed.
type segmentClaim struct {
	from, to uint64 // range of reference numbers; approximate if the trace contains events
	start    trace.Position
	lone     bool
	wide     bool // the segment contains all events, and begins or ends within a chunk
	by       *helping
	ended    bool
	cut      bool
	segment  Segment
}

// Lengths of segments, in references. Joining is cheaper with long segments. Saved states are more
// recent with short segments.
const (
	leastStretch = 1 << 17
	mostStretch  = 1 << 26
	lastStretch  = 1 << 29 // maximum length of a segment if joining is expensive

	// maximum length of a segment if loops are compressed: loop compression processes all records
	// of a segment in a single step
	foldedStretch = 1 << 22

	readingShare = 0.25 // time for reading and loop compression, relative to the time of the live analyses
)

// Divides reports whether a run can be divided among helpers that read a source independently. The
// run must analyse every reference, because otherwise the positions of the analysed references are
// unknown.
func (s Spec) Divides(kinds trace.Kinds) bool {
	s = s.WithDefaults()
	return s.Splits() && s.Limit == 0 && s.Threads == nil && s.Start == 0 && kinds&trace.AllKinds&^s.Kinds == 0
}

// NewDivided checks spec and returns a run that reads r. The parameter mover moves r to other
// positions in the file. Helpers read the same file through the parameter source. The caller must
// call Close. The error is a [*trace.OptionError].
func NewDivided(spec Spec, r trace.Reader, mover trace.Mover, source trace.Source, o DividedOptions) (*Divided, error) {
	runner, err := NewRunner(spec, r)
	if err != nil {
		return nil, err
	}
	d := &Divided{Runner: runner, mover: mover, source: source, index: newChunkIndex(source.Chunks()), wake: make(signal, 1), least: leastStretch, most: mostStretch}
	for _, h := range o.Helpers(d.wake.notify) {
		d.helpers = append(d.helpers, &helping{Helper: h})
	}
	if o.MemoryBytes > 0 {
		d.most = min(d.most, max(d.least, o.MemoryBytes/memoryShare/uint64(len(d.helpers)+1)))
	}
	if d.reads = d.readsSegmentRows(); d.reads {
		d.most = min(d.most, foldedStretch)
	}
	if d.helped = d.events; o.Narrow {
		d.helped = d.segmentEvents()
	}
	d.wide = d.helped != d.events
	if s := uint64(o.SegmentReferences); s > 0 {
		d.least, d.most, d.fixed = 1, s, true
	}
	_, d.moves = findOptional[contract.LayoutFollower](d.analyses)
	d.moves = d.moves && blocksMatter(d.events, source, d.spec.Mergeable)
	mover.Until(trace.Position{Chunk: trace.AtEnd})
	return d, nil
}

// memoryShare is the number of bytes of memory to reserve for each reference of a segment. Each
// reference may access a new line, which needs about 60 bytes in each of three data structures: the
// stack, the set tables and the lists for joining.
const memoryShare = 512

// State returns the state of the run: see [Runner.State]. If events were omitted, encoding the
// state fails.
func (d *Divided) State() *State {
	s := d.Runner.State()
	if d.helped != d.events {
		s.failed = errNarrow
	}
	return s
}

var errNarrow = errors.New("analysis: the state of a run that omits events cannot be saved; see DividedOptions.Narrow")

// dropUnneededEvents checks whether an analysis still needs the rows of segments. If no analysis
// needs these rows, the run stops reading the events that its helpers omit, as soon as it has
// appended the segments that contain these events.
func (d *Divided) dropUnneededEvents() {
	d.reads = d.reads && d.readsSegmentRows()
	if !d.wide || d.reads || slices.ContainsFunc(d.claims, func(c *segmentClaim) bool { return c.wide }) {
		return
	}
	d.wide, d.narrow = false, d.index.nextBorder(d.index.referencesAt(d.mover.Position())+1)
	d.mover.Narrow(trace.AllKinds | d.helped)
	d.setStop()
}

// Step analyses a batch or a part of a batch, appends a segment, or waits briefly for a segment.
// See [Runner.Step] for its results.
func (d *Divided) Step() error {
	d.assignSegments()
	err := d.Runner.Step()
	if err != trace.ErrThere {
		return err
	}
	return d.handleClaim()
}

// assignSegments collects the results of helpers, and assigns segments to idle helpers.
func (d *Divided) assignSegments() {
	if d.rows < d.resumeRows || d.pending() || d.rest.pending() {
		return
	}
	d.dropUnneededEvents()
	for _, h := range d.helpers {
		if h.claim != nil {
			if _, ended := h.Analysed(); !ended {
				continue
			}
			d.finishClaim(h.claim, h.Segment())
			if h.Gone() && h.claim.segment.Profile == nil {
				if i := slices.Index(d.claims, h.claim); i >= 0 { // the live analyses have taken over the claims that are no longer in the list
					d.claims = slices.Delete(d.claims, i, i+1)
					d.setStop()
				}
			}
			h.claim = nil
		}
		if h.Gone() {
			continue
		}
		if c := d.claim(); c != nil {
			h.claim, c.by = c, h
			events := d.helped
			if c.wide {
				events = d.events
			}
			h.Begin(Stretch{From: c.start, To: d.index.positionOf(c.to), First: d.index.referencesBeforeChunk(c.start), Events: events, Whole: d.wide && !c.wide, Lone: c.lone})
			d.setStop()
		}
	}
}

// finishClaim records the result of a segment. If a helper has analysed only a part of the segment,
// the remaining references can be assigned again.
func (d *Divided) finishClaim(c *segmentClaim, s Segment) {
	c.segment, c.ended = s, true
	if p := s.Profile; p != nil && p.Segment != nil {
		c.to = d.index.referencesAt(s.To)
	}
}

// setStop makes the reader stop at the next claimed segment.
func (d *Divided) setStop() {
	stop := trace.Position{Chunk: trace.AtEnd}
	if len(d.claims) > 0 {
		stop = d.claims[0].start
	}
	d.mover.Until(stop)
}

// gap is a part of the trace that is not assigned to a helper.
type gap struct{ from, to uint64 }

// gaps returns the gap before each claim, the gap after the last claim, and the total length of
// these gaps.
func (d *Divided) gaps() (list []gap, references uint64) {
	at := max(d.index.referencesAt(d.mover.Position()), d.live)
	for _, c := range d.claims {
		list = append(list, gap{min(at, c.from), c.from})
		at = c.to
	}
	list = append(list, gap{min(at, d.Total()), d.Total()})
	for _, g := range list {
		references += g.to - g.from
	}
	return list, references
}

// Total returns the number of references in the trace, according to its index.
func (d *Divided) Total() uint64 { return d.index.total() }

// Ahead returns the number of references that helpers have analysed ahead of the live analyses.
func (d *Divided) Ahead() (references uint64) {
	for _, c := range d.claims {
		switch done, _ := c.by.Analysed(); {
		case !c.ended && c.by.claim == c:
			references += min(done, c.to-c.from)
		case c.segment.Profile != nil:
			references += c.segment.Profile.Totals.AllReferences()
		}
	}
	return references
}

// claim chooses a segment for an idle helper, or returns nil if no segment is worthwhile.
func (d *Divided) claim() *segmentClaim {
	if _, later := d.canJoin(nil); !later {
		d.over = true
	}
	if d.over || len(d.claims) >= 2*len(d.helpers) {
		return nil
	}
	gaps, references := d.gaps()
	free := uint64(1)
	for _, h := range d.helpers {
		if h.claim == nil && !h.Gone() {
			free++
		}
	}
	owed := d.appendCost()
	want := min((references+owed)/free, d.most)
	if d.fixed {
		want = d.most
	}
	from, to, at := d.chooseSegment(gaps, references, owed, max(want, 1))
	wide := false
	if d.wide {
		g := gaps[at]
		if at == 0 {
			g.from++ // the live analyses have reached the first gap
		}
		first, last := d.alignToChunks(g, from, to)
		near := (to - from) / 4
		if wide = d.reads && (max(first, from)-min(first, from) > near || max(last, to)-min(last, to) > near); !wide {
			from, to = first, last
		}
	}
	from = max(from, d.narrow)
	if to < from+d.least || to == from {
		return nil
	}
	cores, several := findOptional[contract.MultiCore](d.analyses)
	c := &segmentClaim{from: from, to: to, start: d.index.positionOf(from), wide: wide, lone: several && (cores.Alone(nil) || d.analysed == 0 && !d.spec.Mergeable)}
	d.claims = append(d.claims, nil)
	copy(d.claims[at+1:], d.claims[at:])
	d.claims[at] = c
	return c
}

// appendCost returns the number of references that the live analyses could read in the time that
// they need to append all claimed segments.
func (d *Divided) appendCost() uint64 {
	claimed := 0.
	for _, c := range d.claims {
		claimed += float64(c.to - c.from)
	}
	share := d.joining
	if d.reads {
		share += readingShare
	}
	return uint64(claimed * min(share, 1))
}

// chooseSegment returns a segment of approximately the wanted length, and the index of the gap that
// contains the segment. chooseSegment prefers the last gap. If the live analyses have little else
// to read, chooseSegment leaves the beginning of this gap to the live analyses. If the last gap is
// empty, it returns the second half of the longest gap. The parameter owed is the result of
// appendCost.
func (d *Divided) chooseSegment(gaps []gap, references, owed, want uint64) (from, to uint64, at int) {
	at = len(gaps) - 1
	tail := gaps[at]
	if size := tail.to - tail.from; size > 0 {
		reserve := references - size + owed
		from = tail.from
		if 2*reserve < want {
			from += want - reserve
		}
		if from = d.index.roundToChunk(from, want); from < tail.to {
			if to = d.index.roundToChunk(min(from+want, tail.to), want); to+d.least > tail.to {
				to = tail.to
			}
			return from, to, at
		}
	}
	if d.fixed {
		return 0, 0, 0
	}
	for i, g := range gaps {
		if g.to-g.from > gaps[at].to-gaps[at].from {
			at = i
		}
	}
	g := gaps[at]
	return max(g.from, d.index.roundToChunk(g.from+(g.to-g.from)/2, g.to-g.from)), g.to, at
}

// alignToChunks moves both ends of a segment to chunk borders, because the positions of rows within a
// chunk depend on the selected events. The result is empty if the segment contains no chunk border.
func (d *Divided) alignToChunks(g gap, from, to uint64) (uint64, uint64) {
	if from = d.index.previousBorder(from); from < g.from {
		from = d.index.nextBorder(g.from)
	}
	if from >= g.to {
		return from, from
	}
	return from, max(d.index.previousBorder(to), d.index.nextBorder(from+1))
}

// handleClaim appends the claim that the live analyses have reached, or waits for its result.
func (d *Divided) handleClaim() error {
	if len(d.claims) == 0 {
		d.setStop()
		return nil
	}
	c := d.claims[0]
	if here := d.mover.Position(); here != c.start && !(c.start.Rows == 0 && here.Chunk < c.start.Chunk) {
		d.returnClaim(c) // a chunk has fewer rows than the file's index states
		return nil
	}
	if c.ended {
		return d.appendClaim(c)
	}
	if done, _ := c.by.Analysed(); !c.cut && !d.fixed && c.to-c.from > done+d.least {
		c.cut = true
		c.by.Cut()
	}
	d.wake.wait()
	return nil
}

// returnClaim removes the first claim, so that the live analyses read the segment.
func (d *Divided) returnClaim(c *segmentClaim) {
	d.claims, d.live = d.claims[1:], c.to
	if !c.ended {
		c.by.Cut()
	}
	d.setStop()
}

// appendClaim appends the result of a helper. If this is impossible, the live analyses read the
// segment themselves, and report any error.
func (d *Divided) appendClaim(c *segmentClaim) error {
	s := c.segment.Profile
	if s == nil || d.analysed == 0 || s.Segment == nil || s.Segment.Start != d.analysed || !d.canAppend(s, c.lone) || !d.source.Agrees(d.mover, c.start.Chunk) {
		d.returnClaim(c)
		return nil
	}
	if d.dropUnneededEvents(); d.wide && !c.wide && c.segment.To.Rows > 0 {
		d.returnClaim(c)
		return nil
	}
	if err := d.moveTo(c.segment.To); err != nil {
		return err
	}
	if err := d.feed.append(s, c.lone); err != nil {
		return err
	}
	d.rows += c.segment.Rows
	d.claims = d.claims[1:]
	d.setStop()
	d.adaptLengths(s)
	return nil
}

// moveTo moves the reader to the end of a segment. moveTo reads the segment's rows only if an
// analysis needs them: to track the layout of memory blocks, or to compress loops.
func (d *Divided) moveTo(to trace.Position) error {
	if !d.moves && !d.reads && d.mover.Position().Chunk != to.Chunk {
		if err := d.mover.Pass(to.Chunk); err != nil {
			return err
		}
	}
	blocks, _ := findOptional[contract.LayoutFollower](d.analyses)
	d.mover.Until(to)
	for {
		err := d.mover.Next(d.batch)
		switch {
		case err == trace.ErrThere && (to.Rows == 0 || d.mover.Position() == to), err != nil && err != trace.ErrThere && to.Chunk == trace.AtEnd:
			d.batch.Reset()
			d.next = 0
			return nil
		case err == trace.ErrThere || err == io.EOF:
			return trace.ErrNotThere
		case err != nil:
			return err
		}
		if d.moves {
			blocks.Move(d.batch)
		}
		if d.reads {
			if err := d.appendRows(d.batch); err != nil {
				return err
			}
		}
	}
}

// adaptLengths adapts the length of segments to the cost of joining a segment.
func (d *Divided) adaptLengths(s *profile.Profile) {
	d.dropUnneededEvents()
	cost, references := joinCost(s), s.Totals.AllReferences()
	d.joining = float64(cost) / float64(references)
	if d.fixed || d.reads {
		return
	}
	d.least = max(leastStretch, min(2*cost, d.most))
	if cost > references/8 && d.most < lastStretch && references >= d.most/2 {
		d.most *= 2
	}
}

// Close terminates the helpers.
func (d *Divided) Close() {
	d.over = true
	for _, h := range d.helpers {
		h.Close()
	}
	d.helpers, d.claims = nil, nil
	d.setStop()
}

// Spill moves the stacks out of memory: see [Runner.Spill]. Afterwards, no segments can be
// appended.
func (d *Divided) Spill(b contract.Budget) (now Spec, ok bool) {
	d.Close()
	return d.Runner.Spill(b)
}

// Finish returns the result and ends the run: see [Runner.Finish].
func (d *Divided) Finish(state profile.State) *profile.Profile {
	d.Close()
	return d.Runner.Finish(state)
}

var _ Run = (*Divided)(nil)
