package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// loops reads a loop-compressed trace without expanding it, and can read the program.
func (a *app) loops(cmd *cobra.Command, o *asking) {
	var symbols []string
	addSymbols(cmd, &symbols)
	hideSample(cmd)
	o.prepare = func(l *answerable, run *ask.Run) error {
		switch {
		case l.folded == nil:
			return symbolized(l, run, symbols)
		case len(symbols) > 0:
			return usagef("--symbols: ", l.name, " is a folded trace, whose instructions are not named; unfold it first, or leave the option out")
		}
		return nil
	}
}

// loadFolded reads a loop-compressed trace without expanding it.
func loadFolded(in *pass.Input) (*answerable, error) {
	tree, header, err := in.Tree()
	if err != nil && (tree == nil || tree.Rows() == 0) {
		return nil, err
	}
	folded := &ask.Folded{Tree: tree, Program: header.Program, Partial: err != nil}
	return &answerable{Result: &pass.Result{Stopped: err}, name: in.Name, folded: folded}, nil
}

// choosesRows reports whether options select some of the records of a trace.
func (r *reading) choosesRows() bool { return r.changed("kinds", "skip", "limit", "threads") != "" }

// hideSample hides the options for samples from the help of a verb that samples are of
// little use for.
func hideSample(cmd *cobra.Command) { hide(cmd, "sample", "sample-seed") }
