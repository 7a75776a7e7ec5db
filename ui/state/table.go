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
	Unit  string // "" if the name contains it
	Key   string // to sort by; "" if the order is fixed
	Words bool   // left-aligned, unlike numbers
}

// Table shows some columns of a table of a document, in the page's style. CSV and JSON have all
// columns.
type Table struct {
	Caption string
	Columns []Column
	Rows    int
	Row     func(i int) []string // as shown, made when needed

	Sort  string         // the key of the column that the rows are sorted by
	Doubt string         // about the rows, a sentence; "" for none
	By    attribution.By // how misses in the code are summed

	inBoth bool // a row of a comparison is in both runs

	document func() *report.Document // that the table is part of; nil: see reply
	reply    *answers.Reply          // of the second program, with that document; nil: nothing to export
	key      string                  // of the table in the document
}

// show returns the columns with these keys, as far as they exist, or all columns without keys. Half
// of a confidence interval follows its number. "file,line,function" is one column with a source
// location. where selects rows by their values in columns.
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

// placeWords writes a source location: main.c:17 multiply.
func placeWords(file, line, function string) string {
	if file == "" || line == "" {
		return function
	}
	return file + ":" + line + blank(function)
}

// unsorted removes the sort keys of the columns.
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

// of sets the document that the table is part of.
func (t *Table) of(document func() *report.Document) *Table {
	t.document = document
	return t
}

// oneTable returns a document of one table.
func oneTable(schema string, t report.Table) func() *report.Document {
	return func() *report.Document {
		return &report.Document{Schema: schema, Version: 1, Tables: []report.Table{t}}
	}
}

// PageRows is the number of rows on one page of a table.
const PageRows = 20

// Pages returns the number of pages, at least one.
func (t *Table) Pages() int { return max(1, (t.Rows+PageRows-1)/PageRows) }

// Page returns the rows of a page, from 0, and the number of the first one.
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

// answered sets the reply to a verb that the table is part of.
func (t *Table) answered(reply *answers.Reply, key string) *Table {
	t.document, t.reply, t.key = nil, reply, key
	return t
}

// Source returns the table that this one shows, with all rows and columns; nil if there is none.
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
// (site/static/tables.js): Row is called for these. It is not changed after it is handed over.
type Grid struct {
	*Table
	ID       string
	Order    string // changes with the rows and their order: scrolling starts over
	Selected int    // the selected row; -1: none
	// Mark returns a row's class in app.css; nil: no row has one.
	Mark func(i int) string
	Code []bool // columns that are code: every blank counts
	// Language says how the code is coloured, as [Language] does; "": not at all.
	Language string
	// Shares returns a row's bars, 0 to 1, by column: -1, or no value, is none. For code it is the
	// background's intensity. nil: no row has bars.
	Shares func(i int) []float64
	// Depths are the depths of a tree's rows, from 1; nil: it is no tree.
	Depths []int
}

// Kind returns the class of a column's cells.
func (g *Grid) Kind(column int) string {
	switch {
	case column < len(g.Code) && g.Code[column]:
		return "code"
	case g.Columns[column].Words:
		return "words"
	}
	return "number"
}

// View returns up to count rows from first on.
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
// thousands; nobody reads longer ones.
const MostText = 8000

// Fit returns text, or its beginning and its length if it is too long to show. Exports have the
// whole text.
func Fit(text string) string {
	if len(text) <= MostText {
		return text
	}
	end := MostText - 100
	for !utf8.RuneStart(text[end]) && end > MostText-110 {
		end--
	}
	// A markup entity is not cut.
	if amp := strings.LastIndexByte(text[end-10:end], '&'); amp >= 0 {
		end += amp - 10
	}
	return text[:end] + "… (" + Exact(uint64(len(text))) + " bytes)"
}
