package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/report"
)

// whatIf adds budgets.
func (a *app) whatIf(cmd *cobra.Command, o *asking) {
	var budgets []budget
	texts := cmd.Flags().StringArray("fail-if", nil, "exit 1 if this holds, as in 'L2.misses>1e6' (may be repeated)")
	o.check = func(q ask.Question) (err error) {
		budgets, err = parseBudgets(*texts, q.Machine)
		return err
	}
	o.last = func(d *report.Document) error { return checkBudgets(budgets, d) }
}

// tableOf returns the table of a document with that key, or nil.
func tableOf(d *report.Document, key string) *report.Table {
	if at := slices.IndexFunc(d.Tables, func(t report.Table) bool { return t.Key == key }); at >= 0 {
		return &d.Tables[at]
	}
	return nil
}
