package command

import (
	"math"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// addRange makes the simulation count only the part of the run that --range selects. The references
// before the part are a warm-up.
func (s *simulation) addRange(a *app, name string, o pass.Options, to *simulate.Options) error {
	if s.part == "" {
		return nil
	}
	if s.r.firstSet("warmup") != "" {
		return usagef("--range and --warmup cannot be combined: with --range, all references before the part are the warm-up")
	}
	all := uint64(math.MaxUint64)
	if strings.Contains(s.part, "%") {
		var err error
		if all, err = s.countReferences(a, name, o); err != nil {
			return err
		}
	}
	first, end, err := ask.ParseRange(s.part, all)
	if err != nil {
		return asUsage(err)
	}
	s.counted = [2]uint64{uint64(math.Round(first)), all}
	to.Warmup, to.WarmupShare, to.Limit = s.counted[0], 0, 0
	if end < float64(all) {
		s.counted[1] = max(uint64(math.Round(end)), s.counted[0]+1)
		to.Limit = s.counted[1] - s.counted[0]
	}
	return nil
}

// countReferences reads the whole trace, and returns the number of references that the simulation
// will receive.
func (s *simulation) countReferences(a *app, name string, o pass.Options) (uint64, error) {
	if name == "-" {
		return 0, usagef("--range ", s.part, ": percentages need the number of references, which is unknown for a trace from standard input; give reference numbers, for example --range 2000000..5000000")
	}
	in, err := pass.Open(s.r.cmd.Context(), name, a.stdin)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if in.IsProfile {
		return 0, profileError(in.Name)
	}
	o.Spec.Analyses = analysis.None
	result, err := in.Analyze(s.r.cmd.Context(), o)
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
		return usagef("--range ", s.part, ": the part begins after the last reference: ", l.name, " has only ", plural(n, "reference"))
	}
	return nil
}

// rangeFacts returns facts about the part of the run that is counted.
func (s *simulation) rangeFacts(r simulate.Result) []report.Fact {
	if s.part == "" {
		return nil
	}
	return []report.Fact{
		{Key: "from_reference", Label: "from reference", Value: report.Count(s.counted[0])},
		{Key: "to_reference", Label: "to reference", Value: report.Count(s.counted[0] + r.References)},
	}
}
