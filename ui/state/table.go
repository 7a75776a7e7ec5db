package state

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
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

// Table shows some columns of a table of a document, in the page's style. CSV and JSON have
// all of it.
type Table struct {
	Caption string
	Columns []Column
	Rows    int
	Row     func(i int) []string // as shown, made when asked for

	Sort  string         // the key of the column that the rows are sorted by
	Doubt string         // a caveat about the rows, as a sentence; "" for none
	By    attribution.By // what places in the code are summed up by

	inBoth bool // a row of a comparison is in both runs

	document func() *report.Document // that it shows a table of; nil: see reply
	reply    *answers.Reply          // of the second program, with that document; nil: there is nothing to export
	key      string                  // of the table in the document
}

// show returns the columns with these keys, as far as there are such, or all without keys. Half of
// a confidence interval stands behind its number. "file,line,function" is one column that says
// where something is. Of the rows it shows those with these values in the columns with these keys.
func show(t *report.Table, style report.Words, where map[string]string, keys ...string) *Table {
	var columns [][]int // indices
	add := func(key string) {
		var at []int
		for part := range strings.SplitSeq(key, ",") {
			if i := t.Index(part); i >= 0 {
				at = append(at, i)
			}
		}
		if len(at) > 0 && len(at) == strings.Count(key, ",")+1 {
			columns = append(columns, at)
		}
	}
	for _, key := range keys {
		add(key)
		add(key + "_off")
	}
	if len(keys) == 0 {
		for i := range t.Columns {
			columns = append(columns, []int{i})
		}
	}
	rows := t.Rows
	for key, value := range where {
		at, all := t.Index(key), rows
		rows = nil
		for _, row := range all {
			if at >= 0 && row[at].Plain() == value {
				rows = append(rows, row)
			}
		}
	}
	made := &Table{Caption: t.Title, Rows: len(rows), key: t.Key, Row: func(i int) []string {
		cells := make([]string, len(columns))
		for j, at := range columns {
			if len(at) > 1 {
				cells[j] = placeWords(rows[i][at[0]].Plain(), rows[i][at[1]].Plain(), rows[i][at[2]].Plain())
			} else {
				cells[j] = shown(rows[i][at[0]], style)
			}
		}
		return cells
	}}
	for _, at := range columns {
		c := t.Columns[at[len(at)-1]]
		made.Columns = append(made.Columns, Column{Name: c.Label, Unit: c.Unit, Key: c.Key, Words: !numbers(rows, at[len(at)-1])})
	}
	return made
}

// placeWords say where something is: main.c:17  multiply.
func placeWords(file, line, function string) string {
	if file == "" || line == "" {
		return function
	}
	return file + ":" + line + blank(function)
}

// unsorted forgets what the columns can be sorted by.
func (t *Table) unsorted() *Table {
	for i := range t.Columns {
		t.Columns[i].Key = ""
	}
	return t
}

// from leaves out the rows before the first.
func (t *Table) from(first int) *Table {
	if row := t.Row; first > 0 {
		t.Rows, t.Row = t.Rows-first, func(i int) []string { return row(first + i) }
	}
	return t
}

// of says which document the table is a part of.
func (t *Table) of(document func() *report.Document) *Table {
	t.document = document
	return t
}

// oneTable is a document of one table.
func oneTable(schema string, t report.Table) func() *report.Document {
	return func() *report.Document {
		return &report.Document{Schema: schema, Version: 1, Tables: []report.Table{t}}
	}
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

// Exports reports whether the table can be exported.
func (t *Table) Exports() bool { return t.document != nil || t.reply != nil }

// answered says which reply to a verb the table is a part of.
func (t *Table) answered(reply *answers.Reply, key string) *Table {
	t.document, t.reply, t.key = nil, reply, key
	return t
}

// Source returns the table that this one shows, with all rows and columns; nil where there is none.
func (t *Table) Source() *report.Table {
	if t.document != nil {
		d := t.document()
		if i := slices.IndexFunc(d.Tables, func(of report.Table) bool { return of.Key == t.key }); i >= 0 {
			return &d.Tables[i]
		}
	} else if t.reply != nil {
		return t.reply.Table(t.key)
	}
	return nil
}

// CSV returns all rows and columns as the command does.
func (t *Table) CSV() []byte {
	if source := t.Source(); source != nil {
		return source.CSV()
	}
	return nil
}

// JSON returns the document of the table as the command does.
func (t *Table) JSON() []byte {
	switch {
	case t.document != nil:
		return t.document().JSON()
	case t.reply != nil:
		return t.reply.Bytes
	}
	return nil
}

// Grid is a table of any length of which the browser draws only the rows in view
// (site/static/tables.js): Row is called for these. It is not changed once it is handed over.
type Grid struct {
	*Table
	ID       string
	Order    string // changes with the rows and their order: scrolling begins anew
	Selected int    // the row that is picked; -1: none
	// Mark gives a row's class in app.css; nil: none has one.
	Mark func(i int) string
	Code []bool // columns that are code: every blank counts
	// Language says how the code is coloured, as [Language] does; "": not at all.
	Language string
	// Shares gives a row's bars, 0 to 1, by column: -1, or no value, is none. Behind code it is how warm
	// the ground is. nil: no row has bars.
	Shares func(i int) []float64
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

// MostText is how many bytes of a text are shown. Names of C++ templates have some
// thousands; others are no names that anybody reads.
const MostText = 8000

// Fit gives text, or the beginning of one that is too long to be shown, and how long
// it is. Exports have all of it.
func Fit(text string) string {
	if len(text) <= MostText {
		return text
	}
	end := MostText - 100
	for !utf8.RuneStart(text[end]) && end > MostText-110 {
		end--
	}
	// What stands for one letter in markup is not cut.
	if amp := strings.LastIndexByte(text[end-10:end], '&'); amp >= 0 {
		end += amp - 10
	}
	return text[:end] + "… (" + Exact(uint64(len(text))) + " bytes)"
}
