package command

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
)

// budget is one --fail-if: a number of the answer and a bound that it must not
// break.
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

// parseBudgetsOn reads NAME.METRIC OP NUMBER, where OP is one of > >= < <=, on
// these metrics of a level, of which memory has the first.
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
	b := budget{text: text, level: -1}
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return b, false
	}
	b.ops = text[at : at+1]
	rest := text[at+1:]
	if strings.HasPrefix(rest, "=") {
		b.ops, rest = b.ops+"=", rest[1:]
	}
	name, metric, found := strings.Cut(strings.TrimSpace(text[:at]), ".")
	bound, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if !found || err != nil || bound != bound {
		return b, false
	}
	b.metric, b.bound = metric, bound
	for i, c := range h.Levels {
		if c.Name == name {
			b.level = i
		}
	}
	if b.level < 0 {
		return b, name == "memory" && metric == metrics[0]
	}
	return b, slices.Contains(metrics, metric)
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

// checkBudgetsOn names the first budget that is exceeded by what it names.
func checkBudgetsOn(list []budget, named func(*budget) float64) error {
	for _, b := range list {
		if value := named(&b); b.broken(value) {
			return &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " holds, the number is " + b.shown(value)}
		}
	}
	return nil
}

// shown is a value that breaks the budget, to as many digits as one reads, or as
// show that it does.
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
