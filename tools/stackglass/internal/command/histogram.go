package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/chart"
)

// plotted adds options to draw a histogram or a curve.
func (a *app) plotted(cmd *cobra.Command, o *asking) {
	var svg, png string
	cmd.Flags().StringVar(&svg, "svg", "", "draw it to this SVG `FILE` too")
	cmd.Flags().StringVar(&png, "png", "", "draw it to this PNG `FILE` too")
	o.then = func(l *answerable, q ask.Question, _ *report.Document) error {
		counts, cold := l.Profile.LocalityAt(q.Line()).Histogram(trace.AllKinds)
		draw := func() (*chart.Chart, error) { return chart.Histogram(l.name, q.Line(), counts, cold) }
		if o.verb.Name == "curve" {
			draw = func() (*chart.Chart, error) { return chart.Curve(l.name, q.Line(), profile.NewCurve(counts, cold)) }
		}
		if err := saveChart(svg, chart.SVG, draw); err != nil {
			return err
		}
		return saveChart(png, chart.PNG, draw)
	}
}

// saveChart draws into a file, if there is a path.
func saveChart(path string, format chart.Format, draw func() (*chart.Chart, error)) error {
	if path == "" {
		return nil
	}
	drawn, err := draw()
	if err != nil {
		return err
	}
	return saveFile(path, func(w io.Writer) error { return drawn.Write(w, format) })
}

// exactRows reports whether a format is for programs, which read every row.
func exactRows(format string) bool {
	return format == string(report.CSV) || format == string(report.JSON)
}
