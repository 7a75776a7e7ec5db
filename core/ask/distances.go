package ask

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// The verb histogram reports the number of accesses at each LRU stack distance, F(Δ).
var _ = Add(&Verb{
	Name:    "histogram",
	Title:   "Number of accesses at each stack distance",
	Args:    []Arg{Line},
	Needs:   alwaysNeeds(analysis.Locality),
	Lines:   oneLine,
	Spills:  true,
	Sums:    true,
	Missing: noDistances,
	Answer: answerAtLineSize(func(r *Run, q Question, found *profile.Locality, _ *report.Document) (t report.Table, _ error) {
		counts, cold := found.Histogram(trace.AllKinds)
		if q.Brief {
			t = answers.BinnedHistogram(counts, cold)
		} else {
			t = answers.Histogram(counts, cold)
		}
		answers.FromSample(&t, r.Profile)
		return t, nil
	}),
})

// answerAtLineSize returns a function for Verb.Answer. The function adds a table that is computed
// from the stack distances for the line size in question.
func answerAtLineSize(table func(*Run, Question, *profile.Locality, *report.Document) (report.Table, error)) func(*Run, Question, *report.Document) error {
	return func(r *Run, q Question, d *report.Document) error {
		found, err := r.Locality(q)
		if err != nil {
			return err
		}
		t, err := table(r, q, found, d)
		d.Input, d.Tables = append(r.Facts(q.Line()), d.Input...), []report.Table{t}
		return err
	}
}

// The verb curve reports the misses m(C) of a fully associative LRU cache for every capacity C.
var _ = Add(&Verb{
	Name:  "curve",
	Title: "Misses at every cache capacity",
	Args:  []Arg{Line, {Name: "steps", Kind: Switch, Help: manual("print only the sizes at which the miss ratio falls steeply")}, Range},
	Needs: func(q Question) analysis.Analyses {
		if q.Given(Range.Name) {
			return analysis.Locality | analysis.Sites
		}
		return analysis.Locality
	},
	Lines:   oneLine,
	Spills:  true,
	Sums:    true,
	Missing: noDistances,
	Answer: answerAtLineSize(func(r *Run, q Question, found *profile.Locality, d *report.Document) (t report.Table, _ error) {
		if q.Given(Range.Name) {
			return r.curveWithin(q, d)
		}
		both, err := r.withBeside(q, found)
		if err != nil {
			return t, err
		}
		var curves []*profile.Curve
		for _, of := range both {
			curves = append(curves, profile.NewCurve(of.Histogram(trace.AllKinds)))
		}
		if q.Is("steps") {
			t = answers.Steps(curves[0], q.Line())
			answers.FromSample(&t, r.Profile)
			return t, nil
		}
		var capacities []uint64
		if q.Brief {
			capacities = answers.Powers(curves...)
		} else {
			capacities = answers.Breakpoints(curves...)
		}
		t = answers.CurveAt(curves[0], q.Line(), capacities)
		if q.Brief && r.Beside == nil {
			t.Title += " (to list every capacity at which misses change, use --format csv)"
		}
		answers.Bound(&t, r.Profile, q.Line(), capacities)
		return t, nil
	}),
	Compared: mostApart,
})

// mostApart returns facts about the cache size at which the miss ratios of two runs differ most.
func mostApart(runs [2]*Run, q Question) []report.Fact {
	var curves [2]*profile.Curve
	for i, r := range runs {
		found, err := r.Locality(q)
		if err != nil {
			return nil
		}
		curves[i] = profile.NewCurve(found.Histogram(trace.AllKinds))
	}
	lines := answers.MostApart(curves[0], curves[1])
	if lines == 0 {
		return nil
	}
	facts := []report.Fact{{Key: "apart_bytes", Label: "most apart in", Value: report.Bytes(lines * uint64(q.Line()))}}
	for i, c := range curves {
		side := []string{"a", "b"}[i]
		facts = append(facts, report.Fact{Key: "apart_" + side + "_misses", Label: strings.ToUpper(side) + " misses there", Value: report.Count(c.Misses(lines))},
			report.Fact{Key: "apart_" + side + "_miss_ratio", Label: "of its accesses", Value: report.Share(c.Misses(lines), c.Accesses)})
	}
	return facts
}

// The verb sets reports the misses of set-associative LRU caches.
var _ = Add(&Verb{
	Name:   "sets",
	Title:  "Misses for every number of sets and ways",
	Args:   []Arg{Line, {Name: "causes", Kind: Switch, Help: manual("split misses into cold, capacity and conflict misses")}},
	Needs:  alwaysNeeds(analysis.Sets),
	Lines:  oneLine,
	Spills: true,
	Sums:   true,
	Missing: func(p *profile.Profile) string {
		if why := noDistances(p); why != "" || p.Sampled != nil || p.Locality[0].Sets != nil {
			return why
		}
		return "the profile contains no set tables"
	},
	Answer: answerAtLineSize(func(r *Run, q Question, found *profile.Locality, d *report.Document) (t report.Table, _ error) {
		if found.Sets == nil {
			if r.Profile.Sampled == nil {
				return t, &Error{"the profile " + r.Name + " contains no set tables; analyze the trace again, by default or with --analyses sets"}
			}
			modelled := *found
			modelled.Sets = hierarchy.ModelledSets(found)
			found = &modelled
			d.Warnings = append(d.Warnings, "the sample has too few lines in each set to count misses; these numbers are predicted by the stack distance cache model (SDCM), which assigns lines to sets at random")
		}
		switch t = answers.Sets(found); {
		case q.Is("causes"):
			t = answers.SetCauses(found)
		case r.Beside != nil:
			t = listedShapes(t, q.Brief)
		case q.Brief:
			t = answers.SetsGrid(found)
		}
		answers.FromSample(&t, r.Profile)
		return t, nil
	}),
})

// listedShapes removes rows whose number of ways exceeds profile.MaxWays. In brief answers, it also
// removes rows whose number of ways is not a power of two.
func listedShapes(t report.Table, brief bool) report.Table {
	if brief {
		t.Title += ", only numbers of ways that are powers of two (for all ways, use --format csv)"
	}
	ways := t.Index("ways")
	t.Rows = slices.DeleteFunc(t.Rows, func(row []report.Value) bool {
		n, _ := row[ways].Number()
		return n > profile.MaxWays || brief && bits.OnesCount(uint(n)) != 1
	})
	return t
}

// noDistances implements Verb.Missing for verbs that need stack distances.
var noDistances = missingIf(func(p *profile.Profile) bool { return len(p.Locality) == 0 }, "the profile contains no stack distances")

// withBeside returns the stack distances of the run and, in a comparison, of the other run.
func (r *Run) withBeside(q Question, own *profile.Locality) ([]*profile.Locality, error) {
	if r.Beside == nil {
		return []*profile.Locality{own}, nil
	}
	other, err := r.Beside.Locality(q)
	return []*profile.Locality{own, other}, err
}

// Locality returns the stack distances for the line size in question.
func (r *Run) Locality(q Question) (*profile.Locality, error) {
	lineBytes := q.Line()
	if found := r.Profile.LocalityAt(lineBytes); found != nil {
		return found, nil
	}
	if len(r.Profile.Locality) == 0 {
		return nil, &Error{"the profile " + r.Name + " contains no stack distances; analyze the trace again with --analyses locality, or omit the option"}
	}
	var have []string
	for i := range r.Profile.Locality {
		have = append(have, strconv.FormatUint(uint64(r.Profile.Locality[i].LineBytes), 10))
	}
	option := "--line " + strconv.FormatUint(uint64(lineBytes), 10) + ": "
	holds := "the profile " + r.Name + " contains lines of " + strings.Join(have, ", ") + " bytes"
	if !profile.ValidLineBytes(lineBytes) {
		return nil, &Error{option + "want a power of two from 8 to 4096; " + holds}
	}
	return nil, &Error{option + holds + "; choose one of these sizes, or analyze the trace again with --lines"}
}

// The verb footprint reports the number of distinct lines in windows of every length.
var _ = Add(&Verb{
	Name:    "footprint",
	Title:   "Distinct lines in windows of every length",
	Needs:   alwaysNeeds(analysis.Footprint),
	Missing: missingIf(func(p *profile.Profile) bool { return p.Footprint == nil || p.Footprint.Accesses == 0 }, "the profile contains no footprint"),
	Answer: func(r *Run, q Question, d *report.Document) error {
		f := r.Profile.Footprint
		if f == nil {
			return r.Cannot("the profile contains no footprint; analyse the trace again with --analyses default,footprint")
		}
		t := report.Table{Key: "footprint", Title: "Distinct lines in a window, on average", Columns: report.Columns(
			"window_accesses=window (accesses)", "footprint_lines=footprint (lines)", "footprint_bytes=size",
			"growth")}
		for i := 0; profile.FootprintWindow(i) < f.Accesses; i++ {
			lines, growth := f.Average(i)
			t.Add(report.Count(profile.FootprintWindow(i)), report.Decimal(lines), report.Bytes(uint64(lines*float64(f.LineBytes)+0.5)), report.Ratio(growth))
		}
		d.Input, d.Tables = r.Facts(f.LineBytes), []report.Table{t}
		return nil
	},
})
