package capture

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestKernelSignals checks that a signal from the kernel ends a traced program in the same way as
// an untraced program.
func TestKernelSignals(t *testing.T) {
	program := buildPlay(t, "deaths.c")
	for how, signal := range map[string]syscall.Signal{
		"alarm": syscall.SIGALRM, "virtual": syscall.SIGVTALRM, "profile": syscall.SIGPROF, "trap": syscall.SIGTRAP,
	} {
		o := runProgram(t, nil, program, how)
		wantDeath(t, how, o, signal)
	}
}

// wantDeath checks that a signal ended a program, that the program printed nothing, and that its
// trace is complete and contains all 100 loads.
func wantDeath(t *testing.T, how string, o *outcome, signal syscall.Signal) {
	t.Helper()
	if ws := o.state.Sys().(syscall.WaitStatus); ws.Signal() != signal || len(o.stdout) > 0 {
		t.Errorf("%s: the program ended with %v and printed %q; want signal %d", how, o.state, o.stdout, signal)
	}
	got := o.readTrace(t, everything)
	sameAddresses(t, how, got.loadAddresses(), numberRanges([2]uint64{0, 100}))
	if want := fmt.Sprintf("signal %d", signal); got.ending.How != want {
		t.Errorf("%s: the recorded ending is %q, want %q", how, got.ending.How, want)
	}
}

// TestSignalsAlwaysEndProgram checks that a signal ends a program whatever the runtime is doing.
// The runtime may be recording, writing to a pipe that no process reads, or waiting for a lock that
// is never released. In the last two cases, the trace is truncated.
func TestSignalsAlwaysEndProgram(t *testing.T) {
	t.Parallel()
	program := buildPlay(t, "deaths.c")
	for _, c := range []struct{ name, how, out string }{
		{"recording", "busy", "out.sgt"},
		{"pipe", "busy", makeFIFO(t)},
		{"locked", "locked", "out.sgt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := &outcome{dir: t.TempDir()}
			ctx, cancel := context.WithTimeout(t.Context(), hangTimeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, c.how)
			cmd.Dir, cmd.Env = o.dir, append(os.Environ(), "STACKGLASS_OUT="+c.out)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.name == "pipe" {
				unread, err := os.Open(c.out)
				if err != nil {
					t.Fatal(err)
				}
				defer unread.Close()
			}
			if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
				t.Errorf("the program printed %q (error %v), want ready", line, err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // the error is ignored, because a signal ends the program
			if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGTERM {
				t.Fatalf("the program ended with %v, want SIGTERM", cmd.ProcessState)
			}
			if c.name == "recording" {
				if got := o.readTrace(t, everything); got.ending.How != "signal 15" || got.Len() < 100 {
					t.Errorf("the trace ended with %q after %d records", got.ending.How, got.Len())
				}
			}
		})
	}
}

// TestThreadsThatBeginLate checks that the trace contains threads that make their first steps in
// destructors of thread-specific data. The system may call these destructors in several rounds.
func TestThreadsThatBeginLate(t *testing.T) {
	program := buildPlay(t, "deaths.c")
	for _, how := range []string{"late", "later", "last"} {
		o := runProgram(t, nil, program, how)
		if !o.state.Success() || string(o.stdout) != "done\n" {
			t.Errorf("%s: the program printed %q and ended with %v", how, o.stdout, o.state)
		}
		got := o.readTrace(t, everything)
		loads, ends := map[uint32]int{}, 0
		for i, kind := range got.Kind {
			switch kind {
			case trace.Load:
				loads[got.Thread[i]]++
			case trace.ThreadEnd:
				ends++
			}
		}
		for thread, n := range loads {
			if thread != 1 && n != 10 {
				t.Errorf("%s: thread %d made %d loads, want 10", how, thread, n)
			}
		}
		if len(loads) != 61 || ends != 61 || got.ending.Lost != 0 {
			t.Errorf("%s: %d threads with loads, %d ended threads, %d steps lost; want 61, 61, none", how, len(loads), ends, got.ending.Lost)
		}
	}
}

// TestAlternateStacks checks that the trace is written even if the program's alternate signal stack
// is small. If a handler requests an alternate stack but the program has none, tracing must not
// reduce the handler's stack space.
func TestAlternateStacks(t *testing.T) {
	program := buildPlay(t, "deaths.c")
	wantDeath(t, "short stack", runProgram(t, nil, program, "short stack"), syscall.SIGTERM)
	o := runProgram(t, nil, program, "no stack")
	if !o.state.Success() || string(o.stdout) != "done\n" {
		t.Errorf("no stack: the program printed %q and ended with %v, want done and success", o.stdout, o.state)
	}
	o.readTrace(t, everything)
}

// makeFIFO creates a named pipe and returns its path.
func makeFIFO(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe.sgt")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestTraceToPipe checks that a trace can be written to a pipe, and that the program does not block
// if the pipe has no reader.
func TestTraceToPipe(t *testing.T) {
	program := buildPlay(t, "deaths.c")
	name := makeFIFO(t)
	o := runProgram(t, []string{"STACKGLASS_OUT=" + name}, program, "none")
	if want := "stackglass: " + name + " cannot be written: it is a pipe that nobody reads; the program runs without a trace\n"; string(o.stderr) != want {
		t.Errorf("without a reader: stderr %q, want %q", o.stderr, want)
	}
	if !o.state.Success() || string(o.stdout) != "done\n" {
		t.Errorf("without a reader: the program printed %q and ended with %v", o.stdout, o.state)
	}
	content := make(chan []byte)
	go func() {
		all, _ := os.ReadFile(name) // the checks below detect missing records
		content <- all
	}()
	o = runProgram(t, []string{"STACKGLASS_OUT=" + name}, program, "none")
	copied := filepath.Join(o.dir, "out.sgt")
	if err := os.WriteFile(copied, <-content, 0o600); err != nil {
		t.Fatal(err)
	}
	sameAddresses(t, "with a reader", o.readTrace(t, everything).loadAddresses(), numberRanges([2]uint64{0, 100}))
}

// TestForksLeaveCompleteTraces checks that the trace contains all steps of the parent process, even
// if the C library function daemon() ends that process.
func TestForksLeaveCompleteTraces(t *testing.T) {
	program := buildPlay(t, "deaths.c")
	for _, c := range []struct {
		how, ended string
		loads      []uint64
	}{
		{"daemon", "fork", numberRanges([2]uint64{0, 100})},
		{"forks", "exit", numberRanges([2]uint64{0, 110})},
	} {
		o := runProgram(t, nil, program, c.how)
		got := o.readTrace(t, everything)
		sameAddresses(t, c.how, got.loadAddresses(), c.loads)
		if !o.state.Success() || got.ending.How != c.ended || got.ending.Lost != 0 {
			t.Errorf("%s: the program ended with %v, the trace with %q and %d steps lost; want success, %q, and none", c.how, o.state, got.ending.How, got.ending.Lost, c.ended)
		}
	}
}

// TestExitStatusMatchesSystem checks that the trace contains the exit status that the system
// reports: the low eight bits of the program's exit code.
func TestExitStatusMatchesSystem(t *testing.T) {
	o := runProgram(t, nil, buildPlay(t, "deaths.c"), "minus one")
	if got := o.readTrace(t, everything).ending.Status; got != 255 || o.state.ExitCode() != 255 {
		t.Errorf("the trace has status %d, the system reports %d, want 255", got, o.state.ExitCode())
	}
}

// TestInvalidSettings checks that, if the value of an environment variable is invalid, it is
// reported once and then ignored.
func TestInvalidSettings(t *testing.T) {
	program := buildPlay(t, "deaths.c")
	for _, c := range []struct{ set, want string }{
		{"STACKGLASS_MAX_BYTES=1X", "a number of bytes, with K, M, G or T for powers of 1024, for example 1.5G"},
		{"STACKGLASS_MAX_BYTES=-1", "a number of bytes, with K, M, G or T for powers of 1024, for example 1.5G"},
		{"STACKGLASS_MAX_BYTES=1Kx", "a number of bytes, with K, M, G or T for powers of 1024, for example 1.5G"},
		{"STACKGLASS_MAX_BYTES=99999999T", "a number of bytes, with K, M, G or T for powers of 1024, for example 1.5G"},
		{"STACKGLASS_MAX_BYTES=99999999999999999999", "a number of bytes, with K, M, G or T for powers of 1024, for example 1.5G"},
		{"STACKGLASS_START=of", "on or off"},
		{"STACKGLASS_AFTER=1K", "a number of references, for example 1000000"},
		{"STACKGLASS_FOR=99999999999999999999", "a number of references, for example 1000000"},
		{"STACKGLASS_ORDER=slice", "exact or sliced"},
		{"STACKGLASS_FORK=1", "off or file"},
	} {
		o := runProgram(t, []string{c.set, "STACKGLASS_QUIET=1"}, program)
		if want := "stackglass: " + c.set + " is invalid and is ignored; set " + c.want + "\n"; string(o.stderr) != want {
			t.Errorf("stderr %q, want %q", o.stderr, want)
		}
		sameAddresses(t, c.set, o.readTrace(t, everything).loadAddresses(), numberRanges([2]uint64{0, 100}))
	}
	for _, set := range []string{
		"STACKGLASS_MAX_BYTES=", "STACKGLASS_MAX_BYTES=1T", "STACKGLASS_MAX_BYTES=1.5g", "STACKGLASS_MAX_BYTES=2GiB", "STACKGLASS_MAX_BYTES=100000B",
		"STACKGLASS_START=on", "STACKGLASS_ORDER=exact", "STACKGLASS_FORK=off", "STACKGLASS_FORK=",
	} {
		if o := runProgram(t, []string{set, "STACKGLASS_QUIET=1"}, program); len(o.stderr) > 0 {
			t.Errorf("%s: stderr %q, want nothing", set, o.stderr)
		}
	}
}

// TestDecimalLimits checks that a limit may contain a decimal point and a unit, and that
// different notations for the same limit have the same effect.
func TestDecimalLimits(t *testing.T) {
	program, rows := buildPlay(t, "ends.c"), map[string]int{}
	for _, limit := range []string{"3.5M", "3584KiB", "3670016"} {
		got := runProgram(t, []string{"STACKGLASS_MAX_BYTES=" + limit}, program, "many").readTrace(t, everything)
		if rows[limit] = got.Len(); got.ending.How != "limit" {
			t.Errorf("%s: the trace ended with %q, want limit", limit, got.ending.How)
		}
	}
	if rows["3.5M"] != rows["3670016"] || rows["3584KiB"] != rows["3670016"] {
		t.Errorf("number of records by limit: %v; want the same number for equal limits", rows)
	}
}

// TestSignalHandlersAreListed checks that the trace lists all signals for which the program has a
// handler.
func TestSignalHandlersAreListed(t *testing.T) {
	program := buildPlay(t, "deaths.c")
	for how, want := range map[string]string{"none": "", "no stack": "10"} {
		said := ""
		for _, f := range runProgram(t, nil, program, how).readTrace(t, everything).header.Capture {
			if f.Name == "handlers" {
				said = f.Value
			}
		}
		if said != want {
			t.Errorf("%s: the trace lists handlers for the signals %q, want %q", how, said, want)
		}
	}
}
