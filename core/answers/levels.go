package answers

import (
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// Predicted is a prediction in tables: its levels, the memory behind them, and
// where latencies or bandwidths are known, what they come to.
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
			report.Real(l.Accesses), report.Real(l.Hits), report.Real(l.Misses), low, high, report.Ratio(MissRatio(l)),
			perKilo(p.PerKiloReference(l.Misses), p.References), perKilo(p.PerKiloInstruction(l.Misses), p.Instructions),
			report.TextOf(string(l.Method)), model, off)
	}
	return withoutNothing(t, "misses_low", "misses_high", "mpki", "sdcm_misses", "sdcm_off")
}

// withoutNothing leaves out columns that have no value in any row.
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

// known is a number, or nothing where it is zero and so not known.
func known(x float64) report.Value {
	if x == 0 {
		return report.None()
	}
	return report.Decimal(x)
}

// perKilo is a number a thousand, or nothing where there is nothing to count by.
func perKilo(x float64, of uint64) report.Value {
	if of == 0 {
		return report.None()
	}
	return report.Decimal(x)
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
	t := report.Table{Key: "memory", Single: true, Columns: report.Columns(
		"accesses=memory accesses", "fetched_bytes=bytes fetched")}
	t.Add(report.Real(p.MemoryAccesses), report.Real(p.MemoryBytes))
	return t
}

// timed tells that something is known of latencies.
func timed(h hierarchy.Hierarchy) bool {
	for _, c := range h.Levels {
		if c.LatencyCycles > 0 {
			return true
		}
	}
	return h.Memory.LatencyCycles > 0
}

// AverageTime is the mean time of an access (AMAT).
func AverageTime(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "amat", Single: true, Columns: report.Columns(
		"cycles=average access time (cycles)", "ns=the same (ns)")}
	t.Add(known(p.AverageCycles), known(p.AverageNanoseconds))
	return withoutNothing(t, "ns")
}

// Times has a row for each level and one for memory: how many of all accesses
// it serves, and in how many cycles.
func Times(h hierarchy.Hierarchy, p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "times", Title: "Where accesses are served", Columns: report.Columns(
		"name=level", "latency_cycles=latency (cycles)", "served=of all accesses",
		"average_cycles=average from here on (cycles)")}
	share := func(n float64) report.Value {
		if p.Levels[0].Accesses == 0 {
			return report.Ratio(0)
		}
		return report.Ratio(n / p.Levels[0].Accesses)
	}
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
