package sgl_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// exampleFile returns the file that FORMAT.md explains. The traced program sums the rows of a lower
// triangular matrix of 100 × 100 doubles. The program then loads three words, two of them at
// data-dependent addresses.
func exampleFile(t tracetest.Failer) ([]byte, *loops.Tree) {
	t.Helper()
	load := loops.Reference{Site: 1, Bytes: 8}
	store := loops.Reference{Site: 2, Bytes: 8, Kind: trace.Store}
	look := loops.Reference{Site: 3, Bytes: 4}
	n := &loops.Nest{Items: []loops.Item{
		loops.Loop(100,
			loops.Item{Trips: 1, Steps: []int64{1}, Body: []loops.Item{loops.Leaf(load, 0x10000, 800, 8)}},
			loops.Leaf(store, 0x30000, 8),
		),
		loops.Leaf(look, 0x40000),
		{Ref: look, Wild: true},
		{Ref: look, Wild: true},
	}}
	n.SetWild(look, []trace.Addr{0x40100, 0x400a0})
	tree, err := n.Build()
	if err != nil {
		t.Fatalf("%v", err)
	}
	h := trace.Header{Format: "lackey", Sizes: true, Sites: true}
	return write(t, h, tree), tree
}

// TestWorkedExample checks that FORMAT.md shows the bytes of the example file.
func TestWorkedExample(t *testing.T) {
	want, tree := exampleFile(t)
	text, err := os.ReadFile("../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	got := tracetest.WorkedExample(t, string(text))
	if !bytes.Equal(got, want) {
		t.Errorf("FORMAT.md has\n%s\nwant\n%s", hex.Dump(got), hex.Dump(want))
	}
	if tree.Rows() != 5050+100+3 {
		t.Errorf("a tree of %d rows, want 5153", tree.Rows())
	}
}
