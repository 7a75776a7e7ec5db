package state

import "strings"

// Column heads a column of a table.
type Column struct {
	Name string
	Unit string // "" where the name says it
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
	out.WriteString(t.CSVHeader)
	out.WriteByte('\n')
	for i := range t.Rows {
		out.WriteString(t.CSVRow(i))
		out.WriteByte('\n')
	}
	return out.String()
}
