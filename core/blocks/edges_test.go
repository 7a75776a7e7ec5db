package blocks

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// loopProgram returns the program for (i = 0; i < 3; i++), with the blocks entry, head, body and
// exit.
func loopProgram() *trace.Program {
	return &trace.Program{
		Functions: []trace.Function{{Name: "f", Blocks: 4}},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{1}},
			{Label: "head", Flags: trace.HeaderBlock, Successors: []uint32{2, 3}},
			{Label: "body", Flags: trace.LatchBlock, Successors: []uint32{1}},
			{Label: "exit", Flags: trace.ReturnBlock},
		},
	}
}

func TestEdgesBalance(t *testing.T) {
	p := loopProgram()
	balanced := func() *Edges {
		e := NewEdges(p)
		e.Visits = []uint64{1, 4, 3, 1}
		e.Taken = [][]uint64{{1}, {3, 1}, {3}, {}}
		e.Entered[0], e.Left[3] = 1, 1
		return e
	}
	if err := balanced().Check(p); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		change func(*Edges)
		want   string
	}{
		{func(e *Edges) { e.Visits[2]++ }, "block body of f: ran 4 times, but was left 3 times"},
		{func(e *Edges) { e.Left[3]--; e.Visits[3]-- }, "block exit of f: ran 0 times, but was entered 1 times"},
		{func(e *Edges) { e.Resumed[0] = 2 }, "block entry of f: ran 1 times, but was entered 3 times"},
		{func(e *Edges) { e.Taken[1] = nil }, "block head of f: has counts for 0 outgoing edges, want 2"},
		{func(e *Edges) { e.Entered[0] = 0 }, "block entry of f: ran 1 times, but was entered 0 times"},
		{func(e *Edges) { e.Unmade[1] = 1 }, "block head of f: 1 calls are recorded as not entering a function of the program"},
		{func(e *Edges) { e.Left = nil }, "but the program has 4 blocks and 1 functions"},
	} {
		e := balanced()
		test.change(e)
		if err := e.Check(p); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Check() = %v, want an error with %q", err, test.want)
		}
	}
}

// TestCalleesWithSameName uses two modules. Each module has its own function named helper. Both
// modules contain a copy of one inline function.
func TestCalleesWithSameName(t *testing.T) {
	p := &trace.Program{
		Modules: []trace.Module{{Name: "a.c"}, {Name: "b.c"}},
		Functions: []trace.Function{
			{Name: "main", First: 0, Blocks: 2}, {Name: "helper", First: 2, Blocks: 1}, {Name: "inlined", First: 3, Blocks: 1},
			{Name: "other", Module: 1, First: 4, Blocks: 2}, {Name: "helper", Module: 1, First: 6, Blocks: 1}, {Name: "inlined", Module: 1, First: 7, Blocks: 1},
		},
		Blocks: []trace.Block{
			{Function: 0, Flags: trace.EntryBlock, Callee: "helper", Successors: []uint32{1}}, {Function: 0, Callee: "printf"},
			{Function: 1, Flags: trace.EntryBlock}, {Function: 2, Flags: trace.EntryBlock},
			{Function: 3, Flags: trace.EntryBlock, Callee: "helper", Successors: []uint32{5}}, {Function: 3, Callee: "inlined"},
			{Function: 4, Flags: trace.EntryBlock}, {Function: 5, Flags: trace.EntryBlock},
		},
	}
	e := NewEdges(p)
	e.Visits[2], e.Visits[6], e.Visits[3] = 1, 1, 1 // the linker kept the first copy of the function "inlined"
	const none = trace.NoFunction
	want := []uint32{1, none, none, none, 4, 2, none, none}
	for b, f := range e.Callees(p) {
		if f != want[b] {
			t.Errorf("block %d calls function %d, want function %d", b, f, want[b])
		}
	}
	e = NewEdges(p)
	if got := e.Callees(p)[5]; got != 5 {
		t.Errorf("without a run, block 5 calls function %d, want function 5, which is in the same module", got)
	}
}
