//go:build !race

package sgt

import (
	"bytes"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestNoAllocations checks that a reader reuses the same memory for all chunks. The test is not
// built for the race detector, which allocates additional memory.
func TestNoAllocations(t *testing.T) {
	var out bytes.Buffer
	p := blocksOf("ls", "l", "")
	w := NewWriter(&out, 64, nil)
	w.full.steps = 500
	if err := w.Module(AppendModule(nil, p)); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(400000) {
		values := []uint64{i * i, i * 8}
		if err := w.Step(uint32(i/50%3), i/50, uint32(i%3), values[:len(w.layouts[i%3].scales)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(End{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Reader{NewReader("t", bytes.NewReader(out.Bytes()), Options{}), openSource(t, out.Bytes()).Open(0, trace.AllKinds).(*Reader)} {
		tracetest.CheckAllocations(t, testing.AllocsPerRun, r)
	}
}
