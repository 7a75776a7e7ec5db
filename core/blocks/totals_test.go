package blocks_test

import (
	"io"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func told(c profile.Counts) profile.Counts {
	c[profile.RangeBytesWritten] = 0
	return c
}

// TestTotalsEqualCounters checks that totals computed from the edges of a run equal the counters of
// the run, for the program, for every function, and for every opcode.
func TestTotalsEqualCounters(t *testing.T) {
	p, steps := tracetest.Multiplication(9)
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Counters | analysis.Blocks}, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	measured := r.Finish(profile.State{})
	run, err := blocks.DecodeRun(measured.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	s, err := blocks.FromEdges(run.Program, run.Edges)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Solve()
	if err != nil || !c.AllWhole() {
		t.Fatal(err, "whole:", c.Whole)
	}
	w := blocks.NewWork(run.Program)
	// Only the records of the trace contain the number of bytes that memset writes.
	if total, want := w.Program(c), told(measured.Counters.Program()); !total.Whole || total.Exact != want || want[profile.Flops] == 0 || total.Untold != 1 {
		t.Errorf("the total of the program is %v, Whole = %v; want %v and true", total.Exact, total.Whole, want)
	}
	byFunction := measured.Counters.ByFunction()
	for i, f := range measured.Counters.Functions {
		if total := w.Function(c, int(f.Number)); total.Exact != told(byFunction[i]) {
			t.Errorf("the total of %s is %v, want %v", f.Name, total.Exact, byFunction[i])
		}
	}
	opcodes, whole := w.Opcodes(c, 0, len(run.Program.Functions))
	got := map[string]uint64{}
	for _, o := range opcodes {
		got[o.Name] = o.Exact
	}
	want := measured.Counters.Tallied(profile.Opcodes)
	for _, o := range want {
		if got[o.Name] != o.Count {
			t.Errorf("%d instructions with opcode %s, want %d", got[o.Name], o.Name, o.Count)
		}
	}
	if !whole || len(got) != len(want) {
		t.Errorf("opcodes %v, want %v", got, want)
	}
}
