package command

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
)

// groupsKnown refuses levels that some cores share if --cores does not say which: the stacks
// that they share are chosen before the trace is read.
func groupsKnown(s *simulation, r simulate.Result) error {
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
			" cores; say which stand together by naming all: --cores ", text)
	}
	return nil
}

// sortedCores returns the threads of each core, ordered by the first one.
func sortedCores(r simulate.Result) (cores [][]uint32) {
	for _, c := range r.Cores {
		if len(c.Threads) > 0 {
			cores = append(cores, c.Threads)
		}
	}
	slices.SortFunc(cores, slices.Compare)
	return cores
}

// views returns a row for each level and each model of MODELS §6 that answers for it,
// beside the simulated misses. For private levels these are the private stacks
// (MODELS §6.1), Anger's formula (MODELS §6.3) and the coherent stacks (MODELS §6.4); for
// shared levels the concurrent stack (MODELS §6.2). Misses are limited to those of the
// level above in the same model.
func (v *validation) views(asker *hierarchy.Asker) report.Table {
	t := report.Table{Key: "views", Title: "Misses of all cores by each model of coherence, and as simulated", Columns: report.Columns(
		"name=level", "view=model", "predicted_misses=predicted misses", "misses", "difference",
		"difference_ratio=of the misses", "method")}
	above := hierarchy.Views{}
	for i, p := range v.predicted.Levels {
		misses := v.counted.Levels[i].Misses
		add := func(name string, predicted float64, method hierarchy.Method) {
			t.Add(report.TextOf(p.Cache.Name), report.TextOf(name), report.Real(predicted), report.Real(misses),
				report.Real(predicted-misses), shareOff(predicted, misses), report.TextOf(string(method)))
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

// cores has a row for each core and level.
func (v *validation) cores(r simulate.Result) report.Table {
	t := report.Table{Key: "cores", Title: "Misses by core, as predicted and as simulated", Columns: report.Columns(
		"threads", "name=level", "predicted_misses=predicted misses", "misses", "difference",
		"difference_ratio=of the misses", "predicted_coherence_misses=predicted, of coherence",
		"coherence_misses=of coherence")}
	for _, core := range v.byCore.Cores {
		n := slices.IndexFunc(r.Cores, func(c simulate.Core) bool { return slices.Equal(c.Threads, core.Threads) })
		if n < 0 {
			continue
		}
		for i, l := range core.Levels {
			run := &r.Levels[i].Cores[n]
			misses := float64(run.Misses())
			t.Add(report.ListOf(answers.NumbersOf(core.Threads)), report.TextOf(r.Levels[i].Cache.Name), report.Real(l.Misses), report.Real(misses),
				report.Real(l.Misses-misses), shareOff(l.Misses, misses), report.Real(l.Coherence), report.Count(run.CoherenceMisses))
		}
	}
	return t
}
