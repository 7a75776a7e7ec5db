package csv

import (
	"bytes"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// most is the number of columns that a table may have.
const most = 64

// The columns that are read.
const (
	address = iota
	kind
	size
	thread
	pc
	known
)

// Columns lists the names of each column that is read, the usual one first;
// case, blanks and underscores make no difference.
var Columns = [known][]string{
	address: {"addr", "address", "vaddr", "ea", "memaddr"},
	kind:    {"rw", "kind", "type", "op", "access", "write", "iswrite", "accesstype"},
	size:    {"size", "bytes", "len", "length"},
	thread:  {"tid", "thread", "threadid", "core", "cpu"},
	pc:      {"pc", "ip", "instruction", "eip", "rip"},
}

// layout is where the columns stand.
type layout struct {
	separator byte
	count     int        // fields a line; 0: the header was not read yet
	at        [known]int // index of the field; -1: there is none
	column    [most]int  // of each field; known: it is ignored
}

func (l *layout) has(column int) bool { return l.count > 0 && l.at[column] >= 0 }

// HeaderError reports that the first line does not name the columns of a trace, so that the table
// cannot be read.
type HeaderError struct{ wrong trace.SyntaxError }

func (e *HeaderError) Error() string {
	return e.wrong.File + ":" + strconv.Itoa(e.wrong.Line) + ": " + e.clause()
}

func (e *HeaderError) clause() string {
	return "header " + strconv.Quote(e.wrong.Got) + ": " + e.wrong.What + ", want " + e.wrong.Want
}

// SetPlace completes the error with its place.
func (e *HeaderError) SetPlace(file string, line int) { e.wrong.SetPlace(file, line) }

// parseHeader finds the columns that line names.
func parseHeader(line []byte) (layout, *HeaderError) {
	fail := func(what, want string) (layout, *HeaderError) {
		return layout{}, &HeaderError{*lines.Wrong(what, line, want)}
	}
	p := parser{columns: layout{separator: separatorOf(line), at: [known]int{-1, -1, -1, -1, -1}}}
	c := &p.columns
	for rest, more := line, true; more; c.count++ {
		var name []byte
		var wrong *trace.SyntaxError
		if name, rest, more, wrong = p.next(rest); wrong != nil {
			return fail("a quoted name does not end", wrong.Want)
		}
		if c.count == most {
			return fail("there are too many columns", "at most "+strconv.Itoa(most))
		}
		column := columnOf(name)
		if c.column[c.count] = column; column == known {
			continue
		}
		if c.at[column] >= 0 {
			return fail("two columns are the "+Columns[column][0], "one")
		}
		c.at[column] = c.count
	}
	if c.at[address] < 0 {
		return fail("no column is the address", "columns named addr, and if there are any tid, pc, rw, size")
	}
	return *c, nil
}

// separatorOf returns the separator that comes first in the header.
func separatorOf(header []byte) byte {
	if i := bytes.IndexAny(header, ",;\t"); i >= 0 {
		return header[i]
	}
	return ','
}

// columnOf returns the column of that name, or known.
func columnOf(name []byte) int {
	letters := make([]byte, 0, len(name))
	for _, c := range name {
		if c != ' ' && c != '_' && c != '-' {
			letters = append(letters, c)
		}
	}
	for column, names := range Columns {
		for _, n := range names {
			if equalFold(letters, n) {
				return column
			}
		}
	}
	return known
}

// Recognise reports whether the first line of text, the beginning of a file, names an address, and
// else the reason.
func Recognise(text []byte) (reason string, ok bool) {
	for number, line := range lines.All(text) {
		if lines.IsBlank(line) {
			continue
		}
		if _, wrong := parseHeader(line); wrong != nil {
			return "line " + strconv.Itoa(number) + ": " + wrong.clause(), false
		}
		return "", true
	}
	return "there is no header line", false
}
