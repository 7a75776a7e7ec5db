package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// simulation contains the options of a simulation.
type simulation struct {
	machineOptions
	r              *readOptions
	budget         []string
	seed           uint64
	protocol       string
	pages          string
	warmup         uint64
	warmupShare    float64   // share of the last level that must be filled before counting begins
	part           string    // the part of the run that is counted, in the syntax of --range; "" means the whole run
	counted        [2]uint64 // the part as numbers of references, from the first to the last plus one
	region         string    // the name of the marked regions that are counted; "" means the whole run
	causes, bound  bool
	i1, d1, ll     string // the options --I1, --D1 and --LL, as in Cachegrind
	translated     simulate.Result
	hasTranslation bool
	// whether the trace records the instruction of each reference; determined only if a prefetcher
	// needs instructions
	instructions bool
}

func newSimulation(cmd *cobra.Command, budgetExample string) *simulation {
	s := &simulation{r: addReading(cmd)}
	hide(cmd, "workers") // a simulation processes the trace in order, so it cannot use several workers
	s.addMachine(cmd, cacheUsage)
	f := cmd.Flags()
	f.StringArrayVar(&s.budget, "fail-if", nil, "exit with code 1 if this `CONDITION` is true, for example '"+budgetExample+"' (may be repeated)")
	f.Uint64Var(&s.seed, "seed", 0, "the `SEED` for random replacement")
	f.StringVar(&s.protocol, "protocol", simulate.MESI.String(), "the coherence `PROTOCOL` of private caches: mesi or msi")
	f.StringVar(&s.r.cores, "cores", "", "run each group of threads in `GROUPS` on its own core, for example 0,1/2,3 (default: each thread on its own core)")
	setCompletions(cmd, "protocol", []string{"mesi", "msi"})
	return s
}

// addFeatures adds the options that only the verb simulate has.
func (s *simulation) addFeatures(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Lookup("protocol").Usage = "the coherence `PROTOCOL` of private caches: mesi, msi, or none (stores do not invalidate lines in other caches)"
	f.Lookup("kinds").Usage = "simulate references of these `KINDS`: load, store, modify, fetch, data, all (default: data, and fetch if the hierarchy has a cache or a TLB for instructions)"
	f.Lookup("kinds").DefValue = ""
	f.Uint64Var(&s.warmup, "warmup", 0, "simulate the first `N` references without counting them")
	f.StringVar(&s.part, "range", "", "count only the references in this `PART` of the run, such as 10%..35% or 2000000..5000000 (reference numbers); the references before the part only fill the caches")
	f.StringVar(&s.region, "region", "", "count only the references in marked regions with this `NAME`; all other references only fill the caches")
	f.BoolVar(&s.causes, "causes", false, "divide misses into cold, capacity and conflict misses")
	f.BoolVar(&s.bound, "bound", false, "also count the misses of optimal replacement (Belady's OPT), the minimum for policies that insert every line")
	f.StringVar(&s.pages, "pages", "", "the page `SIZE` for TLBs, for example 2MiB (default: 4KiB)")
	f.StringVar(&s.i1, "I1", "", "`SIZE,WAYS,LINE` of the first-level instruction cache, as in Cachegrind; with this option, accesses are counted as Cachegrind counts them")
	f.StringVar(&s.d1, "D1", "", "`SIZE,WAYS,LINE` of the first-level data cache, as in Cachegrind")
	f.StringVar(&s.ll, "LL", "", "`SIZE,WAYS,LINE` of the last level, as in Cachegrind")
}

// machine returns the hierarchy that the options describe.
func (s *simulation) machine() (h hierarchy.Hierarchy, err error) {
	if s.i1 == "" && s.d1 == "" && s.ll == "" {
		h, err = s.hierarchy()
	} else {
		h, err = s.cachegrind()
	}
	if err == nil && s.pages != "" {
		err = asUsage(h.SetPages(s.pages))
	}
	return h, err
}

// cachegrind returns the hierarchy that Cachegrind's options describe.
func (s *simulation) cachegrind() (h hierarchy.Hierarchy, err error) {
	if s.isGiven() || s.d1 == "" || s.ll == "" {
		return h, usagef("--I1, --D1 and --LL describe a whole hierarchy: give --D1 and --LL, and neither --cache nor --hierarchy; without --I1, instruction fetches are ignored")
	}
	lines := []string{"D1=" + s.d1, "LL=" + s.ll}
	if s.i1 != "" {
		lines = append(lines, "I1="+s.i1+",instructions")
	}
	for _, line := range lines {
		if strings.Count(line, ",") < 2 {
			return h, usagef("--", strings.Replace(line, "=", " ", 1), ", want SIZE,WAYS,LINE, for example --D1 32768,8,64")
		}
		if err := h.Add(line); err != nil {
			return h, asUsage(err)
		}
	}
	h.Simulation.PerReference = true
	return h, nil
}

// simulate returns the verb that simulates a cache hierarchy.
func (a *app) simulate() *cobra.Command {
	var s *simulation
	cmd := &cobra.Command{
		Use:   "simulate TRACE --cache NAME=SIZE,WAYS[,LINE][,PROPERTY…] …",
		Short: "Hits and misses of a hierarchy, by exact simulation",
		Args:  oneFile,
		RunE:  func(_ *cobra.Command, args []string) error { return a.runSimulate(s, args[0]) },
	}
	s = newSimulation(cmd, "L2.misses>1e6")
	s.addFeatures(cmd)
	return cmd
}

func (a *app) runSimulate(s *simulation, name string) error {
	h, err := s.machine()
	if err != nil {
		return err
	}
	if s.r.firstSet("kinds") == "" && len(h.Instructions)+len(h.InstructionTLBs) > 0 {
		s.r.kinds = trace.AllKinds.String()
	}
	if s.r.firstSet("skip") == "" {
		s.r.skip = h.Simulation.Skip
	}
	budgets, err := parseBudgets(s.budget, h)
	if err != nil {
		return err
	}
	l, counted, err := a.simulateAndAnalyze(s, name, h, analysis.None)
	if err != nil {
		return err
	}
	if err := errors.Join(s.checkRange(l), s.checkRegion(l)); err != nil {
		return err
	}
	idle, reason := s.idleCaches(h, l)
	if idle != "" {
		counted.Instructions, s.translated.Instructions = nil, nil
	}
	measured := measuredOf(h, l, counted)
	d := &report.Document{Schema: "stackglass.simulate", Version: 1, Input: l.facts(0)}
	if idle != "" && s.isPreset() {
		d.Input = append(d.Input, report.Fact{Key: "not_simulated", Label: "not simulated", Value: report.TextOf(idle + " (" + reason + ")")})
	}
	d.Input = append(d.Input, s.rangeFacts(counted)...)
	d.Tables = answers.Predicted(h, measured)
	levels := slices.Concat(counted.Instructions, counted.Levels)
	addInstructions(&d.Tables[0], counted)
	addWriteBacks(&d.Tables[0], levels)
	addFeatures(&d.Tables[0], levels)
	addWrites(&d.Tables[1], counted)
	if t := boundTable(levels); len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
	if t := prefetchTable(levels); len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
	if s.hasTranslation {
		d.Tables = append(d.Tables, translationTables(s.translated)...)
	}
	d.Tables = append(d.Tables, flowTable(levels))
	if len(counted.Cores) > 1 {
		addCoherence(&d.Tables[0], levels)
		d.Tables = append(d.Tables, coreTable(counted, levels))
		if t := busTable(counted); len(t.Rows) > 0 || s.protocol != simulate.Incoherent.String() {
			d.Tables = append(d.Tables, t)
		}
	}
	d.Warnings = simulatedDoubts(h, s, l, counted)
	if idle != "" && !s.isPreset() {
		d.Warnings = append(d.Warnings, s.idleWarning(l, idle, reason))
	}
	for _, doubt := range h.SizeDoubts() {
		d.Warnings = append(d.Warnings, string(doubt))
	}
	if err := a.answer(l, s.r.format, d); err != nil {
		return err
	}
	return checkBudgets(budgets, d)
}

// simulateAndAnalyze simulates the hierarchy h and runs analyses, in the same pass over a trace.
func (a *app) simulateAndAnalyze(s *simulation, name string, h hierarchy.Hierarchy, analyses analysis.Analyses) (*loadedFile, simulate.Result, error) {
	var none simulate.Result
	if s.r.sample != "" {
		return nil, none, usagef("--sample: a simulation needs every access; to use a sample, run: stackglass what-if")
	}
	s.r.sets = ask.SetNumbers(h) | 1
	o, err := s.r.options(a, s.lineSizes(h))
	if err != nil {
		return nil, none, err
	}
	protocol, err := simulate.ParseProtocol(s.protocol)
	if err != nil {
		return nil, none, askUsageError(err)
	}
	need, err := simulate.MemoryBytes(h)
	if err != nil {
		return nil, none, asUsage(err)
	}
	if o.MemoryBytes > 0 && need > o.MemoryBytes {
		return nil, none, fmt.Errorf("%w (set the limit with --memory; the default is half of the free memory)", &analysis.MemoryError{LimitBytes: o.MemoryBytes, NeedBytes: need})
	}
	options := simulate.OptionsOf(&h)
	options.Seed, options.Cores, options.MemoryBytes = s.seed, o.Spec.Cores, o.MemoryBytes
	options.Causes, options.Bound = options.Causes || s.causes, s.bound
	if s.r.firstSet("warmup") != "" {
		options.Warmup, options.WarmupShare = s.warmup, 0
	}
	if err := s.addRange(a, name, o, &options); err != nil {
		return nil, none, err
	}
	var program func() *trace.Program
	if s.r.firstSet("region") != "" {
		if err := s.addRegion(&options, func() *trace.Program { return program() }); err != nil {
			return nil, none, err
		}
		if analyses == analysis.None {
			analyses = 0
		}
		analyses |= analysis.Regions // this analysis selects the events that begin and end regions
	}
	s.warmup, s.warmupShare = options.Warmup, options.WarmupShare
	if s.r.firstSet("protocol") != "" || options.Protocol != simulate.Incoherent {
		options.Protocol = protocol
	}
	simulator, err := simulate.New(h, options)
	if err != nil {
		return nil, none, asUsage(err)
	}
	consume := simulator.Consume
	translator, err := s.translator(h, options)
	if err != nil {
		return nil, none, asUsage(err)
	}
	if translator != nil {
		consume = func(b *trace.Batch) error { return errors.Join(simulator.Consume(b), translator.Consume(b)) }
	}
	in, err := pass.Open(s.r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, none, err
	}
	defer in.Close()
	if in.IsProfile {
		return nil, none, profileError(in.Name)
	}
	o.Spec.Analyses, o.Beside = analyses, consume
	if usesStrides(h) || s.region != "" { // stride prefetchers must know the instruction of each reference
		o.BesideEvents = s.region != ""
		o.Beside, o.BesideSites = nil, func(of func() *trace.Program) func(*trace.Batch) error {
			program = of
			return func(b *trace.Batch) error {
				s.instructions = s.instructions || b.PC != nil || b.Site != nil
				return consume(b)
			}
		}
	}
	cores, err := s.r.sharingCores(h, in, o)
	if err != nil {
		return nil, none, err
	}
	o.Spec.Domains = domainsOf(h, cores)
	result, err := in.Analyze(s.r.cmd.Context(), o)
	if err != nil {
		return nil, none, err
	}
	if translator != nil {
		s.translated = translator.Finish()
	}
	return newLoadedFile(result, in.Name, s.r), simulator.Finish(), nil
}

// usesStrides reports whether any level has a stride prefetcher, which observes individual
// instructions.
func usesStrides(h hierarchy.Hierarchy) bool {
	return slices.ContainsFunc(slices.Concat(h.Levels, h.Instructions), func(c hierarchy.Cache) bool { return c.Prefetch.Kind == hierarchy.Stride })
}

// translator returns a simulator for the TLBs of h, or nil if h has no TLBs.
func (s *simulation) translator(h hierarchy.Hierarchy, o simulate.Options) (*simulate.Simulator, error) {
	if s.hasTranslation = len(h.TLBs) > 0; !s.hasTranslation {
		if s.pages != "" {
			return nil, usagef("--pages ", s.pages, " needs a hierarchy with TLBs, for example --cache DTLB=64,4,tlb --cache STLB=1536,12,tlb")
		}
		return nil, nil
	}
	if len(h.Translation().Levels) == 0 {
		return nil, usagef("no TLB of the hierarchy holds pages of ", hierarchy.FormatSize(h.PageSize()), "; choose another size with --pages, or add a TLB with pages=", hierarchy.FormatSize(h.PageSize()))
	}
	o.Protocol, o.Translation, o.WarmupShare, o.Causes, o.Bound, o.PerReference = simulate.Incoherent, true, 0, false, false, false
	return simulate.New(h.Translation(), o)
}

// measuredOf converts the result of a simulation to a prediction, so that it can be printed like an
// answer of what-if.
func measuredOf(h hierarchy.Hierarchy, l *loadedFile, r simulate.Result) hierarchy.Prediction {
	var counted []hierarchy.Counted
	for i := range r.Levels {
		run := &r.Levels[i].Run
		counted = append(counted, hierarchy.Counted{Accesses: run.Accesses(), Misses: run.Misses()})
	}
	p := hierarchy.Measured(h, counted, &l.Profile.Totals)
	p.MemoryBytes, p.References = float64(r.Memory.BytesRead), r.References
	return p
}

// lineSizes returns the line sizes for the analyses that run in the same pass. It omits line sizes
// that a profile does not support. This is harmless, because the simulation does not use the
// analyses.
func (s *simulation) lineSizes(h hierarchy.Hierarchy) (sizes []uint32) {
	for _, size := range ask.LineSizes(h) {
		if profile.ValidLineBytes(size) {
			sizes = append(sizes, size)
		}
	}
	if len(sizes) == 0 {
		sizes = []uint32{hierarchy.DefaultLineBytes}
	}
	return sizes
}

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
