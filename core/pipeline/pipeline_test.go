package pipeline

import (
	"math"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

const toyText = `# A toy.
name: toy
title: A toy   # to play with
isa: x86-64
clock_ghz: 2
dispatch: 4
ports: P0 P1 P2 P3
fuses: compare-branch
levels:
  L1: 4
classes:
  iadd: latency 1, uops 1, ports P0|P1
  fadd double: latency 3, uops 1, ports P1
  fadd <4 x double>: latency 3, uops 1, ports P1
  fmul double: latency 4, uops 1, ports P0|P1
  fdiv double: latency 13, uops 1, ports P0 + 4*P3
  load: latency 4, uops 1, ports P2
  store: latency 1, uops 1, ports P2
  br: latency 1, uops 1, ports P0
`

func toy(t testing.TB) *Processor {
	t.Helper()
	p, err := Read([]byte(toyText))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// axpy is the loop y[i] = a*x[i] + y[i], as one block.
var axpy = []trace.Instr{
	{Opcode: "phi", Type: "i64", Uses: []int32{-2 - 7}},               // instruction 0: i
	{Opcode: "getelementptr", Type: "ptr", Uses: []int32{-1, 0}},      // instruction 1: &x[i]
	{Opcode: "load", Type: "double", Uses: []int32{1}, Site: 1},       // instruction 2: x[i]
	{Opcode: "getelementptr", Type: "ptr", Uses: []int32{-1, 0}},      // instruction 3: &y[i]
	{Opcode: "load", Type: "double", Uses: []int32{3}, Site: 2},       // instruction 4: y[i]
	{Opcode: "llvm.fmuladd", Type: "double", Uses: []int32{-1, 2, 4}}, // 5
	{Opcode: "store", Type: "double", Uses: []int32{5, 3}, Site: 3},   // 6
	{Opcode: "add", Type: "i64", Uses: []int32{0}},                    // 7
	{Opcode: "icmp", Type: "i64", Uses: []int32{7, -1}},               // 8
	{Opcode: "br", Type: "i1", Uses: []int32{8}},                      // 9
}

// sum is the loop s += x[i], as one block.
var sum = []trace.Instr{
	{Opcode: "phi", Type: "i64", Uses: []int32{-2 - 5}},
	{Opcode: "phi", Type: "double", Uses: []int32{-2 - 4}},
	{Opcode: "getelementptr", Type: "ptr", Uses: []int32{-1, 0}},
	{Opcode: "load", Type: "double", Uses: []int32{2}, Site: 1},
	{Opcode: "fadd", Type: "double", Uses: []int32{1, 3}},
	{Opcode: "add", Type: "i64", Uses: []int32{0}},
	{Opcode: "icmp", Type: "i64", Uses: []int32{5, -1}},
	{Opcode: "br", Type: "i1", Uses: []int32{6}},
}

func TestSteadyStates(t *testing.T) {
	p := toy(t)
	// Three micro-ops need P2. The fma is split into fmul and fadd, so 7 micro-ops are dispatched,
	// 4 per cycle.
	s := p.NewBody(axpy, Options{}).Steady()
	if s.Cycles != 3 || s.Bottleneck != Ports || p.PortNames(s.Full) != "P2" || s.Recurrence != 1 || s.Dispatch != 7.0/4 {
		t.Errorf("axpy: %+v, want 3 cycles because of P2", s)
	}
	s = p.NewBody(sum, Options{}).Steady()
	if s.Cycles != 3 || s.Bottleneck != Recurrence || len(s.Cycle) != 2 || s.Cycle[0] != 1 || s.Cycle[1] != 4 || s.Iterations != 1 {
		t.Errorf("sum: %+v, want 3 cycles because of the addition and its phi", s)
	}
	// A higher load latency does not slow down a loop that does not wait for the load.
	slow := Options{LoadLatency: func(block int, site uint32) float64 { return 100 }}
	if s := p.NewBody(sum, slow).Steady(); s.Cycles != 3 {
		t.Errorf("sum with loads of 100 cycles: %+v, want 3 cycles", s)
	}
	chase := []trace.Instr{
		{Opcode: "phi", Type: "ptr", Uses: []int32{-2 - 1}},
		{Opcode: "load", Type: "ptr", Uses: []int32{0}, Site: 1},
		{Opcode: "icmp", Type: "ptr", Uses: []int32{1}},
		{Opcode: "br", Type: "i1", Uses: []int32{2}},
	}
	if s := p.NewBody(chase, slow).Steady(); s.Cycles != 100 || s.Bottleneck != Recurrence {
		t.Errorf("chase with loads of 100 cycles: %+v, want 100 cycles", s)
	}
	if s := p.NewBody(nil, Options{}).Steady(); s.Cycles != 0 || s.Bottleneck != Nothing {
		t.Errorf("nothing: %+v", s)
	}
}

func TestOnePass(t *testing.T) {
	p := toy(t)
	b := p.NewBody(axpy, Options{})
	s := b.OnePass()
	// The loads start in cycles 0 and 1 on P2. The addition starts in cycle 5, when the second load
	// is complete, and takes 3 cycles. The multiplication starts 4 cycles earlier, and the store
	// takes 1 more cycle.
	if s.Cycles != 12 || s.Last != 6 {
		t.Errorf("%v cycles with the last operation %d, want 12 cycles with operation 6", s.Cycles, s.Last)
	}
	var text strings.Builder
	for _, row := range s.Table(4, 20) {
		for _, op := range row {
			if op < 0 {
				text.WriteString(" .")
			} else {
				text.WriteString(" " + string(rune('0'+op)))
			}
		}
		text.WriteString("\n")
	}
	want := ` . . 2 .
 . 7 4 .
 9 . . .
 . . . .
 . 5 . .
 . . . .
 . . . .
 . . . .
 . 5 . .
 . . . .
 . . . .
 . . 6 .
`
	if text.String() != want {
		t.Errorf("the table is\n%swant\n%s", text.String(), want)
	}
}

func TestCostDependsOnType(t *testing.T) {
	p := toy(t)
	for _, c := range []struct {
		class Class
		typ   string
		want  string
	}{
		{FAdd, "double", "latency 3, uops 1, ports P1"},
		{FAdd, "float", "latency 3, uops 1, ports P1"},
		{FAdd, "<4 x double>", "latency 3, uops 1, ports P1"},
		{FAdd, "<3 x double>", "latency 3, uops 1, ports P1"},
		{FAdd, "<16 x double>", "latency 3, uops 4, ports 4x P1"},
		{FAdd, "<2 x float>", "latency 3, uops 2, ports 2x P1"}, // the description has no vector of floats, so the elements are added one by one
		{IAdd, "i128", "latency 1, uops 2, ports 2x P0|P1"},
		{FMA, "double", "latency 7, uops 2, ports P0|P1 + P1"},
		{Shift, "i32", "latency 1, uops 1, ports P0|P1"},
		{IMin, "i32", "latency 2, uops 2, ports 2x P0|P1"},
		{Sqrt, "double", "latency 13, uops 1, ports P0 + 4*P3"},
		{Load, "{ i64, ptr }", "latency 4, uops 1, ports P2"},
		{Load, "<1 x double>", "latency 4, uops 1, ports P2"},
	} {
		cost, ok := p.cost(c.class, shapeOf(c.typ))
		got := "latency " + decimal(cost.Latency) + ", uops " + decimal(float64(cost.MicroOps)) + ", ports " + p.usesText(cost.Uses)
		if !ok || got != c.want {
			t.Errorf("cost of %s %s = %s, want %s", c.class, c.typ, got, c.want)
		}
	}
	if _, ok := p.cost(IDiv, shapeOf("i64")); ok {
		t.Error("got a cost for an integer division, want none, as in the description")
	}
	b := p.NewBody([]trace.Instr{{Opcode: "sdiv", Type: "i64", Uses: []int32{-1, -1}}, {Opcode: "call sin", Type: "double"}}, Options{})
	if len(b.Missing) != 1 || b.Missing[0].Class != IDiv || len(b.Unknown) != 1 || b.Unknown[0] != "call sin" {
		t.Errorf("missing %v, unknown %v", b.Missing, b.Unknown)
	}
}

func TestInstructionsWithoutCost(t *testing.T) {
	p, err := Named("znver3")
	if err != nil {
		t.Fatal(err)
	}
	free := func(what string, at int, instrs ...trace.Instr) {
		t.Helper()
		if op := p.NewBody(instrs, Options{}).Ops[at]; op.Class != "" || op.Cost.MicroOps != 0 {
			t.Errorf("%s: operation %+v, want no cost", what, op)
		}
	}
	load := trace.Instr{Opcode: "load", Type: "i32", Uses: []int32{-1}}
	free("an extended load", 1, load, trace.Instr{Opcode: "sext", Type: "i64", Uses: []int32{0}})
	free("an addition in an address", 0, trace.Instr{Opcode: "add", Type: "i64", Uses: []int32{-1}},
		trace.Instr{Opcode: "getelementptr", Type: "ptr", Uses: []int32{-1, 0}})
	free("a comparison and its branch", 0, trace.Instr{Opcode: "icmp", Type: "i64", Uses: []int32{-1}}, trace.Instr{Opcode: "br", Type: "i1", Uses: []int32{0}})
	free("a comparison for a maximum", 0, trace.Instr{Opcode: "fcmp", Type: "double", Uses: []int32{-1, -1}},
		trace.Instr{Opcode: "select", Type: "double", Uses: []int32{0, -1, -1}})
	free("a jump", 0, trace.Instr{Opcode: "br"})
	free("a truncation", 1, load, trace.Instr{Opcode: "trunc", Type: "i8", Uses: []int32{0}})
	free("a mask of integers", 1, trace.Instr{Opcode: "icmp", Type: "<4 x i64>", Uses: []int32{-1}}, trace.Instr{Opcode: "zext", Type: "<4 x i64>", Uses: []int32{0}})
	free("a negation in a multiply-add", 0, trace.Instr{Opcode: "fneg", Type: "double", Uses: []int32{-1}},
		trace.Instr{Opcode: "llvm.fmuladd", Type: "double", Uses: []int32{0, -1, -1}})
	stored := p.NewBody([]trace.Instr{{Opcode: "load", Type: "<4 x double>", Uses: []int32{-1}}, {Opcode: "llvm.masked.store", Type: "void", Uses: []int32{0, -1}}}, Options{})
	if want, ok := p.cost(MaskedS, shapeOf("<4 x double>")); !ok || p.usesText(stored.Ops[1].Cost.Uses) != p.usesText(want.Uses) {
		t.Errorf("a masked store costs %+v, want %+v", stored.Ops[1].Cost, want)
	}
	b := p.NewBody([]trace.Instr{{Opcode: "udiv", Type: "i32", Uses: []int32{-1}}}, Options{})
	if b.Ops[0].Class != IMul || b.Ops[0].Cost.Latency > 8 {
		t.Errorf("a division by a constant: %+v, want a multiplication", b.Ops[0])
	}
}

// TestScaledProducts checks that a product with 3, 5 or 9 costs as much as an address computation.
func TestScaledProducts(t *testing.T) {
	product := func(factor, typ string) []trace.Instr {
		return []trace.Instr{{Opcode: "phi", Type: typ, Uses: []int32{-2 - 2}},
			{Opcode: "mul" + factor, Type: typ, Uses: []int32{0}}, {Opcode: "add", Type: typ, Uses: []int32{1}}}
	}
	for _, c := range []struct {
		processor, factor, typ string
		class                  Class
		recurrence             float64 // of x = factor × x + constant
	}{
		{"znver4", " 3", "i64", Scaled, 2}, // one address computation, which also adds the constant
		{"znver4", " 5", "i32", Scaled, 2},
		{"znver4", " 9", "i8", Scaled, 2},
		{"znver4", "", "i64", IMul, 4},
		{"znver4", " 3", "i128", IMul, 0}, // several instructions
		{"znver4", " 3", "<4 x i32>", IMul, 4},
		{"sapphirerapids", " 3", "i64", Scaled, 2}, // an address computation and an addition
		{"neoverse-v2", " 3", "i64", Scaled, 2},
	} {
		p, err := Named(c.processor)
		if err != nil {
			t.Fatal(err)
		}
		b := p.NewBody(product(c.factor, c.typ), Options{})
		if got := b.Steady().Recurrence; b.Ops[1].Class != c.class || c.recurrence > 0 && got != c.recurrence {
			t.Errorf("%s: a chain of mul%s %s has class %s and takes %v cycles, want %s and %v", c.processor, c.factor, c.typ, b.Ops[1].Class, got, c.class, c.recurrence)
		}
		shared := append(product(c.factor, c.typ), trace.Instr{Opcode: "store", Type: c.typ, Uses: []int32{1, -1}})
		if b = p.NewBody(shared, Options{}); b.Ops[2].Class != IAdd {
			t.Errorf("%s: the sum costs %+v although the product has another user", c.processor, b.Ops[2])
		}
	}
}

// TestZenDivision checks the throughput of divisions on AMD Zen 4, which differs from LLVM's tables.
func TestZenDivision(t *testing.T) {
	p, err := Named("znver4")
	if err != nil {
		t.Fatal(err)
	}
	divide := []trace.Instr{{Opcode: "udiv", Type: "i32", Uses: []int32{-1, -1}}}
	if got := p.NewBody(divide, Options{}).Steady().Cycles; got != 6 {
		t.Errorf("independent 32-bit divisions take %v cycles each, want 6", got)
	}
}

func TestMultiplyAddChains(t *testing.T) {
	p := toy(t)
	p.Set(Key{FMA, "double"}, Cost{Latency: 4, Addend: 2, MicroOps: 1, Uses: []Use{{Ports: 1, Cycles: 1}}})
	body := func(uses ...int32) float64 {
		return p.NewBody([]trace.Instr{{Opcode: "phi", Type: "double", Uses: []int32{-3}}, {Opcode: "llvm.fma", Type: "double", Uses: uses}}, Options{}).Steady().Recurrence
	}
	if got := body(-1, -1, 0); got != 2 {
		t.Errorf("a chain of addends takes %v cycles, want 2", got)
	}
	if got := body(0, -1, -1); got != 4 {
		t.Errorf("a chain of factors takes %v cycles, want 4", got)
	}
	p.Set(Key{FAdd, "double"}, Cost{Latency: 3, Again: 2, MicroOps: 1, Uses: []Use{{Ports: 1, Cycles: 1}}})
	if got := p.NewBody(sum, Options{}).Steady().Recurrence; got != 2 {
		t.Errorf("a chain of additions takes %v cycles, want 2", got)
	}
}

func TestLoopOfSeveralBlocks(t *testing.T) {
	p := toy(t)
	add := trace.Instr{Opcode: "fadd", Type: "double", Uses: []int32{-1, -1}}
	head := Piece{[]trace.Instr{{Opcode: "phi", Type: "double", Uses: []int32{-1, -1}}, add}, 1}
	side := Piece{[]trace.Instr{add, add}, 0.5}
	carried := []Carried{
		{Piece: 0, Instr: 1, FromPiece: 0, FromInstr: 0},
		{Piece: 0, Instr: 0, FromPiece: 1, FromInstr: 1, Before: 1},
		{Piece: 1, Instr: 0, FromPiece: 0, FromInstr: 1},
		{Piece: 1, Instr: 1, FromPiece: 1, FromInstr: 0},
		{Piece: 7, Instr: 1},
	}
	s := p.NewChain([]Piece{head, side}, carried, Options{}).Steady()
	// Each iteration performs one addition, and every second iteration performs two further
	// additions. The recurrence takes 3 + 3/2 + 3/2 cycles, and the additions occupy P1 for 2
	// cycles.
	if s.Ports != 2 || s.Recurrence != 6 {
		t.Errorf("%+v, want 2 cycles for the ports and 6 for the recurrence", s)
	}
}

// TestLoadWaitsForLineFill checks that a load waits for the line of an earlier load with the same
// base address, even in another block, and that it does not wait for other lines.
func TestLoadWaitsForLineFill(t *testing.T) {
	p := toy(t)
	node := trace.Instr{Opcode: "phi", Type: "ptr", Uses: []int32{-2 - 3}}
	field := trace.Instr{Opcode: "getelementptr", Type: "ptr", Uses: []int32{0}}
	value := trace.Instr{Opcode: "load", Type: "i64", Uses: []int32{1}, Site: 1}
	next := trace.Instr{Opcode: "load", Type: "ptr", Uses: []int32{0}, Site: 2}
	indexed := trace.Instr{Opcode: "getelementptr", Type: "ptr", Uses: []int32{-1, 0}}
	missing := func(site uint32) Options { // the load at this site takes 40 cycles, which is 36 cycles more than a hit
		return Options{
			LoadLatency: func(_ int, s uint32) float64 {
				if s == site {
					return 40
				}
				return 4
			},
			FillWait: func(load, fetching Access, between int) float64 {
				if between != 0 || load.Site == fetching.Site {
					t.Errorf("FillWait was called with the sites %d and %d and %d references between them, want two different sites and 0 references", load.Site, fetching.Site, between)
				}
				if fetching.Site == site {
					return 36
				}
				return 0
			},
		}
	}
	for _, c := range []struct {
		instrs []trace.Instr
		misses uint32
		want   float64
	}{
		{[]trace.Instr{node, field, value, next}, 1, 40},
		{[]trace.Instr{node, field, value, next}, 2, 40},
		{[]trace.Instr{node, indexed, value, next}, 1, 4}, // a different base address
	} {
		if got := p.NewBody(c.instrs, missing(c.misses)).Steady().Recurrence; got != c.want {
			t.Errorf("%v with misses at site %d: recurrence of %v cycles, want %v", c.instrs, c.misses, got, c.want)
		}
	}
	// The same loads are now in two blocks.
	head := Piece{[]trace.Instr{{Opcode: "phi", Type: "ptr", Uses: []int32{-1}}, {Opcode: "getelementptr", Type: "ptr", Uses: []int32{0}}, value}, 1}
	latch := Piece{[]trace.Instr{{Opcode: "load", Type: "ptr", Uses: []int32{-1}, Site: 2}}, 1}
	carried := []Carried{{Piece: 1, Instr: 0, FromPiece: 0, FromInstr: 0}, {Piece: 0, Instr: 0, FromPiece: 1, FromInstr: 0, Before: 1}}
	if got := p.NewChain([]Piece{head, latch}, carried, missing(1)).Steady().Recurrence; got != 40 {
		t.Errorf("loads in two blocks take %v cycles, want 40", got)
	}
}

// naivePorts computes the port bound by trying all sets of ports.
func naivePorts(list []demand, ports int) (most float64) {
	for set := uint64(1); set < 1<<ports; set++ {
		most = max(most, ratio(list, set))
	}
	return most
}

func TestPortBoundEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports := rapid.IntRange(1, 7).Draw(t, "ports")
		b := &Body{Processor: &Processor{Ports: make([]string, ports)}}
		n := rapid.IntRange(0, 10).Draw(t, "micro-ops")
		for range n {
			b.Ops = append(b.Ops, Op{Weight: rapid.SampledFrom([]float64{1, 1, 0.5, 1.0 / 3}).Draw(t, "weight"), Cost: Cost{Uses: []Use{{
				Ports:  rapid.Uint64Range(1, 1<<ports-1).Draw(t, "set"),
				Cycles: float64(rapid.IntRange(1, 5).Draw(t, "cycles")),
			}}}})
		}
		got, full, load := b.portBound()
		want := naivePorts(b.demands(), ports)
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("the port bound is %v cycles, want %v", got, want)
		}
		total, demanded := 0.0, 0.0
		for q, l := range load {
			if total += l; l > got+1e-9 {
				t.Fatalf("port %d has load %v, want at most the bound %v", q, l, got)
			}
		}
		for _, d := range b.demands() {
			demanded += d.cycles
		}
		if math.Abs(total-demanded) > 1e-6 {
			t.Fatalf("the ports have a total load of %v, want %v", total, demanded)
		}
		if n > 0 && math.Abs(ratio(b.demands(), full)-got) > 1e-9 {
			t.Fatalf("the bound is %v, want %v, the load of the full ports %b", got, ratio(b.demands(), full), full)
		}
	})
}

// naiveRecurrence finds the maximum mean of a circuit by bisection. A guess is too small if a
// circuit still has a positive length after the guess has been subtracted from each edge.
func naiveRecurrence(b *Body) float64 {
	gains := func(mean float64) bool {
		way := make([]float64, len(b.Ops))
		for range len(b.Ops) + 1 {
			changed := false
			for i := range b.Ops {
				for _, w := range b.Ops[i].Waits {
					if g := way[w.Op] + w.Cycles - mean*float64(w.Before); g > way[i]+1e-9 {
						way[i], changed = g, true
					}
				}
			}
			if !changed {
				return false
			}
		}
		return true
	}
	low, high := 0.0, 1e4
	for range 60 {
		if middle := (low + high) / 2; gains(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

func randomBody(t *rapid.T) *Body {
	b := &Body{Processor: &Processor{Ports: make([]string, 3), Dispatch: rapid.IntRange(1, 4).Draw(t, "dispatch")}}
	n := rapid.IntRange(0, 12).Draw(t, "operations")
	for i := range n {
		op := Op{Weight: 1, Class: IAdd, Cost: Cost{Latency: float64(rapid.IntRange(0, 5).Draw(t, "latency")), MicroOps: rapid.IntRange(0, 3).Draw(t, "micro-ops")}}
		for range op.Cost.MicroOps {
			op.Cost.Uses = append(op.Cost.Uses, Use{Ports: rapid.Uint64Range(1, 7).Draw(t, "set"), Cycles: float64(rapid.IntRange(1, 3).Draw(t, "cycles")), After: float64(rapid.IntRange(0, 4).Draw(t, "after"))})
		}
		for range rapid.IntRange(0, 2).Draw(t, "waits") {
			w := Wait{Op: uint32(rapid.IntRange(0, n-1).Draw(t, "from")), Before: uint32(rapid.IntRange(0, 3).Draw(t, "before"))}
			if int(w.Op) >= i && w.Before == 0 {
				w.Before = 1
			}
			op.Waits = append(op.Waits, w)
		}
		b.Ops = append(b.Ops, op)
	}
	for i := range b.Ops {
		for k := range b.Ops[i].Waits {
			b.Ops[i].Waits[k].Cycles = b.Ops[b.Ops[i].Waits[k].Op].Cost.Latency
		}
	}
	return b
}

func TestRecurrenceEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := randomBody(t)
		got, cycle, iterations := b.recurrence()
		want := naiveRecurrence(b)
		if math.Abs(got-want) > 1e-6 {
			t.Fatalf("the recurrence takes %v cycles, want %v", got, want)
		}
		if got == 0 {
			return
		}
		// The returned operations must form a circuit with the returned mean.
		sum := 0.0
		for k, v := range cycle {
			next := cycle[(k+1)%len(cycle)]
			best := math.Inf(-1)
			for _, w := range b.Ops[next].Waits {
				if w.Op == v {
					best = max(best, w.Cycles-got*float64(w.Before))
				}
			}
			sum += best
		}
		if len(cycle) == 0 || math.Abs(sum) > 1e-6 || iterations == 0 {
			t.Fatalf("circuit %v over %d iterations differs by %v cycles from the mean %v", cycle, iterations, sum, got)
		}
	})
}

func TestSchedulesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := randomBody(t)
		s := b.OnePass()
		busy := map[[2]uint32]bool{}
		need := 0
		for _, slot := range s.Slots {
			for at := slot.Cycle; at < slot.Cycle+slot.Cycles; at++ {
				if busy[[2]uint32{at, uint32(slot.Port)}] {
					t.Fatalf("port %d is occupied twice in cycle %d", slot.Port, at)
				}
				busy[[2]uint32{at, uint32(slot.Port)}] = true
			}
			if float64(slot.Cycle) < s.Starts[slot.Op].Cycle-1 {
				t.Fatalf("operation %d occupies a port before it starts", slot.Op)
			}
		}
		for i := range b.Ops {
			need += len(b.Ops[i].Cost.Uses)
			for _, w := range b.Ops[i].Waits {
				if w.Before == 0 && s.Starts[i].Cycle < s.Starts[w.Op].Cycle+w.Cycles {
					t.Fatalf("operation %d starts before its operands are available", i)
				}
			}
		}
		if len(s.Slots) != need {
			t.Fatalf("%d micro-ops were assigned to ports, want %d", len(s.Slots), need)
		}
		last := 0.0
		for _, slot := range s.Slots {
			last = max(last, float64(slot.Cycle+slot.Cycles))
		}
		if ports, _, _ := b.portBound(); last < ports-1e-9 {
			t.Fatalf("the last port use ends after %v cycles, want at least the port bound %v", last, ports)
		}
	})
}

// TestPortsOccupiedForManyCycles checks that scheduling is fast even if micro-ops occupy ports for
// a million cycles.
func TestPortsOccupiedForManyCycles(t *testing.T) {
	p, err := Read([]byte("name: x\nports: a b c\ndispatch: 1\nclasses:\n  iadd: latency 1000000, uops 3, ports 3x 1000000*a|b + 999999*c\n"))
	if err != nil {
		t.Fatal(err)
	}
	instrs := make([]trace.Instr, 300)
	for i := range instrs {
		instrs[i] = trace.Instr{Opcode: "add", Type: "i64", Uses: []int32{int32(i) - 1, -1}}
	}
	b := p.NewBody(instrs, Options{})
	if s := b.OnePass(); s.Cycles < 1e6 {
		t.Errorf("%v cycles", s.Cycles)
	}
	if s := b.Steady(); s.Cycles != 300*1.5e6 {
		t.Errorf("%+v", s)
	}
}
