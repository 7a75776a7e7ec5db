package state

import (
	"cmp"
	"strings"

	"github.com/stackglass/stackglass/core/report"
)

// Column heads a column of a table.
type Column struct {
	_     [0]func() // no code that compares arrays of columns
	Name  string
	Unit  string // "" where the name says it
	Key   string // what to sort by; "" where the rows have one order
	Words bool   // to the left, unlike numbers
}

// Table is what lies behind a chart. Rows are made when asked for, so that a
// table of any length costs only what is seen of it.
type Table struct {
	Caption string
	Columns []Column
	Rows    int
	Row     func(i int) []string // as shown

	CSVHeader string
	CSVRow    func(i int) string // exact, for other programs

	Sort   string        // the key of the column that the rows are sorted by
	Source *report.Table // what it shows, with all columns; nil for tables that are made here
	Schema string        // of its JSON; "": counters
	Doubt  string        // about what is in it, in a sentence; "" for none
	By     CodeBy        // what places in the code are summed up by
}

// PageRows is the number of rows on one page of a table.
const PageRows = 20

// Pages is the number of pages, at least one.
func (t *Table) Pages() int { return max(1, (t.Rows+PageRows-1)/PageRows) }

// Page gives the rows of a page, from 0, and the number of the first of them.
func (t *Table) Page(page int) (rows [][]string, first int) {
	page = min(max(page, 0), t.Pages()-1)
	first = page * PageRows
	for i := first; i < min(first+PageRows, t.Rows); i++ {
		rows = append(rows, t.Row(i))
	}
	return rows, first
}

// CSV gives all rows.
func (t *Table) CSV() string {
	var out strings.Builder
	if t.Source != nil {
		return string(t.Source.CSV())
	}
	out.WriteString(t.CSVHeader)
	out.WriteByte('\n')
	for i := range t.Rows {
		out.WriteString(t.CSVRow(i))
		out.WriteByte('\n')
	}
	return out.String()
}

// JSON gives all rows of a table that has a Source, as the command does.
func (t *Table) JSON() string {
	d := report.Document{Schema: cmp.Or(t.Schema, countersSchema), Version: 1, Tables: []report.Table{*t.Source}}
	return string(d.JSON())
}
