package export

import (
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/tally"
	"github.com/stackglass/stackglass/core/trace"
)

// Question is what was asked about a hierarchy, and the answer.
type Question struct {
	Hierarchy hierarchy.Hierarchy
	Answer    hierarchy.ByCore
}

// Tables is all that a profile tells, each table under a key of its own: those
// of a line size end in it, as in curve_64. asked is nil where nobody asked about
// a hierarchy.
func Tables(p *profile.Profile, asked *Question) []report.Table {
	var tables []report.Table
	if len(p.Locality) > 0 {
		tables = append(tables, answers.Locality(p))
	}
	tables = append(tables, answers.Kinds(p))
	if asked != nil {
		tables = append(tables, answers.PredictedByCore(asked.Hierarchy, asked.Answer)...)
		if len(asked.Answer.Cores) > 0 {
			tables = append(tables, answers.CoreLevels(asked.Answer))
		}
	}
	for i := range p.Locality {
		l := &p.Locality[i]
		counts, cold := l.Histogram(trace.AllKinds)
		c := profile.NewCurve(counts, cold)
		for _, t := range [...]report.Table{answers.Histogram(counts, cold), answers.CurveAt(c, l.LineBytes, answers.Breakpoints(c)), answers.Windows(l), answers.Sets(l)} {
			if t.Key += "_" + strconv.FormatUint(uint64(l.LineBytes), 10); len(t.Rows) > 0 {
				tables = append(tables, t)
			}
		}
	}
	if p.Counters == nil {
		return tables
	}
	for _, t := range tally.Tables(p) {
		if t.Key == "memory" {
			t.Key = "memory_usage" // the hierarchy's memory has that name
		}
		tables = append(tables, t)
	}
	for _, by := range []tally.By{tally.Function, tally.Block} {
		if t := tally.Of(p.Counters, by, ""); len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}
