package command

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// budget is a condition of --fail-if: a number in the answer and a bound on this number.
type budget struct {
	text        string
	level       int // index of the level, or -1 for memory
	levels      int // number of levels of the hierarchy
	metric, ops string
	bound       float64
}

// parseBudgets parses conditions on the accesses, hits and misses of levels.
func parseBudgets(texts []string, h hierarchy.Hierarchy) ([]budget, error) {
	return parseBudgetsOn(texts, h, "L2.misses>1e6", "accesses", "hits", "misses", "miss_ratio")
}

// parseBudgetsOn parses conditions NAME.METRIC OP NUMBER, where OP is one of > >= < <= and METRIC
// is one of metrics. For memory, only the first metric exists.
func parseBudgetsOn(texts []string, h hierarchy.Hierarchy, example string, metrics ...string) ([]budget, error) {
	var list []budget
	for _, text := range texts {
		b, ok := parseBudget(text, h, metrics)
		if !ok {
			return nil, usagef("--fail-if ", strconv.Quote(text), ", want LEVEL.METRIC>NUMBER, for example ", example, ", with >, >=, < or <=; the metrics of a level are ",
				strings.Join(metrics, ", "), "; the only metric of memory is memory.", metrics[0])
		}
		list = append(list, b)
	}
	return list, nil
}

func parseBudget(text string, h hierarchy.Hierarchy, metrics []string) (budget, bool) {
	b := budget{text: text}
	left, right, found := b.cutOperator(strings.IndexAny(text, "<>"))
	name, metric, dotted := strings.Cut(left, ".")
	if !found || !dotted || !b.parseBound(right) {
		return b, false
	}
	b.metric, b.levels = metric, len(h.Levels)
	b.level = slices.IndexFunc(h.Levels, func(c hierarchy.Cache) bool { return c.Name == name })
	if b.level < 0 {
		return b, name == "memory" && metric == metrics[0]
	}
	return b, slices.Contains(metrics, metric)
}

// cutOperator splits a condition at the operator that begins at the given position. It stores the
// operator in b.ops.
func (b *budget) cutOperator(at int) (left, right string, found bool) {
	if at < 0 {
		return "", "", false
	}
	left, right, b.ops = b.text[:at], b.text[at+1:], b.text[at:at+1]
	if rest, equal := strings.CutPrefix(right, "="); equal {
		right, b.ops = rest, b.ops+"="
	}
	return strings.TrimSpace(left), strings.TrimSpace(right), true
}

// parseBound parses the number after the operator.
func (b *budget) parseBound(text string) bool {
	var err error
	b.bound, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil && !math.IsNaN(b.bound)
}

// checkBudgets compares the answer about a hierarchy with the budgets. It returns an error for the
// first budget that is exceeded.
func checkBudgets(list []budget, d *report.Document) error {
	return checkBudgetsOn(list, func(b *budget) float64 {
		t, row := tableOf(d, "levels"), 0
		if b.level < 0 {
			t = tableOf(d, "memory")
		} else {
			row = len(t.Rows) - b.levels + b.level // the first rows are instruction caches
		}
		x, _ := t.Rows[row][t.Index(b.metric)].Number()
		return x
	})
}

// checkBudgetsOn returns an error for the first budget that is exceeded. The function "value"
// returns the number to which a budget applies.
func checkBudgetsOn(list []budget, value func(*budget) float64) error {
	for _, b := range list {
		if value := value(&b); b.broken(value) {
			return &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " is true, because the number is " + b.format(value)}
		}
	}
	return nil
}

// format formats a value that exceeds the budget. The text has enough digits to show that the value
// exceeds the bound.
func (b *budget) format(value float64) string {
	digits := 5
	if value >= 1000 || value == math.Trunc(value) {
		digits = 0
	}
	for ; digits < 17; digits++ {
		text := strconv.FormatFloat(value, 'f', digits, 64)
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		if rounded, err := strconv.ParseFloat(text, 64); err == nil && b.broken(rounded) {
			return text
		}
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func (b *budget) broken(value float64) bool {
	switch b.ops {
	case ">":
		return value > b.bound
	case ">=":
		return value >= b.bound
	case "<":
		return value < b.bound
	}
	return value <= b.bound
}

// bound is a condition of --fail-if in a comparison: it names a number in a row, and limits the
// difference of this number between A and B.
type bound struct {
	budget
	row     string // the row's name, or * for any row
	percent bool   // whether the bound limits the relative change in %, instead of the difference
}

// parseBounds parses conditions ROW.NUMBER.difference OP BOUND, where OP is one of > >= < <= and
// BOUND may end in %. The condition is parsed from the end, because the name of the row may contain
// these characters.
func parseBounds(texts []string) (list []bound, err error) {
	for _, text := range texts {
		b, ok := parseBound(text)
		if !ok {
			return nil, usagef("--fail-if ", strconv.Quote(text), ", want ROW.NUMBER.difference>BOUND, for example L1.misses.difference>1%, with >, >=, < or <=, and a bound that is a number, or a change in %")
		}
		list = append(list, b)
	}
	return list, nil
}

func parseBound(text string) (b bound, ok bool) {
	b.text, b.level = text, -1
	left, right, found := b.cutOperator(strings.LastIndexAny(text, "<>"))
	right, b.percent = strings.CutSuffix(right, "%")
	name, difference := strings.CutSuffix(left, ".difference")
	dot := strings.LastIndexByte(name, '.')
	if !found || !difference || dot <= 0 || dot == len(name)-1 || !b.parseBound(right) {
		return b, false
	}
	b.row, b.metric = name[:dot], name[dot+1:]
	return b, true
}

// checkBounds compares a comparison with the bounds. The result "exceeded" is the error for the
// first bound that is exceeded. The result "err" is the error for a bound on a number that the
// comparison does not contain.
func checkBounds(list []bound, compared []answers.Compared) (exceeded, err error) {
	for _, b := range list {
		known := false
		for i := range compared {
			j := &compared[i]
			cell := j.Cell(b.metric)
			for r := range j.Rows {
				row := &j.Rows[r]
				if cell < 0 || !b.appliesTo(row, j.Key) {
					continue
				}
				known = true
				if value, broken := b.checkRow(row, cell); broken && exceeded == nil {
					exceeded = &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " is true, because the difference is " + value}
				}
			}
		}
		if !known {
			return nil, usagef("--fail-if ", strconv.Quote(b.text), ": the comparison has no row ", b.row, " with a number named ", b.metric, "; want one of ", strings.Join(exampleNames(compared), ", "))
		}
	}
	return exceeded, nil
}

// appliesTo reports whether the bound applies to a row. The field b.row must be the first name of
// the row, or all names of the row joined by slashes. If the row has no name, the field b.row must
// be the name of the table.
func (b *bound) appliesTo(row *report.JoinedRow, table string) bool {
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

// checkRow reports whether the difference in a row exceeds the bound, and formats the difference.
// The relative change from 0 is infinite.
func (b *bound) checkRow(row *report.JoinedRow, cell int) (shown string, broken bool) {
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
	return b.format(change) + " %", true
}

// exampleNames returns a few examples of numbers to which a bound can apply.
func exampleNames(compared []answers.Compared) (list []string) {
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
