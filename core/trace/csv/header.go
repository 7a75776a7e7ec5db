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
	column    [most]int  // of each field; known: it is left out
}

func (l *layout) has(column int) bool { return l.count > 0 && l.at[column] >= 0 }

// HeaderError tells that the first line does not name the columns of a trace,
// so that nothing behind it can be read.
type HeaderError struct {
	File string
	Line int
	What string // what is wrong
	Got  string // the line, shortened
	Want string
}

func (e *HeaderError) Error() string {
	return e.File + ":" + strconv.Itoa(e.Line) + ": " + e.clause()
}

func (e *HeaderError) clause() string {
	return "header " + strconv.Quote(e.Got) + ": " + e.What + ", want " + e.Want
}

// parseHeader finds the columns that line names.
func parseHeader(file string, number int, line []byte) (layout, *HeaderError) {
	fail := func(what, want string) (layout, *HeaderError) {
		return layout{}, &HeaderError{File: file, Line: number, What: what, Got: lines.Got(line), Want: want}
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

// separatorOf is the one of the three separators that comes first in the
// header.
func separatorOf(header []byte) byte {
	if i := bytes.IndexAny(header, ",;\t"); i >= 0 {
		return header[i]
	}
	return ','
}

// columnOf gives the column of that name, or known.
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

// Recognise tells whether text, the beginning of a file, is a table of
// references: whether its first line names an address. The reason says why not.
func Recognise(text []byte) (reason string, ok bool) {
	for number := 1; len(text) > 0; number++ {
		line, after := lines.First(text)
		if len(lines.Trim(line)) > 0 {
			if _, wrong := parseHeader("", number, line); wrong != nil {
				return "line " + strconv.Itoa(number) + ": " + wrong.clause(), false
			}
			return "", true
		}
		text = after
	}
	return "there is no header line", false
}
