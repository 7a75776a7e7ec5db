package pass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
)

// PredictOptions contains the options for reading the trace from which a run on several cores is
// predicted.
type PredictOptions struct {
	Format      string // a value of --input-format, or "" to detect the format
	Strict      bool   // whether to stop at the first unreadable chunk of a container
	SkipBad     uint64 // maximum number of tolerated bad records
	MemoryBytes uint64 // memory limit, at which the prediction stops; 0 means no limit
	Terminal    io.Writer
	PPT         sasmm.Files // additional files of a PPT trace; each may be nil
}

// Predicted contains the predictions for several numbers of cores.
type Predicted struct {
	Results    []predict.Result
	BadRecords uint64
	FirstBad   *trace.SyntaxError
	Stopped    error // the damage that ended the trace early, or nil
}

// Predict predicts a run on several cores from the named trace. Predict reads the trace once for
// each number of cores.
func Predict(ctx context.Context, name string, q predict.Question, o PredictOptions) (*Predicted, error) {
	p := &prediction{ctx: ctx, name: name, options: o}
	r, err := predict.New(q, p.open)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer func() { p.bar.finish() }()
	for step := 0; err == nil; step++ {
		if ctx.Err() != nil {
			return nil, ErrInterrupted
		}
		if err = r.Step(); err != nil || step%64 != 0 {
			continue
		}
		at := r.Progress()
		if p.in != nil && p.bar != nil {
			p.bar.update(int64(max(at.Pass-1, 0))*p.in.Bytes+p.in.read.Load(), at.References, 0, time.Now())
		}
		if o.MemoryBytes > 0 && memoryInUse() > o.MemoryBytes {
			return nil, fmt.Errorf("%w (set the limit with --memory; the default is half of the free memory)", &analysis.MemoryError{LimitBytes: o.MemoryBytes, References: at.References})
		}
	}
	if err != io.EOF {
		return nil, err
	}
	p.out.Results = r.Results()
	return &p.out, nil
}

// prediction is a running prediction, which opens the trace again for each number of cores.
type prediction struct {
	ctx     context.Context
	name    string
	options PredictOptions
	in      *Input
	bar     *bar
	out     Predicted
	private []multicore.Range // private addresses of a PPT trace, or nil if not yet known
}

// openRows opens the trace.
func (p *prediction) openRows() (*Input, *tolerantReader, error) {
	in, err := Open(p.ctx, p.name, nil)
	if err != nil {
		return nil, nil, err
	}
	t, err := open.Open(in.Name, in, open.Options{Format: p.options.Format, Packings: packings, Strict: p.options.Strict})
	if err != nil {
		defer in.Close()
		return nil, nil, in.readError(p.ctx, err)
	}
	if p.in = in; p.bar == nil {
		p.bar = newBar(p.options.Terminal, 0, 0)
	}
	p.out.BadRecords, p.out.FirstBad, p.out.Stopped = 0, nil, nil
	return in, &tolerantReader{Trace: t, p: p}, nil
}

func (p *prediction) open(o multicore.Options) (predict.Threads, error) {
	in, rows, err := p.openRows()
	if err != nil {
		return nil, err
	}
	var r trace.Reader = rows
	if rows.Header().Format == "ppt" {
		if r, err = p.openPPT(rows, &o); err != nil {
			in.Close()
			return nil, err
		}
	} else if f := &p.options.PPT; f.Blocks != nil || f.Shared != nil || f.Counts != nil || f.Bounds != nil {
		in.Close()
		return nil, &trace.OptionError{Option: "ppt-blocks, --ppt-shared, --ppt-counts or --ppt-bounds", Got: "with " + p.name, Want: "a trace of PPT; other traces already contain the information in these files"}
	}
	store := &tempFile{}
	threads, err := multicore.Mimic(r, o, store)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &synthesised{threads, in, store}, nil
}

// openPPT marks the parallel regions in a PPT trace, and finds its private addresses.
func (p *prediction) openPPT(rows *tolerantReader, o *multicore.Options) (trace.Reader, error) {
	if o.Division == multicore.ByIterations {
		return nil, &trace.OptionError{Option: "division", Got: o.Division.String(), Want: "region or printed for a trace of PPT, which has blocks but no loops"}
	}
	f := &p.options.PPT
	if o.Private.Ranges == nil && p.private == nil {
		shared := f.Shared
		if shared == nil {
			in, other, err := p.openRows()
			if err != nil {
				return nil, err
			}
			shared, err = f.Addresses(other)
			in.Close()
			if err != nil {
				return nil, err
			}
		}
		p.private = append(p.private, sasmm.Ranges(shared)...)
	}
	if o.Private.Ranges == nil {
		o.Private.Ranges = p.private
	}
	return f.Mark(rows)
}

// synthesised contains synthesised threads and the trace from which they are synthesised. Close
// closes the trace.
type synthesised struct {
	predict.Threads
	in    *Input
	store *tempFile
}

// Unwrap returns the wrapped threads.
func (m *synthesised) Unwrap() predict.Threads { return m.Threads }

func (m *synthesised) Close() error { return errors.Join(m.in.Close(), m.store.close()) }

// tolerantReader is a reader that skips tolerated bad records, and ends where the trace is damaged.
type tolerantReader struct {
	*open.Trace
	p *prediction
}

func (r *tolerantReader) Next(b *trace.Batch) error {
	for {
		err := r.Trace.Next(b)
		var bad *trace.SyntaxError
		var damage *trace.DamageError
		switch {
		case errors.As(err, &bad) && r.p.out.BadRecords < r.p.options.SkipBad:
			if r.p.out.BadRecords++; r.p.out.FirstBad == nil {
				r.p.out.FirstBad = bad
			}
		case errors.As(err, &damage) && r.p.ctx.Err() == nil:
			r.p.out.Stopped = err
			return io.EOF
		case err != nil && err != io.EOF:
			return r.p.in.readError(r.p.ctx, err)
		default:
			return err
		}
	}
}

// tempFile is a temporary file that is created on the first write.
type tempFile struct{ f *os.File }

func (t *tempFile) WriteAt(b []byte, at int64) (int, error) {
	if t.f == nil {
		f, err := os.CreateTemp("", "stackglass-region-*")
		if err != nil {
			return 0, err
		}
		t.f = f
	}
	return t.f.WriteAt(b, at)
}

func (t *tempFile) ReadAt(b []byte, at int64) (int, error) {
	if t.f == nil {
		return 0, io.EOF
	}
	return t.f.ReadAt(b, at)
}

func (t *tempFile) close() error {
	if t.f == nil {
		return nil
	}
	return errors.Join(t.f.Close(), os.Remove(t.f.Name()))
}
