// Package csv reads traces in the form of text tables. A header line names the columns.
//
//	addr,rw,size,tid,pc
//	0x1fff000708,r,8,1,0x4001ab0
//	137438953472,store,4,2,0x4001ab3
//
// Columns may be in any order, and only the address is required. The column names that common tools
// use are recognised (see [Columns] and [Cores]). All other columns are ignored. Fields are separated by
// commas, semicolons or tabs, whichever comes first in the header, and may be quoted (within
// quotes, "" represents a quote). Numbers are decimal, or hexadecimal with 0x. A size or PC may be
// empty.
//
// The kind of a reference is a letter or word, in upper or lower case: r, l, load or read; w, s,
// store or write; m, modify or update; i, f, fetch or ifetch. The labels 0, 1 and 2 of din traces
// are also accepted. If no column contains kinds, every reference is a load.
package csv

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// NewReader returns a reader for the table in r. Errors refer to the trace by the given name. A
// header without an address column causes a [*HeaderError].
func NewReader(name string, r io.Reader) *lines.Reader { return lines.NewReader(name, r, &parser{}) }

type parser struct {
	columns  layout
	fields   [most][]byte
	unquoted []byte // memory for the contents of quoted fields
}

// Header implements [lines.Parser].
func (p *parser) Header() trace.Header {
	c := p.columns
	return trace.Header{Format: "csv", Threads: c.has(thread), PCs: c.has(pc), Sizes: c.has(size)}
}

// Begin adds the columns that the table has.
func (p *parser) Begin(b *trace.Batch) {
	if p.columns.has(pc) {
		b.NeedPC()
	}
	if p.columns.has(thread) {
		b.NeedThread()
	}
}

// Parse reads line by line, and uses a fast path for plain lines.
func (p *parser) Parse(window []byte, b *trace.Batch, row int) (taken, count, rows int, err error) {
	for taken < len(window) && row < b.Len() {
		count++
		if n, ok := p.plain(window[taken:], b, row); ok {
			taken, row = taken+n, row+1
			continue
		}
		line, _ := lines.First(window[taken:])
		taken += len(line) + 1
		if lines.IsBlank(line) {
			continue
		}
		if p.columns.count == 0 {
			var wrong *HeaderError
			if p.columns, wrong = parseHeader(line); wrong != nil {
				return taken, count, row, wrong
			}
			p.Begin(b)
			continue
		}
		if wrong := p.row(line, b, row); wrong != nil {
			return taken, count, row, wrong
		}
		row++
	}
	return taken, count, row, nil
}

func (p *parser) row(line []byte, b *trace.Batch, row int) *trace.SyntaxError {
	if wrong := p.split(line); wrong != nil {
		return wrong
	}
	c := &p.columns
	addr, wrong := number("address", p.fields[c.at[address]], 64, false)
	if wrong != nil {
		return wrong
	}
	var bytes uint64
	if c.has(size) {
		if bytes, wrong = number("bytes", p.fields[c.at[size]], 32, true); wrong != nil {
			return wrong
		}
		if !lines.FitsBytes(addr, uint32(bytes)) {
			return lines.Wrong("reference", line, "a reference that ends within the 64-bit address space")
		}
	}
	k := trace.Load
	if c.has(kind) {
		if k, wrong = kindOf(p.fields[c.at[kind]]); wrong != nil {
			return wrong
		}
	}
	if c.has(pc) {
		if b.PC[row], wrong = number("PC", p.fields[c.at[pc]], 64, true); wrong != nil {
			return wrong
		}
	}
	if c.has(thread) {
		id, wrong := number("thread", p.fields[c.at[thread]], 32, false)
		if wrong != nil {
			return wrong
		}
		b.Thread[row] = uint32(id)
	}
	b.Addr[row], b.Bytes[row], b.Kind[row] = addr, uint32(bytes), k
	return nil
}

// plain is the fast path: it reads the first line of window into the given row of b, and returns
// the length of the line. It returns 0 for an invalid line, and for a line with quoted fields,
// blanks around fields, empty required fields or kinds of more than one letter. The method
// [parser.row] reads such lines, and takes more than twice as long.
func (p *parser) plain(window []byte, b *trace.Batch, row int) (taken int, ok bool) {
	text := window[:len(window)+lines.Slack]
	c := &p.columns
	var values [known]uint64 // the default kind is a load
	at := 0
	for i := range c.count {
		ok := true
		switch column := c.column[i]; column {
		case kind:
			k := kindLetters[text[at]]
			values[kind], ok = uint64(k), k != noKind
			at++
		case known:
			for text[at] != c.separator && text[at] != '\n' && text[at] != '"' {
				at++
			}
		default:
			values[column], at, ok = plainNumber(text, at)
		}
		end := c.separator
		if i == c.count-1 {
			if end = '\n'; text[at] == '\r' {
				at++
			}
		}
		if !ok || text[at] != end {
			return 0, false
		}
		at++
	}
	if c.count == 0 || max(values[size], values[thread]) > math.MaxUint32 || !lines.FitsBytes(values[address], uint32(values[size])) {
		return 0, false
	}
	b.Addr[row], b.Bytes[row], b.Kind[row] = values[address], uint32(values[size]), trace.Kind(values[kind])
	if b.PC != nil {
		b.PC[row] = values[pc]
	}
	if b.Thread != nil {
		b.Thread[row] = uint32(values[thread])
	}
	return at, true
}

// plainNumber reads a number at text[at:], of up to 16 hexadecimal or 19 decimal digits, and
// returns the index after it. [lines.Slack] bytes follow the last line.
func plainNumber(text []byte, at int) (v uint64, end int, ok bool) {
	if text[at] == '0' && text[at+1] == 'x' {
		at += 2
		v, n := lines.HexAt((*[lines.Slack]byte)(text[at:]), 0)
		return v, at + n, n > 0
	}
	for end = at; end < at+19; end++ {
		digit := text[end] - '0'
		if digit > 9 {
			break
		}
		v = v*10 + uint64(digit)
	}
	return v, end, end > at
}

// split splits line into p.fields, and removes quotes and surrounding blanks. A line must have as
// many fields as the header.
func (p *parser) split(line []byte) *trace.SyntaxError {
	p.unquoted = p.unquoted[:0]
	rest, more, count := line, true, 0
	for ; more; count++ {
		var field []byte
		var wrong *trace.SyntaxError
		if field, rest, more, wrong = p.next(rest); wrong != nil {
			return wrong
		}
		if count < len(p.fields) {
			p.fields[count] = field
		}
	}
	if count != p.columns.count {
		return lines.Wrong("line", line, strconv.Itoa(p.columns.count)+" fields, as in the header, got "+strconv.Itoa(count))
	}
	return nil
}

// next returns the first field of a text and the rest. The result "more" reports whether a
// separator follows the field.
func (p *parser) next(text []byte) (field, rest []byte, more bool, wrong *trace.SyntaxError) {
	text = bytes.TrimLeft(text, " ")
	if len(text) > 0 && text[0] == '"' {
		return p.quoted(text)
	}
	if i := bytes.IndexByte(text, p.columns.separator); i >= 0 {
		return lines.Trim(text[:i]), text[i+1:], true, nil
	}
	return lines.Trim(text), nil, false, nil
}

// quoted implements next for text that begins with a quote.
func (p *parser) quoted(text []byte) (field, rest []byte, more bool, wrong *trace.SyntaxError) {
	begin := len(p.unquoted)
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '"':
			p.unquoted = append(p.unquoted, text[i])
		case i+1 < len(text) && text[i+1] == '"':
			p.unquoted = append(p.unquoted, '"')
			i++
		default:
			field, rest = lines.Trim(p.unquoted[begin:]), lines.TrimBlanks(text[i+1:])
			if len(rest) == 0 {
				return field, nil, false, nil
			}
			if rest[0] == p.columns.separator {
				return field, rest[1:], true, nil
			}
			return nil, nil, false, lines.Wrong("text after a quoted field", rest, "a separator or the end of the line")
		}
	}
	return nil, nil, false, lines.Wrong("quoted field", text, "a closing quote on the same line")
}

// number reads a decimal number, or a hexadecimal number after 0x, of at most the given number of
// bits. If the parameter "empty" is true, an empty field is read as 0.
func number(what string, field []byte, bits int, empty bool) (v uint64, wrong *trace.SyntaxError) {
	if len(field) == 0 && empty {
		return 0, nil
	}
	var ok bool
	if len(field) > 2 && field[0] == '0' && field[1]|0x20 == 'x' {
		v, _, ok = lines.Hex(field[2:])
	} else {
		v, ok = lines.Decimal(field)
	}
	if !ok || v>>(bits-1)>>1 != 0 {
		return 0, lines.Wrong(what, field, "a number of at most "+strconv.Itoa(bits)+" bits, decimal or hexadecimal with 0x")
	}
	return v, nil
}

var kindWords = [...]struct {
	word string
	kind trace.Kind
}{
	{"r", trace.Load}, {"l", trace.Load}, {"load", trace.Load}, {"read", trace.Load}, {"0", trace.Load},
	{"w", trace.Store}, {"s", trace.Store}, {"store", trace.Store}, {"write", trace.Store}, {"1", trace.Store},
	{"m", trace.Modify}, {"modify", trace.Modify}, {"update", trace.Modify}, {"rw", trace.Modify},
	{"i", trace.Fetch}, {"f", trace.Fetch}, {"fetch", trace.Fetch}, {"ifetch", trace.Fetch}, {"x", trace.Fetch}, {"2", trace.Fetch},
}

func kindOf(field []byte) (trace.Kind, *trace.SyntaxError) {
	if len(field) == 1 {
		if k := kindLetters[field[0]]; k != noKind {
			return k, nil
		}
	}
	for _, k := range kindWords {
		if equalFold(field, k.word) {
			return k.kind, nil
		}
	}
	return 0, lines.Wrong("kind", field, "r, w, m, i, load, store, modify or fetch")
}

const noKind trace.Kind = 0xff

// kindLetters maps the one-letter words, in either case, to their kinds.
var kindLetters = func() (table [256]trace.Kind) {
	for i := range table {
		table[i] = noKind
	}
	for _, k := range kindWords {
		if len(k.word) == 1 {
			table[k.word[0]] = k.kind
			table[strings.ToUpper(k.word)[0]] = k.kind
		}
	}
	return table
}()

// equalFold reports whether field equals word, ignoring the case of field. The word must be in
// lower case.
func equalFold(field []byte, word string) bool {
	return len(field) == len(word) && strings.ToLower(string(field)) == word
}

// most is the maximum number of columns in a table.
const most = 64

const (
	address = iota
	kind
	size
	thread
	pc
	known
)

// Columns lists the recognised names of each column that is read. The usual name comes first. Case,
// blanks, hyphens and underscores are ignored.
var Columns = [known][]string{
	address: {"addr", "address", "vaddr", "ea", "memaddr"},
	kind:    {"rw", "kind", "type", "op", "access", "write", "iswrite", "accesstype"},
	size:    {"size", "bytes", "len", "length"},
	thread:  {"tid", "thread", "threadid"},
	pc:      {"pc", "ip", "instruction", "eip", "rip"},
}

// Cores lists the recognised names of a column of cores. Without a column of threads, the
// references of each core are read as the references of one thread. Otherwise, the column is ignored.
var Cores = []string{"core", "cpu", "cpuid"}

type layout struct {
	separator byte
	count     int        // number of fields in a line; 0 until the header has been read
	at        [known]int // index of the field for each column; -1 if there is no such field
	column    [most]int  // the column of each field, or the constant "known" if the field is ignored
}

func (l *layout) has(column int) bool { return l.count > 0 && l.at[column] >= 0 }

// HeaderError reports that the first line of a table does not name the columns of a trace.
type HeaderError struct{ wrong trace.SyntaxError }

func (e *HeaderError) Error() string {
	return e.wrong.File + ":" + strconv.Itoa(e.wrong.Line) + ": " + e.clause()
}

func (e *HeaderError) clause() string {
	return "header " + strconv.Quote(e.wrong.Got) + ": " + e.wrong.What + ", want " + e.wrong.Want
}

// SetPlace adds the position to the error.
func (e *HeaderError) SetPlace(file string, line int) { e.wrong.SetPlace(file, line) }

// parseHeader finds the columns that the header line names.
func parseHeader(line []byte) (layout, *HeaderError) {
	fail := func(what, want string) (layout, *HeaderError) {
		return layout{}, &HeaderError{*lines.Wrong(what, line, want)}
	}
	p := parser{columns: layout{separator: separatorOf(line), at: [known]int{-1, -1, -1, -1, -1}}}
	c, core := &p.columns, -1
	for rest, more := line, true; more; c.count++ {
		var name []byte
		var wrong *trace.SyntaxError
		if name, rest, more, wrong = p.next(rest); wrong != nil {
			return fail("the closing quote of a name is missing", wrong.Want)
		}
		if c.count == most {
			return fail("there are too many columns", "at most "+strconv.Itoa(most))
		}
		column := columnOf(name)
		if c.column[c.count] = column; column == known {
			if isAny(name, Cores) {
				if core >= 0 {
					return fail("there are two columns for "+Cores[0], "one column")
				}
				core = c.count
			}
			continue
		}
		if c.at[column] >= 0 {
			return fail("there are two columns for "+Columns[column][0], "one column")
		}
		c.at[column] = c.count
	}
	if c.at[thread] < 0 && core >= 0 {
		c.at[thread], c.column[core] = core, thread
	}
	if c.at[address] < 0 {
		return fail("there is no column of addresses", "a column named addr, and optionally tid, pc, rw and size")
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

// columnOf returns the column with the given name, or the constant "known" if there is no such
// column.
func columnOf(name []byte) int {
	for column, names := range Columns {
		if isAny(name, names) {
			return column
		}
	}
	return known
}

// isAny reports whether a name in a header is one of the given names.
func isAny(name []byte, names []string) bool {
	letters := make([]byte, 0, len(name))
	for _, c := range name {
		if c != ' ' && c != '_' && c != '-' {
			letters = append(letters, c)
		}
	}
	return slices.ContainsFunc(names, func(n string) bool { return equalFold(letters, n) })
}

// Recognise reports whether the first line of text, the beginning of a file, names an address
// column; if not, it returns the reason.
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
	return "the file has no header line", false
}

// Writer writes references as a table. The table has the columns addr and rw, and also size, tid
// and pc if the trace contains these values. Ranges are written as loads and stores.
type Writer struct {
	w     io.Writer
	text  []byte
	has   trace.Header // copy of the trace's header, made when the header line was written; it determines the columns
	begun bool
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// ErrLateColumn reports that threads, PCs or sizes appeared in a trace after the header line was written.
var ErrLateColumn = errors.New("thread numbers, PCs or sizes first appear after the beginning of the trace, so the header of the table has no column for them; convert the trace to a container (.sgt), and then convert the container to a table")

var letters = [trace.NumKinds]byte{
	trace.Load: 'r', trace.Store: 'w', trace.Modify: 'm', trace.Fetch: 'i', trace.RangeRead: 'r', trace.RangeWrite: 'w',
}

// Write writes the references of a batch. The parameter h is the header of the trace. Events are
// not written.
func (w *Writer) Write(b *trace.Batch, h trace.Header) error {
	w.text = w.text[:0]
	if !w.begun {
		w.begin(h)
	}
	if h.Threads && !w.has.Threads || h.PCs && !w.has.PCs || h.Sizes && !w.has.Sizes {
		return ErrLateColumn
	}
	for i, kind := range b.Kind {
		if kind.IsReference() {
			w.row(b, i)
		}
	}
	_, err := w.w.Write(w.text)
	return err
}

// begin writes the header line, which names the columns.
func (w *Writer) begin(h trace.Header) {
	w.has, w.begun = h, true
	w.text = append(w.text, "addr,rw"...)
	if h.Sizes {
		w.text = append(w.text, ",size"...)
	}
	if h.Threads {
		w.text = append(w.text, ",tid"...)
	}
	if h.PCs {
		w.text = append(w.text, ",pc"...)
	}
	w.text = append(w.text, '\n')
}

func (w *Writer) row(b *trace.Batch, i int) {
	text := strconv.AppendUint(append(w.text, "0x"...), b.Addr[i], 16)
	text = append(text, ',', letters[b.Kind[i]])
	if w.has.Sizes {
		text = strconv.AppendUint(append(text, ','), uint64(b.Bytes[i]), 10)
	}
	if w.has.Threads {
		text = strconv.AppendUint(append(text, ','), uint64(trace.At(b.Thread, i)), 10)
	}
	if w.has.PCs {
		text = strconv.AppendUint(append(text, ",0x"...), trace.At(b.PC, i), 16)
	}
	w.text = append(text, '\n')
}
