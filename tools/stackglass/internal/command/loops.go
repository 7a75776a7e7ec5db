package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// loops leaves a folded trace folded, and can read the program.
func (a *app) loops() *cobra.Command {
	return a.verb(program.Loops, func(cmd *cobra.Command, o *asking) {
		var symbols []string
		addSymbols(cmd, &symbols)
		hideSample(cmd)
		o.prepare = func(l *answerable, run *ask.Run) error {
			if l.folded != nil {
				if len(symbols) > 0 {
					return usagef("--symbols: ", l.name, " is a folded trace, whose instructions are not named; unfold it first, or leave the option out")
				}
				return nil
			}
			return symbolized(l, run, symbols)
		}
	})
}

// loadFolded reads a folded trace as it is.
func loadFolded(in *pass.Input) (*answerable, error) {
	tree, header, err := in.Tree()
	if err != nil && (tree == nil || tree.Rows() == 0) {
		return nil, err
	}
	folded := &ask.Folded{Tree: tree, Program: header.Program, Partial: err != nil}
	return &answerable{Result: &pass.Result{Stopped: err}, name: in.Name, folded: folded}, nil
}

// choosesRows tells that not all rows of a trace are wanted, or more is to be known of
// them than loops tell.
func (r *reading) choosesRows() bool {
	for _, name := range []string{"kinds", "skip", "limit", "threads"} {
		if r.cmd.Flags().Lookup(name).Changed {
			return true
		}
	}
	return false
}

// hideSample leaves the options for samples out of the help of a verb that samples tell
// little for.
func hideSample(cmd *cobra.Command) {
	for _, name := range []string{"sample", "sample-seed"} {
		must(cmd.Flags().MarkHidden(name))
	}
}
