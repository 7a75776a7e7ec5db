package command

import (
	"errors"
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

// usageError tells that the command line makes no sense.
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

// budgetError tells that an answer exceeds what --fail-if states.
type budgetError struct{ text string }

func (e *budgetError) Error() string { return e.text }

// exitCode is the process's exit code for an error.
func exitCode(err error) int {
	var (
		usage  *usageError
		option *trace.OptionError
		budget *budgetError
		memory *analysis.MemoryError
		caches *simulate.MemoryError
		output *outputError
		demo   *pass.DemoError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, pass.ErrInterrupted):
		return exitInterrupted
	case errors.As(err, &memory), errors.As(err, &caches), isFull(err):
		return exitExhausted
	case errors.As(err, &usage), errors.As(err, &option), errors.As(err, &output), errors.As(err, &demo):
		return exitUsage
	case errors.As(err, &budget):
		return exitBudget
	}
	return exitInput
}

// isFull tells whether there is no room, on a disk or in memory.
func isFull(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.ENOMEM} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// sentence is an error of a verb as it is shown, with the way out where it is always the
// same.
func sentence(err error, verb *cobra.Command) string {
	text := strings.TrimSpace(err.Error())
	help := "; see `" + helpOf(verb) + "`"
	var usage *usageError
	var option *trace.OptionError
	switch {
	case errors.As(err, &option) && !strings.HasPrefix(text, "--") && !strings.Contains(option.Option, " "):
		return "--" + text + help
	case (errors.As(err, &usage) || option != nil) && !strings.Contains(text, "stackglass "):
		return text + help
	case errors.As(err, new(*pass.DemoError)):
		return text + "; see `stackglass demo`"
	case trace.IsSyntax(err):
		return text + "; mend the record, or tolerate some by --skip-bad N"
	}
	return text
}

// helpOf is the command line that prints the help of a verb.
func helpOf(verb *cobra.Command) string {
	if !verb.HasParent() {
		return verb.Name() + " help"
	}
	return verb.Root().Name() + " help " + verb.Name()
}
