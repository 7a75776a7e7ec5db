package answers

import (
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// Levels has a row for each level of a hierarchy, first level first.
func Levels(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "levels", Title: "Demand accesses", Columns: []report.Column{
		{Key: "name", Label: "level"},
		{Key: "size_bytes", Label: "size"},
		{Key: "ways", Label: "ways"},
		{Key: "line_bytes", Label: "line", Unit: "bytes"},
		{Key: "accesses", Label: "accesses"},
		{Key: "hits", Label: "hits"},
		{Key: "misses", Label: "misses"},
		{Key: "miss_ratio", Label: "miss ratio"},
		{Key: "method", Label: "method"},
	}}
	for _, l := range p.Levels {
		ways := report.TextOf("full")
		if l.Cache.Ways != 0 {
			ways = report.Count(uint64(l.Cache.Ways))
		}
		t.Add(report.TextOf(l.Cache.Name), report.Bytes(l.Cache.SizeBytes), ways, report.Count(uint64(l.Cache.LineBytes)),
			report.Real(l.Accesses), report.Real(l.Hits), report.Real(l.Misses), report.Ratio(MissRatio(l)), report.TextOf(string(l.Method)))
	}
	return t
}

// MissRatio is the share of the accesses to a level that miss, 0 of none.
func MissRatio(l hierarchy.Level) float64 {
	if l.Accesses == 0 {
		return 0
	}
	return l.Misses / l.Accesses
}

// Memory is what reaches the memory behind the last level.
func Memory(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "memory", Single: true, Columns: []report.Column{{Key: "accesses", Label: "memory accesses"}}}
	t.Add(report.Real(p.MemoryAccesses))
	return t
}
