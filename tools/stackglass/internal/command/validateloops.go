package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/misses"
	nests "github.com/stackglass/stackglass/core/oracle/kernels"
	"github.com/stackglass/stackglass/core/papers/sma"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// loopValidation contains the options of validate --loops.
type loopValidation struct {
	enabled bool
	latency sma.Latency
}

// addLoopValidation adds the options of validate --loops.
func addLoopValidation(s *simulation) *loopValidation {
	o := &loopValidation{latency: sma.Opteron()}
	f := s.r.cmd.Flags()
	f.BoolVar(&o.enabled, "loops", false, "estimate the misses in loops with ScalaMemAnalysis, count the misses exactly, and compare both numbers with a simulation")
	f.Float64Var(&o.latency.HitCycles, "hit-cycles", o.latency.HitCycles, "with --loops, the latency of a hit in `CYCLES`")
	f.Float64Var(&o.latency.MissCycles, "miss-cycles", o.latency.MissCycles, "with --loops, the latency of a miss in `CYCLES`")
	return o
}

// validatedTree contains the misses of a loop tree in one cache, as counted with every method.
type validatedTree struct {
	name      string
	cache     misses.Cache
	accesses  uint64
	estimated *sma.Result
	exact     *misses.Result
	simulated uint64
	dinero    report.Value
}

// runValidateLoops implements validate --loops. Without a trace, it validates the built-in kernels.
func (a *app) runValidateLoops(s *simulation, o *loopValidation, names []string) error {
	if s.r.firstSet("hierarchy", "fail-if", "cores", "sample") != "" {
		return usagef("--loops: each cache is validated separately, with the accesses of all threads combined; leave out --hierarchy, --fail-if, --cores and --sample")
	}
	if !(o.latency.HitCycles >= 0 && o.latency.MissCycles >= o.latency.HitCycles) {
		return usagef("--hit-cycles, --miss-cycles: want at least 0 cycles, and a miss that costs at least as much as a hit")
	}
	caches, err := loopCaches(s.caches)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return a.validateKernels(s, o, caches)
	}
	if len(caches) == 0 {
		return usagef("--loops: no caches are given; add one --cache option for each cache, for example --cache L1=16KiB,1")
	}
	s.r.analyses = (analysis.Sites | analysis.Loops).String()
	l, err := a.load(s.r, names[0], []uint32{64})
	if err != nil {
		return err
	}
	tree, err := treeOf(l.newRun(s.r))
	if err != nil {
		return err
	}
	var list []validatedTree
	for _, c := range caches {
		v, err := validateTree(s.r.cmd.Context(), l.name, tree, c)
		if err != nil {
			return err
		}
		list = append(list, v)
	}
	d := &report.Document{Schema: "stackglass.validate-loops", Version: 1, Input: l.facts(0)}
	d.Tables = []report.Table{o.missTable(list), loopClasses(tree, list)}
	d.Warnings = program.LoopDoubts(l.newRun(s.r))
	if wild := list[0].estimated.Wild; wild > 0 {
		d.Warnings = append(d.Warnings, "SMA assumes that the "+strconv.FormatFloat(wild, 'f', 0, 64)+" accesses of references without a pattern miss as often as in a cache that only these references use")
	}
	if l.Stopped != nil {
		d.Warnings = append(d.Warnings, "the results of all methods cover only the part of the trace that was read")
	}
	return a.answer(l, s.r.format, d)
}

// validateKernels validates the built-in kernels. By default, it uses the caches for which
// DineroIV's counts are recorded.
func (a *app) validateKernels(s *simulation, o *loopValidation, caches []misses.Cache) error {
	if len(caches) == 0 {
		caches = []misses.Cache{{LineBytes: 64, Sets: 8, Ways: 2}, {LineBytes: 64, Sets: 16, Ways: 1}, {LineBytes: 64, Sets: 16, Ways: 2}}
	}
	var list []validatedTree
	for _, k := range nests.Vectors() {
		tree, err := k.Nest.Build()
		if err != nil {
			return err
		}
		for _, c := range caches {
			v, err := validateTree(s.r.cmd.Context(), k.Name, tree, c)
			if err != nil {
				return err
			}
			for _, known := range k.Known {
				if v.dinero.IsNumber() {
					break // DineroIV has just counted the misses itself
				}
				if c == (misses.Cache{LineBytes: 64, Sets: known.SizeBytes / 64 / known.Ways, Ways: known.Ways}) {
					v.dinero = report.Count(known.Misses)
				}
			}
			list = append(list, v)
		}
	}
	d := &report.Document{Schema: "stackglass.validate-loops", Version: 1}
	d.Tables = []report.Table{o.missTable(list)}
	return a.print(s.r.format, d)
}

// loopCaches parses the values of --cache as independent caches.
func loopCaches(texts []string) (list []misses.Cache, err error) {
	for _, text := range texts {
		c, err := hierarchy.ParseCache(text)
		if err != nil {
			return nil, asUsage(err)
		}
		if c.Hashed || c.Replacement != hierarchy.LRU || c.Write.Around() || c.Inclusion == hierarchy.Exclusive {
			return nil, usagef("--cache ", text, ": --loops supports only LRU caches that allocate on stores, and whose sets are selected by the low bits of the line number")
		}
		ways := uint64(c.Ways)
		if c.Full() {
			ways = c.Lines()
		}
		list = append(list, misses.Cache{LineBytes: uint64(c.LineBytes), Sets: c.Sets(), Ways: ways})
	}
	return list, nil
}

// treeOf returns the loop-compressed trace of a profile.
func treeOf(r *ask.Run) (*loops.Tree, error) {
	if err := program.CheckLoops(r); err != nil {
		return nil, asUsage(err)
	}
	tree, err := loops.Decode(r.Profile.Loops)
	if err != nil {
		return nil, usagef(r.Name, ": the loops in the trace are damaged: ", err.Error())
	}
	return tree, nil
}

// validateTree counts the misses of a loop tree with every method.
func validateTree(ctx context.Context, name string, tree *loops.Tree, c misses.Cache) (v validatedTree, err error) {
	v = validatedTree{name: name, cache: c}
	if v.estimated, err = sma.Analyze(tree, c); err != nil {
		return v, asUsage(err)
	}
	if v.exact, err = misses.Run(tree, c); err != nil {
		return v, asUsage(err)
	}
	d := newDinero(ctx, c)
	if v.accesses, v.simulated, err = simulateTree(ctx, tree, c, d); err != nil {
		d.kill()
		return v, err
	}
	v.dinero, err = d.misses()
	return v, err
}

// simulateTree expands a loop tree and simulates a cache that all threads share. It also sends the
// accesses to DineroIV.
func simulateTree(ctx context.Context, tree *loops.Tree, c misses.Cache, d *dineroRun) (accesses, missed uint64, err error) {
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{
		Name: "L1", SizeBytes: c.Lines() * c.LineBytes, Ways: uint32(c.Ways), LineBytes: uint32(c.LineBytes), SharedBy: hierarchy.AllCores,
	}}}
	s, err := simulate.New(h, simulate.Options{})
	if err != nil {
		return 0, 0, asUsage(err)
	}
	rows, b := tree.Expand(), trace.NewBatch(trace.DefaultRows)
	for {
		err := rows.Next(b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = s.Consume(b)
		}
		if err != nil {
			return 0, 0, err
		}
		d.writeBatch(b)
	}
	run := s.Result().Levels[0].Run
	return run.Accesses(), run.Misses(), nil
}

// missTable returns a table with a row for each loop tree and cache.
func (o *loopValidation) missTable(list []validatedTree) report.Table {
	t := report.Table{Key: "caches", Title: "Misses as estimated by ScalaMemAnalysis (SMA), as counted exactly on the loop tree, and as simulated", Columns: report.Columns(
		"name=of", "size_bytes=cache", "ways", "line_bytes=line (bytes)", "accesses", "sma_misses=SMA",
		"exact_misses=exact", "misses=simulated", "dinero_misses=DineroIV",
		"sma_difference_ratio=relative error of SMA", "miss_ratio=miss ratio", "sma_miss_ratio=SMA's miss ratio",
		"sma_miss_ratio_difference=difference", "latency_cycles=latency (cycles)", "sma_latency_cycles=SMA's latency (cycles)",
		"sma_latency_difference_ratio=relative difference", "jumped_ratio=accesses not simulated")}
	for _, v := range list {
		n, estimated, simulated := float64(v.accesses), v.estimated.Total.Misses, float64(v.simulated)
		latency, ours := o.latency.Mean(n, simulated), o.latency.Mean(n, estimated)
		t.Add(report.TextOf(v.name), report.Bytes(v.cache.Lines()*v.cache.LineBytes), waysOf(v.cache), report.Count(v.cache.LineBytes), report.Count(v.accesses),
			report.Count(uint64(estimated+0.5)), report.Count(v.exact.Total.Misses), report.Count(v.simulated), v.dinero,
			errorCell(estimated, simulated), report.Quotient(simulated, n), report.Quotient(estimated, n), report.Quotient(estimated-simulated, n),
			report.Decimal(latency), report.Decimal(ours), errorCell(ours, latency),
			report.Share(v.exact.Jumped, v.exact.Total.Accesses))
	}
	return t
}

func waysOf(c misses.Cache) report.Value {
	if c.Sets == 1 {
		return report.TextOf("full")
	}
	return report.Count(c.Ways)
}

const (
	leastShown = 0.01 // a loop is listed only if at least this share of all accesses occurs in the loop
	mostShown  = 50   // maximum number of listed loops
	// mostSimulated limits the number of accesses that are simulated to determine exact classes for
	// the loops of one cache. Beyond this limit, classes are not exact.
	mostSimulated = 30e6
)

// loopClasses returns a table with a row for each array of the largest loops.
func loopClasses(tree *loops.Tree, list []validatedTree) report.Table {
	t := report.Table{Key: "loops", Title: "Arrays of the loops with at least 1 % of the accesses (SMA assumes an empty cache before each run of the loop; addresses are from the first run)", Columns: report.Columns(
		"size_bytes=cache", "ways", "loop", "base=array at", "lines", "accesses", "sma_misses=SMA",
		"sma_class=SMA's class", "exact_misses=exact", "first_misses=in first iterations",
		"exact_class=class by counts")}
	for _, v := range list {
		r := v.estimated
		names := loopNames(r)
		left := mostSimulated
		for _, n := range largestLoops(r) {
			var exact []sma.Exact
			ok := left > 0
			if ok {
				exact, ok = r.Exact(tree, v.cache, n)
				left -= 2 * float64(v.exact.Simulated)
			}
			for i, of := range r.Loops[n].Arrays {
				missed, first, class := report.None(), report.None(), report.None()
				if ok {
					missed, first, class = report.Count(exact[i].Misses()), report.Count(exact[i].First), report.TextOf(exact[i].Class().String())
				}
				runs := r.Loops[n].Runs
				t.Add(report.Bytes(v.cache.Lines()*v.cache.LineBytes), waysOf(v.cache), report.TextOf(names[n]), report.TextOf("0x"+strconv.FormatUint(of.Lo, 16)),
					report.Real(of.Lines), report.Count(uint64(runs*of.Accesses+0.5)), report.Count(uint64(runs*of.Misses+0.5)), report.TextOf(of.Class.String()),
					missed, first, class)
			}
		}
	}
	return t
}

// loopNames returns hierarchical numbers for loops (1, 1.1, …), in the order of the trace. The root
// of the tree has no number.
func loopNames(r *sma.Result) []string {
	names := make([]string, len(r.Loops))
	inside := make([]int, len(r.Loops))
	for n, l := range r.Loops {
		if l.Around < 0 {
			continue
		}
		inside[l.Around]++
		names[n] = strconv.Itoa(inside[l.Around])
		if around := names[l.Around]; around != "" {
			names[n] = around + "." + names[n]
		}
	}
	return names
}

// largestLoops returns the loops with the most accesses, in the order in which they occur in the
// trace.
func largestLoops(r *sma.Result) (list []int) {
	accesses := func(n int) float64 { return r.Loops[n].Runs * r.Loops[n].Total.Accesses }
	for n, l := range r.Loops {
		if l.Around >= 0 && accesses(n) >= leastShown*r.Total.Accesses {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(accesses(y), accesses(x)) })
	list = list[:min(len(list), mostShown)]
	slices.Sort(list)
	return list
}
