package answers

import (
	"slices"
	"sort"
	"strings"

	"github.com/stackglass/stackglass/core/report"
)

// disambiguate adds the file and line to the names of data objects that share a name, such as
// blocks that one function allocates at two source lines. Without locations, a join would pair such
// objects in the order of their misses, which differs between runs. Objects from the same source
// line are paired first. If both tables then have equally many unpaired objects, disambiguate pairs
// them in source order, and returns a warning about these pairs (doubt).
func disambiguate(a, b report.Table, by report.Key) (ofA, ofB report.Table, doubt string) {
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
		doubt = "data structures with the same name are declared at different lines in A and B, and are paired in source order, for example " + moved
	}
	return a, b, doubt
}

func sameNames(t *report.Table, by report.Key) map[string][]int {
	rows := map[string][]int{}
	for i := range t.Rows {
		name := rowName(t, i, by)
		rows[name] = append(rows[name], i)
	}
	return rows
}

// rowName returns the text by which a join matches a row.
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

// nameByLines adds source lines to the names of rows of a and b. It returns the name of a pair
// whose lines differ, or "".
func nameByLines(a, b *report.Table, inA, inB []int) (moved string) {
	sortByLocation(a, inA)
	sortByLocation(b, inB)
	var restA, restB []int
	for len(inA) > 0 && len(inB) > 0 { // merge the two sorted lists of rows
		order := comparePlace(a, inA[0], b, inB[0])
		if order < 0 {
			restA = append(restA, inA[0])
		}
		if order > 0 {
			restB = append(restB, inB[0])
		}
		if order <= 0 {
			nameByLine(a, inA[0])
			inA = inA[1:]
		}
		if order >= 0 {
			nameByLine(b, inB[0])
			inB = inB[1:]
		}
	}
	for _, row := range inA {
		nameByLine(a, row)
	}
	for _, row := range inB {
		nameByLine(b, row)
	}
	restA, restB = append(restA, inA...), append(restB, inB...)
	if len(restA) != len(restB) {
		return ""
	}
	for i, row := range restA {
		appendToName(a, row, ", in B "+placeText(b, restB[i]))
		b.Rows[restB[i]][b.Index("name")] = a.Rows[row][a.Index("name")]
		moved = a.Rows[row][a.Index("name")].Plain()
	}
	return moved
}

// sortByLocation sorts rows by their source locations.
func sortByLocation(t *report.Table, rows []int) {
	sort.SliceStable(rows, func(x, y int) bool { return comparePlace(t, rows[x], t, rows[y]) < 0 })
}

func comparePlace(a *report.Table, x int, b *report.Table, y int) int {
	if c := report.Compare(a.Rows[x][a.Index("file")], b.Rows[y][b.Index("file")]); c != 0 {
		return c
	}
	return -report.Compare(a.Rows[x][a.Index("line")], b.Rows[y][b.Index("line")]) // negated, because Compare orders larger numbers first
}

func placeText(t *report.Table, row int) string {
	file, line := t.Rows[row][t.Index("file")].Plain(), t.Rows[row][t.Index("line")]
	if !line.IsNumber() {
		return file
	}
	return file + ":" + line.Plain()
}

func nameByLine(t *report.Table, row int) { appendToName(t, row, placeText(t, row)) }

// appendToName copies a row and appends a text to its name.
func appendToName(t *report.Table, row int, words string) {
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

// repeatedNames returns a warning if several rows have the same name and cause at least 1 % of the
// first level's misses.
func repeatedNames(a, b report.Table, by report.Key) string {
	if a.Key != "sites" && a.Key != "objects" {
		return ""
	}
	for _, t := range []*report.Table{&a, &b} {
		misses := slices.IndexFunc(t.Columns, func(c report.Column) bool { return strings.HasSuffix(c.Key, "_misses") })
		if misses < 0 {
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
			return "several rows of one run have the same name, and are matched with rows of the other run in the order of their misses, " +
				"which may pair unrelated rows; to avoid this, use --by function, or compile with -g"
		}
	}
	return ""
}
