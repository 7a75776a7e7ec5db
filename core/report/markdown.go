package report

import "strings"

// appendMarkdown writes facts and tables as tables of GitHub-flavoured
// Markdown.
func (d *Document) appendMarkdown(b []byte) []byte {
	if len(d.Input) > 0 {
		b = append(b, "| input | |\n| --- | --- |\n"...)
		for _, f := range d.Input {
			b = append(append(b, "| "...), escapePipe(f.Label)...)
			b = append(append(append(b, " | "...), escapePipe(f.Value.Human())...), " |\n"...)
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
		b = append(append(append(b, "**"...), t.Title...), "**\n\n"...)
	}
	if len(t.Columns) == 0 {
		return b // there is nothing to tell but the title
	}
	b = append(b, '|')
	for i := range t.Columns {
		b = append(append(append(b, ' '), escapePipe(t.Columns[i].heading())...), " |"...)
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
			b = append(append(append(b, ' '), escapePipe(row[i].Human())...), " |"...)
		}
		b = append(b, '\n')
	}
	return b
}

func escapePipe(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}
