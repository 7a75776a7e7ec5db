package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/core/ask"
)

// localityVerbs lists the values of --by and, for each value, the verb that the verb "locality"
// replaces. The first verb is the default. Each of these verbs still exists as a command, but the
// help does not list it.
var localityVerbs = []struct{ by, verb string }{
	{"size", "curve"},
	{"distance", "histogram"},
	{"sets", "sets"},
	{"time", "windows"},
	{"window", "footprint"},
}

// isLocality reports whether the verb "locality" replaces the given verb.
func isLocality(verb string) bool {
	return slices.ContainsFunc(localityVerbs, func(l struct{ by, verb string }) bool { return l.verb == verb })
}

// locality returns the verb for stack distances, and for results that are computed from stack
// distances without a hierarchy. The verb has the options of all verbs that it replaces, and runs
// one of these verbs.
func (a *app) locality() *cobra.Command {
	var by string
	verbs := map[string]*cobra.Command{}
	var words []string
	cmd := &cobra.Command{
		Use:   "locality FILE",
		Short: "Misses by cache size, stack distance, number of sets, or time",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb := verbs[by]
			if verb == nil {
				return usagef("--by ", by, ", want one of ", strings.Join(words, ", "))
			}
			if err := copyOptions(cmd, verb, by); err != nil {
				return err
			}
			verb.SetContext(cmd.Context())
			return verb.RunE(verb, args)
		},
	}
	for _, l := range localityVerbs {
		verb := a.newVerbCommand(ask.VerbOf(l.verb))
		verbs[l.by], words = verb, append(words, l.by)
		verb.Flags().VisitAll(func(f *pflag.Flag) {
			if cmd.Flags().Lookup(f.Name) == nil {
				cmd.Flags().AddFlag(f)
			}
		})
	}
	cmd.Flags().StringVar(&by, "by", words[0], "print misses or accesses by this `QUANTITY`: "+strings.Join(words, ", "))
	setCompletions(cmd, "by", words)
	return cmd
}

// copyOptions copies options from the verb "locality" to the verb that "locality" runs. It copies
// only options that the user has specified.
func copyOptions(locality, verb *cobra.Command, by string) (err error) {
	locality.Flags().Visit(func(f *pflag.Flag) {
		to := verb.Flags().Lookup(f.Name)
		switch {
		case err != nil || f.Name == "by" || to == f:
		case to == nil:
			err = usagef("--", f.Name, " cannot be combined with --by ", by, "; see `stackglass help locality`")
		default:
			values := []string{f.Value.String()}
			if list, ok := f.Value.(pflag.SliceValue); ok {
				values = list.GetSlice()
			}
			for _, v := range values {
				err = errors.Join(err, verb.Flags().Set(f.Name, v))
			}
		}
	})
	return err
}
