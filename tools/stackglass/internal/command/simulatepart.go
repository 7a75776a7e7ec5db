package command

import (
	"math"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// addRange makes the simulation count only the part of the run that --range selects. The references
// before the part are a warm-up.
func (s *simulation) addRange(a *app, name string, o pass.Options, to *simulate.Options) error {
	if s.r.firstSet("range") == "" {
		return nil
	}
	if s.r.firstSet("warmup") != "" {
		return usagef("--range and --warmup cannot be combined: with --range, all references before the part are the warm-up")
	}
	first, end, all, err := a.partOf(s.r, s.part, name, o)
	if err != nil {
		return err
	}
	s.counted = [2]uint64{first, all}
	to.Warmup, to.WarmupShare, to.Limit = first, 0, 0
	if end < all {
		s.counted[1] = end
		to.Limit = end - first
	}
	return nil
}

// partOf returns the references [first, end) that a value of --range selects. The result all is the
// number of references that the trace contains, or MaxUint64 if it is not needed. If the part ends
// with the trace, end is at least all.
func (a *app) partOf(r *readOptions, part, name string, o pass.Options) (first, end, all uint64, err error) {
	all = math.MaxUint64
	if strings.Contains(part, "%") {
		if all, err = a.countReferences(r, part, name, o); err != nil {
			return 0, 0, 0, err
		}
	}
	from, to, err := ask.ParseRange(part, all)
	if err != nil {
		return 0, 0, 0, asUsage(err)
	}
	if first, end = uint64(math.Round(from)), all; to < float64(all) {
		end = max(uint64(math.Round(to)), first+1)
	}
	return first, end, all, nil
}

// countReferences reads the whole trace, and returns the number of references that an analysis with
// the given options receives.
func (a *app) countReferences(r *readOptions, part, name string, o pass.Options) (uint64, error) {
	if name == "-" {
		return 0, usagef("--range ", part, ": percentages need the number of references, which is unknown for a trace from standard input; give reference numbers, for example --range 2000000..5000000")
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if in.IsProfile {
		return 0, profileError(in.Name)
	}
	o.Spec.Analyses = analysis.None
	result, err := in.Analyze(r.cmd.Context(), o)
	if err != nil {
		return 0, err
	}
	return result.Profile.Totals.AllReferences(), nil
}

// profileError returns the error for an input that is a profile.
func profileError(name string) error {
	return usagef(name, " is a profile, but a simulation needs the trace; with a profile, run: stackglass what-if ", name)
}

// checkRange returns an error if the part of the run that --range selects begins after the last
// reference.
func (s *simulation) checkRange(l *loadedFile) error {
	if n := l.Profile.Totals.AllReferences(); s.part != "" && s.counted[0] >= n {
		return emptyPart(s.part, l.name, n)
	}
	return nil
}

// emptyPart returns the error for a value of --range that selects no references.
func emptyPart(part, name string, references uint64) error {
	return usagef("--range ", part, ": the part begins after the last reference: ", name, " has only ", plural(references, "reference"))
}

// addRegion makes the simulation count only the references in the marked regions that --region
// selects. The function program returns the program that the trace describes.
func (s *simulation) addRegion(to *simulate.Options, program func() *trace.Program) error {
	if s.region == "" {
		return usagef("--region: the name is empty; give the name of a marked region")
	}
	if option := s.r.firstSet("range", "warmup"); option != "" {
		return usagef("--region and --", option, " cannot be combined: with --region, all references outside the regions only fill the caches")
	}
	if s.r.skip > 0 {
		return usagef("--region cannot be combined with skipped references, because a region can begin in the skipped part; omit --skip and skip_refs")
	}
	to.Warmup, to.WarmupShare, to.Limit = 0, 0, 0
	to.Region = func(tag trace.Addr) bool {
		p := program()
		return p != nil && tag < uint64(len(p.Tags)) && p.Tags[tag] == s.region
	}
	return nil
}

// checkRegion returns an error if the trace has no marked region with the name that --region
// selects.
func (s *simulation) checkRegion(l *loadedFile) error {
	r := l.Profile.Regions
	switch {
	case s.region == "" || r != nil && r.TooMany:
		return nil
	case r == nil || len(r.List) == 0:
		return usagef("--region ", s.region, ": ", l.name, " has no marked regions; to mark a region, call stackglass_begin and stackglass_end (stackglass.h) and record the program with stackglass cc")
	}
	var names []string
	for i := range r.List {
		names = append(names, r.List[i].Name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); slices.Contains(names, s.region) {
		return nil
	}
	return usagef("--region ", s.region, ": ", l.name, " has no region with this name; the regions are ", strings.Join(names, ", "))
}

// rangeFacts returns facts about the part of the run, or the regions, that are counted.
func (s *simulation) rangeFacts(r simulate.Result) []report.Fact {
	switch {
	case s.region != "":
		return []report.Fact{
			{Key: "region", Label: "region", Value: report.TextOf(s.region)},
			{Key: "counted_references", Label: "references in the region", Value: report.Count(r.References)},
		}
	case s.part == "":
		return nil
	}
	return []report.Fact{
		{Key: "from_reference", Label: "from reference", Value: report.Count(s.counted[0])},
		{Key: "to_reference", Label: "to reference", Value: report.Count(s.counted[0] + r.References)},
	}
}
