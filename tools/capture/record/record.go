// Package record runs a program under a tracer and writes its trace. QEMU (package qemu) is fast
// and records threads and blocks. Package arrange then adds the names of functions and variables.
// The alternative is Valgrind's lackey, whose text output is converted while the program runs.
//
// The program has the same standard streams, environment and exit status as without tracing.
package record

import (
	"context"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/capture"
	"github.com/stackglass/stackglass/tools/capture/arrange"
	"github.com/stackglass/stackglass/tools/capture/qemu"
	"github.com/stackglass/stackglass/tools/internal/symbols"
)

// These are the names of the tracers.
const (
	QEMU     = "qemu"
	Valgrind = "valgrind"
)

// Options controls how a program is recorded.
type Options struct {
	Output       string // the file for the trace
	Tracer       string // [QEMU], [Valgrind], or "" for the first of these tracers that is installed
	MostBytes    uint64 // maximum size of the recording; 0: no limit; with Valgrind, it has no effect
	trace.Extent        // what to record
	Stdin        io.Reader
	Stdout       io.Writer
	Stderr       io.Writer
}

// Result describes a trace and how the program ended.
type Result struct {
	arrange.Summary
	Tracer string
	Status int // the program's exit status, or 128 plus the number of the signal that ended it
}

// Run runs a program and writes its trace. Run returns no error if only the program itself fails.
func Run(ctx context.Context, name string, args []string, o Options) (Result, error) {
	p, err := findProgram(name, args)
	if err != nil {
		return Result{}, err
	}
	tracer, emulator, err := chooseTracer(p.machine, o.Tracer)
	if err != nil {
		return Result{}, err
	}
	out, err := os.OpenFile(o.Output, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return Result{}, err
	}
	var r Result
	if tracer == QEMU {
		r, err = underQEMU(ctx, emulator, p, out, o)
	} else {
		r, err = underValgrind(p, out, o)
	}
	r.Tracer = tracer
	if err = errors.Join(err, out.Close()); err != nil {
		err = errors.Join(err, discard(o.Output))
	}
	return r, err
}

// discard removes an incomplete trace, unless the path is a device or a pipe.
func discard(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return os.Remove(path)
}

// TracerError means that no suitable tracer is installed.
type TracerError struct {
	Wanted   string // the requested tracer; "": any
	Emulator string // name of the QEMU program for the machine
}

func (e *TracerError) Error() string {
	const qemuPackage, valgrindPackage = "apt-get install qemu-user", "apt-get install valgrind"
	switch e.Wanted {
	case QEMU:
		return e.Emulator + " is not installed (" + qemuPackage + ")"
	case Valgrind:
		return "valgrind is not installed (" + valgrindPackage + ")"
	}
	return "neither " + e.Emulator + " (" + qemuPackage + ") nor valgrind (" + valgrindPackage + ") is installed; install one of these tracers, preferably the first"
}

// machines contains the ELF machine of each architecture on which Valgrind is used.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// chooseTracer returns the name of the tracer to use and, for QEMU, the path of the emulator for
// the machine.
func chooseTracer(machine elf.Machine, wanted string) (tracer, emulator string, err error) {
	emulator, name, err := qemu.Emulator(machine)
	if name == "" {
		return "", "", err
	}
	_, noValgrind := exec.LookPath("valgrind")
	switch native := machines[runtime.GOARCH] == machine; {
	case err == nil && wanted != Valgrind:
		return QEMU, emulator, nil
	case noValgrind == nil && wanted != QEMU && native:
		return Valgrind, "", nil
	case !native:
		wanted = QEMU
	}
	return "", "", &TracerError{Wanted: wanted, Emulator: name}
}

// underQEMU records the program to a temporary file next to the trace, and then converts that file
// to the trace.
func underQEMU(ctx context.Context, emulator string, p program, out *os.File, o Options) (Result, error) {
	start := time.Now()
	plugin, err := qemu.Plugin(ctx, emulator)
	if err != nil {
		return Result{}, err
	}
	dir, base := filepath.Split(o.Output)
	recording := filepath.Join(dir, "."+base+"."+strconv.Itoa(os.Getpid())+".recording")
	defer os.Remove(recording)
	cmd := qemu.Command(emulator, plugin, recording, o.MostBytes, o.Extent, p.name, p.file, p.args)
	status, how, err := runCommand(cmd, o, nil)
	if err != nil {
		return Result{Status: status}, err
	}
	recorded, err := os.Open(recording)
	if err != nil {
		return Result{Status: status}, errors.New(filepath.Base(emulator) + " recorded nothing; see the messages above for the reason")
	}
	defer recorded.Close()
	info, err := recorded.Stat()
	if err != nil {
		return Result{Status: status}, err
	}
	s, err := arrange.Finish(out, recorded, info.Size(), arrange.Run{
		Program: p.file,
		Facts: append(p.captureFacts(),
			trace.Fact{Name: "included", Value: "the program's own code and all libraries, starting with the loader"},
			trace.Fact{Name: "left out", Value: "instruction fetches, accesses by the kernel, child processes"},
			trace.Fact{Name: "sizes of accesses", Value: "as executed by the emulator: an access of 16 bytes is two accesses of 8 bytes"}),
		Generated: readPerfMap(cmd.Process.Pid, start),
		End:       sgt.End{How: how, Status: uint64(status)},
		Status:    uint64(status),
	}, symbols.Open)
	return Result{Summary: s, Status: status}, err
}

// readPerfMap reads the names of the code that a process generated. It returns nil if the process
// has written no perf map. The file of an earlier process with the same number is ignored, and so is
// the file of another user.
func readPerfMap(pid int, start time.Time) *symbols.File {
	const mostBytes = 1 << 30
	path := "/tmp/perf-" + strconv.Itoa(pid) + ".map"
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(start) || !capture.IsOwn(info) {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	return symbols.ReadPerfMap(io.LimitReader(f, mostBytes))
}

// runCommand runs a command with the standard streams of this process, forwards signals to it, and
// returns its exit status and how it ended. If the function whileRunning is not nil, runCommand
// calls this function while the command runs.
func runCommand(cmd *exec.Cmd, o Options, whileRunning func() error) (status int, how string, err error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	done := make(chan struct{})
	go forwardSignals(signals, cmd.Process, done)
	if whileRunning != nil {
		err = whileRunning()
	}
	waited := cmd.Wait()
	close(done)
	if exit := (*exec.ExitError)(nil); waited != nil && !errors.As(waited, &exit) {
		err = errors.Join(err, waited)
	}
	if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && state.Signaled() {
		return 128 + int(state.Signal()), "signal " + strconv.Itoa(int(state.Signal())), err
	}
	return cmd.ProcessState.ExitCode(), "exit", err
}

// forwardSignals forwards signals to a process, except interrupts from the terminal, which the process
// receives anyway.
func forwardSignals(signals <-chan os.Signal, to *os.Process, done <-chan struct{}) {
	terminal := term.IsTerminal(int(os.Stdin.Fd())) || term.IsTerminal(int(os.Stderr.Fd()))
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt || !terminal {
				_ = to.Signal(s) // the process may have ended
			}
		case <-done:
			return
		}
	}
}

// program describes the program to run.
type program struct {
	name    string // the program's argument 0
	path    string // path at which the program was found
	file    string // path of the file with the machine code, without symbolic links
	args    []string
	machine elf.Machine
}

// captureFacts returns the facts that are stored in the trace: the program and its arguments.
func (p *program) captureFacts() []trace.Fact {
	facts := []trace.Fact{{Name: "program", Value: p.file}}
	for _, arg := range p.args {
		facts = append(facts, trace.Fact{Name: "argument", Value: arg})
	}
	return facts
}

// ProgramError means that a program cannot be run.
type ProgramError struct {
	Name string
	Why  string
}

func (e *ProgramError) Error() string { return e.Name + ": " + e.Why }

// findProgram finds the executable file of a program in PATH, as a shell does. For a script, it
// finds the interpreter.
func findProgram(name string, args []string) (program, error) {
	for range 4 { // the kernel's limit on nested script interpreters
		path, err := exec.LookPath(name)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return program{}, &ProgramError{name, "there is no such program, or it is not executable"}
		}
		interpreter, option, err := shebang(path)
		if err != nil {
			return program{}, &ProgramError{name, err.Error()}
		}
		if interpreter == "" {
			return machineCode(name, path, args)
		}
		args = append([]string{path}, args...)
		if option != "" {
			args = append([]string{option}, args...)
		}
		name = interpreter
	}
	return program{}, &ProgramError{name, "the chain of script interpreters is too long"}
}

func machineCode(name, path string, args []string) (program, error) {
	file, err := filepath.EvalSymlinks(path)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return program{}, &ProgramError{name, err.Error()}
	}
	f, err := elf.Open(file)
	if err != nil {
		return program{}, &ProgramError{name, "the file is neither an ELF program nor a script that begins with #!"}
	}
	defer f.Close()
	return program{name: name, path: path, file: file, args: args, machine: f.Machine}, nil
}

// shebang returns the interpreter of a script and its option, or "" for other files.
func shebang(path string) (interpreter, option string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return "", "", err
	}
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	if line, found := strings.CutPrefix(line, "#!"); found {
		interpreter, option, _ = strings.Cut(strings.TrimSpace(line), " ")
		return interpreter, strings.TrimSpace(option), nil
	}
	return "", "", nil
}
