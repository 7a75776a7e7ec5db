// Package byfl reads the result files of Byfl, an instrumenting compiler from Los Alamos National
// Laboratory (Pakin and McCormick, IISWC 2013). The package converts Byfl's counters to
// stackglass's counters, so that both can be shown in the same tables.
//
// A file is a sequence of tables. Integers are big-endian. A string is a 16-bit length followed by
// that many bytes:
//
//	"BYFLBIN"
//	tables until a tag of 0, each:
//	  tag      u8   1 basic, 2 key and value
//	  name     string
//	  columns  until a type of 0, each:
//	    type   u8   1 64-bit number, 2 string, 3 truth value (u8)
//	    name   string
//	    value       only in tables of keys and values
//	  rows     of basic tables, until a 0: u8 1, then a value for each column
//
// The layout and the names of tables and columns are as in Byfl 1.8.0: include/binarytagdefs.h,
// lib/byfl/binaryoutput.cpp, lib/byfl/byfl.cpp, lib/byfl/basicblocks.cpp and
// tools/postproc/parsebfbin.c in its repository, github.com/lanl/Byfl.
package byfl

import (
	"encoding/binary"
	"strconv"
	"strings"
)

const magic = "BYFLBIN"

// IsByfl reports whether a file that begins with head was written by Byfl. The first seven bytes of
// the file are sufficient.
func IsByfl(head []byte) bool { return strings.HasPrefix(string(head), magic) }

// Table is one table of a file.
type Table struct {
	Name    string
	Columns []Column
	Rows    [][]Cell // a table of kind 2 (key and value) has exactly one row
}

// Column is the header of a column.
type Column struct {
	Name string
	Type Type
}

// Type is the type of a column's cells.
type Type uint8

// The types of cells.
const (
	Number Type = iota + 1
	Text
	Truth
)

// Cell is a number, a truth value (0 or 1) or a text.
type Cell struct {
	Number uint64
	Text   string
}

// FormatError reports the position at which a file is invalid, and the reason.
type FormatError struct {
	File   string
	Offset int
	What   string
}

func (e *FormatError) Error() string {
	return e.File + ", byte " + strconv.Itoa(e.Offset) + ": " + e.What
}

// Read decodes the tables of a result file. Error messages contain the given file name. The error
// is a [*FormatError].
func Read(name string, data []byte) ([]Table, error) {
	r := &reader{file: name, in: data}
	if !IsByfl(data) {
		r.fail("the file does not begin with " + magic + "; want a .byfl file from an instrumented program")
		return nil, r.err
	}
	r.at = len(magic)
	var tables []Table
	for r.err == nil {
		tag := r.byte()
		if r.err != nil || tag == 0 {
			break
		}
		t := Table{Name: r.text()}
		switch tag {
		case 1:
			r.basic(&t)
		case 2:
			r.keysAndValues(&t)
		default:
			r.at--
			r.fail("a table of kind " + strconv.Itoa(int(tag)) + ", want 1 or 2")
		}
		tables = append(tables, t)
	}
	if r.err == nil && r.at < len(r.in) {
		r.fail("the file continues after the last table; other data may have been appended to the file")
	}
	if r.err != nil {
		return nil, r.err
	}
	return tables, nil
}

// reader decodes the values in a file. After the first error, it returns only zero values.
type reader struct {
	file string
	in   []byte
	at   int
	err  error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = &FormatError{r.file, r.at, what}
	}
}

func (r *reader) take(n int) []byte {
	if r.err == nil && len(r.in)-r.at < n {
		r.fail("the file ends too early; copy the file again, or let the program run to its end")
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.in[r.at-n : r.at]
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) text() string {
	b := r.take(2)
	if b == nil {
		return ""
	}
	return string(r.take(int(binary.BigEndian.Uint16(b))))
}

func (r *reader) cell(t Type) (c Cell) {
	switch t {
	case Number:
		if b := r.take(8); b != nil {
			c.Number = binary.BigEndian.Uint64(b)
		}
	case Text:
		c.Text = r.text()
	default:
		if b := r.byte(); b != 0 {
			c.Number = 1
		}
	}
	return c
}

// column reads the header of a column, or returns false after the last column.
func (r *reader) column() (c Column, ok bool) {
	t := r.byte()
	if t == 0 || r.err != nil {
		return c, false
	}
	if t > byte(Truth) {
		r.at--
		r.fail("a column of type " + strconv.Itoa(int(t)) + ", want 1 to 3")
		return c, false
	}
	return Column{Name: r.text(), Type: Type(t)}, r.err == nil
}

func (r *reader) basic(t *Table) {
	for {
		c, ok := r.column()
		if !ok {
			break
		}
		t.Columns = append(t.Columns, c)
	}
	for r.err == nil {
		switch r.byte() {
		case 0:
			return
		case 1:
			if len(t.Columns) == 0 {
				r.fail("a table has rows but no columns")
				return
			}
			row := make([]Cell, len(t.Columns))
			for i := range row {
				row[i] = r.cell(t.Columns[i].Type)
			}
			t.Rows = append(t.Rows, row)
		default:
			r.at--
			r.fail("expected a row or the end of table " + strconv.Quote(t.Name))
		}
	}
}

func (r *reader) keysAndValues(t *Table) {
	var row []Cell
	for {
		c, ok := r.column()
		if !ok {
			break
		}
		t.Columns = append(t.Columns, c)
		row = append(row, r.cell(c.Type))
	}
	t.Rows = [][]Cell{row}
}
