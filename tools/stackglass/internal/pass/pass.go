// Package pass computes the profile of a trace: it opens the file, reads it once and shows the
// progress. A pass ends with a partial result if it is interrupted, if the trace is damaged, or if
// memory runs low. If the file is already a profile, the package only reads it.
//
//  1. [Open] opens a file, standard input or an embedded demo, and detects whether it contains a
//     profile or a trace.
//  2. [Input.Analyze] returns the profile. [Result.Stopped] is the reason why a pass ended early;
//     the profile is then marked as partial.
package pass

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // registers the estimators for samples
	"github.com/stackglass/stackglass/core/measured"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/open/gzip"
	"github.com/stackglass/stackglass/core/open/snappy"
	"github.com/stackglass/stackglass/core/open/xz"
	"github.com/stackglass/stackglass/core/open/zip"
	"github.com/stackglass/stackglass/core/open/zstd"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/workers"
)

// Options contains the options for reading a trace. The options do not apply to a profile.
type Options struct {
	Spec   analysis.Spec
	Sample *sample.Options // options of the sample; nil means that every reference is analysed
	Format string          // a value of --input-format, or "" to detect the format
	Strict bool            // whether to stop at the first unreadable chunk of a container
	// memory limit, at which the pass stops with a partial result; 0 means no limit
	MemoryBytes uint64
	Spill       string    // folder of the spill store, or ""
	Workers     int       // number of analysing goroutines, or 0 for one per processor
	Segment     int       // number of references that a worker processes at a time; 0 selects the number automatically
	Terminal    io.Writer // the terminal on which progress is shown; may be nil
	// Beside is an additional consumer of the references, or nil. The state of this consumer is not
	// part of checkpoints.
	Beside func(*trace.Batch) error
	// BesideSites returns an additional consumer, like Beside, but this consumer also receives the
	// sites of the references and the addresses of their instructions. The field BesideSites may be
	// nil.
	BesideSites func(program func() *trace.Program) func(*trace.Batch) error
	// BesideEvents means that the consumer of BesideSites also receives the events that the analyses
	// read.
	BesideEvents bool
	Checkpoints  *Checkpoints // where the pass saves its checkpoints, and from where it resumes; may be nil
}

// Result is the result of a pass.
type Result struct {
	Profile  *profile.Profile
	Trace    bool               // whether the profile was computed from a trace, and not read from a file
	Stopped  error              // the reason why the pass ended early, or nil
	FirstBad *trace.SyntaxError // the first of the tolerated records that could not be read
	LeftOut  string             // describes the records that are not references; see trace.Header.LeftOut
	Changed  bool               // whether the file was modified while it was read
	Unsaved  error              // the reason why the last checkpoint could not be saved, or nil
}

// packings lists the compression formats that the command supports in addition to the formats of
// package open.
var packings = []open.Packing{gzip.Packing, zstd.Packing, xz.Packing, zip.Packing, snappy.Packing}

// ErrInterrupted means that the user interrupted the pass.
var ErrInterrupted error = interrupted{}

// interrupted is [analysis.ErrStopped] with a shorter text.
type interrupted struct{}

func (interrupted) Error() string        { return "interrupted" }
func (interrupted) Is(target error) bool { return target == analysis.ErrStopped }

// Analyze returns the profile of the input, or an error if there is no profile. If the profile is
// partial, [Result.Stopped] is set.
func (in *Input) Analyze(ctx context.Context, o Options) (*Result, error) {
	if in.IsProfile {
		p, err := in.readProfile()
		return &Result{Profile: p}, err
	}
	if in.IsByfl {
		return nil, errors.New(in.Name + ": a result of Byfl contains counters but no references; print the counters with: stackglass counters " + in.Name)
	}
	from, err := o.Checkpoints.load(in)
	if err != nil {
		return nil, err
	}
	content, err := workers.NewFile(in.Name, in, uint64(in.Bytes), from)
	if err != nil {
		return nil, o.Checkpoints.checkpointError(in, err)
	}
	unpacked, err := open.Open(in.Name, content, open.Options{Format: o.Format, Packings: packings, Strict: o.Strict})
	if err != nil {
		in.verify(ctx, content)
		return nil, in.inputError(ctx, o, content, err)
	}
	in.readIndex(unpacked)
	watched := &badRecordReader{reader: unpacked}
	if o.Sample != nil {
		o.Spec.Sample = *o.Sample
	}
	if o.Spill != "" {
		end, err := o.setUpSpilling()
		if err != nil {
			return nil, err
		}
		defer end()
	}
	runner, err := in.newRunner(&o, unpacked, watched)
	if err != nil {
		return nil, err
	}
	saver, err := o.Checkpoints.startSaver(in, content, runner, &o, from)
	if err != nil {
		return nil, err
	}
	stopped := in.run(ctx, runner, o, saver)
	done := runner.Progress()
	if p, ok := runner.(*analysis.Parallel); ok && !p.Close() {
		watched = &badRecordReader{} // the run still uses the original reader, which waits for input
	} else {
		in.verify(ctx, content)
	}
	if stopped = in.inputError(ctx, o, content, stopped); stopped != nil {
		if other := new(workers.OtherFileError); done.References == 0 || errors.As(stopped, &other) {
			return nil, stopped
		}
		if saver.keeper != nil && saver.unsaved == nil && errors.Is(stopped, ErrInterrupted) && !done.Resuming {
			saver.save()
		}
	}
	result := &Result{Trace: true, Stopped: stopped, FirstBad: watched.firstBad, Changed: in.Changed(), Unsaved: saver.unsaved}
	header := watched.Header()
	result.LeftOut = header.LeftOut()
	result.Profile = runner.Finish(analysis.StateAfter(stopped, done.References))
	return result, nil
}

// newRunner returns the analysis run for the options. Runs with additional consumers or samples are
// not parallel, because they need all references in order.
func (in *Input) newRunner(o *Options, t *open.Trace, r trace.Reader) (analysis.Run, error) {
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if workers > 1 && o.Beside == nil && o.BesideSites == nil && o.Spec.Splits() {
		if source := in.containerSource(t); source != nil && o.Spec.Divides(source.Kinds()) && source.Chunks() != nil {
			return analysis.NewDivided(o.Spec, r, t.Container(), source, analysis.DividedOptions{
				Helpers: analysis.Goroutines(workers-1, o.Spec, source), SegmentReferences: o.Segment, MemoryBytes: o.MemoryBytes, Narrow: o.Checkpoints == nil,
			})
		}
		return analysis.NewParallel(o.Spec, r, analysis.ParallelOptions{Workers: workers, SegmentReferences: o.Segment, MemoryBytes: o.MemoryBytes})
	}
	runner, err := analysis.NewRunner(o.Spec, r)
	if err != nil {
		return nil, err
	}
	switch {
	case o.BesideSites != nil && o.BesideEvents:
		runner.BesideEvents(o.BesideSites)
	case o.BesideSites != nil:
		runner.BesideSites(o.BesideSites)
	default:
		runner.Beside(o.Beside)
	}
	return runner, nil
}

// readIndex reads the index of a container in advance, so that the reader can use it.
func (in *Input) readIndex(t *open.Trace) {
	if in.randomAccess == nil || in.Bytes == 0 {
		return
	}
	if o, err := sgt.ReadOutline(in.randomAccess, in.Bytes); err == nil && t.Expect(o) {
		in.outline = o
	}
}

// containerSource returns the input as a container with random access. It returns nil if this is
// not possible.
func (in *Input) containerSource(t *open.Trace) *sgt.Source {
	if in.randomAccess == nil || in.Bytes == 0 || t.Container() == nil || len(t.Packings()) > 0 {
		return nil
	}
	s, err := sgt.NewSource(in.Name, in.randomAccess, in.Bytes, t.Container())
	if err != nil {
		return nil // the container has no index, so random access is not possible
	}
	return s
}

// run reads the trace step by step until it ends or the run must stop.
func (in *Input) run(ctx context.Context, runner analysis.Run, o Options, saver *saver) error {
	bar := newBar(o.Terminal, o.Spec.ToRead(in.outline.References), in.Bytes)
	defer bar.finish()
	const (
		stepsBetweenLooks = 64      // one check for approximately every 260,000 references
		linesBetweenLooks = 1 << 17 // about 10 MB of model memory; also checked because a few range references can touch many lines
	)
	looked := uint64(0) // number of lines at the last check
	begun := false      // whether at least one reference was analysed
	for step := 0; ; step++ {
		if ctx.Err() != nil && !stopReading(runner) {
			return ErrInterrupted
		}
		if err := runner.Step(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		progress := runner.Progress()
		begins := !begun && progress.References > 0
		if step%stepsBetweenLooks != 0 && progress.Lines-looked < linesBetweenLooks && !begins {
			continue
		}
		begun = begun || begins
		if looked = progress.Lines; looked > ballastLines {
			dropBallast()
		}
		bar.update(in.read.Load(), progress.References, progress.LeftOut+progress.Skipped, time.Now())
		saver.saveIfDue()
		if o.MemoryBytes > 0 && begun && memoryInUse() > o.MemoryBytes {
			return fmt.Errorf("%w (set the limit with --memory; the default is half of the free memory)", &analysis.MemoryError{LimitBytes: o.MemoryBytes, References: progress.References})
		}
	}
}

// stopReading stops a parallel run from reading.
func stopReading(r analysis.Run) bool {
	p, ok := r.(*analysis.Parallel)
	if ok {
		p.Halt()
	}
	return ok
}

// verify reads the input up to the position of the checkpoint to check that the input has not
// changed. It does nothing if the user interrupted the pass.
func (in *Input) verify(ctx context.Context, content *workers.File) {
	if ctx.Err() == nil {
		content.Verify()
	}
}

// inputError returns the error that ended a pass. If the input has changed since the checkpoint,
// this is an error about the change instead of err. The parameter err is nil at the end of the
// input.
func (in *Input) inputError(ctx context.Context, o Options, content *workers.File, err error) error {
	if other := new(workers.OtherFileError); errors.As(content.Wrong(), &other) {
		return o.Checkpoints.checkpointError(in, other)
	}
	if err == nil {
		return nil
	}
	return in.readError(ctx, err)
}

// readError returns a read error, or ErrInterrupted if the user interrupted the pass. If the input
// is in no format of traces, but contains measurements, readError returns a [*MeasuredError].
func (in *Input) readError(ctx context.Context, err error) error {
	var unknown *open.UnknownError
	if errors.As(err, &unknown) && unknown.Content != nil {
		if m := recogniseMeasurements(in.Name, unknown.Content); m != nil {
			err = m
		}
	}
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// MeasuredError reports that an input contains measurements, and not a trace.
type MeasuredError struct {
	Name    string
	Content io.Reader // the decompressed measurements
}

func (e *MeasuredError) Error() string {
	return e.Name + ": the file contains measurements, and not a trace; print them with: stackglass measured " + e.Name
}

// recogniseMeasurements returns an error for measurements, or nil if the content is something else.
// Measurements may begin with long comments, for example with the output of perf script --header.
func recogniseMeasurements(name string, content io.Reader) *MeasuredError {
	const beginning = 1 << 20
	head, _ := io.ReadAll(io.LimitReader(content, beginning)) // reading the rest returns the error again
	whole := head
	if end := bytes.LastIndexByte(head, '\n'); end >= 0 && len(head) == beginning {
		whole = head[:end]
	}
	if !measured.Recognise(whole) {
		return nil
	}
	return &MeasuredError{name, io.MultiReader(bytes.NewReader(head), content)}
}

// badRecordReader is a reader that stores the first bad record, because the runner only counts bad
// records.
type badRecordReader struct {
	reader   trace.Reader
	firstBad *trace.SyntaxError
}

func (w *badRecordReader) Next(b *trace.Batch) error {
	err := w.reader.Next(b)
	if err != nil && w.firstBad == nil {
		errors.As(err, &w.firstBad)
	}
	return err
}

// Select implements [trace.Selector].
func (w *badRecordReader) Select(kinds trace.Kinds) {
	if s, ok := w.reader.(trace.Selector); ok {
		s.Select(kinds)
	}
}

// Header implements [trace.Describer].
func (w *badRecordReader) Header() trace.Header {
	if d, ok := w.reader.(trace.Describer); ok {
		return d.Header()
	}
	return trace.Header{}
}

// bar shows progress, rate and remaining time on a terminal.
type bar struct {
	shown      *progressbar.ProgressBar // nil if progress is not shown, because standard error is not a terminal
	references bool                     // whether the bar counts references instead of bytes
	next       time.Time
}

// newBar returns a progress bar that counts references or, if the number of references is 0, bytes.
func newBar(terminal io.Writer, references uint64, bytes int64) *bar {
	if terminal == nil {
		return &bar{}
	}
	whole := bytes
	switch {
	case references > 0:
		whole = int64(references)
	case bytes == 0:
		whole = -1 // the size is unknown: show only bytes and rate
	}
	return &bar{references: references > 0, shown: progressbar.NewOptions64(whole,
		progressbar.OptionSetWriter(terminal),
		progressbar.OptionShowBytes(references == 0),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionShowElapsedTimeOnFinish(),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
	)}
}

// update updates the bar at most ten times per second. The parameter leftOut is the number of
// references that were read but not analysed.
func (b *bar) update(bytes int64, references, leftOut uint64, now time.Time) {
	if b.shown == nil || now.Before(b.next) {
		return
	}
	b.next = now.Add(100 * time.Millisecond)
	b.shown.Describe(strconv.FormatFloat(float64(references)/1e6, 'f', 1, 64) + "M references")
	if b.references {
		bytes = int64(references + leftOut)
	}
	_ = b.shown.Set64(bytes) // ignore errors: losing the terminal must not end the pass
}

// finish removes the bar. It accepts nil, the bar of a pass that failed before its first step.
func (b *bar) finish() {
	if b != nil && b.shown != nil {
		_ = b.shown.Finish()
	}
}
