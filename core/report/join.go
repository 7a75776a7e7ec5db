package report

import (
	"slices"
	"sort"
)

// Side states which of two joined tables contains a row.
type Side uint8

// The values of Side.
const (
	InBoth Side = iota
	InA         // the row is only in table A
	InB         // the row is only in table B
)

// These variables define the column that states which table contains a row. statuses is for tables
// in which each row describes a problem, and sides is for all other tables.
var (
	sides    = sideWords{"in", [...]string{InBoth: "both", InA: "A", InB: "B"}}
	statuses = sideWords{"status", [...]string{InBoth: "remaining", InA: "fixed", InB: "new"}}
)

type sideWords struct {
	column string
	of     [3]string
}

// Key defines which rows of two tables match.
type Key struct {
	// Columns contains the keys of the columns that identify a row. If several rows have equal values
	// in these columns, they are paired in order: the first row of A with the first row of B, and so
	// on.
	Columns []string
	// Without contains the keys of descriptive columns. A joined table omits these columns, because
	// comparing them is meaningless.
	Without []string
	// If Counts is true, the numbers of a missing row are 0, for example in a histogram or a list of
	// events. If Counts is false, the numbers of a missing row are unknown.
	Counts bool
	// If Problems is true, each row describes a problem. A row that only A contains is a fixed
	// problem; a row that only B contains is a new problem.
	Problems bool
}

// Joined is the result of [Join]: two tables of the same kind side by side. [Joined.Table] and
// [Joined.Wide] convert a Joined to a single table.
type Joined struct {
	Title   string
	Columns []Column // columns that identify a row
	Cells   []Column // columns whose values are compared
	Rows    []JoinedRow

	problems bool
}

// sideTexts returns the texts that state which table contains a row.
func (j *Joined) sideTexts() *sideWords {
	if j.problems {
		return &statuses
	}
	return &sides
}

// JoinedRow contains the values of both tables for one row.
type JoinedRow struct {
	Name []Value // values of the columns in Joined.Columns
	In   Side
	A, B []Value // values of Joined.Cells; [None] if the table does not contain the row or column
}

// Difference returns B - A for a cell. Differences of counts are exact. An undefined difference is
// [None].
func (r *JoinedRow) Difference(cell int) Value { return Difference(r.A[cell], r.B[cell]) }

// Change returns the difference of a cell relative to A.
func (r *JoinedRow) Change(cell int) Value { return Change(r.A[cell], r.B[cell]) }

// Join puts two tables of the same kind side by side. Rows match if they have equal values in the
// columns of the given key. Columns match if they have the same column key.
//
// If the rows of both tables are in ascending order, for example by distance, the joined rows are
// in ascending order, too. Otherwise, the joined rows are in the order of table a, and each row
// that only table b contains is inserted after its predecessor in b.
func Join(a, b Table, by Key) *Joined {
	j := &Joined{Title: a.Title, problems: by.Problems}
	switch {
	case len(a.Rows) == 0 && b.Title != "":
		j.Title = b.Title
	case len(b.Rows) > 0 && b.Title != a.Title:
		j.Title = "" // a title that describes only one of the tables would be wrong
	}
	j.addColumns(&a, by)
	j.addColumns(&b, by)
	left, right := j.asJoinedRows(&a, InA), j.asJoinedRows(&b, InB)
	rising := isAscending(left) && isAscending(right)
	j.Rows = pairRows(left, right)
	if rising {
		sort.SliceStable(j.Rows, func(x, y int) bool { return compareNames(j.Rows[x].Name, j.Rows[y].Name) < 0 })
	}
	if by.Counts {
		j.fillZeros()
	}
	return j
}

// addColumns adds to j the columns of t that j lacks.
func (j *Joined) addColumns(t *Table, by Key) {
	for _, c := range t.Columns {
		list := &j.Cells
		if slices.Contains(by.Columns, c.Key) {
			list = &j.Columns
		}
		if (&Table{Columns: *list}).Index(c.Key) < 0 && !slices.Contains(by.Without, c.Key) {
			*list = append(*list, c)
		}
	}
}

// asJoinedRows converts the rows of t to joined rows that contain only the values of t.
func (j *Joined) asJoinedRows(t *Table, in Side) []JoinedRow {
	list := make([]JoinedRow, len(t.Rows))
	for i, row := range t.Rows {
		list[i] = JoinedRow{Name: t.cellsOf(row, j.Columns), In: in, A: nones(len(j.Cells)), B: nones(len(j.Cells))}
		if in == InA {
			list[i].A = t.cellsOf(row, j.Cells)
		} else {
			list[i].B = t.cellsOf(row, j.Cells)
		}
	}
	return list
}

// cellsOf returns the cells of a row of t in the given columns.
func (t *Table) cellsOf(row []Value, columns []Column) []Value {
	cells := nones(len(columns))
	for i := range columns {
		if at := t.Index(columns[i].Key); at >= 0 {
			cells[i] = row[at]
		}
	}
	return cells
}

func nones(n int) []Value {
	list := make([]Value, n)
	for i := range list {
		list[i] = None()
	}
	return list
}

// pairRows joins the rows that have equal names.
func pairRows(left, right []JoinedRow) []JoinedRow {
	waiting := map[string][]int{} // by name: the indices of the unpaired rows in the slice "left", ascending
	for i := range left {
		name := nameOf(left[i].Name)
		waiting[name] = append(waiting[name], i)
	}
	// rows that only the right table contains, indexed by the number of preceding rows of the left
	// table
	alone := make([][]JoinedRow, len(left)+1)
	at := 0
	for _, r := range right {
		name := nameOf(r.Name)
		if list := waiting[name]; len(list) > 0 {
			left[list[0]].B, left[list[0]].In = r.B, InBoth
			waiting[name], at = list[1:], list[0]+1
		} else {
			alone[at] = append(alone[at], r)
		}
	}
	rows := alone[0]
	for i := range left {
		rows = append(append(rows, left[i]), alone[i+1]...)
	}
	return rows
}

// nameOf converts a row's name to a string. Different names are converted to different strings.
func nameOf(name []Value) string {
	var b []byte
	for _, v := range name {
		b = append(AppendString(b, v.Plain()), byte(v.kind))
	}
	return string(b)
}

// isAscending reports whether rows are in strictly ascending order of their names.
func isAscending(rows []JoinedRow) bool {
	for i := 1; i < len(rows); i++ {
		if compareNames(rows[i-1].Name, rows[i].Name) >= 0 {
			return false
		}
	}
	return true
}

// compareNames compares names for ascending order, with numbers before texts.
func compareNames(x, y []Value) int {
	for i := range x {
		a, b := x[i], y[i]
		switch {
		case a.IsNumber() && b.IsNumber():
			a, b = b, a // swapped, because Compare orders larger numbers first
		case a.IsNumber():
			return -1
		case b.IsNumber():
			return 1
		}
		if c := Compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// fillZeros sets the numbers of missing rows to zero.
func (j *Joined) fillZeros() {
	for i := range j.Rows {
		row := &j.Rows[i]
		for cell := range j.Cells {
			switch row.In {
			case InA:
				row.B[cell] = row.A[cell].zeroOfKind()
			case InB:
				row.A[cell] = row.B[cell].zeroOfKind()
			}
		}
	}
}

// Cell returns the index of the compared column with this key, or -1.
func (j *Joined) Cell(key string) int { return (&Table{Columns: j.Cells}).Index(key) }

// Pick keeps only the compared columns with the given keys, in the order of the keys. Unknown keys
// are ignored.
func (j *Joined) Pick(keys ...string) *Joined {
	picked := &Joined{Title: j.Title, Columns: j.Columns, Rows: make([]JoinedRow, len(j.Rows)), problems: j.problems}
	for i := range j.Rows {
		picked.Rows[i] = JoinedRow{Name: j.Rows[i].Name, In: j.Rows[i].In}
	}
	for _, key := range keys {
		at := j.Cell(key)
		if at < 0 {
			continue
		}
		picked.Cells = append(picked.Cells, j.Cells[at])
		for i := range j.Rows {
			picked.Rows[i].A = append(picked.Rows[i].A, j.Rows[i].A[at])
			picked.Rows[i].B = append(picked.Rows[i].B, j.Rows[i].B[at])
		}
	}
	return picked
}

// SortByDifference sorts rows by the absolute difference of a cell, in descending order. Rows
// without a difference are last.
func (j *Joined) SortByDifference(cell int) {
	sort.SliceStable(j.Rows, func(x, y int) bool {
		return Compare(j.Rows[x].Difference(cell).magnitude(), j.Rows[y].Difference(cell).magnitude()) < 0
	})
}

// Table returns a table with a row for every compared cell. Each row contains the name of the
// joined row, the tables that contain the joined row, the key of the cell, the values in A and B,
// the difference, and the change. Cells with text are included only if the texts differ.
func (j *Joined) Table(key string) Table { return j.tall(key, true) }

// Brief returns a shorter form of the same table, for human readers. If both tables contain all
// rows, Brief omits the column that states which tables contain a row. If only one cell is
// compared, Brief omits the column with the cell's key.
func (j *Joined) Brief(key string) Table { return j.tall(key, false) }

func (j *Joined) tall(key string, whole bool) Table {
	cells := j.shownCells()
	showIn, showCell := whole || j.problems || !j.allInBoth(), whole || len(cells) != 1
	t := Table{Key: key, Title: j.Title, Columns: append([]Column{}, j.Columns...)}
	if showIn {
		t.Columns = append(t.Columns, Column{Key: j.sideTexts().column, Label: j.sideTexts().column})
	}
	unit := ""
	if showCell {
		t.Columns = append(t.Columns, Column{Key: "number", Label: "number"})
	} else {
		unit = j.Cells[cells[0]].labelWithUnit() + ", "
	}
	t.Columns = append(t.Columns, Column{Key: "a", Label: unit + "A"}, Column{Key: "b", Label: unit + "B"},
		Column{Key: "difference", Label: "difference"}, Column{Key: "change", Label: "change"})
	for i := range j.Rows {
		r := &j.Rows[i]
		for _, cell := range cells {
			if !r.isShown(cell) {
				continue
			}
			row := append([]Value{}, r.Name...)
			if showIn {
				row = append(row, TextOf(j.sideTexts().of[r.In]))
			}
			if showCell {
				row = append(row, j.cellName(cell, whole))
			}
			t.Add(append(row, r.A[cell], r.B[cell], r.Difference(cell), r.Change(cell))...)
		}
	}
	return t
}

// cellName returns the name of a compared column: the key for programs, or the heading for people.
func (j *Joined) cellName(cell int, key bool) Value {
	if key {
		return TextOf(j.Cells[cell].Key)
	}
	return TextOf(j.Cells[cell].labelWithUnit())
}

// shownCells returns the indices of the compared columns that are shown in at least one row (see
// isShown).
func (j *Joined) shownCells() (cells []int) {
	for cell := range j.Cells {
		for i := range j.Rows {
			r := &j.Rows[i]
			if r.A[cell].IsNumber() || r.B[cell].IsNumber() || r.isShown(cell) && !Equal(r.A[cell], r.B[cell]) {
				cells = append(cells, cell)
				break
			}
		}
	}
	return cells
}

// isShown reports whether a compared cell is shown. A cell is shown if it is a number in at least
// one table, or a text that differs between the tables.
func (r *JoinedRow) isShown(cell int) bool {
	if r.A[cell].kind == noneKind && r.B[cell].kind == noneKind {
		return false
	}
	words := r.A[cell].kind == textKind || r.B[cell].kind == textKind
	return !words || r.In == InBoth && !Equal(r.A[cell], r.B[cell])
}

func (j *Joined) allInBoth() bool {
	for i := range j.Rows {
		if j.Rows[i].In != InBoth {
			return false
		}
	}
	return true
}

// Wide returns a table with one row per joined row. Each compared cell has four columns: A, B,
// difference and change. The keys of these columns begin with the key of the cell: misses_a,
// misses_b, misses_difference, misses_change.
func (j *Joined) Wide(key string) Table {
	cells := j.shownCells()
	t := Table{Key: key, Title: j.Title, Columns: append([]Column{}, j.Columns...)}
	t.Columns = append(t.Columns, Column{Key: j.sideTexts().column, Label: j.sideTexts().column})
	for _, cell := range cells {
		c := j.Cells[cell]
		t.Columns = append(t.Columns, Column{Key: c.Key + "_a", Label: c.Label + ", A", Unit: c.Unit},
			Column{Key: c.Key + "_b", Label: "B", Unit: c.Unit},
			Column{Key: c.Key + "_difference", Label: "difference", Unit: c.Unit},
			Column{Key: c.Key + "_change", Label: "change"})
	}
	for i := range j.Rows {
		r := &j.Rows[i]
		row := append(append([]Value{}, r.Name...), TextOf(j.sideTexts().of[r.In]))
		for _, cell := range cells {
			row = append(row, r.A[cell], r.B[cell], r.Difference(cell), r.Change(cell))
		}
		t.Add(row...)
	}
	return t
}
