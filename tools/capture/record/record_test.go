package record

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// needPrograms skips the test unless the given programs are installed.
func needPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("skipped: %s is not installed", p)
		}
	}
}

// buildProgram compiles one of the programs in testdata, and returns the path of the
// executable.
func buildProgram(t *testing.T, name string, options ...string) string {
	t.Helper()
	needPrograms(t, "gcc")
	binary := filepath.Join(t.TempDir(), name)
	options = append([]string{"-O1", "-g", "-pthread", "-fcf-protection=none"}, options...)
	if said, err := exec.Command("gcc", append(options, "-o", binary, filepath.Join("testdata", name+".c"))...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, said)
	}
	return binary
}

// recordedTrace is a trace with all its records.
type recordedTrace struct {
	Result
	*trace.Batch
	*trace.Program
	ending         sgt.Ending
	extent         trace.Extent
	stdout, stderr string
}

// recordProgram runs a program and returns its trace.
func recordProgram(t *testing.T, tracer, stdin, program string, args ...string) *recordedTrace {
	t.Helper()
	needPrograms(t, map[string]string{QEMU: "qemu-x86_64", Valgrind: "valgrind"}[tracer])
	path := filepath.Join(t.TempDir(), "out.sgt")
	var stdout, stderr bytes.Buffer
	r, err := Run(context.Background(), program, args, Options{Output: path, Tracer: tracer, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		t.Fatalf("%v; %s", err, stderr.String())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("the temporary files %v were not deleted", left)
	}
	read := readRecorded(t, path)
	read.Result, read.stdout, read.stderr = r, stdout.String(), stderr.String()
	return read
}

func readRecorded(t *testing.T, path string) *recordedTrace {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader := sgt.NewReader(path, f, sgt.Options{Strict: true})
	reader.Select(trace.AllKinds | trace.EventKinds)
	b, err := trace.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return &recordedTrace{Batch: b, Program: reader.Header().Program, ending: reader.Ending(), extent: reader.Header().Extent}
}

// functionOf returns the name of a record's function, or "" if the name is unknown.
func (r *recordedTrace) functionOf(row int) string {
	block := r.Site[row]
	if r.Kind[row].IsReference() {
		block = r.Sites[block].Block
	} else if r.Kind[row] != trace.BlockEntry {
		return ""
	}
	if f := r.Blocks[block].Function; f != trace.NoFunction {
		return r.Functions[f].Name
	}
	return ""
}

// recordsOf returns the records that belong to a function.
func (r *recordedTrace) recordsOf(function string) (rows []int) {
	for row := range r.Addr {
		if r.functionOf(row) == function {
			rows = append(rows, row)
		}
	}
	return rows
}

// variableNamed returns the variable with the given name.
func (r *recordedTrace) variableNamed(t *testing.T, name string) trace.Object {
	t.Helper()
	for _, o := range r.Objects {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("none of the %[2]d variables is named %[1]s", name, len(r.Objects))
	return trace.Object{}
}

// referencesTo returns all references from a function to a variable. Each reference is
// described by its kind, offset and size.
func (r *recordedTrace) referencesTo(t *testing.T, function, object string) (all []string) {
	t.Helper()
	o := r.variableNamed(t, object)
	for _, row := range r.recordsOf(function) {
		if offset := r.Addr[row] - o.Addr; r.Kind[row].IsReference() && offset < o.Bytes {
			all = append(all, r.Kind[row].String()+" "+strconv.FormatUint(offset, 10)+" "+strconv.Itoa(int(r.Bytes[row])))
		}
	}
	return all
}

func expected(kinds []string, width int) (all []string) {
	for i := range 1000 {
		for _, kind := range kinds {
			all = append(all, kind+" "+strconv.Itoa(i*width)+" "+strconv.Itoa(width))
		}
	}
	return all
}

func TestEveryReference(t *testing.T) {
	for name, options := range map[string][]string{"static": {"-static"}, "fixed": {"-no-pie"}, "anywhere": {"-pie"}} {
		t.Run(name, func(t *testing.T) {
			r := recordProgram(t, QEMU, "", buildProgram(t, "sum", options...))
			if r.Status != 3 || r.stdout != "500500\n" || r.stderr != "" || r.Result.Threads != 1 {
				t.Errorf("status %d, %d threads, stdout %q, stderr %q", r.Status, r.Result.Threads, r.stdout, r.stderr)
			}
			for _, c := range []struct {
				function, object string
				want             []string
			}{
				{"fill", "table", expected([]string{"store"}, 4)},
				{"sum", "table", expected([]string{"load"}, 4)},
				{"narrow", "table", expected([]string{"load"}, 4)},
				{"narrow", "copies", expected([]string{"store"}, 2)},
				{"bump", "table", expected([]string{"load", "store"}, 4)},
			} {
				if got := r.referencesTo(t, c.function, c.object); !slices.Equal(got, c.want) {
					t.Errorf("function %s, variable %s: %d references, %.3q…; want %d, %.3q…", c.function, c.object, len(got), got, len(c.want), c.want)
				}
			}
			if r.ending.How != "exit" || r.ending.Status != 3 || r.Summary.References == 0 {
				t.Errorf("the ending is %+v, want an exit with status 3", r.ending)
			}
		})
	}
}

// TestNames checks that the trace contains the correct source lines and the correct names of
// functions, variables and files.
func TestNames(t *testing.T) {
	program := buildProgram(t, "sum")
	r := recordProgram(t, QEMU, "", program)
	if m := r.Modules[0]; m.Name != program || m.Base == 0 || m.End <= m.Base {
		t.Errorf("the first module is %+v, want the module of the program", m)
	}
	if !slices.ContainsFunc(r.Modules, func(m trace.Module) bool { return strings.Contains(m.Name, "libc.so") }) {
		t.Errorf("no C library among %+v", r.Modules)
	}
	for _, f := range r.Functions {
		if f.Name != "sum" {
			continue
		}
		if filepath.Base(f.Place.File) != "sum.c" || f.Place.Line != 15 || f.Module != 0 {
			t.Errorf("function sum is at %+v, want line 15 of sum.c", f)
		}
		for _, b := range r.Blocks[f.First : f.First+f.Blocks] {
			for _, s := range r.Sites[b.FirstSite : b.FirstSite+b.Sites] {
				if s.PC-r.Modules[0].Base > 0x10000 || s.Place.Line < 15 || s.Place.Line > 21 {
					t.Errorf("site %+v of sum is outside lines 15 to 21", s)
				}
			}
			if b.Sites == 0 && (filepath.Base(b.File) != "sum.c" || b.FirstLine < 15 || b.LastLine > 21 || b.Label == "") {
				t.Errorf("block %+v of sum, want lines 15 to 21 of sum.c and a label", b)
			}
		}
	}
	if o := r.variableNamed(t, "table"); o.Bytes != 4000 || o.Place.Line != 5 {
		t.Errorf("variable table = %+v, want 4000 bytes, line 5", o)
	}
}

// TestGapsBetweenSegments checks the names in a program whose segments are not adjacent in memory.
func TestGapsBetweenSegments(t *testing.T) {
	for _, kind := range []string{"-pie", "-no-pie"} {
		t.Run(kind, func(t *testing.T) {
			program := buildProgram(t, "sum", kind, "-Wl,-z,max-page-size=0x200000,-z,separate-code")
			r := recordProgram(t, QEMU, "", program)
			if got, want := r.referencesTo(t, "sum", "table"), expected([]string{"load"}, 4); !slices.Equal(got, want) {
				t.Errorf("%d references of sum to table, want %d", len(got), len(want))
			}
			for _, row := range r.recordsOf("sum") {
				if p := r.Sites[r.Site[row]].Place; r.Kind[row] == trace.Load && (filepath.Base(p.File) != "sum.c" || p.Line < 15 || p.Line > 21) {
					t.Fatalf("a load of sum is at %+v, want lines 15 to 21 of sum.c", p)
				}
			}
		})
	}
}

// TestCodeMappedTwice checks that a second mapping of a part of a file has the names of that part.
func TestCodeMappedTwice(t *testing.T) {
	for _, kind := range []string{"-pie", "-no-pie"} {
		t.Run(kind, func(t *testing.T) {
			program := buildProgram(t, "copy", kind, "-Wl,-z,separate-code")
			r := recordProgram(t, QEMU, "", program)
			table := r.variableNamed(t, "table")
			loads := map[string]int{}
			for _, row := range r.recordsOf("total") {
				if r.Kind[row] == trace.Load && r.Addr[row]-table.Addr < table.Bytes {
					s := r.Sites[r.Site[row]]
					if filepath.Base(s.Place.File) != "copy.c" || s.Place.Line != 14 {
						t.Fatalf("a load of total is at %+v, want line 14 of copy.c", s.Place)
					}
					loads[r.Modules[r.Functions[r.Blocks[s.Block].Function].Module].Name]++
				}
			}
			if r.Status != 3 || len(loads) != 2 || loads[program] != 1000 || loads[program+" (copy)"] != 1000 {
				t.Errorf("status %d, loads of total by module: %v; want 1000 in %s and in the copy", r.Status, loads, program)
			}
			if n := len(slices.DeleteFunc(slices.Clone(r.Objects), func(o trace.Object) bool { return o.Name != "table" })); n != 1 {
				t.Errorf("%d variables are named table, want 1", n)
			}
		})
	}
}

// TestGeneratedCode checks that code that a program generates has the names in its perf map.
func TestGeneratedCode(t *testing.T) {
	r := recordProgram(t, QEMU, "", buildProgram(t, "generated"))
	perfMap := strings.TrimSpace(r.stdout)
	defer os.Remove(perfMap)
	table := r.variableNamed(t, "table")
	loads := map[string]int{}
	for row := range r.Addr {
		if r.Kind[row] == trace.Load && r.Addr[row]-table.Addr < table.Bytes {
			s := r.Sites[r.Site[row]]
			loads[r.functionOf(row)+" in "+s.Place.File]++
			if s.Place.Line != 0 {
				t.Fatalf("a load of generated code is at %+v, want no line", s.Place)
			}
		}
	}
	if want := map[string]int{"mul in /home/me/a.js": 1000, "int A.get(int[], int) in ": 1000, " in ": 1000}; !maps.Equal(loads, want) {
		t.Errorf("loads by function: %v, want %v", loads, want)
	}
	for _, f := range r.Functions {
		if want := (trace.Place{File: "/home/me/a.js", Line: 2, Column: 14}); f.Name == "mul" && f.Place != want {
			t.Errorf("function mul is at %+v, want %+v", f.Place, want)
		}
	}
	pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(perfMap, "/tmp/perf-"), ".map"))
	if err != nil {
		t.Fatal(err)
	}
	if readPerfMap(pid, time.Now().Add(-time.Hour)) == nil {
		t.Error("the perf map was not read again")
	}
	if readPerfMap(pid, time.Now().Add(time.Hour)) != nil {
		t.Error("the perf map of an earlier process was read")
	}
}

// TestBlocks checks that every execution of a block is recorded.
func TestBlocks(t *testing.T) {
	r := recordProgram(t, QEMU, "", buildProgram(t, "sum"))
	entries := map[uint32]int{}
	for _, row := range r.recordsOf("sum") {
		if r.Kind[row] == trace.BlockEntry {
			entries[r.Site[row]]++
		}
	}
	var counts []int
	for _, n := range entries {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	// The first iteration of the loop may be part of the preceding block.
	if last := counts[len(counts)-1]; last != 1000 && last != 999 {
		t.Errorf("the blocks of sum run %v times, want 1000 or 999 for the loop", counts)
	}
}

// TestCountsEqualLackey checks that the counts equal Valgrind's counts. The code contains no
// 16-byte references and no atomic additions. Valgrind counts an atomic addition as a load followed
// by a compare-and-swap.
func TestCountsEqualLackey(t *testing.T) {
	needPrograms(t, "valgrind", "qemu-x86_64")
	program := buildProgram(t, "sum", "-static")
	q, v := recordProgram(t, QEMU, "", program), recordProgram(t, Valgrind, "", program)
	if v.Status != 3 || v.stdout != "500500\n" || v.ending.How != "exit" {
		t.Errorf("under Valgrind: status %d, stdout %q, ending %+v; want status 3, stdout 500500", v.Status, v.stdout, v.ending)
	}
	within := map[string]func(pc trace.Addr) bool{}
	for _, name := range []string{"fill", "sum", "narrow", "main"} {
		pcs := map[trace.Addr]bool{}
		for _, row := range q.recordsOf(name) {
			if q.Kind[row].IsReference() {
				pcs[q.PC[row]] = true
			}
		}
		within[name] = func(pc trace.Addr) bool { return pcs[pc] }
	}
	for name, is := range within {
		if a, b := count(q.Batch, is), count(v.Batch, is); a != b || a.loads+a.stores == 0 {
			t.Errorf("%s: QEMU counts %+v, lackey %+v", name, a, b)
		}
	}
}

type counts struct{ loads, stores, bytes int }

func count(b *trace.Batch, is func(pc trace.Addr) bool) (c counts) {
	for row, kind := range b.Kind {
		if !kind.IsReference() || kind == trace.Fetch || !is(b.PC[row]) {
			continue
		}
		bytes := int(b.Bytes[row])
		if kind != trace.Store {
			c.loads, c.bytes = c.loads+1, c.bytes+bytes
		}
		if kind != trace.Load {
			c.stores, c.bytes = c.stores+1, c.bytes+bytes
		}
	}
	return c
}

func TestThreads(t *testing.T) {
	r := recordProgram(t, QEMU, "", buildProgram(t, "threads"))
	if r.Result.Threads != 5 || len(r.Program.Threads) != 5 {
		t.Errorf("%d threads, of which the program describes %d; want 5", r.Result.Threads, len(r.Program.Threads))
	}
	var started, ended []string
	for row, kind := range r.Kind {
		switch kind {
		case trace.ThreadStart:
			started = append(started, strconv.Itoa(int(r.Thread[row]))+" by "+strconv.FormatUint(r.Addr[row], 10))
		case trace.ThreadEnd:
			ended = append(ended, strconv.Itoa(int(r.Thread[row])))
		}
	}
	slices.Sort(started)
	slices.Sort(ended)
	if got := strings.Join(started, ", "); got != "1 by 1, 2 by 1, 3 by 1, 4 by 1, 5 by 1" {
		t.Errorf("started: %s", got)
	}
	if got := strings.Join(ended, " "); got != "2 3 4 5" {
		t.Errorf("ended: %s", got)
	}
	by := map[uint32]int{}
	for _, row := range r.recordsOf("one") {
		if r.Kind[row] == trace.Store {
			by[r.Thread[row]]++
		}
	}
	if by[2] != 2000 || by[3] != 2000 {
		t.Errorf("stores in one() by thread: %v, want 2000 each by threads 2 and 3", by)
	}
}

// TestThreadOrder checks that, if threads take turns, their references are in the same order in the
// trace.
func TestThreadOrder(t *testing.T) {
	r := recordProgram(t, QEMU, "", buildProgram(t, "threads"))
	second := r.variableNamed(t, "second")
	var threads []uint32
	for _, row := range r.recordsOf("relay") {
		if r.Kind[row] == trace.Store && r.Addr[row]-second.Addr < second.Bytes {
			threads = append(threads, r.Thread[row])
		}
	}
	if len(threads) != 200 {
		t.Fatalf("%d stores, want 200", len(threads))
	}
	for i := 2; i < len(threads); i++ {
		if threads[i] != threads[i-2] || threads[i] == threads[i-1] {
			t.Fatalf("the stores are by threads %v, want alternating threads", threads)
		}
	}
}

func TestProgramEndings(t *testing.T) {
	program := buildProgram(t, "ends")
	for _, c := range []struct {
		argument, how string
		status, marks int
	}{
		{"fault", "signal 11", 139, 64},
		{"abort", "signal 6", 134, 64},
		{"interrupt", "signal 2", 130, 64},
		{"exec", "exec", 0, 96},
		{"fork", "exit", 0, 64},
		{"system", "exit", 0, 64},
	} {
		t.Run(c.argument, func(t *testing.T) {
			r := recordProgram(t, QEMU, "", program, c.argument)
			marks := 0
			for _, row := range r.recordsOf("mark") {
				if r.Kind[row] == trace.Store {
					marks++
				}
			}
			if r.ending.How != c.how || r.Status != c.status || marks != c.marks {
				t.Errorf("the program ended with %q and status %d after %d stores in mark; want %q, %d, %d", r.ending.How, r.Status, marks, c.how, c.status, c.marks)
			}
		})
	}
}

// TestStreamsAndEnvironment checks that the program has the same streams, arguments and environment
// as without tracing.
func TestStreamsAndEnvironment(t *testing.T) {
	program := buildProgram(t, "ends")
	for _, tracer := range []string{QEMU, Valgrind} {
		t.Run(tracer, func(t *testing.T) {
			r := recordProgram(t, tracer, "word\n", program, "echo")
			environment := "plain"
			if tracer == Valgrind {
				environment = "preloaded" // Valgrind sets LD_PRELOAD itself
			}
			if want := program + " word " + environment + "\n"; r.stdout != want || r.stderr != "word\n" {
				t.Errorf("stdout %q, stderr %q, want %q", r.stdout, r.stderr, want)
			}
		})
	}
}

func TestScript(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh -e\necho $0 $1 $(echo sub | tr s S)\nexit 5\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	r := recordProgram(t, QEMU, "", script, "argument")
	if want := script + " argument Sub\n"; r.stdout != want || r.Status != 5 || r.ending.How != "exit" {
		t.Errorf("stdout %q, status %d, ending %q; want stdout %q, status 5", r.stdout, r.Status, r.ending.How, want)
	}
}

// TestGoProgram checks the recording of a Go program, which manages its own threads and stacks. The
// test also records a program for a different architecture, because Go can cross-compile without
// other tools.
func TestGoProgram(t *testing.T) {
	needPrograms(t, "go", "qemu-x86_64")
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", "hello.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "hello.go")
	if err := os.WriteFile(source, text, 0o666); err != nil {
		t.Fatal(err)
	}
	for machine, emulator := range map[string]string{"amd64": "qemu-x86_64", "arm64": "qemu-aarch64"} {
		t.Run(machine, func(t *testing.T) {
			needPrograms(t, emulator)
			program := filepath.Join(dir, "hello-"+machine)
			build := exec.Command("go", "build", "-o", program, source)
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+machine, "GOFLAGS=-mod=mod")
			if said, err := build.CombinedOutput(); err != nil {
				t.Fatalf("go build: %v: %s", err, said)
			}
			r := recordProgram(t, QEMU, "", program)
			if r.stdout != "[499500 499500 499500 499500]\n" {
				t.Errorf("stdout %q", r.stdout)
			}
			loads := 0
			for _, row := range r.recordsOf("main.sum") {
				if r.Kind[row] == trace.Load && r.Bytes[row] == 8 {
					loads++
				}
			}
			if loads < 4000 || loads > 4100 {
				t.Errorf("%d loads in main.sum, want 4000 and a few from its stack frame", loads)
			}
		})
	}
}

func TestRecordingLimit(t *testing.T) {
	needPrograms(t, "qemu-x86_64")
	path := filepath.Join(t.TempDir(), "out.sgt")
	r, err := Run(context.Background(), buildProgram(t, "threads"), nil, Options{Output: path, Tracer: QEMU, MostBytes: 1000})
	if err != nil || r.Status != 0 || r.End.How != "limit" {
		t.Errorf("status %d, ending %q, error %v; want the ending limit", r.Status, r.End.How, err)
	}
}

// TestPart checks that a part of a run equals the same references of the whole run.
func TestPart(t *testing.T) {
	for _, tracer := range []string{QEMU, Valgrind} {
		program := buildProgram(t, "sum", "-static")
		described := func(r *recordedTrace) (all []string) {
			for i, kind := range r.Kind {
				if kind.IsReference() && kind != trace.Fetch {
					all = append(all, kind.String()+" "+strconv.Itoa(int(r.Bytes[i]))+" "+strconv.FormatUint(trace.At(r.PC, i), 16))
				}
			}
			return all
		}
		whole := described(recordProgram(t, tracer, "", program))
		for _, extent := range []trace.Extent{{After: 1}, {For: 3}, {After: 2000, For: 3000}, {After: uint64(len(whole)) - 5, For: 1 << 63}} {
			path := filepath.Join(t.TempDir(), "out.sgt")
			if _, err := Run(context.Background(), program, nil, Options{Output: path, Tracer: tracer, Stdout: io.Discard, Extent: extent}); err != nil {
				t.Fatal(err)
			}
			recorded := readRecorded(t, path)
			if recorded.extent != extent {
				t.Errorf("%s: the trace describes the extent %+v, want %+v", tracer, recorded.extent, extent)
			}
			got, want := described(recorded), whole[extent.After:]
			if extent.For > 0 {
				want = want[:min(extent.For, uint64(len(want)))]
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %+v: %d references, want %d, or other references", tracer, extent, len(got), len(want))
			}
		}
	}
}

func TestProgramErrors(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/nowhere/at/all": "/nowhere/at/all: there is no such program, or it is not executable",
		text:              text + ": the file is neither an ELF program nor a script that begins with #!",
	} {
		_, err := Run(context.Background(), name, nil, Options{Output: filepath.Join(t.TempDir(), "out.sgt")})
		if !errors.As(err, new(*ProgramError)) || err.Error() != want {
			t.Errorf("Run = %v, want %s", err, want)
		}
	}
	for wanted, want := range map[string]string{
		"":       "neither qemu-x86_64 (apt-get install qemu-user) nor valgrind (apt-get install valgrind) is installed; install one of these tracers, preferably the first",
		QEMU:     "qemu-x86_64 is not installed (apt-get install qemu-user)",
		Valgrind: "valgrind is not installed (apt-get install valgrind)",
	} {
		if got := (&TracerError{Wanted: wanted, Emulator: "qemu-x86_64"}).Error(); got != want {
			t.Errorf("Error() = %s, want %s", got, want)
		}
	}
}

func TestChooseTracer(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("skipped: this test is for x86-64 machines")
	}
	empty := t.TempDir()
	for _, name := range []string{"qemu-x86_64", "valgrind"} {
		if err := os.WriteFile(filepath.Join(empty, name), nil, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", empty)
	for _, c := range []struct {
		machine      elf.Machine
		wanted, want string
	}{
		{elf.EM_X86_64, "", QEMU},
		{elf.EM_X86_64, QEMU, QEMU},
		{elf.EM_X86_64, Valgrind, Valgrind},
		{elf.EM_AARCH64, "", ""}, // Valgrind can only run programs for its own architecture
		{elf.EM_SPARC, "", ""},
	} {
		got, _, err := chooseTracer(c.machine, c.wanted)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("chooseTracer(%v, %q) = %q, %v; want %q", c.machine, c.wanted, got, err, c.want)
		}
	}
}

// TestNoTracer checks that no program is run and no file is created if no tracer is installed.
func TestNoTracer(t *testing.T) {
	program := buildProgram(t, "sum")
	t.Setenv("PATH", t.TempDir())
	path := filepath.Join(t.TempDir(), "out.sgt")
	_, err := Run(context.Background(), program, nil, Options{Output: path, Stdout: io.Discard})
	if !errors.As(err, new(*TracerError)) {
		t.Errorf("got %v, want an error that says what to install", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a trace was created")
	}
}
