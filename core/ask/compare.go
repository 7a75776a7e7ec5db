package ask

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Summary is the default verb of a comparison. [Verbs] does not contain Summary, because Summary
// needs two runs.
var Summary = &Verb{
	Name:  "summary",
	Args:  []Arg{Line},
	Needs: alwaysNeeds(analysis.Default),
	Lines: oneLine,
	Answer: func(r *Run, _ Question, d *report.Document) error {
		if !slices.ContainsFunc(r.Profile.Locality, func(l profile.Locality) bool { return r.Beside.Profile.LocalityAt(l.LineBytes) != nil }) {
			return &Error{r.Name + " and " + r.Beside.Name + " have no line size in common; analyze both again with the same --lines"}
		}
		d.Tables = answers.Summary(r.Profile)
		return nil
	},
}

// Compare asks two runs the same question and joins their answers table by table. The parameter
// userText is the question as the user wrote it. The caller must add the joined tables to the
// document. The error names the run that has no answer.
func Compare(runs [2]*Run, q Question, userText string) (*report.Document, []answers.Compared, error) {
	d := &report.Document{Schema: "stackglass.compare", Version: 1}
	var tables [2][]report.Table
	var doubts [2][]string
	for i := range runs {
		run := *runs[i]
		run.Beside = runs[1-i]
		answer, err := run.Answer(q)
		if err != nil {
			return nil, nil, run.withRunName(err)
		}
		runs[i].Profile, runs[i].Warnings = run.Profile, run.Warnings // a replay replaces both
		tables[i], d.Main = answer.Tables, answer.Main
		doubts[i] = slices.DeleteFunc(answer.Warnings, func(text string) bool { return slices.Contains(run.Warnings, text) })
	}
	d.Input = comparedFacts(runs, q, userText)
	compared := join(runs, d, tables, doubts)
	var references [2]uint64
	for i, run := range runs {
		if run.Profile != nil {
			references[i] = run.Profile.Totals.AllReferences()
		}
	}
	if text := answers.Headline(compared, references); text != "" {
		d.Input = append(d.Input, report.Fact{Key: "headline", Label: "in short", Value: report.TextOf(text)})
	}
	if q.Verb.Compared != nil {
		d.Input = append(d.Input, q.Verb.Compared(runs, q)...)
	}
	return d, compared, nil
}

// withRunName prefixes an error with the name of the run, unless the error already contains this name.
func (r *Run) withRunName(err error) error {
	if err == ErrStopped || strings.Contains(err.Error(), r.Name) {
		return err
	}
	if errors.As(err, new(*Error)) || errors.As(err, new(*trace.OptionError)) {
		return &Error{r.Name + ": " + err.Error()}
	}
	return err
}

// Mismatches returns the differences between the analyses of two runs: see [answers.Mismatches].
func Mismatches(runs [2]*Run) []string {
	return answers.Mismatches(runs[0].Profile, runs[1].Profile, func() bool {
		// The profile of a replay contains too little to identify a run.
		return runs[0].Replay == nil && runs[0].digest() == runs[1].digest()
	})
}

// digest returns the digest of the profile. Computing the digest takes as long as encoding the
// profile, so digest stores the result.
func (r *Run) digest() string {
	if r.Digest == "" {
		sum := r.Profile.Digest()
		r.Digest = hex.EncodeToString(sum[:])
	}
	return r.Digest
}

// join joins the tables of two answers, and adds the warnings of both answers to the document.
func join(runs [2]*Run, d *report.Document, tables [2][]report.Table, doubts [2][]string) []answers.Compared {
	d.Warnings = slices.Concat(runs[0].Warnings, runs[1].Warnings)
	if runs[0].Profile != nil && runs[1].Profile != nil {
		d.Warnings = append(d.Warnings, Mismatches(runs)...)
	}
	for i, list := range doubts {
		for _, w := range list {
			both := slices.Contains(doubts[1-i], w)
			switch {
			case both && i == 0, !both && strings.HasPrefix(w, runs[i].Name+": "):
				d.Warnings = append(d.Warnings, w)
			case !both:
				d.Warnings = append(d.Warnings, runs[i].Name+": "+w)
			}
		}
	}
	if a, b := runs[0].Profile, runs[1].Profile; a != nil && b != nil && len(a.Sources) > 0 && len(b.Sources) > 0 {
		answers.MatchLines(tables, runs[0].Files(), runs[1].Files())
	}
	compared := answers.Join(tables[0], tables[1])
	for i := range compared {
		if doubt := compared[i].Doubt; doubt != "" {
			d.Warnings = append(d.Warnings, doubt)
		}
	}
	return compared
}

// comparedFacts returns facts that identify both runs and the question.
func comparedFacts(runs [2]*Run, q Question, on string) []report.Fact {
	facts := []report.Fact{{Key: "on", Label: "compared on", Value: report.TextOf(on)}}
	for i, side := range []string{"a", "b"} {
		label := strings.ToUpper(side)
		facts = append(facts, report.Fact{Key: side + "_file", Label: label, Value: report.TextOf(runs[i].Name)})
		if p := runs[i].Profile; p != nil {
			facts = append(facts,
				report.Fact{Key: side + "_references", Label: "references in " + label, Value: report.Count(p.Totals.AllReferences())},
				report.Fact{Key: side + "_complete", Label: label + " is complete", Value: report.YesNo(!p.State.Partial)})
		}
	}
	if len(q.Machine.Levels) == 0 && q.Verb.Arg(Line.Name) != nil {
		facts = append(facts, report.Fact{Key: "line_bytes", Label: "line size (bytes)", Value: report.Count(uint64(q.Line()))})
	}
	return facts
}
