package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/multicore/larger"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/validate"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/ppt"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

type multicoreOptions struct {
	r         *readOptions
	at, check string // values of --at (the input for which a run is predicted) and --check (a recorded run with this input)
	output    string
	analyses  string
	ppt       pptFiles
	out       *wholefile.File // file for the profile; may be nil
	found     *pass.Predicted
}

// addMulticoreOptions adds options to the verb "multicore": for writing the profile of the threads,
// and for predicting a larger input.
func (a *app) addMulticoreOptions(cmd *cobra.Command, o *verbCommand) {
	m := &multicoreOptions{r: o.r}
	f := cmd.Flags()
	f.StringVar(&m.at, "at", "", "predict a run with this `INPUT`, for example n=512, from runs with smaller inputs, given as n=64:FILE n=96:FILE …")
	f.StringVar(&m.check, "check", "", "compare the prediction with a recorded run on the input given by --at; `FILE` is the single-threaded trace of this run")
	f.StringVarP(&m.output, "output", "o", "", "write the profile of the synthesised threads to this `FILE` (only for one number of cores)")
	f.StringVar(&m.analyses, "analyses", "default", "include this `LIST` of analyses in the profile, as in analyze")
	m.ppt.flags(f)
	setFileCompletions(cmd, "processor", pipeline.Processors())
	cmd.Use = strings.Replace(cmd.Use, "FILE", "TRACE", 1)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if m.at == "" {
			return oneFile(cmd, args)
		}
		return someFiles(cmd, args)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if m.at != "" {
			return a.predictLargerInput(o, m, args)
		}
		if m.check != "" {
			return usagef("--check ", m.check, ": --at is missing; give the input of the run in this file, for example --at n=512")
		}
		defer func() {
			if m.out != nil {
				m.out.Discard()
			}
		}()
		return a.ask(o, args[0])
	}
	o.beforeLoad = func(q ask.Question) error {
		words, err := program.CoresQuestion(q)
		if err == nil && m.output != "" && len(words.Cores) != 1 {
			err = usagef("-o ", m.output, ": a profile contains the threads for only one number of cores; give one number after --cores")
		}
		if err == nil {
			_, err = m.question(words)
		}
		return err
	}
	o.afterLoad = func(l *loadedFile, run *ask.Run) (err error) {
		if m.output != "" {
			if _, err := outputFor(m.output, l.name, 1); err != nil {
				return err
			}
			if m.out, err = create(m.output); err != nil {
				return err
			}
		}
		run.Predict = func(words answers.MulticoreQuestion) (*answers.Reply, error) { return a.predict(m, l, words) }
		return nil
	}
	o.beforePrint = func(l *loadedFile, _ ask.Question, d *report.Document) error {
		if m.out != nil {
			if err := commit(m.out, m.output, m.found.Results[len(m.found.Results)-1].Profile); err != nil {
				return err
			}
			d.Input = append(d.Input, report.Fact{Key: "profile", Label: "written to", Value: report.TextOf(m.output)})
		}
		var doubts []string
		if l.Stopped != nil {
			doubts = append(doubts, l.name+": the trace is damaged, so the prediction covers only the part of the trace before the damage")
		}
		if n := m.found.BadRecords; n > 0 {
			doubts = append(doubts, l.name+": skipped "+plural(n, "record")+" that could not be read; the first: "+m.found.FirstBad.Error())
		}
		d.Warnings = append(doubts, d.Warnings...)
		return nil
	}
}

// question parses the texts in a MulticoreQuestion, and returns the question for package predict.
func (m *multicoreOptions) question(words answers.MulticoreQuestion) (q predict.Question, err error) {
	processor := words.Processor
	if words.Processor = ""; m.output != "" {
		words.Keep = words.Cores[0]
	}
	if q, err = predict.Ask(words); err != nil {
		var option *trace.OptionError
		if errors.As(err, &option) && slices.Contains([]string{"rate", "least", "weights"}, option.Option) {
			return q, usagef("--sdcm ", words.SDCM, ": ", err.Error())
		}
		return q, askUsageError(err)
	}
	if processor != "" {
		if q.Processor, err = chosenProcessor(processor); err != nil {
			return q, err
		}
	}
	if m.analyses != "" {
		if q.Spec.Analyses, err = analysis.ParseAnalyses(m.analyses); err != nil {
			return q, askUsageError(err)
		}
	}
	return q, nil
}

// passError is an error that occurred while a trace was read. It is not a usage error.
type passError struct{ err error }

func (e *passError) Error() string { return e.err.Error() }

// predict predicts a run on several cores from the trace of one run, and returns the reply to the
// question.
func (a *app) predict(m *multicoreOptions, l *loadedFile, words answers.MulticoreQuestion) (*answers.Reply, error) {
	q, err := m.question(words)
	if err != nil {
		return nil, err
	}
	if m.found, err = a.predictOne(m, q, l.name); err != nil {
		return nil, &passError{err}
	}
	l.Stopped = m.found.Stopped
	return &answers.Reply{
		Tables:     append(predict.Tables(m.found.Results), predict.Facts(&q, m.found.Results)),
		Notes:      predict.Notes(m.found.Results),
		Unmodelled: predict.NotModelled(),
	}, nil
}

// predictOne predicts a run on several cores from one trace, which it reads once for each number of
// cores.
func (a *app) predictOne(m *multicoreOptions, q predict.Question, name string) (*pass.Predicted, error) {
	common, err := m.r.options(a, nil)
	if err != nil {
		return nil, err
	}
	read := pass.PredictOptions{Format: m.r.inputFormat, SkipBad: m.r.skipBad, Strict: m.r.strict, MemoryBytes: common.MemoryBytes, Terminal: a.terminal()}
	if err := m.ppt.readFiles(&read.PPT); err != nil {
		return nil, err
	}
	q.MemoryBytes = common.MemoryBytes
	found, err := pass.Predict(m.r.cmd.Context(), name, q, read)
	switch {
	case isErrorOf[*trace.OptionError](err):
		return nil, askUsageError(err)
	case err != nil && !errors.Is(err, pass.ErrInterrupted) && !strings.Contains(err.Error(), name):
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return found, err
}

// requireFile returns an error unless the input is a trace file, because a prediction reads the
// trace once for each number of cores.
func (a *app) requireFile(r *readOptions, name string) (*loadedFile, error) {
	if name == "-" {
		return nil, usagef("standard input can be read only once, but a prediction reads the trace once for each number of cores; give a file")
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	switch {
	case in.IsProfile:
		err = usagef(in.Name, " is a profile, but the division of work can only be predicted from the trace; give the trace")
	case in.IsModule:
		err = usagef(in.Name, " is LLVM IR, which contains no information about a run; give the trace of a run: stackglass cc -- clang -fopenmp …, then OMP_NUM_THREADS=1 ./program")
	case in.IsByfl:
		err = usagef(in.Name, " is a result of Byfl, which contains no references; give a trace")
	case in.Bytes == 0:
		err = usagef(in.Name, " can be read only once, but a prediction reads the trace once for each number of cores; give a file")
	}
	return &loadedFile{Result: &pass.Result{}, name: name}, err
}

// pptFiles contains the names of the additional files of a PPT trace.
type pptFiles struct{ blocks, shared, counts, bounds string }

func (p *pptFiles) flags(f *pflag.FlagSet) {
	f.StringVar(&p.blocks, "ppt-blocks", "", "for a PPT trace, read the block table from this `FILE`, whose lines have the form \"BasicBlock: ID: (function, block)\"")
	f.StringVar(&p.shared, "ppt-shared", "", "for a PPT trace, read the shared addresses from this `FILE` (shared_addresses.dat; default: the addresses in blocks of shared variables)")
	f.StringVar(&p.counts, "ppt-counts", "", "for a PPT trace, compare the trace with this `FILE` (bb_counts.dat)")
	f.StringVar(&p.bounds, "ppt-bounds", "", "for a PPT trace, compare the trace with this `FILE` (min_max_addr.dat)")
}

// readFiles parses the files whose names are the values of the options.
func (p *pptFiles) readFiles(into *sasmm.Files) error {
	if p.bounds != "" {
		into.Bounds = new(ppt.Bounds)
	}
	return cmp.Or(
		readPPT("--ppt-blocks", p.blocks, ppt.ParseBlocks, &into.Blocks),
		readPPT("--ppt-shared", p.shared, ppt.ParseShared, &into.Shared),
		readPPT("--ppt-counts", p.counts, ppt.ParseCounts, &into.Counts),
		readPPT("--ppt-bounds", p.bounds, ppt.ParseBounds, into.Bounds),
	)
}

// readPPT parses the file whose name is the value of an option, if the option is set.
func readPPT[T any](flag, name string, parse func(name string, text []byte) (T, error), into *T) error {
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return usagef(flag, " ", name, ": ", errorText(err))
	}
	*into, err = parse(name, text)
	return err
}

// predictLargerInput predicts a run with an input that was not recorded, from runs with smaller
// inputs.
func (a *app) predictLargerInput(o *verbCommand, m *multicoreOptions, args []string) error {
	switch {
	case o.r.firstSet("output", "processor", "by") != "":
		return usagef("--at: only hit ratios can be predicted for an input that was not run; leave out -o, --processor and --by")
	case o.r.firstSet("sdcm") != "":
		return usagef("--at uses all windows of each block instead of a sample; leave out --sdcm")
	}
	names, at, ok := parseParameters(m.at)
	if !ok {
		return usagef("--at ", strconv.Quote(m.at), ", want parameters, for example n=512 or n=512,m=8")
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
	runs, err := scale.parseRuns(args)
	if err != nil {
		return err
	}
	d := &report.Document{Schema: "stackglass.multicore-larger", Version: 1, Input: []report.Fact{
		{Key: "runs", Label: "runs", Value: report.ListOf(strings.Join(args, " "))},
		{Key: "at", Label: "predicted at", Value: report.TextOf(m.at)},
	}}
	one := func(q predict.Question, name string) ([]predict.Result, error) {
		if _, err := a.requireFile(o.r, name); err != nil {
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
	d.Warnings = append(d.Warnings, "the prediction assumes that the larger input takes the same paths through the code, and that each core keeps its share of the work. \"kept\" also assumes that distances within blocks do not depend on the input; \"followed\" assumes that these distances follow the trend of the runs")
	return a.print(o.r.format, d)
}

// largerTable returns a table of the predicted hit ratios of each level and, for comparison, the
// hit ratios of a real run.
func largerTable(list []larger.Result, real []predict.Result) report.Table {
	t := report.Table{Key: "larger", Title: "Global hit ratios for an input that was not run", Columns: report.Columns(
		"cores", "level", "caches", "accesses", "kept_rate=distances kept", "followed_rate=followed",
		"run_accesses=accesses in the run", "run_sdcm_rate=SDCM for the run", "run_rate=simulated",
		"kept_points=kept minus SDCM (points)", "followed_points=followed minus SDCM (points)",
		"simulated_points=followed minus simulated (points)")}
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
