package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/validate"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// multicoreValidation contains the options of validate --multicore.
type multicoreValidation struct {
	enabled    bool
	division   string
	interleave string
	windows    string
	cachegrind []string
}

// addMulticoreValidation adds the options of validate --multicore.
func addMulticoreValidation(s *simulation) *multicoreValidation {
	o := &multicoreValidation{}
	f := s.r.cmd.Flags()
	f.BoolVar(&o.enabled, "multicore", false, "compare predictions for several cores, made from a single-threaded run, with multi-threaded runs")
	f.StringVar(&o.division, "division", multicore.ByIterations.String(), "with --multicore, divide the work among the cores with this `METHOD`: iterations, region, or printed (as printed in the paper)")
	f.StringVar(&o.interleave, "interleave", interleave.RoundRobin.String(), "with --multicore, interleave the cores' references in this `ORDER`: round-robin, uniform, block or time")
	f.StringVar(&o.windows, "windows", "rate=0.01", "with --multicore, use this `SAMPLE` of block executions, for example rate=0.05,least=100,weights=corrected, or none")
	f.StringArrayVar(&o.cachegrind, "cachegrind", nil, "with --multicore, also compare the prediction for N cores with the counts in FILE, which Cachegrind wrote for a run with N threads; given as `N=FILE` (may be repeated)")
	return o
}

// numberedTrace is a trace, and the number of cores of its run.
type numberedTrace struct {
	cores int
	name  string
}

// parseNumbered parses a text of the form N=FILE or FILE. Without N, the number is 0.
func parseNumbered(text string) numberedTrace {
	number, name, found := strings.Cut(text, "=")
	if n, err := strconv.ParseUint(number, 10, 16); found && err == nil {
		return numberedTrace{int(n), name}
	}
	return numberedTrace{0, text}
}

// runValidateMulticore implements validate --multicore. The first name is the trace of a
// single-threaded run; all other names are traces of multi-threaded runs.
func (a *app) runValidateMulticore(s *simulation, o *multicoreValidation, names []string) error {
	if s.r.firstSet("fail-if", "cores", "sample") != "" {
		return usagef("--multicore: each thread runs on its own core; leave out --fail-if, --cores and --sample")
	}
	q, err := o.question(s)
	if err != nil {
		return err
	}
	ctx := s.r.cmd.Context()
	traces, err := realTraces(ctx, names[1:])
	if err != nil {
		return err
	}
	grinds := map[int]string{}
	for _, text := range o.cachegrind {
		n := parseNumbered(text)
		if n.cores == 0 {
			return usagef("--cachegrind ", text, ", want a number of threads and a file, for example 4=cachegrind.out.4")
		}
		grinds[n.cores] = n.name
	}
	d := &report.Document{Schema: "stackglass.validate-multicore", Version: 1, Input: []report.Fact{
		{Key: "file", Label: "one thread", Value: report.TextOf(names[0])},
		{Key: "division", Label: "divided by", Value: report.TextOf(o.division)},
		{Key: "interleave", Label: "order of references", Value: report.TextOf(o.interleave)},
	}}
	if len(q.Windows) > 0 {
		d.Input = append(d.Input, report.Fact{Key: "windows", Label: "windows", Value: report.TextOf(q.Windows[0].String())})
	}
	one := predict.Mimic(func() (trace.Reader, io.Closer, error) {
		r, err := rowsOf(ctx, names[0])
		return r, r, err
	})
	t := o.table()
	for _, real := range traces {
		q.Cores = []int{real.cores}
		var program *trace.Program
		row, err := validate.Compare(q, one, validate.Truth(func() (trace.Reader, error) {
			return rowsOf(ctx, real.name)
		}))
		if err != nil {
			return asMulticore(err)
		}
		if row.Threads != real.cores {
			d.Warnings = append(d.Warnings, real.name+" has "+strconv.Itoa(row.Threads)+" threads, but is compared with a prediction for "+plural(uint64(real.cores), "core"))
		}
		var grind *validate.Cachegrind
		if file := grinds[real.cores]; file != "" {
			if program, err = programOf(ctx, names[0]); err == nil {
				grind, err = readGrind(file, program)
			}
			if err != nil {
				return err
			}
		}
		addComparison(&t, &row, grind, len(q.Windows) > 0 && q.Windows[0].Weights != blocksample.Counted)
	}
	d.Tables = []report.Table{answers.WithoutEmpty(t)}
	return a.print(s.r.format, d)
}

// question returns the question that is asked for each number of cores.
func (o *multicoreValidation) question(s *simulation) (q predict.Question, err error) {
	if q.Hierarchy, err = s.hierarchy(); err != nil {
		return q, err
	}
	q.Seed, q.Stacks = s.seed, true
	if q.Protocol, err = simulate.ParseProtocol(s.protocol); err != nil {
		return q, asMulticore(err)
	}
	if q.Options.Division, err = multicore.ParseDivision(o.division); err != nil {
		return q, asMulticore(err)
	}
	if q.Options.Order.Policy, err = interleave.ParsePolicy(o.interleave); err != nil {
		return q, asMulticore(err)
	}
	q.Options.Order.Seed = s.seed
	if o.windows != "none" {
		w, err := predict.ParseWindows(o.windows, s.seed)
		if err != nil {
			return q, usagef("--windows ", o.windows, ": ", err.Error())
		}
		q.Windows = []predict.WindowSampling{w}
	}
	return q, nil
}

// asMulticore converts errors about options to usage errors, and returns other errors unchanged.
func asMulticore(err error) error {
	if isErrorOf[*trace.OptionError](err) {
		return askUsageError(err)
	}
	return err
}

// realTraces determines the number of threads of each run, and sorts the runs by this number.
func realTraces(ctx context.Context, names []string) (list []numberedTrace, err error) {
	for _, text := range names {
		n := parseNumbered(text)
		if n.cores == 0 {
			p, err := programOf(ctx, n.name)
			if err != nil {
				return nil, err
			}
			n.cores = len(p.Threads)
		}
		if n.cores < 1 || n.cores > multicore.MostCores {
			return nil, usagef(text, ": ", strconv.Itoa(n.cores), " threads, want 1 to ", strconv.Itoa(multicore.MostCores), "; give the number, for example 4=", n.name)
		}
		list = append(list, n)
	}
	slices.SortStableFunc(list, func(x, y numberedTrace) int { return cmp.Compare(x.cores, y.cores) })
	return list, nil
}

// programOf reads a trace to its end and returns its program and threads.
func programOf(ctx context.Context, name string) (*trace.Program, error) {
	r, err := rowsOf(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := trace.NewBatch(0)
	for err == nil {
		err = r.Next(b)
	}
	if err != io.EOF {
		return nil, err
	}
	p := r.Header().Program
	if p == nil {
		return &trace.Program{}, nil
	}
	return p, nil
}

func rowsOf(ctx context.Context, name string) (*pass.Rows, error) {
	if name == "-" {
		return nil, usagef("-: traces are read several times, but standard input can be read only once; give a file")
	}
	r, err := pass.OpenRows(ctx, name)
	if errors.Is(err, pass.ErrNotTrace) {
		return nil, usagef(name, ": ", err.Error())
	}
	return r, err
}

// readGrind reads Cachegrind's counts for the source files that the trace names.
func readGrind(name string, p *trace.Program) (*validate.Cachegrind, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files := map[string]bool{}
	for i := range p.Functions {
		if file := p.Functions[i].Place.File; file != "" {
			files[file] = true
		}
	}
	if len(files) == 0 {
		return nil, usagef("--cachegrind ", name, ": the trace names no source files, so the program's own functions are unknown; compile with -g")
	}
	c, err := validate.ReadCachegrind(name, f, func(file string) bool {
		for own := range files {
			if _, same := trace.CommonTail(own, file); same {
				return true
			}
		}
		return false
	})
	return &c, err
}

func (o *multicoreValidation) table() report.Table {
	return report.Table{Key: "multicore", Title: "Hit ratios of actual and predicted threads, and the error of each prediction step in percentage points", Columns: report.Columns(
		"cores", "level", "rate", "true_rate=actual", "predicted_rate=predicted",
		"difference_points=division of work (points)", "sdcm_points=SDCM (points)",
		"sampling_points=sampling (points)", "sampling_off_points=± (points)",
		"weights_points=weights (points)", "coherence_points=no coherence (points)",
		"cachegrind_rate=Cachegrind", "cachegrind_difference_points=predicted minus Cachegrind (points)", "references",
		"predicted_references=predicted references")}
}

// addComparison adds two rows for each level: the mean hit ratio of private caches, and the global
// hit ratio. If weighed is set, the weights of blocks are computed with the paper's equations.
func addComparison(t *report.Table, row *validate.Row, grind *validate.Cachegrind, weighed bool) {
	for i := range row.Levels {
		l := &row.Levels[i]
		add := func(rate string, truth, predicted float64, global bool) {
			sdcm, coherence, of, off := report.None(), report.None(), report.None(), report.None()
			sampling, sampled, weights := report.None(), report.None(), report.None()
			if global {
				sdcm = report.Decimal(l.SDCMError())
			}
			if l.HasSampled && global {
				sampling, sampled = report.Decimal(l.SamplingError()), report.Decimal(l.SampledOff)
				weights = report.Decimal(l.WeightsError())
			}
			if l.HasSampled && !global && i == 0 {
				sampling, sampled = report.Decimal(validate.Points(l.Sampled.Mean, l.Weighed.Mean)), report.Decimal(l.MeanOff)
				weights = report.Decimal(validate.Points(l.Weighed.Mean, l.Counted.Mean))
			}
			if !weighed {
				weights = report.None()
			}
			switch {
			case l.HasAlone && global:
				coherence = report.Decimal(validate.Points(l.Alone.Global, l.Predicted.Global))
			case l.HasAlone:
				coherence = report.Decimal(l.CoherenceError())
			}
			if grind != nil && global && (i == 0 || i == len(row.Levels)-1) {
				counted := grind.First()
				if i > 0 {
					counted = grind.Last()
				}
				of, off = report.Ratio(counted), report.Decimal(validate.Points(predicted, counted))
			}
			t.Add(report.Count(uint64(row.Cores)), report.TextOf(l.Cache.Name), report.TextOf(rate), report.Ratio(truth), report.Ratio(predicted),
				report.Decimal(validate.Points(predicted, truth)), sdcm, sampling, sampled, weights, coherence, of, off, report.Count(row.TrueReferences), report.Count(row.PredictedReferences))
		}
		if !l.Shared && row.Cores > 1 {
			add("mean of caches", l.Truth.Mean, l.Predicted.Mean, false)
		}
		add("global", l.Truth.Global, l.Predicted.Global, true)
	}
}
