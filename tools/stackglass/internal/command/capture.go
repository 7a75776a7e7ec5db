package command

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/capture"
	"github.com/stackglass/stackglass/tools/capture/qemu"
	"github.com/stackglass/stackglass/tools/capture/record"
)

// cc returns the verb that runs a compiler and instruments the program.
func (a *app) cc() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "cc [--no-embed-source] -- COMPILER ARGUMENTS…",
		Short:              "Compile a program so that each run writes a trace",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch line := slices.Index(args, "--"); {
			case line >= 0 && !canRecord(runtime.GOOS):
				return cannotRecord(cmd, runtime.GOOS)
			case line == 0 && len(args) > 1:
				return a.compile(capture.Options{}, args[1], args[2:])
			case line == 1 && len(args) > 2 && args[0] == "--no-embed-source":
				return a.compile(capture.Options{NoSource: true}, args[2], args[3:])
			case line == 1 && len(args) == 3 && args[0] == "--preload":
				return a.printRuntimePath(args[2])
			case line < 0 && slices.ContainsFunc(args, isHelp):
				return cmd.Help()
			case line < 0 && slices.Equal(args, []string{"--header"}):
				return a.write(capture.Header())
			}
			if len(args) == 0 {
				args = []string{"nothing"}
			}
			return usagef("give a compiler and its arguments after --, for example: stackglass cc -- clang -O2 -o app app.c; got ", strings.Join(args, " "))
		},
	}
	return cmd
}

// canRecord reports whether the command can record programs on an operating system. The tracers and
// the runtime run only on Linux.
func canRecord(system string) bool { return system == "linux" }

// cannotRecord returns the error of a verb that records on a system other than Linux.
func cannotRecord(verb *cobra.Command, system string) error {
	machine := "a container or a virtual machine is sufficient"
	switch system {
	case "windows":
		system, machine = "Windows", "the Windows Subsystem for Linux (WSL) is sufficient"
	case "darwin":
		system = "macOS"
	}
	return usagef(verb.CommandPath(), " records programs only on Linux, but this machine runs ", system,
		". Record the program on Linux (", machine, ") and analyse the trace here, or import the trace of another tool: see `stackglass help import`")
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-h" }

// printRuntimePath builds the runtime as a shared library and prints its path.
func (a *app) printRuntimePath(compiler string) error {
	path, err := capture.Preload(compiler)
	switch {
	case isErrorOf[*capture.UsageError](err):
		return asUsage(err)
	case err != nil:
		return err
	}
	return a.write([]byte(path + "\n"))
}

func (a *app) compile(o capture.Options, compiler string, args []string) error {
	status, err := capture.Compile(capture.IO{Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr}, o, compiler, args)
	if isErrorOf[*capture.UsageError](err) {
		return asUsage(err)
	}
	a.status = status
	return err
}

// trace returns the verb that runs a program and records its references.
func (a *app) trace() *cobra.Command {
	var (
		output, with, most string
		quiet              bool
		extent             trace.Extent
	)
	cmd := &cobra.Command{
		Use:   "trace [-o OUT.sgt] -- PROGRAM [ARGUMENT…]",
		Short: "Record a program without recompiling it",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !canRecord(runtime.GOOS) {
				return cannotRecord(cmd, runtime.GOOS)
			}
			if len(args) == 0 {
				return usagef("give a program to run, for example: stackglass trace -- ./prog input.txt")
			}
			if with != "" && with != record.QEMU && with != record.Valgrind {
				return usagef("--with ", strconv.Quote(with), ", want ", record.QEMU, " or ", record.Valgrind)
			}
			o := record.Options{Output: output, Tracer: with, Stdin: a.stdin, Stdout: a.unbuffered, Stderr: a.stderr, Extent: extent}
			if o.Output == "" {
				o.Output = filepath.Base(args[0]) + ".sgt"
			}
			if most != "" {
				size, err := hierarchy.ParseSize(most)
				if err != nil {
					return usagef("--max-size ", strconv.Quote(most), ", want a size, for example 2GiB")
				}
				o.MostBytes = size
			}
			if tracesItself(args[0]) {
				return usagef(args[0], " was compiled with stackglass cc and records a trace by itself; run the program directly, or compile it without stackglass cc")
			}
			r, err := record.Run(cmd.Context(), args[0], args[1:], o)
			switch {
			case isErrorOf[*record.ProgramError](err), isErrorOf[*record.TracerError](err),
				err == qemu.ErrNoCompiler, isErrorOf[*capture.CompileError](err):
				return asUsage(err)
			case err != nil:
				return &outputError{path: o.Output, err: err}
			}
			a.status = r.Status
			if !quiet {
				fmt.Fprintln(a.stderr, "stackglass:", traceSummary(o.Output, r))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the trace to this `FILE`")
	cmd.Flags().StringVar(&with, "with", "", "run the program under this `TRACER`, qemu or valgrind (default: qemu if it is installed)")
	cmd.Flags().StringVar(&most, "max-size", "", "end the trace at this `SIZE`, for example 2GiB; the program continues")
	cmd.Flags().Uint64Var(&extent.After, "after", 0, "leave out the first `N` data references of each thread")
	cmd.Flags().Uint64Var(&extent.For, "for", 0, "then record `M` data references of each thread (0: all)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not print a summary of the trace")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// tracesItself reports whether a program was linked by `stackglass cc`. It ignores errors, because
// running the program reports the same errors.
func tracesItself(program string) bool {
	path, err := exec.LookPath(program)
	if err != nil {
		return false
	}
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return file.Section("__sg_modules") != nil
}

// traceSummary returns one sentence about a recorded trace.
func traceSummary(path string, r record.Result) string {
	s := path + " has " + report.Count(r.References).Human() + " references of " + plural(uint64(r.Threads), "thread")
	if r.Sites > 0 {
		s += "; of " + strconv.Itoa(r.Sites) + " code locations, " + strconv.Itoa(r.Named) + " have a source line"
		if r.Named == 0 {
			s += " (compile with -g to get source lines)"
		}
	}
	switch r.End.How {
	case "limit":
		s += "; the trace ends at --max-size"
	case "exec":
		s += "; the trace ends where the program replaced itself with another program (exec), which was not traced"
	}
	if r.End.Lost > 0 {
		s += "; " + report.Count(r.End.Lost).Human() + " steps were lost"
	}
	return s
}
