// Package footprint measures the average footprint of a run: the average number of distinct lines
// in a window, as a function of the window's length (MODELS §2.1). The package counts the intervals
// between accesses to the same line. [profile.Footprint] computes the average footprint from these
// counts.
//
// The footprint analysis has the least code of all analyses, and can serve as an example for new
// analyses. The analysis reads every record in order and therefore needs no code for joining
// segments: see [contract.RowAppender].
package footprint

import (
	"errors"
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis measures the footprint for one line size. Use [New] to create one; the zero value is not
// usable.
type Analysis struct {
	shift  uint
	found  profile.Footprint // the footprint so far, without the intervals after the last access to each line
	number index.Table       // indices of lines, in the order of first accesses
	lines  []lastAccess
}

// lastAccess is the last access to a line. Accesses are numbered from 1.
type lastAccess struct{ line, at uint64 }

var (
	_ contract.Analysis      = (*Analysis)(nil)
	_ contract.RowAppender   = (*Analysis)(nil)
	_ contract.PieceConsumer = (*Analysis)(nil)
)

// New returns an analysis for a line size in bytes, which must be a power of two.
func New(lineBytes uint32) *Analysis {
	return &Analysis{shift: uint(bits.TrailingZeros32(lineBytes)), found: profile.Footprint{LineBytes: lineBytes}}
}

// Takes implements [contract.Analysis]. The analysis reads only references.
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) { return 0, false, false }

// Consume processes the next references. For each access, it measures the interval since the
// previous access to the same line.
func (a *Analysis) Consume(b *trace.Batch) error {
	for i, kind := range b.Kind {
		if kind.IsReference() {
			a.touch(b.Addr[i], uint64(b.Bytes[i]))
		}
	}
	return nil
}

// ConsumePiece does the same as Consume for a piece of a large reference.
func (a *Analysis) ConsumePiece(b *trace.Batch, from, end uint64) {
	a.touch(b.Addr[0]+from, end-from)
}

// touch records one access to each line that contains any of the given bytes. A reference of zero
// bytes accesses one line.
func (a *Analysis) touch(from trace.Addr, bytes uint64) {
	last := (from + max(bytes, 1) - 1) >> a.shift
	for line := from >> a.shift; ; line++ {
		a.access(line)
		if line == last {
			return
		}
	}
}

func (a *Analysis) access(line uint64) {
	a.found.Accesses++
	now := a.found.Accesses
	n, known := a.number.Find(line)
	if !known {
		a.number.Add(line, uint32(len(a.lines)))
		a.lines = append(a.lines, lastAccess{line, now})
		a.found.Absent(now-1, 1)
		return
	}
	a.found.Absent(now-1-a.lines[n].at, 1)
	a.lines[n].at = now
}

// Result writes the footprint. For each line, Result includes the interval between the last access
// and the end of the run.
func (a *Analysis) Result(p *profile.Profile, state bool) {
	f := a.found
	f.Absences = append([]profile.Absences{}, f.Absences...)
	f.Lines = uint64(len(a.lines))
	for _, l := range a.lines {
		f.Absent(f.Accesses-l.at, 1)
	}
	p.Footprint = &f
	if state {
		w := codec.Writer(nil)
		codeLines(w, &a.lines)
		p.Segment.LastUses = w.Out
	}
}

// codeLines reads or writes lines in the order of their first accesses.
func codeLines(c *codec.Coder, lines *[]lastAccess) {
	before := uint64(0)
	codec.Slice(c, lines, 2, func(l *lastAccess) {
		c.Near(&l.line, &before)
		c.U64(&l.at)
	})
}

// Close frees the table of lines.
func (a *Analysis) Close() { a.number = index.Table{} }

var errState = errors.New("the footprint in the checkpoint is damaged; analyse the trace again from its start")

// Restore continues a saved run. For each line, Result has counted the interval between the last
// access and the end of the run. Restore removes these intervals from the counts.
func (a *Analysis) Restore(p *profile.Profile) error {
	if p.Footprint.Check() != nil || p.Footprint == nil || p.Footprint.LineBytes != a.found.LineBytes {
		return errState
	}
	a.found = *p.Footprint
	a.found.Absences = append([]profile.Absences{}, a.found.Absences...)
	r := codec.Reader(p.Segment.LastUses)
	codeLines(r, &a.lines)
	if r.Failed() || r.More() || uint64(len(a.lines)) != a.found.Lines {
		return errState
	}
	for i, l := range a.lines {
		if _, again := a.number.Find(l.line); again || l.at == 0 || l.at > a.found.Accesses {
			return errState
		}
		a.number.Add(l.line, uint32(i))
		a.found.Absent(a.found.Accesses-l.at, -1)
	}
	for _, left := range a.found.Absences {
		if left.Count > 2*a.found.Accesses {
			return errState // the subtracted intervals exceed the total
		}
	}
	return nil
}

// Append does nothing, because AppendRows receives the rows of the segment.
func (a *Analysis) Append(*profile.Profile) error { return nil }

// Reads implements [contract.RowAppender].
func (a *Analysis) Reads() bool { return true }

// AppendRows consumes the rows of a segment.
func (a *Analysis) AppendRows(b *trace.Batch) error { return a.Consume(b) }
