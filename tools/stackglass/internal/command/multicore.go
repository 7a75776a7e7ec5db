package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// multicoreOptions are what the verb multicore takes.
type multicoreOptions struct {
	cores     []uint
	words     answers.MulticoreQuestion // what is as in the page
	caches    []string
	named     string
	processor string
	protocol  string
	at, check string // the input to predict for, and a run that was made at it
	windows   string // that are looked at, in words
	by        string
	output    string
	analyses  string
	read      pass.PredictOptions
	memory    string
	format    string
	ppt       pptFiles
}

// multicoreTables are what --by takes.
var multicoreTables = []string{"rates", "speedup", "work", "cores", "loops", "sampling"}

// multicore predicts what the threads of a sequential run would do.
func (a *app) multicore() *cobra.Command {
	var o multicoreOptions
	cmd := &cobra.Command{
		Use:   "multicore TRACE --cores N,… --cache NAME=SIZE,WAYS[,LINE][,PROPERTY…] …",
		Short: "Hit rates and speed-up on any number of cores, from a run with one thread",
		Long: `Predict what the threads of an OpenMP program would do to private and shared caches,
and how much sooner they would be done, from the trace of a run with one thread:

  stackglass cc -- clang -O2 -g -fopenmp app.c -o app && OMP_NUM_THREADS=1 ./app

The work of parallel regions is divided as OpenMP would, by the iterations of its
loops and their schedules, and what is private to a thread lies apart for each. The
threads' references go through the caches, kept coherent, one after the other: that is
exact for the threads as they are mimicked ("simulated"). "sampled-sdcm" is the stack
distance cache model of the same threads, as PPT-SASMM has it, from a sample of their
lines, and "windowed-sdcm" from windows: some executions of each block, as the paper's
Algorithm 3 has it, one in a hundred and 30 at least, or as --sdcm windows,rate=0.05,
least=100 says. P(BB), how much a block counts, is counted, or by the paper's equations:
weights=corrected or weights=printed. ± is half of the interval that has the truth in 95
of 100 samples; --by sampling tells what was looked at. Local rates are of what comes to a level, global ones of all accesses; the mean
weighs all caches of a level the same.

--division region or printed divides the executions of each block instead, as the paper
does. --schedule stands in for those of the program. --interleave is the order of the
cores' references, which nobody knows.

--processor adds times: what the blocks of each core take, with loads at the latency of
where their lines are, and what is lost to serial work, imbalance, work that all do
again, slower loads and the bandwidth of memory. They are against one core.

--at predicts hit rates at an input that nobody ran, from runs at two or more small ones:
how often blocks run on each core goes on by laws, as "scale" has it, and the reuse of
each block is kept as in the largest run, as in PPT-SASMM, or followed from run to run.
Take sizes that the cores divide alike. --check holds it against a run.

Block-labelled traces of PPT tell no loops: --division is region or printed. Which blocks
are parallel, and which hold shared variables, is told by their names, in the trace or
in the table that Byfl prints (--ppt-blocks); other files of PPT are held against it.

-o keeps the profile of the threads of one number of cores, which all other verbs take.`,
		Example: "  stackglass multicore app.sgt --cores 1,2,4,8,16 --hierarchy sasmm\n" +
			"  stackglass multicore app.sgt --cores 8 --schedule dynamic,4 --cache L1=32KiB,8 --cache L2=1MiB,16,shared=all -o app-8.sgp\n" +
			"  stackglass multicore app.sgt --cores 2,4,8 --hierarchy i7-4770K --processor skylake-avx512 --by speedup\n" +
			"  stackglass multicore --at n=512 n=64:a.sgt n=96:b.sgt n=128:c.sgt --cores 1,4,16 --hierarchy sasmm",
		Args: multicoreFiles(&o.at),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.at != "" {
				return a.runLarger(cmd, &o, args)
			}
			if o.check != "" {
				return usagef("--check ", o.check, ": what is predicted at another input is held against that run; say which, by --at")
			}
			return a.runMulticore(cmd, &o, args[0])
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.UintSliceVar(&o.cores, "cores", []uint{1, 2, 4, 8, 16}, "how many, each up to 64")
	f.StringArrayVar(&o.caches, "cache", nil, "a level, as in L1=32KiB,8 or L2=1MiB,16,shared=all (repeat for the next one)")
	f.StringVar(&o.named, "hierarchy", "", "a preset, or a `FILE` that describes a hierarchy")
	f.StringVar(&o.protocol, "protocol", simulate.MESI.String(), "what private caches know of each other's lines: mesi or msi")
	f.StringVar(&o.processor, "processor", "", "whose times: a name, or a `FILE` that describes one (default: none)")
	f.StringVar(&o.words.Division, "division", "", "how work is divided: iterations (default), region, printed")
	f.StringVar(&o.words.Schedule, "schedule", "", "divide all loops by this `SCHEDULE`, as in static, static,1, dynamic,4, guided (default: each as the program asks)")
	f.StringVar(&o.words.Interleave, "interleave", "", "the order of the cores' references: round-robin (default), uniform, block, time")
	f.Uint64Var(&o.words.Seed, "seed", 0, "another order by chance, and other random replacement, by another `NUMBER`")
	f.StringArrayVar(&o.words.Private, "private", nil, "addresses that each thread has for itself, as in 0x7f00-0x7fff (default: stacks; may be repeated)")
	f.StringVar(&o.words.SDCM, "sdcm", "sample", "what the stack distance cache model says, too: from a sample of lines, all of them (takes long), windows of each block (as in windows,rate=0.05,least=100), or none")
	f.StringVar(&o.by, "by", "", "print one table alone: "+strings.Join(multicoreTables, ", ")+" (csv: rates)")
	f.StringVar(&o.at, "at", "", "predict for the `INPUT` n=512, from runs at smaller ones: n=64:FILE n=96:FILE …")
	f.StringVar(&o.check, "check", "", "the trace of a run with one thread at that input, as a `FILE`: tell how far off the prediction is")
	f.StringVarP(&o.output, "output", "o", "", "keep the profile of the threads in this `FILE`, of one number of cores")
	f.StringVar(&o.analyses, "analyses", "default", "what to analyse for it, as analyze has it")
	o.ppt.flags(f)
	f.StringVar(&o.read.Format, "input-format", "", "the trace's format, if it is not to be found out: "+strings.Join(formatNames(), ", "))
	f.Uint64Var(&o.read.SkipBad, "skip-bad", 0, "tolerate `N` records that cannot be read")
	f.BoolVar(&o.read.Strict, "strict", false, "stop at the first part of a container that cannot be read, instead of leaving it out")
	f.StringVar(&o.memory, "memory", "", "stop in good order beyond this much memory, as in 4GiB (default: half of the free memory)")
	addFormat(cmd, &o.format)
	fixed := func(name string, words []string, more cobra.ShellCompDirective) {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, more)))
	}
	fixed("by", multicoreTables, cobra.ShellCompDirectiveNoFileComp)
	fixed("division", []string{"iterations", "region", "printed"}, cobra.ShellCompDirectiveNoFileComp)
	fixed("interleave", []string{"round-robin", "uniform", "block", "time"}, cobra.ShellCompDirectiveNoFileComp)
	fixed("sdcm", []string{"sample", "all", "windows", "none"}, cobra.ShellCompDirectiveNoFileComp)
	fixed("protocol", []string{"mesi", "msi"}, cobra.ShellCompDirectiveNoFileComp)
	fixed("hierarchy", presetNames(), cobra.ShellCompDirectiveDefault)
	fixed("processor", pipeline.Processors(), cobra.ShellCompDirectiveDefault)
	return cmd
}

// question is what is asked.
func (o *multicoreOptions) question() (q predict.Question, err error) {
	if o.by != "" && !slices.Contains(multicoreTables, o.by) {
		return q, usagef("--by ", strconv.Quote(o.by), ", want ", strings.Join(multicoreTables, ", "))
	}
	if o.by == "speedup" && o.processor == "" {
		return q, usagef("--by speedup: times are those of a processor; name one by --processor")
	}
	if o.output != "" && len(o.cores) != 1 {
		return q, usagef("-o ", o.output, ": a profile is of the threads of one number of cores; give one alone behind --cores")
	}
	h, err := chooseHierarchy(o.caches, o.named)
	if err != nil {
		return q, err
	}
	for _, n := range o.cores {
		o.words.Cores = append(o.words.Cores, uint32(min(n, 1<<32-1)))
	}
	o.words.Machine = h.Lines()
	if o.output != "" {
		o.words.Keep = o.words.Cores[0]
	}
	if q, err = predict.Ask(o.words); err != nil {
		var option *trace.OptionError
		switch {
		case !errors.As(err, &option) || option.Option == "cache":
		case slices.Contains([]string{"rate", "least", "weights"}, option.Option):
			return q, usagef("--sdcm ", o.words.SDCM, ": ", err.Error())
		default:
			return q, asUsage(errors.New("--" + err.Error()))
		}
		return q, asUsage(err)
	}
	if q.Hierarchy, q.Seed = h, o.words.Seed; len(q.Windows) > 0 {
		o.windows = q.Windows[0].String()
	}
	if o.processor != "" {
		if q.Processor, err = chosenProcessor(o.processor); err != nil {
			return q, err
		}
	}
	if q.Protocol, err = simulate.ParseProtocol(o.protocol); err != nil {
		return q, asUsage(errors.New("--" + err.Error()))
	}
	if q.Spec.Analyses, err = analysis.ParseAnalyses(o.analyses); err != nil {
		return q, asUsage(errors.New("--" + err.Error()))
	}
	return q, nil
}

func (a *app) runMulticore(cmd *cobra.Command, o *multicoreOptions, name string) error {
	format, err := parseFormat(o.format)
	if err != nil {
		return err
	}
	q, err := o.question()
	if err != nil {
		return err
	}
	if err := o.ppt.read(&o.read.PPT); err != nil {
		return err
	}
	limits := reading{cmd: cmd, memory: o.memory, kinds: trace.DataKinds.String(), format: o.format}
	common, err := limits.options(a, nil)
	if err != nil {
		return err
	}
	o.read.MemoryBytes, o.read.Terminal, q.MemoryBytes = common.MemoryBytes, a.terminal(), common.MemoryBytes
	if err := a.isTrace(cmd, name); err != nil {
		return err
	}
	var out *wholefile.File
	if o.output != "" {
		if _, err := outputFor(o.output, name, 1); err != nil {
			return err
		}
		if out, err = wholefile.Create(o.output); err != nil {
			return &outputError{path: o.output, err: err}
		}
		defer out.Discard()
	}
	found, err := pass.Predict(cmd.Context(), name, q, o.read)
	if err != nil {
		var option *trace.OptionError
		if errors.As(err, &option) {
			return asUsage(errors.New("--" + err.Error()))
		}
		return named(name, err)
	}
	if out != nil {
		if err := keepPredicted(out, o.output, found); err != nil {
			return err
		}
	}
	if err := a.print(format, o.document(name, found)); err != nil {
		return err
	}
	return found.Stopped
}

// named puts a file's name before an error that says none.
func named(name string, err error) error {
	if errors.Is(err, pass.ErrInterrupted) || strings.Contains(err.Error(), name) {
		return err
	}
	return &moduleError{name, err}
}

// isTrace tests that a file can be read once for each number of cores.
func (a *app) isTrace(cmd *cobra.Command, name string) error {
	if name == "-" {
		return usagef("standard input can be read once, and a prediction reads the trace for each number of cores; give a file")
	}
	in, err := pass.Open(cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	switch {
	case in.IsProfile:
		return usagef(in.Name, " is a profile, and how work is divided can only be told from the trace; give that")
	case in.IsModule:
		return usagef(in.Name, " is LLVM IR, which tells nothing of a run; give the trace of one: stackglass cc -- clang -fopenmp …, then OMP_NUM_THREADS=1 ./program")
	case in.IsByfl:
		return usagef(in.Name, " is a result of Byfl, which holds no references; give a trace")
	case in.Bytes == 0:
		return usagef(in.Name, " can be read once, and a prediction reads the trace for each number of cores; give a file")
	}
	return nil
}

// keepPredicted writes the profile of the one number of cores.
func keepPredicted(out *wholefile.File, path string, found *pass.Predicted) error {
	err := found.Results[len(found.Results)-1].Profile.EncodeTo(out)
	if err == nil {
		err = out.Commit()
	}
	if err != nil {
		return &outputError{path: path, err: err}
	}
	return nil
}

// document lays out what was found.
func (o *multicoreOptions) document(name string, found *pass.Predicted) *report.Document {
	or := func(word, otherwise string) report.Value {
		if word == "" {
			word = otherwise
		}
		return report.TextOf(word)
	}
	first := &found.Results[0]
	d := &report.Document{Schema: "stackglass.multicore", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(name)},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf(first.Header.Format)},
		{Key: "division", Label: "divided by", Value: or(o.words.Division, "iterations")},
		{Key: "schedule", Label: "schedules", Value: or(o.words.Schedule, "as the program asks")},
		{Key: "interleave", Label: "order of references", Value: or(o.words.Interleave, "round-robin")},
	}}
	if first.Report != nil {
		d.Input = append(d.Input, report.Fact{Key: "regions", Label: "parallel regions", Value: report.Count(first.Report.Regions)})
	}
	if o.processor != "" {
		d.Input = append(d.Input, report.Fact{Key: "processor", Label: "processor", Value: report.TextOf(o.processor)})
	}
	if o.windows != "" {
		d.Input = append(d.Input, report.Fact{Key: "windows", Label: "windows", Value: report.TextOf(o.windows)})
	}
	if o.output != "" {
		d.Input = append(d.Input, report.Fact{Key: "profile", Label: "kept in", Value: report.TextOf(o.output)})
	}
	for _, t := range predict.Tables(found.Results) {
		if o.by == t.Key || o.by == "" && (t.Key == "rates" || t.Key == "speedup") {
			d.Tables = append(d.Tables, withoutEmpty(t))
		}
	}
	if found.Stopped != nil {
		d.Warnings = append(d.Warnings, name+": the trace is damaged, and this covers what comes before that")
	}
	if n := found.BadRecords; n > 0 {
		d.Warnings = append(d.Warnings, name+": "+plural(n, "record")+" could not be read and left out; the first: "+found.FirstBad.Error())
	}
	for _, note := range predict.Notes(found.Results) {
		d.Warnings = append(d.Warnings, phrase(note))
	}
	if o.processor != "" {
		d.Warnings = append(d.Warnings, "times leave out: "+strings.Join(predict.NotModelled(), "; "))
	}
	return d
}

// phrase is a sentence as it stands behind a colon.
func phrase(sentence string) string {
	sentence = strings.TrimSuffix(sentence, ".")
	if len(sentence) > 1 && sentence[0] >= 'A' && sentence[0] <= 'Z' && (sentence[1] >= 'a' && sentence[1] <= 'z' || sentence[1] == ' ') {
		return string(sentence[0]-'A'+'a') + sentence[1:]
	}
	return sentence
}

// withoutEmpty leaves out columns without any value.
func withoutEmpty(t report.Table) report.Table {
	for column := len(t.Columns) - 1; column >= 0; column-- {
		if slices.ContainsFunc(t.Rows, func(row []report.Value) bool { return !report.Equal(row[column], report.None()) }) || len(t.Rows) == 0 {
			continue
		}
		t.Columns = slices.Delete(t.Columns, column, column+1)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], column, column+1)
		}
	}
	return t
}
