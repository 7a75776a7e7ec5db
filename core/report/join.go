package report

import (
	"slices"
	"sort"
)

// Side indicates which of two joined tables contains a row.
type Side uint8

// The possible sides.
const (
	InBoth Side = iota
	InA         // only in A
	InB         // only in B
)

// The key of the column that states which table contains a row, and the words in this column: for
// rows in general, and for rows that describe problems.
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
	// Columns contains the keys of the columns that identify a row. Rows with equal values in these
	// columns are paired in order: the first with the first, and so on.
	Columns []string
	// Without contains the keys of columns that are omitted, because these columns only describe a
	// row, and comparing them is meaningless.
	Without []string
	// Counts means that a table without a certain row counts zero for this row, for example in a
	// histogram or a list of events. If Counts is false, the numbers of a missing row are unknown.
	Counts bool
	// Problems means that each row describes a problem. A problem that only A has is fixed; a
	// problem that only B has is new.
	Problems bool
}

// Joined contains two tables of the same kind side by side. [Join] returns a Joined, and
// [Joined.Table] and [Joined.Wide] convert it to one table.
type Joined struct {
	Title   string
	Columns []Column // columns that identify a row
	Cells   []Column // columns that are compared
	Rows    []JoinedRow

	problems bool
}

// words returns the texts that state which table contains a row.
func (j *Joined) words() *sideWords {
	if j.problems {
		return &statuses
	}
	return &sides
}

// JoinedRow contains the values of both tables for one row.
type JoinedRow struct {
	Name []Value // values of Joined.Columns
	In   Side
	A, B []Value // values of Joined.Cells; [None] if the table does not have the row or column
}

// Difference returns B - A for a cell. The difference of counts is exact, and an undefined
// difference is [None].
func (r *JoinedRow) Difference(cell int) Value { return Difference(r.A[cell], r.B[cell]) }

// Change returns the difference of a cell relative to A.
func (r *JoinedRow) Change(cell int) Value { return Change(r.A[cell], r.B[cell]) }

// Join puts two tables of the same kind side by side. Rows are matched by the columns of the given
// key, and columns by their own keys.
//
// If the rows of both tables are in ascending order, for example by distance, the joined rows are
// in ascending order, too. Otherwise, rows keep their order in table a. A row that is only in table
// b is inserted after the row that precedes it in b.
func Join(a, b Table, by Key) *Joined {
	j := &Joined{Title: a.Title, problems: by.Problems}
	switch {
	case len(a.Rows) == 0 && b.Title != "":
		j.Title = b.Title
	case len(b.Rows) > 0 && b.Title != a.Title:
		j.Title = "" // each title describes only the numbers of its own table
	}
	j.addColumns(&a, by)
	j.addColumns(&b, by)
	left, right := j.rows(&a, InA), j.rows(&b, InB)
	rising := rises(left) && rises(right)
	j.Rows = pair(left, right)
	if rising {
		sort.SliceStable(j.Rows, func(x, y int) bool { return compareNames(j.Rows[x].Name, j.Rows[y].Name) < 0 })
	}
	if by.Counts {
		j.fill()
	}
	return j
}

// addColumns adds the columns of t that j lacks.
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

// rows returns the rows of t as joined rows of a single table.
func (j *Joined) rows(t *Table, in Side) []JoinedRow {
	list := make([]JoinedRow, len(t.Rows))
	for i, row := range t.Rows {
		list[i] = JoinedRow{Name: t.pick(row, j.Columns), In: in, A: nones(len(j.Cells)), B: nones(len(j.Cells))}
		if in == InA {
			list[i].A = t.pick(row, j.Cells)
		} else {
			list[i].B = t.pick(row, j.Cells)
		}
	}
	return list
}

// pick returns the cells of a row of t in the given columns.
func (t *Table) pick(row []Value, columns []Column) []Value {
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

// pair combines rows with equal names.
func pair(left, right []JoinedRow) []JoinedRow {
	waiting := map[string][]int{} // ascending indices of unpaired rows of left, by name
	for i := range left {
		name := nameOf(left[i].Name)
		waiting[name] = append(waiting[name], i)
	}
	// rows that exist only in b, by the number of rows of a that precede them
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

// rises reports whether rows are in strictly ascending order of their names.
func rises(rows []JoinedRow) bool {
	for i := 1; i < len(rows); i++ {
		if compareNames(rows[i-1].Name, rows[i].Name) >= 0 {
			return false
		}
	}
	return true
}

// compareNames orders names in ascending order, with numbers before words.
func compareNames(x, y []Value) int {
	for i := range x {
		a, b := x[i], y[i]
		switch {
		case a.IsNumber() && b.IsNumber():
			a, b = b, a // Compare puts larger numbers first
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

// fill writes zeros for numbers if a row is missing in one of the tables.
func (j *Joined) fill() {
	for i := range j.Rows {
		row := &j.Rows[i]
		for cell := range j.Cells {
			switch row.In {
			case InA:
				row.B[cell] = row.A[cell].zero()
			case InB:
				row.A[cell] = row.B[cell].zero()
			}
		}
	}
}

// Cell returns the index of the compared column with this key, or -1.
func (j *Joined) Cell(key string) int { return (&Table{Columns: j.Cells}).Index(key) }

// Pick keeps only the compared columns with the given keys, in this order. Unknown keys are
// ignored.
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
// without a difference come last.
func (j *Joined) SortByDifference(cell int) {
	sort.SliceStable(j.Rows, func(x, y int) bool {
		return Compare(j.Rows[x].Difference(cell).magnitude(), j.Rows[y].Difference(cell).magnitude()) < 0
	})
}

// Table returns a table with a row for every compared cell. The row contains the name of the joined
// row, the tables that contain it, the cell's key, A, B, the difference and the change. Cells that
// contain text have a row only if the texts differ.
func (j *Joined) Table(key string) Table { return j.tall(key, true) }

// Brief is like Table, but for human readers. If both tables contain all rows, Brief omits the
// column that says which tables contain a row. If only one cell is compared, Brief omits the column
// with the cell's key.
func (j *Joined) Brief(key string) Table { return j.tall(key, false) }

func (j *Joined) tall(key string, whole bool) Table {
	cells := j.worth()
	showIn, showCell := whole || j.problems || !j.allInBoth(), whole || len(cells) != 1
	t := Table{Key: key, Title: j.Title, Columns: append([]Column{}, j.Columns...)}
	if showIn {
		t.Columns = append(t.Columns, Column{Key: j.words().column, Label: j.words().column})
	}
	unit := ""
	if showCell {
		t.Columns = append(t.Columns, Column{Key: "number", Label: "number"})
	} else {
		unit = j.Cells[cells[0]].heading() + ", "
	}
	t.Columns = append(t.Columns, Column{Key: "a", Label: unit + "A"}, Column{Key: "b", Label: unit + "B"},
		Column{Key: "difference", Label: "difference"}, Column{Key: "change", Label: "change"})
	for i := range j.Rows {
		r := &j.Rows[i]
		for _, cell := range cells {
			if !r.tells(cell) {
				continue
			}
			row := append([]Value{}, r.Name...)
			if showIn {
				row = append(row, TextOf(j.words().of[r.In]))
			}
			if showCell {
				row = append(row, j.cellName(cell, whole))
			}
			t.Add(append(row, r.A[cell], r.B[cell], r.Difference(cell), r.Change(cell))...)
		}
	}
	return t
}

// cellName returns the name of a compared column: the column's key for programs, or its heading for
// people.
func (j *Joined) cellName(cell int, key bool) Value {
	if key {
		return TextOf(j.Cells[cell].Key)
	}
	return TextOf(j.Cells[cell].heading())
}

// worth returns the cells that are worth showing: numbers, and words that differ.
func (j *Joined) worth() (cells []int) {
	for cell := range j.Cells {
		for i := range j.Rows {
			r := &j.Rows[i]
			if r.A[cell].IsNumber() || r.B[cell].IsNumber() || r.tells(cell) && !Equal(r.A[cell], r.B[cell]) {
				cells = append(cells, cell)
				break
			}
		}
	}
	return cells
}

// tells reports whether a cell is shown: a number that at least one table contains, or words that
// differ between the tables.
func (r *JoinedRow) tells(cell int) bool {
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

// Wide returns a table with one row per joined row. For each compared cell, the table has the
// columns A, B, difference and change. The keys of these columns extend the key of the cell:
// misses_a, misses_b, misses_difference, misses_change.
func (j *Joined) Wide(key string) Table {
	cells := j.worth()
	t := Table{Key: key, Title: j.Title, Columns: append([]Column{}, j.Columns...)}
	t.Columns = append(t.Columns, Column{Key: j.words().column, Label: j.words().column})
	for _, cell := range cells {
		c := j.Cells[cell]
		t.Columns = append(t.Columns, Column{Key: c.Key + "_a", Label: c.Label + ", A", Unit: c.Unit},
			Column{Key: c.Key + "_b", Label: "B", Unit: c.Unit},
			Column{Key: c.Key + "_difference", Label: "difference", Unit: c.Unit},
			Column{Key: c.Key + "_change", Label: "change"})
	}
	for i := range j.Rows {
		r := &j.Rows[i]
		row := append(append([]Value{}, r.Name...), TextOf(j.words().of[r.In]))
		for _, cell := range cells {
			row = append(row, r.A[cell], r.B[cell], r.Difference(cell), r.Change(cell))
		}
		t.Add(row...)
	}
	return t
}
