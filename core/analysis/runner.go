package analysis

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Runner reads a trace once and feeds every analysis of a [Spec].
//
//	for {
//		err := r.Step()
//		if err == io.EOF { break }
//		...
//	}
//	p := r.Finish(profile.State{})
type Runner struct {
	spec      Spec
	reader    trace.Reader
	stretches Stretches // the reader, where it leaves parts of the run out; or nil
	analyses  []Analysis
	events    trace.Kinds // that the analyses take
	batch     *trace.Batch
	mixed     bool // events are among the batch's rows
	keep      []int32
	next      int         // the batch's rows before it are analysed
	view      trace.Batch // the part of the batch that is being analysed

	references references               // of that part
	rest       rest                     // of a reference that is analysed in pieces
	beside     func(*trace.Batch) error // or nil

	totals   profile.Totals // its threads in the order of appearance
	threads  index.Table    // these
	analysed uint64         // sum of totals.References
	toSkip   uint64         // references still to leave out
	rows     uint64         // rows that the reader delivered, events included
	bad      uint64         // bad records that the reader met

	failed                error        // of an analysis, while saving
	resumeRows, resumeBad uint64       // what a restored run has behind it
	header                trace.Header // what it knew of the trace
}

// Progress is what a runner can tell between two steps.
type Progress struct {
	References uint64 // analysed so far
	Lines      uint64 // distinct lines so far, of the first line size
	Threads    int    // threads seen; 0 where the trace has none
	BadRecords uint64 // tolerated so far
	Resuming   bool   // reading again what was analysed before the interruption
}

// NewRunner checks spec and prepares to read r. The error is a
// [*trace.OptionError].
func NewRunner(spec Spec, r trace.Reader) (*Runner, error) {
	spec = spec.WithDefaults()
	if err := spec.Check(); err != nil {
		return nil, err
	}
	run := &Runner{spec: spec, reader: r, batch: trace.NewBatch(0)}
	if s := spec.Sample; s != nil {
		if run.stretches = s.Stretches(r, spec.Kinds, spec.Threads); run.stretches != nil {
			run.reader, run.spec.Sample = run.stretches, nil
			spec = run.spec
		}
	}
	run.analyses = table(spec, spec.has(Sets), run.program)
	if spec.Start == 0 {
		run.toSkip = spec.Skip
	}
	run.askForEvents()
	return run, nil
}

// Beside has consume take the references that the analyses take, batch by
// batch, after them: for what has a result of its own, such as a simulation.
func (r *Runner) Beside(consume func(*trace.Batch) error) { r.beside = consume }

// askForEvents has a reader that knows events give those that the analyses
// take, and all references: which of these count is the spec's to say.
func (r *Runner) askForEvents() {
	for _, a := range r.analyses {
		events, sites, pcs := a.Takes()
		r.events |= events
		r.references.sites = r.references.sites || events == 0 && sites
		r.references.pcs = r.references.pcs || events == 0 && pcs
	}
	if s, ok := r.reader.(trace.Selector); ok && r.events != 0 {
		s.Select(trace.AllKinds | r.events)
	}
}

// program gives what the trace has told so far of its code, or nil.
func (r *Runner) program() *trace.Program {
	if d, ok := r.reader.(trace.Describer); ok {
		return d.Header().Program
	}
	return nil
}

// Step analyses one batch, or a part of one whose references touch very many
// bytes, or a piece of such a reference, so that its caller soon has a turn. io.EOF
// tells that the trace, or the part that the spec limits it to, is done. Any other
// error ends the run; what was analysed before it is in Profile.
func (r *Runner) Step() error {
	err := r.step()
	if err != io.EOF {
		return err
	}
	for _, a := range r.analyses {
		if s, ok := a.(interface{ Settle() error }); ok {
			if err := s.Settle(); err != nil {
				return err
			}
		}
	}
	return io.EOF
}

func (r *Runner) step() error {
	if r.rest.pending() {
		r.rest.consume()
		return nil
	}
	if r.spec.Limit > 0 && r.spec.Start+r.analysed >= r.spec.Limit {
		return io.EOF
	}
	b := r.batch
	if r.failed != nil {
		return r.failed
	}
	if r.next < b.Len() {
		return r.consume()
	}
	r.next = 0
	if err := r.reader.Next(b); err != nil {
		return r.tolerate(err)
	}
	before := r.rows
	r.rows += uint64(b.Len())
	if before < r.resumeRows {
		if r.rows <= r.resumeRows {
			r.next = b.Len()
			return nil
		}
		b.Slice(int(r.resumeRows-before), b.Len())
	}
	r.selectRows(b)
	r.selectPart(b)
	return r.consume()
}

// stepBytes is how many bytes the references of one step may touch: a power of two
// that every line size divides.
const stepBytes = 4 << 20

// consume analyses the rows of the batch from r.next on, up to stepBytes.
func (r *Runner) consume() error {
	b := r.batch
	end, bytes := r.next, uint64(0)
	for end < b.Len() && (bytes+uint64(b.Bytes[end]) <= stepBytes || end == r.next) {
		bytes += uint64(b.Bytes[end])
		end++
	}
	part := b
	if r.next > 0 || end < b.Len() {
		part = b.View(&r.view, r.next, end)
	}
	if r.next = end; part.Len() == 0 {
		return nil
	}
	references := r.references.of(part, r.mixed)
	if references.Len() > 0 {
		r.count(references)
	}
	for _, a := range r.analyses {
		rows := references
		if events, _, _ := a.Takes(); events != 0 {
			rows = part
		}
		if rows.Len() == 0 || r.rest.begin(a, rows) {
			continue
		}
		if err := a.Consume(rows); err != nil {
			return err
		}
	}
	if r.beside != nil && references.Len() > 0 {
		return r.beside(references)
	}
	return nil
}

func (r *Runner) makeKeep() {
	if r.keep == nil {
		r.keep = make([]int32, 0, r.batch.Cap())
	}
}

// tolerate gives nil for a bad record that the spec puts up with.
func (r *Runner) tolerate(err error) error {
	if !trace.IsSyntax(err) {
		return err
	}
	r.bad++
	if r.bad <= r.resumeBad {
		return nil
	}
	if r.totals.BadRecords >= r.spec.SkipBad {
		return err
	}
	r.totals.BadRecords++
	return nil
}

// selectRows keeps the rows of the chosen kinds and threads, and the events of
// these threads. A row without a thread is of none of the chosen ones.
func (r *Runner) selectRows(b *trace.Batch) {
	others := trace.Kinds(0)
	for _, k := range b.Kind {
		others |= 1 << (k & 31)
	}
	r.mixed = others&trace.EventKinds != 0
	byThread := r.spec.Threads != nil
	if others&^(r.spec.Kinds|r.events) == 0 && !byThread {
		return
	}
	r.makeKeep()
	keep, references, seen := r.keep[:0], uint64(0), uint64(0)
	for i, k := range b.Kind {
		if references == r.room() {
			break // what follows the limit was not read, as far as counts go
		}
		chosen := !byThread || b.Thread != nil && slices.Contains(r.spec.Threads, b.Thread[i])
		if !k.IsReference() {
			if chosen && r.events.Has(k) {
				keep = append(keep, int32(i))
			}
			continue
		}
		seen++
		if chosen && r.spec.Kinds.Has(k) {
			keep = append(keep, int32(i))
			references++
		}
	}
	r.totals.Unselected += seen - references
	b.Select(keep)
}

// room is the number of selected references, those to skip included, up to the
// limit.
func (r *Runner) room() uint64 {
	if r.spec.Limit == 0 {
		return ^uint64(0)
	}
	left := r.spec.Limit - r.spec.Start - r.analysed
	return r.toSkip + min(left, ^r.toSkip) // no more than there are numbers
}

// selectPart applies Skip and Limit. They count references: the part begins
// behind the last one to skip and ends with the last one within the limit, and
// events go with what is around them.
func (r *Runner) selectPart(b *trace.Batch) {
	if !r.mixed {
		end := min(uint64(b.Len()), r.room())
		skip := min(r.toSkip, end)
		r.toSkip -= skip
		if skip > 0 || end < uint64(b.Len()) {
			b.Slice(int(skip), int(end))
		}
		return
	}
	if r.toSkip == 0 && r.spec.Limit == 0 {
		return
	}
	room := r.room()
	lo, hi, references := 0, 0, uint64(0)
	for hi < b.Len() && references < room {
		before := references
		if hi++; b.Kind[hi-1].IsReference() {
			references++
		}
		if before < r.toSkip {
			lo = hi
		}
	}
	r.toSkip -= min(r.toSkip, references)
	b.Slice(lo, hi)
}

// count adds the batch to the totals.
func (r *Runner) count(b *trace.Batch) {
	r.analysed += uint64(b.Len())
	for lo := 0; lo < b.Len(); lo += countedRows {
		hi := min(lo+countedRows, b.Len())
		r.countKinds(b.Kind[lo:hi], b.Bytes[lo:hi])
	}
	if b.Thread == nil {
		return
	}
	last := ^b.Thread[0]
	for _, t := range b.Thread {
		if t != last {
			r.seeThread(t)
			last = t
		}
	}
}

// countedRows is how many rows have their number and their bytes in one word: the
// number from bit numberBit on.
const (
	countedRows = 1 << 12
	numberBit   = 48
)

// countKinds adds rows to the totals by kind. Even and odd ones are apart, because
// adding to the place that was added to just before waits.
func (r *Runner) countKinds(kinds []trace.Kind, sizes []uint32) {
	var sums [2][8]uint64
	sizes = sizes[:len(kinds)]
	for i, k := range kinds {
		sums[i&1][k&7] += 1<<numberBit + uint64(sizes[i])
	}
	for _, half := range sums {
		for k := range trace.NumKinds {
			r.totals.References[k] += half[k] >> numberBit
			r.totals.Bytes[k] += half[k] & (1<<numberBit - 1)
		}
	}
}

// seeThread notes a thread, in the order of appearance.
func (r *Runner) seeThread(t uint32) {
	if _, known := r.threads.Find(uint64(t)); !known {
		r.threads.Add(uint64(t), uint32(len(r.totals.Threads)))
		r.totals.Threads = append(r.totals.Threads, t)
	}
}

// Progress tells how far the run is.
func (r *Runner) Progress() Progress {
	p := Progress{
		References: r.analysed,
		Threads:    len(r.totals.Threads),
		BadRecords: r.totals.BadRecords,
		Resuming:   r.rows < r.resumeRows,
	}
	for _, a := range r.analyses {
		if l, ok := a.(interface{ Lines() uint64 }); ok {
			p.Lines = l.Lines()
		}
	}
	return p
}

// Profile gives the result so far. It shares nothing with the running analyses.
func (r *Runner) Profile(state profile.State) *profile.Profile {
	p := r.profile(state, r.spec.Mergeable)
	if r.stretches != nil {
		p.Sampled = r.stretches.Sampled()
	}
	return p
}

// Finish gives the result and ends the run: the models' memory is free before
// the result takes its own. Only Progress may be asked afterwards.
func (r *Runner) Finish(state profile.State) *profile.Profile {
	if !r.spec.Mergeable {
		for _, a := range r.analyses {
			a.Close()
		}
	}
	return r.Profile(state)
}

func (r *Runner) profile(state profile.State, segment bool) *profile.Profile {
	p := &profile.Profile{
		Input: profile.Input{
			Kinds: r.spec.Kinds, Skip: r.spec.Skip, Limit: r.spec.Limit, Threads: slices.Clone(r.spec.Threads),
		},
		Totals: r.totals,
		State:  state,
	}
	if d, ok := r.reader.(trace.Describer); ok {
		p.Input.Header = d.Header()
		p.Input.Header.Join(r.header)
		p.Input.Header.Program, p.Input.Header.Capture = nil, nil // they name files and paths
	}
	p.Totals.Threads = slices.Clone(r.totals.Threads)
	slices.Sort(p.Totals.Threads)
	if segment {
		p.Segment = &profile.Segment{Start: r.spec.Start}
	}
	for _, a := range r.analyses {
		a.Result(p, segment)
	}
	return p
}

// State is where a run is, and all that it needs to go on from there. It shares
// nothing with the run.
type State struct {
	head []byte // what is not in the profile
	so   *profile.Profile
}

// State gives where the run is. Rows that were read are analysed first.
func (r *Runner) State() *State {
	for r.rest.pending() {
		r.rest.consume()
	}
	for r.failed == nil && r.next < r.batch.Len() {
		r.failed = r.consume()
		for r.rest.pending() {
			r.rest.consume()
		}
	}
	s := &State{so: r.profile(profile.State{Partial: true, Reason: "saved while running"}, true)}
	var mergeable uint64
	if r.spec.Mergeable {
		mergeable = 1
	}
	for _, v := range []uint64{max(r.rows, r.resumeRows), max(r.bad, r.resumeBad), r.toSkip, mergeable, uint64(r.spec.Analyses)} {
		s.head = binary.AppendUvarint(s.head, v)
	}
	return s
}

// EncodeTo writes the state in the form that [Runner.Restore] reads. The error is
// that of w.
func (s *State) EncodeTo(w io.Writer) error {
	if _, err := w.Write(s.head); err != nil {
		return err
	}
	return s.so.EncodeTo(w)
}

// Save gives the state of the run as bytes, from which Restore goes on.
func (r *Runner) Save() []byte {
	s := r.State()
	return append(s.head, s.so.Encode()...)
}

// Restore makes a fresh runner go on where Save was called: with the same spec
// and a reader at the start of the same trace. The rows that were read then are
// read again but skipped. It fails, and leaves the runner as it was, when the
// bytes are damaged or belong to another spec.
func (r *Runner) Restore(saved []byte) error {
	d := profile.NewDecoder(saved)
	rows, bad, toSkip, mergeable := d.Uint(), d.Uint(), d.Uint(), d.UintBelow(2) == 1
	chosen := Analyses(d.UintBelow(uint64(allAnalyses) + 1))
	if d.Err() != nil {
		return d.Err()
	}
	p, err := profile.Decode(d.Rest())
	if err != nil {
		return err
	}
	if !r.fits(p) || mergeable != r.spec.Mergeable || chosen != r.spec.Analyses {
		return &AppendError{"the saved run had other options (analyses, kinds, threads, part of the trace or line sizes); start again"}
	}
	analyses := table(r.spec, r.spec.has(Sets), r.program)
	for _, a := range analyses {
		if err := a.Restore(p); err != nil {
			return err
		}
	}
	r.analyses, r.totals, r.header = analyses, p.Totals, p.Input.Header
	threads := r.totals.Threads
	r.threads, r.totals.Threads = index.Table{}, nil
	for _, t := range threads {
		r.seeThread(t)
	}
	r.analysed = p.Totals.AllReferences()
	r.resumeRows, r.resumeBad, r.toSkip = rows, bad, toSkip
	return nil
}

// fits reports whether a saved run has the runner's spec.
func (r *Runner) fits(p *profile.Profile) bool {
	in := p.Input
	sizes := make([]uint32, len(p.Locality))
	for i := range p.Locality {
		sizes[i] = p.Locality[i].LineBytes
		if (p.Locality[i].Sets != nil) != r.spec.has(Sets) {
			return false
		}
	}
	want := r.spec.LineBytes
	if !r.spec.has(Locality) {
		want = nil
	}
	return (p.Sampled == nil) == (r.spec.Sample == nil) && in.Kinds == r.spec.Kinds && in.Skip == r.spec.Skip && in.Limit == r.spec.Limit &&
		slices.Equal(in.Threads, r.spec.Threads) && (in.Threads == nil) == (r.spec.Threads == nil) &&
		slices.Equal(sizes, want) && p.Segment != nil && p.Segment.Start == r.spec.Start
}
