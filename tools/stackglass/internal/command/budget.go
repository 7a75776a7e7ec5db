package command

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// budget is one --fail-if: a number of the answer and a bound on it.
type budget struct {
	text        string
	level       int // index of the level; -1: memory
	metric, ops string
	bound       float64
}

// parseBudgets reads budgets on hits and misses.
func parseBudgets(texts []string, h hierarchy.Hierarchy) ([]budget, error) {
	return parseBudgetsOn(texts, h, "L2.misses>1e6", "accesses", "hits", "misses", "miss_ratio")
}

// parseBudgetsOn reads NAME.METRIC OP NUMBER, where OP is one of > >= < <= and METRIC is one
// of these metrics of a level. Memory has the first metric only.
func parseBudgetsOn(texts []string, h hierarchy.Hierarchy, example string, metrics ...string) ([]budget, error) {
	var list []budget
	for _, text := range texts {
		b, ok := parseBudget(text, h, metrics)
		if !ok {
			return nil, usagef("--fail-if ", strconv.Quote(text), ", want LEVEL.METRIC>NUMBER as in ", example, ", with a level of this hierarchy or memory.", metrics[0],
				", a metric of ", strings.Join(metrics, ", "), ", and > >= < or <=")
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
	b.metric = metric
	b.level = slices.IndexFunc(h.Levels, func(c hierarchy.Cache) bool { return c.Name == name })
	if b.level < 0 {
		return b, name == "memory" && metric == metrics[0]
	}
	return b, slices.Contains(metrics, metric)
}

// cut splits a budget's text at an operator, and sets the operator.
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

// parseBound reads the bound, which is a number.
func (b *budget) parseBound(text string) bool {
	var err error
	b.bound, err = strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil && !math.IsNaN(b.bound)
}

// checkBudgets names the first budget that the answer about a hierarchy exceeds.
func checkBudgets(list []budget, d *report.Document) error {
	return checkBudgetsOn(list, func(b *budget) float64 {
		t, row := tableOf(d, "levels"), b.level
		if row < 0 {
			t, row = tableOf(d, "memory"), 0
		}
		x, _ := t.Rows[row][t.Index(b.metric)].Number()
		return x
	})
}

// checkBudgetsOn names the first budget that is exceeded. value returns a budget's number.
func checkBudgetsOn(list []budget, value func(*budget) float64) error {
	for _, b := range list {
		if value := value(&b); b.broken(value) {
			return &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " holds, the number is " + b.shown(value)}
		}
	}
	return nil
}

// shown writes a value that breaks the budget, with a few digits, or as many as show that it
// does.
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
