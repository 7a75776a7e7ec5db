package command

import (
	"github.com/ianlancetaylor/demangle"
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/report"
)

// sites adds the options of verbs about source lines, which can read the program and its
// source.
func (a *app) sites(cmd *cobra.Command, o *asking) {
	var (
		places, symbols []string
		found           *sources
	)
	cmd.Flags().StringArrayVar(&places, "source", nil, "a `FOLDER` or file of source, to show the text of each line")
	addSymbols(cmd, &symbols)
	addMeasures(cmd, o.r)
	o.check = func(ask.Question) (err error) {
		found, err = findSources(places)
		return err
	}
	o.prepare = func(l *answerable, run *ask.Run) error {
		if len(places) > 0 {
			run.Source = found.text
		}
		return symbolized(l, run, symbols)
	}
	o.then = func(_ *answerable, _ ask.Question, d *report.Document) error {
		d.Warnings = append(d.Warnings, found.doubts()...)
		if o.verb.Name == "sites" && len(d.Tables) > 1 && o.r.format == string(report.CSV) {
			d.Warnings = append(d.Warnings, "csv is one table, that of misses: who touched the lines before is in the other formats, as in --format json")
		}
		return nil
	}
}

// communication can read the program.
func (a *app) communication(cmd *cobra.Command, o *asking) {
	var symbols []string
	addSymbols(cmd, &symbols)
	o.prepare = func(l *answerable, run *ask.Run) error { return symbolized(l, run, symbols) }
}

// symbolized names the instructions of a profile that has sites.
func symbolized(l *answerable, run *ask.Run, files []string) error {
	if l.Profile.Sites == nil && run.Profile.Sites == nil && len(files) == 0 {
		return nil
	}
	notes, err := symbolize(l.Profile, files)
	run.Warnings = append(run.Warnings, notes...)
	return err
}

// addMeasures adds the options for what sites measure on request.
func addMeasures(cmd *cobra.Command, r *reading) {
	cmd.Flags().StringSliceVar(&r.utilisation, "utilisation", nil, "caches for which to measure how much of fetched lines is used, and misses by site: sizes, each with its ways or fully associative, as in 32KiB,8,1MiB")
	cmd.Flags().BoolVar(&r.previous, "previous", false, "note which site touched a line before, for distances from 16 on")
}

// readable returns a function's name as in the source.
func readable(name string) string { return demangle.Filter(name, demangle.NoEnclosingParams) }
