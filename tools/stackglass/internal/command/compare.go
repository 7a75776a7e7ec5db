package command

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// comparing is what one comparison asks of both files.
type comparing struct {
	r       *reading
	on      string
	by      string
	line    uint32
	sort    string
	top     uint64
	caches  []string
	named   string
	unasked bool // about caches
	budgets []string
	oneCore bool

	h hierarchy.Hierarchy
}

// subject is what two runs can be compared on.
type subject struct {
	name     string
	analyses analysis.Analyses // that a trace needs for it, but for those that the hierarchy decides on
	lines    func(*comparing) []uint32
	tables   func(c *comparing, l, other *answerable) ([]report.Table, []string, error)
}

// subjects lists them, the default first.
var subjects = []subject{
	{name: "summary", analyses: analysis.Default, lines: oneLine, tables: (*comparing).summary},
	{name: "histogram", analyses: analysis.Locality, lines: oneLine, tables: (*comparing).histogram},
	{name: "curve", analyses: analysis.Locality, lines: oneLine, tables: (*comparing).curve},
	{name: "what-if", lines: levelLines, tables: (*comparing).whatIf},
	{name: "sets", analyses: analysis.Sets, lines: oneLine, tables: (*comparing).sets},
	{name: "sites", analyses: analysis.Sites | analysis.Sets | analysis.Sharing, lines: levelLines, tables: (*comparing).sites},
	{name: "windows", analyses: analysis.Locality, lines: oneLine, tables: (*comparing).windows},
	{name: "counters", analyses: analysis.Locality | analysis.Counters, lines: oneLine, tables: (*comparing).counters},
}

func oneLine(c *comparing) []uint32    { return []uint32{c.line} }
func levelLines(c *comparing) []uint32 { return lineSizes(c.h) }

func subjectNames() (names []string) {
	for _, s := range subjects {
		names = append(names, s.name)
	}
	return names
}

// compare puts the answers about two files side by side.
func (a *app) compare() *cobra.Command {
	c := new(comparing)
	cmd := &cobra.Command{
		Use:   "compare A B [--on VERB]",
		Short: "Two runs side by side: A, B, difference",
		Long: `Ask two traces or profiles the same question and print both answers: A, B, the
difference B - A, and the change as a share of A. --on says which question:
` + strings.Join(subjectNames(), ", ") + `.

Rows belong together by what names them: a distance, a capacity, a level, and
functions and places in the code by their names in the sources, so that two
builds of a program, or two programs, can be compared. A row that is only in A or
only in B says so. A difference of shares is in percentage points.

csv and json have a line for every number of every row; table and md leave out
columns that tell nothing, and have one number of each row where rows are many: the
one that --sort names.

--fail-if states a budget on a difference, as in 'L1.misses.difference>1%': the
row's name, the number's name as json has it, and a bound on the difference, or,
with a %, on the change. * is any row. Beyond it the exit code is 1.`,
		Example: "  stackglass compare demo:matmul-naive demo:matmul-blocked\n" +
			"  stackglass compare old.sgp new.sgp --on what-if --cache L1=32KiB,8 --fail-if 'L1.misses.difference>1%'",
		Args: twoFiles,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCompare(cmd, c, args) },
	}
	c.r = addReading(cmd)
	f := cmd.Flags()
	f.StringVar(&c.on, "on", "summary", "what to compare: "+strings.Join(subjectNames(), ", "))
	f.Uint32Var(&c.line, "line", 64, "the cache line in `BYTES`, a power of two from 8 to 4096")
	f.StringArrayVar(&c.caches, "cache", nil, "a level, as in L1=32KiB,8 (repeat for the next one)")
	f.StringVar(&c.named, "hierarchy", "", "a preset, or a `FILE` that describes a hierarchy")
	f.StringVar(&c.by, "by", "", "what to sum up by: counters by program, function or block; sites by line, site, function or object")
	f.StringVar(&c.sort, "sort", "", "put the rows first that differ most in this `NUMBER`, as json names it")
	addOneCore(cmd, &c.oneCore)
	f.Uint64Var(&c.top, "top", 0, "print the first `N` rows of each table only (0: all)")
	f.StringArrayVar(&c.budgets, "fail-if", nil, "exit 1 if this holds, as in 'L1.misses.difference>1%' (may be repeated)")
	must(cmd.RegisterFlagCompletionFunc("on", cobra.FixedCompletions(subjectNames(), cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("hierarchy", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveDefault)))
	return cmd
}

// twoFiles wants the two traces or profiles to compare.
func twoFiles(_ *cobra.Command, args []string) error {
	switch {
	case len(args) != 2:
		return usagef("give two traces or profiles, as in: stackglass compare before.sgp after.sgp")
	case args[0] == "-" && args[1] == "-":
		return usagef("- and -: standard input is one trace; give the other one as a file")
	}
	return nil
}

func (a *app) runCompare(cmd *cobra.Command, c *comparing, args []string) error {
	at := slices.IndexFunc(subjects, func(s subject) bool { return s.name == c.on })
	if at < 0 {
		return usagef("--on ", strconv.Quote(c.on), ", want one of ", strings.Join(subjectNames(), ", "))
	}
	s := subjects[at]
	if err := c.check(cmd); err != nil {
		return err
	}
	bounds, err := parseBounds(c.budgets)
	if err != nil {
		return err
	}
	pair, err := a.loadPair(c, s, args)
	if err != nil {
		return err
	}
	d, compared, err := c.document(s, pair)
	if err != nil {
		return err
	}
	exceeded, err := checkBounds(bounds, compared)
	if err != nil {
		return err
	}
	if d.Tables, err = c.layOut(compared); err != nil {
		return err
	}
	f, err := parseFormat(c.r.format)
	if err != nil {
		return err
	}
	if err := a.print(f, d); err != nil {
		return err
	}
	for _, l := range pair {
		if l.Stopped != nil {
			return l.Stopped
		}
	}
	return exceeded
}

// check refuses options that mean nothing to what is compared.
func (c *comparing) check(cmd *cobra.Command) (err error) {
	for _, option := range []struct{ name, first, second string }{{"cache", "what-if", "sites"}, {"hierarchy", "what-if", "sites"}, {"one-core", "what-if", "sites"}, {"by", "counters", "sites"}} {
		if cmd.Flags().Changed(option.name) && c.on != option.first && c.on != option.second {
			return usagef("--", option.name, " is for --on ", option.first, " and --on ", option.second, ", not for --on ", c.on)
		}
	}
	if c.by == "" {
		c.by = map[string]string{"counters": string(answers.ByProgram), "sites": string(attribution.Line)}[c.on]
	}
	if c.on == "counters" && cmd.Flags().Changed("line") {
		return usagef("--line: counters are of no line size; leave it out")
	}
	switch c.on {
	case "counters":
		return checkSorting(answers.CountersBy(c.by), "")
	case "sites":
		if !slices.Contains(attribution.Bys(), attribution.By(c.by)) {
			return usagef("--by ", strconv.Quote(c.by), ", want line, site, function or object")
		}
		if c.unasked = c.caches == nil && c.named == ""; c.unasked {
			c.caches = slices.Clone(ask.VerbOf("sites").Usual)
		}
	case "what-if":
	default:
		return nil
	}
	if cmd.Flags().Changed("line") {
		return usagef("--line: each level of a hierarchy has a line size of its own, as in --cache L1=32KiB,8,64")
	}
	c.h, err = chooseHierarchy(c.caches, c.named)
	place(&c.h, c.oneCore)
	return err
}

// loadPair reads both files.
func (a *app) loadPair(c *comparing, s subject, args []string) (pair [2]*answerable, err error) {
	if c.r.asked = c.h; c.on == "what-if" {
		s.analyses = c.r.predictionOf(c.h)
	} else if len(c.h.Levels) > 0 && !ask.NeedsSets(c.h) {
		s.analyses &^= analysis.Sets
	}
	c.r.analyses = s.analyses.String()
	if c.on == "sites" {
		c.r.levels = c.h.Levels // at whose sizes it is measured what of fetched lines is used
	}
	for i, name := range args {
		if c.on == "counters" {
			pair[i], err = a.loadCounters(c.r, name)
		} else {
			pair[i], err = a.load(c.r, name, s.lines(c))
		}
		if err != nil {
			return pair, err
		}
		if err := c.r.cmd.Context().Err(); err != nil && pair[i].Stopped != nil {
			return pair, pair[i].Stopped
		}
	}
	return pair, nil
}

// document joins the answers about both; its tables are still to be laid out.
func (c *comparing) document(s subject, pair [2]*answerable) (*report.Document, []answers.Compared, error) {
	var tables [2][]report.Table
	var doubts [2][]string
	for i, l := range pair {
		var err error
		if tables[i], doubts[i], err = s.tables(c, l, pair[1-i]); err != nil {
			return nil, nil, err
		}
	}
	d := &report.Document{Schema: "stackglass.compare", Version: 1, Input: c.facts(pair)}
	d.Warnings = append(slices.Concat(pair[0].warnings, pair[1].warnings), answers.Mismatches(pair[0].Profile, pair[1].Profile)...)
	d.Warnings = append(d.Warnings, together(doubts, pair)...)
	compared := answers.Join(tables[0], tables[1])
	for i := range compared {
		if doubt := compared[i].Doubt; doubt != "" {
			d.Warnings = append(d.Warnings, doubt)
		}
	}
	return d, compared, nil
}

// facts name both files.
func (c *comparing) facts(pair [2]*answerable) []report.Fact {
	facts := []report.Fact{{Key: "on", Label: "compared on", Value: report.TextOf(c.on)}}
	for i, side := range []string{"a", "b"} {
		p := pair[i].Profile
		label := strings.ToUpper(side)
		facts = append(facts,
			report.Fact{Key: side + "_file", Label: label, Value: report.TextOf(pair[i].name)},
			report.Fact{Key: side + "_references", Label: "references in " + label, Value: report.Count(p.Totals.AllReferences())},
			report.Fact{Key: side + "_complete", Label: label + " is complete", Value: report.YesNo(!p.State.Partial)})
	}
	if len(c.h.Levels) == 0 && c.on != "counters" {
		facts = append(facts, report.Fact{Key: "line_bytes", Label: "line size (bytes)", Value: report.Count(uint64(c.line))})
	}
	return facts
}

// together says once what is doubtful about both, and of the rest which file it
// is about.
func together(doubts [2][]string, pair [2]*answerable) (list []string) {
	for i := range doubts {
		for _, w := range doubts[i] {
			both := slices.Contains(doubts[1-i], w)
			switch {
			case both && i == 0:
				list = append(list, w)
			case !both:
				list = append(list, pair[i].name+": "+w)
			}
		}
	}
	return list
}

// layOut makes the tables of what was joined.
func (c *comparing) layOut(compared []answers.Compared) (tables []report.Table, err error) {
	known := false
	var have []string
	for i := range compared {
		j := &compared[i]
		known = j.Rank(c.sort) || known
		for _, column := range j.Cells {
			if !slices.Contains(have, column.Key) {
				have = append(have, column.Key)
			}
		}
		if c.top > 0 {
			j.Rows = j.Rows[:min(c.top, uint64(len(j.Rows)))]
		}
		if exactRows(c.r.format) {
			tables = append(tables, j.Table(j.Key))
		} else {
			tables = append(tables, j.Brief(c.sort))
		}
	}
	if !known {
		return nil, usagef("--sort ", strconv.Quote(c.sort), ", want one of ", strings.Join(have, ", "))
	}
	return tables, nil
}

func (c *comparing) summary(l, other *answerable) ([]report.Table, []string, error) {
	if !slices.ContainsFunc(l.Profile.Locality, func(x profile.Locality) bool { return other.Profile.LocalityAt(x.LineBytes) != nil }) {
		return nil, nil, usagef(l.name, " and ", other.name, " have no line size in common; analyze both again with the same --lines")
	}
	return answers.Summary(l.Profile), nil, nil
}

func (c *comparing) histogram(l, _ *answerable) ([]report.Table, []string, error) {
	found, err := l.locality(c.line)
	if err != nil {
		return nil, nil, err
	}
	counts, cold := found.Histogram(trace.AllKinds)
	if exactRows(c.r.format) {
		return []report.Table{answers.Histogram(counts, cold)}, nil, nil
	}
	return []report.Table{answers.BinnedHistogram(counts, cold)}, nil, nil
}

func (c *comparing) curve(l, other *answerable) ([]report.Table, []string, error) {
	var curves [2]*profile.Curve
	for i, l := range []*answerable{l, other} {
		found, err := l.locality(c.line)
		if err != nil {
			return nil, nil, err
		}
		curves[i] = profile.NewCurve(found.Histogram(trace.AllKinds))
	}
	capacities := answers.Powers(curves[:]...)
	if exactRows(c.r.format) {
		capacities = answers.Breakpoints(curves[:]...)
	}
	return []report.Table{answers.CurveAt(curves[0], c.line, capacities)}, nil, nil
}

func (c *comparing) whatIf(l, _ *answerable) ([]report.Table, []string, error) {
	predicted, warnings, err := hierarchy.NewCoreAsker(l.Profile).Predict(c.h, nil)
	if err != nil {
		return nil, nil, usagef(l.name, ": ", err.Error())
	}
	doubts := l.told(warnings)
	if c.h.About != "" {
		doubts = append(doubts, c.h.Name+": "+c.h.About)
	}
	return answers.PredictedByCore(c.h, predicted), doubts, nil
}

func (c *comparing) sets(l, _ *answerable) ([]report.Table, []string, error) {
	found, err := l.locality(c.line)
	if err != nil {
		return nil, nil, err
	}
	if found.Sets == nil {
		return nil, nil, usagef(l.name, ": the profile holds no set tables; analyze the trace again with --analyses sets, or by default")
	}
	t := answers.Sets(found)
	every := exactRows(c.r.format)
	if !every {
		t.Title += ", ways that are powers of two (all: --format csv)"
	}
	ways := t.Index("ways")
	t.Rows = slices.DeleteFunc(t.Rows, func(row []report.Value) bool {
		n, _ := row[ways].Number()
		return n > profile.MaxWays || !every && bits.OnesCount(uint(n)) != 1 // beyond, --on curve has no holes
	})
	return []report.Table{t}, nil, nil
}

func (c *comparing) sites(l, _ *answerable) ([]report.Table, []string, error) {
	if l.Profile.Sites == nil {
		return nil, nil, usagef(l.name, ": no places in the code are known; give a trace made by stackglass cc or stackglass trace, or a profile of one with --analyses sites")
	}
	q := ask.New(ask.VerbOf("sites"))
	if !c.unasked {
		q.Machine = c.h
	}
	q.Machine.Threads = c.h.Threads
	s, doubts, err := l.run(c.r).Attributed(q, attribution.By(c.by))
	if err != nil {
		return nil, nil, usage(err)
	}
	number := cmp.Or(c.sort, c.h.Levels[0].Name+"_misses")
	if !exactRows(c.r.format) && len(c.budgets) == 0 && slices.Contains(s.Numbers(), number) {
		s.Number = number // it is printed, and no other one is asked about
	}
	t := s.Table(math.MaxInt)
	t.Title = "Misses by " + c.by
	return []report.Table{t}, append(doubts, answers.MissingSites(l.Profile)...), nil
}

func (c *comparing) windows(l, other *answerable) ([]report.Table, []string, error) {
	found, err := l.locality(c.line)
	if err != nil {
		return nil, nil, err
	}
	beside, err := other.locality(c.line)
	if err != nil {
		return nil, nil, err
	}
	return []report.Table{answers.Windows(found, beside)}, nil, nil
}

func (c *comparing) counters(l, _ *answerable) ([]report.Table, []string, error) {
	var missing []string
	if !l.fromByfl() {
		missing = answers.NotCounted(l.Profile)
	}
	if by := answers.CountersBy(c.by); by != answers.ByProgram {
		return []report.Table{answers.CountersOf(l.Profile.Counters, by, "")}, missing, nil
	}
	return answers.CounterTables(l.Profile), missing, nil
}
