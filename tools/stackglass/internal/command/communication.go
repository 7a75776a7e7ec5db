package command

import (
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/ask"
)

// communication can read the program.
func (a *app) communication() *cobra.Command {
	return a.verb(ask.VerbOf("communication"), func(cmd *cobra.Command, o *asking) {
		var symbols []string
		addSymbols(cmd, &symbols)
		o.prepare = func(l *answerable, run *ask.Run) error { return symbolized(l, run, symbols) }
	})
}
