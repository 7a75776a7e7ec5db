package capture

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// These tests compile whole programs both with [Compile] and with the compiler itself. The two
// programs must print the same output, and the trace must match independent counts.

// sourceOf returns the absolute path of a file in testdata/programs.
func sourceOf(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "programs", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// traceCompile runs the function Compile, which must succeed and print nothing.
func traceCompile(t *testing.T, compiler string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	status, err := Compile(IO{Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said}, Options{}, compiler, args)
	if status != 0 || err != nil || said.Len() > 0 {
		t.Fatalf("%s %s: status %d, %v\n%s", compiler, strings.Join(args, " "), status, err, said.Bytes())
	}
}

// plainCompile compiles a program with the compiler itself, without instrumentation.
func plainCompile(t *testing.T, compiler string, args ...string) {
	t.Helper()
	if said, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, said)
	}
}

// compilerFor returns the compiler driver for a source file, or "" if it is not installed.
func compilerFor(clang, source string) string {
	name := filepath.Base(clang)
	switch filepath.Ext(source) {
	case ".cc":
		name = strings.Replace(name, "clang", "clang++", 1)
	case ".f90":
		name = strings.Replace(name, "clang", "flang-new", 1)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

var openMP sync.Map // for each compiler, whether it has OpenMP

// hasOpenMP reports whether a compiler finds its OpenMP library.
func hasOpenMP(t *testing.T, compiler string) bool {
	if has, known := openMP.Load(compiler); known {
		return has.(bool)
	}
	cmd := exec.Command(compiler, "-fopenmp", "-x", "c", "-", "-o", filepath.Join(t.TempDir(), "openmp"))
	cmd.Stdin = strings.NewReader("int main(void) {\n#pragma omp parallel\n{}\nreturn 0; }\n")
	has := cmd.Run() == nil
	openMP.Store(compiler, has)
	return has
}

// TestTracingKeepsBehaviour checks that a traced program has the same output and exit status as an
// untraced program, and that its trace is complete.
func TestTracingKeepsBehaviour(t *testing.T) {
	newestClang(t)
	for _, c := range []struct {
		source string
		flags  []string
		sample bool // whether the program is also tested with older compilers
	}{
		{source: "gemm.c"}, {source: "jacobi.c", flags: []string{"-lm"}}, {source: "mixed.c"},
		{source: "exceptions.cc", flags: []string{"-pthread"}, sample: true},
		{source: "openmp.c", flags: []string{"-fopenmp"}, sample: true},
		{source: "gemm.f90"},
	} {
		for _, clang := range installedClangs() {
			compiler := compilerFor(clang, c.source)
			if compiler == "" || c.source == "openmp.c" && !hasOpenMP(t, compiler) {
				t.Logf("skipped: %s with %s, whose installation is incomplete", c.source, clang)
				continue
			}
			for _, level := range []string{"-O0", "-O2"} {
				if !shouldTest(clang, c.sample && level == "-O2") {
					continue
				}
				t.Run(fmt.Sprint(c.source, level, filepath.Base(compiler)), func(t *testing.T) {
					t.Parallel()
					dir, source := t.TempDir(), sourceOf(t, c.source)
					plain, traced := filepath.Join(dir, "plain"), filepath.Join(dir, "traced")
					plainCompile(t, compiler, append([]string{level, source, "-o", plain}, c.flags...)...)
					traceCompile(t, compiler, append([]string{level, source, "-o", traced}, c.flags...)...)
					want, got := runProgram(t, nil, plain), runProgram(t, nil, traced)
					if string(want.stdout) != string(got.stdout) || want.state.ExitCode() != got.state.ExitCode() {
						t.Errorf("the program printed %q and exited with %d, want %q and %d", got.stdout, got.state.ExitCode(), want.stdout, want.state.ExitCode())
					}
					if rows := got.readTrace(t, everything); rows.Len() < 100 || rows.ending.Lost != 0 {
						t.Errorf("%d records, %d steps lost", rows.Len(), rows.ending.Lost)
					}
				})
			}
		}
	}
}

// TestCountsMatchCoverage checks that the numbers of loads, stores and basic blocks equal the
// numbers that clang's own coverage counts. Coverage instruments the same optimised code in a
// different way.
func TestCountsMatchCoverage(t *testing.T) {
	newestClang(t)
	for _, clang := range installedClangs() {
		for _, source := range []string{"gemm.c", "jacobi.c", "mixed.c"} {
			for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
				if !shouldTest(clang, source == "mixed.c" && level == "-O2") || !soak && (level == "-O1" || level == "-O2" && source != "mixed.c") {
					continue
				}
				t.Run(fmt.Sprint(source, level, filepath.Base(clang)), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					traced := filepath.Join(dir, "traced")
					traceCompile(t, clang, level, sourceOf(t, source), "-o", traced, "-lm")
					got := countsOf(runProgram(t, nil, traced).readTrace(t, everything))
					if want := coverageCounts(t, clang, dir, source, level); !maps.Equal(got, want) {
						t.Errorf("counts %v, want %v", got, want)
					}
				})
			}
		}
	}
}

// countsOf counts the loads and stores of each size, and the executed basic blocks.
func countsOf(rows *traceContent) map[string]uint64 {
	counts, p := map[string]uint64{}, rows.header.Program
	for i, kind := range rows.Kind {
		switch kind {
		case trace.Load, trace.Store:
			if rows.Bytes[i] <= 16 { // clang's coverage does not count accesses of more than 16 bytes
				counts[fmt.Sprint(kind, " ", rows.Bytes[i])]++
			}
		case trace.BlockEntry:
			if p.Blocks[rows.Site[i]].Part == 0 {
				counts["blocks"]++
			}
		}
	}
	return counts
}

// coverageCounts returns the same counts as countsOf, but obtains the counts from clang's sanitizer
// coverage.
func coverageCounts(t *testing.T, clang, dir, source, level string) map[string]uint64 {
	t.Helper()
	object, counters, program := filepath.Join(dir, "c.o"), filepath.Join(dir, "counters.o"), filepath.Join(dir, "covered")
	plainCompile(t, clang, level, "-fsanitize-coverage=bb,no-prune,trace-pc-guard,trace-loads,trace-stores", "-c", sourceOf(t, source), "-o", object)
	plainCompile(t, clang, "-O1", "-c", sourceOf(t, "counters.c"), "-o", counters)
	plainCompile(t, clang, object, counters, "-o", program, "-lm")
	out, err := os.Create(filepath.Join(dir, "counts"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(program)
	cmd.ExtraFiles = []*os.File{out}
	_ = cmd.Run() // the program may return any exit status
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		var what string
		var bytes, n uint64
		if _, err := fmt.Sscanf(line, "%s %d %d", &what, &bytes, &n); err != nil {
			if _, err = fmt.Sscanf(line, "%s %d", &what, &n); err != nil {
				t.Fatal(err)
			}
			counts[what] = n
		} else if n > 0 {
			counts[fmt.Sprint(what, " ", bytes)] = n
		}
	}
	return counts
}

// TestCountsMatchAlgorithm checks that an unoptimised matrix multiplication loads and stores its
// matrices as often as the source code specifies.
func TestCountsMatchAlgorithm(t *testing.T) {
	const n = 24
	want := map[string]uint64{
		"A store": n * n, "B store": n * n, "C store": n*n + n*n*n,
		"A load": n * n * n, "B load": n * n * n, "C load": n*n*n + 2,
	}
	newestClang(t)
	for _, clang := range installedClangs() {
		traced := filepath.Join(t.TempDir(), "gemm")
		traceCompile(t, clang, "-O0", sourceOf(t, "gemm.c"), "-o", traced)
		rows, got := runProgram(t, nil, traced).readTrace(t, everything), map[string]uint64{}
		for i, kind := range rows.Kind {
			if kind != trace.Load && kind != trace.Store {
				continue
			}
			if site := &rows.header.Program.Sites[rows.Site[i]]; site.Flags&trace.GlobalSite != 0 {
				got[site.Object+" "+kind.String()]++
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: counts %v, want %v", clang, got, want)
		}
	}
}

// TestAddressesMatchObjects checks that all references to a global variable lie within the
// variable's address range, and that they are in order.
func TestAddressesMatchObjects(t *testing.T) {
	clang := newestClang(t)
	traced := filepath.Join(t.TempDir(), "gemm")
	traceCompile(t, clang, "-O2", sourceOf(t, "gemm.c"), "-o", traced)
	rows := runProgram(t, nil, traced).readTrace(t, trace.AllKinds)
	objects := map[string]trace.Object{}
	for _, o := range rows.header.Program.Objects {
		objects[o.Name] = o
	}
	within := 0
	for i, addr := range rows.Addr {
		site := &rows.header.Program.Sites[rows.Site[i]]
		if site.Flags&trace.GlobalSite == 0 {
			continue
		}
		o, known := objects[site.Object]
		if !known || addr < o.Addr || addr+uint64(rows.Bytes[i]) > o.Addr+o.Bytes {
			t.Fatalf("record %d references %s at %#x, but the variable is at %#x and has %d bytes", i, site.Object, addr, o.Addr, o.Bytes)
		}
		within++
	}
	if within < 20000 {
		t.Errorf("%d references to global variables, want nearly all of 28802", within)
	}
}

// TestTracesAreReproducible checks that two runs of a program with the same input record the same
// steps.
func TestTracesAreReproducible(t *testing.T) {
	clang := newestClang(t)
	traced := filepath.Join(t.TempDir(), "mixed")
	traceCompile(t, clang, "-O2", sourceOf(t, "mixed.c"), "-o", traced)
	first, second := runProgram(t, nil, traced).readTrace(t, everything), runProgram(t, nil, traced).readTrace(t, everything)
	if first.Len() != second.Len() {
		t.Fatalf("%d records, then %d", first.Len(), second.Len())
	}
	for i := range first.Site {
		if first.Site[i] != second.Site[i] || first.Kind[i] != second.Kind[i] || first.Bytes[i] != second.Bytes[i] {
			t.Fatalf("record %d is different in the second run", i)
		}
	}
}

// TestSeparateObjectsAndLibraries checks the trace of a program that is compiled and linked by
// separate commands. The program consists of several object files, a static library, and shared
// libraries. Some shared libraries are linked, and others are loaded at run time.
func TestSeparateObjectsAndLibraries(t *testing.T) {
	newestClang(t)
	for _, clang := range installedClangs() {
		if !shouldTest(clang, false) {
			continue
		}
		t.Run(filepath.Base(clang), func(t *testing.T) {
			part, main := sourceOf(t, "part.c"), sourceOf(t, "parts.c")
			t.Chdir(t.TempDir())
			traceCompile(t, clang, "-O1", "-DNAME=in_static", "-c", part, "-o", "static.o")
			plainCompile(t, "ar", "rc", "libstatic.a", "static.o")
			traceCompile(t, clang, "-O1", "-DNAME=in_shared", "-fPIC", "-shared", part, "-o", "libshared.so")
			traceCompile(t, clang, "-O1", "-DNAME=in_loaded", "-fPIC", "-shared", "-Wl,-z,defs", part, "-o", "loaded.so")
			traceCompile(t, clang, "-O1", "-c", main)
			traceCompile(t, clang, "parts.o", "-L.", "-lstatic", "-lshared", "-Wl,-rpath,$ORIGIN", "-o", "parts")
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			o := runProgram(t, nil, filepath.Join(here, "parts"), filepath.Join(here, "loaded.so"))
			if string(o.stdout) != "34\n" {
				t.Fatalf("stdout is %q, want 34; stderr %q", o.stdout, o.stderr)
			}
			// Each library stores ten numbers, and another number when it is unloaded. Each call
			// loads one number.
			rows, stores := o.readTrace(t, everything), map[string]int{}
			for i, kind := range rows.Kind {
				if site := rows.Site[i]; kind == trace.Store && rows.header.Program.Sites[site].Object == "table" {
					stores[moduleOf(rows.header.Program, site).Options]++
				}
			}
			total := 0
			for _, n := range stores {
				total += n
			}
			if total != 4*(10+1) || len(stores) != 3 {
				t.Errorf("stores to tables: %v, want 11 by the static library, 11 by the linked library, and 22 by the loaded library", stores)
			}
		})
	}
}

// TestLibraryEndsProgram checks that the trace is complete if a shared library ends the program or
// creates threads, even if the program itself is untraced and the runtime is preloaded.
func TestLibraryEndsProgram(t *testing.T) {
	newestClang(t)
	for _, clang := range installedClangs() {
		if !shouldTest(clang, false) {
			continue
		}
		dir := t.TempDir()
		library, program, plain := filepath.Join(dir, "libends.so"), filepath.Join(dir, "within"), filepath.Join(dir, "plain")
		traceCompile(t, clang, "-O1", "-fPIC", "-shared", "-Wl,-z,defs", sourceOf(t, "ends_library.c"), "-o", library)
		traceCompile(t, clang, "-O1", sourceOf(t, "ends_within.c"), library, "-o", program)
		plainCompile(t, clang, "-O1", "-Wl,--allow-shlib-undefined", sourceOf(t, "ends_within.c"), library, "-o", plain)
		preload, err := Preload(clang)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			o                  *outcome
			ended              string
			status, references int
		}{
			{runProgram(t, nil, program, "thread"), "exit", 5, 100},
			{runProgram(t, nil, program, "exec"), "exec", 6, 50},
			{runProgram(t, nil, program, "quick"), "exit", 9, 50},
			{runProgram(t, []string{"LD_PRELOAD=" + preload}, plain, "thread"), "exit", 5, 100},
		} {
			rows := c.o.readTrace(t, trace.AllKinds)
			if c.ended == "exit" && rows.ending.Status != uint64(c.status) {
				t.Errorf("%s: the trace has status %d, want %d", clang, rows.ending.Status, c.status)
			}
			if c.o.state.ExitCode() != c.status || rows.ending.How != c.ended || rows.Len() < c.references {
				t.Errorf("%s: exit status %d, want %d; the trace has %d references and the ending %q", clang, c.o.state.ExitCode(), c.status, rows.Len(), rows.ending.How)
			}
		}
	}
}

// TestProgramWithOwnWrappers checks that, if a program and the runtime both wrap a function (linker
// option --wrap), the program's wrapper is called.
func TestProgramWithOwnWrappers(t *testing.T) {
	clang := newestClang(t)
	traced := filepath.Join(t.TempDir(), "wraps")
	traceCompile(t, clang, "-O1", "-Wl,--wrap=pthread_create", sourceOf(t, "wraps.c"), "-o", traced)
	o := runProgram(t, nil, traced)
	if rows := o.readTrace(t, everything); string(o.stdout) != "wrapped\n" || o.state.ExitCode() != 1 || rows.ending.How != "exit" {
		t.Errorf("the program printed %q and exited with %d, want a call of the program's wrapper and status 1; the recorded ending is %q", o.stdout, o.state.ExitCode(), rows.ending.How)
	}
}

func moduleOf(p *trace.Program, site uint32) *trace.Module {
	return &p.Modules[p.Functions[p.Blocks[p.Sites[site].Block].Function].Module]
}

// TestStaticProgram checks that static programs are traced, whether or not they are
// position-independent.
func TestStaticProgram(t *testing.T) {
	clang := newestClang(t)
	for _, how := range []string{"-static", "-static-pie"} {
		traced := filepath.Join(t.TempDir(), "gemm")
		traceCompile(t, clang, "-O2", how, sourceOf(t, "gemm.c"), "-o", traced)
		o := runProgram(t, nil, traced)
		if rows := o.readTrace(t, trace.AllKinds); string(o.stdout) != "4000 -8372\n" || rows.Len() != 28802 {
			t.Errorf("%s: the program printed %q and has %d references, want 28802 references", how, o.stdout, rows.Len())
		}
	}
}

// TestPreloadRuntime checks that an untraced program can load a traced library if the runtime is
// preloaded.
func TestPreloadRuntime(t *testing.T) {
	clang := newestClang(t)
	dir := t.TempDir()
	library, program := filepath.Join(dir, "loaded.so"), filepath.Join(dir, "parts")
	traceCompile(t, clang, "-O1", "-DNAME=in_loaded", "-fPIC", "-shared", sourceOf(t, "part.c"), "-o", library)
	plainCompile(t, clang, "-DNAME=in_static", "-c", sourceOf(t, "part.c"), "-o", filepath.Join(dir, "a.o"))
	plainCompile(t, clang, "-DNAME=in_shared", "-c", sourceOf(t, "part.c"), "-o", filepath.Join(dir, "b.o"))
	plainCompile(t, clang, sourceOf(t, "parts.c"), filepath.Join(dir, "a.o"), filepath.Join(dir, "b.o"), "-o", program)
	preload, err := Preload(clang)
	if err != nil {
		t.Fatal(err)
	}
	o := runProgram(t, []string{"LD_PRELOAD=" + preload}, program, library)
	rows := o.readTrace(t, everything)
	if string(o.stdout) != "34\n" || rows.ending.References != 2*(10+1+1) {
		t.Errorf("stdout is %q, want 34; stderr is %q; the trace has %d references, want 24", o.stdout, o.stderr, rows.ending.References)
	}
}

// TestIRIsTraced checks that LLVM IR, which other compilers write, is instrumented like a program in
// C.
func TestIRIsTraced(t *testing.T) {
	clang, dir := newestClang(t), t.TempDir()
	count := func(source string) int {
		program := filepath.Join(dir, "program")
		traceCompile(t, clang, "-O1", source, "-o", program)
		return runProgram(t, nil, program).readTrace(t, trace.AllKinds).Len()
	}
	want := count(sourceOf(t, "gemm.c"))
	for name, options := range map[string][]string{"gemm.bc": nil, "gemm.ll": {"-S"}} {
		file := filepath.Join(dir, name)
		plainCompile(t, clang, append(options, "-g", "-O1", "-emit-llvm", "-c", sourceOf(t, "gemm.c"), "-o", file)...)
		if got := count(file); got != want || want == 0 {
			t.Errorf("%s: %d references, want %d", name, got, want)
		}
		traceCompile(t, clang, "-O1", "-Werror", "-c", file, "-o", filepath.Join(dir, "object.o"))
	}
}
