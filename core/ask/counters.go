package ask

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// ByflFormat is the name of the trace format for results of the tool Byfl.
const ByflFormat = "byfl"

// The verb counters reports a program's instruction counts.
var _ = Add(&Verb{
	Name:  "counters",
	Title: "Operations, bytes, branches and calls",
	Args: []Arg{
		{Name: "by", Default: string(answers.ByProgram), Words: []string{"program", "function", "block"}, Help: manual("group by this `UNIT`: program, function or block")},
		{Name: "sort", Help: manual("sort functions or blocks by this `COLUMN`, named as in csv; numbers are in descending order (default: bytes)")},
	},
	Needs: alwaysNeeds(analysis.Locality | analysis.Counters),
	Whole: true,
	Check: func(q Question) error {
		by, column := answers.CountersBy(q.Text("by")), q.Text("sort")
		if column == "" {
			return nil
		}
		if by == answers.ByProgram {
			return &Error{"--sort " + column + ": the order of the program's counters is fixed; sort functions or blocks, with --by function or --by block"}
		}
		t := answers.CountersOf(&profile.Counters{}, by, "")
		return checkSortColumn(&t, column)
	},
	Missing: missingIf(func(p *profile.Profile) bool { return p.Counters == nil }, "the profile contains no counters"),
	Answer: func(r *Run, q Question, d *report.Document) error {
		p := r.Profile
		if p.Counters == nil {
			return r.Cannot("the profile contains no counters; analyze the trace again with --analyses locality,counters")
		}
		if d.Input = r.Facts(0); p.Input.Header.Format == ByflFormat {
			d.Input = d.Input[:2] // results from Byfl do not contain the number of references
		} else {
			d.Warnings = answers.NotCounted(p)
		}
		by, column := answers.CountersBy(q.Text("by")), q.Text("sort")
		if by == answers.ByProgram {
			d.Tables = answers.CounterTables(p)
			return nil
		}
		t := answers.CountersOf(p.Counters, by, column)
		if q.Brief {
			t = answers.NarrowCounters(t, column)
			t.Title += " (all columns: --format csv)"
		}
		d.Tables = []report.Table{t}
		return nil
	},
})

// checkSortColumn returns an error if the table has no column with this name.
func checkSortColumn(t *report.Table, column string) error {
	if t.Index(column) >= 0 {
		return nil
	}
	var keys []string
	for _, c := range t.Columns {
		keys = append(keys, c.Key)
	}
	return &Error{"--sort " + strconv.Quote(column) + ", want one of " + strings.Join(keys, ", ")}
}
