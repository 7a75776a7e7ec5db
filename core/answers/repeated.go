package answers

import (
	"sort"
	"strings"

	"github.com/stackglass/stackglass/core/report"
)

// tellApart gives data objects that share their names, as blocks that one function
// allocates in two places do, names with a file and line, so that a join does not
// pair them in the order of their misses, which differs between runs: what is in
// the same line of both belongs together; of what is left, if both have as many,
// the first in the code with the first. The doubt is about these, in a sentence.
func tellApart(a, b report.Table, by report.Key) (ofA, ofB report.Table, doubt string) {
	if a.Key != "sites" && a.Key != "objects" || a.Index("name") < 0 || b.Index("name") < 0 || a.Index("line") < 0 || b.Index("line") < 0 {
		return a, b, ""
	}
	a.Rows, b.Rows = append([][]report.Value{}, a.Rows...), append([][]report.Value{}, b.Rows...)
	inA, inB := sameNames(&a, by), sameNames(&b, by)
	moved := ""
	for name, rows := range inA {
		if others := inB[name]; len(rows) > 1 || len(others) > 1 {
			if of := nameByLines(&a, &b, rows, others); of != "" && (moved == "" || of < moved) {
				moved = of
			}
		}
	}
	for name, rows := range inB {
		if len(inA[name]) == 0 && len(rows) > 1 {
			nameByLines(&a, &b, nil, rows)
		}
	}
	if moved != "" {
		doubt = "data of one name lies in other lines in B than in A, and is paired in the order of the code, as " + moved
	}
	return a, b, doubt
}

// sameNames lists the rows of each name.
func sameNames(t *report.Table, by report.Key) map[string][]int {
	rows := map[string][]int{}
	for i := range t.Rows {
		name := rowName(t, i, by)
		rows[name] = append(rows[name], i)
	}
	return rows
}

// rowName is what a join knows a row by.
func rowName(t *report.Table, row int, by report.Key) string {
	var parts []string
	for _, key := range by.Columns {
		text := ""
		if at := t.Index(key); at >= 0 {
			text = t.Rows[row][at].Plain()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\x00")
}

// nameByLines names rows of a and b by their places, and gives one of the names of
// those that are paired though their lines differ, "" for none.
func nameByLines(a, b *report.Table, inA, inB []int) (moved string) {
	inCode(a, inA)
	inCode(b, inB)
	var restA, restB []int
	for len(inA) > 0 || len(inB) > 0 { // as lists are merged
		order := 0
		switch {
		case len(inA) == 0:
			order = 1
		case len(inB) == 0:
			order = -1
		default:
			order = comparePlace(a, inA[0], b, inB[0])
		}
		if order <= 0 {
			if order < 0 {
				restA = append(restA, inA[0])
			}
			rename(a, inA[0], placeText(a, inA[0]))
			inA = inA[1:]
		}
		if order >= 0 {
			if order > 0 {
				restB = append(restB, inB[0])
			}
			rename(b, inB[0], placeText(b, inB[0]))
			inB = inB[1:]
		}
	}
	if len(restA) != len(restB) {
		return ""
	}
	for i, row := range restA {
		rename(a, row, ", in B "+placeText(b, restB[i]))
		b.Rows[restB[i]][b.Index("name")] = a.Rows[row][a.Index("name")]
		moved = a.Rows[row][a.Index("name")].Plain()
	}
	return moved
}

// inCode sorts rows by their places in the code.
func inCode(t *report.Table, rows []int) {
	sort.SliceStable(rows, func(x, y int) bool { return comparePlace(t, rows[x], t, rows[y]) < 0 })
}

func comparePlace(a *report.Table, x int, b *report.Table, y int) int {
	if c := report.Compare(a.Rows[x][a.Index("file")], b.Rows[y][b.Index("file")]); c != 0 {
		return c
	}
	return -report.Compare(a.Rows[x][a.Index("line")], b.Rows[y][b.Index("line")]) // which lets numbers fall
}

func placeText(t *report.Table, row int) string {
	file, line := t.Rows[row][t.Index("file")].Plain(), t.Rows[row][t.Index("line")]
	if !line.IsNumber() {
		return file
	}
	return file + ":" + line.Plain()
}

// rename puts words behind a row's name, in a row of its own.
func rename(t *report.Table, row int, words string) {
	if words == "" {
		return
	}
	if !strings.HasPrefix(words, ",") {
		words = " " + words
	}
	cells := append([]report.Value{}, t.Rows[row]...)
	at := t.Index("name")
	cells[at] = report.TextOf(cells[at].Plain() + words)
	t.Rows[row] = cells
}

// repeatedNames says that rows cannot be told apart, "" where these are less than
// a hundredth of the first level's misses.
func repeatedNames(a, b report.Table, by report.Key) string {
	if a.Key != "sites" && a.Key != "objects" {
		return ""
	}
	for _, t := range []*report.Table{&a, &b} {
		misses := 0
		for misses < len(t.Columns) && !strings.HasSuffix(t.Columns[misses].Key, "_misses") {
			misses++
		}
		if misses == len(t.Columns) {
			continue
		}
		repeated, all := 0.0, 0.0
		for _, rows := range sameNames(t, by) {
			for _, row := range rows {
				n, _ := t.Rows[row][misses].Number()
				if all += n; len(rows) > 1 {
					repeated += n
				}
			}
		}
		if repeated > 0 && repeated >= all/100 {
			return "several rows of one run have the same name, and are paired with those of the other in the order of their misses, " +
				"which may pair what does not belong together; --by function pairs by name, and debug information (-g) gives lines"
		}
	}
	return ""
}
