package sample

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// sampler chooses accesses and finds their distances.
type sampler interface {
	// sample reads the next line accesses, at most maxLines. It counts those that the front
	// holds and those that it does not, and appends the sampled ones to c.taken. It returns how
	// many the front does not hold.
	sample(lines []trace.Line, kinds []trace.Kind, c *counts) (beyond uint64)
	// weight returns how many accesses a sampled one represents, up to a constant factor.
	weight() uint64
	// group is the part of the sample that an access to a line belongs to.
	group(line trace.Line) int
	// describe fills in what only the sampler knows. It returns the factor by which weights
	// become accesses, 0 if they must add up to all; and the open samples by kind.
	describe(s *profile.SampledSize) (factor float64, open [trace.NumKinds]uint64)
	// deviation returns the relative standard deviation that all distances of about this length
	// share.
	deviation(distance float64) float64
	code(c *codec.Coder)
}

// Analysis is locality's analysis from a sample, for one or several line sizes.
type Analysis struct {
	options Options
	sizes   []*lineSize
	done    uint64 // references analysed
}

// Locality makes the analysis: see [analysis.Sampling].
func (o Options) Locality(lineBytes []uint32) analysis.SampledLocality {
	a := &Analysis{options: o}
	for _, n := range lineBytes {
		s := &lineSize{Splitter: locality.Splitter{Shift: uint(bits.TrailingZeros32(n))}, front: frontLines}
		switch o.Mode {
		case profile.TimeSample:
			s.sampler, s.front = newTime(o.Gap, o.Seed), 0
		case profile.LinesSample:
			s.sampler = newSpace(^uint64(0), o.Seed, int(o.Lines))
		default:
			s.sampler = newSpace(o.Threshold, o.Seed, 0)
		}
		s.windows.References = profile.MinWindow
		a.sizes = append(a.sizes, s)
	}
	return a
}

// Takes implements analysis.Analysis.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return 0, false, false }

// Close implements analysis.Analysis.
func (a *Analysis) Close() {}

// Lines is about the number of distinct lines so far, of the smallest line size.
func (a *Analysis) Lines() uint64 {
	var s profile.SampledSize
	factor, _ := a.sizes[0].sampler.describe(&s)
	return uint64(float64(s.Lines) * max(factor, 1))
}

// Consume implements analysis.Analysis.
func (a *Analysis) Consume(b *trace.Batch) error {
	for lo := 0; lo < b.Len(); {
		w := profile.WindowSize(a.done + 1)
		hi := b.Len()
		if room := w - a.done%w; uint64(hi-lo) > room {
			hi = lo + int(room)
		}
		for _, s := range a.sizes {
			s.reach(a.done, w)
			s.consume(b, lo, hi)
		}
		a.done += uint64(hi - lo)
		lo = hi
	}
	return nil
}

// ConsumePiece takes a piece of the one reference of b: see contract.PieceConsumer.
func (a *Analysis) ConsumePiece(b *trace.Batch, from, end uint64) {
	if from == 0 {
		a.done++
	}
	addrs, sizes := []trace.Addr{b.Addr[0] + from}, []uint32{uint32(end - from)}
	for _, s := range a.sizes {
		s.reach(a.done-1, profile.WindowSize(a.done))
		s.split(addrs, sizes, b.Kind)
	}
}

const (
	maxLines  = locality.MaxLines
	kindSlots = 8 // a power of two ≥ trace.NumKinds, so that masks replace checks
	outOf     = profile.SiteBins
)

// nearCounts are accesses of kind k that the front holds at distance d, at k<<4 | d. Even and
// odd accesses use different counters, because adding to one that was just written waits.
type nearCounts [2][kindSlots * frontLines]uint64

// counts are the counts of one line size.
type counts struct {
	near   nearCounts
	beyond [kindSlots]uint64 // accesses that it does not hold, in the sample or not
	deep   [trace.NumKinds]profile.Histogram
	cold   [trace.NumKinds]uint64

	taken   []taken // of the accesses at hand
	samples uint64
	spread  [groups][outOf + 1]uint64 // by profile.SiteBin, cold ones last
}

// taken is a sampled access with its distance or stack.Cold.
type taken struct {
	line     trace.Line
	weight   uint64 // how many accesses it stands for, up to sampler's factor
	distance uint32
	kind     trace.Kind
}

type lineSize struct {
	locality.Splitter
	sampler sampler
	front   uint32 // distances below it are known of every access: frontLines, or 0
	counts
	windows windows
}

// consume analyses the rows from lo up to hi, all in one window.
func (s *lineSize) consume(b *trace.Batch, lo, hi int) {
	for lo < hi {
		n := min(hi-lo, maxLines)
		addrs, sizes := b.Addr[lo:lo+n], b.Bytes[lo:lo+n]
		if s.OneLineEach(addrs, sizes) {
			s.settle(n, b.Kind[lo:lo+n])
		} else {
			s.split(addrs, sizes, b.Kind[lo:lo+n])
		}
		lo += n
	}
}

func (s *lineSize) split(addrs []trace.Addr, sizes []uint32, kinds []trace.Kind) {
	s.Split(addrs, sizes, kinds, func(n int, kinds []trace.Kind, _ []uint32) { s.settle(n, kinds) })
}

// settle counts the first n accesses in s.Lines.
func (s *lineSize) settle(n int, kinds []trace.Kind) {
	row := s.windows.last()
	row.beyond += s.sampler.sample(s.Lines[:n], kinds[:n], &s.counts)
	for i := range s.taken {
		s.count(&s.taken[i], row)
	}
	s.taken = s.taken[:0]
}

func (s *lineSize) count(x *taken, row *row) {
	weight := x.weight
	s.samples++
	bin, siteBin := profile.ColdBin, outOf
	if x.distance == stack.Cold {
		s.cold[x.kind] += weight
	} else {
		s.deep[x.kind].AddN(uint64(x.distance), weight)
		bin, siteBin = profile.DistanceBin(uint64(x.distance)), profile.SiteBin(x.distance)
	}
	row.sample[bin] += weight
	s.spread[s.sampler.group(x.line)][siteBin] += weight
}

// nearAt returns the number of accesses of a kind that the front held at a distance.
func (c *counts) nearAt(kind, d int) uint64 {
	return c.near[0][kind<<4|d] + c.near[1][kind<<4|d]
}
