package command

import (
	"strconv"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// sampledPass describes the repeated analysis of the trace with one setting of the sample. The
// duration is the shortest time of all repetitions.
type sampledPass struct {
	text     string // in the syntax of sample.Parse; "" means that every access is analysed
	found    *loadedFile
	duration time.Duration
}

const (
	// number of passes for each sample; the passes for different samples alternate
	timedPasses = 3
	longPass    = 5 * time.Second // a longer pass is not repeated
)

// runValidateSampling implements validate --sampling.
func (a *app) runValidateSampling(s *simulation, name string, texts []string) error {
	r := s.r
	if r.firstSet("cache", "hierarchy", "fail-if") != "" {
		return usagef("--sampling cannot be combined with --cache, --hierarchy or --fail-if; omit these options")
	}
	line, err := r.cmd.Flags().GetUint32("line")
	if err == nil && !profile.ValidLineBytes(line) {
		err = usagef("--line ", strconv.FormatUint(uint64(line), 10), ": not a power of two from 8 to 4096")
	}
	if err != nil {
		return err
	}
	if r.sample != "" {
		return usagef("--sample cannot be combined with --sampling; use --sampling to name the samples to validate")
	}
	if name == "-" {
		return usagef("-: the trace is read once for each sample, but standard input can be read only once; give a file")
	}
	passes := []sampledPass{{}}
	for _, text := range texts {
		if _, err := sample.Parse(text); err != nil {
			return asUsage(err)
		}
		passes = append(passes, sampledPass{text: text})
	}
	for range timedPasses {
		for i := range passes {
			if err := a.runPass(r, name, line, &passes[i]); err != nil {
				return err
			}
		}
		if passes[0].duration > longPass {
			break
		}
	}
	full := passes[0].found
	truth, err := full.newRun(r).Locality(ask.New(ask.VerbOf("curve")).With("line", strconv.FormatUint(uint64(line), 10)))
	if err != nil {
		return askUsageError(err)
	}
	d := &report.Document{Schema: "stackglass.validate-sampling", Version: 1, Input: full.facts(line)}
	d.Tables = []report.Table{samplesTable(passes, truth, line), sampleErrors(passes[1:], truth, line)}
	for _, p := range passes[1:] {
		d.Warnings = append(d.Warnings, p.found.warnings...)
	}
	return a.answer(full, r.format, d)
}

// runPass runs a pass, and updates the shortest time.
func (a *app) runPass(r *readOptions, name string, line uint32, p *sampledPass) error {
	r.sample = p.text
	defer func() { r.sample = "" }()
	o, err := r.options(a, []uint32{line})
	if err != nil {
		return err
	}
	o.Spec.Analyses = analysis.Locality
	in, err := pass.Open(r.cmd.Context(), name, a.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.IsProfile {
		return usagef(in.Name, " is a profile; give the trace, which is read once for each sample")
	}
	begin := time.Now()
	result, err := in.Analyze(r.cmd.Context(), o)
	if err != nil {
		return err
	}
	if took := time.Since(begin); p.found == nil || took < p.duration {
		p.duration = took
	}
	p.found = &loadedFile{Result: result, name: in.Name}
	p.found.warnings = p.found.resultWarnings()
	return result.Stopped
}

// samplesTable returns a table with a row for each sample, and a row for the analysis without
// sampling.
func samplesTable(passes []sampledPass, truth *profile.Locality, line uint32) report.Table {
	t := report.Table{Key: "samples", Title: "Samples (each time is for a complete pass over the trace, including reading)", Columns: report.Columns(
		"sample", "accuracy", "analysed=accesses analysed", "samples", "seconds=time (s)",
		"references_per_second=references per second", "speed_up=speed-up")}
	for i := range passes {
		p := &passes[i]
		text, samples, analysed := "none: every access", report.None(), report.Ratio(1)
		found := p.found.Profile
		read := found.Totals.AllReferences()
		l := found.LocalityAt(line)
		if s := found.Sampled; s != nil {
			text, read = p.text, s.Read
			analysed = report.Share(l.Accesses(), truth.Accesses())
			if len(s.Sizes) > 0 {
				samples, analysed = report.Count(s.Sizes[0].Samples), report.Share(s.Sizes[0].Analysed, truth.Accesses())
			}
		}
		t.Add(report.TextOf(text), report.Ratio(profile.Accuracy(l, truth)), analysed, samples, report.Decimal(p.duration.Seconds()),
			report.Decimal(float64(read)/p.duration.Seconds()), report.Decimal(passes[0].duration.Seconds()/p.duration.Seconds()))
	}
	return t
}

// sampleErrors returns a table of estimated and exact misses. It has a row for each sample and each
// power-of-two cache size up to the footprint.
func sampleErrors(passes []sampledPass, truth *profile.Locality, line uint32) report.Table {
	t := report.Table{Key: "errors", Title: "Misses of a fully associative LRU cache, as estimated by each sample and exactly", Columns: report.Columns(
		"sample", "capacity_lines=capacity (lines)", "misses", "exact_misses=exact", "error=off by",
		"misses_low=at least", "misses_high=at most", "within=exact within")}
	want := profile.NewCurve(truth.Histogram(trace.AllKinds))
	for i := range passes {
		found := passes[i].found.Profile
		got := profile.NewCurve(found.LocalityAt(line).Histogram(trace.AllKinds))
		scale := 1.
		if found.Sampled.Mode == profile.OnOffSample && got.Accesses > 0 {
			scale = float64(want.Accesses) / float64(got.Accesses) // an on-off sample counts only the sampled intervals
		}
		for _, lines := range answers.Powers(want) {
			exact, estimate := want.Misses(lines), float64(got.Misses(lines))*scale
			low, high, within := report.None(), report.None(), report.None()
			if b, ok := found.MissBounds(line, lines); ok {
				low, high, within = report.Count(b.Low), report.Count(b.High), report.YesNo(b.Low <= exact && exact <= b.High)
			}
			t.Add(report.TextOf(passes[i].text), report.Count(lines), report.Real(estimate), report.Count(exact),
				errorCell(estimate, float64(exact)), low, high, within)
		}
	}
	return t
}

// addSampling adds the options of validate --sampling.
func addSampling(s *simulation) *[]string {
	list := s.r.cmd.Flags().StringSlice("sampling", nil, "compare these `SAMPLES`, in the syntax of --sample, with an analysis of all accesses")
	s.r.cmd.Flags().Uint32("line", analysis.DefaultLineBytes, "the size of a cache line in `BYTES`, for --sampling")
	return list
}
