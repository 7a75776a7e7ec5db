package report

import "strings"

// CSV writes the table as RFC 4180 asks, with line feeds: a header of the
// columns' keys, then the rows with plain numbers.
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
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}
