package command

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/byfl"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// counters is the verb for traces, profiles and results of Byfl.
func (a *app) counters() *cobra.Command {
	return a.verb(ask.VerbOf("counters"), func(_ *cobra.Command, o *asking) {
		o.load = func(name string, _ []uint32) (*answerable, error) { return a.loadCounters(o.r, name) }
	})
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
	l.Profile.Input.Header.Format = ask.ByflFormat
	if len(skipped) > 0 {
		l.warnings = append(l.warnings, "tables without a place here are left out: "+strings.Join(skipped, ", "))
	}
	return l, nil
}

func (l *answerable) fromByfl() bool { return l.Profile.Input.Header.Format == ask.ByflFormat }

// checkSorting refuses what --by and --sort do not take.
func checkSorting(by answers.CountersBy, column string) error {
	switch by {
	case answers.ByProgram:
		if column != "" {
			return usagef("--sort ", column, ": the program's counters have an order of their own; sort functions or blocks, with --by function or --by block")
		}
		return nil
	case answers.ByFunction, answers.ByBlock:
	default:
		return usagef("--by ", strconv.Quote(string(by)), ", want program, function or block")
	}
	t := answers.CountersOf(&profile.Counters{}, by, "")
	if column == "" || t.Index(column) >= 0 {
		return nil
	}
	var keys []string
	for _, c := range t.Columns {
		keys = append(keys, c.Key)
	}
	return usagef("--sort ", strconv.Quote(column), ", want one of ", strings.Join(keys, ", "))
}
