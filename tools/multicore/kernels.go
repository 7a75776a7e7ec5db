package main

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/validate"
	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/capture"
)

//go:embed kernels
var sources embed.FS

// kernel is an OpenMP program.
type kernel struct {
	name string
	// If dynamic is true, each chunk of iterations is executed by the next free thread. pace.c then
	// makes all threads equally fast.
	dynamic bool
	// If vectorised is true, -O2 vectorises the iterations of a worksharing loop. The
	// single-threaded run then executes several iterations at once, while other runs may execute
	// the iterations one by one. The kernel is therefore also compiled without vectorisation.
	vectorised bool
	// runs is the number of runs for each number of threads. The value 0 means one run. If the
	// division of the work varies between runs, the mean of several runs is the reference.
	runs int
}

var kernels = []kernel{
	{name: "adi"}, {name: "atax"}, {name: "bfs"}, {name: "blackscholes"}, {name: "convolution"}, {name: "cyclic", vectorised: true}, {name: "durbin", vectorised: true},
	{name: "gramschmidt"}, {name: "histogram"}, {name: "jacobi"}, {name: "lu"}, {name: "redblack"}, {name: "twomm"},
	{name: "sections", vectorised: true, runs: severalRuns}, {name: "spmv", dynamic: true, runs: severalRuns}, {name: "triangle", dynamic: true, runs: severalRuns},
}

const severalRuns = 5

// scalarOptions contains the options for -O2 without vectorisation and unrolling. The method
// "arguments" adds further options. With all of these options, one iteration of the compiled loop
// is one iteration of the loop in the source code.
const scalarOptions = "-O2 -fno-vectorize -fno-unroll-loops"

// optimisationLevels returns the optimisation levels with which a kernel is compiled.
func (k *kernel) optimisationLevels() []string {
	if k.vectorised {
		return levels
	}
	return levels[:2]
}

// program is a compiled kernel.
type program struct {
	kernel
	level  string // options for optimisation, for example "-O0"
	source string
	traced string // path of the compiled program that traces itself
	plain  string // path of the program compiled for Cachegrind, without tracing; "" until this program is needed
	folder string
}

// compiler is the compiler for the kernels. The numbers in core/multicore/ACCURACY.md were measured
// with this version.
const compiler = "clang-19"

// compile compiles a kernel so that it traces itself, and writes all files to the given folder.
func compile(k kernel, level, folder string) (*program, error) {
	text, err := sources.ReadFile("kernels/" + k.name + ".c")
	if err != nil {
		return nil, err
	}
	pace := filepath.Join(folder, "pace.o")
	if k.dynamic {
		text, err := sources.ReadFile("kernels/pace.c")
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(compiler, "-O2", "-fopenmp", "-x", "c", "-c", "-", "-o", pace)
		cmd.Stdin = bytes.NewReader(text)
		if said, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("pace.c: %w: %s", err, said)
		}
	}
	p := &program{kernel: k, level: level, folder: folder, source: filepath.Join(folder, k.name+".c"), traced: filepath.Join(folder, k.name+strings.ReplaceAll(level, " ", ""))}
	if err := os.WriteFile(p.source, text, 0o644); err != nil {
		return nil, err
	}
	var said bytes.Buffer
	status, err := capture.Compile(capture.IO{Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said}, capture.Options{}, compiler, p.arguments(p.traced))
	if err == nil && status != 0 {
		err = fmt.Errorf("%s %s: status %d: %s", k.name, level, status, said.Bytes())
	}
	return p, err
}

func (p *program) arguments(out string) []string {
	list := append(strings.Fields(p.level), "-g", "-fopenmp", p.source)
	if p.level == scalarOptions {
		list = append(list, "-fno-slp-vectorize", "-fno-builtin")
	}
	if p.dynamic {
		list = append(list, filepath.Join(p.folder, "pace.o"))
	}
	return append(list, "-o", out, "-lm")
}

// run returns the trace of a run with the given number of threads.
func (p *program) run(threads int) (path string, err error) { return p.runAgain(threads, 0) }

// runAgain is like run, with an additional argument: a number that distinguishes repeated runs. If
// the system allows it, runAgain disables the randomisation of addresses. The environment, which is
// on the stack above main, always has the same length. Therefore, the same data is in the same
// cache lines in all runs.
func (p *program) runAgain(threads, number int) (path string, err error) {
	path = fmt.Sprintf("%s.%02d.%02d.sgt", p.traced, threads, number)
	cmd := exec.Command(p.traced)
	if exec.Command("setarch", "-R", "true").Run() == nil {
		cmd = exec.Command("setarch", "-R", p.traced)
	}
	cmd.Env = append(os.Environ(), fmt.Sprintf("OMP_NUM_THREADS=%02d", threads), "OMP_DYNAMIC=false", "STACKGLASS_OUT="+path, "STACKGLASS_QUIET=1")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s with %d threads: %w: %s", p.traced, threads, err, said)
	}
	return path, nil
}

// traceFile is a reader for a trace, with the file that the caller must close.
type traceFile struct {
	*sgt.Reader
	of io.Closer
}

func (f *traceFile) Close() error { return f.of.Close() }

func openTrace(path string) (*traceFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &traceFile{Reader: sgt.NewReader(path, f, sgt.Options{}), of: f}, nil
}

// synthesisedThreads returns a source of threads that multicore synthesises from a single-threaded
// trace.
func synthesisedThreads(path string) predict.Source {
	return predict.Mimic(func() (trace.Reader, io.Closer, error) {
		r, err := openTrace(path)
		return r, r, err
	})
}

// printedThreads returns a source of threads. An algorithm of the paper divides the blocks among
// these threads: Algorithm 2 if shared is true, and otherwise Algorithm 1.
func printedThreads(path string, perRegion, shared bool) predict.Source {
	return func(o multicore.Options) (predict.Threads, error) {
		r, err := openTrace(path)
		if err != nil {
			return nil, err
		}
		options := sasmm.Options{Cores: o.Cores, PerRegion: perRegion, Order: o.Order}
		if shared {
			return sasmm.Shared(r, options)
		}
		return sasmm.Private(r, options)
	}
}

// cachegrind runs a program under Cachegrind with the given number of threads.
func (p *program) cachegrind(threads int, levels []hierarchy.Cache) (validate.Cachegrind, error) {
	var none validate.Cachegrind
	if p.plain == "" {
		plain := p.traced + ".plain"
		if said, err := exec.Command(compiler, p.arguments(plain)...).CombinedOutput(); err != nil {
			return none, fmt.Errorf("%s: %w: %s", p.name, err, said)
		}
		p.plain = plain
	}
	out := filepath.Join(p.folder, "cachegrind.out")
	cache := func(c hierarchy.Cache) string { return fmt.Sprintf("%d,%d,%d", c.SizeBytes, c.Ways, c.LineBytes) }
	cmd := exec.Command("valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file="+out,
		"--I1="+cache(levels[0]), "--D1="+cache(levels[0]), "--LL="+cache(levels[len(levels)-1]), p.plain)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(threads), "OMP_DYNAMIC=false", "OMP_WAIT_POLICY=passive")
	if said, err := cmd.CombinedOutput(); err != nil {
		return none, fmt.Errorf("cachegrind on %s: %w: %s", p.plain, err, said)
	}
	f, err := os.Open(out)
	if err != nil {
		return none, err
	}
	defer f.Close()
	return validate.ReadCachegrind(out, f, func(file string) bool { return file == p.source })
}
