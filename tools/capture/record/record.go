// Package record runs a program under a tracer and writes its trace: by QEMU (package qemu), which is fast,
// records threads and blocks, and allows naming the addresses afterwards (package arrange), or else by
// Valgrind's lackey, whose text is converted while the program runs.
//
// The program has the standard streams, the environment and the exit status that it would have by itself.
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

	"golang.org/x/term"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/capture/arrange"
	"github.com/stackglass/stackglass/tools/capture/qemu"
	"github.com/stackglass/stackglass/tools/internal/symbols"
)

// Names of the tracers.
const (
	QEMU     = "qemu"
	Valgrind = "valgrind"
)

// Options are options on how to record.
type Options struct {
	Output    string // file of the trace
	Tracer    string // QEMU or Valgrind; "": the first that is installed
	MostBytes uint64 // of QEMU's recording; 0: no limit
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
}

// Result describes a trace and the program's end.
type Result struct {
	arrange.Summary
	Tracer string
	Status int // the program's exit status; 128 and the signal's number if it died of one
}

// Run runs a program and writes its trace. The program's own failure is no error.
func Run(ctx context.Context, name string, args []string, o Options) (Result, error) {
	p, err := find(name, args)
	if err != nil {
		return Result{}, err
	}
	tracer, emulator, err := choose(p.machine, o.Tracer)
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

// discard removes an incomplete trace, unless it is a device or a pipe.
func discard(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return os.Remove(path)
}

// TracerError reports that no tracer can be used.
type TracerError struct {
	Wanted   string // "" for any
	Emulator string // the QEMU for the machine
}

func (e *TracerError) Error() string {
	const qemuPackage, valgrindPackage = "apt-get install qemu-user", "apt-get install valgrind"
	switch e.Wanted {
	case QEMU:
		return e.Emulator + " is not installed (" + qemuPackage + ")"
	case Valgrind:
		return "valgrind is not installed (" + valgrindPackage + ")"
	}
	return "neither " + e.Emulator + " (" + qemuPackage + ") nor valgrind (" + valgrindPackage + ") is installed; install one of them, the first if you can"
}

// machines are those of this program.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// choose returns the tracer, and for QEMU the emulator for the machine.
func choose(machine elf.Machine, wanted string) (tracer, emulator string, err error) {
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

// underQEMU records into a temporary file next to the trace, and converts it to the trace.
func underQEMU(ctx context.Context, emulator string, p program, out *os.File, o Options) (Result, error) {
	plugin, err := qemu.Plugin(ctx, emulator)
	if err != nil {
		return Result{}, err
	}
	dir, base := filepath.Split(o.Output)
	recording := filepath.Join(dir, "."+base+"."+strconv.Itoa(os.Getpid())+".recording")
	defer os.Remove(recording)
	status, how, err := pass(qemu.Command(emulator, plugin, recording, o.MostBytes, p.name, p.file, p.args), o, nil)
	if err != nil {
		return Result{Status: status}, err
	}
	recorded, err := os.Open(recording)
	if err != nil {
		return Result{Status: status}, errors.New(filepath.Base(emulator) + " recorded nothing; its messages above may give the reason")
	}
	defer recorded.Close()
	info, err := recorded.Stat()
	if err != nil {
		return Result{Status: status}, err
	}
	s, err := arrange.Finish(out, recorded, info.Size(), arrange.Run{
		Program: p.file,
		Facts: append(p.facts(),
			trace.Fact{Name: "included", Value: "the program's own code and all libraries, from its loader on"},
			trace.Fact{Name: "left out", Value: "instruction fetches, accesses of the kernel, child processes"},
			trace.Fact{Name: "sizes of accesses", Value: "as the emulator does them: 16 bytes are two of 8"}),
		End:    sgt.End{How: how, Status: uint64(status)},
		Status: uint64(status),
	}, symbols.Open)
	return Result{Summary: s, Status: status}, err
}

// pass runs a command in place of this one, and returns the exit status and how it ended. meanwhile,
// unless nil, runs at the same time.
func pass(cmd *exec.Cmd, o Options, meanwhile func() error) (status int, how string, err error) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Stdin, o.Stdout, o.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	done := make(chan struct{})
	go forward(signals, cmd.Process, done)
	if meanwhile != nil {
		err = meanwhile()
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

// forward forwards signals, except for interrupts from the terminal, which the program gets anyway.
func forward(signals <-chan os.Signal, to *os.Process, done <-chan struct{}) {
	terminal := term.IsTerminal(int(os.Stdin.Fd())) || term.IsTerminal(int(os.Stderr.Fd()))
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt || !terminal {
				_ = to.Signal(s) // it may have ended
			}
		case <-done:
			return
		}
	}
}

// program is the program to run.
type program struct {
	name    string // its first argument
	path    string // by which it was found
	file    string // of machine code, without links
	args    []string
	machine elf.Machine
}

// facts are the facts about the program and its arguments.
func (p *program) facts() []trace.Fact {
	facts := []trace.Fact{{Name: "program", Value: p.file}}
	for _, arg := range p.args {
		facts = append(facts, trace.Fact{Name: "argument", Value: arg})
	}
	return facts
}

// ProgramError reports that a program cannot be run.
type ProgramError struct {
	Name string
	Why  string
}

func (e *ProgramError) Error() string { return e.Name + ": " + e.Why }

// find finds the file of a program in PATH, as a shell does, or the interpreter of a script.
func find(name string, args []string) (program, error) {
	for range 4 { // the kernel's limit
		path, err := exec.LookPath(name)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return program{}, &ProgramError{name, "there is no such program, or it may not be executed"}
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
	return program{}, &ProgramError{name, "it is a script of a script of a script of a script"}
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
		return program{}, &ProgramError{name, "it is no program in machine code (ELF), nor a script that begins with #!"}
	}
	defer f.Close()
	return program{name: name, path: path, file: file, args: args, machine: f.Machine}, nil
}

// shebang returns the interpreter of a script and its option, "" for other files.
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
