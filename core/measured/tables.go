package measured

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/report"
)

// Prediction is a prediction for the measured run.
type Prediction struct {
	Loads, Stores float64 // numbers of references; a reference that loads and stores counts as both
	Levels        []Level // caches for data, starting with L1
	Memory        float64 // accesses of the memory
	// Translations is the number of translated addresses, and PageWalks the number of misses of the
	// last TLB. Translations is 0 if TLBs were not predicted.
	Translations, PageWalks float64
	Cycles                  float64 // sum of the latencies of all references; 0 if unknown
	// Misses returns the share of the misses of L1 that the code with this name causes. Misses is nil
	// if the prediction has no sites.
	Misses func(function, source string) (share float64, ok bool)
}

// Level is the prediction for a cache.
type Level struct {
	Name             string
	Accesses, Misses float64
}

// Options selects what the tables contain.
type Options struct {
	ByFunction bool   // group code by function, not by source line
	LineBytes  uint64 // a power of two
	Top        int    // maximum number of rows of code and of cache lines; 0 means all rows
}

// Tables returns the tables of the measurements. The prediction may be nil.
func (m *Measurements) Tables(o Options, p *Prediction) (tables []report.Table) {
	if len(m.Counts) > 0 {
		tables = append(tables, m.countTable(p))
	}
	if len(m.Samples) == 0 {
		return tables
	}
	tables = append(tables, m.levelTable(p), m.sourceTable())
	if t := m.translationTable(p); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	code := m.codeTable(o, p)
	shared, accesses := m.sharedTables(o)
	tables = append(tables, limited(code, o.Top))
	if len(shared.Rows) > 0 {
		tables = append(tables, limited(shared, o.Top), limited(accesses, 4*o.Top))
	}
	return tables
}

// limited returns a table with at most n rows, or the whole table if n is 0.
func limited(t report.Table, n int) report.Table {
	if n > 0 && len(t.Rows) > n {
		t.Title += " (" + strconv.Itoa(n) + " of " + strconv.Itoa(len(t.Rows)) + " rows)"
		t.Rows = t.Rows[:n]
	}
	return t
}

// weights adds up the periods of samples.
type weights struct {
	samples     uint64
	sum, square float64
	cycles      float64 // sum of period × latency of the samples whose latency is known
	timed       float64 // sum of the periods of these samples
}

func (w *weights) add(s *Sample) {
	period := float64(s.Period)
	w.samples++
	w.sum += period
	w.square += period * period
	if s.Cycles > 0 {
		w.cycles += period * float64(s.Cycles)
		w.timed += period
	}
}

func (w *weights) mean() report.Value {
	if w.timed == 0 {
		return report.None()
	}
	return report.Decimal(w.cycles / w.timed)
}

type latency struct{ cycles, period uint64 }

// median returns the latency that half of the events do not exceed. It sorts the list.
func median(list []latency) report.Value {
	slices.SortFunc(list, func(a, b latency) int { return cmp.Compare(a.cycles, b.cycles) })
	all, below := 0.0, 0.0
	for _, l := range list {
		all += float64(l.period)
	}
	for _, l := range list {
		if below += float64(l.period); 2*below >= all {
			return report.Count(l.cycles)
		}
	}
	return report.None()
}

// interval returns the 95 % confidence interval (Wilson) of the share of the events that part
// contains. Samples with different periods count as fewer samples of equal periods (Kish).
func (w *weights) interval(part float64) (low, high float64) {
	const z = 1.959963984540054
	n := w.sum * w.sum / w.square
	p := part / w.sum
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(max(0, p*(1-p))/n+z*z/(4*n*n))
	return max(0, centre-half), min(1, centre+half)
}

// name returns a name, or no value if it is unknown.
func name(s string) report.Value {
	if s == "" {
		return report.None()
	}
	return report.TextOf(s)
}

func ratio(x float64, known bool) report.Value {
	if !known {
		return report.None()
	}
	return report.Ratio(x)
}

// share returns the ratio of a part to the whole, or no value if the whole is 0.
func share(part, whole float64) report.Value { return ratio(part/whole, whole > 0) }

// outcomes adds up the samples for which it is known whether they missed.
type outcomes struct{ all, missed weights }

func (o *outcomes) add(s *Sample, known, missed bool) {
	if known {
		o.all.add(s)
	}
	if known && missed {
		o.missed.add(s)
	}
}

// addLevel adds a sample that hit or missed in a cache level, where 1 is L1.
func (o *outcomes) addLevel(s *Sample, level int) {
	at := s.Data.Source().at(level)
	o.add(s, at == hit || at == miss, at == miss)
}

func (o *outcomes) ratio() report.Value { return share(o.missed.sum, o.all.sum) }

// interval returns the ends of the confidence interval of the ratio.
func (o *outcomes) interval() (low, high report.Value) {
	if o.all.samples == 0 {
		return report.None(), report.None()
	}
	least, most := o.all.interval(o.missed.sum)
	return report.Ratio(least), report.Ratio(most)
}

// difference returns the measured minus the predicted ratio.
func (o *outcomes) difference(part, whole float64) report.Value {
	return ratio(o.missed.sum/o.all.sum-part/whole, o.all.sum > 0 && whole > 0)
}

// operation returns the operation whose samples are compared with the prediction: "load", or
// "store" if the samples contain no load. The operations are not mixed, because latencies and data
// sources of stores mean something else: a store retires before its line arrives.
func (m *Measurements) operation() string {
	if slices.ContainsFunc(m.Samples, func(s Sample) bool { return s.Data.Op() == "load" }) {
		return "load"
	}
	return "store"
}

// comparedSamples iterates over the samples of [Measurements.operation].
func (m *Measurements) comparedSamples() iter.Seq[*Sample] {
	return func(yield func(*Sample) bool) {
		op := m.operation()
		for i := range m.Samples {
			if s := &m.Samples[i]; s.Data.Op() == op && !yield(s) {
				return
			}
		}
	}
}

// levelTable compares the miss ratio of each level with the prediction. A level's ratio is the share
// of the samples that reached the level.
func (m *Measurements) levelTable(p *Prediction) report.Table {
	t := report.Table{Key: "levels", Title: "Miss ratios of the sampled " + m.operation() + "s", Columns: report.Columns(
		"level", "samples", "misses=missed", "miss_ratio=measured miss ratio", "at_least=at least", "at_most=at most",
		"predicted_miss_ratio=predicted miss ratio", "difference")}
	deepest := 3
	if p != nil {
		deepest = max(deepest, len(p.Levels))
	}
	for level := 1; level <= deepest; level++ {
		var o outcomes
		for s := range m.comparedSamples() {
			o.addLevel(s, level)
		}
		l := Level{Name: "L" + strconv.Itoa(level)}
		if p != nil && level <= len(p.Levels) {
			l = p.Levels[level-1]
		} else if o.all.samples == 0 {
			continue
		}
		low, high := o.interval()
		t.Add(report.TextOf(l.Name), report.Count(o.all.samples), report.Count(o.missed.samples), o.ratio(), low, high,
			share(l.Misses, l.Accesses), o.difference(l.Misses, l.Accesses))
	}
	return t
}

// sourceTable groups the samples by operation and data source.
func (m *Measurements) sourceTable() report.Table {
	t := report.Table{Key: "sources", Title: "Samples by data source", Columns: report.Columns(
		"operation", "source=data source", "samples", "share", "contended=from another core's cache", "mean_cycles=mean latency (cycles)", "median_cycles=median latency (cycles)")}
	for _, op := range []string{"load", "store"} {
		var all weights
		var by [numSources]weights
		var latencies [numSources][]latency
		var contended [numSources]uint64
		for i := range m.Samples {
			s := &m.Samples[i]
			if s.Data.Op() != op {
				continue
			}
			source := s.Data.Source()
			all.add(s)
			by[source].add(s)
			if s.Cycles > 0 {
				latencies[source] = append(latencies[source], latency{s.Cycles, s.Period})
			}
			if s.Data.Contended() {
				contended[source]++
			}
		}
		for source := range by {
			if w := &by[source]; w.samples > 0 {
				t.Add(report.TextOf(op), report.TextOf(Source(source).String()), report.Count(w.samples), share(w.sum, all.sum),
					report.Count(contended[source]), w.mean(), median(latencies[source]))
			}
		}
	}
	return t
}

// translationTable compares the share of page walks with the prediction.
func (m *Measurements) translationTable(p *Prediction) report.Table {
	t := report.Table{Key: "translation", Title: "Page walks of the sampled " + m.operation() + "s", Columns: report.Columns(
		"samples", "walks=page walks", "share", "at_least=at least", "at_most=at most", "predicted_share=predicted share", "difference")}
	var o outcomes
	for s := range m.comparedSamples() {
		walk, known := s.Data.PageWalk()
		o.add(s, known, walk)
	}
	if o.all.samples == 0 {
		return t
	}
	if p == nil {
		p = new(Prediction)
	}
	low, high := o.interval()
	t.Add(report.Count(o.all.samples), report.Count(o.missed.samples), o.ratio(), low, high,
		share(p.PageWalks, p.Translations), o.difference(p.PageWalks, p.Translations))
	return t
}

// code contains the samples of a function or a source line.
type code struct {
	function, source string
	all              weights
	l1, l3           outcomes
	contended        uint64
}

// codeTable groups the samples by code, in descending order of their latencies.
func (m *Measurements) codeTable(o Options, p *Prediction) report.Table {
	unit := "source line"
	if o.ByFunction {
		unit = "function"
	}
	t := report.Table{Key: "code", Title: "Sampled " + m.operation() + "s by " + unit, Columns: report.Columns(
		"function", "source=source line", "samples", "mean_cycles=mean latency (cycles)", "latency_share=share of the latency", "miss_ratio=L1 miss ratio", "l3_miss_ratio=L3 miss ratio",
		"contended=from another core's cache", "misses_share=share of the L1 misses", "predicted_misses_share=predicted share of the L1 misses")}
	var cycles, missed float64
	rows, at := []*code{}, map[[2]string]*code{}
	for s := range m.comparedSamples() {
		function, source := s.name(o.ByFunction)
		key := [2]string{function, source}
		c := at[key]
		if c == nil {
			c = &code{function: function, source: source}
			at[key] = c
			rows = append(rows, c)
		}
		c.all.add(s)
		c.l1.addLevel(s, 1)
		c.l3.addLevel(s, 3)
		if s.Data.Contended() {
			c.contended++
		}
	}
	slices.SortStableFunc(rows, func(a, b *code) int {
		return cmp.Or(cmp.Compare(b.all.cycles, a.all.cycles), cmp.Compare(b.all.sum, a.all.sum))
	})
	for _, c := range rows {
		cycles += c.all.cycles
		missed += c.l1.missed.sum
	}
	for _, c := range rows {
		predicted := report.None()
		if p != nil && p.Misses != nil {
			predicted = ratio(p.Misses(c.function, c.source))
		}
		t.Add(name(c.function), name(c.source), report.Count(c.all.samples), c.all.mean(), share(c.all.cycles, cycles),
			c.l1.ratio(), c.l3.ratio(), report.Count(c.contended), share(c.l1.missed.sum, missed), predicted)
	}
	return t
}

// cacheLine contains the samples of a cache line that another core's cache delivered at least once.
type cacheLine struct {
	line                     uint64
	contended, loads, stores uint64
	threads                  map[uint32]bool
	accesses                 []*access
	at                       map[accessKey]*access
}

type accessKey struct {
	offset           uint64
	function, source string
	thread           uint32
}

type access struct {
	accessKey
	contended, loads, stores uint64
}

// sharedTables lists the cache lines that another core's cache delivered, and the sampled accesses to
// these lines.
func (m *Measurements) sharedTables(o Options) (shared, accesses report.Table) {
	shared = report.Table{Key: "lines", Title: "Cache lines that another core's cache delivered", Columns: report.Columns(
		"line=address", "contended=from another core's cache", "loads=sampled loads", "stores=sampled stores", "threads", "kind=sharing")}
	accesses = report.Table{Key: "accesses", Title: "Sampled accesses to these lines", Columns: report.Columns(
		"line=address", "offset (bytes)", "function", "source=source line", "thread", "contended=from another core's cache", "loads=sampled loads", "stores=sampled stores")}
	for _, l := range m.sharedLines(o) {
		address := report.TextOf("0x" + strconv.FormatUint(l.line, 16))
		shared.Add(address, report.Count(l.contended), report.Count(l.loads), report.Count(l.stores), report.Count(uint64(len(l.threads))), report.TextOf(l.kind()))
		for _, a := range l.accesses {
			accesses.Add(address, report.Count(a.offset), name(a.function), name(a.source), report.TextOf(strconv.FormatUint(uint64(a.thread), 10)),
				report.Count(a.contended), report.Count(a.loads), report.Count(a.stores))
		}
	}
	return shared, accesses
}

func (m *Measurements) sharedLines(o Options) (list []*cacheLine) {
	at := map[uint64]*cacheLine{}
	for i := range m.Samples {
		if s := &m.Samples[i]; s.Data.Contended() {
			line := s.Addr &^ (o.LineBytes - 1)
			if at[line] == nil {
				at[line] = &cacheLine{line: line, threads: map[uint32]bool{}, at: map[accessKey]*access{}}
				list = append(list, at[line])
			}
		}
	}
	for i := range m.Samples {
		s := &m.Samples[i]
		if l := at[s.Addr&^(o.LineBytes-1)]; l != nil {
			l.add(s, o)
		}
	}
	slices.SortStableFunc(list, func(a, b *cacheLine) int {
		return cmp.Or(cmp.Compare(b.contended, a.contended), cmp.Compare(a.line, b.line))
	})
	for _, l := range list {
		slices.SortStableFunc(l.accesses, func(a, b *access) int {
			return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.thread, b.thread), cmp.Compare(a.function, b.function), cmp.Compare(a.source, b.source))
		})
	}
	return list
}

func (l *cacheLine) add(s *Sample, o Options) {
	function, source := s.name(o.ByFunction)
	key := accessKey{s.Addr & (o.LineBytes - 1), function, source, s.Thread}
	a := l.at[key]
	if a == nil {
		a = &access{accessKey: key}
		l.at[key] = a
		l.accesses = append(l.accesses, a)
	}
	l.threads[s.Thread] = true
	if s.Data.Contended() {
		l.contended++
		a.contended++
	}
	if s.Data.Op() == "store" {
		l.stores++
		a.stores++
	} else {
		l.loads++
		a.loads++
	}
}

// kind returns how threads share the line, as far as the samples show it: "false sharing" if several
// threads use the line but no two threads use the same offset, and "true sharing" if two threads do.
func (l *cacheLine) kind() string {
	if len(l.threads) < 2 {
		return "unknown"
	}
	user := map[uint64]uint32{}
	for _, a := range l.accesses {
		if thread, used := user[a.offset]; used && thread != a.thread {
			return "true sharing"
		}
		user[a.offset] = a.thread
	}
	return "false sharing"
}
