package state

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/report"
)

// incomparable is the type of a field that makes a struct incomparable. Without such a field, the
// compiler generates code that compares two structs, which makes a first visit larger.
type incomparable = [0]func()

// Column describes a column of a table.
type Column struct {
	_     incomparable
	Name  string
	Unit  string // the unit of the values, or "" if Name contains it
	Key   string // the column's key in the document; "": the rows cannot be sorted by this column
	Words bool   // the column contains text, which is left-aligned
}

// Table shows some columns of a document's table in the page's style. CSV and JSON contain all
// columns.
type Table struct {
	Caption string
	Columns []Column
	Rows    int
	Row     func(i int) []string // the cells as shown, computed when needed
	// Bar returns the length of a row's bar, as a share of the longest bar. Bar is nil if rows have
	// no bars.
	Bar func(i int) float64

	// Sort is the key of the column by which the rows are sorted; "": the order of the document.
	// Numbers are in descending order and words in ascending order. If Reverse is set, both orders
	// are reversed.
	Sort    string
	Reverse bool
	Doubt   string         // a caveat about the rows, in a sentence; "": none
	By      attribution.By // how misses in the code are grouped

	// values returns the values in a cell, for sorting; nil if the verb sorts the rows, or the
	// order is fixed
	values func(i, column int) []report.Value
	inBoth bool // whether at least one row of a comparison is in both runs

	document func() *report.Document // returns the document that contains the table; nil: the field "reply" contains it
	reply    *answers.Reply          // the answer program's reply with the document; nil: nothing to export
	key      string                  // the table's key in the document
}

// rowsWith returns a table with the rows for which keep returns true, or nil if there are none.
func rowsWith(t *report.Table, keep func(row int) bool) *report.Table {
	if t == nil {
		return nil
	}
	part := *t
	part.Rows = nil
	for i, row := range t.Rows {
		if keep(i) {
			part.Rows = append(part.Rows, row)
		}
	}
	if part.Rows == nil {
		return nil
	}
	return &part
}

// show returns a table with the columns that have the given keys. Keys without a column are
// ignored. If no key is given, the table contains all columns. The half-width of a confidence
// interval follows its number. The key "file,line,function" represents one column with the source
// location. The parameter "where" selects rows by their values in columns.
func show(t *report.Table, style report.Words, where map[string]string, keys ...string) *Table {
	var columns [][]int // column indices
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
	made.values = func(i, column int) (list []report.Value) {
		for _, at := range columns[column] {
			list = append(list, rows[i][at])
		}
		return list
	}
	for _, at := range columns {
		c := t.Columns[at[len(at)-1]]
		made.Columns = append(made.Columns, Column{Name: c.Label, Unit: c.Unit, Key: c.Key, Words: !hasNumbers(rows, at[len(at)-1])})
	}
	if len(rows) < 2 {
		return made.fixOrder()
	}
	return made
}

// placeWords formats a source location, for example "main.c:17 multiply".
func placeWords(file, line, function string) string {
	if file == "" || line == "" {
		return function
	}
	return file + ":" + line + blank(function)
}

// addBars adds bars whose lengths are proportional to the numbers in a column of the underlying
// table.
func (t *Table) addBars(of *report.Table, key string) *Table {
	at, most := of.Index(key), 0.0
	if at < 0 {
		return t
	}
	length := func(i int) float64 {
		x, _ := of.Rows[i][at].Number()
		return x
	}
	for i := range of.Rows {
		most = max(most, length(i))
	}
	if most > 0 {
		t.Bar = func(i int) float64 { return length(i) / most }
	}
	return t
}

// fixOrder keeps the rows in the order of the document, so that the user cannot sort them.
func (t *Table) fixOrder() *Table {
	for i := range t.Columns {
		t.Columns[i].Key = ""
	}
	t.values = nil
	return t
}

// sortedBy sets the column by which a verb has sorted the rows.
func (t *Table) sortedBy(key string) *Table {
	t.Sort, t.values = key, nil
	return t
}

// Sorts reports whether the table sorts its rows itself. The rows of other tables are sorted by the
// verb that creates the answer.
func (t *Table) Sorts() bool { return t.values != nil }

// Ordered returns the table with its rows in the given order. Rows with equal values, and rows
// without a value, which come last, keep the order of the document.
func (t *Table) Ordered(o Order) *Table {
	compare := t.comparer(o)
	if compare == nil {
		return t
	}
	order := make([]int, t.Rows)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	made := *t
	made.Sort, made.Reverse = o.Column, o.Reverse
	made.Row = func(i int) []string { return t.Row(order[i]) }
	if t.Bar != nil {
		made.Bar = func(i int) float64 { return t.Bar(order[i]) }
	}
	return &made
}

// comparer returns a function that compares two rows in the given order; nil if the table cannot be
// sorted in this order.
func (t *Table) comparer(o Order) func(i, j int) int {
	column := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Key == o.Column })
	if o.Column == "" || column < 0 || t.values == nil {
		return nil
	}
	keys := make([][]report.Value, t.Rows)
	for i := range keys {
		keys[i] = t.values(i, column)
	}
	return func(i, j int) int {
		for k, x := range keys[i] {
			y := keys[j][k]
			c := report.Compare(x, y)
			linesAscend := len(keys[i]) > 1 && x.IsNumber()
			if !x.IsNone() && !y.IsNone() && o.Reverse != linesAscend {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	}
}

// setDocument sets the document that contains the table, for exports.
func (t *Table) setDocument(document func() *report.Document) *Table {
	t.document = document
	return t
}

// oneTable returns a document of one table.
func oneTable(schema string, t report.Table) func() *report.Document {
	return func() *report.Document {
		return &report.Document{Schema: schema, Version: 1, Tables: []report.Table{t}}
	}
}

// PageRows is the number of rows on one page of a table. A table with at most mostRows rows has only
// one page, because a second page with a few rows would hide them for no reason.
const (
	PageRows = 20
	mostRows = 30
)

// Pages returns the number of pages, at least one.
func (t *Table) Pages() int {
	if t.Rows <= mostRows {
		return 1
	}
	return (t.Rows + PageRows - 1) / PageRows
}

// Page returns the rows of a page and the number of its first row. Pages are numbered from 0.
func (t *Table) Page(page int) (rows [][]string, first int) {
	page = min(max(page, 0), t.Pages()-1)
	first, last := page*PageRows, (page+1)*PageRows
	if page == t.Pages()-1 {
		last = t.Rows
	}
	for i := first; i < last; i++ {
		rows = append(rows, t.Row(i))
	}
	return rows, first
}

// Exports reports whether the table can be exported.
func (t *Table) Exports() bool { return t.document != nil || t.reply != nil }

// setReply sets the reply that contains the table.
func (t *Table) setReply(reply *answers.Reply, key string) *Table {
	t.document, t.reply, t.key = nil, reply, key
	return t
}

// Source returns the underlying table with all rows and columns, or nil.
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

// CSV returns all rows and columns as CSV, as the command does.
func (t *Table) CSV() []byte {
	if source := t.Source(); source != nil {
		return source.CSV()
	}
	return nil
}

// JSON returns the table's document as JSON, as the command does.
func (t *Table) JSON() []byte {
	switch {
	case t.document != nil:
		return t.document().JSON()
	case t.reply != nil:
		return t.reply.Bytes
	}
	return nil
}

// Grid is a table of any length. The browser (site/static/tables.js) draws only the rows in view,
// and calls Row for them. A Grid must not be changed after it has been passed to the browser.
type Grid struct {
	*Table
	ID       string
	Order    string // identifies the rows and their order; if the value changes, the table scrolls to the top
	Selected int    // the selected row; -1: none
	// Mark returns a row's class in app.css. Mark is nil if no row has a class.
	Mark func(i int) string
	Code []bool // columns that contain code, in which white space is kept
	// Language is the name of a syntax highlighting that [Language] returned; "": none.
	Language string
	// Shares returns the lengths of a row's bars, 0 to 1, by column; -1 or a missing value means no
	// bar. For code, the value is the intensity of the background. Shares is nil if no row has
	// bars.
	Shares func(i int) []float64
	// Tint returns the colour of the square in a row's first cell. Tint is nil if the table has no
	// squares.
	Tint func(i int) Tint
	// Titles returns the tooltips of a row's cells, by column. Titles is nil if every tooltip would
	// equal the text of its cell.
	Titles func(i int) []string
	// After returns a note that follows the code of a row. After is nil if there are no notes.
	After func(i int) string
	// Longest is the number of characters in the longest line of code, including its note, or 0 if it
	// is unknown. This number determines the width of the column.
	Longest int
	// Depths contains the depths of a tree's rows, from 1. Depths is nil if the table is not a
	// tree.
	Depths []int
	// Folded contains, for each row of a tree, whether its child rows are hidden until the user
	// unfolds the row. Folded is nil if no row can be folded.
	Folded []bool

	rows []int // the rows of the unsorted grid, in sorted order; nil: not sorted
}

// Kind returns the CSS class of a column's cells.
func (g *Grid) Kind(column int) string {
	switch {
	case column < len(g.Code) && g.Code[column]:
		return "code"
	case g.Columns[column].Words:
		return "words"
	}
	return "number"
}

// View returns up to count rows. The parameter "first" is the number of the first of these rows.
func (g *Grid) View(first, count int) (rows [][]string, marks []string) {
	for i := max(first, 0); i < min(first+count, g.Rows); i++ {
		mark := ""
		if g.Mark != nil {
			mark = g.Mark(g.At(i))
		}
		row := slices.Clone(g.Row(g.At(i)))
		for c := range row {
			row[c] = Fit(row[c])
		}
		rows, marks = append(rows, row), append(marks, mark)
	}
	return rows, marks
}

// MostText is the maximum number of bytes of a displayed text. Names of C++ templates can have
// thousands of bytes, which nobody can read.
const MostText = 8000

// Fit returns the text or, if the text is too long, its beginning and its length. Exports contain
// the whole text.
func Fit(text string) string {
	if len(text) <= MostText {
		return text
	}
	end := MostText - 100
	for !utf8.RuneStart(text[end]) && end > MostText-110 {
		end--
	}
	// Do not split a markup entity.
	if amp := strings.LastIndexByte(text[end-10:end], '&'); amp >= 0 {
		end += amp - 10
	}
	return text[:end] + "… (" + Exact(uint64(len(text))) + " bytes)"
}
