package program

import (
	"math"
	"path"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/measured"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Measured is the verb that reports what hardware counters measured, and compares the measurements
// with the prediction for a profile. The run may have a profile, measurements, or both.
var Measured = ask.Add(&ask.Verb{
	Name:    "measured",
	Use:     "[--measurement FILE …] [--hierarchy NAME]",
	Title:   "Measurements of perf and likwid, beside the prediction",
	Machine: ask.UsualCaches,
	Args: []ask.Arg{
		{Name: "measurement", Kind: ask.List, Help: "compare the profile with the measurements in this `FILE`, written by perf script, perf stat -x, or likwid-perfctr -O (may be repeated)"},
		{Name: "by", Default: string(attribution.Line), Words: []string{"line", "function"}, Help: "group samples by this `UNIT`: line (source line) or function"},
		ask.TopRows,
	},
	Needs: func(q ask.Question) analysis.Analyses {
		of := analysis.Locality | analysis.Sites | analysis.Sharing | analysis.Sets
		if len(q.Caches().TLBs) > 0 {
			of |= analysis.Pages
		}
		return of
	},
	Lines:    ask.LevelLines,
	Measures: true,
	Missing:  func(*profile.Profile) string { return "a profile contains no measurements" },
	Answer:   measure,
})

func measure(r *ask.Run, q ask.Question, d *report.Document) error {
	var m measured.Measurements
	if r.Measured != nil {
		if err := m.Add(r.Name, r.Measured); err != nil {
			return &ask.Error{Text: err.Error()}
		}
	}
	for _, name := range q.List("measurement") {
		text, err := r.ReadFile(q.With("measurement", name), "measurement")
		if err == nil {
			err = m.Add(name, text)
		}
		if err != nil {
			return &ask.Error{Text: err.Error()}
		}
	}
	if len(m.Samples)+len(m.Counts) == 0 {
		return r.Cannot("the file contains no measurements; name a file with the output of perf script or perf stat -x, with --measurement FILE")
	}
	if len(m.Samples) > 0 && q.Text("by") == "line" && !m.HasSourceLines() {
		q = q.With("by", "function") // otherwise, functions would be compared with predictions for lines
		d.Warnings = append(d.Warnings, "the samples contain no source lines, so they are grouped by function; print source lines with \"perf script -F +srcline\", or use --by function")
	}
	o := measured.Options{ByFunction: q.Text("by") == "function", LineBytes: uint64(q.Caches().Levels[0].LineBytes)}
	if q.Brief {
		o.Top = int(min(q.Number("top"), math.MaxInt))
	}
	var p *measured.Prediction
	if r.Profile != nil {
		var err error
		if p, err = predictMeasured(r, q, d); err != nil {
			return err
		}
	} else {
		d.Input = []report.Fact{{Key: "file", Label: "file", Value: report.TextOf(r.Name)}}
	}
	if len(m.Samples) > 0 {
		d.Input = append(d.Input, report.Fact{Key: "samples", Label: "samples", Value: report.Count(uint64(len(m.Samples)))})
	}
	for _, t := range m.Tables(o, p) {
		d.Tables = append(d.Tables, answers.WithoutEmpty(t))
	}
	d.Warnings = append(d.Warnings, m.Warnings(p)...)
	return nil
}

// predictMeasured predicts the numbers that measurements are compared with.
func predictMeasured(r *ask.Run, q ask.Question, d *report.Document) (*measured.Prediction, error) {
	h := q.Caches()
	predicted, doubts, err := r.Asker().Predict(h, nil)
	if err != nil {
		return nil, err
	}
	d.Input = append(r.Facts(0), answers.CacheFact(h))
	d.Warnings = append(d.Warnings, r.Told(doubts)...)
	references := &r.Profile.Totals.References
	p := &measured.Prediction{
		Loads:  float64(references[trace.Load] + references[trace.Modify] + references[trace.RangeRead]),
		Stores: float64(references[trace.Store] + references[trace.Modify] + references[trace.RangeWrite]),
		Memory: predicted.MemoryAccesses,
		Cycles: predicted.AverageCycles * float64(predicted.References),
	}
	for _, l := range predicted.Levels {
		p.Levels = append(p.Levels, measured.Level{Name: l.Cache.Name, Accesses: l.Accesses, Misses: l.Misses})
	}
	if tlbs, err := r.Asker().Translate(h); err != nil {
		d.Warnings = append(d.Warnings, "page walks were not predicted: "+err.Error())
	} else if n := len(tlbs.Levels); n > 0 {
		p.Translations, p.PageWalks = tlbs.Levels[0].Accesses, tlbs.Levels[n-1].Misses
	}
	return p, addMeasuredCode(r, q, p)
}

// addMeasuredCode adds the shares of the misses of L1 by function or source line. perf prints only
// the last element of a file's path.
func addMeasuredCode(r *ask.Run, q ask.Question, p *measured.Prediction) error {
	if r.Profile.Sites == nil {
		return nil
	}
	by := attribution.By(q.Text("by"))
	s, _, err := r.Attributed(q, by)
	if err != nil {
		return err
	}
	shares, total := map[string]float64{}, 0.0
	for _, row := range r.Ranker().Rows(s.Levels, by, 0) {
		total += row.Misses[0]
		name := r.FunctionName(row.Function)
		if by == attribution.Line && row.Line != 0 {
			name = path.Base(row.File) + ":" + strconv.FormatUint(uint64(row.Line), 10)
		}
		shares[name] += row.Misses[0]
	}
	p.Misses = func(function, source string) (float64, bool) {
		name := function
		if by == attribution.Line && source != "" {
			name = path.Base(source)
		}
		misses, known := shares[name]
		return misses / total, known && total > 0
	}
	return nil
}
