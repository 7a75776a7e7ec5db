// Package capture compiles programs so that they record their own memory references.
//
// The package replaces the clang or flang compiler driver:
//
//  1. The compiler compiles each source to LLVM IR text with all options of the command line, so
//     that the optimisations are the same as without recording.
//  2. [ir.Instrument] rewrites the text: every block records its execution and the addresses that
//     it references (runtime/abi.h).
//  3. The compiler compiles the text to an object without further optimisation, so that the
//     recording describes the optimised program.
//  4. Programs are linked with a runtime in C, which writes the container .sgt while the program
//     runs (core/trace/sgt/FORMAT.md). The source of the runtime is in this package. The runtime is
//     compiled once for each compiler.
//
// All other command lines are passed on to the compiler unchanged, and sources that cannot be
// instrumented are compiled without recording, so that no build fails because of this package.
package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// IO contains the standard streams of a compiler.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Options controls how programs are compiled.
type Options struct {
	NoSource bool // whether to omit the text of the program's source files
}

// build executes one compiler command line.
type build struct {
	io       IO
	options  Options
	compiler *compiler
	line     *commandLine
	runtime  *Runtime
	noted    map[string]bool
}

// Compile runs `compiler args…` in such a way that the compiled programs record their references.
// Compile returns the compiler's exit status. A non-nil error means that the compiler was not
// found, or that the command line is not supported.
func Compile(io IO, o Options, compilerName string, args []string) (status int, err error) {
	c, err := findCompiler(compilerName)
	if err != nil {
		return 0, err
	}
	b := &build{io: io, options: o, compiler: c, line: parse(expandResponses(args)), noted: map[string]bool{}}
	switch {
	case b.line.unsupported != "":
		return 0, usage(b.line.unsupported, ": a sanitizer adds code around every reference, and this code would be traced too; build without the sanitizer")
	case b.line.mode == passing:
		if b.line.passReason != "" {
			b.note("not traced: ", b.line.passReason)
		}
		return io.run(c.path, args)
	}
	if b.runtime, err = BuildRuntime(c.clang); err != nil {
		return 0, err
	}
	if b.line.hasOption("-flto") || len(b.line.words(aDrop)) > 0 {
		b.note(b.line.words(aDrop)[0], " is ignored: each source is optimised and traced separately")
	}
	if b.line.mode == compiling {
		return b.compileAll()
	}
	return b.link()
}

// Preload returns the path of the runtime's shared library, which LD_PRELOAD adds to untraced
// programs that load traced libraries.
func Preload(compilerName string) (path string, err error) {
	c, err := findCompiler(compilerName)
	if err != nil {
		return "", err
	}
	r, err := BuildRuntime(c.clang)
	if err != nil {
		return "", err
	}
	return r.Preload, nil
}

// compileAll handles -c: it compiles each source to an object, and passes other files to the
// compiler.
func (b *build) compileAll() (int, error) {
	for _, src := range b.line.sources() {
		object := b.line.output
		if object == "" {
			object = replaceExtension(filepath.Base(src.name()), ".o")
		}
		if status, err := b.compile(&src, object); status != 0 || err != nil {
			return status, err
		}
	}
	if others := b.line.words(anInput); len(others) > 0 {
		return b.io.run(b.compiler.path, append(b.line.words(aSetting, aMachine, aPhase), others...))
	}
	return 0, nil
}

// note prints a message unless it has printed the same message before.
func (b *build) note(parts ...string) {
	text := strings.Join(parts, "")
	if !b.noted[text] {
		fmt.Fprintln(b.io.Stderr, "stackglass: note:", text)
	}
	b.noted[text] = true
}

// run runs a program with the standard streams of io, and returns its exit status.
func (io IO) run(program string, args []string) (int, error) {
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.Stdin, io.Stdout, io.Stderr
	return statusOf(cmd.Run())
}

// statusOf returns the exit status of a compiler, or 128 plus the signal's number if a signal ended
// the compiler. The error is non-nil if the compiler could not be run.
func statusOf(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	case exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	}
	return 128 + signalOf(exit.ProcessState), nil
}

// objectName returns a name for the object of a source. The name is unique even if two sources have
// the same name.
func objectName(folder, source string, number int) string {
	return filepath.Join(folder, replaceExtension(filepath.Base(source), "-"+strconv.Itoa(number)+".o"))
}

// wrapped lists the functions that the runtime wraps.
var wrapped = []string{
	"_exit", "_Exit", "quick_exit", "execve", "execv", "execvp", "execvpe", "fexecve", "execl", "execlp", "execle",
	"pthread_create", "pthread_join",
}

func wrapOption() string { return "-Wl,--wrap=" + strings.Join(wrapped, ",--wrap=") }

// programLink returns the linker arguments that add the runtime to a program and, unless the
// program is static, export the symbols of the runtime.
func (r *Runtime) programLink(static bool) []string {
	args := []string{r.Program, wrapOption()}
	if !static {
		args = append(args, "-Wl,--dynamic-list="+r.Exports)
	}
	return append(args, "-lpthread")
}

// libraryLink returns the linker arguments for a shared library. Instead of containing the runtime,
// the library registers its modules with the runtime of the program that loads it.
func (r *Runtime) libraryLink(line *commandLine) []string {
	args := []string{r.Library}
	if !line.withoutLibc() {
		args = append(args, r.Calls, wrapOption(), "-lpthread")
	}
	if line.refusesUndefined() {
		// The program, not the library, contains the runtime.
		args = append(args, "-Wl,-z,undefs")
	}
	return args
}

// refusesUndefined reports whether the linker treats undefined symbols in a shared library as
// errors.
func (c *commandLine) refusesUndefined() bool {
	all := strings.ReplaceAll(strings.Join(c.words(aSetting), ","), "-Xlinker,", "")
	return containsAny(all, "-z,defs", "-zdefs", "--no-undefined", "-no-undefined")
}

// withoutLibc reports whether the program is linked without a C library. The runtime needs a C
// library.
func (c *commandLine) withoutLibc() bool {
	return c.hasOption("-nostdlib", "-nodefaultlibs", "-nolibc") && !c.hasOption("-lc")
}

// link compiles the sources on the command line and links all files.
func (b *build) link() (int, error) {
	folder, err := os.MkdirTemp("", "stackglass-cc-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	if b.line.withoutLibc() && !b.line.shared && !b.line.partial {
		b.note("not traced: the program is linked without a C library")
		return b.io.run(b.compiler.path, b.original())
	}
	if len(b.line.sources()) > 0 && b.line.hasOption(splitDebug) && b.wantsDebugInfo() {
		b.note(splitDebug, " is ignored when linking: the debug information is in the linked files")
	}
	args, status, err := b.linkArguments(folder)
	if status != 0 || err != nil {
		return status, err
	}
	return b.io.run(b.compiler.path, args)
}

func (b *build) original() (words []string) {
	for _, a := range b.line.args {
		words = append(words, a.words...)
	}
	return words
}

// linkArguments compiles each source and returns the linker arguments: the command line with an
// object in place of each source, so that the order of files stays the same.
func (b *build) linkArguments(folder string) (args []string, status int, err error) {
	for i := range b.line.args {
		a := &b.line.args[i]
		switch a.role {
		case aSource:
			object := objectName(folder, a.name(), i)
			if status, err := b.compile(a, object); status != 0 || err != nil {
				return nil, status, err
			}
			args = append(args, object)
		case aSetting, aMachine, anInput, anOutput:
			args = append(args, a.words...)
		}
	}
	if !b.compiler.fortran {
		args = append(args, "-Qunused-arguments")
	}
	switch {
	case b.line.partial:
	case b.line.shared:
		args = append(args, b.runtime.libraryLink(b.line)...)
	default:
		args = append(args, b.runtime.programLink(b.line.hasOption("-static", "-static-pie", "--static"))...)
	}
	return args, 0, nil
}

func signalOf(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return int(ws.Signal())
	}
	return 0
}
