package answers

import (
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// PredictedByCore is a prediction for several cores in tables: as [Predicted], with
// the misses for other cores' stores beside those of each level.
func PredictedByCore(h hierarchy.Hierarchy, p hierarchy.ByCore) []report.Table {
	tables := Predicted(h, p.Prediction)
	if len(p.Cores) == 0 {
		return tables
	}
	levels := &tables[0]
	levels.Columns = append(levels.Columns, report.Column{Key: "coherence_misses", Label: "of coherence"})
	for i := range levels.Rows {
		levels.Rows[i] = append(levels.Rows[i], report.Real(p.Coherence[i]))
	}
	return tables
}

// CoreLevels has a row for each core and level: what the core asks of it, and what
// of that misses. Misses of coherence are those of a line that the core lost to
// another one's store.
func CoreLevels(p hierarchy.ByCore) report.Table {
	t := report.Table{Key: "cores", Title: "Demand accesses by core", Columns: []report.Column{
		{Key: "core", Label: "core"},
		{Key: "threads", Label: "threads"},
		{Key: "name", Label: "level"},
		{Key: "accesses", Label: "accesses"},
		{Key: "hits", Label: "hits"},
		{Key: "misses", Label: "misses"},
		{Key: "miss_ratio", Label: "miss ratio"},
		{Key: "coherence_misses", Label: "of coherence"},
	}}
	for n, core := range p.Cores {
		for i, l := range core.Levels {
			ratio := 0.
			if l.Accesses > 0 {
				ratio = l.Misses / l.Accesses
			}
			t.Add(report.Count(uint64(n)), report.TextOf(NumbersOf(core.Threads)), report.TextOf(p.Levels[i].Cache.Name),
				report.Real(l.Accesses), report.Real(l.Hits), report.Real(l.Misses), report.Ratio(ratio), report.Real(l.Coherence))
		}
	}
	return t
}
