package pipeline

import (
	"math"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// program is a function that prepares, then runs axpy's loop.
func program() *trace.Program {
	return &trace.Program{
		Functions: []trace.Function{{Name: "f", Blocks: 3}},
		Blocks: []trace.Block{
			{Label: "entry", Successors: []uint32{1}, Instrs: []trace.Instr{{Opcode: "add", Type: "i64", Uses: []int32{-1}}, {Opcode: "br"}}},
			{Label: "loop", Loop: 2, Depth: 1, Flags: trace.HeaderBlock | trace.LatchBlock, Successors: []uint32{1, 2}, Instrs: axpy},
			{Label: "exit", Instrs: []trace.Instr{{Opcode: "ret"}}},
		},
	}
}

func TestRuntime(t *testing.T) {
	p := toy(t)
	r, err := p.Runtime(Run{Program: program(), Visits: []float64{1, 1000, 1}, Lines: []float64{0, 250, 0}, LineCycles: 20})
	if err != nil {
		t.Fatal(err)
	}
	// The addition takes half of P0 and P1, the return a branch's P0.
	if want := 0.5 + 3*1000 + 250*20 + 1; math.Abs(r.Cycles-want) > 1e-9 || r.Functions[0] != r.Cycles || r.Seconds != r.Cycles/2e9 {
		t.Errorf("%v cycles, %v seconds, want %v", r.Cycles, r.Seconds, want)
	}
	if b := r.Blocks[1]; b.Memory != 5000 || b.Bottleneck != Bandwidth || b.Steady.Bottleneck != Ports || b.Loop != 2 {
		t.Errorf("%+v", b)
	}
	slides, err := p.Runtime(Run{Program: program(), Visits: []float64{1, 1000, 1}, Form: SlidesForm,
		LoadLatency: func(block, site uint32) float64 { return 10 }})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 19*1000 + 1.0; slides.Cycles != want || slides.Blocks[1].Bottleneck != Latency {
		t.Errorf("one pass a block: %v cycles, want %v", slides.Cycles, want)
	}
	if _, err := p.Runtime(Run{Program: program()}); err == nil || !strings.Contains(err.Error(), "want those of the program: 3") {
		t.Errorf("%v", err)
	}
}

// TestRuntimeOfBranches: a loop of two blocks is one body, in which the second counts as
// often as it runs.
func TestRuntimeOfBranches(t *testing.T) {
	p := toy(t)
	q := program()
	add := trace.Instr{Opcode: "fadd", Type: "double", Uses: []int32{-1, -1}}
	q.Blocks[1] = trace.Block{Label: "head", Loop: 2, Successors: []uint32{1, 3}, Instrs: []trace.Instr{add, {Opcode: "br", Type: "i1"}}}
	q.Blocks = append(q.Blocks, trace.Block{Label: "side", Loop: 2, Successors: []uint32{1}, Instrs: []trace.Instr{add, add, {Opcode: "sdiv", Type: "i64", Uses: []int32{-1, -1}}, {Opcode: "br"}}})
	q.Functions[0].Blocks = 4
	run := Run{Program: q, Visits: []float64{0, 100, 0, 50}}
	r, err := p.Runtime(run)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.Cycles-200) > 1e-9 || r.Blocks[1].Cycles+r.Blocks[3].Cycles != r.Cycles {
		t.Errorf("%v cycles, want 200: P1 for two additions an iteration", r.Cycles)
	}
	if len(r.Missing) != 1 || r.Missing[0].Block != 3 || r.Missing[0].Class != IDiv {
		t.Errorf("missing %+v, want the division of block 3", r.Missing)
	}
	run.Carried = []Carry{{Block: 1, Instr: 0, FromBlock: 1, FromInstr: 0, Before: 1}}
	if r, err = p.Runtime(run); err != nil || math.Abs(r.Cycles-300) > 1e-9 {
		t.Errorf("%v cycles (%v), want 300: each addition waits for the one before", r.Cycles, err)
	}
	if len(NotModelled()) < 5 {
		t.Error("the list of what is not modelled is short")
	}
}

// TestShortLoops: rounds of a loop that begin anew overlap as far as the window reaches;
// those that go on from each other do not.
func TestShortLoops(t *testing.T) {
	p := toy(t)
	p.Window = 60
	q := program()
	q.Blocks[1].Depth = 2
	q.Blocks[1].Instrs = sum // 4 micro-ops, 3 cycles an iteration
	run := Run{Program: q, Visits: []float64{100, 1000, 100}, Carried: []Carry{{Block: 1, Instr: 1, FromBlock: 0, FromInstr: 0}}}
	r, err := p.Runtime(run)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Blocks[1]; math.Abs(b.Steady.Recurrence-3*(40.0/100)) > 1e-9 {
		t.Errorf("rounds of 10 iterations that begin anew: %+v, want 1.2 cycles", b.Steady)
	}
	run.Carried = append(run.Carried, Carry{Block: 0, Instr: 0, FromBlock: 2, FromInstr: 0}, Carry{Block: 2, Instr: 0, FromBlock: 1, FromInstr: 4})
	if r, err = p.Runtime(run); err != nil || r.Blocks[1].Steady.Recurrence != 3 {
		t.Errorf("rounds that go on from each other: %+v (%v), want 3 cycles", r.Blocks[1].Steady, err)
	}
	run.Carried, run.Entries = run.Carried[:1], []float64{0, 300, 0}
	if r, err = p.Runtime(run); err != nil || r.Blocks[1].Steady.Recurrence != 3 {
		t.Errorf("rounds of different numbers of iterations: %+v (%v), want 3 cycles", r.Blocks[1].Steady, err)
	}
	run.Entries = []float64{0, 10, 0}
	if r, err = p.Runtime(run); err != nil || math.Abs(r.Blocks[1].Steady.Recurrence-3*(400.0/460)) > 1e-9 {
		t.Errorf("rounds of 100 iterations: %+v (%v), want 2.6 cycles", r.Blocks[1].Steady, err)
	}
}
