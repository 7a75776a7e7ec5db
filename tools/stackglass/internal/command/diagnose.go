package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
	diagnosis "github.com/stackglass/stackglass/core/diagnose"
	"github.com/stackglass/stackglass/core/report"
)

// diagnose adds budgets on the numbers of the diagnosis.
func (a *app) diagnose(cmd *cobra.Command, o *asking) {
	a.sites(cmd, o)
	var (
		checkSources = o.check
		budgets      []tableBudget
	)
	texts := cmd.Flags().StringArray("fail-if", nil, "exit 1 if this holds for any row, as in 'findings.saved_share>10%' (may be repeated)")
	o.check = func(q ask.Question) (err error) {
		if budgets, err = parseTableBudgets(*texts, new(diagnosis.Diagnosis).Tables()); err != nil {
			return err
		}
		return checkSources(q)
	}
	o.last = func(d *report.Document) error { return checkTableBudgets(budgets, d) }
}

// tableBudget is one --fail-if: a column of a table, and a bound on each of its numbers.
type tableBudget struct {
	budget
	table string
}

// parseTableBudgets reads TABLE.COLUMN OP NUMBER, where OP is one of > >= < <= and NUMBER may
// end in %. The tables say which columns there are.
func parseTableBudgets(texts []string, tables []report.Table) (list []tableBudget, err error) {
	for _, text := range texts {
		b := tableBudget{budget: budget{text: text}}
		left, right, found := b.cut(strings.IndexAny(text, "<>"))
		right, percent := strings.CutSuffix(right, "%")
		b.table, b.metric, _ = strings.Cut(left, ".")
		known := slices.ContainsFunc(tables, func(t report.Table) bool { return t.Key == b.table && t.Index(b.metric) >= 0 })
		if !found || !known || !b.parseBound(right) {
			return nil, usagef("--fail-if ", strconv.Quote(text), ", want TABLE.COLUMN>NUMBER as in findings.saved_share>10%, with >, >=, < or <=, "+
				"and a table and a column that --format json prints")
		}
		if percent {
			b.bound /= 100
		}
		list = append(list, b)
	}
	return list, nil
}

// checkTableBudgets names the first budget that a row exceeds.
func checkTableBudgets(list []tableBudget, d *report.Document) error {
	for _, b := range list {
		t := tableOf(d, b.table)
		for i, row := range t.Rows {
			if value, ok := row[t.Index(b.metric)].Number(); ok && b.broken(value) {
				return &budgetError{"the budget is exceeded: --fail-if " + strconv.Quote(b.text) + " holds for row " + strconv.Itoa(i+1) +
					" of " + b.table + ", the number is " + b.shown(value)}
			}
		}
	}
	return nil
}
