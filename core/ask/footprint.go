package ask

import (
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// footprint prints how many distinct lines a window of any length accesses.
var _ = Add(&Verb{
	Name:  "footprint",
	Title: "Distinct lines that a window of any length accesses, on average",
	Help: manual(`Print, for windows of 1, 2, 3, 4, 6, 8, … accesses, how many distinct lines the
program accesses in such a window: the mean of all windows of the run, exactly (Xiang et
al., PACT 2011). A program fills a cache in a window whose footprint is as large as the
cache, and takes that much of a cache that it shares.

growth is the number of lines that one more access adds. It predicts the miss ratio of a
fully associative LRU cache as large as the footprint (Xiang et al., ASPLOS 2013); the
command curve has the exact ratio.`),
	Example: manual("  stackglass footprint app.lackey.lz4\n  stackglass analyze app.sgt --analyses default,footprint -o app.sgp"),
	Needs:   needs(analysis.Footprint),
	Missing: lacks(func(p *profile.Profile) bool { return p.Footprint == nil || p.Footprint.Accesses == 0 }, "the profile holds no footprint"),
	Answer: func(r *Run, q Question, d *report.Document) error {
		f := r.Profile.Footprint
		if f == nil {
			return r.Cannot("the profile holds no footprint; analyse the trace again with --analyses default,footprint")
		}
		t := report.Table{Key: "footprint", Title: "Distinct lines in a window, on average", Columns: report.Columns(
			"window_accesses=window (accesses)", "footprint_lines=footprint (lines)", "footprint_bytes=size",
			"growth")}
		for i := 0; profile.FootprintWindow(i) < f.Accesses; i++ {
			lines, growth := f.Average(i)
			t.Add(report.Count(profile.FootprintWindow(i)), report.Decimal(lines), report.Bytes(uint64(lines*float64(f.LineBytes)+0.5)), report.Ratio(growth))
		}
		d.Input, d.Tables = r.Facts(f.LineBytes), []report.Table{t}
		return nil
	},
})
