package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/chart"
)

// plotted is a verb that can draw its answer into files.
func (a *app) plotted(v *ask.Verb, draw func(l *answerable, line uint32, counts *profile.Histogram, cold uint64) (*chart.Chart, error)) *cobra.Command {
	return a.verb(v, func(cmd *cobra.Command, o *asking) {
		var plots plotFiles
		plots.add(cmd)
		o.then = func(l *answerable, q ask.Question, _ *report.Document) error {
			counts, cold := l.Profile.LocalityAt(q.Line()).Histogram(trace.AllKinds)
			return plots.save(func() (*chart.Chart, error) { return draw(l, q.Line(), counts, cold) })
		}
	})
}

func (a *app) histogram() *cobra.Command {
	return a.plotted(ask.VerbOf("histogram"), func(l *answerable, line uint32, counts *profile.Histogram, cold uint64) (*chart.Chart, error) {
		return chart.Histogram(l.name, line, counts, cold)
	})
}

func (a *app) curve() *cobra.Command {
	return a.plotted(ask.VerbOf("curve"), func(l *answerable, line uint32, counts *profile.Histogram, cold uint64) (*chart.Chart, error) {
		return chart.Curve(l.name, line, profile.NewCurve(counts, cold))
	})
}

// exactRows tells whether a format is for programs, which want every row.
func exactRows(format string) bool {
	return format == string(report.CSV) || format == string(report.JSON)
}
