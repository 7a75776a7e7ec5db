package state

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// Advice is a finding of a diagnosis, with whole sentences for the page.
type Advice struct {
	_                                                incomparable
	Rank, Kind, Where, Saves, Why, Fix, How, Illegal string

	File   string // "" if the finding is not about one source location
	Line   uint32
	Misses string  // misses in each level, before and after the change; "" if not counted
	Tab    Tab     // the tab that shows more about the finding; TabDiagnosis: there is no such tab
	Share  float64 // the share of the run's cycles that the fix saves, 0 to 1

	Least, Most string // the lengths of the bars for the bounds of Share; equal if the fix was tried
}

// tabsOfVerbs maps a verb of the command to the view that shows its answer.
var tabsOfVerbs = map[string]Tab{
	"sites": TabCode, "loops": TabLoops, "communication": TabCommunication, "threads": TabThreads, "pipeline": TabBlocks,
	"blocks": TabBlocks, "curve": TabCaches, "what-if": TabCaches, "sets": TabAssociativity, "histogram": TabLocality,
}

// Diagnosis returns the verdict and the first findings in a reply. The parameter "most" is the
// maximum number of findings.
func Diagnosis(reply *answers.Reply, most int) (verdict string, list []Advice) {
	if t := reply.Table("verdict"); t != nil && len(t.Rows) > 0 {
		verdict = Spaced(t.Rows[0][0].Plain()) + "."
	}
	t := reply.Table("findings")
	if t == nil {
		return verdict, nil
	}
	for _, row := range t.Rows[:min(most, len(t.Rows))] {
		text := func(key string) string { return row[t.Index(key)].Plain() }
		number := func(key string) float64 { x, _ := row[t.Index(key)].Number(); return x }
		a := Advice{Rank: text("rank"), Kind: kindTitle(text("kind")), File: text("file"), Line: uint32(number("line")), Why: Spaced(upper(text("why"))) + ".", Fix: Spaced(upper(text("fix"))) + ".",
			How: Spaced(text("how")), Share: number("saved_share"), Misses: missesOf(reply.Table("misses"), text("rank"))}
		if a.Where = a.File; a.Line > 0 {
			a.Where += ":" + strconv.FormatUint(uint64(a.Line), 10)
		}
		if function := text("function"); function != "" {
			a.Where += " in " + function
		}
		if data := text("data"); data != "" {
			a.Where += ", data: " + data
		}
		if a.Where == "" {
			a.Where = "the whole run"
		}
		if illegal := text("illegal_if"); illegal != "" {
			a.Illegal = Spaced("Not allowed if " + illegal + ".")
		}
		verb, _, _ := strings.Cut(text("more"), " ")
		a.Tab = tabsOfVerbs[verb]
		least, top := number("saved_least_share"), number("saved_most_share")
		if row[t.Index("tried")].Plain() == "true" || top <= least {
			least, top = a.Share, a.Share
		}
		if a.Saves = wholePercent(least); top > least {
			a.Saves += " to " + wholePercent(top)
		}
		a.Saves = "saves " + a.Saves + " of the cycles"
		a.Least, a.Most = strconv.FormatFloat(least, 'g', 3, 64), strconv.FormatFloat(top, 'g', 3, 64)
		list = append(list, a)
	}
	return verdict, list
}

// Tried reports whether a reply is an incomplete diagnosis, and returns the number of changes that
// were tried so far.
func Tried(reply *answers.Reply) (tried uint64, partial bool) {
	if reply == nil || reply.Table("progress") == nil {
		return 0, false
	}
	n, _ := reply.Table("progress").Rows[0][0].Number()
	return uint64(n), true
}

// Assumptions returns the heading above the notes of a diagnosis.
func Assumptions(notes []string) string {
	return Plural(uint64(len(notes)), "assumption", "assumptions") + " behind these estimates"
}

// kindTitle returns the title of a kind of problem.
func kindTitle(kind string) string {
	if kind == "tlb" || kind == "numa" {
		return strings.ToUpper(kind)
	}
	return upper(strings.ReplaceAll(kind, "-", " "))
}

// missesOf returns a text about the effect of a fix on the misses. The text contains the levels whose
// misses change by at least 1 %. The parameter "rank" identifies the fix.
func missesOf(t *report.Table, rank string) string {
	if t == nil {
		return ""
	}
	var levels []string
	for _, row := range t.Rows {
		if row[t.Index("rank")].Plain() != rank {
			continue
		}
		number := func(key string) float64 { x, _ := row[t.Index(key)].Number(); return x }
		if before, after := number("misses_before"), number("misses_after"); max(before-after, after-before) < 0.01*before {
			continue
		}
		shown := func(key string) string { return row[t.Index(key)].Shown(words) }
		levels = append(levels, row[t.Index("level")].Plain()+nbsp+shown("misses_before")+nbsp+"→"+nbsp+shown("misses_after"))
	}
	if levels == nil {
		return ""
	}
	return "Misses: " + strings.Join(levels, ", ") + "."
}

func wholePercent(of float64) string { return strconv.FormatFloat(100*of, 'f', 0, 64) + thin + "%" }

// Diagnoses compares the diagnoses of both runs. Diagnoses returns a sentence about the change of
// the estimated cycles, and a table of the problems.
func (c *Comparison) Diagnoses(replies [2]*answers.Reply, h hierarchy.Hierarchy, processor string) (headline string, problems *Table) {
	q := c.repliedQuestion("diagnose", "findings", replies, h, ask.Arg{Name: "processor"})
	if processor != "" {
		q = q.With("processor", processor)
	}
	a := c.ask(q, "findings")
	problems = a.table("Problems in A and B", "", func(j *answers.Compared) *Table {
		t := j.Pick("saved_cycles").Wide(j.Key)
		return show(&t, answerWords, nil, "kind", "function", "data", "status", "saved_cycles_a", "saved_cycles_b")
	})
	if problems.Rows == 0 {
		problems = nil
	}
	return Spaced(answers.Headline(a.joined, [2]uint64{c.A.Profile.Totals.AllReferences(), c.B.Profile.Totals.AllReferences()})), problems
}
