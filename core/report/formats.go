package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/codec"
)

func appendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(b, text...)
	}
	return b
}

// JSON returns the document as one JSON object. Each row of a table is on a separate line, so that
// the text is readable in terminals and diffs.
func (d *Document) JSON() []byte {
	b := AppendString([]byte("{\n  \"schema\": {\"name\": "), d.Schema)
	b = appendTexts(b, ", \"version\": ", strconv.Itoa(d.Version), "},\n  \"input\": {")
	for i, f := range d.Input {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(AppendString(b, f.Key), ": "...)
		b = f.Value.appendJSON(b)
	}
	b = append(b, "},\n"...)
	for i := range d.Tables {
		t := &d.Tables[i]
		b = append(AppendString(append(b, "  "...), t.Key), ": "...)
		b = append(t.appendJSON(b), ",\n"...)
	}
	b = append(b, "  \"warnings\": ["...)
	for i, w := range d.Warnings {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, "\n    "...), w)
	}
	if len(d.Warnings) > 0 {
		b = append(b, "\n  "...)
	}
	return append(b, "]\n}\n"...)
}

func (t *Table) appendJSON(b []byte) []byte {
	if t.Single && len(t.Rows) == 1 {
		return t.appendRow(b, t.Rows[0])
	}
	b = append(b, '[')
	for i, row := range t.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = t.appendRow(append(b, "\n    "...), row)
	}
	if len(t.Rows) > 0 {
		b = append(b, "\n  "...)
	}
	return append(b, ']')
}

func (t *Table) appendRow(b []byte, row []Value) []byte {
	b = append(b, '{')
	for i := range t.Columns {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(AppendString(b, t.Columns[i].Key), ": "...)
		b = row[i].appendJSON(b)
	}
	return append(b, '}')
}

func (v Value) appendJSON(b []byte) []byte {
	if v.kind == textKind {
		return AppendString(b, v.text)
	}
	if v.kind == noneKind || math.IsNaN(v.real) || math.IsInf(v.real, 0) {
		return append(b, "null"...)
	}
	return append(b, v.Plain()...)
}

// AppendString appends s as a JSON string. Like encoding/json, AppendString replaces invalid UTF-8
// with the replacement character.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f:
			b = append(b, `\u00`...)
			b = append(b, hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// CSV returns the table in the format of RFC 4180, but with LF as the line break. The header
// contains the keys of the columns, and the rows contain plain numbers.
func (t *Table) CSV() (b []byte) {
	for i := range t.Columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendField(b, t.Columns[i].Key)
	}
	b = append(b, '\n')
	for _, row := range t.Rows {
		for i := range t.Columns {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendField(b, row[i].Plain())
		}
		b = append(b, '\n')
	}
	return b
}

func appendField(b []byte, s string) []byte {
	if !strings.ContainsAny(s, "\",\r\n") {
		return append(b, s...)
	}
	return appendTexts(b, `"`, strings.ReplaceAll(s, `"`, `""`), `"`)
}

const gap = "  "

// appendText appends the facts and then the tables. Numbers are right-aligned, texts are
// left-aligned, and columns are separated by two spaces. The output contains no ruled lines and no
// trailing spaces.
func (d *Document) appendText(b []byte) []byte {
	wide := 0
	for _, f := range d.Input {
		wide = max(wide, utf8.RuneCountInString(f.Label))
	}
	for _, f := range d.Input {
		b = pad(append(b, f.Label...), wide-utf8.RuneCountInString(f.Label))
		b = appendTexts(b, gap, f.Value.Human(), "\n")
	}
	for i := range d.Tables {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		if t := &d.Tables[i]; t.Single && len(t.Rows) == 1 {
			b = t.appendPairs(b)
		} else {
			b = t.appendText(b)
		}
	}
	return b
}

// appendPairs appends a table with a single row, with one line for each column.
func (t *Table) appendPairs(b []byte) []byte {
	for i := range t.Columns {
		b = appendTexts(b, t.Columns[i].labelWithUnit(), gap, t.Rows[0][i].Human(), "\n")
	}
	return b
}

func (t *Table) appendText(b []byte) []byte {
	if t.Title != "" {
		b = appendTexts(b, t.Title, "\n")
	}
	if len(t.Columns) == 0 {
		return b
	}
	cells := make([][]string, 0, len(t.Rows)+1)
	head := make([]string, len(t.Columns))
	wide := make([]int, len(t.Columns))
	right := make([]bool, len(t.Columns))
	for i := range t.Columns {
		head[i] = t.Columns[i].labelWithUnit()
	}
	if slices.ContainsFunc(head, func(h string) bool { return h != "" }) {
		cells = append(cells, head)
	}
	for _, row := range t.Rows {
		line := make([]string, len(t.Columns))
		for i := range line {
			line[i] = row[i].Human()
			right[i] = right[i] || row[i].IsNumber()
		}
		cells = append(cells, line)
	}
	for _, line := range cells {
		for i, cell := range line {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range cells {
		for i, cell := range line {
			blank := wide[i] - utf8.RuneCountInString(cell)
			if i > 0 {
				b = append(b, gap...)
			}
			if right[i] {
				b = pad(b, blank)
			}
			b = append(b, cell...)
			if !right[i] && i < len(line)-1 {
				b = pad(b, blank)
			}
		}
		b = append(b, '\n')
	}
	return b
}

func pad(b []byte, spaces int) []byte { return append(b, strings.Repeat(" ", spaces)...) }

// labelWithUnit returns a column's label with its unit.
func (c *Column) labelWithUnit() string {
	if c.Unit == "" {
		return c.Label
	}
	return c.Label + " (" + c.Unit + ")"
}

// appendMarkdown appends facts and tables as tables in GitHub-flavoured Markdown.
func (d *Document) appendMarkdown(b []byte) []byte {
	if len(d.Input) > 0 {
		b = append(b, "| input | |\n| --- | --- |\n"...)
		for _, f := range d.Input {
			b = appendTexts(b, "| ", escapePipe(f.Label), " | ", escapePipe(f.Value.Human()), " |\n")
		}
	}
	for i := range d.Tables {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = d.Tables[i].appendMarkdown(b)
	}
	return b
}

func (t *Table) appendMarkdown(b []byte) []byte {
	if t.Title != "" {
		b = appendTexts(b, "**", t.Title, "**\n\n")
	}
	if len(t.Columns) == 0 {
		return b
	}
	b = append(b, '|')
	for i := range t.Columns {
		b = appendTexts(b, " ", escapePipe(t.Columns[i].labelWithUnit()), " |")
	}
	b = append(b, "\n|"...)
	for i := range t.Columns {
		if len(t.Rows) > 0 && t.Rows[0][i].IsNumber() {
			b = append(b, " ---: |"...)
		} else {
			b = append(b, " --- |"...)
		}
	}
	b = append(b, '\n')
	for _, row := range t.Rows {
		b = append(b, '|')
		for i := range t.Columns {
			b = appendTexts(b, " ", escapePipe(row[i].Human()), " |")
		}
		b = append(b, '\n')
	}
	return b
}

func escapePipe(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// AppendHTML appends the table as HTML. The title becomes the caption, numeric cells have the class
// n, and the first cell of each row is a heading.
func (t *Table) AppendHTML(b []byte) []byte {
	b = append(b, "<table>\n"...)
	if t.Title != "" {
		b = appendTexts(b, "<caption>", EscapeHTML(t.Title), "</caption>\n")
	}
	b = append(b, "<thead><tr>"...)
	for i := range t.Columns {
		b = appendTexts(b, "<th scope=\"col\"", t.classAttribute(i), ">", EscapeHTML(t.Columns[i].labelWithUnit()), "</th>")
	}
	b = append(b, "</tr></thead>\n<tbody>\n"...)
	for _, row := range t.Rows {
		b = append(b, "<tr>"...)
		for i := range t.Columns {
			open, end := "<td", "</td>"
			if i == 0 {
				open, end = "<th scope=\"row\"", "</th>"
			}
			b = appendTexts(b, open, t.classAttribute(i), ">", EscapeHTML(row[i].Human()), end)
		}
		b = append(b, "</tr>\n"...)
	}
	return append(b, "</tbody></table>\n"...)
}

// classAttribute returns the class attribute of a column's cells. Columns of numbers have a class,
// so that they can be right-aligned.
func (t *Table) classAttribute(column int) string {
	if slices.ContainsFunc(t.Rows, func(row []Value) bool { return row[column].IsNumber() }) {
		return ` class="n"`
	}
	return ""
}

// EscapeHTML escapes text for HTML and SVG, both between tags and within quotes. EscapeHTML
// replaces characters that are not allowed in documents with the replacement character.
func EscapeHTML(s string) string {
	return escaper.Replace(strings.Map(printable, strings.ToValidUTF8(s, "\uFFFD")))
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func printable(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
		return '\uFFFD'
	}
	return r
}

// Code encodes or decodes the table in a binary format, for exchange with another program of the
// same build. Unlike the other formats, the binary format preserves every value exactly.
//
//	text     number of bytes as uvarint, bytes
//	table    key, title, single (one byte), columns, and if there are any, rows
//	columns  number of columns, then the key, label and unit of each column
//	rows     number of rows, then for each row as many values as there are columns
//	value    kind, flags (one byte each); by kind a uvarint, eight bytes of a float64, or a text
func (t *Table) Code(c *codec.Coder) {
	c.Text(&t.Key)
	c.Text(&t.Title)
	c.Flag(&t.Single)
	codec.Slice(c, &t.Columns, 3, func(column *Column) {
		c.Text(&column.Key)
		c.Text(&column.Label)
		c.Text(&column.Unit)
	})
	if len(t.Columns) == 0 {
		return
	}
	codec.Slice(c, &t.Rows, 2*len(t.Columns), func(row *[]Value) {
		if c.Reads() {
			*row = make([]Value, len(t.Columns))
		}
		for i := range t.Columns {
			v := None()
			if i < len(*row) {
				v = (*row)[i]
			}
			if v.code(c); c.Reads() {
				(*row)[i] = v
			}
		}
	})
}

func (v *Value) code(c *codec.Coder) {
	codec.Below(c, &v.kind, uint64(decimalKind)+1)
	c.Flags(&v.signed, &v.negative, &v.changed, &v.list)
	switch v.kind {
	case countKind, bytesKind, yesNoKind:
		c.U64(&v.count)
	case realKind, ratioKind, decimalKind:
		bits := math.Float64bits(v.real)
		c.Word(&bits)
		v.real = math.Float64frombits(bits)
	case textKind:
		c.Text(&v.text)
	}
}
