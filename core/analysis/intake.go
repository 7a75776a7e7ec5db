package analysis

import (
	"slices"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// intake reads a trace and keeps the rows that a spec selects.
type intake struct {
	want   Spec
	reader trace.Reader
	events trace.Kinds // kinds of events that the analyses read
	keep   []int32
	toSkip uint64 // number of references that must still be skipped
	// prologue follows the skipped rows; nil: it is not needed
	prologue contract.Prologue
	rows     uint64 // number of rows that the reader has delivered, including events
	bad      uint64 // number of bad records that the reader has found

	unselected uint64 // number of references of kinds or threads that are not selected
	tolerated  uint64 // number of bad records that were tolerated

	resumeRows, resumeBad uint64 // position at which a restored run resumes
}

// newIntake makes the reader deliver all references, and the events that the analyses read.
func newIntake(spec Spec, r trace.Reader, events trace.Kinds) intake {
	in := intake{want: spec, reader: r, events: events}
	if spec.Start == 0 {
		in.toSkip = spec.Skip
	}
	if s, ok := r.(trace.Selector); ok && events != 0 {
		s.Select(trace.AllKinds | events)
	}
	return in
}

// program returns the code that the trace's tables have described so far, or nil.
func (in *intake) program() *trace.Program {
	if d, ok := in.reader.(trace.Describer); ok {
		return d.Header().Program
	}
	return nil
}

// position is the position up to which a trace was read.
type position struct{ rows, bad, toSkip uint64 }

func (in *intake) position() position { return position{in.rows, in.bad, in.toSkip} }

// restore continues at a position: the method read will drop all rows before this position.
func (in *intake) restore(t *profile.Totals, at position) {
	in.unselected, in.tolerated = t.Unselected, t.BadRecords
	in.resumeRows, in.resumeBad, in.toSkip = at.rows, at.bad, at.toSkip
}

// omitted returns the number of references that were not selected so far, and the number of
// tolerated bad records.
func (in *intake) omitted() profile.Totals {
	return profile.Totals{Unselected: in.unselected, BadRecords: in.tolerated}
}

// isDone reports whether the limit has been reached.
func (in *intake) isDone(analysed uint64) bool {
	return in.want.Limit > 0 && in.want.Start+analysed >= in.want.Limit
}

// read replaces the rows of b with the selected rows of the next batch, if any. The result mixed is
// true if b may contain events.
func (in *intake) read(b *trace.Batch, analysed uint64) (mixed bool, err error) {
	if err := in.reader.Next(b); err != nil {
		return false, in.tolerate(err)
	}
	before := in.rows
	in.rows += uint64(b.Len())
	if before < in.resumeRows {
		if in.rows <= in.resumeRows {
			b.Resize(0)
			return false, nil
		}
		b.Slice(int(in.resumeRows-before), b.Len())
	}
	mixed = in.selectRows(b, analysed)
	return mixed, in.selectPart(b, mixed, analysed)
}

// tolerate returns nil if err reports a bad record that the spec tolerates.
func (in *intake) tolerate(err error) error {
	if !trace.IsSyntax(err) {
		return err
	}
	in.bad++
	if in.bad <= in.resumeBad {
		return nil
	}
	if in.tolerated >= in.want.SkipBad {
		return err
	}
	in.tolerated++
	return nil
}

// selectRows keeps the rows of the chosen kinds and threads, and the events of these threads. If
// threads are chosen, rows without a thread are dropped.
func (in *intake) selectRows(b *trace.Batch, analysed uint64) (mixed bool) {
	others := trace.Kinds(0)
	for _, k := range b.Kind {
		others |= 1 << (k & 31)
	}
	mixed = others&trace.EventKinds != 0
	byThread := in.want.Threads != nil
	if others&^(in.want.Kinds|in.events) == 0 && !byThread {
		return mixed
	}
	if in.keep == nil {
		in.keep = make([]int32, 0, b.Cap())
	}
	room := in.remaining(analysed)
	keep, references, seen := in.keep[:0], uint64(0), uint64(0)
	for i, k := range b.Kind {
		if references == room {
			break // rows after the limit are not counted
		}
		chosen := !byThread || b.Thread != nil && slices.Contains(in.want.Threads, b.Thread[i])
		if !k.IsReference() {
			if chosen && in.events.Has(k) {
				keep = append(keep, int32(i))
			}
			continue
		}
		seen++
		if chosen && in.want.Kinds.Has(k) {
			keep = append(keep, int32(i))
			references++
		}
	}
	in.unselected += seen - references
	b.Select(keep)
	return mixed
}

// remaining returns the number of references up to the limit, including the references that are
// still to be skipped.
func (in *intake) remaining(analysed uint64) uint64 {
	if in.want.Limit == 0 {
		return ^uint64(0)
	}
	left := in.want.Limit - in.want.Start - analysed
	return in.toSkip + min(left, ^in.toSkip) // avoids an overflow
}

// selectPart applies Skip and Limit, which are numbers of references. selectPart keeps the rows
// after the last skipped reference, up to the last reference within the limit, and drops all other
// rows, including events. The prologue follows the skipped rows.
func (in *intake) selectPart(b *trace.Batch, mixed bool, analysed uint64) error {
	if in.toSkip == 0 && (in.want.Limit == 0 || !mixed && uint64(b.Len()) <= in.remaining(analysed)) {
		return nil
	}
	room := in.remaining(analysed)
	lo, hi, references := 0, 0, uint64(0)
	if mixed {
		for hi < b.Len() && references < room {
			before := references
			if hi++; b.Kind[hi-1].IsReference() {
				references++
			}
			if before < in.toSkip {
				lo = hi
			}
		}
	} else {
		references = min(uint64(b.Len()), room)
		lo, hi = int(min(in.toSkip, references)), int(references)
	}
	if in.toSkip > 0 && in.prologue != nil {
		if err := in.prologue.Follow(b, lo); err != nil {
			return err
		}
		if references >= in.toSkip {
			if err := in.prologue.End(); err != nil {
				return err
			}
		}
	}
	in.toSkip -= min(in.toSkip, references)
	b.Slice(lo, hi)
	return nil
}
