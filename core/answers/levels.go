package answers

import (
	"slices"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// Predicted lays out a prediction: its levels, the memory behind them, and times and traffic if
// latencies or bandwidths are known.
func Predicted(h hierarchy.Hierarchy, p hierarchy.Prediction) []report.Table {
	tables := []report.Table{Levels(p), Memory(p)}
	if timed(h) {
		tables = append(tables, AverageTime(p), Times(h, p))
	}
	if t := Traffic(h, p); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	return tables
}

// Levels has a row for each level of a hierarchy, first level first.
func Levels(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "levels", Title: "Demand accesses", Columns: report.Columns(
		"name=level", "size_bytes=size", "ways", "line_bytes=line (bytes)", "accesses", "hits", "misses",
		"misses_low=at least", "misses_high=at most", "miss_ratio=miss ratio", "mpkr=MPKR", "mpki=MPKI",
		"method", "sdcm_misses=misses by SDCM", "sdcm_off=SDCM off by")}
	for _, l := range p.Levels {
		ways := report.TextOf("full")
		if l.Cache.Ways != 0 {
			ways = report.Count(uint64(l.Cache.Ways))
		}
		model, off := report.None(), report.None()
		if l.Beside {
			model = report.Real(l.SDCMMisses)
			if l.Misses > 0 {
				off = report.Ratio(l.SDCMMisses/l.Misses - 1)
			}
		}
		low, high := report.None(), report.None()
		if l.Bounded {
			low, high = report.Real(l.Low), report.Real(l.High)
		}
		t.Add(report.TextOf(l.Cache.Name), report.Bytes(l.Cache.SizeBytes), ways, report.Count(uint64(l.Cache.LineBytes)),
			report.Real(l.Accesses), report.Real(l.Hits), report.Real(l.Misses), low, high, report.Quotient(l.Misses, l.Accesses),
			knownBy(p.PerKiloReference(l.Misses), p.References > 0), knownBy(p.PerKiloInstruction(l.Misses), p.Instructions > 0),
			report.TextOf(string(l.Method)), model, off)
	}
	return withoutNothing(t, "misses_low", "misses_high", "mpki", "sdcm_misses", "sdcm_off")
}

// withoutNothing drops columns without a value in any row.
func withoutNothing(t report.Table, keys ...string) report.Table {
	for _, key := range keys {
		column, empty := t.Index(key), true
		for _, row := range t.Rows {
			empty = empty && report.Equal(row[column], report.None())
		}
		if !empty {
			continue
		}
		t.Columns = append(t.Columns[:column:column], t.Columns[column+1:]...)
		for i, row := range t.Rows {
			t.Rows[i] = append(row[:column:column], row[column+1:]...)
		}
	}
	return t
}

// known is a number for which 0 means that it is not known.
func known(x float64) report.Value { return knownBy(x, x != 0) }

// knownBy is a number, if it is known.
func knownBy(x float64, known bool) report.Value {
	if !known {
		return report.None()
	}
	return report.Decimal(x)
}

// Memory counts the accesses to the memory behind the last level.
func Memory(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "memory", Single: true, Columns: report.Columns(
		"accesses=memory accesses", "fetched_bytes=bytes fetched")}
	t.Add(report.Real(p.MemoryAccesses), report.Real(p.MemoryBytes))
	return t
}

// timed reports whether a latency is known.
func timed(h hierarchy.Hierarchy) bool {
	return h.Memory.LatencyCycles > 0 || slices.ContainsFunc(h.Levels, func(c hierarchy.Cache) bool { return c.LatencyCycles > 0 })
}

// AverageTime is the average memory access time (AMAT).
func AverageTime(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "amat", Single: true, Columns: report.Columns(
		"cycles=average access time (cycles)", "ns=the same (ns)")}
	t.Add(known(p.AverageCycles), known(p.AverageNanoseconds))
	return withoutNothing(t, "ns")
}

// Times has a row for each level and one for memory: its share of all accesses, and their
// latency.
func Times(h hierarchy.Hierarchy, p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "times", Title: "Where accesses are served", Columns: report.Columns(
		"name=level", "latency_cycles=latency (cycles)", "served=of all accesses",
		"average_cycles=average from here on (cycles)")}
	share := func(n float64) report.Value { return report.Quotient(n, p.Levels[0].Accesses) }
	for _, l := range p.Levels {
		t.Add(report.TextOf(l.Cache.Name), known(l.Cache.LatencyCycles), share(l.Hits), known(l.AverageCycles))
	}
	t.Add(report.TextOf("memory"), known(h.Memory.LatencyCycles), share(p.MemoryAccesses), known(h.Memory.LatencyCycles))
	return t
}

// Traffic has a row for each level whose bandwidth is known, and for memory.
func Traffic(h hierarchy.Hierarchy, p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "traffic", Title: "Bytes to the level above, write-backs apart, and the least cycles that they take", Columns: report.Columns(
		"name=level", "bytes", "bytes_per_cycle=bandwidth (bytes a cycle)", "least_cycles=least cycles")}
	for _, l := range p.Levels {
		if l.Cache.BytesPerCycle > 0 {
			t.Add(report.TextOf(l.Cache.Name), report.Real(l.Bytes), known(l.Cache.BytesPerCycle), report.Real(l.LeastCycles))
		}
	}
	if h.Memory.BytesPerCycle > 0 {
		t.Add(report.TextOf("memory"), report.Real(p.MemoryBytes), known(h.Memory.BytesPerCycle), report.Real(p.MemoryLeastCycles))
	}
	return t
}
