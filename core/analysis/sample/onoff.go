package sample

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// OnOff reads contiguous parts of a trace: of every period references the first on ones, and
// the events among them. The stacks of analyses stay as they were at the end of the part
// before.
type OnOff struct {
	trace.Reader
	on, period uint64
	kinds      trace.Kinds
	threads    []uint32 // nil: all

	Read uint64 // references of these kinds and threads, so far
	keep []int32
}

// Stretches implements analysis.Sampling.
func (o Options) Stretches(r trace.Reader, kinds trace.Kinds, threads []uint32) analysis.Stretches {
	if o.Mode != profile.OnOffSample {
		return nil
	}
	return NewOnOff(r, o, kinds, threads)
}

// NewOnOff reads r; only references of these kinds and threads count.
func NewOnOff(r trace.Reader, o Options, kinds trace.Kinds, threads []uint32) *OnOff {
	return &OnOff{Reader: r, on: o.On, period: o.Period, kinds: kinds, threads: threads}
}

// Next implements trace.Reader. Batches may be empty.
func (r *OnOff) Next(b *trace.Batch) error {
	if err := r.Reader.Next(b); err != nil {
		return err
	}
	r.keep = r.keep[:0]
	for i, kind := range b.Kind {
		if r.Read%r.period < r.on {
			r.keep = append(r.keep, int32(i))
		}
		if r.kinds.Has(kind) && (r.threads == nil || b.Thread != nil && slices.Contains(r.threads, b.Thread[i])) {
			r.Read++
		}
	}
	if len(r.keep) < b.Len() {
		b.Select(r.keep)
	}
	return nil
}

// Sampled tells what was read.
func (r *OnOff) Sampled() *profile.Sampled {
	return &profile.Sampled{Mode: profile.OnOffSample, On: r.on, Period: r.period, Read: r.Read}
}

// Select implements trace.Selector.
func (r *OnOff) Select(kinds trace.Kinds) {
	if s, ok := r.Reader.(trace.Selector); ok {
		s.Select(kinds)
	}
}

// Header implements trace.Describer.
func (r *OnOff) Header() trace.Header {
	if d, ok := r.Reader.(trace.Describer); ok {
		return d.Header()
	}
	return trace.Header{}
}
