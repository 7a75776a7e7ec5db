package tracetest

import "github.com/stackglass/stackglass/core/trace"

// Multiplication returns the program's tables and the steps of a run of C = A·B of n × n doubles, as a
// compiler makes it: main clears C, calls multiply and then printf. The innermost loop runs n³ times with
// three loads, a store and two flops.
func Multiplication(n uint64) (*trace.Program, []Step) {
	p := multiplication()
	a, b, c := uint64(1)<<20, uint64(1)<<24, uint64(1)<<28
	steps := []Step{{Block: 0, Values: []uint64{c, 8 * n * n}}, {Block: 2}}
	for i := range n {
		steps = append(steps, Step{Block: 3})
		for j := range n {
			steps = append(steps, Step{Block: 4})
			for k := range n {
				at := c + 8*(i*n+j)
				steps = append(steps, Step{Block: 5, Values: []uint64{a + 8*(i*n+k), b + 8*(k*n+j), at, at}})
			}
			steps = append(steps, Step{Block: 6})
		}
		steps = append(steps, Step{Block: 7})
	}
	steps = append(steps, Step{Block: 8}, Step{Block: 1})
	return p, steps
}

func multiplication() *trace.Program {
	op := func(opcode, of string, count uint32) trace.Op {
		return trace.Op{Opcode: opcode, Type: of, Count: count}
	}
	counting := []trace.Op{op("phi", "i64", 1), op("add", "i64", 1), op("icmp", "i64", 1), op("br", "i1", 1)}
	p := &trace.Program{
		Modules: []trace.Module{{Name: "src/multiply.c", Options: "-O1"}},
		Functions: []trace.Function{
			{Name: "main", Place: trace.Place{File: "src/multiply.c", Line: 20}, First: 0, Blocks: 2},
			{Name: "multiply", Place: trace.Place{File: "src/multiply.c", Line: 5}, First: 2, Blocks: 7},
		},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, FirstLine: 21, LastLine: 22, Sites: 1, Callee: "multiply",
				Ops: []trace.Op{op("llvm.memset", "void", 1), op("call", "void", 1)}, Successors: []uint32{1}},
			{Label: "entry", Part: 1, Flags: trace.ReturnBlock, FirstLine: 23, LastLine: 24, Callee: "printf",
				Ops: []trace.Op{op("call", "i32", 1), op("ret", "i32", 1)}},
			{Function: 1, Label: "entry", Flags: trace.EntryBlock, FirstLine: 5, LastLine: 6, Ops: []trace.Op{op("br", "", 1)}, Successors: []uint32{3}},
			{Function: 1, Label: "rows", Flags: trace.HeaderBlock, FirstLine: 6, LastLine: 6, Ops: counting, Successors: []uint32{4, 8}},
			{Function: 1, Label: "columns", Flags: trace.HeaderBlock, FirstLine: 7, LastLine: 7, Ops: counting, Successors: []uint32{5, 7}},
			{Function: 1, Label: "products", Flags: trace.HeaderBlock | trace.LatchBlock, FirstLine: 8, LastLine: 9, FirstSite: 1, Sites: 4,
				Ops: append([]trace.Op{op("load", "double", 3), op("getelementptr", "ptr", 3), op("fmul", "double", 1),
					op("fadd", "double", 1), op("store", "double", 1)}, counting...), Successors: []uint32{5, 6}},
			{Function: 1, Label: "next.column", Flags: trace.LatchBlock, FirstLine: 7, LastLine: 7, Ops: []trace.Op{op("br", "", 1)}, Successors: []uint32{4}},
			{Function: 1, Label: "next.row", Flags: trace.LatchBlock, FirstLine: 6, LastLine: 6, Ops: []trace.Op{op("br", "", 1)}, Successors: []uint32{3}},
			{Function: 1, Label: "end", Flags: trace.ReturnBlock, FirstLine: 10, LastLine: 10, Ops: []trace.Op{op("ret", "void", 1)}},
		},
		Sites: []trace.Site{{Kind: trace.RangeWrite, Block: 0, Object: "C"}},
	}
	for i := range p.Blocks {
		p.Blocks[i].File = "src/multiply.c"
	}
	for _, object := range []string{"A", "B", "C"} {
		p.Sites = append(p.Sites, trace.Site{Kind: trace.Load, Bytes: 8, Block: 5, Type: "double", Object: object})
	}
	p.Sites = append(p.Sites, trace.Site{Kind: trace.Store, Bytes: 8, Block: 5, Type: "double", Object: "C"})
	return p
}
