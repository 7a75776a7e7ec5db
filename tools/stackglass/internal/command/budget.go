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

// budget is the condition of one --fail-if: a number in the answer and a bound on this number.
type budget struct {
	text        string
	level       int // index of the level, or -1 for memory
	levels      int // number of levels
	metric, ops string
	bound       float64
}

// parseBudgets parses conditions on hits and misses.
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
	left, right, found := b.cut(strings.IndexAny(text, "<>"))
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

// cut splits a budget's text at the operator, and sets b.ops.
func (b *budget) cut(at int) (left, right string, found bool) {
	if at < 0 {
		return "", "", false
	}
	left, right, b.ops = b.text[:at], b.text[at+1:], b.text[at:at+1]
	if rest, equal := strings.CutPrefix(right, "="); equal {
		right, b.ops = rest, b.ops+"="
	}
	return strings.TrimSpace(left), strings.TrimSpace(right), true
}

// parseBound parses the bound, a number.
func (b *budget) parseBound(text string) bool {
	var err error
	b.bound, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil && !math.IsNaN(b.bound)
}

// checkBudgets returns an error that names the first budget that the answer about a hierarchy
// exceeds.
func checkBudgets(list []budget, d *report.Document) error {
	return checkBudgetsOn(list, func(b *budget) float64 {
		t, row := tableOf(d, "levels"), 0
		if b.level < 0 {
			t = tableOf(d, "memory")
		} else {
			row = len(t.Rows) - b.levels + b.level // rows of instruction caches come first
		}
		x, _ := t.Rows[row][t.Index(b.metric)].Number()
		return x
	})
}

// checkBudgetsOn returns an error that names the first exceeded budget. value returns a budget's
// number.
func checkBudgetsOn(list []budget, value func(*budget) float64) error {
	for _, b := range list {
		if value := value(&b); b.broken(value) {
			return &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " is true, because the number is " + b.shown(value)}
		}
	}
	return nil
}

// shown formats a value that exceeds the budget, with enough digits to show that the value exceeds
// the budget.
func (b *budget) shown(value float64) string {
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

// bound is the condition of one --fail-if of a comparison: a number of a row, and a bound on its
// difference.
type bound struct {
	budget
	row     string // the row's name, or * for any row
	percent bool   // the bound limits the change in %, and not the difference
}

// parseBounds parses conditions ROW.NUMBER.difference OP BOUND, where OP is one of > >= < <= and
// BOUND may end in %. The name of a row may contain these characters, so the text is parsed from
// its end.
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

// checkBounds returns the first exceeded bound as the error exceeded. err returns the error for a
// bound on a number that the comparison does not contain.
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
					exceeded = &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " is true, because the difference is " + value}
				}
			}
		}
		if !known {
			return nil, usagef("--fail-if ", strconv.Quote(b.text), ": the comparison has no row ", b.row, " with a number named ", b.metric, "; want one of ", strings.Join(someNames(compared), ", "))
		}
	}
	return exceeded, nil
}

// names reports whether the bound applies to a row: b.row must be the row's first name, all names
// of the row joined by slashes, or the table's name if the row has no name.
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

// breaks reports whether the row's difference exceeds the bound, and formats the difference. A
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

// someNames lists, as examples, a few names of numbers to which a bound can apply.
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
