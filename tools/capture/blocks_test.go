package capture

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/ir"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// These tests compare a trace's block and branch counts with clang's coverage counts for the same
// code, for each block and each edge.

var branching = []struct {
	source string
	flags  []string
	sample bool // whether this program is also tested with older compilers
}{
	{source: "branches.c", sample: true}, {source: "switches.c", sample: true}, {source: "recursion.c"}, {source: "computed.c"}, {source: "jumps.c"}, {source: "exits.c"},
	{source: "callbacks.c"}, {source: "tails.c"}, {source: "throws.cc", flags: []string{"-std=c++17"}, sample: true}, {source: "parallel.c", flags: []string{"-fopenmp"}},
	{source: "../programs/gemm.c"}, {source: "../programs/jacobi.c", flags: []string{"-lm"}}, {source: "../programs/mixed.c"},
}

func TestBranchesMatchCoverage(t *testing.T) {
	newestClang(t)
	for _, clang := range installedClangs() {
		opt := strings.Replace(clang, "clang", "opt", 1)
		if _, err := exec.LookPath(opt); err != nil {
			t.Logf("skipped: %s, which counts branches independently, is not installed", opt)
			continue
		}
		for _, c := range branching {
			compiler := compilerFor(clang, c.source)
			if compiler == "" || c.source == "parallel.c" && !hasOpenMP(t, compiler) {
				t.Logf("skipped: %s with %s, whose installation is incomplete", c.source, clang)
				continue
			}
			for _, level := range []string{"-O0", "-O2"} {
				if !shouldTest(clang, c.sample && level == "-O2") {
					continue
				}
				t.Run(fmt.Sprint(filepath.Base(c.source), level, filepath.Base(compiler)), func(t *testing.T) {
					t.Parallel()
					source, err := filepath.Abs(filepath.Join("testdata", "blocks", c.source))
					if err != nil {
						t.Fatal(err)
					}
					traced := filepath.Join(t.TempDir(), "traced")
					traceCompile(t, compiler, append([]string{level, source, "-o", traced}, c.flags...)...)
					o := runProgram(t, []string{"OMP_NUM_THREADS=4"}, traced)
					got := blocksOf(t, filepath.Join(o.dir, "out.sgt"))
					covered := coverEdges(t, compiler, opt, source, level, c.flags)
					if want := covered.runAndCount(t); want != string(o.stdout) {
						t.Fatalf("the program printed %q, want %q", o.stdout, want)
					}
					covered.compareCounts(t, got)
				})
			}
		}
	}
}

// blocksOf analyses a trace both with one worker and with several workers, and compares the
// results.
func blocksOf(t *testing.T, file string) *blocks.Run {
	t.Helper()
	spec := analysis.Spec{Analyses: analysis.Blocks | analysis.Counters}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reader := func() trace.Reader { return sgt.NewReader("out.sgt", bytes.NewReader(content), sgt.Options{}) }
	one, err := analysis.NewRunner(spec, reader())
	if err != nil {
		t.Fatal(err)
	}
	p := finish(t, one)
	several, err := analysis.NewParallel(spec, reader(), analysis.ParallelOptions{Workers: 3, SegmentReferences: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer several.Close()
	if q := finish(t, several); !bytes.Equal(p.Encode(), q.Encode()) {
		t.Error("the result with three workers differs from the result with one worker")
	}
	r, err := blocks.DecodeRun(p.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	opcodes, counted := map[string]uint64{}, map[string]uint64{}
	for b := range r.Program.Blocks {
		for _, op := range r.Program.Blocks[b].Ops {
			if n := r.Edges.Visits[b]; n > 0 {
				opcodes[op.Opcode] += n * uint64(op.Count)
			}
		}
	}
	for _, tally := range p.Counters.Tallies {
		if tally.Kind == profile.Opcodes {
			counted[tally.Name] = tally.Count
		}
	}
	if !maps.Equal(opcodes, counted) {
		t.Errorf("instructions counted by block: %v, want %v, as in the counters", opcodes, counted)
	}
	solve(t, r)
	return r
}

// solve uses the edge counts of a run to solve the branch equations, and checks that the solution
// equals the run's exact counts for every block and function.
func solve(t *testing.T, r *blocks.Run) {
	t.Helper()
	system, err := blocks.FromEdges(r.Program, r.Edges)
	if err != nil {
		t.Fatal(err)
	}
	solution, err := system.Solve()
	if err != nil {
		t.Fatal(err)
	}
	for f := range r.Program.Functions {
		about := &r.Program.Functions[f]
		if !solution.Whole[f] {
			t.Errorf("the counts of function %s are not proven to be exact", about.Name)
			continue
		}
		for b := about.First; b < about.First+about.Blocks; b++ {
			if solution.Exact[b] != r.Edges.Visits[b] {
				t.Errorf("block %s of %s: computed %d executions, want %d", r.Program.Blocks[b].Label, about.Name, solution.Exact[b], r.Edges.Visits[b])
			}
		}
	}
}

func finish(t *testing.T, r analysis.Run) *profile.Profile {
	t.Helper()
	for {
		if err := r.Step(); err == io.EOF {
			return r.Finish(profile.State{})
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// coveredProgram is a program that counts how often each of its blocks is executed, including
// the blocks that coverage inserts on critical edges.
type coveredProgram struct {
	program string
	code    *trace.Program    // the blocks and functions of the instrumented code
	guards  map[blockName]int // the index of each block's coverage counter
	counts  map[blockName]uint64
}

type blockName struct{ function, label string }

var (
	guardCall = regexp.MustCompile(`call void @__sanitizer_cov_trace_pc_guard\((ptr|i32\*) .*\)( #\d+)?(, !dbg !\d+)?$`)
	labelLine = regexp.MustCompile(`^("[^"]*"|[-\w$.]+):`)
	defineAt  = regexp.MustCompile(`^define .*?@("[^"]*"|[-\w$.]+)\(`)
)

func coverEdges(t *testing.T, compiler, opt, source, level string, flags []string) *coveredProgram {
	t.Helper()
	dir := t.TempDir()
	text, instrumented, counters := filepath.Join(dir, "plain.ll"), filepath.Join(dir, "covered.ll"), filepath.Join(dir, "edges.o")
	var compile, link []string
	for _, f := range flags {
		if link = append(link, f); !strings.HasPrefix(f, "-l") {
			compile = append(compile, f)
		}
	}
	plainCompile(t, compiler, append(compile, level, "-w", "-g", "-fno-discard-value-names", "-Xclang", "-disable-O0-optnone", "-S", "-emit-llvm", source, "-o", text)...)
	plainCompile(t, opt, "-S", "-passes=sancov-module", "-sanitizer-coverage-level=3", "-sanitizer-coverage-prune-blocks=0", "-sanitizer-coverage-trace-pc-guard", text, "-o", instrumented)
	c := &coveredProgram{program: filepath.Join(dir, "program"), guards: map[blockName]int{}}
	c.numberGuards(t, instrumented)
	plainCompile(t, strings.Replace(compiler, "++", "", 1), "-O1", "-c", filepath.Join("testdata", "blocks", "edges.c"), "-o", counters)
	plainCompile(t, compiler, append([]string{"-w", "-Xclang", "-disable-llvm-passes", instrumented, counters, "-o", c.program}, link...)...)
	return c
}

// numberGuards assigns a unique number to every guard in the text.
func (c *coveredProgram) numberGuards(t *testing.T, file string) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.Read(src)
	if err != nil {
		t.Fatal(err)
	}
	c.code = m.Program
	first := map[string]string{}
	for i := range c.code.Functions {
		f := &c.code.Functions[i]
		first[f.Name] = c.code.Blocks[f.First].Label
	}
	lines := strings.Split(string(src), "\n")
	var at blockName
	for i, line := range lines {
		if m := defineAt.FindStringSubmatch(line); m != nil {
			at.function = strings.Trim(m[1], `"`)
			at.label = first[at.function]
		} else if m := labelLine.FindStringSubmatch(line); m != nil {
			at.label = strings.Trim(m[1], `"`)
		} else if m := guardCall.FindStringSubmatch(line); m != nil {
			if _, twice := c.guards[at]; twice {
				t.Fatalf("block %v has two guards", at)
			}
			n := len(c.guards) + 1
			c.guards[at] = n
			lines[i] = "call void @__sanitizer_cov_trace_pc_guard(" + m[1] + " inttoptr (i64 " + strconv.Itoa(n) + " to " + m[1] + "))" + m[2] + m[3]
		}
	}
	if len(c.guards) == 0 {
		t.Fatal("nothing is counted")
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runAndCount runs the program and returns its output.
func (c *coveredProgram) runAndCount(t *testing.T) string {
	t.Helper()
	out, err := os.Create(c.program + ".counts")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := out.Truncate(1 << 24); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(c.program)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=4")
	cmd.ExtraFiles = []*os.File{out}
	said, _ := cmd.Output() // the program may return any exit status
	counts, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	c.counts = map[blockName]uint64{}
	for name, n := range c.guards {
		c.counts[name] = binary.LittleEndian.Uint64(counts[8*n:])
	}
	return string(said)
}

// compareCounts compares the program's block and branch counts with the counts in a trace.
func (c *coveredProgram) compareCounts(t *testing.T, r *blocks.Run) {
	t.Helper()
	p, other := r.Program, c.code
	known := map[blockName]bool{}
	nameOf := func(p *trace.Program, b uint32) blockName {
		if p.Blocks[b].Function == trace.NoFunction {
			return blockName{} // the runtime's blocks have no name
		}
		return blockName{p.Functions[p.Blocks[b].Function].Name, p.Blocks[b].Label}
	}
	for b := range p.Blocks {
		known[nameOf(p, uint32(b))] = true
	}
	ways := map[blockName][]uint32{} // the successors of each basic block
	into := map[blockName]int{}
	for b := range other.Blocks {
		if name := nameOf(other, uint32(b)); len(other.Blocks[b].Successors) != 1 || other.Blocks[other.Blocks[b].Successors[0]].Part == 0 {
			ways[name] = other.Blocks[b].Successors
			for _, to := range other.Blocks[b].Successors {
				into[nameOf(other, to)]++
			}
		}
	}
	visits, edges, ran := 0, 0, uint64(0)
	for b := range p.Blocks {
		block, name := &p.Blocks[b], nameOf(p, uint32(b))
		if want, counted := c.counts[name]; counted && block.Part == 0 && block.Flags&trace.Synthetic == 0 {
			// The coverage counter is in the return block. If a tail call replaces a shared return
			// block, coverage may count fewer executions than the trace.
			if got := r.Edges.Visits[b]; got != want && (got < want || got-returnsFromCalls(r, uint32(b)) > want) {
				t.Errorf("block %v was executed %d times, want %d", name, got, want)
			}
			visits++
			ran += want
		}
		if len(block.Successors) < 2 || len(ways[name]) != len(block.Successors) {
			continue
		}
		// Several edges from one block to the same successor count as one edge.
		want, got, unknown := map[uint32]uint64{}, map[uint32]uint64{}, map[uint32]bool{}
		for i, to := range block.Successors {
			got[to] += r.Edges.Taken[b][i]
			by := nameOf(other, ways[name][i])
			n, counted := c.counts[by]
			if !counted || known[by] && into[by] > 1 {
				unknown[to] = true
			}
			want[to] += n
		}
		for to, n := range got {
			if !unknown[to] {
				if edges++; n != want[to] {
					t.Errorf("block %v was followed by block %v %d times, want %d", name, nameOf(p, to), n, want[to])
				}
			}
		}
	}
	if visits < 5 || edges < 4 || ran < 100 {
		t.Errorf("only %d blocks, %d branches and %d executions were compared", visits, edges, ran)
	}
	t.Logf("%d blocks, %d branches, %d executions", visits, edges, ran)
}

// returnsFromCalls returns how often control reached the given block from calls whose only
// successor is this block.
func returnsFromCalls(r *blocks.Run, to uint32) (n uint64) {
	for b := range r.Program.Blocks {
		from := &r.Program.Blocks[b]
		if from.Callee != "" && len(from.Successors) == 1 && from.Successors[0] == to && r.Program.Blocks[to].Part == 0 {
			n += r.Edges.Taken[b][0]
		}
	}
	return n
}

// TestSQLite makes the same comparison for the SQLite amalgamation, a C file with about 1,500
// functions. A Go module contains this file.
func TestSQLite(t *testing.T) {
	if !soak {
		t.Skip("skipped: SQLite takes minutes to compile; set STACKGLASS_SOAK to run this test")
	}
	clang := newestClang(t)
	opt := strings.Replace(clang, "clang", "opt", 1)
	if _, err := exec.LookPath(opt); err != nil {
		t.Skip("skipped: " + opt + ", which counts branches independently, is not installed")
	}
	folder := sqlite(t)
	main, err := filepath.Abs(filepath.Join("testdata", "blocks", "database.c"))
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-w", "-lm"}
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			whole := filepath.Join(t.TempDir(), "whole.c")
			text := "#include \"" + filepath.Join(folder, "sqlite3-binding.c") + "\"\n#include \"" + main + "\"\n"
			if err := os.WriteFile(whole, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			traced := filepath.Join(t.TempDir(), "traced")
			traceCompile(t, clang, append([]string{level, whole, "-o", traced}, flags...)...)
			o := runProgram(t, nil, traced)
			got := blocksOf(t, filepath.Join(o.dir, "out.sgt"))
			covered := coverEdges(t, clang, opt, whole, level, flags)
			if want := covered.runAndCount(t); want != string(o.stdout) || !strings.Contains(want, "ok\n") {
				t.Fatalf("the program printed %q, want %q", o.stdout, want)
			}
			covered.compareCounts(t, got)
		})
	}
}

// sqlite returns the folder that contains the SQLite amalgamation. If necessary, the function
// downloads the amalgamation.
func sqlite(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/mattn/go-sqlite3@v1.14.28")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("skipped: SQLite cannot be downloaded (%v)", err)
	}
	return module.Dir
}
