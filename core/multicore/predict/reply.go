package predict

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // registers the analyses of samples
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// Ask converts a MulticoreQuestion, whose fields are in text form, to a Question. The error is a
// *trace.OptionError, or states why the processor is invalid.
func Ask(words answers.MulticoreQuestion) (q Question, err error) {
	for _, n := range words.Cores {
		q.Cores = append(q.Cores, int(min(n, multicore.MostCores+1)))
	}
	if words.Division != "" {
		if q.Options.Division, err = multicore.ParseDivision(words.Division); err != nil {
			return q, err
		}
	}
	if words.Schedule != "" {
		schedule, err := multicore.ParseSchedule(words.Schedule)
		if err != nil {
			return q, err
		}
		q.Options.Schedule = &schedule
	}
	if words.Interleave != "" {
		if q.Options.Order.Policy, err = interleave.ParsePolicy(words.Interleave); err != nil {
			return q, err
		}
	}
	if words.Protocol != "" {
		if q.Protocol, err = simulate.ParseProtocol(words.Protocol); err != nil {
			return q, err
		}
	}
	q.Options.Order.Seed, q.Seed = words.Seed, words.Seed
	if q.Options.Private.Ranges, err = ParseRanges(words.Private); err != nil {
		return q, err
	}
	for _, line := range words.Machine {
		if err := q.Hierarchy.Add(line); err != nil {
			return q, err
		}
	}
	if words.Processor != "" {
		if q.Processor, err = pipeline.Named(words.Processor); err != nil {
			return q, err
		}
	}
	if err := q.parseSDCM(words.SDCM, words.Seed); err != nil {
		return q, err
	}
	q.Keep = int(words.Keep)
	return q, q.Check()
}

// parseSDCM parses the option sdcm, which selects the sample from which SDCM makes its predictions.
func (q *Question) parseSDCM(text string, seed uint64) error {
	kind, more, found := strings.Cut(text, ",")
	q.Stacks = kind == "" || kind == "sample" || kind == "all"
	if q.Sample = FewLines(seed); kind == "all" {
		q.Sample = nil
	}
	switch {
	case kind == "windows":
		w, err := ParseWindows(more, seed)
		if err != nil {
			return err
		}
		q.Windows = []WindowSampling{w}
	case found || !q.Stacks && kind != "none":
		return &trace.OptionError{Option: "sdcm", Got: text, Want: "sample, all, windows or none"}
	}
	return nil
}

// ParseWindows parses the options for sampling windows, such as
// rate=0.05,least=100,weights=printed. Each option may be omitted. The error is a
// *trace.OptionError.
func ParseWindows(text string, seed uint64) (w WindowSampling, err error) {
	w = WindowSampling{Seed: seed, Weights: blocksample.Counted}
	if text == "" {
		return w, nil
	}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "rate":
			if w.Looked.Rate, err = strconv.ParseFloat(value, 64); err != nil || w.Looked.Rate == 0 {
				w.Looked.Rate, err = -1, nil
			}
		case "least":
			if w.Looked.Least, err = strconv.Atoi(value); err != nil || w.Looked.Least == 0 {
				return w, &trace.OptionError{Option: "least", Got: value, Want: "2 to " + strconv.Itoa(blocksample.MostLeast) + " windows per block"}
			}
		case "weights":
			w.Weights, err = blocksample.ParseWeighting(value)
		default:
			return w, &trace.OptionError{Option: "sdcm", Got: "windows," + text, Want: "windows, optionally followed by rate=, least= and weights=, for example windows,rate=0.05,least=100"}
		}
		if err == nil {
			err = w.Check()
		}
		if w.Looked.Rate < 0 {
			var option *trace.OptionError
			if errors.As(err, &option) {
				option.Got = value
			}
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

// String returns a description of how windows are sampled.
func (w *WindowSampling) String() string {
	l := w.Looked.WithDefaults()
	return strconv.FormatFloat(100*l.Rate, 'g', 3, 64) + " % of the executions of each block, at least " + strconv.Itoa(l.Least) + ", seed " +
		strconv.FormatUint(w.Seed, 10) + ", weights " + w.Weights.String()
}

// FewLines returns options for a sample of at most 1,024 lines. With this sample, the analysis of
// the stacks takes about as long as the rest of the prediction.
func FewLines(seed uint64) analysis.Sampling {
	return sample.Options{Mode: profile.LinesSample, Lines: 1024, Seed: seed}
}

// ParseRanges parses ascending, disjoint ranges of addresses, such as 0x7f00-0x7fff. A range
// includes both of its ends. The error is a *trace.OptionError.
func ParseRanges(list []string) (ranges []multicore.Range, err error) {
	for _, text := range list {
		bad := func(want string) error { return &trace.OptionError{Option: "private", Got: text, Want: want} }
		first, last, found := strings.Cut(text, "-")
		low, err := strconv.ParseUint(strings.TrimSpace(first), 0, 64)
		if err != nil || !found {
			return nil, bad("a range of addresses, for example 0x7f00-0x7fff")
		}
		high, err := strconv.ParseUint(strings.TrimSpace(last), 0, 64)
		switch {
		case err != nil || high == ^uint64(0):
			return nil, bad("a range of addresses, for example 0x7f00-0x7fff")
		case high < low:
			return nil, bad("a range whose end is not below its start")
		case len(ranges) > 0 && low < ranges[len(ranges)-1].High:
			return nil, bad("ranges in ascending order that do not overlap")
		}
		ranges = append(ranges, multicore.Range{Low: low, High: high + 1})
	}
	return ranges, nil
}

// Reply returns the results so far.
func (r *Run) Reply() *answers.Reply {
	a := &answers.Reply{More: r.failed == nil && (r.now != nil || len(r.plan) > 0)}
	if r.failed != nil {
		a.Problem = r.failed.Error()
	}
	if a.Tables = Tables(r.results); len(r.results) > 0 {
		a.Tables = append(a.Tables, Facts(&r.q, r.results))
	}
	a.Notes = Notes(r.results)
	if r.q.Processor != nil {
		a.Unmodelled = NotModelled()
	}
	for i := range r.results {
		if p := r.results[i].Profile; p != nil {
			a.Bytes = p.Encode()
		}
	}
	return a
}

// Facts returns the table of facts about the trace (see [answers.CoresFacts]).
func Facts(q *Question, results []Result) report.Table {
	t := report.Table{Key: answers.CoresFacts, Columns: []report.Column{{Key: "key"}, {Key: "value"}}}
	t.Add(report.TextOf("trace_format"), report.TextOf(results[0].Header.Format))
	if r := results[0].Report; r != nil {
		t.Add(report.TextOf("regions"), report.Count(r.Regions))
	}
	if len(q.Windows) > 0 {
		t.Add(report.TextOf("windows"), report.TextOf(q.Windows[0].String()))
	}
	return t
}

// Tables returns the tables of the reply to an answers.MulticoreQuestion.
func Tables(results []Result) []report.Table {
	tables := []report.Table{rates(results)}
	if t := sampling(results); len(t.Rows) > 0 {
		tables = append(tables, t)
	}
	if slices.ContainsFunc(results, func(r Result) bool { return r.Time != nil }) {
		tables = append(tables, speedUps(results))
	}
	return append(tables, workTable(results), byCore(results), loops(results), notes(results))
}

func rates(results []Result) report.Table {
	t := report.Table{Key: "rates", Title: "Hit ratios (local: of the accesses that reach the level; global: of all accesses)", Columns: report.Columns(
		"cores", "level", "method", "caches", "accesses", "hits", "misses", "coherence_misses=of coherence", "global_rate=global", "global_off=±",
		"local_rate=local", "mean_rate=mean of caches", "mean_off=±", "low=at least", "high=at most")}
	for i := range results {
		r := &results[i]
		for k := range r.Levels {
			addRates(&t, r.Cores, &r.Levels[k])
			if r.Modelled != nil {
				addRates(&t, r.Cores, &r.Modelled[k])
			}
			for _, w := range r.Windowed {
				addRates(&t, r.Cores, &w[k])
			}
		}
	}
	return t
}

func addRates(t *report.Table, cores int, l *Level) {
	coherence, mean, low, high, off, meanOff := report.None(), report.None(), report.None(), report.None(), report.None(), report.None()
	if l.Method == hierarchy.Simulated {
		coherence = report.Real(l.Coherence)
	}
	if l.Averaged {
		mean = report.Ratio(l.Mean)
	}
	if l.Bounded {
		low, high = report.Ratio(l.Low), report.Ratio(l.High)
	}
	if l.Method == hierarchy.WindowedSDCM {
		if off = report.Ratio(l.Off); l.MeanOff > 0 {
			meanOff = report.Ratio(l.MeanOff)
		}
	}
	t.Add(report.Count(uint64(cores)), report.TextOf(l.Cache.Name), report.TextOf(string(l.Method)), report.Count(uint64(l.Caches)),
		report.Real(l.Accesses), report.Real(l.Hits), report.Real(l.Misses), coherence, report.Ratio(l.Global), off, report.Ratio(l.Local), mean, meanOff, low, high)
}

func sampling(results []Result) report.Table {
	t := report.Table{Key: "sampling", Title: "Basis of the estimates", Columns: report.Columns("cores", "level", "method",
		"windows=executions looked at", "executions=of", "lines=lines followed", "accesses=accesses looked at", "of", "share")}
	for i := range results {
		r := &results[i]
		for k := range r.Levels {
			list := r.Windowed
			if r.Modelled != nil {
				list = append([][]Level{r.Modelled}, list...)
			}
			for _, levels := range list {
				x := levels[k].Looked
				if x == nil {
					continue
				}
				windows, of, lines := report.None(), report.None(), report.None()
				if x.Windows > 0 {
					windows, of = report.Count(x.Windows), report.Count(x.Of)
				}
				if x.Lines > 0 {
					lines = report.Count(x.Lines)
				}
				t.Add(report.Count(uint64(r.Cores)), report.TextOf(levels[k].Cache.Name), report.TextOf(string(levels[k].Method)), windows, of, lines,
					report.Count(x.Accesses), report.Count(x.All), report.Ratio(float64(x.Accesses)/float64(max(1, x.All))))
			}
		}
	}
	return t
}

func byCore(results []Result) report.Table {
	t := report.Table{Key: "cores", Title: "By core", Columns: report.Columns(
		"cores", "core", "level", "accesses", "hits", "misses", "coherence_misses=of coherence", "local_rate=hit rate")}
	for i := range results {
		for core := range results[i].Cores {
			for k := range results[i].Levels {
				l := &results[i].Levels[k]
				c := &l.Cores[core]
				local := report.None()
				if c.Accesses > 0 {
					local = report.Ratio(rate(c.Misses, c.Accesses))
				}
				t.Add(report.Count(uint64(results[i].Cores)), report.Count(uint64(core)), report.TextOf(l.Cache.Name),
					report.Real(c.Accesses), report.Real(c.Hits), report.Real(c.Misses), report.Real(c.Coherence), local)
			}
		}
	}
	return t
}

func workTable(results []Result) report.Table {
	t := report.Table{Key: "work", Title: "Work of each core", Columns: report.Columns("cores", "core", "references", "cycles=busy cycles")}
	for i := range results {
		r := &results[i]
		for core := range r.Cores {
			cycles := report.None()
			if r.Time != nil {
				cycles = report.Real(r.Time.Cores[core])
			}
			t.Add(report.Count(uint64(r.Cores)), report.Count(uint64(core)), report.Count(r.ByCore[core]), cycles)
		}
	}
	return t
}

func loops(results []Result) report.Table {
	t := report.Table{Key: "loops", Title: "Worksharing loops, and how their iterations were divided", Columns: report.Columns(
		"cores", "source", "schedule", "divided=divided as", "times=executions", "iterations", "fewest=fewest in one")}
	for i := range results {
		if results[i].Report == nil {
			continue
		}
		for _, l := range results[i].Report.Loops {
			t.Add(report.Count(uint64(results[i].Cores)), report.TextOf(formatPlace(l.Place)), report.TextOf(l.Asked), report.TextOf(l.Used.String()),
				report.Count(l.Times), report.Count(l.Iterations), report.Count(l.Fewest))
		}
	}
	return t
}

// formatPlace returns a source location as text, such as file.c:12.
func formatPlace(p trace.Place) string {
	if p.File == "" || p.Line == 0 {
		return ""
	}
	return p.File[strings.LastIndexByte(p.File, '/')+1:] + ":" + strconv.FormatUint(uint64(p.Line), 10)
}

func speedUps(results []Result) report.Table {
	t := report.Table{Key: "speedup", Title: "Run time, and losses as shares of the total time of all cores", Columns: report.Columns(
		"cores", "cycles", "milliseconds=time (ms)", "speedup=speed-up", "efficiency", "serial=serial work", "imbalance", "copied=copied work",
		"caches", "bandwidth", "limit")}
	for i := range results {
		x := results[i].Time
		if x == nil {
			continue
		}
		ms := report.None()
		if x.Seconds > 0 {
			ms = report.Decimal(1000 * x.Seconds)
		}
		t.Add(report.Count(uint64(results[i].Cores)), report.Real(x.Cycles), ms, report.Decimal(x.SpeedUp), report.Ratio(x.Efficiency),
			report.Ratio(x.Serial), report.Ratio(x.Imbalance), report.Ratio(x.Copied), report.Ratio(x.Caches), report.Ratio(x.Bandwidth), report.TextOf(string(x.Limit)))
	}
	return t
}

// Notes returns the caveats of all results (see [answers.CoresNotes]).
func Notes(results []Result) []string {
	t := notes(results)
	return answers.CoresNotes(&t, len(results))
}

func notes(results []Result) report.Table {
	t := report.Table{Key: "notes", Columns: report.Columns("cores", "text=note")}
	for i := range results {
		r := &results[i]
		say := func(text string) { t.Add(report.Count(uint64(r.Cores)), report.TextOf(text)) }
		if r.Idle > 0 {
			say(plural(r.Idle, "core has no work and is", "cores have no work and are") + " excluded from the means over caches.")
		}
		for _, w := range r.Warnings {
			say(sentence(string(w)))
		}
		if r.Untimed != "" {
			say(r.Untimed)
		}
	}
	return t
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "One " + one
	}
	return strconv.Itoa(n) + " " + many
}

// sentence returns text with an initial capital letter and a full stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	if c := text[0]; c >= 'a' && c <= 'z' {
		text = string(c-'a'+'A') + text[1:]
	}
	return strings.TrimSuffix(text, ".") + "."
}
