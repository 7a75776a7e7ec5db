package state

import (
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// countersSchema names the JSON of counters, as the command does.
const countersSchema = "stackglass.counters"

// words writes values as the page does.
var words = report.Words{Count: Exact, Real: significant, Share: Percent}

// about stands before what is no exact number.
const about = "≈ "

// predictedWords are those of tables whose numbers with a fraction are a model's.
var predictedWords = report.Words{Count: Exact, Real: func(x float64) string { return about + Count(x) }, Share: Percent}

// CounterTables are the tables of a profile's counters, by their keys, in order:
// the program's, or the one of functions or blocks.
func CounterTables(p *profile.Profile, by answers.CountersBy, sort string) (keys []string, tables map[string]*Table) {
	tables = map[string]*Table{}
	if by == answers.ByProgram {
		for _, whole := range answers.CounterTables(p) {
			shown := whole
			if whole.Key == "counters" || whole.Key == "ratios" { // people read the names only
				shown = answers.PickColumns(whole, 2, 1)
			}
			keys = append(keys, whole.Key)
			tables[whole.Key] = newCounterTable(shown, whole, "")
		}
		return keys, tables
	}
	if sort == "" {
		sort = "bytes"
	}
	whole := answers.CountersOf(p.Counters, by, sort)
	keys = append(keys, whole.Key)
	tables[whole.Key] = newCounterTable(answers.NarrowCounters(whole, sort), whole, sort)
	return keys, tables
}

// newCounterTable shows a table; whole is what is exported. Tables that are
// sorted by a column can be sorted by any.
func newCounterTable(brief, whole report.Table, sorted string) *Table {
	return newReportTable(brief, whole, sorted, words)
}

// newReportTable shows a report's table in a style.
func newReportTable(brief, whole report.Table, sorted string, style report.Words) *Table {
	t := &Table{Caption: brief.Title, Rows: len(brief.Rows), Sort: sorted, Source: &whole}
	for i, c := range brief.Columns {
		column := Column{Name: c.Label, Words: !numbers(brief.Rows, i)}
		if sorted != "" {
			column.Key = c.Key
		}
		t.Columns = append(t.Columns, column)
	}
	t.Row = func(i int) []string {
		cells := make([]string, len(brief.Rows[i]))
		for j, v := range brief.Rows[i] {
			cells[j] = shown(v, style)
		}
		return cells
	}
	return t
}

// shown writes a value with the page's minus, and the sign of a difference next
// to its digits: ≈ −12.
func shown(v report.Value, style report.Words) string {
	text := v.Shown(style)
	if !v.IsNumber() {
		return text
	}
	text = strings.Replace(text, "-", "−", 1)
	for _, sign := range [...]string{"+", "−"} {
		if rest, ok := strings.CutPrefix(text, sign+about); ok {
			return about + sign + rest
		}
	}
	return text
}

// numbers tells whether a column has a number in it.
func numbers(rows [][]report.Value, column int) bool {
	for _, row := range rows {
		if row[column].IsNumber() {
			return true
		}
	}
	return false
}

// CounterDefinitions says what each counter and what follows from them means.
func CounterDefinitions(p *profile.Profile) *Table {
	var list []profile.Meaning
	for c := range profile.NumCounters {
		if c < profile.RangesRead || c > profile.RangeBytesWritten {
			list = append(list, c.Meaning())
		}
	}
	sum := p.Counters.Program()
	for _, d := range sum.Derive(p.Counters.UniqueBytes) {
		list = append(list, d.Meaning)
	}
	return &Table{
		Caption: "What each number means",
		Columns: []Column{{Name: "number", Words: true}, {Name: "meaning", Words: true}},
		Rows:    len(list),
		Row:     func(i int) []string { return []string{list[i].Label, list[i].Text} },
	}
}

// MissingCounters says in sentences what a profile's counters leave out, and
// why.
func MissingCounters(p *profile.Profile) (list []string) {
	for _, m := range answers.NotCounted(p) {
		list = append(list, upper(m)+".")
	}
	return list
}

// operations is the finding of what the program does for each byte it moves.
func (v *View) operations() (Finding, bool) {
	f := Finding{ID: "operations", Title: "Work", Tab: TabCounters}
	c := v.Profile.Counters
	if c == nil || !c.Ops {
		return f, false
	}
	sum := c.Program()
	for _, d := range sum.Derive(0) {
		value := significant(d.Value)
		switch {
		case d.Key == "bytes_per_flop":
			f.Text = "This run moves " + value + " bytes for each flop, " + SI(sum[profile.Flops]) + " flops in all."
		case d.Key == "bytes_per_operation" && f.Text == "":
			f.Text = "This run makes no flops; it moves " + value + " bytes for each integer operation."
		case d.Key == "ops_per_branch":
			f.Text += " It branches once in " + value + " operations."
		case d.Key == "vectorised":
			f.Text += " " + Percent(d.Value) + " of its operations are done in vectors."
		}
	}
	return f, f.Text != ""
}
