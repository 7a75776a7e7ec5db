package ui

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// TestStopDiagnosis checks that, during a search, the page shows the findings so far and the number
// of changes that were tried. The test also checks that the user can stop and restart the search.
func TestStopDiagnosis(t *testing.T) {
	d := newDesk(t)
	s := scripted{d, make(chan workers.Carrier, 2)}
	d.app.Port = s
	d.app.Offer(demoItem())
	d.app.Navigate("#" + d.app.Screen.With(state.TabDiagnosis).Hash())
	shows := func(want string) { until(t, func() bool { return strings.Contains(d.html(), want) }) }
	search := func(replies ...*answers.Reply) {
		c := <-s.carriers
		_ = c.Send(workers.Message{Type: workers.TypeReady})
		job, _ := question(t, c)
		for _, r := range replies {
			_ = c.Send(workers.Message{Type: workers.TypeAnswer, Job: job, Body: workers.EncodeReply(r)})
		}
	}
	partial := func(tried uint64) *answers.Reply {
		verdict := report.Table{Key: "verdict", Columns: report.Columns("verdict")}
		verdict.Add(report.TextOf("one change would save 50 %"))
		findings := report.Table{Key: "findings", Columns: report.Columns("rank", "kind", "function", "file", "line", "data", "saved_share", "saved_least_share", "saved_most_share", "tried", "why", "fix", "how", "illegal_if", "more")}
		row := make([]report.Value, len(findings.Columns))
		for i := range row {
			row[i] = report.TextOf("")
		}
		row[findings.Index("rank")], row[findings.Index("fix")] = report.Count(1), report.TextOf("interchange the loops")
		findings.Add(row...)
		progress := report.Table{Key: "progress", Columns: report.Columns("tried")}
		progress.Add(report.Count(tried))
		return &answers.Reply{More: true, Tables: []report.Table{verdict, findings, progress}}
	}
	press := func() {
		d.act(func() { (&Diagnosis{App: d.app}).stopOrSearch() })
	}
	search()
	shows("0 changes tried so far.")
	press()
	shows("The search was stopped before the first result.")
	press()
	search(partial(1), partial(2))
	shows("2 changes tried so far.")
	d.wants("one change would save 50 %.", "Interchange the loops.")
	press()
	shows("The search was stopped after 2 changes, so not all changes were tried.")
	d.wants("one change would save 50 %.", "Interchange the loops.", "search again")
	if page := d.html(); strings.Contains(page, `id="findings-csv"`) || strings.Contains(page, `aria-busy="true"`) {
		t.Errorf("the search was stopped, but the page is\n%s", page)
	}
	press()
	whole := partial(0)
	whole.More, whole.Tables = false, whole.Tables[:2]
	search(whole)
	shows(`id="findings-csv"`)
	if page := d.html(); strings.Contains(page, `id="search"`) {
		t.Errorf("the search is complete, but the page is\n%s", page)
	}
}
