package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/ppt"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// multicoreOptions are those that only the command has, and the prediction.
type multicoreOptions struct {
	r         *reading
	at, check string // the input to predict for, and a run at it
	output    string
	analyses  string
	ppt       pptFiles
	out       *wholefile.File // for the profile; may be nil
	found     *pass.Predicted
}

// multicore can keep the profile of the threads, and predict for a larger input.
func (a *app) multicore(cmd *cobra.Command, o *asking) {
	m := &multicoreOptions{r: o.r}
	f := cmd.Flags()
	f.StringVar(&m.at, "at", "", "predict for the `INPUT` n=512, from runs at smaller ones: n=64:FILE n=96:FILE …")
	f.StringVar(&m.check, "check", "", "the trace of a run with one thread at that input, as a `FILE`: tell how far off the prediction is")
	f.StringVarP(&m.output, "output", "o", "", "keep the profile of the threads in this `FILE`, of one number of cores")
	f.StringVar(&m.analyses, "analyses", "default", "what to analyse for it, as analyze has it")
	m.ppt.flags(f)
	completeFiles(cmd, "processor", pipeline.Processors())
	cmd.Use = strings.Replace(cmd.Use, "FILE", "TRACE", 1)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if m.at == "" {
			return oneFile(cmd, args)
		}
		return someFiles(cmd, args)
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if m.at != "" {
			return a.runLarger(o, m, args)
		}
		if m.check != "" {
			return usagef("--check ", m.check, ": what is predicted at another input is held against that run; say which, by --at")
		}
		defer func() {
			if m.out != nil {
				m.out.Discard()
			}
		}()
		return a.ask(o, args[0])
	}
	o.check = func(q ask.Question) error {
		words, err := program.CoresQuestion(q)
		if err == nil && m.output != "" && len(words.Cores) != 1 {
			err = usagef("-o ", m.output, ": a profile is of the threads of one number of cores; give one alone behind --cores")
		}
		if err == nil {
			_, err = m.question(words)
		}
		return err
	}
	o.prepare = func(l *answerable, run *ask.Run) (err error) {
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
	o.then = func(l *answerable, _ ask.Question, d *report.Document) error {
		if m.out != nil {
			if err := commit(m.out, m.output, m.found.Results[len(m.found.Results)-1].Profile); err != nil {
				return err
			}
			d.Input = append(d.Input, report.Fact{Key: "profile", Label: "kept in", Value: report.TextOf(m.output)})
		}
		var doubts []string
		if l.Stopped != nil {
			doubts = append(doubts, l.name+": the trace is damaged, and this covers what comes before that")
		}
		if n := m.found.BadRecords; n > 0 {
			doubts = append(doubts, l.name+": "+plural(n, "record")+" could not be read and left out; the first: "+m.found.FirstBad.Error())
		}
		d.Warnings = append(doubts, d.Warnings...)
		return nil
	}
}

// question returns the question about a trace.
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
		return q, usage(err)
	}
	if processor != "" {
		if q.Processor, err = chosenProcessor(processor); err != nil {
			return q, err
		}
	}
	if m.analyses != "" {
		if q.Spec.Analyses, err = analysis.ParseAnalyses(m.analyses); err != nil {
			return q, usage(err)
		}
	}
	return q, nil
}

// passError is an error of reading a trace, rather than of the question.
type passError struct{ err error }

func (e *passError) Error() string { return e.err.Error() }

// predict answers a question about a trace.
func (a *app) predict(m *multicoreOptions, l *answerable, words answers.MulticoreQuestion) (*answers.Reply, error) {
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

// predictOne reads the trace of a run once for each number of cores.
func (a *app) predictOne(m *multicoreOptions, q predict.Question, name string) (*pass.Predicted, error) {
	common, err := m.r.options(a, nil)
	if err != nil {
		return nil, err
	}
	read := pass.PredictOptions{Format: m.r.inputFormat, SkipBad: m.r.skipBad, Strict: m.r.strict, MemoryBytes: common.MemoryBytes, Terminal: a.terminal()}
	if err := m.ppt.read(&read.PPT); err != nil {
		return nil, err
	}
	q.MemoryBytes = common.MemoryBytes
	found, err := pass.Predict(m.r.cmd.Context(), name, q, read)
	switch {
	case is[*trace.OptionError](err):
		return nil, usage(err)
	case err != nil && !errors.Is(err, pass.ErrInterrupted) && !strings.Contains(err.Error(), name):
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return found, err
}

// rereadable tests that a file can be read once for each number of cores.
func (a *app) rereadable(r *reading, name string) (*answerable, error) {
	if name == "-" {
		return nil, usagef("standard input can be read once, and a prediction reads the trace for each number of cores; give a file")
	}
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	switch {
	case in.IsProfile:
		err = usagef(in.Name, " is a profile, and how work is divided can only be told from the trace; give that")
	case in.IsModule:
		err = usagef(in.Name, " is LLVM IR, which tells nothing of a run; give the trace of one: stackglass cc -- clang -fopenmp …, then OMP_NUM_THREADS=1 ./program")
	case in.IsByfl:
		err = usagef(in.Name, " is a result of Byfl, which holds no references; give a trace")
	case in.Bytes == 0:
		err = usagef(in.Name, " can be read once, and a prediction reads the trace for each number of cores; give a file")
	}
	return &answerable{Result: &pass.Result{}, name: name}, err
}

// pptFiles names the files of PPT beside a trace.
type pptFiles struct{ blocks, shared, counts, bounds string }

func (p *pptFiles) flags(f *pflag.FlagSet) {
	f.StringVar(&p.blocks, "ppt-blocks", "", "of a trace of PPT, the block table: lines BasicBlock: ID: (function, block), as a `FILE`")
	f.StringVar(&p.shared, "ppt-shared", "", "of a trace of PPT, shared_addresses.dat, as a `FILE` (default: what blocks of shared variables refer to)")
	f.StringVar(&p.counts, "ppt-counts", "", "of a trace of PPT, bb_counts.dat, as a `FILE`: hold the trace against it")
	f.StringVar(&p.bounds, "ppt-bounds", "", "of a trace of PPT, min_max_addr.dat, as a `FILE`: hold the trace against it")
}

// read reads the files that are named.
func (p *pptFiles) read(into *sasmm.Files) error {
	for _, file := range []struct {
		flag, name string
		parse      func(name string, text []byte) error
	}{
		{"--ppt-blocks", p.blocks, func(name string, text []byte) (err error) {
			into.Blocks, err = ppt.ParseBlocks(name, text)
			return err
		}},
		{"--ppt-shared", p.shared, func(name string, text []byte) (err error) {
			into.Shared, err = ppt.ParseShared(name, text)
			return err
		}},
		{"--ppt-counts", p.counts, func(name string, text []byte) (err error) {
			into.Counts, err = ppt.ParseCounts(name, text)
			return err
		}},
		{"--ppt-bounds", p.bounds, func(name string, text []byte) error {
			bounds, err := ppt.ParseBounds(name, text)
			into.Bounds = &bounds
			return err
		}},
	} {
		if file.name == "" {
			continue
		}
		text, err := os.ReadFile(file.name)
		if err != nil {
			return usagef(file.flag, " ", file.name, ": ", reason(err))
		}
		if err := file.parse(file.name, text); err != nil {
			return err
		}
	}
	return nil
}
