package command

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
)

// validate returns the verb that compares a prediction with the simulation of the same trace.
func (a *app) validate() *cobra.Command {
	var (
		s       *simulation
		samples *[]string
		o       *loopValidation
		m       *multicoreValidation
	)
	cmd := &cobra.Command{
		Use:   "validate TRACE --cache NAME=SIZE,WAYS[,LINE][,PROPERTY…] …",
		Short: "Compare predictions with exact simulation",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.enabled && len(args) == 0, m.enabled && len(args) > 1:
				return nil
			case m.enabled:
				return usagef("--multicore: give the trace of a single-threaded run, and traces of multi-threaded runs, for example: stackglass validate --multicore one.sgt 2=two.sgt 4=four.sgt --cache L1=8KiB,8")
			}
			return oneFile(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch sampling := len(*samples) > 0; {
			case o.enabled && sampling:
				return usagef("--loops and --sampling cannot be combined: each validates a different method")
			case m.enabled && (o.enabled || sampling):
				return usagef("--multicore, --loops and --sampling cannot be combined: each validates a different method")
			case m.enabled:
				return a.runValidateMulticore(s, m, args)
			case o.enabled:
				return a.runValidateLoops(s, o, args)
			case sampling:
				return a.runValidateSampling(s, args[0], *samples)
			}
			return a.runValidate(s, args[0])
		},
	}
	s = newSimulation(cmd, "L2.difference>0.01")
	samples = addSampling(s)
	o = addLoopValidation(s)
	m = addMulticoreValidation(s)
	return cmd
}

func (a *app) runValidate(s *simulation, name string) error {
	h, err := s.hierarchy()
	if err != nil {
		return err
	}
	h = h.DataOnly()
	budgets, err := parseBudgetsOn(s.budget, h, "L2.difference>0.01", "difference")
	if err != nil {
		return err
	}
	q := s.question(h)
	run, err := a.simulatedRun(s.r, name, q)
	if err != nil {
		return err
	}
	simulation, err := program.NewSimulation(&run.Run, q)
	if err != nil {
		return askUsageError(err)
	}
	if err := run.Replay.Read(&run.Run, simulation.Consumer(analysis.Locality|analysis.Sets|analysis.Sharing)); err != nil {
		return answerError(err)
	}
	simulation.Finish()
	counted := simulation.Result
	asker := hierarchy.NewAsker(run.Profile)
	predicted, doubts, err := asker.Predict(h, nil)
	if err != nil {
		return cmp.Or(requireCores(s, counted), asUsage(err))
	}
	v := validation{predicted.Prediction, simulation.Measured(), predicted}
	d := &report.Document{Schema: "stackglass.validate", Version: 1, Input: run.Facts(0)}
	d.Tables = []report.Table{v.levels(), v.memory()}
	if len(predicted.Cores) > 0 {
		d.Tables = append(d.Tables, v.modelTable(asker), v.coreTable(counted))
	}
	d.Warnings = append(run.Warnings, simulation.Doubts()...)
	d.Warnings = append(d.Warnings, run.Told(doubts)...)
	d.Warnings = append(d.Warnings, v.explainErrors(counted)...)
	if err := a.print(s.r.format, d); err != nil {
		return err
	}
	if run.stopped != nil {
		return run.stopped
	}
	return checkBudgetsOn(budgets, v.relativeError)
}

// validation contains the prediction for a trace and the result of simulating the trace.
type validation struct {
	predicted, counted hierarchy.Prediction
	byCore             hierarchy.ByCore // the predictions for each core; their sum is in the field "predicted"
}

// relativeDifference returns the difference between x and y, relative to y.
func relativeDifference(x, y float64) float64 {
	if x == y {
		return 0
	}
	return (x - y) / y
}

// relativeError returns the relative error of the predicted misses of a level, as an absolute
// value.
func (v *validation) relativeError(b *budget) float64 {
	level := b.level
	if level < 0 {
		level = len(v.counted.Levels) - 1
	}
	return math.Abs(relativeDifference(v.predicted.Levels[level].Misses, v.counted.Levels[level].Misses))
}

// errorCell returns the cell for the relative difference between x and y. The cell is empty if the
// difference is infinite.
func errorCell(x, y float64) report.Value {
	if off := relativeDifference(x, y); !math.IsInf(off, 0) {
		return report.Ratio(off)
	}
	return report.None()
}

func (v *validation) levels() report.Table {
	t := report.Table{Key: "levels", Title: "Demand accesses, as predicted and as simulated", Columns: report.Columns(
		"name=level", "size_bytes=size", "ways", "line_bytes=line (bytes)", "method",
		"predicted_accesses=predicted accesses", "accesses", "predicted_misses=predicted misses", "misses",
		"difference", "difference_ratio=relative difference", "sdcm_difference_ratio=relative difference of SDCM")}
	for i, p := range v.predicted.Levels {
		c := v.counted.Levels[i]
		model := report.None()
		if !p.Cache.Full() {
			model = errorCell(p.SDCMMisses, c.Misses)
		}
		t.Add(report.TextOf(p.Cache.Name), report.Bytes(p.Cache.SizeBytes), answers.Ways(uint64(p.Cache.Ways)), report.Count(uint64(p.Cache.LineBytes)),
			report.TextOf(string(p.Method)), report.Real(p.Accesses), report.Real(c.Accesses), report.Real(p.Misses), report.Real(c.Misses),
			report.Real(p.Misses-c.Misses), errorCell(p.Misses, c.Misses), model)
	}
	return t
}

func (v *validation) memory() report.Table {
	t := report.Table{Key: "memory", Single: true, Columns: report.Columns(
		"predicted_accesses=predicted memory accesses", "accesses=memory accesses", "difference",
		"difference_ratio=relative difference")}
	x, y := v.predicted.MemoryAccesses, v.counted.MemoryAccesses
	t.Add(report.Real(x), report.Real(y), report.Real(x-y), errorCell(x, y))
	return t
}

// explainErrors returns warnings about the causes of prediction errors: simulated events that stack
// distances do not model.
func (v *validation) explainErrors(r simulate.Result) (list []string) {
	for i, p := range v.predicted.Levels {
		if p.Misses == v.counted.Levels[i].Misses {
			continue
		}
		run := &r.Levels[i].Run
		if run.Taken > 0 {
			list = append(list, p.Cache.Name+" lost "+strconv.FormatUint(run.Taken, 10)+
				" lines because an inclusive level below evicted these lines; the prediction ignores such evictions")
		}
		if hits := run.WriteBacksReceived - run.WriteBackMisses; hits > 0 {
			list = append(list, p.Cache.Name+": in the simulation, "+strconv.FormatUint(hits, 10)+
				" write-backs from the level above made lines most recently used, but hits in the level above did not; the prediction assumes the opposite")
		}
	}
	return list
}

// requireCores returns an error if only some of the cores share a level, but --cores does not list
// the cores. The cores must be listed because the stacks to analyse are selected before the trace
// is read.
func requireCores(s *simulation, r simulate.Result) error {
	for _, l := range r.Levels {
		n := int(min(uint64(l.Cache.SharedBy), simulate.MaxCores))
		if n <= 1 || n >= len(r.Cores) || s.r.cores != "" {
			continue
		}
		text := ""
		for i, threads := range sortedCores(r) {
			if i > 0 {
				text += "/"
			}
			text += answers.NumbersOf(threads)
		}
		return usagef(l.Cache.Name, " is shared by ", strconv.Itoa(n), " of ", strconv.Itoa(len(r.Cores)),
			" cores; name the groups explicitly: --cores ", text)
	}
	return nil
}

// sortedCores returns the threads of each core, sorted by the first thread of each core.
func sortedCores(r simulate.Result) (cores [][]uint32) {
	for _, c := range r.Cores {
		if len(c.Threads) > 0 {
			cores = append(cores, c.Threads)
		}
	}
	slices.SortFunc(cores, slices.Compare)
	return cores
}

// modelTable returns a table that compares the simulated misses with the models of MODELS §6. It
// has a row for each level and each model that applies to the level. The models of private levels
// are the private stacks (MODELS §6.1), Anger's formula (MODELS §6.3) and the coherent stacks
// (MODELS §6.4). The model of shared levels is the concurrent stack (MODELS §6.2). In each model,
// the misses of a level are limited to the misses of the level above.
func (v *validation) modelTable(asker *hierarchy.Asker) report.Table {
	t := report.Table{Key: "views", Title: "Misses of all cores, as predicted by each coherence model and as simulated", Columns: report.Columns(
		"name=level", "view=model", "predicted_misses=predicted misses", "misses", "difference",
		"difference_ratio=relative difference", "method")}
	above := hierarchy.Views{}
	for i, p := range v.predicted.Levels {
		misses := v.counted.Levels[i].Misses
		add := func(name string, predicted float64, method hierarchy.Method) {
			t.Add(report.TextOf(p.Cache.Name), report.TextOf(name), report.Real(predicted), report.Real(misses),
				report.Real(predicted-misses), errorCell(predicted, misses), report.TextOf(string(method)))
		}
		views, ok := asker.Views(p.Cache)
		if p.Cache.SharedBy > 1 || !ok {
			add("concurrent", p.Misses, p.Method)
			continue
		}
		if i > 0 {
			views.Private, views.Anger, views.Coherent = min(views.Private, above.Private), min(views.Anger, above.Anger), p.Misses
		}
		method := hierarchy.SDCM
		if views.Exact {
			method = p.Method
		}
		add("private", views.Private, p.Method)
		add("Anger", views.Anger, method)
		add("coherent", views.Coherent, p.Method)
		above = views
	}
	return t
}

// coreTable returns a table with a row for each core and level.
func (v *validation) coreTable(r simulate.Result) report.Table {
	t := report.Table{Key: "cores", Title: "Misses by core, as predicted and as simulated", Columns: report.Columns(
		"threads", "name=level", "predicted_misses=predicted misses", "misses", "difference",
		"difference_ratio=relative difference", "predicted_coherence_misses=predicted coherence misses",
		"coherence_misses=coherence misses")}
	for _, core := range v.byCore.Cores {
		n := slices.IndexFunc(r.Cores, func(c simulate.Core) bool { return slices.Equal(c.Threads, core.Threads) })
		if n < 0 {
			continue
		}
		for i, l := range core.Levels {
			run := &r.Levels[i].Cores[n]
			misses := float64(run.Misses())
			t.Add(report.ListOf(answers.NumbersOf(core.Threads)), report.TextOf(r.Levels[i].Cache.Name), report.Real(l.Misses), report.Real(misses),
				report.Real(l.Misses-misses), errorCell(l.Misses, misses), report.Real(l.Coherence), report.Count(run.CoherenceMisses))
		}
	}
	return t
}
