package state

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/tally"
)

// countersSchema names the JSON of counters, as the command does.
const countersSchema = "stackglass.counters"

// words writes values as the page does.
var words = report.Words{Count: Exact, Real: significant, Share: Percent}

// CounterTables are the tables of a profile's counters, by their keys, in order:
// the program's, or the one of functions or blocks.
func CounterTables(p *profile.Profile, by tally.By, sort string) (keys []string, tables map[string]*Table) {
	tables = map[string]*Table{}
	add := func(shown, whole report.Table, sorted string) {
		keys = append(keys, whole.Key)
		tables[whole.Key] = newCounterTable(shown, whole, sorted)
	}
	if by != tally.Program {
		if sort == "" {
			sort = "bytes"
		}
		whole := tally.Of(p.Counters, by, sort)
		add(tally.Narrow(whole, sort), whole, sort)
		return keys, tables
	}
	for _, whole := range tally.Tables(p) {
		shown := whole
		if whole.Key == "counters" { // people read the names only
			shown = pick(whole, 2, 1)
		}
		if whole.Key != "ratios" { // they stand beside, with their definitions
			add(shown, whole, "")
		}
	}
	return keys, tables
}

// pick is a table of some of another one's columns.
func pick(t report.Table, columns ...int) report.Table {
	picked := report.Table{Key: t.Key, Title: t.Title}
	for _, i := range columns {
		picked.Columns = append(picked.Columns, t.Columns[i])
	}
	for _, row := range t.Rows {
		var cells []report.Value
		for _, i := range columns {
			cells = append(cells, row[i])
		}
		picked.Add(cells...)
	}
	return picked
}

// newCounterTable shows a table; whole is what is exported. Tables with a column
// to be sorted by can be sorted by any.
func newCounterTable(shown, whole report.Table, sorted string) *Table {
	t := &Table{Caption: shown.Title, Rows: len(shown.Rows), Sort: sorted, Source: &whole}
	for i, c := range shown.Columns {
		column := Column{Name: c.Label, Unit: c.Unit, Words: len(shown.Rows) > 0 && !numbers(shown.Rows, i)}
		if sorted != "" {
			column.Key = c.Key
		}
		t.Columns = append(t.Columns, column)
	}
	t.Row = func(i int) []string {
		cells := make([]string, len(shown.Rows[i]))
		for j, v := range shown.Rows[i] {
			cells[j] = v.Shown(words)
		}
		return cells
	}
	return t
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

// Definition is a number with what it means.
type Definition struct{ Name, Value, Text string }

// Ratios are the numbers that follow from the counters.
func Ratios(p *profile.Profile) (list []Definition) {
	sum := p.Counters.Program()
	for _, d := range sum.Derive(p.Counters.UniqueBytes) {
		value := significant(d.Value)
		if d.Share {
			value = Percent(d.Value)
		}
		list = append(list, Definition{d.Label, value, d.Text})
	}
	if len(p.Locality) == 0 {
		return list
	}
	l := &p.Locality[0]
	size := strconv.FormatUint(uint64(l.LineBytes), 10)
	if median, deviation, ok := l.MedianReuse(); ok {
		list = append(list, Definition{"median reuse distance", Plural(median, "line", "lines"),
			"Half of all accesses have at most so many other lines of " + size + " bytes between two uses of a line; first uses count as infinitely far. " +
				"Half of all accesses are within " + Plural(deviation, "line", "lines") + " of it, the median absolute deviation."})
	}
	return list
}

// CounterDefinitions say what each counter counts.
func CounterDefinitions() (list []Definition) {
	for c := range profile.NumCounters {
		if m := c.Meaning(); c < profile.RangesRead || c > profile.RangeBytesWritten {
			list = append(list, Definition{Name: m.Label, Text: m.Text})
		}
	}
	return append(list, Definition{Name: "unique bytes", Text: "Bytes touched at least once; of a function, by its own code."})
}

// operations is the finding of what the program does for each byte it moves.
func (v *View) operations() (Finding, bool) {
	c := v.Profile.Counters
	if c == nil || !c.Ops {
		return Finding{}, false
	}
	sum := c.Program()
	f := Finding{ID: "operations", Title: "Work", Tab: TabCounters}
	ratios := map[string]profile.Derived{}
	for _, d := range sum.Derive(0) {
		ratios[d.Key] = d
	}
	if d, ok := ratios["bytes_per_flop"]; ok {
		f.Text = "This run moves " + significant(d.Value) + " bytes for each flop, " + SI(sum[profile.Flops]) + " flops in all."
	} else if d, ok := ratios["bytes_per_operation"]; ok {
		f.Text = "This run makes no flops; it moves " + significant(d.Value) + " bytes for each integer operation."
	}
	if d, ok := ratios["vectorised"]; ok {
		f.Text += " " + Percent(d.Value) + " of its operations are done in vectors."
	}
	if d, ok := ratios["ops_per_branch"]; ok {
		f.Text += " It branches once in " + significant(d.Value) + " operations."
	}
	return f, f.Text != ""
}

// MissingCounters says in sentences what a profile's counters leave out, and
// why.
func MissingCounters(p *profile.Profile) (list []string) {
	for _, m := range tally.Missing(p) {
		list = append(list, upper(m)+".")
	}
	return list
}
