package command

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/byfl"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/tally"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// counters prints what a program's instructions add up to.
func (a *app) counters() *cobra.Command {
	var (
		r        *reading
		by, sort string
	)
	cmd := &cobra.Command{
		Use:   "counters FILE",
		Short: "Operations, bytes, branches and calls of a program, its functions or blocks",
		Long: `Print what a program's instructions add up to, whatever the machine: bytes and
flops, integer operations, branches, calls, and how much memory is used how often.
Every number is defined in the documentation of core/analysis/counters.

FILE is a trace of a program compiled by "stackglass cc", which tells its blocks
and instructions; any other trace, which tells its loads and stores only; a
profile with counters (analyze --analyses locality,counters); or a result of Byfl
(.byfl).`,
		Example: "  stackglass counters app.sgt --by function --sort flops\n  stackglass counters app.sgp --format json\n  stackglass counters a.out.byfl --by function",
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkSorting(tally.By(by), sort); err != nil {
				return err
			}
			l, err := a.loadCounters(r, args[0])
			if err != nil {
				return err
			}
			d := &report.Document{Schema: "stackglass.counters", Version: 1, Input: l.facts(0)}
			if l.fromByfl() {
				d.Input = d.Input[:2] // a result has no references
			} else {
				d.Warnings = tally.Missing(l.Profile)
			}
			d.Tables = counterTables(l.Profile, tally.By(by), sort, r.format)
			return a.answer(l, r.format, d)
		},
	}
	r = addReading(cmd)
	cmd.Flags().StringVar(&by, "by", "program", "what to sum up by: program, function or block")
	cmd.Flags().StringVar(&sort, "sort", "", "the `COLUMN` to sort functions or blocks by, as csv names it; numbers fall (default: bytes)")
	must(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"program", "function", "block"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// loadCounters opens FILE and gives its counters: a result of Byfl, or what load
// takes.
func (a *app) loadCounters(r *reading, name string) (*answerable, error) {
	r.analyses = (analysis.Locality | analysis.Counters).String()
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if in.IsByfl {
		return a.loadByfl(r, in)
	}
	l, err := a.loadOpened(r, in, []uint32{analysis.DefaultLineBytes})
	if err == nil && l.Profile.Counters == nil {
		err = usagef(l.name, ": the profile holds no counters; analyze the trace again with --analyses locality,counters")
	}
	if err == nil && l.Profile.Sampled.Estimates() {
		l.countsAll()
	}
	return l, err
}

// countsAll leaves out what is said of a sample: counters are of every reference.
func (l *answerable) countsAll() {
	doubt := l.name + ": " + hierarchy.SampleDoubt(l.Profile.Sampled)
	l.warnings = slices.DeleteFunc(l.warnings, func(text string) bool { return text == doubt })
	l.Profile.Sampled = nil
}

// loadByfl reads a result of Byfl as a profile that holds nothing but counters.
func (a *app) loadByfl(r *reading, in *pass.Input) (*answerable, error) {
	if _, err := parseFormat(r.format); err != nil {
		return nil, err
	}
	if err := r.refuseForResult(in.Name, "a result of Byfl"); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	tables, err := byfl.Read(in.Name, data)
	if err != nil {
		return nil, err
	}
	counters, skipped, err := byfl.Counters(tables)
	if err != nil {
		return nil, &byfl.FormatError{File: in.Name, Offset: len(data), What: err.Error()}
	}
	l := &answerable{name: in.Name, Result: &pass.Result{Profile: &profile.Profile{Counters: counters}}, warnings: byfl.Notes()}
	l.Profile.Input.Header.Format = byflFormat
	if len(skipped) > 0 {
		l.warnings = append(l.warnings, "tables without a place here are left out: "+strings.Join(skipped, ", "))
	}
	return l, nil
}

// byflFormat stands where a profile has its trace's format.
const byflFormat = "byfl"

func (l *answerable) fromByfl() bool { return l.Profile.Input.Header.Format == byflFormat }

// checkSorting refuses what --by and --sort do not take.
func checkSorting(by tally.By, column string) error {
	switch by {
	case tally.Program:
		if column != "" {
			return usagef("--sort ", column, ": the program's counters have an order of their own; sort functions or blocks, with --by function or --by block")
		}
		return nil
	case tally.Function, tally.Block:
	default:
		return usagef("--by ", strconv.Quote(string(by)), ", want program, function or block")
	}
	t := tally.Of(&profile.Counters{}, by, "")
	if column == "" || t.Index(column) >= 0 {
		return nil
	}
	var keys []string
	for _, c := range t.Columns {
		keys = append(keys, c.Key)
	}
	return usagef("--sort ", strconv.Quote(column), ", want one of ", strings.Join(keys, ", "))
}

// counterTables are the answer, for people without its widest columns.
func counterTables(p *profile.Profile, by tally.By, column, format string) []report.Table {
	if by == tally.Program {
		return tally.Tables(p)
	}
	t := tally.Of(p.Counters, by, column)
	if !exactRows(format) {
		t = tally.Narrow(t, column)
		t.Title += " (all columns: --format csv)"
	}
	return []report.Table{t}
}
