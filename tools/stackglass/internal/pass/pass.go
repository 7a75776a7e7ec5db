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
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/open/xz"
	"github.com/stackglass/stackglass/core/trace/open/zstd"
)

// Options say how to read a trace. None of them applies to a profile.
type Options struct {
	Spec        analysis.Spec
	Sample      *sample.Options // nil: every reference is analysed
	Format      string          // as for --input-format; "" finds out
	Strict      bool            // stop a container at the first part that cannot be read
	MemoryBytes uint64          // stop in good order beyond this; 0: no limit
	Terminal    io.Writer       // where progress is shown; nil: nowhere
	// Beside takes the references as analyses do; nil: nobody does.
	Beside func(*trace.Batch) error
}

// Result is a profile and where it comes from.
type Result struct {
	Profile *profile.Profile
	Trace   bool  // made from a trace just now, not read from a file
	Stopped error // why the pass ended early; nil: it did not
	// FirstBad is the first record that could not be read and was tolerated.
	FirstBad *trace.SyntaxError
}

// packings are those that are read besides the ones that every program reads.
var packings = []open.Packing{zstd.Packing, xz.Packing}

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
	unpacked, err := open.Open(in.Name, in, open.Options{Format: o.Format, Packings: packings, Strict: o.Strict})
	if err != nil {
		return nil, in.readError(ctx, err)
	}
	watched := &watcher{reader: unpacked}
	reader, onOff := o.sampled(watched)
	runner, err := analysis.NewRunner(o.Spec, reader)
	if err != nil {
		return nil, err
	}
	runner.Beside(o.Beside)
	stopped := in.run(ctx, runner, o)
	done := runner.Progress()
	if stopped != nil {
		stopped = in.readError(ctx, stopped)
		if done.References == 0 {
			return nil, stopped
		}
	}
	result := &Result{Trace: true, Stopped: stopped, FirstBad: watched.firstBad}
	result.Profile = runner.Finish(analysis.StateAfter(stopped, done.References))
	if onOff != nil {
		result.Profile.Sampled = onOff.Sampled()
	}
	return result, nil
}

// sampled has the spec, or what is read, be a sample, if that is asked for.
func (o *Options) sampled(r trace.Reader) (trace.Reader, *sample.OnOff) {
	if o.Sample == nil {
		return r, nil
	}
	if o.Sample.Mode != profile.OnOffSample {
		o.Spec.Sample = *o.Sample
		return r, nil
	}
	kinds := o.Spec.WithDefaults().Kinds
	onOff := sample.NewOnOff(r, *o.Sample, kinds, o.Spec.Threads)
	return onOff, onOff
}

// run steps through the trace until it ends, or something ends it.
func (in *Input) run(ctx context.Context, runner *analysis.Runner, o Options) error {
	bar := newBar(o.Terminal, in.Bytes)
	defer bar.finish()
	const (
		stepsBetweenLooks = 64      // about 260,000 references
		linesBetweenLooks = 1 << 17 // some 10 MB: references to ranges come to many lines in few steps
	)
	looked := uint64(0) // lines at the last look
	for step := 0; ; step++ {
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		if err := runner.Step(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		progress := runner.Progress()
		if step%stepsBetweenLooks != 0 && progress.Lines-looked < linesBetweenLooks {
			continue
		}
		looked = progress.Lines
		bar.show(in.read.Load(), progress.References, time.Now())
		if o.MemoryBytes > 0 && memoryInUse() > o.MemoryBytes {
			return fmt.Errorf("%w (--memory sets the limit)", &analysis.MemoryError{LimitBytes: o.MemoryBytes, References: progress.References})
		}
	}
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
