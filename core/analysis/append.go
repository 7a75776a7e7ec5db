package analysis

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// AppendError says why two results cannot be joined.
type AppendError struct{ What string }

func (e *AppendError) Error() string { return e.What }

// Append joins two mergeable profiles, which are not changed: a, and the segment b that follows
// it. The result equals the profile of the whole, bit for bit, and can be appended to in turn
// (MODELS §9).
func Append(a, b *profile.Profile) (*profile.Profile, error) {
	if err := follows(a, b); err != nil {
		return nil, err
	}
	spec := Spec{Kinds: a.Input.Kinds, Mergeable: true, Start: a.Segment.Start, Analyses: analysesOf(a)}
	if !hasReferences(a) {
		spec.Analyses = analysesOf(b)
	}
	for i := range a.Locality {
		spec.LineBytes = append(spec.LineBytes, a.Locality[i].LineBytes)
	}
	for i := range registered {
		if ask := registered[i].ask; ask != nil {
			if err := ask(&spec, a, b); err != nil {
				return nil, err
			}
		}
	}
	joined, err := join(table(spec, hasSets(a), noProgram), a, b)
	if err != nil {
		return nil, err
	}
	if !a.State.Partial {
		joined.State = b.State
	}
	if joined.Communication == nil {
		joined.NoCommunication = cmp.Or(a.NoCommunication, b.NoCommunication)
	}
	return joined, nil
}

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

// follows checks that b is the segment that follows a, analysed with the same options.
func follows(a, b *profile.Profile) error {
	if !mergeable(a) || !mergeable(b) {
		return &AppendError{"only profiles made with --mergeable can be joined"}
	}
	for i := range registered {
		if r := &registered[i]; r.inOrder != "" && (r.found(a) || r.found(b)) {
			return &AppendError{"profiles with " + r.name + " cannot be joined"}
		}
	}
	if a.Sampled != nil || b.Sampled != nil {
		return &AppendError{"profiles of samples cannot be joined"}
	}
	if b.Segment.Start != a.Segment.Start+a.Totals.AllReferences() {
		return &AppendError{"the second segment does not start where the first one ends"}
	}
	same := analysesOf(a) == analysesOf(b) && a.Input.Kinds == b.Input.Kinds && a.Input.Skip == b.Input.Skip && a.Input.Limit == b.Input.Limit &&
		slices.Equal(a.Input.Threads, b.Input.Threads) && a.Input.Header.Format == b.Input.Header.Format &&
		alike(a, b) &&
		slices.EqualFunc(a.Locality, b.Locality, func(x, y profile.Locality) bool {
			return x.LineBytes == y.LineBytes && (x.Sets == nil) == (y.Sets == nil)
		})
	if !same {
		return &AppendError{"the segments were analysed with different options (analyses, kinds, threads, part of the trace or line sizes)"}
	}
	return nil
}

func hasReferences(p *profile.Profile) bool { return p.Totals.AllReferences() > 0 }

// alike reports whether every analysis was made with the same options in both segments.
func alike(a, b *profile.Profile) bool {
	return !slices.ContainsFunc(registered, func(r registration) bool { return r.alike != nil && !r.alike(a, b) })
}

// mergeable reports whether p was made to be joined. Other saved runs lack the first touches.
func mergeable(p *profile.Profile) bool {
	return p.Segment != nil && (p.Segment.Touched != nil || p.Counters == nil || !p.Counters.Touched) && !slices.ContainsFunc(p.Segment.Lines, func(l profile.SegmentLines) bool {
		return len(l.FirstTouches) != len(l.Stack)
	})
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
