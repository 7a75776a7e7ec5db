// Package report formats results as aligned text, CSV, JSON and Markdown. A result consists of
// warnings and of typed tables with units.
//
//  1. A [Document] contains the results of a query: facts about its input, tables whose columns
//     have names and units, and warnings.
//  2. [Document.Write] writes a document in a [Format]. Counts are exact in every format; in text
//     and Markdown, their digits are grouped.
//
// In JSON, a document is one object. The JSON object contains the schema's name and version, the
// input, the tables and the warnings. Each table is a list of rows under the table's key or, if the
// table always has a single row, an object. CSV contains only one table: the document's main table,
// or the first table if there is no main table.
package report

import (
	"io"
	"slices"
	"strings"
)

// Document contains the results of one query.
type Document struct {
	Schema  string // name of the JSON schema, such as "stackglass.curve"
	Version int    // version of the JSON schema
	Input   []Fact
	Tables  []Table
	Main    string // key of the table that CSV output contains; "" means the first table
	// Prose contains more readable tables, which replace Tables in text and Markdown. If Prose is nil,
	// text and Markdown contain Tables.
	Prose    []Table
	Warnings []string
}

// Fact is a fact about the input.
type Fact struct {
	Key   string // name for programs, such as "line_bytes"
	Label string // human-readable name, such as "line size"
	Value Value
}

// Table contains rows of typed cells.
type Table struct {
	Key     string // name for programs, such as "levels"
	Title   string // human-readable title; may be ""
	Columns []Column
	Rows    [][]Value
	// whether the table always has a single row, so that it is an object instead of a list in JSON
	Single bool
}

// Column describes the cells of a column.
type Column struct {
	_     incomparable
	Key   string // name for programs, such as "capacity_lines"
	Label string // human-readable name, such as "capacity"
	Unit  string // unit, such as "lines", "bytes" or "%"; "" for names and plain counts
}

// Columns parses descriptions of columns, such as "ways", "size_bytes=size" and
// "capacity_lines=capacity (lines)". A description contains the key, the label if it differs from
// the key, and the unit in parentheses.
func Columns(texts ...string) []Column {
	columns := make([]Column, len(texts))
	for i, text := range texts {
		text, unit, _ := strings.Cut(text, " (")
		key, label, differs := strings.Cut(text, "=")
		if !differs {
			label = key
		}
		columns[i] = Column{Key: key, Label: label, Unit: strings.TrimSuffix(unit, ")")}
	}
	return columns
}

// Add appends a row.
func (t *Table) Add(row ...Value) { t.Rows = append(t.Rows, row) }

// Index returns the index of the column with this key, or -1.
func (t *Table) Index(key string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Key == key })
}

// Format is an output format of documents.
type Format string

// The formats.
const (
	Text     Format = "table"
	CSV      Format = "csv"
	JSON     Format = "json"
	Markdown Format = "md"
)

// Formats returns all formats, starting with the default.
func Formats() []Format { return []Format{Text, CSV, JSON, Markdown} }

// ParseFormat parses the name of a format. For an unknown name, the error lists all formats.
func ParseFormat(name string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		if name == string(f) {
			return f, nil
		}
		names = append(names, string(f))
	}
	return "", &FormatError{Got: name, Want: strings.Join(names, ", ")}
}

// FormatError reports an unknown format.
type FormatError struct{ Got, Want string }

func (e *FormatError) Error() string { return `format "` + e.Got + `", want one of ` + e.Want }

// Write writes the document in a format. Only JSON output contains the warnings. For other formats,
// the caller must show the warnings.
func (d *Document) Write(w io.Writer, f Format) error {
	var b []byte
	read := *d
	if d.Prose != nil {
		read.Tables = d.Prose
	}
	switch f {
	case CSV:
		for i := range d.Tables {
			if d.Main == "" || d.Tables[i].Key == d.Main {
				b = d.Tables[i].CSV()
				break
			}
		}
	case JSON:
		b = d.JSON()
	case Markdown:
		b = read.appendMarkdown(b)
	default:
		b = read.appendText(b)
	}
	_, err := w.Write(b)
	return err
}
