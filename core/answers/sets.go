package answers

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Sets has a row for each number of sets and ways of a set table: the exact misses of an LRU
// cache of that shape (MODELS §4). For one set, rows for each larger number of ways at which
// the misses change follow.
func Sets(l *profile.Locality) report.Table {
	t := report.Table{Key: "sets", Title: "Misses of LRU caches by sets and ways, exact", Columns: report.Columns(
		"sets", "ways", "line (bytes)", "accesses", "misses")}
	if l.Sets == nil {
		return t
	}
	accesses := l.Accesses()
	add := func(sets, ways, misses uint64) {
		t.Add(report.Count(sets), report.Count(ways), report.Count(uint64(l.LineBytes)), report.Count(accesses), report.Count(misses))
	}
	for sets := uint64(1); sets < 1<<profile.SetCounts; sets <<= 1 {
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

// SetsGrid summarises [Sets]: a row for each number of sets, and a column with the miss ratio for
// each power of two of ways.
func SetsGrid(l *profile.Locality) report.Table {
	t := report.Table{Key: "sets", Title: "Miss ratios of LRU caches, exact (misses, and every number of ways: --format csv)",
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
	for sets := uint64(1); sets < 1<<profile.SetCounts; sets <<= 1 {
		row := []report.Value{report.Count(sets)}
		for ways := uint64(1); ways <= profile.MaxWays; ways <<= 1 {
			hits, ok := l.Sets.Hits(sets, ways)
			if !ok {
				return t
			}
			row = append(row, report.Share(accesses-hits, accesses))
		}
		t.Add(row...)
	}
	return t
}

// Windows has a row for each window of a run: its line accesses, its distinct lines if they were
// counted, and the misses of fully associative LRU caches of each power of two of lines, up to
// the first cache that misses only cold accesses in l and in the others.
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
