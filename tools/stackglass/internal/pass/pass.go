// Package pass turns what a user names into a profile: it opens a trace, reads
// it once while it shows how far it is, and stops in good order when it is
// interrupted, when the trace ends too early, or when memory runs low. A file
// that is a profile already is only read.
//
//  1. [Open] recognises what the name stands for: a file, standard input, an
//     embedded demo; a profile or a trace.
//  2. [Input.Analyze] gives the profile of it. Whatever stops the pass early is
//     in [Result.Stopped]; what was analysed until then is in the profile, which
//     says that it is partial and why.
package pass

import (
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
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/open/gzip"
	"github.com/stackglass/stackglass/core/open/xz"
	"github.com/stackglass/stackglass/core/open/zstd"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/workers"
)

// Options say how to read a trace. None of them applies to a profile.
type Options struct {
	Spec        analysis.Spec
	Sample      *sample.Options // nil: every reference is analysed
	Format      string          // as for --input-format; "" finds out
	Strict      bool            // stop a container at the first part that cannot be read
	MemoryBytes uint64          // stop in good order beyond this; 0: no limit
	Spill       string          // folder for what would go beyond it; "": nothing goes there
	Workers     int             // goroutines that analyse; 0: one for each processor
	Segment     int             // references that one of several takes at a time; 0: finds out
	Terminal    io.Writer       // where progress is shown; nil: nowhere
	// Beside takes the references as analyses do; nil: nobody does. What it makes
	// of them is in no checkpoint.
	Beside func(*trace.Batch) error
	// BesideSites makes such a one that takes sites, too; nil: nobody does.
	BesideSites func(program func() *trace.Program) func(*trace.Batch) error
	// Checkpoints have the pass go on where an earlier one was ended; nil: it
	// begins at the start.
	Checkpoints *Checkpoints
}

// Result is a profile and where it comes from.
type Result struct {
	Profile *profile.Profile
	Trace   bool  // made from a trace just now, not read from a file
	Stopped error // why the pass ended early; nil: it did not
	// FirstBad is the first record that could not be read and was tolerated.
	FirstBad *trace.SyntaxError
	// LeftOut says which records are no references, as trace.Header.LeftOut does.
	LeftOut string
	// Changed tells that the file was written to while it was read.
	Changed bool
	// Unsaved is why there is no checkpoint of all that was done; nil: there is, or
	// none was asked for.
	Unsaved error
}

// packings are those that are read besides the ones that every program reads.
var packings = []open.Packing{gzip.Packing, zstd.Packing, xz.Packing}

// ErrInterrupted tells that the user ended the pass.
var ErrInterrupted error = interrupted{}

// interrupted is [analysis.ErrStopped] in a terminal's word.
type interrupted struct{}

func (interrupted) Error() string        { return "interrupted" }
func (interrupted) Is(target error) bool { return target == analysis.ErrStopped }

// Analyze gives the input's profile. The error tells that there is none at all;
// see [Result.Stopped] for one that covers a part.
func (in *Input) Analyze(ctx context.Context, o Options) (*Result, error) {
	if in.IsProfile {
		p, err := in.readProfile()
		return &Result{Profile: p}, err
	}
	if in.IsByfl {
		return nil, errors.New(in.Name + ": a result of Byfl holds counters and no references; see them with: stackglass counters " + in.Name)
	}
	from, err := o.Checkpoints.load(in)
	if err != nil {
		return nil, err
	}
	content, err := workers.NewFile(in.Name, in, uint64(in.Bytes), from)
	if err != nil {
		return nil, o.Checkpoints.refuse(in, err)
	}
	unpacked, err := open.Open(in.Name, content, open.Options{Format: o.Format, Packings: packings, Strict: o.Strict})
	if err != nil {
		in.verify(ctx, content)
		return nil, in.blame(ctx, o, content, err)
	}
	in.foresee(unpacked)
	watched := &watcher{reader: unpacked}
	if o.Sample != nil {
		o.Spec.Sample = *o.Sample
	}
	if o.Spill != "" {
		end, err := o.spill()
		if err != nil {
			return nil, err
		}
		defer end()
	}
	runner, err := in.runner(&o, unpacked, watched)
	if err != nil {
		return nil, err
	}
	saver, err := o.Checkpoints.begin(in, content, runner, &o, from)
	if err != nil {
		return nil, err
	}
	stopped := in.run(ctx, runner, o, saver)
	done := runner.Progress()
	if p, ok := runner.(*analysis.Parallel); ok && !p.Close() {
		watched = &watcher{} // the other one is still waiting for input
	} else {
		in.verify(ctx, content)
	}
	if stopped = in.blame(ctx, o, content, stopped); stopped != nil {
		if other := new(workers.OtherFileError); done.References == 0 || errors.As(stopped, &other) {
			return nil, stopped
		}
		saver.atEnd(stopped)
	}
	result := &Result{Trace: true, Stopped: stopped, FirstBad: watched.firstBad, Changed: in.Changed(), Unsaved: saver.unsaved}
	header := watched.Header()
	result.LeftOut = header.LeftOut()
	result.Profile = runner.Finish(analysis.StateAfter(stopped, done.References))
	return result, nil
}

// runner makes the run. What goes on beside one, and samples, are of the order of all
// references.
func (in *Input) runner(o *Options, t *open.Trace, r trace.Reader) (analysis.Run, error) {
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if workers > 1 && o.Beside == nil && o.BesideSites == nil && o.Spec.Splits() {
		if source := in.source(t); source != nil && o.Spec.Divides(source.Kinds()) && source.Chunks() != nil {
			return analysis.NewDivided(o.Spec, r, t.Container(), source, analysis.DividedOptions{
				Helpers: analysis.Goroutines(workers-1, o.Spec, source), SegmentReferences: o.Segment, MemoryBytes: o.MemoryBytes,
			})
		}
		return analysis.NewParallel(o.Spec, r, analysis.ParallelOptions{Workers: workers, SegmentReferences: o.Segment, MemoryBytes: o.MemoryBytes})
	}
	runner, err := analysis.NewRunner(o.Spec, r)
	if err != nil {
		return nil, err
	}
	if runner.Beside(o.Beside); o.BesideSites != nil {
		runner.BesideSites(o.BesideSites)
	}
	return runner, nil
}

// foresee reads the index of a container, and has its reader know it from the start.
func (in *Input) foresee(t *open.Trace) {
	if in.places == nil || in.Bytes == 0 {
		return
	}
	if o, err := sgt.ReadOutline(in.places, in.Bytes); err == nil && t.Expect(o) {
		in.outline = o
	}
}

// source is the input as a container that can be read at any place; nil: it is none.
func (in *Input) source(t *open.Trace) *sgt.Source {
	if in.places == nil || in.Bytes == 0 || t.Container() == nil || len(t.Packings()) > 0 {
		return nil
	}
	s, err := sgt.NewSource(in.Name, in.places, in.Bytes, t.Container())
	if err != nil {
		return nil // there is no index
	}
	return s
}

// run steps through the trace until it ends, or something ends it.
func (in *Input) run(ctx context.Context, runner analysis.Run, o Options, saver *saver) error {
	bar := newBar(o.Terminal, o.Spec.ToRead(in.outline.References), in.Bytes)
	defer bar.finish()
	const (
		stepsBetweenLooks = 64      // about 260,000 references
		linesBetweenLooks = 1 << 17 // some 10 MB: references to ranges come to many lines in few steps
	)
	looked := uint64(0) // lines at the last look
	begun := false      // others may have to begin first
	for step := 0; ; step++ {
		if ctx.Err() != nil && !halt(runner) {
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
		bar.show(in.read.Load(), progress.References, progress.LeftOut, time.Now())
		saver.look()
		if o.MemoryBytes > 0 && begun && memoryInUse() > o.MemoryBytes {
			return fmt.Errorf("%w (--memory sets the limit; the default is half of the free memory)", &analysis.MemoryError{LimitBytes: o.MemoryBytes, References: progress.References})
		}
	}
}

// halt has a run read no more, if others are ahead of it.
func halt(r analysis.Run) bool {
	p, ok := r.(*analysis.Parallel)
	if ok {
		p.Halt()
	}
	return ok
}

// verify reads on to where a checkpoint was, unless the user ended the pass.
func (in *Input) verify(ctx context.Context, content *workers.File) {
	if ctx.Err() == nil {
		content.Verify()
	}
}

// blame gives the complaint that the input is another one than it was precedence over
// what came of that. err nil: the input has ended.
func (in *Input) blame(ctx context.Context, o Options, content *workers.File, err error) error {
	if other := new(workers.OtherFileError); errors.As(content.Wrong(), &other) {
		return o.Checkpoints.refuse(in, other)
	}
	if err == nil {
		return nil
	}
	return in.readError(ctx, err)
}

// readError is what to tell of an error while reading: that the user asked for
// it, if so.
func (in *Input) readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// watcher hands batches on and remembers the first bad record, which the runner
// only counts.
type watcher struct {
	reader   trace.Reader
	firstBad *trace.SyntaxError
}

func (w *watcher) Next(b *trace.Batch) error {
	err := w.reader.Next(b)
	if err != nil && w.firstBad == nil {
		errors.As(err, &w.firstBad)
	}
	return err
}

// Select hands on what kinds of rows are asked for.
func (w *watcher) Select(kinds trace.Kinds) {
	if s, ok := w.reader.(trace.Selector); ok {
		s.Select(kinds)
	}
}

// Header makes the watcher as good a source of facts as the reader behind it.
func (w *watcher) Header() trace.Header {
	if d, ok := w.reader.(trace.Describer); ok {
		return d.Header()
	}
	return trace.Header{}
}

// bar shows how much is done, the rate and the time left on a terminal.
type bar struct {
	shown      *progressbar.ProgressBar // nil: standard error is no terminal
	references bool                     // it counts references, else bytes
	next       time.Time
}

// newBar makes a bar of a number of references, or, where that is 0, of bytes.
func newBar(terminal io.Writer, references uint64, bytes int64) *bar {
	if terminal == nil {
		return &bar{}
	}
	whole := bytes
	switch {
	case references > 0:
		whole = int64(references)
	case bytes == 0:
		whole = -1 // not known: bytes and rate only
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

// show updates the bar, ten times a second at most. leftOut are references that were read
// and not analysed.
func (b *bar) show(bytes int64, references, leftOut uint64, now time.Time) {
	if b.shown == nil || now.Before(b.next) {
		return
	}
	b.next = now.Add(100 * time.Millisecond)
	b.shown.Describe(millions(references))
	if b.references {
		bytes = int64(references + leftOut)
	}
	// The bar is an ornament: a terminal that went away ends nothing.
	_ = b.shown.Set64(bytes)
}

func (b *bar) finish() {
	if b.shown != nil {
		_ = b.shown.Finish()
	}
}

func millions(references uint64) string {
	return strconv.FormatFloat(float64(references)/1e6, 'f', 1, 64) + "M references"
}
