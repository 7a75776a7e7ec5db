package sample

import (
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Options say how to sample: see [Parse].
type Options struct {
	Mode       profile.SampleMode
	Threshold  uint64 // of profile.SpaceSample: lines whose hash is at most this, of 2^64
	Lines      uint64 // of profile.LinesSample
	Gap        uint64 // of profile.TimeSample
	On, Period uint64 // of profile.OnOffSample
	Seed       uint64
}

const (
	// MinLines is the fewest lines that LinesSample keeps.
	MinLines     = 64
	maxLinesKept = 1 << 28
	wantSample   = "time=GAP (accesses from one sample to the next, as in 1e6), space=RATE (above 0, up to 1), lines=COUNT (64 to 2^28), or onoff=ON/PERIOD (references, ON up to PERIOD)"
)

// Parse reads MODE=VALUE; the error is a [*trace.OptionError].
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
		o.Lines, ok = whole(value)
	case "time":
		o.Mode = profile.TimeSample
		o.Gap, ok = whole(value)
	case "onoff":
		o.Mode = profile.OnOffSample
		on, period, _ := strings.Cut(value, "/")
		var okOn bool
		o.On, okOn = whole(on)
		o.Period, ok = whole(period)
		ok = ok && okOn
	}
	if !ok || !o.Valid() {
		return Options{}, &trace.OptionError{Option: "sample", Got: text, Want: wantSample}
	}
	return o, nil
}

// Valid tells whether numbers are those of a sample, as [Parse] takes them.
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

// whole parses a number that may be written as 1e6.
func whole(text string) (uint64, bool) {
	x, ok := number(text)
	return uint64(x), ok && x >= 0 && x < 1<<63 && x == math.Trunc(x)
}

// threshold returns the greatest hash of the sampled lines at a rate.
func threshold(rate float64) uint64 {
	if !(rate < 1) {
		return math.MaxUint64
	}
	return uint64(max(1, rate*math.Exp2(64))) - 1
}

func (o Options) sampled() *profile.Sampled {
	return &profile.Sampled{Mode: o.Mode, Seed: o.Seed, Threshold: o.Threshold, MostLines: o.Lines, Gap: o.Gap, On: o.On, Period: o.Period}
}

func optionsOf(s *profile.Sampled) Options {
	return Options{Mode: s.Mode, Threshold: s.Threshold, Lines: s.MostLines, Gap: s.Gap, On: s.On, Period: s.Period, Seed: s.Seed}
}
