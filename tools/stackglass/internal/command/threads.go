package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
)

// addGroups gives cmd the options that put threads on cores.
func addGroups(cmd *cobra.Command, r *reading) {
	cmd.Flags().StringVar(&r.cores, "cores", "", "threads that have a private cache in common, as in 0,1/2,3 (default: each has its own)")
	cmd.Flags().StringVar(&r.domains, "domains", "", "threads whose cores share a cache, as in 0-3/4-7, besides the one that all share")
}

// addOneCore gives cmd the option that puts all threads on one core.
func addOneCore(cmd *cobra.Command, oneCore *bool) {
	cmd.Flags().BoolVar(oneCore, "one-core", false, "answer for all threads on one core (default: each thread on its own core)")
}

// place puts the threads of a program on one core, or leaves each on its own.
func place(h *hierarchy.Hierarchy, oneCore bool) {
	if oneCore {
		h.Threads = hierarchy.OnOneCore
	}
}

// group puts into a spec which threads are on which cores.
func (r *reading) group(spec *analysis.Spec) (err error) {
	if r.cores != "" {
		if spec.Cores, err = analysis.ParseGroups("cores", r.cores); err != nil {
			return asUsage(err)
		}
	}
	if r.domains != "" {
		if spec.Domains, err = analysis.ParseGroups("domains", r.domains); err != nil {
			return asUsage(err)
		}
	}
	return nil
}

// groups are those of --cores and --domains, which were read before.
func (r *reading) groups() (cores, domains [][]uint32) {
	var spec analysis.Spec
	_ = r.group(&spec)
	return spec.Cores, spec.Domains
}

// aboutGroups tells of threads in groups, as --cores and --domains have them, that the
// trace does not have.
func (l *answerable) aboutGroups(r *reading) (doubts []string) {
	cores, domains := r.groups()
	for i, groups := range [][][]uint32{cores, domains} {
		option := [...]string{"--cores ", "--domains "}[i]
		for _, text := range answers.AbsentThreads(l.Profile, groups) {
			doubts = append(doubts, l.name+": "+option+text)
		}
	}
	return doubts
}
