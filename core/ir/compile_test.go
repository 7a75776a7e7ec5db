package ir

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// toolchain is one installed version of LLVM.
type toolchain struct {
	version             string
	clang, clangxx, opt string
	flang               string // "" if flang is not installed
	openMP              string // the folder that contains LLVM's OpenMP runtime library
	stub, coverage      string
}

// toolchains finds the LLVM versions that the rewriter supports.
func toolchains(t *testing.T) []*toolchain {
	var found []*toolchain
	for _, v := range []string{"14", "19"} {
		c := &toolchain{version: v, clang: "clang-" + v, clangxx: "clang++-" + v, opt: "opt-" + v}
		missing := ""
		for _, tool := range []string{c.clang, c.clangxx, c.opt} {
			if _, err := exec.LookPath(tool); err != nil {
				missing = tool
			}
		}
		if missing != "" {
			t.Logf("skipped: LLVM %s, because %s is not installed", v, missing)
			continue
		}
		for _, name := range []string{"flang-new-" + v, "flang-" + v} {
			if _, err := exec.LookPath(name); err == nil {
				c.flang = name
			}
		}
		for _, w := range []string{v, "19", "14"} {
			if _, err := os.Stat("/usr/lib/llvm-" + w + "/lib/libomp.so"); err == nil && c.openMP == "" {
				c.openMP = "/usr/lib/llvm-" + w + "/lib"
			}
		}
		dir := t.TempDir()
		c.stub, c.coverage = filepath.Join(dir, "stub.o"), filepath.Join(dir, "coverage.o")
		command(t, c.clang, "-O2", "-c", "testdata/stub.c", "-o", c.stub)
		command(t, c.clang, "-O2", "-c", "testdata/coverage.c", "-o", c.coverage)
		found = append(found, c)
	}
	if len(found) == 0 {
		t.Skip("skipped: neither clang-14 nor clang-19 is installed, so no rewritten module is compiled and run")
	}
	return found
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		if len(out) > 3000 {
			out = out[:3000]
		}
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// subject is a program that the test rewrites and runs.
type subject struct {
	name    string
	sources []string
	flags   []string
	libs    []string
	openMP  bool
	needs   string // a CPU flag that must be in /proc/cpuinfo
	fortran bool
	levels  []string // optimisation levels in addition to -O0, -O2 and -O3
}

var subjects = []subject{
	{name: "kernels", sources: []string{"kernels.c"}, levels: []string{"-O0", "-O1"}},
	{name: "siblings", sources: []string{"siblings.c"}},
	{name: "throw", sources: []string{"throw.cc", "throw_too.cc"}, flags: []string{"-std=c++17"}, libs: []string{"-lstdc++"}},
	{name: "parallel", sources: []string{"parallel.c"}, flags: []string{"-fopenmp"}, openMP: true},
	{name: "masked-avx2", sources: []string{"masked.c"}, flags: []string{"-mavx2"}, needs: "avx2"},
	{name: "masked-avx512", sources: []string{"masked.c"}, flags: []string{"-mavx512f", "-mavx512vl", "-mavx512dq"}, needs: "avx512dq"},
	{name: "arrays", sources: []string{"arrays.f90"}, flags: []string{"-fopenmp"}, openMP: true, fortran: true},
}

// If soak is set, TestRewrittenPrograms uses every optimisation level with every toolchain.
var soak = os.Getenv("STACKGLASS_SOAK") != ""

// TestRewrittenPrograms checks that rewritten programs print the same output as before. For every
// access size, the rewritten programs must record exactly the loads and stores that an independent
// instrumentation of the same text counts.
func TestRewrittenPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: in short mode, no rewritten module is compiled and run")
	}
	features, _ := os.ReadFile("/proc/cpuinfo")
	all := toolchains(t)
	for _, c := range all {
		for n, s := range subjects {
			levels := []string{"-O0 -g", "-O2 -g", "-O3"}
			if soak || c == all[len(all)-1] {
				levels = append(s.levels, levels...)
			} else {
				levels = levels[n%3 : n%3+1]
			}
			for _, level := range levels {
				t.Run(c.version+" "+s.name+" "+level, func(t *testing.T) {
					t.Parallel()
					switch {
					case s.fortran && c.flang == "":
						t.Skip("skipped: flang-" + c.version + " is not installed")
					case s.openMP && c.openMP == "":
						t.Skip("skipped: libomp is not installed")
					case !bytes.Contains(features, []byte(s.needs)):
						t.Skip("skipped: this machine has no " + s.needs)
					}
					b, steps := c.check(t, s, strings.Fields(level))
					if s.sources[0] == "masked.c" {
						b.checkLanes(t, steps, level)
					}
				})
			}
		}
	}
}

// build contains the compiled versions of a program.
type build struct {
	c                        *toolchain
	dir                      string
	programs                 []*trace.Program // the program of each source file
	plain, traced, coverages []string         // object files
}

func (c *toolchain) check(t *testing.T, s subject, level []string) (b *build, steps string) {
	b = &build{c: c, dir: t.TempDir()}
	for i, source := range s.sources {
		b.compile(t, &s, filepath.Join("testdata/programs", source), strconv.Itoa(i), level)
	}
	plain := b.link(t, &s, "plain", b.plain)
	traced := b.link(t, &s, "traced", append(b.traced, c.stub))
	counts := filepath.Join(b.dir, "counts")
	want, _ := run(t, plain, counts)
	got, _ := run(t, traced, counts)
	if got != want {
		t.Errorf("the rewritten program behaves differently:\n%s\nwant\n%s", got, want)
	}
	covered := b.link(t, &s, "covered", append(b.coverages, c.coverage))
	_, covers := run(t, covered, counts, oneThread...)
	_, steps = run(t, traced, counts, oneThread...)
	b.compare(t, steps, covers)
	return b, steps
}

func (b *build) compile(t *testing.T, s *subject, source, name string, level []string) {
	compiler := b.c.clang
	flags := append([]string{"-fno-discard-value-names", "-w"}, level...)
	if s.fortran {
		compiler, flags = b.c.flang, append([]string{"-module-dir", b.dir}, level...)
	}
	text := filepath.Join(b.dir, name+".ll")
	command(t, compiler, append(append(flags, s.flags...), "-S", "-emit-llvm", source, "-o", text)...)
	src, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Instrument(src, Options{Source: source, Instrs: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Missed {
		if strings.HasPrefix(m.Why, "line ") {
			t.Errorf("%s: %s cannot be parsed: %s", source, m.What, m.Why)
		}
	}
	checkProgram(t, r.Program)
	b.programs = append(b.programs, r.Program)
	b.plain = append(b.plain, b.assemble(t, s, text))
	rewritten := filepath.Join(b.dir, name+".traced.ll")
	if err := os.WriteFile(rewritten, r.Text, 0o666); err != nil {
		t.Fatal(err)
	}
	b.traced = append(b.traced, b.assemble(t, s, rewritten))
	covered := filepath.Join(b.dir, name+".covered.ll")
	command(t, b.c.opt, "-S", "-passes=sancov-module", "-sanitizer-coverage-trace-loads", "-sanitizer-coverage-trace-stores",
		"-sanitizer-coverage-level=1", text, "-o", covered)
	b.coverages = append(b.coverages, b.assemble(t, s, covered))
}

func (b *build) assemble(t *testing.T, s *subject, text string) string {
	object := strings.TrimSuffix(text, ".ll") + ".o"
	args := []string{"-O2", "-w", "-Xclang", "-disable-llvm-passes", "-c", text, "-o", object}
	for _, f := range s.flags {
		if strings.HasPrefix(f, "-m") {
			args = append(args, f)
		}
	}
	command(t, b.c.clang, args...)
	return object
}

func (b *build) link(t *testing.T, s *subject, name string, objects []string) string {
	to := filepath.Join(b.dir, name)
	compiler := b.c.clangxx
	if s.fortran {
		compiler = b.c.flang
	}
	args := append([]string{"-o", to}, objects...)
	if s.openMP {
		args = append(args, "-fopenmp", "-L"+b.c.openMP, "-Wl,-rpath,"+b.c.openMP)
	}
	command(t, compiler, append(append(args, s.libs...), "-lm", "-pthread")...)
	return to
}

// oneThread makes OpenMP programs print the same output in every run.
var oneThread = []string{"OMP_NUM_THREADS=1", "OMP_THREAD_LIMIT=1"}

// run runs a program and returns its output, its exit status, and the counts that the counting code
// wrote to a file.
func run(t *testing.T, program, counts string, environment ...string) (printed, counted string) {
	t.Helper()
	cmd := exec.Command("timeout", "60", program)
	cmd.Env = append(append(os.Environ(), "STUB_OUT="+counts), environment...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(counts)
	return string(out) + "exit status " + strconv.Itoa(cmd.ProcessState.ExitCode()) + "\n", string(text)
}

// executions contains the execution count of a block, and the number of bytes that its masked
// accesses read or write.
type executions struct {
	program      *trace.Program
	block        *trace.Block
	times, bytes uint64
}

func (e *executions) sites() []trace.Site {
	return e.program.Sites[e.block.FirstSite : e.block.FirstSite+e.block.Sites]
}

// executions reads the counts that the stub runtime wrote.
func (b *build) executions(steps string) []executions {
	var list []executions
	for line := range strings.Lines(steps) {
		f := strings.Fields(line)
		if f[0] == "modules" {
			continue
		}
		var n [4]uint64
		for i := range n {
			n[i], _ = strconv.ParseUint(f[i], 10, 64)
		}
		p := b.programs[n[0]]
		list = append(list, executions{p, &p.Blocks[n[1]], n[2], n[3]})
	}
	return list
}

// accesses counts loads and stores by size in bytes.
type accesses map[string][2]uint64

func (b *build) compare(t *testing.T, steps, covers string) {
	got, want := accesses{}, accesses{}
	for line := range strings.Lines(covers) {
		f := strings.Fields(line)
		loads, _ := strconv.ParseUint(f[1], 10, 64)
		stores, _ := strconv.ParseUint(f[2], 10, 64)
		want[f[0]], got[f[0]] = [2]uint64{loads, stores}, [2]uint64{}
	}
	if len(want) == 0 {
		t.Fatal("the independent instrumentation counted nothing")
	}
	for _, e := range b.executions(steps) {
		for _, s := range e.sites() {
			size := strconv.Itoa(int(s.Bytes))
			if _, ok := want[size]; !ok || s.Flags&trace.MaskedSite != 0 || s.Kind > trace.Store {
				continue
			}
			sum := got[size]
			sum[s.Kind] += e.times
			got[size] = sum
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("loads and stores by size are %v, want %v", got, want)
	}
}

// checkLanes checks that the conditional loops of masked.c access the same elements as the source
// code, however the compiler translates the loops.
func (b *build) checkLanes(t *testing.T, steps, level string) {
	const n = 203
	want := map[string]uint64{}
	for i := range n {
		if i*37%101 > 50 {
			want["conditional load from"] += 8
			want["conditional store to"] += 8
		}
		if i*53%n&1 == 1 {
			want["gather load from"] += 8
			want["gather load to"] += 8
			want["gather store to"] += 8
		}
		if i%41 > 20 {
			want["scatter load from"] += 8
			want["scatter store to"] += 8
		}
	}
	got, masked := map[string]uint64{}, false
	for _, e := range b.executions(steps) {
		for _, s := range e.sites() {
			what := e.program.Functions[e.block.Function].Name + " " + s.Kind.String() + " " + s.Object
			if _, ok := want[what]; !ok || s.Type == "ptr" {
				continue
			}
			masked = masked || s.Flags&trace.MaskedSite != 0
			got[what] += e.times*uint64(s.Bytes) + e.bytes
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("bytes of masked accesses are %v, want %v", got, want)
	}
	if level == "-O3" && !masked {
		t.Error("no masked access ran")
	}
}
