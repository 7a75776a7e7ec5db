package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// IO is where a compiler reads and says things.
type IO struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// build is one command line of a compiler, as it is carried out.
type build struct {
	io       IO
	compiler *compiler
	line     *commandLine
	runtime  *Runtime
	noted    map[string]bool
}

// Compile does what `compiler args…` does, and makes what it builds record its
// references. The status is the compiler's. An error tells that there was none to
// ask, or no way to do it.
func Compile(io IO, compilerName string, args []string) (status int, err error) {
	c, err := findCompiler(compilerName)
	if err != nil {
		return 0, err
	}
	b := &build{io: io, compiler: c, line: parse(expandResponses(args)), noted: map[string]bool{}}
	switch {
	case b.line.refused != "":
		return 0, usage(b.line.refused, ": a sanitizer has code of its own around every reference, which would be traced as the program's; build without it")
	case b.line.mode == pass:
		if b.line.why != "" {
			b.note("not traced: ", b.line.why)
		}
		return io.run(c.path, args)
	}
	if b.runtime, err = BuildRuntime(c.clang); err != nil {
		return 0, err
	}
	if b.line.has("-flto") || len(b.line.words(aDrop)) > 0 {
		b.note(b.line.words(aDrop)[0], " is left out: each source is traced as it is optimised by itself")
	}
	if b.line.mode == compiling {
		return b.compileAll()
	}
	return b.link()
}

// Preload gives the path of a shared library that is the runtime, for programs
// that load traced libraries without being traced themselves: LD_PRELOAD of it.
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

// compileAll is -c: an object for each source, and whatever the compiler makes of
// other files.
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

// note says something once.
func (b *build) note(parts ...string) {
	text := ""
	for _, p := range parts {
		text += p
	}
	if !b.noted[text] {
		fmt.Fprintln(b.io.Stderr, "stackglass: note:", text)
	}
	b.noted[text] = true
}

// run runs a compiler as the user would have.
func (io IO) run(program string, args []string) (int, error) {
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.Stdin, io.Stdout, io.Stderr
	return statusOf(cmd.Run())
}

// statusOf tells the exit status of a compiler that ran from an error to run it.
// One that a signal ended has the status that a shell gives it.
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

// objectsFolder is for the objects of a command that compiles and links at once.
func objectsFolder() (string, error) { return os.MkdirTemp("", "stackglass-cc-") }

// objectName keeps apart sources of the same name.
func objectName(folder, source string, number int) string {
	return filepath.Join(folder, replaceExtension(filepath.Base(source), "-"+strconv.Itoa(number)+".o"))
}
