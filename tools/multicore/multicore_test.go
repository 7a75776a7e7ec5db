package main

import (
	"bytes"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/validate"
	"github.com/stackglass/stackglass/core/trace"
)

// needCompiler skips the test if the programs cannot be compiled on this machine.
func needCompiler(t *testing.T) {
	t.Helper()
	cmd := exec.Command(compiler, "-fopenmp", "-x", "c", "-", "-o", t.TempDir()+"/openmp")
	cmd.Stdin = strings.NewReader("#include <omp.h>\nint main(void) {\n#pragma omp parallel\n{}\nreturn 0; }\n")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("skipped: needs %s with OpenMP (apt-get install clang-19 libomp-19-dev): %v %s", compiler, err, said)
	}
}

// TestPredictionsHold checks that, with static schedules, predictions from a single-threaded run
// differ from multi-threaded runs by at most 0.25 percentage points.
func TestPredictionsHold(t *testing.T) {
	needCompiler(t)
	const most = 0.25 // the largest allowed error, in percentage points
	for _, name := range []string{"atax", "gramschmidt", "lu", "redblack"} {
		for _, level := range levels[:2] {
			t.Run(name+level, func(t *testing.T) {
				p, err := compile(kernel{name: name}, level, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				one, err := p.run(1)
				if err != nil {
					t.Fatal(err)
				}
				for _, cores := range []int{2, 8} {
					many, err := p.run(cores)
					if err != nil {
						t.Fatal(err)
					}
					h, err := machines[0].hierarchy()
					if err != nil {
						t.Fatal(err)
					}
					row, err := validate.Compare(predict.Question{Cores: []int{cores}, Hierarchy: h}, synthesisedThreads(one), validate.Truth(func() (trace.Reader, error) { return openTrace(many) }))
					if err != nil {
						t.Fatal(err)
					}
					if row.Threads != cores {
						t.Errorf("the run with %[1]d cores has %[2]d threads, want %[1]d", cores, row.Threads)
					}
					for i := range row.Levels {
						l := &row.Levels[i]
						if points := l.Error(); math.Abs(points) > most || math.IsNaN(points) {
							t.Errorf("%d cores, %s: the prediction is off by %.3f points, want at most %v; predicted %+v, measured %+v", cores, l.Cache.Name, points, most, l.Predicted, l.Truth)
						}
						if l.Truth.Global < 0.5 {
							t.Errorf("%d cores, %s: %+v, want a global hit rate of at least 0.5; check whether the program has changed", cores, l.Cache.Name, l.Truth)
						}
					}
				}
			})
		}
	}
}

// TestKernels checks that the list of kernels matches the kernels' files.
func TestKernels(t *testing.T) {
	files, err := sources.ReadDir("kernels")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"pace.c": true}
	for _, k := range kernels {
		listed[k.name+".c"] = true
	}
	for _, f := range files {
		if !listed[f.Name()] {
			t.Errorf("%s is not in the list of kernels", f.Name())
		}
	}
	if len(listed) != len(files) {
		t.Errorf("%d kernels are listed, but there are %d files", len(listed), len(files))
	}
}

func TestPage(t *testing.T) {
	level := func(off float64) validate.Level {
		return validate.Level{Truth: validate.Rates{Mean: 0.9, Local: 0.9, Global: 0.9}, Predicted: validate.Rates{Mean: 0.9 + off, Local: 0.9 + off, Global: 0.9 + 2*off}}
	}
	var all []measurement
	for i, off := range []float64{0.001, -0.003} {
		shared := level(off)
		shared.Shared = true
		p := &program{kernel: kernels[0], level: "-O0"}
		all = append(all, measurement{program: p, row: validate.Row{Cores: 2 << i, Levels: []validate.Level{level(off), shared}},
			grind: &validate.Cachegrind{References: 100, FirstMisses: 11, LastMisses: 10}})
	}
	var out bytes.Buffer
	if err := writePage(&out, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| iterations | 8 KiB and 128 KiB | -O0 | 0.200 (0.30) | 0.400 (0.60) | 0.400 (0.60) |\n",
		"| adi | -O0 | 0.200 (0.30) |",
		"| iterations | -O0 | 1.000 (1.00) | 0.900 (1.10) | 0.000 (0.00) | 0.400 (0.60) |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, out.String())
		}
	}
}
