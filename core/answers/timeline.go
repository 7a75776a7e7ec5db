package answers

import (
	"github.com/stackglass/stackglass/core/report"
)

// Timeline returns tables of the phases and the windows of a run. If the run has several threads, a
// third table contains each thread's accesses in each window. The profile must have a timeline.
func Timeline(s *Sites) []report.Table {
	line, of := s.Profile.Timeline, s.Profile.Totals.AllReferences()
	accesses, misses := s.Ranker.OverTime(s.Levels)
	columns := []string{"from_reference=from reference", "to_reference=to reference", "share=of the run", "phase", "function", "file", "line", "accesses"}
	for n := range s.Levels {
		columns = append(columns, s.level(n)+"_misses=misses "+s.level(n), s.level(n)+"_miss_ratio=miss ratio "+s.level(n))
	}
	phases := report.Table{Key: "phases", Title: "Phases of the run", Columns: report.Columns(columns...)}
	windows := report.Table{Key: "timeline", Title: "Windows of the run", Columns: report.Columns(columns...)}
	add := func(t *report.Table, from, to, number, site int) {
		first, end := line.Bounds(from, to, of)
		row := []report.Value{report.Count(first), report.Count(end), report.Share(end-first, of), report.Count(uint64(number)),
			report.TextOf(""), report.TextOf(""), report.None()}
		if site >= 0 {
			at := &s.Profile.Sites.Code[site]
			name := at.Function
			if s.Name != nil {
				name = s.Name(name)
			}
			if name == "" {
				name = AddressOf(at)
			}
			row[4], row[5], row[6] = report.TextOf(name), report.TextOf(at.File), report.Known(uint64(at.Line))
		}
		all := uint64(0)
		for _, n := range accesses[from:to] {
			all += n
		}
		row = append(row, report.Count(all))
		for n := range s.Levels {
			sum := 0.
			for _, m := range misses[n][from:to] {
				sum += m
			}
			row = append(row, predicted(sum, s.Levels[n].ExactOverTime()), report.Quotient(sum, float64(all)))
		}
		t.Add(row...)
	}
	for _, p := range s.Ranker.Phases() {
		add(&phases, p.From, p.To, p.Number, p.Site)
		for i := p.From; i < p.To; i++ {
			add(&windows, i, i+1, p.Number, s.Ranker.Busiest(i, i+1))
		}
	}
	tables := []report.Table{phases, windows}
	if len(line.Lanes) > 0 {
		lanes := report.Table{Key: "lanes", Title: "Accesses of threads over time", Columns: report.Columns("from_reference=from reference", "thread", "accesses")}
		for i, lane := range line.Lanes {
			for w, n := range lane {
				if first, _ := line.Bounds(w, w+1, of); n > 0 {
					lanes.Add(report.Count(first), report.Count(uint64(s.Profile.Totals.Threads[i])), report.Count(n))
				}
			}
		}
		tables = append(tables, lanes)
	}
	return tables
}
