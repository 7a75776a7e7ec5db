package report

import (
	"slices"
	"unicode/utf8"
)

const gap = "  "

// appendText writes facts, then tables: numbers to the right, words to the
// left, two spaces between columns, no rules and no trailing space.
func (d *Document) appendText(b []byte) []byte {
	wide := 0
	for _, f := range d.Input {
		wide = max(wide, utf8.RuneCountInString(f.Label))
	}
	for _, f := range d.Input {
		b = pad(append(b, f.Label...), wide-utf8.RuneCountInString(f.Label))
		b = append(append(append(b, gap...), f.Value.Human()...), '\n')
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

// appendPairs writes a single row as a line for each column.
func (t *Table) appendPairs(b []byte) []byte {
	for i := range t.Columns {
		b = append(append(b, t.Columns[i].heading()...), gap...)
		b = append(append(b, t.Rows[0][i].Human()...), '\n')
	}
	return b
}

func (t *Table) appendText(b []byte) []byte {
	if t.Title != "" {
		b = append(append(b, t.Title...), '\n')
	}
	if len(t.Columns) == 0 {
		return b // there is nothing to tell but the title
	}
	cells := make([][]string, 0, len(t.Rows)+1)
	head := make([]string, len(t.Columns))
	wide := make([]int, len(t.Columns))
	right := make([]bool, len(t.Columns))
	for i := range t.Columns {
		head[i] = t.Columns[i].heading()
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

func pad(b []byte, spaces int) []byte {
	for range spaces {
		b = append(b, ' ')
	}
	return b
}

// heading is a column's label with its unit.
func (c *Column) heading() string {
	if c.Unit == "" {
		return c.Label
	}
	return c.Label + " (" + c.Unit + ")"
}
