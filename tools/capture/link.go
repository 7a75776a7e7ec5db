package capture

import (
	"os"
	"strings"
	"syscall"
)

// wrapped are the functions that the runtime stands before.
var wrapped = []string{
	"_exit", "_Exit", "quick_exit", "execve", "execv", "execvp", "execvpe", "fexecve", "execl", "execlp", "execle",
	"pthread_create", "pthread_join",
}

func wrapOption() string { return "-Wl,--wrap=" + strings.Join(wrapped, ",--wrap=") }

// programLink are arguments that link the runtime into a program, and export it unless the program is static.
func (r *Runtime) programLink(static bool) []string {
	args := []string{r.Program, wrapOption()}
	if !static {
		args = append(args, "-Wl,--dynamic-list="+r.Exports)
	}
	return append(args, "-lpthread")
}

// libraryLink are arguments that register a shared library's modules with the runtime of the program that
// loads it.
func (r *Runtime) libraryLink(line *commandLine) []string {
	args := []string{r.Library}
	if !line.bare() {
		args = append(args, r.Calls, wrapOption(), "-lpthread")
	}
	if line.refusesUndefined() {
		// The runtime is in the program.
		args = append(args, "-Wl,-z,undefs")
	}
	return args
}

// refusesUndefined reports whether a shared library must define all that it uses.
func (c *commandLine) refusesUndefined() bool {
	all := strings.ReplaceAll(strings.Join(c.words(aSetting), ","), "-Xlinker,", "")
	return containsAny(all, "-z,defs", "-zdefs", "--no-undefined", "-no-undefined")
}

// bare reports whether the link has no C library for the runtime.
func (c *commandLine) bare() bool {
	return c.has("-nostdlib", "-nodefaultlibs", "-nolibc") && !c.has("-lc")
}

// link compiles the sources that there are, and links everything.
func (b *build) link() (int, error) {
	folder, err := os.MkdirTemp("", "stackglass-cc-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	if b.line.bare() && !b.line.shared && !b.line.partial {
		b.note("not traced: it is linked without a C library")
		return b.io.run(b.compiler.path, b.original())
	}
	if len(b.line.sources()) > 0 && b.line.has(splitDebug) && b.debugs() {
		b.note(splitDebug, " is left out in a link: the debug information is in what is linked")
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

// linkArguments are the line's with an object in place of each source, so that the order of files stays.
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
		args = append(args, b.runtime.programLink(b.line.has("-static", "-static-pie", "--static"))...)
	}
	return args, 0, nil
}

func signalOf(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return int(ws.Signal())
	}
	return 0
}
