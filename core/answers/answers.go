// Package answers converts the contents of a profile into tables: facts about the trace, stack
// distances, counters, and the misses of caches. The command prints these tables, exports contain
// them, and comparisons join the tables of two runs.
//
// Numbers are exact unless the table's title states otherwise. If a table is shortened, its title
// names the output format that contains all rows.
package answers

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Summary returns tables that summarise a profile: its line sizes, its kinds of references, and the
// program's counters, if any.
func Summary(p *profile.Profile) (tables []report.Table) {
	if len(p.Locality) > 0 {
		tables = append(tables, Locality(p))
	}
	tables = append(tables, Kinds(p))
	if p.Counters != nil {
		tables = append(tables, CounterSums(p.Counters))
	}
	return tables
}

// Locality returns a table with a row for each line size.
func Locality(p *profile.Profile) report.Table {
	t := report.Table{Key: "locality", Title: "Locality (exact miss ratios of fully associative LRU caches)", Columns: report.Columns(
		"line_bytes=line (bytes)", "accesses", "lines", "footprint_bytes=footprint",
		"half_within_lines=half within (lines)", "miss_ratio_32KiB=miss ratio in 32 KiB",
		"miss_ratio_1MiB=miss ratio in 1 MiB")}
	for i := range p.Locality {
		l := &p.Locality[i]
		c := profile.NewCurve(l.Histogram(trace.AllKinds))
		line := uint64(l.LineBytes)
		median := report.None()
		if d, ok := c.DistanceAtShare(0.5); ok && c.Accesses > 0 {
			median = report.Count(d + 1) // an access at distance d hits in a cache of d+1 lines
		}
		t.Add(report.Count(line), report.Count(c.Accesses), report.Count(l.Lines()),
			report.Bytes(l.Lines()*line), median,
			report.Share(c.Misses(32<<10/line), c.Accesses), report.Share(c.Misses(1<<20/line), c.Accesses))
	}
	FromSample(&t, p)
	return t
}

// Kinds returns a table with a row for each kind of reference.
func Kinds(p *profile.Profile) report.Table {
	t := report.Table{Key: "kinds", Title: "References", Columns: report.Columns("kind", "references", "bytes")}
	for k := trace.Kind(0); k < trace.NumKinds; k++ {
		if p.Totals.References[k] > 0 {
			t.Add(report.TextOf(k.String()), report.Count(p.Totals.References[k]), report.Count(p.Totals.Bytes[k]))
		}
	}
	return t
}

// Histogram returns a table with a row for every distance, ascending. The last row ("inf") contains
// the number of cold accesses.
func Histogram(counts *profile.Histogram, cold uint64) report.Table {
	t := report.Table{Key: "histogram", Columns: report.Columns("distance (lines)", "count=accesses")}
	for d, n := range counts.All() {
		t.Add(report.Count(d), report.Count(n))
	}
	if cold > 0 {
		t.Add(report.TextOf("inf"), report.Count(cold))
	}
	return t
}

// BinnedHistogram returns a table with a row for each bin of distances: 0, 1, 2–3, 4–7 and so on.
func BinnedHistogram(counts *profile.Histogram, cold uint64) report.Table {
	t := report.Table{Key: "histogram", Title: "Stack distances, binned by powers of two (for every distance, use --format csv)",
		Columns: report.Columns("distance (lines)", "count=accesses", "share", "upto=up to here")}
	var bins [65]uint64
	total := cold
	for d, n := range counts.All() {
		bins[bits.Len64(d)] += n
		total += n
	}
	var upto uint64
	row := func(name string, n uint64) {
		upto += n
		t.Add(report.TextOf(name), report.Count(n), report.Share(n, total), report.Share(upto, total))
	}
	last := len(bins) - 1
	for last >= 0 && bins[last] == 0 {
		last--
	}
	for k := 0; k <= last; k++ {
		row(BinName(k), bins[k])
	}
	row("first access", cold)
	return t
}

// BinName returns the name of bin k, which contains the distances with k significant bits: 4–7 for
// k = 3.
func BinName(k int) string {
	if k < 2 {
		return strconv.Itoa(k)
	}
	low, high := uint64(1)<<(k-1), uint64(1)<<k-1
	return strconv.FormatUint(low, 10) + "–" + strconv.FormatUint(high, 10)
}

// PowersOfTwo returns a table of the miss-ratio curve at capacities that are powers of two, up to
// the first capacity at which all lines fit.
func PowersOfTwo(c *profile.Curve, lineBytes uint32) report.Table {
	t := CurveAt(c, lineBytes, Powers(c))
	t.Title += " (to list every capacity at which misses change, use --format csv)"
	return t
}

// WithoutEmpty removes columns that have no value in any row.
func WithoutEmpty(t report.Table) report.Table {
	if len(t.Rows) == 0 {
		return t
	}
	return withoutEmpty(t)
}

// withoutEmpty removes columns that have no value in any row. If keys are given, it removes only
// columns with these keys.
func withoutEmpty(t report.Table, keys ...string) report.Table {
	var some []int
	for i, c := range t.Columns {
		has := func(row []report.Value) bool { return !report.Equal(row[i], report.None()) }
		if len(keys) > 0 && !slices.Contains(keys, c.Key) || slices.ContainsFunc(t.Rows, has) {
			some = append(some, i)
		}
	}
	kept := PickColumns(t, some...)
	kept.Single = t.Single
	return kept
}

// Sets returns the exact misses of LRU caches from a set table, with a row for each number of sets
// and ways (MODELS §4). The set table has at most [profile.MaxWays] ways. For caches with a single
// set, the table also lists every larger number of ways at which the number of misses changes.
func Sets(l *profile.Locality) report.Table {
	t := report.Table{Key: "sets", Title: "Exact misses of LRU caches, by sets and ways", Columns: report.Columns(
		"sets", "ways", "line (bytes)", "accesses", "misses")}
	if l.Sets == nil {
		return t
	}
	accesses := l.Accesses()
	add := func(sets, ways, misses uint64) {
		t.Add(report.Count(sets), report.Count(ways), report.Count(uint64(l.LineBytes)), report.Count(accesses), report.Count(misses))
	}
	for sets := range countedSets(l.Sets) {
		for ways := uint64(1); ways <= profile.MaxWays; ways++ {
			hits, _ := l.Sets.Hits(sets, ways)
			add(sets, ways, accesses-hits)
		}
		if sets > 1 {
			continue
		}
		for ways, misses := range profile.NewCurve(l.Histogram(trace.AllKinds)).Points {
			if ways > profile.MaxWays {
				add(1, ways, misses)
			}
		}
	}
	return t
}

// SetCauses returns a table of the misses by cause, with a row for each combination of sets and
// ways in a set table. The first access to a line is a cold miss. The remaining misses of a fully
// associative cache of the same size are capacity misses. Conflict misses are the additional misses
// due to limited associativity. The number of conflict misses is negative if the sets keep lines
// that a fully associative LRU cache would evict.
func SetCauses(l *profile.Locality) report.Table {
	t := report.Table{Key: "causes", Title: "Exact misses of LRU caches, by cause", Columns: report.Columns(
		"sets", "ways", "line (bytes)", "accesses", "misses", "cold", "capacity", "conflict")}
	if l.Sets == nil {
		return t
	}
	c := profile.NewCurve(l.Histogram(trace.AllKinds))
	for sets := range countedSets(l.Sets) {
		for ways := uint64(1); ways <= profile.MaxWays; ways++ {
			hits, _ := l.Sets.Hits(sets, ways)
			misses, full := c.Accesses-hits, c.Misses(sets*ways)
			t.Add(report.Count(sets), report.Count(ways), report.Count(uint64(l.LineBytes)), report.Count(c.Accesses), report.Count(misses),
				report.Count(c.Cold), report.Count(full-c.Cold), report.Difference(report.Count(full), report.Count(misses)))
		}
	}
	return t
}

// countedSets yields the numbers of sets that a table covers.
func countedSets(t *profile.SetTable) func(yield func(sets uint64) bool) {
	return func(yield func(uint64) bool) {
		for a := 0; a < profile.SetCounts; a++ {
			if t != nil && t.Counts(a) && !yield(1<<a) {
				return
			}
		}
	}
}

// SetsGrid returns a summary of [Sets]: the miss ratios, with a row for each number of sets and a
// column for each number of ways that is a power of two.
func SetsGrid(l *profile.Locality) report.Table {
	t := report.Table{Key: "sets", Title: "Exact miss ratios of LRU caches (for the numbers of misses, and for all numbers of ways, use --format csv)",
		Columns: report.Columns("sets")}
	for ways := uint64(1); ways <= profile.MaxWays; ways <<= 1 {
		name := strconv.FormatUint(ways, 10)
		label := name + " ways"
		if ways == 1 {
			label = "1 way"
		}
		t.Columns = append(t.Columns, report.Column{Key: "miss_ratio_" + name, Label: label})
	}
	accesses := l.Accesses()
	for sets := range countedSets(l.Sets) {
		row := []report.Value{report.Count(sets)}
		for ways := uint64(1); ways <= profile.MaxWays; ways <<= 1 {
			hits, _ := l.Sets.Hits(sets, ways)
			row = append(row, report.Share(accesses-hits, accesses))
		}
		t.Add(row...)
	}
	return t
}

// Windows returns a table with a row for each window of a run. A row contains the window's line
// accesses, its distinct lines if they were counted, and the misses of fully associative LRU caches
// whose number of lines is a power of two. The cache size is doubled until all profiles (l and
// others) have only cold misses.
func Windows(l *profile.Locality, others ...*profile.Locality) report.Table {
	w := &l.Windows
	t := report.Table{Key: "windows", Title: "Misses over time", Columns: report.Columns(
		"first_reference=from reference", "accesses")}
	if w.Distinct != nil {
		t.Columns = append(t.Columns, report.Columns("lines=working set (lines)")...)
	}
	last := 0
	for _, l := range append(others, l) {
		for i := range l.Windows.Rows {
			row := &l.Windows.Rows[i]
			for last < profile.ColdBin-2 && row.Misses(last) != row[profile.ColdBin] {
				last++
			}
		}
	}
	for k := 0; k <= last; k++ {
		lines := strconv.FormatUint(1<<k, 10)
		t.Columns = append(t.Columns, report.Column{Key: "misses_" + lines, Label: "misses in " + lines + " lines"})
	}
	for i := range w.Rows {
		row := []report.Value{report.Count((w.First + uint64(i)) * w.References), report.Count(w.Rows[i].Accesses())}
		if w.Distinct != nil {
			row = append(row, report.Count(w.Distinct[i]))
		}
		for k := 0; k <= last; k++ {
			row = append(row, report.Count(w.Rows[i].Misses(k)))
		}
		t.Add(row...)
	}
	return t
}
