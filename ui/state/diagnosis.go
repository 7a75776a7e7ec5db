package state

import (
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
)

// DiagnosisQuestion asks what is wrong with a run on a machine and a processor; "": the usual
// one.
func DiagnosisQuestion(h hierarchy.Hierarchy, processor string) answers.Question {
	words := []string{"diagnose"}
	if processor != "" {
		words = append(words, "processor="+processor)
	}
	for _, line := range h.Lines() {
		words = append(words, "machine="+line)
	}
	return answers.Question{Of: answers.OfVerb, Words: words}
}

// Advice is a finding of a diagnosis, as the page shows it.
type Advice struct {
	Rank, Kind, Where, Saves, Why, Fix, How, Illegal string
	Share                                            float64 // of the run's cycles that the fix saves, 0 to 1
}

// Diagnosis is the verdict of a reply, and its first findings, most of them at most.
func Diagnosis(reply *answers.Reply, most int) (verdict string, list []Advice) {
	if t := reply.Table("verdict"); t != nil && len(t.Rows) > 0 {
		verdict = t.Rows[0][0].Plain() + "."
	}
	t := reply.Table("findings")
	if t == nil {
		return verdict, nil
	}
	for _, row := range t.Rows[:min(most, len(t.Rows))] {
		text := func(key string) string { return row[t.Index(key)].Plain() }
		number := func(key string) float64 { x, _ := row[t.Index(key)].Number(); return x }
		p := Advice{Rank: text("rank"), Kind: text("kind"), Where: text("file"), Why: upper(text("why")) + ".", Fix: upper(text("fix")) + ".",
			How: text("how"), Illegal: text("illegal_if"), Share: number("saved_share")}
		if line := row[t.Index("line")]; line.IsNumber() {
			p.Where += ":" + line.Plain()
		}
		if function := text("function"); function != "" {
			p.Where += " in " + function
		}
		least, top := number("saved_least_share"), number("saved_most_share")
		if p.Saves = "saves " + wholePercent(p.Share); row[t.Index("tried")].Plain() != "true" && top > least {
			p.Saves = "saves " + wholePercent(least) + " to " + wholePercent(top)
		}
		list = append(list, p)
	}
	return verdict, list
}

func wholePercent(of float64) string { return strconv.FormatFloat(100*of, 'f', 0, 64) + " %" }
