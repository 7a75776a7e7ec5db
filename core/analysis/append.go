package analysis

import (
	"cmp"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// AppendError tells why two results cannot be joined.
type AppendError struct{ What string }

func (e *AppendError) Error() string { return e.What }

// Append joins two mergeable profiles: a's trace, and the segment b that follows
// it. The result equals the profile of the whole, bit for bit, however the
// trace was split, and can be appended to in turn (MODELS §9). a and b are not
// changed.
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
	joined := &profile.Profile{
		Input:   a.Input,
		Totals:  addTotals(a.Totals, b.Totals),
		State:   b.State,
		Segment: &profile.Segment{Start: a.Segment.Start},
	}
	joined.Input.Header.Join(b.Input.Header)
	if a.State.Partial {
		joined.State = a.State
	}
	noProgram := func() *trace.Program { return nil }
	if err := join(table(spec, hasSets(a), noProgram), a, b, joined); err != nil {
		return nil, err
	}
	if joined.Communication == nil {
		joined.NoCommunication = cmp.Or(a.NoCommunication, b.NoCommunication)
	}
	return joined, nil
}

// join has analyses go on where a ends and append b. They go in step, because one
// may wait for another's part.
func join(analyses []member, a, b, joined *profile.Profile) error {
	for _, analysis := range analyses {
		if err := analysis.Restore(a); err != nil {
			return err
		}
	}
	for _, analysis := range analyses {
		if err := analysis.Append(b); err != nil {
			return err
		}
	}
	for _, analysis := range analyses {
		analysis.Result(joined, true)
	}
	return nil
}

// follows tests that b is the segment behind a, made with the same options.
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

// hasReferences tells whether there was anything to analyse.
func hasReferences(p *profile.Profile) bool { return p.Totals.AllReferences() > 0 }

// alike reports whether every analysis was made with the same options in both segments.
func alike(a, b *profile.Profile) bool {
	return !slices.ContainsFunc(registered, func(r registration) bool { return r.alike != nil && !r.alike(a, b) })
}

// mergeable reports whether p was made to be joined. A saved run that was not
// has the stack too, but not the first touches.
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
		sort.Slice(a.Threads, func(i, j int) bool { return a.Threads[i] < a.Threads[j] })
		a.Threads = slices.Compact(a.Threads)
	}
	return a
}
