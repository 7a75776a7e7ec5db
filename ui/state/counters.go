package state

import (
	"cmp"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// words formats values in the page's style.
var words = report.Words{Count: Exact, Real: formatEstimate, Share: Percent, Size: Bytes}

// about is the prefix of estimated numbers.
const about = "≈ "

// CounterTables returns tables of a profile's counters, and the keys of these tables in order. The
// parameter "by" selects the program's tables, the table of functions, or the table of blocks.
func CounterTables(a *Answers, by answers.CountersBy, sort string) (keys []string, tables map[string]*Table) {
	q := ask.New(ask.VerbOf("counters")).With("by", string(by))
	if sort != "" && q.With("sort", sort).Check() == nil {
		q = q.With("sort", sort)
	}
	tables = map[string]*Table{}
	d, err := a.Answer(q)
	if err != nil {
		return nil, tables
	}
	for i := range d.Tables {
		t := &d.Tables[i]
		keys = append(keys, t.Key)
		switch {
		case by != answers.ByProgram:
			sorted := cmp.Or(q.Text("sort"), "bytes")
			brief := answers.NarrowCounters(*t, sorted)
			tables[t.Key] = show(&brief, words, nil).sortedBy(sorted)
		case t.Key == "counters" || t.Key == "ratios": // users need the names of counters, but not their keys
			tables[t.Key] = show(t, words, nil, "name", t.Columns[1].Key)
		default:
			tables[t.Key] = show(t, words, nil).addBars(t, map[string]string{"instruction_mix": "share", "calls": "calls"}[t.Key])
		}
		tables[t.Key].setDocument(a.document(q))
	}
	return keys, tables
}

// shown formats a value with the page's minus sign directly before the digits, for example "≈ −12".
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

// hasNumbers reports whether a column contains a number.
func hasNumbers(rows [][]report.Value, column int) bool {
	for _, row := range rows {
		if row[column].IsNumber() {
			return true
		}
	}
	return false
}

// CounterDefinitions defines each counter and each number derived from counters.
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
	t := report.Table{Key: "definitions", Title: "Definitions", Columns: []report.Column{{Key: "name", Label: "number"}, {Key: "meaning", Label: "meaning"}}}
	for _, m := range list {
		t.Add(report.TextOf(m.Label), report.TextOf(m.Text))
	}
	return show(&t, words, nil).setDocument(oneTable("stackglass.counters", t))
}

// MissingCounters returns sentences about the counters that a profile lacks, with the reasons.
func MissingCounters(p *profile.Profile) (list []string) {
	for _, m := range answers.NotCounted(p) {
		list = append(list, upper(m)+".")
	}
	return list
}

// operations returns the finding about operations and about the bytes that the program moves.
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
			f.Text = "This run executes " + SI(sum[profile.Flops]) + " flops, and moves " + value + " bytes for each flop."
		case d.Key == "bytes_per_operation" && f.Text == "":
			f.Text = "This run executes no floating-point operations; it moves " + value + " bytes for each integer operation."
		case d.Key == "ops_per_branch":
			f.Text += " The run branches once every " + value + " operations."
		case d.Key == "vectorised":
			f.Text += " " + Percent(d.Value) + " of its operations are vectorised."
		}
	}
	return f, f.Text != ""
}

// missingInstructions returns the reason why a profile has no instruction counts.
func missingInstructions(p *profile.Profile) string {
	if p.Counters != nil {
		return ""
	}
	return "This trace contains no instructions, so operations and branches cannot be counted. Compile a program with “stackglass cc”, run it, and drop its .sgt trace here. " +
		"For any other trace, turn on “Count the accesses to each byte” in the settings to see loads and stores by size, unique bytes and memory usage. The facts in Diagnosis include the references by kind."
}
