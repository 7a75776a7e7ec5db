package answers

import (
	"strconv"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Timeline returns tables of the phases and the windows of a run. If the run has several threads, a
// third table contains each thread's accesses in each window. The profile must have a timeline. The
// parameter memory is the latency of memory, or 0 if it is unknown.
func Timeline(s *Sites, memory float64) []report.Table {
	line, of := s.Profile.Timeline, s.Profile.Totals.AllReferences()
	accesses, misses := s.Ranker.OverTime(s.Levels)
	cycles := CyclesOverTime(accesses, misses, s.Levels, memory)
	columns := []string{"from_reference=from reference", "to_reference=to reference", "share=of the run", "phase", "function", "file", "line", "accesses"}
	for n := range s.Levels {
		columns = append(columns, s.levelName(n)+"_misses=misses "+s.levelName(n), s.levelName(n)+"_miss_ratio=miss ratio "+s.levelName(n))
	}
	if cycles != nil {
		columns = append(columns, "memory_cycles=estimated memory cycles", "cycles_per_access=cycles per access")
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
			row = append(row, numberCell(sum, s.Levels[n].ExactOverTime()), report.Quotient(sum, float64(all)))
		}
		if cycles != nil {
			sum := 0.
			for _, n := range cycles[from:to] {
				sum += n
			}
			row = append(row, numberCell(sum, false), report.Decimal(sum/max(float64(all), 1)))
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
	if s.Profile.Regions != nil {
		tables = append(tables, Regions(s.Profile))
	}
	return tables
}

// Regions returns a table of the regions that the program has marked. The profile must have regions.
func Regions(p *profile.Profile) report.Table {
	t := report.Table{Key: "regions", Title: "Marked regions", Columns: report.Columns("name", "thread", "depth",
		"from_reference=from reference", "to_reference=to reference", "references", "share=of the run", "times")}
	for i := range p.Regions.List {
		r := &p.Regions.List[i]
		t.Add(report.TextOf(r.Name), report.Count(uint64(r.Thread)), report.Count(uint64(r.Depth)), report.Count(r.From), report.Count(r.To),
			report.Count(r.References()), report.Share(r.References(), p.Totals.AllReferences()), report.Count(r.Times))
	}
	return t
}

// RegionDoubts returns warnings about the marked regions of a profile.
func RegionDoubts(p *profile.Profile) (list []string) {
	most := report.Count(profile.MostRegions).Plain()
	switch r := p.Regions; {
	case r == nil:
	case r.TooMany:
		list = append(list, "the marked regions are not listed, because they have more than "+most+" combinations of name, thread and depth; mark fewer regions")
	case r.Gap > 0:
		list = append(list, "the run has more than "+most+" marked regions; regions with the same name, thread and depth are joined if fewer than "+
			strconv.FormatUint(r.Gap, 10)+" references lie between them, and the column \"times\" states how many were joined")
	}
	return list
}

// CyclesOverTime returns the estimated cycles of memory accesses in each window: the number of hits
// in each level and the number of accesses to memory, each multiplied by the latency
// (MODELS §13.1). CyclesOverTime returns nil if a latency is unknown. The accesses and misses are
// results of [attribution.Ranker.OverTime]. The parameter memory is the latency of memory.
func CyclesOverTime(accesses []uint64, misses [][]float64, levels []attribution.Attribution, memory float64) []float64 {
	latencies := latenciesOf(levels, memory)
	if latencies == nil {
		return nil
	}
	cycles := make([]float64, len(accesses))
	for i := range cycles {
		cycles[i] = memoryCycles(latencies, func(l int) float64 {
			if l == 0 {
				return float64(accesses[i])
			}
			return misses[l-1][i]
		})
	}
	return cycles
}
