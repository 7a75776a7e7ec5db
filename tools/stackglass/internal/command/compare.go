package command

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/report"
)

// compareCommand contains the options of a comparison.
type compareCommand struct {
	machineOptions
	r       *readOptions
	on      string
	sort    string
	top     uint64
	budgets []string
	oneCore bool
}

// verbNames returns the names of the verbs that the predicate "has" selects, starting with the
// default verb.
func verbNames(has func(*ask.Verb) bool) (names []string) {
	for _, v := range append([]*ask.Verb{ask.Summary}, ask.Verbs()...) {
		if has(v) {
			names = append(names, v.Name)
		}
	}
	return names
}

func anyVerb(*ask.Verb) bool { return true }

// compare returns the verb that compares the answers about two files.
func (a *app) compare() *cobra.Command {
	c := new(compareCommand)
	cmd := &cobra.Command{
		Use:   "compare A B [--on VERB]",
		Short: "Compare two runs side by side: A, B, difference",
		Args:  twoFiles,
		RunE:  func(_ *cobra.Command, args []string) error { return a.runCompare(c, args) },
	}
	c.r = addReading(cmd)
	f := cmd.Flags()
	f.StringVar(&c.on, "on", ask.Summary.Name, "compare the answers of this `VERB`: "+strings.Join(verbNames(anyVerb), ", ")+"; with options, for example \"sites by=object\"")
	f.Uint32("line", 64, "the size of a cache line in `BYTES`, a power of two from 8 to 4096")
	c.addMachine(cmd, cacheUsage)
	f.String("by", "", "group the totals by this `UNIT`: program, function or block for counters; line, site, function or object for sites")
	f.StringVar(&c.sort, "sort", "", "sort by the difference in this `NUMBER`, named as in json")
	addOneCore(cmd, &c.oneCore)
	f.Uint64Var(&c.top, "top", 0, "print only the first `N` rows of each table (0: all rows)")
	f.StringArrayVar(&c.budgets, "fail-if", nil, "exit with code 1 if this `CONDITION` is true, for example 'L1.misses.difference>1%' (may be repeated)")
	setCompletions(cmd, "on", verbNames(anyVerb))
	return cmd
}

// twoFiles checks that there are two files to compare.
func twoFiles(_ *cobra.Command, args []string) error {
	switch {
	case len(args) != 2:
		return usagef("give two traces or profiles, for example: stackglass compare before.sgp after.sgp")
	case args[0] == "-" && args[1] == "-":
		return usagef("- and -: only one of the two inputs can be read from standard input; give the other as a file")
	}
	return nil
}

func (a *app) runCompare(c *compareCommand, args []string) error {
	q, err := c.question()
	if err != nil {
		return err
	}
	bounds, err := parseBounds(c.budgets)
	if err != nil {
		return err
	}
	pair, err := a.loadPair(c, q, args)
	if err != nil {
		return err
	}
	d, compared, err := a.joinAnswers(c, q, pair)
	if err != nil {
		return err
	}
	exceeded, err := checkBounds(bounds, compared)
	if err != nil {
		return err
	}
	if d.Tables, err = c.comparisonTables(compared); err != nil {
		return err
	}
	if err := a.print(c.r.format, d); err != nil {
		return err
	}
	return cmp.Or(pair[0].Stopped, pair[1].Stopped, exceeded)
}

// question returns the question about both files.
func (c *compareCommand) question() (q ask.Question, err error) {
	words := strings.Fields(c.on)
	switch {
	case len(words) == 1 && words[0] == ask.Summary.Name:
		q = ask.New(ask.Summary)
	case len(words) == 0 || ask.VerbOf(words[0]) == nil:
		return q, usagef("--on ", strconv.Quote(c.on), ", want one of ", strings.Join(verbNames(anyVerb), ", "))
	default:
		if q, err = ask.Read(words); err != nil {
			return q, usagef("--on ", strconv.Quote(c.on), ": ", err.Error())
		}
	}
	v, f := q.Verb, c.r.cmd.Flags()
	hasCaches := func(v *ask.Verb) bool { return v.Machine != ask.NoCaches }
	hasArg := func(name string) func(*ask.Verb) bool {
		return func(v *ask.Verb) bool { return v.Arg(name) != nil }
	}
	for _, option := range []struct {
		name string
		has  func(*ask.Verb) bool
	}{{"cache", hasCaches}, {"hierarchy", hasCaches}, {"one-core", func(v *ask.Verb) bool { return v.Places }}, {"by", hasArg("by")}, {"line", hasArg("line")}} {
		flag := f.Lookup(option.name)
		switch {
		case !flag.Changed:
		case !option.has(v):
			return q, usagef("--", option.name, " applies to --on ", strings.Join(verbNames(option.has), ", "), ", not to --on ", v.Name)
		case v.Arg(option.name) != nil:
			q = q.With(option.name, flag.Value.String())
		}
	}
	if c.isGiven() || v.Machine == ask.AllCaches && len(q.Machine.Levels) == 0 {
		if q.Machine, err = c.hierarchy(); err != nil {
			return q, err
		}
	}
	putOnOneCore(&q.Machine, c.oneCore)
	if q.Brief = v.Sums && !exactRows(c.r.format); !exactRows(c.r.format) && len(c.budgets) == 0 {
		q.Only = c.sort // compute only the numbers that are printed
		if levels := q.Caches().Levels; len(levels) > 0 {
			q.Only = cmp.Or(c.sort, levels[0].Name+"_misses")
		}
	}
	return q, askUsageError(q.Check())
}

// loadPair loads both files for the question.
func (a *app) loadPair(c *compareCommand, q ask.Question, args []string) (pair [2]*loadedFile, err error) {
	for i, name := range args {
		if pair[i], err = a.loadFor(c.r, q, name); err != nil {
			return pair, err
		}
		if err := c.r.cmd.Context().Err(); err != nil && pair[i].Stopped != nil {
			return pair, pair[i].Stopped
		}
	}
	return pair, nil
}

// joinAnswers answers the question about each file, and joins both answers. The returned document
// contains no tables yet.
func (a *app) joinAnswers(c *compareCommand, q ask.Question, pair [2]*loadedFile) (*report.Document, []answers.Compared, error) {
	var runs [2]*ask.Run
	var simulated [2]*simulatedRun
	for i, l := range pair {
		if q.Verb == program.Simulate {
			var err error
			if simulated[i], err = a.simulatedRun(c.r, l.name, q); err != nil {
				return nil, nil, err
			}
			runs[i] = &simulated[i].Run
			continue
		}
		runs[i] = l.newRun(c.r)
		runs[i].Predict = func(words answers.MulticoreQuestion) (*answers.Reply, error) {
			return a.predict(&multicoreOptions{r: c.r}, l, words)
		}
	}
	d, compared, err := ask.Compare(runs, q, c.on)
	for i, run := range simulated {
		if run == nil {
			continue
		}
		if pair[i].Stopped = run.stopped; run.stopped != nil && c.r.cmd.Context().Err() != nil {
			return nil, nil, run.stopped
		}
	}
	if err != nil {
		return nil, nil, answerError(err)
	}
	return d, compared, nil
}

// comparisonTables sorts the joined tables and returns them in the form that is printed.
func (c *compareCommand) comparisonTables(compared []answers.Compared) (tables []report.Table, err error) {
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
		} else if t := j.Brief(c.sort); len(t.Rows) > 0 || len(compared) == 1 {
			tables = append(tables, t)
		}
	}
	if !known {
		return nil, usagef("--sort ", strconv.Quote(c.sort), ", want one of ", strings.Join(have, ", "))
	}
	return tables, nil
}
