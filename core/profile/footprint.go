package profile

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/codec"
)

// Footprint contains the data from which the mean number of distinct lines in a window of any
// length is computed (MODELS §2.1). Lengths are numbers of line accesses.
//
// A window does not contain a line if the whole window lies between two successive accesses to the
// line, before the first access, or after the last access. The mean number of lines therefore
// depends only on the lengths of these intervals, which are called absences (Xiang et al., PACT
// 2011).
type Footprint struct {
	LineBytes uint32
	Accesses  uint64 // number of line accesses of the run
	Lines     uint64 // number of distinct lines
	// Absences contains the absences of all lines, by length. Absences[i] counts the lengths from
	// FootprintWindow(i) up to, but not including, FootprintWindow(i+1). The last element is not
	// empty.
	Absences []Absences
}

// Absences is a number of absences and the sum of their lengths.
type Absences struct{ Count, Sum uint64 }

// footprintWindows is the number of window lengths. The longest window has 2^63 accesses.
const footprintWindows = 126

// FootprintWindow returns the length of window i. The lengths are 1, 2, 3, 4, 6, 8, 12, 16, and so
// on, two for each power of two. [Footprint.Average] is exact for these lengths.
func FootprintWindow(i int) uint64 {
	if i == 0 {
		return 1
	}
	return (2 + uint64(i-1)%2) << ((i - 1) / 2)
}

// Absent adds the given number of absences, all of the given length. A negative number removes
// absences.
func (f *Footprint) Absent(length uint64, count int64) {
	if length == 0 {
		return
	}
	i := 0
	if log := bits.Len64(length) - 1; log > 0 {
		i = 2*log - 1 + int(length>>(log-1)&1)
	}
	for len(f.Absences) <= i {
		f.Absences = append(f.Absences, Absences{})
	}
	a := &f.Absences[i]
	a.Count, a.Sum = a.Count+uint64(count), a.Sum+uint64(count)*length
	for n := len(f.Absences); n > 0 && f.Absences[n-1].Count == 0; n-- {
		f.Absences = f.Absences[:n-1]
	}
}

// Average returns two numbers: the mean number of distinct lines in a window of FootprintWindow(i)
// accesses, and the growth of this mean, which is the mean number of lines that the next access
// adds. The growth predicts the miss ratio of a fully associative LRU cache whose capacity equals
// the mean number of lines (Xiang et al., ASPLOS 2013). The window must be shorter than the run.
func (f *Footprint) Average(i int) (lines, growth float64) {
	w := FootprintWindow(i)
	var longer Absences
	for _, a := range f.Absences[min(i, len(f.Absences)):] {
		longer.Count, longer.Sum = longer.Count+a.Count, longer.Sum+a.Sum
	}
	absent := float64(longer.Sum-longer.Count*(w-1)) / float64(f.Accesses-w+1)
	next := float64(longer.Sum-longer.Count*w) / float64(f.Accesses-w)
	return float64(f.Lines) - absent, absent - next
}

func (f *Footprint) code(c *coder) {
	c.U32(&f.LineBytes)
	c.U64s(&f.Accesses, &f.Lines)
	codec.Bounded(c.Coder, &f.Absences, footprintWindows, func(a *Absences) { c.U64s(&a.Count, &a.Sum) })
}

func (f *Footprint) check(*Profile) error { return f.Check() }

// Check returns an error if no run can have these counts.
func (f *Footprint) Check() error {
	if f == nil {
		return nil
	}
	sum, most := uint64(0), f.Accesses+2*f.Lines
	ok := ValidLineBytes(f.LineBytes) && f.Lines <= f.Accesses && f.Accesses < 1<<63
	for i, a := range f.Absences {
		least, next := FootprintWindow(i), FootprintWindow(i+1)
		if a.Count == 0 {
			ok = ok && a.Sum == 0 && i < len(f.Absences)-1
		} else {
			ok = ok && a.Count <= most && least <= f.Accesses && a.Sum/a.Count >= least && (a.Sum-1)/a.Count < next
		}
		sum += a.Sum
	}
	// At every access, all lines except the accessed line are absent, so the lengths of all
	// absences add up to Accesses × (Lines - 1).
	if !ok || sum != f.Accesses*(f.Lines-1) && f.Accesses > 0 {
		return &CheckError{"the counts of the footprint are not consistent"}
	}
	return nil
}
