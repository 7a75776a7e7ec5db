package command

import (
	"math"
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

// communicationOptions are what the verb communication takes besides what it reads.
type communicationOptions struct {
	granularity, by string
	falseSharing    bool
	caches          []string
	top             int
	line            uint32
	symbols         []string
}

var (
	granularities   = []string{"word", "line", "page"}
	communicationBy = []string{"flow", "site", "object", "owner", "window"}
)

// communication tells what threads write and others use.
func (a *app) communication() *cobra.Command {
	var (
		r *reading
		o communicationOptions
	)
	cmd := &cobra.Command{
		Use:   "communication FILE",
		Short: "What threads write and others use, and false sharing",
		Long: `Print what goes between the threads of a trace. An event is a reference to a word,
line or page that another thread wrote last; a transfer is the first load by a thread
of a value that another one wrote since: the least that has to be moved, as messages
would. --by tells it by flow (thread to thread), site (what wrote, what used), object
(data structure), owner (parts of data and the threads they belong to) or window
(over the run).

False sharing is a line in which several threads write different words, so that they
take it from each other. Data structures are ranked by how often their lines change
hands: those that were taken back in this run, and then those whose threads did not
overlap ("possible"). Below 1 % of the transfers of lines they are left out, and so are
lines that one thread fills and others read. --false-sharing prints that table alone,
with what to change. --cache L1=32KiB,full tells for private caches how many
transfers come from the other cache, and how many from memory.

csv is one table, with all rows; json has all tables.`,
		Example: "  stackglass communication app.sgt\n  stackglass communication app.sgt --false-sharing\n" +
			"  stackglass communication app.sgt --by flow --granularity line --format csv\n  stackglass communication app.sgt --cache L1=32KiB,full",
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.communicate(r, &o, args[0]) },
	}
	r = addReading(cmd)
	f := cmd.Flags()
	f.StringVar(&o.granularity, "granularity", "word", "of flows: "+strings.Join(granularities, ", "))
	f.StringVar(&o.by, "by", "", "one table: "+strings.Join(communicationBy, ", "))
	f.BoolVar(&o.falseSharing, "false-sharing", false, "false sharing only")
	f.StringArrayVar(&o.caches, "cache", nil, "a private cache, as in L1=32KiB,full (repeat for others)")
	f.IntVar(&o.top, "top", 0, "show the first `N` pairs of places")
	lineFlag(cmd, &o.line)
	addSymbols(cmd, &o.symbols)
	must(cmd.RegisterFlagCompletionFunc("granularity", cobra.FixedCompletions(granularities, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(communicationBy, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// check refuses what the options do not take, and gives the caches.
func (o *communicationOptions) check() ([]hierarchy.Cache, error) {
	if !slices.Contains(granularities, o.granularity) {
		return nil, usagef("--granularity ", strconv.Quote(o.granularity), ", want ", strings.Join(granularities, ", "))
	}
	if o.by != "" && !slices.Contains(communicationBy, o.by) {
		return nil, usagef("--by ", strconv.Quote(o.by), ", want ", strings.Join(communicationBy, ", "))
	}
	if o.granularity != "word" && o.by != "" && o.by != "flow" {
		return nil, usagef("--granularity ", o.granularity, ": --by ", o.by, " is told of words; only --by flow is told of lines and pages")
	}
	if o.falseSharing && o.by != "" {
		return nil, usagef("--false-sharing and --by ", o.by, " exclude each other: each is one table")
	}
	if o.top < 0 {
		return nil, usagef("--top ", strconv.Itoa(o.top), ", want a number of rows")
	}
	if len(o.caches) == 0 {
		return nil, nil
	}
	h, err := givenLevels(o.caches)
	return h.Levels, err
}

// communicate prints the verb's answer.
func (a *app) communicate(r *reading, o *communicationOptions, name string) error {
	caches, err := o.check()
	if err != nil {
		return err
	}
	l, err := a.loadCommunication(r, o, name, len(caches) > 0)
	if err != nil {
		return err
	}
	notes, err := symbolize(l.Profile, o.symbols)
	if err != nil {
		return err
	}
	c := &answers.Communication{Profile: l.Profile, Name: readable}
	if o.granularity == "page" && c.Granule(profile.PageBytes) == nil {
		return usagef(l.name, ": --granularity page: a sample of lines tells nothing of pages, which are known from all their lines only; take word or line, or stretches of the run, as in --sample onoff=1e6/1e8")
	}
	doubts, err := aboutCaches(l, c, caches)
	if err != nil {
		return err
	}
	d := &report.Document{Schema: "stackglass.communication", Version: 1, Input: l.facts(c.LineBytes()), Tables: o.tables(c, caches, r.format)}
	d.Input = append(d.Input, report.Fact{Key: "threads", Label: "threads", Value: report.Count(uint64(len(l.Profile.Totals.Threads)))})
	d.Warnings = slices.Concat(doubts, notes, aboutThreads(l, len(caches) > 0), answers.RestsOnSample(l.Profile, answers.CommunicationOfSample))
	if l.Profile.Sites != nil {
		d.Warnings = append(d.Warnings, answers.MissingSites(l.Profile)...)
	}
	return a.answer(l, r.format, d)
}

// loadCommunication opens FILE and gives a profile that tells of communication.
func (a *app) loadCommunication(r *reading, o *communicationOptions, name string, stacks bool) (*answerable, error) {
	chosen := analysis.Communication
	if stacks {
		chosen |= analysis.Sharing
	}
	r.analyses = chosen.String()
	l, err := a.load(r, name, []uint32{o.line})
	if err != nil || l.Profile.Communication != nil {
		return l, err
	}
	switch p := l.Profile; {
	case p.Totals.AllReferences() == 0:
		return nil, usagef(l.name, ": no reference was analysed: the trace has none, or none of the chosen kinds, threads and part")
	case len(p.Totals.Threads) == 0:
		return nil, usagef(l.name, `: the trace has no thread numbers, so nothing tells what threads share; compile the program with "stackglass cc -- clang …" and run it; sites and counters do without threads`)
	case len(p.Totals.Threads) == 1:
		return nil, usagef(l.name, ": all references are of one thread, ", strconv.FormatUint(uint64(p.Totals.Threads[0]), 10), ", so nothing goes between threads")
	case answers.IsOfSample(p):
		return nil, usagef(l.name, ": the sample has lines of one thread only, or none; take a larger one, or another by --sample-seed")
	}
	return nil, usagef(l.name, ": the profile has no communication between threads: ", answers.NoCommunication(l.Profile), "; analyze the trace again with --analyses communication")
}

// aboutCaches refuses caches about which nothing is known, and gives the doubts
// about the others.
func aboutCaches(l *answerable, c *answers.Communication, caches []hierarchy.Cache) (doubts []string, err error) {
	if len(caches) > 0 && l.Profile.Communication.Sources == nil {
		if len(l.Profile.Sharing) > 0 {
			return nil, usagef(l.name, ": --cache: what comes from other caches is left out of profiles that can be appended to; analyze the trace again without --mergeable")
		}
		return nil, usagef(l.name, ": --cache: the profile has no stacks of threads; analyze the trace again with --analyses communication,sharing")
	}
	for _, cache := range caches {
		if cache.LineBytes != c.LineBytes() {
			return nil, usagef("--cache ", cache.Name, ": lines of ", strconv.FormatUint(uint64(cache.LineBytes), 10), " bytes, and communication is told of lines of ",
				strconv.FormatUint(uint64(c.LineBytes()), 10), "; give --line, or the same line size")
		}
		if !cache.Full() {
			doubts = append(doubts, cache.Name+": taken as fully associative, because depths in sets are not known of what is communicated")
		}
	}
	return doubts, nil
}

// aboutThreads are doubts about threads.
func aboutThreads(l *answerable, caches bool) (doubts []string) {
	for _, text := range answers.ManyThreads(l.Profile, caches) {
		doubts = append(doubts, l.name+": "+text+"; choose some with --threads")
	}
	if l.Profile.Input.Header.Sliced {
		doubts = append(doubts, l.name+": the threads are in order only from one time slice to the next, so within a slice a value may seem to come from another store than it did; capture the program with STACKGLASS_ORDER=exact to know")
	}
	return doubts
}

// tables are the answer.
func (o *communicationOptions) tables(c *answers.Communication, caches []hierarchy.Cache, format string) (list []report.Table) {
	bytes := [...]uint32{profile.WordBytes, c.LineBytes(), profile.PageBytes}[slices.Index(granularities, o.granularity)]
	granule := c.Granule(bytes)
	top := o.top
	switch {
	case top > 0:
	case exactRows(format):
		top = math.MaxInt
	default:
		top = fewPairs
	}
	if len(caches) > 0 {
		list = append(list, c.Caches(caches))
	}
	switch {
	case o.falseSharing:
		return append(list, o.falsely(c, format))
	case o.by == "flow" && exactRows(format):
		return append(list, c.Flows(granule))
	case o.by == "flow":
		return append(list, c.Matrix(granule), c.Flows(granule))
	case o.by == "site":
		return append(list, c.Sites(top, true))
	case o.by == "object":
		return append(list, c.Objects(true))
	case o.by == "owner":
		return append(list, c.Owners())
	case o.by == "window":
		return append(list, c.Windows())
	case format == string(report.JSON):
		return append(list, c.Traffic(), c.Flows(granule), c.Sites(top, true), c.FalseSharing(), c.Objects(true), c.Owners(), c.Windows())
	case format == string(report.CSV):
		return append(list, c.Flows(granule))
	}
	falsely, rest := o.falsely(c, format), []report.Table{c.Matrix(granule), c.Sites(top, false), c.Objects(false)}
	if len(falsely.Rows) > 0 { // what can be cured comes first
		return append(append(list, falsely, c.Traffic()), rest...)
	}
	return append(append(append(list, c.Traffic()), rest...), falsely)
}

// falsely is the table of false sharing; to people it says what to change, or that there is
// none.
func (o *communicationOptions) falsely(c *answers.Communication, format string) report.Table {
	t := c.FalseSharing()
	switch {
	case exactRows(format):
	case len(t.Rows) == 0:
		return report.Table{Title: strings.TrimSuffix(c.FalseSummary(), ".")}
	case len(t.Rows) == 1:
		t.Columns = t.Columns[:len(t.Columns)-1] // the fix is in the title
		t.Rows[0] = t.Rows[0][:len(t.Columns)]
		fallthrough
	default:
		t.Title = c.Worst()
	}
	return t
}

// fewPairs is how many pairs of places people get unless they ask for more by --top.
const fewPairs = 10
