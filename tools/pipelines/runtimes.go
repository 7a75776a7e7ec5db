package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/capture"
)

// runtimeKernel is a kernel in testdata/sizes.c, with input sizes whose data fit into different
// memory levels.
type runtimeKernel struct {
	name, about string
	sizes       []size
}

type size struct {
	n     int
	level string // the memory level into which the data fit
	// the explanation of a large error of the model for this size, or ""
	why string
}

// kernels lists the kernels of the table. No size is a power of two, because the lines of a column
// would then map to the same few sets.
var kernels = []runtimeKernel{
	{"matmul", "C = A·B for matrices of n×n doubles, computed row by column", []size{{30, "L1", ""}, {130, "L2", ""}, {300, "L3", noise}}},
	{"jacobi", "one sweep over n×n doubles that computes the mean of the four neighbours of each value", []size{{50, "L1", spills}, {300, "L2", ""}, {1600, "L3", noise}}},
	{"gather", "y = A·x for a sparse matrix of n rows; each row contains 8 doubles in random columns", []size{{300, "L1", ""}, {10000, "L2", ""}, {400000, "L3", noise}}},
	{"chase", "one walk around a circular list of n lines, linked in random order", []size{{500, "L1", ""}, {16000, "L2", ""}, {500000, "L3", noise}}},
	{"horner", "a polynomial of degree 12, evaluated for n doubles", []size{{2000, "L1", ""}, {60000, "L2", ""}, {2000000, "L3", noise}}},
	{"search", "4,000 binary searches in n sorted integers", []size{{2000, "L1", mispredictions}, {100000, "L2", mispredictions}, {4000000, "L3", mispredictions + "; and " + noise}}},
	{"transpose", "B = Aᵀ for a matrix of n×n doubles", []size{{50, "L1", sameLowBits}, {300, "L2", ""}, {1500, "L3", noise}}},
	{"triad", "a = b + x·c for arrays of n doubles", []size{{1500, "L1", ""}, {60000, "L2", ""}, {2000000, "L3", noise}}},
}

// The reason spills was checked in the machine code: each row executes four additions to memory and six
// more loads for values that the IR keeps in registers.
const (
	mispredictions = "mispredicted branches: the code generator turns the select that the model sees into a branch"
	noise          = "other users of the last cache and the memory: the times of probes and kernels differ by up to a half between runs"
	spills         = "the code generator keeps values of the outer loop in memory, and the rows are short; the model does not see these loads and stores"
	sameLowBits    = "probably loads that wait for stores to addresses with the same low bits"
)

// largeError is the error, in percent, above which a row of the table needs an explanation.
const largeError = 25

// runtimeRow is a row of the table: one kernel with one size.
type runtimeRow struct {
	kernel    *runtimeKernel
	size      *size
	predicted float64 // predicted cycles of one run
	by        string  // the main bottleneck
	measured  float64 // measured cycles of the fastest run; 0: not measured
}

// runtimeFlags returns the flags for the kernels, which are the same in the traced and the timed
// program.
func runtimeFlags(cpu string) []string {
	return []string{"-O2", "-march=" + cpu, "-g", "-fno-discard-value-names"}
}

// kernelBuild describes the program that contains the kernels. The program is compiled both with
// and without tracing.
type kernelBuild struct {
	dir, plain, traced string
	module             []byte // the program's LLVM IR, which shows the values that blocks pass to each other
	processor          *pipeline.Processor
}

// buildKernels compiles the kernels for a processor with a measured description.
func buildKernels(dir, testdata, machine string) (*kernelBuild, error) {
	t, err := targetOf(machine)
	if err != nil {
		return nil, err
	}
	k := &kernelBuild{dir: dir, plain: filepath.Join(dir, "plain"), traced: filepath.Join(dir, "traced")}
	if k.processor, err = pipeline.Named(machine + "-measured"); err != nil {
		return nil, err
	}
	source, object, driver := filepath.Join(testdata, "sizes.c"), filepath.Join(dir, "sizes.o"), filepath.Join(dir, "main.o")
	flags := runtimeFlags(t.cpu)
	if k.module, err = compileToIR(filepath.Join(dir, "sizes.ll"), append(flags, source)...); err != nil {
		return nil, err
	}
	if err := command(clangProgram, "-O2", "-I", testdata, filepath.Join(testdata, "sizes_main.c"), "-c", "-o", driver); err != nil {
		return nil, err
	}
	if err := command(clangProgram, append(flags, source, "-c", "-o", object)...); err != nil {
		return nil, err
	}
	if err := command(clangProgram, object, driver, "-o", k.plain); err != nil {
		return nil, err
	}
	if err := compileTraced(append(flags, source, "-c", "-o", object)...); err != nil {
		return nil, err
	}
	return k, compileTraced(object, driver, "-o", k.traced)
}

// compileTraced runs clang in the same way as `stackglass cc -- clang`, so that the program traces
// itself.
func compileTraced(args ...string) error {
	var messages bytes.Buffer
	status, err := capture.Compile(capture.IO{Stdin: strings.NewReader(""), Stdout: &messages, Stderr: &messages}, capture.Options{}, clangProgram, args)
	if err == nil && status != 0 {
		err = fmt.Errorf("%s ended with status %d: %.600s", clangProgram, status, messages.String())
	}
	return err
}

// predict traces a run and predicts its time, as `stackglass pipeline --processor … --module …`
// does.
func (k *kernelBuild) predict(o *runtimeRow) error {
	p, err := profileOf(analysis.Sites|analysis.Sets|analysis.Blocks, k.traced, o.kernel.name, strconv.Itoa(o.size.n), "once")
	if err != nil {
		return err
	}
	models, err := costmodel.New(p, "sizes.ll", k.module)
	if err != nil {
		return err
	}
	o.predicted, o.by, err = functionOf(models, k.processor, "run_"+o.kernel.name)
	return err
}

// profileOf runs a traced program, and analyses its trace.
func profileOf(analyses analysis.Analyses, program string, args ...string) (*profile.Profile, error) {
	name := program + ".sgt"
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "STACKGLASS_OUT="+name, "STACKGLASS_QUIET=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %.600s", program, err, text)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := open.Open(name, f, open.Options{})
	if err != nil {
		return nil, err
	}
	r, err := analysis.NewRunner(analysis.Spec{Kinds: trace.DataKinds, Analyses: analyses}, t)
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		return nil, err
	}
	return r.Finish(profile.State{}), nil
}

// functionOf returns the predicted cycles of all calls of a function on a processor, and the
// function's bottleneck.
func functionOf(m *costmodel.Models, p *pipeline.Processor, name string) (cycles float64, by string, err error) {
	m.Use(p)
	t := m.Answer(answers.ModelQuestion{}).Table("functions")
	for _, row := range t.Rows {
		if row[t.Index("function")].Plain() == name {
			cycles, _ = row[t.Index("cycles")].Number()
			return cycles, row[t.Index("limit")].Plain(), nil
		}
	}
	return 0, "", errors.New("the answer does not contain the function " + name)
}

// measure runs a kernel, and stores its shortest time so far.
func (k *kernelBuild) measure(o *runtimeRow) error {
	out, err := exec.Command(k.plain, o.kernel.name, strconv.Itoa(o.size.n)).Output()
	if err != nil {
		return err
	}
	var fastest float64
	if _, err := fmt.Sscan(string(out), &fastest); err != nil {
		return fmt.Errorf("kernel %s printed %q, want its time in cycles", o.kernel.name, out)
	}
	if o.measured == 0 || fastest < o.measured {
		o.measured = fastest
	}
	return nil
}

// runtimeRows returns the rows of the table, without predictions and measurements.
func runtimeRows() (list []runtimeRow) {
	for i := range kernels {
		for j := range kernels[i].sizes {
			list = append(list, runtimeRow{kernel: &kernels[i], size: &kernels[i].sizes[j]})
		}
	}
	return list
}

// measurementRounds is the number of measurements of each kernel. Other programs can only make a kernel
// slower, and only temporarily.
const measurementRounds = 3

// writeRuntimes measures and predicts all kernels, and writes the page.
func writeRuntimes(name, testdata string) error {
	dir, err := os.MkdirTemp("", "pipelines")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if testdata, err = filepath.Abs(testdata); err != nil {
		return err
	}
	k, err := buildKernels(dir, testdata, host())
	if err != nil {
		return fmt.Errorf("%w; this machine must have a measured description: run make probes", err)
	}
	probes, err := newMemoryProbes(dir, testdata)
	if err != nil {
		return err
	}
	list := runtimeRows()
	for range measurementRounds {
		if err := probes.run(); err != nil {
			return err
		}
		for i := range list {
			if err := k.measure(&list[i]); err != nil {
				return err
			}
		}
	}
	k.processor.Overlap = overlapOf(len(probes.caches), probes.best.list)
	k.processor.Levels = append(k.processor.Levels[:1:1], levelsOf(probes.caches, probes.best.list)[1:]...)
	for i := range list {
		if err := k.predict(&list[i]); err != nil {
			return err
		}
	}
	var page bytes.Buffer
	writePage(&page, k.processor, cpuName(), list)
	_, err = os.Stdout.Write(page.Bytes())
	return errors.Join(err, os.WriteFile(name, page.Bytes(), 0o644))
}

// writePage writes the results as Markdown. The parameter cpu is the name of the processor on which
// the kernels were measured.
func writePage(w io.Writer, p *pipeline.Processor, cpu string, list []runtimeRow) {
	fmt.Fprintf(w, `# Run times of kernels: the model and the machine

Generated by %[1]smake runtimes%[1]s from the kernels in testdata/sizes.c. DO NOT EDIT.

This table compares predicted run times of kernels with measurements. “Predicted” is the number of cycles that
%[1]sstackglass pipeline run.sgt --processor %[2]s --module sizes.ll%[1]s reports for the kernel's
function, given the trace of one run. “Measured” is the number of clock cycles of the fastest of many runs of the same
code without tracing. The code was compiled for this machine with %[1]sclang-19 -O2%[1]s.
The model was not fitted to these kernels: its numbers come from measurements of single instructions,
from copies and chains of loads in each level of memory, and from the vendor.

Machine: %[3]s. The kernels were measured on %[4]s. The following properties of its caches and memory were measured with probes in the same run,
because other users of a machine share its last cache and its memory. Kernels and probes used the same pages,
so the times contain address translation. A level such as L3 27MiB describes accesses to data of up to 27 MiB.

| level | size | latency | line read sequentially | line written | scattered line read | scattered line stored to |
|---|---|---|---|---|---|---|
`, "`", p.Name, p.Title+"; "+p.Source, cpu)
	for _, l := range p.Levels {
		size := "–"
		if l.SizeBytes > 0 {
			size = strconv.FormatUint(l.SizeBytes>>10, 10) + " KiB"
		}
		fmt.Fprintf(w, "| %s | %s | %v | %v | %v | %v | %v |\n", l.Name, size, l.LatencyCycles, l.ReadCycles, l.WrittenCycles, l.ScatteredCycles, l.StoredCycles)
	}
	fmt.Fprint(w, "\nLatencies and times are in cycles. The cycles for a line are counted in addition to the cost of its loads and stores in L1. "+overlapNotes[p.Overlap]+"\n\n"+
		"| kernel | n | data in | predicted | measured | error | limited by | reason for a large error |\n|---|---|---|---|---|---|---|---|\n")
	var errors []float64
	for i := range list {
		o := &list[i]
		e := relative(o.predicted, o.measured)
		errors = append(errors, math.Abs(e))
		why := ""
		if math.Abs(e) > largeError {
			why = o.size.why
			if why == "" {
				why = "unknown"
			}
		}
		fmt.Fprintf(w, "| %s | %d | %s | %s | %.0f | %+.1f %% | %s | %s |\n", o.kernel.name, o.size.n, o.size.level, wholeCycles(o.predicted), o.measured, e, o.by, why)
	}
	fmt.Fprintf(w, "\nThe mean error is %.1f %%, and the median error is %.1f %%.\n\n", mean(errors), median(errors))
	for i := range kernels {
		fmt.Fprintf(w, "- %s: %s\n", kernels[i].name, kernels[i].about)
	}
	fmt.Fprint(w, "\nNot modelled:\n\n")
	for _, what := range pipeline.NotModelled() {
		fmt.Fprintf(w, "- %s\n", what)
	}
}

// overlapNotes says which transfers overlap with accesses, as measured.
var overlapNotes = [...]string{
	pipeline.NoOverlap:       "Transfers do not overlap with these loads and stores.",
	pipeline.OverlapBeyondL2: "Transfers from beyond L2 overlap with these loads and stores; transfers from L2 do not.",
	pipeline.FullOverlap:     "All transfers overlap with these loads and stores.",
}

// wholeCycles formats predicted cycles as a whole number, as on the page.
func wholeCycles(cycles float64) string { return strconv.FormatFloat(cycles, 'f', 0, 64) }
