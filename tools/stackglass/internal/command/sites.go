package command

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ianlancetaylor/demangle"
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/ranking"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// siteOptions are what the verb sites takes besides what it reads.
type siteOptions struct {
	caches  []string
	named   string
	by      string
	top     int
	share   string
	sort    string
	sources []string
	symbols []string
	oneCore bool
}

// sites ranks places in the code, or data, by misses.
func (a *app) sites() *cobra.Command {
	var (
		r *reading
		o siteOptions
	)
	cmd := &cobra.Command{
		Use:   "sites FILE [--cache NAME=SIZE,WAYS[,LINE] …]",
		Short: "Which lines of source, functions or data miss",
		Long: `Rank lines of source by their misses in a cache: share of all misses, references,
miss ratio, how their addresses go (stride: zero, unit, constant or irregular), and
how much of the lines that they fetch is used before these are gone (of traces; in the
caches asked about, or those that --utilisation names). --by sums up by site
(a load or store in the code), line, function or object (data structure: heap blocks
by the place that allocated them, global and local variables).

Rows that together make --share of the misses are shown, 100 at most, or --top N;
the others are one row, and sums are always those of what-if. csv and json have all rows. Misses of
the caches that utilisation is measured for are exact, and those in fully associative
ones at the edges of bins; others are estimates, tied to the level's total.

Where the trace has several threads, each runs on a core of its own, as in what-if
(--cores puts some on one), and "of coherence" counts the misses of private caches that
are there because another core's store took the line.

FILE is a trace that tells sites or instruction addresses, as "stackglass cc" and
"stackglass trace" make them, or a profile of one. --source names folders or files
whose text is shown beside the lines. --symbols names the program of a trace that
has addresses only; PROGRAM@ADDRESS says where one lay that may lie anywhere.`,
		Example: "  stackglass sites app.sgt --source src\n  stackglass sites app.sgt --cache L1=48KiB,12 --cache L2=2MiB,16 --by object\n" +
			"  stackglass sites app.sgp --by function --top 10 --sort references",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.rank(r, &o, args[0]) },
	}
	r = addReading(cmd)
	addGroups(cmd, r)
	addOneCore(cmd, &o.oneCore)
	f := cmd.Flags()
	f.StringArrayVar(&o.caches, "cache", nil, "a level, as in "+usualCache+", which is the default (repeat for the next one)")
	f.StringVar(&o.named, "hierarchy", "", "a preset, or a `FILE` that describes a hierarchy")
	f.StringVar(&o.by, "by", string(ranking.Line), "what to sum up by: site, line, function or object")
	f.IntVar(&o.top, "top", 0, "show the first `N` rows")
	f.StringVar(&o.share, "share", "90%", "show as many rows as make this share of the first level's misses")
	f.StringVar(&o.sort, "sort", "", "the `COLUMN` to sort rows by, as csv names it; numbers fall (default: misses of the first level)")
	f.StringArrayVar(&o.sources, "source", nil, "a `FOLDER` or file of source, to show the text of each line")
	addSymbols(cmd, &o.symbols)
	addMeasures(cmd, r)
	must(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"site", "line", "function", "object"}, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("hierarchy", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveDefault)))
	return cmd
}

// addMeasures gives cmd what sites measure on request.
func addMeasures(cmd *cobra.Command, r *reading) {
	cmd.Flags().StringSliceVar(&r.utilisation, "utilisation", nil, "caches for which to measure how much of fetched lines is used, and misses by site: sizes, each with its ways or fully associative, as in 32KiB,8,1MiB")
	cmd.Flags().BoolVar(&r.previous, "previous", false, "note which site touched a line before, for distances from 16 on")
}

// rank prints the verb's answer.
func (a *app) rank(r *reading, o *siteOptions, name string) error {
	unasked := o.caches == nil && o.named == ""
	if unasked {
		o.caches = []string{usualCache}
	}
	h, err := chooseHierarchy(o.caches, o.named)
	if err != nil {
		return err
	}
	place(&h, o.oneCore)
	share, err := o.check()
	if err != nil {
		return err
	}
	sources, err := findSources(o.sources)
	if err != nil {
		return err
	}
	l, err := a.loadSites(r, name, h)
	if err != nil {
		return err
	}
	notes, err := symbolize(l.Profile, o.symbols)
	if err != nil {
		return err
	}
	s, doubts, err := attributed(l, h, ranking.By(o.by))
	if unasked {
		err = aboutUsual(l, err)
	}
	if err != nil {
		return err
	}
	if s.Source = nil; len(o.sources) > 0 {
		s.Source = sources.text
	}
	d := &report.Document{Schema: "stackglass.sites", Version: 1, Input: append(l.facts(l.Profile.Sites.LineBytes), answers.ThreadFacts(l.Profile, h)...)}
	d.Tables, err = o.tables(s, share, r.format)
	if err != nil {
		return err
	}
	d.Warnings = slices.Concat(doubts, answers.MissingSites(l.Profile), notes, sources.doubts(), answers.RestsOnSample(l.Profile, answers.SitesOfSample))
	if len(d.Tables) > 1 && r.format == string(report.CSV) {
		d.Warnings = append(d.Warnings, "csv is one table, that of misses: who touched the lines before is in the other formats, as in --format json")
	}
	return a.answer(l, r.format, d)
}

// check refuses what the options do not take.
func (o *siteOptions) check() (share float64, err error) {
	if !slices.Contains(ranking.Bys(), ranking.By(o.by)) {
		return 0, usagef("--by ", strconv.Quote(o.by), ", want site, line, function or object")
	}
	if o.top < 0 {
		return 0, usagef("--top ", strconv.Itoa(o.top), ", want a number of rows")
	}
	text, percent := strings.CutSuffix(o.share, "%")
	share, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, usagef("--share ", strconv.Quote(o.share), ", want a share of the misses, as in 90% or 0.9")
	}
	return share, nil
}

// loadSites opens FILE and gives a profile with sites.
func (a *app) loadSites(r *reading, name string, h hierarchy.Hierarchy) (*answerable, error) {
	needed := analysis.Sites | analysis.Sharing // threads have private caches, as in what-if
	if needsSets(h) {
		needed |= analysis.Sets // totals are those of what-if
	}
	r.analyses = needed.String()
	if r.asked = h; r.utilisation == nil {
		r.levels = h.Levels
	}
	l, err := a.load(r, name, lineSizes(h))
	if err != nil || l.Profile.Sites != nil {
		return l, err
	}
	if l.Profile.Totals.AllReferences() == 0 {
		return nil, usagef(l.name, ": no reference was analysed: the trace has none, or none of the chosen kinds, threads and part")
	}
	const how = `compile the program with "stackglass cc -- clang …" and run it, or run it by "stackglass trace -- PROGRAM"`
	if l.Trace {
		return nil, usagef(l.name, ": the trace tells neither sites nor instruction addresses, so there is nothing to rank; "+how)
	}
	return nil, usagef(l.name, ": the profile holds no sites; analyze the trace again with --analyses sites, and if it tells none: "+how)
}

// usualCache is what sites are ranked by unless the user asks about another.
const usualCache = "L1=32KiB,8"

// aboutUsual says of an error about a cache that nobody asked about it, where one
// comes from.
func aboutUsual(l *answerable, err error) error {
	var option *trace.OptionError
	if !errors.As(err, &option) || option.Option != "cache" {
		return err
	}
	return usagef(l.name, ": the cache that is asked about without --cache, ", usualCache, ", has lines of 64 bytes; give one with a line size of the profile, as in --cache ",
		usualCache, ",", strconv.Itoa(int(l.Profile.Sites.LineBytes)), ", or analyze the trace again with --lines 64 among others")
}

// attributed says whose the misses of a hierarchy are.
func attributed(l *answerable, h hierarchy.Hierarchy, by ranking.By) (*answers.Sites, []string, error) {
	ranker, ok := ranking.New(l.Profile)
	if !ok {
		return nil, nil, usagef(l.name, ": the profile holds no sites")
	}
	levels, doubts, err := ranker.Attribute(h)
	if err != nil {
		return nil, nil, asUsage(err)
	}
	warnings := append(l.told(doubts), answers.Estimated(levels)...)
	if by == ranking.Object && l.Profile.Sites.Data == nil {
		return nil, nil, usagef(l.name, ": --by object: the trace names no data; compile the program with \"stackglass cc -- clang …\"")
	}
	return &answers.Sites{Profile: l.Profile, Ranker: ranker, Levels: levels, By: by, Name: readable}, warnings, nil
}

// readable gives a function's name as its source has it.
func readable(name string) string {
	return demangle.Filter(name, demangle.NoEnclosingParams)
}

// mostRows is how many rows people get unless they ask for more by --top.
const mostRows = 100

// tables are the answer.
func (o *siteOptions) tables(s *answers.Sites, share float64, format string) ([]report.Table, error) {
	if keys := s.Keys(); o.sort != "" && !slices.Contains(keys, o.sort) {
		return nil, usagef("--sort ", strconv.Quote(o.sort), ", want one of ", strings.Join(keys, ", "))
	}
	top, sorted := o.top, math.MaxInt // the first by the column, not the first by misses in its order
	switch {
	case top > 0:
	case exactRows(format):
		top = math.MaxInt
	default:
		top = min(max(1, s.Reaching(share)), mostRows)
		sorted = top
	}
	s.Sort(o.sort, sorted)
	t := s.Table(top)
	if !exactRows(format) {
		t = s.Narrow(t, o.sort)
		t.Title = "Misses by " + o.by + " (all columns and rows: --format csv)"
	}
	tables := []report.Table{t}
	if s.Profile.Sites.Previous {
		tables = append(tables, s.Before(top))
	}
	return tables, nil
}
