// Package sample selects a sample of a trace: some lines, some accesses, or some intervals of the
// run. Package estimate estimates the counts of a whole run from a sample.
package sample

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Options contains the options of a sample: see [Parse].
type Options struct {
	Mode       profile.SampleMode
	Threshold  uint64 // for profile.SpaceSample: the largest 64-bit hash of a sampled line
	Lines      uint64 // for profile.LinesSample: the maximum number of lines
	Gap        uint64 // for profile.TimeSample: the mean number of accesses between samples
	On, Period uint64 // for profile.OnOffSample: numbers of references; see [OnOff]
	Seed       uint64
}

const (
	// MinLines is the minimum number of lines of a LinesSample.
	MinLines     = 64
	maxLinesKept = 1 << 28
	wantSample   = "time=GAP (the number of accesses from one sample to the next, for example 1e6), space=RATE (above 0, at most 1), lines=COUNT (64 to 2^28), or onoff=ON/PERIOD (two numbers of references, ON at most PERIOD)"
)

// Parse parses MODE=VALUE. The error is a [*trace.OptionError].
func Parse(text string) (Options, error) {
	mode, value, _ := strings.Cut(text, "=")
	var o Options
	ok := false
	switch mode {
	case "space":
		o.Mode = profile.SpaceSample
		var rate float64
		rate, ok = number(value)
		ok = ok && rate > 0 && rate <= 1
		o.Threshold = threshold(rate)
	case "lines":
		o.Mode = profile.LinesSample
		o.Lines, ok = parseWhole(value)
	case "time":
		o.Mode = profile.TimeSample
		o.Gap, ok = parseWhole(value)
	case "onoff":
		o.Mode = profile.OnOffSample
		on, period, _ := strings.Cut(value, "/")
		var okOn bool
		o.On, okOn = parseWhole(on)
		o.Period, ok = parseWhole(period)
		ok = ok && okOn
	}
	if !ok || !o.Valid() {
		return Options{}, &trace.OptionError{Option: "sample", Got: text, Want: wantSample}
	}
	return o, nil
}

// Valid reports whether [Parse] could have returned the options.
func (o Options) Valid() bool {
	switch o.Mode {
	case profile.SpaceSample:
		return true
	case profile.LinesSample:
		return o.Lines >= MinLines && o.Lines <= maxLinesKept
	case profile.TimeSample:
		return o.Gap > 0
	case profile.OnOffSample:
		return o.On > 0 && o.On <= o.Period
	}
	return false
}

func number(text string) (float64, bool) {
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}

// parseWhole parses an integer, which may be written as 1e6.
func parseWhole(text string) (uint64, bool) {
	x, ok := number(text)
	return uint64(x), ok && x >= 0 && x < 1<<63 && x == math.Trunc(x)
}

// threshold returns the largest hash of a sampled line at the given sampling rate.
func threshold(rate float64) uint64 {
	if !(rate < 1) {
		return math.MaxUint64
	}
	return uint64(max(1, rate*math.Exp2(64))) - 1
}

// NewLocality and NewFollowers create the analyses of a sample; see [analysis.Sampling]. Package
// estimate sets these variables. Only programs that take samples import package estimate, so that
// the page does not have to load the package on the first visit. In programs without package
// estimate, the functions panic.
var (
	NewLocality  = func(o Options, lineBytes []uint32) analysis.SampledLocality { panic(notLinked) }
	NewFollowers = func(o Options, w analysis.Wanted) []analysis.Analysis { panic(notLinked) }
)

const notLinked = "sample: a program that takes samples must import core/analysis/sample/estimate"

// Locality implements [analysis.Sampling].
func (o Options) Locality(lineBytes []uint32) analysis.SampledLocality {
	return NewLocality(o, lineBytes)
}

// Followers implements [analysis.Sampling].
func (o Options) Followers(w analysis.Wanted) []analysis.Analysis { return NewFollowers(o, w) }

// KeepsLines implements [analysis.Sampling].
func (o Options) KeepsLines() bool {
	return o.Mode == profile.SpaceSample || o.Mode == profile.LinesSample
}

// OnOff is a reader that returns only the first On references of every Period references, and the
// events between these references. While references are skipped, the stacks of the analyses do not
// change.
type OnOff struct {
	trace.Reader
	on, period uint64
	kinds      trace.Kinds
	threads    []uint32 // nil: all threads

	Read uint64 // number of references of the selected kinds and threads that have been read
	keep []int32
}

// Stretches implements [analysis.Sampling].
func (o Options) Stretches(r trace.Reader, kinds trace.Kinds, threads []uint32) analysis.Stretches {
	if o.Mode != profile.OnOffSample {
		return nil
	}
	return NewOnOff(r, o, kinds, threads)
}

// NewOnOff returns a reader of the sampled intervals of r. The lengths of the intervals are
// measured in references of the given kinds and threads.
func NewOnOff(r trace.Reader, o Options, kinds trace.Kinds, threads []uint32) *OnOff {
	return &OnOff{Reader: r, on: o.On, period: o.Period, kinds: kinds, threads: threads}
}

// Next implements trace.Reader. Next may return empty batches.
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

// Sampled describes the intervals that have been read.
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
