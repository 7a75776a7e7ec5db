package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// simulation contains the options of a simulation.
type simulation struct {
	machineOptions
	r          *readOptions
	budget     []string
	seed       uint64
	protocol   string
	pages      string
	i1, d1, ll string // the options --I1, --D1 and --LL, as in Cachegrind
}

// newSimulation adds the options that the verbs simulate and validate have.
func newSimulation(cmd *cobra.Command, budgetExample string) *simulation {
	s := &simulation{r: addReading(cmd)}
	hide(cmd, "workers") // a simulation processes the trace in order, so it cannot use several workers
	s.addMachine(cmd, cacheUsage)
	f := cmd.Flags()
	f.StringArrayVar(&s.budget, "fail-if", nil, "exit with code 1 if this `CONDITION` is true, for example '"+budgetExample+"' (may be repeated)")
	f.Uint64Var(&s.seed, "seed", 0, program.Simulate.Arg("seed").Help)
	f.StringVar(&s.protocol, "protocol", simulate.MESI.String(), "the coherence `PROTOCOL` of private caches: mesi or msi")
	f.StringVar(&s.r.cores, "cores", "", "run each group of threads in `GROUPS` on its own core, for example 0,1/2,3 (default: each thread on its own core)")
	setCompletions(cmd, "protocol", []string{"mesi", "msi"})
	return s
}

// addFeatures adds the options that only the verb simulate has.
func (s *simulation) addFeatures(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Lookup("protocol").Usage = program.Simulate.Arg("protocol").Help
	f.Lookup("kinds").Usage = "simulate references of these `KINDS`: load, store, modify, fetch, data, all (default: data, and fetch if the hierarchy has a cache or a TLB for instructions)"
	f.Lookup("kinds").DefValue = ""
	for i := range program.Simulate.Args {
		if arg := &program.Simulate.Args[i]; f.Lookup(arg.Name) == nil {
			addArg(cmd, arg)
		}
	}
	f.StringVar(&s.pages, "pages", "", "the page `SIZE` for TLBs, for example 2MiB (default: 4KiB)")
	f.StringVar(&s.i1, "I1", "", "`SIZE,WAYS,LINE` of the first-level instruction cache, as in Cachegrind; with this option, accesses are counted as Cachegrind counts them")
	f.StringVar(&s.d1, "D1", "", "`SIZE,WAYS,LINE` of the first-level data cache, as in Cachegrind")
	f.StringVar(&s.ll, "LL", "", "`SIZE,WAYS,LINE` of the last level, as in Cachegrind")
}

// question converts the options to a question of the verb simulate about the hierarchy h.
func (s *simulation) question(h hierarchy.Hierarchy) ask.Question {
	o := verbCommand{verb: program.Simulate, r: s.r}
	q := o.arguments()
	q.Machine, q.Brief = h, !exactRows(s.r.format)
	return q
}

// machine returns the hierarchy that the options describe.
func (s *simulation) machine() (h hierarchy.Hierarchy, err error) {
	if s.i1 == "" && s.d1 == "" && s.ll == "" {
		h, err = s.hierarchy()
	} else {
		h, err = s.cachegrind()
	}
	if err != nil || s.pages == "" {
		return h, err
	}
	if err = asUsage(h.SetPages(s.pages)); err == nil && len(h.TLBs) == 0 {
		err = usagef("--pages ", s.pages, " needs a hierarchy with TLBs, for example --cache DTLB=64,4,tlb --cache STLB=1536,12,tlb")
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
	v := program.Simulate
	cmd := &cobra.Command{
		Use:   v.Name + " TRACE " + v.Use,
		Short: v.Title,
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
	budgets, err := parseBudgets(s.budget, h)
	if err != nil {
		return err
	}
	q := s.question(h)
	run, err := a.simulatedRun(s.r, name, q)
	if err != nil {
		return err
	}
	d, err := run.Answer(q)
	if err != nil {
		return answerError(err)
	}
	if err := a.print(s.r.format, d); err != nil {
		return err
	}
	if run.stopped != nil {
		return run.stopped
	}
	return checkBudgets(budgets, d)
}

// simulatedRun is a run whose trace is read for a simulation.
type simulatedRun struct {
	ask.Run
	stopped error // why the pass ended early, or nil
}

// simulatedRun returns the run that answers a question of the verb simulate.
func (a *app) simulatedRun(r *readOptions, name string, q ask.Question) (*simulatedRun, error) {
	h := q.Machine
	if r.sample != "" {
		return nil, usagef("--sample: a simulation needs every access; to use a sample, run: stackglass what-if")
	}
	if r.firstSet("kinds") == "" && len(h.Instructions)+len(h.InstructionTLBs) > 0 {
		r.kinds = trace.AllKinds.String()
	}
	if r.firstSet("skip") == "" {
		r.skip = h.Simulation.Skip
	}
	r.sets = ask.SetNumbers(h) | 1
	o, err := r.options(a, analysedLines(h))
	if err != nil {
		return nil, err
	}
	need, err := simulate.MemoryBytes(h)
	if err != nil {
		return nil, asUsage(err)
	}
	if q.Is("baseline") {
		need *= 2 // the baseline has the same caches
	}
	if o.MemoryBytes > 0 && need > o.MemoryBytes {
		return nil, fmt.Errorf("%w (set the limit with --memory; the default is half of the free memory)", &analysis.MemoryError{LimitBytes: o.MemoryBytes, NeedBytes: need})
	}
	run := &simulatedRun{Run: ask.Run{Name: name, Cores: r.cores}}
	run.Replay = &ask.Replay{
		MemoryBytes: o.MemoryBytes, Cores: o.Spec.Cores, Skip: o.Spec.Skip,
		Count: func() (uint64, error) {
			n, err := a.countReferences(r, q.Text(ask.Range.Name), name, o)
			if err != nil {
				return 0, &passError{err}
			}
			return n, nil
		},
		Read: func(to *ask.Run, c ask.Consumer) error {
			l, err := a.readBeside(r, name, h, o, c)
			if err != nil {
				return &passError{err}
			}
			to.Name, to.Profile, to.Warnings, run.stopped = l.name, l.Profile, l.warnings, l.Stopped
			return nil
		},
	}
	return run, nil
}

// readBeside reads a trace, and passes its references to a consumer.
func (a *app) readBeside(r *readOptions, name string, h hierarchy.Hierarchy, o pass.Options, c ask.Consumer) (*loadedFile, error) {
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if in.IsProfile {
		return nil, profileError(in.Name)
	}
	o.Spec.Analyses, o.BesideEvents = c.Analyses, c.Events
	if c.Sites || c.Events {
		o.BesideSites = c.Make
	} else {
		o.Beside = c.Make(nil)
	}
	cores, err := r.sharingCores(h, in, o)
	if err != nil {
		return nil, err
	}
	o.Spec.Domains = domainsOf(h, cores)
	result, err := in.Analyze(r.cmd.Context(), o)
	if err != nil {
		return nil, err
	}
	return newLoadedFile(result, in.Name, r), nil
}

// analysedLines returns the line sizes for the analyses that run in the same pass. It omits line sizes
// that a profile does not support. This is harmless, because the simulation does not use the
// analyses.
func analysedLines(h hierarchy.Hierarchy) (sizes []uint32) {
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
