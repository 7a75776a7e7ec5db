package ask

import (
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Range is the argument that selects a part of the run. Only some verbs accept it.
var Range = Arg{Name: "range", Help: manual("analyse only this `PART` of the run, such as 10%..35% or 2000000..5000000 (reference numbers), rounded to whole windows of the timeline")}

// RangeOf returns the windows [from, to) of the timeline that the range argument selects. Both ends
// of the range are rounded to the nearest window border, but the range contains at least one
// window.
func (r *Run) RangeOf(q Question) (from, to int, err error) {
	t := r.Profile.Timeline
	if t == nil {
		return 0, 0, r.NoTimeline()
	}
	all := r.Profile.Totals.AllReferences()
	low, high, err := ParseRange(q.Text(Range.Name), all)
	if err != nil {
		return 0, 0, err
	}
	n, start, size := len(t.Windows), float64(t.First*t.References), float64(t.References)
	if n == 0 {
		return 0, 0, r.Cannot(NoReference)
	}
	at := func(reference float64) int { return int(min(max(math.Round((reference-start)/size), 0), float64(n))) }
	from, to = min(at(low), n-1), at(high)
	if high >= float64(all) {
		to = n
	}
	return from, max(to, from+1), nil
}

// ParseRange parses a part of a run, such as 10%..35% or 2000000..5000000. It returns the number of
// the first reference of the part, and the number of the reference after the part. Percentages are
// shares of the parameter all, which is the number of references in the run. If the part has no
// end, it ends with the run. The error is a [*trace.OptionError].
func ParseRange(text string, all uint64) (from, to float64, err error) {
	first, last, found := strings.Cut(text, "..")
	from, ok := parseEnd(first, 0, all)
	to, ok2 := parseEnd(last, float64(all), all)
	if !found || !ok || !ok2 || from >= to {
		return 0, 0, &trace.OptionError{Option: Range.Name, Got: text, Want: "the beginning and the end of a part of the run, for example 10%..35% or 2000000..5000000 (references)"}
	}
	return from, to, nil
}

// parseEnd parses one end of a range: a number of references, or a share of all references. If the
// text is empty, it returns the default value, the parameter end.
func parseEnd(text string, end float64, all uint64) (n float64, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return end, true
	}
	text, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		n *= float64(all) / 100
	}
	return n, err == nil && n >= 0
}

// NoTimeline explains why the profile has no timeline.
func (r *Run) NoTimeline() error {
	switch {
	case r.Profile.Sampled != nil:
		return r.Cannot("a sample has no timeline; analyze the whole trace, without --sample")
	case r.Profile.Sites == nil:
		return r.noSites()
	}
	return r.Cannot("the profile has no timeline, because an older version wrote it; analyze the trace again")
}

// Within returns the run, or the part of the run that the range argument selects. A part is a [Run]
// with the same profile, but with a ranker that counts only the selected windows. Within also adds
// a fact about the part to the answer.
func (r *Run) Within(q Question, d *report.Document) (*Run, error) {
	if !q.Given(Range.Name) {
		return r, nil
	}
	from, to, err := r.RangeOf(q)
	if err != nil {
		return nil, err
	}
	part, ok := r.Part(from, to)
	if !ok {
		return nil, r.NoTimeline()
	}
	t := r.Profile.Timeline
	first, end := t.Bounds(from, to, r.Profile.Totals.AllReferences())
	d.Input = append(d.Input,
		report.Fact{Key: "from_reference", Label: "from reference", Value: report.Count(first)},
		report.Fact{Key: "to_reference", Label: "to reference", Value: report.Count(end)},
		report.Fact{Key: "window_references", Label: "window (references)", Value: report.Count(t.References)})
	return part, nil
}

// Part returns the part of the run in the windows [from, to) of its timeline. Part caches the last
// result, because users often ask several questions about the same part.
func (r *Run) Part(from, to int) (*Run, bool) {
	if whole := r.Ranker(); r.part == nil || r.partOf != [2]int{from, to} {
		if whole == nil {
			return nil, false
		}
		ranker, ok := whole.Within(from, to)
		if !ok {
			return nil, false
		}
		part := *r
		part.ranker, part.part = ranker, nil
		r.part, r.partOf = &part, [2]int{from, to}
	}
	return r.part, true
}

// rangeEstimates returns a warning for each level whose misses in a part of the run are estimates.
func rangeEstimates(levels []attribution.Attribution) (list []string) {
	for i := range levels {
		l := &levels[i]
		if l.Part == nil || l.Exact || l.Level.Misses == 0 {
			continue
		}
		text := l.Level.Cache.Name + ": the misses in this part of the run are estimated from its stack distances"
		if l.Rest > 0 {
			text += "; conflict misses without a known source location are assumed to be spread evenly over the run"
		}
		list = append(list, text+". The misses of all parts add up to the misses of the whole run")
	}
	return list
}

// whatIfWithin answers a what-if question about a part of the run.
func (r *Run) whatIfWithin(q Question, d *report.Document) error {
	part, err := r.Within(q, d)
	if err != nil {
		return err
	}
	levels, doubts, err := part.Ranker().Attribute(q.Machine)
	if err != nil {
		return err
	}
	from, to, err := r.RangeOf(q)
	if err != nil {
		return err
	}
	first, end := r.Profile.Timeline.Bounds(from, to, r.Profile.Totals.AllReferences())
	p := attribution.Predicted(q.Machine, levels, end-first)
	d.Input = append(r.Facts(0), d.Input...)
	d.Tables = answers.Predicted(q.Machine, p)
	d.Warnings = append(r.Told(doubts), rangeEstimates(levels)...)
	if len(q.Machine.TLBs) > 0 {
		d.Warnings = append(d.Warnings, "the misses of the TLBs are not predicted for a part of the run; to predict them, analyse only this part with stackglass analyze --range")
	}
	return nil
}

// curveWithin returns the table of the verb curve for a part of the run.
func (r *Run) curveWithin(q Question, d *report.Document) (t report.Table, err error) {
	part, err := r.Within(q, d)
	if err != nil {
		return t, err
	}
	if line := r.Profile.Sites.LineBytes; q.Line() != line {
		return t, &trace.OptionError{Option: Line.Name, Got: strconv.Itoa(int(q.Line())), Want: strconv.Itoa(int(line)) + ", the line size of the timeline"}
	}
	curve := part.Ranker().Curve()
	if q.Is("steps") {
		return answers.Steps(curve, q.Line()), nil
	}
	capacities := answers.Breakpoints(curve)
	if q.Brief {
		capacities = answers.Powers(curve)
	}
	return answers.CurveAt(curve, q.Line(), capacities), nil
}
