package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// simulation contains the options of a simulation.
type simulation struct {
	machineOptions
	r        *reading
	budget   []string
	seed     uint64
	protocol string
}

func newSimulation(cmd *cobra.Command, budgetExample string) *simulation {
	s := &simulation{r: addReading(cmd)}
	hide(cmd, "workers") // a simulation processes the trace in order, so it cannot use several workers
	s.addMachine(cmd, cacheUsage)
	f := cmd.Flags()
	f.StringArrayVar(&s.budget, "fail-if", nil, "exit with code 1 if this `CONDITION` is true, as in '"+budgetExample+"' (may be repeated)")
	f.Uint64Var(&s.seed, "seed", 0, "the `SEED` of random replacement")
	f.StringVar(&s.protocol, "protocol", simulate.MESI.String(), "the coherence `PROTOCOL` of private caches: mesi or msi")
	f.StringVar(&s.r.cores, "cores", "", "`GROUPS` of threads that share a core, as in 0,1/2,3 (default: each thread on its own core)")
	complete(cmd, "protocol", []string{"mesi", "msi"})
	return s
}

// simulate returns the verb that counts hits and misses of a hierarchy of caches.
func (a *app) simulate() *cobra.Command {
	var s *simulation
	cmd := &cobra.Command{
		Use:   "simulate TRACE --cache NAME=SIZE,WAYS[,LINE][,PROPERTY…] …",
		Short: "Hits and misses of a hierarchy, by exact simulation",
		Args:  oneFile,
		RunE:  func(_ *cobra.Command, args []string) error { return a.runSimulate(s, args[0]) },
	}
	s = newSimulation(cmd, "L2.misses>1e6")
	return cmd
}

func (a *app) runSimulate(s *simulation, name string) error {
	h, err := s.hierarchy()
	if err != nil {
		return err
	}
	budgets, err := parseBudgets(s.budget, h)
	if err != nil {
		return err
	}
	l, counted, err := a.simulated(s, name, h, analysis.None)
	if err != nil {
		return err
	}
	measured := measuredOf(h, l, counted)
	d := &report.Document{Schema: "stackglass.simulate", Version: 1, Input: l.facts(0)}
	d.Tables = answers.Predicted(h, measured)
	addWriteBacks(&d.Tables[0], counted)
	addWrites(&d.Tables[1], counted)
	d.Tables = append(d.Tables, flowTable(counted))
	if len(counted.Cores) > 1 {
		addCoherence(&d.Tables[0], counted)
		d.Tables = append(d.Tables, coreTable(counted), busTable(counted))
	}
	d.Warnings = simulatedDoubts(h, s, l, counted)
	for _, doubt := range h.SizeDoubts() {
		d.Warnings = append(d.Warnings, string(doubt))
	}
	if err := a.answer(l, s.r.format, d); err != nil {
		return err
	}
	return checkBudgets(budgets, d)
}

// simulated simulates h and runs analyses in the same pass over a trace.
func (a *app) simulated(s *simulation, name string, h hierarchy.Hierarchy, analyses analysis.Analyses) (*answerable, simulate.Result, error) {
	var none simulate.Result
	if s.r.sample != "" {
		return nil, none, usagef("--sample: a simulation needs every access; to use a sample, run: stackglass what-if")
	}
	s.r.sets = ask.SetNumbers(h) | 1
	o, err := s.r.options(a, ask.LineSizes(h))
	if err != nil {
		return nil, none, err
	}
	protocol, err := simulate.ParseProtocol(s.protocol)
	if err != nil {
		return nil, none, usage(err)
	}
	need, err := simulate.MemoryBytes(h)
	if err != nil {
		return nil, none, asUsage(err)
	}
	if o.MemoryBytes > 0 && need > o.MemoryBytes {
		return nil, none, fmt.Errorf("%w (set the limit with --memory; the default is half of the free memory)", &analysis.MemoryError{LimitBytes: o.MemoryBytes, NeedBytes: need})
	}
	simulator, err := simulate.New(h, simulate.Options{Seed: s.seed, Protocol: protocol, Cores: o.Spec.Cores, MemoryBytes: o.MemoryBytes})
	if err != nil {
		return nil, none, asUsage(err)
	}
	in, err := pass.Open(s.r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, none, err
	}
	defer in.Close()
	if in.IsProfile {
		return nil, none, usagef(in.Name, " is a profile, but a simulation needs the trace; with a profile, run: stackglass what-if ", in.Name)
	}
	o.Spec.Analyses, o.Beside = analyses, simulator.Consume
	cores, err := s.r.sharingCores(h, in, o)
	if err != nil {
		return nil, none, err
	}
	o.Spec.Domains = domainsOf(h, cores)
	result, err := in.Analyze(s.r.cmd.Context(), o)
	if err != nil {
		return nil, none, err
	}
	return newAnswerable(result, in.Name, s.r), simulator.Finish(), nil
}

// measuredOf converts the result of a simulation to an answer of the same form as the answers of
// what-if.
func measuredOf(h hierarchy.Hierarchy, l *answerable, r simulate.Result) hierarchy.Prediction {
	var counted []hierarchy.Counted
	for i := range r.Levels {
		run := &r.Levels[i].Run
		counted = append(counted, hierarchy.Counted{Accesses: run.Accesses(), Misses: run.Misses()})
	}
	p := hierarchy.Measured(h, counted, &l.Profile.Totals)
	p.MemoryBytes = float64(r.Memory.BytesRead)
	return p
}

// simulatedDoubts returns warnings about the hierarchy and the placement of threads.
func simulatedDoubts(h hierarchy.Hierarchy, s *simulation, l *answerable, r simulate.Result) (list []string) {
	if h.About != "" {
		list = append(list, h.Name+": "+h.About)
	}
	if r.Folded > 0 {
		list = append(list, l.name+": there are more threads than the maximum of "+strconv.Itoa(simulate.MaxCores)+" cores; "+
			plural(uint64(r.Folded), "thread")+" more share these cores in turn (--cores sets other groups)")
	}
	if text := hierarchy.OrderDoubt(l.Profile); text != "" {
		list = append(list, string(text))
	}
	if s.r.cores == "" {
		var cores [][]uint32
		for _, c := range r.Cores {
			cores = append(cores, c.Threads)
		}
		list = append(list, sharersDoubts(h, cores)...)
	}
	return list
}

// addCoherence adds the number of caches and the coherence misses to the table of levels.
func addCoherence(t *report.Table, r simulate.Result) {
	t.Columns = append(t.Columns, report.Columns(
		"caches", "coherence_misses=coherence misses", "invalidated=lines invalidated")...)
	for i, l := range r.Levels {
		t.Rows[i] = append(t.Rows[i], report.Count(uint64(l.Caches)), report.Count(l.Run.CoherenceMisses), report.Count(l.Run.Invalidated))
	}
}

// coreTable returns a table with a row for each core and level.
func coreTable(r simulate.Result) report.Table {
	t := report.Table{Key: "cores", Title: "Demand accesses by core", Columns: report.Columns(
		"core", "threads", "name=level", "accesses", "hits", "misses", "coherence_misses=coherence misses",
		"invalidated=lines invalidated")}
	for n, core := range r.Cores {
		for i := range r.Levels {
			c := &r.Levels[i].Cores[n]
			t.Add(report.Count(uint64(n)), report.ListOf(answers.NumbersOf(core.Threads)), report.TextOf(r.Levels[i].Cache.Name),
				report.Count(c.Accesses()), report.Count(c.Hits()), report.Count(c.Misses()), report.Count(c.CoherenceMisses), report.Count(c.Invalidated))
		}
	}
	return t
}

// busTable counts the transactions on the buses that connect the caches of a level.
func busTable(r simulate.Result) report.Table {
	t := report.Table{Key: "bus", Title: "Transactions between the caches of a level", Columns: report.Columns(
		"name=level", "bus_reads=BusRd", "bus_reads_exclusive=BusRdX", "upgrades=BusUpgr",
		"silent_upgrades=silent upgrades (E to M)", "remote_clean=clean in another cache",
		"remote_dirty=dirty in another cache", "write_backs_for_reads=written back for a read",
		"write_backs_for_writes=written back for a write")}
	for _, l := range r.Levels {
		if b := &l.Run.Bus; *b != (simulate.Bus{}) {
			t.Add(countsOf(l.Cache.Name, b.Reads, b.ReadsExclusive, b.Upgrades, b.SilentUpgrades,
				b.RemoteClean, b.RemoteDirty, b.WriteBacksForReads, b.WriteBacksForWrites)...)
		}
	}
	return t
}

// countsOf returns a row with a name and counts.
func countsOf(name string, counts ...uint64) []report.Value {
	row := []report.Value{report.TextOf(name)}
	for _, n := range counts {
		row = append(row, report.Count(n))
	}
	return row
}

// addWriteBacks adds write-backs to the table of levels.
func addWriteBacks(t *report.Table, r simulate.Result) {
	t.Columns = append(t.Columns, report.Columns("write_backs=write-backs", "write_backs_at_end=write-backs at the end")...)
	for i, l := range r.Levels {
		t.Rows[i] = append(t.Rows[i], report.Count(l.Run.WriteBacksSent), report.Count(l.Flush.WriteBacksSent))
	}
}

// addWrites adds writes to the table of memory.
func addWrites(t *report.Table, r simulate.Result) {
	t.Columns = append(t.Columns, report.Columns("reads=lines fetched", "writes=memory writes", "written_bytes=bytes written",
		"writes_at_end=memory writes at the end", "written_bytes_at_end=bytes written at the end")...)
	t.Rows[0] = append(t.Rows[0], report.Count(r.Memory.Reads), report.Count(r.Memory.Writes), report.Count(r.Memory.BytesWritten),
		report.Count(r.Flush.Writes), report.Count(r.Flush.BytesWritten))
}

// flowTable counts the events at each level that the other tables do not contain.
func flowTable(r simulate.Result) report.Table {
	t := report.Table{Key: "flow", Title: "Demand reads and writes, and other traffic", Columns: report.Columns(
		"name=level", "reads", "read_misses=read misses", "writes", "write_misses=write misses",
		"write_backs_received=write-backs received", "write_back_misses=write-back misses",
		"updates=write-throughs received", "clean_victims=clean victims", "fills", "evictions",
		"back_invalidations=back-invalidated", "moved_up=moved up")}
	for i := range r.Levels {
		c := &r.Levels[i].Run
		t.Add(countsOf(r.Levels[i].Cache.Name, c.Reads, c.ReadMisses, c.Writes, c.WriteMisses, c.WriteBacksReceived,
			c.WriteBackMisses, c.Updates, c.CleanVictims, c.Fills, c.Evictions, c.Taken, c.Given)...)
	}
	return t
}
