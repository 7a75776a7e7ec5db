package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/multicore/larger"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/validate"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// multicoreFiles wants one file, or with --at some.
func multicoreFiles(at *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if *at == "" {
			return oneFile(cmd, args)
		}
		return someFiles(cmd, args)
	}
}

// runLarger predicts for an input that was not run.
func (a *app) runLarger(cmd *cobra.Command, o *multicoreOptions, args []string) error {
	format, err := parseFormat(o.format)
	if err != nil {
		return err
	}
	switch {
	case o.output != "" || o.processor != "" || o.by != "":
		return usagef("--at: hit rates alone are predicted for an input that was not run; leave out -o, --processor and --by")
	case cmd.Flags().Changed("sdcm"):
		return usagef("--at: windows of each block are looked at, all of them; leave out --sdcm")
	}
	names, at, ok := parseParameters(o.at)
	if !ok {
		return usagef("--at ", strconv.Quote(o.at), ", want the parameters to predict for, as in n=512 or n=512,m=8")
	}
	q, err := o.question()
	if err != nil {
		return err
	}
	scale := scaleOptions{names: names}
	runs, err := scale.runs(args)
	if err != nil {
		return err
	}
	d := &report.Document{Schema: "stackglass.multicore-larger", Version: 1, Input: []report.Fact{
		{Key: "runs", Label: "runs", Value: report.ListOf(strings.Join(args, " "))},
		{Key: "at", Label: "predicted at", Value: report.TextOf(o.at)},
	}}
	q = larger.Ask(q)
	var inputs []larger.Input
	for _, run := range runs {
		found, err := a.predictOne(cmd, o, q, run.file)
		if err != nil {
			return err
		}
		inputs = append(inputs, larger.Input{Name: run.file, Parameters: run.at, Results: found.Results})
	}
	list, err := larger.Predict(names, inputs, at)
	if err != nil {
		return asUsage(err)
	}
	var real []predict.Result
	if o.check != "" {
		q.Profiles = false
		found, err := a.predictOne(cmd, o, q, o.check)
		if err != nil {
			return err
		}
		real = found.Results
	}
	d.Tables = append(d.Tables, withoutEmpty(largerTable(list, real)))
	for i := range list {
		for _, doubt := range list[i].Doubts {
			if text := phrase(doubt); !slices.Contains(d.Warnings, text) {
				d.Warnings = append(d.Warnings, text)
			}
		}
	}
	d.Warnings = append(d.Warnings, "it is assumed that the larger input takes the same ways through the code, and that cores have the same shares of it; \"kept\" also that distances within blocks do not hang on the input, and \"followed\" that they go on as from run to run")
	return a.print(format, d)
}

// predictOne answers about one run.
func (a *app) predictOne(cmd *cobra.Command, o *multicoreOptions, q predict.Question, name string) (*pass.Predicted, error) {
	limits := reading{cmd: cmd, memory: o.memory, kinds: trace.DataKinds.String(), format: o.format}
	common, err := limits.options(a, nil)
	if err != nil {
		return nil, err
	}
	read := o.read
	read.MemoryBytes, read.Terminal, q.MemoryBytes = common.MemoryBytes, a.terminal(), common.MemoryBytes
	if err := a.isTrace(cmd, name); err != nil {
		return nil, err
	}
	found, err := pass.Predict(cmd.Context(), name, q, read)
	if err != nil {
		var option *trace.OptionError
		if errors.As(err, &option) {
			return nil, asUsage(errors.New("--" + err.Error()))
		}
		return nil, named(name, err)
	}
	return found, found.Stopped
}

// largerTable has the rates of each level, and beside them those of a run that was made.
func largerTable(list []larger.Result, real []predict.Result) report.Table {
	t := report.Table{Key: "larger", Title: "Hit rates by all accesses, of an input that was not run", Columns: []report.Column{
		{Key: "cores", Label: "cores"}, {Key: "level", Label: "level"}, {Key: "caches", Label: "caches"}, {Key: "accesses", Label: "accesses"},
		{Key: "kept_rate", Label: "distances kept"}, {Key: "followed_rate", Label: "followed"},
		{Key: "run_accesses", Label: "accesses of the run"}, {Key: "run_sdcm_rate", Label: "its SDCM"}, {Key: "run_rate", Label: "simulated"},
		{Key: "kept_points", Label: "kept off SDCM", Unit: "points"}, {Key: "followed_points", Label: "followed off SDCM", Unit: "points"}, {Key: "simulated_points", Label: "followed off simulated", Unit: "points"},
	}}
	for i := range list {
		for k := range list[i].Levels {
			l := &list[i].Levels[k]
			row := []report.Value{report.Count(uint64(list[i].Cores)), report.TextOf(l.Cache.Name), report.Count(uint64(l.Caches)), report.Real(l.Accesses),
				report.Ratio(l.Kept), report.Ratio(l.Scaled)}
			if real == nil {
				t.Add(append(row, report.None(), report.None(), report.None(), report.None(), report.None(), report.None())...)
				continue
			}
			sdcm, run := &real[i].Windowed[0][k], &real[i].Levels[k]
			t.Add(append(row, report.Real(real[i].Levels[0].Accesses), report.Ratio(sdcm.Global), report.Ratio(run.Global),
				report.Decimal(validate.Points(l.Kept, sdcm.Global)), report.Decimal(validate.Points(l.Scaled, sdcm.Global)), report.Decimal(validate.Points(l.Scaled, run.Global)))...)
		}
	}
	return t
}
