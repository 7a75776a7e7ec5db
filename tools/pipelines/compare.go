package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/stackglass/stackglass/core/pipeline"
)

// loopRow is the row for one loop in the printed table.
type loopRow struct {
	loop           *loop
	steady         pipeline.Steady // the model's steady state, with the numbers of llvm-mca's tables
	tuned          pipeline.Steady // the model's steady state, with measured latencies and throughputs
	peer           float64         // llvm-mca's steady state
	pass, peerPass float64         // cycles of one pass through the loop body, in the model and in llvm-mca
}

// mcaCycles returns two results of llvm-mca for a loop: the cycles per iteration in the steady
// state, and the cycles of the first iteration.
func mcaCycles(t *target, assembly string) (steady, first float64, err error) {
	cycles := func(iterations string) (float64, error) {
		report, _, err := runMCA(t, assembly, "-iterations="+iterations)
		if err != nil {
			return 0, err
		}
		return report.CodeRegions[0].SummaryView.TotalCycles, nil
	}
	first, err = cycles("1")
	if err != nil {
		return 0, 0, err
	}
	early, err := cycles("500")
	if err != nil {
		return 0, 0, err
	}
	late, err := cycles("1500")
	return (late - early) / 1000, first, err
}

// mcaOverhead is the number of cycles that llvm-mca adds to one pass through a loop body: an
// instruction is dispatched one cycle before it starts, and retires after it has been executed.
const mcaOverhead = 3

func compareAll(w io.Writer, testdata, machine, march string, measured bool) error {
	rows, runs, err := compare(testdata, machine, march, measured)
	if err != nil {
		return err
	}
	printLoops(w, machine, march, rows)
	if measured {
		printFunctions(w, runs)
	}
	return nil
}

// compare compares the model with llvm-mca. The loops are compiled for the given processor
// (machine) or, if march is not "", with -march set to march. If measured is true, it also compares
// the model with measured times.
func compare(testdata, machine, march string, measured bool) (rows []loopRow, runs []functionRow, err error) {
	t, err := targetOf(machine)
	if err != nil {
		return nil, nil, err
	}
	if t.triple != "x86_64" {
		return nil, nil, fmt.Errorf("the loops are compiled for x86-64, but %s is not an x86-64 processor", machine)
	}
	p, err := pipeline.Named(machine)
	if err != nil {
		return nil, nil, err
	}
	tuned := p
	if pipeline.Description(machine+"-measured") != nil {
		if tuned, err = pipeline.Named(machine + "-measured"); err != nil {
			return nil, nil, err
		}
	}
	dir, err := os.MkdirTemp("", "pipelines")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	if testdata, err = filepath.Abs(testdata); err != nil {
		return nil, nil, err
	}
	b := &build{dir: dir, testdata: testdata, machine: cmp.Or(march, t.cpu), otherTarget: march != ""}
	for _, s := range sources {
		if err := b.compile(s); err != nil {
			return nil, nil, err
		}
	}
	if measured {
		if err := b.measure(); err != nil {
			return nil, nil, err
		}
		if runs, err = b.compareFunctions(tuned); err != nil {
			return nil, nil, err
		}
	}
	for i := range b.loops {
		l := &b.loops[i]
		r := loopRow{loop: l}
		if r.peer, r.peerPass, err = mcaCycles(t, l.assembly); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.name, err)
		}
		body := p.NewBody(l.block.Instrs, pipeline.Options{Target: l.target})
		if len(body.Missing) > 0 {
			return nil, nil, fmt.Errorf("%s: the description has no entry for %s %s", l.name, body.Missing[0].Class, body.Missing[0].Type)
		}
		r.tuned = tuned.NewBody(l.block.Instrs, pipeline.Options{Target: l.target}).Steady()
		r.steady, r.pass = body.Steady(), body.OnePass().Cycles+mcaOverhead
		rows = append(rows, r)
	}
	return rows, runs, nil
}

func relative(x, of float64) float64 { return 100 * (x - of) / of }

// errorList contains the errors of each comparison, in percent.
type errorList struct{ steady, pass, measured, plain, peers []float64 }

func collectErrors(rows []loopRow) (f errorList) {
	for _, r := range rows {
		f.steady = append(f.steady, math.Abs(relative(r.steady.Cycles, r.peer)))
		f.pass = append(f.pass, math.Abs(relative(r.pass, r.peerPass)))
		if m := r.loop.measured; m > 0 {
			f.measured = append(f.measured, math.Abs(relative(r.tuned.Cycles, m)))
			f.plain = append(f.plain, math.Abs(relative(r.steady.Cycles, m)))
			f.peers = append(f.peers, math.Abs(relative(r.peer, m)))
		}
	}
	return f
}

func printLoops(w io.Writer, machine, march string, rows []loopRow) {
	if march != "" {
		machine += ", for code compiled for " + march
	}
	fmt.Fprintf(w, "Cycles of loop bodies on %s. The first columns compare the model with llvm-mca, both using llvm-mca's numbers: per\n"+
		"iteration in the steady state, and for one pass. The last columns compare the model, which then uses numbers measured\n"+
		"for single instructions, with the times of whole loops on this machine.\n\n", machine)
	fmt.Fprintf(w, "%-20s %8s %-10s %8s %7s | %6s %6s %7s | %8s %-10s %8s %7s %7s\n",
		"loop", "steady", "by", "llvm-mca", "error", "pass", "mca", "error", "steady", "by", "measured", "error", "mca's")
	for _, r := range rows {
		fmt.Fprintf(w, "%-20s %8.2f %-10s %8.2f %6.1f%% | %6.0f %6.0f %6.1f%%", r.loop.name, r.steady.Cycles, r.steady.Bottleneck,
			r.peer, relative(r.steady.Cycles, r.peer), r.pass, r.peerPass, relative(r.pass, r.peerPass))
		if m := r.loop.measured; m > 0 {
			fmt.Fprintf(w, " | %8.2f %-10s %8.2f %6.1f%% %6.1f%%", r.tuned.Cycles, r.tuned.Bottleneck, m, relative(r.tuned.Cycles, m), relative(r.peer, m))
			if r.loop.median > 1.15*m {
				fmt.Fprintf(w, "  (mostly %.2f)", r.loop.median)
			}
		}
		if note := loopNotes[r.loop.name]; note != "" {
			fmt.Fprintf(w, "  %s", note)
		}
		fmt.Fprintln(w)
	}
	line := func(name string, errors []float64) {
		if len(errors) > 0 {
			fmt.Fprintf(w, "%-52s mean %5.1f %%  median %5.1f %%  of %d loops\n", name, mean(errors), median(errors), len(errors))
		}
	}
	f := collectErrors(rows)
	fmt.Fprintln(w)
	line("steady state, compared with llvm-mca", f.steady)
	line("one pass, compared with one iteration of llvm-mca", f.pass)
	line("steady state, measured numbers, vs. measurement", f.measured)
	line("steady state, llvm-mca's numbers, vs. measurement", f.plain)
	line("llvm-mca, compared with measurement", f.peers)
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// loopNotes maps the names of loops to explanations of why the model differs from llvm-mca or from
// the measurement.
var loopNotes = func() map[string]string {
	const (
		folded   = "in llvm-mca, an operation waits longer for a load that is folded into the operation"
		copies   = "llvm-mca counts a cycle for each register copy, although register renaming eliminates the copy"
		assigned = "the core assigns ports to micro-ops at dispatch, which is not optimal"
		divider  = "llvm-mca's tables do not model how long the divider is busy"
	)
	return map[string]string{
		"sum_double": folded, "sum_float": folded, "dot_double": folded, "product": folded, "horner": folded, "first_order": folded,
		"prefix_double": folded, "gauss_seidel": folded, "gather_sum": folded, "sparse_row": folded, "fnv_hash": folded, "rotate_mix": folded,
		"unrolled_sum": folded, "unrolled_prefix": folded, "wide_sum_int": folded, "wide_largest_int": folded,
		"four_sums": folded + "; an addition forwards its result in 2 cycles only if the loop has a single chain",
		"xorshift":  copies, "fibonacci": copies,
		"divide_double": divider, "divide_float": divider, "root_double": divider, "root_float": divider, "norm": divider, "divide_int": divider,
		"divide_long": divider, "wide_divide": divider, "wide_root": divider, "wide_root_float": divider, "wide_norm": divider,
		"ones": assigned, "leading": assigned, "finalizer": assigned, "shift_by": assigned, "select_int": assigned, "stencil3": assigned,
		"count_above":        assigned + "; in llvm-mca, the result of the comparison waits for the previous value of its register",
		"double_to_int":      "in llvm-mca, a conversion from memory takes 12 cycles longer than a separate load and conversion",
		"wide_int_to_double": "a conversion of a vector in memory needs no shuffle",
		"modulo_chain":       "the remainder is available later than the quotient, whose latency is measured",
	}
}()
