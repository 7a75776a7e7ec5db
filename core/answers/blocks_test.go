package answers

import (
	"testing"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// halfTakenBranch returns a program whose main function takes each direction of a branch half of the time.
func halfTakenBranch() *trace.Program {
	add := []trace.Op{{Opcode: "add", Type: "i32", Count: 2}, {Opcode: "br", Count: 1}}
	return &trace.Program{
		Functions: []trace.Function{{Name: "main", Blocks: 4}, {Name: "unused", First: 4, Blocks: 1}},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{1, 2}, Ops: add},
			{Label: "more", Successors: []uint32{3}, Ops: append(add, trace.Op{Opcode: "fadd", Type: "double", Count: 1})},
			{Label: "less", Successors: []uint32{3}, Ops: add},
			{Label: "out", Flags: trace.ReturnBlock, Ops: []trace.Op{{Opcode: "ret", Count: 1}}},
			{Function: 1, Label: "entry", Flags: trace.EntryBlock | trace.ReturnBlock},
		},
	}
}

func solved(t *testing.T, invocations uint64, weights ...uint64) *Blocks {
	t.Helper()
	s, err := blocks.NewSystem(halfTakenBranch())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set(0, weights, 0); err != nil {
		t.Fatal(err)
	}
	s.Enter(0, invocations)
	b, err := NewBlocks(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func cells(t *report.Table, column string) (list []string) {
	for _, row := range t.Rows {
		list = append(list, row[t.Index(column)].Plain())
	}
	return list
}

func wantCells(t *testing.T, table report.Table, column string, want ...string) {
	t.Helper()
	got := cells(&table, column)
	if len(got) != len(want) {
		t.Fatalf("column %s = %q, want %q", column, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("column %s = %q, want %q", column, got, want)
		}
	}
}

func TestBlockTables(t *testing.T) {
	b := solved(t, 10, 3, 7)
	wantCells(t, b.Functions(All), "function", "main")
	wantCells(t, b.Functions(All), "instructions", "73")
	wantCells(t, b.Hot(All), "block", "entry", "less", "more", "out")
	wantCells(t, b.Hot(2), "executions", "10", "7")
	wantCells(t, b.Hot(All), "flops", "0", "0", "3", "0")
	wantCells(t, b.Hot(All), "operations", "2 add, br", "2 add, br", "2 add, br, fadd", "ret")
	wantCells(t, b.Opcodes(All), "opcode", "add", "br", "ret", "fadd")
	wantCells(t, b.Opcodes(All), "count", "40", "20", "10", "3")
	branches, err := b.Branches(All)
	if err != nil {
		t.Fatal(err)
	}
	wantCells(t, branches, "taken", "3", "7")
	wantCells(t, branches, "to", "more", "less")
}

// Fractional counts are shown as fractions.
func TestFractionalBlockCounts(t *testing.T) {
	b := solved(t, 10, 1, 2)
	wantCells(t, b.Hot(All), "executions", "10", "6.667", "3.333", "10")
	branches, err := b.Branches(All)
	if err != nil {
		t.Fatal(err)
	}
	wantCells(t, branches, "taken", "3.333", "6.667")
}
