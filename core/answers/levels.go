package answers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Predicted returns the tables of a prediction: the levels, memory, the times if latencies are
// known, and the traffic if bandwidths are known.
func Predicted(h hierarchy.Hierarchy, p hierarchy.Prediction) []report.Table {
	tables := []report.Table{Levels(p), Memory(p)}
	if hasLatency(h) {
		tables = append(tables, AverageTime(p), Times(h, p))
	}
	if t := Traffic(h, p); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	return tables
}

// Levels returns a table with a row for each level of a hierarchy, starting with the first level.
func Levels(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "levels", Title: "Demand accesses", Columns: report.Columns(
		"name=level", "size_bytes=size", "ways", "line_bytes=line (bytes)", "accesses", "hits", "misses",
		"misses_low=at least", "misses_high=at most", "miss_ratio=miss ratio", "mpkr=MPKR", "mpki=MPKI",
		"method", "sdcm_misses=misses by SDCM", "sdcm_off=SDCM off by")}
	exact := true
	for _, l := range p.Levels {
		accesses := numberCell(l.Accesses, exact)
		exact = exact && l.Method == hierarchy.Exact
		model, off := report.None(), report.None()
		if l.Beside {
			model = report.Real(l.SDCMMisses)
			if l.Misses > 0 {
				off = report.Ratio(l.SDCMMisses/l.Misses - 1)
			}
		}
		low, high, misses := report.None(), report.None(), numberCell(l.Misses, exact)
		if l.Bounded {
			low, high = report.Real(l.Low), report.Real(l.High)
		}
		if l.Method == hierarchy.Extrapolated {
			misses = Forecast(&l)
		}
		t.Add(report.TextOf(l.Cache.Name), report.Bytes(l.Cache.SizeBytes), Ways(uint64(l.Cache.Ways)), report.Count(uint64(l.Cache.LineBytes)),
			accesses, numberCell(l.Hits, exact), misses, low, high, report.Quotient(l.Misses, l.Accesses),
			cellIfKnown(p.PerKiloReference(l.Misses), p.References > 0), cellIfKnown(p.PerKiloInstruction(l.Misses), p.Instructions > 0),
			report.TextOf(string(l.Method)), model, off)
	}
	return withoutEmpty(t, "misses_low", "misses_high", "mpki", "sdcm_misses", "sdcm_off")
}

// Forecast returns the cell for the misses of a level in a predicted run: an estimate, unless both
// limits of the misses are equal.
func Forecast(l *hierarchy.Level) report.Value {
	if l.Bounded && l.Low == l.High && l.Misses == math.Trunc(l.Misses) {
		return report.Count(uint64(l.Misses))
	}
	return report.About(l.Misses)
}

// numberCell returns the cell for a number of accesses: a count if the number is exact and whole,
// and otherwise a real number. If several cores share sets, even exact methods may yield fractions,
// because their results are expected values.
func numberCell(x float64, exact bool) report.Value {
	if exact && x == math.Trunc(x) {
		return report.Count(uint64(x))
	}
	return report.Real(x)
}

// exactTo reports whether the numbers of the first n levels are exact.
func exactTo(p *hierarchy.Prediction, n int) bool {
	return !slices.ContainsFunc(p.Levels[:n], func(l hierarchy.Level) bool { return l.Method != hierarchy.Exact })
}

// Ways returns the table cell for an associativity; 0 means fully associative.
func Ways(n uint64) report.Value {
	if n == 0 {
		return report.TextOf("full")
	}
	return report.Count(n)
}

// knownCell returns the cell for a number, or an empty cell if the number is 0, which means
// unknown.
func knownCell(x float64) report.Value { return cellIfKnown(x, x != 0) }

// cellIfKnown returns the cell for a number, or an empty cell if the number is not known.
func cellIfKnown(x float64, known bool) report.Value {
	if !known {
		return report.None()
	}
	return report.Decimal(x)
}

// Memory returns a table of the accesses to memory after the last level.
func Memory(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "memory", Single: true, Columns: report.Columns(
		"accesses=memory accesses", "fetched_bytes=bytes fetched")}
	exact := exactTo(&p, len(p.Levels))
	t.Add(numberCell(p.MemoryAccesses, exact), numberCell(p.MemoryBytes, exact))
	return t
}

// hasLatency reports whether the latency of any level or of memory is known.
func hasLatency(h hierarchy.Hierarchy) bool {
	return h.Memory.LatencyCycles > 0 || slices.ContainsFunc(h.Levels, func(c hierarchy.Cache) bool { return c.LatencyCycles > 0 })
}

// AverageTime returns a table with the average memory access time (AMAT).
func AverageTime(p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "amat", Single: true, Columns: report.Columns(
		"cycles=average access time (cycles)", "ns=the same (ns)")}
	t.Add(knownCell(p.AverageCycles), knownCell(p.AverageNanoseconds))
	return withoutEmpty(t, "ns")
}

// Times returns a table with a row for each level and a row for memory. Each row shows the share of
// all accesses that hit in the level (or go to memory), and the latency of these accesses.
func Times(h hierarchy.Hierarchy, p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "times", Title: "Accesses served by each level", Columns: report.Columns(
		"name=level", "latency_cycles=latency (cycles)", "served=of all accesses",
		"average_cycles=average cost of an access that reaches the level (cycles)")}
	share := func(n float64) report.Value { return report.Quotient(n, p.Levels[0].Accesses) }
	for _, l := range p.Levels {
		t.Add(report.TextOf(l.Cache.Name), knownCell(l.Cache.LatencyCycles), share(l.Hits), knownCell(l.AverageCycles))
	}
	t.Add(report.TextOf("memory"), knownCell(h.Memory.LatencyCycles), share(p.MemoryAccesses), knownCell(h.Memory.LatencyCycles))
	return t
}

// Traffic returns a table with a row for each level whose bandwidth is known, and a row for memory.
func Traffic(h hierarchy.Hierarchy, p hierarchy.Prediction) report.Table {
	t := report.Table{Key: "traffic", Title: "Bytes sent to the level above, write-backs, and the minimum cycles for both", Columns: report.Columns(
		"name=level", "bytes", "bytes_per_cycle=bandwidth (bytes per cycle)", "least_cycles=least cycles")}
	for _, l := range p.Levels {
		if l.Cache.BytesPerCycle > 0 {
			t.Add(report.TextOf(l.Cache.Name), report.Real(l.Bytes), knownCell(l.Cache.BytesPerCycle), report.Real(l.LeastCycles))
		}
	}
	if h.Memory.BytesPerCycle > 0 {
		t.Add(report.TextOf("memory"), report.Real(p.MemoryBytes), knownCell(h.Memory.BytesPerCycle), report.Real(p.MemoryLeastCycles))
	}
	return t
}

// ThreadsOn describes how a prediction for h assigns the threads of p to cores and shared caches,
// for example "4 threads, each on its own core; L1 private, L2 shared by all cores". ThreadsOn
// returns "" for a program with one thread.
func ThreadsOn(p *profile.Profile, h hierarchy.Hierarchy) string {
	n := len(p.Totals.Threads)
	if n < 2 {
		return ""
	}
	text := strconv.Itoa(n) + " threads"
	if len(p.Sharing) == 0 || h.Threads == hierarchy.OnOneCore {
		return text + ", all on one core"
	}
	if cores := p.Sharing[0].Cores; len(cores) == n {
		text += ", each on its own core"
	} else {
		text += " on " + strconv.Itoa(len(cores)) + " cores"
		if len(cores) <= mostGroups {
			text += " (" + Groups(p) + ")"
		}
	}
	var parts []string
	for i := 0; i < len(h.Levels); {
		end := i + 1
		for end < len(h.Levels) && max(h.Levels[end].SharedBy, 1) == max(h.Levels[i].SharedBy, 1) {
			end++
		}
		if n := h.Levels[i].SharedBy; n <= 1 && end-i == len(h.Levels) {
			parts = append(parts, "private caches")
		} else {
			parts = append(parts, namesOf(h.Levels[i:end])+" "+sharedBy(n))
		}
		i = end
	}
	return text + "; " + strings.Join(parts, ", ")
}

// ThreadFacts returns [ThreadsOn] as a fact for a document, or nil for a program with one thread.
func ThreadFacts(p *profile.Profile, h hierarchy.Hierarchy) []report.Fact {
	text := ThreadsOn(p, h)
	if text == "" {
		return nil
	}
	return []report.Fact{{Key: "threads_on", Label: "threads", Value: report.TextOf(strings.Replace(text, " threads", "", 1))}}
}

// mostGroups is the maximum number of thread groups that a line of text lists.
const mostGroups = 8

// Groups lists the threads of each core, for example 0,1/2,3. Groups returns "" for a profile
// without per-thread LRU stacks.
func Groups(p *profile.Profile) string {
	var groups []string
	if len(p.Sharing) > 0 {
		for _, c := range p.Sharing[0].Cores {
			groups = append(groups, NumbersOf(c.Threads))
		}
	}
	return strings.Join(groups, "/")
}

func namesOf(levels []hierarchy.Cache) string {
	var names []string
	for _, c := range levels {
		names = append(names, c.Name)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return names[0]
}

func sharedBy(cores uint32) string {
	switch {
	case cores <= 1:
		return "private"
	case cores == hierarchy.AllCores:
		return "shared by all cores"
	}
	return "shared by " + strconv.FormatUint(uint64(cores), 10) + " cores"
}

// PredictedByCore returns the tables of [Predicted] for several cores, and adds the coherence
// misses of each level.
func PredictedByCore(h hierarchy.Hierarchy, p hierarchy.ByCore) []report.Table {
	tables := Predicted(h, p.Prediction)
	if len(p.Cores) == 0 {
		return tables
	}
	levels := &tables[0]
	levels.Columns = append(levels.Columns, report.Columns("coherence_misses=of coherence")...)
	for i := range levels.Rows {
		levels.Rows[i] = append(levels.Rows[i], numberCell(p.Coherence[i], exactTo(&p.Prediction, i+1)))
	}
	return tables
}

// MainNumbers contains the keys of the most important numbers of levels, for [Against].
var MainNumbers = []string{"size_bytes", "ways", "page_bytes", "misses", "miss_ratio", "coherence_misses", "fetched_bytes", "cycles", "ns", "walks"}

// Against joins the predictions for two hierarchies, A and B. Against pairs levels with the same
// name, and adds rows for the accesses to memory, the average access time, the TLBs and the page
// walks. The parameter translations contains the tables of [Translation] for A and for B. If keys are
// given, the table is brief, and contains only the numbers with these keys.
func Against(h [2]hierarchy.Hierarchy, p [2]hierarchy.ByCore, translations [2][]report.Table, keys ...string) report.Table {
	var sides [2]report.Table
	for i := range sides {
		sides[i] = predictionTable(h[i], p[i], translations[i])
	}
	j := report.Join(sides[0], sides[1], report.Key{Columns: []string{"name"}, Without: []string{"sdcm_misses", "sdcm_off", "page_bytes"}})
	j.Title = "A compared with B: " + hierarchyText(&h[0], &h[1]) + " and " + hierarchyText(&h[1], &h[0])
	if keys != nil {
		return j.Pick(keys...).Brief("against")
	}
	return j.Table("against")
}

// predictionTable returns a prediction as a single table, with a row for each level, for memory,
// for all accesses, for each TLB, and for the page walks with the hierarchy's page size.
func predictionTable(h hierarchy.Hierarchy, p hierarchy.ByCore, translation []report.Table) report.Table {
	t := PredictedByCore(h, p)[0]
	add := func(name report.Value, of *report.Table, row []report.Value) {
		for _, c := range of.Columns {
			if t.Index(c.Key) < 0 {
				t.Columns = append(t.Columns, c)
			}
		}
		t.Rows = append(t.Rows, nil)
		for i := range t.Rows {
			for at := len(t.Rows[i]); at < len(t.Columns); at++ {
				t.Rows[i] = append(t.Rows[i], report.None())
			}
		}
		last := t.Rows[len(t.Rows)-1]
		for i, c := range of.Columns {
			last[t.Index(c.Key)] = row[i]
		}
		last[t.Index("name")] = name
	}
	memory, times := Memory(p.Prediction), AverageTime(p.Prediction)
	add(report.TextOf("memory"), &memory, memory.Rows[0])
	add(report.TextOf("all accesses"), &times, times.Rows[0])
	for i := range translation {
		of := &translation[i]
		for _, row := range of.Rows {
			if name := of.Index("name"); name >= 0 {
				add(row[name], of, row)
			} else if report.Equal(row[of.Index("page_bytes")], report.Bytes(h.PageSize())) {
				add(report.TextOf("page walks"), of, row)
			}
		}
	}
	return t
}

// hierarchyText returns the name of a hierarchy or of the preset that differs from it only in the page
// size, or lists its levels. It adds the page size and the assignment of threads to cores if the
// two hierarchies differ in these.
func hierarchyText(h, other *hierarchy.Hierarchy) string {
	standard := *h
	standard.PageBytes = 0
	text := cmp.Or(h.Name, standard.PresetName())
	if text == "" {
		var levels []string
		for _, c := range h.Levels {
			levels = append(levels, c.String())
		}
		text = strings.Join(levels, " ")
	}
	if h.PageSize() != other.PageSize() {
		text += " with pages of " + report.Bytes(h.PageSize()).Human()
	}
	switch {
	case h.Threads == other.Threads:
	case h.Threads == hierarchy.OnOneCore:
		text += " (all threads on one core)"
	default:
		text += " (each thread on its own core)"
	}
	return text
}

// CoreLevels returns a table with a row for each core and level. A row contains the core's demand
// accesses to the level, and the misses of these accesses.
func CoreLevels(p hierarchy.ByCore) report.Table {
	t := report.Table{Key: "cores", Title: "Demand accesses by core", Columns: report.Columns(
		"core", "threads", "name=level", "accesses", "hits", "misses", "miss_ratio=miss ratio",
		"coherence_misses=of coherence")}
	for n, core := range p.Cores {
		for i, l := range core.Levels {
			exact := exactTo(&p.Prediction, i+1)
			t.Add(report.Count(uint64(n)), report.TextOf(NumbersOf(core.Threads)), report.TextOf(p.Levels[i].Cache.Name), numberCell(l.Accesses, exactTo(&p.Prediction, i)),
				numberCell(l.Hits, exact), numberCell(l.Misses, exact), report.Quotient(l.Misses, l.Accesses), numberCell(l.Coherence, exact))
		}
	}
	return t
}

// AbsentThreads returns a warning for each group of --cores or --domains that contains threads
// without references. Each warning begins with the threads of the group.
func AbsentThreads(p *profile.Profile, groups [][]uint32) (doubts []string) {
	threads, whole := p.Totals.Threads, "the trace"
	switch {
	case len(groups) == 0 || p.Totals.AllReferences() == 0:
		return nil
	case len(threads) == 0:
		var names []string
		for _, group := range groups {
			names = append(names, NumbersOf(group))
		}
		return []string{strings.Join(names, "/") + ": the trace does not record which thread made a reference"}
	case p.Input.Threads != nil || p.Input.Skip > 0 || p.Input.Limit > 0:
		whole = "the analysed part of the trace"
	}
	for _, group := range groups {
		switch known := KnownThreads(p, group); len(known) {
		case len(group):
		case 0:
			doubts = append(doubts, NumbersOf(group)+": "+whole+" contains none of these threads, only "+NumbersOf(threads))
		default:
			doubts = append(doubts, NumbersOf(group)+": "+whole+" contains only some of these threads: "+NumbersOf(known))
		}
	}
	return doubts
}

// KnownThreads returns the members of a group of threads that made references in the run.
func KnownThreads(p *profile.Profile, group []uint32) (known []uint32) {
	for _, t := range group {
		if _, found := slices.BinarySearch(p.Totals.Threads, t); found {
			known = append(known, t)
		}
	}
	return known
}

// ManyThreads returns warnings about communication that the profile does not contain because there
// are too many threads. If the question is about transfers between caches, the parameter caches
// must be true.
func ManyThreads(p *profile.Profile, caches bool) (doubts []string) {
	if n := p.Communication.Beyond; n > 0 {
		doubts = append(doubts, "there are more than "+strconv.Itoa(profile.MaxThreads)+" threads; the "+strconv.FormatUint(uint64(n)+1, 10)+
			" threads that appear last count as one thread, so communication between them is left out")
	}
	if !caches || p.Communication.Sources == nil || len(p.Sharing) == 0 {
		return doubts
	}
	if cores := len(p.Sharing[0].Cores); cores > 0 && cores < len(p.Totals.Threads) {
		doubts = append(doubts, strconv.Itoa(len(p.Totals.Threads))+" threads run on "+strconv.Itoa(cores)+
			" cores; transfers between threads on the same core are not counted")
	}
	return doubts
}
