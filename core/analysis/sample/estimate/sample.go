package estimate

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// sampler chooses accesses and determines their distances.
type sampler interface {
	// sample processes the next line accesses, at most maxLines: it counts the hits in the front,
	// appends the sampled accesses beyond the front to c.taken, and returns the number of all
	// accesses beyond the front.
	sample(lines []trace.Line, kinds []trace.Kind, c *counts) (beyond uint64)
	// weight returns the number of accesses that a sampled access represents, up to a constant
	// factor.
	weight() uint64
	group(line trace.Line) int
	// describe sets the fields of s that only the sampler knows. The results are the number of open
	// samples by kind, and the factor that converts weights to numbers of accesses. If the factor
	// is 0, the caller must scale the weights such that their sum is the number of all accesses.
	describe(s *profile.SampledSize) (factor float64, open [trace.NumKinds]uint64)
	// deviation returns the relative standard deviation of an estimated distance.
	deviation(distance float64) float64
	code(c *codec.Coder)
}

// Analysis estimates the result of package locality from a sample, for one or several line sizes.
type Analysis struct {
	options sample.Options
	sizes   []*lineSize
	done    uint64 // number of references that have been analysed
}

func init() { sample.NewLocality, sample.NewFollowers = newLocality, followers }

func sampledOf(o sample.Options) *profile.Sampled {
	return &profile.Sampled{Mode: o.Mode, Seed: o.Seed, Threshold: o.Threshold, MostLines: o.Lines, Gap: o.Gap, On: o.On, Period: o.Period}
}

func optionsOf(s *profile.Sampled) sample.Options {
	return sample.Options{Mode: s.Mode, Threshold: s.Threshold, Lines: s.MostLines, Gap: s.Gap, On: s.On, Period: s.Period, Seed: s.Seed}
}

// newLocality returns the analysis: see [analysis.Sampling].
func newLocality(o sample.Options, lineBytes []uint32) analysis.SampledLocality {
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

// Takes implements [contract.Analysis].
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return 0, false, false }

// Close implements [contract.Analysis].
func (a *Analysis) Close() {}

// Lines returns the estimated number of distinct lines so far, at the smallest line size.
func (a *Analysis) Lines() uint64 {
	var s profile.SampledSize
	factor, _ := a.sizes[0].sampler.describe(&s)
	return uint64(float64(s.Lines) * max(factor, 1))
}

// Consume implements [contract.Analysis].
func (a *Analysis) Consume(b *trace.Batch) error {
	locality.EachWindow(b.Len(), a.done, func(lo, hi int, reference, size uint64) {
		for _, s := range a.sizes {
			s.appendRow(reference, size)
			s.Each(b, lo, hi, func(_, n int, kinds []trace.Kind, _ []uint32) { s.settle(n, kinds) })
		}
	})
	a.done += uint64(b.Len())
	return nil
}

// ConsumePiece implements contract.PieceConsumer.
func (a *Analysis) ConsumePiece(b *trace.Batch, from, end uint64) {
	if from == 0 {
		a.done++
	}
	addrs, sizes := []trace.Addr{b.Addr[0] + from}, []uint32{uint32(end - from)}
	for _, s := range a.sizes {
		s.appendRow(a.done-1, profile.WindowSize(a.done))
		s.Split(addrs, sizes, b.Kind, func(n int, kinds []trace.Kind, _ []uint32) { s.settle(n, kinds) })
	}
}

const (
	maxLines  = locality.MaxLines
	kindSlots = 8 // a power of two ≥ trace.NumKinds, so that masks replace bounds checks
	outOf     = profile.SiteBins
)

// nearCounts counts the accesses of kind k that hit in the front at distance d, at index k<<4 | d.
// Even and odd accesses use different counters, because otherwise an increment of a counter often
// has to wait for the previous store to the same counter.
type nearCounts [2][kindSlots * frontLines]uint64

// counts contains the counts for one line size.
type counts struct {
	near   nearCounts
	beyond [kindSlots]uint64 // number of all accesses beyond the front, whether or not they are in the sample
	deep   [trace.NumKinds]profile.Histogram
	cold   [trace.NumKinds]uint64

	taken   []sampledAccess // the sampled accesses of the current call
	samples uint64
	spread  [groups][outOf + 1]uint64 // weights by group and profile.SiteBin; the last element counts cold accesses
}

// sampledAccess is a sampled access. Its distance may be stack.Cold.
type sampledAccess struct {
	line     trace.Line
	weight   uint64 // number of accesses that the sampled access represents, divided by the sampler's factor
	distance uint32
	kind     trace.Kind
}

type lineSize struct {
	locality.Splitter
	sampler sampler
	front   uint32 // all distances below this limit are exact: frontLines, or 0
	counts
	windows windows
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

func (s *lineSize) count(x *sampledAccess, row *row) {
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

// nearAt returns the number of hits in the front at distance d, for one kind of access.
func (c *counts) nearAt(kind, d int) uint64 {
	return c.near[0][kind<<4|d] + c.near[1][kind<<4|d]
}

// windows contains the counts for each window of the run: see profile.Windows.
type windows struct {
	References uint64
	rows       []row
	counted    [frontLines]uint64 // number of hits that are in both counts.near and the rows
}

// row contains the counts of one window: the number of accesses beyond the front, a histogram of
// the hits in the front, and a histogram of the sampled accesses.
type row struct {
	beyond       uint64
	near, sample profile.WindowRow
}

func (w *windows) last() *row { return &w.rows[len(w.rows)-1] }

// appendRow appends a row if the given reference lies in a new window. The last row then belongs to
// the window that contains the reference. The parameter size is the number of references in a
// window.
func (s *lineSize) appendRow(reference, size uint64) {
	w := &s.windows
	if w.References >= size && uint64(len(w.rows)) > reference/w.References {
		return
	}
	s.closeRow()
	for w.References < size {
		w.coarsen()
	}
	if uint64(len(w.rows)) <= reference/w.References {
		w.rows = append(w.rows, row{})
	}
}

// coarsen joins neighbouring windows in pairs.
func (w *windows) coarsen() {
	for i := range w.rows {
		from := w.rows[i]
		if i%2 == 0 {
			w.rows[i/2] = from
			continue
		}
		to := &w.rows[i/2]
		to.beyond += from.beyond
		for bin := range from.near {
			to.near[bin] += from.near[bin]
			to.sample[bin] += from.sample[bin]
		}
	}
	w.rows = w.rows[:(len(w.rows)+1)/2]
	w.References *= 2
}

// closeRow completes the last row: it adds the hits in the front since the previous row was
// completed.
func (s *lineSize) closeRow() {
	for d := range frontLines {
		sum := uint64(0)
		for k := range trace.NumKinds {
			sum += s.nearAt(k, d)
		}
		if since := sum - s.windows.counted[d]; since != 0 {
			s.windows.last().near[profile.DistanceBin(uint64(d))] += since
			s.windows.counted[d] = sum
		}
	}
}
