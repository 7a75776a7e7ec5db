package pipeline

import (
	"math"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

const plain = trace.X86

func named(t testing.TB, name string) *Processor {
	t.Helper()
	p, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bySums generates a random loop body with multiply-adds (fused), and the same body with a product
// and a sum in place of each multiply-add (apart).
func bySums(t *rapid.T, typ string) (fused, apart []trace.Instr) {
	n := rapid.IntRange(1, 8).Draw(t, "instructions")
	at := []int32{0} // for each instruction in fused, its index in apart
	fused = []trace.Instr{{Opcode: "phi", Type: typ}}
	apart = []trace.Instr{{Opcode: "phi", Type: typ}}
	operand := func(what string) int { return rapid.IntRange(-1, len(fused)-1).Draw(t, what) }
	in := func(o int) int32 {
		if o < 0 {
			return -1
		}
		return at[o]
	}
	for range n {
		x, y, z := operand("x"), operand("y"), operand("z")
		opcode := rapid.SampledFrom([]string{"llvm.fmuladd", "llvm.fmuladd", "fadd", "fmul"}).Draw(t, "opcode")
		if opcode != "llvm.fmuladd" {
			fused = append(fused, trace.Instr{Opcode: opcode, Type: typ, Uses: []int32{int32(x), int32(y)}})
			apart = append(apart, trace.Instr{Opcode: opcode, Type: typ, Uses: []int32{in(x), in(y)}})
			at = append(at, int32(len(apart)-1))
			continue
		}
		fused = append(fused, trace.Instr{Opcode: opcode, Type: typ, Uses: []int32{int32(x), int32(y), int32(z)}})
		product := int32(len(apart))
		apart = append(apart, trace.Instr{Opcode: "fmul", Type: typ, Uses: []int32{in(x), in(y)}},
			trace.Instr{Opcode: "fadd", Type: typ, Uses: []int32{product, in(z)}})
		at = append(at, product+1)
	}
	last := rapid.IntRange(0, len(fused)-1).Draw(t, "carried")
	fused[0].Uses, apart[0].Uses = []int32{-2 - int32(last)}, []int32{-2 - at[last]}
	return fused, apart
}

func TestMultiplyAddIsProductAndSum(t *testing.T) {
	names := []string{"sapphirerapids-measured", "skylake-avx512", "znver4", "alderlake"}
	rapid.Check(t, func(t *rapid.T) {
		p, err := Named(rapid.SampledFrom(names).Draw(t, "processor"))
		if err != nil {
			t.Fatal(err)
		}
		fused, apart := bySums(t, rapid.SampledFrom([]string{"double", "float", "<2 x double>", "<4 x float>", "<8 x float>"}).Draw(t, "type"))
		o := Options{Target: plain}
		got, want := p.NewBody(fused, o).Steady(), p.NewBody(apart, o).Steady()
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if !near(got.Recurrence, want.Recurrence) || !near(got.Ports, want.Ports) || !near(got.Dispatch, want.Dispatch) {
			t.Fatalf("recurrence %v, ports %v, dispatch %v; want %v, %v, %v", got.Recurrence, got.Ports, got.Dispatch, want.Recurrence, want.Ports, want.Dispatch)
		}
	})
}

// TestFusedSums checks that a product and a sum that may be fused are fused if and only if the
// target has FMA.
func TestFusedSums(t *testing.T) {
	names := []string{"sapphirerapids-measured", "znver4", "neoverse-n1", "neoverse-v2"}
	rapid.Check(t, func(t *rapid.T) {
		p, err := Named(rapid.SampledFrom(names).Draw(t, "processor"))
		if err != nil {
			t.Fatal(err)
		}
		fused, apart := bySums(t, "double")
		o := Options{Target: trace.Contract | rapid.SampledFrom([]trace.Target{0, plain, plain | trace.FMA}).Draw(t, "target")}
		got, want := p.NewBody(apart, o).Steady(), p.NewBody(fused, o).Steady()
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if !near(got.Recurrence, want.Recurrence) || !near(got.Ports, want.Ports) || !near(got.Dispatch, want.Dispatch) {
			t.Fatalf("recurrence %v, ports %v, dispatch %v; want %v, %v, %v", got.Recurrence, got.Ports, got.Dispatch, want.Recurrence, want.Ports, want.Dispatch)
		}
	})
	p := named(t, "znver4")
	product := trace.Instr{Opcode: "fmul", Type: "double", Uses: []int32{-1, -1}}
	sum := func(uses ...int32) []trace.Instr {
		return []trace.Instr{product, {Opcode: "fadd", Type: "double", Uses: uses}}
	}
	fma := trace.Contract | trace.X86 | trace.FMA
	for _, c := range []struct {
		about  string
		target trace.Target
		list   []trace.Instr
		fused  bool
	}{
		{"a sum", fma, sum(-1, 0), true},
		{"a difference", trace.Contract, []trace.Instr{product, {Opcode: "fsub", Type: "double", Uses: []int32{0, -1}}}, true},
		{"with a constant", fma, sum(0), true},
		{"not allowed", trace.X86 | trace.FMA, sum(-1, 0), false},
		{"without FMA", trace.Contract | trace.X86, sum(-1, 0), false},
		{"twice the product", fma, sum(0, 0), false},
		{"stored too", fma, append(sum(-1, 0), trace.Instr{Opcode: "store", Type: "double", Uses: []int32{0, -1}}), false},
		{"from the previous iteration", fma, sum(-1, -2), false},
	} {
		b := p.NewBody(c.list, Options{Target: c.target})
		if got := b.Ops[1].Class == FMA && b.Ops[0].Class == ""; got != c.fused {
			t.Errorf("%s: classes %q and %q, want fused = %v", c.about, b.Ops[0].Class, b.Ops[1].Class, c.fused)
		}
	}
}

// TestChainOfSums checks a dot product. Without FMA, each sum waits only for the previous sum. With
// FMA, each multiply-add waits for the previous multiply-add.
func TestChainOfSums(t *testing.T) {
	dot := func(typ string) []trace.Instr {
		return []trace.Instr{
			{Opcode: "phi", Type: typ, Uses: []int32{-2 - 3}},
			{Opcode: "load", Type: typ, Uses: []int32{-1}}, {Opcode: "load", Type: typ, Uses: []int32{-1}},
			{Opcode: "llvm.fmuladd", Type: typ, Uses: []int32{1, 2, 0}},
		}
	}
	for _, c := range []struct {
		processor string
		target    trace.Target
		want      float64
	}{
		{"sapphirerapids", plain, 3}, {"sapphirerapids", plain | trace.FMA, 4}, {"sapphirerapids", 0, 4},
		{"sapphirerapids-measured", plain, 2}, {"sapphirerapids-measured", plain | trace.FMA, 4},
		{"znver4", plain, 3}, {"znver4", plain | trace.FMA, 4},
		// Code for another architecture is treated as if it were compiled for this processor.
		{"neoverse-v2", plain, 2}, {"neoverse-v2", 0, 2},
	} {
		if got := named(t, c.processor).NewBody(dot("double"), Options{Target: c.target}).Steady().Recurrence; got != c.want {
			t.Errorf("%s, target %b: %v cycles, want %v", c.processor, c.target, got, c.want)
		}
	}
	// An operand from another block of the loop is treated as the addend.
	p := named(t, "sapphirerapids")
	pieces := []Piece{{Instrs: dot("double")[:1], Weight: 1}, {Instrs: []trace.Instr{{Opcode: "llvm.fmuladd", Type: "double", Uses: []int32{-1, -1, -1}}}, Weight: 1}}
	pieces[0].Instrs[0].Uses = []int32{-1}
	carried := []Carried{{Piece: 1, Instr: 0, FromPiece: 0, FromInstr: 0}, {Piece: 0, Instr: 0, FromPiece: 1, FromInstr: 0, Before: 1}}
	if got := p.NewChain(pieces, carried, Options{Target: plain}).Steady().Recurrence; got != 3 {
		t.Errorf("a multiply-add with a carried addend takes %v cycles, want 3", got)
	}
}

func TestVectorsWiderThanRegisters(t *testing.T) {
	p := named(t, "sapphirerapids")
	for _, c := range []struct {
		opcode, typ string
		target      trace.Target
		want        string // the operation whose cost is used
		times       int
	}{
		{"fadd", "<8 x double>", plain, "<2 x double>", 4},
		{"fadd", "<8 x double>", plain | trace.AVX, "<4 x double>", 2},
		{"fadd", "<8 x double>", plain | trace.AVX512, "<8 x double>", 1},
		{"fadd", "<8 x double>", 0, "<8 x double>", 1},
		{"add", "<8 x i32>", plain | trace.AVX, "<4 x i32>", 2},
		{"add", "<8 x i32>", plain | trace.AVX | trace.AVX2, "<8 x i32>", 1},
		{"add", "<3 x i32>", plain, "<4 x i32>", 1},
		{"load", "<8 x float>", plain, "<4 x float>", 2},
		{"fadd", "double", plain, "double", 1},
	} {
		class, _ := kindOf(&trace.Instr{Opcode: c.opcode, Type: c.typ})
		one, found := p.Cost(Key{class, c.want})
		if !found {
			t.Fatalf("no %s %s", class, c.want)
		}
		want := one.repeated(c.times)
		got := p.NewBody([]trace.Instr{{Opcode: c.opcode, Type: c.typ, Uses: []int32{-1, -1}}}, Options{Target: c.target}).Ops[0].Cost
		if got.MicroOps != want.MicroOps || got.Latency != want.Latency || p.usesText(got.Uses) != p.usesText(want.Uses) {
			t.Errorf("%s %s, target %b: cost %+v, want %+v, the cost of %d of %s", c.opcode, c.typ, c.target, got, want, c.times, c.want)
		}
	}
}

// TestMissingInstructions checks the costs of operations for which the target has no instruction.
func TestMissingInstructions(t *testing.T) {
	p := named(t, "sapphirerapids")
	library := func(opcode string, target trace.Target) bool {
		b := p.NewBody([]trace.Instr{{Opcode: opcode, Type: "double", Uses: []int32{-1}}}, Options{Target: target})
		return slices.Contains(b.Unknown, opcode) && b.Ops[0].Class == Call
	}
	for _, c := range []struct {
		opcode  string
		without bool // whether the operation becomes a call on baseline x86-64
		with    bool // whether the operation becomes a call if all features are available
	}{
		{"llvm.fma", true, false}, {"llvm.fmuladd", false, false}, {"llvm.floor", true, false}, {"llvm.rint", true, false},
		{"llvm.round", true, false}, {"llvm.lround", true, true}, {"llvm.lrint", false, false}, {"trunc", false, false}, {"llvm.sqrt", false, false},
	} {
		all := trace.Target(1<<32 - 1).Known()
		if a, b := library(c.opcode, plain), library(c.opcode, all); a != c.without || b != c.with {
			t.Errorf("library(%s) = %v on baseline x86-64 and %v with all features, want %v and %v", c.opcode, a, b, c.without, c.with)
		}
	}
	for _, c := range []struct {
		opcode, typ string
		target      trace.Target
		uops        int
	}{
		{"llvm.ctpop", "i64", plain, 12}, {"llvm.ctpop", "i64", plain | trace.POPCNT, 1},
		{"llvm.smax", "<4 x i32>", plain, 4}, {"llvm.smax", "<4 x i32>", plain | trace.SSE41, 1}, {"llvm.smax", "<8 x i16>", plain, 1},
		{"llvm.umin", "<16 x i8>", plain, 1}, {"llvm.smin", "<16 x i8>", plain, 4}, {"llvm.smin", "<2 x i64>", plain, 10},
		{"select", "<4 x i32>", plain, 3}, {"select", "double", plain, 3}, {"select", "i32", plain, 1},
		{"sext", "<4 x i32>", plain, 2}, {"zext", "<4 x i32>", plain, 1}, {"sext", "<4 x i32>", plain | trace.SSE41, 1},
		{"mul", "<4 x i32>", plain, 6}, {"mul", "<2 x i64>", plain | trace.AVX2, 8},
		{"icmp", "<2 x i64>", plain, 7}, {"icmp", "<4 x i32>", plain, 1}, {"fcmp", "<2 x double>", plain, 1},
		{"llvm.fshl", "<4 x i32>", plain, 3}, {"llvm.minnum", "double", plain, 5}, {"llvm.minnum", "double", 0, 3},
	} {
		b := p.NewBody([]trace.Instr{{Opcode: c.opcode, Type: c.typ, Uses: []int32{-1, -1, -1}}}, Options{Target: c.target})
		if got := b.Ops[0].Cost.MicroOps; got != c.uops || len(b.Missing) > 0 {
			t.Errorf("%s %s, target %b: %d micro-ops, want %d; missing %v", c.opcode, c.typ, c.target, got, c.uops, b.Missing)
		}
	}
}
