// Package command implements the stackglass command line: the verbs, their options, their output
// and the exit code.
//
// [Main] runs the whole program, so that tests can run the command in their own process. The answer
// is written to stdout as one document. Progress, warnings and errors are written to stderr, one
// sentence each.
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/tools/stackglass/internal/system"
)

// Version is the version that `stackglass version` prints: the version of the module, unless
// package main sets a different version.
var Version = moduleVersion()

// moduleVersion returns the version that `go install` built, or "development" in a checkout.
func moduleVersion() string {
	if built, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(built.Main.Version, "v") {
		return built.Main.Version
	}
	return "development"
}

// Main runs one command line and returns its exit code: 0 for success, 1 if a budget of --fail-if
// is exceeded, 2 for a usage error, 3 for bad or truncated input, 4 if memory or disk space is
// exhausted, and 130 after an interrupt.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After a call of the function "stop", a second interrupt ends the process at once.
	context.AfterFunc(ctx, stop)
	return run(ctx, args, stdin, stdout, stderr)
}

// run is like [Main], but the caller provides the context.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return (&app{stdin: stdin, stderr: stderr, unbuffered: stdout}).run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	a.stdout = bufio.NewWriterSize(a.unbuffered, 1<<16)
	root := a.root()
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		registerCompletions(root)
	}
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	called, err := root.ExecuteContextC(ctx)
	if flushed := a.stdout.Flush(); err == nil && flushed != nil {
		err = &outputError{path: "standard output", err: flushed}
	}
	if err == nil {
		return a.status
	}
	if _, _, unknown := root.Find(args); unknown != nil {
		err = unknownVerb(root, args)
	} else if !a.began {
		// Cobra rejected the command line before a verb started.
		err = asUsage(err)
	}
	fmt.Fprintln(a.stderr, "stackglass:", errorMessage(err, called))
	return exitCode(err)
}

// app is the shared state of the verbs while a command line runs.
type app struct {
	stdin      io.Reader
	stdout     *bufio.Writer
	unbuffered io.Writer // stdout for child processes, without a buffer
	stderr     io.Writer
	began      bool // whether a verb has started; any error before that is a usage error
	status     int  // exit code if no error occurs: the exit code of a child process, or 0

	analysing func(analysis.Spec) // called before each analysis; may be nil
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "stackglass VERB FILE",
		Version:       Version,
		Short:         "Trace a program once, then ask about any cache",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.began = true
			return checkFormat(cmd)
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("stackglass {{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.SetHelpCommand(a.help())
	root.SetHelpFunc(a.printHelp)
	root.AddCommand(
		a.analyze(), a.simulate(), a.validate(), a.scale(), a.compare(), a.export(), a.info(),
		a.convert(), a.locality(),
		a.cc(), a.trace(), a.serve(), a.demo(), a.version(), a.man(),
	)
	for _, v := range ask.Verbs() {
		if v == program.Simulate {
			continue // the command simulate shares its options with validate
		}
		verb := a.newVerbCommand(v)
		verb.Hidden = isLocality(v.Name)
		root.AddCommand(verb)
	}
	for _, verb := range append(root.Commands(), root) {
		setLongHelp(verb)
	}
	return root
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:    "version",
		Short:  "Print the version",
		Hidden: true, // hidden, because the option --version does the same
		Args:   noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, "stackglass", Version)
			return err
		},
	}
}

func (a *app) warn(what string) { fmt.Fprintln(a.stderr, "stackglass: warning:", what) }

// terminal returns stderr if it is a terminal, so that progress can be shown there. Otherwise, it
// returns nil.
func (a *app) terminal() io.Writer {
	if f, ok := a.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// outputError means that an output could not be written.
type outputError struct {
	path string
	err  error
}

func (e *outputError) Error() string {
	var path *os.PathError
	err := e.err
	if errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return e.path + ": the folder " + filepath.Dir(e.path) + " does not exist; create it first"
	}
	if system.IsFull(err) {
		return e.path + ": " + err.Error() + "; nothing was written; free some space and run the command again"
	}
	return e.path + ": cannot be written: " + err.Error()
}

func (e *outputError) Unwrap() error { return e.err }
