package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// loadAddresses returns the addresses of all loads, in order.
func (g *traceContent) loadAddresses() (list []uint64) {
	for i, kind := range g.Kind {
		if kind == trace.Load {
			list = append(list, g.Addr[i])
		}
	}
	return list
}

// numberRanges returns the concatenation of several ranges of consecutive numbers. Each argument
// contains the first number and the length of a range.
func numberRanges(ranges ...[2]uint64) (list []uint64) {
	for _, r := range ranges {
		for i := range r[1] {
			list = append(list, r[0]+i)
		}
	}
	return list
}

func sameAddresses(t *testing.T, what string, got, want []uint64) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: load %d has address %d, want %d", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d loads, want %d", what, len(got), len(want))
	}
}

// TestEndings checks that, however a program ends, its trace is complete, and its exit status and
// its output are unchanged.
func TestEndings(t *testing.T) {
	program := buildPlay(t, "ends.c")
	hundred := [2]uint64{0, 100}
	for _, c := range []struct {
		how, stdout string
		status      int
		signal      syscall.Signal
		ended       string
		lost        uint64
		loads       []uint64
	}{
		{how: "", stdout: "done\n", ended: "exit", loads: numberRanges(hundred)},
		{how: "return", status: 7, ended: "exit", loads: numberRanges(hundred)},
		{how: "atexit", stdout: "done\n", ended: "exit", loads: numberRanges(hundred, [2]uint64{100, 9})},
		{how: "abort", signal: syscall.SIGABRT, ended: "abort", loads: numberRanges(hundred)},
		{how: "crash", signal: syscall.SIGSEGV, ended: "signal 11", lost: 1, loads: numberRanges(hundred)},
		{how: "overflow", signal: syscall.SIGSEGV, ended: "signal 11", loads: numberRanges(hundred)},
		{how: "terminate", signal: syscall.SIGTERM, ended: "signal 15", loads: numberRanges(hundred)},
		{how: "interrupt", signal: syscall.SIGINT, ended: "signal 2", loads: numberRanges(hundred)},
		{how: "handler", status: 5, ended: "exit", loads: numberRanges(hundred, [2]uint64{100, 3})},
		{how: "_exit", status: 3, ended: "exit", loads: numberRanges(hundred)},
		{how: "_Exit", status: 3, ended: "exit", loads: numberRanges(hundred)},
		{how: "quick", status: 4, ended: "exit", loads: numberRanges(hundred, [2]uint64{100, 9})},
		{how: "exec", status: 6, ended: "exec", loads: numberRanges(hundred)},
		{how: "execfail", stdout: "2\ndone\n", ended: "exit", loads: numberRanges(hundred, [2]uint64{100, 8})},
		{how: "pool", stdout: "done\n", ended: "exit", loads: numberRanges(hundred, [2]uint64{1000, 7})},
		{how: "late", stdout: "done\n", ended: "exit", loads: numberRanges(hundred, [2]uint64{1000, 7}, [2]uint64{2000, 1}, [2]uint64{3000, 10}, [2]uint64{4000, 10})},
		{how: "fork", stdout: "done\n", ended: "exit", loads: numberRanges(hundred, [2]uint64{100, 4})},
		{how: "close", stdout: "done\n", ended: "exit", loads: numberRanges(hundred, [2]uint64{100, 2})},
	} {
		o := runProgram(t, verbose, program, c.how)
		ws := o.state.Sys().(syscall.WaitStatus)
		if c.signal != 0 && ws.Signal() != c.signal || c.signal == 0 && ws.ExitStatus() != c.status {
			t.Errorf("%s: the program ended with %v, want status %d, signal %d", c.how, o.state, c.status, c.signal)
		}
		if string(o.stdout) != c.stdout {
			t.Errorf("%s: the program printed %q, want %q", c.how, o.stdout, c.stdout)
		}
		for _, fault := range o.faults(t) {
			t.Errorf("%s: the trace has a fault at byte %d: %s", c.how, fault.Offset, fault.What)
		}
		got := o.readTrace(t, everything)
		sameAddresses(t, c.how, got.loadAddresses(), c.loads)
		if got.ending.How != c.ended || got.ending.Lost != c.lost {
			t.Errorf("%s: the recorded ending is %q with %d lost steps, want %q and %d", c.how, got.ending.How, got.ending.Lost, c.ended, c.lost)
		}
		if c.signal == 0 && c.ended == "exit" && got.ending.Status != uint64(c.status) {
			t.Errorf("%s: the trace has status %d, want %d", c.how, got.ending.Status, c.status)
		}
		if said := string(o.stderr); c.ended != "exec" && said != fmt.Sprintf("stackglass: %d references in out.sgt (%s)\n", len(c.loads), sizeOf(t, o)) {
			t.Errorf("%s: stderr %q", c.how, said)
		}
	}
}

// faults returns the faults that a complete check of a run's trace reports.
func (o *outcome) faults(t *testing.T) (list []sgt.Fault) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(o.dir, "out.sgt"))
	if err != nil {
		t.Fatal(err)
	}
	r := sgt.NewReader("out.sgt", bytes.NewReader(content), sgt.Options{})
	if _, err := sgt.Check(r, func(f sgt.Fault) { list = append(list, f) }); err != nil {
		t.Fatal(err)
	}
	return list
}

// sizeOf returns the size of a small trace in the format that the runtime prints.
func sizeOf(t *testing.T, o *outcome) string {
	t.Helper()
	info, err := os.Stat(filepath.Join(o.dir, "out.sgt"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() >= 1000 {
		return fmt.Sprintf("%d.%d kB", info.Size()/1000, info.Size()%1000/100)
	}
	return fmt.Sprintf("%d bytes", info.Size())
}

// TestKilledProgram checks that, after a program is killed, its trace contains all chunks that it
// had written before.
func TestKilledProgram(t *testing.T) {
	o := runProgram(t, nil, buildPlay(t, "ends.c"), "kill")
	got := readTraceFile(t, filepath.Join(o.dir, "out.sgt"), everything)
	var damage *trace.DamageError
	if !errors.As(got.err, &damage) || !errors.Is(damage, trace.ErrCutShort) {
		t.Errorf("the error is %v, want an error about a truncated trace", got.err)
	}
	loads := got.loadAddresses()
	if len(loads) < 1<<22 || len(loads) > 10000100 {
		t.Errorf("the trace has %d loads, want between 4,194,304 and 10,000,100", len(loads))
	}
	sameAddresses(t, "killed", loads, numberRanges([2]uint64{0, 100}, [2]uint64{1000, uint64(len(loads)) - 100}))
}

// TestStepsOfSignalHandlers checks that the trace is complete and in order even if signals arrive
// at any moment and their handlers are traced, too.
func TestStepsOfSignalHandlers(t *testing.T) {
	t.Run("few", func(t *testing.T) { testHandlersSteps(t, "timer", 5) })
	// The handler's steps fill the buffer while the interrupted loop is writing a step.
	t.Run("many", func(t *testing.T) { testHandlersSteps(t, "crowd", 5000) })
}

func testHandlersSteps(t *testing.T, how string, each uint64) {
	o := runProgram(t, nil, buildPlay(t, "ends.c"), how)
	content, err := os.ReadFile(filepath.Join(o.dir, "out.sgt"))
	if err != nil {
		t.Fatal(err)
	}
	r, b := sgt.NewReader("out.sgt", bytes.NewReader(content), sgt.Options{Strict: true}), trace.NewBatch(0)
	var main, handler uint64 // compare only the number of loads, because there are too many loads to list
	for err = r.Next(b); err == nil; err = r.Next(b) {
		for _, addr := range b.Addr {
			switch {
			case addr < 1<<40:
				handler++
			case addr-1<<40 != main:
				t.Fatalf("load %d of the loop has the wrong address %#x", main, addr)
			default:
				main++
			}
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	// The handler may run once more after the loop has counted 50 runs of the handler.
	if handler != 100+each*50 && handler != 100+each*51 || main < 1000 {
		t.Errorf("%d loads by the loop, %d loads by the handler; want at least 1000 by the loop, and 100 + %d × 50 or 51 by the handler", main, handler, each)
	}
}

// TestForkedChild checks that, on request, each child process writes its own trace file.
func TestForkedChild(t *testing.T) {
	o := runProgram(t, []string{"STACKGLASS_FORK=file"}, buildPlay(t, "ends.c"), "forks")
	sameAddresses(t, "the parent", o.readTrace(t, everything).loadAddresses(), numberRanges([2]uint64{0, 100}, [2]uint64{100, 4}))
	files, err := filepath.Glob(filepath.Join(o.dir, "out.sgt.*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the children wrote %v, want one file from each of two children", files)
	}
	for _, file := range files {
		got := readTraceFile(t, file, everything)
		if got.err != nil {
			t.Fatal(got.err)
		}
		sameAddresses(t, file, got.loadAddresses(), numberRanges([2]uint64{1000, 10}))
	}
}

// TestFullDisk checks that the program continues, and prints one error, if the disk is full and the
// trace cannot be written.
func TestFullDisk(t *testing.T) {
	program := buildPlay(t, "ends.c")
	for _, c := range []struct{ out, how, want string }{
		{"/dev/full", "many", "/dev/full cannot be written: the disk is full; the program runs without a trace"},
		{"/nowhere/out.sgt", "", "/nowhere/out.sgt cannot be written: its folder does not exist; the program runs without a trace"},
		{"out.sgt", "fsize", "out.sgt cannot be written any further: it would exceed the maximum file size; the trace ends there, after "},
	} {
		o := runProgram(t, []string{"STACKGLASS_OUT=" + c.out}, program, c.how)
		if !o.state.Success() || string(o.stdout) != "done\n" {
			t.Errorf("%s: the program printed %q and ended with %v", c.out, o.stdout, o.state)
		}
		said := string(o.stderr)
		if !strings.HasPrefix(said, "stackglass: "+c.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: stderr %q, want %q", c.out, said, c.want)
		}
		if c.how != "fsize" {
			continue
		}
		got := o.readTrace(t, everything)
		if n := len(got.loadAddresses()); n < 100000 || got.ending.How != "error 27" {
			t.Errorf("%s: the trace has %d loads and the ending %q; want at least 100,000 loads, and the ending error 27", c.out, n, got.ending.How)
		}
		if said, want := got.ending.String(), "recording stopped: file too large"; said != want {
			t.Errorf("%s: the ending is described as %q, want %q", c.out, said, want)
		}
	}
}

// TestTraceSizeLimit checks that recording stops when the trace reaches the size limit.
func TestTraceSizeLimit(t *testing.T) {
	o := runProgram(t, append(verbose, "STACKGLASS_MAX_BYTES=4M"), buildPlay(t, "ends.c"), "many")
	got := o.readTrace(t, everything)
	info, err := os.Stat(filepath.Join(o.dir, "out.sgt"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 4<<20 || info.Size() < 2<<20 || got.ending.How != "limit" {
		t.Errorf("the trace has %d bytes and the ending %q; want at most 4 MiB, and the ending limit", info.Size(), got.ending.How)
	}
	if n := uint64(len(got.loadAddresses())); n != got.ending.References || n < 200000 {
		t.Errorf("the trace contains %d loads, but its ending states %d", n, got.ending.References)
	}
	if !strings.HasSuffix(string(o.stderr), "; the trace ends at the limit of STACKGLASS_MAX_BYTES\n") {
		t.Errorf("stderr %q", o.stderr)
	}
}

// TestRegions checks that a trace contains the regions that the program marks, and that tracing can
// be limited to these regions.
func TestRegions(t *testing.T) {
	program := buildPlay(t, "ends.c")
	parts := [][2]uint64{{0, 100}, {1000, 10}, {2000, 20}, {3000, 30}, {4000, 40}, {5000, 50}}
	pick := func(which ...int) (list [][2]uint64) {
		for _, i := range which {
			list = append(list, parts[i])
		}
		return list
	}
	for _, c := range []struct {
		env   string
		parts [][2]uint64
		tags  string
	}{
		{"STACKGLASS_START=on", parts, "first second ] ] second ]"},
		{"STACKGLASS_START=off", pick(1, 2, 3, 5), "first second ] ] second ]"},
		{"STACKGLASS_REGION=second", pick(2, 5), "second ] second ]"},
		{"STACKGLASS_REGION=first", pick(1, 2, 3), "first second ] ]"},
		{"STACKGLASS_REGION=none", nil, ""},
	} {
		o := runProgram(t, []string{c.env}, program, "regions")
		got := o.readTrace(t, everything)
		sameAddresses(t, c.env, got.loadAddresses(), numberRanges(c.parts...))
		var tags []string
		for i, kind := range got.Kind {
			switch kind {
			case trace.RegionBegin:
				tags = append(tags, got.header.Program.Tags[got.Addr[i]])
			case trace.RegionEnd:
				tags = append(tags, "]")
			}
		}
		if strings.Join(tags, " ") != c.tags {
			t.Errorf("%s: the regions are %v, want %s", c.env, tags, c.tags)
		}
	}
}

// The variable "verbose" is an environment that makes a program report its trace even if its
// standard error is not a terminal.
var verbose = []string{"STACKGLASS_VERBOSE=1"}

// TestReportOnTerminal checks that a program prints a report about its trace only on a terminal,
// unless an environment variable requests the report. Tcl's exec and other build tools treat any
// text on standard error as a failure.
func TestReportOnTerminal(t *testing.T) {
	program := buildPlay(t, "ends.c")
	for _, c := range []struct {
		env                string // environment variables, separated by spaces
		captured, onScreen bool   // whether a report is printed when standard error is captured or is a terminal
	}{
		{"", false, true},
		{"STACKGLASS_VERBOSE=1", true, true},
		{"STACKGLASS_VERBOSE=0", false, true},
		{"STACKGLASS_QUIET=1", false, false},
		{"STACKGLASS_QUIET=1 STACKGLASS_VERBOSE=1", false, false},
	} {
		env := strings.Fields(c.env)
		if o := runProgram(t, env, program); bytes.HasPrefix(o.stderr, []byte("stackglass: 100 references in out.sgt")) != c.captured || !c.captured && len(o.stderr) > 0 {
			t.Errorf("with %q, the program wrote %q to a pipe", c.env, o.stderr)
		}
		if said := onTerminal(t, env, program); strings.HasPrefix(said, "stackglass: 100 references in out.sgt") != c.onScreen || !c.onScreen && said != "" {
			t.Errorf("with %q, the program wrote %q to a terminal", c.env, said)
		}
	}
}

// onTerminal runs a program whose standard error is a terminal, and returns the text that the
// program writes there.
func onTerminal(t *testing.T, env []string, program string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	var number, unlocked int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(argument))); errno != 0 {
			t.Fatal(errno)
		}
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Stderr = t.TempDir(), terminal
	cmd.Env = append(append(os.Environ(), "STACKGLASS_OUT=out.sgt"), env...)
	err = cmd.Run()
	terminal.Close()
	if err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(master) // reading always ends with an error, because the program closes the terminal
	return string(said)
}

// TestOutputPath checks that the path of the trace can be set with an environment variable.
func TestOutputPath(t *testing.T) {
	program := buildPlay(t, "ends.c")
	o := runProgram(t, []string{"STACKGLASS_OUT=a%pz.sgt"}, program)
	if files, _ := filepath.Glob(filepath.Join(o.dir, "a*z.sgt")); len(files) != 1 || strings.Contains(files[0], "%") {
		t.Errorf("wrote %v, want one file with the process number in its name", files)
	}
	o = runProgram(t, []string{"STACKGLASS_OUT="}, program)
	if _, err := os.Stat(filepath.Join(o.dir, "ends.sgt")); err != nil {
		t.Error(err)
	}
}
