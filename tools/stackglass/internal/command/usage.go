package command

import (
	"embed"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stackglass/stackglass/core"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/system"
)

// helpTexts contains a help text for each verb. It consists of paragraphs, the line "Examples:",
// and command lines.
//
//go:embed help/*.txt
var helpTexts embed.FS

// setLongHelp sets the long help text and the examples of a verb.
func setLongHelp(verb *cobra.Command) {
	text, err := helpTexts.ReadFile("help/" + verb.Name() + ".txt")
	if err != nil {
		return // the verb has only a short help text
	}
	filled := strings.NewReplacer("{presets}", presetLines(), "{processors}", strings.Join(pipeline.Processors(), ", "),
		"{references}", strconv.Itoa(infoReferences), "{most}", mostUnfoldedText).Replace(string(text))
	verb.Long, verb.Example, _ = strings.Cut(strings.TrimSuffix(filled, "\n"), "\n\nExamples:\n")
}

// presetLines lists the preset hierarchies, six per line.
func presetLines() string {
	var lines []string
	for six := range slices.Chunk(presetNames(), 6) {
		lines = append(lines, strings.Join(six, ", "))
	}
	return strings.Join(lines, ",\n")
}

// oneFile checks that there is exactly one argument (a trace or a profile).
func oneFile(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usagef("give a trace or a profile, for example: stackglass ", cmd.Name(), " app.lackey.lz4; see `", helpOf(cmd), "`")
	case 1:
		return nil
	}
	return usagef(cmd.Name(), " takes one file, but ", strconv.Itoa(len(args)), " are given: ", strings.Join(args, ", "))
}

// someFiles checks that there is at least one argument (a trace or a profile).
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("give a trace, for example: stackglass ", cmd.Name(), " app.lackey.lz4 -o app.sgp; see `", helpOf(cmd), "`")
	}
	return nil
}

// noArguments checks that there are no arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(strconv.Quote(args[0]), ": ", cmd.Name(), " accepts only options, no arguments")
	}
	return nil
}

// unknownVerb returns the error for a command line whose first word is not a verb. The error
// suggests similar verbs or lists all verbs.
func unknownVerb(root *cobra.Command, args []string) error {
	at := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if at < 0 {
		return usagef("the verb is missing; the verbs are ", strings.Join(verbs(root), ", "))
	}
	said, listed := "there is no verb "+strconv.Quote(args[at]), strings.Join(verbs(root), ", ")
	for _, c := range root.Commands() {
		// Cobra suggests only visible verbs, but the verbs that the verb "locality" replaces are
		// hidden
		c.Hidden = false
	}
	if near := root.SuggestionsFor(args[at]); len(near) > 0 {
		return usagef(said, "; did you mean `stackglass ", strings.Join(near, "` or `stackglass "), "`?")
	}
	return usagef(said, "; the verbs are ", listed)
}

func verbs(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// help returns the verb "help". Unlike Cobra's help command, it also prints pages of the manual,
// and fails for an unknown verb.
func (a *app) help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB or TOPIC]",
		Short: "Help about a verb, or a page of the manual",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			names := verbs(cmd.Root())
			for _, topic := range site.Manual() {
				names = append(names, topic.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				if page := manualPage(strings.Join(args, " ")); page != nil {
					return a.write(page)
				}
				return unknownVerb(cmd.Root(), args)
			}
			return about.Help()
		},
	}
}

// manualPage returns a page of the manual in Markdown, or nil if there is no such page.
func manualPage(name string) []byte {
	for _, topic := range site.Manual() {
		if topic.Name != name {
			continue
		}
		page, err := site.ManualPage(name)
		if err != nil {
			page, err = core.Documents.ReadFile(strings.TrimPrefix(topic.File, "core/"))
		}
		must(err) // the page is embedded, and a test checks it
		return page
	}
	return nil
}

// validValues contains a description of the valid values for each type of option.
var validValues = map[string]string{
	"uint32":    "a whole number without a unit, for example 64",
	"uint64":    "a whole number without a unit or sign, for example 1000000",
	"uintSlice": "whole numbers separated by commas, for example 32,64",
	"bool":      "true or false",
}

// flagError converts an error of package pflag about an option to a readable error.
func flagError(cmd *cobra.Command, err error) error {
	var (
		invalid *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
		unknown *pflag.NotExistError
	)
	switch {
	case errors.As(err, &invalid) && validValues[invalid.GetFlag().Value.Type()] != "":
		f := invalid.GetFlag()
		return usagef("--", f.Name, " ", strconv.Quote(invalid.GetValue()), ", want ", validValues[f.Value.Type()])
	case errors.As(err, &missing):
		return usagef("--", missing.GetFlag().Name, ": the value is missing; see `", helpOf(cmd), "`")
	case errors.As(err, &unknown):
		option := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			option = "-" + unknown.GetSpecifiedShortnames()
		}
		return usagef("there is no option ", option, "; see `", helpOf(cmd), "`")
	}
	return asUsage(err)
}

// The exit codes of the command.
const (
	exitOK          = 0
	exitBudget      = 1
	exitUsage       = 2
	exitInput       = 3
	exitExhausted   = 4
	exitInterrupted = 130
)

// usageError is an error in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func asUsage(err error) error {
	var already *usageError
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &usageError{err}
}

func usagef(parts ...string) error { return &usageError{errors.New(strings.Join(parts, ""))} }

// askUsageError is like asUsage, for errors of package ask, which name options without leading
// dashes.
func askUsageError(err error) error {
	var option *trace.OptionError
	if errors.As(err, &option) && option.Option != "cache" && option.Option != "hierarchy" {
		return usagef("--", err.Error())
	}
	return asUsage(err)
}

// budgetError means that an answer exceeds a budget of --fail-if.
type budgetError struct{ text string }

func (e *budgetError) Error() string { return e.text }

// exitCode returns the exit code of the process after the given error.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, pass.ErrInterrupted):
		return exitInterrupted
	case isErrorOf[*analysis.MemoryError](err), isErrorOf[*simulate.MemoryError](err), system.IsFull(err):
		return exitExhausted
	case isErrorOf[*usageError](err), isErrorOf[*trace.OptionError](err), isErrorOf[*outputError](err), isErrorOf[*pass.DemoError](err):
		return exitUsage
	case isErrorOf[*budgetError](err):
		return exitBudget
	}
	return exitInput
}

// isErrorOf reports whether err is an error of type T or wraps one.
func isErrorOf[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// errorMessage returns the message that is printed for an error of a verb, with advice.
func errorMessage(err error, verb *cobra.Command) string {
	text := strings.TrimSpace(err.Error())
	help := "; see `" + helpOf(verb) + "`"
	var option *trace.OptionError
	switch {
	case errors.As(err, &option) && !strings.HasPrefix(text, "--") && !strings.Contains(option.Option, " "):
		return "--" + text + help
	case (isErrorOf[*usageError](err) || option != nil) && !strings.Contains(text, "stackglass "):
		return text + help
	case isErrorOf[*pass.DemoError](err):
		return text + "; see `stackglass demo`"
	case trace.IsSyntax(err):
		return text + "; fix the record, or tolerate bad records with --skip-bad N"
	}
	return text
}

// helpOf returns the command line that prints the help of a verb.
func helpOf(verb *cobra.Command) string {
	if !verb.HasParent() {
		return verb.Name() + " help"
	}
	return verb.Root().Name() + " help " + verb.Name()
}
