// Package report writes answers down: typed tables with units, and the doubts
// about them, as aligned text, CSV, JSON and Markdown.
//
//  1. An answer fills a [Document]: what it is about (Input), tables whose
//     columns say what they hold and in which unit, and warnings.
//  2. [Document.Write] gives it in a [Format]. Counts are exact in every
//     format; text and Markdown group their digits for the eye.
//
// A document's JSON is one object: its schema's name and version, its input,
// each table under its key as a list of rows (or as one object, where a table
// is a single row by nature), and its warnings. CSV has no room for more than
// one table and holds the first, or the one that the document names.
package report

import (
	"io"
	"strings"
)

// Document is one answer.
type Document struct {
	Schema   string // the name of the JSON schema: "stackglass.curve"
	Version  int    // of the schema
	Input    []Fact
	Tables   []Table
	Main     string // the key of the table that CSV has; "": the first
	Warnings []string
}

// Fact is one thing to know of the input.
type Fact struct {
	Key   string // for programs: "line_bytes"
	Label string // for people: "line size"
	Value Value
}

// Table is rows of typed cells.
type Table struct {
	Key     string // for programs: "levels"
	Title   string // for people; "" where the document needs none
	Columns []Column
	Rows    [][]Value
	Single  bool // one row by nature: an object instead of a list in JSON
}

// Column says what the cells below it hold.
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

// Index is the number of the column with that key, or -1.
func (t *Table) Index(key string) int {
	for i := range t.Columns {
		if t.Columns[i].Key == key {
			return i
		}
	}
	return -1
}

// Format is a way to write a document.
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

// ParseFormat reads the name of a format. The error says which there are.
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

// FormatError tells of a format that there is not.
type FormatError struct{ Got, Want string }

func (e *FormatError) Error() string { return `format "` + e.Got + `", want one of ` + e.Want }

// Write gives the document in a format. Warnings are part of JSON only: the
// other formats are for one table, and whoever writes them says the warnings
// where people look for them.
func (d *Document) Write(w io.Writer, f Format) error {
	var b []byte
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
		b = d.appendMarkdown(b)
	default:
		b = d.appendText(b)
	}
	_, err := w.Write(b)
	return err
}
