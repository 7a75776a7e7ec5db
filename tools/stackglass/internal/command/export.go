package command

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// exporting is what one export asks for.
type exporting struct {
	r      *reading
	to     string
	output string
	lines  []uint
	caches []string
	named  string
	event  string
	table  string

	asked bool // about a hierarchy
	h     hierarchy.Hierarchy
}

// exported is a form to export to: what writes it.
type exported struct {
	name  string
	bytes func(e *exporting, l *answerable, asked *export.Question, doubts []string) ([]byte, error)
}

var exportedForms = []exported{
	{"html", (*exporting).html},
	{"csv", (*exporting).csv},
	{"json", (*exporting).json},
}

func exportedNames() (names []string) {
	for _, f := range exportedForms {
		names = append(names, f.name)
	}
	return names
}

// export writes what a profile tells in the form of another tool.
func (a *app) export() *cobra.Command {
	e := new(exporting)
	cmd := &cobra.Command{
		Use:   "export FILE --to FORM [-o OUT]",
		Short: "Write the answers for other tools, or as a report",
		Long: `Write what a trace or a profile tells in the form of another tool:

  html       a report in one file: no scripts, nothing to load
  pprof      places in the code, for go tool pprof (packed if OUT ends in .gz)
  callgrind  the same, for callgrind_annotate and KCachegrind
  folded     the same, a stack a line, for flame graphs of one --event
  csv        every table; OUT is a folder, or --table names one
  json       every table, in one object

With --cache or --hierarchy places have their misses in each level, and html, csv
and json the answer about the hierarchy. What is exported adds up to the numbers
of the whole run: pprof and callgrind add up costs, so they get the sum of stack
distances, which over accesses less cold ones is their mean.

OUT appears when it is whole; without -o it is standard output.`,
		Example: "  stackglass export app.sgt --to html --hierarchy i7-6700 -o app.html\n" +
			"  stackglass export app.sgp --to pprof --cache L1=32KiB,8 -o app.pb.gz && go tool pprof -top app.pb.gz\n" +
			"  stackglass export app.sgp --to folded --cache L1=32KiB,8 --event L1_misses | flamegraph.pl > app.svg",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runExport(cmd, e, args[0]) },
	}
	e.r = addReading(cmd)
	f := cmd.Flags()
	must(f.MarkHidden("format"))
	f.StringVar(&e.to, "to", "", "the `FORM` to write: "+strings.Join(exportedNames(), ", "))
	f.StringVarP(&e.output, "output", "o", "-", "write to this `FILE`, or, for csv, folder (- for standard output)")
	f.StringArrayVar(&e.caches, "cache", nil, "a level, as in L1=32KiB,8 (repeat for the next one)")
	f.StringVar(&e.named, "hierarchy", "", "a preset, or a `FILE` that describes a hierarchy")
	f.UintSliceVar(&e.lines, "lines", []uint{64}, "cache line sizes in bytes, powers of two from 8 to 4096; those of the levels are added")
	e.r.lineOptions = []string{"lines"}
	f.StringVar(&e.event, "event", "", "what folded counts: references, accesses, cold, distance_sum, or, as in L1_misses, misses of a level (default: those of the first level, or cold)")
	f.StringVar(&e.table, "table", "", "the table that csv writes, by its name in json")
	must(cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(exportedNames(), cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("hierarchy", cobra.FixedCompletions(presetNames(), cobra.ShellCompDirectiveDefault)))
	return cmd
}

func (a *app) runExport(cmd *cobra.Command, e *exporting, name string) error {
	at := slices.IndexFunc(exportedForms, func(f exported) bool { return f.name == e.to })
	if at < 0 {
		return usagef("--to ", strconv.Quote(e.to), ", want ", strings.Join(exportedNames(), ", "))
	}
	if err := e.check(cmd, name); err != nil {
		return err
	}
	if f, ok := a.unbuffered.(*os.File); ok && e.to == "pprof" && e.output == "-" && term.IsTerminal(int(f.Fd())) {
		return usagef("--to pprof: not to be read on a terminal; give a file, as in -o app.pb.gz")
	}
	lines, err := parseLines(e.lines)
	if err != nil {
		return err
	}
	lines = append(lines, lineSizes(e.h)...)
	slices.Sort(lines)
	l, err := a.load(e.r, name, slices.Compact(lines))
	if err != nil {
		return err
	}
	asked, doubts, err := e.ask(l)
	if err != nil {
		return err
	}
	for _, w := range doubts {
		a.warn(w)
	}
	if e.to == "csv" && e.table == "" {
		err = e.saveTables(l, asked)
	} else {
		var content []byte
		if content, err = exportedForms[at].bytes(e, l, asked, doubts); err == nil {
			err = a.save(e.output, content)
		}
	}
	if err != nil {
		return err
	}
	return l.Stopped
}

// check refuses options that mean nothing to the form.
func (e *exporting) check(cmd *cobra.Command, name string) (err error) {
	switch {
	case cmd.Flags().Changed("format"):
		return usagef("--format is for answers that are printed; --to says what to export")
	case e.event != "" && e.to != "folded":
		return usagef("--event is for --to folded; ", e.to, " has every event")
	case e.table != "" && e.to != "csv":
		return usagef("--table is for --to csv; ", e.to, " has every table")
	case e.to == "csv" && e.table == "" && e.output == "-":
		return usagef("--to csv: a file is one table; give a folder for all of them, as in -o tables, or name one, as in --table curve_64")
	}
	if in, err := os.Stat(name); err == nil {
		if out, err := os.Stat(e.output); err == nil && os.SameFile(in, out) {
			return usagef("-o ", e.output, ": is the file itself; give another name")
		}
	}
	if e.asked = len(e.caches) > 0 || e.named != ""; e.asked {
		e.h, err = chooseHierarchy(e.caches, e.named)
	}
	return err
}

// ask predicts the hierarchy, if there is one, and gives everything doubtful.
func (e *exporting) ask(l *answerable) (*export.Question, []string, error) {
	doubts := slices.Clone(l.warnings)
	if !e.asked {
		return nil, doubts, nil
	}
	answer, warnings, err := hierarchy.Predict(l.Profile, e.h)
	if err != nil {
		return nil, nil, asUsage(err)
	}
	for _, w := range warnings {
		doubts = append(doubts, string(w))
	}
	if e.h.About != "" {
		doubts = append(doubts, e.h.Name+": "+e.h.About)
	}
	return &export.Question{Hierarchy: e.h, Answer: answer}, doubts, nil
}

// save writes a file, packed if its name says so.
func (a *app) save(path string, content []byte) error {
	write := func(w io.Writer) error { _, err := w.Write(content); return err }
	if strings.HasSuffix(path, ".gz") {
		write = func(w io.Writer) error {
			z := gzip.NewWriter(w)
			if _, err := z.Write(content); err != nil {
				return err
			}
			return z.Close()
		}
	}
	var err error
	if path == "-" {
		path, err = "standard output", write(a.stdout)
	} else {
		err = wholefile.Save(path, write)
	}
	if err != nil {
		return &outputError{path: path, err: err}
	}
	return nil
}

// saveTables writes every table to a file of its own in a folder.
func (e *exporting) saveTables(l *answerable, asked *export.Question) error {
	if err := os.MkdirAll(e.output, 0o777); err != nil {
		return &outputError{path: e.output, err: err}
	}
	for _, t := range e.tables(l, asked) {
		path := filepath.Join(e.output, t.Key+".csv")
		err := wholefile.Save(path, func(w io.Writer) error { _, err := w.Write(t.CSV()); return err })
		if err != nil {
			return &outputError{path: path, err: err}
		}
	}
	return nil
}

func (e *exporting) tables(l *answerable, asked *export.Question) []report.Table {
	return export.Tables(l.Profile, asked)
}

func (e *exporting) csv(l *answerable, asked *export.Question, _ []string) ([]byte, error) {
	var have []string
	for _, t := range e.tables(l, asked) {
		if t.Key == e.table {
			return t.CSV(), nil
		}
		have = append(have, t.Key)
	}
	return nil, usagef("--table ", e.table, ": ", l.name, " gives ", strings.Join(have, ", "))
}

func (e *exporting) json(l *answerable, asked *export.Question, doubts []string) ([]byte, error) {
	d := &report.Document{Schema: "stackglass.export", Version: 1, Input: l.factsWithDigest(), Tables: e.tables(l, asked), Warnings: doubts}
	return d.JSON(), nil
}

func (e *exporting) html(l *answerable, asked *export.Question, doubts []string) ([]byte, error) {
	return export.HTML(&export.Report{
		Title: filepath.Base(l.name), Facts: l.factsWithDigest(), Warnings: doubts, Profile: l.Profile, Asked: asked,
	}), nil
}

// factsWithDigest are the facts of a file that may be kept for long: the digest
// says which profile it was made from.
func (l *answerable) factsWithDigest() []report.Fact {
	digest := l.Profile.Digest()
	return append(l.facts(0), report.Fact{Key: "digest", Label: "digest", Value: report.TextOf(hex.EncodeToString(digest[:]))})
}
