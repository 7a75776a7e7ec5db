package sgt

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

//go:embed FORMAT.md
var formatText string

// exampleFile is the file that FORMAT.md explains. exampleFile contains the trace of a loop that
// copies six 8-byte words.
func exampleFile(t failer) ([]byte, *trace.Program, []step) {
	t.Helper()
	p := &trace.Program{
		Modules:   []trace.Module{{Name: "copy.c", Options: "-O2"}},
		Functions: []trace.Function{{Name: "copy", Place: trace.Place{File: "copy.c", Line: 2}, Blocks: 2}},
		Blocks: []trace.Block{
			{Label: "entry", Flags: trace.EntryBlock, File: "copy.c", FirstLine: 2, LastLine: 2, Successors: []uint32{1}},
			{
				Label: "loop", Flags: trace.HeaderBlock | trace.LatchBlock | trace.ReturnBlock, Loop: 2, Depth: 1,
				File: "copy.c", FirstLine: 3, LastLine: 3, Successors: []uint32{1}, Sites: 2,
				Ops: []trace.Op{{Opcode: "load", Type: "i64", Count: 1}, {Opcode: "store", Type: "i64", Count: 1}},
			},
		},
		Sites: []trace.Site{
			{Kind: trace.Load, Bytes: 8, Block: 1, Place: trace.Place{File: "copy.c", Line: 3, Column: 12}, Type: "i64", Object: "from"},
			{Kind: trace.Store, Bytes: 8, Block: 1, Place: trace.Place{File: "copy.c", Line: 3, Column: 10}, Type: "i64", Object: "to"},
		},
	}
	steps := []step{{1, 1, 0, nil}}
	for i := range uint64(6) {
		steps = append(steps, step{1, 1, 1, []uint64{0x1000 + 8*i, 0x2000 + 8*i}})
	}
	var out bytes.Buffer
	w := NewWriter(&out, 64, []trace.Fact{{Name: "tool", Value: "example"}})
	if err := w.Module(AppendModule(nil, p)); err != nil {
		t.Fatalf("%v", err)
	}
	for _, s := range steps {
		if err := w.Step(s.thread, s.ticket, s.block, s.values); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := w.Close(End{How: "exit"}); err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes(), p, steps
}

// TestWorkedExample checks that FORMAT.md shows exactly the bytes of exampleFile.
func TestWorkedExample(t *testing.T) {
	want, p, steps := exampleFile(t)
	got := tracetest.WorkedExample(t, formatText)
	if !bytes.Equal(got, want) {
		t.Errorf("FORMAT.md has\n%s\nwant\n%s", hex.Dump(got), hex.Dump(want))
	}
	rows, end := rowsOf(t, NewReader("t", bytes.NewReader(want), Options{}), 0)
	compareRows(t, "the example", rows, naiveRows(p, steps, trace.AllKinds))
	if len(rows) != 12 {
		t.Errorf("the example has %d references, error %v, want 12 references", len(rows), end)
	}
}
