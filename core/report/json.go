package report

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// JSON writes the document as one object, a row a line, so that it reads well in
// a terminal and in a diff.
func (d *Document) JSON() []byte {
	b := append([]byte{}, "{\n  \"schema\": {\"name\": "...)
	b = appendString(b, d.Schema)
	b = append(b, ", \"version\": "...)
	b = strconv.AppendInt(b, int64(d.Version), 10)
	b = append(b, "},\n  \"input\": {"...)
	for i, f := range d.Input {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendString(b, f.Key), ": "...)
		b = f.Value.appendJSON(b)
	}
	b = append(b, "},\n"...)
	for i := range d.Tables {
		t := &d.Tables[i]
		b = append(appendString(append(b, "  "...), t.Key), ": "...)
		b = append(t.appendJSON(b), ",\n"...)
	}
	b = append(b, "  \"warnings\": ["...)
	for i, w := range d.Warnings {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, "\n    "...), w)
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
		b = append(appendString(b, t.Columns[i].Key), ": "...)
		b = row[i].appendJSON(b)
	}
	return append(b, '}')
}

func (v Value) appendJSON(b []byte) []byte {
	if v.kind == textKind {
		return appendString(b, v.text)
	}
	if v.kind == noneKind || math.IsNaN(v.real) || math.IsInf(v.real, 0) {
		return append(b, "null"...) // JSON has no word for them
	}
	return append(b, v.Plain()...)
}

// appendString quotes s as JSON. Bytes that are no UTF-8 become the
// replacement character, as in encoding/json.
func appendString(b []byte, s string) []byte {
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
