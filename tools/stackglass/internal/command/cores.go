package command

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// addGroups adds the options that group threads on cores.
func addGroups(cmd *cobra.Command, r *readOptions) {
	cmd.Flags().StringVar(&r.cores, "cores", "", "run each group of threads in `GROUPS` on its own core, for example 0,1/2,3 (default: each thread on its own core)")
	cmd.Flags().StringVar(&r.domains, "domains", "", "also analyse one shared cache for each group of threads in `GROUPS`, for example 0-3/4-7 (the cache shared by all cores is always analysed)")
}

// addOneCore adds the option that puts all threads on one core.
func addOneCore(cmd *cobra.Command, oneCore *bool) {
	cmd.Flags().BoolVar(oneCore, "one-core", false, "run all threads on one core (default: each thread on its own core)")
}

// putOnOneCore puts all threads on one core if oneCore is set.
func putOnOneCore(h *hierarchy.Hierarchy, oneCore bool) {
	if oneCore {
		h.Threads = hierarchy.OnOneCore
	}
}

// addGroupsTo adds the groups of threads from --cores and --domains to the spec of an analysis.
func (r *readOptions) addGroupsTo(spec *analysis.Spec) (err error) {
	if r.cores != "" {
		spec.Cores, err = analysis.ParseGroups("cores", r.cores)
	}
	if err == nil && r.domains != "" {
		spec.Domains, err = analysis.ParseGroups("domains", r.domains)
	}
	return asUsage(err)
}

// absentThreads returns warnings about threads in --cores and --domains that the trace does not
// contain.
func (l *loadedFile) absentThreads(r *readOptions) (doubts []string) {
	var spec analysis.Spec
	_ = r.addGroupsTo(&spec) // cannot fail, because the groups were already checked
	for _, text := range answers.AbsentThreads(l.Profile, spec.Cores) {
		doubts = append(doubts, l.name+": --cores "+text)
	}
	for _, text := range answers.AbsentThreads(l.Profile, spec.Domains) {
		doubts = append(doubts, l.name+": --domains "+text)
	}
	return doubts
}

// sharingCores returns the threads of each core, in the order in which consecutive cores share the
// caches of h. It returns nil if the analysis does not need this order. The order is the same as in
// a simulation: the cores that --cores lists are followed by one core for each remaining thread, in
// the order in which the threads first appear. This order is known only after the trace was read.
// Therefore, the trace is read twice if there is a level at which the threads do not all share one
// cache. Standard input cannot be read twice, so --cores or --domains must list the threads of a
// trace from standard input.
func (r *readOptions) sharingCores(h hierarchy.Hierarchy, in *pass.Input, o pass.Options) ([][]uint32, error) {
	fewest := fewestSharers(h)
	if fewest == 0 || r.domains != "" || !o.Spec.Runs(analysis.Sharing) || in.IsProfile || in.IsByfl {
		return nil, nil
	}
	if in.Bytes == 0 { // standard input and pipes cannot be read twice
		return simulatedCores(o.Spec.Cores, nil), nil
	}
	if few, err := r.fewThreads(in, o, fewest); few || err != nil {
		return nil, err
	}
	again, err := pass.Open(r.cmd.Context(), in.Name, nil)
	if err != nil {
		return nil, err
	}
	defer again.Close()
	var appeared []uint32
	o.Spec.Analyses, o.Spec.Mergeable, o.Spec.Previous, o.Spec.Utilisation, o.Spec.UtilisationWays = analysis.None, false, false, nil, nil
	o.Checkpoints, o.BesideSites, o.Spill = nil, nil, ""
	o.Beside = func(b *trace.Batch) error {
		appeared = addAppeared(appeared, b.Thread)
		return nil
	}
	if _, err := again.Analyze(r.cmd.Context(), o); err != nil {
		return nil, err
	}
	return simulatedCores(o.Spec.Cores, appeared), nil
}

// fewestSharers returns the smallest number of cores that share a cache of any level. It returns 0
// if every level is private or shared by all cores.
func fewestSharers(h hierarchy.Hierarchy) (fewest uint32) {
	for _, c := range h.Levels {
		if c.SharedBy > 1 && c.SharedBy < simulate.MaxCores && (fewest == 0 || c.SharedBy < fewest) {
			fewest = c.SharedBy
		}
	}
	return fewest
}

// fewThreads reports whether the beginning of a trace, or the headers of a container, show that the
// trace has at most the given number of threads.
func (r *readOptions) fewThreads(in *pass.Input, o pass.Options, threads uint32) (bool, error) {
	if in.Bytes == 0 {
		return false, nil // standard input and pipes cannot be read twice
	}
	again, err := pass.Open(r.cmd.Context(), in.Name, nil)
	if err != nil {
		return false, err
	}
	defer again.Close()
	facts, err := again.Look(r.cmd.Context(), o.Format, 1)
	switch {
	case err != nil:
		return true, r.cmd.Context().Err() // the analysis will report the error in the trace
	case facts.Container != nil && facts.Stopped == nil:
		return uint64(len(facts.Container.Threads)) <= uint64(threads), nil
	}
	return !facts.Header.Threads, nil
}

// addAppeared appends the threads of a batch that have not appeared before.
func addAppeared(appeared, threads []uint32) []uint32 {
	for i, t := range threads {
		if (i == 0 || t != threads[i-1]) && !slices.Contains(appeared, t) {
			appeared = append(appeared, t)
		}
	}
	return appeared
}

// simulatedCores lists the threads of each core in the order in which a simulation
// numbers the cores.
func simulatedCores(groups [][]uint32, appeared []uint32) [][]uint32 {
	cores := slices.SortedFunc(slices.Values(groups), func(a, b []uint32) int { return cmp.Compare(a[0], b[0]) })
	for _, t := range appeared {
		if !slices.ContainsFunc(groups, func(g []uint32) bool { return slices.Contains(g, t) }) {
			cores = append(cores, []uint32{t})
		}
	}
	return cores[:min(len(cores), simulate.MaxCores)]
}

// domainsOf returns the groups of threads that share a cache. It considers only levels whose caches
// are shared by several, but not all, cores. The result is nil if there are too many groups for an
// analysis.
func domainsOf(h hierarchy.Hierarchy, cores [][]uint32) (domains [][]uint32) {
	for _, c := range h.Levels {
		for _, threads := range program.SharersOf(c, cores) {
			known := slices.ContainsFunc(domains, func(d []uint32) bool { return slices.Equal(d, threads) })
			if !known && !slices.ContainsFunc(cores, func(core []uint32) bool { return slices.Equal(core, threads) }) {
				domains = append(domains, threads)
			}
		}
	}
	if len(domains) >= profile.MaxDomains {
		return nil
	}
	return domains
}
