// Package report writes answers, which are typed tables with units and warnings, as aligned
// text, CSV, JSON and Markdown.
//
//  1. An answer fills a [Document]: facts of its input, tables whose columns have names and
//     units, and warnings.
//  2. [Document.Write] writes it in a [Format]. Counts are exact in every format; text and
//     Markdown group their digits.
//
// A document's JSON is one object: its schema's name and version, its input, each table under
// its key as a list of rows (or as one object, if it has a single row by nature), and its
// warnings. CSV contains only one table: the first, or the document's main one.
package report

import (
	"io"
	"slices"
	"strings"
)

// Document is one answer.
type Document struct {
	Schema  string // the name of the JSON schema: "stackglass.curve"
	Version int    // of the schema
	Input   []Fact
	Tables  []Table
	Main    string // the key of the table that CSV contains; "": the first
	// Prose are tables that text and Markdown have instead of Tables, because people read them more
	// easily; nil: Tables.
	Prose    []Table
	Warnings []string
}

// Fact is a fact of the input.
type Fact struct {
	Key   string // for programs: "line_bytes"
	Label string // for people: "line size"
	Value Value
}

// Table is rows of typed cells.
type Table struct {
	Key     string // for programs: "levels"
	Title   string // for people; may be ""
	Columns []Column
	Rows    [][]Value
	Single  bool // one row by nature: an object instead of a list in JSON
}

// Column describes the cells of a column.
type Column struct {
	_     incomparable
	Key   string // for programs: "capacity_lines"
	Label string // for people: "capacity"
	Unit  string // "lines", "bytes", "%"; "" for names and plain counts
}

// Columns returns columns described by texts such as "ways", "size_bytes=size" and
// "capacity_lines=capacity (lines)": the key, the label if it differs, and the unit.
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

// Index returns the index of the column with that key, or -1.
func (t *Table) Index(key string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Key == key })
}

// Format is a format of documents.
type Format string

// The formats.
const (
	Text     Format = "table"
	CSV      Format = "csv"
	JSON     Format = "json"
	Markdown Format = "md"
)

// Formats lists the formats, the default first.
func Formats() []Format { return []Format{Text, CSV, JSON, Markdown} }

// ParseFormat reads the name of a format. The error lists the formats.
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

// Write writes the document in a format. Only JSON contains the warnings; the caller shows them to
// people.
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
