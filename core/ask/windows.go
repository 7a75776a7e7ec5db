package ask

import (
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// The verb windows reports the working set and the misses over time.
var _ = Add(&Verb{
	Name:   "windows",
	Title:  "Working set and misses over time",
	Args:   []Arg{Line},
	Needs:  alwaysNeeds(analysis.Locality),
	Lines:  oneLine,
	Spills: true,
	Missing: func(p *profile.Profile) string {
		if why := noDistances(p); why != "" || len(p.Locality[0].Windows.Rows) > 0 {
			return why
		}
		return "the profile contains no windows of the run"
	},
	Answer: answerAtLineSize(func(r *Run, q Question, found *profile.Locality, _ *report.Document) (t report.Table, _ error) {
		both, err := r.withBeside(q, found)
		if err != nil {
			return t, err
		}
		t = answers.Windows(found, both[1:]...)
		if q.Brief && r.Beside == nil {
			t = withoutRepeats(t)
		}
		answers.FromSample(&t, r.Profile)
		return t, nil
	}),
})

// withoutRepeats drops columns that are equal to the next column.
func withoutRepeats(t report.Table) report.Table {
	var kept []int
	for i := range t.Columns {
		repeats := i+1 < len(t.Columns)
		for _, row := range t.Rows {
			repeats = repeats && report.Equal(row[i], row[i+1])
		}
		if !repeats || len(t.Rows) == 0 {
			kept = append(kept, i)
		}
	}
	return answers.PickColumns(t, kept...)
}
