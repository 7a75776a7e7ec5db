package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/blocks/scaling"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
)

// scaledKernels lists the kernels whose run times for larger inputs are predicted from runs with
// small inputs. An entry consists of the kernel's name, the name of its function, and the call in
// scale_main.c.
var scaledKernels = []struct{ name, function, run string }{
	{"matmul", "matmul", "matmul(n, c, a, b)"},
	{"jacobi", "sweep", "for (int t = 0; t < 5; t++) { sweep(n, b, a); sweep(n, a, b); }"},
}

var (
	scaledSmall = []int64{64, 96, 128, 160}
	// The first size is also traced. With rows of 512 elements, the lines of a column map to the
	// same sets and evict each other. The predicted cycles do not include these evictions. With all
	// other sizes, the number of lines per row is odd.
	scaledLarge = []int64{200, 328, 512, 1000}
)

// countedPrograms lists the programs whose references and misses for larger inputs are predicted.
var countedPrograms = []struct {
	name         string
	small, large []int64
}{
	{"matmul", []int64{32, 48, 64, 80, 96}, []int64{160, 256}},
	{"jacobi", []int64{32, 48, 64, 80, 96}, []int64{256, 512}},
	{"lu", []int64{32, 48, 64, 80, 96}, []int64{256}},
	{"fft", []int64{8, 16, 32, 64}, []int64{128, 256}},
	{"sort", []int64{1000, 1500, 2000, 2500, 3000}, []int64{10_000, 16_384}},
}

// compareCounted prints the references and the misses of larger inputs: predictions from small
// inputs, and counts of real runs.
func compareCounted(w io.Writer, dir string) error {
	cache := hierarchy.Cache{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64}
	h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{cache}}
	fmt.Fprintf(w, "References, and misses in a cache of 32 KiB with 8 ways: predicted from runs with smaller inputs, and counted.\n\n")
	fmt.Fprintf(w, "%-8s %6s %12s %9s %12s %12s %12s %9s %12s  %s\n", "program", "n", "references", "error", "misses", "at least", "at most", "error", "in the run", "method")
	for _, k := range countedPrograms {
		source, traced := filepath.Join("tools/capture/testdata/scaling", k.name+".c"), filepath.Join(dir, k.name+".counted")
		if err := compileTraced("-O2", source, "-o", traced, "-lm"); err != nil {
			return err
		}
		at := func(n int64) (*profile.Profile, error) {
			return profileOf(analysis.Sites|analysis.Sets|analysis.Blocks|analysis.Loops, traced, strconv.FormatInt(n, 10))
		}
		program, err := fitRuns(k.name, k.small, at)
		if err != nil {
			return err
		}
		for _, n := range k.large {
			predicted, err := program.Predict([]int64{n})
			if err != nil {
				return err
			}
			run, err := at(n)
			if err != nil {
				return err
			}
			asker := hierarchy.NewAsker(predicted.Profile)
			asker.Forecast = predicted.Forecast
			got, _, err := asker.Predict(h, nil)
			if err != nil {
				return err
			}
			want, _, err := hierarchy.Predict(run, h)
			if err != nil {
				return err
			}
			x, y := &got.Levels[0], &want.Levels[0]
			references := predicted.Profile.Totals.AllReferences()
			fmt.Fprintf(w, "%-8s %6d %12d %8.2f%% %12.0f %12.0f %12.0f %8.2f%% %12.0f  %s\n", k.name, n, references,
				relative(float64(references), float64(run.Totals.AllReferences())), x.Misses, x.Low, x.High, relative(x.Misses, y.Misses), y.Misses, x.Method)
		}
	}
	fmt.Fprintln(w)
	return nil
}

// fitRuns fits the laws of a program to its profiles for the given sizes.
func fitRuns(name string, sizes []int64, at func(n int64) (*profile.Profile, error)) (*scaling.Program, error) {
	var inputs []scaling.Input
	for _, n := range sizes {
		of, err := at(n)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, scaling.Input{Name: name, Parameters: []int64{n}, Profile: of})
	}
	return scaling.FitProgram([]string{"n"}, inputs)
}

// compareScaled prints run times for larger inputs: predictions from small inputs, and
// measurements.
func compareScaled(w io.Writer, machine string) error {
	if _, err := targetOf(machine); err != nil {
		return err
	}
	march := "-march=" + machine
	if pipeline.Description(machine+"-measured") != nil {
		machine += "-measured"
	}
	p, err := pipeline.Named(machine)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "scaling")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := compareCounted(w, dir); err != nil {
		return err
	}
	fmt.Fprintf(w, "Cycles for larger inputs on %s: predicted from runs at n = %d, and measured. The numbers in\n"+
		"parentheses are predicted by the same model from a run at the larger n, so their difference from the first numbers is\n"+
		"the error of the scaling alone.\n\n", machine, scaledSmall)
	fmt.Fprintf(w, "%-8s %6s %15s %18s %9s %15s %8s\n", "kernel", "n", "predicted", "(of the run)", "error", "measured", "error")
	for _, k := range scaledKernels {
		source, err := filepath.Abs(filepath.Join("tools/capture/testdata/scaling", k.name+".c"))
		if err != nil {
			return err
		}
		flags := []string{"-O2", march, "-fno-inline"}
		traced, timed := filepath.Join(dir, k.name), filepath.Join(dir, k.name+".timed")
		if err := compileTraced(append(flags, source, "-o", traced)...); err != nil {
			return err
		}
		if err := command(clangProgram, append(flags, "-DSOURCE=\""+source+"\"", "-DRUN="+k.run, filepath.Join(loopsDir, "scale_main.c"), "-o", timed)...); err != nil {
			return err
		}
		text, err := compileToIR(timed+".ll", append(flags, "-fno-discard-value-names", source)...)
		if err != nil {
			return err
		}
		at := func(n int64) (*profile.Profile, error) {
			return profileOf(analysis.Sites|analysis.Blocks, traced, strconv.FormatInt(n, 10))
		}
		program, err := fitRuns(k.name, scaledSmall, at)
		if err != nil {
			return err
		}
		for i, n := range scaledLarge {
			predicted, err := program.Predict([]int64{n})
			if err != nil {
				return err
			}
			models, err := costmodel.OpenPredicted(predicted.Profile, source, text)
			if err != nil {
				return err
			}
			cycles, _, err := functionOf(models, p, k.function)
			if err != nil {
				return err
			}
			run, off := "", ""
			if i == 0 {
				of, err := at(n)
				if err != nil {
					return err
				}
				if models, err = costmodel.New(of, source, text); err != nil {
					return err
				}
				same, _, err := functionOf(models, p, k.function)
				if err != nil {
					return err
				}
				run, off = fmt.Sprintf("(%.0f)", same), fmt.Sprintf("%.2f%%", relative(cycles, same))
			}
			out, err := exec.Command(timed, strconv.FormatInt(n, 10)).Output()
			if err != nil {
				return err
			}
			measured, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%-8s %6d %15.0f %18s %9s %15.0f %7.1f%%\n", k.name, n, cycles, run, off, measured, relative(cycles, measured))
		}
	}
	fmt.Fprintf(w, "\nnot modelled: %s\n", strings.Join(pipeline.NotModelled(), "; "))
	return nil
}
