package analysis

import (
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// AppendError says why two results cannot be joined.
type AppendError struct{ What string }

func (e *AppendError) Error() string { return e.What }

func noProgram() *trace.Program { return nil }

// join makes analyses continue where a segment ends and append those that follow it. All
// analyses append a segment before the next one, because one may wait for another's part.
func join(analyses []member, first *profile.Profile, following ...*profile.Profile) (*profile.Profile, error) {
	joined := &profile.Profile{Input: first.Input, Totals: first.Totals, State: first.State, Segment: &profile.Segment{}}
	if first.Segment != nil {
		joined.Segment.Start = first.Segment.Start
	}
	for _, a := range analyses {
		if err := a.Restore(first); err != nil {
			return nil, err
		}
	}
	for _, next := range following {
		if next.Segment == nil || first.Segment == nil {
			return nil, &AppendError{"only segments can be joined"}
		}
		if next.Segment.Start != joined.Segment.Start+joined.Totals.AllReferences() {
			return nil, &AppendError{"a segment does not start where the one before it ends"}
		}
		for _, a := range analyses {
			if err := a.Append(next); err != nil {
				return nil, err
			}
		}
		joined.Totals = addTotals(joined.Totals, next.Totals)
		joined.Input.Header.Join(next.Input.Header)
	}
	for _, a := range analyses {
		a.Result(joined, true)
	}
	return joined, nil
}

func addTotals(a, b profile.Totals) profile.Totals {
	for k := range a.References {
		a.References[k] += b.References[k]
		a.Bytes[k] += b.Bytes[k]
	}
	a.Unselected += b.Unselected
	a.BadRecords += b.BadRecords
	if b.Threads != nil {
		a.Threads = append(slices.Clone(a.Threads), b.Threads...)
		slices.Sort(a.Threads)
		a.Threads = slices.Compact(a.Threads)
	}
	return a
}
