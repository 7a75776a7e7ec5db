package command

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// exportCommand contains the options of an export.
type exportCommand struct {
	machineOptions
	r       *readOptions
	usual   bool // whether h is the default hierarchy, because the user specified none
	to      string
	output  string
	lines   []uint
	event   string
	table   string
	oneCore bool
	h       hierarchy.Hierarchy // the hierarchy in question; it may have no levels
}

// exportForms lists the values of --to.
var exportForms = []string{"html", "pprof", "callgrind", "folded", "speedscope", "csv", "json"}

// export returns the verb that writes the answers about a profile in the formats of other tools.
func (a *app) export() *cobra.Command {
	e := new(exportCommand)
	cmd := &cobra.Command{
		Use:   "export FILE --to FORM [-o OUT]",
		Short: "Write a report, or results for other tools",
		Args:  oneFile,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.runExport(cmd, e, args[0]) },
	}
	e.r = addReading(cmd)
	f := cmd.Flags()
	hide(cmd, "format")
	f.StringVar(&e.to, "to", "", "the `FORMAT` to write: "+strings.Join(exportForms, ", "))
	f.StringVarP(&e.output, "output", "o", "-", "write to this `FILE` (for csv: to this folder; - for standard output)")
	e.addMachine(cmd, cacheUsage)
	addOneCore(cmd, &e.oneCore)
	f.UintSliceVar(&e.lines, "lines", []uint{64}, "cache line sizes in `BYTES`, powers of two from 8 to 4096; the line sizes of the given caches are added")
	e.r.lineOptions = []string{"lines"}
	f.StringVar(&e.event, "event", "", "the `EVENT` that --to folded counts: references, accesses, cold, distance_sum, or the misses of a level, for example L1_misses (default: misses of the first level)")
	f.StringVar(&e.table, "table", "", "write only this `TABLE` as csv; tables are named as in json")
	setCompletions(cmd, "to", exportForms)
	return cmd
}

func (a *app) runExport(cmd *cobra.Command, e *exportCommand, name string) error {
	if !slices.Contains(exportForms, e.to) {
		return usagef("--to ", strconv.Quote(e.to), ", want one of ", strings.Join(exportForms, ", "))
	}
	if err := e.check(cmd, name); err != nil {
		return err
	}
	if f, ok := a.unbuffered.(*os.File); ok && e.to == "pprof" && e.output == "-" && term.IsTerminal(int(f.Fd())) {
		return usagef("--to pprof: the output is binary and cannot be printed on a terminal; give a file, for example -o app.pb.gz")
	}
	lines, err := parseLines(e.lines)
	if err != nil {
		return err
	}
	lines = append(lines, ask.LineSizes(e.h)...)
	slices.Sort(lines)
	e.r.usual = true
	if e.onlySites() {
		needed := analysis.Sites
		if e.r.sample == "" {
			needed |= analysis.Blocks // blocks are needed for call paths
		}
		if len(e.h.Levels) > 0 {
			needed |= analysis.Sharing // as in the verb "what-if", each thread has private caches
		}
		if ask.SetNumbers(e.h) != 0 {
			needed |= analysis.Sets
		}
		e.r.analyses, e.r.usual, e.r.sets = needed.String(), false, ask.SetNumbers(e.h)|1
	}
	e.r.questionHierarchy, e.r.levels = e.h, e.h.Levels // line utilisation is measured in these caches
	l, err := a.load(e.r, name, slices.Compact(lines))
	if err != nil {
		return err
	}
	run := l.newRun(e.r)
	if e.usual = e.usual && run.Ranker() != nil; e.usual {
		e.h.Levels[0].LineBytes = run.Profile.Sites.LineBytes
	} else if !e.isGiven() {
		e.h.Levels = nil
	}
	if l.Stopped != nil {
		run.GoOn = nil // after an interrupt, the partial profile is still exported
	}
	x, err := export.New(run, filepath.Base(l.name), e.h)
	if err != nil {
		return asUsage(err)
	}
	for _, w := range x.Warnings {
		a.warn(w)
	}
	e.printCaches(a)
	path := e.output
	if l.Stopped != nil {
		path = partialExportPath(path)
	}
	if e.to == "csv" && e.table == "" {
		err = e.saveTables(x, path)
	} else {
		var content []byte
		if content, err = e.content(x); err == nil && run.Wanted() {
			err = a.saveContent(path, content)
		}
	}
	if err == nil && !run.Wanted() {
		err = pass.ErrInterrupted
	}
	if err != nil {
		return err
	}
	if path != e.output {
		a.warn(e.output + " already existed and was not changed; the new analysis is in " + path)
	}
	return l.Stopped
}

// onlySites reports whether the format contains only counts by source location.
func (e *exportCommand) onlySites() bool {
	return slices.Contains([]string{"pprof", "callgrind", "folded", "speedscope"}, e.to)
}

// printCaches prints the caches whose misses the file contains. It prints nothing if the user has
// specified the caches.
func (e *exportCommand) printCaches(a *app) {
	if !e.usual {
		return
	}
	caches := e.h.Levels[0].String()
	switch {
	case e.to == "folded" && e.event == "":
		a.warn("the stacks count the misses in " + caches + "; use --cache to choose other caches, and --event to choose a different event")
	case e.to != "folded":
		a.warn("the file contains the misses in " + caches + "; use --cache to choose other caches")
	}
}

// check rejects options that do not apply to the format.
func (e *exportCommand) check(cmd *cobra.Command, name string) (err error) {
	switch {
	case cmd.Flags().Changed("format"):
		return usagef("--format applies only to printed answers; use --to to select the form of the export")
	case e.event != "" && e.to != "folded":
		return usagef("--event applies only to --to folded; ", e.to, " contains every event")
	case e.table != "" && e.to != "csv":
		return usagef("--table applies only to --to csv; ", e.to, " contains every table")
	case e.to == "csv" && e.table == "" && e.output == "-":
		return usagef("--to csv: a csv file can contain only one table; give a folder for all tables (for example -o tables), or select one table (for example --table curve_64)")
	}
	if in, err := os.Stat(name); err == nil {
		if out, err := os.Stat(e.output); err == nil && os.SameFile(in, out) {
			return usagef("-o ", e.output, " is the input file itself, which would be overwritten; choose a different name")
		}
	}
	if e.isGiven() {
		e.h, err = e.hierarchy()
	} else if e.usual = e.onlySites(); e.usual { // the default caches of the verbs "sites" and "calls"
		if e.h = ask.New(ask.VerbOf("calls")).Caches(); len(e.lines) > 0 {
			e.h.Levels[0].LineBytes = uint32(e.lines[0])
		}
	}
	putOnOneCore(&e.h, e.oneCore)
	return err
}

// content returns the content of the exported file.
func (e *exportCommand) content(x *export.Export) ([]byte, error) {
	if e.to == "csv" {
		return e.csv(x)
	}
	content, err := x.File(e.to, e.event)
	switch {
	case isErrorOf[*export.EventError](err):
		return nil, usagef("--", err.Error())
	case err != nil:
		return nil, usagef("--to ", e.to, ": ", x.Run.Name, " contains no source locations; give a trace that was recorded by stackglass cc or stackglass trace, or a profile of such a trace made with --analyses sites")
	}
	return content, nil
}

func (e *exportCommand) csv(x *export.Export) ([]byte, error) {
	var have []string
	tables, _ := x.Tables()
	for _, t := range tables {
		if t.Key == e.table {
			return t.CSV(), nil
		}
		have = append(have, t.Key)
	}
	more := ""
	if !e.isGiven() {
		more = "; with --cache or --hierarchy, it also has levels, traffic, memory and sites"
	}
	return nil, usagef("--table ", e.table, ": ", x.Run.Name, " has the tables ", strings.Join(have, ", "), more)
}
