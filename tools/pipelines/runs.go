package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/trace"
)

// functionSize is the parameter n of the functions whose total run time is measured.
const functionSize = 1024

// functionRow is the row for one function in the table of total run times.
type functionRow struct {
	name                   string
	steady, slides, actual float64 // cycles per call: in the model, in the model with one pass per block, and measured
	hot                    string  // the block that takes the most time in the model
	by                     pipeline.Bottleneck
	calls                  []string // called functions, whose time the model does not include
}

// compareFunctions compares the predicted run times of functions with measured times.
func (b *build) compareFunctions(p *pipeline.Processor) ([]functionRow, error) {
	stem := filepath.Join(b.dir, "runs")
	module, text, err := b.compileModule(source{file: "runs.c"}, stem)
	if err != nil {
		return nil, err
	}
	t := module.Program
	counted, err := addCounters(text, t)
	if err == nil {
		err = b.generateCounted(stem, counted)
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range t.Functions {
		// skip all other functions, which the functions with this prefix call
		if strings.HasPrefix(t.Functions[i].Name, "run_") {
			names = append(names, t.Functions[i].Name)
		}
	}
	size := "-DWHOLE_SIZE=" + strconv.Itoa(functionSize)
	counts, err := b.run("counter", names, []string{stem + ".counted.s"}, size, "-DBLOCKS="+strconv.Itoa(len(t.Blocks)))
	if err != nil {
		return nil, err
	}
	times, err := b.run("harness", names, []string{stem + ".s"}, size)
	if err != nil {
		return nil, err
	}
	var list []functionRow
	for _, name := range names {
		for k := range t.Blocks { // a block after a call is executed as often as the call, because no function throws an exception
			if t.Blocks[k].Part > 0 && k > 0 {
				counts[name][k] = counts[name][k-1]
			}
		}
		r := pipeline.Run{Program: t, Visits: counts[name], Carried: module.Flow}
		steady, err := p.Runtime(r)
		if err != nil {
			return nil, err
		}
		r.Form = pipeline.SlidesForm
		slides, err := p.Runtime(r)
		if err != nil {
			return nil, err
		}
		w := functionRow{name: name, steady: steady.Cycles, slides: slides.Cycles, actual: times[name][0]}
		w.calls = calledFunctions(t, name)
		hot := 0
		for k := range steady.Blocks {
			if steady.Blocks[k].Cycles > steady.Blocks[hot].Cycles {
				hot = k
			}
		}
		w.hot, w.by = t.Blocks[hot].Label, steady.Blocks[hot].Bottleneck
		list = append(list, w)
	}
	return list, nil
}

// calledFunctions returns the names of the functions and intrinsics that a function calls.
func calledFunctions(t *trace.Program, name string) (list []string) {
	for k := range t.Blocks {
		b := &t.Blocks[k]
		if t.Functions[b.Function].Name != name {
			continue
		}
		for _, op := range b.Ops {
			if called := strings.HasPrefix(op.Opcode, "llvm.mem") || strings.HasPrefix(op.Opcode, "call "); called && !slices.Contains(list, op.Opcode) {
				list = append(list, op.Opcode)
			}
		}
	}
	return list
}

// addCounters adds code to all blocks of IR. The code counts the executions of each block in an
// array, which is indexed by block number.
func addCounters(text string, p *trace.Program) (string, error) {
	for f := range p.Functions {
		fn := &p.Functions[f]
		for k := fn.First; k < fn.First+fn.Blocks; k++ {
			b := &p.Blocks[k]
			if b.Part > 0 || b.Flags&trace.Synthetic != 0 {
				continue
			}
			at := "getelementptr (i64, ptr @pipelines_counts, i64 " + strconv.Itoa(int(k)) + ")"
			var err error
			if text, err = insertIncrement(text, fn.Name, b.Label, at, strconv.Itoa(int(k))); err != nil {
				return "", err
			}
		}
	}
	return text + "\n@pipelines_counts = external global [65536 x i64]\n", nil
}

func printFunctions(w io.Writer, list []functionRow) {
	fmt.Fprintf(w, "\nRun times of functions with data in L1, in cycles per call: the model with measured numbers, one pass per\n"+
		"block as in the slides on PPT, and times measured on this machine.\n\n")
	fmt.Fprintf(w, "%-16s %9s %7s %9s %8s %9s  %s\n", "function", "model", "error", "one pass", "error", "measured", "most in")
	var errors, slides []float64
	for _, r := range list {
		e := relative(r.steady, r.actual)
		errors, slides = append(errors, math.Abs(e)), append(slides, math.Abs(relative(r.slides, r.actual)))
		fmt.Fprintf(w, "%-16s %9.0f %6.1f%% %9.0f %7.0f%% %9.0f  %s, %s", r.name, r.steady, e, r.slides, relative(r.slides, r.actual), r.actual, r.hot, r.by)
		if len(r.calls) > 0 {
			fmt.Fprintf(w, "  without %s", strings.Join(r.calls, ", "))
		}
		if note := functionNotes[r.name]; note != "" {
			fmt.Fprintf(w, "  %s", note)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%-52s mean %5.1f %%  median %5.1f %%  of %d functions\n", "predicted run time compared with measured run time", mean(errors), median(errors), len(errors))
	fmt.Fprintf(w, "%-52s mean %5.1f %%  median %5.1f %%\n", "one pass per block, compared with measured run time", mean(slides), median(slides))
	fmt.Fprintf(w, "not modelled: %s\n", strings.Join(pipeline.NotModelled(), "; "))
}

// functionNotes maps the names of functions to explanations of why the predicted and measured run
// times differ.
var functionNotes = map[string]string{
	"run_matmul_short": "the loop runs only two iterations per call: the code around the loop is not limited by throughput alone",
	"run_jacobi":       "vectors cross line boundaries",
	"run_search":       "the code generator turns the select instruction into a branch, and the branch is mispredicted",
	"run_histogram":    "loads wait for stores to the same address",
	"run_collatz":      "a multiplication by 3 is compiled to an addition, and the branch predictor learns such a short sequence, so calls overlap",
	"run_gcd":          "the branch predictor learns such a short sequence, so calls overlap",
}

// optimise returns the arguments that compile a source to optimised IR.
func (b *build) optimise(from string, flags []string) []string {
	args := []string{"-O2", "-march=" + b.machine, "-fno-math-errno", "-fno-discard-value-names"}
	args = append(args, flags...)
	// Compile 64-bit divisions to plain division instructions, without a branch for small numbers
	// before them.
	return append(args, "-Xclang", "-target-feature", "-Xclang", "-idivq-to-divl", from)
}

func (b *build) names() (names []string) {
	for i := range b.loops {
		names = append(names, b.loops[i].name)
	}
	return slices.Clip(names)
}
