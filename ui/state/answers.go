package state

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Answers contains the documents that answer questions about a run, and the tables that show these
// documents on the page. Documents and tables are created when they are first needed. Only the
// answers to the last few questions are kept, because a document about a long run has a million
// rows.
type Answers struct {
	Run       *ask.Run
	documents map[string]*report.Document
	tables    map[string]*Table
}

// The maximum numbers of documents and tables that are kept.
const (
	keptDocuments = 4
	keptTables    = 16
)

// NewAnswers returns the answers about a profile with the given name.
func NewAnswers(name string, p *profile.Profile) *Answers {
	return &Answers{Run: ask.NewRun(name, p), documents: map[string]*report.Document{}, tables: map[string]*Table{}}
}

// Answer answers a question; the error is for the user.
func (a *Answers) Answer(q ask.Question) (*report.Document, error) {
	words := strings.Join(append(q.Words(), q.Machine.Name), "\n")
	if d := a.documents[words]; d != nil {
		return d, nil
	}
	d, err := a.Run.Answer(q)
	if err != nil {
		return nil, err
	}
	if len(a.documents) >= keptDocuments {
		clear(a.documents)
	}
	a.documents[words] = d
	return d, nil
}

// document returns a function that answers a question with a document. If there is no answer, the
// document contains the error as a warning.
func (a *Answers) document(q ask.Question) func() *report.Document {
	return answered(q, a.Answer)
}

// documentOf returns a function that answers a question about a run.
func documentOf(run *ask.Run, q ask.Question) func() *report.Document {
	return answered(q, run.Answer)
}

func answered(q ask.Question, answer func(ask.Question) (*report.Document, error)) func() *report.Document {
	return func() *report.Document {
		d, err := answer(q)
		if err != nil {
			return &report.Document{Schema: "stackglass." + q.Verb.Name, Version: 1, Warnings: []string{err.Error()}}
		}
		return d
	}
}

// cachedTable returns the table with the given name, which is computed only on the first call.
func (a *Answers) cachedTable(name string, make func() *Table) *Table {
	if a.tables[name] == nil {
		if len(a.tables) >= keptTables {
			clear(a.tables)
		}
		a.tables[name] = make()
	}
	return a.tables[name]
}

// table returns the first table of an answer, reduced to the given columns. If there is no answer,
// the caption states the reason. If the parameter "caption" is "", the table keeps its title. The
// parameters "where" and "keys" are passed to the function "show".
func (a *Answers) table(caption string, q ask.Question, where map[string]string, keys ...string) *Table {
	d, err := a.Answer(q)
	if err != nil {
		return &Table{Caption: upper(err.Error())}
	}
	q.Brief = false // exports must contain all rows
	t := show(&d.Tables[0], answerWords, where, keys...).setDocument(a.document(q))
	t.Caption = cmp.Or(caption, t.Caption)
	return t
}

// AnsweredTable returns a table of a reply from the answer program, or nil if the reply lacks this
// table.
func AnsweredTable(reply *answers.Reply, key string) *Table {
	t := reply.Table(key)
	if t == nil {
		return nil
	}
	return show(t, words, nil).setReply(reply, key)
}

// VerbQuestion returns a question that asks the answer program to run a verb of the stackglass
// command for a hierarchy. Each argument has the form name=value.
func VerbQuestion(verb string, h hierarchy.Hierarchy, args ...string) answers.Question {
	words := append([]string{verb}, args...)
	for _, line := range h.Lines() {
		words = append(words, "machine="+line)
	}
	return answers.Question{Of: answers.OfVerb, Words: words}
}

// question returns a question for a verb of the command. If the verb has a line size as an
// argument, the question is about the line size in view.
func (v *View) question(verb string) ask.Question {
	q := ask.New(ask.VerbOf(verb))
	if q.Verb.Arg("line") != nil {
		q = q.With("line", strconv.FormatUint(v.LineBytes, 10))
	}
	return v.inRange(q)
}

// answerWords formats the values of answers. For narrow columns, briefWords formats the values with
// three significant digits. Real numbers are estimates, and are marked with ≈.
var (
	answerWords = report.Words{Count: Exact, Size: Bytes, Share: Percent, Decimal: threeDigits, Real: func(x float64) string { return about + Count(x) }}
	briefWords  = report.Words{Count: SI, Size: Bytes, Share: Percent, Decimal: threeDigits, Real: func(x float64) string { return about + SI(uint64(math.Round(x))) }}
)
