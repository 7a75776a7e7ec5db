package command

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/blocks/scaling"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// scaleOptions contains the options of the verb "scale", and the question that results from them.
type scaleOptions struct {
	machineOptions
	processor string
	module    string
	top       int
	at        string
	check     string
	by        string

	h         hierarchy.Hierarchy
	q         answers.ModelQuestion
	names     []string // names of the parameters
	predicted *scaling.Predicted
	all       int // maximum number of rows; see answers.All
}

// scaleTables lists the values of --by, in the order in which the tables are printed. CSV output
// contains only the first table.
var scaleTables = []string{"law", "total", "opcode", "reuse", "level", "function", "check"}

// scale returns the verb that predicts a run with a larger input from runs with smaller inputs.
func (a *app) scale() *cobra.Command {
	var (
		r *readOptions
		o scaleOptions
	)
	cmd := &cobra.Command{
		Use:   "scale --at n=512 n=64:FILE n=96:FILE …",
		Short: "Predict a run with a larger input from runs with smaller inputs",
		Args:  someFiles,
		RunE:  func(_ *cobra.Command, args []string) error { return a.runScale(r, &o, args) },
	}
	r = addReading(cmd)
	f := cmd.Flags()
	f.StringVar(&o.at, "at", "", "predict a run with these `PARAMETERS`, for example n=512,m=8")
	f.StringVar(&o.check, "check", "", "compare the prediction with a recorded run whose parameters are given by --at; `FILE` is the trace or profile of this run")
	f.StringVar(&o.processor, "processor", "znver4", "use this processor: a name, or a `FILE` with a description")
	o.addMachine(cmd, cacheUsage)
	f.StringVar(&o.module, "module", "", "also read the LLVM IR of the traced program from this `FILE`")
	f.StringVar(&o.by, "by", "", "print only this `TABLE` ("+strings.Join(scaleTables, ", ")+"), with all rows (default for csv: law)")
	f.IntVar(&o.top, "top", 10, "print the first `N` rows of each table (0: all rows; csv and json always contain all rows)")
	hide(cmd, "sample", "sample-seed", "skip", "limit", "threads")
	setCompletions(cmd, "by", scaleTables)
	return cmd
}

// parseParameters parses a list of parameters, such as n=64,m=8.
func parseParameters(text string) (names []string, values []int64, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		name, number, found := strings.Cut(part, "=")
		v, err := strconv.ParseInt(number, 10, 64)
		if !found || err != nil || name == "" || slices.Contains(names, name) {
			return nil, nil, false
		}
		names, values = append(names, name), append(values, v)
	}
	return names, values, true
}

// orderValues returns the values of the parameters in the order in which the list "names" contains
// the parameters.
func orderValues(names, have []string, values []int64) ([]int64, bool) {
	list := make([]int64, 0, len(names))
	for _, name := range names {
		at := slices.Index(have, name)
		if at < 0 {
			return nil, false
		}
		list = append(list, values[at])
	}
	return list, len(have) == len(names)
}

// checkOptions checks the options. The parameter "chosen" states whether the user specified the
// number of rows.
func (o *scaleOptions) checkOptions(format string, chosen bool) (at []int64, err error) {
	if o.top < 0 {
		return nil, usagef("--top ", strconv.Itoa(o.top), ", want a number of rows, or 0 for all rows")
	}
	if o.by != "" && !slices.Contains(scaleTables, o.by) {
		return nil, usagef("--by ", strconv.Quote(o.by), ", want one of ", strings.Join(scaleTables, ", "))
	}
	if o.by == "check" && o.check == "" {
		return nil, usagef("--by check needs a recorded run to compare with; name its file with --check FILE")
	}
	var ok bool
	if o.names, at, ok = parseParameters(o.at); !ok {
		return nil, usagef("--at ", strconv.Quote(o.at), ", want parameters, for example n=512 or n=512,m=8")
	}
	if o.isGiven() {
		if o.h, err = o.hierarchy(); err != nil {
			return nil, err
		}
		o.q.Machine = o.h.Lines()
	}
	if o.by == "level" && len(o.h.Levels) == 0 {
		return nil, usagef("--by level needs caches; describe them with --cache or --hierarchy")
	}
	if lines := ask.LineSizes(o.h); len(o.h.Levels) > 0 && len(lines) > 1 {
		return nil, usagef("the caches have several line sizes, want a single line size, because reuse is predicted for only one line size")
	}
	if o.all = o.top; o.top == 0 || exactRows(format) || o.by != "" && !chosen {
		o.all = answers.All
	}
	return at, nil
}

func (a *app) runScale(r *readOptions, o *scaleOptions, args []string) error {
	at, err := o.checkOptions(r.format, r.cmd.Flags().Lookup("top").Changed)
	if err != nil {
		return err
	}
	processor, err := chosenProcessor(o.processor)
	if err != nil {
		return err
	}
	r.analyses = (analysis.Sites | analysis.Sets | analysis.Blocks | analysis.Loops).String()
	inputs, warnings, err := a.scaleInputs(r, o, args)
	if err != nil {
		return err
	}
	laws, err := scaling.FitProgram(o.names, inputs)
	if err != nil {
		return asUsage(err)
	}
	if o.predicted, err = laws.Predict(at); err != nil {
		return asUsage(err)
	}
	d := &report.Document{Schema: "stackglass.scale", Version: 1, Warnings: warnings}
	d.Input = append(d.Input, report.Fact{Key: "runs", Label: "runs", Value: report.ListOf(strings.Join(args, " "))},
		report.Fact{Key: "at", Label: "predicted at", Value: report.TextOf(o.at)})
	predicted, err := o.answersOf(o.predicted.Profile, processor, costmodel.OpenPredicted, o.predicted.Forecast)
	if err != nil {
		return err
	}
	if total := predicted.work.Work.Program(predicted.work.Solution); !total.Whole {
		d.Warnings = append(d.Warnings, "sums of 2^64 or more are rounded; predict for smaller parameters to get exact sums")
	}
	totals := o.totalsOf(predicted)
	for i, f := range predicted.work.Total() {
		f.Value = totals[i].value
		d.Input = append(d.Input, f)
	}
	doubts := o.predicted.Doubts
	if len(o.h.Levels) > 0 {
		doubts = append(doubts, o.predicted.MissCaveat())
	}
	for _, doubt := range doubts {
		d.Warnings = append(d.Warnings, strings.TrimSuffix(doubt, "."))
	}
	var real *runAnswers
	if o.check != "" {
		l, err := a.scaleLoad(r, o, o.check)
		if err != nil {
			return err
		}
		if err := laws.Same(scaling.Input{Name: o.check, Parameters: at, Profile: l.Profile}); err != nil {
			return asUsage(err)
		}
		d.Warnings = append(d.Warnings, l.warnings...)
		if real, err = o.answersOf(l.Profile, processor, costmodel.New, nil); err != nil {
			return err
		}
	}
	o.addTables(d, predicted, real)
	return a.print(r.format, d)
}

// scaleRun is the file of a run, and the parameters of the run's input.
type scaleRun struct {
	file string
	at   []int64
}

// parseRuns parses arguments such as n=64:FILE.
func (o *scaleOptions) parseRuns(args []string) (runs []scaleRun, err error) {
	for _, arg := range args {
		text, file, found := strings.Cut(arg, ":")
		have, values, ok := parseParameters(text)
		if !found || !ok || file == "" {
			return nil, usagef(strconv.Quote(arg), ", want the input's parameters before the file, for example n=64:app.sgp")
		}
		at, ok := orderValues(o.names, have, values)
		if !ok {
			return nil, usagef(strconv.Quote(arg), ", want values for exactly the parameters of --at: ", strings.Join(o.names, ", "))
		}
		runs = append(runs, scaleRun{file, at})
	}
	for i, in := range runs {
		for _, before := range runs[:i] {
			if slices.Equal(in.at, before.at) {
				return nil, usagef(strconv.Quote(args[i]), ": ", before.file, " has the same parameters; give runs with different inputs")
			}
		}
	}
	if len(runs) < 2 {
		return nil, usagef("one run is not enough for a prediction; give at least two runs with different inputs, or at least three to check the formulas")
	}
	return runs, nil
}

// scaleInputs loads the recorded runs from which a run is predicted.
func (a *app) scaleInputs(r *readOptions, o *scaleOptions, args []string) (inputs []scaling.Input, warnings []string, err error) {
	runs, err := o.parseRuns(args)
	if err != nil {
		return nil, nil, err
	}
	for _, in := range runs {
		l, err := a.scaleLoad(r, o, in.file)
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, l.warnings...)
		inputs = append(inputs, scaling.Input{Name: in.file, Parameters: in.at, Profile: l.Profile})
	}
	return inputs, warnings, nil
}

// scaleLoad loads a run. It fails if the profile of the run is partial.
func (a *app) scaleLoad(r *readOptions, o *scaleOptions, file string) (*loadedFile, error) {
	lines := []uint32{analysis.DefaultLineBytes}
	if len(o.h.Levels) > 0 {
		lines = ask.LineSizes(o.h)
	}
	l, err := a.load(r, file, lines)
	if err != nil {
		return nil, err
	}
	return l, l.Stopped
}

// runAnswers contains the answers about a real or predicted run.
type runAnswers struct {
	work   *answers.Blocks
	models *costmodel.Models
	levels hierarchy.Prediction
	doubts []hierarchy.Warning
	p      *profile.Profile
}

// modelsOpener is a function that opens the models of a profile, optionally with the LLVM IR of its
// program.
type modelsOpener = func(p *profile.Profile, name string, module []byte) (*costmodel.Models, error)

func (o *scaleOptions) answersOf(p *profile.Profile, processor *pipeline.Processor, open modelsOpener, forecast func(hierarchy.Cache) hierarchy.Forecast) (*runAnswers, error) {
	t := &runAnswers{p: p}
	run, err := blocks.DecodeRun(p.Blocks)
	if err != nil {
		return nil, err
	}
	system, err := blocks.FromEdges(run.Program, run.Edges)
	if err != nil {
		return nil, err
	}
	if t.work, err = answers.NewBlocks(system); err != nil {
		return nil, err
	}
	t.work.Name = program.Readable
	var text []byte
	if o.module != "" {
		if text, err = pass.ReadFile(o.module); err != nil {
			return nil, usagef("--module ", o.module, ": ", err.Error())
		}
	}
	if t.models, err = open(p, o.module, text); err != nil {
		return nil, asUsage(err)
	}
	t.models.Use(processor)
	if len(o.h.Levels) > 0 {
		asker := hierarchy.NewAsker(p)
		asker.Forecast = forecast
		levels, doubts, err := asker.Predict(o.h, nil)
		if err != nil {
			return nil, asUsage(err)
		}
		t.levels, t.doubts = levels.Prediction, doubts
	}
	return t, nil
}

// addTables adds the tables, and the warnings about them, to a document.
func (o *scaleOptions) addTables(d *report.Document, predicted, real *runAnswers) {
	reply := predicted.models.Answer(o.q)
	for _, row := range reply.Table("program").Rows {
		if label := row[0].Plain(); label != "instructions" {
			d.Input = append(d.Input, report.Fact{Key: strings.ReplaceAll(label, " ", "_"), Label: label, Value: row[1]})
		}
	}
	for _, w := range predicted.doubts {
		d.Warnings = append(d.Warnings, string(w))
	}
	for _, note := range reply.Notes {
		if note = ask.ModelAdvice(note); !slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.EqualFold(w, note) }) {
			d.Warnings = append(d.Warnings, note)
		}
	}
	d.Warnings = append(d.Warnings, "not modelled: "+strings.Join(reply.Unmodelled, "; "))
	for _, name := range scaleTables {
		if o.by == "" || o.by == name {
			d.Tables = append(d.Tables, o.tablesFor(name, predicted, real, reply)...)
		}
	}
}

// tablesFor returns the tables for one value of --by (see scaleTables).
func (o *scaleOptions) tablesFor(name string, predicted, real *runAnswers, reply *answers.Reply) []report.Table {
	switch name {
	case "law":
		return []report.Table{o.formulaTable(predicted, real)}
	case "total":
		return []report.Table{o.totalTable(predicted, reply)}
	case "opcode":
		return []report.Table{o.opcodeTable(predicted, real)}
	case "reuse":
		return []report.Table{o.reuseTable(predicted.p)}
	case "function":
		t := *reply.Table("functions")
		rows := t.Rows
		t.Columns, t.Rows = t.Columns[1:], nil // drop the first column, which only the page needs
		for _, row := range rows {
			if n, _ := row[4].Number(); n > 0 {
				t.Rows = append(t.Rows, row[1:])
			}
		}
		return []report.Table{o.limitRows(t)}
	case "level":
		if len(o.h.Levels) > 0 {
			return answers.Predicted(o.h, predicted.levels)
		}
	case "check":
		if real != nil {
			return []report.Table{o.checkTableOf(predicted, real, reply)}
		}
	}
	return nil
}

// limitRows limits a table to the number of rows that --top specifies.
func (o *scaleOptions) limitRows(t report.Table) report.Table {
	if o.all != answers.All && len(t.Rows) > o.all {
		t.Rows = t.Rows[:o.all]
		t.Title += ", the first " + strconv.Itoa(o.all)
	}
	return t
}

// formulaTable returns a table of the formulas for the number of executions of each block, in
// descending order of executed instructions.
func (o *scaleOptions) formulaTable(predicted, real *runAnswers) report.Table {
	t := report.Table{Key: "laws", Title: "Executions of blocks, as formulas", Columns: report.Columns(
		"function", "block", "file", "line", "law", "basis", "executions")}
	uncertain := slices.ContainsFunc(o.predicted.Of, func(of scaling.Block) bool { return of.Low < of.High })
	if uncertain {
		t.Columns = append(t.Columns, report.Columns("low=at least", "high=at most")...)
	}
	if real != nil {
		t.Columns = append(t.Columns, report.Columns("run=in the run", "off=off by")...)
	}
	t.Columns = append(t.Columns, report.Columns("instructions", "share")...)
	p := o.predicted.Run.Program
	all := 0.0
	instructions := make([]float64, len(p.Blocks))
	var list []int
	for b := range p.Blocks {
		instructions[b] = predicted.work.Solution.Visits[b] * float64(predicted.work.Work.Once(b)[profile.Instructions])
		all += instructions[b]
		if o.predicted.Of[b].Executions > 0 || real != nil && real.work.Solution.Visits[b] > 0 {
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(instructions[y], instructions[x]) })
	for _, b := range list {
		k, of := &p.Blocks[b], &o.predicted.Of[b]
		label, function := k.Label, ""
		if k.Part > 0 {
			label += "+" + strconv.FormatUint(uint64(k.Part), 10)
		}
		if int64(k.Function) < int64(len(p.Functions)) {
			function = program.Readable(p.Functions[k.Function].Name)
		}
		row := []report.Value{report.TextOf(function), report.TextOf(label), report.TextOf(k.File), report.Known(uint64(k.FirstLine)),
			report.TextOf(of.Law.String(o.names)), report.TextOf(of.Basis.String()), estimate(report.Count(of.Executions), of.Low, of.High)}
		if uncertain {
			row = append(row, report.Real(of.Low), report.Real(of.High))
		}
		if real != nil {
			run := report.Count(real.work.Solution.Exact[b])
			row = append(row, run, report.Change(run, report.Count(of.Executions)))
		}
		t.Add(append(row, report.Real(instructions[b]), report.Quotient(instructions[b], all))...)
	}
	return o.limitRows(t)
}

// estimate returns a predicted number, which is marked as an estimate unless the limits of its
// interval are equal.
func estimate(v report.Value, low, high float64) report.Value {
	if x, known := v.Number(); known && low < high {
		return report.About(x)
	}
	return v
}

// total is a predicted total, with its interval.
type total struct {
	name      string
	value     report.Value
	low, high float64
}

// totalsOf returns the predicted instructions, operations and bytes. The limits of the blocks add up
// to the limits of a total, so the interval is wide enough if the errors of all blocks have the same
// direction.
func (o *scaleOptions) totalsOf(predicted *runAnswers) []total {
	kinds := [][]profile.Counter{{profile.Instructions}, {profile.Flops}, {profile.IntegerOps}, {profile.BytesLoaded, profile.BytesStored, profile.RangeBytesRead, profile.RangeBytesWritten}}
	var list []total
	for i, f := range predicted.work.Total() {
		t := total{name: f.Label, value: f.Value}
		x, _ := f.Value.Number()
		for b := range o.predicted.Of {
			of, once := &o.predicted.Of[b], predicted.work.Work.Once(b)
			for _, c := range kinds[i] {
				t.low += float64(once[c]) * (of.Low - float64(of.Executions))
				t.high += float64(once[c]) * (of.High - float64(of.Executions))
			}
		}
		t.low, t.high = max(0, x+t.low), x+t.high
		t.value = estimate(f.Value, t.low, t.high)
		list = append(list, t)
	}
	return list
}

// totalTable returns a table of the predicted totals, with their intervals. The intervals of cycles
// and milliseconds are as wide as the interval of the instructions.
func (o *scaleOptions) totalTable(predicted *runAnswers, reply *answers.Reply) report.Table {
	t := report.Table{Key: "totals", Title: "Totals; the intervals contain the error of the scaling, but not the error of the processor model", Columns: report.Columns(
		"figure", "predicted", "low=at least", "high=at most")}
	totals := o.totalsOf(predicted)
	for _, f := range totals {
		t.Add(report.TextOf(f.name), f.value, report.Real(f.low), report.Real(f.high))
	}
	for i := range predicted.levels.Levels {
		l := &predicted.levels.Levels[i]
		t.Add(report.TextOf(l.Cache.Name+" misses"), answers.Forecast(l), report.Real(l.Low), report.Real(l.High))
	}
	instructions, _ := totals[0].value.Number()
	for _, row := range reply.Table("program").Rows {
		if x, known := row[1].Number(); known && (row[0].Plain() == "cycles" || row[0].Plain() == "milliseconds") && instructions > 0 {
			t.Add(row[0], row[1], report.Real(x*totals[0].low/instructions), report.Real(x*totals[0].high/instructions))
		}
	}
	return t
}

// opcodeTable returns a table with a row for each opcode.
func (o *scaleOptions) opcodeTable(predicted, real *runAnswers) report.Table {
	t := predicted.work.Opcodes(answers.All)
	if real == nil {
		return o.limitRows(t)
	}
	t.Columns = append(t.Columns, report.Columns("run=in the run", "difference")...)
	run := map[string]report.Value{}
	other := real.work.Opcodes(answers.All)
	for _, row := range other.Rows {
		run[row[0].Plain()] = row[1]
	}
	for i, row := range t.Rows {
		name := row[0].Plain()
		n, known := run[name]
		if delete(run, name); !known {
			n = report.Count(0)
		}
		t.Rows[i] = append(row, n, report.Difference(n, row[1]))
	}
	for _, row := range other.Rows {
		if n, left := run[row[0].Plain()]; left {
			t.Add(row[0], report.Count(0), report.Ratio(0), n, report.Difference(n, report.Count(0)))
		}
	}
	return o.limitRows(t)
}

// reuseTable returns a table with a row for each power of two of stack distances.
func (o *scaleOptions) reuseTable(p *profile.Profile) report.Table {
	t := report.Table{Key: "reuse", Title: "Line accesses by stack distance: the number of other lines accessed since the last access to the line", Columns: report.Columns(
		"from (lines)", "below (lines)", "accesses", "share",
		"miss_ratio=miss ratio at a capacity of “below” lines")}
	var counts [profile.WindowBins]uint64
	all := uint64(0)
	for i := range p.Locality[0].Kinds {
		k := &p.Locality[0].Kinds[i]
		for d, n := range k.Distances.All() {
			counts[profile.DistanceBin(d)] += n
		}
		counts[profile.ColdBin] += k.Cold
		all += k.Accesses()
	}
	left := all
	for bin, n := range counts {
		left -= n
		switch {
		case n == 0:
		case bin == profile.ColdBin:
			t.Add(report.TextOf("first touch"), report.None(), report.Count(n), report.Share(n, all), report.None())
		default:
			from, below := uint64(0), uint64(1)
			if bin > 0 {
				from, below = 1<<(bin-1), 1<<bin
			}
			t.Add(report.Count(from), report.Count(below), report.Count(n), report.Share(n, all), report.Share(left, all))
		}
	}
	return t
}

// sameFigure is the maximum relative difference that may result from rounding.
const sameFigure = 1e-12

// checkTableOf returns a table that compares each predicted number with the number in the real run.
func (o *scaleOptions) checkTableOf(predicted, real *runAnswers, reply *answers.Reply) report.Table {
	t := report.Table{Key: "check", Title: "Compared with " + o.check, Columns: report.Columns(
		"figure", "predicted", "run=in the run", "difference", "off=off by")}
	add := func(name string, predicted, run report.Value) {
		x, _ := predicted.Number()
		if y, _ := run.Number(); x != y && math.Abs(x-y) < sameFigure*math.Abs(y) {
			predicted = run // the sums differ only because the same numbers were added in a different order
		}
		t.Add(report.TextOf(name), predicted, run, report.Difference(run, predicted), report.Change(run, predicted))
	}
	totals := real.work.Total()
	for i, f := range o.totalsOf(predicted) {
		add(f.name, f.value, totals[i].Value)
	}
	wrong := uint64(0)
	for b := range o.predicted.Of {
		if o.predicted.Run.Edges.Visits[b] != real.work.Solution.Exact[b] {
			wrong++
		}
	}
	t.Add(report.TextOf("blocks with a different count"), report.Count(wrong), report.Count(0), report.None(), report.None())
	add("line accesses", report.Count(predicted.p.Locality[0].Accesses()), report.Count(real.p.Locality[0].Accesses()))
	add("lines", report.Count(predicted.p.Locality[0].Lines()), report.Count(real.p.Locality[0].Lines()))
	for i := range predicted.levels.Levels {
		x, y := &predicted.levels.Levels[i], &real.levels.Levels[i]
		add(x.Cache.Name+" misses", answers.Forecast(x), report.Real(y.Misses))
		if y.Beside && x.Method.IsSDCM() { // compare two results of SDCM, so that the difference is only due to scaling
			add(x.Cache.Name+" misses, both estimated by SDCM", report.Real(x.Misses), report.Real(y.SDCMMisses))
		}
	}
	run := real.models.Answer(o.q).Table("program")
	for i, row := range reply.Table("program").Rows {
		if name := row[0].Plain(); name == "cycles" || name == "milliseconds" {
			add(name, row[1], run.Rows[i][1])
		}
	}
	return t
}
