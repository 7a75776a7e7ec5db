package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// threadOptions are what the verb threads takes besides what it reads.
type threadOptions struct {
	caches []string
	by     string
	curve  bool
	line   uint32
}

// usualThreadCaches are asked about unless the user gives others: one that each core
// has for itself, and one that all share.
var usualThreadCaches = []string{usualCache, "L2=1MiB,16,shared=all"}

var threadsBy = []string{"core", "domain", "change", "view"}

// threads tells how threads use caches of their own and caches that they share.
func (a *app) threads() *cobra.Command {
	var (
		r *reading
		o threadOptions
	)
	cmd := &cobra.Command{
		Use:   "threads FILE [--cache NAME=SIZE,WAYS[,LINE][,shared=CORES] …]",
		Short: "What threads miss in caches of their own, and in caches that they share",
		Long: `Print, core by core, what the threads of a trace miss in private caches, which
other cores' stores take lines from, and in caches that cores share; each cache is
asked about by itself (what-if has hierarchies). A thread is a core, unless --cores
groups them, as in --cores 0,1/2,3. All cores share a cache with shared=all; groups of
them, as in --domains 0-3/4-7, with shared=4.

Misses in a private cache are cold, capacity (or conflict), or coherence misses, which
would have hit, had no other core stored to the line. In a cache that cores share, the
effective share is the size of a cache of its own in which a core would miss as often.
Sharing changes stack distances: others' lines come in between (dilated), some of which
the core uses too (overlapped); another core touches the line itself in between
(intercepted), or touched it first (brought).

--curve prints the misses of each core in fully associative LRU caches of every
capacity: private (undisturbed), coherent, and concurrent (shared by all).
csv is one table, that of --by; json has all.`,
		Example: "  stackglass threads app.sgt\n  stackglass threads app.sgt --cache L1=32KiB,8 --cache L2=1MiB,16,shared=2 --domains 0,1/2,3\n" +
			"  stackglass threads app.sgt --by change --format csv\n  stackglass threads app.sgp --curve --format csv",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.shareCaches(r, &o, args[0]) },
	}
	r = addReading(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.caches, "cache", nil, "a cache, as in "+strings.Join(usualThreadCaches, " and ")+", which are the default (repeat for the next one)")
	addGroups(cmd, r)
	f.StringVar(&o.by, "by", "", "one table: "+strings.Join(threadsBy, ", "))
	f.BoolVar(&o.curve, "curve", false, "misses at every capacity, by core")
	lineFlag(cmd, &o.line)
	must(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(threadsBy, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

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

// levels are the caches to ask about.
func (o *threadOptions) levels() ([]hierarchy.Cache, error) {
	if o.by != "" && !slices.Contains(threadsBy, o.by) {
		return nil, usagef("--by ", strconv.Quote(o.by), ", want ", strings.Join(threadsBy, ", "))
	}
	if o.curve && o.by != "" {
		return nil, usagef("--curve and --by ", o.by, " exclude each other: each is one table")
	}
	if len(o.caches) > 0 {
		h, err := givenLevels(o.caches)
		return h.Levels, err
	}
	h, err := givenLevels(usualThreadCaches)
	for i := range h.Levels {
		h.Levels[i].LineBytes = o.line
		if err := h.Levels[i].Check(); err != nil {
			return nil, asUsage(err)
		}
	}
	return h.Levels, err
}

// shareCaches prints the verb's answer.
func (a *app) shareCaches(r *reading, o *threadOptions, name string) error {
	levels, err := o.levels()
	if err != nil {
		return err
	}
	lines := append(lineSizes(hierarchy.Hierarchy{Levels: levels}), o.line)
	slices.Sort(lines)
	r.asked.Levels = levels
	l, err := a.loadThreads(r, name, slices.Compact(lines))
	if err != nil {
		return err
	}
	s := answers.SharingAt(l.Profile, o.line)
	if s == nil && !r.cmd.Flags().Changed("line") {
		s = &l.Profile.Sharing[0]
	}
	if s == nil {
		_, err := l.locality(o.line)
		return err
	}
	if o.by == "change" && answers.IsOfSample(l.Profile) {
		return usagef(l.name, ": --by change: how distances change is not told by a sample; take stretches of the run instead, as in --sample onoff=1e6/1e8")
	}
	t, doubts, err := answers.NewThreads(l.Profile, levels)
	if err != nil {
		return asUsage(err)
	}
	d := &report.Document{Schema: "stackglass.threads", Version: 1, Input: l.facts(0), Tables: o.tables(t, s, r.format)}
	d.Input = append(d.Input, report.Fact{Key: "threads", Label: "threads", Value: report.Count(uint64(len(l.Profile.Totals.Threads)))})
	d.Warnings = slices.Concat(l.told(doubts), aboutCores(l, r), answers.RestsOnSample(l.Profile, answers.ThreadsOfSample))
	return a.answer(l, r.format, d)
}

// loadThreads opens FILE and gives a profile with stacks of several threads.
func (a *app) loadThreads(r *reading, name string, lines []uint32) (*answerable, error) {
	r.analyses = analysis.Sharing.String()
	l, err := a.load(r, name, lines)
	if err != nil || len(l.Profile.Sharing) > 0 {
		return l, err
	}
	switch p := l.Profile; {
	case p.Totals.AllReferences() == 0:
		return nil, usagef(l.name, ": no reference was analysed: the trace has none, or none of the chosen kinds, threads and part")
	case len(p.Totals.Threads) == 0:
		return nil, usagef(l.name, ": this trace does not say which thread made a reference; curve, sets and what-if answer for all as one; ",
			`to have threads, compile the program with "stackglass cc -- clang …" and run it, or run it by "stackglass trace -- PROGRAM"`)
	case len(p.Totals.Threads) == 1:
		return nil, usagef(l.name, ": all references are of one thread, ", strconv.FormatUint(uint64(p.Totals.Threads[0]), 10),
			", so its caches are disturbed by nobody; curve, sets and what-if answer for them")
	case l.Trace && r.sample != "":
		return nil, usagef(l.name, ": the sample has lines of one core only, or none; take a larger one, or another by --sample-seed")
	case l.Trace:
		return nil, usagef(l.name, ": --cores ", r.cores, " puts all threads on one core, so its caches are disturbed by nobody; curve, sets and what-if answer for them")
	}
	return nil, usagef(l.name, ": the profile holds no stacks of threads; analyze the trace again, by default or with --analyses sharing")
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

// aboutCores tells of threads that found no core of their own. A core is kept for each
// group.
func aboutCores(l *answerable, r *reading) []string {
	p := l.Profile
	groups, _ := r.groups()
	absent, single := 0, len(p.Totals.Threads)
	for _, group := range groups {
		known := len(answers.KnownThreads(p, group))
		if single -= known; known == 0 {
			absent++
		}
	}
	if single <= profile.MaxCores-len(groups) || len(p.Sharing[0].Cores)+absent < profile.MaxCores {
		return nil
	}
	return []string{l.name + ": there are " + plural(uint64(len(p.Totals.Threads)), "thread") + " and at most " + strconv.Itoa(profile.MaxCores) +
		" cores; those that came last share the others' in turn; --cores says which go together, and --threads which to analyse"}
}

// tables are the answer.
func (o *threadOptions) tables(t *answers.Threads, s *profile.Sharing, format string) []report.Table {
	switch {
	case o.curve:
		return []report.Table{answers.ThreadCurves(s)}
	case o.by == "domain":
		return []report.Table{t.Domains()}
	case o.by == "change":
		return []report.Table{answers.Changes(s)}
	case o.by == "view":
		return []report.Table{t.Views()}
	case o.by == "core" || format == string(report.CSV):
		return []report.Table{t.Cores()}
	}
	var list []report.Table
	asked := []report.Table{t.Cores(), t.Views(), t.Domains()}
	if !answers.IsOfSample(t.Profile) {
		asked = append(asked, answers.Changes(s))
	}
	for _, table := range asked {
		if len(table.Rows) > 0 || format == string(report.JSON) {
			list = append(list, table)
		}
	}
	return list
}
