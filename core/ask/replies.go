package ask

import (
	"cmp"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// The verbs pipeline, multicore and diagnose build their answers from replies of models. Another
// program may have computed these replies. Modelled, Predicted and Replied convert the replies to
// answers.

// TopRows is the argument that limits the number of rows of each table in human-readable answers.
var TopRows = Arg{Name: "top", Kind: Number, Default: "10", Help: "print the first `N` rows of each table (0: all rows; csv and json always contain all rows)"}

// Pipeline returns the verb "pipeline" for runs for which the models' replies are already known.
// The map contains the reply for each profile.
func Pipeline(replies map[*profile.Profile]*answers.Reply) *Verb {
	return &Verb{
		Name: "pipeline", Machine: SomeCaches, Args: []Arg{{Name: "function"}, {Name: "block"}, TopRows},
		Answer: func(r *Run, q Question, d *report.Document) error {
			r.Modelled(q, replies[r.Profile], d)
			return nil
		},
	}
}

// Replied returns a verb with the given name for runs whose replies are already known. The map
// contains the reply for each profile. The parameter main is the key of the verb's main table.
func Replied(name, main string, replies map[*profile.Profile]*answers.Reply, args ...Arg) *Verb {
	return &Verb{
		Name: name, Machine: SomeCaches, Args: args,
		Answer: func(r *Run, _ Question, d *report.Document) error {
			reply := replies[r.Profile]
			if reply.Problem != "" {
				return r.Cannot(reply.Problem)
			}
			d.Main, d.Warnings = main, reply.Notes
			for _, t := range reply.Tables {
				if t.Key != "processors" { // only the page needs the list of processors
					d.Tables = append(d.Tables, t)
				}
			}
			return nil
		},
	}
}

// Modelled converts a reply to an [answers.ModelQuestion] into an answer of the verb pipeline.
func (r *Run) Modelled(q Question, reply *answers.Reply, d *report.Document) {
	d.Input = []report.Fact{{Key: "file", Label: "file", Value: report.TextOf(r.Name)}}
	if r.Module == nil {
		d.Input = r.Facts(0)
		if len(q.Machine.Levels) > 0 {
			d.Input = append(d.Input, answers.ThreadFacts(r.Profile, q.Machine)...)
		}
	}
	if t := reply.Table("program"); t != nil {
		for _, row := range t.Rows {
			name := row[0].Plain()
			label := strings.Replace(name, "instruction", "LLVM IR instruction", 1)
			d.Input = append(d.Input, report.Fact{Key: strings.ReplaceAll(name, " ", "_"), Label: label, Value: row[1]})
		}
	}
	for _, note := range reply.Notes {
		d.Warnings = append(d.Warnings, ModelAdvice(note))
	}
	d.Warnings = append(d.Warnings, "not modelled: "+strings.Join(reply.Unmodelled, "; "))
	for _, key := range r.modelTables(q) {
		whole := reply.Table(key)
		if whole == nil || len(whole.Rows) == 0 {
			continue
		}
		t := *whole
		if t.Index("number") == 0 {
			t = answers.PickColumns(t, indices(1, len(t.Columns))...)
		}
		if most := q.Number("top"); most > 0 && q.Brief && uint64(len(t.Rows)) > most && key != "bounds" {
			t.Rows = t.Rows[:most]
			t.Title += ", the first " + q.Text("top")
		}
		d.Tables = append(d.Tables, t)
	}
}

// modelTables returns the keys of the tables in an answer. In a comparison, the answer contains
// only tables about the same function and block in both runs.
func (r *Run) modelTables(q Question) []string {
	keys := []string{"functions", "blocks", "bounds", "schedule"}
	switch {
	case r.Beside == nil:
		return keys
	case q.Given("block"):
		return keys[:3]
	case q.Given("function"):
		return keys[:2]
	}
	return keys[:1]
}

func indices(first, last int) (list []int) {
	for i := first; i < last; i++ {
		list = append(list, i)
	}
	return list
}

// ModelAdvice converts a note of the models into a warning, and adds the command-line options that
// avoid the problem.
func ModelAdvice(note string) string {
	text := strings.TrimSuffix(note, ".")
	if note == answers.NoHierarchy {
		text += "; add one, for example --hierarchy ryzen-9950x or --cache L1=32KiB,8,latency=4 --cache memory=latency=200"
	}
	return text
}

// Predicted converts a reply to an [answers.MulticoreQuestion] into an answer of the verb
// multicore. The answer contains only the table whose key is the parameter by. If this parameter is
// "", the answer contains the main tables.
func (r *Run) Predicted(q answers.MulticoreQuestion, by string, reply *answers.Reply, d *report.Document) {
	d.Input = []report.Fact{{Key: "file", Label: "file", Value: report.TextOf(r.Name)}}
	text := func(key, label, value string) {
		d.Input = append(d.Input, report.Fact{Key: key, Label: label, Value: report.TextOf(value)})
	}
	known := func(key, label string) {
		t := reply.Table(answers.CoresFacts)
		for i := 0; t != nil && i < len(t.Rows); i++ {
			if row := t.Rows[i]; row[0].Plain() == key {
				d.Input = append(d.Input, report.Fact{Key: key, Label: label, Value: row[1]})
			}
		}
	}
	known("trace_format", "trace format")
	text("division", "divided by", cmp.Or(q.Division, "iterations"))
	text("schedule", "schedules", cmp.Or(q.Schedule, "as in the program"))
	text("interleave", "order of references", cmp.Or(q.Interleave, "round-robin"))
	known("regions", "parallel regions")
	if q.Processor != "" {
		text("processor", "processor", q.Processor)
	}
	known("windows", "windows")
	for _, t := range reply.Tables {
		if by == t.Key || by == "" && (t.Key == "rates" || t.Key == "speedup") {
			d.Tables = append(d.Tables, answers.WithoutEmpty(t))
		}
	}
	for _, note := range reply.Notes {
		d.Warnings = append(d.Warnings, Phrase(note))
	}
	if q.Processor != "" {
		d.Warnings = append(d.Warnings, "times leave out: "+strings.Join(reply.Unmodelled, "; "))
	}
}

// Phrase converts a sentence into a clause that can follow a colon: it lowercases the first letter
// and removes the full stop.
func Phrase(sentence string) string {
	sentence = strings.TrimSuffix(sentence, ".")
	if len(sentence) > 1 && sentence[0] >= 'A' && sentence[0] <= 'Z' && (sentence[1] >= 'a' && sentence[1] <= 'z' || sentence[1] == ' ') {
		return string(sentence[0]-'A'+'a') + sentence[1:]
	}
	return sentence
}
