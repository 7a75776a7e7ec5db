package pipeline

import (
	"math"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// program returns a function with an entry block, axpy's loop, and an exit block.
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
	r, err := p.Runtime(Run{Program: program(), Visits: []float64{1, 1000, 1}, Transfers: []Transfer{{}, {5000, 2500}, {}}})
	if err != nil {
		t.Fatal(err)
	}
	// The addition takes 0.5 cycles on P0 and P1. The return takes one cycle on P0, like a branch.
	// In the loop, 3 cycles of accesses alternate with 5 cycles of transfers.
	if want := 0.5 + (3+5)*1000 + 1; math.Abs(r.Cycles-want) > 1e-9 || r.Functions[0] != r.Cycles || r.Seconds != r.Cycles/2e9 {
		t.Errorf("%v cycles, %v seconds, want %v", r.Cycles, r.Seconds, want)
	}
	if b := r.Blocks[1]; b.Transfers != 5000 || b.Bottleneck != Bandwidth || b.Steady.Bottleneck != Bandwidth || b.Steady.Ports != 3 || b.Steady.Transfers != 8 || b.Loop != 2 {
		t.Errorf("%+v", b)
	}
	// If transfers overlap with accesses, only the longer time counts.
	p.Overlap = FullOverlap
	r, err = p.Runtime(Run{Program: program(), Visits: []float64{1, 1000, 1}, Transfers: []Transfer{{}, {5000, 2500}, {}}})
	if err != nil || r.Blocks[1].Steady.Transfers != 5 {
		t.Errorf("%+v, error %v, want 5 cycles of transfers per iteration", r.Blocks[1], err)
	}
	for near, want := range map[float64]float64{1: 5, 4: 3 + 4} { // the last step of the lines does not overlap
		p.Overlap = OverlapBeyondL2
		r, err = p.Runtime(Run{Program: program(), Visits: []float64{1, 1000, 1}, Transfers: []Transfer{{}, {5000, 1000 * near}, {}}})
		if err != nil || r.Blocks[1].Steady.Transfers != want {
			t.Errorf("near %v: %+v (%v), want a bound of %v cycles", near, r.Blocks[1].Steady, err, want)
		}
	}
	p.Overlap = NoOverlap

	slides, err := p.Runtime(Run{Program: program(), Visits: []float64{1, 1000, 1}, Form: SlidesForm,
		LoadLatency: func(block, site uint32) float64 { return 10 }})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 18*1000 + 1.0; slides.Cycles != want || slides.Blocks[1].Bottleneck != Latency {
		t.Errorf("one pass per block: %v cycles, want %v", slides.Cycles, want)
	}
	if _, err := p.Runtime(Run{Program: program()}); err == nil || !strings.Contains(err.Error(), "but the program has 3") {
		t.Errorf("%v", err)
	}
}

// TestRuntimeOfBranches checks that the two blocks of a loop form one body, in which the
// second block is weighted by its executions per iteration.
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
		t.Errorf("%v cycles, want 200, because P1 executes two additions per iteration", r.Cycles)
	}
	if len(r.Missing) != 1 || r.Missing[0].Block != 3 || r.Missing[0].Class != IDiv {
		t.Errorf("missing %+v, want the division of block 3", r.Missing)
	}
	run.Carried = []trace.Flow{{Block: 1, Instr: 0, FromBlock: 1, FromInstr: 0, Before: 1}}
	if r, err = p.Runtime(run); err != nil || math.Abs(r.Cycles-300) > 1e-9 {
		t.Errorf("%v cycles (%v), want 300: each addition waits for the previous one", r.Cycles, err)
	}
	if len(NotModelled()) < 5 {
		t.Error("NotModelled returns too few items")
	}
}

// TestShortLoops checks that independent executions of a loop overlap within the window, and that
// dependent executions do not overlap.
func TestShortLoops(t *testing.T) {
	p := toy(t)
	p.Window = 60
	q := program()
	q.Blocks[1].Depth = 2
	q.Blocks[1].Instrs = sum // an iteration has 4 micro-ops and takes 3 cycles
	run := Run{Program: q, Visits: []float64{100, 1000, 100}, Carried: []trace.Flow{{Block: 1, Instr: 1, FromBlock: 0, FromInstr: 0}}}
	r, err := p.Runtime(run)
	if err != nil {
		t.Fatal(err)
	}
	if b := r.Blocks[1]; math.Abs(b.Steady.Recurrence-3*(40.0/100)) > 1e-9 {
		t.Errorf("independent executions of a loop with 10 iterations: %+v, want 1.2 cycles", b.Steady)
	}
	run.Carried = append(run.Carried, trace.Flow{Block: 0, Instr: 0, FromBlock: 2, FromInstr: 0}, trace.Flow{Block: 2, Instr: 0, FromBlock: 1, FromInstr: 4})
	if r, err = p.Runtime(run); err != nil || r.Blocks[1].Steady.Recurrence != 3 {
		t.Errorf("executions of a loop that depend on each other: %+v, error %v, want a recurrence of 3 cycles", r.Blocks[1].Steady, err)
	}
}

// TestTransfersOverlapComputation checks that lines are transferred while the core computes, but
// not while it loads and stores.
func TestTransfersOverlapComputation(t *testing.T) {
	p := toy(t)
	for _, c := range []struct {
		lines  float64 // transfer cycles per iteration
		cycles float64
		by     Bottleneck
	}{
		{0, 3, Recurrence}, // an addition waits for the previous addition
		{1, 3, Recurrence}, // one more load, and one more transfer cycle
		{2, 3, Recurrence},
		{2.5, 3.5, Bandwidth},
	} {
		q := program()
		q.Blocks[1].Instrs = sum
		r, err := p.Runtime(Run{Program: q, Visits: []float64{0, 100, 0}, Transfers: []Transfer{{}, {Cycles: 100 * c.lines}, {}}})
		if err != nil {
			t.Fatal(err)
		}
		if b := r.Blocks[1]; math.Abs(b.Steady.Cycles-c.cycles) > 1e-9 || b.Bottleneck != c.by {
			t.Errorf("with %v cycles of transfers: %+v, want %v cycles (%s)", c.lines, b.Steady, c.cycles, c.by)
		}
	}
}

// TestCostOfLineCrossing checks the cost of an access that crosses a line boundary. If the
// description does not state this cost, the access occupies its ports twice.
func TestCostOfLineCrossing(t *testing.T) {
	p := toy(t)
	run := Run{Program: program(), Visits: []float64{0, 1000, 0}, Crossing: func(block, site uint32) float64 {
		if block != 1 {
			t.Errorf("Crossing was called for block %d, want 1", block)
		}
		return map[uint32]float64{1: 0.5, 3: 0.25}[site] // these are the load from x and the store to y
	}}
	at := func() Steady {
		t.Helper()
		r, err := p.Runtime(run)
		if err != nil {
			t.Fatal(err)
		}
		return r.Blocks[1].Steady
	}
	if s := at(); s.Ports != 3.75 {
		t.Errorf("%+v, want 3 cycles for accesses and 0.75 more on P2", s)
	}
	p.Set(Key{Class: CrossingLoad}, Cost{Latency: 6, Uses: []Use{{Ports: 1 << 3, Cycles: 20}}})
	if s := at(); s.Ports != 10 || p.PortNames(s.Full) != "P3" {
		t.Errorf("%+v, want 10 cycles on P3", s)
	}
	body := p.NewBody(axpy, Options{Crossing: func(int, uint32) float64 { return 0.5 }})
	if got := body.Ops[2].Cost.Latency; got != 4+3 {
		t.Errorf("a load that crosses a line every other time takes %v cycles, want 7", got)
	}
}

// TestOverlappingMisses checks that the transfer bandwidth and the window limit how many
// independent misses overlap.
func TestOverlappingMisses(t *testing.T) {
	p := toy(t)
	miss := Misses{Lines: 0.5, Waits: 50, Scattered: Transfer{4, 1.5}}
	o := Options{Misses: func(_ int, site uint32) Misses {
		if site == 1 {
			return miss
		}
		return Misses{}
	}}
	body := p.NewBody(axpy, o) // body.MicroOps returns the number of micro-ops
	if s := body.Steady(); s.Misses != 0 || s.Cycles != 3 {
		t.Errorf("without a window: %+v, want no bound from misses, and 3 cycles", s)
	}
	m := body.MicroOps()
	for window, want := range map[int]float64{1: 50, int(2 * m): 50, int(4 * m): 25, int(40 * m): 2.5} {
		p.Window = window
		if got := p.NewBody(axpy, o).Steady().Misses; math.Abs(got-want) > 1e-9 {
			t.Errorf("a window of %d micro-ops: %v cycles, want %v", window, got, want)
		}
	}
	p.Window = int(40 * m)
	r, err := p.Runtime(Run{Program: program(), Visits: []float64{0, 10, 0}, Misses: func(_, site uint32) Misses { return o.Misses(0, site) }})
	if err != nil || r.Blocks[1].Steady.Transfers != 3+4 || r.Cycles != 70 {
		t.Errorf("%+v (%v), want 3 cycles of accesses and 4 of transfers", r.Blocks[1].Steady, err)
	}
}

// TestScheduler checks that the window does not fill if the scheduler has only a few entries.
func TestScheduler(t *testing.T) {
	p := toy(t)
	p.Window = 60
	over := func() float64 { return p.NewBody(sum, Options{}).SteadyOver(10).Recurrence } // an iteration has 4 micro-ops, one of which waits
	if got, want := over(), 3*(40.0/100); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v cycles, want %v", got, want)
	}
	p.Scheduler = 5 // limits the look-ahead to 20 micro-ops
	if got, want := over(), 3*(40.0/60); math.Abs(got-want) > 1e-9 {
		t.Errorf("with 5 entries in the scheduler: %v cycles, want %v", got, want)
	}
	p.Scheduler = 500
	if got, want := over(), 3*(40.0/100); math.Abs(got-want) > 1e-9 {
		t.Errorf("with a scheduler that is larger than the window: %v cycles, want %v", got, want)
	}
}
