package analysis

import (
	"cmp"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/sharing"
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
	if err := spec.askSharing(a, b); err != nil {
		return nil, err
	}
	if !spec.isDefault() && (a.Segment.Communication != nil || b.Segment.Communication != nil) {
		spec.Analyses |= Communication
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
	spec.askSites(a, b)
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
func join(analyses []Analysis, a, b, joined *profile.Profile) error {
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
	if a.Loops != nil || b.Loops != nil {
		return &AppendError{"profiles with loops cannot be joined"}
	}
	if a.Sampled != nil || b.Sampled != nil {
		return &AppendError{"profiles of samples cannot be joined"}
	}
	if b.Segment.Start != a.Segment.Start+a.Totals.AllReferences() {
		return &AppendError{"the second segment does not start where the first one ends"}
	}
	same := sameAnalyses(a, b) && a.Input.Kinds == b.Input.Kinds && a.Input.Skip == b.Input.Skip && a.Input.Limit == b.Input.Limit &&
		slices.Equal(a.Input.Threads, b.Input.Threads) && a.Input.Header.Format == b.Input.Header.Format &&
		sameSites(a, b) && sameSharing(a, b) &&
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

// sameAnalyses reports whether the same analyses were made. That of sites leaves
// nothing where there was nothing to analyse.
func sameAnalyses(a, b *profile.Profile) bool {
	differ := analysesOf(a) ^ analysesOf(b)
	if !hasReferences(a) || !hasReferences(b) {
		differ &^= Sites
	}
	return differ == 0
}

// sameSites reports whether sites were analysed alike, or in one of both there
// was nothing to analyse.
func sameSites(a, b *profile.Profile) bool {
	if a.Sites == nil || b.Sites == nil {
		return a.Sites == b.Sites || !hasReferences(a) || !hasReferences(b)
	}
	return a.Sites.LineBytes == b.Sites.LineBytes && a.Sites.Previous == b.Sites.Previous && slices.Equal(a.Sites.Capacities, b.Sites.Capacities) &&
		slices.Equal(a.Sites.Ways, b.Sites.Ways)
}

// sameSharing reports whether sharing was analysed alike, or in one of both there was
// nothing to analyse.
func sameSharing(a, b *profile.Profile) bool {
	if !hasReferences(a) || !hasReferences(b) {
		return true
	}
	if a.Segment.Sharing == nil || b.Segment.Sharing == nil {
		return a.Segment.Sharing == nil && b.Segment.Sharing == nil
	}
	cores, domains, err := sharing.Groups(a.Segment.Sharing)
	otherCores, otherDomains, otherErr := sharing.Groups(b.Segment.Sharing)
	same := func(x, y [][]uint32) bool { return slices.EqualFunc(x, y, slices.Equal[[]uint32]) }
	return err == nil && otherErr == nil && same(cores, otherCores) && same(domains, otherDomains)
}

// askSites has a spec ask for sites as the segments did.
func (s *Spec) askSites(a, b *profile.Profile) {
	of := a.Sites
	if of == nil {
		of = b.Sites
	}
	if of == nil {
		return
	}
	s.Previous, s.UtilisationWays = of.Previous, of.Ways
	for _, lines := range of.Capacities {
		s.Utilisation = append(s.Utilisation, lines*uint64(of.LineBytes))
	}
}

// askSharing has a spec ask for sharing as the segments did.
func (s *Spec) askSharing(a, b *profile.Profile) (err error) {
	state := a.Segment.Sharing
	if state == nil {
		state = b.Segment.Sharing
	}
	if state == nil {
		return nil
	}
	if !s.isDefault() {
		s.Analyses |= Sharing
	}
	s.Cores, s.Domains, err = sharing.Groups(state)
	return err
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
		slices.Sort(a.Threads)
		a.Threads = slices.Compact(a.Threads)
	}
	return a
}
