package analysis

import (
	"strings"

	"github.com/stackglass/stackglass/core/analysis/counters"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Analyses is a set of analyses; 0 stands for [Default].
type Analyses uint32

// The analyses.
const (
	Locality    Analyses = 1 << iota // stack distances
	Counters                         // operations, bytes, and how often each byte is accessed
	allAnalyses = 1<<iota - 1
)

// Default are the analyses that run unless others are asked for: locality, and
// of the counters those that cost little, where the trace tells instructions.
// How often each byte is accessed is left out.
const Default Analyses = 0

// None are no analyses: a pass only counts, and feeds what stands beside it.
const None Analyses = 1 << 31

var analysisNames = []string{"locality", "counters"}

// AnalysisNames lists the names that [ParseAnalyses] takes.
func AnalysisNames() []string { return analysisNames }

// String lists the names, comma-separated; default stands for [Default].
func (a Analyses) String() string {
	if a == Default {
		return "default"
	}
	var names []string
	for i, name := range analysisNames {
		if a>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseAnalyses reads a comma-separated list of names, or default.
func ParseAnalyses(list string) (Analyses, error) {
	var set Analyses
next:
	for _, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		for i, name := range analysisNames {
			if word == name {
				set |= 1 << i
				continue next
			}
		}
		if word != "default" || strings.Contains(list, ",") {
			return 0, &trace.OptionError{Option: "analyses", Got: word, Want: strings.Join(analysisNames, ", ") + ", separated by commas, or default"}
		}
	}
	return set, nil
}

// table is every analysis that the spec asks for, in the order of their
// sections. program gives what the trace has told so far of its code, or nil.
func table(s Spec, program func() *trace.Program) (list []Analysis) {
	if s.Analyses == Default || s.Analyses&Locality != 0 {
		list = append(list, locality.New(s.LineBytes, s.Start, s.Mergeable))
	}
	if s.Analyses == Default || s.Analyses&Counters != 0 {
		list = append(list, counters.New(s.Kinds, s.Analyses == Default, program))
	}
	return list
}

// analysesOf are the analyses whose results a profile holds.
func analysesOf(p *profile.Profile) Analyses {
	switch {
	case p.Counters == nil || !p.Counters.Touched:
		return Default
	case len(p.Locality) == 0:
		return Counters
	}
	return Locality | Counters
}
