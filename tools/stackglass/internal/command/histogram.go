package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// histogram prints F(Δ): how often each stack distance occurs.
func (a *app) histogram() *cobra.Command {
	var (
		r     *reading
		line  uint32
		plots plotFiles
	)
	cmd := &cobra.Command{
		Use:   "histogram FILE",
		Short: "Count the accesses with each stack distance",
		Long: `Print the histogram of LRU stack distances: the number of distinct lines touched
between two accesses to the same line, from 0; inf is the first access to a line.

csv and json have every distance; table and md sum them up in powers of two.`,
		Example: "  stackglass histogram app.lackey.lz4 --format csv\n  stackglass histogram app.sgp --line 128 --svg app.svg",
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := a.load(r, args[0], []uint32{line})
			if err != nil {
				return err
			}
			found, err := l.locality(line)
			if err != nil {
				return err
			}
			counts, cold := found.Histogram(trace.AllKinds)
			if err := plots.histogram(l, line, counts, cold); err != nil {
				return err
			}
			d := &report.Document{Schema: "stackglass.histogram", Version: 1, Input: l.facts(line)}
			if exactRows(r.format) {
				d.Tables = []report.Table{answers.Histogram(counts, cold)}
			} else {
				d.Tables = []report.Table{answers.BinnedHistogram(counts, cold)}
			}
			answers.FromSample(&d.Tables[0], l.Profile)
			return a.answer(l, r.format, d)
		},
	}
	r = addReading(cmd)
	r.addSpill()
	r.analyses = analysis.Locality.String()
	lineFlag(cmd, &line)
	plots.add(cmd)
	return cmd
}

// exactRows tells whether a format is for programs, which want every row.
func exactRows(format string) bool {
	return format == string(report.CSV) || format == string(report.JSON)
}
