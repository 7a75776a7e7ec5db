package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// curve prints m(C): the misses of a fully associative LRU cache of every
// capacity.
func (a *app) curve() *cobra.Command {
	var (
		r     *reading
		line  uint32
		plots plotFiles
	)
	cmd := &cobra.Command{
		Use:   "curve FILE",
		Short: "Miss-ratio curve: the misses of a cache of every capacity",
		Long: `Print the misses of a fully associative LRU cache of every capacity, exactly.

csv and json have every breakpoint: each capacity at which the misses change,
from one line on. table and md have powers of two.`,
		Example: "  stackglass curve app.lackey.lz4\n  stackglass curve app.sgp --format csv --svg curve.svg",
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
			c := profile.NewCurve(found.Histogram(trace.AllKinds))
			if err := plots.curve(l, line, c); err != nil {
				return err
			}
			d := &report.Document{Schema: "stackglass.curve", Version: 1, Input: l.facts(line)}
			if exactRows(r.format) {
				d.Tables = []report.Table{answers.Curve(c)}
				answers.Bound(&d.Tables[0], l.Profile, line, c.Capacities())
			} else {
				d.Tables = []report.Table{answers.PowersOfTwo(c, line)}
				answers.Bound(&d.Tables[0], l.Profile, line, answers.Powers(c))
			}
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
