package command

import (
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// The exit codes.
const (
	exitOK          = 0
	exitBudget      = 1
	exitUsage       = 2
	exitInput       = 3
	exitExhausted   = 4
	exitInterrupted = 130
)

// usageError reports a wrong command line.
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

// usage is asUsage for errors of package ask, which name options without dashes.
func usage(err error) error {
	var option *trace.OptionError
	if errors.As(err, &option) && option.Option != "cache" && option.Option != "hierarchy" {
		return usagef("--", err.Error())
	}
	return asUsage(err)
}

// budgetError reports that an answer exceeds a budget of --fail-if.
type budgetError struct{ text string }

func (e *budgetError) Error() string { return e.text }

// exitCode returns the process's exit code for an error.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, pass.ErrInterrupted):
		return exitInterrupted
	case is[*analysis.MemoryError](err), is[*simulate.MemoryError](err), isFull(err):
		return exitExhausted
	case is[*usageError](err), is[*trace.OptionError](err), is[*outputError](err), is[*pass.DemoError](err):
		return exitUsage
	case is[*budgetError](err):
		return exitBudget
	}
	return exitInput
}

// is reports whether an error of a type is in err's tree.
func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// isFull reports whether a disk or the memory is full.
func isFull(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.ENOMEM},
		func(full error) bool { return errors.Is(err, full) })
}

// sentence returns the message for an error of a verb, with the usual way out.
func sentence(err error, verb *cobra.Command) string {
	text := strings.TrimSpace(err.Error())
	help := "; see `" + helpOf(verb) + "`"
	var option *trace.OptionError
	switch {
	case errors.As(err, &option) && !strings.HasPrefix(text, "--") && !strings.Contains(option.Option, " "):
		return "--" + text + help
	case (is[*usageError](err) || option != nil) && !strings.Contains(text, "stackglass "):
		return text + help
	case is[*pass.DemoError](err):
		return text + "; see `stackglass demo`"
	case trace.IsSyntax(err):
		return text + "; mend the record, or tolerate some by --skip-bad N"
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
