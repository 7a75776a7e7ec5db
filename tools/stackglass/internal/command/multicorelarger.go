package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/multicore/larger"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/validate"
	"github.com/stackglass/stackglass/core/report"
)

// runLarger predicts for an input that was not run.
func (a *app) runLarger(o *asking, m *multicoreOptions, args []string) error {
	switch {
	case o.r.changed("output", "processor", "by") != "":
		return usagef("--at: hit rates alone are predicted for an input that was not run; leave out -o, --processor and --by")
	case o.r.changed("sdcm") != "":
		return usagef("--at: windows of each block are looked at, all of them; leave out --sdcm")
	}
	names, at, ok := parseParameters(m.at)
	if !ok {
		return usagef("--at ", strconv.Quote(m.at), ", want the parameters to predict for, as in n=512 or n=512,m=8")
	}
	asked, err := o.question()
	if err != nil {
		return err
	}
	words, err := program.CoresQuestion(asked)
	if err != nil {
		return err
	}
	q, err := m.question(words)
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
		{Key: "at", Label: "predicted at", Value: report.TextOf(m.at)},
	}}
	one := func(q predict.Question, name string) ([]predict.Result, error) {
		if _, err := a.rereadable(o.r, name); err != nil {
			return nil, err
		}
		found, err := a.predictOne(m, q, name)
		if err != nil {
			return nil, err
		}
		return found.Results, found.Stopped
	}
	q = larger.Ask(q)
	var inputs []larger.Input
	for _, run := range runs {
		results, err := one(q, run.file)
		if err != nil {
			return err
		}
		inputs = append(inputs, larger.Input{Name: run.file, Parameters: run.at, Results: results})
	}
	list, err := larger.Predict(names, inputs, at)
	if err != nil {
		return asUsage(err)
	}
	var real []predict.Result
	if m.check != "" {
		q.Profiles = false
		if real, err = one(q, m.check); err != nil {
			return err
		}
	}
	d.Tables = append(d.Tables, answers.WithoutEmpty(largerTable(list, real)))
	for i := range list {
		for _, doubt := range list[i].Doubts {
			if text := ask.Phrase(doubt); !slices.Contains(d.Warnings, text) {
				d.Warnings = append(d.Warnings, text)
			}
		}
	}
	d.Warnings = append(d.Warnings, "it is assumed that the larger input takes the same ways through the code, and that cores have the same shares of it; \"kept\" also that distances within blocks do not hang on the input, and \"followed\" that they go on as from run to run")
	return a.print(o.r.format, d)
}

// largerTable has the hit rates of each level, and those of a real run.
func largerTable(list []larger.Result, real []predict.Result) report.Table {
	t := report.Table{Key: "larger", Title: "Hit rates by all accesses, of an input that was not run", Columns: report.Columns(
		"cores", "level", "caches", "accesses", "kept_rate=distances kept", "followed_rate=followed",
		"run_accesses=accesses of the run", "run_sdcm_rate=its SDCM", "run_rate=simulated",
		"kept_points=kept off SDCM (points)", "followed_points=followed off SDCM (points)",
		"simulated_points=followed off simulated (points)")}
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
