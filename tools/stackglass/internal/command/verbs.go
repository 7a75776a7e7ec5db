package command

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/byfl"
	diagnosis "github.com/stackglass/stackglass/core/diagnose"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/chart"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// addWhatIfOptions adds budgets to the verb "what-if", and accepts files as values of --against.
func (a *app) addWhatIfOptions(cmd *cobra.Command, o *verbCommand) {
	setFileCompletions(cmd, "against", presetNames())
	var against hierarchy.Hierarchy
	o.beforeCheck = func(q *ask.Question) (err error) {
		list := q.List("against")
		if len(list) != 1 || strings.Contains(list[0], "=") {
			return nil
		}
		if _, unknown := hierarchy.Preset(list[0]); unknown != nil {
			against, err = namedHierarchy("against", list[0])
			*q = q.With("against", against.Lines()...)
		}
		return err
	}
	o.beforePrint = func(_ *loadedFile, _ ask.Question, d *report.Document) error {
		if against.About != "" {
			d.Warnings = append(d.Warnings, "B: "+against.Name+": "+against.About)
		}
		return nil
	}
	var budgets []budget
	texts := cmd.Flags().StringArray("fail-if", nil, "exit with code 1 if this `CONDITION` is true, for example 'L2.misses>1e6' (may be repeated)")
	o.beforeLoad = func(q ask.Question) (err error) {
		budgets, err = parseBudgets(*texts, q.Machine)
		return err
	}
	o.afterPrint = func(d *report.Document) error { return checkBudgets(budgets, d) }
}

// tableOf returns the table with the given key, or nil if the document does not contain it.
func tableOf(d *report.Document, key string) *report.Table {
	if at := slices.IndexFunc(d.Tables, func(t report.Table) bool { return t.Key == key }); at >= 0 {
		return &d.Tables[at]
	}
	return nil
}

// addChartOptions adds the options that draw a histogram or a curve.
func (a *app) addChartOptions(cmd *cobra.Command, o *verbCommand) {
	var svg, png string
	cmd.Flags().StringVar(&svg, "svg", "", "also write a chart to this SVG `FILE`")
	cmd.Flags().StringVar(&png, "png", "", "also write a chart to this PNG `FILE`")
	o.beforePrint = func(l *loadedFile, q ask.Question, _ *report.Document) error {
		counts, cold := l.Profile.LocalityAt(q.Line()).Histogram(trace.AllKinds)
		draw := func() (*chart.Chart, error) { return chart.Histogram(l.name, q.Line(), counts, cold) }
		if o.verb.Name == "curve" {
			draw = func() (*chart.Chart, error) { return chart.Curve(l.name, q.Line(), profile.NewCurve(counts, cold)) }
		}
		if err := saveChart(svg, chart.SVG, draw); err != nil {
			return err
		}
		return saveChart(png, chart.PNG, draw)
	}
}

// saveChart draws a chart to a file, unless the path is "".
func saveChart(path string, format chart.Format, draw func() (*chart.Chart, error)) error {
	if path == "" {
		return nil
	}
	drawn, err := draw()
	if err != nil {
		return err
	}
	return saveFile(path, func(w io.Writer) error { return drawn.Write(w, format) })
}

// exactRows reports whether a format is machine-readable. The output in such a format must contain
// every row.
func exactRows(format string) bool {
	return format == string(report.CSV) || format == string(report.JSON)
}

// addSourceOptions adds options to verbs about source lines. The options name the files of the
// program and its source files.
func (a *app) addSourceOptions(cmd *cobra.Command, o *verbCommand) {
	var (
		places, symbols []string
		found           *sources
	)
	cmd.Flags().StringArrayVar(&places, "source", nil, "read the source text from this `FOLDER` or file, to show each line")
	addSymbols(cmd, &symbols)
	addMeasures(cmd, o.r)
	o.beforeLoad = func(ask.Question) (err error) {
		found, err = findSources(places)
		return err
	}
	o.afterLoad = func(l *loadedFile, run *ask.Run) error {
		if len(places) > 0 {
			run.Source = found.lineText
		}
		return addSymbolNames(l, run, symbols)
	}
	o.beforePrint = func(_ *loadedFile, _ ask.Question, d *report.Document) error {
		d.Warnings = append(d.Warnings, found.sourceWarnings()...)
		if o.verb.Name == "sites" && len(d.Tables) > 1 && o.r.format == string(report.CSV) {
			d.Warnings = append(d.Warnings, "csv contains only the table of misses; use another format, such as --format json, to see which code last accessed the lines")
		}
		return nil
	}
}

// addSymbolOption adds the option --symbols to the verb "communication".
func (a *app) addSymbolOption(cmd *cobra.Command, o *verbCommand) {
	var symbols []string
	addSymbols(cmd, &symbols)
	o.afterLoad = func(l *loadedFile, run *ask.Run) error { return addSymbolNames(l, run, symbols) }
}

// addSymbolNames adds the names of functions and source lines to the sites of a profile.
func addSymbolNames(l *loadedFile, run *ask.Run, files []string) error {
	if l.Profile.Sites == nil && run.Profile.Sites == nil && len(files) == 0 {
		return nil
	}
	notes, err := symbolize(l.Profile, files)
	run.Warnings = append(run.Warnings, notes...)
	return err
}

// addMeasures adds options for additional measurements for each site.
func addMeasures(cmd *cobra.Command, r *readOptions) {
	cmd.Flags().StringSliceVar(&r.utilisation, "utilisation", nil, "measure line utilisation, and misses by site, in these `CACHES`: sizes, each followed by the number of ways if the cache is set-associative, for example 32KiB,8,1MiB")
	cmd.Flags().BoolVar(&r.previous, "previous", false, "for each access at a stack distance of 16 or more, record the site that last accessed the line")
}

// addLoopOptions adds the option --symbols to the verb "loops". Loop-compressed traces do not
// support this option.
func (a *app) addLoopOptions(cmd *cobra.Command, o *verbCommand) {
	var symbols []string
	addSymbols(cmd, &symbols)
	hideSample(cmd)
	o.afterLoad = func(l *loadedFile, run *ask.Run) error {
		switch {
		case l.folded == nil:
			return addSymbolNames(l, run, symbols)
		case len(symbols) > 0:
			return usagef("--symbols: ", l.name, " is a loop-compressed trace, whose instructions cannot be named; first expand the trace with convert, or omit the option")
		}
		return nil
	}
}

// loadFolded loads a loop-compressed trace without expanding it.
func loadFolded(in *pass.Input) (*loadedFile, error) {
	tree, header, err := in.Tree()
	if err != nil && (tree == nil || tree.Rows() == 0) {
		return nil, err
	}
	folded := &ask.Folded{Tree: tree, Program: header.Program, Partial: err != nil}
	return &loadedFile{Result: &pass.Result{Stopped: err}, name: in.Name, folded: folded}, nil
}

// hideSample hides the sampling options in the help of a verb, because the verb hardly benefits
// from samples.
func hideSample(cmd *cobra.Command) { hide(cmd, "sample", "sample-seed") }

// addBlockOptions adds options to the verb "blocks". With these options, the verb can print a
// branch-probability file, and it can sample the executions of blocks while it reads a trace.
func (a *app) addBlockOptions(cmd *cobra.Command, o *verbCommand) {
	hideSample(cmd)
	var sampled *blocksample.Collector
	template := cmd.Flags().Bool("template", false, "print only the branches with their probabilities, as input for --probabilities")
	o.beforeLoad = func(q ask.Question) error {
		if q.Is("windows") {
			o.r.extraConsumer = func(program func() *trace.Program) func(*trace.Batch) error {
				var err error
				sampled, err = blocksample.New(blocksample.Options{LineBytes: analysis.DefaultLineBytes, Seed: q.Number("window-seed")}, program)
				must(err)
				return sampled.Consume
			}
		}
		return nil
	}
	o.afterLoad = func(_ *loadedFile, run *ask.Run) error {
		if sampled != nil {
			run.Windows = []blocks.SampledReuse{}
			for _, stack := range sampled.Result() {
				run.Windows = stack.Sampled()
			}
		}
		return nil
	}
	o.answerInstead = func(run *ask.Run, q ask.Question) (bool, error) {
		if !*template {
			return false, nil
		}
		text, err := program.BranchFile(run, q)
		if err != nil {
			return true, err
		}
		return true, a.write(text)
	}
}

func (a *app) pipeline(cmd *cobra.Command, _ *verbCommand) {
	hideSample(cmd)
	setFileCompletions(cmd, "processor", pipeline.Processors())
}

// loadModule loads a file that contains LLVM IR.
func (r *readOptions) loadModule(in *pass.Input) (*loadedFile, error) {
	if option := r.firstSet(slices.Concat(traceOptions, []string{"workers", "memory", "windows"})...); option != "" {
		return nil, usagef("--", option, ": ", in.Name, " is LLVM IR, which contains no references; omit the option")
	}
	text, err := io.ReadAll(in)
	return &loadedFile{Result: &pass.Result{}, name: in.Name, module: text}, err
}

// loadMeasured loads the output of perf or likwid.
func (r *readOptions) loadMeasured(found *pass.MeasuredError) (*loadedFile, error) {
	if err := r.refuseForResult(found.Name, "a file with measurements"); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(found.Content)
	return &loadedFile{Result: &pass.Result{}, name: found.Name, measured: text}, err
}

// chosenProcessor returns a built-in processor, or a processor from a description in a file.
func chosenProcessor(name string) (*pipeline.Processor, error) {
	p, err := program.Processor(&ask.Run{File: pass.ReadFile}, ask.New(program.Pipeline).With("processor", name))
	return p, asUsage(err)
}

// loadByfl converts a result of the tool Byfl to a profile that contains only counters.
func (a *app) loadByfl(r *readOptions, in *pass.Input) (*loadedFile, error) {
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
	l := &loadedFile{name: in.Name, Result: &pass.Result{Profile: &profile.Profile{Counters: counters}}, warnings: byfl.Notes()}
	l.Profile.Input.Header.Format = ask.ByflFormat
	if len(skipped) > 0 {
		l.warnings = append(l.warnings, "the following tables are left out, because stackglass does not use them: "+strings.Join(skipped, ", "))
	}
	return l, nil
}

// addDiagnoseOptions adds budgets to the verb "diagnose".
func (a *app) addDiagnoseOptions(cmd *cobra.Command, o *verbCommand) {
	a.addSourceOptions(cmd, o)
	var (
		checkSources = o.beforeLoad
		budgets      []tableBudget
	)
	texts := cmd.Flags().StringArray("fail-if", nil, "exit with code 1 if this `CONDITION` is true for any row, for example 'findings.saved_share>10%' (may be repeated)")
	o.beforeLoad = func(q ask.Question) (err error) {
		if budgets, err = parseTableBudgets(*texts, new(diagnosis.Diagnosis).Tables()); err != nil {
			return err
		}
		return checkSources(q)
	}
	o.afterPrint = func(d *report.Document) error { return checkTableBudgets(budgets, d) }
}

// tableBudget is a condition of --fail-if: a column of a table, and a bound on each number in the
// column.
type tableBudget struct {
	budget
	table string
}

// parseTableBudgets parses conditions TABLE.COLUMN OP NUMBER, where OP is one of > >= < <= and
// NUMBER may end in %. The parameter "tables" contains the tables and columns that a condition can
// name.
func parseTableBudgets(texts []string, tables []report.Table) (list []tableBudget, err error) {
	for _, text := range texts {
		b := tableBudget{budget: budget{text: text}}
		left, right, found := b.cutOperator(strings.IndexAny(text, "<>"))
		right, percent := strings.CutSuffix(right, "%")
		b.table, b.metric, _ = strings.Cut(left, ".")
		known := slices.ContainsFunc(tables, func(t report.Table) bool { return t.Key == b.table && t.Index(b.metric) >= 0 })
		if !found || !known || !b.parseBound(right) {
			return nil, usagef("--fail-if ", strconv.Quote(text), ", want TABLE.COLUMN>NUMBER, for example findings.saved_share>10%, with >, >=, < or <=, "+
				"and with a table and a column that --format json prints")
		}
		if percent {
			b.bound /= 100
		}
		list = append(list, b)
	}
	return list, nil
}

// checkTableBudgets returns an error for the first budget that is exceeded in any row.
func checkTableBudgets(list []tableBudget, d *report.Document) error {
	for _, b := range list {
		t := tableOf(d, b.table)
		for i, row := range t.Rows {
			if value, ok := row[t.Index(b.metric)].Number(); ok && b.broken(value) {
				return &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " is true for row " + strconv.Itoa(i+1) +
					" of " + b.table + ", because the number is " + b.format(value)}
			}
		}
	}
	return nil
}
