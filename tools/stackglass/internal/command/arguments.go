package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// oneFile wants the one trace or profile that a verb answers about.
func oneFile(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("give a trace or a profile, as in: stackglass ", cmd.Name(), " app.lackey.lz4; see `", helpOf(cmd), "`")
	case 1:
		return nil
	}
	return usagef(cmd.Name(), " answers about one file, and ", strconv.Itoa(len(args)), " are given: ", strings.Join(args, ", "))
}

// someFiles wants traces or profiles.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("give a trace, as in: stackglass ", cmd.Name(), " app.lackey.lz4 -o app.sgp; see `", helpOf(cmd), "`")
	}
	return nil
}

// nothing wants no argument at all.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(strconv.Quote(args[0]), ": ", cmd.Name(), " takes options only")
	}
	return nil
}

// unknownVerb tells that the first word of a command line is no verb, and which
// one is near, or which there are.
func unknownVerb(root *cobra.Command, args []string) error {
	at := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if at < 0 {
		return usagef("no verb; there are ", strings.Join(verbs(root), ", "))
	}
	said := "there is no verb " + strconv.Quote(args[at])
	if near := root.SuggestionsFor(args[at]); len(near) > 0 {
		return usagef(said, "; did you mean `stackglass ", strings.Join(near, "` or `stackglass "), "`?")
	}
	return usagef(said, "; there are ", strings.Join(verbs(root), ", "))
}

func verbs(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// help is the verb of that name; unlike Cobra's own, it fails for a verb that
// there is not.
func (a *app) help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return verbs(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return unknownVerb(cmd.Root(), args)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// wanted says what an option of a type takes.
var wanted = map[string]string{
	"uint32":    "a whole number without a unit, as in 64",
	"uint64":    "a whole number without a unit or sign, as in 1000000",
	"uintSlice": "whole numbers with commas between them, as in 32,64",
	"bool":      "true or false",
}

// flagError tells in our words what is wrong with an option.
func flagError(cmd *cobra.Command, err error) error {
	var (
		invalid *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
		unknown *pflag.NotExistError
	)
	switch {
	case errors.As(err, &invalid) && wanted[invalid.GetFlag().Value.Type()] != "":
		f := invalid.GetFlag()
		return usagef("--", f.Name, " ", strconv.Quote(invalid.GetValue()), ", want ", wanted[f.Value.Type()])
	case errors.As(err, &missing):
		return usagef("--", missing.GetFlag().Name, ": a value is missing behind it; see `", helpOf(cmd), "`")
	case errors.As(err, &unknown):
		option := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			option = "-" + unknown.GetSpecifiedShortnames()
		}
		return usagef("there is no option ", option, "; see `", helpOf(cmd), "`")
	}
	return asUsage(err)
}
