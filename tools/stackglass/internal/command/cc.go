package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/tools/capture"
)

// cc stands in for a compiler.
func (a *app) cc() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cc -- COMPILER ARGUMENTS…",
		Short: "Compile a program so that it traces itself",
		Long: `Compile and link with clang, clang++ or flang as ever; what comes out records its
memory references while it runs, in the file PROGRAM.sgt where it is run. It behaves
as before. On a terminal it also reports, at its end, how many references the trace
has. Optimisation is the compiler's own: what is traced is the optimised program.

  CC='stackglass cc -- clang' ./configure && make
  make CC='stackglass cc -- clang-19' CXX='stackglass cc -- clang++-19'
  cmake -DCMAKE_C_COMPILER=clang -DCMAKE_C_COMPILER_LAUNCHER='stackglass;cc;--' \
        -DCMAKE_C_LINKER_LAUNCHER='stackglass;cc;--' .

A traced shared library needs the runtime, which is in a program that is traced. In
one that is not, such as an interpreter of which it is an extension, it needs the
runtime beside it:
  LD_PRELOAD=$(stackglass cc --preload -- clang) python3 …

Code that is not recompiled (libraries, assembly) is not in the trace; sources that
cannot be instrumented are compiled as they are, with a note. Stack frames grow a
little: where very deep recursion ends by a signal, ulimit -s unlimited helps.

The environment of the traced program:
  STACKGLASS_OUT=FILE        where the trace goes; %p stands for the process's number
  STACKGLASS_MAX_BYTES=N     the trace ends there, the program does not (1.5G; K, M, G, T)
  STACKGLASS_START=off       record only between stackglass_begin("…") and
                             stackglass_end() of stackglass.h (--header prints it)
  STACKGLASS_REGION=NAME     record only in the parts of that name
  STACKGLASS_ORDER=sliced    of several threads: in order only from one slice of time
                             to the next, which is faster; else exact
  STACKGLASS_FORK=file       a child of fork writes FILE.NUMBER; else it is not traced
  STACKGLASS_VERBOSE=1       report the trace on standard error even if that is no terminal
  STACKGLASS_QUIET=1         do not report it at all; errors are always reported

A program that a signal ends leaves a complete trace. After SIGKILL, the trace is cut
short: it has everything up to the last part that was written. If the program has a
handler of its own for a signal that ends it, the handler comes first, and the trace
is complete if the handler ends in exit() or _exit(). Where the runtime cannot
complete the trace within a few seconds, as when nobody reads the pipe that the trace
goes to, the signal ends the program all the same.`,
		Example: `  stackglass cc -- clang -O2 -o app app.c -lm
  ./app && stackglass analyze app.sgt
  stackglass cc --header > stackglass.h`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch line := slices.Index(args, "--"); {
			case line == 0 && len(args) > 1:
				return a.compile(args[1], args[2:])
			case line == 1 && len(args) == 3 && args[0] == "--preload":
				return a.preload(args[2])
			case line < 0 && slices.ContainsFunc(args, isHelp):
				return cmd.Help()
			case line < 0 && slices.Equal(args, []string{"--header"}):
				return a.write(capture.Header())
			}
			if len(args) == 0 {
				args = []string{"nothing"}
			}
			return usagef("give a compiler and its arguments behind --, as in: stackglass cc -- clang -O2 -o app app.c; got ", strings.Join(args, " "))
		},
	}
	return cmd
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-h" }

// preload prints the path of the runtime as a library.
func (a *app) preload(compiler string) error {
	path, err := capture.Preload(compiler)
	switch {
	case is[*capture.UsageError](err):
		return asUsage(err)
	case err != nil:
		return err
	}
	return a.write([]byte(path + "\n"))
}

func (a *app) compile(compiler string, args []string) error {
	status, err := capture.Compile(capture.IO{Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr}, compiler, args)
	if is[*capture.UsageError](err) {
		return asUsage(err)
	}
	a.status = status
	return err
}
