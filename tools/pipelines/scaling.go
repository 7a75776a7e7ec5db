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
	"github.com/stackglass/stackglass/core/pipeline"
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
	// same sets and evict each other. The prediction does not model these evictions, because it
	// does not know to which sets the lines map. With all other sizes, the number of lines per row
	// is odd.
	scaledLarge = []int64{200, 328, 512, 1000}
)

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
		var inputs []scaling.Input
		for _, n := range scaledSmall {
			of, err := profileOf(analysis.Sites|analysis.Blocks, traced, strconv.FormatInt(n, 10))
			if err != nil {
				return err
			}
			inputs = append(inputs, scaling.Input{Name: k.name, Parameters: []int64{n}, Profile: of})
		}
		program, err := scaling.FitProgram([]string{"n"}, inputs)
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
				of, err := profileOf(analysis.Sites|analysis.Blocks, traced, strconv.FormatInt(n, 10))
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
