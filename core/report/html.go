package report

import "strings"

// AppendHTML appends the table as HTML: its title as the caption, numbers in
// cells of the class n, and the first cell of each row as its heading.
func (t *Table) AppendHTML(b []byte) []byte {
	b = append(b, "<table>\n"...)
	if t.Title != "" {
		b = append(append(append(b, "<caption>"...), EscapeHTML(t.Title)...), "</caption>\n"...)
	}
	b = append(b, "<thead><tr>"...)
	for i := range t.Columns {
		b = append(append(append(b, "<th scope=\"col\""...), t.class(i)...), '>')
		b = append(append(b, EscapeHTML(t.Columns[i].heading())...), "</th>"...)
	}
	b = append(b, "</tr></thead>\n<tbody>\n"...)
	for _, row := range t.Rows {
		b = append(b, "<tr>"...)
		for i := range t.Columns {
			open, end := "<td", "</td>"
			if i == 0 {
				open, end = "<th scope=\"row\"", "</th>"
			}
			b = append(append(append(b, open...), t.class(i)...), '>')
			b = append(append(b, EscapeHTML(row[i].Human())...), end...)
		}
		b = append(b, "</tr>\n"...)
	}
	return append(b, "</tbody></table>\n"...)
}

// class is the attribute of a column's cells: numbers stand to the right.
func (t *Table) class(column int) string {
	for _, row := range t.Rows {
		if row[column].IsNumber() {
			return ` class="n"`
		}
	}
	return ""
}

// EscapeHTML is text as it stands in HTML and SVG, between tags and in quotes.
// What no document may hold becomes the replacement character.
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
