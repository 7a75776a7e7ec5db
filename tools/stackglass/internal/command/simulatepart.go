package command

import (
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

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
