package profile

import (
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// SampleMode describes how references were sampled.
type SampleMode uint8

const (
	SpaceSample SampleMode = iota // cache lines were sampled at a fixed rate
	LinesSample                   // cache lines were sampled at a decreasing rate, which limits the number of sampled lines
	TimeSample                    // individual accesses were sampled
	OnOffSample                   // intervals of the run were analysed
	numSampleModes
)

var sampleModeNames = [numSampleModes]string{"space", "lines", "time", "onoff"}

func (m SampleMode) String() string { return sampleModeNames[m] }

// Sampled describes the sample from which the counts of a profile are estimated, and the errors of
// these estimates. Package analysis/sample/estimate computes the estimates and their errors. Counts
// are scaled to the whole run, so the profile can be queried like an exact profile. With
// [OnOffSample], counts cover only the analysed references.
type Sampled struct {
	Mode       SampleMode
	Seed       uint64
	Threshold  uint64 // for SpaceSample: the largest 64-bit hash of a sampled line
	MostLines  uint64 // for LinesSample: maximum number of sampled lines
	Gap        uint64 // for TimeSample: mean number of accesses between samples
	On, Period uint64 // for OnOffSample: lengths of the analysed interval and of the period, in references
	Read       uint64 // number of references that were read; except for OnOffSample, equal to the number in Totals
	Sizes      []SampledSize
}

// SampledSize describes the sample of one line size.
type SampledSize struct {
	LineBytes uint32
	Threshold uint64 // the largest 64-bit hash of a sampled line at the end of the run
	Analysed  uint64 // number of line accesses that the analysis looked up or counted
	Samples   uint64 // number of accesses from which the counts are estimated
	Lines     uint64 // number of distinct lines that the sampled accesses touch; 0 if unknown
	Censored  uint64 // for TimeSample: number of samples whose line was not accessed again
	// Bounds[i] is the 95 % confidence interval of the misses of a fully associative LRU cache of
	// SiteBinFrom(i) lines. The last interval also applies to all larger caches. Bounds is nil if
	// the sample is too small for intervals.
	Bounds []Bound
}

// Bound is an interval of counts.
type Bound struct{ Low, High uint64 }

// Chosen reports whether the sample consists of individual accesses or lines, and not of intervals
// of the run. For such a sample, the stacks of cores have no set tables, and counts of pages are
// unknown.
func (s *Sampled) Chosen() bool { return s != nil && s.Mode != OnOffSample }

// Estimates reports whether counts are estimates. An OnOffSample has exact counts of the analysed
// intervals, and a sample that contains all lines has exact counts of the whole run.
func (s *Sampled) Estimates() bool {
	switch {
	case s == nil || s.Mode == OnOffSample:
		return false
	case s.Mode == TimeSample || s.Mode == SpaceSample && s.Threshold != math.MaxUint64:
		return true
	}
	return slices.ContainsFunc(s.Sizes, func(z SampledSize) bool { return z.Threshold != math.MaxUint64 })
}

// Chip returns a short description of the sample, for a label.
func (s *Sampled) Chip() string {
	switch s.Mode {
	case SpaceSample:
		return "sampled " + strconv.FormatFloat(100*s.Rate(), 'g', 3, 64) + " % of the lines"
	case LinesSample:
		return "sampled " + strconv.FormatUint(s.MostLines, 10) + " lines"
	case TimeSample:
		return "sampled one access in " + strconv.FormatUint(s.Gap, 10)
	default:
		return "sampled " + strconv.FormatUint(s.On, 10) + " of every " + strconv.FormatUint(s.Period, 10) + " references"
	}
}

// Rate returns the sampling rate of a SpaceSample: the share of all lines that are sampled.
func (s *Sampled) Rate() float64 { return RateOf(s.Threshold) }

// RateOf returns the share of lines whose hash does not exceed a threshold.
func RateOf(threshold uint64) float64 { return (float64(threshold) + 1) / math.Exp2(64) }

// MissBounds returns the 95 % confidence interval of the misses of a fully associative LRU cache of
// capacityLines lines. The result ok is false if the profile is exact, or if the sample is too
// small.
func (p *Profile) MissBounds(lineBytes uint32, capacityLines uint64) (b Bound, ok bool) {
	if p.Sampled == nil {
		return b, false
	}
	for i := range p.Sampled.Sizes {
		if s := &p.Sampled.Sizes[i]; s.LineBytes == lineBytes && len(s.Bounds) > 0 {
			return BoundAt(s.Bounds, capacityLines), true
		}
	}
	return b, false
}

// BoundAt returns the confidence interval for a capacity. The list "bounds" has the same format as
// SampledSize.Bounds, and must not be empty. For a capacity between two capacities of the list, the
// result is the smallest interval that contains the intervals of both.
func BoundAt(bounds []Bound, capacityLines uint64) Bound {
	last := len(bounds) - 1
	at := min(SiteBin(uint32(min(capacityLines, math.MaxUint32))), last)
	b := bounds[at]
	if SiteBinFrom(at) != capacityLines && at < last {
		b.Low = min(b.Low, bounds[at+1].Low)
	}
	return b
}

func (s *Sampled) code(c *coder) {
	codec.Below(c.Coder, &s.Mode, uint64(numSampleModes))
	c.U64s(&s.Seed, &s.Threshold, &s.MostLines, &s.Gap, &s.On, &s.Period, &s.Read)
	codec.Slice(c.Coder, &s.Sizes, 7, func(z *SampledSize) {
		codec.Below(c.Coder, &z.LineBytes, MaxLineBytes+1)
		c.U64s(&z.Threshold, &z.Analysed, &z.Samples, &z.Lines, &z.Censored)
		codec.Slice(c.Coder, &z.Bounds, 2, c.bound)
	})
}

func (c *coder) bound(b *Bound) { c.U64s(&b.Low, &b.High) }

// check checks that there is a sample for each line size, and that intervals are valid.
func (s *Sampled) check(p *Profile) error {
	if s.Read < p.Totals.AllReferences() {
		return &CheckError{"the sample has more references than the trace from which it was taken"}
	}
	if s.Mode != OnOffSample && len(s.Sizes) != len(p.Locality) {
		return &CheckError{"the sample and the histograms have different line sizes"}
	}
	for i := range s.Sizes {
		z := &s.Sizes[i]
		if i >= len(p.Locality) || z.LineBytes != p.Locality[i].LineBytes {
			return &CheckError{"the sample and the histograms have different line sizes"}
		}
		if z.Samples > z.Analysed || z.Censored > z.Samples || len(z.Bounds) > SiteBins {
			return &CheckError{"the sample has more accesses than were analysed"}
		}
		for _, b := range z.Bounds {
			if b.Low > b.High {
				return &CheckError{"the lower bound of a confidence interval exceeds the upper bound"}
			}
		}
	}
	return nil
}

// Accuracy returns the similarity of two histograms, 1 - E/2 (Kulkarni, section 2.1). Each bin
// contains a share of the accesses of a, and a share of the accesses of b. E is the sum, over all
// bins, of the absolute difference between both shares. There is one bin for each power of two, and
// one bin for cold accesses. The result is 1 if all shares are equal, and 0 if no bin contains
// accesses of both histograms.
func Accuracy(a, b *Locality) float64 {
	x, y := a.shares(), b.shares()
	var e float64
	for bin := range x {
		e += math.Abs(x[bin] - y[bin])
	}
	return 1 - e/2
}

// shares returns the share of accesses in each DistanceBin.
func (l *Locality) shares() (bins [WindowBins]float64) {
	counts, cold := l.Histogram(trace.AllKinds)
	for d, n := range counts.All() {
		bins[DistanceBin(d)] += float64(n)
	}
	bins[ColdBin] = float64(cold)
	all := float64(max(1, l.Accesses()))
	for bin := range bins {
		bins[bin] /= all
	}
	return bins
}

// Predicted marks a profile whose threads package multicore has synthesised from the trace of a
// single-threaded run. The counts are exact for the synthesised threads.
type Predicted struct {
	Cores uint32 // number of cores; each core has one thread
	// command-line options that determine the division of the work and the order of references
	How string
}

func (p *Predicted) code(c *coder) {
	c.U32(&p.Cores)
	c.Text(&p.How)
}

// check checks that the number of threads does not exceed the number of cores.
func (x *Predicted) check(p *Profile) error {
	switch {
	case x.Cores == 0 || x.Cores > MaxCores:
		return &CheckError{"threads were synthesised for an invalid number of cores"}
	case len(p.Totals.Threads) > int(x.Cores):
		return &CheckError{"there are more synthesised threads than cores"}
	}
	return nil
}

// hasIntervals reports whether a sampled profile has confidence intervals for any counts other than
// the histograms.
func (p *Profile) hasIntervals() bool {
	return p.Sampled.Estimates() && (len(p.Sharing) > 0 || p.Sites != nil || p.Communication != nil)
}

// codeIntervals encodes or decodes section smpi, which contains all confidence intervals in the
// order of the profile's fields.
func (p *Profile) codeIntervals(c *coder) {
	for i := range p.Sharing {
		s := &p.Sharing[i]
		for k := range s.Cores {
			c.core(&s.Cores[k].Off)
		}
		for k := range s.Domains {
			for m := range s.Domains[k].Members {
				c.bounds(&s.Domains[k].Members[m].Bounds)
			}
		}
	}
	if p.Sites != nil {
		for i := range p.Sites.Code {
			c.off(&p.Sites.Code[i].Reuse.Off)
		}
		for i := range p.Sites.Data {
			c.off(&p.Sites.Data[i].Reuse.Off)
		}
		if s := p.Sites.Coherent; s != nil {
			for i := range s.Code {
				c.off(&s.Code[i].Off)
			}
			for i := range s.Data {
				c.off(&s.Data[i].Off)
			}
		}
	}
	if p.Communication != nil {
		p.Communication.codeOff(c)
	}
}

// codePresence encodes or decodes a flag that is true if *v is not nil. While reading, it allocates
// *v if the flag is true and *v is nil.
func codePresence[T any](c *coder, v **T) bool {
	is := *v != nil
	if c.Flag(&is); is && c.Reads() {
		*v = new(T)
	}
	return is
}

func (c *coder) core(off **CoreIntervals) {
	if !codePresence(c, off) {
		return
	}
	o := *off
	c.bounds(&o.Private)
	c.bounds(&o.Coherent)
	c.U64s(&o.Cold, &o.Lost, &o.Invalidations)
}

func (c *coder) bounds(list *[]Bound) {
	if c.Reads() {
		*list = nil // discard the list that an earlier section has set
	}
	codec.Bounded(c.Coder, list, SiteBins, func(b *Bound) {
		c.bound(b)
		c.Check(b.Low <= b.High, "the lower bound of a confidence interval exceeds the upper bound")
	})
}

func (c *coder) off(list *[]BinCount) {
	if c.Reads() {
		*list = nil
	}
	next := uint8(0)
	codec.Slice(c.Coder, list, 2, func(b *BinCount) {
		codec.Below(c.Coder, &b.Bin, SiteBins)
		c.Check(b.Bin >= next, "confidence intervals are not in ascending order")
		next = b.Bin + 1
		c.U64(&b.Count)
	})
}

func (c *Communication) codeOff(w *coder) {
	if !codePresence(w, &c.Off) {
		return
	}
	o := c.Off
	flow := func(f *FlowOff) { w.U64s(&f.Events, &f.Transfers) }
	i := 0
	codec.Members(w.Coder, &o.Granules, len(c.Granules), func(g *GranuleOff) {
		codec.Members(w.Coder, &g.Flows, len(c.Granules[i].Flows), flow)
		for k := range g.Classes {
			g.Classes[k].code(w)
		}
		i++
	})
	codec.Members(w.Coder, &o.Pairs, len(c.Pairs), flow)
	codec.Members(w.Coder, &o.False, len(c.False), func(f *FalseOff) { w.U64s(&f.Lines, &f.Events, &f.Misses) })
}
