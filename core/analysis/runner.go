package analysis

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Runner reads a trace once and passes its records to every analysis of a [Spec].
//
//	for {
//		err := r.Step()
//		if err == io.EOF { break }
//		...
//	}
//	p := r.Finish(profile.State{})
type Runner struct {
	spec Spec
	intake
	feed

	stretches Stretches    // the reader, if the sample consists of intervals of the run; otherwise nil
	failed    error        // error that an analysis reported while its state was saved
	header    trace.Header // header of the trace in the saved run
}

// Progress describes how much of the trace a run has analysed after a step.
type Progress struct {
	References uint64 // number of references analysed so far
	LeftOut    uint64 // number of references whose kind or thread is not selected
	Skipped    uint64 // number of references skipped so far
	Lines      uint64 // number of distinct lines so far, for the smallest line size
	Threads    int    // number of threads so far; 0 if the trace records no threads
	BadRecords uint64 // number of bad records tolerated so far
	Resuming   bool   // the run is still skipping the references that were analysed before the interruption
}

// Run is a pass over a trace: a [Runner], or a [Parallel] or [Divided] run with the same result.
type Run interface {
	Step() error
	Progress() Progress
	Profile(profile.State) *profile.Profile
	Finish(profile.State) *profile.Profile
	State() *State
	Restore(saved []byte) error
}

// NewRunner checks spec and prepares to read r. The error is a [*trace.OptionError].
func NewRunner(spec Spec, r trace.Reader) (*Runner, error) {
	spec = spec.WithDefaults()
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if spec.Skip > 0 && contract.NewPrologue == nil {
		return nil, &trace.OptionError{Option: "skip", Got: strconv.FormatUint(spec.Skip, 10), Want: "0, because this program does not import core/analysis/prologue"}
	}
	return newRunner(spec, r), nil
}

func newRunner(spec Spec, r trace.Reader) *Runner {
	run := &Runner{spec: spec, feed: feed{batch: trace.NewBatch(0)}}
	if s := spec.Sample; s != nil {
		if run.stretches = s.Stretches(r, spec.Kinds, spec.Threads); run.stretches != nil {
			r, run.spec.Sample = run.stretches, nil
			spec = run.spec
		}
	}
	run.begin(spec, r, table(spec, run.program))
	return run
}

// newRunnerOf returns a runner with the given analyses instead of the analyses of the spec.
func newRunnerOf(spec Spec, r trace.Reader, analyses func(program func() *trace.Program) []member) *Runner {
	run := &Runner{spec: spec, feed: feed{batch: trace.NewBatch(0)}}
	run.begin(spec, r, analyses(run.program))
	return run
}

func (r *Runner) begin(spec Spec, from trace.Reader, analyses []member) {
	r.analyses = analyses
	events := r.feed.selectRows()
	if b := spec.Budget; b != nil {
		events |= b.Events
	}
	r.intake = newIntake(spec, from, events)
	if r.toSkip > 0 && contract.NewPrologue != nil {
		var analyses []Analysis
		for _, a := range r.analyses {
			analyses = append(analyses, a.Analysis)
		}
		r.prologue = contract.NewPrologue(analyses, r.program)
	}
}

// Beside adds a consumer, such as a simulation, whose results do not belong to the profile. The
// function consume is called for each batch, after all analyses, and receives the references.
func (r *Runner) Beside(consume func(*trace.Batch) error) { r.beside = consume }

// BesideSites is like Beside, but the consumer also receives the sites of the references, the
// addresses of their instructions, and a function that returns the code that the trace's tables have
// described so far.
func (r *Runner) BesideSites(make func(program func() *trace.Program) func(*trace.Batch) error) {
	r.beside, r.references.sites, r.references.pcs = make(r.program), true, true
}

// BesideEvents is like BesideSites, but the consumer also receives the events that the analyses
// read.
func (r *Runner) BesideEvents(make func(program func() *trace.Program) func(*trace.Batch) error) {
	r.BesideSites(make)
	r.besideEvents = true
}

// Step analyses one batch. Each step is short: if the references of a batch touch very many bytes,
// Step analyses only some rows of the batch, or a piece of a large reference. Step returns io.EOF
// when the trace, or the part that the spec selects, has been analysed completely. Any other error
// ends the run. After such an error, Profile returns the result up to the error.
func (r *Runner) Step() error {
	err := r.step()
	if err == io.EOF {
		if failed := r.settle(); failed != nil {
			return failed
		}
	}
	return err
}

func (r *Runner) step() error {
	if r.rest.pending() {
		r.rest.consume()
		return nil
	}
	if r.isDone(r.analysed) {
		return io.EOF
	}
	if r.failed != nil {
		return r.failed
	}
	if r.pending() {
		return r.consume()
	}
	r.next = 0
	mixed, err := r.intake.read(r.batch, r.analysed)
	if err != nil || r.batch.Len() == 0 {
		return err
	}
	r.mixed = mixed
	return r.consume()
}

// Progress returns the progress of the run.
func (r *Runner) Progress() Progress {
	p := r.feed.progress()
	p.Skipped = r.spec.Skip - min(r.toSkip, r.spec.Skip)
	p.BadRecords, p.LeftOut, p.Resuming = r.tolerated, r.unselected, r.rows < r.resumeRows
	return p
}

// Profile returns the result so far. The result does not change if the analyses continue.
func (r *Runner) Profile(state profile.State) *profile.Profile {
	p := withoutRunState(r.profile(state, r.spec.Mergeable))
	if r.stretches != nil {
		p.Sampled = r.stretches.Sampled()
	}
	return p
}

// Finish returns the result and ends the run. Finish frees the memory of the stacks before it
// creates the result. Only Progress may be called afterwards.
func (r *Runner) Finish(state profile.State) *profile.Profile {
	if !r.spec.Mergeable {
		r.feed.close()
	}
	return r.Profile(state)
}

func (r *Runner) profile(state profile.State, segment bool) *profile.Profile {
	if r.toSkip > 0 && r.prologue != nil {
		r.prologue.DropCounts()
	}
	var header trace.Header
	if d, ok := r.reader.(trace.Describer); ok {
		header = d.Header()
		header.Join(r.header)
	}
	return r.feed.profile(&r.spec, header, r.omitted(), state, segment)
}

// State is the saved state of a run. State shares no memory with the run.
type State struct {
	head   []byte // the fields of the state that the profile does not contain
	so     *profile.Profile
	failed error // error of the spill store
}

// State returns the state of the run. State first analyses all rows that have already been read.
func (r *Runner) State() *State {
	if r.failed == nil {
		r.failed = r.analyseBatch()
	}
	s := r.intake.state(r.intake.position(), r.profile(saved, true))
	s.failed = r.settle()
	return s
}

var saved = profile.State{Partial: true, Reason: "saved while running"}

func (in *intake) state(at position, so *profile.Profile) *State {
	s := &State{so: so}
	var mergeable uint64
	if in.want.Mergeable {
		mergeable = 1
	}
	for _, v := range []uint64{max(at.rows, in.resumeRows), max(at.bad, in.resumeBad), at.toSkip, mergeable, uint64(in.want.Analyses)} {
		s.head = binary.AppendUvarint(s.head, v)
	}
	return s
}

// EncodeTo writes the state in the encoding that [Runner.Restore] reads. EncodeTo returns the
// errors of the writer and of the spill store. If the spill store has failed, EncodeTo writes
// nothing.
func (s *State) EncodeTo(w io.Writer) error {
	if s.failed != nil {
		return s.failed
	}
	if _, err := w.Write(s.head); err != nil {
		return err
	}
	return s.so.EncodeTo(w)
}

// Save returns the encoded state of the run, from which Restore continues.
func (r *Runner) Save() []byte {
	s := r.State()
	return append(s.head, s.so.Encode()...)
}

// Restore makes a new runner continue at the position at which Save was called. The runner must
// have the same spec, and a reader at the start of the same trace. The runner skips the rows that
// have already been analysed. If the state was saved before the first analysed reference, the run
// begins again. If the state is damaged, or was saved with a different spec, Restore returns an
// error and does not change the runner.
func (r *Runner) Restore(saved []byte) error {
	p, at, err := r.intake.restored(saved)
	if err != nil {
		return err
	}
	if at.toSkip > 0 {
		return nil // the state does not contain the prologue
	}
	spec := r.spec.continuing(p)
	analyses, err := restore(spec, p, r.program)
	if err != nil {
		return err
	}
	r.spec, r.intake.want = spec, spec
	r.analyses, r.header = analyses, p.Input.Header
	r.feed.restore(&p.Totals)
	r.intake.restore(&p.Totals, at)
	return nil
}

// restore returns analyses that continue at the end of the run with profile p.
func restore(spec Spec, p *profile.Profile, program func() *trace.Program) ([]member, error) {
	analyses := table(spec, program)
	for _, a := range analyses {
		if err := a.Restore(p); err != nil {
			return nil, err
		}
	}
	return analyses, nil
}

// restored decodes a saved state, and checks that the state was saved with the same spec.
func (in *intake) restored(saved []byte) (*profile.Profile, position, error) {
	d := codec.NewDecoder(saved)
	rows, bad, toSkip, mergeable := d.Uint(), d.Uint(), d.Uint(), d.UintBelow(2) == 1
	chosen := d.Uint()
	if d.Err() != nil {
		return nil, position{}, d.Err()
	}
	p, err := profile.Decode(d.Rest())
	if err != nil {
		return nil, position{}, err
	}
	if !in.want.fits(p) || mergeable != in.want.Mergeable || chosen != uint64(in.want.Analyses) {
		return nil, position{}, &AppendError{"the checkpoint was saved with different options (analyses, kinds, threads, part of the trace or line sizes); analyse the trace again from its start"}
	}
	return p, position{rows, bad, toSkip}, nil
}

// fits reports whether p can be the state of a run with the spec s.
func (s Spec) fits(p *profile.Profile) bool {
	in := p.Input
	sizes := make([]uint32, len(p.Locality))
	for i := range p.Locality {
		sizes[i] = p.Locality[i].LineBytes
		t := p.Locality[i].Sets
		if (t != nil) != s.has(Sets) || t != nil && s.SetNumbers != 0 && numbersOf(t) != s.SetNumbers|1 {
			return false
		}
	}
	want := s.LineBytes
	if !s.has(Locality) {
		want = nil
	}
	return (p.Sampled == nil) == (s.Sample == nil) && in.Kinds == s.Kinds && in.Skip == s.Skip && in.Limit == s.Limit &&
		slices.Equal(in.Threads, s.Threads) && (in.Threads == nil) == (s.Threads == nil) &&
		slices.Equal(sizes, want) && p.Segment != nil && p.Segment.Start == s.Start
}

// Beyond returns the spec with which a run continues after its stacks have been spilled. The spec
// omits the analyses that store additional data for every line or byte.
func (s Spec) Beyond(b contract.Budget) Spec {
	if !s.isDefault() && s.Analyses != None {
		sets := s.has(Sets)
		s.Analyses = s.Analyses&bounded | Locality
		if sets {
			s.Analyses |= Sets
		}
	}
	s.Utilisation, s.UtilisationWays, s.Previous = nil, nil, false
	s.Cores, s.Domains = nil, nil
	s.Budget = &b
	return s
}

// Spill moves the stacks into an empty spill store, and drops the analyses that [Spec.Beyond]
// omits. Spill returns the new spec, which is needed to restore a state of the run. If there are no
// stacks, or the stacks have already been spilled, nothing changes and ok is false. If the store
// fails, the next step returns the error.
func (r *Runner) Spill(b contract.Budget) (now Spec, ok bool) {
	if s := &r.spec; s.Budget != nil || s.Sample != nil || r.stretches != nil || s.Mergeable || s.Start > 0 || !s.has(Locality) {
		return r.spec, false
	}
	b.Events = r.intake.events
	r.spec = r.spec.Beyond(b)
	r.intake.want = r.spec
	var stacks contract.Spiller
	var kept []member
	for _, a := range r.analyses {
		if s, ok := a.Analysis.(contract.Spiller); ok {
			stacks = s
		} else if r.spec.has(a.tag) {
			kept = append(kept, a)
		}
	}
	r.analyses, r.rest.analyses = nil, r.rest.analyses[:0] // free the memory of the dropped analyses before allocating more
	spilled := stacks.Spill(b)
	r.analyses = append([]member{{spilled, Locality}}, kept...)
	if pieces, ok := spilled.(contract.PieceConsumer); ok && r.rest.pending() {
		r.rest.analyses = append(r.rest.analyses, pieces)
	}
	return r.spec, true
}

// ErrStopped is the error of a run that the user stopped.
var ErrStopped = errors.New("stopped by the user")

// StateAfter returns the state to store in the profile of a run. The run ended with the error err,
// or is complete if err is nil. The state contains the reason why the run ended. The reason is part
// of the profile's digest, so it must not contain a file name. If the message of an error contains
// a file name, the error has a method Nameless, which returns the message without the file name.
func StateAfter(err error, references uint64) profile.State {
	if err == nil {
		return profile.State{}
	}
	after := " after " + strconv.FormatUint(references, 10) + " references"
	var reason string
	var path *fs.PathError
	var nameless interface{ Nameless() string }
	var memory *MemoryError
	switch {
	case errors.Is(err, ErrStopped):
		reason = ErrStopped.Error() + after
	case errors.As(err, &memory):
		reason = "the memory limit was reached" + after
	case errors.As(err, &nameless):
		reason = "ended" + after + ": " + nameless.Nameless()
	case errors.As(err, &path):
		reason = "ended" + after + ": " + path.Err.Error()
	default:
		reason = "ended" + after + ": " + err.Error()
	}
	return profile.State{Partial: true, Reason: reason}
}

// MemoryError reports that a run was ended because it used too much memory.
type MemoryError struct {
	LimitBytes uint64
	References uint64 // number of references analysed before the run was ended
	NeedBytes  uint64 // number of bytes that are needed before the first reference, if this number exceeds the limit; otherwise 0
}

func (e *MemoryError) Error() string {
	if e.NeedBytes > 0 {
		return "the memory limit is " + strconv.FormatUint(e.LimitBytes, 10) + " bytes, but " +
			strconv.FormatUint(e.NeedBytes, 10) + " bytes are needed before the first reference; raise the limit, or request fewer analyses"
	}
	return "the memory limit of " + strconv.FormatUint(e.LimitBytes, 10) + " bytes was reached after " +
		strconv.FormatUint(e.References, 10) + " references; raise the limit, or analyse only a part of the trace"
}
