package command

import (
	"math/bits"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/chart"
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
				d.Tables = []report.Table{everyDistance(counts, cold)}
			} else {
				d.Tables = []report.Table{binnedDistances(counts, cold)}
			}
			return a.answer(l, r.format, d)
		},
	}
	r = addReading(cmd)
	lineFlag(cmd, &line)
	plots.add(cmd)
	return cmd
}

// exactRows tells whether a format is for programs, which want every row.
func exactRows(format string) bool {
	return format == string(report.CSV) || format == string(report.JSON)
}

// everyDistance is the histogram as it is, ascending, cold accesses last.
func everyDistance(counts *profile.Histogram, cold uint64) report.Table {
	t := report.Table{Key: "histogram", Columns: []report.Column{
		{Key: "distance", Label: "distance", Unit: "lines"},
		{Key: "count", Label: "accesses"},
	}}
	for d, n := range counts.All() {
		t.Add(report.Count(d), report.Count(n))
	}
	if cold > 0 {
		t.Add(report.TextOf("inf"), report.Count(cold))
	}
	return t
}

// binnedDistances sums distances up: 0, 1, 2–3, 4–7 and so on.
func binnedDistances(counts *profile.Histogram, cold uint64) report.Table {
	t := report.Table{Key: "histogram", Title: "Stack distances in powers of two (every distance: --format csv)",
		Columns: []report.Column{
			{Key: "distance", Label: "distance", Unit: "lines"},
			{Key: "count", Label: "accesses"},
			{Key: "share", Label: "share"},
			{Key: "upto", Label: "up to here"},
		}}
	var bins [65]uint64
	total := cold
	for d, n := range counts.All() {
		bins[bits.Len64(d)] += n
		total += n
	}
	var upto uint64
	row := func(name string, n uint64) {
		upto += n
		t.Add(report.TextOf(name), report.Count(n), share(n, total), share(upto, total))
	}
	last := len(bins) - 1
	for last >= 0 && bins[last] == 0 {
		last--
	}
	for k := 0; k <= last; k++ {
		row(chart.BinName(k), bins[k])
	}
	row("first access", cold)
	return t
}

func share(n, total uint64) report.Value {
	if total == 0 {
		return report.Ratio(0)
	}
	return report.Ratio(float64(n) / float64(total))
}
