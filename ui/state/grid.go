package state

import "slices"

// Grid is a table of any length of which the browser draws only the rows in view
// (site/static/tables.js): Row is called for these. It is not changed once it is
// handed over.
type Grid struct {
	*Table
	ID       string
	Order    string // changes with the rows and their order: scrolling begins anew
	Selected int    // the row that is picked; -1: none
	// Mark gives a row's class in app.css; nil: none has one.
	Mark func(i int) string
	Code []bool // columns that are code: every blank counts
	// Depths are, of a tree, how deep each row is in it, from 1; nil: it is none.
	Depths []int
}

// Kind is the class of a column's cells.
func (g *Grid) Kind(column int) string {
	switch {
	case column < len(g.Code) && g.Code[column]:
		return "code"
	case g.Columns[column].Words:
		return "words"
	}
	return "number"
}

// View gives count rows from first on, as far as there are as many.
func (g *Grid) View(first, count int) (rows [][]string, marks []string) {
	for i := max(first, 0); i < min(first+count, g.Rows); i++ {
		mark := ""
		if g.Mark != nil {
			mark = g.Mark(i)
		}
		row := slices.Clone(g.Row(i))
		for c := range row {
			row[c] = Fit(row[c])
		}
		rows, marks = append(rows, row), append(marks, mark)
	}
	return rows, marks
}
