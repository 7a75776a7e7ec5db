package program

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
)

// addInstructions adds rows for instruction caches to the table of levels, before the other rows.
func addInstructions(t *report.Table, r simulate.Result) {
	var p hierarchy.Prediction
	p.References = r.References
	for i := range r.Instructions {
		run := &r.Instructions[i].Run
		p.Levels = append(p.Levels, hierarchy.Level{
			Cache: r.Instructions[i].Cache, Method: hierarchy.Simulated,
			Accesses: float64(run.Accesses()), Misses: float64(run.Misses()), Hits: float64(run.Hits()),
		})
	}
	t.Rows = append(answers.Levels(p).Rows, t.Rows...)
}

// addFeatures adds columns for counts that only some simulations produce.
func addFeatures(t *report.Table, levels []simulate.Level) {
	for _, c := range []struct {
		column string
		of     func(*simulate.Level) uint64
	}{
		{"fetches=instruction fetches", func(l *simulate.Level) uint64 { return l.Run.Fetches }},
		{"fetch_misses=fetch misses", func(l *simulate.Level) uint64 { return l.Run.FetchMisses }},
		{"line_misses=whole line absent", func(l *simulate.Level) uint64 { return l.Run.LineMisses }},
		{"cold=cold misses", func(l *simulate.Level) uint64 { return l.Run.Cold }},
		{"capacity=capacity misses", func(l *simulate.Level) uint64 { return l.Run.Capacity }},
		{"conflict=conflict misses", func(l *simulate.Level) uint64 { return l.Run.Conflict }},
	} {
		if !slices.ContainsFunc(levels, func(l simulate.Level) bool { return c.of(&l) > 0 }) {
			continue
		}
		t.Columns = append(t.Columns, report.Columns(c.column)...)
		for i := range levels {
			t.Rows[i] = append(t.Rows[i], report.Count(c.of(&levels[i])))
		}
	}
}

// boundTable returns a table that compares the misses of each level with the misses of optimal
// replacement.
func boundTable(levels []simulate.Level) report.Table {
	t := report.Table{Key: "bound", Columns: report.Columns("name=level", "misses", "best_misses=fewest possible misses", "best_miss_ratio=lowest possible miss ratio")}
	var best []string
	for i := range levels {
		l := &levels[i]
		if !l.Bounded {
			continue
		}
		ratio := report.Quotient(float64(l.BestMisses), float64(l.Run.Accesses()))
		t.Add(report.TextOf(l.Cache.Name), report.Count(l.Run.Misses()), report.Count(l.BestMisses), ratio)
		if n := l.Run.Accesses(); n > 0 {
			best = append(best, strconv.FormatFloat(float64(l.BestMisses)/float64(n)*100, 'f', 1, 64)+" % in "+l.Cache.Name)
		}
	}
	t.Title = "Without prefetching, no replacement policy can have a miss ratio below " + strings.Join(best, ", ")
	return t
}

// prefetchTable returns a table of the prefetches that each level issues and receives.
func prefetchTable(levels []simulate.Level) report.Table {
	t := report.Table{Key: "prefetch", Title: "Prefetches", Columns: report.Columns(
		"name=level", "prefetcher", "issued", "present=already present", "inserted", "dropped", "useful", "unused=evicted unused",
		"accuracy", "coverage", "pollution=misses on lines evicted by prefetches", "received=received from above", "received_misses=misses on received")}
	for i := range levels {
		c, p := &levels[i].Run, &levels[i].Run.Prefetch
		own := levels[i].Cache.Prefetch
		if own.Kind == hierarchy.NoPrefetch && c.PrefetchReads == 0 {
			continue
		}
		row := []report.Value{report.TextOf(levels[i].Cache.Name)}
		if own.Kind == hierarchy.NoPrefetch {
			row = append(row, slices.Repeat([]report.Value{report.None()}, len(t.Columns)-3)...)
		} else {
			row = append(row, report.TextOf(own.String()), report.Count(p.Issued()), report.Count(p.Hits), report.Count(p.Misses),
				report.Count(p.Dropped), report.Count(p.Useful), report.Count(p.Unused), report.Quotient(float64(p.Useful), float64(p.Misses)),
				report.Quotient(float64(p.Useful), float64(p.Useful+c.Misses())), report.Count(p.Pollution))
		}
		t.Add(append(row, report.Count(c.PrefetchReads), report.Count(c.PrefetchReadMisses))...)
	}
	return t
}

// translationTables returns the counts of the TLBs, and the number of page walks.
func translationTables(r simulate.Result) []report.Table {
	t := report.Table{Key: "tlbs", Title: "Address translation", Columns: report.Columns(
		"name=TLB", "entries", "ways", "page_bytes=page", "accesses", "hits", "misses", "miss_ratio=miss ratio")}
	levels := slices.Concat(r.Instructions, r.Levels)
	for i := range levels {
		c, run := levels[i].Cache, &levels[i].Run
		t.Add(report.TextOf(c.Name), report.Count(c.Lines()), answers.Ways(uint64(c.Ways)), report.Bytes(uint64(c.LineBytes)),
			report.Count(run.Accesses()), report.Count(run.Hits()), report.Count(run.Misses()), report.Quotient(float64(run.Misses()), float64(run.Accesses())))
	}
	walks := report.Table{Key: "page_walks", Title: "Page walks", Single: true, Columns: report.Columns("walks=page walks", "per_kilo_reference=per 1,000 references")}
	perKilo := 0.
	if r.References > 0 {
		perKilo = 1000 * float64(r.Memory.Reads) / float64(r.References)
	}
	walks.Add(report.Count(r.Memory.Reads), report.Real(perKilo))
	return []report.Table{t, walks}
}

// addCoherence adds the number of caches and the coherence misses to the table of levels.
func addCoherence(t *report.Table, levels []simulate.Level) {
	t.Columns = append(t.Columns, report.Columns(
		"caches", "coherence_misses=coherence misses", "invalidated=lines invalidated")...)
	for i, l := range levels {
		t.Rows[i] = append(t.Rows[i], report.Count(uint64(l.Caches)), report.Count(l.Run.CoherenceMisses), report.Count(l.Run.Invalidated))
	}
}

// coreTable returns a table with a row for each core and level.
func coreTable(r simulate.Result, levels []simulate.Level) report.Table {
	t := report.Table{Key: "cores", Title: "Demand accesses by core", Columns: report.Columns(
		"core", "threads", "name=level", "accesses", "hits", "misses", "coherence_misses=coherence misses",
		"invalidated=lines invalidated")}
	prefetches := slices.ContainsFunc(levels, func(l simulate.Level) bool { return l.Cache.Prefetch.Kind != hierarchy.NoPrefetch })
	if prefetches {
		t.Columns = append(t.Columns, report.Columns("prefetch_hits=prefetches already present", "prefetch_misses=prefetches inserted")...)
	}
	for n, core := range r.Cores {
		for i := range levels {
			c := &levels[i].Cores[n]
			row := []report.Value{
				report.Count(uint64(n)), report.ListOf(answers.NumbersOf(core.Threads)), report.TextOf(levels[i].Cache.Name),
				report.Count(c.Accesses()), report.Count(c.Hits()), report.Count(c.Misses()), report.Count(c.CoherenceMisses), report.Count(c.Invalidated),
			}
			if prefetches {
				row = append(row, report.Count(c.Prefetch.Hits), report.Count(c.Prefetch.Misses))
			}
			t.Add(row...)
		}
	}
	return t
}

// busTable returns a table of the transactions on the buses between the caches of a level.
func busTable(r simulate.Result) report.Table {
	t := report.Table{Key: "bus", Title: "Transactions between the caches of a level", Columns: report.Columns(
		"name=level", "bus_reads=BusRd", "bus_reads_exclusive=BusRdX", "upgrades=BusUpgr",
		"silent_upgrades=silent upgrades (E to M)", "remote_clean=clean in another cache",
		"remote_dirty=dirty in another cache", "write_backs_for_reads=written back for a read by another cache",
		"write_backs_for_writes=written back for a write by another cache")}
	for _, l := range r.Levels {
		if b := &l.Run.Bus; *b != (simulate.Bus{}) {
			t.Add(countsOf(l.Cache.Name, b.Reads, b.ReadsExclusive, b.Upgrades, b.SilentUpgrades,
				b.RemoteClean, b.RemoteDirty, b.WriteBacksForReads, b.WriteBacksForWrites)...)
		}
	}
	return t
}

// countsOf returns a table row that consists of a name and counts.
func countsOf(name string, counts ...uint64) []report.Value {
	row := []report.Value{report.TextOf(name)}
	for _, n := range counts {
		row = append(row, report.Count(n))
	}
	return row
}

// addWriteBacks adds the columns for write-backs to the table of levels.
func addWriteBacks(t *report.Table, levels []simulate.Level) {
	t.Columns = append(t.Columns, report.Columns("write_backs=write-backs", "write_backs_at_end=write-backs at the end")...)
	for i, l := range levels {
		t.Rows[i] = append(t.Rows[i], report.Count(l.Run.WriteBacksSent), report.Count(l.Flush.WriteBacksSent))
	}
}

// addWrites adds the columns for writes to the table of memory.
func addWrites(t *report.Table, r simulate.Result) {
	t.Columns = append(t.Columns, report.Columns("reads=lines fetched", "writes=memory writes", "written_bytes=bytes written",
		"writes_at_end=memory writes at the end", "written_bytes_at_end=bytes written at the end")...)
	t.Rows[0] = append(t.Rows[0], report.Count(r.Memory.Reads), report.Count(r.Memory.Writes), report.Count(r.Memory.BytesWritten),
		report.Count(r.Flush.Writes), report.Count(r.Flush.BytesWritten))
}

// flowTable returns a table that counts, for each level, the events that no other table counts.
func flowTable(levels []simulate.Level) report.Table {
	t := report.Table{Key: "flow", Title: "Demand reads and writes, and other traffic", Columns: report.Columns(
		"name=level", "reads", "read_misses=read misses", "writes", "write_misses=write misses",
		"write_backs_received=write-backs received", "write_back_misses=write-back misses",
		"updates=write-throughs received", "clean_victims=clean victims", "fills", "evictions",
		"back_invalidations=back-invalidated", "moved_up=moved up")}
	for i := range levels {
		c := &levels[i].Run
		t.Add(countsOf(levels[i].Cache.Name, c.Reads, c.ReadMisses, c.Writes, c.WriteMisses, c.WriteBacksReceived,
			c.WriteBackMisses, c.Updates, c.CleanVictims, c.Fills, c.Evictions, c.Taken, c.Given)...)
	}
	return t
}
