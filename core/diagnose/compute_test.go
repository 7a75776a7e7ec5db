package diagnose

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/trace"
)

// TestSourceIteration checks that cycles refer to one iteration of the source loop if the unrolling
// is known, and otherwise to one iteration of the compiled loop.
func TestSourceIteration(t *testing.T) {
	load := func(line uint32) trace.Site {
		return trace.Site{Kind: trace.Load, Bytes: 8, Place: trace.Place{File: "a.c", Line: line}}
	}
	for name, c := range map[string]struct {
		sites      []trace.Site
		sources    map[uint32]source
		each       string
		iterations float64
	}{
		"not unrolled":                  {[]trace.Site{load(1), load(2)}, nil, "each iteration", 1},
		"unrolled four times":           {[]trace.Site{load(1), load(1), load(1), load(1)}, map[uint32]source{0: {copies: 4}, 1: {copies: 4}, 2: {copies: 4}, 3: {copies: 4}}, "each iteration", 4},
		"unrolled by an unknown factor": {[]trace.Site{load(1), load(1)}, nil, "each iteration of the compiled loop", 1},
		"one of two loads unrolled":     {[]trace.Site{load(1), load(2)}, map[uint32]source{0: {copies: 4}}, "each iteration of the compiled loop", 1},
		"no references of the loop":     {nil, nil, "each iteration", 1},
	} {
		r := &run{sources: c.sources, cost: &costs{program: &trace.Program{Sites: c.sites, Blocks: []trace.Block{{Sites: uint32(len(c.sites))}}}}}
		if each, iterations := r.sourceIteration(0); each != c.each || iterations != c.iterations {
			t.Errorf("%s: sourceIteration = %q, %v; want %q, %v", name, each, iterations, c.each, c.iterations)
		}
	}
}

// TestLineOfDependenceChain uses a loop such as z = 0.9*z + x[i]; y[i] = z. The test checks that a finding
// names the line of the dependence chain, and not the line of the store.
func TestLineOfDependenceChain(t *testing.T) {
	site := func(kind trace.Kind, line uint32) trace.Site {
		return trace.Site{Kind: kind, Place: trace.Place{File: "a.c", Line: line}}
	}
	filter := []trace.Instr{
		{Opcode: "load", Site: 1, Uses: []int32{-1}}, {Opcode: "fmul", Uses: []int32{0}},
		{Opcode: "fmul", Uses: []int32{-2 - 3}}, {Opcode: "fadd", Uses: []int32{1, 2}}, {Opcode: "store", Site: 2, Uses: []int32{3, -1}},
	}
	list := []trace.Instr{{Opcode: "load", Site: 1, Uses: []int32{-1}}, {Opcode: "load", Site: 2, Uses: []int32{-2 - 1}}}
	for name, c := range map[string]struct {
		instrs []trace.Instr
		cycle  []uint32
		file   string
		want   uint32
	}{
		"a filter":                       {filter, []uint32{2, 3}, "a.c", 30},
		"a chain of loads":               {list, []uint32{1}, "a.c", 31},
		"a chain without loads":          {[]trace.Instr{{Opcode: "add", Uses: []int32{-2}}}, []uint32{0}, "a.c", 0},
		"a load in another file":         {filter, []uint32{2, 3}, "b.c", 0},
		"an operation outside the block": {filter, []uint32{9}, "a.c", 0},
	} {
		k := trace.Block{File: c.file, Sites: 2, Instrs: c.instrs}
		hits := &pipeline.Runtime{Blocks: []pipeline.BlockTime{{Steady: pipeline.Steady{Cycle: c.cycle}}}}
		r := &run{cost: &costs{hits: hits, program: &trace.Program{Sites: []trace.Site{site(trace.Load, 30), site(trace.Store, 31)}, Blocks: []trace.Block{k}}}}
		if got := r.chainLine(0); got != c.want {
			t.Errorf("%s: chainLine = %d, want %d", name, got, c.want)
		}
	}
}

// TestReplaceDivisions checks that advice about dividing integers is not given for floating-point
// divisions.
func TestReplaceDivisions(t *testing.T) {
	for name, c := range map[string]struct {
		fractions, integers        int
		reciprocal, whole, illegal bool
	}{
		"floating-point numbers": {1, 0, true, false, true},
		"integers":               {0, 1, false, true, false},
		"both":                   {1, 1, true, true, true},
	} {
		fix, illegalIf := replaceDivisions(c.fractions, c.integers)
		if strings.Contains(fix, "reciprocal") != c.reciprocal || strings.Contains(fix, "power of two") != c.whole || (illegalIf != "") != c.illegal {
			t.Errorf("%s: replaceDivisions = %q, illegal if %q", name, fix, illegalIf)
		}
	}
}
