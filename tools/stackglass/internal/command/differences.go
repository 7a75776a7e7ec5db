package command

import (
	"math"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
)

// bound is one --fail-if of a comparison: a number of a row, and a bound on the difference.
type bound struct {
	budget
	row     string // its name, or * for any
	percent bool   // the bound is on the change, not on the difference
}

// parseBounds reads ROW.NUMBER.difference OP BOUND, where OP is one of > >= < <= and BOUND
// may end in %. The name of a row may contain these characters, so the text is read from its
// end.
func parseBounds(texts []string) (list []bound, err error) {
	for _, text := range texts {
		b, ok := parseBound(text)
		if !ok {
			return nil, usagef("--fail-if ", strconv.Quote(text), ", want ROW.NUMBER.difference>BOUND as in L1.misses.difference>1%, with >, >=, < or <=, and a bound that is a number, or a change in %")
		}
		list = append(list, b)
	}
	return list, nil
}

func parseBound(text string) (b bound, ok bool) {
	b.text, b.level = text, -1
	left, right, found := b.cut(strings.LastIndexAny(text, "<>"))
	right, b.percent = strings.CutSuffix(right, "%")
	name, difference := strings.CutSuffix(left, ".difference")
	dot := strings.LastIndexByte(name, '.')
	if !found || !difference || dot <= 0 || dot == len(name)-1 || !b.parseBound(right) {
		return b, false
	}
	b.row, b.metric = name[:dot], name[dot+1:]
	return b, true
}

// checkBounds returns the first bound that is exceeded as the error exceeded. err reports a
// bound on a number that is not compared.
func checkBounds(list []bound, compared []answers.Compared) (exceeded, err error) {
	for _, b := range list {
		known := false
		for i := range compared {
			j := &compared[i]
			cell := j.Cell(b.metric)
			for r := range j.Rows {
				row := &j.Rows[r]
				if cell < 0 || !b.names(row, j.Key) {
					continue
				}
				known = true
				if value, broken := b.breaks(row, cell); broken && exceeded == nil {
					exceeded = &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " holds, the difference is " + value}
				}
			}
		}
		if !known {
			return nil, usagef("--fail-if ", strconv.Quote(b.text), ": no number ", b.metric, " of a row ", b.row, " is compared; there are ", strings.Join(someNames(compared), ", "))
		}
	}
	return exceeded, nil
}

// names reports whether the bound is on a row: it has the row's first name, all its names
// joined by slashes, or the name of the table if the row has none.
func (b *bound) names(row *report.JoinedRow, table string) bool {
	if b.row == "*" {
		return true
	}
	names := rowNames(row, table)
	return b.row == names[0] || b.row == strings.Join(names, "/")
}

func rowNames(row *report.JoinedRow, table string) (names []string) {
	for _, v := range row.Name {
		names = append(names, v.Plain())
	}
	if len(names) == 0 {
		return []string{table}
	}
	return names
}

// breaks reports whether the row's difference exceeds the bound, and shows the difference. A
// change from 0 is infinite.
func (b *bound) breaks(row *report.JoinedRow, cell int) (shown string, broken bool) {
	difference := row.Difference(cell)
	value, known := difference.Number()
	if !known {
		return "", false
	}
	if !b.percent {
		return difference.Plain(), b.broken(value)
	}
	change, known := row.Change(cell).Number()
	if !known {
		return difference.Plain() + " from nothing", b.broken(math.Copysign(math.Inf(1), value))
	}
	if change *= 100; !b.broken(change) {
		return "", false
	}
	return b.shown(change) + " %", true
}

// someNames lists a few numbers that a bound can be on.
func someNames(compared []answers.Compared) (list []string) {
	for i := range compared {
		j := &compared[i]
		for r := range j.Rows {
			if r < 2 && len(j.Cells) > 0 {
				list = append(list, rowNames(&j.Rows[r], j.Key)[0]+"."+j.Cells[0].Key+".difference")
			}
		}
	}
	return list
}
